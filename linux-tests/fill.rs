//! Rows for missing values of a key: against what is listed by hand and by Python's zoneinfo, with every other shape of an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::probe::{Feature, skips};
use crate::shape::{everywhere, refused};
use crate::support::{dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    let (stdout, _) = ended.answer_and_notices();
    String::from_utf8(stdout).unwrap()
}

/// The values of the first column and the counts of a key that is filled.
fn filled(dir: &Path, key: &str, more: &[&str]) -> Vec<String> {
    let key = format!("{key} as k");
    let args = [&["-q", "-k", &key, "--fill", "k", "t.csv"], more].concat();
    printed(dir, &args)
        .lines()
        .skip(1)
        .map(String::from)
        .collect()
}

#[test]
fn each_kind_of_key() {
    let dir = dir();
    write(
        dir.path(),
        "t.csv",
        b"t,x\n2023-12-31T22:58:10,-0.75\n2024-01-01T00:07:00,1.3\n,\n",
    );
    for (key, want) in [
        ("t@hour", "2023-12-31T22 2023-12-31T23* 2024-01-01T00"),
        (
            "t@30m",
            "2023-12-31T22:30 2023-12-31T23:00* 2023-12-31T23:30* 2024-01-01T00:00",
        ),
        ("t@day", "2023-12-31 2024-01-01"),
        ("t@week", "2023-W52 2024-W01"),
        ("t@year", "2023 2024"),
        ("t@weekday", "1 2* 3* 4* 5* 6* 7"),
        ("weekday(t)", "1 2* 3* 4* 5* 6* 7"),
        ("quarter(t)", "1 2* 3* 4"),
        ("month(t)", "1 2* 3* 4* 5* 6* 7* 8* 9* 10* 11* 12"),
        ("year(t)", "2023 2024"),
        ("date_trunc('week', t)", "2023-12-25 2024-01-01"),
        (
            "time_bucket('20 minutes', t)",
            "2023-12-31T22:40 2023-12-31T23:00* 2023-12-31T23:20* 2023-12-31T23:40* 2024-01-01T00:00",
        ),
        (
            "time_bucket('25 minutes', t)",
            "2023-12-31T22:35 2023-12-31T23:00* 2023-12-31T23:25* 2023-12-31T23:50",
        ),
        ("bin(x, 0.5)", "-1 -0.5* 0* 0.5* 1"),
        ("bin(epoch(t), 2000)", "1704062000 1704064000* 1704066000"),
        ("floor(x)", "-1 0* 1"),
        ("ceil(x)", "0 1* 2"),
        (
            "round(x, 1)",
            "-0.8 -0.7* -0.6* -0.5* -0.4* -0.3* -0.2* -0.1* 0* 0.1* 0.2* 0.3* 0.4* 0.5* 0.6* 0.7* 0.8* 0.9* 1* 1.1* 1.2* 1.3",
        ),
        (
            "trunc(x * 100, -1)",
            "-70 -60* -50* -40* -30* -20* -10* 0* 10* 20* 30* 40* 50* 60* 70* 80* 90* 100* 110* 120* 130",
        ),
        ("log_bin(abs(x) * 100, 3)", "27 81"),
        ("log_bin(abs(x) / 10, 10)", "0.01 0.1"),
    ] {
        let got = filled(dir.path(), key, &[]);
        let got: Vec<String> = got
            .iter()
            .filter(|row| !row.starts_with("\"\""))
            .map(|row| match row.split_once(',').unwrap() {
                (value, "0") => format!("{value}*"),
                (value, _) => value.into(),
            })
            .collect();
        assert_eq!(got.join(" "), want, "{key}");
    }
    for (key, count) in [
        ("t@minute", 70),
        ("t@second", 4131),
        ("hour(t)", 24),
        ("second(t)", 60),
        ("day(t)", 31),
    ] {
        // The null key, too.
        assert_eq!(filled(dir.path(), key, &[]).len(), count + 1, "{key}");
    }
    // Nothing is between one and itself, and there may be nothing at all.
    for condition in ["x > 1", "x > 2"] {
        let got = filled(dir.path(), "t@day", &["--where", condition]);
        assert_eq!(got.len(), usize::from(condition == "x > 1"), "{condition}");
    }
    write(
        dir.path(),
        "t.csv",
        b"t,x\n2024-02-28,1e3\n2024-03-01,2\n2025-02-27,3\n2025-03-01,4\n",
    );
    let days = filled(dir.path(), "t@day", &[]);
    assert_eq!(days.len(), 368);
    assert_eq!((&*days[1], &*days[367]), ("2024-02-29,0", "2025-03-01,1"));
    assert_eq!(
        filled(dir.path(), "t@month", &[])[11..],
        ["2025-01,0", "2025-02,1", "2025-03,1"]
    );
}

