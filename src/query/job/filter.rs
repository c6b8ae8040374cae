//! Which records a plan's condition leaves.

use crate::query::field::Field;
use crate::query::plan::Plan;

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
        for column in columns {
            let value = fields[column].value(bytes, scratch);
            if self.is_null(value) {
                to.clear();
                break;
            }
            if !to.is_empty() {
                to.push(b' ');
            }
            to.extend_from_slice(value);
        }
        to
    }

    /// Whether the condition is true of a record, or there is none.
    pub(super) fn takes(
        &self,
        fields: &[Field],
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        joined: &mut Vec<u8>,
    ) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        filter.decide(&mut |test| {
            let bytes = match test.clock {
                None => fields[test.column].value(bytes, scratch),
                Some(clock) => self.joined([test.column, clock], fields, bytes, scratch, joined),
            };
            test.is_true(&self.operand(bytes))
        })
    }
}
