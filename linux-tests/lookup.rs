//! A table beside the input, against files in which a naive join has written its columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ringfold::query::{OnError, Query, Sort};
use ringfold::{Config, Input, fold};

use crate::compressed::gzip;
use crate::support::{Ended, Random, csv, dir, end, ringfold, ways_in_small_blocks, write};

/// A record: a key and a number.
type Record = (String, String);
/// A row of the table: text, rate, day.
type Row = [String; 3];

/// Keys of many lengths, also such as must be quoted.
fn key(random: &mut Random, at: u64) -> String {
    let length = [1, 3, 8, 16, 17, 31, 33, 64, 300][random.below(9) as usize];
    let mut key = format!("{at}");
    while key.len() < length {
        key.push_str(random.one_of(&["x", "yz", ",", "\"", "é", "K", " "]));
    }
    key
}

fn rows(random: &mut Random, count: u64, has_bad: bool) -> BTreeMap<String, Row> {
    let bad: &[&str] = if has_bad {
        &["free", "1.2.3", "-"]
    } else {
        &["4"]
    };
    let keys: Vec<String> = (0..count).map(|at| key(random, at)).collect();
    let row = |random: &mut Random| {
        let text = random.one_of(&["a", "Bern", "", "NA", "a, \"b\"", "ZÜRICH", "1.5"]);
        let rate = random.one_of(&["1", "2.50", "-0.125", "", "NA", "17", "0.001", bad[0], "3"]);
        let rate = if rate == bad[0] {
            random.one_of(bad)
        } else {
            rate
        };
        let day = random.one_of(&["2001-02-03", "1999-12-31 10:00", "", "2004-05-06T01:02:03"]);
        [text, rate, day].map(String::from)
    };
    keys.into_iter().map(|key| (key, row(random))).collect()
}

fn records(random: &mut Random, table: &BTreeMap<String, Row>, count: u64) -> Vec<Record> {
    let keys: Vec<&String> = table.keys().collect();
    let record = |random: &mut Random| {
        let key = match random.below(10) {
            0 => String::new(),
            1 => "NA".into(),
            2 => format!("{}?", random.below(20)),
            _ if keys.is_empty() => "k".into(),
            // Few of them are frequent.
            3..6 => keys[random.below(keys.len().min(5) as u64) as usize].clone(),
            _ => keys[random.below(keys.len() as u64) as usize].clone(),
        };
        let value = random.one_of(&["1", "20.5", "-3", "", "0.25", "1000"]);
        (key, value.to_string())
    };
    (0..count).map(|_| record(random)).collect()
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Csv,
    Tsv,
    Json,
}

impl Form {
    fn write(self, names: &[&str], all: impl Iterator<Item = Vec<String>>) -> String {
        let mut text = String::new();
        let between = if self == Form::Tsv { "\t" } else { "," };
        if self != Form::Json {
            text = names.join(between) + "\n";
        }
        for values in all {
            match self {
                Form::Json => {
                    let pairs = names
                        .iter()
                        .zip(&values)
                        .filter(|(_, value)| !value.is_empty());
                    let pairs: Vec<String> = pairs
                        .map(|(name, value)| {
                            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                            format!("\"{name}\":\"{value}\"")
                        })
                        .collect();
                    let _ = writeln!(text, "{{{}}}", pairs.join(","));
                }
                _ => {
                    let field = |value: &String| match value.contains([',', '"']) {
                        true => format!("\"{}\"", value.replace('"', "\"\"")),
                        false => value.clone(),
                    };
                    let fields: Vec<String> = values.iter().map(field).collect();
                    text += &(fields.join(between) + "\n");
                }
            }
        }
        text
    }

    fn query(self) -> Query {
        match self {
            Form::Csv => Query::new(b','),
            Form::Tsv => Query::new(b'\t').quote(Some(b'"')),
            Form::Json => Query::json_lines(),
        }
    }
}

