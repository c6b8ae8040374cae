//! Values that aren't plain numbers: what is read, what is taken for no value, and what is said of the rest.

use std::path::Path;

use ringfold::query::{Answer, OnError, Query};
use ringfold::{Input, fold};

use crate::support::{csv, dir, end, end_of, feed, ringfold, start, ways_in_small_blocks, write};

/// What a run prints and says.
#[track_caller]
fn run(dir: &Path, args: &[&str]) -> (String, String) {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    let (answer, said) = ended.answer_and_notices();
    (String::from_utf8(answer).unwrap(), said)
}

/// The one line of a run that fails.
#[track_caller]
fn failure(dir: &Path, code: i32, args: &[&str]) -> String {
    end(ringfold(["aggregate"]).args(args).current_dir(dir)).failure(code)
}

#[test]
fn exponents_are_numbers() {
    let dir = dir();
    write(
        dir.path(),
        "f.csv",
        b"gene,pval\nAB1,1.2e-9\nAB2,0.5\nAB3,2E-7\nAB4,0.0004\nAB5,3e2\n",
    );
    for (args, want) in [
        (
            &["-a", "count", "--where", "pval < 0.001"][..],
            "count\n3\n",
        ),
        (
            &["-a", "count", "--where", "pval in (2e-7, 300)"],
            "count\n2\n",
        ),
        (
            &["-a", "count", "--where", "not (pval < 0.001)"],
            "count\n2\n",
        ),
        (
            &["-a", "sum:pval,min:pval,max:pval"],
            "sum_pval,min_pval,max_pval\n300.5004002012,0.0000000012,300.0000000000\n",
        ),
        (
            &["-k", "pval", "-a", "count", "--having", "pval < 1e-6"],
            "pval,count\n1.2e-9,1\n2E-7,1\n",
        ),
        (&["--float", "-a", "sum:pval"], "sum_pval\n300.5004002012\n"),
    ] {
        let (answer, said) = run(dir.path(), &[&["-H"], args, &["f.csv"]].concat());
        assert_eq!((&*answer, &*said), (want, ""), "{args:?}");
    }
    // Past 38 digits conditions still read them; results need another flag.
    write(dir.path(), "long.csv", b"p\n3e-120\n0.5\n");
    let (answer, said) = run(
        dir.path(),
        &["-H", "-a", "count", "--where", "p < 1e-100", "long.csv"],
    );
    assert_eq!((&*answer, &*said), ("count\n1\n", ""));
    let why = failure(dir.path(), 1, &["-H", "-a", "min:p", "long.csv"]);
    assert_eq!(
        why,
        "long.csv: byte 2-8 (line 2): `3e-120` has more than 38 digits, which is the limit (column `p`): `--float` reads \
         larger exponents, inf and nan"
    );
    let (answer, _) = run(dir.path(), &["--float", "-H", "-a", "min:p", "long.csv"]);
    assert_eq!(answer, "min_p\n3e-120\n");
}

#[test]
fn limits_are_said() {
    let dir = dir();
    let zeros = "0".repeat(46);
    for (value, want) in [
        (format!("0.1{zeros}"), Ok(format!("0.1{}", "0".repeat(37)))),
        (format!("{zeros}7"), Ok("7".into())),
        (
            "0.1000000000000000055511151231257827021181583404541015625".into(),
            Err("has more than 36 digits before or after its point, which is the limit (column 1)"),
        ),
        (
            "115792089237316195423570985008687907853269984665640564039457584007913129639935".into(),
            Err("has more than 38 digits, which is the limit (column 1)"),
        ),
        (
            "1e5000".into(),
            Err("the exponent of `1e5000` is past the limit of 400 digits (column 1)"),
        ),
    ] {
        write(dir.path(), "v.csv", format!("{value}\n").as_bytes());
        match want {
            Ok(want) => {
                let (answer, said) = run(dir.path(), &["-a", "max:1", "v.csv"]);
                assert_eq!((answer, &*said), (format!("max_1\n{want}\n"), ""));
            }
            Err(want) => {
                for float in [&[][..], &["--float"]] {
                    let why = failure(dir.path(), 1, &[float, &["-a", "max:1", "v.csv"]].concat());
                    assert!(why.ends_with(want), "{why}");
                }
            }
        }
    }
}

