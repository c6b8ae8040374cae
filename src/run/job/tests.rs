//! The passes of every level against single records, and groups that outgrow the memory.

mod forms;

use proptest::prelude::*;
use ringfold_read::internals::Level;
use ringfold_read::{Config, Input, PaddedBuf};

use super::*;
use crate::answer::order::Sort;
use crate::query::ask::Query;
use crate::reject::rejects::OnError;
use crate::report::grid::{GridFormat, Rows, write_grid};
use forms::{CONDITIONS, KEYS, NULLS, UNITS, VALUE_KEYS, VALUES};

mod computed;
mod shared;
mod zones;

/// The answer as CSV with all counts, or the first error; `text` is cut into blocks of records of about `block` bytes.
fn answer(query: &Query, level: Option<Level>, text: &[u8], block: usize) -> String {
    let input = Input::memory([text]);
    let mut plan = match query.plan(&input, &Config::default()) {
        Ok(plan) => plan,
        Err(error) => return error.to_string(),
    };
    plan.level = level;
    let mut partials = [plan.partial(), plan.partial()];
    let (mut at, mut turn, mut errors) = (0, 0, Vec::new());
    while at < text.len() {
        let mut end = at;
        while end < text.len() && end - at < block {
            end = plan.dialect.framed_end(text, end);
        }
        let padded = PaddedBuf::from(&text[at..end]);
        let done = plan.block(&mut partials[turn % 2], &padded.block(0, at as u64, 0));
        match done {
            Ok(()) => {}
            Err(BlockError::Malformed(bad)) => {
                errors.push(format!("{} {} {}", at + bad.start, at + bad.end, bad.cause));
            }
            Err(BlockError::Sink(error)) => panic!("{error}"),
        }
        (at, turn) = (end, turn + 1);
    }
    if let Some(error) = errors.into_iter().next() {
        return error;
    }
    let [mut one, two] = partials;
    plan.merge(&mut one, two);
    plan.complete(&mut one).unwrap();
    let answer = plan.finish(one);
    let mut csv = Vec::new();
    write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    answer.check().unwrap();
    let (rows, filtered, local) = (answer.rows, answer.filtered, answer.local_times.first);
    let (empty, skipped) = (answer.empty_lines, answer.skipped);
    let first = [answer.first_skipped, answer.first_nulled].map(|first| format!("{first:?}"));
    let nulled = answer.nulled;
    let csv = String::from_utf8_lossy(&csv);
    format!("{csv}{rows} {filtered} {empty} {skipped} {nulled} {first:?} {local:?}")
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => "-?[0-9]{1,4}(\\.[0-9]{0,2})?",
        4 => "[a-c]{0,2}",
        1 => "-?[0-9]{7,12}(\\.[0-9]{0,5})?",
        1 => "[-+]?[0-9]{13,21}| ?[0-9]{1,3}\\.[0-9]{6,20} ?",
        1 => "2026-0[1-3]-[0-3][0-9][T ]1[0-9]:[0-6][0-9]:00Z?|1[0-9]/Mar/2026:06:[0-5][0-9]:01 \\+0000",
        1 => "\"[a-b0-9,\n]{0,3}\"",
        1 => "\"([a-b]|\"\"){0,3}\"",
        1 => prop::sample::select(&["NA", "-", "0", " 7 ", "+3", "1e5", "5\"", "\"x\"y", "\"open", "\r", ".5", "99999999"][..])
            .prop_map(String::from),
        1 => "[k]{28,40}|[k]{120,140}|[k]{250,260}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The passes of every level give what adding the records one by one gives, to the byte.
    #[test]
    fn passes_give_what_single_records_give(
        good in prop::collection::vec(field(), 3),
        rows in prop::collection::vec(prop::collection::vec(field(), 3), 1..30),
        odd in prop::collection::vec((0..30_usize, prop::collection::vec(field(), 0..5)), 0..4),
        ends in prop::collection::vec(prop::sample::select(&["\n", "\n", "\n", "\r\n"][..]), 40),
        repeat in 1..30_usize,
        keys in prop::sample::select(KEYS),
        unit in prop::option::weighted(0.3, prop::sample::select(UNITS)),
        aggregates in prop::collection::vec((0..crate::aggregate::ALL.len(), 1..4_usize), 0..5),
        (is_quoted, is_exact, has_comma, has_comments, has_clock) in any::<(bool, bool, bool, bool, bool)>(),
        skips: bool,
        nulls in prop::sample::select(NULLS),
        condition in prop::sample::select(CONDITIONS),
        value_key in prop::option::weighted(0.2, prop::sample::select(VALUE_KEYS)),
        values in prop::collection::vec(prop::sample::select(VALUES), 0..3),
        (has_values, is_lenient) in any::<(bool, bool)>(),
        block in 1..3000_usize,
    ) {
        let mut records = vec![good.join(",")];
        records.extend(rows.iter().map(|row| row.join(",")));
        for (at, fields) in &odd {
            let mark = if has_comments { "#" } else { "" };
            records.insert(1 + at % records.len(), format!("{mark}{}", fields.join(",")));
        }
        if has_comma {
            records.iter_mut().for_each(|record| *record = record.replace(',', ";").replace('.', ","));
        }
        let ended = records.iter().zip(ends.iter().cycle()).map(|(record, end)| format!("{record}{end}"));
        let text = ended.collect::<String>().repeat(repeat);
        let mut query = match has_comma {
            true => Query::new(b';').decimal_comma(true),
            false => Query::new(b','),
        };
        query = query.quote(is_quoted.then_some(b'"')).approximate(!is_exact);
        if has_comments {
            query = query.comment("#");
        }
        if let Some(unit) = unit {
            query = match has_clock {
                true => query.key_by_two(2, 3, unit),
                false => query.key_by(2, unit),
            };
        }
        if skips {
            query = query.on_error(OnError::Skip);
        }
        for null in nulls {
            query = query.null_value(*null);
        }
        for &key in keys {
            query = query.key(key);
        }
        for &(kind, column) in &aggregates {
            let name = crate::aggregate::ALL[kind].name;
            query = query.aggregate(name, Some(column.into())).unwrap();
        }
        if let Some(condition) = condition {
            query = query.filter(condition).unwrap();
        }
        if is_lenient {
            query = query.on_error(OnError::Null);
        }
        if let Some(key) = value_key {
            query = query.key_text(key).unwrap();
        }
        for value in values.iter().filter(|_| has_values) {
            query = query.aggregate_text(value).unwrap();
        }
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The same of lines that the dialect splits: JSON, and fields with blanks or comments between.
    #[test]
    fn passes_over_lines_give_what_single_records_give(
        rows in prop::collection::vec(prop::collection::vec(field(), 3), 1..30),
        odd in prop::collection::vec((0..30_usize, "[{}:\"a0, #]{0,9}|\\{\"k1\":\"\\\\n\"\\}"), 0..4),
        repeat in 1..30_usize,
        kind in 0..4,
        keys in prop::sample::select(KEYS),
        aggregates in prop::collection::vec((0..crate::aggregate::ALL.len(), 1..4_usize), 0..5),
        skips: bool,
        filters: bool,
        is_exact: bool,
        block in 1..3000_usize,
    ) {
        let json = |field: &String| match field.parse::<u32>() {
            Ok(number) => number.to_string(),
            Err(_) => format!("\"{}\"", field.replace('"', "\\\"").replace(['\n', '\r'], "\\n")),
        };
        let line = |row: &Vec<String>| match kind {
            0 => format!("{{\"k1\":{},\"x\":{{\"k2\": {}}},\"k3\":{}}}", json(&row[0]), json(&row[1]), json(&row[2])),
            1 => row.join(" ").replace(['\n', '\r'], ""),
            _ => row.join(",").replace(['\n', '\r'], ""),
        };
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        for (at, line) in &odd {
            lines.insert(1 + at % lines.len(), line.clone());
        }
        let text = format!("{}\n", lines.join("\n")).repeat(repeat);
        let mut query = match kind {
            0 => Query::json_lines(),
            1 => Query::new(b' ').squeeze(true).quote(Some(b'"')).single_line(true).ragged(true),
            2 => Query::new(b',').comment("#"),
            _ => Query::new(b',').quote(Some(b'"')).single_line(true),
        };
        let column = |number: usize| match kind {
            0 => ["k1", "x.k2", "k3"][number - 1].into(),
            _ => crate::plan::columns::Columns::Number(number),
        };
        query = query.approximate(!is_exact);
        if skips {
            query = query.on_error(OnError::Skip);
        }
        for &key in keys {
            query = query.key(column(key));
        }
        for &(kind, number) in &aggregates {
            let name = crate::aggregate::ALL[kind].name;
            query = query.aggregate(name, Some(column(number))).unwrap();
        }
        if filters {
            query = query.filter(if kind == 0 { "k1 > 5 or x.k2 ~ 'a'" } else { "$1 > 5 or $2 ~ 'a'" }).unwrap();
        }
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The same of a key and a number, which has one decimal in most records.
    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn pairs_give_what_single_records_give(
        rows in prop::collection::vec(
            ("[a-c]{0,2}|[x-z]{30,33}|[y-z]{126,130}", "-?[0-9]{1,2}\\.[0-9]\r?"), 1..60),
        odd in prop::collection::vec((0..60_usize, "[-0-9a.;\"+\r]{0,9}|[ab];NA|NA;1\\.5"), 0..4),
        repeat in 1..80_usize,
        quote in prop::option::of(Just(b'"')),
        on_error in prop::sample::select(&[OnError::Fail, OnError::Skip, OnError::Null][..]),
        null in prop::option::of(prop::sample::select(&["NA", "1.5", "a"][..])),
        names in prop::sample::subsequence(
            &["count", "sum", "min", "max", "mean", "range", "var"][..], 1..4),
        memory in prop::option::of(0..100_000_u64),
        block in 1..60_000_usize,
    ) {
        let lines = (0..repeat).flat_map(|_| &rows);
        let mut lines: Vec<String> = lines.map(|(key, number)| format!("{key};{number}")).collect();
        for (at, line) in odd {
            lines.insert(1 + at * (lines.len() - 1) / 60, line);
        }
        let text = format!("{}\n", lines.join("\n"));
        let mut query = Query::new(b';').quote(quote).on_error(on_error).key(1);
        for name in names {
            query = query.aggregate(name, Some(2.into())).unwrap();
        }
        query = query.aggregate("count", None).unwrap();
        if let Some(null) = null {
            query = query.null_value(null);
        }
        let want = answer(&query, None, text.as_bytes(), block);
        if let Some(memory) = memory {
            query = query.memory(memory);
        }
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}

/// Conditions on a date and a time of day in two columns.
#[test]
fn conditions_on_two_columns() {
    let dates = ["2026-03-12", "12/Mar/2026", "", "NA", "x", "\"2026-03-13\""];
    let clocks = [
        "06:25",
        "06:25:01",
        "18:30Z",
        "",
        "noon",
        "\"07:00\"",
        "06:25:01.000000000000000001",
    ];
    let rows = (0..400).map(|row| {
        let (date, clock) = (dates[row % 7 % 6], clocks[row / 2 % 7]);
        format!("{},{date},{row},{clock}\n", row % 3)
    });
    let text: String = rows.collect();
    for condition in [
        "$2+$4 >= '2026-03-12 06:25:01'",
        "not ($2+$4 < '2026-03-12 06:25:01' or $3 > 300)",
        "$2+$4@hour = '2026-03-12T06' and $3 < 390",
        "$2+$4@weekday in (4, 5)",
        "$2+$4 ~ ' 06' or $2+$4 is null",
    ] {
        for on_error in [OnError::Fail, OnError::Null, OnError::Skip] {
            let query = Query::new(b',').quote(Some(b'"')).key(1).null_value("NA");
            let query = query.on_error(on_error).filter(condition).unwrap();
            let query = query.aggregate("sum", Some(3.into())).unwrap();
            let want = answer(&query, None, text.as_bytes(), 3000);
            for level in Level::available() {
                let got = answer(&query, Some(level), text.as_bytes(), 3000);
                assert_eq!(got, want, "{condition} {level:?}");
            }
        }
    }
}

/// Pairs go to tables of their own until these are full.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn more_keys_than_pairs_have_room_for() {
    let rows = (0..150_000).map(|row| {
        let long = if row % 3 == 0 {
            "behind a long key"
        } else {
            ""
        };
        format!("k{}{long};{}.{}\n", row * 7 % 90_000, row % 97, row % 10)
    });
    let rows: String = rows.collect();
    let query = Query::new(b';').key(1);
    let query = ["count", "sum", "min", "max"]
        .iter()
        .fold(query, |query, name| {
            query.aggregate(name, Some(2.into())).unwrap()
        });
    let want = answer(&query, None, rows.as_bytes(), 1 << 20);
    for level in Level::available() {
        assert!(answer(&query, Some(level), rows.as_bytes(), 1 << 20) == want);
    }
    let plan = query.plan(&Input::memory([rows.as_bytes()]), &Config::default());
    let plan = plan.unwrap();
    let mut partial = plan.partial();
    let end = rows[..16_000].rfind('\n').unwrap() + 1;
    let padded = PaddedBuf::from(&rows.as_bytes()[..end]);
    plan.block(&mut partial, &padded.block(0, 0, 0)).unwrap();
    let passes = partial.passes.as_ref().expect("a plan with passes");
    assert!(passes.pair_bytes() > 0);
}

/// Records of thousands of groups, and among them what lanes can't hold: long keys, keys that are null or stand between
/// quotes, numbers of other sizes.
fn odd_rows() -> String {
    let mut number = 7_u64;
    let mut draw = |below: u64| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (number >> 33) % below
    };
    let mut rows = String::new();
    for row in 0..12_000 {
        let key = match draw(4) {
            0 => draw(3),
            _ => draw(2500),
        };
        let odd = if row > 300 { draw(60) } else { 99 };
        rows += &match odd {
            0 => format!("\"k{key}\",b{},{row}\n", key % 7),
            1 => format!("NA,b,{row}\n"),
            2 => format!(",b,{row}\n"),
            3 => format!("k{key},{},{row}\n", "long".repeat(9 + 30 * (row % 2))),
            4 => format!("k{key},b{},{row}00000000\n", key % 7),
            5 => format!("k{key},b{},-{row}.12345678\n", key % 7),
            6 => format!("k{key},b{},\n", key % 7),
            7 => format!("k{key},b{},{row}.1\r\n", key % 7),
            8 => format!("\"k{key}\"\"\",b{},12\n", key % 7),
            _ => format!("k{key},b{},{row}\n", key % 7),
        };
    }
    rows
}

/// Groups of lanes and of the table meet.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn groups_of_lanes_and_of_the_table_meet() {
    let rows = odd_rows();
    for (keys, quote) in [
        (&[1][..], None),
        (&[1], Some(b'"')),
        (&[1, 2], None),
        (&[2, 1], Some(b'"')),
        (&[], Some(b'"')),
    ] {
        for nulls in [&[][..], &["NA"]] {
            let mut query = Query::new(b',').quote(quote).on_error(OnError::Null);
            for &key in keys {
                query = query.key(key);
            }
            for name in ["count", "sum", "min", "max", "stddev"] {
                query = query.aggregate(name, Some(3.into())).unwrap();
            }
            for null in nulls {
                query = query.null_value(*null);
            }
            let want = answer(&query, None, rows.as_bytes(), 20_000);
            for level in Level::available() {
                let got = answer(&query, Some(level), rows.as_bytes(), 20_000);
                assert!(got == want, "{keys:?} {quote:?} {nulls:?} {level:?}");
            }
        }
    }
}

