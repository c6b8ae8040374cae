//! The conditions of a plan, and where their columns stand.

use ringfold_read::Result;

use crate::answer::having::Having;
use crate::condition::{Condition, Expression};
use crate::plan::Plan;
use crate::plan::columns::{Columns, plural, unknown};

impl Plan {
    /// Compiles conditions on records, which must all hold.
    pub(crate) fn set_filter(&mut self, written: &[Expression]) -> Result<()> {
        let find = |columns: &Columns| match &self.shape {
            Some(shape) => {
                if self.dialect.is_json() {
                    columns.check_named()?;
                }
                let found = columns.find(shape.width, shape.header.as_deref())?;
                Ok(found[0])
            }
            // Without a record nothing is ever looked up.
            None => Ok(0),
        };
        self.filter = all(written, find, |column| self.is_time(column))?;
        Ok(())
    }

    /// Whether a column has nothing but times: it is one of a log's.
    pub(crate) fn is_time(&self, column: usize) -> bool {
        self.dialect.is_time(column)
    }

    /// The condition on rows of the answer, if there is one.
    pub(crate) fn having(&self) -> Option<Having<'_>> {
        let grammar = self.grammar;
        let having = self.having.as_ref();
        having.map(|condition| Having { condition, grammar })
    }

    /// Compiles conditions on rows of the answer, which must all hold.
    pub(crate) fn set_having(&mut self, written: &[Expression]) -> Result<()> {
        self.having = compile_having(written, &self.names)?;
        Ok(())
    }
}

/// Compiles conditions on rows of an answer whose columns are called so.
pub(crate) fn compile_having(
    written: &[Expression],
    names: &[Vec<u8>],
) -> Result<Option<Condition>> {
    all(written, |columns| find_in_answer(columns, names), |_| false)
}

fn all(
    written: &[Expression],
    find: impl Fn(&Columns) -> Result<usize, String>,
    is_time: impl Fn(usize) -> bool,
) -> Result<Option<Condition>> {
    let compiled = written.iter();
    let compiled = compiled.map(|expression| expression.compile(&find, &is_time));
    let mut compiled = compiled.collect::<Result<Vec<_>>>()?;
    Ok(match compiled.len() {
        0 | 1 => compiled.pop(),
        _ => Some(Condition::All(compiled)),
    })
}

fn find_in_answer(columns: &Columns, names: &[Vec<u8>]) -> Result<usize, String> {
    match columns {
        Columns::Name(name) => match names.contains(name) {
            true => Ok(columns.find(names.len(), Some(names))?[0]),
            false => Err(unknown("the answer", name, names)),
        },
        Columns::Number(number) if *number > names.len() => {
            let columns = plural(names.len(), "column");
            Err(format!(
                "there is no column {number}: the answer has {columns}"
            ))
        }
        _ => Ok(columns.find(names.len(), Some(names))?[0]),
    }
}
