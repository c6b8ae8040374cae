//! Any text, dialect, condition, query and level of instructions: the answer, or the first malformed record, is that of
//! a naive program that goes byte by byte and keeps all values of each group. Where quotes can't be understood, it is
//! that of the records added one by one. One case in 16 is read in pieces that come in any order, and one in 128 by a
//! real run, on 1, 2 or 8 threads.
#![no_main]

mod case;
mod rows;

use std::collections::BTreeMap;

use case::Case;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use ringfold::internals::simulated;
use ringfold::query::{OnError, Plan, Query};
use ringfold::{BlockError, Config, Error, Fold, Input, Level, PaddedBuf, fold};
use rows::rows_of;

type Row = Vec<Vec<u8>>;

/// How records are written.
struct Dialect {
    delimiter: u8,
    quote: Option<u8>,
    single_line: bool,
    squeeze: bool,
    comment: Option<u8>,
    decimal_comma: bool,
}

impl Dialect {
    /// The records of a text with where each begins, or `None` where quotes can't be understood.
    fn records(&self, text: &[u8]) -> Option<Vec<(usize, Row)>> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let line = text[at..].iter().position(|&byte| byte == b'\n');
            let next_line = line.map_or(text.len(), |end| at + end + 1);
            if self.comment == Some(text[at]) {
                at = next_line;
                continue;
            }
            let end = if self.single_line { next_line } else { text.len() };
            let (row, next) = self.record(&text[..end], at)?;
            all.push((at, row));
            at = next;
        }
        Some(all)
    }

    /// The record that begins at `at`, and where the next one does.
    fn record(&self, text: &[u8], mut at: usize) -> Option<(Row, usize)> {
        let mut row = Row::new();
        loop {
            let mut field = Vec::new();
            let is_quoted = self.quote.is_some() && text.get(at).copied() == self.quote;
            if is_quoted {
                at += 1;
                loop {
                    let byte = *text.get(at)?;
                    at += 1;
                    if Some(byte) == self.quote {
                        if text.get(at).copied() != self.quote {
                            break;
                        }
                        at += 1;
                    }
                    field.push(byte);
                }
                let rest = &text[at..];
                let ends = rest.is_empty() || rest[0] == self.delimiter || rest[0] == b'\n';
                match ends {
                    true => {}
                    false if rest == b"\r" || rest.starts_with(b"\r\n") => at += 1,
                    false => return None,
                }
            } else {
                while at < text.len() && text[at] != self.delimiter && text[at] != b'\n' {
                    field.push(text[at]);
                    at += 1;
                }
            }
            let is_last = text.get(at).is_none_or(|&byte| byte == b'\n');
            if is_last && !is_quoted && field.last() == Some(&b'\r') {
                field.pop();
            }
            let is_empty_line = is_last && row.is_empty() && !is_quoted && field.is_empty();
            let is_squeezed = self.squeeze && !is_quoted && field.is_empty();
            if !is_empty_line && !is_squeezed {
                row.push(field);
            }
            at = text.len().min(at + 1);
            if is_last {
                return Some((row, at));
            }
        }
    }

    /// A number without its point, and how many decimals it has: as many as `most`, and so many zeros before the point; or 36
    /// digits on either side of the point.
    fn number(&self, field: &[u8], most: i64) -> Option<(BigInt, usize)> {
        let text = std::str::from_utf8(field).ok()?.trim_matches([' ', '\t']);
        let (sign, digits) = match text.as_bytes().first()? {
            b'-' => ("-", &text[1..]),
            b'+' => ("", &text[1..]),
            _ => ("", text),
        };
        let (digits, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let bare = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let point = if self.decimal_comma { ',' } else { '.' };
        let (whole, part) = digits.split_once(point).unwrap_or((digits, ""));
        let both = format!("{whole}{part}");
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(&both) || !are_digits(bare) {
            return None;
        }
        let mut significant = both.trim_start_matches('0');
        if significant.is_empty() {
            return Some((BigInt::ZERO, part.len().min(38)));
        }
        // An exponent that is no number of 32 bits is far past all limits.
        let exponent = i64::from(exponent.parse::<i32>().ok()?);
        let mut decimals = part.len() as i64 - exponent;
        let (before, after) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        let is_long = exponent == 0 && !after.is_empty() && before.len().max(after.len()) <= 36;
        while significant.len() > 38 || decimals > most {
            let Some(shorter) = significant.strip_suffix('0') else {
                let long = || (format!("{sign}{before}{after}").parse().unwrap(), after.len());
                return is_long.then(long);
            };
            significant = shorter;
            decimals -= 1;
        }
        let zeros = (-decimals).max(0);
        if zeros > most.max(38) {
            return None;
        }
        let number = format!("{sign}{significant}{}", "0".repeat(zeros as usize));
        let fits = most > 38 || significant.len() as i64 + zeros <= 38;
        fits.then(|| (number.parse().unwrap(), decimals.max(0) as usize))
    }
}

