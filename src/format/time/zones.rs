//! Times on the clock of a zone.

use std::ops::Range;

use crate::format::time::calendar::ORIGIN;
use crate::format::time::read::{NoTime, read};
use crate::format::time::zone::{Period, Zone};
use crate::format::time::{Precision, Time, Zone as Written};

/// The zones that a query names: the one whose clock times are looked at on, and that of times without an offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimeZones {
    pub(crate) zone: Option<Zone>,
    pub(crate) input: Option<Zone>,
}

impl TimeZones {
    /// That of times without an offset where no expression names a zone.
    pub(crate) fn local(self) -> Option<Zone> {
        self.of(None).map(|zones| zones.input)
    }

    /// Those that hold where an expression names a zone, or none.
    pub(crate) fn of(self, zone: Option<Zone>) -> Option<Zones> {
        let zone = zone.or(self.zone)?;
        let input = self.input.unwrap_or(zone);
        Some(Zones { zone, input })
    }
}

/// The zone whose clock times are looked at on, and that of times without an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zones {
    pub(crate) zone: Zone,
    pub(crate) input: Zone,
}

/// What is quickly known of a time.
pub(super) enum Placed {
    Instant(i64),
    /// It is what the zone's clock shows.
    Shown,
    /// It must be looked up, or can't be.
    Unknown,
}

impl Zones {
    #[inline]
    pub(super) fn placed(self, time: &Time) -> Placed {
        let ahead = match time.zone {
            Written::Offset(ahead) => Some(ahead),
            Written::Missing if self.zone == self.input => return Placed::Shown,
            Written::Missing => self.input.fixed(),
            Written::Named => None,
        };
        match ahead.filter(|_| time.precision >= Precision::Minute) {
            Some(ahead) => Placed::Instant(time.reading().0 - i64::from(ahead)),
            None => Placed::Unknown,
        }
    }
}

impl Time {
    /// The sixtieth of its minute.
    pub(super) fn is_leap_second(&self) -> bool {
        self.second == 60
    }

    /// The same with an offset: that of a zone where it has none.
    ///
    /// # Errors
    /// It has a zone's name that says no offset.
    pub(crate) fn placed(&self, input: Zone) -> Result<Time, NoTime> {
        let ahead = match self.zone {
            Written::Offset(ahead) => ahead,
            Written::Named => return Err(NoTime::NamedZone),
            Written::Missing => {
                let local = self.reading().0 - i64::from(self.is_leap_second());
                (local - input.instant(local)) as i32
            }
        };
        let zone = Written::Offset(ahead);
        Ok(Time { zone, ..*self })
    }
}

/// Reads a time, which has an offset then if a zone is named for those without one.
///
/// # Errors
/// Why it isn't one, or its offset isn't known.
pub(crate) fn read_in(text: &[u8], input: Option<Zone>) -> Result<Time, NoTime> {
    let time = read(text)?;
    input.map_or(Ok(time), |input| time.placed(input))
}

/// A time as it is looked at.
pub(crate) struct Shown {
    pub(crate) time: Time,
    /// The period that it is in, if its instant is known.
    period: Option<Period>,
}

impl Shown {
    /// A time on the clock of a zone, or as it is written.
    ///
    /// # Errors
    /// Its instant isn't known, or no year of four digits has it.
    pub(crate) fn of(time: &Time, zones: Option<Zones>) -> Result<Shown, NoTime> {
        let as_written = Shown {
            time: *time,
            period: None,
        };
        let Some(Zones { zone, input }) = zones else {
            return Ok(as_written);
        };
        if time.zone == Written::Missing && zone == input {
            return Ok(as_written);
        }
        let placed = time.placed(input)?;
        let Written::Offset(ahead) = placed.zone else {
            unreachable!("it was placed");
        };
        let leap = i64::from(time.is_leap_second());
        let instant = placed.reading().0 - leap - i64::from(ahead);
        let period = zone.period(instant);
        let is_known = match time.precision {
            Precision::Month | Precision::Day => false,
            Precision::Hour => (period.ahead - ahead) % 3600 == 0,
            Precision::Minute | Precision::Second => true,
        };
        if !is_known {
            return Err(NoTime::Lacks(time.precision));
        }
        let shown = Time::of_seconds(instant + i64::from(period.ahead));
        let shown = shown.ok_or(NoTime::BeyondYears)?;
        Ok(Shown {
            time: Time {
                second: shown.second + leap as u8,
                fraction: time.fraction,
                precision: time.precision,
                zone: Written::Offset(period.ahead),
                form: time.form,
                ..shown
            },
            period: Some(period),
        })
    }

    /// The instants around it at which the clock shows the same span of so many seconds: a day, or less.
    pub(super) fn span(&self, width: i64) -> Range<i64> {
        let Some(Period {
            from, to, ahead, ..
        }) = self.period
        else {
            return 0..0;
        };
        let start = self.start(width) - i64::from(ahead);
        start.max(from)..(start + width).min(to)
    }

    /// The offset, where the clock shows a part of the span of up to an hour around it at other instants as well.
    pub(crate) fn repeated_offset(&self, width: i64) -> Option<i32> {
        let period = self.period.filter(|_| width <= 3600)?;
        let is_repeated = period.is_repeated(self.start(width), width);
        is_repeated.then_some(period.ahead)
    }

    fn start(&self, width: i64) -> i64 {
        let local = self.time.reading().0 - i64::from(self.time.is_leap_second());
        local - (local - ORIGIN).rem_euclid(width)
    }
}

/// Whether a text may be a time without an offset. Of the usual forms that have one it is quickly known.
pub(crate) fn may_lack_offset(text: &[u8]) -> bool {
    let is_digits = || text.iter().all(u8::is_ascii_digit);
    let has_offset = match text {
        [.., b'Z'] => true,
        [.., b'+' | b'-', _, _, b':', _, _] if text.len() > 20 => true,
        [.., b'+' | b'-', _, _, _, _] if text.len() == 26 => true,
        _ => ![8, 14].contains(&text.len()) && is_digits(),
    };
    !has_offset && read(text).is_ok_and(|time| time.zone == Written::Missing)
}
