//! Any text, dialect, query and level of instructions: the answer, or the first malformed record, is that of a naive
//! program that goes byte by byte and keeps all values of each group. Where quotes can't be understood, it is that of
//! the records added one by one. One case in 128 is read in blocks by a real run too, on 1, 2 or 8 threads.
#![no_main]

mod case;

use std::collections::BTreeMap;

use case::Case;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use ringfold::query::{Answer, OnError, Plan, Query};
use ringfold::report::grid::{Cell, Rows};
use ringfold::{BlockError, Config, Fold, Input, Level, PaddedBuf, fold};

type Row = Vec<Vec<u8>>;

/// The records of a text with where each begins, or `None` where quotes can't be understood.
fn records(text: &[u8], delimiter: u8, quote: Option<u8>) -> Option<Vec<(usize, Row)>> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (start, mut row) = (at, Row::new());
        loop {
            let mut field = Vec::new();
            let is_quoted = quote.is_some() && text.get(at).copied() == quote;
            if is_quoted {
                at += 1;
                loop {
                    let byte = *text.get(at)?;
                    at += 1;
                    if Some(byte) == quote {
                        if text.get(at).copied() != quote {
                            break;
                        }
                        at += 1;
                    }
                    field.push(byte);
                }
                let rest = &text[at..];
                let ends = rest.is_empty() || rest[0] == delimiter || rest[0] == b'\n';
                match ends {
                    true => {}
                    false if rest == b"\r" || rest.starts_with(b"\r\n") => at += 1,
                    false => return None,
                }
            } else {
                while at < text.len() && text[at] != delimiter && text[at] != b'\n' {
                    field.push(text[at]);
                    at += 1;
                }
            }
            let is_last = text.get(at).is_none_or(|&byte| byte == b'\n');
            if is_last && !is_quoted && field.last() == Some(&b'\r') {
                field.pop();
            }
            let is_empty_line = is_last && row.is_empty() && !is_quoted && field.is_empty();
            if !is_empty_line {
                row.push(field);
            }
            at += 1;
            if is_last {
                break;
            }
        }
        all.push((start, row));
    }
    Some(all)
}

/// A number's digits, and how many of them stand behind the point.
fn number(field: &[u8]) -> Option<(BigInt, usize)> {
    let text = std::str::from_utf8(field).ok()?.trim_matches([' ', '\t']);
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let both = format!("{whole}{part}");
    let is_number = !both.is_empty() && both.bytes().all(|byte| byte.is_ascii_digit());
    let fits = both.trim_start_matches('0').len() <= 38 && part.len() <= 38;
    (is_number && fits).then(|| (format!("{sign}{both}").parse().unwrap(), part.len()))
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

/// What is asked: the columns of the key, and the names and columns of aggregates.
struct Asked {
    keys: Vec<usize>,
    aggregates: Vec<(&'static str, usize)>,
}

const NUMERIC: [&str; 4] = ["sum", "min", "max", "mean"];
const OTHERS: [&str; 5] = ["count", "first", "last", "lexmin", "lexmax"];

/// The rows of the answer, as lines of fields in JSON-like quotes; or where the first malformed record begins.
fn naive(
    files: &[Vec<(usize, Row)>],
    asked: &Asked,
    is_null: &dyn Fn(&[u8]) -> bool,
    skips: bool,
) -> Result<Vec<String>, (usize, usize)> {
    let mut widths = files.iter().flatten().map(|(_, row)| row.len());
    let width = widths.find(|width| *width > 0).unwrap_or_default();
    let is_numeric = |name: &str| NUMERIC.contains(&name);
    let mut groups: BTreeMap<Row, Vec<Row>> = BTreeMap::new();
    let mut scales = vec![0; width.max(3)];
    if asked.keys.is_empty() {
        groups.insert(Row::new(), Vec::new());
    }
    for (file, records) in files.iter().enumerate() {
        for (start, row) in records.iter().filter(|(_, row)| !row.is_empty()) {
            let reads = |(name, column): &(&str, usize)| {
                let field = &row[*column];
                !is_numeric(name) || is_null(field) || number(field).is_some()
            };
            if row.len() != width || !asked.aggregates.iter().all(reads) {
                if !skips {
                    return Err((file, *start));
                }
                continue;
            }
            for (_, column) in asked.aggregates.iter().filter(|(name, _)| is_numeric(name)) {
                if let Some((_, scale)) = number(&row[*column]).filter(|_| !is_null(&row[*column])) {
                    scales[*column] = scale.max(scales[*column]);
                }
            }
            let part = |&column: &usize| match is_null(&row[column]) {
                true => Vec::new(),
                false => row[column].clone(),
            };
            let key = asked.keys.iter().map(part).collect();
            groups.entry(key).or_default().push(row.clone());
        }
    }
    let line = |(key, rows): (&Row, &Vec<Row>)| {
        let mut cells: Vec<String> = key.iter().map(|part| format!("{part:?}")).collect();
        for &(name, column) in &asked.aggregates {
            let known = || rows.iter().map(|row| &row[column]).filter(|field| !is_null(field));
            let scale = scales[column];
            let numbers = || known().map(|field| raised(&number(field).unwrap(), scale));
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
                _ => match BigInt::from(known().count()) {
                    count if count == BigInt::ZERO => "null".into(),
                    count => {
                        let twice: BigInt = numbers().sum::<BigInt>() * 200;
                        let up = BigInt::from(twice.magnitude().clone()) + &count;
                        let mean: BigInt = up / (count * 2);
                        let is_negative = twice < BigInt::ZERO;
                        decimal(&if is_negative { -mean } else { mean }, scale + 2)
                    }
                },
            });
        }
        cells.join(" ")
    };
    Ok(groups.iter().map(line).collect())
}

