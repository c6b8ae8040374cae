//! Functions of expressions: an open set. One is an entry of a family's list, in a file of `function/`.

mod address;
mod number;
pub(crate) mod pair;
mod text;
mod time;

use std::borrow::Cow;
use std::fmt;

use crate::decimal::number::{Grammar, Number};
use crate::decimal::rational::{Cut, Rational};
use crate::expression::fault::Fault;
use crate::expression::formula::{Formula, Kind};
use crate::expression::pattern::Pattern;
use crate::expression::value::{Missing, Record, Value};
use crate::format::time::{Bucket, TimeZones, Zones};

pub(super) use text::check as check_text;

/// A function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Other names, as other programs have them.
    aliases: &'static [&'static str],
    /// How it is written.
    pub(crate) usage: &'static str,
    /// What its arguments are; the last one may come again where `most` is more.
    parameters: &'static [Kind],
    /// The fewest arguments and the most.
    least: usize,
    most: usize,
    pub(crate) result: Kind,
    apply: Apply,
    /// The same appended to a text, where that takes no text in between.
    append: Option<Append>,
    prepare: Option<Prepare>,
    /// What the passes do for all rows of a window.
    pub(crate) loops: Option<Loop>,
    /// What it gives is a quotient where an argument is one.
    pub(super) keeps_quotients: bool,
    /// A number that it takes may be a log's time.
    pub(super) takes_moments: bool,
}

/// A function of decimals that passes compute without a branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    Absolute,
    Sign,
    Cut(Cut),
    Modulo,
    /// Of a constant.
    NullIf,
}

type ValueOf = for<'a> fn(&Arguments<'a>) -> Result<Value<'a>, Missing>;
type WholeOf = fn(&Arguments<'_>) -> Result<i64, Missing>;

enum Apply {
    Value(ValueOf),
    /// It is a whole number.
    Whole(WholeOf),
}

type Append = fn(&Arguments<'_>, &mut Vec<u8>) -> Result<(), Missing>;
/// Of constant arguments; an error has the argument that is wrong.
type Prepare = fn(&[Formula], TimeZones) -> Result<Prepared, (usize, String)>;

/// What is made of constant arguments before there is a record.
#[derive(Debug, Clone, Default)]
pub(crate) enum Prepared {
    #[default]
    Nothing,
    Pattern(Pattern),
    /// Whose clock times are looked at on; as they are written without it.
    Zones(Zones),
    Bucket(Bucket, Option<Zones>),
}

/// The arguments of a call.
pub(crate) struct Arguments<'a> {
    pub(super) arguments: &'a [Formula],
    pub(super) prepared: &'a Prepared,
    pub(super) record: &'a dyn Record,
}

impl<'a> Arguments<'a> {
    fn len(&self) -> usize {
        self.arguments.len()
    }

    fn value(&self, at: usize) -> Result<Value<'a>, Missing> {
        self.arguments[at].found(self.record)
    }

    fn number(&self, at: usize) -> Result<Rational, Missing> {
        self.arguments[at].number(self.record)
    }

    fn text(&self, at: usize) -> Result<Cow<'a, [u8]>, Missing> {
        self.arguments[at].text(self.record)
    }

    /// A whole number of moderate size; one with decimals loses them.
    fn whole(&self, at: usize) -> Result<i64, Missing> {
        whole(&self.number(at)?)
    }

    /// The same where the argument may be left out.
    fn whole_or(&self, at: usize, other: i64) -> Result<i64, Missing> {
        match at < self.len() {
            true => self.whole(at),
            false => Ok(other),
        }
    }

    fn grammar(&self) -> Grammar {
        self.record.grammar()
    }
}

fn whole(number: &Rational) -> Result<i64, Missing> {
    let number = number.cut(0, Cut::Truncate);
    let whole = number.parts().0.and_then(|whole| i64::try_from(whole).ok());
    whole.ok_or_else(|| Missing::other(format!("`{}` is too large a number here", number.text())))
}

