//! Reads a time in any of its forms. A text that could mean two times is refused.

use std::borrow::Cow;

use crate::decimal::number::{Grammar, Number};
use crate::format::time::{Form, Precision, Time, Zone, calendar};

/// Why a text isn't read as a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTime {
    /// It has another form.
    Other,
    /// It has the form of one, but there is no such day or time of day.
    Impossible,
    /// A day and a month in numbers, of which either may come first.
    DayOrMonth,
    /// Twelve digits, which are a date and a time, or milliseconds.
    DigitsOrEpoch,
    /// A time of day alone.
    NoDate,
    /// A day of some year.
    NoYear,
    /// It is written no further than this.
    Lacks(Precision),
    /// It has a zone's name that says no offset, and is looked at in another zone.
    NamedZone,
    /// In a zone, it is in no year of four digits.
    BeyondYears,
}

impl NoTime {
    /// Whether the text has the form of a time all the same.
    pub(crate) fn is_like_time(self) -> bool {
        matches!(self, NoTime::Impossible | NoTime::DayOrMonth)
    }

    /// What is wrong with a text.
    pub(crate) fn why(self, text: &[u8]) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            NoTime::Other => {
                "isn't a time: it is written as 2026-03-12T06:25:01Z, 2026/03/12 06:25:01, 20260312T062501Z, \
                 12/Mar/2026:06:25:01 +0000, Thu, 12 Mar 2026 06:25:01 GMT or Thu Mar 12 06:25:01 2026, or counts seconds \
                 (9 or 10 digits), ms (12 or 13), µs (15 or 16) or ns (18 or 19) since 1970"
            }
            NoTime::Impossible => "isn't a time: the calendar or the clock has no such",
            NoTime::NoDate => {
                "is a time of day without a date, which may stand in another column: `1+2@hour` joins two"
            }
            NoTime::NoYear => "is a time without a year",
            NoTime::NamedZone => {
                "has a zone's name that says no offset, so it can't be looked at in another zone"
            }
            NoTime::BeyondYears => "is in no year of four digits in that zone",
            NoTime::Lacks(Precision::Month) => "is a month without a day",
            NoTime::Lacks(Precision::Day) => "is a day without a time",
            NoTime::Lacks(Precision::Hour) => "is a time without minutes",
            NoTime::Lacks(_) => "is a time without seconds",
            NoTime::DayOrMonth => {
                return match readings(text) {
                    Some([one, two]) => format!(
                        "may be {one} or {two}: dates are read with the year first, or the month's name"
                    ),
                    None => "is read neither with the day first nor with the month: dates are read with the year \
                             first, or the month's name"
                        .into(),
                }
                .into();
            }
            NoTime::DigitsOrEpoch => {
                "may be a date with a time of day, or milliseconds since 1970, which lie in 1976: it isn't read as either"
            }
        })
    }
}

/// The two days that a date such as 03/12/2026 may be, if they are two.
fn readings(text: &[u8]) -> Option<[String; 2]> {
    let text = text.trim_ascii();
    let number = |from: usize, to: usize| number(text.get(from..to)?).ok();
    let (one, two, year) = (number(0, 2)?, number(3, 5)?, number(6, 10)?);
    let is_two = (1..=12).contains(&one) && (1..=12).contains(&two) && one != two;
    is_two.then(|| {
        [(one, two), (two, one)].map(|(month, day)| format!("{year:04}-{month:02}-{day:02}"))
    })
}

/// Reads a time.
///
/// # Errors
/// Why it isn't one.
#[inline]
pub(crate) fn read(text: &[u8]) -> Result<Time, NoTime> {
    match usual(text) {
        Some(time) => Ok(time),
        None => any(text),
    }
}

