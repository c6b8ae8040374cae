//! Functions of times. They look at what the clock shows: that of a zone if one is named, or else that of the time.

use crate::decimal::number::Number;
use crate::expression::formula::{Formula, Kind};
use crate::expression::function::{Arguments, Function, Prepared, WholeOf, function, whole_number};
use crate::expression::value::{Missing, Value, ValueError, Wrong};
use crate::format::time::{
    Bucket, NoTime, Shown, Time, TimeZone, TimeZones, Unit, Zones, read, write_offset,
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
    of_zone(function(
        "epoch(time, zone)",
        "epoch",
        TIME,
        Kind::Number,
        seconds,
    )),
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
const fn of_time(usage: &'static str, name: &'static str, apply: WholeOf) -> Function {
    of_zone(whole_number(usage, name, TIME, apply))
}

const fn of_zone(function: Function) -> Function {
    function.at_least(1).prepared(|arguments, zones| {
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

fn prepare(
    arguments: &[Formula],
    zones: TimeZones,
    read: fn(&str) -> Option<Bucket>,
    example: &str,
) -> Result<Prepared, (usize, String)> {
    let refused = || {
        let names = Bucket::names().join(", ");
        let why = format!("{example} is missing here; units are {names}");
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

fn part(of: &Arguments<'_>, unit: Unit, part: fn(&Time) -> i64) -> Result<i64, Missing> {
    let shown = time(of, 0, |time| {
        unit.check(time)?;
        Shown::of(time, prepared_zones(of))
    })?;
    Ok(part(&shown.time))
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
