//! Figures in words, for tables and pictures.

/// Three digits, or more where there are more before the point.
pub fn digits(value: f64) -> String {
    let places = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

/// A time in seconds, to a thousandth of a second or the third digit.
pub fn seconds(time: f64) -> String {
    format!("{} s", bare(time))
}

/// The same without the unit.
pub fn bare(time: f64) -> String {
    let places = match time {
        ..0.1 => 4,
        ..10.0 => 3,
        ..100.0 => 2,
        _ => 1,
    };
    format!("{time:.places$}")
}

#[cfg(test)]
mod tests {
    use crate::measure::figures::*;

    #[test]
    fn figures_have_three_digits_or_more() {
        assert_eq!([1.0, 12.34, 123.4].map(digits), ["1.00", "12.3", "123"]);
        let times = [0.01234, 1.5, 12.0, 123.45].map(seconds);
        assert_eq!(times, ["0.0123 s", "1.500 s", "12.00 s", "123.5 s"]);
    }
}
