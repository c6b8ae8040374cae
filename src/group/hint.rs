//! What an input may be whose very first record is malformed: a word for who reads the error.

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

/// As they are named on the command line.
const DELIMITERS: [(u8, &str); 4] = [(b',', ","), (b'\t', "\\t"), (b'|', "|"), (b';', ";")];

/// What `record`, the first of an input and malformed, looks like.
pub(crate) fn hint(record: &[u8], delimiter: u8) -> Option<String> {
    let other = OTHERS.iter().find(|(start, ..)| record.starts_with(start));
    if let Some((_, kind, program)) = other {
        return Some(format!("this is how {kind} begins: try `{program}`"));
    }
    let is_row = |delimiter| matches!(scalar::read(record, delimiter), Ok(Record::Row(..)));
    if let Some((_, name)) = DELIMITERS.iter().find(|(other, _)| is_row(*other)) {
        return Some(format!("`-d '{name}'` makes it 2"));
    }
    let is_name = |field: &[u8]| {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || b"_ ".contains(byte);
        field.len() > 1 && field.iter().all(is_letter)
    };
    let is_header = record.contains(&delimiter) && record.split(|&b| b == delimiter).all(is_name);
    is_header.then(|| "a header is left out by `--on-error skip`".to_string())
}

#[cfg(test)]
mod tests {
    use crate::group::hint::*;

    #[test]
    fn it_says_no_more_than_it_sees() {
        let said = |record: &[u8]| hint(record, b';').unwrap_or_default();
        assert_eq!(
            said(b"\x1f\x8b\x08;;"),
            "this is how a gzip file begins: try `zcat`"
        );
        assert_eq!(said(b"Hamburg,12.0"), "`-d ','` makes it 2");
        assert_eq!(said(b"Hamburg\t12.0"), "`-d '\\t'` makes it 2");
        assert_eq!(
            said(b"station name;value"),
            "a header is left out by `--on-error skip`"
        );
        for other in [
            "Hamburg",
            "Hamburg,12.0,5",
            "Hamburg;x",
            "Hamburg;NaN5",
            ";;",
            "a;;b",
            "",
        ] {
            assert_eq!(said(other.as_bytes()), "", "{other}");
        }
        assert_eq!(hint(b"Hamburg;12.0", b',').unwrap(), "`-d ';'` makes it 2");
    }
}