/// The two forms that logs have most, in a few steps; what is odd about one is left to [`any`].
#[inline]
pub(super) fn usual(text: &[u8]) -> Option<Time> {
    if let 19 | 20 = text.len() {
        return Some(iso(text)?.0);
    }
    let mut odd = 0;
    let mut two = |digits: &[u8], at: usize| {
        let (tens, ones) = (
            digits[at].wrapping_sub(b'0'),
            digits[at + 1].wrapping_sub(b'0'),
        );
        odd |= u8::from(tens > 9) | u8::from(ones > 9);
        tens.wrapping_mul(10).wrapping_add(ones)
    };
    let time = if let Ok(log) = <&[u8; 26]>::try_from(text) {
        let (hours, minutes) = (two(log, 22), two(log, 24));
        let ahead = i32::from(hours) * 3600 + i32::from(minutes) * 60;
        let between = [2, 6, 11, 14, 17, 20].map(|at| log[at]);
        let zone = match (between == *b"//::: ", log[21]) {
            (true, b'+') => ahead,
            (true, b'-') => -ahead,
            _ => return None,
        };
        if hours > 23 || minutes > 59 {
            return None;
        }
        Time {
            year: u16::from(two(log, 7)) * 100 + u16::from(two(log, 9)),
            month: month(&log[3..6])?,
            day: two(log, 0),
            hour: two(log, 12),
            minute: two(log, 15),
            second: two(log, 18),
            precision: Precision::Second,
            zone: Zone::Offset(zone),
            form: Form::Log,
            ..EMPTY
        }
    } else {
        return None;
    };
    let is_there = odd == 0 && time.on_calendar().is_ok() && time.on_clock().is_ok();
    is_there.then_some(time)
}

/// A time such as `2026-03-12T06:25:01` or `2026-03-12 06:25:01Z`, and its bytes without the zone.
#[inline]
pub(super) fn iso(text: &[u8]) -> Option<(Time, &[u8; 19])> {
    let (text, zone) = text.split_first_chunk()?;
    let zone = match zone {
        [] => Zone::Missing,
        b"Z" => Zone::Offset(0),
        _ => return None,
    };
    // Eight bytes at a time.
    let word = |at: usize| {
        let eight = text[at..].first_chunk().expect("of 19 bytes");
        u64::from_le_bytes(*eight)
    };
    // Digits become their numbers, and what stands between them zero; else a byte's highest bit is set.
    let digits = |word: u64, form: &[u8; 8]| {
        let differences = word ^ u64::from_le_bytes(*form);
        let limits = form.map(|byte| if byte == b'0' { 0x76 } else { 0x7f });
        let above = (differences & LOW_BITS) + u64::from_le_bytes(limits);
        (differences, (above | differences) & !LOW_BITS)
    };
    let two = |word: u64, at: u32| {
        let (tens, ones) = (word >> (8 * at) & 0xff, word >> (8 * at + 8) & 0xff);
        (10 * tens + ones) as u8
    };
    let (date, odd_date) = digits(word(0), b"0000-00-");
    let (clock, odd_clock) = digits(word(11), b"00:00:00");
    let (day, odd_day) = digits(word(8) & 0xffff, b"00\0\0\0\0\0\0");
    if odd_date | odd_clock | odd_day != 0 || !matches!(text[10], b'T' | b' ') {
        return None;
    }
    let time = Time {
        year: u16::from(two(date, 0)) * 100 + u16::from(two(date, 2)),
        month: two(date, 5),
        day: two(day, 0),
        hour: two(clock, 0),
        minute: two(clock, 3),
        second: two(clock, 6),
        precision: Precision::Second,
        zone,
        form: Form::Iso,
        ..EMPTY
    };
    let is_there = time.on_calendar().is_ok() && time.on_clock().is_ok();
    is_there.then_some((time, text))
}

/// All bits of each byte but the highest.
const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

