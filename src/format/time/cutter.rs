//! Cuts many times down, one after the other.

use std::ops::Range;

use crate::format::short_text::ShortText;
use crate::format::time::read::{NoTime, iso, read};
use crate::format::time::unit::{Unit, ZonedUnit};
use crate::format::time::zones::{Placed, Zones};

/// Cuts times down. Neighbours in a file are often the same, so it keeps the last one.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    time: Option<Whole>,
    cut: ShortText,
    /// All seconds of its minute have the same cut.
    is_of_minute: bool,
    /// Of weeks and weekdays, a day.
    day: Vec<u8>,
    day_cut: ShortText,
    /// In a zone, instants that all have one cut.
    span: Range<i64>,
    span_cut: ShortText,
    scratch: Vec<u8>,
}

/// A text of 8 to 32 bytes: how long it is, and what it begins and ends with.
type Whole = (usize, u128, u128);

#[inline]
fn whole(text: &[u8]) -> Option<Whole> {
    let eight = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_ne_bytes(*bytes).into());
    let sixteen = |bytes: Option<&[u8; 16]>| bytes.map(|bytes| u128::from_ne_bytes(*bytes));
    let (head, tail) = match text.len() {
        16..=32 => (sixteen(text.first_chunk()), sixteen(text.last_chunk())),
        _ if text.len() < 16 => (eight(text.first_chunk()), eight(text.last_chunk())),
        _ => return None,
    };
    Some((text.len(), head?, tail?))
}

/// Whether a time differs from a known one, as [`iso`] reads it, only in the seconds.
#[inline]
fn is_same_minute(known: Whole, (length, head, tail): Whole) -> bool {
    let shift = 8 * (33 - known.0);
    let is_like = |known: u128, other: u128| (known ^ other) & !(0xffff << shift) == 0;
    let [tens, ones, ..] = (tail >> shift).to_le_bytes();
    let are_seconds = matches!((tens, ones), (b'0'..=b'5', b'0'..=b'9'));
    (known.0, known.1) == (length, head) && is_like(known.2, tail) && are_seconds
}

impl Cutter {
    /// What [`ZonedUnit::cut`] gives. It is one unit's.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn cut(&mut self, of: ZonedUnit, time: &[u8]) -> Result<ShortText, NoTime> {
        let whole = whole(time);
        if let Some((known, whole)) = self.time.zip(whole)
            && (known == whole || self.is_of_minute && is_same_minute(known, whole))
        {
            return Ok(self.cut);
        }
        self.is_of_minute = false;
        let in_zone = match of.zones {
            None => None,
            Some(zones) => self.in_zone(of, zones, time)?,
        };
        let cut = match in_zone {
            Some(cut) => cut,
            None => self.as_written(of.unit, time)?,
        };
        (self.time, self.cut) = (whole, cut);
        Ok(cut)
    }

    /// Looks its period up only for an instant that isn't in the last span; `None` where a time is cut as it is written.
    #[inline]
    fn in_zone(
        &mut self,
        of: ZonedUnit,
        zones: Zones,
        text: &[u8],
    ) -> Result<Option<ShortText>, NoTime> {
        let time = read(text)?;
        let instant = match zones.placed(&time) {
            Placed::Instant(instant) if !time.is_leap_second() => Some(instant),
            Placed::Instant(_) | Placed::Unknown => None,
            Placed::Shown => return Ok(None),
        };
        of.unit.check(&time)?;
        if let Some(instant) = instant
            && self.span.contains(&instant)
        {
            return Ok(Some(self.span_cut));
        }
        let shown = of.shown(&time)?;
        of.write(&shown, &mut self.scratch);
        let cut = ShortText::from(&*self.scratch);
        if instant.is_some() {
            (self.span, self.span_cut) = (shown.span(of.unit.seconds()), cut);
        }
        Ok(Some(cut))
    }

    #[inline]
    fn as_written(&mut self, unit: Unit, time: &[u8]) -> Result<ShortText, NoTime> {
        let Some((parts, iso)) = iso(time) else {
            let zones = None;
            ZonedUnit { unit, zones }.cut(time, &mut self.scratch)?;
            return Ok(ShortText::from(&*self.scratch));
        };
        self.is_of_minute = unit != Unit::Second;
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
                if self.day != iso[..10] {
                    unit.write(&parts, &mut self.scratch);
                    self.day.clear();
                    self.day.extend_from_slice(&iso[..10]);
                    self.day_cut = ShortText::from(&*self.scratch);
                }
                return Ok(self.day_cut);
            }
        };
        text[10] = b'T';
        Ok(ShortText::first_of(&text, len))
    }
}
