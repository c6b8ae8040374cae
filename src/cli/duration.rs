//! Durations as people write them: `500ms`, `30s`, `2m`, `1h`.

use std::time::Duration;

/// Reads a duration.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a number with its unit, as 500ms, 30s, 2m or 1h".into()),
    };
    if number.is_empty() {
        return Err("a whole number with its unit, as 30s".into());
    }
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(milliseconds))
        .map(Duration::from_millis)
        .ok_or_else(|| "so long nobody waits".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::duration::*;

    #[test]
    fn durations() {
        for (text, want_ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(want_ms)), "{text}");
        }
        for wrong in [
            "",
            "30",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "1d",
            "99999999999999999999s",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(duration("18446744073709551615h").is_err());
    }
}
