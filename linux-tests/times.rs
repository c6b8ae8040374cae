//! Times in keys, conditions and extremes: forms, units, what is refused, in every engine and form of input.

use std::path::Path;

use ringfold::query::Query;
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Input, fold};

use crate::support::{WAYS, dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

/// What a run that fails says, all lines.
fn failed(dir: &Path, args: &[&str], code: i32) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert_eq!(
        (ended.code, ended.stdout.len()),
        (Some(code), 0),
        "{args:?}"
    );
    ended.stderr
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
        error.contains("one column is wanted here, and not several"),
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
            error.contains("t.csv: byte 4-") && error.contains("(line 2)") && error.contains(words),
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

const LOG: &[u8] = b"\
192.0.2.1 - - [31/Jan/2026:23:59:59 +0000] \"GET /a HTTP/1.1\" 200 1 \"-\" \"c\"
192.0.2.1 - - [01/Feb/2026:00:00:01 +0000] \"GET /b HTTP/1.1\" 200 2 \"-\" \"c\"
192.0.2.2 - - [02/Feb/2026:10:00:01 +0000] \"GET /b HTTP/1.1\" 500 4 \"-\" \"c\"
192.0.2.2 - - [12/Mar/2026:10:00:01 +0000] \"GET /b HTTP/1.1\" 500 8 \"-\" \"c\"
";

/// What a condition leaves of the log, as a sum of bytes.
#[test]
fn conditions_on_times_of_logs() {
    let dir = dir();
    write(dir.path(), "dates.log", LOG);
    for (condition, want) in [
        ("time >= '2026-02-01'", "14"),
        ("time >= '01/Feb/2026'", "14"),
        ("time >= '01/Feb/2026:00:00:01 +0000'", "14"),
        ("time >= '2026-02-01T01:00:01+01:00'", "14"),
        ("time > '2026-02-01T01:00:01+01:00'", "12"),
        ("time = '1769904001'", "2"),
        ("time < '2026-06-01' and time >= '2026-02-02'", "12"),
        ("not (time < '2026-03')", "8"),
        ("'2026-02-02 10:00:01' = time", "4"),
        (
            "time in ('2026-02-02 10:00:01', '2026-03-12T10:00:01Z')",
            "12",
        ),
        ("time not in ('2026-02-02 10:00:01')", "11"),
        ("time ~ '/Feb/2026'", "6"),
        ("time@day >= '2026-02-01'", "14"),
        ("time@day <= '2026-02-01'", "3"),
        ("time@day = '01/Feb/2026'", "2"),
        ("time@month = '2026-02'", "6"),
        ("time@hour >= '2026-02-02'", "12"),
        ("time@hour ~ 'T10$'", "12"),
        ("time@week = '2026-W05'", "3"),
        ("time@weekday >= 6", "3"),
        ("time@weekday in ('6', 4)", "9"),
        ("time@year = 2026 and time@10m < '2026-02-01T00:00'", "1"),
        ("time@day is null", "\"\""),
        ("$4@day != '2026-02-02'", "11"),
    ] {
        let args = [
            "--log",
            "combined",
            "-a",
            "sum:bytes",
            "--where",
            condition,
            "dates.log",
        ];
        assert_eq!(
            printed(dir.path(), &args),
            format!("sum_bytes\n{want}\n"),
            "{condition}"
        );
    }
    for (condition, at, words) in [
        (
            "time >= 'soon'",
            8,
            "`soon` isn't a time: it is written as 2026-03-12T06:25:01Z",
        ),
        (
            "time >= '2026-02-30'",
            8,
            "`2026-02-30` isn't a time: the calendar or the clock",
        ),
        ("time >= '02/01/2026'", 8, "may be 2026-02-01 or 2026-01-02"),
        ("time >= 20260201", 8, "a time stands in single quotes"),
        (
            "time@day >= '2026-W07'",
            12,
            "is no value of @day: one is written '2026-03-12'",
        ),
        (
            "time@hour > 5",
            12,
            "a time stands in single quotes, as '2026-03-12T06'",
        ),
        ("time@weekday = 'Mon'", 15, "is no value of @weekday"),
        (
            "time@fortnight = '1'",
            4,
            "`fortnight` is no unit of time; these are year",
        ),
    ] {
        let args = [
            "--log",
            "combined",
            "-a",
            "count",
            "--where",
            condition,
            "dates.log",
        ];
        let error = failed(dir.path(), &args, 2);
        let place = format!("--where: column {}: ", at + 1);
        assert!(
            error.contains(&place) && error.contains(words),
            "{condition}: {error}"
        );
    }
}

/// Texts are compared as times where the other side plainly is one, whatever their form.
#[test]
fn conditions_on_times_of_all_forms() {
    let dir = dir();
    let text = "t,n\n\
        2026-01-31 23:59:59,1\n\
        2026/02/01 00:00:01,2\n\
        20260201T000002Z,4\n\
        \"Sun, 01 Feb 2026 00:00:03 GMT\",8\n\
        Sun Feb  1 00:00:04 2026,16\n\
        1769904005,32\n\
        1769904006.5,64\n\
        1769904007500,128\n\
        2026-02-01T00:00:08,256\n\
        ,512\n";
    write(dir.path(), "t.csv", text.as_bytes());
    for (condition, want) in [
        ("t >= '2026-02-01'", 510),
        ("t < '2026-02-01'", 1),
        ("not (t < '2026-02-01 00:00:04')", 496),
        ("t = '2026-02-01 00:00:05'", 32),
        (
            "t >= '2026-02-01 00:00:06' and t <= '2026/02/01 00:00:07.5'",
            192,
        ),
        ("t@minute = '2026-02-01T00:00'", 510),
        ("t >= '2026-02-01T00:00:04Z' and t@day >= '2026-02-01'", 224),
        ("t is null", 512),
    ] {
        let args = ["-H", "-a", "sum:n", "--where", condition, "t.csv"];
        assert_eq!(
            printed(dir.path(), &args),
            format!("sum_n\n{want}\n"),
            "{condition}"
        );
    }
    for condition in ["t >= '02/01/2026'", "t <= '2026-02-31'"] {
        let args = ["-H", "-a", "sum:n", "--where", condition, "t.csv"];
        let error = failed(dir.path(), &args, 2);
        assert!(error.contains("--where: column 6: "), "{error}");
    }
    write(
        dir.path(),
        "w3c.csv",
        b"date,time,n\n2026-02-01,09:59:49,1\n2026-02-01,10:00:00,2\n2026-02-01,,4\n",
    );
    for (condition, want) in [
        ("date+time >= '2026-02-01 10:00'", "2"),
        ("$1+$2@hour = '2026-02-01T09'", "1"),
        ("date+time is null", "4"),
        ("date >= '2026-02-01'", "7"),
    ] {
        let args = ["-H", "-a", "sum:n", "--where", condition, "w3c.csv"];
        assert_eq!(
            printed(dir.path(), &args),
            format!("sum_n\n{want}\n"),
            "{condition}"
        );
    }
    // Digits and other texts stay texts.
    write(dir.path(), "x.csv", b"x\n20260201\n2026-02-01-b\nb\n");
    for (condition, want) in [
        ("x = '20260201'", 1),
        ("x >= '2026-02-01-a'", 3),
        ("x < 'a'", 2),
    ] {
        let args = ["-H", "-a", "count", "--where", condition, "x.csv"];
        assert_eq!(
            printed(dir.path(), &args),
            format!("count\n{want}\n"),
            "{condition}"
        );
    }
}

#[test]
fn conditions_on_rows_of_times() {
    let dir = dir();
    write(dir.path(), "dates.log", LOG);
    let log = [
        "--log",
        "combined",
        "-k",
        "host",
        "-a",
        "max:time",
        "dates.log",
        "--having",
    ];
    for (condition, want) in [
        (
            "max_time >= '2026-03-01'",
            "192.0.2.2,12/Mar/2026:10:00:01 +0000\n",
        ),
        (
            "max_time@day = '2026-02-01'",
            "192.0.2.1,01/Feb/2026:00:00:01 +0000\n",
        ),
        ("max_time >= '2026-04-01'", ""),
    ] {
        let got = printed(dir.path(), &[&log[..], &[condition]].concat());
        assert_eq!(got, format!("host,max_time\n{want}"), "{condition}");
    }
    let log = [
        "--log",
        "combined",
        "-k",
        "time@day",
        "-a",
        "sum:bytes",
        "dates.log",
        "--having",
    ];
    let got = printed(
        dir.path(),
        &[&log[..], &["time_day >= '02/Feb/2026'"]].concat(),
    );
    assert_eq!(got, "time_day,sum_bytes\n2026-02-02,4\n2026-03-12,8\n");
}

/// The same in every engine, from a pipe, compressed, and from partials merged in any order.
#[test]
fn extremes_of_times() {
    let dir = dir();
    let mut log = Vec::new();
    for n in 0..400_usize {
        let (day, month) = (1 + n * 7 % 28, ["Jan", "Feb", "Mar", "Apr"][n * 5 % 4]);
        let host = n % 3;
        let line = format!(
            "192.0.2.{host} - - [{day:02}/{month}/2026:10:00:{:02} +0{}00] \"GET / HTTP/1.1\" 200 {n} \"-\" \"c\"\n",
            n % 60,
            n % 2
        );
        log.extend_from_slice(line.as_bytes());
    }
    let path = write(dir.path(), "times.log", &log);
    let mut want = "host,min_time,max_time\n".to_string();
    for host in 0..3 {
        let of_host = (0..400_usize).filter(|n| n % 3 == host);
        let instant = |n: &usize| (n * 5 % 4, n * 7 % 28, 10 - n % 2, n % 60);
        let text = |n: usize| {
            let (day, month) = (1 + n * 7 % 28, ["Jan", "Feb", "Mar", "Apr"][n * 5 % 4]);
            format!("{day:02}/{month}/2026:10:00:{:02} +0{}00", n % 60, n % 2)
        };
        let (least, most) = (
            of_host.clone().min_by_key(instant),
            of_host.max_by_key(instant),
        );
        want += &format!(
            "192.0.2.{host},{},{}\n",
            text(least.unwrap()),
            text(most.unwrap())
        );
    }
    let of = |names: [&str; 2]| {
        let query = Query::log("combined").unwrap().key("host");
        let [min, max] = names;
        let query = query.aggregate(min, Some("time".into()));
        query
            .and_then(|query| query.aggregate(max, Some("time".into())))
            .unwrap()
    };
    for names in [["min", "max"], ["lexmin", "lexmax"]] {
        let [min, max] = names;
        let want = want.replace("min_time,max_time", &format!("{min}_time,{max}_time"));
        for way in WAYS.iter() {
            for (block, threads) in [(4096, 1), (8192, 3)] {
                let config = Config {
                    block_size: Some(block),
                    threads: Some(threads),
                    ..way.config()
                };
                let input = Input::open([&path]).unwrap();
                let plan = of(names).plan(&input, &config).unwrap();
                let (answer, _) = fold(&input, &config, &plan).unwrap();
                let mut csv = Vec::new();
                write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
                assert_eq!(String::from_utf8(csv).unwrap(), want, "{way:?}");
            }
        }
    }
    let asked = ["--log", "combined", "-k", "host", "-a", "min:time,max:time"];
    let mut pipe = ringfold([&["aggregate"][..], &asked, &["-"]].concat());
    pipe.current_dir(dir.path())
        .stdin(std::fs::File::open(&path).unwrap());
    assert_eq!(String::from_utf8(end(&mut pipe).answer()).unwrap(), want);
    for part in ["1/3", "2/3", "3/3"] {
        let name = format!("{}.part", &part[..1]);
        let args = [
            &asked[..],
            &["--range", part, "--save-partial", &name, "times.log"],
        ]
        .concat();
        end(ringfold(["aggregate"]).args(args).current_dir(dir.path())).answer();
    }
    for order in [["1", "2", "3"], ["3", "1", "2"], ["2", "3", "1"]] {
        let names = order.map(|part| format!("{part}.part"));
        let mut merge = ringfold(["merge"]);
        let ended = end(merge.args(names).current_dir(dir.path()));
        assert_eq!(String::from_utf8(ended.answer()).unwrap(), want);
    }
    let sorted = [
        &asked[..],
        &["--sort", "max_time:desc", "--top", "1", "times.log"],
    ]
    .concat();
    let got = printed(dir.path(), &sorted);
    let latest = (0..400_usize).max_by_key(|n| (n * 5 % 4, n * 7 % 28, 10 - n % 2, n % 60));
    assert!(
        got.contains(&format!("\n192.0.2.{},", latest.unwrap() % 3)),
        "{got}"
    );
}

#[test]
fn extremes_of_other_columns() {
    let dir = dir();
    write(
        dir.path(),
        "t.csv",
        b"k,day\na,2026-02-01\na,2026-01-31T10:00:00\nb,\na,01/Mar/2026\n",
    );
    let asked = ["-H", "-k", "k", "-a", "min:day@time,max:day@time", "t.csv"];
    let got = printed(dir.path(), &asked);
    assert_eq!(
        got,
        "k,min_day,max_day\na,2026-01-31T10:00:00,01/Mar/2026\nb,,\n"
    );
    let error = failed(dir.path(), &["-H", "-a", "sum:day@time", "t.csv"], 2);
    assert!(
        error.contains("`sum` isn't computed of times, but `min` and `max` are"),
        "{error}"
    );
    let error = failed(dir.path(), &["-H", "-a", "max:day", "t.csv"], 1);
    assert!(
        error.contains("`2026-02-01` is not a number")
            && error.contains("`@time` after the column"),
        "{error}"
    );
    write(dir.path(), "bad.csv", b"k,day\na,2026-02-01\na,soon\n");
    let asked = ["-H", "-a", "max:day@time,count", "bad.csv"];
    let error = failed(dir.path(), &asked, 1);
    assert!(
        error.contains("line 3") && error.contains("`soon` isn't a time"),
        "{error}"
    );
    let ended = end(ringfold(["aggregate", "--on-error", "null"])
        .args(asked)
        .current_dir(dir.path()));
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        "max_day,count\n2026-02-01,2\n"
    );
}

