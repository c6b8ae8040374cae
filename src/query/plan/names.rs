//! Other names for the columns of an answer.

use crate::error::{Error, Kind, Result};
use crate::query::columns::plural;
use crate::query::number::shown;
use crate::query::plan::Plan;

impl Plan {
    /// Renames all columns of the answer.
    pub(crate) fn rename(&mut self, names: &[Vec<u8>]) -> Result<()> {
        let refused = |why: String| Err(Error::new(Kind::Usage, why));
        if names.len() != self.names.len() {
            let (given, columns) = (
                plural(names.len(), "name"),
                plural(self.names.len(), "column"),
            );
            let known: Vec<_> = self.names.iter().map(|name| shown(name)).collect();
            let known = known.join(", ");
            return refused(format!("{given} for {columns} of the answer: {known}"));
        }
        let mut before = names.iter().enumerate();
        if let Some((_, twice)) = before.find(|(at, name)| names[..*at].contains(name)) {
            return refused(format!(
                "two columns of the answer would be called `{}`",
                shown(twice)
            ));
        }
        self.names = names.to_vec();
        Ok(())
    }
}