/// Lanes are laid out anew when thousands of groups are there.
#[test]
#[cfg_attr(miri, ignore = "too much for an interpreter")]
fn a_null_behind_many_groups() {
    let mut rows: String = (0..9000)
        .map(|row| format!("k{},{row}\n", row % 3000))
        .collect();
    rows += "k7,\nk8,0.5\nk9,99999999999\nk7,1\n";
    let query = Query::new(b',').key(1);
    let query = ["count", "sum", "min"].iter().fold(query, |query, name| {
        query.aggregate(name, Some(2.into())).unwrap()
    });
    let want = answer(&query, None, rows.as_bytes(), 20_000);
    for level in Level::available() {
        assert!(answer(&query, Some(level), rows.as_bytes(), 20_000) == want);
    }
}

/// Whatever the memory, the answer is the same.
#[test]
#[cfg_attr(miri, ignore = "it writes files")]
fn groups_outgrow_the_memory() {
    let rows = odd_rows();
    let directory = tempfile::tempdir().unwrap();
    let levels = Level::available().into_iter().map(Some).chain([None]);
    let levels: Vec<Option<Level>> = levels.collect();
    let mut first = 0;
    for (keys, aggregates) in [
        (&[1][..], &["count", "sum", "max"][..]),
        (&[1, 2], &["first", "last", "lexmin", "lexmax", "mean"]),
        (&[2, 1], &["stddev", "var_pop", "range", "min"]),
        (&[], &["sum", "first"]),
        (&[1], &["p99.9", "distinct", "median", "mode", "p10"]),
        (&[], &["p99.9", "distinct", "sum"]),
    ] {
        let options = [
            (None, false),
            (Some("count > 5"), false),
            (None, true),
            (Some("count > 5"), true),
        ];
        for (having, is_exact) in options {
            let query = Query::new(b',').quote(Some(b'"')).on_error(OnError::Null);
            let mut query = query.approximate(!is_exact);
            for &key in keys {
                query = query.key(key);
            }
            for name in aggregates {
                query = query.aggregate(name, Some(3.into())).unwrap();
            }
            query = query.aggregate("count", None).unwrap();
            if let Some(having) = having {
                query = query.having(having).unwrap();
            }
            let want = answer(&query, None, rows.as_bytes(), 20_000);
            // In turn: each level meets each memory.
            first += 1;
            for (at, memory) in [0, 100_000, 400_000].into_iter().enumerate() {
                let query = query.clone().memory(memory);
                let query = query.spill_directory(directory.path());
                let level = levels[(first + at) % levels.len()];
                let got = answer(&query, level, rows.as_bytes(), 20_000);
                assert!(got == want, "{keys:?} {having:?} {memory} {level:?}");
            }
        }
    }
}