/// Each hint, and the answer when it is followed.
#[test]
fn hints_about_numbers_lead_to_an_answer() {
    let dir = dir();
    for (name, text, args, hint, followed, want) in [
        (
            "a.csv",
            "v\n1\nNaN\n",
            &["-a", "sum:v"][..],
            "`--float` takes it for a number, `--null-value=NaN` for no value",
            &["--float"][..],
            "sum_v\nnan\n",
        ),
        (
            "b.csv",
            "v\n1\nNaN\n",
            &["-a", "sum:v"],
            "`--null-value=NaN`",
            &["--null-value=NaN"],
            "sum_v\n1\n",
        ),
        (
            "c.csv",
            "v\n1\n-inf\n",
            &["-a", "sum:v"],
            "`--null-value=-inf`",
            &["--null-value=-inf"],
            "sum_v\n1\n",
        ),
        (
            "d.csv",
            "v\n1e300\n",
            &["-a", "sum:v"],
            "`--float` reads larger exponents",
            &["--float"],
            "sum_v\n1e300\n",
        ),
        (
            "e.csv",
            "k;v\na;1,5\n",
            &["-d", ";", "-a", "sum:v"],
            "`--decimal-comma` reads commas before decimals",
            &["--decimal-comma"],
            "sum_v\n1.5\n",
        ),
        (
            "f.csv",
            "k,v\na,\"1,5\"\n",
            &["-a", "sum:v"],
            "`--decimal-comma` reads",
            &["--decimal-comma"],
            "sum_v\n1.5\n",
        ),
        (
            "g.csv",
            "k,v\na,NA\nb,2\n",
            &["-a", "sum:v"],
            "`--null-value 'NA'`",
            &["--null-value", "NA"],
            "sum_v\n2\n",
        ),
        (
            "h.tsv",
            "k\tv\na\t1,234\n",
            &["-a", "sum:v"],
            "`--decimal-comma` takes the comma for a decimal point; commas between thousands",
            &["--decimal-comma"],
            "sum_v\n1.234\n",
        ),
    ] {
        write(dir.path(), name, text.as_bytes());
        let why = failure(dir.path(), 1, &[&["-H"], args, &[name]].concat());
        assert!(why.contains(hint), "{why}");
        let (answer, _) = run(dir.path(), &[followed, &["-H"], args, &[name]].concat());
        assert_eq!(answer, want, "{name}");
    }
    write(dir.path(), "i.csv", b"v\n1.5\n");
    let why = failure(
        dir.path(),
        1,
        &["--decimal-comma", "-H", "-a", "sum:v", "i.csv"],
    );
    assert!(why.contains("leave out `--decimal-comma`"), "{why}");
    for (name, text, sign, want) in [
        ("j", "v\n$5\n$7.50\n", "$", "sum_v\n12.50\n"),
        ("k", "v\n12%\n7.5%\n", "%", "sum_v\n19.5\n"),
        ("l", "v\n5 \u{20ac}\n7\u{20ac}\n", "\u{20ac}", "sum_v\n12\n"),
    ] {
        write(dir.path(), name, text.as_bytes());
        let why = failure(dir.path(), 1, &["-d,", "-H", "-a", "sum:v", name]);
        let command = why.split('`').rev().nth(1).unwrap();
        let command = command.split(" | ringfold ").next().unwrap();
        assert!(command.contains(sign), "{why}");
        let stripped = std::process::Command::new("sh")
            .args(["-c", &command.replace("FILE", name)])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let mut child = start(
            ringfold(["aggregate", "-d,", "-H", "-a", "sum:v"]).stdin(std::process::Stdio::piped()),
        );
        feed(&mut child, stripped.stdout);
        assert_eq!(end_of(child).answer(), want.as_bytes());
    }
    write(dir.path(), "m.csv", b"v\n\"$1,234.50\"\n($200.00)\n");
    let why = failure(dir.path(), 1, &["-H", "-a", "sum:v", "m.csv"]);
    assert!(why.ends_with("(docs/not-for.md)"), "{why}");
}

