//! What people type: names of aggregates and orders as other programs have them, numbers, values that begin with a minus,
//! names of output files, and help that fits a screen.

use std::fs;
use std::path::Path;

use crate::support::{dir, end, ringfold, write};

const ORDERS: &[u8] = b"city,price,2017\nBern,1.50,1\nOslo,-20,2\nBern,2.25,3\n";

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(args.iter().copied()).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

fn refused(dir: &Path, args: &[&str]) -> String {
    end(ringfold(args.iter().copied()).current_dir(dir)).failure(2)
}

#[test]
fn aggregates_and_orders_by_other_names() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    let ask = |what: &str, more: &[&str]| {
        let args = [
            &["aggregate", "-H", "-k", "city", "-a", what, "o.csv"],
            more,
        ]
        .concat();
        printed(dir.path(), &args)
    };
    let by_names = "avg:price,average:price,med:price,stdev:price,std:price,sd:price,nunique:price,\
                    count_distinct:price,uniq:price,minimum:price,MAX:price,variance:price,total:price";
    let names = "mean:price,mean:price,median:price,stddev:price,stddev:price,stddev:price,distinct:price,\
                 distinct:price,distinct:price,min:price,max:price,var:price,sum:price";
    assert_eq!(ask(by_names, &[]), ask(names, &[]));
    assert!(ask("avg:price", &[]).starts_with("city,mean_price\n"));
    let ascending = "city,count,mean_price\nOslo,1,-20.0000\nBern,2,1.8750\n";
    let descending = "city,count,mean_price\nBern,2,1.8750\nOslo,1,-20.0000\n";
    for (order, want) in [
        ("count", ascending),
        ("-count", descending),
        ("mean", ascending),
        ("mean:desc", descending),
        ("-avg", descending),
        ("mean:price:desc", descending),
        ("avg_price", ascending),
    ] {
        assert_eq!(ask("count,mean:price", &["--sort", order]), want, "{order}");
    }
    let both = [
        "aggregate",
        "-H",
        "-k",
        "city",
        "-a",
        "sum:price,sum:2017",
        "o.csv",
        "--sort",
        "sum",
    ];
    let error = refused(dir.path(), &both);
    assert!(
        error.contains("`sum` may be `sum_price` or `sum_2017`"),
        "{error}"
    );
    let error = refused(
        dir.path(),
        &["aggregate", "-k", "1", "-a", "meen:2", "o.csv"],
    );
    assert!(error.contains("mean"), "{error}");
}

/// A number that no column has is the name that the header has.
#[test]
fn a_year_is_a_column_s_name() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    write(dir.path(), "y.csv", b"land,2015,2016,2017\nCH,1,2,3\n");
    let sum = printed(
        dir.path(),
        &["aggregate", "-H", "-k", "1", "-a", "sum:2017", "o.csv"],
    );
    assert_eq!(sum, "city,sum_2017\nBern,4\nOslo,2\n");
    let sums = printed(
        dir.path(),
        &["aggregate", "-H", "-a", "sum:2015-2017", "y.csv"],
    );
    assert_eq!(sums, "sum_2015,sum_2016,sum_2017\n1,2,3\n");
    let error = refused(dir.path(), &["aggregate", "-H", "-a", "sum:1960", "o.csv"]);
    assert!(
        error.contains("no column 1960: the first record has 3 fields, called city, price, 2017"),
        "{error}"
    );
}

#[test]
fn numbers_as_people_write_them() {
    let dir = dir();
    for rows in ["1.4e3", "1_400", "1,400", "1400", "1.4k"] {
        let args = ["generate", "-q", "-o", "rows.txt", "--rows", rows];
        printed(dir.path(), &args);
        let text = fs::read_to_string(dir.path().join("rows.txt")).unwrap();
        assert_eq!(text.lines().count(), 1400, "{rows}");
    }
    write(dir.path(), "o.csv", ORDERS);
    let top = ["aggregate", "-H", "-k", "city", "--top", "1e0", "o.csv"];
    assert_eq!(printed(dir.path(), &top), "city,count\nBern,2\n");
    for top in ["1.5", "-1", "many"] {
        let args = ["aggregate", "-k", "1", "--top", top, "o.csv"];
        let ended = end(ringfold(args).current_dir(dir.path()));
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("1.4e7"), "{}", ended.stderr);
    }
}

