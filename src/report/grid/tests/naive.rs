//! Readers of the formats, and a writer of tables, that share no code with those of the program.

use crate::report::grid::tests::Owned;

/// A field of CSV: its bytes, and whether it was quoted.
pub(super) type Field = (Vec<u8>, bool);

/// RFC 4180 with LF, and nothing that it leaves open.
pub(super) fn read_csv(mut rest: &[u8]) -> Vec<Vec<Field>> {
    let (mut records, mut record) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let field = if let Some(mut quoted) = rest.strip_prefix(b"\"") {
            let mut field = Vec::new();
            loop {
                let end = quoted.iter().position(|&byte| byte == b'"').unwrap();
                field.extend(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix(b"\"") {
                    Some(more) => quoted = more,
                    None => break,
                }
                field.push(b'"');
            }
            rest = quoted;
            (field, true)
        } else {
            let end = rest.iter().position(|byte| b",\n".contains(byte)).unwrap();
            let (field, behind) = rest.split_at(end);
            assert!(!field.iter().any(|byte| b"\"\r".contains(byte)));
            let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
            assert!(!is_blank(field.first()) && !is_blank(field.last()));
            assert!(!field.starts_with(b"\xef\xbb\xbf"));
            rest = behind;
            (field.to_vec(), false)
        };
        record.push(field);
        match rest[0] {
            b',' => (),
            b'\n' => records.push(std::mem::take(&mut record)),
            byte => panic!("{byte} behind a field"),
        }
        rest = &rest[1..];
    }
    assert!(record.is_empty(), "the last line has its end");
    records
}

pub(super) fn read_tsv(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    assert!(!text.contains(&b'\r'));
    let lines = text.strip_suffix(b"\n").unwrap().split(|&b| b == b'\n');
    let field = |field: &[u8]| {
        let (mut out, mut bytes) = (Vec::new(), field.iter());
        while let Some(&byte) = bytes.next() {
            out.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b'\\') => b'\\',
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    other => panic!("{other:?} behind a backslash"),
                },
                byte => byte,
            });
        }
        out
    };
    let fields = |line: &[u8]| line.split(|&byte| byte == b'\t').map(field).collect();
    lines.map(fields).collect()
}

/// JSON that holds objects without objects in them.
pub(super) struct Json<'a>(pub(super) &'a str);

pub(super) type Object = Vec<(Vec<u8>, Owned)>;