/// Formulas are compared by this: the name is unique.
impl fmt::Debug for Function {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

const fn function(
    usage: &'static str,
    name: &'static str,
    parameters: &'static [Kind],
    result: Kind,
    apply: ValueOf,
) -> Function {
    Function {
        name,
        aliases: &[],
        usage,
        parameters,
        least: parameters.len(),
        most: parameters.len(),
        result,
        apply: Apply::Value(apply),
        append: None,
        prepare: None,
        loops: None,
        keeps_quotients: false,
        takes_moments: false,
    }
}

/// A function whose values are whole numbers.
const fn whole_number(
    usage: &'static str,
    name: &'static str,
    parameters: &'static [Kind],
    apply: WholeOf,
) -> Function {
    Function {
        apply: Apply::Whole(apply),
        ..function(usage, name, parameters, Kind::Number, |_| {
            Err(Missing::Null)
        })
    }
}

impl Function {
    const fn called(mut self, aliases: &'static [&'static str]) -> Function {
        self.aliases = aliases;
        self
    }

    /// It may have fewer arguments.
    const fn at_least(mut self, least: usize) -> Function {
        self.least = least;
        self
    }

    /// Its last argument may come again.
    const fn repeated(mut self) -> Function {
        self.most = ARGUMENTS_MAX;
        self
    }

    const fn prepared(mut self, prepare: Prepare) -> Function {
        self.prepare = Some(prepare);
        self
    }

    const fn looped(mut self, loops: Loop) -> Function {
        self.loops = Some(loops);
        self
    }

    const fn of_quotients(mut self) -> Function {
        self.keeps_quotients = true;
        self
    }

    const fn of_moments(mut self) -> Function {
        self.takes_moments = true;
        self
    }

    const fn appended(mut self, append: Append) -> Function {
        self.append = Some(append);
        self
    }

    /// Whether it may have one argument.
    pub(crate) fn takes_one(&self) -> bool {
        self.least <= 1
    }

    /// Whether it is [`SHARE`].
    pub(super) fn is_share(&self) -> bool {
        self.name == SHARE.name
    }

    /// Whether it is [`COMPARE`].
    pub(crate) fn is_order(&self) -> bool {
        self.name == COMPARE.name
    }

    pub(super) fn is_truth(&self) -> bool {
        self.result == Kind::Truth
    }

    pub(super) fn apply<'a>(&self, arguments: &Arguments<'a>) -> Result<Value<'a>, Missing> {
        match self.apply {
            Apply::Value(apply) => apply(arguments),
            Apply::Whole(apply) => Ok(Value::Number(apply(arguments)?.into())),
        }
    }

    /// The whole number that it is, if it is one of all arguments.
    pub(super) fn whole(&self, arguments: &Arguments<'_>) -> Option<Result<i64, Missing>> {
        match self.apply {
            Apply::Value(_) => None,
            Apply::Whole(apply) => Some(apply(arguments)),
        }
    }

    /// Appends what it is to a text, where it can.
    pub(super) fn append(
        &self,
        arguments: &Arguments<'_>,
        to: &mut Vec<u8>,
    ) -> Option<Result<(), Missing>> {
        self.append.map(|append| append(arguments, to))
    }

    /// How it cuts its first argument, and to how many digits, if that is the same in all records.
    pub(crate) fn cut(&self, arguments: &[Formula]) -> Option<(Cut, i32)> {
        let digits = match arguments.get(1) {
            None => 0,
            Some(Formula::Number(digits)) => whole(&Rational::from(*digits)).ok()?,
            Some(_) => return None,
        };
        match self.loops {
            Some(Loop::Cut(cut)) => Some((cut, number::digits(digits))),
            _ => None,
        }
    }

    /// What an argument must be.
    pub(crate) fn parameter(&self, at: usize) -> Kind {
        self.parameters[at.min(self.parameters.len() - 1)]
    }

    pub(super) fn prepare(
        &self,
        arguments: &[Formula],
        zones: TimeZones,
    ) -> Result<Prepared, (usize, String)> {
        match self.prepare {
            Some(prepare) => prepare(arguments, zones),
            None => Ok(Prepared::Nothing),
        }
    }

    /// # Errors
    /// It has another number of arguments.
    pub(super) fn check_count(&self, count: usize, at: usize) -> Result<(), Fault> {
        match (self.least..=self.most).contains(&count) {
            true => Ok(()),
            false => Err(Fault::new(at, format!("it is written {}", self.usage))),
        }
    }
}