pub(super) fn any(text: &[u8]) -> Result<Time, NoTime> {
    // As fields between blanks have the time of a log.
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text
        .strip_suffix(b"]")
        .filter(|_| !text.contains(&b'['))
        .unwrap_or(text);
    let mut rest = Rest(text);
    match text {
        [b'0'..=b'9', _, _, _, b'-', ..] => rest.year_first(b'-', Form::Iso),
        [b'0'..=b'9', _, _, _, b'/', ..] => rest.year_first(b'/', Form::Slashes),
        [b'0'..=b'9', _, b'/', letter, ..] if letter.is_ascii_alphabetic() => rest.day_first(),
        [b'0'..=b'9', ..] => digit_first(text),
        [b'A'..=b'Z' | b'a'..=b'z', ..] => rest.name_first(),
        _ => Err(NoTime::Other),
    }
}

#[cold]
fn digit_first(text: &[u8]) -> Result<Time, NoTime> {
    let digits = leading_digits(text);
    match (digits, text.get(digits)) {
        (8 | 14, None) | (8, Some(b'T' | b't' | b' ')) => Rest(text).basic(),
        (1 | 2, Some(b'/' | b'-' | b' '))
            if text[digits + 1..]
                .first()
                .is_some_and(u8::is_ascii_alphabetic) =>
        {
            Rest(text).day_first()
        }
        (1 | 2, Some(&byte @ (b'/' | b'-' | b'.'))) => {
            let rest = &text[digits + 1..];
            let second = leading_digits(rest);
            let year = leading_digits(rest.get(second + 1..).unwrap_or_default());
            match (second, rest.get(second), year) {
                (1 | 2, Some(next), 2 | 4) if *next == byte => Err(NoTime::DayOrMonth),
                _ => epoch(text),
            }
        }
        (1 | 2, Some(b':')) => {
            let mut clock = Rest(text);
            let mut time = EMPTY;
            let is_clock = clock.clock(&mut time).is_ok() && time.precision >= Precision::Minute;
            Err(match is_clock {
                true => NoTime::NoDate,
                false => NoTime::Other,
            })
        }
        _ => epoch(text),
    }
}

/// What isn't written yet.
const EMPTY: Time = Time {
    year: 0,
    month: 1,
    day: 1,
    hour: 0,
    minute: 0,
    second: 0,
    fraction: 0,
    precision: Precision::Month,
    zone: Zone::Missing,
    form: Form::Iso,
};

/// Digits after the point of a second.
const FRACTION_DIGITS: u32 = 18;

/// A number since 1970. How many digits it has says what it counts.
fn epoch(text: &[u8]) -> Result<Time, NoTime> {
    let number = Number::read_as(text, Grammar::LONG).map_err(|_| NoTime::Other)?;
    let units = number.at(FRACTION_DIGITS).ok_or(NoTime::Other)?;
    let one = 10_i128.pow(FRACTION_DIGITS);
    let whole = units / one;
    let decimals = match whole.checked_ilog10().map_or(0, |log| log + 1) {
        9 | 10 => 0,
        12 | 13 => 3,
        15 | 16 => 6,
        18 | 19 => 9,
        _ => return Err(NoTime::Other),
    };
    if decimals == 3 && text.len() == 12 && compact(text).is_ok() {
        return Err(NoTime::DigitsOrEpoch);
    }
    let divisor = 10_i128.pow(decimals);
    // Below 10^-18 s nothing is kept, so nothing may be there.
    if units % divisor != 0 {
        return Err(NoTime::Other);
    }
    let units = units / divisor;
    let (seconds, fraction) = ((units / one) as i64, (units % one) as u64);
    Ok(Time {
        fraction,
        zone: Zone::Offset(0),
        form: Form::Epoch(decimals),
        ..Time::of_seconds(seconds).ok_or(NoTime::Other)?
    })
}

/// A date and hour and minute in twelve digits.
fn compact(text: &[u8]) -> Result<(), NoTime> {
    let mut rest = Rest(text);
    let mut time = EMPTY;
    rest.date(&mut time, None)?;
    let (hour, minute) = (rest.digits(2)?, rest.digits(2)?);
    match hour < 24 && minute < 60 {
        true => Ok(()),
        false => Err(NoTime::Impossible),
    }
}

