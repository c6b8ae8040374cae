//! Any lines as a column of numbers, at every level of instructions: each is read as a program with big integers reads
//! it, and what the pass leaves to others it leaves at every level.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfold::Level;
use ringfold::internals::fuzzed::{SCALE_MAX, decoded};

/// A number of up to 20 digits and a point, perhaps with a sign and blanks around, in units of `10^-scale`.
fn naive(line: &[u8], scale: usize) -> Option<i64> {
    let text = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t']);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let both = format!("{whole}{part}");
    let is_long = digits.len() > 20 || whole.len().max(part.len()) > 19;
    if is_long || both.is_empty() || !both.bytes().all(|byte| byte.is_ascii_digit()) || part.len() > scale {
        return None;
    }
    let units = format!("{both}{}", "0".repeat(scale - part.len()));
    let units = units.parse::<i128>().expect("38 digits at most");
    (units < 1 << 62).then(|| sign * i64::try_from(units).expect("62 bits"))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let scale = u32::from(choice) % (SCALE_MAX + 1);
    let lines = text.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line));
    let want: Vec<_> = lines.map(|line| (!line.is_empty()).then(|| naive(line, scale as usize))).collect();
    for level in Level::available() {
        assert_eq!(decoded(level, text, scale), want, "{level:?}");
    }
});
