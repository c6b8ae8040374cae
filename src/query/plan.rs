//! A query compiled for an input: data that says what to do with a record.

use std::sync::Arc;

use ahash::RandomState;

use crate::error::refusal::Refusal;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::group::aggregate::OnError;
use crate::input::head::look_at_head;
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::level::Level;
use crate::query::accumulator::state::{Kind, Takes};
use crate::query::answer::Sort;
use crate::query::columns::{Columns, unknown};
use crate::query::dialect::{Dialect, Field};
use crate::record::framing::Framing;

/// What a query compiles to.
#[derive(Debug)]
pub struct Plan {
    pub(crate) dialect: Dialect,
    pub(crate) framing: Box<dyn Framing>,
    pub(crate) on_error: OnError,
    pub(crate) nulls: Vec<Vec<u8>>,
    /// Whether one of them is a number.
    pub(crate) has_numeric_nulls: bool,
    pub(crate) shape: Option<Shape>,
    pub(crate) has_header: bool,
    /// The columns of the key, from 0.
    pub(crate) keys: Vec<usize>,
    /// The columns that are read as numbers.
    pub(crate) numbers: Vec<usize>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The names of the answer's columns: keys, then aggregates.
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) hasher: RandomState,
    /// For the passes over windows; without it, records are added one by one.
    pub(crate) level: Option<Level>,
}

/// An aggregate of a plan.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) kind: &'static Kind,
    pub(crate) column: Option<usize>,
    /// Which of the plan's numbers it takes.
    pub(crate) number: Option<usize>,
}

/// What the first record of an input tells.
#[derive(Debug)]
pub(crate) struct Shape {
    /// How many fields a record has.
    pub(crate) width: usize,
    /// The names of the columns.
    pub(crate) header: Option<Vec<Vec<u8>>>,
    /// The file that it is the first record of.
    file: Arc<str>,
}

impl Shape {
    /// What is wrong with a record of so many fields.
    pub(crate) fn mismatch(&self, found: usize) -> String {
        let of = match self.header {
            Some(_) => "the header",
            None => "the first record",
        };
        let fields = if found == 1 { "field" } else { "fields" };
        let width = self.width;
        format!("{found} {fields} where {of} has {width}")
    }

    /// What is wrong with the header of another file, if something is.
    pub(crate) fn differs(&self, other: &[Vec<u8>]) -> Option<String> {
        let header = self.header.as_ref()?;
        if header == other {
            return None;
        }
        let at = (0..).find(|&at| header.get(at) != other.get(at))?;
        let name = |names: &[Vec<u8>]| match names.get(at) {
            Some(name) => format!("`{}`", crate::query::number::shown(name)),
            None => "missing".into(),
        };
        let (file, here, there) = (&self.file, name(other), name(header));
        Some(format!(
            "the header isn't that of {file}: column {} is {here} here and {there} there",
            at + 1
        ))
    }
}

/// The names in a record.
pub(crate) fn names_of(fields: &[Field], bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut scratch = Vec::new();
    let name = |field: &Field| field.value(bytes, &mut scratch).to_vec();
    fields.iter().map(name).collect()
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the first record of an input tells; `None` where there is no record.
pub(crate) fn shape(
    input: &Input,
    dialect: Dialect,
    has_header: bool,
    on_error: OnError,
    max_record: usize,
) -> Result<Option<Shape>> {
    for source in input.sources() {
        let look = |bytes: &[u8], ended: bool| {
            first_record(bytes, ended, dialect, has_header, on_error, max_record)
        };
        let refused = |refused: Refused| {
            let error = refused.error.in_file(source.index(), source.name());
            let line = 1 + refused.lines;
            error.at_bytes(refused.bytes).at_line(line)
        };
        match look_at_head(source, look)?.map_err(refused)? {
            Some(fields) => return Ok(Some(shape_of(source, fields, has_header))),
            None => continue,
        }
    }
    Ok(None)
}

fn shape_of(source: &Source, fields: Vec<Vec<u8>>, has_header: bool) -> Shape {
    Shape {
        width: fields.len(),
        header: has_header.then_some(fields),
        file: Arc::clone(source.name()),
    }
}

/// Why the first record of an input tells nothing.
struct Refused {
    error: Error,
    bytes: std::ops::Range<u64>,
    /// Lines before it.
    lines: u64,
}

/// The fields of the first record in the first bytes of a file; `Some(Ok(None))` where it has none, and `None` where more
/// bytes are needed.
fn first_record(
    bytes: &[u8],
    ended: bool,
    dialect: Dialect,
    has_header: bool,
    on_error: OnError,
    max_record: usize,
) -> Option<Result<Option<Vec<Vec<u8>>>, Refused>> {
    let refused = |error: Error, at: std::ops::Range<usize>| {
        let lines = memchr::memchr_iter(b'\n', &bytes[..at.start]).count();
        Some(Err(Refused {
            error,
            bytes: at.start as u64..at.end as u64,
            lines: lines as u64,
        }))
    };
    let mut at = match bytes.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len(),
        false => 0,
    };
    let (mut fields, mut end) = (Vec::new(), 0);
    while at < bytes.len() {
        if at >= end {
            end = dialect.framed_end(bytes, at);
        }
        let is_whole = ended || bytes[..end].ends_with(b"\n") && end < bytes.len();
        if !is_whole {
            if bytes.len() - at <= max_record {
                return None;
            }
            let error = Error::from(Refusal::Exceeded { max_record });
            return refused(error, at..at + max_record);
        }
        match dialect.split(&bytes[..end], at, &mut fields) {
            Ok(_) if !fields.is_empty() => return Some(Ok(Some(names_of(&fields, bytes)))),
            Ok(record) if has_header => {
                let error = Error::new(ErrorKind::Data, "an empty line where a header is expected");
                return refused(error, at..record.end);
            }
            Ok(record) => at = record.next,
            Err(bad) if has_header || on_error == OnError::Fail => {
                return refused(Error::new(ErrorKind::Data, bad.cause), bad.bytes);
            }
            Err(bad) => at = bad.next,
        }
    }
    ended.then_some(Ok(None))
}