/// How many digits a text begins with.
fn leading_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn number(digits: &[u8]) -> Result<u16, NoTime> {
    digits.iter().try_fold(0, |number, byte| match byte {
        b'0'..=b'9' => Ok(10 * number + u16::from(byte - b'0')),
        _ => Err(NoTime::Other),
    })
}

/// What is left of a text.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn need(&mut self, byte: u8) -> Result<(), NoTime> {
        self.take(byte).then_some(()).ok_or(NoTime::Other)
    }

    /// As many digits.
    #[inline]
    fn digits(&mut self, count: usize) -> Result<u16, NoTime> {
        let (digits, rest) = self.0.split_at_checked(count).ok_or(NoTime::Other)?;
        self.0 = rest;
        number(digits)
    }

    fn blanks(&mut self) -> Result<(), NoTime> {
        let before = self.0.len();
        while self.take(b' ') {}
        (self.0.len() < before).then_some(()).ok_or(NoTime::Other)
    }

    /// Letters at its start.
    fn letters(&mut self) -> &'a [u8] {
        let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
        let len = self.0.iter().take_while(is_letter).count();
        let (letters, rest) = self.0.split_at(len);
        self.0 = rest;
        letters
    }

    fn month_name(&mut self) -> Result<u8, NoTime> {
        month(self.letters()).ok_or(NoTime::Other)
    }

    /// The day of a month, of which the first nine may have a digit or two.
    fn short_day(&mut self) -> Result<u8, NoTime> {
        match leading_digits(self.0) {
            len @ (1 | 2) => Ok(self.digits(len)? as u8),
            _ => Err(NoTime::Other),
        }
    }

    /// Year, month and day, with or without a byte between them.
    #[inline]
    fn date(&mut self, time: &mut Time, between: Option<u8>) -> Result<(), NoTime> {
        time.year = self.digits(4)?;
        if let Some(between) = between {
            self.need(between)?;
        }
        time.month = self.digits(2)? as u8;
        let is_month = between == Some(b'-') && self.0.is_empty();
        if is_month {
            return time.on_calendar();
        }
        if let Some(between) = between {
            self.need(between)?;
        }
        time.day = self.digits(2)? as u8;
        time.precision = Precision::Day;
        time.on_calendar()
    }

    #[inline]
    fn year_first(&mut self, between: u8, form: Form) -> Result<Time, NoTime> {
        let mut time = Time { form, ..EMPTY };
        self.date(&mut time, Some(between))?;
        match self.0 {
            [] => return Ok(time),
            [b'T' | b't' | b' ', rest @ ..] => self.0 = rest,
            _ => return Err(NoTime::Other),
        }
        self.clock(&mut time)?;
        self.zone(&mut time)?;
        Ok(time)
    }

    /// `12/Mar/2026:06:25:01 +0000`, also between other bytes.
    #[inline]
    fn day_first(&mut self) -> Result<Time, NoTime> {
        let mut time = EMPTY;
        time.day = self.short_day()?;
        let between = self.0.first().copied().unwrap_or_default();
        self.0 = self.0.get(1..).unwrap_or_default();
        time.month = self.month_name()?;
        self.need(between)?;
        time.form = match between {
            b' ' => Form::Mail,
            _ => Form::Log,
        };
        self.year_and_clock(time)
    }

    fn year_and_clock(&mut self, mut time: Time) -> Result<Time, NoTime> {
        time.year = self.digits(4)?;
        time.precision = Precision::Day;
        time.on_calendar()?;
        match self.0 {
            [] => return Ok(time),
            [b':', rest @ ..] => self.0 = rest,
            _ => self.blanks()?,
        }
        self.clock(&mut time)?;
        match time.precision {
            Precision::Hour => Err(NoTime::Other),
            _ => {
                self.zone(&mut time)?;
                Ok(time)
            }
        }
    }

    /// `Thu, 12 Mar 2026 06:25:01 GMT`, or `Thu Mar 12 06:25:01 2026`. Days of the week aren't looked at.
    fn name_first(&mut self) -> Result<Time, NoTime> {
        let name = self.letters();
        let month = match month(name) {
            Some(month) => month,
            None if is_weekday(name) => {
                self.take(b',');
                self.blanks()?;
                if self.0.first().is_some_and(u8::is_ascii_digit) {
                    return self.day_first();
                }
                self.month_name()?
            }
            None => return Err(NoTime::Other),
        };
        self.blanks()?;
        let mut time = Time {
            month,
            form: Form::Asctime,
            ..EMPTY
        };
        time.day = self.short_day()?;
        self.take(b',');
        if self.0.is_empty() {
            return Err(NoTime::NoYear);
        }
        self.blanks()?;
        if self.0.get(2) != Some(&b':') {
            return self.year_and_clock(time);
        }
        self.clock(&mut time)?;
        if self.0.is_empty() {
            return Err(NoTime::NoYear);
        }
        self.blanks()?;
        // As `date` writes it.
        if self.0.first().is_some_and(u8::is_ascii_alphabetic) {
            time.zone = zone_named(self.letters()).ok_or(NoTime::Other)?;
            self.blanks()?;
        }
        time.year = self.digits(4)?;
        time.on_calendar()?;
        match self.0 {
            [] => Ok(time),
            _ => Err(NoTime::Other),
        }
    }

    /// `20260312T062501Z`, or the date alone.
    fn basic(&mut self) -> Result<Time, NoTime> {
        let mut time = Time {
            form: Form::Basic,
            ..EMPTY
        };
        self.date(&mut time, None)?;
        match self.0 {
            [] => return Ok(time),
            [b'T' | b't' | b' ', rest @ ..] => self.0 = rest,
            _ => {}
        }
        if self.0.get(2) == Some(&b':') {
            self.clock(&mut time)?;
        } else {
            time.hour = self.digits(2)? as u8;
            time.minute = self.digits(2)? as u8;
            time.precision = Precision::Minute;
            if self.0.first().is_some_and(u8::is_ascii_digit) {
                time.second = self.digits(2)? as u8;
                time.precision = Precision::Second;
                self.fraction(&mut time)?;
            }
            time.on_clock()?;
        }
        self.zone(&mut time)?;
        Ok(time)
    }

    /// `06`, `06:25`, `06:25:01` or `06:25:01.5`.
    #[inline]
    fn clock(&mut self, time: &mut Time) -> Result<(), NoTime> {
        time.hour = self.digits(2)? as u8;
        time.precision = Precision::Hour;
        if self.take(b':') {
            time.minute = self.digits(2)? as u8;
            time.precision = Precision::Minute;
            if self.take(b':') {
                time.second = self.digits(2)? as u8;
                time.precision = Precision::Second;
                self.fraction(time)?;
            }
        }
        time.on_clock()
    }

    fn fraction(&mut self, time: &mut Time) -> Result<(), NoTime> {
        let [b'.' | b',', rest @ ..] = self.0 else {
            return Ok(());
        };
        let len = leading_digits(rest);
        let (digits, rest) = rest.split_at(len);
        self.0 = rest;
        let kept = &digits[..len.min(FRACTION_DIGITS as usize)];
        // What is beyond them would be lost.
        let is_kept = digits[kept.len()..].iter().all(|digit| *digit == b'0');
        if !is_kept || len == 0 {
            return Err(NoTime::Other);
        }
        let number = kept.iter().fold(0, |number: u64, digit| {
            10 * number + u64::from(digit - b'0')
        });
        time.fraction = number * 10_u64.pow(FRACTION_DIGITS - kept.len() as u32);
        Ok(())
    }

    /// What follows a clock: nothing, or a zone, to the end.
    #[inline]
    fn zone(&mut self, time: &mut Time) -> Result<(), NoTime> {
        while self.take(b' ') {}
        match self.0 {
            [] => return Ok(()),
            [b'Z' | b'z'] => {
                time.zone = Zone::Offset(0);
                return Ok(());
            }
            [b'+' | b'-', ..] => time.zone = self.offset()?,
            _ => {
                time.zone = zone_named(self.letters()).ok_or(NoTime::Other)?;
                if let [b'+' | b'-', ..] = self.0 {
                    time.zone = self.offset()?;
                }
            }
        }
        if self.0.is_empty() {
            return Ok(());
        }
        // The name of a zone after its offset.
        while self.take(b' ') {}
        let is_name =
            |open: u8, close: u8| self.0.first() == Some(&open) && self.0.last() == Some(&close);
        match is_name(b'(', b')') || is_name(b'[', b']') {
            true => Ok(()),
            false => Err(NoTime::Other),
        }
    }

    /// `+01`, `+0100`, `+01:00`.
    #[inline]
    fn offset(&mut self) -> Result<Zone, NoTime> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        self.take(b'+');
        let hours = self.digits(2)?;
        let has_minutes = self.take(b':') || self.0.first().is_some_and(u8::is_ascii_digit);
        let minutes = if has_minutes { self.digits(2)? } else { 0 };
        match hours < 24 && minutes < 60 {
            true => Ok(Zone::Offset(
                sign * (i32::from(hours) * 3600 + i32::from(minutes) * 60),
            )),
            false => Err(NoTime::Impossible),
        }
    }
}

