//! The calendar of ISO 8601: days since 1970-01-01, weeks, lengths of months.

/// From 1970-01-01 to Monday, 2000-01-03, in seconds: spans of many seconds are counted from there.
pub(crate) const ORIGIN: i64 = 10_959 * 86_400;

const DAYS_IN_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Days from 1970-01-01 to a day. Years begin in March here, so that a leap day is the last one.
pub(super) fn days(year: i64, month: u8, day: u8) -> i64 {
    let month = i64::from(month);
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_IN_ERA + day_of_era - DAYS_TO_1970
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn date(days: i64) -> (i64, u8, u8) {
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(DAYS_IN_ERA), days.rem_euclid(DAYS_IN_ERA));
    let leap_days = of_era / 1460 - of_era / 36_524 + of_era / (DAYS_IN_ERA - 1);
    let year_of_era = (of_era - leap_days) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

pub(super) fn days_in(year: u16, month: u8) -> u8 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week, from 1, which is Monday.
pub(super) fn weekday(days: i64) -> u8 {
    // 1970 began on a Thursday.
    (days + 3).rem_euclid(7) as u8 + 1
}

/// Year and number of a day's week: that of the week's Thursday.
pub(super) fn week(days: i64) -> (i64, u8) {
    let thursday = days + 4 - i64::from(weekday(days));
    let (year, ..) = date(thursday);
    let number = (thursday - self::days(year, 1, 1)) / 7 + 1;
    (year, number as u8)
}
