//! Any text with or without quotes, at every level of instructions, in windows of any length up to the longest: fields
//! and records end where a program that goes byte by byte ends them, and a quote at a wrong place is noticed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfold::Level;
use ringfold::internals::fuzzed::{Indexed, WINDOW_BYTES, indexed};

/// The same by one look at each byte.
fn naive(text: &[u8], delimiter: u8, quote: Option<u8>) -> Option<Indexed> {
    #[derive(PartialEq)]
    enum At {
        FieldStart,
        Plain,
        Inside,
        /// Behind a quote inside: it closes, or is the first of two.
        Closed,
        /// Behind a closing quote and a carriage return: a newline must follow.
        Returned,
    }
    let mut found = Indexed {
        ends: vec![0],
        last_ends: Vec::new(),
        doubled: Vec::new(),
        has_quotes: quote.is_some_and(|quote| text.contains(&quote)),
    };
    let mut state = At::FieldStart;
    for (at, &byte) in text.iter().enumerate() {
        let is_quote = Some(byte) == quote;
        state = match state {
            At::Inside if is_quote => At::Closed,
            At::Inside => At::Inside,
            At::Closed if is_quote => {
                found.doubled.push(at as u16);
                At::Inside
            }
            _ if byte == delimiter || byte == b'\n' => {
                if state == At::Returned && byte != b'\n' {
                    return None;
                }
                found.ends.push(at as u16 + 1);
                if byte == b'\n' {
                    found.last_ends.push(found.ends.len() as u16 - 1);
                }
                At::FieldStart
            }
            At::Closed if byte == b'\r' && text.get(at + 1) == Some(&b'\n') => At::Returned,
            At::Closed | At::Returned => return None,
            At::FieldStart if is_quote => At::Inside,
            // A quote within a field that isn't quoted is a byte like others, which this pass leaves to another.
            At::Plain if is_quote => return None,
            At::FieldStart | At::Plain => At::Plain,
        };
    }
    Some(found)
}

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, fill, many], text)) = data.split_first_chunk() else {
        return;
    };
    let delimiter = [b',', b';', b'\t', b' '][usize::from(choice % 4)];
    let quote = [None, Some(b'"'), Some(b'"'), Some(b'\'')][usize::from(choice / 4 % 4)];
    // A field before it moves all the rest; copies of it make windows of many fields.
    let mut window = vec![b'z'; usize::from(fill % 67)];
    let copies = if many < 240 { 1 } else { usize::from(many - 238).pow(2) };
    window.extend_from_slice(&text.repeat(copies));
    window.truncate(WINDOW_BYTES - usize::from(fill / 67));
    let passes = 1 + usize::from(choice / 16 % 2);
    let want = naive(&window, delimiter, quote);
    for level in Level::available() {
        let got = indexed(level, &window, delimiter, quote, passes);
        match &want {
            // An offence may be told where a line of another kind follows, but never the other way round.
            None => assert_eq!(got, None, "{level:?}"),
            Some(want) => assert_eq!(got.as_ref(), Some(want), "{level:?}"),
        }
    }
});
