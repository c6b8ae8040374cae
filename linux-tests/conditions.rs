//! Conditions on records and on rows of the answer.

use std::collections::BTreeMap;
use std::path::Path;

use ringfold::query::{FILTER, Query, Refusal};
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Input, Kind, fold};
use serde_json::Value;

use crate::digits::means;
use crate::support::{WAYS, dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

/// What a run that is refused says, all lines.
fn refused(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert_eq!((ended.code, ended.stdout.len()), (Some(2), 0), "{args:?}");
    ended.stderr
}

/// A key, hundredths or no number, a text.
type Row = (&'static str, Result<i64, &'static str>, &'static str);

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for n in 0..2000_i64 {
        let key = ["a", "b,c", "\"d\"", ""][n as usize % 4];
        let number = match n % 11 {
            0 => Err(""),
            1 => Err("NA"),
            2 => Err("many"),
            _ => Ok(n * 37 % 1000 - 500),
        };
        let text = ["x", "x\ny", "", "\"q\""][n as usize / 4 % 4];
        rows.push((key, number, text));
    }
    rows
}

/// A text as CSV has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

fn csv(rows: &[Row]) -> Vec<u8> {
    let mut csv = "key,number,text\n".to_string();
    for (key, number, text) in rows {
        let number = number.map_or_else(String::from, decimal);
        csv += &format!("{},{number},{}\n", quoted(key), quoted(text));
    }
    csv.into_bytes()
}

type Truth = fn(&Row) -> bool;

/// Conditions, and the same in Rust. None is true of a row whose number is `many`.
const CONDITIONS: [(&str, Truth); 8] = [
    ("number > 1.5", |row| row.1.is_ok_and(|n| n > 150)),
    ("not (number > 1.5)", |row| row.1.is_ok_and(|n| n <= 150)),
    ("number in (0.37, 3.70, -5)", |row| {
        row.1.is_ok_and(|n| [37, 370, -500].contains(&n))
    }),
    ("number is null", |row| {
        row.1.is_err_and(|text| text != "many")
    }),
    ("key = 'b,c' and text ~ '^x\\ny$' and number <> 0", |row| {
        row.0 == "b,c" && row.2 == "x\ny" && row.1.is_ok_and(|n| n != 0)
    }),
    ("(key = '\"d\"' or text = '\"q\"') and $2 <= 4", |row| {
        (row.0 == "\"d\"" || row.2 == "\"q\"") && row.1.is_ok_and(|n| n <= 400)
    }),
    (
        "key is null and (text is null or number < 0) and number !~ 'many'",
        |row| row.0.is_empty() && row.1.is_ok_and(|n| row.2.is_empty() || n < 0),
    ),
    ("key !~ 'a' and number >= 0", |row| {
        !row.0.is_empty() && row.0 != "a" && row.1.is_ok_and(|n| n >= 0)
    }),
];

/// Hundredths as a decimal.
fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let size = hundredths.abs();
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

#[test]
fn filters_in_every_engine() {
    let dir = dir();
    let rows = rows();
    let path = write(dir.path(), "rows.csv", &csv(&rows));
    for (condition, is_true) in CONDITIONS {
        let left: Vec<_> = rows.iter().filter(|row| is_true(row)).collect();
        let mut groups = BTreeMap::<_, (u64, Option<i64>)>::new();
        for (key, number, _) in &left {
            let (count, sum) = groups.entry(*key).or_default();
            *count += 1;
            if let Ok(number) = number {
                *sum = Some(sum.unwrap_or(0) + number);
            }
        }
        assert!(!groups.is_empty() && left.len() < rows.len(), "{condition}");
        let mut want = "key,count,sum_number\n".to_string();
        for (key, (count, sum)) in &groups {
            let key = match key.is_empty() {
                true => "\"\"".into(),
                false => quoted(key),
            };
            want += &format!("{key},{count},{}\n", sum.map_or("".into(), decimal));
        }
        let query = Query::new(b',')
            .quote(Some(b'"'))
            .header(true)
            .null_value("NA")
            .key("key")
            .aggregate("count", None)
            .and_then(|query| query.aggregate("sum", Some("number".into())))
            .and_then(|query| query.filter(condition))
            .unwrap();
        for way in WAYS.iter() {
            for (block, threads) in [(4096, 1), (4096, 4), (8192, 3)] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(threads),
                    ..way.config()
                };
                let input = Input::open([&path]).unwrap();
                let plan = query.plan(&input, &config).unwrap();
                let (answer, _) = fold(&input, &config, &plan).unwrap();
                let mut csv = Vec::new();
                write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
                let got = String::from_utf8(csv).unwrap();
                assert_eq!(got, want, "{way:?} {condition}");
                let counts = (answer.rows, answer.filtered);
                let want = (left.len() as u64, (rows.len() - left.len()) as u64);
                assert_eq!(counts, want, "{way:?} {condition}");
            }
        }
    }
}