/// Columns that are called like a computed key have any values and any width.
#[test]
fn columns_that_are_called_like_keys() {
    let dir = dir();
    for (head, values, why) in [
        ("bin(x, -10)", "10\n20", "can't be filled"),
        ("bin(x, 0)", "10\n20", "can't be filled"),
        ("log_bin(x, 1)", "10\n20", "can't be filled"),
        ("log_bin(x, 0.5)", "10\n20", "can't be filled"),
        ("hour(t)", "07\n09", "`07` isn't a value of such a key"),
        ("hour(t)", "7\n24", "`24` isn't a value of such a key"),
        ("bin(x, 1)", "1.0\n3", "`1.0` isn't a value of such a key"),
    ] {
        let text = format!("\"{head}\"\n{values}\n");
        write(dir.path(), "named.csv", text.as_bytes());
        let key = format!("\"{head}\"");
        let error = refused(dir.path(), &["-k", &key, "--fill", head, "named.csv"]);
        assert!(error.contains(why), "{head}: {error}");
    }
}

#[test]
fn keys_without_steps_are_refused() {
    let dir = dir();
    write(
        dir.path(),
        "t.csv",
        b"t,x\n2024-02-28 00:00:00,a\n2024-03-11 00:00:00,b\n",
    );
    for (args, why) in [
        (
            &["-k", "x", "--fill", "x"][..],
            "`x` can't be filled, because nothing says which value comes next: it is said of times that are cut down (t@hour",
        ),
        (&["-k", "t", "--fill", "t"], "`t` can't be filled"),
        (
            &["-k", "upper(x) as u", "--fill", "u"],
            "`u` can't be filled",
        ),
        (
            &["-k", "t@day", "--fill", "day"],
            "no column is called `day`",
        ),
        (
            &["-k", "t@day", "--fill", "count"],
            "no column is called `count`",
        ),
        (
            &["-k", "bin(length(x), length(x)) as b", "--fill", "b"],
            "`b` can't be filled",
        ),
    ] {
        let error = refused(dir.path(), &[args, &["t.csv"]].concat());
        assert!(error.contains(why), "{args:?}: {error}");
    }
    let many = ["-k", "t@second", "--fill", "t_second", "t.csv"];
    let error = refused(dir.path(), &many);
    let why = "filling `t_second` makes more than 1000000 rows: longer steps make fewer";
    assert!(error.contains(why), "{error}");
    let error = refused(dir.path(), &["--fill", "x", "t.csv"]);
    assert!(
        error.contains("--fill has no effect on this format"),
        "{error}"
    );
    // A column that is called as a key is written.
    write(
        dir.path(),
        "h.csv",
        b"t@hour\n2024-02-28T01\n2024-02-28T03\n",
    );
    assert_eq!(
        printed(
            dir.path(),
            &["-k", "\"t@hour\"", "--fill", "t@hour", "h.csv"]
        ),
        "t@hour,count\n2024-02-28T01,1\n2024-02-28T02,0\n2024-02-28T03,1\n"
    );
    write(dir.path(), "h.csv", b"t@hour\n2024-02-28T01\nx\n");
    let error = refused(
        dir.path(),
        &["-k", "\"t@hour\"", "--fill", "t@hour", "h.csv"],
    );
    assert!(
        error.contains("`t@hour` can't be filled: `x` isn't a value of such a key"),
        "{error}"
    );
}

