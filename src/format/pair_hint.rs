//! What an input of keys and numbers may be whose very first record is malformed: a word for who reads the error.

use memchr::{memchr, memchr_iter};

use crate::decimal::number::Number;
use crate::refusal::Hint;

/// Those that are usual.
const DELIMITERS: [u8; 4] = [b',', b'\t', b'|', b';'];

/// Records after the first that a hint is tried on.
pub(super) const TRIED: usize = 100;

/// What an input looks like whose first record, trimmed, is malformed. `following` are the records after it, as
/// far as they are known: each of them is read as the hint would have it, and if one can't be there is no hint.
pub(crate) fn hint<'a>(
    record: &[u8],
    following: impl Iterator<Item = &'a [u8]> + Clone,
    delimiter: u8,
) -> Option<Hint> {
    let is_followed = following.clone().any(|record| !record.is_empty());
    let fits = |delimiter| {
        let mut records = following.clone().filter(|record| !record.is_empty());
        records
            .by_ref()
            .take(TRIED)
            .all(|record| is_row(record, delimiter))
    };
    if is_header(record, delimiter) {
        return (is_followed && fits(delimiter)).then_some(Hint::Names);
    }
    if has_more_columns(record, following.clone()) {
        return Some(Hint::Columns);
    }
    // A record that is split already has its delimiter: the other byte belongs to a field.
    if record.contains(&delimiter) {
        return None;
    }
    DELIMITERS.into_iter().find_map(|other| {
        if other == delimiter || !fits(other) {
            return None;
        }
        if is_row(record, other) {
            return Some(Hint::Delimiter(other));
        }
        let is_header = is_followed && is_header(record, other);
        is_header.then_some(Hint::HeaderAndDelimiter(other))
    })
}

/// A record without the carriage return of its line's end.
pub(crate) fn trim(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// The key and the number of a trimmed record, if it is one.
pub(super) fn read(record: &[u8], delimiter: u8) -> Option<(&[u8], Number)> {
    let (key, value) = record.split_at(memchr(delimiter, record)?);
    let number = Number::read(&value[1..]).ok()?;
    Some((key, number))
}

/// Whether one of the delimiters makes the same number of columns of all records, and more than two. Of those with
/// quotes nobody knows here how many they have.
fn has_more_columns<'a>(record: &[u8], following: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
    let mut known = following
        .filter(|record| !record.is_empty() && !record.contains(&b'"'))
        .take(TRIED)
        .peekable();
    known.peek().is_some()
        && DELIMITERS.into_iter().any(|delimiter| {
            let between = |record: &[u8]| memchr_iter(delimiter, record).count();
            let found = between(record);
            found > 1 && known.clone().all(|record| between(record) == found)
        })
}

/// Whether it is a key and a number. With a comma between two numbers it may as well be one number, as `1,5`.
pub(super) fn is_row(record: &[u8], delimiter: u8) -> bool {
    let is_decimal_comma = |key: &[u8]| delimiter == b',' && Number::read(key).is_ok();
    read(record, delimiter).is_some_and(|(key, _)| !key.is_empty() && !is_decimal_comma(key))
}

/// Whether it is a name for a key and one for a number.
pub(super) fn is_header(record: &[u8], delimiter: u8) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || b"_ ".contains(byte);
    let mut names = record.split(|&byte| byte == delimiter);
    let are_names = names
        .by_ref()
        .take(2)
        .filter(|name| name.len() > 1 && name.iter().all(is_letter));
    are_names.count() == 2 && names.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &str, delimiter: u8) -> Option<Hint> {
        let mut lines = lines.split('\n').map(str::as_bytes);
        let first = lines.next().unwrap();
        hint(first, lines, delimiter)
    }

    #[test]
    fn it_is_given_where_the_records_fit_it() {
        for (lines, delimiter, want) in [
            ("Hamburg,12.0", b';', Hint::Delimiter(b',')),
            ("Hamburg,12.0\n\nKiel,1", b';', Hint::Delimiter(b',')),
            ("Hamburg\t12.0", b';', Hint::Delimiter(b'\t')),
            ("Hamburg;12.0", b',', Hint::Delimiter(b';')),
            ("7\t12.0", b';', Hint::Delimiter(b'\t')),
            ("station name;value\nKiel;1", b';', Hint::Names),
            (
                "station,value\nKiel,1",
                b';',
                Hint::HeaderAndDelimiter(b','),
            ),
            ("city;country;mean\nKiel;Germany;1", b';', Hint::Columns),
            (
                "city,mean,note\nKiel,1,\"a,b\"\nBonn,2,",
                b';',
                Hint::Columns,
            ),
            ("Hamburg\t12.0\t5\n\nKiel\t1\t2", b';', Hint::Columns),
        ] {
            assert_eq!(said(lines, delimiter), Some(want), "{lines}");
        }
    }

    #[test]
    fn it_says_no_more_than_it_sees() {
        for lines in [
            "Hamburg",
            "Hamburg,12.0,5",
            "Hamburg;x",
            "Hamburg;NaN5",
            ";;",
            "a;;b",
            "",
            // A number with a comma in it.
            "1,5",
            "Hamburg;1,5",
            // The next record has another form.
            "Hamburg,12.0\nKiel,Holtenau,1",
            "station;value\nKiel;Holtenau;1",
            "station;value",
            "city;country;mean\nKiel;1",
            "city,country,mean",
            "city,country,mean\n\"Kiel, Holtenau\",Germany,1",
        ] {
            assert_eq!(said(lines, b';'), None, "{lines}");
        }
    }
}
