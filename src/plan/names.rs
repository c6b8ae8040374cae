//! Other names for the columns of an answer.

use ringfold_read::{Error, Kind, Result};

use crate::decimal::number::shown;
use crate::plan::Plan;
use crate::plan::columns::plural;

impl Plan {
    /// Renames all columns of the answer.
    pub(crate) fn rename(&mut self, names: &[Vec<u8>]) -> Result<()> {
        self.names = renamed(&self.names, names)?;
        Ok(())
    }
}

/// The names of columns that were called otherwise.
pub(crate) fn renamed(titles: &[Vec<u8>], names: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let refused = |why: String| Err(Error::new(Kind::Usage, why));
    if names.len() != titles.len() {
        let (given, columns) = (plural(names.len(), "name"), plural(titles.len(), "column"));
        let known: Vec<_> = titles.iter().map(|name| shown(name)).collect();
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
    Ok(names.to_vec())
}
