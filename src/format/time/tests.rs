//! Forms and units against values that Python computed, order, and a naive calendar.

use proptest::prelude::*;

use crate::format::time::read::{NoTime, any, read, usual};
use crate::format::time::{Cutter, Unit, Zone, ZonedUnit, calendar};

fn as_written(unit: Unit) -> ZonedUnit {
    ZonedUnit { unit, zones: None }
}

fn cut(unit: Unit, time: &str) -> Result<String, NoTime> {
    let mut to = Vec::new();
    as_written(unit).cut(time.as_bytes(), &mut to)?;
    Ok(String::from_utf8(to).unwrap())
}

const UNITS: [&str; 9] = [
    "year", "month", "week", "day", "hour", "minute", "second", "weekday", "10m",
];

/// Each group is one time in many forms, then its values by unit. From Python:
/// `t.strftime('%Y'), '%Y-%m', '%G-W%V', '%Y-%m-%d', '%Y-%m-%dT%H', '%Y-%m-%dT%H:%M', '%Y-%m-%dT%H:%M:%S', '%u'`.
const FORMS: [(&[&str], [&str; 9]); 3] = [
    (
        &[
            "2026-03-12T06:25:01Z",
            "2026-03-12t06:25:01z",
            "2026-03-12 06:25:01",
            " 2026-03-12 06:25:01.123456789+05:30 ",
            "2026-03-12 06:25:01,5 -0800",
            "2026-03-12T06:25:01+01:00[Europe/Paris]",
            "2026-03-12 06:25:01 UTC",
            "2026-03-12 06:25:01 CET",
            "2026-03-12 06:25:01+00",
            "20260312T062501Z",
            "20260312T062501.5+0100",
            "20260312 06:25:01",
            "20260312062501",
            "2026/03/12 06:25:01",
            "2026/03/12T06:25:01.250",
            "12/Mar/2026:06:25:01 +0000",
            "[12/Mar/2026:06:25:01 +0000]",
            "[12/Mar/2026:06:25:01",
            "12/mar/2026:06:25:01",
            "12/Mar/2026 06:25:01",
            "12-MAR-2026 06:25:01",
            "Thu, 12 Mar 2026 06:25:01 GMT",
            "Thu, 12 Mar 2026 06:25:01 +0100 (CET)",
            "Thursday, 12-Mar-2026 06:25:01 GMT",
            "12 Mar 2026 06:25:01 -0000",
            "Thu Mar 12 06:25:01 2026",
            "Thu Mar 12 06:25:01.123456 2026",
            "Thu Mar 12 06:25:01 CET 2026",
            "Mar 12 06:25:01 2026",
            "Thu Mar 12 2026 06:25:01 GMT+0100 (CET)",
            "Mar 12, 2026 06:25:01",
            "1773296701",
            "1773296701.5241024",
            "1.7732967015e9",
            "1773296701524",
            "1773296701524.25",
            "1773296701524102",
            "1773296701524102400",
        ],
        [
            "2026",
            "2026-03",
            "2026-W11",
            "2026-03-12",
            "2026-03-12T06",
            "2026-03-12T06:25",
            "2026-03-12T06:25:01",
            "4",
            "2026-03-12T06:20",
        ],
    ),
    (
        &[
            "2024-12-30 23:59:59",
            "30/Dec/2024:23:59:59 +0000",
            "Mon, 30 Dec 2024 23:59:59 +0000",
            "Mon Dec 30 23:59:59 2024",
            "1735603199",
        ],
        [
            "2024",
            "2024-12",
            "2025-W01",
            "2024-12-30",
            "2024-12-30T23",
            "2024-12-30T23:59",
            "2024-12-30T23:59:59",
            "1",
            "2024-12-30T23:50",
        ],
    ),
    (
        &[
            "2021-01-03T00:00:00Z",
            "03/Jan/2021:00:00:00",
            "3/Jan/2021:00:00:00",
            "Sun, 3 Jan 2021 00:00:00 GMT",
            "Sun Jan  3 00:00:00 2021",
            "1609632000000",
        ],
        [
            "2021",
            "2021-01",
            "2020-W53",
            "2021-01-03",
            "2021-01-03T00",
            "2021-01-03T00:00",
            "2021-01-03T00:00:00",
            "7",
            "2021-01-03T00:00",
        ],
    ),
];

