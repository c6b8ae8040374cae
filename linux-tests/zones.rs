//! Times in zones: what is printed, reported and refused; every engine; partials; and Python's zoneinfo.

use std::path::Path;
use std::process::{Command, Stdio};

use ringfold::query::Query;
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Input, fold};

use crate::probe::{Feature, skips};
use crate::support::{WAYS, dir, end, end_of, feed, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

/// What a run prints, and what it says beside.
fn noticed(dir: &Path, args: &[&str]) -> (String, String) {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    (String::from_utf8(ended.stdout).unwrap(), ended.stderr)
}

fn failed(dir: &Path, args: &[&str], code: i32) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert_eq!(ended.code, Some(code), "{args:?} {}", ended.stderr);
    ended.stderr
}

const AUTUMN: &[u8] = b"t,n\n\
    2026-10-25T00:30:00Z,1\n\
    2026-10-25T02:45:00+02:00,2\n\
    1792891800,4\n\
    25/Oct/2026:02:30:00 +0000,8\n";

#[test]
fn keys_conditions_and_functions() {
    let dir = dir();
    write(dir.path(), "t.csv", AUTUMN);
    let hours = "2026-10-25T02+01:00,4\n2026-10-25T02+02:00,3\n2026-10-25T03,8\n";
    for (args, want) in [
        (["-k", "t@hour[europe/berlin]"], hours),
        (["-k", "date_trunc('hour', t, 'Europe/Berlin')"], hours),
        (
            ["-k", "time_bucket('60 minutes', t, 'Europe/Berlin')"],
            hours,
        ),
        (["--time-zone=Europe/Berlin", "-k=t@hour"], hours),
        (["--time-zone=UTC", "-k=t@hour[Europe/Berlin]"], hours),
        (["--time-zone=Europe/Berlin", "-k=hour(t)"], "2,7\n3,8\n"),
        (
            ["--time-zone=Asia/Kathmandu", "-k=minute(t)"],
            "15,13\n30,2\n",
        ),
        (["--time-zone=-09:30", "-k=t@day"], "2026-10-24,15\n"),
        (["-k", "weekday(t, 'Pacific/Apia')"], "7,15\n"),
        (
            ["-k", "time_bucket('6 hours', t, 'Europe/Berlin')"],
            "2026-10-25T00,15\n",
        ),
        (["-k", "quarter(t, 'UTC') + year(t, 'UTC')"], "2030,15\n"),
        (
            ["-k", "epoch(t, 'Europe/Berlin') = 1792888200"],
            "false,14\ntrue,1\n",
        ),
    ] {
        let args = [&args[..], &["-a", "sum:n", "t.csv"]].concat();
        let got = printed(dir.path(), &args);
        assert_eq!(got.split_once('\n').unwrap().1, want, "{args:?}");
    }
    for (condition, want) in [
        ("t >= '2026-10-25 02:45'", 14),
        ("t < '2026-10-25 03:00'", 7),
        ("t < '2026-10-25T02:00+01:00'", 3),
        ("t@hour = '2026-10-25T02'", 7),
        ("t@hour[UTC] = '2026-10-25T02'", 8),
        (
            "t@minute >= '2026-10-25T02:45' and t@minute < '2026-10-25T03'",
            2,
        ),
        ("t in ('2026-10-25 02:30', '2026-10-25 03:30')", 9),
        ("hour(t) = 2", 7),
        // A time that the clock leaves out is an hour later.
        ("t >= '2026-03-29 02:30' and t@year = 2026", 15),
        ("t > '2026-10-25'", 15),
    ] {
        let zone = "--time-zone=Europe/Berlin";
        let args = [zone, "-a", "sum:n", "--where", condition, "t.csv"];
        assert_eq!(
            printed(dir.path(), &args),
            format!("sum_n\n{want}\n"),
            "{condition}"
        );
    }
    for (args, code, words) in [
        (["-k", "t@hour[Berlin]"], 2, "did you mean `Europe/Berlin`?"),
        (
            ["-k", "hour(t, 'Europe/Berln')"],
            2,
            "column 9: there is no time zone `Europe/Berln`, did you mean",
        ),
        (
            ["-k", "hour(t, n)"],
            2,
            "the name of a time zone is a text, 'Europe/Berlin'",
        ),
        (
            ["--time-zone", "Mars"],
            2,
            "there is no time zone `Mars`: zones are called as in the tz database",
        ),
        (["--input-time-zone", "UTC"], 2, "name that zone, too"),
        (
            ["--where", "t@day[UTC = 'x'"],
            2,
            "column 2: the bracket that opens after `@` is never closed",
        ),
        (
            ["--where", "t@day[UTC] = '2026-10-25T02Z'"],
            2,
            "has an offset, and @day is what the zone's clock shows",
        ),
    ] {
        let error = failed(
            dir.path(),
            &[&args[..], &["-a", "count", "t.csv"]].concat(),
            code,
        );
        assert!(error.contains(words), "{args:?}: {error}");
    }
}

