//! Functions of times. They look at what the clock shows: that of a zone if one is named, or else that of the time.

use crate::decimal::number::Number;
use crate::expression::formula::{Formula, Kind};
use crate::expression::function::{Apply, Arguments, Function, Prepared, function};
use crate::expression::value::{Missing, Value, ValueError, Wrong};
use crate::format::time::calendar::ORIGIN;
use crate::format::time::{
    NoTime, Shown, Time, TimeZone, TimeZones, Unit, Zones, read, write_offset,
};

const TIME: &[Kind] = &[Kind::Text, Kind::Text];
const BUCKET: &[Kind] = &[Kind::Text, Kind::Text, Kind::Text];

pub(super) const ALL: &[Function] = &[
    of_time("year(time, zone)", "year", |of| {
        part(of, Unit::Year, |time| time.reading_parts()[0])
    }),
    of_time("quarter(time, zone)", "quarter", |of| {
        part(of, Unit::Month, |time| (time.reading_parts()[1] + 2) / 3)
    }),
    of_time("month(time, zone)", "month", |of| {
        part(of, Unit::Month, |time| time.reading_parts()[1])
    }),
    of_time("day(time, zone)", "day", |of| {
        part(of, Unit::Day, |time| time.reading_parts()[2])
    }),
    of_time("hour(time, zone)", "hour", |of| {
        part(of, Unit::Hour, |time| time.reading_parts()[3])
    }),
    of_time("minute(time, zone)", "minute", |of| {
        part(of, Unit::Minute, |time| time.reading_parts()[4])
    }),
    of_time("second(time, zone)", "second", |of| {
        part(of, Unit::Second, |time| time.reading_parts()[5])
    }),
    of_time("weekday(time, zone)", "weekday", |of| {
        part(of, Unit::Day, |time| time.weekday())
    })
    .called(&["isodow"]),
    of_time("epoch(time, zone)", "epoch", seconds),
    function(
        "date_trunc(unit, time, zone)",
        "date_trunc",
        BUCKET,
        Kind::Text,
        bucket,
    )
    .at_least(2)
    .prepared(|arguments, zones| prepare(arguments, zones, Bucket::of_unit, "'hour'")),
    function(
        "time_bucket(width, time, zone)",
        "time_bucket",
        BUCKET,
        Kind::Text,
        bucket,
    )
    .at_least(2)
    .prepared(|arguments, zones| prepare(arguments, zones, Bucket::of_width, "'5 minutes'")),
];

/// A number of a time, on the clock of a zone if one is named.
const fn of_time(usage: &'static str, name: &'static str, apply: Apply) -> Function {
    function(usage, name, TIME, Kind::Number, apply)
        .at_least(1)
        .prepared(|arguments, zones| {
            let zones = zones_of(arguments, 1, zones)?;
            Ok(zones.map_or(Prepared::Nothing, Prepared::Zones))
        })
}

/// The zones of a call whose argument `at` names one, or no argument does.
fn zones_of(
    arguments: &[Formula],
    at: usize,
    zones: TimeZones,
) -> Result<Option<Zones>, (usize, String)> {
    let zone = match arguments.get(at) {
        None => None,
        Some(Formula::Text(name)) => {
            let zone = TimeZone::named(&String::from_utf8_lossy(name));
            Some(zone.map_err(|why| (at, why))?)
        }
        Some(_) => {
            return Err((
                at,
                "the name of a time zone is a text, 'Europe/Berlin'".into(),
            ));
        }
    };
    Ok(zones.of(zone))
}

/// The spans of time that times are put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bucket {
    /// Of so many seconds, beginning with Monday, 2000-01-03.
    Seconds(i64),
    /// Of so many months, beginning with 2000-01.
    Months(i64),
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The longest bucket, in seconds and in months: longer than all years that are read.
const SECONDS_MAX: i64 = 10_000 * 366 * DAY;

const UNITS: [(&str, Bucket); 8] = [
    ("second", Bucket::Seconds(1)),
    ("minute", Bucket::Seconds(MINUTE)),
    ("hour", Bucket::Seconds(HOUR)),
    ("day", Bucket::Seconds(DAY)),
    ("week", Bucket::Seconds(7 * DAY)),
    ("month", Bucket::Months(1)),
    ("quarter", Bucket::Months(3)),
    ("year", Bucket::Months(12)),
];

impl Bucket {
    fn of_unit(name: &str) -> Option<Bucket> {
        let name = name.trim().to_ascii_lowercase();
        let name = name.strip_suffix('s').unwrap_or(&name);
        let found = UNITS.iter().find(|(known, _)| *known == name);
        found.map(|(_, bucket)| *bucket)
    }

    fn of_width(width: &str) -> Option<Bucket> {
        let width = width.trim();
        let digits = width.find(|letter: char| !letter.is_ascii_digit())?;
        let (count, unit) = width.split_at(digits);
        let count: i64 = if count.is_empty() {
            1
        } else {
            count.parse().ok()?
        };
        let bucket = match (Bucket::of_unit(unit)?, count) {
            (_, ..1) => return None,
            (Bucket::Seconds(of), count) => Bucket::Seconds(of.checked_mul(count)?),
            (Bucket::Months(of), count) => Bucket::Months(of.checked_mul(count)?),
        };
        let is_short = match bucket {
            Bucket::Seconds(seconds) => seconds <= SECONDS_MAX,
            Bucket::Months(months) => months <= 12 * 10_000,
        };
        is_short.then_some(bucket)
    }

