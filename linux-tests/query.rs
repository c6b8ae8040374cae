//! Group-by over any columns, in every engine, against a naive one that knows the rows and not the text.

use std::collections::BTreeMap;
use std::path::Path;

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::OnError;
use ringfold::query::Query;
use ringfold::{Config, Engine, Error, Input, Kind, fold};

use crate::answers::fifo;
use crate::catalogue::drawn;
use crate::support::{cached_ways, csv, dir, end, ringfold, str, ways_in_small_blocks, write};

pub(crate) type Row = Vec<Vec<u8>>;

/// All aggregates; those over numbers first.
pub(crate) const NUMERIC: [&str; 9] = [
    "sum",
    "min",
    "max",
    "mean",
    "range",
    "var",
    "stddev",
    "var_pop",
    "stddev_pop",
];
pub(crate) const OF_BYTES: [&str; 5] = ["count", "first", "last", "lexmin", "lexmax"];

/// Runs a query and gives its answer as CSV.
pub(crate) fn answer(query: &Query, input: &Input, config: &Config) -> Result<String, Error> {
    let (answer, _) = fold(input, config, &query.plan(input, config)?)?;
    Ok(csv(&answer))
}

/// Two keys, all numeric aggregates of the third column and all others of the fourth.
fn everything() -> Query {
    everything_of(Query::new(b',').quote(Some(b'"')).header(true))
}

/// The same of a query that says how records are written.
pub(crate) fn everything_of(query: Query) -> Query {
    let mut query = query
        .null_value("NA")
        .key("one")
        .key("two")
        .aggregate("count", None)
        .unwrap();
    for name in NUMERIC {
        query = query.aggregate(name, Some("number".into())).unwrap();
    }
    for name in OF_BYTES {
        query = query.aggregate(name, Some("text, any".into())).unwrap();
    }
    query
}

fn is_null(field: &[u8]) -> bool {
    field.is_empty() || field == b"NA"
}

/// A number of a field as its digits and how many of them stand behind the point.
fn parse(field: &[u8]) -> (BigInt, usize) {
    let text = std::str::from_utf8(field).unwrap().trim();
    let scale = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    (text.replace('.', "").parse().unwrap(), scale)
}

/// The number of a key, of few digits.
fn number(key: &[u8]) -> Option<BigInt> {
    let is_number = !key.is_empty() && key.iter().all(|byte| b"0123456789.".contains(byte));
    let (mantissa, scale) = is_number.then(|| parse(key))?;
    Some(mantissa * power(38 - scale))
}

fn power(exponent: usize) -> BigInt {
    BigInt::from(10).pow(exponent as u32)
}

fn decimal(mantissa: &BigInt, scale: usize) -> String {
    let sign = if mantissa.sign() == Sign::Minus {
        "-"
    } else {
        ""
    };
    let (whole, part) = (
        mantissa.magnitude() / power(scale).magnitude(),
        mantissa.magnitude() % power(scale).magnitude(),
    );
    match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{:0>scale$}", part.to_string()),
    }
}

/// The fraction with so many digits, half away from zero.
fn fraction(dividend: &BigInt, divisor: &BigInt, scale: usize) -> String {
    let dividend = dividend * power(scale);
    let (quotient, rest) = (&dividend / divisor, &dividend % divisor);
    let is_half = BigInt::from(rest.magnitude().clone()) * 2 >= *divisor;
    let more = if is_half {
        dividend.sign()
    } else {
        Sign::NoSign
    };
    let more = match more {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    };
    decimal(&(quotient + more), scale)
}

/// The same with more digits, if three significant ones take them.
fn significant(dividend: &BigInt, divisor: &BigInt, mut scale: usize) -> String {
    let is_zero = dividend.sign() == Sign::NoSign;
    while !is_zero
        && dividend.magnitude() * power(scale).magnitude() < divisor.magnitude() * 100_u32
    {
        scale += 1;
    }
    fraction(dividend, divisor, scale)
}

