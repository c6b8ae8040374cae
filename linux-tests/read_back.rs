//! What the program prints can be read back by what reads the format: keys of all bytes, by plain readers here and by
//! Python's.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::probe::{Feature, skips};
use crate::support::{dir, end, end_of, feed, ringfold, write};

/// For each key and its double the sum.
type Sums = BTreeMap<(Vec<u8>, Vec<u8>), String>;

/// Each byte alone, between others, at both ends and doubled; what formats and readers take for signs; broken UTF-8.
fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for byte in 0..=u8::MAX {
        keys.push(vec![byte]);
        keys.push(vec![b'a', byte, b'b']);
        keys.push(vec![byte, byte, b'c', byte]);
    }
    let texts = [
        "",
        " ",
        "a,b",
        "\"",
        "\"\"",
        "a\"b\",",
        "\r\n",
        "a\r\nb\n",
        "\n\n",
        "\\n",
        "\\",
        "\\\\t",
        "\t\t",
        "null",
        "NULL",
        "1",
        "-0.5",
        "1e5",
        "=1+1",
        "#a",
        "{}",
        "[",
        "|",
        "a|b",
        "<b>&amp;",
        "*_`~",
        "\u{feff}a",
        "ü\u{301}",
        "日本",
        "🦀",
        "\u{2028}\u{202e}",
        "\u{7f}\u{85}",
    ];
    keys.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
    let broken: [&[u8]; 7] = [
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xed\xb3\xbf",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b"ok\xff\xfe",
        b"\xe2\x82",
    ];
    keys.extend(broken.iter().map(|key| key.to_vec()));
    keys
}

/// A CSV file of the keys, and their sums.
fn input() -> (Vec<u8>, Sums) {
    let (mut text, mut sums) = (b"key,other,v\n".to_vec(), Sums::new());
    let field = |key: &[u8]| {
        let doubled = key.iter().flat_map(|&byte| {
            if byte == b'"' {
                vec![byte; 2]
            } else {
                vec![byte]
            }
        });
        [&b"\""[..], &doubled.collect::<Vec<_>>(), b"\""].concat()
    };
    let keys = keys();
    let distinct: std::collections::BTreeSet<_> = keys.into_iter().collect();
    for (number, key) in distinct.into_iter().enumerate() {
        let other = [&key[..], b";", &key].concat();
        text.extend(field(&key));
        text.push(b',');
        text.extend(field(&other));
        // No value for some.
        match number % 10 {
            0 => text.extend(b",\n"),
            _ => writeln!(text, ",{number}.25").unwrap(),
        }
        let sum = if number % 10 == 0 {
            String::new()
        } else {
            format!("{number}.25")
        };
        sums.insert((key, other), sum);
    }
    (text, sums)
}

/// What the program prints of it.
fn printed(format: &str) -> (Vec<u8>, Sums) {
    let (text, sums) = input();
    let dir = dir();
    let path = write(dir.path(), "keys.csv", &text);
    let mut command = ringfold([
        "aggregate",
        // Some keys have NUL bytes.
        "-q",
        "-H",
        "-k",
        "key,other",
        "-a",
        "sum:v",
        "-f",
        format,
    ]);
    (end(command.arg(&path)).answer(), sums)
}

fn sums(rows: impl Iterator<Item = Vec<Vec<u8>>>) -> Sums {
    let row = |row: Vec<Vec<u8>>| {
        let [key, other, sum] = row.try_into().expect("three fields");
        ((key, other), String::from_utf8(sum).unwrap())
    };
    rows.map(row).collect()
}

/// RFC 4180, byte by byte.
fn csv(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let (mut rows, mut row, mut field, mut at) = (vec![], vec![], vec![], 0);
    while at < text.len() {
        if text[at] == b'"' && field.is_empty() {
            at += 1;
            while text[at] != b'"' || text.get(at + 1) == Some(&b'"') {
                field.push(text[at]);
                at += if text[at] == b'"' { 2 } else { 1 };
            }
            at += 1;
        }
        match text[at] {
            b',' => row.push(std::mem::take(&mut field)),
            b'\n' => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            byte => field.push(byte),
        }
        at += 1;
    }
    assert!(row.is_empty() && field.is_empty());
    rows
}

#[test]
fn csv_is_read_back() {
    let (text, want) = printed("csv");
    let rows = csv(&text);
    assert_eq!(rows[0].join(&b","[..]), b"key,other,sum_v");
    assert_eq!(sums(rows.into_iter().skip(1)), want);
}