/// Exact answers are those of sorted lists, in memory and out of it.
#[test]
#[cfg_attr(miri, ignore = "it writes files")]
fn exact_answers_are_exact() {
    use std::collections::BTreeMap;
    let directory = tempfile::tempdir().unwrap();
    let mut number = 3_u64;
    let mut draw = |below: u64| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (number >> 33) % below
    };
    let mut text = String::new();
    let mut groups = BTreeMap::<String, Vec<(i128, String)>>::new();
    for row in 0..40_000 {
        let key = ["a", "b", "c", ""][draw(4).min(draw(5)) as usize % 4];
        // Hundredths, written in several ways.
        let hundredths = draw(9_000) as i128 - 3_000;
        let sign = if hundredths < 0 { "-" } else { "" };
        let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
        let value = match rest % 10 {
            0 if row % 3 == 0 => format!("{sign}{whole}.{}", rest / 10),
            _ => format!("{sign}{whole}.{rest:02}"),
        };
        let word = format!("w{}", draw(5000).min(draw(5000)));
        text += &format!("{key},{value},{word}\n");
        groups
            .entry(key.into())
            .or_default()
            .push((hundredths, word));
    }
    let names = ["p0", "p12.5", "median", "p99.9", "p100"];
    let shares = [(0, 1), (125, 1000), (1, 2), (999, 1000), (1, 1)];
    let mut want =
        String::from("key1,p0_2,p12.5_2,median_2,p99.9_2,p100_2,distinct_3,mode_3,count\n");
    for (key, rows) in &mut groups {
        rows.sort();
        want += if key.is_empty() { "\"\"" } else { key.as_str() };
        for (dividend, divisor) in shares {
            let place = (rows.len() as i128 - 1) * dividend;
            let (at, rest) = ((place / divisor) as usize, place % divisor);
            let next = rows.get(at + 1).map_or(0, |row| row.0);
            // Ten thousandths, rounded half away from zero.
            let exact = (rows[at].0 * (divisor - rest) + next * rest) * 100;
            let rounded = (2 * exact.abs() + divisor) / (2 * divisor);
            let sign = if exact < 0 && rounded > 0 { "-" } else { "" };
            want += &format!(",{sign}{}.{:04}", rounded / 10_000, rounded % 10_000);
        }
        let mut counts = BTreeMap::<&str, usize>::new();
        rows.iter()
            .for_each(|(_, word)| *counts.entry(word).or_default() += 1);
        let most = counts.values().max().unwrap();
        let (mode, _) = counts.iter().find(|(_, count)| *count == most).unwrap();
        want += &format!(",{},{mode},{}\n", counts.len(), rows.len());
    }
    let mut query = Query::new(b',').key(1);
    for name in names {
        query = query.aggregate(name, Some(2.into())).unwrap();
    }
    for name in ["distinct", "mode"] {
        query = query.aggregate(name, Some(3.into())).unwrap();
    }
    let query = query.aggregate("count", None).unwrap();
    let small = query.clone().memory(0).spill_directory(directory.path());
    for level in Level::available().into_iter().map(Some).chain([None]) {
        for query in [&query, &small] {
            let got = answer(query, level, text.as_bytes(), 50_000);
            assert_eq!(
                got.rsplit_once('\n').unwrap().0,
                want.trim_end(),
                "{level:?}"
            );
        }
    }
}