/// What the clock doesn't show isn't there, and what it shows twice is there twice.
#[test]
fn clocks_that_change() {
    let dir = dir();
    let at = |times: &[&str]| {
        let text: String = ["t"]
            .iter()
            .chain(times)
            .map(|time| format!("{time}\n"))
            .collect();
        write(dir.path(), "t.csv", text.as_bytes());
    };
    let zone = |key: &str, zone: &str| {
        let rows = filled(dir.path(), key, &["--time-zone", zone]);
        rows.join(" ")
    };
    at(&["2026-03-29T00:30:00Z", "2026-03-29T02:30:00Z"]);
    assert_eq!(
        zone("t@hour", "Europe/Berlin"),
        "2026-03-29T01,1 2026-03-29T03,0 2026-03-29T04,1"
    );
    at(&["2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z"]);
    let twice = "2026-10-25T01,1 2026-10-25T02+01:00,0 2026-10-25T02+02:00,0 2026-10-25T03,1";
    for key in [
        "t@hour",
        "date_trunc('hour', t)",
        "time_bucket('1 hour', t, 'europe/berlin')",
    ] {
        assert_eq!(zone(key, "Europe/Berlin"), twice, "{key}");
    }
    assert_eq!(zone("t@day", "Europe/Berlin"), "2026-10-25,2");
    // Half an hour, and a day that a country has left out.
    at(&["2026-04-04T14:10:00Z", "2026-04-04T16:10:00Z"]);
    assert_eq!(
        zone("t@hour", "Australia/Lord_Howe"),
        "2026-04-05T01+10:30,0 2026-04-05T01+11:00,1 2026-04-05T02,1"
    );
    at(&["2011-12-29T12:00:00Z", "2012-01-01T00:00:00Z"]);
    assert_eq!(
        zone("t@day", "Pacific/Apia"),
        "2011-12-29,1 2011-12-31,0 2012-01-01,1"
    );
    // Times without an offset stand for both.
    at(&["2026-10-25 01:30", "2026-10-25 02:30", "2026-10-25 04:30"]);
    assert_eq!(
        zone("t@hour", "Europe/Berlin"),
        "2026-10-25T01,1 2026-10-25T02,1 2026-10-25T03,0 2026-10-25T04,1"
    );
}

const PYTHON: &str = r#"
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
name, minutes, first, last = sys.argv[1], *map(int, sys.argv[2:])
zone, seen = ZoneInfo(name), []
for instant in range(first, last + 1, 60):
    local = datetime.fromtimestamp(instant, zone)
    start = local.replace(tzinfo=None, second=0)
    start -= timedelta(minutes=(start.hour * 60 + start.minute) % minutes)
    text = start.strftime("%Y-%m-%d" if minutes == 1440 else "%Y-%m-%dT%H:%M")
    both = [(start + timedelta(minutes=at)).replace(tzinfo=zone) for at in range(minutes if minutes <= 60 else 0)]
    if any(at.utcoffset() > at.replace(fold=1).utcoffset() for at in both):
        ahead = int(local.utcoffset().total_seconds())
        text += f"{'-' if ahead < 0 else '+'}{abs(ahead) // 3600:02}:{abs(ahead) // 60 % 60:02}"
    seen.append(text)
print(*sorted(set(seen)), sep="\n")
"#;

#[test]
fn buckets_are_those_of_python() {
    if skips(
        "buckets_are_those_of_python",
        &[Feature::Python, Feature::TimeZones],
    ) {
        return;
    }
    let dir = dir();
    for (zone, minutes, first, days) in [
        ("Europe/Berlin", 30, 1_792_700_000, 5),
        ("America/St_Johns", 60, 1_772_900_000, 3),
        ("America/New_York", 15, 1_793_400_000, 3),
        ("Australia/Lord_Howe", 20, 1_775_200_000, 2),
        ("Pacific/Apia", 1440, 1_325_000_000, 9),
        ("Asia/Kathmandu", 60, 1_000_000_000, 2),
    ] {
        let last = first + days * 86_400;
        write(
            dir.path(),
            "t.csv",
            format!("t\n{first}\n{last}\n").as_bytes(),
        );
        let unit = if minutes == 1440 {
            "1 day".into()
        } else {
            format!("{minutes} minutes")
        };
        let key = format!("time_bucket('{unit}', t, '{zone}')");
        let got = filled(dir.path(), &key, &[]);
        let got: Vec<String> = got
            .iter()
            .map(|row| {
                let text = row.split(',').next().unwrap();
                // Hours have no minutes.
                let hours = "2026-10-25T02".len();
                match minutes == 60 {
                    true => format!("{}:00{}", &text[..hours], &text[hours..]),
                    false => text.into(),
                }
            })
            .collect();
        let args = [minutes, first, last].map(|number: i64| number.to_string());
        let mut python = Command::new("python3");
        let want = end(python.args(["-c", PYTHON, zone]).args(args)).answer();
        assert_eq!(
            got.join("\n"),
            String::from_utf8(want).unwrap().trim_end(),
            "{zone} {minutes}"
        );
    }
}