#[test]
fn tsv_is_read_back() {
    let (text, want) = printed("tsv");
    let field = |field: &[u8]| {
        let (mut bytes, mut at) = (Vec::new(), 0);
        while at < field.len() {
            let escaped = field[at] == b'\\';
            at += usize::from(escaped);
            bytes.push(match (escaped, field[at]) {
                (true, b'n') => b'\n',
                (true, b'r') => b'\r',
                (true, b't') => b'\t',
                (_, byte) => byte,
            });
            at += 1;
        }
        bytes
    };
    let lines = text
        .strip_suffix(b"\n")
        .unwrap()
        .split(|&byte| byte == b'\n')
        .skip(1);
    let rows = lines.map(|line| line.split(|&byte| byte == b'\t').map(field).collect());
    assert_eq!(sums(rows), want);
}

/// The bytes of a JSON string whose opening quote is before `at`; it ends behind the closing one.
fn json_string(text: &[u8], at: &mut usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = text[*at];
        *at += 1;
        assert!(byte >= b' ', "a control byte in a string");
        match byte {
            b'"' => return bytes,
            b'\\' => {
                *at += 1;
                match text[*at - 1] {
                    b'n' => bytes.push(b'\n'),
                    b'r' => bytes.push(b'\r'),
                    b't' => bytes.push(b'\t'),
                    b'u' => {
                        let digits = std::str::from_utf8(&text[*at..*at + 4]).unwrap();
                        let code = u32::from_str_radix(digits, 16).unwrap();
                        *at += 4;
                        match code {
                            // A byte that is no part of UTF-8.
                            0xdc80..=0xdcff => bytes.push((code - 0xdc00) as u8),
                            _ => bytes.extend(char::from_u32(code).unwrap().to_string().bytes()),
                        }
                    }
                    byte => bytes.push(byte),
                }
            }
            byte => bytes.push(byte),
        }
    }
}

#[test]
fn json_is_read_back() {
    for format in ["json", "ndjson"] {
        let (text, want) = printed(format);
        assert!(std::str::from_utf8(&text).is_ok());
        let lines = text
            .split(|&byte| byte == b'\n')
            .filter(|line| line.len() > 1);
        let rows = lines.map(|line| {
            let mut at = 0;
            let values = ["{\"key\":\"", ",\"other\":\""].map(|before| {
                assert!(line[at..].starts_with(before.as_bytes()));
                at += before.len();
                json_string(line, &mut at)
            });
            let rest = line[at..].strip_suffix(b",").unwrap_or(&line[at..]);
            let sum = rest
                .strip_prefix(b",\"sum_v\":")
                .and_then(|rest| rest.strip_suffix(b"}"));
            let sum = if sum == Some(b"null") {
                b""
            } else {
                sum.unwrap()
            };
            let [key, other] = values;
            vec![key, other, sum.to_vec()]
        });
        assert_eq!(sums(rows), want, "{format}");
    }
}

/// A row is a line with as many fields as there are columns, whatever is in them.
#[test]
fn markdown_and_tables_stay_in_line() {
    let (text, want) = printed("markdown");
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), want.len() + 2);
    for line in text.lines() {
        let mut bars = line.match_indices('|').map(|(at, _)| at);
        let escapes = |at: usize| {
            line[..at]
                .bytes()
                .rev()
                .take_while(|&byte| byte == b'\\')
                .count()
        };
        assert_eq!(
            bars.by_ref().filter(|&at| escapes(at) % 2 == 0).count(),
            4,
            "{line}"
        );
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let (text, want) = printed("table");
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), want.len() + 2);
    assert!(text.lines().all(|line| !line.contains(char::is_control)));
}

/// Prints each row in hexadecimal digits.
const PYTHON: &str = r#"
import csv, decimal, io, json, sys
form = sys.argv[1]
text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape", newline="").read()
if form == "csv":
    rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
elif form == "tsv":
    signs = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
    def field(text):
        parts = iter(text)
        return "".join(signs[next(parts)] if part == "\\" else part for part in parts)
    rows = [[field(f) for f in line.split("\t")] for line in text.split("\n")[1:-1]]
else:
    read = lambda text: json.loads(text, parse_float=decimal.Decimal)
    rows = read(text) if form == "json" else [read(line) for line in text.split("\n")[:-1]]
    rows = [["" if value is None else str(value) for value in row.values()] for row in rows]
for row in rows:
    print(*("x" + field.encode("utf-8", "surrogateescape").hex() for field in row))
"#;

#[test]
fn python_reads_it_back() {
    if skips("python_reads_it_back", &[Feature::Python]) {
        return;
    }
    for format in ["csv", "tsv", "json", "ndjson"] {
        let (text, want) = printed(format);
        let mut python = Command::new("python3");
        python.args(["-c", PYTHON, format]).stdin(Stdio::piped());
        let mut child = python
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        feed(&mut child, text);
        let read = String::from_utf8(end_of(child).answer()).unwrap();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let field = |field: &str| field.as_bytes()[1..].chunks(2).map(byte).collect();
        let rows = read
            .lines()
            .map(|line| line.split(' ').map(field).collect());
        assert_eq!(sums(rows), want, "{format}");
    }
}
