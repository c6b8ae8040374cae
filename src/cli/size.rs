//! Sizes on the command line: `4096`, `256K`, `1M`, `1MiB`, `2G`.

/// Parses a size in bytes; the letters are powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("a size is a number with K, M, G or T behind it, such as 256K".into()),
    };
    if number.is_empty() {
        return Err("a size begins with a number, such as 256K".into());
    }
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::size::size;

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("256K"), Ok(256 << 10));
        assert_eq!(size("1m"), Ok(1 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for wrong in ["", "K", "1X", "-1", "1.5M"] {
            assert!(
                size(wrong).unwrap_err().ends_with("such as 256K"),
                "{wrong}"
            );
        }
        for large in ["99999999999T", "99999999999999999999"] {
            assert_eq!(size(large), Err("too large".to_string()));
        }
    }
}