#[test]
fn values_that_begin_with_a_minus() {
    let dir = dir();
    write(dir.path(), "m.csv", b"k,v\na,-1\na,5\nb,-999\nb,--\n");
    let nulls = [
        "--null-value",
        "-1",
        "--null-value",
        "-999",
        "--null-value",
        "--",
    ];
    let asked = ["aggregate", "-H", "-k", "k", "-a", "count:v,sum:v", "m.csv"];
    let want = "k,count_v,sum_v\na,1,5\nb,0,\n";
    assert_eq!(printed(dir.path(), &[&asked[..], &nulls].concat()), want);
    let asked = ["aggregate", "-H", "-k", "k", "m.csv", "--where", "-1 < v"];
    let asked = [&asked[..], &["--null-value", "--"]].concat();
    assert_eq!(printed(dir.path(), &asked), "k,count\na,1\n");
    let asked = [
        "aggregate",
        "-H",
        "-k",
        "k",
        "m.csv",
        "--having",
        "-1 < count",
    ];
    assert_eq!(printed(dir.path(), &asked), "k,count\na,2\nb,2\n");
}

#[test]
fn the_name_of_an_output_says_its_format() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    let ask = |output: &str, more: &[&str]| {
        let args = ["aggregate", "-H", "-k", "city", "o.csv", "-o", output];
        end(ringfold(args).args(more).current_dir(dir.path()))
    };
    let csv = "city,count\nBern,2\nOslo,1\n";
    let json = "[\n{\"city\":\"Bern\",\"count\":2},\n{\"city\":\"Oslo\",\"count\":1}\n]\n";
    let lines = "{\"city\":\"Bern\",\"count\":2}\n{\"city\":\"Oslo\",\"count\":1}\n";
    for (output, want) in [
        ("x.json", json),
        ("x.JSON", json),
        ("x.ndjson", lines),
        ("x.jsonl", lines),
        ("x.tsv", "city\tcount\nBern\t2\nOslo\t1\n"),
        (
            "x.md",
            "| city | count |\n| --- | ---: |\n| Bern | 2 |\n| Oslo | 1 |\n",
        ),
        ("x.csv", csv),
        ("x", csv),
        ("x.txt", csv),
        ("x.dat", csv),
    ] {
        ask(output, &[]).answer();
        assert_eq!(
            fs::read_to_string(dir.path().join(output)).unwrap(),
            want,
            "{output}"
        );
    }
    for output in ["x.parquet", "x.arrow"] {
        ask(output, &[]).answer();
        assert!(
            !fs::read(dir.path().join(output))
                .unwrap()
                .starts_with(b"city")
        );
    }
    for output in ["y.xlsx", "y.csv.gz", "y.zst"] {
        let error = ask(output, &[]).failure(2);
        assert!(
            error.contains("as -f csv") || error.contains("-f csv writes"),
            "{error}"
        );
        assert!(!dir.path().join(output).exists(), "{output}");
        ask(output, &["-f", "csv"]).answer();
        assert_eq!(
            fs::read_to_string(dir.path().join(output)).unwrap(),
            csv,
            "{output}"
        );
    }
    // Partials, rejects, and the answer that has no columns.
    printed(
        dir.path(),
        &[
            "aggregate",
            "-H",
            "-k",
            "city",
            "--save-partial",
            "p",
            "o.csv",
        ],
    );
    printed(dir.path(), &["merge", "p", "-o", "m.json"]);
    assert_eq!(fs::read_to_string(dir.path().join("m.json")).unwrap(), json);
    let args = ["aggregate", "-k", "1", "--rejects", "r.json", "o.csv"];
    let error = refused(dir.path(), &args);
    assert!(error.contains("--rejects writes CSV"), "{error}");
    write(dir.path(), "rows", b"a;1.0\n");
    let error = refused(dir.path(), &["aggregate", "rows", "-o", "r.csv"]);
    assert!(error.contains("-f 1brc"), "{error}");
    printed(
        dir.path(),
        &["aggregate", "rows", "-o", "r.csv", "-f", "1brc"],
    );
    assert_eq!(
        fs::read(dir.path().join("r.csv")).unwrap(),
        b"{a=1.0/1.0/1.0}\n"
    );
}

