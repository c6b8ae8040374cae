//! Which records a plan's condition leaves.

use crate::query::field::Field;
use crate::query::plan::Plan;

impl Plan {
    /// Whether the condition is true of a record, or there is none.
    pub(super) fn takes(&self, fields: &[Field], bytes: &[u8], scratch: &mut Vec<u8>) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        filter.decide(&mut |test| {
            let bytes = fields[test.column].value(bytes, scratch);
            test.is_true(&self.operand(bytes))
        })
    }
}