/// Keys, aggregates and a condition.
type Asked = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);
const QUERIES: &[Asked] = &[
    (&["text"], &["count", "sum:value"], ""),
    (
        &["key"],
        &["sum(value * rate)", "min:rate", "max:rate", "mean:rate"],
        "",
    ),
    (
        &["upper(text) as t"],
        &["count", "distinct:text", "mode:text"],
        "rate > 0",
    ),
    (
        &[],
        &[
            "sum(value * rate)",
            "count:rate",
            "distinct:rate",
            "median:rate",
        ],
        "text = 'a' or rate > 1",
    ),
    (
        &["day@month"],
        &["min:day@time", "max:day@time", "count:text"],
        "",
    ),
    (
        &["text"],
        &["count"],
        "day >= '2000-01-01' and value < rate",
    ),
    (
        &[],
        &["sum(if(text = 'a', rate, value))", "count_if(rate is null)"],
        "text is not null",
    ),
    (
        &["coalesce(text, key) as x"],
        &["sum(rate) filter (where value > rate)"],
        "",
    ),
    (
        &["text", "rate"],
        &["first:day", "last:text", "stddev:rate"],
        "text != 'Bern'",
    ),
    (
        &["bin(rate, 2) as b"],
        &["sum(rate + value)", "lexmax:text"],
        "length(text) > 1 or rate * 2 > value",
    ),
    (
        &["text"],
        &[
            "arg_max(day, value)",
            "weighted_mean(rate, value)",
            "distinct(text, rate)",
        ],
        "",
    ),
    (
        &["text || rate as both"],
        &["sum(rate) / count()"],
        "not (rate > 2)",
    ),
];

fn asked(query: Query, (keys, aggregates, filter): Asked) -> Query {
    let query = keys
        .iter()
        .try_fold(query, |query, key| query.key_text(key));
    let query = aggregates
        .iter()
        .try_fold(query.unwrap(), |query, item| query.aggregate_text(item));
    match filter {
        "" => query.unwrap(),
        filter => query.unwrap().filter(filter).unwrap(),
    }
}

#[test]
fn a_table_beside_the_input_is_the_joined_file() {
    let dir = dir();
    let ways: Vec<Config> = ways_in_small_blocks().map(|(_, config)| config).collect();
    let random = &mut Random(50);
    for round in 0..28 {
        let count = [0, 1, 10, 300, 10_000][round % 5];
        let has_bad = random.below(2) == 0;
        let table = rows(random, count, has_bad);
        let records = records(random, &table, [3, 200, 800][round % 3]);
        let form = [Form::Csv, Form::Csv, Form::Json, Form::Tsv][round % 4];
        // Of JSON lines a few rows may lack a column.
        let table_form = match count {
            300.. => [Form::Csv, Form::Json, Form::Tsv][round % 3],
            _ => Form::Csv,
        };
        let null = Row::default();
        let of = |key: &String| match (&**key, table.get(key)) {
            ("NA" | "", _) | (_, None) => &null,
            (_, Some(row)) => row,
        };
        let plain = records
            .iter()
            .map(|(key, value)| vec![key.clone(), value.clone()]);
        let plain = form.write(&["key", "value"], plain);
        let joined = records.iter().map(|(key, value)| {
            let row = of(key).iter().cloned();
            [key, value].into_iter().cloned().chain(row).collect()
        });
        let joined = form.write(&["key", "value", "text", "rate", "day"], joined);
        let of_table = table.iter().map(|(key, row)| {
            let row = row.iter().cloned();
            std::iter::once(key.clone()).chain(row).collect()
        });
        let of_table = table_form.write(&["id", "text", "rate", "day"], of_table);
        let beside = Input::memory([of_table.into_bytes()]);
        let [plain, joined] = [("plain", plain), ("joined", joined)]
            .map(|(name, text)| write(dir.path(), name, text.as_bytes()));
        let base = form.query().null_value("NA");
        let base = match round % 7 {
            6 => base.memory(1 << 16).spill_directory(dir.path()),
            _ => base,
        };
        let with_table = base
            .clone()
            .lookup("t", &beside, &table_form.query(), "key=id");
        let with_table = with_table.unwrap();
        for at in 0..QUERIES.len() {
            let on_error = match has_bad {
                true => [OnError::Skip, OnError::Null][(round + at) % 2],
                false => OnError::Fail,
            };
            let run = |query: Query, path: &Path, config: &Config| {
                let input = Input::open([path]).unwrap();
                let plan = asked(query, QUERIES[at]).plan(&input, config).unwrap();
                let (mut answer, _) = fold(&input, config, &plan).unwrap();
                answer.sort(&Sort::Key, None).unwrap();
                let counts = [answer.rows, answer.filtered, answer.skipped, answer.nulled];
                let unmatched = answer.unmatched.first();
                let unmatched = unmatched.map(|(count, first)| {
                    let first = first.as_ref();
                    let first = first.map(|first| (first.bytes.start, first.cause.to_string()));
                    (*count, first)
                });
                (counts, csv(&answer), unmatched)
            };
            let (counts, answer, _) =
                run(base.clone().on_error(on_error), &joined, &Config::default());
            let with_table = with_table.clone().on_error(on_error);
            let one_by_one = run(with_table.clone().level(None), &plain, &Config::default());
            let what = format!("{round} {form:?} {table_form:?} {count} {:?}", QUERIES[at]);
            assert_eq!((&one_by_one.0, &one_by_one.1), (&counts, &answer), "{what}");
            if QUERIES[at].2.is_empty() && on_error == OnError::Fail {
                let is_unmatched =
                    |key: &str| !["", "NA"].contains(&key) && !table.contains_key(key);
                let unmatched = records.iter().filter(|(key, _)| is_unmatched(key)).count();
                assert_eq!(one_by_one.2.as_ref().unwrap().0, unmatched as u64, "{what}");
            }
            for _ in 0..2 {
                let config = &ways[random.below(ways.len() as u64) as usize];
                assert_eq!(
                    run(with_table.clone(), &plain, config),
                    one_by_one,
                    "{what} {config:?}"
                );
            }
        }
    }
}

