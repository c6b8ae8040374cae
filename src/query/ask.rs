//! What is asked: a query, before it is known what the input looks like.

mod compile;
mod described;
mod lookups;
mod text;

use std::path::PathBuf;
use std::sync::Arc;

use ringfold_read::internals::Level;
use ringfold_read::{Config, Error, Input, Kind as ErrorKind, Result};

use crate::aggregate::definition::Kind;
use crate::aggregate::{named, names};
use crate::answer::LINES;
use crate::decimal::number::Grammar;
use crate::expression::Expression;
use crate::format::log::{self, Pattern};
use crate::format::sniff::{Delimiter, Style};
use crate::format::time::{TimeZone, TimeZones, Unit};
use crate::plan::columns::Columns;
use crate::plan::lookups::{AskedLookup, in_tables};
use crate::plan::shown::ComputedItem;
use crate::plan::{Asked, Key};
use crate::query::shown::Shown;
use crate::refusal::FILTER;
use crate::reject::rejects::OnError;
use crate::sketch::distinct::HashKey;

/// A query: keys and aggregates over the columns of delimited text.
///
/// ```
/// use ringfold::query::Query;
/// use ringfold::report::grid::{GridFormat, write_grid};
/// use ringfold::{Config, Input, fold};
///
/// let text = &b"city,price\nBern,1.50\nOslo,20\nBern,2.25\n"[..];
/// let input = Input::memory([text]);
/// let config = Config::default();
/// let query = Query::new(b',')
///     .header(true)
///     .key("city")
///     .aggregate("count", None)?
///     .aggregate("sum", Some("price".into()))?;
/// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
/// let mut csv = Vec::new();
/// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
/// assert_eq!(csv, b"city,count,sum_price\nBern,2,3.75\nOslo,1,20.00\n");
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Query {
    delimiter: Delimiter,
    /// Its `has_header` isn't that of the query, which may follow from names.
    style: Style,
    keeps_repeated_headers: bool,
    /// `None`: as soon as a column is called by a name.
    has_header: Option<bool>,
    nulls: Vec<Vec<u8>>,
    on_error: OnError,
    level: Option<Level>,
    max_errors: Option<u64>,
    keeps_rejects: bool,
    is_float: bool,
    is_approximate: bool,
    hash_key: HashKey,
    time_zones: TimeZones,
    log: Option<Arc<Pattern>>,
    is_json: bool,
    /// Records are a key and a number, whatever the first one is.
    is_pairs: bool,
    keys: Vec<Key>,
    pub(super) aggregates: Vec<Asked>,
    /// What is shown of them.
    pub(super) items: Vec<Item>,
    pub(super) filters: Vec<Expression>,
    pub(super) lookups: Vec<AskedLookup>,
    shown: Shown,
}

fn zone(name: &str) -> Result<TimeZone> {
    TimeZone::named(name).map_err(|why| Error::new(ErrorKind::Usage, why))
}

/// A part of the answer after its keys.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// The columns of an aggregate.
    Aggregate(usize),
    /// A value that is computed of aggregates.
    Computed(ComputedItem),
}

impl Query {
    /// Over fields between `delimiter`s. There is a header if a column is called by a name. Without an aggregate it counts.
    pub fn new(delimiter: u8) -> Query {
        Query::between(Delimiter::Named(delimiter))
    }

    /// The same with the delimiter that a file's name tells. [`Query::plan`] refuses it where semicolons plainly separate fields.
    pub fn likely(delimiter: u8) -> Query {
        Query::between(Delimiter::Likely(delimiter))
    }

    /// The same with the delimiter that the first records tell, a comma, tab, `|` or `;`, or else a blank. [`Query::plan`]
    /// refuses where they don't tell it.
    pub fn sniffed() -> Query {
        Query::between(Delimiter::Sniffed)
    }

