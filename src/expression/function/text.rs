//! Functions of texts. Where texts are UTF-8, places and lengths are those of letters; any other byte counts as one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::expression::formula::{Formula, Kind};
use crate::expression::function::{Arguments, Function, Loop, Prepared, function, whole_number};
use crate::expression::pattern::Pattern;
use crate::expression::value::{Missing, Value};
use crate::format::time::TimeZones;

const ONE: &[Kind] = &[Kind::Text];
const TWO: &[Kind] = &[Kind::Text, Kind::Text];
const THREE: &[Kind] = &[Kind::Text, Kind::Text, Kind::Text];
const COUNTED: &[Kind] = &[Kind::Text, Kind::Number, Kind::Number];

pub(super) const ALL: &[Function] = &[
    function("lower(text)", "lower", ONE, Kind::Text, |of| {
        let mut lower = Vec::new();
        append_lower(of, &mut lower)?;
        Ok(Value::Text(lower.into()))
    })
    .appended(append_lower)
    .called(&["lcase"]),
    function("upper(text)", "upper", ONE, Kind::Text, |of| {
        let mut upper = Vec::new();
        append_upper(of, &mut upper)?;
        Ok(Value::Text(upper.into()))
    })
    .appended(append_upper)
    .called(&["ucase"]),
    function("trim(text[, letters])", "trim", TWO, Kind::Text, |of| {
        trim(of, true, true)
    })
    .at_least(1),
    function("ltrim(text[, letters])", "ltrim", TWO, Kind::Text, |of| {
        trim(of, true, false)
    })
    .at_least(1),
    function("rtrim(text[, letters])", "rtrim", TWO, Kind::Text, |of| {
        trim(of, false, true)
    })
    .at_least(1),
    whole_number("length(text)", "length", ONE, |of| {
        Ok(letter_count(&of.text(0)?))
    })
    .called(&["len", "char_length"]),
    whole_number("octet_length(text)", "octet_length", ONE, |of| {
        Ok(of.text(0)?.len() as i64)
    }),
    function(
        "left(text, count)",
        "left",
        &[Kind::Text, Kind::Number],
        Kind::Text,
        |of| {
            let (text, count) = (of.text(0)?, of.whole(1)?);
            let range = letter_range(&text, 0, count);
            Ok(part(text, range))
        },
    ),
    function(
        "right(text, count)",
        "right",
        &[Kind::Text, Kind::Number],
        Kind::Text,
        |of| {
            let (text, count) = (of.text(0)?, of.whole(1)?);
            let from = match count < 0 {
                true => count.saturating_neg(),
                false => (letter_count(&text) - count).max(0),
            };
            let range = letter_range(&text, from, i64::MAX);
            Ok(part(text, range))
        },
    ),
    function(
        "substr(text, from[, count])",
        "substr",
        COUNTED,
        Kind::Text,
        |of| {
            let (text, from, count) = (of.text(0)?, of.whole(1)?, of.whole_or(2, i64::MAX)?);
            // Letters are counted from 1, as in SQL, or from the end.
            let from = if from < 0 {
                letter_count(&text).saturating_add(from)
            } else {
                from - 1
            };
            let end = from.saturating_add(count.max(0));
            let range = letter_range(&text, from.max(0), (end - from.max(0)).max(0));
            Ok(part(text, range))
        },
    )
    .called(&["substring"])
    .at_least(2),
    function(
        "replace(text, from, to)",
        "replace",
        THREE,
        Kind::Text,
        |of| {
            let (text, from, to) = (of.text(0)?, of.text(1)?, of.text_or_empty(2)?);
            if from.is_empty() {
                return Ok(Value::Text(text));
            }
            let (mut all, mut last) = (Vec::new(), 0);
            for at in memmem::find_iter(&text, &*from) {
                all.extend_from_slice(&text[last..at]);
                all.extend_from_slice(&to);
                last = at + from.len();
                check(all.len())?;
            }
            if last == 0 {
                return Ok(Value::Text(text));
            }
            all.extend_from_slice(&text[last..]);
            check(all.len())?;
            Ok(Value::Text(all.into()))
        },
    ),
    function(
        "split(text, between, n)",
        "split",
        &[Kind::Text, Kind::Text, Kind::Number],
        Kind::Text,
        split,
    )
    .called(&["split_part"]),
    function(
        "starts_with(text, start)",
        "starts_with",
        TWO,
        Kind::Truth,
        |of| Ok(Value::Truth(of.text(0)?.starts_with(&of.text(1)?))),
    ),
    function(
        "ends_with(text, end)",
        "ends_with",
        TWO,
        Kind::Truth,
        |of| Ok(Value::Truth(of.text(0)?.ends_with(&of.text(1)?))),
    ),
    function("contains(text, part)", "contains", TWO, Kind::Truth, |of| {
        Ok(Value::Truth(
            memmem::find(&of.text(0)?, &of.text(1)?).is_some(),
        ))
    }),
    function("concat(text, ...)", "concat", ONE, Kind::Text, |of| {
        let mut all = Vec::new();
        for at in 0..of.len() {
            all.extend_from_slice(&of.text_or_empty(at)?);
            check(all.len())?;
        }
        Ok(Value::Text(all.into()))
    })
    .repeated(),
    function(
        "coalesce(x, y, ...)",
        "coalesce",
        &[Kind::Field],
        Kind::Field,
        |of| {
            for at in 0..of.len() {
                match of.value(at) {
                    Ok(Value::Null) | Err(Missing::Null) => {}
                    found => return found,
                }
            }
            Err(Missing::Null)
        },
    )
    .of_quotients()
    .called(&["ifnull"])
    .repeated(),
    function(
        "nullif(x, y)",
        "nullif",
        &[Kind::Field, Kind::Field],
        Kind::Field,
        |of| {
            let value = of.value(0)?;
            match super::compare(of) {
                Ok(Value::Number(order)) if order.is_zero() => Err(Missing::Null),
                // Nothing equals null.
                Ok(_) | Err(Missing::Null) => Ok(value),
                Err(error) => Err(error),
            }
        },
    )
    .looped(Loop::NullIf)
    .of_quotients(),
    function(
        "regexp_extract(text, pattern[, group])",
        "regexp_extract",
        &[Kind::Text, Kind::Text, Kind::Number],
        Kind::Text,
        |of| {
            let (text, group) = (of.text(0)?, of.whole_or(2, 0)?);
            let group = usize::try_from(group).unwrap_or(usize::MAX);
            match pattern(of).group(&text, group) {
                Some(range) => Ok(part(text, range)),
                None => Err(Missing::Null),
            }
        },
    )
    .at_least(2)
    .prepared(of_pattern),
    function(
        "regexp_replace(text, pattern, to)",
        "regexp_replace",
        THREE,
        Kind::Text,
        |of| {
            let (text, to) = (of.text(0)?, of.text_or_empty(2)?);
            let replaced = pattern(of).replaced(&text, &to, check)?;
            check(replaced.len())?;
            Ok(Value::Text(replaced.into()))
        },
    )
    .prepared(of_pattern),
    function(
        "regexp_matches(text, pattern)",
        "regexp_matches",
        TWO,
        Kind::Truth,
        |of| Ok(Value::Truth(pattern(of).is_match(&of.text(0)?))),
    )
    .prepared(of_pattern),
];

