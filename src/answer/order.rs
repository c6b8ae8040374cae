//! The order of an answer's rows.

use ringfold_read::{Error, Kind, Result};

use crate::aggregate::{ALL, named};
use crate::answer::columns::AnswerColumns;
use crate::answer::scope;
use crate::decimal::number::shown;
use crate::expression::Expression;
use crate::plan::columns::{Columns, unknown};
use crate::refusal::SORT;

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

/// A column or a computed value that rows are sorted by, nulls last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The column's name. If the answer has no such column, `-count` is `count` from the greatest down, `mean` and `avg` are
    /// its only column of means, and `mean:price` is `mean_price`; `sum_price / count` is computed.
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

    /// Whether an answer whose columns are called so can be sorted so. What is computed for it is added to the columns.
    pub(crate) fn check(&self, names: &[Vec<u8>], columns: &mut AnswerColumns) -> Result<()> {
        let Sort::Columns(list) = self else {
            return Ok(());
        };
        (list.iter()).try_for_each(|by| by.place(names, columns).map(drop))
    }
}

impl By {
    fn read(item: &str) -> Result<By> {
        let (name, descending) = match item.rsplit_once(':') {
            Some((name, "asc")) => (name, false),
            Some((name, "desc")) => (name, true),
            _ => (item, false),
        };
        // Names in double quotes may be parts of a value.
        let is_value = Columns::is_quoted_part(name);
        Ok(By {
            name: match is_value {
                true => name.into(),
                false => Columns::read_name(name)?,
            },
            descending,
        })
    }

    /// Where the column stands among those with these names.
    ///
    /// # Errors
    /// There is no such column, or it may be one of several.
    pub(super) fn place(&self, names: &[Vec<u8>], columns: &mut AnswerColumns) -> Result<Place> {
        let named = |name: &[u8]| names.iter().position(|known| known == name);
        if let Some(at) = named(&self.name) {
            return Ok(Place {
                place: columns.place(at),
                descending: self.descending,
                is_text: false,
            });
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
            [at] => Ok(Place {
                place: columns.place(at),
                descending,
                is_text: false,
            }),
            [] => {
                let text = String::from_utf8_lossy(&self.name);
                if !is_value(&String::from_utf8_lossy(name)) {
                    return Err(refused(&unknown("the answer", name, names)));
                }
                let (place, is_turned) = scope::value(&text, SORT, names, columns)?;
                Ok(Place {
                    place,
                    descending: self.descending || is_turned,
                    is_text: false,
                })
            }
            [one, two, ..] => {
                let [name, one, two] = [name, &names[one], &names[two]].map(shown);
                Err(refused(&format!("`{name}` may be `{one}` or `{two}`")))
            }
        }
    }
}

/// Whether a text that is no column's name is meant as a value.
fn is_value(text: &str) -> bool {
    let reads = || Expression::of_aggregates(text, SORT, &scope::AGGREGATES).is_ok();
    text.contains(['(', '*', '/', '%', '+', '-', '|']) || text.contains(' ') && reads()
}

/// Where a column that rows are sorted by stands among an answer's [places](AnswerColumns::place).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) place: usize,
    /// From the greatest down.
    pub(super) descending: bool,
    /// A part of the key by its bytes, even if it is a number.
    pub(super) is_text: bool,
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
    use crate::decimal::number::Grammar;

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
            Sort::Columns(list) => {
                let mut columns = AnswerColumns::of_names(1, answer.len() - 1, Grammar::PLAIN);
                let found = list[0].place(&answer, &mut columns)?;
                Ok::<_, Error>((found.place, found.descending))
            }
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
            assert_eq!(place(text).unwrap(), want, "{text}");
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
