//! The conditions of a plan, and where their columns stand.

use ringfold_read::Result;

use crate::answer::having::Having;
use crate::expression::formula::Formula;
use crate::expression::{Condition, Expression, Scope};
use crate::plan::Plan;
use crate::plan::columns::{Columns, plural, unknown};

impl Plan {
    /// Compiles conditions on records, which must all hold.
    pub(crate) fn set_filter(&mut self, written: &[Expression]) -> Result<()> {
        self.filter = all(written, self)?;
        Ok(())
    }

    /// Whether a column has nothing but times: it is one of a log's.
    pub(crate) fn has_times(&self, column: usize) -> bool {
        column < self.width() && self.dialect.is_time(column)
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
    all(written, &mut Shown(names))
}

/// The columns of an answer.
struct Shown<'a>(&'a [Vec<u8>]);

impl Scope for Shown<'_> {
    fn find(&self, columns: &Columns) -> Result<usize, String> {
        find_in_answer(columns, self.0)
    }

    fn is_time(&self, _: usize) -> bool {
        false
    }

    fn compute(&mut self, _: Formula, _: &str, _: bool) -> Result<usize, String> {
        Err("columns of an answer aren't computed with: compare one with a value".into())
    }
}

fn all(written: &[Expression], scope: &mut dyn Scope) -> Result<Option<Condition>> {
    let compiled = written.iter();
    let compiled = compiled.map(|expression| expression.compile(scope));
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