#[test]
fn commas_between_thousands_are_told() {
    let dir = dir();
    write(dir.path(), "a.tsv", b"k\tv\na\t1,234\nb\t12,500\nc\t7\n");
    let (answer, said) = run(
        dir.path(),
        &["--decimal-comma", "-H", "-a", "sum:v", "a.tsv"],
    );
    assert_eq!(answer, "sum_v\n20.734\n");
    assert_eq!(
        said,
        "ringfold: notice: --decimal-comma reads `1,234` (column `v`) as 1.234: if commas stand between thousands, they \
         have to be taken out before (docs/not-for.md)\n"
    );
    write(dir.path(), "b.tsv", b"k\tv\na\t1,234\nb\t12,5\n");
    let (_, said) = run(
        dir.path(),
        &["--decimal-comma", "-H", "-a", "sum:v", "b.tsv"],
    );
    assert_eq!(said, "");
}

/// What can't be compared is said, for each kind of test.
#[test]
fn conditions_say_what_they_could_not_compare() {
    let dir = dir();
    write(
        dir.path(),
        "a.csv",
        b"city,amt\nRom,1\nOslo,\"1,234\"\nBern,\nKiel,$5\nUlm,2000\n",
    );
    let told = |records: &str, what: &str| {
        format!(
            "ringfold: {records} left out, because --where can't compare a value, the first at a.csv byte {what}\n"
        )
    };
    let grouped = "15 line 3: `1,234` is not a number (column `amt`): `--decimal-comma` takes the comma for a decimal point; \
                   commas between thousands have to be taken out before (docs/not-for.md)";
    let sign =
        "34 line 5: `$5` is not a number (column `amt`): `sed 's/[$]//g' FILE` takes the signs off";
    for (condition, count, said) in [
        ("amt > 1000", 1, told("2 records", grouped)),
        ("not (amt > 1000)", 1, told("2 records", grouped)),
        ("amt in (1, 2000)", 2, told("2 records", grouped)),
        ("amt not in (1, 2)", 1, told("2 records", grouped)),
        ("amt > 1000 and amt < 3000", 1, told("2 records", grouped)),
        // It is false whatever the value is.
        ("amt > 1000 and city = 'Kiel'", 0, told("1 record", sign)),
        ("amt > 1000 or city = 'Kiel'", 2, told("1 record", grouped)),
        ("city = 'Rom' and amt > 0", 1, String::new()),
        ("amt is null", 1, String::new()),
        ("amt > 'a'", 0, String::new()),
    ] {
        for more in [
            &[][..],
            &["--comment", "#"],
            &["-a", "count", "-k", "city@day"],
        ] {
            if more.len() > 2 {
                continue;
            }
            let args = [
                &["-H", "-a", "count", "--where", condition],
                more,
                &["a.csv"],
            ]
            .concat();
            let (answer, heard) = run(dir.path(), &args);
            assert_eq!(
                (answer, heard),
                (format!("count\n{count}\n"), said.clone()),
                "{args:?}"
            );
        }
    }
    let args = [
        "-H",
        "-a",
        "count",
        "--where",
        "amt > 1000",
        "--stats=json",
        "a.csv",
    ];
    let (_, said) = run(dir.path(), &args);
    assert!(said.contains("\"unread\":2"), "{said}");
    // A partial of such a run.
    let args = [
        "-H",
        "-a",
        "count",
        "--where",
        "amt > 1000",
        "--save-partial",
        "p",
        "a.csv",
    ];
    assert_eq!(
        run(dir.path(), &args),
        (String::new(), told("2 records", grouped))
    );
    // Rows of the answer.
    let args = [
        "-H",
        "-k",
        "amt",
        "-a",
        "count",
        "--having",
        "amt > 1000",
        "a.csv",
    ];
    let (answer, said) = run(dir.path(), &args);
    assert_eq!(answer, "amt,count\n2000,1\n");
    assert_eq!(
        said,
        "ringfold: 2 rows of the answer left out, because --having can't compare a value, the first by `$5` is not \
         a number (column `amt`): `sed 's/[$]//g' FILE` takes the signs off\n"
    );
}