/// An aggregate that is asked for, and its columns.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: &'static Kind,
    pub(crate) columns: Option<Columns>,
}

/// Where columns stand, and how they are called.
pub(crate) fn find(columns: &Columns, shape: Option<&Shape>) -> Result<Vec<(usize, Vec<u8>)>> {
    let Some(shape) = shape else {
        // Without a record nothing is ever looked up.
        let names = columns.names().into_iter();
        return Ok(names.map(|name| (0, name)).collect());
    };
    let header = shape.header.as_deref();
    let found = columns.find(shape.width, header);
    let found = found.map_err(|why| Error::new(ErrorKind::Usage, why))?;
    let name = |at: usize| match header {
        Some(header) => header[at].clone(),
        None => (at + 1).to_string().into_bytes(),
    };
    Ok(found.into_iter().map(|at| (at, name(at))).collect())
}

impl Plan {
    /// Adds the columns of the key.
    pub(crate) fn add_key(&mut self, columns: &Columns) -> Result<()> {
        let has_names = match &self.shape {
            Some(shape) => shape.header.is_some(),
            None => matches!(columns, Columns::Name(_)),
        };
        for (at, name) in find(columns, self.shape.as_ref())? {
            self.keys.push(at);
            self.names.push(match has_names {
                true => name,
                false => format!("key{}", self.keys.len()).into_bytes(),
            });
        }
        Ok(())
    }

    /// Adds an aggregate, of each column that it is asked for.
    pub(crate) fn add_aggregate(&mut self, asked: &Asked) -> Result<()> {
        let Asked { kind, columns } = asked;
        let Some(columns) = columns else {
            self.aggregates.push(Aggregate {
                kind,
                column: None,
                number: None,
            });
            self.names.push(kind.name.into());
            return Ok(());
        };
        for (at, name) in find(columns, self.shape.as_ref())? {
            let takes_numbers = kind.takes == Takes::Numbers;
            let number = takes_numbers.then(|| self.number(at));
            self.aggregates.push(Aggregate {
                kind,
                column: Some(at),
                number,
            });
            self.names
                .push([kind.name.as_bytes(), b"_", &name].concat());
        }
        Ok(())
    }

    /// The place of a column among the numbers.
    fn number(&mut self, column: usize) -> usize {
        let known = self.numbers.iter().position(|&known| known == column);
        known.unwrap_or_else(|| {
            self.numbers.push(column);
            self.numbers.len() - 1
        })
    }

    /// Whether an answer can be sorted so.
    ///
    /// # Errors
    /// It has no such column.
    pub fn check_sort(&self, sort: &Sort) -> Result<(), String> {
        let Sort::Column { name, .. } = sort else {
            return Ok(());
        };
        match self.names.contains(name) {
            true => Ok(()),
            false => Err(format!(
                "cannot sort: {}",
                unknown("the answer", name, &self.names)
            )),
        }
    }

    /// How a column is called in an error.
    pub(crate) fn column_name(&self, column: usize) -> String {
        let header = self.shape.as_ref().and_then(|shape| shape.header.as_ref());
        match header {
            Some(header) => format!("`{}`", crate::query::number::shown(&header[column])),
            None => (column + 1).to_string(),
        }
    }
}
