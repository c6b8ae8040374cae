//! Any text, any dialect and level of instructions: words, and what can't be quoted, are those of a quoter that goes
//! byte by byte. One case in 128 is read in blocks by a real run too, on 1, 2 or 8 threads.
#![no_main]

mod case;

use case::Case;
use libfuzzer_sys::fuzz_target;
use ringfold::quote::{Quote, Shell};
use ringfold::{BlockError, Config, Level, PaddedBuf, Transform, transform};

/// What becomes of a record, or `None`.
fn word(record: &[u8], shell: Shell, escapes: bool, end: u8) -> Option<Vec<u8>> {
    let mut word = vec![b'\''];
    for &byte in record {
        let is_control = byte < b' ' || byte == 0x7f;
        match (byte, shell) {
            (0, _) => return None,
            (b'\'', _) => word.extend(b"'\\''"),
            (_, Shell::Bash) if is_control && escapes => {
                let letters = b"abtnvfr";
                let escape = match byte {
                    7..=13 => format!("'$'\\{}''", char::from(letters[usize::from(byte) - 7])),
                    0x1b => "'$'\\e''".to_string(),
                    _ => format!("'$'\\{byte:03o}''"),
                };
                word.extend(escape.as_bytes());
            }
            (b'\n', Shell::Posix) if escapes && end == b'\n' => return None,
            _ => word.push(byte),
        }
    }
    word.extend([b'\'', end]);
    Some(word)
}

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let choice = case.spare();
    let bit = |n: u8| choice >> n & 1 == 1;
    let byte = |is_nul: bool| if is_nul { 0 } else { b'\n' };
    let (delimiter, end, escapes) = (byte(bit(0)), byte(bit(1)), bit(2));
    let shell = if bit(3) { Shell::Bash } else { Shell::Posix };
    let levels = Level::available();
    let level = levels[usize::from(choice >> 4) % levels.len()];

    // Words up to the first record that can't be quoted, and where that one begins.
    let quoted = |text: &[u8]| {
        let (mut words, mut start) = (Vec::new(), 0);
        for record in text.split_inclusive(|&byte| byte == delimiter) {
            let bare = record.strip_suffix(&[delimiter]).unwrap_or(record);
            match word(bare, shell, escapes, end) {
                Some(word) => words.extend(word),
                None => return (words, Some(start)),
            }
            start += record.len();
        }
        (words, None)
    };
    let job = Quote::new()
        .delimiter(delimiter)
        .out_delimiter(end)
        .escapes(escapes)
        .shell(shell)
        .level(level);
    let (mut all, mut first) = (Vec::new(), None);
    for (file, text) in (0u32..).zip(&case.files) {
        let (words, bad) = quoted(text);
        let mut out = Vec::new();
        let done = job.block(&PaddedBuf::from(*text).block(file, 0, 0), &mut out);
        let found = done.err().map(|error| match error {
            BlockError::Malformed(malformed) => malformed.start,
            BlockError::Sink(error) => panic!("{error}"),
        });
        assert_eq!((&out, found), (&words, bad));
        if first.is_none() {
            all.extend(words);
            first = bad.map(|start| (file, start as u64));
        }
    }
    if case.threads().is_some() {
        let config = Config {
            max_record: 1 << 20,
            ..case.config()
        };
        let mut out = Vec::new();
        let done = transform(&case.input(), &config, &job, &mut out);
        let found = done.err().map(|error| {
            let bytes = error.bytes().expect("a record has a place");
            (error.file_index(), bytes.start)
        });
        assert_eq!((out, found), (all, first));
    }
});
