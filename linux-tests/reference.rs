//! What `aggregate` must answer, written from its contract and from nothing of the program's: slow,
//! obvious, exact.

use std::collections::BTreeMap;
use std::ops::Range;

use num_bigint::BigInt;
use num_integer::Integer;

/// Digits a number may have on either side of its point.
const DIGITS: usize = 36;
/// Or in all, and after its point; all numbers are kept in 10^-38.
const SCALE: usize = 38;

/// So many NUL bytes side by side are a hole.
const HOLE: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    OneBrc,
    Hovinen,
    Lines,
}

impl Style {
    pub const ALL: [Style; 3] = [Style::OneBrc, Style::Hovinen, Style::Lines];

    pub fn flag(self) -> &'static str {
        match self {
            Style::OneBrc => "1brc",
            Style::Hovinen => "hovinen",
            Style::Lines => "lines",
        }
    }
}

#[derive(Debug, Clone)]
struct Group {
    rows: u64,
    sum: BigInt,
    min: BigInt,
    max: BigInt,
}

/// A record that is malformed or too long: its file, its bytes and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    pub file: usize,
    pub bytes: Range<u64>,
    pub line: u64,
}

impl Bad {
    /// How the program begins to tell of it.
    pub fn place(&self, name: &str) -> String {
        let Range { start, end } = self.bytes;
        format!("{name}: byte {start}-{end} (line {}): ", self.line)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Answer {
    groups: BTreeMap<Vec<u8>, Group>,
    pub rows: u64,
    pub empty_lines: u64,
    /// All records that are malformed or over the limit, in order.
    pub malformed: Vec<Bad>,
}

/// Aggregates whole files. The malformed are noted and left out.
pub fn aggregate<B: AsRef<[u8]>>(files: &[B], delimiter: u8, max_record: usize) -> Answer {
    let mut answer = Answer::default();
    for (file, text) in files.iter().enumerate() {
        answer.add(file, text.as_ref(), delimiter, max_record);
    }
    answer
}

/// Where the first hole is that can be seen in a part of a text, up to `until`.
fn hole(text: &[u8], until: usize, seen: Range<usize>) -> Option<Range<u64>> {
    let mut windows = text[seen.clone()].windows(HOLE);
    let start = seen.start + windows.position(|some| some == [0; HOLE])?;
    let length = text[start..until].iter().take_while(|byte| **byte == 0);
    Some(start as u64..(start + length.count()) as u64)
}

impl Answer {
    fn add(&mut self, file: usize, text: &[u8], delimiter: u8, max_record: usize) {
        let mut start = 0;
        for (line, record) in text.split(|&byte| byte == b'\n').enumerate() {
            let next = start + record.len() + 1;
            let line = line as u64 + 1;
            let mut from = start;
            if from == 0 && record.starts_with(b"\xef\xbb\xbf") {
                from = 3;
            }
            let mut end = start + record.len();
            if end > from && text[end - 1] == b'\r' {
                end -= 1;
            }
            // Of a record over the limit only the start is looked at.
            let kept = match record.len() > max_record {
                true => start..start + record.len().min(max_record.saturating_add(3)),
                false => from..end,
            };
            let is_over = record.len() > max_record;
            let over = || is_over.then(|| start as u64..(start + max_record) as u64);
            let bad = hole(text, next.min(text.len()), kept).or_else(over);
            // Behind the last newline there is no line.
            let is_line = next <= text.len() || start < text.len();
            match read(&text[from..end], delimiter) {
                _ if !is_line => {}
                _ if bad.is_some() => {
                    let bad = bad.map(|bytes| Bad { file, bytes, line });
                    self.malformed.extend(bad);
                }
                // A mark alone, without a newline, is no line either.
                Record::Empty if from == text.len() => {}
                Record::Empty => self.empty_lines += 1,
                Record::Row(key, value) => {
                    self.rows += 1;
                    match self.groups.get_mut(key) {
                        Some(group) => group.add(value),
                        None => {
                            self.groups.insert(key.to_vec(), Group::new(value));
                        }
                    }
                }
                Record::Bad => {
                    let bytes = from as u64..end as u64;
                    self.malformed.push(Bad { file, bytes, line });
                }
            }
            start = next;
        }
    }

    /// The first record that ends the job when none may be skipped.
    pub fn lowest(&self) -> Option<&Bad> {
        self.malformed.first()
    }

    pub fn keys(&self) -> usize {
        self.groups.len()
    }

    pub fn text(&self, style: Style) -> Vec<u8> {
        let mut out = Vec::new();
        let last = self.groups.len();
        match style {
            Style::OneBrc => out.extend(b"{"),
            Style::Hovinen => out.extend(b"{\n"),
            Style::Lines => {}
        }
        for (at, (key, group)) in self.groups.iter().enumerate() {
            let comma = if at + 1 < last { "," } else { "" };
            match style {
                Style::OneBrc => {
                    out.extend(key);
                    let [min, mean, max] = group.rounded(1);
                    let blank = if at + 1 < last { " " } else { "" };
                    out.extend(format!("={min}/{mean}/{max}{comma}{blank}").bytes());
                }
                Style::Hovinen => {
                    out.extend(b"    ");
                    out.extend(key);
                    let [min, _, max] = group.rounded(1);
                    let mean = group.tenths() / 10.0 / group.rows as f64;
                    out.extend(format!("={min}/{mean:.1}/{max}{comma}\n").bytes());
                }
                Style::Lines => {
                    out.extend(b"City | ");
                    out.extend(key);
                    let [min, mean, max] = group.rounded(2);
                    out.extend(format!(" | {min} | {mean} | {max}\n").bytes());
                }
            }
        }
        match style {
            Style::OneBrc => out.extend(b"}\n"),
            Style::Hovinen => out.extend(b"}"),
            Style::Lines => {}
        }
        out
    }
}

impl Group {
    fn new(value: BigInt) -> Group {
        Group {
            rows: 1,
            sum: value.clone(),
            min: value.clone(),
            max: value,
        }
    }

    fn add(&mut self, value: BigInt) {
        self.rows += 1;
        self.sum += &value;
        if value < self.min {
            self.min = value;
        } else if value > self.max {
            self.max = value;
        }
    }

    fn rounded(&self, decimals: u32) -> [String; 3] {
        [(&self.min, 1), (&self.sum, self.rows), (&self.max, 1)]
            .map(|(sum, rows)| round(sum, rows, decimals))
    }

    /// The sum in tenths as a double.
    fn tenths(&self) -> f64 {
        format!("{}e-{}", self.sum, SCALE - 1).parse().unwrap()
    }
}

/// `sum / rows` at so many decimals: `floor((2 sum + n) / 2n)` in units of the last decimal.
fn round(sum: &BigInt, rows: u64, decimals: u32) -> String {
    let n = BigInt::from(rows) * BigInt::from(10).pow(SCALE as u32 - decimals);
    let units: BigInt = (sum * 2u32 + &n).div_floor(&(n * 2u32));
    let sign = if units < BigInt::ZERO { "-" } else { "" };
    let digits = format!(
        "{:0>1$}",
        units.magnitude().to_string(),
        decimals as usize + 1
    );
    let (whole, fraction) = digits.split_at(digits.len() - decimals as usize);
    format!("{sign}{whole}.{fraction}")
}

enum Record<'a> {
    Empty,
    Row(&'a [u8], BigInt),
    Bad,
}

fn read(record: &[u8], delimiter: u8) -> Record<'_> {
    if record.is_empty() {
        return Record::Empty;
    }
    let fields: Vec<&[u8]> = record.split(|&byte| byte == delimiter).collect();
    match fields[..] {
        [key, value] => number(value).map_or(Record::Bad, |value| Record::Row(key, value)),
        _ => Record::Bad,
    }
}

/// A decimal, blanks around it and a small exponent allowed, in units of 10^-38.
fn number(text: &[u8]) -> Option<BigInt> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t']);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let most = if exponent.starts_with('-') {
                -9999
            } else {
                9999
            };
            (text, exponent.parse::<i64>().unwrap_or(most))
        }
        None => (text, 0),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    if digits.is_empty() {
        return Some(BigInt::ZERO);
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = zeros as i64 - fraction.len() as i64 + exponent;
    let length = digits.len() as i64 + power.max(0);
    let is_short = length <= SCALE as i64 && -power <= SCALE as i64;
    let sides = [
        whole.trim_start_matches('0').len(),
        fraction.trim_end_matches('0').len(),
    ];
    let is_long = exponent == 0 && sides[1] > 0 && sides.iter().all(|&side| side <= DIGITS);
    if !is_short && !is_long {
        return None;
    }
    let zeros = "0".repeat((power + SCALE as i64) as usize);
    format!("{sign}{digits}{zeros}").parse().ok()
}

