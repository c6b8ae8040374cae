//! `quote`: words that a real shell reads back to the byte, from every engine, with an allocation for no block.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ringfold::quote::{Quote, Shell};
use ringfold::{Config, Input, transform};

use crate::allocations;
use crate::probe::{Feature, skip, skips};
use crate::support::{
    KEYS_10K, STATIONS, WAYS, Way, cached_ways, dir, end, end_of, feed, ringfold, start, str, write,
};

/// Records without `without`, many of them short, with all bytes and those that shells look at more often.
fn records(count: usize, without: &'static [u8]) -> Vec<Vec<u8>> {
    let bytes = move |bytes: Vec<u8>| {
        let allowed = move |byte: &u8| *byte != 0 && !without.contains(byte);
        prop::sample::select(bytes.into_iter().filter(allowed).collect::<Vec<u8>>())
    };
    let byte = prop_oneof![
        2 => bytes((0..=255).collect()),
        2 => bytes(b"'\\\"$`!\n\t\r\x01\x08\x1b\x7f07nxua{}*?~# \xc3\xa9\xe3\x81\xff\x80".to_vec()),
        1 => bytes(b"abc".to_vec()),
    ];
    let record = prop_oneof![
        8 => prop::collection::vec(byte.clone(), 0..12),
        1 => prop::collection::vec(byte, 0..300),
    ];
    let all = prop::collection::vec(record, count);
    let mut runner = TestRunner::deterministic();
    all.new_tree(&mut runner).unwrap().current()
}

fn quoted(args: &[&str], input: Vec<u8>) -> Vec<u8> {
    let mut command = ringfold(["quote"]);
    command.args(args).stdin(Stdio::piped());
    let mut child = start(&mut command);
    feed(&mut child, input);
    end_of(child).answer()
}

/// What a shell makes of words: each on the output, with a NUL behind it.
fn read_back(shell: &str, locale: &str, words: &[u8]) -> Vec<u8> {
    let mut script = Vec::new();
    for word in words.split_inclusive(|&byte| byte == b'\n') {
        script.extend(b"printf '%s\\0' ");
        script.extend(word);
    }
    let mut command = Command::new(shell);
    command.env("LC_ALL", locale).stdin(Stdio::piped());
    let mut child = start(&mut command);
    feed(&mut child, script);
    end_of(child).answer()
}

fn has(shell: &str) -> bool {
    let run = Command::new(shell).args(["-c", "exit 0"]).status();
    run.is_ok_and(|status| status.success())
}

fn joined(records: &[Vec<u8>], delimiter: u8) -> Vec<u8> {
    let mut all = Vec::new();
    for record in records {
        all.extend(record);
        all.push(delimiter);
    }
    all
}

#[test]
fn bash_reads_back_every_byte() {
    if !has("bash") {
        return skip("bash_reads_back_every_byte", "there is no bash");
    }
    let mut records = records(20_000, b"");
    // Each byte by itself, and before and behind others.
    for byte in 1..=255u8 {
        for around in [&b""[..], b"a", b"'", b"1"] {
            records.push([around, &[byte], around].concat());
        }
    }
    let input = joined(&records, 0);
    let words = quoted(&["-z"], input.clone());
    assert_eq!(
        words.iter().filter(|&&byte| byte == b'\n').count(),
        records.len(),
        "one line a record"
    );
    let is_shown = |byte: &u8| *byte == b'\n' || !byte.is_ascii_control();
    assert!(words.iter().all(is_shown), "control bytes are escaped");
    for locale in ["C", "C.UTF-8"] {
        assert!(read_back("bash", locale, &words) == input, "{locale}");
    }
    // The very same with other engines.
    let dir = dir();
    let path = write(dir.path(), "records", &input);
    for way in WAYS.iter() {
        let mut command = ringfold(["quote", "-z"]);
        command.args(way.flags()).arg(&path);
        assert!(end(&mut command).answer() == words, "{way:?}");
    }
}

#[test]
fn any_shell_reads_back_what_is_quoted_for_posix() {
    let records = records(20_000, b"\n");
    for (input, args) in [
        (joined(&records, b'\n'), &["--shell", "posix"][..]),
        (joined(&records, b'\n'), &["--no-escape"]),
        (joined(&records, 0), &["--shell", "posix", "-z"]),
    ] {
        let words = quoted(args, input.clone());
        for shell in ["sh", "bash", "dash", "busybox"] {
            if has(shell) {
                let back = read_back(shell, "C", &words);
                assert!(back == joined(&records, 0), "{shell} {args:?}");
            }
        }
    }
}

