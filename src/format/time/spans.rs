//! The spans of time that a key has, and all of them from one to another.

use std::collections::BTreeSet;

use crate::format::time::zone::{Zone, offset, write_offset};
use crate::format::time::{Bucket, Time, Unit, ZonedUnit, Zones, calendar};

/// The longest span whose offset is written where the clock shows it twice.
const REPEATED_MAX: i64 = 3600;

/// The values of a key of times: each is the text of a span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spans {
    bucket: Bucket,
    /// What their beginnings are written in.
    unit: Unit,
    zone: Option<Zone>,
}

/// The beginning of a span on the clock, in seconds since 1970-01-01, and the offset that is written with it.
type Start = (i64, Option<i32>);

impl Spans {
    pub(crate) fn of_bucket(bucket: Bucket, zones: Option<Zones>) -> Spans {
        Spans {
            bucket,
            unit: bucket.written(),
            zone: zones.map(|zones| zones.zone),
        }
    }

    /// Those that times are cut down to; a weekday is none.
    pub(crate) fn of_unit(of: ZonedUnit) -> Option<Spans> {
        let bucket = Bucket::of(of.unit)?;
        Some(Spans {
            unit: of.unit,
            ..Spans::of_bucket(bucket, of.zones)
        })
    }

    /// Where a span begins, in seconds since 1970: as an instant if there is a zone. `None`: no span is written so.
    pub(crate) fn place(self, text: &[u8]) -> Option<i64> {
        Some(self.instant(self.read(text)?))
    }

    fn instant(self, (start, ahead): Start) -> i64 {
        match (ahead, self.zone) {
            (Some(ahead), _) => start - i64::from(ahead),
            (None, Some(zone)) => zone.instant(start),
            (None, None) => start,
        }
    }

    /// The seconds of spans that a zone's clock may show twice.
    fn repeated_width(self) -> Option<(Zone, i64)> {
        match self.bucket {
            Bucket::Seconds(width) if width <= REPEATED_MAX => Some((self.zone?, width)),
            _ => None,
        }
    }

    /// Whether the clock shows a span twice, and it is written without the offset that says which one it is: as it is of times
    /// that have none.
    pub(crate) fn is_either(self, text: &[u8]) -> bool {
        let is_repeated = |(start, ahead): Start| {
            let (zone, width) = self.repeated_width()?;
            let period = zone.period(zone.instant(start));
            Some(ahead.is_none() && period.is_repeated(start, width))
        };
        self.read(text).and_then(is_repeated) == Some(true)
    }

    /// All spans from one to another, each once, in the order of bytes. Those that the clock leaves out aren't there. Of those
    /// in `either` none has an offset. `None`: they are more than `most`, or no span is written so.
    pub(crate) fn between(
        self,
        first: &[u8],
        last: &[u8],
        either: &BTreeSet<Vec<u8>>,
        most: usize,
    ) -> Option<BTreeSet<Vec<u8>>> {
        let (first, last) = (self.read(first)?, self.read(last)?);
        let end = self.instant((self.bucket.begins(last.0, 1), last.1));
        let mut at = self.instant(first);
        if let (Some(ahead), Some((zone, width))) = (first.1, self.repeated_width()) {
            // The clock may show the beginning in the period before alone.
            let period = zone.period(at + width - 1);
            if period.ahead == ahead {
                at = at.max(period.from);
            }
        }
        let mut spans = BTreeSet::new();
        while at < end {
            // Without a zone, as in one that never changes.
            let period = self.zone.map(|zone| zone.period(at));
            let ahead = period.map_or(0, |period| i64::from(period.ahead));
            let start = self.bucket.begins(at + ahead, 0);
            let mut text = self.text(start)?;
            if let (Some(period), Some((_, width))) = (period, self.repeated_width())
                && period.is_repeated(start, width)
                && !either.contains(&text)
            {
                write_offset(period.ahead, &mut text);
            }
            spans.insert(text);
            if spans.len() > most {
                return None;
            }
            let next = self.bucket.begins(start, 1) - ahead;
            at = period.map_or(next, |period| next.min(period.to));
        }
        Some(spans)
    }

    fn text(self, start: i64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        self.unit.write(&Time::of_seconds(start)?, &mut text);
        Some(text)
    }

    fn read(self, text: &[u8]) -> Option<Start> {
        let length = self.unit.example().len();
        let (own, offset) = text.split_at_checked(length)?;
        let number = |from: usize, to: usize, missing: i64| -> Option<i64> {
            match own.get(from..to) {
                Some(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
                None => Some(missing),
            }
        };
        let year = number(0, 4, 0)?;
        let start = match self.unit {
            Unit::Week => {
                // The fourth of January is in the first week.
                let fourth = calendar::days(year, 1, 4);
                let monday = fourth - i64::from(calendar::weekday(fourth)) + 1;
                (monday + 7 * (number(6, 8, 1)? - 1)) * 86_400
            }
            _ => {
                let [month, day] = [number(5, 7, 1)?, number(8, 10, 1)?];
                let days = calendar::days(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
                let [hour, minute] = [number(11, 13, 0)?, number(14, 16, 0)?];
                days * 86_400 + hour * 3600 + minute * 60 + number(17, 19, 0)?
            }
        };
        let is_leap_second = self.unit == Unit::Second && own.ends_with(b":60");
        let is_own = self.bucket.begins(start, 0) == start && self.text(start)? == own;
        let ahead = match offset {
            [] => None,
            offset => Some(read_offset(std::str::from_utf8(offset).ok()?)?),
        };
        (is_own || is_leap_second).then_some((start, ahead))
    }
}

/// An offset as it is written after a span, perhaps with seconds.
fn read_offset(text: &str) -> Option<i32> {
    let (text, seconds) = match text.split_at_checked("+00:00".len()) {
        Some((text, seconds)) if !seconds.is_empty() => {
            (text, seconds.strip_prefix(':')?.parse().ok()?)
        }
        _ => (text, 0),
    };
    let ahead = offset(text)?;
    Some(if text.starts_with('-') {
        ahead - seconds
    } else {
        ahead + seconds
    })
}
