//! What an input may be whose very first record is malformed: a word for who reads the error.

use crate::error::refusal::Hint;
use crate::group::scan::scalar::{self, Record};

/// How files begin that another program makes text of.
const OTHERS: [(&[u8], &str, &str); 8] = [
    (b"\x1f\x8b", "a gzip file", "zcat"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "zstdcat"),
    (b"\xfd7zXZ\0", "an xz file", "xzcat"),
    (b"BZh", "a bzip2 file", "bzcat"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "lz4cat"),
    (b"PK\x03\x04", "a zip file", "unzip -p"),
    (b"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8"),
];

/// Those that are usual.
const DELIMITERS: [u8; 4] = [b',', b'\t', b'|', b';'];

/// What `record`, the first of an input and malformed, looks like.
pub(crate) fn hint(record: &[u8], delimiter: u8) -> Option<Hint> {
    let other = OTHERS.iter().find(|(start, ..)| record.starts_with(start));
    if let Some(&(_, kind, program)) = other {
        return Some(Hint::Encoded { kind, program });
    }
    let is_row = |delimiter| matches!(scalar::read(record, delimiter), Ok(Record::Row(..)));
    if let Some(other) = DELIMITERS.into_iter().find(|&other| is_row(other)) {
        return Some(Hint::Delimiter(other));
    }
    let is_name = |field: &[u8]| {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || b"_ ".contains(byte);
        field.len() > 1 && field.iter().all(is_letter)
    };
    let is_header = record.contains(&delimiter) && record.split(|&b| b == delimiter).all(is_name);
    is_header.then_some(Hint::Header)
}

#[cfg(test)]
mod tests {
    use crate::group::hint::*;

    #[test]
    fn it_says_no_more_than_it_sees() {
        let said = |record: &[u8]| hint(record, b';');
        assert_eq!(
            said(b"\x1f\x8b\x08;;"),
            Some(Hint::Encoded {
                kind: "a gzip file",
                program: "zcat"
            })
        );
        assert_eq!(said(b"Hamburg,12.0"), Some(Hint::Delimiter(b',')));
        assert_eq!(said(b"Hamburg\t12.0"), Some(Hint::Delimiter(b'\t')));
        assert_eq!(said(b"station name;value"), Some(Hint::Header));
        for other in [
            "Hamburg",
            "Hamburg,12.0,5",
            "Hamburg;x",
            "Hamburg;NaN5",
            ";;",
            "a;;b",
            "",
        ] {
            assert_eq!(said(other.as_bytes()), None, "{other}");
        }
        assert_eq!(hint(b"Hamburg;12.0", b','), Some(Hint::Delimiter(b';')));
    }
}
