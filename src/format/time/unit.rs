//! Units of time: what a time in a key or condition is cut down to.

use std::fmt;

use crate::format::time::read::{NoTime, read};
use crate::format::time::zone::{Zone, write_offset};
use crate::format::time::zones::{Shown, Zones};
use crate::format::time::{Precision, Time, calendar};

/// What a time in a key is cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// `2026`
    Year,
    /// `2026-11`
    Month,
    /// The week of ISO 8601, `2026-W48`.
    Week,
    /// `2026-11-25`
    Day,
    /// `2026-11-25T13`
    Hour,
    /// `2026-11-25T13:45`
    Minute,
    /// `2026-11-25T13:45:10`
    Second,
    /// The day of the week: `1` is Monday, `7` Sunday.
    Weekday,
    /// So many minutes of an hour: of ten `2026-11-25T13:40`.
    Minutes(u8),
}

const NAMED: [(&str, Unit); 8] = [
    ("year", Unit::Year),
    ("month", Unit::Month),
    ("week", Unit::Week),
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("minute", Unit::Minute),
    ("second", Unit::Second),
    ("weekday", Unit::Weekday),
];

impl fmt::Display for Unit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMED.iter().find(|(_, unit)| unit == self);
        match (named, self) {
            (Some((name, _)), _) => to.write_str(name),
            (None, Unit::Minutes(minutes)) => write!(to, "{minutes}m"),
            (None, _) => unreachable!("all others have names"),
        }
    }
}

impl Unit {
    /// The names of all units, for people.
    pub(crate) const NAMES: &str =
        "year, month, week, day, hour, minute, second, weekday, and 5m, 10m and the like";

    /// The unit of a name such as `hour`, or `10m` for each ten minutes.
    pub fn named(name: &str) -> Option<Unit> {
        if let Some((_, unit)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Some(*unit);
        }
        let minutes: u8 = name.strip_suffix('m')?.parse().ok()?;
        let is_part = (1..60).contains(&minutes) && 60 % minutes == 0;
        (is_part && name == format!("{minutes}m")).then_some(Unit::Minutes(minutes))
    }