/// The rows of an answer in the form of `naive`'s.
fn lines(plan: &Plan, partial: <Plan as Fold>::Partial) -> Vec<String> {
    rows_of(&plan.finish(partial))
}

fn rows_of(answer: &Answer) -> Vec<String> {
    let mut cells = Vec::new();
    let row = |at: usize| {
        answer.row(at, &mut cells);
        let text = |cell: &Cell<'_>| match cell {
            Cell::Null => "null".into(),
            Cell::Text(text) => format!("{:?}", text.to_vec()),
            Cell::Number(number) => number.to_string(),
        };
        cells.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    (0..answer.len()).map(row).collect()
}

fuzz_target!(|data: &[u8]| {
    let case = Case::new(data);
    let (choice, more) = (case.spare(), case.schedule().seed);
    let bit = |n: u8| choice >> n & 1 == 1;
    let delimiter = [b',', b';'][usize::from(bit(0))];
    let quote = bit(1).then_some(b'"');
    let skips = bit(2);
    let has_nulls = bit(3);
    let keys: [&[usize]; 6] = [&[], &[0], &[1], &[0, 1], &[1, 0], &[2]];
    let names: Vec<&'static str> = NUMERIC.into_iter().chain(OTHERS).collect();
    let aggregates = (0..more % 4).map(|n| {
        let pick = more >> (4 * n + 8);
        (names[pick as usize % names.len()], (pick >> 3) as usize % 3)
    });
    let asked = Asked {
        keys: keys[usize::from(choice >> 4) % keys.len()].to_vec(),
        aggregates: aggregates.collect(),
    };
    let mut query = Query::new(delimiter).quote(quote);
    if skips {
        query = query.on_error(OnError::Skip);
    }
    if has_nulls {
        query = query.null_value("NA").null_value("0");
    }
    for &key in &asked.keys {
        query = query.key(key + 1);
    }
    for (name, column) in &asked.aggregates {
        query = query.aggregate(name, Some((column + 1).into())).unwrap();
    }
    if asked.aggregates.is_empty() {
        return;
    }
    let config = Config {
        max_record: 1 << 20,
        ..case.config()
    };
    let input = Input::memory(case.files.iter().copied());
    let at = |file: u32, start: u64| (file as usize, start as usize);
    let mut by_level = Vec::new();
    for level in [None].into_iter().chain(Level::available().into_iter().map(Some)) {
        let plan = match query.clone().level(level).plan(&input, &config) {
            Ok(plan) => plan,
            Err(_) => return,
        };
        let mut partial = plan.partial();
        let mut first = None;
        for (file, text) in (0..).zip(&case.files) {
            if text.is_empty() {
                continue;
            }
            let done = plan.block(&mut partial, &PaddedBuf::from(*text).block(file, 0, 0));
            match done {
                Err(BlockError::Malformed(bad)) if first.is_none() => {
                    first = Some(at(file, bad.start as u64));
                }
                Err(BlockError::Sink(error)) => panic!("{error}"),
                _ => {}
            }
        }
        by_level.push(match first {
            Some(place) => Err(place),
            None => Ok(lines(&plan, partial)),
        });
    }
    for other in &by_level[1..] {
        assert_eq!(*other, by_level[0]);
    }
    let is_null = |field: &[u8]| field.is_empty() || has_nulls && (field == b"NA" || field == b"0");
    // A byte order mark isn't part of the first field.
    let bare = case.files.iter().map(|text| text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let has_marks = case.files.iter().any(|text| text.starts_with(b"\xef\xbb\xbf"));
    let parsed: Option<Vec<_>> = bare.map(|text| records(text, delimiter, quote)).collect();
    let is_readable = parsed.is_some();
    if let Some(files) = parsed.filter(|_| !has_marks) {
        let want = naive(&files, &asked, &is_null, skips);
        assert_eq!(by_level[0], want);
    }
    if case.threads().is_none() {
        return;
    }
    let run = |level: Option<Level>| {
        let plan = query.clone().level(level).plan(&input, &config).unwrap();
        match fold(&case.input(), &config, &plan) {
            Ok((answer, _)) => Ok(rows_of(&answer)),
            Err(error) => {
                let bytes = error.bytes().expect("a record has a place");
                Err(at(error.file_index(), bytes.start))
            }
        }
    };
    let got = run(Some(Level::detect()));
    // Where quotes can't be understood, a run may read the input once more.
    match is_readable {
        true => assert_eq!(got, by_level[0]),
        false => assert_eq!(got, run(None)),
    }
});
