//! What may help where a value isn't a number, or fields stand in quotes.

use crate::error::Cause;
use crate::error::refusal::{Hint, Refusal};
use crate::query::field::QUOTE;
use crate::query::number::Number;
use crate::query::time::read;

/// Texts that many programs write where there is no value.
const NULLS: [&str; 16] = [
    "NA", "N/A", "n/a", "#N/A", "na", "NULL", "null", "Null", "None", "none", "nil", "\\N", "-",
    "--", "?", ".",
];

/// What is wrong with a value that isn't a number, and how it may be read, if there is a flag for that.
pub(crate) fn number_cause(value: &[u8], why: String, is_float: bool) -> Cause {
    match hint(value.trim_ascii(), is_float) {
        Some(hint) => Refusal::Malformed { why, hint }.into(),
        None => why.into(),
    }
}

fn hint(value: &[u8], is_float: bool) -> Option<Hint> {
    let null = NULLS.iter().find(|null| null.as_bytes() == value);
    if let Some(null) = null {
        return Some(Hint::NullValue(null));
    }
    if read(value).is_ok_and(|time| time.has_day()) {
        return Some(Hint::Times);
    }
    let in_quotes = unquoted(value).map(Number::read);
    if in_quotes.is_some_and(|read| read.is_ok()) {
        return Some(Hint::Quotes);
    }
    let text = std::str::from_utf8(value).ok()?;
    let is_double = !is_float && text.parse::<f64>().is_ok();
    let has_exponent =
        text.contains(['e', 'E']) && text.contains(|char: char| char.is_ascii_digit());
    (is_double && has_exponent).then_some(Hint::Float)
}

/// What stands between two quotes.
pub(crate) fn unquoted(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(&[QUOTE])?.strip_suffix(&[QUOTE])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps() {
        for (value, is_float, want) in [
            ("NA", false, Some(Hint::NullValue("NA"))),
            (" - ", true, Some(Hint::NullValue("-"))),
            ("1e3", false, Some(Hint::Float)),
            ("-2.5E-7", false, Some(Hint::Float)),
            ("\"2.5\"", false, Some(Hint::Quotes)),
            ("\"free\"", false, None),
            ("\"", false, None),
            ("1e3", true, None),
            ("nan", false, None),
            ("1.2.3", false, None),
            ("2026-02-01", false, Some(Hint::Times)),
            ("01/Feb/2026:00:00:01 +0000", false, Some(Hint::Times)),
            ("2026-02", false, None),
            ("free", false, None),
        ] {
            assert_eq!(hint(value.trim().as_bytes(), is_float), want, "{value}");
        }
    }
}
