//! Times in keys, cut down to their month, day, hour or minute.

/// What a time in a key is cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// `2026-11`
    Month,
    /// `2026-11-25`
    Day,
    /// `2026-11-25T13`
    Hour,
    /// `2026-11-25T13:45`
    Minute,
}

const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

impl Unit {
    const ALL: [Unit; 4] = [Unit::Month, Unit::Day, Unit::Hour, Unit::Minute];

    /// The unit of a name such as `hour`.
    pub fn named(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Month => "month",
            Unit::Day => "day",
            Unit::Hour => "hour",
            Unit::Minute => "minute",
        }
    }

    /// Cuts a time down, of ISO 8601 (`2026-11-25T13:45:10Z`, also with a blank in the place of the T) or of a web server's
    /// log (`25/Nov/2026:13:45:10 +0000`). The zone isn't looked at.
    ///
    /// # Errors
    /// It is no time, or lacks the unit.
    pub(crate) fn cut(self, time: &[u8], to: &mut Vec<u8>) -> Result<(), &'static str> {
        let (date, clock) = of_iso(time)
            .or_else(|| of_log(time))
            .ok_or("isn't a time")?;
        to.clear();
        let (year, month, day) = date;
        to.extend_from_slice(year);
        to.push(b'-');
        to.extend_from_slice(&month);
        if self == Unit::Month {
            return Ok(());
        }
        to.push(b'-');
        to.extend_from_slice(day);
        if self == Unit::Day {
            return Ok(());
        }
        let (hour, minute) = clock.ok_or("is a day without a time")?;
        to.push(b'T');
        to.extend_from_slice(hour);
        if self == Unit::Minute {
            to.push(b':');
            to.extend_from_slice(minute);
        }
        Ok(())
    }
}

/// Year, month and day.
type Date<'a> = (&'a [u8], [u8; 2], &'a [u8]);
/// Hour and minute.
type Clock<'a> = (&'a [u8], &'a [u8]);

fn of_iso(time: &[u8]) -> Option<(Date<'_>, Option<Clock<'_>>)> {
    let (year, month, day) = (time.get(..4)?, time.get(5..7)?, time.get(8..10)?);
    let is_date = time[4] == b'-' && time[7] == b'-';
    let month_number = number(month, 12)?;
    number(day, 31)?;
    number(year, 9999)?;
    let date = (year, digits(month_number), day);
    match time.get(10) {
        _ if !is_date => None,
        None => Some((date, None)),
        Some(b'T' | b't' | b' ') => Some((date, Some(clock(&time[11..])?))),
        Some(_) => None,
    }
}

fn of_log(time: &[u8]) -> Option<(Date<'_>, Option<Clock<'_>>)> {
    let (day, month, year) = (time.get(..2)?, time.get(3..6)?, time.get(7..11)?);
    let is_date = time[2] == b'/' && time[6] == b'/' && time.get(11) == Some(&b':');
    let at = MONTHS
        .as_chunks::<3>()
        .0
        .iter()
        .position(|known| known == month)?;
    number(day, 31)?;
    number(year, 9999)?;
    let clock = clock(time.get(12..)?)?;
    is_date.then_some(((year, digits(at as u32 + 1), day), Some(clock)))
}

fn clock(text: &[u8]) -> Option<Clock<'_>> {
    let (hour, minute) = (text.get(..2)?, text.get(3..5)?);
    number_from_zero(hour, 24)?;
    number_from_zero(minute, 59)?;
    (text[2] == b':').then_some((hour, minute))
}

fn number(text: &[u8], most: u32) -> Option<u32> {
    number_from_zero(text, most).filter(|number| *number > 0)
}

fn number_from_zero(text: &[u8], most: u32) -> Option<u32> {
    let digit = |number: u32, byte: &u8| match byte {
        b'0'..=b'9' => Some(10 * number + u32::from(byte - b'0')),
        _ => None,
    };
    let number = text.iter().try_fold(0, digit)?;
    (number <= most).then_some(number)
}

fn digits(number: u32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut() {
        for (time, want) in [
            (
                "2026-11-25T13:45:10.5Z",
                ["2026-11", "2026-11-25", "2026-11-25T13", "2026-11-25T13:45"],
            ),
            (
                "2026-01-02 03:04",
                ["2026-01", "2026-01-02", "2026-01-02T03", "2026-01-02T03:04"],
            ),
            (
                "05/Feb/1999:00:59:60 +0100",
                ["1999-02", "1999-02-05", "1999-02-05T00", "1999-02-05T00:59"],
            ),
        ] {
            for (unit, want) in Unit::ALL.into_iter().zip(want) {
                let mut cut = Vec::new();
                unit.cut(time.as_bytes(), &mut cut).unwrap();
                assert_eq!(String::from_utf8_lossy(&cut), want);
                assert_eq!(Unit::named(unit.name()), Some(unit));
            }
        }
        let mut cut = Vec::new();
        Unit::Month.cut(b"2026-11-25", &mut cut).unwrap();
        assert_eq!(cut, b"2026-11");
        assert_eq!(
            Unit::Hour.cut(b"2026-11-25", &mut cut),
            Err("is a day without a time")
        );
        for time in [
            "",
            "now",
            "2026-13-01",
            "2026-00-01",
            "2026-11-32",
            "2026/11/25",
            "2026-11-25x13:45",
            "2026-11-25T25:00",
            "2026-11-25T13",
            "2026-11-25T13.45",
            "25/Nov/2026",
            "25/nov/2026:13:45:10",
            "25/Nov/2026:1:45:10",
            "1764078310",
        ] {
            assert_eq!(
                Unit::Month.cut(time.as_bytes(), &mut cut),
                Err("isn't a time"),
                "{time}"
            );
        }
    }
}