/// The most bytes of a text that is made.
const BYTES_MAX: usize = 1 << 20;

/// # Errors
/// A text would have more bytes than one may have.
pub(crate) fn check(bytes: usize) -> Result<(), Missing> {
    match bytes > BYTES_MAX {
        false => Ok(()),
        true => {
            let why = format!("the text has more than {BYTES_MAX} bytes, which is the limit");
            Err(Missing::other(why))
        }
    }
}

impl<'a> Arguments<'a> {
    /// A text, of null the empty one.
    fn text_or_empty(&self, at: usize) -> Result<Cow<'a, [u8]>, Missing> {
        match self.text(at) {
            Err(Missing::Null) => Ok(Cow::Borrowed(b"")),
            text => text,
        }
    }
}

fn of_pattern(arguments: &[Formula], _: TimeZones) -> Result<Prepared, (usize, String)> {
    let Formula::Text(text) = &arguments[1] else {
        return Err((1, "a regular expression in single quotes is missing".into()));
    };
    let text = String::from_utf8_lossy(text);
    let pattern = Pattern::new(&text);
    pattern
        .map(Prepared::Pattern)
        .map_err(|why| (1, format!("not a regular expression: {why}")))
}

fn pattern<'a>(of: &Arguments<'a>) -> &'a Pattern {
    match of.prepared {
        Prepared::Pattern(pattern) => pattern,
        _ => unreachable!("it was compiled"),
    }
}

