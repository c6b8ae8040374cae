//! The order of an answer's rows.

use std::cmp::{Ordering, Reverse};

use ringfold_read::{Error, Kind, Result};

use crate::aggregate::state::Outcome;
use crate::aggregate::{ALL, named};
use crate::decimal::number::shown;
use crate::plan::columns::{Columns, unknown};

/// The order of an answer's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    /// By key, column by column: by number where all keys of a column are numbers, else by bytes. The empty key comes first.
    Key,
    /// By key, column by column, by bytes.
    Bytes,
    /// In no order.
    Unsorted,
    /// By the first of these columns; rows that are the same there by the next one, and in the end by key.
    Columns(Vec<By>),
}

/// A column that rows are sorted by, nulls last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The column's name. If the answer has no such column, `-count` is `count` from the greatest down, `mean` and `avg` are
    /// its only column of means, and `mean:price` is `mean_price`.
    pub name: Vec<u8>,
    /// From the greatest down.
    pub descending: bool,
}

impl Sort {
    /// Reads `key`, `none`, or a list such as `count:desc,city`. A name in double quotes is a name, whatever it is.
    ///
    /// # Errors
    /// A name is missing, or its quotes aren't closed.
    pub fn read(text: &str) -> Result<Sort> {
        match text {
            "key" => Ok(Sort::Key),
            "none" => Ok(Sort::Unsorted),
            list => {
                let columns = Columns::items(list).into_iter().map(By::read);
                Ok(Sort::Columns(columns.collect::<Result<_>>()?))
            }
        }
    }

    /// Whether an answer whose columns are called so can be sorted so.
    pub(crate) fn check(&self, names: &[Vec<u8>]) -> Result<()> {
        let Sort::Columns(columns) = self else {
            return Ok(());
        };
        columns.iter().try_for_each(|by| by.place(names).map(drop))
    }
}

impl By {
    fn read(item: &str) -> Result<By> {
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

    /// The place of the column among those with these names, and whether it is sorted from the greatest down.
    ///
    /// # Errors
    /// There is no such column, or it may be one of several.
    pub(crate) fn place(&self, names: &[Vec<u8>]) -> Result<(usize, bool)> {
        let named = |name: &[u8]| names.iter().position(|known| known == name);
        if let Some(at) = named(&self.name) {
            return Ok((at, self.descending));
        }
        let (name, descending) = match self.name.split_first() {
            Some((b'-', name)) => (name, true),
            Some((b'+', name)) => (name, self.descending),
            _ => (&self.name[..], self.descending),
        };
        let refused = |why: &str| Error::new(Kind::Usage, format!("cannot sort: {why}"));
        let meant: Vec<usize> = match named(name) {
            Some(at) => vec![at],
            None => meant(name, names),
        };
        match meant[..] {
            [at] => Ok((at, descending)),
            [] => Err(refused(&unknown("the answer", name, names))),
            [one, two, ..] => {
                let [name, one, two] = [name, &names[one], &names[two]].map(shown);
                Err(refused(&format!("`{name}` may be `{one}` or `{two}`")))
            }
        }
    }

    /// The order of two outcomes of the column.
    pub(super) fn compare(descending: bool, one: &Outcome<'_>, two: &Outcome<'_>) -> Ordering {
        match (one, two) {
            (Outcome::Null, Outcome::Null) => Ordering::Equal,
            (Outcome::Null, _) => Ordering::Greater,
            (_, Outcome::Null) => Ordering::Less,
            _ if descending => Reverse(one).cmp(&Reverse(two)),
            _ => one.cmp(two),
        }
    }
}

/// The places of the columns that an aggregate's name may mean, or its name and a column's: `mean`, `avg_price`, `sum:qty`.
fn meant(name: &[u8], names: &[Vec<u8>]) -> Vec<usize> {
    let text = String::from_utf8_lossy(name);
    let splits = text.match_indices([':', '_']).map(|(at, _)| at);
    let parts = splits.map(|at| (&text[..at], Some(&text[at + 1..])));
    let parts = parts.chain([(&*text, None)]);
    let kinds = parts.filter_map(|(aggregate, column)| Some((named(aggregate)?.name(), column)));
    let kinds: Vec<_> = kinds.collect();
    let of = |kind: &str, known: &[u8]| {
        let column = known.strip_prefix(kind.as_bytes())?.strip_prefix(b"_")?;
        Some(column.to_vec())
    };
    // `var_pop_x` isn't `var` of `pop_x`.
    let is_longer = |kind: &str, known: &[u8]| {
        let mut longer = ALL.iter().filter(|other| other.name.len() > kind.len());
        longer.any(|other| of(other.name, known).is_some())
    };
    let is_meant = |known: &[u8]| {
        kinds.iter().any(|(kind, column)| match of(kind, known) {
            None => false,
            Some(of) => column.map_or(!is_longer(kind, known), |column| of == column.as_bytes()),
        })
    };
    (0..names.len())
        .filter(|&at| is_meant(&names[at]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found() {
        let names = |names: &[&str]| -> Vec<Vec<u8>> {
            names.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        let answer = names(&[
            "city",
            "count",
            "mean_price",
            "var_pop_a_b",
            "-7",
            "sum_a",
            "sum_b",
        ]);
        let place = |text: &str| match Sort::read(text).unwrap() {
            Sort::Columns(columns) => columns[0].place(&answer),
            other => unreachable!("{other:?}"),
        };
        for (text, want) in [
            ("count", (1, false)),
            ("-count", (1, true)),
            ("-count:desc", (1, true)),
            ("+city", (0, false)),
            ("-7", (4, false)),
            ("--7", (4, true)),
            ("mean:desc", (2, true)),
            ("-avg", (2, true)),
            ("avg_price", (2, false)),
            ("mean:price", (2, false)),
            ("average:price:desc", (2, true)),
            ("var_pop", (3, false)),
            ("sum:b", (6, false)),
        ] {
            assert_eq!(place(text), Ok(want), "{text}");
        }
        for (text, why) in [
            ("sum", "cannot sort: `sum` may be `sum_a` or `sum_b`"),
            ("max", "no column is called `max`"),
            ("-mean:qty", "no column is called `mean:qty`"),
            ("var", "no column is called `var`"),
            ("conut", "did you mean `count`?"),
        ] {
            let error = place(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

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