impl Time {
    fn on_calendar(&self) -> Result<(), NoTime> {
        let is_there = self.year > 0
            && (1..=12).contains(&self.month)
            && self.day > 0
            && (self.day <= 28 || self.day <= calendar::days_in(self.year, self.month));
        is_there.then_some(()).ok_or(NoTime::Impossible)
    }

    /// A leap second is the sixtieth of its minute.
    fn on_clock(&self) -> Result<(), NoTime> {
        let is_there = self.hour < 24 && self.minute < 60 && self.second <= 60;
        is_there.then_some(()).ok_or(NoTime::Impossible)
    }
}

fn month(name: &[u8]) -> Option<u8> {
    let &[one, two, three] = name else {
        return None;
    };
    // In small letters; nothing but letters becomes one of these.
    let short = u32::from_be_bytes([0, one, two, three]) | 0x20_2020;
    const NAMES: [u32; 12] = {
        let text = b"janfebmaraprmayjunjulaugsepoctnovdec";
        let mut names = [0; 12];
        let mut at = 0;
        while at < 12 {
            names[at] = u32::from_be_bytes([0, text[3 * at], text[3 * at + 1], text[3 * at + 2]]);
            at += 1;
        }
        names
    };
    let at = NAMES.iter().position(|known| *known == short)?;
    Some(at as u8 + 1)
}

fn is_weekday(name: &[u8]) -> bool {
    let is = |known: &str| {
        let short = name.len() == 3 && name.eq_ignore_ascii_case(&known.as_bytes()[..3]);
        short || name.eq_ignore_ascii_case(known.as_bytes())
    };
    let names = "monday tuesday wednesday thursday friday saturday sunday";
    names.split(' ').any(is)
}

/// The zone of a name. Most names say no offset, or another one in each country.
fn zone_named(name: &[u8]) -> Option<Zone> {
    let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    match name.len() {
        _ if ["z", "ut", "utc", "gmt"].iter().any(is) => Some(Zone::Offset(0)),
        // In `06:25 PM` the hour would be another one.
        3..=5 if name.iter().all(u8::is_ascii_uppercase) => Some(Zone::Named),
        _ => None,
    }
}