    /// Whether the first records are to tell the delimiter.
    pub fn is_sniffed(&self) -> bool {
        self.delimiter == Delimiter::Sniffed
    }

    /// The least, mean and greatest number of each key, over records of a key, `delimiter` and a number. No field is quoted,
    /// and an empty number is malformed. [`report::write`](crate::report::write) prints such an answer.
    ///
    /// ```
    /// use ringfold::query::{Query, Sort};
    /// use ringfold::report::{self, Format};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let input = Input::memory([&b"Bern;7.5\nOslo;-3.0\nBern;8.5\n"[..]]);
    /// let config = Config::default();
    /// let plan = Query::pairs(b';').plan(&input, &config)?;
    /// let (mut answer, _) = fold(&input, &config, &plan)?;
    /// answer.sort(&Sort::Bytes, None)?;
    /// answer.set_lines(Format::OneBrc)?;
    /// let mut text = Vec::new();
    /// report::write(&answer, Format::OneBrc, None, &mut text).unwrap();
    /// assert_eq!(text, b"{Bern=7.5/8.0/8.5, Oslo=-3.0/-3.0/-3.0}\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    pub fn pairs(delimiter: u8) -> Query {
        let query = Query {
            is_pairs: true,
            ..Query::new(delimiter)
        };
        let query = query.quote(None).key(1);
        let query = LINES.iter().try_fold(query, |query, name| {
            query.aggregate(name, Some(Columns::Number(2)))
        });
        query.expect("they are aggregates of a column")
    }

    fn between(delimiter: Delimiter) -> Query {
        Query {
            delimiter,
            level: Some(Level::detect()),
            ..Query::default()
        }
    }

    /// How many bytes the groups of all workers may take together, growth aside. What exceeds it goes to temporary files.
    /// The default is two fifths of the memory that is available when the groups have grown to some MiB, or of the control
    /// group's limit.
    pub fn memory(mut self, bytes: u64) -> Query {
        self.shown = self.shown.memory(bytes);
        self
    }

    /// The directory of the temporary files, which have no names. The default is `TMPDIR`, else /var/tmp.
    pub fn spill_directory(mut self, directory: impl Into<PathBuf>) -> Query {
        self.shown = self.shown.spill_directory(directory);
        self
    }

    /// The byte that quotes fields, as RFC 4180 has them, or none. By default it is `"` between commas, and between other bytes
    /// where the first records have such fields.
    pub fn quote(mut self, quote: Option<u8>) -> Query {
        self.style.quote = Some(quote);
        self
    }

    /// The byte that, before a quote within a quoted field, says that it closes nothing. Quoted fields hold no newline then.
    pub fn escape(mut self, escape: Option<u8>) -> Query {
        self.style.escape = escape;
        self
    }

    /// Whether blanks around fields don't belong to them. Quoted fields hold no newline then.
    pub fn trim(mut self, is_trimmed: bool) -> Query {
        self.style.is_trimmed = is_trimmed;
        self
    }

    /// Whether records that are the header again, byte for byte, are records like others. By default they are left out, and
    /// the answer counts them.
    pub fn keep_repeated_headers(mut self, keeps_repeated_headers: bool) -> Query {
        self.keeps_repeated_headers = keeps_repeated_headers;
        self
    }

    /// Whether the first line of each file names the columns. The default: if a column is called by a name.
    pub fn header(mut self, has_header: bool) -> Query {
        self.has_header = Some(has_header);
        self
    }

    pub(crate) fn has_header(&self) -> bool {
        let is_named = self.log.is_some() || self.is_json;
        let calls_by_name = || self.first_name().is_some();
        (self.has_header).unwrap_or_else(|| !is_named && calls_by_name())
    }

    /// The first name that a column is called by.
    pub fn first_name(&self) -> Option<Vec<u8>> {
        self.column_names(&[]).into_iter().next()
    }

    /// The names that columns of the input are called by, each once: all of `known`, and those that no table has.
    fn column_names(&self, known: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let is_of_table = |name: &[u8]| {
            let tables = self.lookups.iter().map(|lookup| &lookup.table);
            !matches!(in_tables(tables, name), Ok(None))
        };
        let mut add = |columns: &Columns, is_own: bool| {
            if let Columns::Name(name) = columns
                && !names.contains(name)
                && (is_own || known.contains(name) || !is_of_table(name))
            {
                names.push(name.clone());
            }
        };
        for lookup in &self.lookups {
            lookup.each_column(&mut |columns| add(columns, true));
        }
        self.each_column(&mut |columns| add(columns, false));
        for filter in &self.filters {
            filter.each_column(&mut |columns| add(columns, false));
        }
        names
    }

    /// Shows the columns of keys and aggregates, and of the keys of tables.
    fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        self.lookups
            .iter()
            .for_each(|lookup| lookup.each_column(see));
        for key in &self.keys {
            match &key.value {
                Some(value) => value.each_column(see),
                None => std::iter::once(&key.columns)
                    .chain(&key.clock)
                    .for_each(&mut *see),
            }
        }
        for asked in &self.aggregates {
            match (&asked.value, &asked.columns) {
                (Some(value), _) => value.each_column(see),
                (None, Some(columns)) => see(columns),
                (None, None) => {}
            }
            if let Some(filter) = &asked.filter {
                filter.each_column(see);
            }
        }
    }

    /// One more value that is null, beside the empty one.
    pub fn null_value(mut self, value: impl Into<Vec<u8>>) -> Query {
        self.nulls.push(value.into());
        self
    }

    /// What to do about a malformed record.
    pub fn on_error(mut self, on_error: OnError) -> Query {
        self.on_error = on_error;
        self
    }

    /// The instructions that are used, the processor's best by default; without any, records are added one by one.
    pub fn level(mut self, level: Option<Level>) -> Query {
        self.level = level;
        self
    }

    /// Ends the run when more than so many records are left out.
    pub fn max_errors(mut self, most: u64) -> Query {
        self.max_errors = Some(most);
        self
    }

    /// Whether the answer has all [`Rejects`](crate::query::Rejects). A worker keeps up to a mebibyte of them in memory;
    /// what exceeds that goes to a temporary file without a name in `TMPDIR`, or else /var/tmp.
    pub fn keep_rejects(mut self, keeps_rejects: bool) -> Query {
        self.keeps_rejects = keeps_rejects;
        self
    }

    /// Whether no quoted field holds a newline. A quote that isn't closed then ends with its line.
    pub fn single_line(mut self, is_single_line: bool) -> Query {
        self.style.is_single_line = is_single_line;
        self
    }

    /// Whether records may have other numbers of fields than the first: missing ones are null, further ones ignored.
    pub fn ragged(mut self, is_ragged: bool) -> Query {
        self.style.is_ragged = is_ragged;
        self
    }

    /// Whether delimiters side by side are one, and those at a record's start and end none.
    pub fn squeeze(mut self, is_squeezed: bool) -> Query {
        self.style.is_squeezed = is_squeezed;
        self
    }

    /// Whether a comma stands before the decimals of numbers. The answer has a point all the same.
    pub fn decimal_comma(mut self, has_decimal_comma: bool) -> Query {
        self.style.has_decimal_comma = has_decimal_comma;
        self
    }

    /// Whether `inf`, `nan` and larger exponents are numbers too. Results are the nearest doubles of the exact values.
    pub fn float(mut self, is_float: bool) -> Query {
        self.is_float = is_float;
        self
    }

    /// Whether percentiles and distinct counts are estimates where a group has many values, as those of `approx_p99` and
    /// `approx_distinct` are. Without it they are exact: values are kept, and go to a temporary file where memory ends.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let text: String = (0..100_001).map(|n| format!("a,{n}.5\n")).collect();
    /// let input = Input::memory([text.as_bytes()]);
    /// let config = Config::default();
    /// let query = Query::new(b',').key(1).aggregate("p99", Some(2.into()))?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"key1,p99_2\na,99000.500\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    pub fn approximate(mut self, is_approximate: bool) -> Query {
        self.is_approximate = is_approximate;
        self
    }

    /// Hashes values with a secret key for estimates of distinct values, so that nobody who doesn't know it can choose values
    /// that are counted as fewer. Estimates depend on the key. Partials hold a fingerprint of it, and those of other keys aren't
    /// merged. Without it the hash has a fixed seed.
    #[must_use]
    pub fn hash_key(mut self, secret: &[u8]) -> Query {
        self.hash_key = HashKey::of(secret);
        self
    }

    /// The zone on whose clock times are looked at, where they are cut down, computed on or compared, and no other zone stands
    /// in the expression: a name of the tz database, in any letters, or an offset such as `+05:30`. Without it, times are
    /// looked at as they are written.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let text = &b"t\n2026-10-25T00:30:00Z\n2026-10-25T01:30:00Z\n2026-10-25T02:30:00Z\n"[..];
    /// let (input, config) = (Input::memory([text]), Config::default());
    /// let query = Query::new(b',').key_text("t@hour")?.time_zone("Europe/Berlin")?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// let rows = b"t_hour,count\n2026-10-25T02+01:00,1\n2026-10-25T02+02:00,1\n2026-10-25T03,1\n";
    /// assert_eq!(csv, rows);
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such zone.
    pub fn time_zone(mut self, name: &str) -> Result<Query> {
        self.time_zones.zone = Some(zone(name)?);
        Ok(self)
    }

    /// The zone of times without an offset, where they are looked at on the clock of a zone. Without it they are times of that
    /// zone.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn input_time_zone(mut self, name: &str) -> Result<Query> {
        self.time_zones.input = Some(zone(name)?);
        Ok(self)
    }

    /// Whether aggregates are estimates that have the names of exact ones.
    fn is_estimated(&self) -> bool {
        let mut kinds = self.aggregates.iter().map(|asked| asked.kind);
        self.is_approximate && kinds.any(|kind| kind.exact().is_some() && kind.is_estimate())
    }

    fn grammar(&self) -> Grammar {
        Grammar {
            decimal_point: if self.style.has_decimal_comma {
                b','
            } else {
                b'.'
            },
            is_long: self.is_float || self.is_json,
            is_float: self.is_float,
        }
    }

    /// How many lines at the start of each file are left out.
    pub fn skip_lines(mut self, skip_lines: u64) -> Query {
        self.style.skip_lines = skip_lines;
        self
    }

    /// What begins lines that are no records; empty: there are none.
    pub fn comment(mut self, comment: impl Into<Vec<u8>>) -> Query {
        self.style.comment = comment.into();
        self
    }

    /// Lines of a web server's log: `combined`, `common`, or a pattern as it stands in the configuration of nginx or Apache.
    /// Its fields have names, and `-` is null. docs/query.md has them.
    ///
    /// ```
    /// use ringfold::query::{Query, Unit};
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let line = &b"203.0.113.9 - - [25/Nov/2026:13:45:10 +0000] \"GET / HTTP/1.1\" 200 512\n"[..];
    /// let (input, config) = (Input::memory([line]), Config::default());
    /// let query = Query::log("common")?
    ///     .key_by("time", Unit::Hour)
    ///     .aggregate("sum", Some("bytes".into()))?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"time_hour,sum_bytes\n2026-11-25T13,512\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn log(pattern: &str) -> Result<Query> {
        let pattern = log::pattern(pattern);
        let pattern = pattern.map_err(|why| {
            Error::new(
                ErrorKind::Usage,
                format!("the log's pattern can't be understood: {why}"),
            )
        })?;
        Ok(Query {
            log: Some(pattern),
            nulls: vec![b"-".to_vec()],
            ..Query::new(b' ')
        })
    }

    /// JSON lines: an object a line. Columns are called by their keys, with dots between where objects stand in objects.
    /// docs/query.md says what a value is.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let lines = &br#"{"path":"/","user":{"id":7},"ms":1.5}
    /// {"path":"\u002f","ms":2e1,"user":null}"#[..];
    /// let (input, config) = (Input::memory([lines]), Config::default());
    /// let query = Query::json_lines()
    ///     .key("path")
    ///     .aggregate("sum", Some("ms".into()))?
    ///     .aggregate("count", Some("user.id".into()))?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"path,sum_ms,count_user.id\n/,21.5,1\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    pub fn json_lines() -> Query {
        Query {
            is_json: true,
            ..Query::new(b' ')
        }
    }

    /// One more column of the key, or several.
    pub fn key(self, columns: impl Into<Columns>) -> Query {
        self.with_key(columns.into(), None, None)
    }

    /// One more column of the key, or several, that are times, cut down to a unit. Another value is malformed.
    pub fn key_by(self, columns: impl Into<Columns>, unit: Unit) -> Query {
        self.with_key(columns.into(), None, Some(unit))
    }

    /// The same of times whose date is in one column and whose time of day in another.
    pub fn key_by_two(
        self,
        date: impl Into<Columns>,
        clock: impl Into<Columns>,
        unit: Unit,
    ) -> Query {
        self.with_key(date.into(), Some(clock.into()), Some(unit))
    }

    fn with_key(mut self, columns: Columns, clock: Option<Columns>, unit: Option<Unit>) -> Query {
        self.keys.push(Key {
            columns,
            value: None,
            name: None,
            clock,
            unit,
            zone: None,
        });
        self
    }

    /// One more aggregate, of a column or several; `count` may have none.
    ///
    /// # Errors
    /// There is no such aggregate, or it needs a column.
    pub fn aggregate(mut self, name: &str, columns: Option<Columns>) -> Result<Query> {
        let kind = Query::kind(name, usize::from(columns.is_some()))?;
        self.items.push(Item::Aggregate(self.aggregates.len()));
        self.aggregates.push(Asked::of(kind, columns));
        Ok(self)
    }

    /// The aggregate of a name, which may be of so many columns at once.
    fn kind(name: &str, columns: usize) -> Result<Kind> {
        let refused = |why| Error::new(ErrorKind::Usage, why);
        let Some(kind) = named(name) else {
            let names = names().join(", ");
            return Err(refused(format!(
                "there is no aggregate `{name}`, but {names}, top5, and percentiles such as p50 and p99.9"
            )));
        };
        kind.check_columns(name, columns).map_err(refused)?;
        Ok(kind)
    }

    /// `min` or `max` of a column or several that are times: the earliest or latest, as it stands in its field. Of a log's
    /// times [`aggregate`](Self::aggregate) gives the same.
    ///
    /// # Errors
    /// It is another aggregate.
    pub fn aggregate_times(self, name: &str, columns: impl Into<Columns>) -> Result<Query> {
        let mut query = self.aggregate(name, Some(columns.into()))?;
        let asked = query.aggregates.last_mut().expect("it was added");
        asked.is_time = true;
        match asked.kind.of_times() {
            Some(_) => Ok(query),
            None => {
                let why = format!("`{name}` isn't computed of times, but `min` and `max` are");
                Err(Error::new(ErrorKind::Usage, why))
            }
        }
    }

    /// One more condition on records; those of which one isn't true are left out. docs/query.md says how conditions are
    /// written.
    ///
    /// ```
    /// use ringfold::query::{Query, Refusal};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let input = Input::memory([&b"city,price\nBern,1.50\nOslo,20\nBern,2.25\n"[..]]);
    /// let config = Config::default();
    /// let query = Query::new(b',').header(true).filter("city = 'Bern' and price > 2")?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// assert_eq!((answer.rows, answer.filtered), (1, 2));
    ///
    /// let error = Query::new(b',').filter("price >").unwrap_err();
    /// assert!(matches!(error.job(), Some(Refusal::Condition { at: 7, .. })));
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The condition can't be understood.
    pub fn filter(mut self, condition: &str) -> Result<Query> {
        let condition = Expression::condition(condition, FILTER)?;
        self.filters.push(condition);
        Ok(self)
    }

    /// Adds a row for each value that a column of the key could have had between its first and its last one, with each combination of
    /// the other keys' values: as a group of no record has them, counts are 0. docs/query.md says which keys can be filled.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let (input, config) = (Input::memory([&b"t,n\n2026-02-27,1\n2026-03-01,4\n"[..]]), Config::default());
    /// let query = Query::new(b',').key_text("t@day")?.aggregate_text("count")?.aggregate_text("sum:n")?.fill("t_day");
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"t_day,count,sum_n\n2026-02-27,1,1\n2026-02-28,0,\n2026-03-01,1,4\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    pub fn fill(mut self, key: impl Into<Vec<u8>>) -> Query {
        self.shown = self.shown.fill(key);
        self
    }

    /// One more condition on rows of the answer, by the names that it is printed with. Numbers are compared exactly,
    /// whatever is printed of them.
    ///
    /// # Errors
    /// The condition can't be understood.
    pub fn having(mut self, condition: &str) -> Result<Query> {
        self.shown = self.shown.having(condition)?;
        Ok(self)
    }

    /// Digits after the point of all numbers that are computed, instead of each aggregate's own. Counts have none.
    pub fn precision(mut self, digits: Option<u32>) -> Query {
        self.shown = self.shown.precision(digits);
        self
    }

    /// One more name for a column of the answer. There must be one for each, or none.
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Query {
        self.shown = self.shown.name(name);
        self
    }

    /// What is done with the groups, all of it at once.
    #[cfg(feature = "cli")]
    pub(crate) fn shown(self, shown: Shown) -> Query {
        Query { shown, ..self }
    }

    /// Whether most of the first records of an input are a key and a number.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn is_of_pairs(&self, input: &Input, config: &Config) -> Result<bool> {
        let Ok(plan) = self.plan(input, config) else {
            return Ok(false);
        };
        let mut numbers = 0;
        let looked = plan.each_value(input, 2, |column, value| {
            let is_number = || plan.is_null(value) || plan.read_number(value).is_ok();
            numbers += usize::from(column == 1 && is_number());
        })?;
        Ok(looked.is_none_or(|looked| looked.has_all(2 * numbers)))
    }

    /// The same without what it asks.
    pub(crate) fn without_columns(&self) -> Query {
        let mut query = self.clone();
        query.keys.clear();
        query.aggregates.clear();
        query.items.clear();
        query.filters.clear();
        query.lookups.clear();
        query.shown.having.clear();
        query.shown.fill = None;
        query.shown.names.clear();
        query.is_pairs = false;
        query
    }

    /// The same over JSON lines.
    pub(crate) fn of_json(self) -> Query {
        Query {
            is_json: true,
            ..self
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// The same over lines of a log.
    pub(crate) fn of_log(self, pattern: &str) -> Result<Query> {
        let Query { log, nulls, .. } = Query::log(pattern)?;
        Ok(Query { log, nulls, ..self })
    }

    /// The same over fields below directives that begin with `#`.
    pub(crate) fn of_fields(self, delimiter: u8) -> Query {
        let delimiter = Delimiter::Named(delimiter);
        Query { delimiter, ..self }.comment(*b"#")
    }

    /// The same over lines of one field.
    pub(crate) fn of_lines(self) -> Query {
        Query {
            // A byte that text doesn't have.
            delimiter: Delimiter::Named(0x1f),
            ..self
        }
    }
}
