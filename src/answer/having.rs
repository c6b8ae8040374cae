//! Conditions on the rows of an answer.

use std::borrow::Cow;
use std::cmp::Ordering;

use rayon::prelude::*;
use ringfold_read::Cause;

use crate::aggregate::state::{Numeral, Outcome, Rounding, text_of};
use crate::answer::Answer;
use crate::answer::columns::GroupRecord;
use crate::decimal::number::{Grammar, Number, shown};
use crate::expression::formula::{test_is_true, tested};
use crate::expression::tree::Test;
use crate::expression::value::Wrong;
use crate::expression::{Condition, Doubts, Operand, Reading};
use crate::format::hint::comparison_cause;
use crate::table::states::Group;

/// Rows that a condition would decide otherwise if all values were numbers, or were compared as such: how many, and what
/// the first one has.
#[derive(Debug, Default)]
pub(crate) struct DoubtedRows {
    pub(crate) unread: u64,
    pub(crate) first_unread: Option<Cause>,
    pub(crate) bytewise: u64,
    pub(crate) first_bytewise: Option<Cause>,
}

impl DoubtedRows {
    /// Adds those of later rows.
    pub(super) fn add(&mut self, later: DoubtedRows) {
        self.unread += later.unread;
        self.first_unread = self.first_unread.take().or(later.first_unread);
        self.bytewise += later.bytewise;
        self.first_bytewise = self.first_bytewise.take().or(later.first_bytewise);
    }
}

impl Answer {
    /// The groups of which a condition is true. Notes those that it would decide otherwise.
    pub(super) fn having(&mut self, having: &Condition, groups: Vec<Group>) -> Vec<Group> {
        let decided = groups.into_par_iter().map(|group| {
            let mut doubts = Doubts::default();
            let is_true = self.is_true(having, group, &mut doubts);
            let otherwise = |reading: &Reading| {
                self.is_true(having, group, &mut Doubts::of(*reading)) != is_true
            };
            let doubted: Vec<Reading> = doubts.readings().filter(otherwise).collect();
            (group, is_true, doubted)
        });
        let noted = decided.filter(|(_, is_true, doubted)| *is_true || !doubted.is_empty());
        let noted: Vec<_> = noted.collect();
        let doubted = |reading: Reading| -> Vec<Group> {
            let of_it = noted
                .iter()
                .filter(|(.., doubted)| doubted.contains(&reading));
            of_it.map(|(group, ..)| *group).collect()
        };
        let [unread, bytewise] = [Reading::Hopeful, Reading::Numeric].map(|reading| {
            let groups = self.all.sorted(doubted(reading), &self.key_order);
            let first = groups.first();
            (
                groups.len() as u64,
                first.and_then(|first| self.doubtful(having, *first, reading)),
            )
        });
        self.doubted = DoubtedRows {
            unread: unread.0,
            first_unread: unread.1,
            bytewise: bytewise.0,
            first_bytewise: bytewise.1,
        };
        let taken = noted.into_iter().filter(|(_, is_true, _)| *is_true);
        taken.map(|(group, ..)| group).collect()
    }

    /// What a test that computes nothing is about.
    fn tested(&self, group: Group, place: usize) -> Tested<'_> {
        Tested {
            outcome: self.outcome(group, place),
            rounding: self.columns.rounding(place),
            grammar: self.columns.grammar,
        }
    }

    fn is_true(&self, having: &Condition, group: Group, doubts: &mut Doubts) -> bool {
        having.decide(&mut |test| self.test(test, group, doubts))
    }

    fn test(&self, test: &Test, group: Group, doubts: &mut Doubts) -> bool {
        if test.clock.is_none() && self.columns.hidden(test.column).is_none() {
            return test.is_true(&self.tested(group, test.column), doubts);
        }
        let record = self.record(group);
        test_is_true(test, &record, doubts)
    }

    fn record(&self, group: Group) -> GroupRecord<'_> {
        GroupRecord {
            columns: &self.columns,
            totals: None,
            groups: &self.all,
            group,
        }
    }

    /// The first column of a row whose value makes the condition's truth depend on how it is read.
    fn doubtful(&self, having: &Condition, group: Group, reading: Reading) -> Option<Cause> {
        let mut tests: Vec<&Test> = Vec::new();
        having.each_test(&mut |test| {
            let mut doubts = Doubts::default();
            self.test(test, group, &mut doubts);
            let is_met = doubts.readings().any(|met| met == reading);
            tests.extend(is_met.then_some(test));
        });
        let test = tests.into_iter().min_by_key(|test| test.column)?;
        let (place, grammar) = (test.column, self.columns.grammar);
        let cause = |text: &[u8], why: String, place: usize| {
            let why = format!(
                "{why} (column `{}`)",
                shown(self.columns.name(place, &self.names))
            );
            comparison_cause(text, why, grammar)
        };
        let text = match self.columns.hidden(place) {
            None => self.tested(group, place).text().into_owned(),
            Some(_) => {
                let record = self.record(group);
                let mut text = Vec::new();
                match tested(test, &record) {
                    Ok(value) => value.write(&mut text).ok()?,
                    Err(error) => {
                        let (Wrong::Number(why) | Wrong::Time(why) | Wrong::Other(why)) =
                            error.wrong;
                        return Some(cause(&error.text, why, error.column.unwrap_or(place)));
                    }
                }
                text
            }
        };
        Some(match Number::read_as(&text, grammar) {
            Err(why) => cause(&text, why, place),
            Ok(_) => {
                let name = shown(self.columns.name(place, &self.names));
                format!("`{}` (column `{name}`)", shown(&text)).into()
            }
        })
    }
}

/// A field of an answer. Its number is exact, its text is what is printed.
pub(super) struct Tested<'a> {
    pub(super) outcome: Outcome<'a>,
    /// How its number is printed.
    pub(super) rounding: Rounding,
    /// How numbers are written in texts of the input.
    pub(super) grammar: Grammar,
}

impl Operand for Tested<'_> {
    /// No outcome, or the empty key.
    fn is_null(&self) -> bool {
        matches!(self.outcome, Outcome::Null | Outcome::Text(b""))
    }

    fn text(&self) -> Cow<'_, [u8]> {
        match &self.outcome {
            Outcome::Text(text) => Cow::Borrowed(text),
            Outcome::Time(time) => Cow::Borrowed(text_of(time)),
            number => {
                let printed = number.printed(self.rounding);
                let text = printed.as_ref().map(Numeral::text);
                text.unwrap_or_default().into_owned().into_bytes().into()
            }
        }
    }

    fn order(&self) -> Option<impl Fn(&Number) -> Ordering> {
        let read = match &self.outcome {
            Outcome::Text(text) => Some(Number::read_as(text, self.grammar).ok()?),
            Outcome::Null | Outcome::Time(_) => return None,
            _ => None,
        };
        Some(move |number: &Number| match (&self.outcome, read) {
            (Outcome::Quotient { value, .. }, _) => value.compare(number),
            (Outcome::Number(exact), _) => exact.cmp(&number.exact()),
            (_, read) => read.cmp(&Some(*number)),
        })
    }
}
