//! Sizes in words.

/// A size as people write it: `1 MiB`, `2.5 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes == 1 {
        return "1 byte".into();
    }
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    let whole = 1u64 << (10 * unit);
    match bytes % whole {
        0 => format!("{} {}", bytes / whole, units[unit]),
        _ => format!("{:.1} {}", bytes as f64 / whole as f64, units[unit]),
    }
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
}