const FLIGHTS: &[u8] = b"year,tailnum,miles\n\
    2013,N1,100\n\
    2013,N2,200.5\n\
    2013,N9,10\n\
    2013,,5\n\
    2014,N1,1\n";
const PLANES: &[u8] = b"tailnum,year,maker,rate\n\
    N1,1999,Airbus,1.25\n\
    N2,2004,Boeing,free\n\
    ,1990,Nobody,1\n\
    ,1991,Nobody,1\n";

fn aggregate(dir: &Path, args: &[&str]) -> Ended {
    end(ringfold(["aggregate"]).current_dir(dir).args(args))
}

#[test]
fn what_a_table_is_asked_and_what_is_said() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "flights.csv", FLIGHTS);
    write(dir, "planes.csv", PLANES);
    write(dir, "planes.csv.gz", &gzip(PLANES));
    write(
        dir,
        "twice.csv",
        b"tailnum,x\nN1,1\n\"N\n2\",1\nN3,1\nN1,2\n",
    );
    write(dir, "short.csv", b"tailnum,x\nN1\n");
    write(dir, "same.csv", b"tailnum,x,x\nN1,1,2\n");
    write(dir, "none.csv", b"");
    write(
        dir,
        "makers.json",
        b"{\"maker\":\"Airbus\",\"seat\":{\"of\":\"EU\"}}\n{\"maker\":\"Boeing\"}\n",
    );
    let unmatched = "ringfold: 1 record without a match, the first at flights.csv byte 45 line 4: `N9` isn't in ";
    let planes = ["--lookup", "planes.csv", "--on", "tailnum"];
    for (args, want, said) in [
        (
            &["-k", "maker"][..],
            "maker,count\n\"\",2\nAirbus,2\nBoeing,1\n",
            "planes.csv\n",
        ),
        (
            &["-k", "planes.maker", "--where", "maker is not null"],
            "planes.maker,count\nAirbus,2\nBoeing,1\n",
            "planes.csv\n",
        ),
        (&["-a", "sum(miles)"], "sum_miles\n316.5\n", ""),
    ] {
        let got = aggregate(dir, &[&planes[..], args, &["flights.csv"]].concat());
        let (answer, notices) = got.answer_and_notices();
        assert_eq!(String::from_utf8(answer).unwrap(), want, "{args:?}");
        let said = if said.is_empty() {
            String::new()
        } else {
            format!("{unmatched}{said}")
        };
        assert_eq!(notices, said, "{args:?}");
    }
    let shadowed = [
        "-k",
        "year,planes.year",
        "--where",
        "planes.year > 2000",
        "flights.csv",
    ];
    let (answer, notices) = aggregate(dir, &[&planes[..], &shadowed].concat()).answer_and_notices();
    assert_eq!(answer, b"year,planes.year,count\n2013,2004,1\n");
    let notice = "ringfold: notice: `year` is taken for the input's column: that of the table is called planes.year\n";
    assert_eq!(notices, format!("{notice}{unmatched}planes.csv\n"));
    // Several tables, of which one has its key in another, and one file twice.
    let chain = [
        "--lookup",
        "planes.csv.gz",
        "--on",
        "tailnum",
        "--lookup",
        "maker=makers.json",
        "--on",
        "maker",
        "--lookup",
        "again=planes.csv",
        "--on",
        "lower(tailnum)=year",
        "-k",
        "seat.of,again.rate",
        "-q",
        "flights.csv",
    ];
    let (answer, notices) = aggregate(dir, &chain).answer_and_notices();
    assert_eq!(
        answer,
        b"seat.of,again.rate,count\n\"\",\"\",3\nEU,\"\",2\n"
    );
    assert!(
        notices.starts_with(&format!("{unmatched}planes.csv.gz\n")),
        "{notices}"
    );
    assert!(notices.contains("4 records without a match, the first at flights.csv byte 19 line 2: `n1` isn't in planes.csv\n"), "{notices}");
    // Keys of two columns, of which one is null; a number of the input, which has no header then.
    write(dir, "two.csv", b"y,m,name\n2013,N1,x\n,N2,z\n2014,N1,w\n");
    let two = |on| {
        [
            "--lookup",
            "two.csv",
            "-q",
            "-k",
            "name",
            "flights.csv",
            "--on",
            on,
        ]
    };
    for (on, empty) in [("year=y,tailnum=m", 3), ("1=y,2=m", 4)] {
        let answer = aggregate(dir, &two(on)).answer_and_notices().0;
        let want = format!("name,count\n\"\",{empty}\nw,1\nx,1\n");
        assert_eq!(String::from_utf8(answer).unwrap(), want, "{on}");
    }
    for (lookup, on, args, code, why) in [
        (
            "planes.csv",
            "tail",
            &["-k", "maker"][..],
            2,
            "planes.csv: no column is called `tail`; it has: tailnum, year, maker, rate",
        ),
        (
            "planes.csv",
            "tail=tailnum",
            &["-k", "maker"],
            2,
            "no column is called `tail`; the header has: year, tailnum, miles",
        ),
        (
            "planes.csv",
            "tailnum",
            &["-k", "make"],
            2,
            "no column is called `make`; the header has: year, tailnum, miles; planes has: tailnum, year, maker, rate",
        ),
        (
            "planes.csv",
            "tailnum",
            &["-a", "sum:rate"],
            1,
            "flights.csv: byte 31-44 (line 3): `free` is not a number, in line 3 (column `rate` of planes.csv)",
        ),
        (
            "planes.csv",
            "tailnum",
            &["-a", "sum(rate * miles)"],
            1,
            "`free` is not a number, in line 3 (column `rate` of planes.csv)",
        ),
        (
            "twice.csv",
            "tailnum",
            &["-k", "x"],
            1,
            "twice.csv: byte 28-32 (line 6): lines 2 and 6 have the same key, `N1`: a record would match both",
        ),
        (
            "short.csv",
            "tailnum",
            &["-k", "x"],
            1,
            "short.csv: byte 10-12 (line 2): 1 field where the header has 2",
        ),
        (
            "same.csv",
            "tailnum",
            &["-k", "x"],
            1,
            "same.csv: columns 2 and 3 are both called `x`: give one of them another name",
        ),
        (
            "none.csv",
            "tailnum",
            &["-k", "x"],
            1,
            "none.csv: there is no record in it",
        ),
        ("no.csv", "tailnum", &["-k", "x"], 1, "no.csv: No such file"),
        (
            ".",
            "tailnum",
            &["-k", "x"],
            1,
            ".: Is a directory [EISDIR]",
        ),
        (
            "-",
            "tailnum",
            &["-k", "x", "-"],
            2,
            "standard input is the input, and can't be the table",
        ),
    ] {
        let own = if args.contains(&"-") {
            None
        } else {
            Some("flights.csv")
        };
        let all = [&["--lookup", lookup, "--on", on], args].concat();
        let all: Vec<&str> = all.into_iter().chain(own).collect();
        let failure = aggregate(dir, &all).failure(code);
        assert!(failure.contains(why), "{failure}\n{why}");
        assert!(!failure.contains("find "), "{failure}");
    }
    let twice = [&planes[..], &planes, &["-k", "maker", "flights.csv"]].concat();
    assert!(
        aggregate(dir, &twice)
            .failure(2)
            .contains("two tables are called `planes`")
    );
    let both = [
        &planes[..],
        &[
            "--lookup",
            "p=planes.csv",
            "--on",
            "tailnum",
            "-k",
            "maker",
            "flights.csv",
        ],
    ]
    .concat();
    let failure = aggregate(dir, &both).failure(2);
    assert!(
        failure.contains("several tables have `maker`: say `planes.maker` or `p.maker`"),
        "{failure}"
    );
    let uneven = [
        "--lookup",
        "planes.csv",
        "--lookup",
        "twice.csv",
        "--on",
        "tailnum",
        "-k",
        "maker",
        "flights.csv",
    ];
    assert!(
        aggregate(dir, &uneven)
            .failure(2)
            .contains("--lookup is given 2 times and --on 1 times")
    );
    assert!(
        aggregate(dir, &[&planes[..], &["flights.csv"]].concat())
            .failure(2)
            .contains("--lookup needs columns")
    );
    let onto = [
        &planes[..],
        &["-k", "maker", "-o", "planes.csv", "flights.csv"],
    ]
    .concat();
    assert!(
        aggregate(dir, &onto)
            .failure(2)
            .contains("planes.csv is the input and the output")
    );
}