/// The rows of an answer in an order, and how many bytes went to files.
fn sorted(
    query: &Query,
    text: &str,
    sort: &str,
    first: Option<usize>,
) -> Result<(Vec<String>, u64)> {
    let input = Input::memory([text.as_bytes()]);
    let plan = query.plan(&input, &Config::default()).unwrap();
    let (mut answer, _) = crate::fold(&input, &Config::default(), &plan)?;
    answer.sort(&Sort::read(sort).unwrap(), first)?;
    let mut all = Vec::new();
    let mut cells = Vec::new();
    for at in 0..answer.len() {
        answer.row(at, &mut cells);
        all.push(format!("{cells:?}"));
    }
    answer.check()?;
    Ok((all, answer.spilled_bytes))
}

/// Keys that have outgrown the memory are sorted as numbers, whether or not they lie so.
#[test]
#[cfg_attr(miri, ignore = "it writes files")]
fn outgrown_numbers_are_sorted() {
    const KEYS: usize = 20_000;
    let directory = tempfile::tempdir().unwrap();
    let query = Query::new(b',').key(1);
    let small = query.clone().memory(0).spill_directory(directory.path());
    for least in [1, 10_000] {
        let keys = (0..KEYS).map(|row| least + row * 7_919 % KEYS);
        let text: String = keys.map(|key| format!("{key}\n")).collect();
        let (want, _) = sorted(&query, &text, "key", None).unwrap();
        let (got, spilled) = sorted(&small, &text, "key", None).unwrap();
        assert!(spilled > 0);
        assert_eq!(got.len(), KEYS);
        assert!(got == want, "from {least} on");
    }
}