#[test]
fn numbers_in_quotes_are_told() {
    let dir = dir();
    write(dir.path(), "a.csv", b"k,amount\na,100\nb,60\nc,7\n");
    let args = |condition: &'static str| ["-H", "-a", "count", "--where", condition, "a.csv"];
    let (answer, said) = run(dir.path(), &args("amount > '50'"));
    assert_eq!(answer, "count\n2\n");
    assert_eq!(
        said,
        "ringfold: 2 records decided by the bytes of a number, because --where has it in quotes; without them numbers are \
         compared, the first at a.csv byte 9 line 2: `100` (column `amount`)\n"
    );
    assert_eq!(
        run(dir.path(), &args("amount > 50")),
        ("count\n2\n".into(), String::new())
    );
    // Where bytes decide as numbers do, and for dates.
    assert_eq!(
        run(dir.path(), &args("amount < '08'")).1,
        "ringfold: 1 record decided by the bytes of a number, because \
         --where has it in quotes; without them numbers are compared, the first at a.csv byte 20 line 4: `7` (column \
         `amount`)\n"
    );
    assert_eq!(run(dir.path(), &args("amount >= '1'")).1, "");
    write(dir.path(), "d.csv", b"d\n2024-05-01\n20240502\n");
    let args = ["-H", "-a", "count", "--where", "d >= '2024'", "d.csv"];
    assert_eq!(run(dir.path(), &args), ("count\n2\n".into(), String::new()));
    let args = [
        "-H",
        "-a",
        "sum:amount",
        "-k",
        "k",
        "--having",
        "sum_amount > '50'",
        "a.csv",
    ];
    let (answer, said) = run(dir.path(), &args);
    assert_eq!(answer, "k,sum_amount\nb,60\nc,7\n");
    assert!(
        said.starts_with("ringfold: 2 rows of the answer decided by the bytes"),
        "{said}"
    );
}

#[test]
fn columns_and_blanks_in_conditions() {
    let dir = dir();
    write(dir.path(), "a.csv", b"unit price,b\n3,1\n");
    let refused = |condition: &str| {
        let args = ["-H", "-a", "count", "--where", condition, "a.csv"];
        let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir.path()));
        assert_eq!(ended.code, Some(2));
        ended.stderr
    };
    let said = refused("unit price > 2");
    assert!(
        said.contains("a name with blanks stands in double quotes, \"unit price\""),
        "{said}"
    );
    let args = [
        "-H",
        "-a",
        "count",
        "--where",
        "\"unit price\" > 2",
        "a.csv",
    ];
    assert_eq!(run(dir.path(), &args).0, "count\n1\n");
    let said = refused("b > a");
    assert!(
        said.contains("a text stands in single quotes, 'a'"),
        "{said}"
    );
    for condition in ["b < \"unit price\"", "b < $1", "not b >= $1"] {
        let args = ["-H", "-a", "count", "--where", condition, "a.csv"];
        assert_eq!(run(dir.path(), &args).0, "count\n1\n", "{condition}");
    }
}

