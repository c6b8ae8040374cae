//! Bytes and numbers in words, for everything that people read.

const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Bytes in a GiB, for rates.
pub const GIB: f64 = (1u64 << 30) as f64;

/// A size as people write it: `1 MiB`, `2.5 GiB`.
pub fn size(bytes: u64) -> String {
    if bytes == 1 {
        return "1 byte".into();
    }
    let unit = unit(bytes);
    let whole = 1u64 << (10 * unit);
    match bytes % whole {
        0 => format!("{} {}", bytes / whole, UNITS[unit]),
        _ => format!("{:.1} {}", bytes as f64 / whole as f64, UNITS[unit]),
    }
}

/// Bytes in a second, in words: `2.10 GiB/s`.
pub fn rate(bytes: u64, seconds: f64) -> String {
    let per_second = bytes as f64 / seconds.max(1e-9);
    let unit = unit(per_second as u64);
    let whole = (1u64 << (10 * unit)) as f64;
    let decimals = if unit == 0 { 0 } else { 2 };
    format!("{:.decimals$} {}/s", per_second / whole, UNITS[unit])
}

/// A number with its digits in groups: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 record`, `2,000 records`.
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// The largest unit of which there is one.
fn unit(bytes: u64) -> usize {
    (bytes.max(1).ilog2() / 10) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (4096, "4 KiB"),
            (2_621_440, "2.5 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn digits_in_groups() {
        let numbers = [0, 999, 1000, 12_345_678].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345,678"]);
        assert_eq!(
            [1, 1000].map(|count| counted(count, "row")),
            ["1 row", "1,000 rows"]
        );
    }

    #[test]
    fn rates() {
        for (bytes, seconds, text) in [
            (0, 1.0, "0 bytes/s"),
            (100, 0.5, "200 bytes/s"),
            (3 << 20, 2.0, "1.50 MiB/s"),
            (9 << 30, 4.0, "2.25 GiB/s"),
            (0, 0.0, "0 bytes/s"),
        ] {
            assert_eq!(rate(bytes, seconds), text);
        }
    }
}