#[test]
fn forms_and_units() {
    for (times, want) in FORMS {
        for time in times {
            for (name, want) in UNITS.iter().zip(want) {
                let unit = Unit::named(name).unwrap();
                assert_eq!(unit.to_string(), *name);
                assert_eq!(cut(unit, time).as_deref(), Ok(want), "{time} {name}");
            }
        }
    }
    for (time, want) in [
        ("2026-11-25", "2026-11-25"),
        ("2026/11/25", "2026-11-25"),
        ("20261125", "2026-11-25"),
        ("25/Nov/2026", "2026-11-25"),
        ("25 Nov 2026", "2026-11-25"),
        ("Nov 25, 2026", "2026-11-25"),
        ("2024-02-29", "2024-02-29"),
        ("0001-01-01", "0001-01-01"),
        ("9999-12-31", "9999-12-31"),
    ] {
        assert_eq!(cut(Unit::Day, time).as_deref(), Ok(want), "{time}");
    }
    assert_eq!(cut(Unit::Month, "2026-11").as_deref(), Ok("2026-11"));
    assert_eq!(
        cut(Unit::Hour, "2026-11-25T13").as_deref(),
        Ok("2026-11-25T13")
    );
    // A leap second is one of its minute.
    let leap = cut(Unit::Minute, "05/Feb/1999:00:59:60 +0100");
    assert_eq!(leap.as_deref(), Ok("1999-02-05T00:59"));
    for name in [
        "", "7m", "0m", "60m", "05m", "+5m", "m", "Hour", "days", "10min",
    ] {
        assert_eq!(Unit::named(name), None, "{name}");
    }
}

#[test]
fn what_is_no_time() {
    for (unit, time, words) in [
        (Unit::Hour, "2026-11-25", "is a day without a time"),
        (Unit::Day, "2026-11", "is a month without a day"),
        (Unit::Minute, "2026-11-25T13", "is a time without minutes"),
        (
            Unit::Second,
            "2026-11-25T13:45",
            "is a time without seconds",
        ),
        (Unit::Day, "03/12/2026", "may be 2026-03-12 or 2026-12-03"),
        (
            Unit::Day,
            "03/12/2026 06:25",
            "may be 2026-03-12 or 2026-12-03",
        ),
        (Unit::Day, "03.12.2026", "may be 2026-03-12 or 2026-12-03"),
        (
            Unit::Day,
            "25-12-2026",
            "with the day first nor with the month",
        ),
        (Unit::Day, "3/4/26", "with the day first nor with the month"),
        (Unit::Day, "202603120625", "or milliseconds since 1970"),
        (Unit::Hour, "09:59:49", "is a time of day without a date"),
        (Unit::Hour, "Mar 12 06:25:01", "is a time without a year"),
        (
            Unit::Month,
            "2026-02-30",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "2025-02-29",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "2026-13-01",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "2026-00-01",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "0000-01-01",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "2026-11-25T24:00:00",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "25/Nov/2026:13:60:00",
            "the calendar or the clock has no such",
        ),
        (
            Unit::Month,
            "31/Jun/2026:13:00:00",
            "the calendar or the clock has no such",
        ),
    ] {
        let why = cut(unit, time).unwrap_err().why(time.as_bytes());
        assert!(why.contains(words), "{time}: {why}");
    }
    for time in [
        "",
        "now",
        "2026",
        "2026-W48",
        "2026-11-25x13:45",
        "2026-11-25T13.45",
        "2026-11-25T1:45",
        "2026-11-25 01:45:10 PM",
        "2026-11-25 01:45:10 and more",
        "2026-11-25T13:45:10.",
        "2026-11-25T13:45:10.1234567890123456789",
        "25/Nov/2026:1:45:10",
        "25/Nov/26:13:45:10",
        "25-Nov/2026:13:45:10",
        "Thu, 12 March 2026 06:25:01 GMT",
        "Foo Mar 12 06:25:01 2026",
        "12345678",
        "17732967012",
        "-1773296701",
        "1773296701x",
        "inf",
        "99999999999999999999",
        "1e400",
    ] {
        let why = cut(Unit::Month, time).unwrap_err().why(time.as_bytes());
        assert!(why.contains("isn't a time"), "{time}: {why}");
    }
}