/// Times and numbers of some groups, with gaps.
fn records(count: u64) -> String {
    let mut text = String::from("t,city,x\n");
    for row in 0..count {
        let random = (row + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17;
        let hour = (random % 40) * (random / 40 % 5);
        let city = ["Bern", "Oslo", "", "Rome"][random as usize / 200 % 4];
        let x = if row % 11 == 0 {
            String::new()
        } else {
            format!("{}.{}", random % 90, row % 10)
        };
        writeln!(
            text,
            "2026-02-2{}T{:02}:05:00Z,{city},{x}",
            5 + hour / 24 % 4,
            hour % 24
        )
        .unwrap();
    }
    text
}

/// The rows of an answer that isn't filled, and for each missing value one as `empty` has it.
fn naive(answer: &str, values: &[String], empty: &str) -> BTreeSet<String> {
    let mut by_city = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut rows = BTreeSet::new();
    for row in answer.lines().skip(1) {
        let mut parts = row.split(',');
        let (value, city) = (parts.next().unwrap(), parts.next().unwrap());
        by_city.entry(city).or_default().insert(value);
        rows.insert(row.to_string());
    }
    for (city, own) in by_city {
        for value in values.iter().filter(|value| !own.contains(&***value)) {
            rows.insert(format!("{value},{city},{empty}"));
        }
    }
    rows
}

/// Several keys, every aggregate, and everything that is done with an answer.
#[test]
fn with_other_keys_and_shapes() {
    let dir = dir();
    write(dir.path(), "t.csv", records(900).as_bytes());
    let aggregates = "count,sum:x,mean:x,count_if(x > 50),p50:x,distinct:x,mode:x,first:x,top(2, x) as top,\
                      coalesce(sum(x), 0) + 1 as plus,share(count())";
    let asked = ["-k", "t@hour,city", "-a", aggregates];
    let plain = printed(dir.path(), &[&asked[..], &["t.csv"]].concat());
    let first = plain.lines().nth(1).unwrap()[..13].to_string();
    let last = plain.lines().last().unwrap()[..13].to_string();
    let hours =
        (25..=28).flat_map(|day| (0..24).map(move |hour| format!("2026-02-{day}T{hour:02}")));
    let hours: Vec<String> = hours
        .filter(|hour| *hour >= first && *hour <= last)
        .collect();
    let got = everywhere(dir.path(), &asked, &["--fill", "t_hour"], "t.csv");
    let want = naive(&plain, &hours, "0,,,0,,0,,,,1,0.000000");
    assert!(want.len() > plain.lines().count() + 20);
    let mut lines = got.lines();
    assert_eq!(lines.next(), plain.lines().next());
    assert_eq!(
        lines.map(String::from).collect::<Vec<_>>(),
        want.into_iter().collect::<Vec<_>>()
    );
    // What is asked of the rows is asked of those that were made, too.
    let asked = ["-k", "t@hour,city", "-a", "count,sum:x"];
    let fill = ["--fill", "t_hour"];
    let shown =
        |more: &[&str]| everywhere(dir.path(), &asked, &[&fill[..], more].concat(), "t.csv");
    let all = shown(&[]);
    let empty: Vec<&str> = all
        .lines()
        .skip(1)
        .filter(|row| row.ends_with(",0,"))
        .collect();
    let got = shown(&["--having", "count = 0"]);
    assert_eq!(got.lines().skip(1).collect::<Vec<_>>(), empty);
    let got = shown(&["--sort", "-count,city", "--top", "3", "--per", "city"]);
    assert_eq!(got.lines().count(), 13);
    let got = shown(&["--sort", "count", "--top", "2", "--total"]);
    assert!(got.lines().nth(1).unwrap().ends_with(",0,"), "{got}");
    assert!(
        got.lines().last().unwrap().starts_with("total,,900,"),
        "{got}"
    );
    let got = shown(&["--pivot", "city", "--total", "--as", "t_hour,city,n,s"]);
    assert_eq!(got.lines().count(), hours.len() + 2);
    assert!(got.starts_with("t_hour,null_n,null_s,Bern_n,"), "{got}");
    let got = shown(&["--pivot", "t_hour", "--sort", "city"]);
    assert_eq!(
        got.lines().next().unwrap().split(',').count(),
        1 + 2 * hours.len()
    );
    // By number, in bins of the first key and of the last.
    let asked = ["-k", "city,bin(x, 7)", "-a", "count"];
    let got = everywhere(
        dir.path(),
        &asked,
        &["--fill", "bin(x, 7)", "--top", "16"],
        "t.csv",
    );
    let bins: Vec<&str> = got
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(1).unwrap())
        .collect();
    let want: Vec<String> = (0..13).map(|bin| (7 * bin).to_string()).collect();
    assert_eq!(
        (bins[0], bins[1..14].to_vec()),
        ("\"\"", want.iter().map(|bin| &**bin).collect())
    );
}

