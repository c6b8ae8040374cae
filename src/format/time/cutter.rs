//! Cuts many times down, one after the other.

use std::ops::Range;

use crate::format::short_text::ShortText;
use crate::format::time::read::{NoTime, iso, read};
use crate::format::time::unit::{Unit, ZonedUnit};
use crate::format::time::zone::write_offset;
use crate::format::time::zones::{Placed, Zones};

/// Cuts times down. Neighbours in a file are often the same, so it keeps the last one.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// A time, or of weeks and weekdays a day.
    time: Vec<u8>,
    cut: ShortText,
    /// In a zone, instants that all have one cut.
    span: Range<i64>,
    span_cut: ShortText,
    /// A time of the span as it is written.
    span_time: Vec<u8>,
    scratch: Vec<u8>,
}

impl Cutter {
    /// What [`ZonedUnit::cut`] gives. It is one unit's.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn cut(&mut self, of: ZonedUnit, time: &[u8]) -> Result<ShortText, NoTime> {
        match of.zones {
            None => self.as_written(of.unit, time),
            Some(zones) => self.in_zone(of, zones, time),
        }
    }

    /// Looks its period up only for an instant that isn't in the last span.
    #[inline]
    fn in_zone(&mut self, of: ZonedUnit, zones: Zones, text: &[u8]) -> Result<ShortText, NoTime> {
        if self.span_time == text && !text.is_empty() {
            return Ok(self.span_cut);
        }
        let time = read(text)?;
        let instant = match zones.placed(&time) {
            Placed::Instant(instant) if !time.is_leap_second() => Some(instant),
            Placed::Instant(_) | Placed::Unknown => None,
            Placed::Shown => return self.as_written(of.unit, text),
        };
        of.unit.check(&time)?;
        if let Some(instant) = instant
            && self.span.contains(&instant)
        {
            self.keep_span_time(text);
            return Ok(self.span_cut);
        }
        let shown = of.shown(&time)?;
        of.unit.write(&shown.time, &mut self.scratch);
        let width = of.unit.seconds();
        if let Some(ahead) = shown.repeated_offset(width) {
            write_offset(ahead, &mut self.scratch);
        }
        let cut = ShortText::from(&*self.scratch);
        if instant.is_some() {
            (self.span, self.span_cut) = (shown.span(width), cut);
            self.keep_span_time(text);
        }
        Ok(cut)
    }

    #[inline]
    fn as_written(&mut self, unit: Unit, time: &[u8]) -> Result<ShortText, NoTime> {
        let Some((parts, iso)) = iso(time) else {
            if self.time != time || time.is_empty() {
                self.time.clear();
                let zones = None;
                ZonedUnit { unit, zones }.cut(time, &mut self.scratch)?;
                self.keep(time);
            }
            return Ok(self.cut);
        };
        let mut text = *iso;
        let len = match unit {
            Unit::Year => 4,
            Unit::Month => 7,
            Unit::Day => 10,
            Unit::Hour => 13,
            Unit::Minute => 16,
            Unit::Second => 19,
            Unit::Minutes(minutes) => {
                let minute = parts.minute - parts.minute % minutes.max(1);
                text[14..16].copy_from_slice(&[b'0' + minute / 10, b'0' + minute % 10]);
                16
            }
            Unit::Week | Unit::Weekday => {
                if self.time != iso[..10] {
                    unit.write(&parts, &mut self.scratch);
                    self.keep(&iso[..10]);
                }
                return Ok(self.cut);
            }
        };
        text[10] = b'T';
        Ok(ShortText::first_of(&text, len))
    }

    fn keep_span_time(&mut self, time: &[u8]) {
        self.span_time.clear();
        self.span_time.extend_from_slice(time);
    }

    fn keep(&mut self, time: &[u8]) {
        self.time.clear();
        self.time.extend_from_slice(time);
        self.cut = ShortText::from(&*self.scratch);
    }
}