#[test]
fn the_cases_of_the_contract() {
    let answer = |text: &str| {
        let answer = aggregate(&[text], b';', 1 << 20);
        assert_eq!(answer.lowest(), None);
        String::from_utf8(answer.text(Style::OneBrc)).unwrap()
    };
    assert_eq!(answer(""), "{}\n");
    assert_eq!(answer("a;1.0\na;1.1\na;1.0"), "{a=1.0/1.0/1.1}\n");
    assert_eq!(answer("a;-0.1\na;0.0\n"), "{a=-0.1/0.0/0.0}\n");
    assert_eq!(answer("a;-2.5\na;-2.4\n"), "{a=-2.5/-2.4/-2.4}\n");
    assert_eq!(
        answer("a;3.3\na;0\na;0\na;0\na;0\na;-0.0\n"),
        "{a=0.0/0.6/3.3}\n"
    );
    assert_eq!(
        answer("b;1\na;28.9\na;33.4\n"),
        "{a=28.9/31.2/33.4, b=1.0/1.0/1.0}\n"
    );
    let answer = aggregate(&["a;28.9\r\n\na;33.4\nx\n;1;\n"], b';', 1 << 20);
    assert_eq!(answer.text(Style::Hovinen), b"{\n    a=28.9/31.1/33.4\n}");
    assert_eq!(
        answer.text(Style::Lines),
        b"City | a | 28.90 | 31.15 | 33.40\n"
    );
    let bad = |bytes, line| Bad {
        file: 0,
        bytes,
        line,
    };
    assert_eq!(answer.malformed, [bad(16..17, 4), bad(18..21, 5)]);
    assert_eq!((answer.rows, answer.empty_lines), (2, 1));
    for bad in [
        "", "-", ".", "--1", "+-1", "1.2.3", "1,5", "1e", "e1", "1e39", "1e-39", "1 2",
    ] {
        assert_eq!(number(bad.as_bytes()), None, "{bad}");
    }
    let one = number(b"1");
    for good in ["+1", "1.", "01", " 1\t", "10e-1", ".1E+1", "1e0"] {
        assert_eq!(number(good.as_bytes()), one, "{good}");
    }
}
