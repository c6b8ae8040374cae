//! Spans of time that times are put into, side by side.

use crate::format::time::calendar::{self, ORIGIN};
use crate::format::time::{Time, Unit};

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
    /// The names of units.
    pub(crate) fn names() -> [&'static str; UNITS.len()] {
        UNITS.map(|(name, _)| name)
    }

    pub(crate) fn of_unit(name: &str) -> Option<Bucket> {
        let name = name.trim().to_ascii_lowercase();
        let name = name.strip_suffix('s').unwrap_or(&name);
        let found = UNITS.iter().find(|(known, _)| *known == name);
        found.map(|(_, bucket)| *bucket)
    }

    pub(crate) fn of_width(width: &str) -> Option<Bucket> {
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

    /// That of a unit, if it has a beginning and an end.
    pub(super) fn of(unit: Unit) -> Option<Bucket> {
        Some(match unit {
            Unit::Year => Bucket::Months(12),
            Unit::Month => Bucket::Months(1),
            Unit::Week => Bucket::Seconds(7 * DAY),
            Unit::Weekday => return None,
            unit => Bucket::Seconds(unit.seconds()),
        })
    }

    /// The unit that its beginnings are written in.
    pub(crate) fn written(self) -> Unit {
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
    pub(crate) fn start(self, time: &Time) -> Option<Time> {
        let shown = match self {
            Bucket::Seconds(_) => time.shown_seconds(),
            Bucket::Months(_) => time.days() * DAY,
        };
        Time::of_seconds(self.begins(shown, 0))
    }

    /// Where the bucket begins that a clock's time is in, or one so many later; in seconds since 1970-01-01.
    pub(super) fn begins(self, shown: i64, later: i64) -> i64 {
        match self {
            Bucket::Seconds(width) => ((shown - ORIGIN).div_euclid(width) + later) * width + ORIGIN,
            Bucket::Months(width) => {
                let (year, month, _) = calendar::date(shown.div_euclid(DAY));
                let since = (year - 2000) * 12 + i64::from(month) - 1;
                let months = (since.div_euclid(width) + later) * width;
                let (years, months) = (months.div_euclid(12), months.rem_euclid(12));
                calendar::days(2000 + years, months as u8 + 1, 1) * DAY
            }
        }
    }
}