/// A column that an aggregate computes on has the same values everywhere.
#[test]
fn with_null_all_see_the_same_values() {
    let dir = dir();
    write(
        dir.path(),
        "f.csv",
        b"grp,score\nfoo,10\nfoo,NA\nfoo,20\nbar,N/A\n",
    );
    let null = ["-H", "--on-error", "null"];
    let said = "ringfold: 2 values taken for no value, the first at f.csv byte 17 line 3: `NA` is not a number (column \
                `score`): `--null-value 'NA'` takes it for no value\n";
    for (args, want) in [
        (
            &["-k", "grp", "-a", "count:score,sum:score,mean:score"][..],
            "grp,count_score,sum_score,mean_score\nbar,0,,\nfoo,2,30,15.00\n",
        ),
        (
            &[
                "-k",
                "grp",
                "-a",
                "sum:score,distinct:score,first:score,last:score,mode:score,lexmax:score",
            ],
            "grp,sum_score,distinct_score,first_score,last_score,mode_score,lexmax_score\n\
             bar,,0,,,,\nfoo,30,2,10,20,10,20\n",
        ),
        (
            &["-k", "score", "-a", "count,max:score"],
            "score,count,max_score\n\"\",2,\n10,1,10\n20,1,20\n",
        ),
        (
            &["-k", "grp", "-a", "sum:score", "--where", "score is null"],
            "grp,sum_score\nbar,\nfoo,\n",
        ),
    ] {
        for more in [&[][..], &["--exact"], &["--comment", "#"]] {
            let (answer, heard) = run(dir.path(), &[&null, args, more, &["f.csv"]].concat());
            assert_eq!((&*answer, &*heard), (want, said), "{args:?}");
        }
    }
    let args = [
        "-a",
        "count,sum:score",
        "--where",
        "score is not null",
        "f.csv",
    ];
    assert_eq!(
        run(dir.path(), &[&null[..], &args].concat()),
        ("count,sum_score\n2,30\n".into(), String::new())
    );
    // Computed with, it is the same as if aggregates took it as it is, and counted once.
    for (args, want) in [
        (
            "count:score,sum(score * 2) as s,max(-score) as m,mean(round(score / 3, 1)) as r",
            "grp,count_score,s,m,r\nbar,0,,,\nfoo,2,60,-10,5.000\n",
        ),
        (
            "distinct:score,first:score,sum(if(grp = 'foo', score, 0) + 1) as s,corr(score, score * 2)",
            "grp,distinct_score,first_score,s,\"corr(score, score * 2)\"\nbar,0,,1,\nfoo,2,10,32,1.000000\n",
        ),
        (
            "sum(coalesce(score, 0)) as s,count(*) filter (where score * 2 > 0) as n,values(score) as v",
            "grp,s,n,v\nbar,0,0,\nfoo,30,2,\"[\"\"10\"\",\"\"20\"\"]\"\n",
        ),
    ] {
        for more in [&[][..], &["--comment", "#"], &["--max-errors", "2"]] {
            let args = [&null[..], &["-k", "grp", "-a", args], more, &["f.csv"]].concat();
            let (answer, heard) = run(dir.path(), &args);
            assert_eq!((&*answer, &*heard), (want, said), "{args:?}");
        }
    }
    let args = [
        "-k",
        "bin(score, 10) as b",
        "-a",
        "count:score",
        "--where",
        "score is null or score > 10",
        "f.csv",
    ];
    assert_eq!(
        run(dir.path(), &[&null[..], &args].concat()),
        ("b,count_score\n\"\",0\n20,1\n".into(), said.into())
    );
    write(dir.path(), "t.csv", b"t,x\n2026-01-01 10:00,1\nnever,2\n");
    let args = ["-k", "t@hour,hour(t)", "-a", "max(minute(t)) as m", "t.csv"];
    let (answer, heard) = run(dir.path(), &[&null[..], &args].concat());
    assert_eq!(answer, "t_hour,hour(t),m\n\"\",\"\",\n2026-01-01T10,10,0\n");
    assert!(
        heard.starts_with(
            "ringfold: 1 value taken for no value, the first at t.csv byte 23 line 3: `never`"
        ),
        "{heard}"
    );
    // Nothing computes on it.
    let args = ["-a", "count:score,distinct:score", "f.csv"];
    assert_eq!(
        run(dir.path(), &[&null[..], &args].concat()),
        ("count_score,distinct_score\n4,4\n".into(), String::new())
    );
    write(
        dir.path(),
        "j.jsonl",
        b"{\"urt\":\"0.012, 0.030\"}\n{\"urt\":0.5}\n",
    );
    let args = ["--on-error", "null", "-a", "count:urt,mean:urt", "j.jsonl"];
    let (answer, said) = run(dir.path(), &args);
    assert_eq!(answer, "count_urt,mean_urt\n1,0.500\n");
    assert!(said.starts_with("ringfold: 1 value taken for no value, the first at j.jsonl byte 0 line 1: `0.012, 0.030`"), "{said}");
}