#[test]
fn what_is_written_for_each_byte() {
    for (args, input, want) in [
        (
            &[][..],
            &b"plain\nit's\n\n\\ \"$\nlast"[..],
            &b"'plain'\n'it'\\''s'\n''\n'\\ \"$'\n'last'\n"[..],
        ),
        (
            &[],
            b"\ta\rb\x01c\xff\n",
            b"''$'\\t''a'$'\\r''b'$'\\001''c\xff'\n",
        ),
        (&[], b"", b""),
        (&["-z"], b"two\nlines\0\0", b"'two'$'\\n''lines'\n''\n"),
        (
            &["-z", "-n"],
            b"two\nlines\0it's\0",
            b"'two\nlines'\n'it'\\''s'\n",
        ),
        (
            &["-z", "--shell", "posix", "-o", "null"],
            b"two\nlines\0",
            b"'two\nlines'\0",
        ),
        (
            &["--out-delimiter", "null", "-w", "2", "-b", "1000"],
            b"a\nb\n",
            b"'a'\0'b'\0",
        ),
        (&["-o", "null", "-o", "lf", "-j", "1"], b"a\n", b"'a'\n"),
        (&["--unordered", "--workers=3"], b"a\nb\n", b"'a'\n'b'\n"),
    ] {
        let got = quoted(args, input.to_vec());
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(want),
            "{args:?}"
        );
        assert_eq!(got, want, "{args:?}");
    }
}

/// What isn't `null` or `lf` is a file. A file of that name has a path.
#[test]
fn an_output_file_appears_when_it_is_complete() {
    let dir = dir();
    let good = write(dir.path(), "good", b"a\n");
    let bad = write(dir.path(), "bad", b"a\n\0\n");
    for (flag, name) in [("-o", "words"), ("-o", "./null"), ("--output", "lf")] {
        let mut command = ringfold(["quote", flag, name, str(&good)]);
        assert_eq!(end(command.current_dir(dir.path())).answer(), b"");
        assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), b"'a'\n");
        let mut command = ringfold(["quote", flag, name, str(&bad)]);
        end(command.current_dir(dir.path())).failure(1);
        let old = std::fs::read(dir.path().join(name)).unwrap();
        assert_eq!(old, b"'a'\n", "what was there stays");
    }
    let error = end(&mut ringfold(["quote", str(&good), "-o", str(&good)])).failure(2);
    assert!(error.contains("is the input and the output"), "{error}");
}

#[test]
fn what_cannot_be_said_names_its_place_behind_all_that_can() {
    let dir = dir();
    let before = STATIONS.clone();
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let text = [&before[..], b"no\0t this\n", &KEYS_10K, b"\0\n"].concat();
    let path = write(dir.path(), "lines", &text);
    let words = quoted(&[], before.clone());
    let range = format!("byte {}-{}", before.len(), before.len() + 9);
    for way in WAYS.iter() {
        for threads in ["1", "4"] {
            let mut command = ringfold(["quote", "--block-size", "64K", "-j", threads]);
            let ended = end(command.args(way.flags()).arg(&path));
            let error = format!(
                "ringfold: {}: {range} (line {line}): a NUL byte, which no shell can hold in a word\n",
                str(&path)
            );
            assert_eq!((ended.code, ended.stderr), (Some(1), error), "{way:?}");
            assert!(ended.stdout == words, "{way:?} {threads}");
        }
    }
    let path = write(dir.path(), "nul", b"fine\0two\nlines\0");
    let mut command = ringfold(["quote", "-z", "--shell", "posix"]);
    let ended = end(command.arg(&path));
    let error = format!(
        "ringfold: {}: byte 5-14 (line 2): a newline, which a POSIX shell can't be given on one line\n",
        str(&path)
    );
    assert_eq!((ended.code, ended.stderr), (Some(1), error));
    assert_eq!(ended.stdout, b"'fine'\n");
}