/// The root of the fraction: the number whose square is on the right side.
fn root(dividend: &BigInt, divisor: &BigInt, mut scale: usize) -> String {
    while dividend.sign() != Sign::NoSign && dividend * power(2 * scale) < divisor * 10_000_u32 {
        scale += 1;
    }
    let wanted = dividend * power(2 * scale);
    let mut root = (&wanted / divisor).sqrt();
    let doubled: BigInt = &root * 2 + 1;
    if &doubled * &doubled * divisor <= wanted * 4 {
        root += 1;
    }
    decimal(&root, scale)
}

/// A text as CSV has it.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_plain = !text.is_empty()
        && !text.contains([',', '"', '\r', '\n'])
        && !text.starts_with([' ', '\t'])
        && !text.ends_with([' ', '\t']);
    match is_plain {
        true => text.into_owned(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    }
}

/// What `everything` answers over these rows.
pub(crate) fn reference(rows: &[Row]) -> String {
    let mut lines = "one,two,count".to_string();
    for name in NUMERIC {
        lines += &format!(",{name}_number");
    }
    for name in OF_BYTES {
        lines += &format!(",\"{name}_text, any\"");
    }
    lines += "\n";
    let scale = rows
        .iter()
        .filter(|row| !is_null(&row[2]))
        .map(|row| parse(&row[2]).1)
        .max();
    let scale = scale.unwrap_or(0);
    let mut groups = BTreeMap::<_, Vec<&Row>>::new();
    for row in rows {
        let key = |at: usize| {
            if is_null(&row[at]) {
                vec![]
            } else {
                row[at].clone()
            }
        };
        groups.entry((key(0), key(1))).or_default().push(row);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let are_numbers = |at: usize| {
        let keys = groups.iter().map(|((one, two), _)| [one, two][at]);
        keys.clone()
            .all(|key| key.is_empty() || number(key).is_some())
    };
    let are_numbers = [are_numbers(0), are_numbers(1)];
    // Column by column, in those of numbers first by these.
    groups.sort_by_cached_key(|((one, two), _)| {
        let of = |at: usize, key: &[u8]| (number(key).filter(|_| are_numbers[at]), key.to_vec());
        [of(0, one), of(1, two)]
    });
    for ((one, two), rows) in groups {
        let mut cells = vec![quoted(&one), quoted(&two), rows.len().to_string()];
        let numbers: Vec<BigInt> = rows
            .iter()
            .filter(|row| !is_null(&row[2]))
            .map(|row| parse(&row[2]))
            .map(|(mantissa, own)| mantissa * power(scale - own))
            .collect();
        let count = BigInt::from(numbers.len());
        match numbers.len() {
            0 => cells.extend(NUMERIC.map(|_| String::new())),
            n => {
                let sum: BigInt = numbers.iter().sum();
                let squares: BigInt = numbers.iter().map(|number| number * number).sum();
                let (least, most) = (numbers.iter().min().unwrap(), numbers.iter().max().unwrap());
                cells.push(decimal(&sum, scale));
                cells.push(decimal(least, scale));
                cells.push(decimal(most, scale));
                cells.push(significant(&sum, &(&count * power(scale)), scale + 2));
                cells.push(decimal(&(most - least), scale));
                let spread: BigInt = &count * squares - &sum * &sum;
                for over in [n - 1, n] {
                    let divisor: BigInt = &count * over * power(2 * scale);
                    cells.extend(match over {
                        0 => [String::new(), String::new()],
                        _ => [
                            significant(&spread, &divisor, scale + 6),
                            root(&spread, &divisor, scale + 6),
                        ],
                    });
                }
            }
        }
        let texts: Vec<&[u8]> = rows
            .iter()
            .map(|row| row[3].as_slice())
            .filter(|text| !is_null(text))
            .collect();
        cells.push(texts.len().to_string());
        for found in [
            texts.first(),
            texts.last(),
            texts.iter().min(),
            texts.iter().max(),
        ] {
            cells.push(found.map_or(String::new(), |text| quoted(text)));
        }
        lines += &cells.join(",");
        lines += "\n";
    }
    lines
}

/// How a table is written.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    pub(crate) marked: bool,
    pub(crate) carriage: bool,
    pub(crate) last_end: bool,
    /// Quotes a field that needn't be, by its number.
    pub(crate) quotes: Vec<bool>,
    /// Empty lines, by the number of the row before.
    pub(crate) empty: Vec<bool>,
}