/// A record that doesn't pass may hold what would be malformed, but has as many fields as others.
#[test]
fn what_a_filter_forgives() {
    let dir = dir();
    let text = b"k,v\na,1\nb,x\na,2\n";
    write(dir.path(), "a.csv", text);
    let args = [
        "-H", "-k", "k", "-a", "sum:v", "--where", "k = 'a'", "a.csv",
    ];
    assert_eq!(printed(dir.path(), &args), "k,sum_v\na,3\n");
    write(dir.path(), "a.csv", &[text, &b"b\n"[..]].concat());
    let error = end(ringfold(["aggregate"]).args(args).current_dir(dir.path())).failure(1);
    assert_eq!(
        error,
        "a.csv: byte 16-17 (line 5): 1 field where the header has 2"
    );
    let skipping = [&args[..], &["--on-error", "skip", "--stats=json"]].concat();
    let (out, told) = end(ringfold(["aggregate"])
        .args(&skipping)
        .current_dir(dir.path()))
    .answer_and_notices();
    assert_eq!(out, b"k,sum_v\na,3\n");
    let json = told.lines().find(|line| line.starts_with('{')).unwrap();
    let stats: Value = serde_json::from_str(json).unwrap();
    for (name, want) in [("rows", 2), ("filtered", 1), ("skipped", 1), ("keys", 1)] {
        assert_eq!(stats["job"][name], want, "{name}");
    }
    // All sound records are left out by the condition: an empty answer, not an error.
    let none = [
        "-H",
        "-k",
        "k",
        "--where",
        "k = 'c'",
        "--on-error",
        "skip",
        "a.csv",
    ];
    let (out, told) =
        end(ringfold(["aggregate"]).args(none).current_dir(dir.path())).answer_and_notices();
    assert_eq!(
        (&*out, &*told),
        (
            &b"k,count\n"[..],
            "ringfold: 1 record skipped, the first at a.csv byte 16 line 5: 1 field where the header has 2\n"
        )
    );
}