/// Numbers, and among them some that aren't.
fn mixed(rows: usize) -> Vec<u8> {
    let mut text = "k,v\n".to_string();
    for row in 0..rows {
        let value = match row % 97 {
            60 => "1,5x".into(),
            61 => "NA".into(),
            62 => format!("{row}e-3"),
            63 => String::new(),
            64 => format!("{row}.12345678901"),
            _ => format!("{}", row % 1000),
        };
        text += &match value.contains(',') {
            true => format!("k{},\"{value}\"\n", row % 5),
            false => format!("k{},{value}\n", row % 5),
        };
    }
    text.into_bytes()
}

fn said(answer: &Answer) -> String {
    macro_rules! place {
        ($first:expr) => {
            ($first.as_ref()).map(|first| (first.file, first.bytes.start, first.cause.to_string()))
        };
    }
    format!(
        "{}{} {} {:?} {} {:?} {} {:?}",
        csv(answer),
        answer.filtered,
        answer.unread,
        place!(answer.first_unread),
        answer.bytewise,
        place!(answer.first_bytewise),
        answer.nulled,
        place!(answer.first_nulled),
    )
}

/// Counts and first places are those of the input, whatever reads it.
#[test]
fn every_engine_says_the_same() {
    let dir = dir();
    let text = mixed(2_000);
    let paths = [
        write(dir.path(), "a.csv", &text),
        write(dir.path(), "b.csv", &text),
    ];
    let query = |level: bool, condition: &str| {
        let query = Query::new(b',').quote(Some(b'"')).header(true).key("k");
        let query = query.aggregate("count", Some("v".into())).unwrap();
        let query = query.aggregate("sum", Some("v".into())).unwrap();
        let query = query.filter(condition).unwrap().on_error(OnError::Null);
        if level { query } else { query.level(None) }
    };
    for (condition, unread, bytewise) in [
        ("v > 500", 80, 0),
        ("not (v in (5, 6)) and k != 'k1'", 64, 0),
        ("v > '500'", 0, 236),
        ("k != 'k9'", 0, 0),
    ] {
        let mut want = None;
        for (way, config) in ways_in_small_blocks() {
            for level in [true, false] {
                if !level && way.engine != ringfold::Engine::Auto {
                    continue;
                }
                let input = Input::open(&paths).unwrap();
                let plan = query(level, condition).plan(&input, &config).unwrap();
                let (answer, _) = fold(&input, &config, &plan).unwrap();
                let got = said(&answer);
                if want.is_none() {
                    assert_eq!(
                        (answer.unread, answer.bytewise),
                        (unread, bytewise),
                        "{got}"
                    );
                }
                assert_eq!(
                    &got,
                    want.get_or_insert(got.clone()),
                    "{way:?} {config:?} {level} {condition}"
                );
            }
        }
    }
}