fn text(rows: &[Row], style: &Style) -> Vec<u8> {
    let header = ["one", "two", "number", "text, any"].map(|name| name.as_bytes().to_vec());
    let mut text = if style.marked {
        b"\xef\xbb\xbf".to_vec()
    } else {
        vec![]
    };
    let end: &[u8] = if style.carriage { b"\r\n" } else { b"\n" };
    let (mut fields, mut lines) = (0, 0);
    for row in std::iter::once(&header.to_vec()).chain(rows) {
        for (at, field) in row.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            fields += 1;
            let must = field.iter().any(|byte| b",\"\r\n".contains(byte));
            if must || style.quotes[fields % style.quotes.len()] {
                text.push(b'"');
                for &byte in field {
                    text.extend(if byte == b'"' {
                        vec![byte; 2]
                    } else {
                        vec![byte]
                    });
                }
                text.push(b'"');
            } else {
                text.extend(field);
            }
        }
        text.extend(end);
        lines += 1;
        if style.empty[lines % style.empty.len()] {
            text.extend(end);
        }
    }
    if !style.last_end {
        while text.ends_with(b"\n") || text.ends_with(b"\r") {
            text.pop();
        }
    }
    text
}

pub(crate) fn tables() -> impl Strategy<Value = (Vec<Row>, Style)> {
    let number_key = prop::sample::select(vec!["1", "10", "2", "02", "2.50", "2.5", "", "NA"]);
    let text_key = prop_oneof![
        Just("a"),
        Just("b"),
        Just(""),
        Just("NA"),
        Just("a,b"),
        Just("x\ny"),
        Just("\"q\""),
        Just("ü"),
        Just(" a")
    ];
    let numbers = prop::array::uniform2(any::<bool>());
    let keys = move |are_numbers: [bool; 2]| {
        are_numbers.map(|is_number| match is_number {
            true => number_key.clone().boxed(),
            false => text_key.clone().boxed(),
        })
    };
    numbers.prop_flat_map(move |are_numbers| tables_of(keys(are_numbers)))
}