#[test]
fn what_the_program_prints() {
    let dir = dir();
    let orders = b"city,price,note\nBern,1.50,\"a, b\"\nOslo,20,\nBern,2.25,z\nBern,,\nRom,0.5,z\n";
    write(dir.path(), "o.csv", orders);
    write(dir.path(), "plain.tsv", b"a\t1\nb\t2\na\t-3\n");
    write(dir.path(), "empty.csv", b"");
    write(dir.path(), "r.tsv", b"a\t1,5\tx\nb\t2\tx\nc\t3\n");
    write(dir.path(), "head.csv", b"city,price\n");
    for (args, want) in [
        (
            &["-k", "1", "--where", "$2 > -3 and $2 < 2", "plain.tsv"][..],
            "key1,count\na,1\n",
        ),
        // All of several conditions must be true.
        (
            &[
                "-H",
                "-k",
                "city",
                "--where",
                "price > 1",
                "--where",
                "price < 20",
                "o.csv",
            ],
            "city,count\nBern,2\n",
        ),
        (
            &["-H", "-k", "city", "--where", "note is null", "o.csv"],
            "city,count\nBern,1\nOslo,1\n",
        ),
        // The rows of the answer, by the names that are printed.
        (
            &[
                "-H",
                "-k",
                "city",
                "-a",
                "count,sum:price",
                "--having",
                "sum_price > 3.5",
                "o.csv",
            ],
            "city,count,sum_price\nBern,3,3.75\nOslo,1,20.00\n",
        ),
        (
            &[
                "-H",
                "-k",
                "city",
                "--as",
                "town,n",
                "--having",
                "n > 1 or town = 'Rom'",
                "o.csv",
            ],
            "town,n\nBern,3\nRom,1\n",
        ),
        (
            &[
                "-H",
                "-k",
                "note",
                "-a",
                "max:price",
                "--having",
                "note is null",
                "o.csv",
            ],
            "note,max_price\n\"\",20.00\n",
        ),
        (
            &["-k", "2", "--having", "key1 < 2 and count = 1", "plain.tsv"],
            "key1,count\n-3,1\n1,1\n",
        ),
        (
            &["-H", "-a", "sum:price", "--having", "$1 > 100", "o.csv"],
            "sum_price\n",
        ),
        // A text is compared with what is printed.
        (
            &[
                "-k",
                "1",
                "-a",
                "mean:2",
                "--precision",
                "0",
                "--having",
                "mean_2 = '-1'",
                "plain.tsv",
            ],
            "key1,mean_2\na,-1\n",
        ),
        (
            &[
                "-H",
                "-k",
                "city",
                "--having",
                "count > 1",
                "--top",
                "1",
                "--sort",
                "city:desc",
                "o.csv",
            ],
            "city,count\nBern,3\n",
        ),
        (
            &["-H", "-k", "city", "--where", "city = 'x'", "o.csv"],
            "city,count\n",
        ),
        (
            &[
                "-a",
                "count,sum:2",
                "--where",
                "$9 > 1",
                "--having",
                "count = 0",
                "empty.csv",
            ],
            "count,sum_2\n0,\n",
        ),
        (
            &[
                "-k",
                "1",
                "--ragged",
                "--decimal-comma",
                "--where",
                "$2 = 1.5 or $3 is null",
                "r.tsv",
            ],
            "key1,count\na,1\nc,1\n",
        ),
        (
            &["-H", "-k", "1", "--where", "price > 1", "head.csv"],
            "city,count\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
}

/// What is compared isn't what is printed.
#[test]
fn exact_numbers_are_compared() {
    let dir = dir();
    means(dir.path());
    for (having, want) in [
        ("mean_2 >= 1.5", "key1,mean_2\nb,1.50\n"),
        ("mean_2 < 1.4951", "key1,mean_2\na,1.50\n"),
        ("mean_2 in (1.5, 7)", "key1,mean_2\nb,1.50\n"),
        ("mean_2 = '1.50'", "key1,mean_2\na,1.50\nb,1.50\n"),
    ] {
        let args = ["-k", "1", "-a", "mean:2", "n.csv", "--having", having];
        assert_eq!(printed(dir.path(), &args), want, "{having}");
    }
    let asked = "stddev_pop:2,var:2";
    let having = "stddev_pop_2 = 0.5 and var_2 = 0.5";
    let args = [
        "-k",
        "1",
        "-a",
        asked,
        "n.csv",
        "--precision",
        "20",
        "--having",
        having,
    ];
    assert_eq!(
        printed(dir.path(), &args),
        "key1,stddev_pop_2,var_2\nb,0.50000000000000000000,0.50000000000000000000\n"
    );
}

#[test]
fn what_is_refused() {
    let dir = dir();
    write(dir.path(), "a.csv", b"city,price\nBern,1\n");
    write(dir.path(), "rows", b"a;1\n");
    let asked = ["-H", "-k", "city", "a.csv"];
    for (flag, condition, want) in [
        (
            "--where",
            "price >",
            "--where: column 8: a number, or a text in single quotes, is missing\n  price >\n         ^\n",
        ),
        (
            "--where",
            "price > 1 and prise < 2",
            "--where: column 15: no column is called `prise`, did you mean `price`? the header has: city, price\n  price > 1 and prise < 2\n                ^\n",
        ),
        (
            "--having",
            "counts > 1",
            "--having: column 1: no column is called `counts`, did you mean `count`? the answer has: city, count\n  counts > 1\n  ^\n",
        ),
        (
            "--having",
            "$3 > 1",
            "--having: column 1: there is no column 3: the answer has 2 columns\n  $3 > 1\n  ^\n",
        ),
        (
            "--where",
            "city = 'Zürich' or\tcity = Bern",
            "--where: column 27: no column is called `Bern`; the header has: city, price; a text stands in single quotes, 'Bern'\n  city = 'Zürich' or\\tcity = Bern\n                             ^\n",
        ),
    ] {
        let told = refused(dir.path(), &[&asked[..], &[flag, condition]].concat());
        assert_eq!(told, format!("ringfold: {want}"));
    }
    for (args, words) in [
        (
            &[
                "-k",
                "1",
                "--no-header",
                "a.csv",
                "--where",
                "city = 'Bern'",
            ][..],
            "`city` is a name",
        ),
        (
            &["--jsonl", "--where", "$1 = 1", "rows"],
            "--jsonl needs columns",
        ),
    ] {
        let told = refused(dir.path(), args);
        assert!(told.contains(words), "{args:?}: {told}");
    }
}

/// In the library an error is one line, and the place is data.
#[test]
fn a_program_can_point_into_a_condition() {
    let input = Input::memory([&b"a,1\n"[..]]);
    let query = Query::new(b',').filter("$1 = 'ü' and $7 = 1").unwrap();
    let error = query.plan(&input, &Config::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    let want = "filter: column 14: there is no column 7: the first record has 2 fields";
    assert_eq!(error.to_string(), want);
    let Some(Refusal::Condition {
        setting, text, at, ..
    }) = error.job()
    else {
        panic!("{error}");
    };
    assert_eq!((*setting, &text[*at..]), (FILTER, "$7 = 1"));
}

/// Classes of letters are those of the syntax that the documentation points to.
#[test]
fn a_class_of_letters_may_have_a_name() {
    let dir = dir();
    let path = write(dir.path(), "f", "α,1\nb,2\nЖ,3\n".as_bytes());
    for (class, key) in [
        ("Greek", "α"),
        ("Latin", "b"),
        ("Lu", "Ж"),
        ("Uppercase", "Ж"),
    ] {
        let filter = format!("$1 ~ '^\\p{{{class}}}$'");
        let args = ["aggregate", "-d,", "-k1", "--where", &filter];
        let answer = end(ringfold(args).arg(&path)).answer();
        assert_eq!(
            String::from_utf8(answer).unwrap(),
            format!("key1,count\n{key},1\n")
        );
    }
}
