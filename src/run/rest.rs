//! What the passes can't do, and what they add to beside their own lanes.

use ringfold_read::BlockError;

use crate::plan::Plan;
use crate::reject::rejects::Met;
use crate::run::one_by_one::Text;
use crate::run::partial::Partial;

/// The text that passes look at, and the partial whose passes they are.
pub(super) struct Rest<'a> {
    pub(super) plan: &'a Plan,
    pub(super) partial: &'a mut Partial,
    pub(super) text: &'a Text<'a>,
}

impl<'a> Rest<'a> {
    /// Adds the records of the block that begin at `from` and up to `until`, and those that can't be told apart from
    /// them; returns where the next one begins.
    ///
    /// # Errors
    /// The first malformed record.
    pub(super) fn add(&mut self, from: usize, until: usize) -> Result<usize, BlockError> {
        let next = (self.plan).records(self.partial, self.text, from, until)?;
        // Nothing but a record that the block ends within begins before that.
        match next < until.min(self.text.block.bytes().len()) {
            true => Err(self.plan.cut(self.partial, next)),
            false => Ok(next),
        }
    }

    /// Adds a record that the condition was found to take: what it met is counted already.
    ///
    /// # Errors
    /// It is malformed.
    pub(super) fn add_taken(&mut self, from: usize) -> Result<usize, BlockError> {
        self.partial.is_taken = true;
        let added = self.add(from, from + 1);
        self.partial.is_taken = false;
        added
    }

    /// A record in the window that begins at `window`.
    pub(super) fn met(&self, window: usize, start: usize) -> Met<'a> {
        self.plan.met(&self.text.block, window, start)
    }
}
