//! Times in keys, conditions and extremes: forms, units, what is refused, in every engine and form of input.

use std::path::Path;

use crate::support::{dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

fn failed(dir: &Path, args: &[&str], code: i32) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert!(ended.stdout.is_empty(), "{args:?}");
    ended.failure(code)
}

/// One hour in all forms, in columns of delimited text and of JSON lines.
#[test]
fn keys_of_all_forms() {
    let dir = dir();
    let forms = [
        "2026-03-12T06:25:01Z",
        "2026-03-12 06:25:01.5+01:00",
        "20260312T062501Z",
        "2026/03/12 06:25:01",
        "12/Mar/2026:06:25:01 +0000",
        "12/Mar/2026 06:25:01",
        "Thu, 12 Mar 2026 06:25:01 GMT",
        "Thu Mar 12 06:25:01 2026",
        "1773296701",
        "1773296701.5241024",
        "1773296701524",
        "1773296701524102",
        "1773296701524102400",
    ];
    let lines: String = forms.iter().map(|time| format!("{time};1\n")).collect();
    write(dir.path(), "t.csv", lines.as_bytes());
    let json = forms.map(|time| match time.parse::<f64>() {
        Ok(_) => format!("{{\"t\":{time}}}\n"),
        Err(_) => format!("{{\"t\":\"{time}\"}}\n"),
    });
    write(dir.path(), "t.jsonl", json.concat().as_bytes());
    for (unit, want) in [
        ("year", "2026"),
        ("month", "2026-03"),
        ("week", "2026-W11"),
        ("day", "2026-03-12"),
        ("hour", "2026-03-12T06"),
        ("minute", "2026-03-12T06:25"),
        ("second", "2026-03-12T06:25:01"),
        ("weekday", "4"),
        ("10m", "2026-03-12T06:20"),
    ] {
        let got = printed(
            dir.path(),
            &["-d", ";", "-k", &format!("1@{unit}"), "t.csv"],
        );
        assert_eq!(got, format!("key1_{unit},count\n{want},13\n"));
        let got = printed(dir.path(), &["-k", &format!("t@{unit}"), "t.jsonl"]);
        assert_eq!(got, format!("t_{unit},count\n{want},13\n"));
    }
}

#[test]
fn keys_of_two_columns() {
    let dir = dir();
    let log =
        b"2026-04-28\t09:59:49\t1\n2026-04-28\t10:00:00\t2\n-\t10:00:00\t4\n2026-04-29\t-\t8\n";
    write(dir.path(), "w3c.tsv", log);
    let got = printed(
        dir.path(),
        &[
            "--null-value",
            "-",
            "-k",
            "1+2@hour",
            "-a",
            "sum:3",
            "w3c.tsv",
        ],
    );
    let want = "key1_hour,sum_3\n\"\",12\n2026-04-28T09,1\n2026-04-28T10,2\n";
    assert_eq!(got, want);
    let error = failed(dir.path(), &["-k", "2@hour", "w3c.tsv"], 1);
    assert!(error.contains("`1+2@hour` joins two"), "{error}");
    let error = failed(dir.path(), &["-k", "1+2-3@hour", "w3c.tsv"], 2);
    assert!(
        error.contains("a time of day stands in one column"),
        "{error}"
    );
    write(
        dir.path(),
        "w3c.csv",
        b"date,time,\"c+d\"\n2026-04-28,09:59:49,2026-04-28\n",
    );
    let keys = "date+time@10m,\"c+d\"@day,\"date\"+\"time\"@hour";
    let got = printed(dir.path(), &["-H", "-k", keys, "w3c.csv"]);
    let want =
        "date_time_10m,c+d_day,date_time_hour,count\n2026-04-28T09:50,2026-04-28,2026-04-28T09,1\n";
    assert_eq!(got, want);
}

#[test]
fn what_is_refused_as_a_key() {
    let dir = dir();
    for (time, words) in [
        ("03/12/2026", "`03/12/2026` may be 2026-03-12 or 2026-12-03"),
        ("202603120625", "or milliseconds since 1970"),
        ("2026-02-30", "the calendar or the clock has no such"),
        (
            "2026-02-03 24:00:00",
            "the calendar or the clock has no such",
        ),
        ("2026-02-03 01:00:00 PM", "isn't a time: it is written as"),
        ("2026-02-03", "is a day without a time"),
    ] {
        write(dir.path(), "t.csv", format!("t,x\n{time},1\n").as_bytes());
        let error = failed(dir.path(), &["-H", "-k", "t@hour", "t.csv"], 1);
        assert!(
            error.contains("t.csv: byte 4 (line 2)") && error.contains(words),
            "{error}"
        );
    }
    let error = failed(dir.path(), &["-H", "-k", "t@fortnight", "t.csv"], 2);
    let words = "`fortnight` is no unit of time; these are year, month, week, day, hour";
    assert!(error.contains(words), "{error}");
    write(dir.path(), "at.csv", b"a@b\n1\n");
    assert_eq!(
        printed(dir.path(), &["-H", "-k", "a@b", "at.csv"]),
        "a@b,count\n1,1\n"
    );
}
