//! Which records a plan's condition leaves.

use ringfold_read::Cause;

use crate::decimal::number::{Number, shown};
use crate::expression::formula::test_is_true;
use crate::expression::tree::Test;
use crate::expression::value::ValueError;
use crate::expression::{Condition, Doubts, Reading};
use crate::format::field::Field;
use crate::format::hint::comparison_cause;
use crate::plan::Plan;
use crate::plan::computed::Fields;

impl Plan {
    /// A date and a time of day in two columns; nothing if one of them is null.
    pub(super) fn joined<'a>(
        &self,
        columns: [usize; 2],
        fields: &[Field],
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        to: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        to.clear();
        let mut columns = columns.into_iter();
        columns.all(|column| self.join(fields[column].value(bytes, scratch), to));
        to
    }

    /// The same of a date and a time of day that are known.
    pub(super) fn joined_parts<'a>(&self, parts: [&[u8]; 2], to: &'a mut Vec<u8>) -> &'a [u8] {
        to.clear();
        let mut parts = parts.into_iter();
        parts.all(|part| self.join(part, to));
        to
    }

    /// Adds a date, or a time of day after it; says whether it isn't null. Nothing is left if it is.
    fn join(&self, value: &[u8], to: &mut Vec<u8>) -> bool {
        if self.is_null(value) {
            to.clear();
            return false;
        }
        if !to.is_empty() {
            to.push(b' ');
        }
        to.extend_from_slice(value);
        true
    }

    /// Whether the condition is true of a record, or there is none; and other ways to read it that decide otherwise.
    pub(super) fn takes(&self, record: &Fields<'_>) -> (bool, Vec<Reading>) {
        let Some(filter) = &self.filter else {
            return (true, Vec::new());
        };
        let decide =
            |doubts: &mut Doubts| filter.decide(&mut |test| test_is_true(test, record, doubts));
        let mut doubts = Doubts::default();
        let is_taken = decide(&mut doubts);
        let readings = doubts.readings();
        let otherwise = readings.filter(|reading| decide(&mut Doubts::of(*reading)) != is_taken);
        (is_taken, otherwise.collect())
    }

    /// The first column of a record whose value makes the condition's truth depend on how it is read, and why.
    pub(super) fn doubtful(
        &self,
        filter: &Condition,
        reading: Reading,
        mut value: impl FnMut(&Test) -> Result<Vec<u8>, ValueError>,
    ) -> Cause {
        let mut first: Option<(&Test, Vec<u8>)> = None;
        let mut unread = None;
        filter.each_test(&mut |test| {
            let bytes = match value(test) {
                Ok(bytes) => bytes,
                Err(why) => {
                    unread.get_or_insert_with(|| self.unread_cause(test.column, &why, None));
                    return;
                }
            };
            let mut doubts = Doubts::default();
            test.is_true(&self.operand(test.column, &bytes), &mut doubts);
            let is_met = doubts.readings().any(|met| met == reading);
            if is_met
                && first
                    .as_ref()
                    .is_none_or(|(known, _)| test.column < known.column)
            {
                first = Some((test, bytes));
            }
        });
        if let Some(cause) = unread.filter(|_| reading == Reading::Hopeful) {
            return cause;
        }
        let (test, value) = first.expect("a test that decides otherwise");
        let (text, name) = (shown(&value), self.column_name(test.column));
        if let Some(why) = test.no_time(&value).filter(|_| test.is_of_times()) {
            return format!("`{text}` {} (column {name})", why.why(&value)).into();
        }
        match Number::read_as(&value, self.operand(test.column, &value).grammar) {
            Err(why) => self.number_cause(&value, test.column, &why, comparison_cause),
            Ok(_) => format!("`{text}` (column {name})").into(),
        }
    }
}
