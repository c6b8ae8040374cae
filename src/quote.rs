//! Quoting: each record becomes a word that a shell reads back to the byte, on a line of its own.
//!
//! `words` says what each byte becomes; `expand` applies that to a block.

mod expand;
mod words;

use ringfold_read::internals::Level;
use ringfold_read::{Block, BlockError, Delimited, Framing, Malformed};

use crate::job::transform::Transform;

use crate::quote::expand::Expansion;
use crate::quote::words::Words;

pub use crate::quote::words::Shell;

/// The job: quotes records for a shell.
///
/// A record becomes `'record'`. In it `'` becomes `'\''`, and for [`Shell::Bash`] a control byte becomes an escape of its
/// own, as in `'two'$'\n''lines'`. All other bytes stand for themselves, whether they are UTF-8 or not. A shell reads
/// back exactly the record's bytes.
///
/// A NUL in a record is an error, because no shell can hold one. So is a newline for [`Shell::Posix`], as long as records
/// are escaped and each gets a line of the output.
///
/// ```
/// use ringfold::quote::Quote;
/// use ringfold::{Config, Input, transform};
///
/// let input = Input::memory([&b"plain\0it's\0two\nlines\0\0"[..]]);
/// let mut out = Vec::new();
/// transform(&input, &Config::default(), &Quote::new().delimiter(0), &mut out)?;
/// assert_eq!(out, b"'plain'\n'it'\\''s'\n'two'$'\\n''lines'\n''\n");
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quote {
    shell: Shell,
    delimiter: u8,
    out_delimiter: u8,
    escapes: bool,
    keeps_order: bool,
    level: Level,
    framing: Delimited,
    words: Box<Words>,
}

impl Default for Quote {
    fn default() -> Self {
        Quote::new()
    }
}

impl Quote {
    /// Lines, quoted for bash.
    pub fn new() -> Self {
        Quote {
            shell: Shell::Bash,
            delimiter: b'\n',
            out_delimiter: b'\n',
            escapes: true,
            keeps_order: true,
            level: Level::detect(),
            framing: Delimited::NEWLINE,
            words: Words::new(Shell::Bash, true, b'\n', b'\n'),
        }
    }

    /// The byte that ends a record of the input: newline unless said otherwise; 0 for what `find -print0` prints.
    ///
    /// # Panics
    /// It is neither newline nor NUL.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        assert!(matches!(delimiter, 0 | b'\n'), "newline or NUL");
        self.delimiter = delimiter;
        self.with_words()
    }

    /// The byte behind each word of the output: newline unless said otherwise.
    ///
    /// # Panics
    /// It is neither newline nor NUL.
    #[must_use]
    pub fn out_delimiter(mut self, delimiter: u8) -> Self {
        assert!(matches!(delimiter, 0 | b'\n'), "newline or NUL");
        self.out_delimiter = delimiter;
        self.with_words()
    }

    /// The shell that is to read the words.
    #[must_use]
    pub fn shell(mut self, shell: Shell) -> Self {
        self.shell = shell;
        self.with_words()
    }

    /// Whether control bytes are escaped, as they are unless said otherwise. If not, they stand for themselves, a newline
    /// too: then a word may take several lines.
    #[must_use]
    pub fn escapes(mut self, escapes: bool) -> Self {
        self.escapes = escapes;
        self.with_words()
    }

    /// Has words written as soon as they are made, in whatever order.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.keeps_order = false;
        self
    }

    /// The instructions to use: the best of this processor unless said otherwise. For tests and measurements.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    fn with_words(mut self) -> Self {
        self.framing = Delimited::by(self.delimiter);
        self.words = Words::new(self.shell, self.escapes, self.delimiter, self.out_delimiter);
        self
    }

    /// What is wrong with the record that holds the byte at `at`.
    fn refused(&self, bytes: &[u8], at: usize) -> Malformed {
        let start = memchr::memrchr(self.delimiter, &bytes[..at]).map_or(0, |end| end + 1);
        let rest = memchr::memchr(self.delimiter, &bytes[at..]);
        let cause = match bytes[at] {
            0 => "a NUL byte, which no shell can hold in a word",
            _ => "a newline, which a POSIX shell can't be given on one line",
        };
        Malformed {
            start,
            end: rest.map_or(bytes.len(), |end| at + end),
            cause: cause.into(),
        }
    }
}