/// Lines are known of files, compressed files, and where they are counted anyway.
#[test]
fn places_in_pipes_and_compressed_files() {
    let dir = dir();
    let text = mixed(3_000);
    let path = write(dir.path(), "a.csv", &text);
    let ended = end(std::process::Command::new("gzip").arg("-k").arg(&path));
    assert_eq!(ended.code, Some(0));
    let args = [
        "-d,",
        "--quote",
        "\"",
        "-H",
        "-a",
        "count,sum:v",
        "--where",
        "v >= 0",
    ];
    let want = "left out, because --where can't compare a value, the first at NAME byte 354LINE: `1,5x` is not a \
                number (column `v`)\n";
    let own = |name: &str, line: &str| want.replace("NAME", name).replace("LINE", line);
    for name in ["a.csv", "a.csv.gz"] {
        let (_, said) = run(
            dir.path(),
            &[&args[..], &["--on-error", "null", name]].concat(),
        );
        assert!(said.contains(&own(name, " line 62")), "{said}");
        let args = [&["-H", "-a", "count", "--where", "v >= 0"], &[name][..]].concat();
        let (_, said) = run(dir.path(), &args);
        assert!(said.contains(&own(name, " line 62")), "{said}");
    }
    for more in [&[][..], &["--on-error", "null"]] {
        let mut command = ringfold(["aggregate"]);
        command.args([
            "-d,", "--quote", "\"", "-H", "-a", "count", "--where", "v >= 0",
        ]);
        let mut child = start(command.args(more).stdin(std::process::Stdio::piped()));
        feed(&mut child, text.clone());
        let (_, said) = end_of(child).answer_and_notices();
        assert!(said.contains(&own("-", " line 62")), "{said}");
    }
}

#[test]
fn json_that_is_not_a_line_an_object() {
    let dir = dir();
    let following = |why: &str| {
        let command = why.split('`').rev().nth(1).unwrap();
        let command = command.split(" | ringfold ").next().unwrap();
        let lines = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(dir.path())
            .output();
        let lines = lines.unwrap().stdout;
        let mut command = ringfold(["aggregate", "--jsonl", "-a", "count,sum:a"]);
        let mut child = start(command.stdin(std::process::Stdio::piped()));
        feed(&mut child, lines);
        String::from_utf8(end_of(child).answer()).unwrap()
    };
    let has_jq = std::process::Command::new("jq")
        .arg("--version")
        .output()
        .is_ok();
    for (name, text, hint) in [
        (
            "array.json",
            "[{\"a\":1},{\"a\":2}]\n",
            "`jq -c '.[]' array.json | ringfold aggregate --jsonl ",
        ),
        (
            "lines.json",
            "[\n{\"a\":1},\n{\"a\":2}\n]\n",
            "`jq -c '.[]' lines.json | ringfold aggregate --jsonl ",
        ),
        (
            "a b.json",
            "{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n",
            "`jq -c . 'a b.json' | ringfold aggregate --jsonl ",
        ),
    ] {
        write(dir.path(), name, text.as_bytes());
        let why = failure(dir.path(), 1, &["--jsonl", "-a", "count,sum:a", name]);
        assert!(why.contains(hint), "{why}");
        if has_jq {
            assert_eq!(following(&why), "count,sum_a\n2,3\n");
        }
    }
    write(dir.path(), "cut.jsonl", b"{\"a\":1}\n{\"a\":\n{\"b\":2}\n");
    let why = failure(dir.path(), 1, &["-a", "count", "cut.jsonl"]);
    assert!(!why.contains("jq"), "{why}");
    let (explained, _) = run(dir.path(), &["--explain", "-a", "sum:a", "cut.jsonl"]);
    assert!(
        explained.contains("the first 3 records, of which 1 is malformed"),
        "{explained}"
    );
}