#[test]
fn literals_of_units() {
    for (unit, text, want) in [
        ("year", "2026", Some("2026")),
        ("year", "26", None),
        ("month", "2026-02", Some("2026-02")),
        ("month", "01/Feb/2026", Some("2026-02")),
        ("week", "2026-W07", Some("2026-W07")),
        ("week", "2026-W54", None),
        ("week", "2026-03-12", Some("2026-W11")),
        ("week", "2026-03", None),
        ("day", "2026-02-01", Some("2026-02-01")),
        ("day", "2026-02", Some("2026-02-01")),
        ("day", "1.2.2026", None),
        ("hour", "2026-02-01", Some("2026-02-01T00")),
        ("hour", "2026-02-01T06", Some("2026-02-01T06")),
        ("10m", "2026-02-01 06:27", Some("2026-02-01T06:20")),
        ("weekday", "7", Some("7")),
        ("weekday", "8", None),
        ("weekday", "Mon", None),
    ] {
        let own = Unit::named(unit).unwrap().literal(text.as_bytes());
        assert_eq!(own.as_deref(), want.map(str::as_bytes), "{unit} {text}");
    }
}

#[test]
fn order() {
    let order = |one: &str, two: &str| {
        let [one, two] = [one, two].map(|text| read(text.as_bytes()).unwrap());
        one.order(&two)
    };
    use std::cmp::Ordering::{Equal, Greater, Less};
    for (one, two, want) in [
        ("31/Jan/2026:23:59:59 +0000", "2026-02-01", Some(Less)),
        ("01/Feb/2026:00:00:00 +0900", "2026-02-01", Some(Equal)),
        (
            "01/Feb/2026:00:00:00 +0900",
            "2026-01-31T15:00:00Z",
            Some(Equal),
        ),
        ("2026-02-01 00:00:00", "2026-01-31T15:00:00Z", None),
        ("2026-02-01 00:00:00 CET", "2026-01-31T15:00:00Z", None),
        ("1769904000.5", "2026-02-01", Some(Greater)),
        ("1769904000000", "2026-02-01", Some(Equal)),
        (
            "2026-02-01T00:00:00.25Z",
            "2026-02-01T00:00:00.3",
            Some(Less),
        ),
        (
            "2016-12-31T23:59:60Z",
            "2016-12-31T23:59:59.999",
            Some(Greater),
        ),
    ] {
        assert_eq!(order(one, two), want, "{one} {two}");
    }
    let rank = |text: &str| read(text.as_bytes()).unwrap().rank();
    assert!(rank("0001-01-01T00:00:00+23:59") < rank("0001-01-01"));
    assert!(rank("31/Jan/2026:23:59:59 +0000") < rank("01/Feb/2026:00:00:00 +0000"));
    assert!(rank("01/Feb/2026:00:00:00 +0100") < rank("31/Jan/2026:23:30:00 +0000"));
    assert!(rank("9999-12-31T23:59:59.5") > rank("9999-12-31T23:59:59"));
}