/// The flags under each heading of a text as `--help` prints it.
fn headings(text: &str) -> Vec<(String, Vec<String>)> {
    let mut headings: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let flag = line.trim_start();
        let indent = line.len() - flag.len();
        if indent == 0 && line.ends_with(':') {
            headings.push((line.trim_end_matches(':').into(), Vec::new()));
        } else if (2..=6).contains(&indent) && flag.starts_with('-') {
            let long = flag.split_whitespace().find(|word| word.starts_with("--"));
            let long = long.map(|flag| flag.trim_end_matches([',', ']']));
            let long = long.map(|flag| flag.split(['[', '=']).next().unwrap().to_string());
            if let (Some((_, flags)), Some(long)) = (headings.last_mut(), long) {
                flags.push(long);
            }
        }
    }
    headings
}

#[test]
fn each_flag_stands_under_its_heading() {
    let help = String::from_utf8(end(&mut ringfold(["aggregate", "--help"])).answer()).unwrap();
    let headings = headings(&help);
    let of = |heading: &str| {
        let found = headings.iter().find(|(name, _)| name == heading);
        found.map(|(_, flags)| flags.clone()).unwrap_or_default()
    };
    let records = [
        "--single-line",
        "--ragged",
        "--squeeze",
        "--skip-lines",
        "--comment",
        "--decimal-comma",
        "--float",
        "--max-errors",
        "--rejects",
    ];
    for flag in records {
        assert!(
            of("Records").contains(&flag.to_string()),
            "{flag}: {headings:?}"
        );
    }
    let partials = [
        "--save-partial",
        "--continue",
        "--report-too",
        "--range",
        "--begin",
    ];
    assert_eq!(of("Partials"), partials);
    for flag in [
        "--key",
        "--aggregate",
        "--header",
        "--where",
        "--sort",
        "--delimiter",
        "--format",
        "--output",
        "--on-error",
        "--memory",
        "--spill-dir",
        "--threads",
        "--stats",
        "--quiet",
        "--progress",
        "--help",
    ] {
        assert!(
            of("Options").contains(&flag.to_string()),
            "{flag}: {headings:?}"
        );
    }
}

#[test]
fn short_help_is_one_screen() {
    let help = String::from_utf8(end(&mut ringfold(["aggregate", "-h"])).answer()).unwrap();
    assert!(help.lines().count() <= 28, "{help}");
    let flags = ["-k", "-a", "-H", "--where", "--sort", "--top"];
    assert!(flags.iter().all(|flag| help.contains(flag)), "{help}");
    assert_eq!(help.matches("  ringfold aggregate ").count(), 4, "{help}");
    let long = String::from_utf8(end(&mut ringfold(["aggregate", "--help"])).answer()).unwrap();
    assert!(long.lines().count() > 150 && long.contains("--spill-dir"));
    let man = String::from_utf8(end(&mut ringfold(["man", "aggregate"])).answer()).unwrap();
    assert!(
        man.contains("EXAMPLES") && man.contains("--rejects bad.csv".replace('-', "\\-").as_str())
    );
}

/// What can't be written is an error for help and the version, too.
#[test]
fn a_full_device_is_told() {
    for args in [
        &["-V"][..],
        &["--help"],
        &["aggregate", "-h"],
        &["aggregate", "--help-io"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let ended = ringfold(args.iter().copied())
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("ENOSPC"), "{said}");
    }
}

/// A program that has no query for a job is named, and isn't just missing.
#[test]
fn bench_says_who_takes_no_part() {
    let dir = dir();
    write(dir.path(), "rows", b"a;1.0\nb;2.0\n");
    let args = [
        "bench",
        "rows",
        "-r",
        "1",
        "--engine",
        "pread",
        "--state",
        "cached",
        "--job",
        "aggregate -k 1 -a count",
        "--with",
        "duckdb",
    ];
    let ended = end(ringfold(args).current_dir(dir.path()));
    let printed = String::from_utf8(ended.answer_and_notices().0).unwrap();
    let left_out = "duckdb is left out: it has no query for `aggregate -k 1 -a count`";
    assert!(printed.contains(left_out), "{printed}");
}
