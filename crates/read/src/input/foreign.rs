//! Files that aren't text in lines: how they begin, and what makes text of them.

use memchr::{memchr, memchr_iter};

use crate::error::refusal::Foreign;

/// How files begin that another program makes text of. All of them have bytes that no text has.
const BEGINNINGS: [(&[u8], &str, &str); 10] = [
    (b"\x1f\x8b", "a gzip file", "zcat"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "zstdcat"),
    (b"\xfd7zXZ\0", "an xz file", "xzcat"),
    (b"BZh", "a bzip2 file", "bzcat"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "lz4cat"),
    (b"PK\x03\x04", "a zip file", "unzip -p"),
    (b"\xff\xfe", "UTF-16", UTF_16),
    (b"\xfe\xff", "UTF-16", UTF_16),
    (
        b"PAR1",
        "a Parquet file",
        "duckdb -csv -c \"from read_parquet('FILE')\"",
    ),
    (
        b"SQLite format 3\0",
        "a SQLite database",
        "sqlite3 -csv -header FILE 'select * from TABLE'",
    ),
];
const UTF_16: &str = "iconv -f UTF-16 -t UTF-8";

/// How text begins that says of itself that it is UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Names of the first file in a workbook, which is a zip file, and where the name stands in it.
const IN_WORKBOOKS: [&[u8]; 3] = [b"[Content_Types].xml", b"_rels/", b"xl/"];
const FIRST_NAME: usize = 30;

/// How many of the first bytes are looked at for those that no text has.
const LOOKED_AT: usize = 64;

/// NULs at a file's start that are no empty fields.
const NULS: usize = 64;

/// What `compress` writes: the magic number, and the most bits of a code.
fn is_compress(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1f, 0x9d, flags, ..] if flags & 0x60 == 0 && (9..=16).contains(&(flags & 0x1f)))
}

/// Whether bytes begin with the header of a tar archive, by its checksum.
fn is_tar(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..512) else {
        return false;
    };
    let checksum = header[148..156].trim_ascii_start();
    let digits = checksum
        .iter()
        .take_while(|byte| (b'0'..=b'7').contains(*byte));
    let stored = digits.fold(0, |sum, digit| sum * 8 + u32::from(digit - b'0'));
    let blanks = 8 * u32::from(b' ');
    let others = header[..148].iter().chain(&header[156..]);
    let sum = blanks + others.map(|&byte| u32::from(byte)).sum::<u32>();
    header[0] != 0 && header.contains(&0) && sum == stored
}

/// What a file is that begins with these bytes and isn't text in lines.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Foreign> {
    if bytes.len() >= NULS && bytes[..NULS].iter().all(|&byte| byte == 0) {
        return Some(Foreign::Nuls);
    }
    let piped = |kind, program| Some(Foreign::Piped { kind, program });
    if is_compress(bytes) {
        return piped("a file that `compress` wrote (.Z)", "zcat");
    }
    if is_tar(bytes) {
        return piped("a tar archive", "tar -xOf");
    }
    let is_binary = bytes.iter().take(LOOKED_AT).any(|&byte| byte < b'\t');
    let mut known = BEGINNINGS.iter().filter(|_| is_binary);
    let &(begin, kind, program) = known.find(|(begin, ..)| bytes.starts_with(begin))?;
    let first_name = bytes.get(FIRST_NAME..).unwrap_or_default();
    let is_in_workbook = |name: &&[u8]| first_name.starts_with(name);
    let (kind, program) = match begin == b"PK\x03\x04" && IN_WORKBOOKS.iter().any(is_in_workbook) {
        true => ("an Excel file", "xlsx2csv"),
        false => (kind, program),
    };
    Some(Foreign::Encoded { kind, program })
}

/// What makes JSON lines of a text that is JSON, but not in lines.
pub fn json(bytes: &[u8]) -> Option<Foreign> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = text.trim_ascii_start();
    let (&first, rest) = text.split_first()?;
    let next = rest.trim_ascii_start();
    let is_on_next_line = memchr(b'\n', &rest[..rest.len() - next.len()]).is_some();
    // Of an object whose first key is on its line, the second key is on the next one.
    let line_end = memchr(b'\n', text).unwrap_or(text.len());
    let (line, below) = text.split_at(line_end);
    let goes_on = match line.trim_ascii_end().last() {
        Some(b',') => below.trim_ascii().starts_with(b"\""),
        end => matches!(end, Some(b'{' | b'[' | b':')),
    };
    let (kind, program) = match (first, next.first()) {
        (b'[', Some(b'{' | b'[')) => ("a JSON array", "jq -c '.[]'"),
        (b'{', Some(b'"')) if is_on_next_line || goes_on => {
            ("JSON with objects over several lines", "jq -c .")
        }
        _ => return None,
    };
    Some(Foreign::Encoded { kind, program })
}

/// Whether lines end with a carriage return alone, as in old Macs' files and those of some spreadsheets. The bytes have more
/// than one line, if the file has.
pub(crate) fn has_carriage_returns(bytes: &[u8]) -> bool {
    let newline = memchr(b'\n', bytes).unwrap_or(bytes.len());
    let is_only_line = newline + 1 >= bytes.len();
    let is_inside = |at: usize| at + 1 < newline;
    is_only_line && memchr_iter(b'\r', &bytes[..newline]).any(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(what: Option<Foreign>) -> Option<&'static str> {
        match what? {
            Foreign::Encoded { kind, .. } => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn known_by_the_beginning() {
        let zip = |name: &str| [b"PK\x03\x04", &[0; 26][..], name.as_bytes()].concat();
        for (bytes, want) in [
            (b"\xff\xfea\0,\0".to_vec(), Some("UTF-16")),
            (b"\xfe\xff\0a\0,".to_vec(), Some("UTF-16")),
            (b"PAR1\x15\x04".to_vec(), Some("a Parquet file")),
            (zip("[Content_Types].xml"), Some("an Excel file")),
            (zip("orders.csv"), Some("a zip file")),
            (zip(""), Some("a zip file")),
            (b"PAR1,price\n".to_vec(), None),
            (b"BZh;3\n".to_vec(), None),
            (b"a,b\n\0".to_vec(), None),
            (b"".to_vec(), None),
        ] {
            assert_eq!(kind(recognise(&bytes)), want, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn carriage_returns_alone_end_lines() {
        for (text, want) in [
            ("a,b\r1,2\r", true),
            ("a,b\r1,2\r\n", true),
            ("a,b\r1,2", true),
            ("\r1", true),
            ("a,b\r", false),
            ("a,b\r\n", false),
            ("a,b\r\n1,2", false),
            ("a,b\r1\n1,2\n", false),
            ("a,b\n", false),
            ("\r", false),
            ("", false),
        ] {
            assert_eq!(has_carriage_returns(text.as_bytes()), want, "{text:?}");
        }
    }
}
