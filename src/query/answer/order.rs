//! The order of an answer's rows.

use std::cmp::{Ordering, Reverse};

use crate::query::accumulator::state::Outcome;
use crate::query::columns::{Columns, unknown};

/// The order of an answer's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    /// By the bytes of the keys, column by column.
    Key,
    /// In no order.
    Unsorted,
    /// By the first of these columns; rows that are the same there by the next one, and in the end by key.
    Columns(Vec<By>),
}

/// A column that rows are sorted by, nulls last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The column's name.
    pub name: Vec<u8>,
    /// From the greatest down.
    pub descending: bool,
}

impl Sort {
    /// Reads `key`, `none`, or a list such as `count:desc,city`. A name in double quotes is a name, whatever it is.
    ///
    /// # Errors
    /// A name is missing, or its quotes aren't closed.
    pub fn read(text: &str) -> Result<Sort, String> {
        match text {
            "key" => Ok(Sort::Key),
            "none" => Ok(Sort::Unsorted),
            list => {
                let columns = Columns::items(list).into_iter().map(By::read);
                Ok(Sort::Columns(columns.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Sort {
    /// Whether an answer whose columns are called so can be sorted so.
    pub(crate) fn check(&self, names: &[Vec<u8>]) -> Result<(), String> {
        let Sort::Columns(columns) = self else {
            return Ok(());
        };
        let is_unknown = |name: &&Vec<u8>| !names.contains(name);
        match columns.iter().map(|by| &by.name).find(is_unknown) {
            None => Ok(()),
            Some(name) => Err(format!(
                "cannot sort: {}",
                unknown("the answer", name, names)
            )),
        }
    }
}

impl By {
    fn read(item: &str) -> Result<By, String> {
        let (name, descending) = match item.rsplit_once(':') {
            Some((name, "asc")) => (name, false),
            Some((name, "desc")) => (name, true),
            _ => (item, false),
        };
        Ok(By {
            name: Columns::read_name(name)?,
            descending,
        })
    }

    /// The order of two outcomes of the column.
    pub(super) fn compare(&self, one: &Outcome<'_>, two: &Outcome<'_>) -> Ordering {
        match (one, two) {
            (Outcome::Null, Outcome::Null) => Ordering::Equal,
            (Outcome::Null, _) => Ordering::Greater,
            (_, Outcome::Null) => Ordering::Less,
            _ if self.descending => Reverse(one).cmp(&Reverse(two)),
            _ => one.cmp(two),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        let by = |name: &str, descending| By {
            name: name.into(),
            descending,
        };
        for (text, want) in [
            ("key", Sort::Key),
            ("none", Sort::Unsorted),
            ("\"key\"", Sort::Columns(vec![by("key", false)])),
            (
                "count:desc,city",
                Sort::Columns(vec![by("count", true), by("city", false)]),
            ),
            (
                "\"a,b:desc\":asc,a:b,\"x\"\"y\":desc",
                Sort::Columns(vec![
                    by("a,b:desc", false),
                    by("a:b", false),
                    by("x\"y", true),
                ]),
            ),
        ] {
            assert_eq!(Sort::read(text), Ok(want), "{text}");
        }
        for text in ["", "a,,b", ":desc", "\"a"] {
            assert!(Sort::read(text).is_err(), "{text}");
        }
    }
}