/// Goes through the calendar a day at a time.
#[test]
fn as_a_naive_calendar_has_it() {
    let (mut year, mut month, mut day, mut weekday) = (1_i64, 1_u8, 1_u8, 1_u8);
    let first = calendar::days(1, 1, 1);
    assert_eq!(first, -719_162);
    assert_eq!(calendar::days(1970, 1, 1), 0);
    for days in first..calendar::days(2401, 1, 1) {
        assert_eq!(calendar::date(days), (year, month, day));
        assert_eq!(calendar::days(year, month, day), days);
        assert_eq!(calendar::weekday(days), weekday, "{year}-{month}-{day}");
        let (of, week) = calendar::week(days);
        // A week belongs to the year that has its Thursday, and the first has January 4.
        let fourth = calendar::days(of, 1, 4);
        let monday = fourth - i64::from(calendar::weekday(fourth)) + 1;
        assert_eq!(
            (days - monday).div_euclid(7) + 1,
            i64::from(week),
            "{year}-{month}-{day}"
        );
        let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
        let last = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (weekday, day) = (weekday % 7 + 1, day + 1);
        if day > last {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
}

proptest! {
    /// Whatever stands there: a time or not, never a panic, and of what is one every unit that it has.
    #[test]
    fn random_texts(text in "[0-9]{0,4}[-/: .]?([0-9]{0,4}|Mar|Thu,?|T)[-/: T]?[0-9]{0,4}[-/: T]?[0-9:.,]{0,12}[ Z+-]?[0-9:A-Z]{0,6}") {
        if let Ok(time) = read(text.as_bytes()) {
            let mut to = Vec::new();
            Unit::Day.write(&time, &mut to);
            let again = read(&to).unwrap();
            prop_assert!(again.has_day());
            prop_assert_eq!(again.days(), time.days());
            time.rank();
        }
    }

    /// The usual forms are read as all forms are, and cut down in the same way.
    #[test]
    fn usual_forms(
        text in "20[0-9]{2}[-/.:][0-1][0-9]-[0-3][0-9][T :][0-2][0-9]:[0-6][0-9]:[0-6][0-9:/][Z+]?|[0-3][0-9]/(Feb|Sep)/2026:[0-2][0-9]:[0-5][0-9]:[0-6][0-9] [-+]0[0-9]00",
    ) {
        let text = text.as_bytes();
        if let Some(time) = usual(text) {
            prop_assert_eq!(Ok(time), any(text));
        }
        for unit in [Unit::Year, Unit::Month, Unit::Week, Unit::Day, Unit::Hour, Unit::Minutes(5), Unit::Minute, Unit::Second, Unit::Weekday] {
            let mut cutter = Cutter::default();
            let day = &text[..text.len().min(10)];
            for text in [text, text, day, b"", text, day, day] {
                let mut want = Vec::new();
                let want = as_written(unit).cut(text, &mut want).map(|()| want);
                prop_assert_eq!(cutter.cut(as_written(unit), text).map(|cut| cut.bytes().to_vec()), want);
            }
        }
    }

    /// A time that is written is read, in each form.
    #[test]
    fn random_times(
        seconds in 100_000_000_i64..9_999_999_999, fraction in 0_u64..1_000_000, ahead in -840_i64..840,
    ) {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let local = seconds + ahead * 60;
        let (year, month, day) = calendar::date(local.div_euclid(86_400));
        let of_day = local.rem_euclid(86_400);
        let clock = format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
        let name = MONTHS[usize::from(month) - 1];
        let sign = if ahead < 0 { '-' } else { '+' };
        let (hours, minutes) = (ahead.abs() / 60, ahead.abs() % 60);
        let want = read(format!("{seconds}.{fraction:06}").as_bytes()).unwrap().rank();
        for text in [
            format!("{year}-{month:02}-{day:02}T{clock}.{fraction:06}{sign}{hours:02}:{minutes:02}"),
            format!("{year}/{month:02}/{day:02} {clock}.{fraction:06} {sign}{hours:02}{minutes:02}"),
            format!("{day:02}/{name}/{year}:{clock}.{fraction:06} {sign}{hours:02}{minutes:02}"),
            format!("Mon, {day} {name} {year} {clock}.{fraction:06} {sign}{hours:02}{minutes:02}"),
            format!("{seconds}{:03}.{:03}", fraction / 1000, fraction % 1000),
            format!("{seconds}{fraction:06}"),
            format!("{seconds}{fraction:06}000"),
        ] {
            let time = read(text.as_bytes());
            prop_assert_eq!(time.map(|time| time.rank()), Ok(want), "{}", text);
            prop_assert!(matches!(time.unwrap().zone, Zone::Offset(_)));
        }
    }
}