/// A partial is the same with the flag, and what is made isn't in it.
#[test]
fn partials_have_no_rows_of_none() {
    let dir = dir();
    write(dir.path(), "t.csv", records(300).as_bytes());
    let kept = |name: &str, more: &[&str]| {
        let asked = [
            "-k",
            "t@hour,city",
            "-a",
            "count,p50:x",
            "--save-partial",
            name,
            "--report-too",
            "t.csv",
        ];
        printed(dir.path(), &[&asked[..], more].concat());
        std::fs::read(dir.path().join(name)).unwrap()
    };
    let want = kept("a", &[]);
    assert_eq!(kept("b", &["--fill", "t_hour"]), want);
    assert_eq!(kept("c", &["--fill", "t_hour", "--memory", "64K"]), want);
    let merge = |more: &[&str]| end(ringfold(["merge", "b"]).args(more).current_dir(dir.path()));
    let error = merge(&["--fill", "city"]).failure(2);
    assert!(error.contains("`city` can't be filled"), "{error}");
}

/// Groups that outgrow the memory, with rows made between them.
#[test]
fn groups_in_files() {
    let dir = dir();
    let mut text = String::from("user,t\n");
    for user in 0..20_000 {
        writeln!(text, "user {user:07},{}", 1_700_000_000 + user % 4 * 3600).unwrap();
    }
    write(dir.path(), "t.csv", text.as_bytes());
    let asked = ["-k", "user,t@hour", "--fill", "t_hour", "t.csv"];
    let want = printed(dir.path(), &asked);
    assert_eq!(want.lines().count(), 80_001);
    assert_eq!(
        want.lines().filter(|row| row.ends_with(",0")).count(),
        60_000
    );
    for more in [
        &["--memory", "1M"][..],
        &["--memory", "1M", "--sort", "none", "--sort", "key"],
    ] {
        let got = printed(dir.path(), &[&asked[..], &more[..2]].concat());
        assert!(got == want, "{more:?}");
    }
    let having = [
        "--having",
        "count = 0",
        "--sort",
        "t_hour,-user",
        "--top",
        "2",
    ];
    let want = "user,t_hour,count\nuser 0019999,2023-11-14T22,0\nuser 0019998,2023-11-14T22,0\n";
    for memory in ["1M", "1G"] {
        let got = printed(
            dir.path(),
            &[&asked[..], &having, &["--memory", memory]].concat(),
        );
        assert_eq!(got, want, "{memory}");
    }
}

/// Formats show the rows as any others.
#[test]
fn in_every_format() {
    let dir = dir();
    write(dir.path(), "t.csv", b"t,x\n2026-01-01,2\n2026-01-03,4\n");
    let asked = [
        "-k",
        "t@day",
        "-a",
        "mean:x,count",
        "--fill",
        "t_day",
        "t.csv",
        "-f",
    ];
    let shown = |format: &str| printed(dir.path(), &[&asked[..], &[format]].concat());
    assert!(shown("ndjson").contains("{\"t_day\":\"2026-01-02\",\"mean_x\":null,\"count\":0}\n"));
    assert!(shown("html").contains("2026-01-02"));
    assert!(
        shown("bars")
            .lines()
            .any(|line| line.starts_with("2026-01-02"))
    );
    // Each query has its own.
    let args = [
        "-k", "t@day", "--next", "-k", "t@day", "--fill", "t_day", "t.csv",
    ];
    assert_eq!(
        printed(dir.path(), &args),
        "t_day,count\n2026-01-01,1\n2026-01-03,1\n\nt_day,count\n2026-01-01,1\n2026-01-02,0\n2026-01-03,1\n"
    );
}