#[test]
fn forms_are_explained() {
    let dir = dir();
    write(dir.path(), "dates.log", LOG);
    let args = [
        "--log",
        "combined",
        "-k",
        "time@hour",
        "--explain",
        "dates.log",
    ];
    let explained = printed(dir.path(), &args);
    for part in [
        "times         cut as they are written: zones aren't looked at\n",
        "times, as 12/Mar/2026:06:25:01",
    ] {
        assert!(explained.contains(part), "{explained}");
    }
    write(
        dir.path(),
        "t.csv",
        b"t,u\n1773296701,2026-01-01\n1773296702,01/Jan/2026\n",
    );
    let args = ["-H", "-k", "t@hour,u", "--explain", "t.csv"];
    let explained = printed(dir.path(), &args);
    assert!(
        explained.contains("times, seconds since 1970"),
        "{explained}"
    );
    assert!(explained.contains("times of several forms"), "{explained}");
}

/// A value that no time can be made of is said where it counts as none.
#[test]
fn values_that_are_no_times_are_counted() {
    let dir = dir();
    write(dir.path(), "t.csv", b"k,t\na,2026-01-02\na,soon\na,later\n");
    let args = ["-k", "k", "-a", "max:t@time", "--on-error", "null", "t.csv"];
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir.path()));
    let (answer, said) = ended.answer_and_notices();
    assert_eq!(answer, b"k,max_t\na,2026-01-02\n");
    let want = "ringfold: 2 values taken for no value, the first at t.csv byte 17 line 3: `soon` isn't a time";
    assert!(said.starts_with(want), "{said}");
}