impl Transform for Quote {
    fn framing(&self) -> &dyn Framing {
        &self.framing
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError> {
        let expansion = Expansion::new(&self.words, self.level);
        let Err(at) = expansion.records(block, out) else {
            return Ok(());
        };
        let refused = self.refused(block.bytes(), at);
        out.clear();
        let before = block.prefix(refused.start);
        let whole = expansion.records(&before, out);
        debug_assert_eq!(whole, Ok(()), "the first byte that is refused lies behind");
        Err(refused.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfold_read::PaddedBuf;
    use ringfold_read::internals::texts;

    /// Quoting by the book: record by record, byte by byte.
    fn naive(quote: &Quote, text: &[u8]) -> (Vec<u8>, Option<usize>) {
        let mut out = Vec::new();
        let mut start = 0;
        for record in text.split_inclusive(|&byte| byte == quote.delimiter) {
            let bare = record.strip_suffix(&[quote.delimiter]).unwrap_or(record);
            let mut word = vec![b'\''];
            for &byte in bare {
                let escape = quote.escapes && quote.shell == Shell::Bash;
                let is_split = quote.escapes && byte == b'\n' && quote.out_delimiter == b'\n';
                match byte {
                    0 => return (out, Some(start)),
                    b'\'' => word.extend(b"'\\''"),
                    1..0x20 | 0x7f if escape => {
                        let short = b"\x07a\x08b\tt\nn\x0bv\x0cf\rr\x1be"
                            .chunks(2)
                            .find(|pair| pair[0] == byte);
                        let escape = match short {
                            Some(pair) => format!("'$'\\{}''", char::from(pair[1])),
                            None => format!("'$'\\{byte:03o}''"),
                        };
                        word.extend(escape.as_bytes());
                    }
                    _ if is_split => return (out, Some(start)),
                    _ => word.push(byte),
                }
            }
            word.extend([b'\'', quote.out_delimiter]);
            out.append(&mut word);
            start += record.len();
        }
        (out, None)
    }

    fn every_quote() -> Vec<Quote> {
        let mut all = Vec::new();
        for shell in [Shell::Bash, Shell::Posix] {
            for escapes in [true, false] {
                for delimiter in [b'\n', 0] {
                    for out_delimiter in [b'\n', 0] {
                        for level in Level::available() {
                            all.push(
                                Quote::new()
                                    .shell(shell)
                                    .escapes(escapes)
                                    .delimiter(delimiter)
                                    .out_delimiter(out_delimiter)
                                    .level(level),
                            );
                        }
                    }
                }
            }
        }
        all
    }

    fn check(quote: &Quote, text: &[u8], fill: u8) {
        let buf = PaddedBuf::with_fill(text, fill);
        // What an earlier block has left stays in front.
        let mut out = Vec::new();
        let done = quote.block(&buf.block(0, 0, 0), &mut out);
        let (words, bad) = naive(quote, text);
        assert_eq!(out, words, "{quote:?} {text:?}");
        let start = match done {
            Ok(()) => None,
            Err(BlockError::Malformed(malformed)) => {
                let record = &text[malformed.start..malformed.end];
                assert!(!record.contains(&quote.delimiter), "{text:?}");
                Some(malformed.start)
            }
            Err(BlockError::Sink(error)) => panic!("{error}"),
        };
        assert_eq!(start, bad, "{quote:?} {text:?}");
    }

    #[test]
    fn every_small_text_is_quoted_by_the_book() {
        let max = if cfg!(miri) { 2 } else { 5 };
        for quote in every_quote() {
            for text in texts(b"a'\n\0\x01", max) {
                check(&quote, &text, b'\'');
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_is_quoted_by_the_book() {
        let places = if cfg!(miri) { 62..66 } else { 0..140 };
        for quote in every_quote() {
            for place in places.clone() {
                for byte in (0..=255u8).step_by(if cfg!(miri) { 39 } else { 1 }) {
                    let mut text = vec![b'x'; 140];
                    text[place] = byte;
                    check(&quote, &text, 0);
                }
            }
        }
    }

    #[test]
    fn random_texts_are_quoted_by_the_book() {
        use proptest::prelude::*;
        let byte = prop_oneof![
            4 => any::<u8>(),
            2 => Just(b'\''),
            2 => prop::sample::select(b"\n\0\x08\x7f\xff\\".to_vec()),
            8 => Just(b'a'),
        ];
        let cases = if cfg!(miri) { 2 } else { 500 };
        let quotes = every_quote();
        proptest!(ProptestConfig::with_cases(cases), |(text in prop::collection::vec(byte, 0..400))| {
            for quote in &quotes {
                check(quote, &text, b'\n');
            }
        });
    }
}