/// A partial says which table it was made with, and no other is merged with it.
#[test]
fn partials_know_their_tables() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "flights.csv", FLIGHTS);
    write(dir, "planes.csv", PLANES);
    let asked = [
        "--lookup",
        "planes.csv",
        "--on",
        "tailnum",
        "-q",
        "-k",
        "maker",
        "-a",
        "count,sum(miles * year)",
    ];
    let whole = aggregate(dir, &[&asked[..], &["flights.csv"]].concat())
        .answer_and_notices()
        .0;
    let saved = |part: &str, to: &str| {
        let args = [
            "--single-line",
            "--range",
            part,
            "--save-partial",
            to,
            "flights.csv",
        ];
        aggregate(dir, &[&asked[..], &args].concat()).answer_and_notices();
    };
    saved("1/2", "one");
    saved("2/2", "two");
    let merged = end(ringfold(["merge", "one", "two"]).current_dir(dir)).answer();
    assert_eq!(merged, whole);
    let continued = [&asked[..], &["--continue", "kept", "flights.csv"]].concat();
    aggregate(dir, &continued).answer_and_notices();
    let kept = end(ringfold(["merge", "kept"]).current_dir(dir));
    assert_eq!(kept.answer(), whole);
    // A row more, though no record has its key.
    write(dir, "planes.csv", &[PLANES, b"N7,2000,Cessna,1\n"].concat());
    saved("2/2", "other");
    let failure = end(ringfold(["merge", "one", "other"]).current_dir(dir)).failure(1);
    assert!(failure.contains("lookup"), "{failure}");
    write(dir, "more.csv", b"year,tailnum,miles\n2015,N1,1\n");
    let continued = [&asked[..], &["--continue", "kept", "more.csv"]].concat();
    let failure = aggregate(dir, &continued).failure(1);
    assert!(failure.contains("lookup"), "{failure}");
}