/// What times without an offset are is said, with the first of them, in every way to look at times.
#[test]
fn times_without_an_offset() {
    let dir = dir();
    let text = b"t,n\n2026-03-29T00:30:00Z,1\n2026-03-29 02:30:00,2\n2026-03-29 03:30:00,4\n,8\n";
    write(dir.path(), "t.csv", text);
    let notice = "times without an offset are taken for those of the zone that they are looked at in, the first at t.csv byte \
                  27 line 3: --input-time-zone names another, as UTC";
    let zone = "--time-zone=Europe/Berlin";
    for (args, want) in [
        (
            [zone, "-k=t@hour"],
            "\"\",8\n2026-03-29T01,1\n2026-03-29T02,2\n2026-03-29T03,4\n",
        ),
        (
            [zone, "-k=epoch(t)"],
            "\"\",8\n1774744200,1\n1774747800,6\n",
        ),
        ([zone, "--where=t >= '2026-03-29 02:00'"], "6\n"),
        (
            ["-k", "hour(replace(t, 'x', ''), 'Europe/Berlin')"],
            "\"\",8\n1,1\n2,2\n3,4\n",
        ),
        (
            [zone, "-k=case when t@day = '2026-03-29' then n end"],
            "\"\",8\n1,1\n2,2\n4,4\n",
        ),
    ] {
        let args = [&args[..], &["-a", "sum:n", "t.csv"]].concat();
        let (got, said) = noticed(dir.path(), &args);
        assert_eq!(got.split_once('\n').unwrap().1, want, "{args:?}");
        assert!(said.contains(notice), "{args:?}: {said}");
        let (got, said) = noticed(
            dir.path(),
            &[&args[..], &["--input-time-zone=Asia/Tokyo"]].concat(),
        );
        assert!(said.is_empty() && got.contains('\n'), "{args:?}: {said}");
    }
    let args = [
        zone,
        "--input-time-zone=UTC",
        "-k",
        "t@hour",
        "-a",
        "sum:n",
        "t.csv",
    ];
    let want = "t_hour,sum_n\n\"\",8\n2026-03-29T01,1\n2026-03-29T04,2\n2026-03-29T05,4\n";
    assert_eq!(printed(dir.path(), &args), want);
    // Without a zone nothing is said, and nothing is where no time lacks an offset.
    printed(dir.path(), &["-k", "t@hour", "t.csv"]);
    write(dir.path(), "z.csv", AUTUMN);
    printed(
        dir.path(),
        &[zone, "-k", "t@hour", "--where", "t > '2026-10-25'", "z.csv"],
    );
    let explained = printed(dir.path(), &[zone, "--explain", "-k", "t@hour", "t.csv"]);
    assert!(
        explained.contains("on the clock of Europe/Berlin (tz database 20"),
        "{explained}"
    );
    let args = [
        "--explain",
        "-k",
        "t@hour,t@day[UTC]",
        "--input-time-zone=+01",
        "t.csv",
    ];
    let explained = printed(dir.path(), &args);
    for words in [
        "cut as they are written: zones aren't looked at",
        "on the clock of UTC, those without an offset from that of +01:00 (tz",
    ] {
        assert!(explained.contains(words), "{explained}");
    }
    write(dir.path(), "cet.csv", b"t\nWed Nov 25 13:45:10 CET 2026\n");
    let error = failed(dir.path(), &[zone, "-k", "t@hour", "cet.csv"], 1);
    assert!(
        error.contains("has a zone's name that says no offset"),
        "{error}"
    );
}