/// A part of a text.
pub(super) fn part<'a>(text: Cow<'a, [u8]>, range: Range<usize>) -> Value<'a> {
    Value::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_vec()),
    })
}

/// Where each letter ends.
fn letters(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    text.utf8_chunks().flat_map(move |chunk| {
        let letters = chunk.valid().chars().map(char::len_utf8);
        let ends: Vec<usize> = letters
            .chain(chunk.invalid().iter().map(|_| 1))
            .map(|length| {
                end += length;
                end
            })
            .collect();
        ends
    })
}

fn letter_count(text: &[u8]) -> i64 {
    match text.is_ascii() {
        true => text.len() as i64,
        false => letters(text).count() as i64,
    }
}

/// Where so many letters stand; fewer than none are left out at the end.
fn letter_range(text: &[u8], from: i64, count: i64) -> Range<usize> {
    let size = |count: i64| usize::try_from(count).unwrap_or_default();
    // In ASCII, letters are bytes.
    let ends: Option<Vec<usize>> = (!text.is_ascii()).then(|| letters(text).collect());
    let all = ends.as_ref().map_or(text.len(), Vec::len);
    let count = match count < 0 {
        true => (all as i64).saturating_add(count),
        false => count,
    };
    let from = size(from).min(all);
    let to = from.saturating_add(size(count)).min(all);
    let place = |letters: usize| match &ends {
        Some(ends) if letters > 0 => ends[letters - 1],
        _ => letters,
    };
    place(from)..place(to)
}

fn append_lower(of: &Arguments<'_>, to: &mut Vec<u8>) -> Result<(), Missing> {
    append_letters(&of.text(0)?, u8::to_ascii_lowercase, str::to_lowercase, to);
    Ok(())
}

fn append_upper(of: &Arguments<'_>, to: &mut Vec<u8>) -> Result<(), Missing> {
    append_letters(&of.text(0)?, u8::to_ascii_uppercase, str::to_uppercase, to);
    Ok(())
}

fn append_letters(
    text: &[u8],
    ascii: impl Fn(&u8) -> u8,
    unicode: fn(&str) -> String,
    to: &mut Vec<u8>,
) {
    if text.is_ascii() {
        return to.extend(text.iter().map(ascii));
    }
    for chunk in text.utf8_chunks() {
        to.extend_from_slice(unicode(chunk.valid()).as_bytes());
        to.extend_from_slice(chunk.invalid());
    }
}

fn trim<'a>(of: &Arguments<'a>, at_start: bool, at_end: bool) -> Result<Value<'a>, Missing> {
    let text = of.text(0)?;
    let letters = match of.len() {
        1 => Cow::Borrowed(&b" \t\r\n"[..]),
        _ => of.text(1)?,
    };
    let letters: Vec<&[u8]> = {
        let mut from = 0;
        self::letters(&letters)
            .map(|end| {
                let letter = &letters[from..end];
                from = end;
                letter
            })
            .collect()
    };
    let (mut start, mut end) = (0, text.len());
    while let Some(letter) = letters
        .iter()
        .find(|one| at_start && text[start..end].starts_with(one))
    {
        start += letter.len();
    }
    while let Some(letter) = letters
        .iter()
        .find(|one| at_end && text[start..end].ends_with(one))
    {
        end -= letter.len();
    }
    Ok(part(text, start..end))
}

/// The n-th part, from 1; from the end where n is below zero. There is none past the last.
fn split<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let (text, between, n) = (of.text(0)?, of.text(1)?, of.whole(2)?);
    if between.is_empty() || n == 0 {
        let why = match n {
            0 => "parts are counted from 1",
            _ => "nothing stands between the parts",
        };
        return Err(Missing::other(why));
    }
    let range = {
        let ends = memmem::find_iter(&text, &*between).chain([text.len()]);
        let starts = [0].into_iter();
        let after = memmem::find_iter(&text, &*between).map(|at| at + between.len());
        let mut parts = starts.chain(after).zip(ends);
        match n > 0 {
            true => parts.nth((n - 1) as usize),
            false => {
                let all: Vec<_> = parts.collect();
                let at = (all.len() as i64).checked_add(n);
                at.and_then(|at| all.get(usize::try_from(at).ok()?).copied())
            }
        }
    };
    match range {
        Some((start, end)) => Ok(part(text, start..end)),
        None => Err(Missing::Null),
    }
}