#[test]
fn a_full_device_is_one_line_and_a_closed_pipe_none() {
    if skips("a_full_device_is_one_line", &[Feature::DevFull]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "text", &STATIONS.repeat(20));
    for order in [&[][..], &["--unordered"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = ringfold(["quote", str(&path)]);
        command.args(order).stdout(full).stderr(Stdio::piped());
        let error = end_of(command.spawn().unwrap()).failure(1);
        let words = "standard output: cannot write: No space left on device [ENOSPC]";
        assert_eq!(error, words);

        let mut command = ringfold(["quote", str(&path)]);
        let mut child = start(command.args(order));
        let mut out = child.stdout.take().unwrap();
        let mut beginning = [0; 1000];
        out.read_exact(&mut beginning).unwrap();
        drop(out);
        let ended = end_of(child);
        assert_eq!((ended.code, &*ended.stderr), (Some(141), ""), "{order:?}");
    }
}

/// The writer waits for each word before it writes the next record: if one were held back, this would never end.
#[test]
fn words_leave_as_their_records_come() {
    for order in [&[][..], &["--unordered"]] {
        let mut command = ringfold(["quote", "-z"]);
        let mut child = start(command.args(order).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for n in 0..20 {
            stdin
                .write_all(format!("it's\0{n}\n\0").as_bytes())
                .unwrap();
            for want in ["'it'\\''s'\n".to_string(), format!("'{n}'$'\\n'''\n")] {
                let mut word = String::new();
                stdout.read_line(&mut word).unwrap();
                assert_eq!(word, want);
            }
        }
        drop(stdin);
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        assert_eq!((rest, end_of(child).code), (vec![], Some(0)));
    }
}

fn config(way: Way, block: usize, threads: usize) -> Config {
    Config {
        block_size: Some(block),
        threads: Some(threads),
        knobs: way.rings(3),
        ..way.config()
    }
}

/// Every level of instructions is held to the definition by the unit tests: here the default, by every engine.
#[test]
fn every_engine_and_size_gives_the_same_words() {
    let dir = dir();
    let text = joined(&records(3_000, b"\n"), b'\n');
    let [long, empty] = [b"'\n".repeat(40_000), vec![]];
    let texts = [&text, &empty, &long, &*KEYS_10K];
    let paths: Vec<_> = (0..)
        .zip(texts)
        .map(|(n, text)| write(dir.path(), &format!("{n}"), text))
        .collect();
    let job = Quote::new().shell(Shell::Bash);
    let mut want = Vec::new();
    let all = Input::memory(texts.map(Vec::as_slice));
    transform(&all, &Config::default(), &job, &mut want).unwrap();
    let mut sorted: Vec<&[u8]> = want.split(|&byte| byte == b'\n').collect();
    sorted.sort_unstable();
    let check = |way: Way, block: usize, threads: usize| {
        let config = config(way, block, threads);
        let input = Input::open(&paths).unwrap();
        let mut out = Vec::new();
        transform(&input, &config, &job, &mut out).unwrap();
        assert!(out == want, "{config:?}");
        let mut out = Vec::new();
        transform(&input, &config, &job.clone().unordered(), &mut out).unwrap();
        let mut words: Vec<&[u8]> = out.split(|&byte| byte == b'\n').collect();
        words.sort_unstable();
        assert!(words == sorted, "{config:?}");
    };
    for way in WAYS.iter() {
        for block in [4096, 65_536, 1 << 20] {
            for threads in [1, 2, 8] {
                check(*way, block, threads);
            }
        }
    }
    for way in cached_ways() {
        check(way, 1000, 3);
    }
}

/// A block of the test below, and how many there are in a short run, in which everything that is needed grows, and in a
/// long one.
const BLOCK: usize = 4096;
const BLOCKS: [usize; 2] = [1_000, 9_000];

/// The texts of a window grow a few times each, some of them late: when so many are under way at once.
const MOST: u64 = 450;

/// Where the children find their input.
const FILES: &str = "RINGFOLD_QUOTE_FILES";

/// No block of the long run is worth an allocation that the short one doesn't have too.
#[test]
#[ignore = "a part of no_block_costs_an_allocation"]
fn allocations_in_a_child() {
    let dir = std::env::var_os(FILES).expect("the test that starts this one says where");
    let dir = std::path::Path::new(&dir);
    let mut too_many = Vec::new();
    for way in WAYS.iter() {
        for threads in [1, 2] {
            for ordered in [true, false] {
                let job = match ordered {
                    true => Quote::new(),
                    false => Quote::new().unordered(),
                };
                let counts = BLOCKS.map(|blocks| {
                    let input = Input::open([dir.join(blocks.to_string())]).unwrap();
                    let config = Config {
                        // Otherwise a longer file gets more buffers.
                        queue_depth: Some(32),
                        ..config(*way, BLOCK, threads)
                    };
                    let before = allocations::count();
                    transform(&input, &config, &job, &mut std::io::sink()).unwrap();
                    allocations::count() - before
                });
                let line = format!("{way:?} {threads} threads, ordered {ordered}: {counts:?}");
                println!("{line}");
                if counts[1] > counts[0] + MOST {
                    too_many.push(line);
                }
            }
        }
    }
    assert!(too_many.is_empty(), "{too_many:#?}");
}

#[test]
fn no_block_costs_an_allocation() {
    let dir = dir();
    for blocks in BLOCKS {
        let mut file = File::create(dir.path().join(blocks.to_string())).unwrap();
        let text = b"it's\n".repeat(BLOCK);
        let mut left = blocks * BLOCK;
        while left > 0 {
            let part = &text[..left.min(text.len())];
            file.write_all(part).unwrap();
            left -= part.len();
        }
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(FILES, dir.path()).args([
        "--exact",
        "quote::allocations_in_a_child",
        "--ignored",
        "--nocapture",
    ]);
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
