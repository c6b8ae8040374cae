//! The parts of a JSON text: where strings, numbers and literals end. A text ends before its line's end.

use crate::format::sixteen::{no_digits, special};

/// What is wrong with a text, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(super) at: usize,
    pub(super) cause: &'static str,
}

pub(super) fn bad<T>(at: usize, cause: &'static str) -> Result<T, Bad> {
    Err(Bad { at, cause })
}

/// The byte there; a newline where there is none.
#[inline(always)]
pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b'\n')
}

/// After the blanks at `at`.
#[inline(always)]
pub(super) fn after_blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(byte(bytes, at), b' ' | b'\t' | b'\r') {
        at += 1;
    }
    at
}

/// Where the quote stands that closes the string whose bytes begin at `at`, and whether there are escapes in it.
///
/// # Errors
/// It isn't closed in its line, or has something that can't be in a string.
#[inline(always)]
pub(super) fn string(bytes: &[u8], at: usize) -> Result<(usize, bool), Bad> {
    let end = plain_end(bytes, at);
    if byte(bytes, end) == b'"' {
        return Ok((end, false));
    }
    escaped(bytes, at, end)
}

/// The same of a string that has a byte at `at` that isn't plain.
#[inline(never)]
fn escaped(bytes: &[u8], start: usize, mut at: usize) -> Result<(usize, bool), Bad> {
    let mut has_escapes = false;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok((at, has_escapes)),
            Some(b'\\') => {
                has_escapes = true;
                let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
                at += match bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                    Some(b'u')
                        if bytes
                            .get(at + 2..at + 6)
                            .is_some_and(|d| d.iter().all(is_hex)) =>
                    {
                        6
                    }
                    _ => return bad(at, "there is no such escape in JSON"),
                };
            }
            _ if matches!(
                &bytes[at..],
                [] | [b'\r'] | [b'\n', ..] | [b'\r', b'\n', ..]
            ) =>
            {
                return bad(
                    start - 1,
                    "the string that opens here isn't closed in its line",
                );
            }
            _ => {
                return bad(
                    at,
                    "a string can't hold a control character, only its escape",
                );
            }
        }
        at = plain_end(bytes, at);
    }
}

/// Where the first quote, backslash or control character stands from `at` on.
#[inline(always)]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(sixteen) = bytes.get(at..at + 16) {
        let found = sixteen.try_into().map_or(0, special);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += 16;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// After the digits from `at` on.
#[inline(always)]
fn after_digits(bytes: &[u8], mut at: usize) -> usize {
    while let Some(sixteen) = bytes.get(at..at + 16) {
        let others = sixteen.try_into().map_or(0xffff, no_digits);
        if others != 0 {
            return at + others.trailing_zeros() as usize;
        }
        at += 16;
    }
    while byte(bytes, at).is_ascii_digit() {
        at += 1;
    }
    at
}

/// After the number that begins at `at`.
///
/// # Errors
/// It isn't one.
#[inline(always)]
pub(super) fn number(bytes: &[u8], at: usize) -> Result<usize, Bad> {
    const NONE: &str = "this isn't a number as JSON has them";
    let digits = at + usize::from(byte(bytes, at) == b'-');
    let mut end = after_digits(bytes, digits);
    let has_zeros = byte(bytes, digits) == b'0' && end > digits + 1;
    if end == digits || has_zeros {
        let infinity = b"-Infinity";
        let rest = bytes.get(at..).unwrap_or_default();
        return match rest.starts_with(infinity) {
            true => Ok(at + infinity.len()),
            false => bad(at, NONE),
        };
    }
    if byte(bytes, end) == b'.' {
        let decimals = end + 1;
        end = after_digits(bytes, decimals);
        if end == decimals {
            return bad(at, NONE);
        }
    }
    if byte(bytes, end) | 0x20 == b'e' {
        let sign = end + 1;
        let digits = sign + usize::from(matches!(byte(bytes, sign), b'+' | b'-'));
        end = after_digits(bytes, digits);
        if end == digits {
            return bad(at, NONE);
        }
    }
    Ok(end)
}

/// After the value that begins at `at`, which is neither an object nor an array.
///
/// # Errors
/// There is none.
#[inline(always)]
pub(super) fn scalar(bytes: &[u8], at: usize) -> Result<usize, Bad> {
    match byte(bytes, at) {
        b'"' => string(bytes, at + 1).map(|(end, _)| end + 1),
        b'-' | b'0'..=b'9' => number(bytes, at),
        _ => literal(bytes, at),
    }
}

/// The same of `true`, `false`, `null`, `NaN` and `Infinity`.
pub(super) fn literal(bytes: &[u8], at: usize) -> Result<usize, Bad> {
    let rest = &bytes[at.min(bytes.len())..];
    // Python and others write numbers that JSON doesn't have.
    let found = [&b"true"[..], b"false", b"null", b"NaN", b"Infinity"]
        .into_iter()
        .find(|word| rest.starts_with(word));
    match found {
        Some(word) => Ok(at + word.len()),
        None => bad(at, "a value is expected"),
    }
}