#[test]
fn extremes_of_times() {
    let dir = dir();
    write(
        dir.path(),
        "t.csv",
        b"t\n2026-07-01 12:00\n2026-07-01T11:30:00Z\n2026-07-01T10:30:00Z\n",
    );
    let of = ["-a", "min:t@time,max:t@time", "t.csv"];
    for (flags, want) in [
        (&[][..], "2026-07-01T10:30:00Z,2026-07-01 12:00"),
        // 12:00 is 10:00 in UTC.
        (
            &["--time-zone=Europe/Berlin"],
            "2026-07-01 12:00,2026-07-01T11:30:00Z",
        ),
        (
            &["--time-zone=Europe/Berlin", "--input-time-zone=UTC"],
            "2026-07-01T10:30:00Z,2026-07-01 12:00",
        ),
    ] {
        let (got, said) = noticed(dir.path(), &[flags, &of].concat());
        assert_eq!(got, format!("min_t,max_t\n{want}\n"), "{flags:?}");
        let is_said = said.contains("the first at t.csv byte 2 line 2");
        assert_eq!(is_said, flags.len() == 1, "{said}");
    }
}

/// Partials of different zones aren't merged, and a state of another zone isn't gone on with.
#[test]
fn partials_have_their_zones() {
    let dir = dir();
    write(dir.path(), "a.csv", AUTUMN);
    write(dir.path(), "b.csv", b"t,n\n2026-10-25T01:45:00Z,16\n");
    let save = |file: &str, to: &str, args: &[&str]| {
        let args = [&["-a", "sum:n", "--save-partial", to, file], args].concat();
        noticed(dir.path(), &args);
    };
    let merged = |files: &[&str]| end(ringfold(["merge"]).args(files).current_dir(dir.path()));
    let hour = ["-k", "t@hour", "--time-zone"];
    let in_zone = |zone: &'static str| [&hour[..], &[zone]].concat();
    save("a.csv", "a.part", &in_zone("Europe/Berlin"));
    save("b.csv", "b.part", &in_zone("europe/berlin"));
    save("b.csv", "utc.part", &in_zone("UTC"));
    save("b.csv", "none.part", &["-k", "t@hour"]);
    save("b.csv", "own.part", &["-k", "t@hour[Asia/Tokyo]"]);
    let want = "t_hour,sum_n\n2026-10-25T02+01:00,20\n2026-10-25T02+02:00,3\n2026-10-25T03,8\n";
    assert_eq!(
        String::from_utf8(merged(&["a.part", "b.part"]).answer()).unwrap(),
        want
    );
    for other in ["utc.part", "none.part", "own.part"] {
        let ended = merged(&["a.part", other]);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("zone"), "{}", ended.stderr);
    }
    let go_on = |file: &str, zone: &str| {
        let args = [
            "-k",
            "t@hour",
            "-a",
            "sum:n",
            "--continue",
            "state",
            "--time-zone",
            zone,
            file,
        ];
        end(ringfold(["aggregate"]).args(args).current_dir(dir.path()))
    };
    go_on("a.csv", "Europe/Berlin").answer();
    let error = go_on("b.csv", "UTC");
    assert_eq!(error.code, Some(1), "{}", error.stderr);
    go_on("b.csv", "Europe/Berlin").answer();
    let got = String::from_utf8(merged(&["state"]).answer()).unwrap();
    assert_eq!(got, want);
    // What is computed of aggregates is looked at in the same zone when they are merged.
    let log = b"h - - [25/Oct/2026:23:30:00 +0000] \"GET / HTTP/1.1\" 200 1\n";
    write(dir.path(), "a.log", log);
    let args = ["-a", "hour(max(time)) as last", "--time-zone=+09", "a.log"];
    let args = [&["--log", "common"], &args[..]].concat();
    let (got, _) = noticed(dir.path(), &args);
    assert_eq!(got, "last\n8\n");
    noticed(
        dir.path(),
        &[&args[..], &["--save-partial", "log.part"]].concat(),
    );
    let merged = String::from_utf8(merged(&["log.part"]).answer()).unwrap();
    assert_eq!(merged, got);
}

/// A sequence that looks random.
fn random(at: u64) -> u64 {
    let mut mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 29
}

