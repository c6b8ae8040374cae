//! What may help where a value isn't a number, or fields stand in quotes.

use ringfold_read::Cause;

use crate::decimal::number::{Grammar, Number};
use crate::format::field::QUOTE;
use crate::format::time::read;
use crate::refusal::{Hint, Refusal};

/// Texts that many programs write where there is no value.
const NULLS: &str = "NA N/A n/a #N/A na NULL null Null None none nil \\N - -- ? .";

/// Infinities and nan as many programs write them.
const NOT_FINITE: &str =
    "NaN nan NAN -nan inf -inf +inf Inf -Inf +Inf INF -INF Infinity -Infinity infinity -infinity";

/// Signs of money and per cent.
const SIGNS: [&str; 5] = ["$", "€", "£", "¥", "%"];

/// Whether many programs write this where there is no value.
pub(crate) fn is_usual_null(value: &[u8]) -> bool {
    NULLS.split(' ').any(|null| null.as_bytes() == value)
}

/// What is wrong with a value that isn't a number, and how it may be read, if there is a way.
pub(crate) fn number_cause(value: &[u8], why: String, grammar: Grammar) -> Cause {
    match hint(value.trim_ascii(), grammar) {
        Some(hint) => Refusal::Malformed { why, hint }.into(),
        None => why.into(),
    }
}

/// The same of a value that a condition compares with a number.
pub(crate) fn comparison_cause(value: &[u8], why: String, grammar: Grammar) -> Cause {
    let hint = Hint::QuotedTime;
    match is_date(value.trim_ascii()) {
        true => Refusal::Malformed { why, hint }.into(),
        false => number_cause(value, why, grammar),
    }
}

fn is_date(value: &[u8]) -> bool {
    read(value).is_ok_and(|time| time.has_day())
}

fn hint(value: &[u8], grammar: Grammar) -> Option<Hint> {
    let among = |words: &'static str| words.split(' ').find(|word| word.as_bytes() == value);
    if let Some(null) = among(NULLS) {
        return Some(Hint::NullValue(null));
    }
    if is_date(value) {
        return Some(Hint::Times);
    }
    let is_number = |value: &[u8], grammar| Number::read_as(value, grammar).is_ok();
    if unquoted(value).is_some_and(|value| is_number(value, grammar)) {
        return Some(Hint::Quotes);
    }
    let decimal_point = grammar.decimal_point;
    let float = Grammar {
        decimal_point,
        ..Grammar::FLOAT
    };
    if is_number(value, float) {
        let special = among(NOT_FINITE).map(Hint::NotFinite);
        return Some(special.unwrap_or(Hint::Float));
    }
    let other = Grammar {
        decimal_point: if decimal_point == b',' { b'.' } else { b',' },
        ..float
    };
    let text = std::str::from_utf8(value).ok()?;
    if is_number(value, other) {
        return Some(match decimal_point {
            b',' => Hint::DecimalPoint,
            _ if is_grouped(text, ',') => Hint::CommaOrGroups,
            _ => Hint::DecimalComma,
        });
    }
    let sign = SIGNS.iter().find(|sign| text.contains(**sign));
    let bare = sign.map_or_else(|| text.into(), |sign| text.replace(sign, ""));
    if let Some(sign) = sign.filter(|_| is_number(bare.as_bytes(), grammar)) {
        return Some(Hint::Sign(sign));
    }
    let bare = bare.trim().trim_start_matches(['-', '+']);
    let inner = bare
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'));
    let amount = inner.unwrap_or(bare).trim();
    let is_amount = is_grouped(amount, ',')
        || is_grouped(amount, '.')
        || is_grouped(amount, '\'')
        || is_grouped(amount, ' ')
        || inner.is_some() && is_number(amount.as_bytes(), grammar);
    is_amount.then_some(Hint::Amount)
}

/// Whether a number has separators between its thousands, with decimals or without.
pub(crate) fn is_grouped(text: &str, separator: char) -> bool {
    let points: &[char] = match separator {
        ',' => &['.'],
        '.' => &[','],
        _ => &['.', ','],
    };
    let (whole, decimals) = text.split_once(points).unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.trim_start_matches(['-', '+']).split(separator);
    let first = groups.next().unwrap_or_default();
    let is_first = (1..=3).contains(&first.len()) && is_digits(first) && !first.starts_with('0');
    let mut groups = groups.peekable();
    groups.peek().is_some()
        && is_first
        && groups.all(|group| group.len() == 3 && is_digits(group))
        && is_digits(decimals)
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
        const COMMA: Grammar = Grammar {
            decimal_point: b',',
            ..Grammar::PLAIN
        };
        for (value, grammar, want) in [
            ("NA", Grammar::PLAIN, Some(Hint::NullValue("NA"))),
            (" - ", Grammar::FLOAT, Some(Hint::NullValue("-"))),
            ("1e50", Grammar::PLAIN, Some(Hint::Float)),
            ("-2.5E-70", Grammar::PLAIN, Some(Hint::Float)),
            ("-2,5E-70", COMMA, Some(Hint::Float)),
            // Too long for all.
            ("1e5000", Grammar::PLAIN, None),
            ("nan", Grammar::PLAIN, Some(Hint::NotFinite("nan"))),
            ("-Infinity", COMMA, Some(Hint::NotFinite("-Infinity"))),
            ("iNf", Grammar::PLAIN, Some(Hint::Float)),
            ("\"2.5\"", Grammar::PLAIN, Some(Hint::Quotes)),
            ("\"free\"", Grammar::PLAIN, None),
            ("\"", Grammar::PLAIN, None),
            ("1,5", Grammar::PLAIN, Some(Hint::DecimalComma)),
            ("0,125", Grammar::PLAIN, Some(Hint::DecimalComma)),
            ("1,234", Grammar::PLAIN, Some(Hint::CommaOrGroups)),
            ("1.5", COMMA, Some(Hint::DecimalPoint)),
            ("1.234,50", COMMA, Some(Hint::Amount)),
            ("1,234.50", Grammar::PLAIN, Some(Hint::Amount)),
            ("-1,234,567", Grammar::PLAIN, Some(Hint::Amount)),
            ("1'234.5", Grammar::PLAIN, Some(Hint::Amount)),
            ("$5", Grammar::PLAIN, Some(Hint::Sign("$"))),
            ("-12.5 %", Grammar::PLAIN, Some(Hint::Sign("%"))),
            ("7,50 €", COMMA, Some(Hint::Sign("€"))),
            ("$1,234.50", Grammar::PLAIN, Some(Hint::Amount)),
            ("($200.00)", Grammar::PLAIN, Some(Hint::Amount)),
            ("1.2.3", Grammar::PLAIN, None),
            ("2024-05-01", Grammar::PLAIN, Some(Hint::Times)),
            ("free", Grammar::PLAIN, None),
            ("$", Grammar::PLAIN, None),
            ("()", Grammar::PLAIN, None),
        ] {
            assert_eq!(hint(value.trim().as_bytes(), grammar), want, "{value}");
        }
    }
}