    /// The same with a zone in brackets after it: `hour[Europe/Berlin]`.
    ///
    /// # Errors
    /// There is no such zone.
    pub(crate) fn zoned(text: &str) -> Result<Option<(Unit, Option<Zone>)>, String> {
        let (name, zone) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, zone)) => (name, Some(zone)),
            None => (text, None),
        };
        let Some(unit) = Unit::named(name) else {
            return Ok(None);
        };
        Ok(Some((unit, zone.map(Zone::named).transpose()?)))
    }

    /// How long its spans are that begin and end within a day.
    pub(super) fn seconds(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Minutes(minutes) => 60 * i64::from(minutes.max(1)),
            Unit::Hour => 3600,
            Unit::Year | Unit::Month | Unit::Week | Unit::Day | Unit::Weekday => 86_400,
        }
    }

    /// # Errors
    /// A time isn't written as far as this.
    pub(crate) fn check(self, time: &Time) -> Result<(), NoTime> {
        let needed = match self {
            Unit::Year | Unit::Month => Precision::Month,
            Unit::Day | Unit::Week | Unit::Weekday => Precision::Day,
            Unit::Hour => Precision::Hour,
            Unit::Minute | Unit::Minutes(_) => Precision::Minute,
            Unit::Second => Precision::Second,
        };
        match time.precision < needed {
            true => Err(NoTime::Lacks(time.precision)),
            false => Ok(()),
        }
    }

    /// Writes a time in this unit; what it lacks is the least.
    pub(crate) fn write(self, time: &Time, to: &mut Vec<u8>) {
        let mut all = *b"0000-00-00T00:00:00";
        let mut put = |at: usize, number: u8| {
            all[at..at + 2].copy_from_slice(&[b'0' + number / 10, b'0' + number % 10]);
        };
        let mut year = time.year;
        let mut rest = [time.month, time.day, time.hour, time.minute, time.second];
        let len = match self {
            Unit::Year => 4,
            Unit::Month => 7,
            Unit::Week => {
                let (of, week) = calendar::week(time.days());
                year = of as u16;
                rest[1] = week;
                10
            }
            Unit::Day => 10,
            Unit::Hour => 13,
            Unit::Minute => 16,
            Unit::Minutes(minutes) => {
                rest[3] -= rest[3] % minutes.max(1);
                16
            }
            Unit::Second => 19,
            Unit::Weekday => 4,
        };
        put(0, (year / 100) as u8);
        put(2, (year % 100) as u8);
        for (part, number) in rest.into_iter().enumerate().take(len / 3 - 1) {
            put(5 + 3 * part, number);
        }
        to.clear();
        match self {
            Unit::Weekday => to.push(b'0' + calendar::weekday(time.days())),
            Unit::Week => {
                to.extend_from_slice(&all[..4]);
                to.extend_from_slice(b"-W");
                to.extend_from_slice(&all[8..len]);
            }
            _ => to.extend_from_slice(&all[..len]),
        }
    }

    /// A text that stands for one of this unit's values, as these are written.
    pub(crate) fn literal(self, text: &[u8]) -> Option<Vec<u8>> {
        let mut own = Vec::new();
        let is_number = |len: usize| text.len() == len && text.iter().all(u8::is_ascii_digit);
        let is_written = match self {
            Unit::Year => is_number(4),
            Unit::Weekday => is_number(1) && (b'1'..=b'7').contains(&text[0]),
            Unit::Week => text.split_at_checked(6).is_some_and(|(year, week)| {
                let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
                let is_week = week.len() == 2 && (&b"01"[..]..=b"53").contains(&week);
                is_week && is_number(week) && is_number(&year[..4]) && year.ends_with(b"-W")
            }),
            _ => false,
        };
        if is_written {
            return Some(text.to_vec());
        }
        let time = read(text).ok()?;
        let is_day = matches!(self, Unit::Week | Unit::Weekday | Unit::Year);
        if is_day && time.precision < Precision::Day {
            return None;
        }
        self.write(&time, &mut own);
        Some(own)
    }

    /// A value of it, as an example.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Unit::Year => "2026",
            Unit::Month => "2026-03",
            Unit::Week => "2026-W11",
            Unit::Day => "2026-03-12",
            Unit::Hour => "2026-03-12T06",
            Unit::Minute | Unit::Minutes(_) => "2026-03-12T06:20",
            Unit::Second => "2026-03-12T06:20:01",
            Unit::Weekday => "1",
        }
    }
}

/// A unit, and the clock that times are looked at on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZonedUnit {
    pub(crate) unit: Unit,
    /// Without them, a time is looked at as it is written.
    pub(crate) zones: Option<Zones>,
}

impl ZonedUnit {
    /// Cuts a time down. Where the clock shows a part of the span twice, its offset follows.
    ///
    /// # Errors
    /// It is no time, or lacks the unit.
    pub(crate) fn cut(self, time: &[u8], to: &mut Vec<u8>) -> Result<(), NoTime> {
        self.write(&self.shown(&read(time)?)?, to);
        Ok(())
    }

    /// Writes a time that is shown on its clock.
    pub(super) fn write(self, shown: &Shown, to: &mut Vec<u8>) {
        self.unit.write(&shown.time, to);
        if let Some(ahead) = shown.repeated_offset(self.unit.seconds()) {
            write_offset(ahead, to);
        }
    }

    /// The same without an offset: what the clock shows.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn cut_clock(self, time: &[u8], to: &mut Vec<u8>) -> Result<(), NoTime> {
        let shown = self.shown(&read(time)?)?;
        self.unit.write(&shown.time, to);
        Ok(())
    }

    pub(super) fn shown(self, time: &Time) -> Result<Shown, NoTime> {
        self.unit.check(time)?;
        Shown::of(time, self.zones)
    }
}
