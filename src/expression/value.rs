//! A value of a record while it is computed, and what it is computed of.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::decimal::number::{Grammar, Number};
use crate::decimal::rational::Rational;
use crate::expression::decide::Operand;

#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Number(Rational),
    /// Also of a field, whatever it has.
    Text(Cow<'a, [u8]>),
    Truth(bool),
}

/// A value that can't be computed.
#[derive(Debug, Clone)]
pub(crate) struct ValueError {
    /// What isn't as it should be.
    pub(crate) text: Vec<u8>,
    /// The column that has it, if it is one's.
    pub(crate) column: Option<usize>,
    pub(crate) wrong: Wrong,
}

/// What is wrong with it.
#[derive(Debug, Clone)]
pub(crate) enum Wrong {
    /// It isn't a number: why.
    Number(String),
    /// It isn't a time: why.
    Time(String),
    Other(String),
}

/// What values are computed of.
pub(crate) trait Record {
    /// A column's value, of a field as it stands there.
    fn value(&self, column: usize) -> Result<Value<'_>, ValueError>;

    /// How numbers are written in fields.
    fn grammar(&self) -> Grammar;

    /// Whether what isn't a number is null in a column.
    fn wants_number(&self, column: usize) -> bool;
}

/// Why there is no value.
#[derive(Debug)]
pub(crate) enum Missing {
    /// It is null.
    Null,
    Error(ValueError),
}

impl Missing {
    pub(crate) fn other(why: impl Into<String>) -> Missing {
        Missing::Error(ValueError {
            text: Vec::new(),
            column: None,
            wrong: Wrong::Other(why.into()),
        })
    }
}

impl Value<'_> {
    /// The same, of no record.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Number(number) => Value::Number(number),
            Value::Text(text) => Value::Text(text.into_owned().into()),
            Value::Truth(truth) => Value::Truth(truth),
        }
    }

    /// As a column has it: a number without zeros at its end.
    ///
    /// # Errors
    /// It is a number that has too many digits for a column.
    pub(crate) fn write(&self, to: &mut Vec<u8>) -> Result<(), Missing> {
        match self {
            Value::Null => {}
            Value::Number(number) => {
                let number = stored(number)?.exact().shortest();
                number.digits().push(to);
            }
            Value::Text(text) => to.extend_from_slice(text),
            Value::Truth(true) => to.extend_from_slice(b"true"),
            Value::Truth(false) => to.extend_from_slice(b"false"),
        }
        Ok(())
    }
}

/// A number as a column has it.
pub(crate) fn stored(number: &Rational) -> Result<Number, Missing> {
    number.stored().map_err(Missing::other)
}

/// A value that is tested.
pub(crate) struct Tested<'a> {
    pub(crate) value: &'a Value<'a>,
    /// Whether texts are null.
    pub(crate) wants_number: bool,
    /// How numbers are written.
    pub(crate) grammar: Grammar,
}

impl Operand for Tested<'_> {
    fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    fn is_null_text(&self) -> bool {
        self.wants_number && self.order().is_none()
    }

    fn text(&self) -> Cow<'_, [u8]> {
        if let Value::Text(text) = self.value {
            return Cow::Borrowed(text);
        }
        let mut text = Vec::new();
        // What has no text is compared as the empty one.
        let _ = self.value.write(&mut text);
        text.into()
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let own = match self.value {
            Value::Number(number) => number.clone(),
            Value::Text(text) => Number::read_as(text, self.grammar).ok()?.into(),
            Value::Null | Value::Truth(_) => return None,
        };
        Some(move |number: &Number| own.cmp(&Rational::from(*number)))
    }
}