/// Reads lines of a zone, a unit of minutes and an instant, and prints what the clock shows there: cuts and numbers.
const PYTHON: &str = r#"
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
UTC = timezone.utc
def cut(zone, minutes, instant):
    local = instant.astimezone(zone)
    start = local.replace(tzinfo=None, second=0, microsecond=0)
    start -= timedelta(minutes=start.minute % minutes)
    text = start.strftime("%Y-%m-%dT%H" if minutes == 60 else "%Y-%m-%dT%H:%M")
    # Another offset at the same span of the clock, a minute at a time.
    for minute in range(minutes):
        shown = (start + timedelta(minutes=minute)).replace(tzinfo=zone)
        if shown.utcoffset() > shown.replace(fold=1).utcoffset():
            ahead = int(local.utcoffset().total_seconds())
            return f"{text}{'-' if ahead < 0 else '+'}{abs(ahead) // 3600:02}:{abs(ahead) // 60 % 60:02}"
    return text
for line in sys.stdin:
    name, minutes, seconds = line.split()
    zone, instant = ZoneInfo(name), datetime.fromtimestamp(int(seconds), UTC)
    local = instant.astimezone(zone)
    naive = instant.replace(tzinfo=zone)
    print(cut(zone, int(minutes), instant), local.strftime("%Y-%m-%d %G-W%V"), local.isoweekday(), local.hour, local.minute,
        int(naive.timestamp()), sep=",")
"#;

/// Zones whose rules haven't changed for long, so that the version of the database doesn't matter.
#[test]
fn clocks_show_what_those_of_python_do() {
    if skips(
        "clocks_show_what_those_of_python_do",
        &[Feature::Python, Feature::TimeZones],
    ) {
        return;
    }
    let dir = dir();
    let changes = [
        1_792_890_000_u64,
        1_774_746_000,
        1_775_314_800,
        1_604_210_400,
        1_325_239_200,
        1_000_000_000,
    ];
    for (at, (zone, minutes, unit)) in [
        ("Europe/Berlin", 60, "hour"),
        ("America/New_York", 20, "20m"),
        ("America/St_Johns", 60, "hour"),
        ("Asia/Kathmandu", 5, "5m"),
        ("Australia/Lord_Howe", 60, "hour"),
        ("Pacific/Apia", 30, "30m"),
        ("UTC", 1, "minute"),
    ]
    .into_iter()
    .enumerate()
    {
        let instants: Vec<u64> = (0..400)
            .map(|row| {
                let random = random(1000 * at as u64 + row);
                match row % 3 {
                    0 => 200_000_000 + random % 1_900_000_000,
                    _ => changes[random as usize % changes.len()] - 20_000 + random / 7 % 40_000,
                }
            })
            .collect();
        let lines: String = instants
            .iter()
            .map(|instant| format!("{zone} {minutes} {instant}\n"))
            .collect();
        let mut python = Command::new("python3");
        let python = python.args(["-c", PYTHON]).stdin(Stdio::piped());
        let python = python.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut python = python.spawn().unwrap();
        feed(&mut python, lines.into_bytes());
        let ended = end_of(python);
        let want = String::from_utf8(ended.answer()).unwrap();
        let rows = instants.iter().enumerate().map(|(row, instant)| {
            format!("{row},{},{}\n", written(*instant, row), naive(*instant))
        });
        write(dir.path(), "t.csv", rows.collect::<String>().as_bytes());
        let keys = format!(
            "2@{unit}[{zone}],2@day[{zone}],2@week[{zone}],weekday($2; '{zone}'),hour($2; '{zone}'),minute($2; '{zone}'),\
             epoch($3; '{zone}')"
        );
        let keys = keys.replace("; ", ", ");
        let got = printed(
            dir.path(),
            &["-q", "--no-header", "-d,", "-k", "1", "-k", &keys, "t.csv"],
        );
        let got: Vec<&str> = got.lines().skip(1).collect();
        for (row, want) in want.lines().enumerate() {
            let want = format!("{row},{},1", want.replacen(' ', ",", 1));
            assert_eq!(got[row], want, "{zone} {}", instants[row]);
        }
        assert_eq!(got.len(), instants.len());
    }
}

