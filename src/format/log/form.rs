//! What values of a log's variables look like: which of them may hold blanks, and how.

/// The form of a variable's values. An empty value or `-` stands for none in most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Anything.
    Text,
    /// No blank.
    Word,
    /// A host's name or address, without a port.
    Host,
    /// What identd says, in practice `-`.
    Ident,
    /// A user's name, which may hold blanks.
    User,
    Time,
    /// A time as nginx and Apache write it, with its zone.
    ZonedTime,
    /// Three digits.
    Status,
    /// Words with `, ` or ` : ` between.
    List,
    /// Method, path and protocol, or one word that is no method.
    Request,
}

impl Form {
    /// The form where a blank stands after a value, or before it, or not: a blank tells the least of where it ends.
    pub(super) fn between_blanks(self, is_between_blanks: bool) -> Form {
        match (self, is_between_blanks) {
            (Form::List | Form::Request, false) => Form::Text,
            (Form::Time, true) => Form::ZonedTime,
            _ => self,
        }
    }

    /// Whether almost no value is without a blank.
    pub(crate) fn has_blanks(self) -> bool {
        matches!(self, Form::Request | Form::ZonedTime)
    }

    /// Whether a value that ends at the first place where it may needs no look at other places.
    pub(super) fn is_plain(self, value: &[u8]) -> bool {
        match self {
            Form::Text | Form::Word | Form::Host | Form::User => true,
            // Another word often comes from a line with a word more.
            Form::Ident => value == b"-",
            Form::Time | Form::ZonedTime | Form::Status | Form::List | Form::Request => {
                self.fits(value)
            }
        }
    }

    pub(super) fn fits(self, value: &[u8]) -> bool {
        let is_word = !value.contains(&b' ');
        match self {
            Form::Text => true,
            Form::Word => is_word,
            Form::Host => {
                let colons = value.iter().filter(|byte| **byte == b':').count();
                let has_port = colons == 1 && !value.starts_with(b"unix:");
                is_word && !value.is_empty() && !has_port && !value.contains(&b',')
            }
            Form::Ident => is_word && !value.is_empty() && !is_address(value),
            Form::User => {
                is_word || words(value).all(|word| !matches!(word, b"-" | b"") && !is_address(word))
            }
            Form::Time => value == b"-" || is_usual_time(value) || is_time(value),
            Form::ZonedTime => is_usual_time(value),
            Form::Status => {
                value == b"-" || value.len() == 3 && value.iter().all(u8::is_ascii_digit)
            }
            Form::List => is_list(value),
            Form::Request => is_request(value),
        }
    }

    /// The form in words.
    pub(super) fn described(self) -> &'static str {
        match self {
            Form::Text => "a text",
            Form::Word => "one word",
            Form::Host => "a host's name or address, without a port",
            Form::Ident => "`-` or a name",
            Form::User => "a user's name",
            Form::Time => "a time",
            Form::ZonedTime => "a time such as 12/Mar/2026:06:25:01 +0000",
            Form::Status => "three digits",
            Form::List => "a word, or a list with `, ` or ` : ` between words",
            Form::Request => "a request with method, path and protocol",
        }
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b' ')
}

fn is_address(word: &[u8]) -> bool {
    let text = std::str::from_utf8(word);
    text.is_ok_and(|text| text.parse::<std::net::IpAddr>().is_ok())
}

/// Whether marks stand where they do in `12/Mar/2026:06:25:01 +0000`.
fn is_usual_time(value: &[u8]) -> bool {
    let Ok(time) = <&[u8; 26]>::try_from(value) else {
        return false;
    };
    let dates = (time[2] == b'/') & (time[6] == b'/');
    let clocks = (time[11] == b':') & (time[14] == b':') & (time[17] == b':');
    dates & clocks & (time[20] == b' ')
}

/// Whether it may be a time of any form: with a clock, or in seconds.
fn is_time(value: &[u8]) -> bool {
    let is_of_time = |byte: &u8| byte.is_ascii_alphanumeric() || b":/+-., ".contains(byte);
    let is_of_seconds = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let colons = value.iter().filter(|byte| **byte == b':').count();
    let has_clock = (2..4).contains(&colons) && value.iter().all(is_of_time);
    let is_epoch = value.len() > 8 && value.iter().all(is_of_seconds);
    value.len() < 40 && (has_clock || is_epoch)
}

fn is_list(value: &[u8]) -> bool {
    let mut before: Option<&[u8]> = None;
    for word in words(value) {
        let is_parted =
            word == b":" || before.is_none_or(|before| before.ends_with(b",") || before == b":");
        let is_twice =
            word == b":" && before.is_none_or(|before| before == b":" || before.ends_with(b","));
        if !is_parted || is_twice || word == b"," || word.is_empty() && before.is_some() {
            return false;
        }
        before = Some(word);
    }
    before.is_some_and(|last| !last.ends_with(b",") && last != b":")
}

fn is_request(value: &[u8]) -> bool {
    let is_method = |word: &[u8]| {
        let is_of_method = |byte: &u8| byte.is_ascii_uppercase() || b"-_".contains(byte);
        word.first().is_some_and(u8::is_ascii_uppercase) && word.iter().all(is_of_method)
    };
    let mut words = words(value);
    let first = words.next().unwrap_or_default();
    match (words.next(), words.last()) {
        (None, _) => !is_method(first),
        (Some(_), None) => false,
        (Some(_), Some(protocol)) => is_method(first) && protocol.starts_with(b"HTTP/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (form, fits, fits_not) in [
            (
                Form::Host,
                &["a", "-", "::1", "192.0.2.1", "unix:"][..],
                &["a:443", "a,", "a b", "192.0.2.1:80", ""][..],
            ),
            (Form::Ident, &["-", "ann"], &["192.0.2.1", "::1", "a b", ""]),
            (
                Form::User,
                &["", "-", "ann", "John Smith", "192.0.2.1"],
                &["- -", "a - b", "192.0.2.1 ann", "a  b"],
            ),
            (
                Form::Time,
                &[
                    "12/Mar/2026:06:25:01 +0000",
                    "12/Mar/2026 06:25:01",
                    "2026-03-12T06:25:01.5+01:00",
                    "1773296701.123",
                    "-",
                ],
                &["1234", "", "a:b:c\"", "0x:1:2:3:4:5"],
            ),
            (
                Form::ZonedTime,
                &["12/Mar/2026:06:25:01 +0000"],
                &["12/Mar/2026:06:25:01", "-"],
            ),
            (
                Form::Status,
                &["200", "009", "-"],
                &["20", "2000", "a00", ""],
            ),
            (
                Form::List,
                &[
                    "0.1",
                    "-",
                    "0.1, 0.2",
                    "0.1, - : 0.3",
                    "a,b",
                    "unix:/s : b:80",
                    "",
                ],
                &[
                    "0.1,", "a b", "a :", ": a", ", a", "a, , b", "a : : b", "a,  b", "a, : b",
                ],
            ),
            (
                Form::Request,
                &[
                    "GET /a HTTP/1.1",
                    "GET /a b HTTP/2.0",
                    "-",
                    "\\x16\\x03",
                    "",
                ],
                &[
                    "GET",
                    "GET /a",
                    "GET HTTP/1.1",
                    "get /a HTTP/1.1",
                    "GET /a HTTP/1.1 200",
                ],
            ),
        ] {
            for value in fits {
                assert!(form.fits(value.as_bytes()), "{form:?} {value}");
            }
            for value in fits_not {
                assert!(!form.fits(value.as_bytes()), "{form:?} {value}");
            }
        }
    }
}
