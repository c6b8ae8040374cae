//! Sizes and numbers on the command line: `4096`, `256K`, `1M`, `1MiB`, `2G`; `1_000_000`, `1.4e7`, `10M`.

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
        _ => return Err("a size is a number with K, M, G or T after it, such as 256K".into()),
    };
    if number.is_empty() {
        return Err("a size begins with a number, such as 256K".into());
    }
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "too large".into())
}

/// Parses a number of rows or of other things: `1000000`, `1_000_000`, `1,000,000`, `1.4e7`, `10M`; the letters are powers
/// of 1000.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let wrong = || "a whole number, such as 14000000, 14_000_000, 1.4e7 or 14M".to_string();
    let plain = text.replace(['_', ','], "");
    let digits = plain.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (number, zeros) = match &plain[digits.len()..] {
        "" => match plain.split_once(['e', 'E']) {
            Some((number, zeros)) => (number, zeros.parse().map_err(|_| wrong())?),
            None => (digits, 0),
        },
        "k" | "K" => (digits, 3),
        "m" | "M" => (digits, 6),
        "g" | "G" => (digits, 9),
        _ => return Err(wrong()),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = decimals.trim_end_matches('0');
    let digits = [whole, decimals].concat();
    let are_digits = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let zeros = u32::checked_sub(zeros, decimals.len() as u32).filter(|_| are_digits);
    let power = 10_u64.checked_pow(zeros.ok_or_else(wrong)?);
    let number = digits.parse::<u64>().ok();
    let number = number
        .zip(power)
        .and_then(|(number, power)| number.checked_mul(power));
    number.ok_or_else(|| "too large".into())
}

/// The same where it must fit memory.
pub(super) fn rows(text: &str) -> Result<usize, String> {
    count(text)?.try_into().map_err(|_| "too large".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::size::{count, size};

    #[test]
    fn numbers() {
        for (text, n) in [
            ("0", 0),
            ("1000", 1000),
            ("1e9", 1_000_000_000),
            ("1.4e7", 14_000_000),
            ("1.50E1", 15),
            ("1_000_000", 1_000_000),
            ("1,000", 1000),
            ("10M", 10_000_000),
            ("2.5k", 2500),
        ] {
            assert_eq!(count(text), Ok(n), "{text}");
        }
        for wrong in [
            "", "M", "1e", "x", "-1", "1.5", "1.45e1", "1e-1", "1X", ".", "1e1e1",
        ] {
            assert!(count(wrong).unwrap_err().contains("1.4e7"), "{wrong}");
        }
        for large in ["1e99", "99999999999999999999", "99999999999G"] {
            assert_eq!(count(large), Err("too large".to_string()), "{large}");
        }
    }

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