/// Date and time of day of an instant, on a clock that is so many seconds ahead.
fn naive(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years of 365 or 366 days from 1970 on.
    let (mut year, mut left) = (1970, days);
    // Up to 2099.
    let length = |year: u64| 365 + u64::from(year.is_multiple_of(4));
    while left >= length(year) {
        (left, year) = (left - length(year), year + 1);
    }
    let mut month = 0;
    let lengths = [
        31,
        length(year) - 337,
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    while left >= lengths[month] {
        (left, month) = (left - lengths[month], month + 1);
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!(
        "{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}",
        month + 1,
        left + 1
    )
}

/// An instant in one of several forms.
fn written(instant: u64, row: usize) -> String {
    match row % 4 {
        0 => instant.to_string(),
        1 => naive(instant) + "Z",
        2 => naive(instant + 19_800) + "+05:30",
        _ => naive(instant - 12_600).replace('T', " ") + " -0330",
    }
}

/// The same to the byte in every engine, with blocks of any size.
#[test]
fn every_engine_gives_the_same() {
    let dir = dir();
    let mut log = Vec::new();
    for n in 0..3000_u64 {
        let minute = 60 * 20 + random(n) % 600;
        let (hour, minute) = (minute / 60 % 24, minute % 60);
        let day = 24 + u64::from(hour < 20);
        let line = format!(
            "192.0.2.{} - - [{day}/Oct/2026:{hour:02}:{minute:02}:{:02} +0{}00] \"GET / HTTP/1.1\" 200 {n} \"-\" \"c\"\n",
            n % 3,
            n % 60,
            n % 4
        );
        log.extend_from_slice(line.as_bytes());
    }
    let path = write(dir.path(), "times.log", &log);
    let query = Query::log("combined")
        .unwrap()
        .time_zone("Europe/Berlin")
        .unwrap();
    let query = query
        .key_text("time@20m")
        .unwrap()
        .key_text("hour(time, 'Asia/Kolkata') as h")
        .unwrap();
    let query = query.filter("time >= '2026-10-25 00:30'").unwrap();
    let query = query
        .aggregate_text("sum(bytes)")
        .unwrap()
        .aggregate_text("max(epoch(time))")
        .unwrap();
    let mut all = Vec::new();
    for way in WAYS.iter() {
        for (block, threads) in [(4096, 1), (8192, 3)] {
            let config = Config {
                block_size: Some(block),
                threads: Some(threads),
                ..way.config()
            };
            let input = Input::open([&path]).unwrap();
            let plan = query.plan(&input, &config).unwrap();
            let (mut answer, _) = fold(&input, &config, &plan).unwrap();
            answer.sort(&ringfold::query::Sort::Bytes, None).unwrap();
            let mut csv = Vec::new();
            write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
            all.push(String::from_utf8(csv).unwrap());
        }
    }
    assert!(all.iter().all(|csv| *csv == all[0]));
    assert!(all[0].contains("\n2026-10-25T02:40+01:00,7,"), "{}", all[0]);
}

/// A log's time that another value is chosen by, a time in a table's key, and a time that stands for null.
#[test]
fn times_within_other_values() {
    let dir = dir();
    let log =
        b"[2026-11-25 10:00:00] \"GET /a HTTP/1.1\"\n[2026-11-25T05:00:00Z] \"GET /b HTTP/1.1\"\n";
    write(dir.path(), "times.log", log);
    let args = [
        "--log",
        "[$time_local] \"$request\"",
        "--time-zone=Asia/Tokyo",
        "-a",
        "arg_max(path, time),max:time,arg_max(path, epoch(time))",
        "times.log",
    ];
    let (got, notice) = noticed(dir.path(), &args);
    assert!(got.ends_with("/b,2026-11-25T05:00:00Z,/b\n"), "{got}");
    assert!(notice.contains("line 1: --input-time-zone"), "{notice}");
    write(dir.path(), "t.csv", b"t,x\n2026-03-29 04:30:00,2\n");
    write(dir.path(), "r.csv", b"h,rate\n4,10\n6,100\n");
    let table = [
        "--lookup",
        "r.csv",
        "--on",
        "hour(t)=h",
        "-a",
        "sum(x * rate)",
        "t.csv",
    ];
    let berlin = [&["--time-zone=Europe/Berlin"], &table[..]].concat();
    let (got, notice) = noticed(dir.path(), &berlin);
    assert!(got.ends_with("\n20\n"), "{got}");
    assert!(notice.contains("line 2: --input-time-zone"), "{notice}");
    let utc = [&["--input-time-zone=UTC"], &berlin[..]].concat();
    assert!(printed(dir.path(), &utc).ends_with("\n200\n"));
    let null = "2026-03-29 04:30:00";
    let args = [
        "--time-zone=Europe/Berlin",
        "--null-value",
        null,
        "-k",
        "t@hour",
        "t.csv",
    ];
    assert_eq!(printed(dir.path(), &args), "t_hour,count\n\"\",1\n");
}