fn tables_of(
    [one, two]: [BoxedStrategy<&'static str>; 2],
) -> impl Strategy<Value = (Vec<Row>, Style)> {
    let number = prop_oneof![
        3 => "-?[0-9]{1,4}(\\.[0-9]{1,3})?",
        1 => "[+-]?[0-9]{30,38}",
        1 => "-?0\\.[0-9]{30,38}",
        1 => " ?[0-9]{1,20}\\.[0-9]{1,18} ?",
        1 => Just(String::new()),
        1 => Just("NA".to_string()),
    ];
    let word = prop_oneof![3 => "[ab,\"\r\n ]{0,6}", 1 => Just("NA".to_string())];
    let row = (one, two, number, word).prop_map(|(one, two, number, word)| {
        let fields: [&str; 4] = [one, two, &number, &word];
        fields.map(|field| field.as_bytes().to_vec()).to_vec()
    });
    let bools = || prop::collection::vec(prop::bool::weighted(0.2), 1..20);
    let style = (any::<[bool; 3]>(), bools(), bools()).prop_map(
        |([marked, carriage, last_end], quotes, empty)| Style {
            marked,
            carriage,
            last_end,
            quotes,
            empty,
        },
    );
    (prop::collection::vec(row, 0..120), style)
}

#[test]
fn random_tables_in_every_engine() {
    let dir = dir();
    let mut runner = TestRunner::new(Cases {
        cases: drawn(5, 12),
        failure_persistence: None,
        ..Cases::default()
    });
    let query = everything();
    let tested = runner.run(
        &(tables(), tables()),
        |((first, style), (second, other))| {
            let paths = [
                write(dir.path(), "first.csv", &text(&first, &style)),
                write(dir.path(), "second.csv", &text(&second, &other)),
            ];
            let want = reference(&[first, second].concat());
            for (way, config) in ways_in_small_blocks() {
                let input = Input::open(&paths).unwrap();
                let got = answer(&query, &input, &config).unwrap();
                let (block, threads) = (config.block_size, config.threads);
                prop_assert_eq!(&got, &want, "{:?} {:?} {:?}", way, block, threads);
            }
            Ok(())
        },
    );
    tested.unwrap();
}

#[test]
fn pipes() {
    let dir = dir();
    let mut rows = Vec::new();
    for n in 0..30_000_u32 {
        let fields = [
            format!("k{}", n % 7),
            "x\ny".into(),
            format!("{}.{}", n, n % 10),
            n.to_string(),
        ];
        rows.push(fields.map(String::into_bytes).to_vec());
    }
    let style = Style {
        marked: true,
        carriage: true,
        last_end: false,
        quotes: vec![false],
        empty: vec![false, true],
    };
    let bytes = text(&rows, &style);
    let want = reference(&rows);
    let empty = write(dir.path(), "empty", b"");
    for engine in Engine::ALL {
        for (threads, block) in [(1, 64), (4, 4096)] {
            // A pipe that ends at once, then one with records: the header is the second one's.
            let name = |part: &str| format!("{part}{}{threads}", engine.name());
            let paths = [
                fifo(dir.path(), &name("none")),
                empty.clone(),
                fifo(dir.path(), &name("rows")),
            ];
            let (to, text) = (paths.clone(), bytes.clone());
            let writer = std::thread::spawn(move || {
                std::fs::write(&to[0], b"").unwrap();
                std::fs::write(&to[2], text).unwrap();
            });
            let config = Config {
                engine,
                threads: Some(threads),
                block_size: Some(block),
                ..Config::default()
            };
            let input = Input::open(&paths).unwrap();
            let got = answer(&everything(), &input, &config).unwrap();
            assert!(got == want, "{engine} {threads}");
            writer.join().unwrap();
        }
    }
}

/// What is malformed, its bytes, its line and words of the error.
const MALFORMED: [(&str, std::ops::Range<u64>, u64, &str); 7] = [
    (
        "k,v\na,1\nb\nc,3\n",
        8..9,
        3,
        "1 field where the header has 2",
    ),
    (
        "k,v\r\na,1,\r\n",
        5..9,
        2,
        "3 fields where the header has 2",
    ),
    (
        "k,v\n\n\"a\nb\",x\n",
        5..12,
        3,
        "`x` is not a number (column `v`)",
    ),
    (
        "k,v\na,1\nb,\"2\"0\nc,3\n",
        10..14,
        3,
        "closed, and the field goes on",
    ),
    ("k,v\na,1\nb,\"2\nc,3\n", 10..12, 3, "never closed"),
    ("k,v\na,1e3e\n", 4..10, 2, "`1e3e` is not a number"),
    (
        "k,v\n\"k\"\"\",100000000000000000000000000000000000000\n",
        4..49,
        2,
        "more than 38 digits",
    ),
];

fn sums() -> Query {
    Query::new(b',')
        .quote(Some(b'"'))
        .header(true)
        .key("k")
        .aggregate("sum", Some("v".into()))
        .unwrap()
}

#[test]
fn the_lowest_malformed_record_is_told_in_every_engine() {
    let dir = dir();
    for (text, bytes, line, words) in MALFORMED {
        let path = write(dir.path(), "bad.csv", text.as_bytes());
        for way in cached_ways() {
            for block in [1, 5, 4096] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(3),
                    ..way.config()
                };
                let input = Input::open([&path]).unwrap();
                let error = answer(&sums(), &input, &config).unwrap_err();
                assert_eq!(error.kind(), Kind::Data, "{error}");
                assert_eq!(error.bytes(), Some(bytes.clone()), "{error}");
                assert_eq!(error.line(), Some(line), "{error}");
                assert_eq!(error.file(), Some(str(&path)));
                assert!(error.to_string().contains(words), "{error}");
            }
        }
    }
}

