//! What each byte of a record becomes in the output.

/// For which shell records are quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// bash, and others that know `$'…'` (ksh, zsh): control bytes are escaped.
    #[default]
    Bash,
    /// Any POSIX shell: only `'…'` and `\'`, so control bytes stand for themselves.
    Posix,
}

/// What a byte becomes: up to 15 bytes, or none where it is refused. The last byte is their number.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
pub(super) struct Word(pub(super) [u8; 16]);

impl Word {
    const REFUSED: Word = Word([0; 16]);

    fn of(text: &[u8]) -> Word {
        let mut word = Word::REFUSED;
        word.0[..text.len()].copy_from_slice(text);
        word.0[15] = text.len() as u8;
        word
    }

    /// How many bytes it becomes; 0: it is refused.
    pub(super) fn len(&self) -> usize {
        usize::from(self.0[15])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.len()]
    }
}

/// The bytes that don't stand for themselves: all up to a limit, and two more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Special {
    pub(super) up_to: u8,
    pub(super) others: [u8; 2],
}

/// What every byte becomes, in the middle of a record. The record's end becomes the end of its word and the start of
/// the next one.
#[derive(Debug, Clone)]
pub(super) struct Words {
    words: [Word; 256],
    special: Special,
    /// What ends the last word.
    end: [u8; 2],
    delimiter: u8,
}

impl Words {
    pub(super) fn new(shell: Shell, escapes: bool, delimiter: u8, out_delimiter: u8) -> Box<Words> {
        let mut words = [Word::REFUSED; 256];
        for byte in 1..=255u8 {
            words[usize::from(byte)] = Word::of(&[byte]);
        }
        words[usize::from(b'\'')] = Word::of(br"'\''");
        match shell {
            Shell::Bash if escapes => {
                for byte in (1..0x20).chain([0x7f]) {
                    words[usize::from(byte)] = Word::of(escape(byte).as_bytes());
                }
            }
            Shell::Posix if escapes && out_delimiter == b'\n' => {
                words[usize::from(b'\n')] = Word::REFUSED;
            }
            _ => {}
        }
        words[usize::from(delimiter)] = Word::of(&[b'\'', out_delimiter, b'\'']);
        Box::new(Words {
            special: special(&words),
            words,
            end: [b'\'', out_delimiter],
            delimiter,
        })
    }

    pub(super) fn of(&self, byte: u8) -> &Word {
        &self.words[usize::from(byte)]
    }

    pub(super) fn special(&self) -> Special {
        self.special
    }

    /// The length of the longest word.
    pub(super) fn longest(&self) -> usize {
        self.words.iter().map(Word::len).max().unwrap_or(0)
    }

    pub(super) fn end(&self) -> [u8; 2] {
        self.end
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }
}

/// A control byte in the middle of a word: the quotes are closed around it.
fn escape(byte: u8) -> String {
    let letter = match byte {
        0x07 => 'a',
        0x08 => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        0x0b => 'v',
        0x0c => 'f',
        b'\r' => 'r',
        0x1b => 'e',
        // Three digits, so that a digit behind it isn't taken for one of them.
        _ => return format!(r"'$'\{byte:03o}''"),
    };
    format!(r"'$'\{letter}''")
}

fn special(words: &[Word; 256]) -> Special {
    let stands_for_itself = |byte: u8| words[usize::from(byte)].bytes() == [byte];
    // NUL always ends a record or is refused.
    let plain = (0..=255).find(|&byte| stands_for_itself(byte));
    let up_to = plain.expect("letters are plain") - 1;
    let mut others = (up_to..=255).filter(|&byte| byte > up_to && !stands_for_itself(byte));
    let first = others.next().expect("a quote is never plain");
    let second = others.next().unwrap_or(first);
    assert_eq!(others.next(), None, "two at most");
    Special {
        up_to,
        others: [first, second],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_bash() {
        assert_eq!(escape(b'\n'), r"'$'\n''");
        assert_eq!(escape(1), r"'$'\001''");
        assert_eq!(escape(0x7f), r"'$'\177''");
    }

    #[test]
    fn special_bytes_are_those_that_become_something_else() {
        for shell in [Shell::Bash, Shell::Posix] {
            for escapes in [true, false] {
                for delimiter in [0, b'\n'] {
                    for out_delimiter in [0, b'\n'] {
                        let words = Words::new(shell, escapes, delimiter, out_delimiter);
                        let special = words.special();
                        for byte in 0..=255 {
                            let is_special =
                                byte <= special.up_to || special.others.contains(&byte);
                            let is_plain = words.of(byte).bytes() == [byte];
                            assert_ne!(is_special, is_plain, "{byte} of {words:?}");
                        }
                    }
                }
            }
        }
    }
}