/// Groups that have outgrown the memory are sorted by value, all of them or the first ones.
#[test]
#[cfg_attr(miri, ignore = "it writes files")]
fn outgrown_answers_are_sorted() {
    let rows = odd_rows();
    let query = Query::new(b',').key(1).on_error(OnError::Null);
    let query = query.aggregate("max", Some(3.into())).unwrap();
    let query = query.aggregate("count", None).unwrap();
    let of = |query: &Query, sort: &str, first| sorted(query, &rows, sort, first);
    let directory = tempfile::tempdir().unwrap();
    let small = query.clone().memory(0).spill_directory(directory.path());
    for sort in ["max_3:desc", "max_3,key1:desc", "count,max_3:desc", "key"] {
        let (all, _) = of(&query, sort, None).unwrap();
        for first in [Some(0), Some(1), Some(7), Some(60), Some(150), None] {
            let (want, _) = of(&query, sort, first).unwrap();
            let most = first.map_or(all.len(), |first| first.min(all.len()));
            assert!(want == all[..most], "{sort} {first:?}");
            let got: Result<_> = of(&small, sort, first);
            let (got, spilled) = got.unwrap();
            assert!(got == want, "{sort} {first:?}");
            assert!(spilled > 0);
        }
    }
    let nowhere = query
        .memory(0)
        .spill_directory(directory.path().join("nowhere"));
    let error = of(&nowhere, "key", None).unwrap_err().to_string();
    assert!(error.contains("No such file or directory"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