/// What a query costs is told of files that are large enough, and of which parts.
#[test]
fn costs_of_parts() {
    let dir = dir();
    let row = |n: usize| format!("{},\"a\n,{}\",{}\n", n % 7, n % 3, n * 7919 % 100_003);
    let text: String = (0..150_000).map(row).collect();
    let text = format!("city,note,price\n{text}");
    write(dir.path(), "large.csv", text.as_bytes());
    write(dir.path(), "small.csv", &text.as_bytes()[..900_000]);
    write(
        dir.path(),
        "bad.csv",
        text.replacen(",5", ",x", 1).as_bytes(),
    );
    let query = [
        "--explain",
        "-k",
        "city",
        "-a",
        "median:price as m,count",
        "--where",
        "note ~ 'a'",
        "--having",
        "m > 1",
    ];
    let explained = |name| run(dir.path(), &[&query[..], &[name]].concat()).0;
    let costs = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("costs "));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let large = costs(&explained("large.csv"));
    let (whole, of) = large[0]
        .split_once(" ns a record of one processor, in the first ")
        .unwrap();
    let whole: u64 = whole.parse().unwrap();
    assert!(whole > 0 && of.ends_with(" MiB"), "{large:?}");
    let known = ["-k city", "-a 'median:price as m'", "-a count", "--where"];
    for line in &large[1..] {
        let (cost, part) = line.split_once(" ns less without ").unwrap();
        assert!(
            cost.parse::<u64>().unwrap() < whole && known.contains(&part),
            "{line}"
        );
    }
    for name in ["small.csv", "bad.csv"] {
        assert_eq!(costs(&explained(name)), [""; 0], "{name}");
    }
}

#[test]
fn numbers_that_json_does_not_have() {
    let dir = dir();
    let text = b"{\"v\":NaN,\"w\":-Infinity}\n{\"v\":2,\"w\":[Infinity]}\n";
    write(dir.path(), "n.jsonl", text);
    let why = failure(dir.path(), 1, &["-a", "sum:v", "n.jsonl"]);
    assert!(
        why.ends_with("`--float` takes it for a number, `--null-value=NaN` for no value"),
        "{why}"
    );
    let sum = |more: &[&str]| {
        run(
            dir.path(),
            &[more, &["-a", "count,sum:v,min:v", "n.jsonl"]].concat(),
        )
        .0
    };
    assert_eq!(sum(&["--float"]), "count,sum_v,min_v\n2,nan,2\n");
    assert_eq!(sum(&["--null-value=NaN"]), "count,sum_v,min_v\n2,2,2\n");
    assert_eq!(sum(&["--on-error", "null"]), "count,sum_v,min_v\n2,2,2\n");
    assert_eq!(run(dir.path(), &["-a", "count", "n.jsonl"]).0, "count\n2\n");
    write(
        dir.path(),
        "bad.jsonl",
        b"{\"v\":Nan}\n{\"v\":-Inf}\n{\"v\":+Infinity}\n{\"v\":1}\n",
    );
    let (answer, said) = run(
        dir.path(),
        &["--on-error", "skip", "-a", "count", "bad.jsonl"],
    );
    assert_eq!(answer, "count\n1\n");
    assert!(said.starts_with("ringfold: 3 records skipped"), "{said}");
}

/// The commands of docs/not-for.md give what stands there.
#[test]
fn amounts_are_read_as_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/not-for.md");
    let page = std::fs::read_to_string(page).unwrap();
    let dir = dir();
    let program = crate::support::program();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut commands = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let (line, want) = command.split_once('\n').unwrap();
            let want = format!("{}\n", want.trim_end_matches('\n'));
            if let Some(name) = line.strip_prefix("cat ") {
                write(dir.path(), name, want.as_bytes());
                continue;
            }
            let mut shell = std::process::Command::new("sh");
            shell
                .args(["-c", line])
                .env("PATH", &path)
                .current_dir(dir.path());
            assert_eq!(
                String::from_utf8(end(&mut shell).answer()).unwrap(),
                want,
                "{line}"
            );
            commands += 1;
        }
    }
    assert_eq!(commands, 2);
}
