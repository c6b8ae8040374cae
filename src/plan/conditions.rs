//! The conditions of a plan, and where their columns stand.

use ringfold_read::Result;

use crate::answer::columns::AnswerColumns;
use crate::answer::fill::Fill;
use crate::answer::scope;
use crate::expression::{Condition, Expression};
use crate::plan::Plan;

impl Plan {
    /// Compiles conditions on records, which must all hold.
    pub(crate) fn set_filter(&mut self, written: &[Expression]) -> Result<()> {
        self.filter = Condition::compiled(written, self)?;
        Ok(())
    }

    /// Whether a column has nothing but times: it is one of a log's.
    pub(crate) fn has_times(&self, column: usize) -> bool {
        column < self.width() && self.dialect.is_time(column)
    }

    /// Finds the key that is to be filled; keys and the words of the query are known.
    pub(crate) fn set_fill(&mut self, name: Option<&[u8]>) -> Result<()> {
        let names = &self.names[..self.keys.len()];
        let fill = name.map(|name| Fill::of(name, names, &self.asked, self.time_zones));
        self.fill = fill.transpose()?;
        Ok(())
    }

    /// Compiles conditions on rows of the answer, which must all hold.
    pub(crate) fn set_having(&mut self, written: &[Expression]) -> Result<()> {
        let mut columns = self.answer_columns();
        self.having = scope::conditions(written, &self.names, &mut columns)?;
        self.hidden = columns.hidden;
        Ok(())
    }

    /// The answer's columns, of numbers without decimals.
    pub(crate) fn answer_columns(&self) -> AnswerColumns {
        AnswerColumns::of(self, vec![0; self.aggregates.len()])
    }
}