impl Json<'_> {
    fn takes(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start_matches([' ', '\n', '\r', '\t']);
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) {
        assert!(self.takes(token), "{token} before {:?}", self.0);
    }

    pub(super) fn array(&mut self) -> Vec<Object> {
        let mut objects = Vec::new();
        self.expect("[");
        if !self.takes("]") {
            objects.push(self.object());
            while self.takes(",") {
                objects.push(self.object());
            }
            self.expect("]");
        }
        self.end();
        objects
    }

    pub(super) fn object(&mut self) -> Object {
        let mut members = Vec::new();
        self.expect("{");
        loop {
            let name = self.string();
            self.expect(":");
            let value = self.value();
            members.push((name, value));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("}");
        members
    }

    fn value(&mut self) -> Owned {
        if self.takes("null") {
            return Owned::Null;
        }
        if self.0.starts_with('"') {
            return Owned::Text(self.string());
        }
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let whole = usize::from(self.0.starts_with('-'));
        let mut end = whole + digits(&self.0[whole..]);
        assert!(end == whole + 1 || !self.0[whole..].starts_with('0'));
        assert!(end > whole);
        if self.0[end..].starts_with('.') {
            let fraction = digits(&self.0[end + 1..]);
            assert!(fraction > 0);
            end += 1 + fraction;
        }
        let (number, rest) = self.0.split_at(end);
        self.0 = rest;
        Owned::Number(number.into())
    }

    /// With the bytes that surrogates stand for.
    fn string(&mut self) -> Vec<u8> {
        self.expect("\"");
        let mut out = Vec::new();
        loop {
            let char = self.0.chars().next().unwrap();
            self.0 = &self.0[char.len_utf8()..];
            assert!(char >= ' ', "a control character");
            match char {
                '"' => return out,
                '\\' => self.escape(&mut out),
                _ => out.extend(char.to_string().as_bytes()),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        let (escape, rest) = self.0.split_at(1);
        self.0 = rest;
        if escape != "u" {
            let plain = "\"\\/bfnrt".find(escape).expect("a known escape");
            return out.push(b"\"\\/\x08\x0c\n\r\t"[plain]);
        }
        let (digits, rest) = self.0.split_at(4);
        self.0 = rest;
        match u32::from_str_radix(digits, 16).unwrap() {
            surrogate @ 0xdc80..=0xdcff => out.push(surrogate as u8),
            code => out.extend(char::from_u32(code).unwrap().to_string().as_bytes()),
        }
    }

    pub(super) fn end(&mut self) {
        self.takes("");
        assert_eq!(self.0, "", "behind the end");
    }
}

pub(super) fn read_ndjson(text: &str) -> Vec<Object> {
    let line = |line| {
        let mut json = Json(line);
        let object = json.object();
        json.end();
        object
    };
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(line).collect()
}

/// The texts of a GitHub table without control characters. What has a meaning there and isn't escaped is refused.
pub(super) fn read_markdown(text: &str) -> Vec<Vec<String>> {
    text.lines().map(read_markdown_line).collect()
}

pub(super) fn read_markdown_line(line: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut rest = line.strip_prefix('|').unwrap();
    while !rest.is_empty() {
        let mut cell = String::new();
        // Blanks at the end of a cell that are no escapes.
        let mut trailing = 0;
        rest = rest.trim_start_matches(' ');
        loop {
            if let Some(more) = rest.strip_prefix("<br>") {
                (rest, trailing) = (more, 0);
                cell.push('\n');
            } else if let Some(more) = rest.strip_prefix("&#32;") {
                (rest, trailing) = (more, 0);
                cell.push(' ');
            } else {
                let mut chars = rest.chars();
                let char = chars.next().unwrap();
                match char {
                    '|' => {
                        rest = chars.as_str();
                        break;
                    }
                    '\\' => {
                        let escaped = chars.next().unwrap();
                        assert!(escaped.is_ascii_punctuation());
                        cell.push(escaped);
                    }
                    _ => {
                        assert!(!"`*[]<>&~$".contains(char), "{char} in {line}");
                        cell.push(char);
                    }
                }
                trailing = if char == ' ' { trailing + 1 } else { 0 };
                rest = chars.as_str();
            }
        }
        cell.truncate(cell.len() - trailing);
        cells.push(cell);
    }
    cells
}

/// A table of printable ASCII, column by column.
pub(super) fn naive_table(names: &[Vec<u8>], rows: &[Vec<Owned>]) -> String {
    let mut lines = vec![String::new(); rows.len() + 2];
    for (at, name) in names.iter().enumerate() {
        let cells: Vec<_> = rows.iter().map(|row| &row[at]).collect();
        let is_number = |cell: &&Owned| matches!(cell, Owned::Number(_));
        let fraction = |cell: &&Owned| match cell {
            Owned::Number(number) => number
                .split_once('.')
                .map_or(0, |(_, digits)| digits.len() + 1),
            _ => 0,
        };
        let fractions = cells.iter().map(fraction).max().unwrap_or(0);
        let has_numbers = cells.iter().any(is_number);
        // Each cell with blanks for the digits that it lacks, which say on which side it stands.
        let cell = |cell: &&Owned| match cell {
            Owned::Text(text) => (String::from_utf8(text.clone()).unwrap(), false),
            Owned::Null if has_numbers => (format!("-{}", " ".repeat(fractions)), true),
            Owned::Null => ("-".into(), false),
            Owned::Number(number) => {
                let lacks = fractions - fraction(cell);
                (format!("{number}{}", " ".repeat(lacks)), true)
            }
        };
        let name = String::from_utf8(name.clone()).unwrap();
        let mut column = vec![(name, has_numbers), (String::new(), false)];
        column.extend(cells.iter().map(cell));
        let width = column.iter().map(|(text, _)| text.len()).max().unwrap();
        column[1].0 = "-".repeat(width);
        for (line, (text, right)) in lines.iter_mut().zip(column) {
            *line += &match right {
                true => format!("{text:>width$}  "),
                false => format!("{text:<width$}  "),
            };
        }
    }
    let lines = lines
        .iter()
        .map(|line| format!("{}\n", line.trim_end_matches(' ')));
    lines.collect()
}