/// A quote that nobody closes costs its own line.
#[test]
fn a_lone_quote_costs_one_record() {
    let dir = dir();
    let mut text = b"k,v\n".to_vec();
    for n in 0..20_000 {
        let lone = if n % 1000 == 7 { "\"" } else { "" };
        text.extend(format!("a,{lone}{}\n", n % 10).bytes());
    }
    let path = write(dir.path(), "lone.csv", &text);
    let query = sums().on_error(OnError::Skip);
    for way in cached_ways() {
        for block in [100, 4096] {
            let config = Config {
                block_size: Some(block),
                threads: Some(3),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let plan = query.plan(&input, &config).unwrap();
            let (answer, _) = fold(&input, &config, &plan).unwrap();
            assert_eq!(
                (answer.rows, answer.skipped),
                (19_980, 20),
                "{way:?} {block}"
            );
            let first = answer.first_skipped.unwrap().bytes;
            assert_eq!(first, 34..36, "{way:?} {block}");
        }
    }
}

/// The answer of the program over files of a directory.
pub(crate) fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

pub(crate) fn refused(dir: &Path, args: &[&str], code: i32) -> String {
    end(ringfold(["aggregate"]).args(args).current_dir(dir)).failure(code)
}

#[test]
fn what_the_program_prints() {
    let dir = dir();
    let orders = b"city,price,note\nBern,1.50,\"a, b\"\nOslo,20,\nBern,2.25,z\nBern,,\n";
    write(dir.path(), "orders.csv", orders);
    write(dir.path(), "plain.tsv", b"a\t1\nb\t2\na\t-3\n");
    write(dir.path(), "empty.csv", b"");
    for (args, want) in [
        (
            &["-H", "-k", "city", "orders.csv"][..],
            "city,count\nBern,3\nOslo,1\n",
        ),
        (
            &[
                "-H",
                "-k",
                "city",
                "-a",
                "sum:price,mean:price,count:price",
                "orders.csv",
            ],
            "city,sum_price,mean_price,count_price\nBern,3.75,1.8750,2\nOslo,20.00,20.0000,1\n",
        ),
        (
            &["-H", "-a", "first:note", "-a", "max:2", "orders.csv"],
            "first_note,max_price\n\"a, b\",20.00\n",
        ),
        (
            &["-k", "1", "-a", "sum:2,stddev:2", "plain.tsv"],
            "key1,sum_2,stddev_2\na,-2,2.828427\nb,2,\n",
        ),
        (&["-a", "count,sum:2", "empty.csv"], "count,sum_2\n0,\n"),
        (&["-k", "1", "empty.csv"], "key1,count\n"),
        (
            &[
                "-H",
                "-k",
                "note",
                "-a",
                "sum:price",
                "-f",
                "json",
                "orders.csv",
            ],
            "[\n{\"note\":\"\",\"sum_price\":20.00},\n{\"note\":\"a, b\",\"sum_price\":1.50},\n{\"note\":\"z\",\"sum_price\":2.25}\n]\n",
        ),
        (
            &["-k", "1", "--sort", "count:desc", "--top", "1", "plain.tsv"],
            "key1,count\na,2\n",
        ),
        (
            &["-k", "1", "-a", "sum:2", "--sort", "sum_2", "plain.tsv"],
            "key1,sum_2\na,-2\nb,2\n",
        ),
        (
            &["-k", "1-2", "--null-value", "a", "plain.tsv"],
            "key1,key2,count\n\"\",-3,1\n\"\",1,1\nb,2,1\n",
        ),
        (
            &[
                "-k",
                "2",
                "-d",
                ",",
                "--quote",
                "none",
                "orders.csv",
                "--on-error",
                "fail",
                "--top",
                "0",
            ],
            "",
        ),
    ] {
        if want.is_empty() {
            let error = refused(dir.path(), args, 1);
            assert_eq!(
                error,
                "orders.csv: byte 16-32 (line 2): 4 fields where the first record has 3: `--quote '\"'` reads fields in quotes"
            );
            continue;
        }
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
}

#[test]
fn what_is_refused() {
    let dir = dir();
    write(dir.path(), "a.csv", b"city,price\nBern,1\n");
    write(dir.path(), "b.csv", b"city,prize\nBern,1\n");
    write(dir.path(), "rows", b"a;1\n");
    write(dir.path(), "lines", b"a\n");
    write(dir.path(), "na.csv", b"k,v\na,1\na,NA\n");
    write(dir.path(), "e.csv", b"a,1e300\n");
    write(dir.path(), "quoted.txt", b"k,v\n\"a\",\"1\"\nb,2\n");
    write(dir.path(), "late", b"k,v\na,1\n\"b, c\",2\n");
    write(dir.path(), "commas", b"k,v\n\"a, b\",1\n");
    write(dir.path(), "mac.csv", b"k,v\ra,1\ra,2\r");
    write(dir.path(), "mac", b"a;1\ra;2\r");
    write(
        dir.path(),
        "wide.csv",
        b"\xff\xfek\0,\0v\0\n\0a\0,\x001\0\n\0",
    );
    write(dir.path(), "p.parquet", b"PAR1\x15\x04\x15\x10PAR1");
    let mac = "the lines end with a carriage return alone: try `tr '\\r' '\\n' <mac";
    for (args, code, words) in [
        (
            &["-H", "-k", "town", "a.csv"][..],
            2,
            "the header has: city, price",
        ),
        (&["-H", "-k", "ctiy", "a.csv"], 2, "did you mean `city`?"),
        (
            &["-k", "city", "--no-header", "a.csv"],
            2,
            "`city` is a name",
        ),
        (
            &["-k", "1", "-a", "sum:2", "na.csv"],
            1,
            "`v` is not a number (column 2): `-H` takes the first line for the names of the columns",
        ),
        (
            &["-k", "3", "a.csv"],
            2,
            "there is no column 3: the first record has 2 fields",
        ),
        (
            &["-a", "meen:1", "a.csv"],
            2,
            "there is no aggregate `meen`",
        ),
        (&["-a", "sum", "a.csv"], 2, "`sum` needs a column"),
        (&["-a", "p99", "a.csv"], 2, "`p99` needs a column"),
        (&["-k", "1", "lines"], 2, "-d"),
        (&["-k", "1", "-f", "lines", "a.csv"], 2, "min, mean and max"),
        (&["-k", "1", "--sort", "sum", "a.csv"], 2, "`sum`"),
        (
            &["-H", "-k", "1", "a.csv", "b.csv"],
            1,
            "b.csv: byte 0-10 (line 1): the header isn't that of a.csv: column 2 is `prize` here and `price` there",
        ),
        (
            &["-H", "-a", "sum:city", "--on-error", "skip", "a.csv"],
            1,
            "`Bern` is not a number (column `city`) (the only record, skipped)",
        ),
        (
            &["-H", "-a", "sum:v", "na.csv"],
            1,
            "`NA` is not a number (column `v`): `--null-value 'NA'` takes it for no value",
        ),
        (
            &["-a", "sum:2", "e.csv"],
            1,
            "`1e300` has more than 38 digits, which is the limit (column 2): `--float` reads larger exponents, inf and nan",
        ),
        (
            &["-H", "-a", "sum:v", "--quote", "none", "quoted.txt"],
            1,
            "byte 4-11 (line 2): `\"1\"` is not a number (column `v`): `--quote '\"'` reads fields in quotes",
        ),
        (
            &["-d", ",", "-H", "-k", "k", "--quote", "none", "late"],
            1,
            "byte 8-16 (line 3): 3 fields where the header has 2: `--quote '\"'` reads fields in quotes",
        ),
        (
            &["-k", "1", "--quote", "none", "commas"],
            2,
            "unless they are quoted: `--quote '\"'` reads fields in quotes",
        ),
        (&["-H", "-k", "k", "mac.csv"], 1, mac),
        (&["mac"], 1, mac),
        (&["-H", "-k", "k", "wide.csv"], 1, "iconv"),
        (
            &["-H", "-k", "k", "p.parquet"],
            1,
            "this is how a Parquet file begins",
        ),
    ] {
        let error = refused(dir.path(), args, code);
        assert!(error.contains(words), "{args:?}: {error}");
    }
}

/// Quotes that aren't understood as such are told, unless that is asked for.
#[test]
fn quotes_that_are_bytes_are_told() {
    let dir = dir();
    let path = write(dir.path(), "orders.tsv", b"k\tv\n\"a\"b\t1\na\t\"x\"\n");
    for (flags, notices) in [
        (&["-k", "1"][..], 1),
        (&["-k", "2"], 1),
        (&["-a", "lexmax:2"], 1),
        (&["-k", "1", "--quote", "none"], 0),
        (&["-k", "1", "--quiet"], 0),
    ] {
        let ended = end(ringfold(["aggregate", "-H"]).args(flags).arg(&path));
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(
            (ended.code, lines.len()),
            (Some(0), notices),
            "{flags:?}: {lines:?}"
        );
        assert!(
            lines.iter().all(|line| line.contains("--quote '\"'")),
            "{lines:?}"
        );
    }
}

/// A record over the limit is told in the same way where the query looks for the first record.
#[test]
fn a_first_record_over_the_limit() {
    let dir = dir();
    let path = write(dir.path(), "long.csv", &b"x".repeat(200_000));
    for file in [str(&path), "/dev/stdin"] {
        let mut command = ringfold(["aggregate", "-k1", "-d,", "--max-record", "100000", file]);
        command.stdin(std::fs::File::open(&path).unwrap());
        let error = end(&mut command).failure(1);
        assert!(error.contains("byte 0-100000"), "{error}");
        assert!(error.contains("--max-record"), "{error}");
    }
}

/// The words of a command line: blanks and both kinds of quotes, without what a shell expands.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in line.chars() {
        match (letter, quote) {
            (' ', None) => words.push(String::new()),
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('$' | '\\' | '`', Some('"') | None) => panic!("a shell would expand {line}"),
            (letter, _) => words.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(quote, None, "{line}");
    words
}

/// The commands of docs/query.md give what stands there.
#[test]
fn the_page_is_true() {
    assert!(commands_of("query.md", dir().path()) >= 3);
}

#[test]
fn the_page_of_descriptions_is_true() {
    assert!(commands_of("describe.md", dir().path()) >= 2);
}

/// So do those of docs/cookbook.md, over the files beside it.
#[test]
fn the_cookbook_is_true() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cookbook");
    assert!(commands_of("cookbook.md", &files) >= 20);
}

/// Runs the commands of a page in a directory, compares what they print, and returns how many they are.
fn commands_of(page: &str, dir: &Path) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let mut commands = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let (line, want) = command.split_once('\n').unwrap();
            let want = format!("{}\n", want.trim_end_matches('\n'));
            if let Some(name) = line.strip_prefix("cat ") {
                match std::fs::read_to_string(dir.join(name)) {
                    Ok(written) => assert_eq!(written, want, "{name}"),
                    Err(_) => drop(write(dir, name, want.as_bytes())),
                }
                continue;
            }
            let line = line.strip_prefix("ringfold ").unwrap();
            let (line, last) = match line.split_once(" | tail -") {
                Some((line, last)) => (line, last.parse().unwrap()),
                None => (line, usize::MAX),
            };
            let mut command = ringfold(words(line));
            command.current_dir(dir);
            let (out, said) = end(&mut command).answer_and_notices();
            let got = String::from_utf8(out).unwrap() + &said;
            let lines: Vec<&str> = got.split_inclusive('\n').collect();
            let got = lines[lines.len().saturating_sub(last)..].concat();
            assert_eq!(got, want, "{line}");
            commands += 1;
        }
    }
    commands
}

/// Each column of a key and each aggregate takes memory in every group: there is a most of both.
#[test]
fn columns_have_a_limit() {
    let dir = dir();
    let numbers: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
    let path = write(dir.path(), "f", numbers.join(",").as_bytes());
    for (flags, says) in [
        (
            &["-k1-1001"][..],
            "1001 columns of the key are more than 1000",
        ),
        (
            &["-k1", "-asum:1-4001"],
            "4001 aggregates are more than 4000",
        ),
    ] {
        let error = end(ringfold(["aggregate", "-d,"]).args(flags).arg(&path)).failure(2);
        assert!(error.contains(says), "{error}");
    }
    for flags in [&["-k1-1000"][..], &["-k1", "-asum:1-4000"]] {
        end(ringfold(["aggregate", "-d,"]).args(flags).arg(&path)).answer();
    }
}
