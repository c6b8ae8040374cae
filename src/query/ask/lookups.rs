//! A table beside the input: how it is read, and what finds its rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use memchr::memchr_iter;
use ringfold_read::internals::load;
use ringfold_read::{Config, Error, Input, Kind as ErrorKind, Result};

use crate::format::dialect::mark_len;
use crate::format::json;
use crate::lookup::LookupTable;
use crate::plan::columns::Columns;
use crate::plan::lookups::AskedLookup;
use crate::query::ask::Query;
use crate::refusal::{LOOKUP, Refusal};

/// The most bytes of a table's text.
const TABLE_MAX: u64 = 1 << 30;
/// The most columns of one of JSON lines.
const COLUMNS_MAX: usize = 1000;

impl Query {
    /// A table beside the input, which is kept in memory: its columns are columns of the query, called by their names in it,
    /// and by `name`, a dot and these. `table` is its file, and `form` says how that is written. `on` says which of the
    /// input's columns its key equals, compared as bytes: `tailnum`, `tail=tailnum`, `lower(city)=town`, several with commas
    /// between. Without a row all columns are null, and the answer counts such records.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let flights = Input::memory([&b"tail,miles\nN1,500\nN2,200\nN1,100\n"[..]]);
    /// let planes = Input::memory([&b"tailnum,maker\nN1,Airbus\nN2,Boeing\n"[..]]);
    /// let config = Config::default();
    /// let query = Query::new(b',')
    ///     .lookup("planes", &planes, &Query::new(b','), "tail=tailnum")?
    ///     .key("maker")
    ///     .aggregate("sum", Some("miles".into()))?;
    /// let (answer, _) = fold(&flights, &config, &query.plan(&flights, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"maker,sum_miles\nAirbus,600\nBoeing,200\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The table can't be read, is larger than a GiB, lacks a column of `on`, or has two rows of one key.
    pub fn lookup(mut self, name: &str, table: &Input, form: &Query, on: &str) -> Result<Query> {
        if self.lookups.iter().any(|other| other.table.name == name) {
            let why = format!("two tables are called `{name}`: another name is given by NAME=FILE");
            return Err(Error::new(ErrorKind::Usage, why));
        }
        let (mut key, mut columns) = (Vec::new(), Vec::new());
        for item in Columns::items(on) {
            let (own, other) = sides(item);
            let read = Columns::read(own)?;
            let value = self.value_of(own, &read, false, LOOKUP);
            columns.push(Columns::read(other)?);
            key.push((
                match value.is_some() {
                    true => Columns::Name(own.into()),
                    false => read,
                },
                value,
            ));
        }
        let table = Arc::new(read(name, table, form, &columns)?);
        self.lookups.push(AskedLookup { table, key });
        Ok(self)
    }
}

/// What equals the table's column, and that: `tail=tailnum`, or one name for both.
fn sides(item: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let equals = item.rfind(|letter| {
        is_quoted ^= letter == '"';
        letter == '=' && !is_quoted
    });
    match equals {
        Some(at) => (item[..at].trim(), item[at + 1..].trim()),
        None => (item.trim(), item.trim()),
    }
}

/// Reads a table.
fn read(name: &str, input: &Input, form: &Query, key: &[Columns]) -> Result<LookupTable> {
    let input = load(input, TABLE_MAX, &|_, _| ())?;
    let [source] = input.sources() else {
        return Err(Error::new(ErrorKind::Usage, "a table is one file"));
    };
    let (bytes, config) = (source.bytes().expect("it is in memory"), Config::default());
    let form = form.without_columns();
    let plan = match form.is_json() {
        true => None,
        false => match form.clone().header(true).plan(&input, &config) {
            Err(error) if matches!(error.job(), Some(Refusal::LooksLikeJson)) => None,
            plan => Some(plan?),
        },
    };
    let plan = match plan {
        Some(plan) => plan,
        None => {
            let mut form = form.of_json();
            let keys = bytes.split(|byte| *byte == b'\n').flat_map(json::keys);
            let (mut names, mut known) = (Vec::new(), BTreeSet::new());
            for key in keys {
                if !known.contains(&key) {
                    known.insert(key.clone());
                    names.push(key);
                }
                if names.len() > COLUMNS_MAX {
                    let why = format!("its objects have more than {COLUMNS_MAX} different keys");
                    return Err(Error::new(ErrorKind::Data, why).in_file(0, source.name()));
                }
            }
            for name in names {
                form = form.key(Columns::Name(name));
            }
            form.plan(&input, &config)?
        }
    };
    let refused = |why: String| Error::new(ErrorKind::Data, why).in_file(0, source.name());
    let Some(shape) = &plan.shape else {
        return Err(refused("there is no record in it".into()));
    };
    let titles = shape.header.as_deref().unwrap_or_default();
    let mut table = LookupTable::new(name, source.name(), titles).map_err(refused)?;
    let set = table.set_key(key);
    set.map_err(|why| Error::new(ErrorKind::Usage, why).in_file(0, source.name()))?;
    let begin = plan.begins.first().map_or(0, |&begin| begin as usize);
    let mut at = begin.max(mark_len(bytes));
    let mut is_header = plan.has_header;
    let (mut fields, mut scratch) = (Vec::new(), Vec::new());
    let (mut line, mut counted) = (1, 0);
    while at < bytes.len() {
        if let Some(next) = plan.dialect.after_comment(bytes, at) {
            at = next;
            continue;
        }
        line += memchr_iter(b'\n', &bytes[counted..at]).count() as u64;
        counted = at;
        let malformed = |why: String, to: usize| {
            let range = at as u64..to as u64;
            refused(why).at_bytes(range).at_line(line)
        };
        let record = (plan.dialect).split(bytes, at, &mut fields);
        let record = record.map_err(|bad| malformed(bad.cause.into_owned(), bad.bytes.end))?;
        let is_names = !fields.is_empty() && std::mem::take(&mut is_header);
        if !fields.is_empty() && !is_names {
            if fields.len() != titles.len() {
                return Err(malformed(shape.mismatch(fields.len(), false), record.end));
            }
            let mut fields = fields.iter();
            let pushed = fields.try_for_each(|field| table.push(field.value(bytes, &mut scratch)));
            let added = pushed.and_then(|()| table.end_row(line));
            added.map_err(|why| malformed(why, record.end))?;
        }
        at = record.next;
    }
    Ok(table.finish())
}