    /// The unit that cuts times down to the same.
    pub(crate) fn unit(self) -> Option<Unit> {
        Some(match self {
            Bucket::Seconds(1) => Unit::Second,
            Bucket::Seconds(MINUTE) => Unit::Minute,
            Bucket::Seconds(HOUR) => Unit::Hour,
            Bucket::Seconds(DAY) => Unit::Day,
            Bucket::Seconds(seconds) if seconds % MINUTE == 0 && HOUR % seconds == 0 => {
                Unit::Minutes((seconds / MINUTE) as u8)
            }
            Bucket::Months(1) => Unit::Month,
            Bucket::Months(12) => Unit::Year,
            _ => return None,
        })
    }

    /// The unit that its beginnings are written in.
    fn written(self) -> Unit {
        match self {
            Bucket::Months(months) if months % 12 == 0 => Unit::Year,
            Bucket::Months(_) => Unit::Month,
            Bucket::Seconds(seconds) if seconds % DAY == 0 => Unit::Day,
            Bucket::Seconds(seconds) if seconds % HOUR == 0 => Unit::Hour,
            Bucket::Seconds(seconds) if seconds % MINUTE == 0 => Unit::Minute,
            Bucket::Seconds(_) => Unit::Second,
        }
    }

    /// The beginning of the bucket that a time is in; `None` where no year has it.
    fn start(self, time: &Time) -> Option<Time> {
        match self {
            Bucket::Seconds(width) => {
                let since = time.shown_seconds() - ORIGIN;
                Time::of_seconds(since.div_euclid(width) * width + ORIGIN)
            }
            Bucket::Months(width) => {
                let [year, month, ..] = time.reading_parts();
                let since = (year - 2000) * 12 + month - 1;
                let months = since.div_euclid(width) * width;
                Time::of_month(2000 + months.div_euclid(12), months.rem_euclid(12) + 1)
            }
        }
    }
}

fn prepare(
    arguments: &[Formula],
    zones: TimeZones,
    read: fn(&str) -> Option<Bucket>,
    example: &str,
) -> Result<Prepared, (usize, String)> {
    let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
    let refused = || {
        let why = format!("{example} is missing here; units are {}", names.join(", "));
        (0, why)
    };
    let Formula::Text(text) = &arguments[0] else {
        return Err(refused());
    };
    let bucket = read(&String::from_utf8_lossy(text)).ok_or_else(refused)?;
    Ok(Prepared::Bucket(bucket, zones_of(arguments, 2, zones)?))
}

fn bucket<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let Prepared::Bucket(bucket, zones) = *of.prepared else {
        unreachable!("it was read");
    };
    let unit = bucket.written();
    let shown = time(of, 1, |time| {
        unit.check(time)?;
        Shown::of(time, zones)
    })?;
    let start = bucket.start(&shown.time);
    let start = start.ok_or_else(|| Missing::other("the bucket begins before the year 0"))?;
    let mut text = Vec::new();
    unit.write(&start, &mut text);
    if let Bucket::Seconds(width) = bucket
        && let Some(ahead) = shown.repeated_offset(width)
    {
        write_offset(ahead, &mut text);
    }
    Ok(Value::Text(text.into()))
}

/// What is made of the time that an argument is.
fn time<T>(
    of: &Arguments<'_>,
    at: usize,
    make: impl FnOnce(&Time) -> Result<T, NoTime>,
) -> Result<T, Missing> {
    let text = of.text(at)?;
    read(&text).and_then(|time| make(&time)).map_err(|why| {
        Missing::Error(ValueError {
            wrong: Wrong::Time(why.why(&text).into_owned()),
            text: text.into_owned(),
            column: match &of.arguments[at] {
                Formula::Column(column) => Some(*column),
                _ => None,
            },
        })
    })
}

/// The zones that the numbers of a time are of.
fn prepared_zones(of: &Arguments<'_>) -> Option<Zones> {
    match *of.prepared {
        Prepared::Zones(zones) => Some(zones),
        _ => None,
    }
}

fn part<'a>(of: &Arguments<'a>, unit: Unit, part: fn(&Time) -> i64) -> Result<Value<'a>, Missing> {
    let shown = time(of, 0, |time| {
        unit.check(time)?;
        Shown::of(time, prepared_zones(of))
    })?;
    Ok(Value::Number(part(&shown.time).into()))
}

/// Seconds since 1970 began in UTC. A time without an offset is one of the zone, or else of UTC.
fn seconds<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let zones = prepared_zones(of);
    let time = time(of, 0, |time| {
        Unit::Day.check(time)?;
        zones.map_or(Ok(*time), |zones| time.placed(zones.input))
    })?;
    let (seconds, fraction) = time.seconds();
    let units = i128::from(seconds) * 10_i128.pow(18) + i128::from(fraction);
    let exact = Number::new(units, 18).exact().shortest();
    Ok(Value::Number(exact.into()))
}