/// The most arguments of a function that takes any number.
const ARGUMENTS_MAX: usize = 100;

/// What makes an order of two values: less than zero, zero, or more.
pub(super) static COMPARE: Function = function(
    "compare(a, b)",
    "compare",
    &[Kind::Field, Kind::Field],
    Kind::Number,
    compare,
);

fn compare<'a>(arguments: &Arguments<'a>) -> Result<Value<'a>, Missing> {
    let (one, two) = (arguments.value(0)?, arguments.value(1)?);
    if matches!(one, Value::Null) || matches!(two, Value::Null) {
        return Ok(Value::Null);
    }
    let number = |at: usize, value: &Value<'_>| match value {
        Value::Number(number) => Some(number.clone()),
        Value::Text(text) => {
            let is_constant = matches!(arguments.arguments[at], Formula::Text(_));
            let grammar = arguments.grammar();
            // Most texts are told by their first letter.
            let is_text = !grammar.is_float && text[0].is_ascii_alphabetic();
            let read = || Number::read_as(text, grammar).ok().map(Rational::from);
            if is_constant || is_text { None } else { read() }
        }
        Value::Null | Value::Truth(_) => None,
    };
    let order = match (number(0, &one), number(1, &two)) {
        (Some(one), Some(two)) => one.cmp(&two),
        (None, Some(_)) if matches!(two, Value::Number(_)) => {
            arguments.number(0)?;
            return Ok(Value::Null);
        }
        (Some(_), None) if matches!(one, Value::Number(_)) => {
            arguments.number(1)?;
            return Ok(Value::Null);
        }
        _ => arguments.text(0)?.cmp(&arguments.text(1)?),
    };
    Ok(Value::Number((order as i64).into()))
}

/// The share of a number in its sum over all rows of an answer: [`Formula::take_shares`] makes a quotient of it.
pub(super) static SHARE: Function =
    function("share(x)", "share", &[Kind::Number], Kind::Number, |_| {
        Err(Missing::Null)
    });

/// The seconds since 1970 of a time, in these zones.
pub(super) fn seconds_of(time: Formula, zones: Option<Zones>) -> Formula {
    let epoch = named("epoch").expect("it is one of them");
    let prepared = zones.map_or(Prepared::Nothing, Prepared::Zones);
    Formula::Call(epoch, [time].into(), prepared)
}

fn all() -> impl Iterator<Item = &'static Function> {
    let families = [number::ALL, text::ALL, address::ALL, time::ALL];
    families.into_iter().flatten()
}

/// The function of a name, in any letters.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    let name = name.to_ascii_lowercase();
    all().find(|one| one.name == name || one.aliases.contains(&&*name))
}

/// What is wrong with a name that no function has, nor one of these aggregates.
pub(super) fn unknown(name: &str, aggregates: Option<Vec<&str>>, at: usize) -> Fault {
    let names: Vec<&str> = all().map(|one| one.name).collect();
    let names = names.join(", ");
    let why = match aggregates {
        None => format!("there is no function `{name}`, but if, {names}"),
        Some(aggregates) => format!(
            "there is no function `{name}`, and no aggregate: these are {}, top5, and percentiles such as p99; functions are if, {names}",
            aggregates.join(", ")
        ),
    };
    Fault::new(at, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_functions() {
        let mut names: Vec<&str> = all()
            .flat_map(|one| one.aliases.iter().copied().chain([one.name]))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for one in all() {
            assert!(
                one.usage.starts_with(&format!("{}(", one.name)),
                "{}",
                one.usage
            );
            assert!(one.least <= one.most && one.parameters.len() <= one.most);
        }
    }
}
