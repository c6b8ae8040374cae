//! The order of keys: column by column, as numbers where all keys of a column are numbers, else as bytes.
//!
//! Partials and runs are in the order of bytes, which needs no look at all keys. An answer's rows are in this one.

use std::cmp::Ordering;

use crate::decimal::number::{Grammar, Number};

/// How the parts of keys are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyOrder {
    /// Of each part whether it is a number in all keys, or empty.
    are_numbers: Vec<bool>,
    decimal_point: u8,
}

impl KeyOrder {
    /// All parts as bytes.
    pub(crate) const BYTES: KeyOrder = KeyOrder {
        are_numbers: Vec::new(),
        decimal_point: b'.',
    };

    /// All parts as numbers, until some are found that aren't.
    pub(crate) fn numbers(parts: usize, decimal_point: u8) -> KeyOrder {
        KeyOrder {
            are_numbers: vec![true; parts],
            decimal_point,
        }
    }

    /// Compares as bytes the parts that aren't numbers in all keys; `are_all` says whether a part is so in some of them.
    pub(crate) fn narrow(&mut self, are_all: impl Fn(&KeyOrder, usize) -> bool) {
        for part in 0..self.are_numbers.len() {
            self.are_numbers[part] = self.are_numbers[part] && are_all(self, part);
        }
    }

    /// Whether no part is compared as a number.
    pub(crate) fn is_of_bytes(&self) -> bool {
        !self.are_numbers.contains(&true)
    }

    pub(crate) fn is_number(&self, part: usize) -> bool {
        self.are_numbers.get(part) == Some(&true)
    }

    /// The number of a part, if it is one; the empty part is less than any.
    pub(crate) fn number(&self, part: &[u8]) -> Option<Number> {
        // The usual key takes no more than this.
        if let 1..=18 = part.len()
            && part.iter().all(u8::is_ascii_digit)
        {
            let digits = part.iter().map(|digit| i64::from(digit - b'0'));
            let value = digits.fold(0, |value, digit| 10 * value + digit);
            return Some(Number::new(value.into(), 0));
        }
        let read = |decimal_point: u8| {
            let grammar = Grammar {
                decimal_point,
                ..Grammar::LONG
            };
            Number::read_as(part, grammar).ok()
        };
        // What is computed has a point, whatever fields have.
        read(self.decimal_point).or_else(|| read(b'.'))
    }

    /// The order of two keys. Equal numbers that are written in several ways are in the order of their bytes.
    pub(crate) fn compare<'a>(
        &self,
        one: impl Iterator<Item = &'a [u8]>,
        two: impl Iterator<Item = &'a [u8]>,
    ) -> Ordering {
        if self.is_of_bytes() {
            return one.cmp(two);
        }
        let orders = one.zip(two).enumerate().map(|(at, (one, two))| {
            let by_number = match self.is_number(at) {
                true => self.number(one).cmp(&self.number(two)),
                false => Ordering::Equal,
            };
            by_number.then_with(|| one.cmp(two))
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}
