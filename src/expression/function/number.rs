//! Functions of numbers. Those of doubles are as near as doubles are; all others are exact.

use crate::decimal::number::Number;
use crate::decimal::rational::{Cut, Rational};
use crate::expression::formula::{Kind, Operator, computed};
use crate::expression::function::{Arguments, Function, Loop, function};
use crate::expression::value::{Missing, Value};

const ONE: &[Kind] = &[Kind::Number];
const TWO: &[Kind] = &[Kind::Number, Kind::Number];

pub(super) const ALL: &[Function] = &[
    function("abs(x)", "abs", ONE, Kind::Number, |of| {
        let x = of.number(0)?;
        number(match x < Rational::from(0) {
            true => x.negated(),
            false => x,
        })
    })
    .looped(Loop::Absolute)
    .of_quotients(),
    function("sign(x)", "sign", ONE, Kind::Number, |of| {
        let order = of.number(0)?.cmp(&Rational::from(0));
        number(Rational::from(order as i64))
    })
    .looped(Loop::Sign),
    function("floor(x)", "floor", ONE, Kind::Number, |of| {
        cut(of, Cut::Floor)
    })
    .looped(Loop::Cut(Cut::Floor)),
    function("ceil(x)", "ceil", ONE, Kind::Number, |of| {
        cut(of, Cut::Ceiling)
    })
    .looped(Loop::Cut(Cut::Ceiling))
    .called(&["ceiling"]),
    function("round(x[, digits])", "round", TWO, Kind::Number, |of| {
        cut(of, Cut::Round)
    })
    .looped(Loop::Cut(Cut::Round))
    .at_least(1),
    function("trunc(x[, digits])", "trunc", TWO, Kind::Number, |of| {
        cut(of, Cut::Truncate)
    })
    .looped(Loop::Cut(Cut::Truncate))
    .at_least(1),
    function("mod(x, y)", "mod", TWO, Kind::Number, |of| {
        let result = computed(Operator::Modulo, &of.number(0)?, &of.number(1)?);
        result.map(Value::Number)
    })
    .looped(Loop::Modulo)
    .of_quotients(),
    function("least(x, y, ...)", "least", TWO, Kind::Number, |of| {
        most(of, |one, two| two < one)
    })
    .of_quotients()
    .at_least(1)
    .repeated(),
    function("greatest(x, y, ...)", "greatest", TWO, Kind::Number, |of| {
        most(of, |one, two| two > one)
    })
    .of_quotients()
    .at_least(1)
    .repeated(),
    function("bin(x, width)", "bin", TWO, Kind::Number, bin).of_quotients(),
    function("log_bin(x, base)", "log_bin", TWO, Kind::Number, log_bin),
    function("pow(x, y)", "pow", TWO, Kind::Number, |of| {
        double(of.number(0)?.nearest().powf(of.number(1)?.nearest()))
    })
    .called(&["power"]),
    function("sqrt(x)", "sqrt", ONE, Kind::Number, |of| {
        double(of.number(0)?.nearest().sqrt())
    }),
    function("exp(x)", "exp", ONE, Kind::Number, |of| {
        double(of.number(0)?.nearest().exp())
    }),
    function("ln(x)", "ln", ONE, Kind::Number, |of| {
        double(logarithmic(of)?.ln())
    }),
    function("log(x)", "log", ONE, Kind::Number, |of| {
        double(logarithmic(of)?.log10())
    })
    .called(&["log10"]),
    function("log2(x)", "log2", ONE, Kind::Number, |of| {
        double(logarithmic(of)?.log2())
    }),
    function(
        "number(text[, between])",
        "number",
        &[Kind::Text, Kind::Text],
        Kind::Number,
        of_text,
    )
    .at_least(1),
];

fn number<'a>(number: impl Into<Rational>) -> Result<Value<'a>, Missing> {
    Ok(Value::Number(number.into()))
}

fn too_long() -> Missing {
    Missing::other("it has too many digits")
}

/// The decimal that a double is printed as.
fn double<'a>(value: f64) -> Result<Value<'a>, Missing> {
    if !value.is_finite() {
        let why = "the function has no finite value there";
        return Err(Missing::other(why));
    }
    let rational = Rational::of_double(value).map_err(Missing::other)?;
    Ok(Value::Number(rational))
}

/// What a logarithm may be of.
fn logarithmic(of: &Arguments<'_>) -> Result<f64, Missing> {
    let x = of.number(0)?;
    match x > Rational::from(0) {
        true => Ok(x.nearest()),
        false => Err(Missing::other(format!(
            "a logarithm is of a number that is more than 0, and this is {}",
            x.cut(6, Cut::Round).text()
        ))),
    }
}

/// So many digits, or more than any number has.
pub(super) fn digits(digits: i64) -> i32 {
    digits.clamp(-1000, 1000) as i32
}

fn cut<'a>(of: &Arguments<'a>, cut: Cut) -> Result<Value<'a>, Missing> {
    let digits = digits(of.whole_or(1, 0)?);
    number(of.number(0)?.cut(digits, cut))
}

/// The last argument that `is_more` than those before; nulls aren't looked at.
fn most<'a>(
    of: &Arguments<'a>,
    is_more: fn(&Rational, &Rational) -> bool,
) -> Result<Value<'a>, Missing> {
    let mut found: Option<Rational> = None;
    for at in 0..of.len() {
        match of.number(at) {
            Ok(number) if found.as_ref().is_none_or(|found| is_more(found, &number)) => {
                found = Some(number);
            }
            Ok(_) | Err(Missing::Null) => {}
            Err(unread) => return Err(unread),
        }
    }
    found.map(Value::Number).ok_or(Missing::Null)
}

fn positive(of: &Arguments<'_>, at: usize, what: &str) -> Result<Rational, Missing> {
    let number = of.number(at)?;
    match number.special().is_none() && number > Rational::from(0) {
        true => Ok(number),
        false => Err(Missing::other(format!("the {what} isn't more than 0"))),
    }
}

/// The greatest multiple of a width that isn't more than a number.
pub(super) fn bin<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let (x, width) = (of.number(0)?, positive(of, 1, "width")?);
    let times = x.over(&width).ok_or_else(too_long)?.cut(0, Cut::Floor);
    let from = Rational::from(times).times(&width);
    from.map(Value::Number).ok_or_else(too_long)
}

/// The greatest power of a base that isn't more than a number.
fn log_bin<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let (x, base) = (of.number(0)?, positive(of, 1, "base")?);
    if base <= Rational::from(1) || x.special().is_some() {
        return Err(Missing::other("the base isn't more than 1"));
    }
    if x <= Rational::from(0) {
        let why = "log_bin is of numbers that are more than 0";
        return Err(Missing::other(why));
    }
    let mut power = Rational::from(1);
    while power > x {
        power = power.over(&base).ok_or_else(too_long)?;
    }
    loop {
        let next = power.times(&base).ok_or_else(too_long)?;
        if next > x {
            return number(power);
        }
        power = next;
    }
}

/// Reads a number in which other letters stand between digits: `number('1,234.50', ',')`.
fn of_text<'a>(of: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let mut text = of.text(0)?.into_owned();
    if of.len() > 1 {
        let between = of.text(1)?;
        text.retain(|byte| !between.contains(byte));
    }
    if text.is_empty() {
        return Err(Missing::Null);
    }
    let read = Number::read_as(&text, of.grammar()).map_err(Missing::other)?;
    Ok(Value::Number(read.into()))
}