fn raised(number: &(BigInt, usize), scale: usize) -> BigInt {
    &number.0 * BigInt::from(10).pow((scale - number.1) as u32)
}

fn decimal(mantissa: &BigInt, scale: usize) -> String {
    let digits = format!("{:0>width$}", mantissa.magnitude().to_string(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if *mantissa < BigInt::ZERO { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{part}")
}

/// What is asked: the columns of the key, the names and columns of aggregates, and what rows are of interest.
struct Asked {
    keys: Vec<usize>,
    aggregates: Vec<(&'static str, usize)>,
    condition: Option<Test>,
    dialect: Dialect,
    nulls: &'static [&'static str],
    on_error: OnError,
    has_header: bool,
    is_ragged: bool,
}

/// A condition.
enum Test {
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Compare(usize, &'static str, &'static str),
    Null(usize),
    In(usize),
}

const SIGNS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
const LITERALS: [&str; 8] = ["0", "1.5", "-2", "99999999", "123456789.125", "'b'", "'1.50'", "'kkkkkkkkkkkk'"];

impl Test {
    /// A condition that bits choose.
    fn chosen(bits: &mut u64, depth: usize) -> Test {
        let mut take = |many: u64| {
            let chosen = *bits % many;
            *bits /= many;
            chosen as usize
        };
        let (kind, column) = (take(8), take(3));
        match kind {
            0 if depth > 0 => Test::Not(Test::chosen(bits, depth - 1).into()),
            1 | 2 if depth > 0 => {
                let one = Test::chosen(bits, depth - 1).into();
                let two = Test::chosen(bits, depth - 1).into();
                if kind == 1 { Test::And(one, two) } else { Test::Or(one, two) }
            }
            3 => Test::Null(column),
            4 => Test::In(column),
            _ => Test::Compare(column, SIGNS[take(6)], LITERALS[take(8)]),
        }
    }

    fn text(&self) -> String {
        match self {
            Test::Not(one) => format!("not ({})", one.text()),
            Test::And(one, two) => format!("({}) and ({})", one.text(), two.text()),
            Test::Or(one, two) => format!("({}) or ({})", one.text(), two.text()),
            Test::Compare(column, sign, literal) => format!("${} {sign} {literal}", column + 1),
            Test::Null(column) => format!("${} is null", column + 1),
            Test::In(column) => format!("${} in ('a', 2)", column + 1),
        }
    }

    /// The last of its columns, from 1.
    fn columns(&self) -> usize {
        match self {
            Test::Not(one) => one.columns(),
            Test::And(one, two) | Test::Or(one, two) => one.columns().max(two.columns()),
            Test::Compare(column, ..) | Test::Null(column) | Test::In(column) => column + 1,
        }
    }

    fn truth(&self, asked: &Asked, row: &Row) -> Option<bool> {
        let compare = |column: usize, literal: &str| {
            let field = &row[column];
            if asked.is_null(field) {
                return None;
            }
            match literal.strip_prefix('\'') {
                Some(_) if asked.is_none(column, field) => None,
                Some(text) => Some(field[..].cmp(text.strip_suffix('\'').unwrap().as_bytes())),
                None => {
                    // Where nothing computes on a column, a condition reads longer numbers.
                    let field = asked.dialect.number(field, if asked.wants_number(column) { 38 } else { 400 })?;
                    let plain = Dialect { decimal_comma: false, ..Dialect::CSV };
                    let literal = plain.number(literal.as_bytes(), 38).unwrap();
                    Some(raised(&field, 400).cmp(&raised(&literal, 400)))
                }
            }
        };
        match self {
            Test::Not(one) => one.truth(asked, row).map(|truth| !truth),
            Test::And(one, two) => match (one.truth(asked, row), two.truth(asked, row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Test::Or(one, two) => match (one.truth(asked, row), two.truth(asked, row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Test::Compare(column, sign, literal) => {
                let order = compare(*column, literal)?;
                Some(match *sign {
                    "=" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Test::Null(column) => Some(asked.is_none(*column, &row[*column])),
            Test::In(column) => {
                let (text, number) = (compare(*column, "'a'"), compare(*column, "2"));
                match text.is_some_and(|order| order.is_eq()) || number.is_some_and(|order| order.is_eq()) {
                    true => Some(true),
                    false if text.is_none() || number.is_none() => None,
                    false => Some(false),
                }
            }
        }
    }
}

impl Dialect {
    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        single_line: false,
        squeeze: false,
        comment: None,
        decimal_comma: false,
    };
}

const NUMERIC: [&str; 4] = ["sum", "min", "max", "mean"];
const OTHERS: [&str; 5] = ["count", "first", "last", "lexmin", "lexmax"];

fn is_numeric(name: &str) -> bool {
    NUMERIC.contains(&name)
}

impl Asked {
    /// The question that a case's settings make.
    fn new(case: &Case<'_>) -> Asked {
        let (choice, [dialect, condition, how], more) = (case.spare(), case.more(), case.schedule().seed);
        let bit = |n: u8| choice >> n & 1 == 1;
        let keys: [&[usize]; 6] = [&[], &[0], &[1], &[0, 1], &[1, 0], &[2]];
        let names: Vec<&'static str> = NUMERIC.into_iter().chain(OTHERS).collect();
        let aggregates = (0..more % 4).map(|n| {
            let pick = more >> (4 * n + 8);
            (names[pick as usize % names.len()], (pick >> 3) as usize % 3)
        });
        let delimiter = [b',', b';'][usize::from(bit(0))];
        let mut bits = u64::from(condition) | more << 8;
        Asked {
            keys: keys[usize::from(choice >> 4) % keys.len()].to_vec(),
            aggregates: aggregates.collect(),
            // Most have none.
            condition: (condition >= 128).then(|| Test::chosen(&mut bits, 2)),
            dialect: Dialect {
                delimiter,
                quote: bit(1).then_some(b'"'),
                single_line: dialect % 5 == 1,
                squeeze: dialect % 5 == 2,
                comment: (dialect % 5 == 3).then_some(b'#'),
                decimal_comma: delimiter == b';' && dialect >= 128,
            },
            nulls: if bit(3) { &["NA", "0"] } else { &[] },
            on_error: match how % 3 {
                _ if !bit(2) => OnError::Fail,
                0 => OnError::Null,
                _ => OnError::Skip,
            },
            has_header: how & 64 != 0,
            is_ragged: how & 128 != 0,
        }
    }

    fn query(&self) -> Query {
        let dialect = &self.dialect;
        let mut query = Query::new(dialect.delimiter)
            .quote(dialect.quote)
            .single_line(dialect.single_line && dialect.quote.is_some())
            .squeeze(dialect.squeeze)
            .comment(dialect.comment.into_iter().collect::<Vec<u8>>())
            .keep_repeated_headers(true)
            .decimal_comma(dialect.decimal_comma)
            .header(self.has_header)
            .ragged(self.is_ragged)
            .on_error(self.on_error);
        for null in self.nulls {
            query = query.null_value(*null);
        }
        for &key in &self.keys {
            query = query.key(key + 1);
        }
        for (name, column) in &self.aggregates {
            query = query.aggregate(name, Some((column + 1).into())).unwrap();
        }
        if let Some(condition) = &self.condition {
            let text = condition.text();
            query = query.filter(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        query
    }

    fn is_null(&self, field: &[u8]) -> bool {
        field.is_empty() || self.nulls.iter().any(|null| null.as_bytes() == field)
    }

    /// The number of a field, where it has one.
    fn number(&self, field: &[u8]) -> Option<(BigInt, usize)> {
        (!self.is_null(field)).then(|| self.dialect.number(field, 38))?
    }

    /// Whether what isn't a number is null in a column, because an aggregate computes on it.
    fn wants_number(&self, column: usize) -> bool {
        let computes = |(name, of): &(&str, usize)| is_numeric(name) && *of == column;
        self.on_error == OnError::Null && self.aggregates.iter().any(computes)
    }

    /// Whether a column has no value in a field.
    fn is_none(&self, column: usize, field: &[u8]) -> bool {
        self.is_null(field) || self.wants_number(column) && self.number(field).is_none()
    }

    /// The columns that are asked for, from 1.
    fn columns(&self) -> usize {
        let condition = self.condition.as_ref().map_or(0, Test::columns);
        let keys = self.keys.iter().copied();
        let all = keys.chain(self.aggregates.iter().map(|(_, column)| *column));
        all.map(|column| column + 1).max().unwrap_or(0).max(condition)
    }
}

/// The rows of the answer, as lines of fields in JSON-like quotes; or where the first malformed record begins.
fn naive(files: &[Vec<(usize, Row)>], asked: &Asked) -> Result<Vec<String>, (usize, usize)> {
    let mut rows = files.iter().flatten().map(|(_, row)| row);
    let first = rows.find(|row| !row.is_empty());
    let mut width = first.map_or(0, Vec::len);
    if asked.is_ragged && !asked.has_header {
        // Further records may have columns that the first hasn't.
        width = width.max(asked.columns());
    }
    let mut groups: BTreeMap<Row, Vec<Row>> = BTreeMap::new();
    let mut scales = vec![0; width.max(3)];
    if asked.keys.is_empty() {
        groups.insert(Row::new(), Vec::new());
    }
    for (file, records) in files.iter().enumerate() {
        let mut records = records.iter().filter(|(_, row)| !row.is_empty());
        if asked.has_header
            && let Some((start, header)) = records.next()
            && Some(header) != first
        {
            return Err((file, *start));
        }
        for (start, row) in records {
            let mut row = row.clone();
            if asked.is_ragged {
                row.resize(width, Vec::new());
            }
            let has_width = row.len() == width;
            if has_width
                && let Some(condition) = &asked.condition
                && condition.truth(asked, &row) != Some(true)
            {
                continue;
            }
            let reads = |(name, column): &(&str, usize)| {
                let field = &row[*column];
                !is_numeric(name)
                    || asked.on_error == OnError::Null
                    || asked.is_null(field)
                    || asked.number(field).is_some()
            };
            if !has_width || !asked.aggregates.iter().all(reads) {
                if asked.on_error == OnError::Fail {
                    return Err((file, *start));
                }
                continue;
            }
            for (_, column) in asked.aggregates.iter().filter(|(name, _)| is_numeric(name)) {
                if let Some((_, scale)) = asked.number(&row[*column]) {
                    scales[*column] = scale.max(scales[*column]);
                }
            }
            let part = |&column: &usize| match asked.is_none(column, &row[column]) {
                true => Vec::new(),
                false => row[column].clone(),
            };
            let key = asked.keys.iter().map(part).collect();
            groups.entry(key).or_default().push(row);
        }
    }
    let line = |(key, rows): (&Row, &Vec<Row>)| {
        let mut cells: Vec<String> = key.iter().map(|part| format!("{part:?}")).collect();
        for &(name, column) in &asked.aggregates {
            let known = || rows.iter().map(|row| &row[column]).filter(|field| !asked.is_none(column, field));
            let scale = scales[column];
            let numbers = || known().flat_map(|field| asked.number(field)).map(|number| raised(&number, scale));
            let text = |field: Option<&Vec<u8>>| field.map_or("null".into(), |field| format!("{field:?}"));
            let exact = |value: Option<BigInt>| value.map_or("null".into(), |value| decimal(&value, scale));
            cells.push(match name {
                "count" => known().count().to_string(),
                "first" => text(known().next()),
                "last" => text(known().last()),
                "lexmin" => text(known().min()),
                "lexmax" => text(known().max()),
                "min" => exact(numbers().min()),
                "max" => exact(numbers().max()),
                "sum" => exact(numbers().reduce(|a, b| a + b)),
                _ => match BigInt::from(numbers().count()) {
                    count if count == BigInt::ZERO => "null".into(),
                    count => {
                        let sum: BigInt = numbers().sum();
                        let size = BigInt::from(sum.magnitude().clone());
                        // At least three digits from the first that isn't zero.
                        let ten = BigInt::from(10);
                        let has_three = |more: &u32| {
                            &size * ten.pow(*more) >= &count * 100 || size == BigInt::ZERO
                        };
                        let more = (2..).find(has_three).unwrap();
                        let mean: BigInt = (&size * 2 * ten.pow(more) + &count) / (&count * 2);
                        let is_negative = sum < BigInt::ZERO;
                        decimal(&if is_negative { -mean } else { mean }, scale + more as usize)
                    }
                },
            });
        }
        cells.join(" ")
    };
    // A column of numbers alone has their order.
    let number = |part: &Vec<u8>| asked.dialect.number(part, 400).map(|number| raised(&number, 400));
    let are_numbers: Vec<bool> = (0..asked.keys.len())
        .map(|at| groups.keys().all(|key| key[at].is_empty() || number(&key[at]).is_some()))
        .collect();
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|(key, _)| {
        let part = |(part, is_number): (&Vec<u8>, &bool)| (is_number.then(|| number(part)), part.clone());
        key.iter().zip(&are_numbers).map(part).collect::<Vec<_>>()
    });
    Ok(groups.into_iter().map(line).collect())
}

/// The answer, or the place of the first malformed record, of each file as one block. A file of empty lines is left out: a
/// run reads it again, in order.
fn in_blocks(plan: &Plan, files: &[&[u8]]) -> Result<Vec<String>, (usize, usize)> {
    let mut partial = plan.partial();
    let is_blank = |text: &[u8]| text.iter().all(|byte| b"\r\n".contains(byte));
    for (file, text) in (0..).zip(files).filter(|(_, text)| !is_blank(text)) {
        match plan.block(&mut partial, &PaddedBuf::from(*text).block(file, 0, 0)) {
            Ok(()) => {}
            Err(BlockError::Malformed(bad)) => return Err((file as usize, bad.start)),
            Err(BlockError::Sink(error)) => panic!("{error}"),
        }
    }
    Ok(rows_of(&plan.finish(partial)))
}

fn place(error: Error) -> (usize, usize) {
    let bytes = error.bytes().expect("a record has a place");
    (error.file_index() as usize, bytes.start as usize)
}

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let asked = Asked::new(&case);
    if asked.aggregates.is_empty() {
        return;
    }
    let query = asked.query();
    let config = Config {
        max_record: 1 << 20,
        ..case.config()
    };
    let input = Input::memory(case.files.iter().copied());
    let plan = |level: Option<Level>| query.clone().level(level).plan(&input, &config);
    // The whole input decides, as it does for the real run.
    let mut levels = vec![None];
    levels.extend(Level::available().into_iter().map(Some));
    let level = levels[case.one_of(levels.len())];
    let Ok(own) = plan(level) else {
        return;
    };
    let got = in_blocks(&own, &case.files);
    // A byte order mark isn't part of the first field, `sep=` names the delimiter, several carriage returns may end a line,
    // and a record with so many NUL bytes is malformed.
    let has_marks = case.files.iter().any(|text| {
        let is_marked = text.starts_with(b"\xef\xbb\xbf") || text.starts_with(b"sep=");
        is_marked || text.windows(2).any(|two| two == b"\r\r") || text.windows(128).any(|some| some == [0; 128])
    });
    let parsed: Option<Vec<_>> = case.files.iter().map(|text| asked.dialect.records(text)).collect();
    // A number past the last column may be a name of the header.
    let first = parsed.iter().flatten().flatten().find(|(_, row)| !row.is_empty());
    let is_named = asked.has_header && first.is_some_and(|(_, row)| row.len() < asked.columns());
    match parsed.as_ref().filter(|_| !has_marks && !is_named) {
        Some(files) => assert_eq!(got, naive(files, &asked)),
        None => assert_eq!(got, in_blocks(&plan(None).unwrap(), &case.files)),
    }
    // Where quotes can't be understood, or a block is the empty line before a header, a run may read the input once more.
    let has_empty = asked.has_header && case.files.iter().any(|text| text.starts_with(b"\n") || text.starts_with(b"\r"));
    if parsed.is_some() && !has_empty && case.one_of(16) == 0 {
        let answer = simulated::fold(&case.input(), &config, &case.schedule(), &plan(level).unwrap());
        assert_eq!(answer.map(|answer| rows_of(&answer)).map_err(place), got);
    }
    if case.threads().is_none() {
        return;
    }
    let run = |level: Option<Level>| match fold(&case.input(), &config, &plan(level).unwrap()) {
        Ok((answer, _)) => Ok(rows_of(&answer)),
        Err(error) => Err(place(error)),
    };
    match parsed.is_some() {
        true => assert_eq!(run(level), got),
        false => assert_eq!(run(level), run(None)),
    }
});
