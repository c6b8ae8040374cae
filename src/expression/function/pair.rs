//! What an aggregate of several values takes: one text of all of them. No expression can name these functions.

use crate::expression::formula::Kind;
use crate::expression::function::{Arguments, Function, function, number, text};
use crate::expression::value::{Missing, Value, stored};

/// Texts that are told apart wherever one of them differs: each after its length.
pub(crate) static TUPLE: Function = function(
    "distinct(a, ...)",
    "distinct",
    &[Kind::Field, Kind::Field],
    Kind::Text,
    |of| written(of, append_tuple),
)
.appended(append_tuple)
.at_least(1)
.repeated();

/// A value after the bytes of a number, which have its order.
pub(crate) static LEAST: Function = function(
    "arg_min(value, x)",
    "arg_min",
    &[Kind::Field, Kind::Number],
    Kind::Text,
    |of| written(of, append_least),
)
.appended(append_least)
.of_moments();

/// The same in the opposite order of numbers.
pub(crate) static GREATEST: Function = function(
    "arg_max(value, x)",
    "arg_max",
    &[Kind::Field, Kind::Number],
    Kind::Text,
    |of| written(of, append_greatest),
)
.appended(append_greatest)
.of_moments();

/// Where the bin of a number begins.
pub(crate) static BINS: Function = function(
    "histogram(x, width)",
    "histogram",
    &[Kind::Number, Kind::Number],
    Kind::Number,
    number::bin,
)
.of_quotients();

fn written<'a>(
    of: &Arguments<'a>,
    append: fn(&Arguments<'_>, &mut Vec<u8>) -> Result<(), Missing>,
) -> Result<Value<'a>, Missing> {
    let mut bytes = Vec::new();
    append(of, &mut bytes)?;
    Ok(Value::Text(bytes.into()))
}

fn append_tuple(of: &Arguments<'_>, to: &mut Vec<u8>) -> Result<(), Missing> {
    let start = to.len();
    for at in 0..of.len() {
        let text = match of.text(at) {
            Ok(text) => text,
            Err(missing) => {
                to.truncate(start);
                return Err(missing);
            }
        };
        to.extend_from_slice(text.len().to_string().as_bytes());
        to.push(b':');
        to.extend_from_slice(&text);
    }
    text::check(to.len() - start)
}

fn append_least(of: &Arguments<'_>, to: &mut Vec<u8>) -> Result<(), Missing> {
    append_ranked(of, to, 0)
}

fn append_greatest(of: &Arguments<'_>, to: &mut Vec<u8>) -> Result<(), Missing> {
    append_ranked(of, to, !0)
}

fn append_ranked(of: &Arguments<'_>, to: &mut Vec<u8>, turned: u8) -> Result<(), Missing> {
    let (value, number) = (of.text(0)?, stored(&of.number(1)?)?);
    let start = to.len();
    number.push_ordered(to);
    to[start..].iter_mut().for_each(|byte| *byte ^= turned);
    to.extend_from_slice(&value);
    text::check(value.len())
}
