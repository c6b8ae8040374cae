//! Times: one reader for all forms in which files have them, and the order of two times.
//!
//! `read` knows the forms, `zones` shows a time on another clock, by the rules of `zone`, `unit` cuts it down to a day, an hour
//! and the like, `cutter` does so for many, `bucket` puts it into a span, `spans` lists all of these between two, `calendar` has
//! the arithmetic.

mod bucket;
pub(crate) mod calendar;
mod cutter;
mod read;
mod spans;
mod unit;
mod zone;
mod zones;

use std::cmp::Ordering;

use crate::partial::description::RANK_BYTES;

pub(crate) use bucket::Bucket;
pub(crate) use cutter::Cutter;
pub(crate) use read::{NoTime, read};
pub(crate) use spans::Spans;
pub use unit::Unit;
pub(crate) use unit::ZonedUnit;
pub(crate) use zone::{Zone as TimeZone, write_offset};
pub(crate) use zones::{Shown, TimeZones, Zones, may_lack_offset, read_in};

/// A time as it is written: a day of the calendar and what its clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    /// In units of `10^-18` seconds.
    fraction: u64,
    /// How far it is written; what is missing is the least.
    precision: Precision,
    pub(crate) zone: Zone,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precision {
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// The zone of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// None is written.
    Missing,
    /// A name such as `CET`, which says no offset.
    Named,
    /// Seconds that the clock is ahead of UTC.
    Offset(i32),
}

/// A way of writing times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Iso,
    /// ISO 8601 without separators.
    Basic,
    Slashes,
    /// Day, name of the month and year, as in logs.
    Log,
    /// The same between blanks, as in mail and HTTP.
    Mail,
    /// The name of the month first.
    Asctime,
    /// A number since 1970: seconds, or thousandths, millionths, billionths.
    Epoch(u32),
}

impl Form {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Iso => "ISO 8601",
            Form::Basic => "ISO 8601, basic form",
            Form::Slashes => "as 2026/03/12 06:25:01",
            Form::Log => "as 12/Mar/2026:06:25:01",
            Form::Mail => "RFC 2822",
            Form::Asctime => "as Thu Mar 12 06:25:01 2026",
            Form::Epoch(0) => "seconds since 1970",
            Form::Epoch(3) => "milliseconds since 1970",
            Form::Epoch(6) => "microseconds since 1970",
            Form::Epoch(_) => "nanoseconds since 1970",
        }
    }
}

impl Time {
    /// Days since 1970-01-01.
    fn days(&self) -> i64 {
        calendar::days(self.year.into(), self.month, self.day)
    }

    /// Seconds since 1970-01-01 that the clock shows, and what is left of a second.
    fn reading(&self) -> (i64, u64) {
        let [hour, minute, second] = [self.hour, self.minute, self.second].map(i64::from);
        let seconds = self.days() * 86_400 + hour * 3600 + minute * 60 + second;
        (seconds, self.fraction)
    }

    /// Seconds since 1970 began in UTC, if the zone says so much.
    fn instant(&self) -> Option<(i64, u64)> {
        let Zone::Offset(ahead) = self.zone else {
            return None;
        };
        let (seconds, fraction) = self.reading();
        Some((seconds - i64::from(ahead), fraction))
    }

    /// Seconds since 1970 began in UTC, and what is left of a second. A time without an offset counts as one in UTC.
    pub(crate) fn seconds(&self) -> (i64, u64) {
        self.instant().unwrap_or_else(|| self.reading())
    }

    /// Seconds since 1970-01-01 that the clock shows.
    pub(crate) fn shown_seconds(&self) -> i64 {
        self.reading().0
    }

    /// Year, month, day, hour, minute and second.
    pub(crate) fn reading_parts(&self) -> [i64; 6] {
        let [month, day, hour, minute, second] =
            [self.month, self.day, self.hour, self.minute, self.second].map(i64::from);
        [self.year.into(), month, day, hour, minute, second]
    }

    /// The day of the week, from 1, which is Monday.
    pub(crate) fn weekday(&self) -> i64 {
        calendar::weekday(self.days()).into()
    }

    /// What a clock shows so many seconds after 1970-01-01 began; `None` where no year of four digits has it.
    pub(crate) fn of_seconds(seconds: i64) -> Option<Time> {
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = calendar::date(days);
        let [hour, minute, second] =
            [rest / 3600, rest / 60 % 60, rest % 60].map(|part| part as u8);
        (0..10_000).contains(&year).then_some(Time {
            year: year as u16,
            month,
            day,
            hour,
            minute,
            second,
            fraction: 0,
            precision: Precision::Second,
            zone: Zone::Missing,
            form: Form::Iso,
        })
    }

    /// How it compares with another time. If that has a zone, instants are compared, and `None` says that this time has
    /// none. Otherwise what the clocks show is compared.
    pub(crate) fn order(&self, other: &Time) -> Option<Ordering> {
        match other.instant() {
            Some(instant) => Some(self.instant()?.cmp(&instant)),
            None => Some(self.reading().cmp(&other.reading())),
        }
    }

    /// Bytes that are ordered as instants are. A time without an offset counts as one in UTC.
    pub(crate) fn rank(&self) -> [u8; RANK_BYTES] {
        let (seconds, fraction) = self.seconds();
        // No year is less than zero.
        const BIAS: i64 = 1 << 40;
        let high = u128::from((seconds + BIAS).cast_unsigned()) << 64;
        (high | u128::from(fraction)).to_be_bytes()
    }

    /// Whether it says more than a month.
    pub(crate) fn has_day(&self) -> bool {
        self.precision >= Precision::Day
    }
}

#[cfg(test)]
mod tests;
