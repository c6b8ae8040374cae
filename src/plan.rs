//! A query compiled for an input: data that says what to do with a record.

pub(crate) mod columns;
pub(crate) mod computed;
pub(crate) mod conditions;
pub(crate) mod head;
pub(crate) mod lookups;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod part;
pub(crate) mod shown;
pub(crate) mod zoned;

use std::path::Path;
use std::sync::Arc;

use ahash::RandomState;
use ringfold_read::internals::Level;
use ringfold_read::{Cause, Error, Framing, Kind as ErrorKind, Result, Setting};

use crate::aggregate::definition::{Kind, Slot};
use crate::aggregate::state::{Argument, Digest};
use crate::answer::columns::{Column, Computed as ComputedOfRows};
use crate::answer::fill::Fill;
use crate::answer::layout::Layout;
use crate::answer::{LINES, no_lines};
use crate::budget::Budget;
use crate::decimal::number::{Grammar, Number};
use crate::expression::formula::{Formula, Kind as Type};
use crate::expression::{Bytes, Condition, Expression};
use crate::format::dialect::Dialect;
use crate::format::hint::number_cause;
use crate::format::repeats::Repeats;
use crate::format::sniff::Doubt;
use crate::format::time::{TimeZone, TimeZones, Unit, ZonedUnit};
use crate::plan::columns::Columns;
use crate::plan::computed::Computed;
use crate::plan::lookups::Lookup;
use crate::plan::order::Order;
use crate::plan::part::QuotedPart;
use crate::plan::zoned::ZonedTimes;
use crate::refusal::{AGGREGATE, Hint, KEY, Refusal};
use crate::reject::rejects::{OnError, Rejecting};
use crate::sketch::distinct::HashKey;
use crate::table::states::push_part;

/// What a query compiles to.
#[derive(Debug)]
pub struct Plan {
    pub(crate) dialect: Dialect,
    pub(crate) framing: Box<dyn Framing>,
    /// Which part of an input it is, if newlines may stand in quoted fields.
    pub(crate) part: Option<QuotedPart>,
    pub(crate) rejecting: Rejecting,
    pub(crate) order: Order,
    /// Records have as many fields as they like.
    pub(crate) is_ragged: bool,
    /// How numbers are written.
    pub(crate) grammar: Grammar,
    pub(crate) max_record: usize,
    /// Lines at the start of each file that are left out.
    pub(crate) skip_lines: u64,
    /// Where the header or the first record of each file begins; of those that aren't here at the start.
    pub(crate) begins: Vec<u64>,
    /// The files' names.
    pub(crate) files: Vec<Arc<str>>,
    pub(crate) nulls: Vec<Vec<u8>>,
    /// Whether one of them is a number.
    pub(crate) has_numeric_nulls: bool,
    pub(crate) shape: Option<Shape>,
    pub(crate) has_header: bool,
    /// Files may begin with a line that says which byte stands between fields.
    pub(crate) has_separator_line: bool,
    /// Records that are left out because they are the header again.
    pub(crate) repeats: Option<Repeats>,
    /// Each of the first records has a field more than the header, and what may help.
    pub(crate) longer: Option<Hint>,
    /// What may be read otherwise.
    pub(crate) doubts: Vec<Doubt>,
    /// The values of the first record, where they look like names and the record isn't read as a header.
    pub(crate) unread_names: Option<Vec<Vec<u8>>>,
    /// The time zones that are named for all of the query.
    pub(crate) time_zones: TimeZones,
    /// The times that are looked at in zones.
    pub(crate) zoned: ZonedTimes,
    /// Records of which it isn't true are left out.
    pub(crate) filter: Option<Condition>,
    /// Columns that are computed, after those of the input.
    pub(crate) computed: Vec<Computed>,
    /// Tables beside the input.
    pub(crate) lookups: Vec<Lookup>,
    /// Names that mean a column of the input, and what the table's is called that has it, too.
    pub(crate) shadowed: Vec<(Vec<u8>, Vec<u8>)>,
    /// The columns of the key, from 0.
    pub(crate) keys: Vec<usize>,
    /// What times in them are cut down to.
    pub(crate) cuts: Vec<Option<Cut>>,
    /// The columns that are read as numbers.
    pub(crate) numbers: Vec<usize>,
    /// The columns whose first and last times are wanted.
    pub(crate) times: Vec<usize>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The names of the answer's columns: keys, then those that are shown.
    pub(crate) names: Vec<Vec<u8>>,
    /// The columns after the keys.
    pub(crate) shown: Vec<Column>,
    /// What keys and aggregates are called in partials.
    pub(crate) key_titles: Vec<Vec<u8>>,
    pub(crate) titles: Vec<Vec<u8>>,
    /// What was asked, in words, as a partial keeps it.
    pub(crate) asked: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key whose missing values become rows of the answer.
    pub(crate) fill: Option<Fill>,
    /// Rows of the answer of which it isn't true are left out.
    pub(crate) having: Option<Condition>,
    /// What it computes.
    pub(crate) hidden: Vec<Arc<ComputedOfRows>>,
    /// Digits behind the point of numbers that are computed, if they were asked for.
    pub(crate) precision: Option<u32>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) hasher: RandomState,
    /// What values are hashed with for estimates.
    pub(crate) hash_key: HashKey,
    /// For the passes over windows; without it, records are added one by one.
    pub(crate) level: Option<Level>,
    /// Records are a key and a number: an empty one is malformed.
    pub(crate) is_pairs: bool,
}

/// How a column's times are cut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) unit: ZonedUnit,
    /// The column of the time of day, where the first one has the date alone.
    pub(crate) clock: Option<usize>,
}

/// An aggregate of a plan.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) kind: Kind,
    pub(crate) column: Option<usize>,
    /// Which of the plan's numbers it takes.
    pub(crate) number: Option<usize>,
    /// The aggregate whose states it has: itself, or one before.
    pub(crate) owner: usize,
}

impl Aggregate {
    /// Whether it gives numbers with the decimals of its column. A count of numbers doesn't.
    pub(crate) fn is_numeric(&self) -> bool {
        self.kind.argument == Argument::Numbers
    }
}

/// What the first record of an input tells.
#[derive(Debug)]
pub(crate) struct Shape {
    /// How many fields a record has.
    pub(crate) width: usize,
    /// The names of the columns.
    pub(crate) header: Option<Vec<Vec<u8>>>,
    /// The bytes of the record that has them.
    pub(crate) header_line: Option<Vec<u8>>,
    /// The file that it is the first record of.
    pub(crate) file: Arc<str>,
}

impl Shape {
    /// What is wrong with a record of so many fields. Pairs are two, whatever the first record has.
    pub(crate) fn mismatch(&self, found: usize, is_pairs: bool) -> String {
        let fields = if found == 1 { "field" } else { "fields" };
        let width = self.width;
        match &self.header {
            Some(_) => format!("{found} {fields} where the header has {width}"),
            None if is_pairs => format!("{found} {fields} where {width} are expected"),
            None => format!("{found} {fields} where the first record has {width}"),
        }
    }

    /// What is wrong with the header of another file, if something is.
    pub(crate) fn differs(&self, other: &[Vec<u8>]) -> Option<String> {
        let header = self.header.as_ref()?;
        if header == other {
            return None;
        }
        let at = (0..).find(|&at| header.get(at) != other.get(at))?;
        let name = |names: &[Vec<u8>]| match names.get(at) {
            Some(name) => format!("`{}`", crate::decimal::number::shown(name)),
            None => "missing".into(),
        };
        let (file, here, there) = (&self.file, name(other), name(header));
        Some(format!(
            "the header isn't that of {file}: column {} is {here} here and {there} there",
            at + 1
        ))
    }
}

/// What is wrong with a record, and what may help.
pub(crate) fn hinted(why: impl Into<String>, hint: Hint) -> Cause {
    let why = why.into();
    Refusal::Malformed { why, hint }.into()
}

/// Columns of the key that are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) columns: Columns,
    /// What they may be in place of that: a value that is computed.
    pub(crate) value: Option<Expression>,
    /// What they are called.
    pub(crate) name: Option<Vec<u8>>,
    /// The column of the time of day, where `columns` has the date alone.
    pub(crate) clock: Option<Columns>,
    /// What times are cut down to.
    pub(crate) unit: Option<Unit>,
    /// The zone that is named beside the unit.
    pub(crate) zone: Option<TimeZone>,
}

/// An aggregate that is asked for, and its columns.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) columns: Option<Columns>,
    /// What they may be in place of that: a value that is computed.
    pub(crate) value: Option<Expression>,
    /// Only records of which it is true count.
    pub(crate) filter: Option<Expression>,
    /// What it is called.
    pub(crate) name: Option<Vec<u8>>,
    /// As it is written, if it has a value or a condition.
    pub(crate) text: String,
    /// Its values are times.
    pub(crate) is_time: bool,
}

impl Asked {
    /// An aggregate of columns as they are.
    pub(crate) fn of(kind: Kind, columns: Option<Columns>) -> Asked {
        Asked {
            kind,
            columns,
            value: None,
            filter: None,
            name: None,
            text: String::new(),
            is_time: false,
        }
    }

    /// Whether a computed value of the answer calls it so.
    pub(crate) fn is_leaf(&self, text: &[u8]) -> bool {
        self.name.is_none() && self.text.as_bytes() == text
    }
}

/// The most columns of a key, and the most aggregates: each takes memory in every group, before any budget is asked.
const KEYS_MAX: usize = 1000;
const AGGREGATES_MAX: usize = 4000;

fn is_bounded(count: usize, most: usize, what: &str) -> Result<()> {
    if count <= most {
        return Ok(());
    }
    let why = format!("{count} {what} are more than {most}, the most that a query may have");
    Err(Error::new(ErrorKind::Usage, why))
}

/// Why there are no such columns, or why their name isn't a value, if it seems to be one.
fn or_value(error: Error, columns: &Columns, setting: Setting) -> Error {
    let Columns::Name(name) = columns else {
        return error;
    };
    let text = String::from_utf8_lossy(name);
    match Expression::value(&text, setting) {
        Err(refused) if text.contains('(') => refused,
        _ => error,
    }
}

impl Plan {
    /// Whether an aggregate has hashes of values.
    pub(crate) fn has_hashes(&self) -> bool {
        let mut kinds = self.aggregates.iter().map(|aggregate| aggregate.kind);
        kinds.any(|kind| matches!(kind.digest, Some(Digest::Hash)))
    }

    /// Whether a value is what is asked for, because there are no such columns.
    pub(crate) fn is_computed(&self, columns: &Columns) -> bool {
        let shape = self.shape.as_ref();
        let is_of_input =
            |shape: &Shape| columns.find(shape.width, shape.header.as_deref()).is_ok();
        let is_of_table = !matches!(self.in_tables(columns), Ok(None));
        self.dialect.is_json() || !(is_of_table || shape.is_some_and(is_of_input))
    }

    /// Adds the columns of a key.
    pub(crate) fn add_key(&mut self, key: &Key) -> Result<()> {
        if let Some(value) = key
            .value
            .as_ref()
            .filter(|_| self.is_computed(&key.columns))
        {
            let (formula, _) = value.formula(self)?;
            let (column, cut) = match formula {
                Formula::Column(column) => (column, None),
                Formula::Time(date, clock, unit) => self.cut_down(date, clock, unit, value.text()),
                formula => (self.compute(formula, value.text(), false), None),
            };
            self.keys.push(column);
            self.cuts.push(cut);
            let name = key.name.clone();
            let name = name.unwrap_or_else(|| value.text().trim().as_bytes().to_vec());
            self.names.push(name);
            return is_bounded(self.keys.len(), KEYS_MAX, "columns of the key");
        }
        let has_names = match &self.shape {
            Some(shape) => shape.header.is_some(),
            None => matches!(key.columns, Columns::Name(_)),
        };
        let clock = key.clock.as_ref();
        let clock = clock.map(|columns| self.find_one(columns));
        let clock = clock.transpose()?;
        let found = self.find(&key.columns);
        for (at, name) in found.map_err(|error| or_value(error, &key.columns, KEY))? {
            let text = String::from_utf8_lossy(&name);
            let is_named = has_names || self.computed(at).is_some();
            let (at, cut) = match key.unit {
                Some(unit) => {
                    let zones = self.time_zones.of(key.zone);
                    let clock = clock.as_ref().map(|(at, _)| *at);
                    self.cut_down(at, clock, ZonedUnit { unit, zones }, &text)
                }
                None => (at, None),
            };
            self.keys.push(at);
            self.cuts.push(cut);
            if let Some(name) = &key.name {
                self.names.push(name.clone());
                continue;
            }
            let mut name = match (is_named, &clock) {
                (true, Some((_, clock))) => [&name[..], b"_", clock].concat(),
                (true, None) => name,
                (false, _) => format!("key{}", self.keys.len()).into_bytes(),
            };
            if let Some(unit) = key.unit {
                name.extend_from_slice(format!("_{unit}").as_bytes());
            }
            self.names.push(name);
        }
        is_bounded(self.keys.len(), KEYS_MAX, "columns of the key")
    }

    /// The column of times that are cut down: one of the input is cut by its key, and others are computed so.
    fn cut_down(
        &mut self,
        date: usize,
        clock: Option<usize>,
        unit: ZonedUnit,
        text: &str,
    ) -> (usize, Option<Cut>) {
        match date.max(clock.unwrap_or(date)) < self.width() || self.shape.is_none() {
            true => (date, Some(Cut { unit, clock })),
            false => (
                self.compute(Formula::Time(date, clock, unit), text, false),
                None,
            ),
        }
    }

    /// Adds an aggregate, of each column that it is asked for.
    pub(crate) fn add_aggregate(&mut self, asked: &Asked) -> Result<()> {
        let kind = asked.kind;
        let value = match (&asked.value, &asked.columns) {
            (Some(value), Some(columns)) if self.is_computed(columns) => Some(value),
            (Some(value), None) => Some(value),
            _ => None,
        };
        let formula = match (value, &asked.columns) {
            (Some(value), _) => Some(value.formula(self)?),
            (None, Some(columns)) if asked.filter.is_some() => {
                let at = self.find_one(columns)?.0;
                Some((Formula::Column(at), Type::Field))
            }
            (None, None) if asked.filter.is_some() => {
                Some((Formula::Number(Number::new(1, 0)), Type::Number))
            }
            _ => None,
        };
        let filtered = match (formula, &asked.filter) {
            (Some((formula, of)), Some(filter)) => {
                let condition = filter.inner_condition(self)?;
                let choice = Formula::Choice(vec![(condition, formula)], Formula::Null.into());
                Some((choice, of))
            }
            (formula, _) => formula,
        };
        let columns = match (filtered, &asked.columns) {
            (Some((Formula::Column(at), _)), _) => vec![(at, self.name_of(at))],
            (Some((formula, of)), _) => {
                let is_number = kind.argument == Argument::Numbers
                    || kind.argument == Argument::Anything && of == Type::Number;
                let at = self.compute(formula, &asked.text, is_number);
                let number = is_number.then(|| self.number(at));
                let name = asked.name.clone();
                let name = name.unwrap_or_else(|| asked.text.trim().as_bytes().to_vec());
                self.push_aggregate(kind, Some(at), number, name);
                return is_bounded(self.aggregates.len(), AGGREGATES_MAX, "aggregates");
            }
            (None, Some(columns)) => {
                let found = self.find(columns);
                found.map_err(|error| or_value(error, columns, AGGREGATE))?
            }
            (None, None) => {
                let name = kind.name().as_bytes().to_vec();
                self.push_aggregate(kind, None, None, asked.name.clone().unwrap_or(name));
                return Ok(());
            }
        };
        for (at, name) in columns {
            let of_times = kind
                .of_times()
                .filter(|_| asked.is_time || self.has_times(at));
            if of_times.is_some() && !self.times.contains(&at) {
                self.times.push(at);
            }
            let kind = of_times.unwrap_or(kind);
            let takes_numbers = kind.argument == Argument::Numbers;
            let number = takes_numbers.then(|| self.number(at));
            let name = [kind.name().as_bytes(), b"_", &name].concat();
            let name = asked.name.clone().unwrap_or(name);
            self.push_aggregate(kind, Some(at), number, name);
        }
        is_bounded(self.aggregates.len(), AGGREGATES_MAX, "aggregates")
    }

    fn push_aggregate(
        &mut self,
        kind: Kind,
        column: Option<usize>,
        number: Option<usize>,
        name: Vec<u8>,
    ) {
        let place = self.aggregates.len();
        let shares =
            |of: &Aggregate| column.is_some() && of.column == column && of.kind.shares_states(kind);
        let owner = self.aggregates.iter().position(shares).unwrap_or(place);
        self.aggregates.push(Aggregate {
            kind,
            column,
            number,
            owner,
        });
        self.titles.push(name);
    }

    /// How a column is called in the answer.
    fn name_of(&self, column: usize) -> Vec<u8> {
        if let Some(computed) = self.computed(column) {
            return computed.text.as_bytes().to_vec();
        }
        let header = self.shape.as_ref().and_then(|shape| shape.header.as_ref());
        match header {
            Some(header) => header[column].clone(),
            None => (column + 1).to_string().into_bytes(),
        }
    }

    /// The aggregates as tables know them.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let slot = |of: &Aggregate| Slot {
            kind: of.kind,
            owner: of.owner,
        };
        self.aggregates.iter().map(slot).collect()
    }

    /// Whether there are aggregates of all values, which may be groups of their own after that of their record.
    pub(crate) fn has_values(&self) -> bool {
        self.aggregates.iter().any(|of| of.kind.of_values.is_some())
    }

    /// How many parts keys of groups have.
    pub(crate) fn key_parts(&self) -> usize {
        self.keys.len() + usize::from(self.has_values())
    }

    /// Ends the key of a group.
    pub(crate) fn end_key(&self, key: &mut Vec<u8>) {
        if self.has_values() {
            push_part(key, b"");
        }
    }

    /// The place of a column among the numbers.
    pub(crate) fn number(&mut self, column: usize) -> usize {
        let known = self.numbers.iter().position(|&known| known == column);
        known.unwrap_or_else(|| {
            self.numbers.push(column);
            self.numbers.len() - 1
        })
    }

    /// What may be read otherwise in the first records.
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// The byte between fields.
    pub fn delimiter(&self) -> u8 {
        self.dialect.delimiter()
    }

    /// Where groups go that outgrow the memory.
    pub fn spill_directory(&self) -> &Path {
        self.budget.directory()
    }

    /// Whether an answer can be shown so.
    ///
    /// # Errors
    /// It has no such column.
    pub fn check_layout(&self, layout: &Layout) -> Result<()> {
        layout.check(&self.names, &mut self.answer_columns())
    }

    /// Whether an answer can be printed in a style of [`report`](crate::report).
    ///
    /// # Errors
    /// It has other columns than a key and the least, mean and greatest number of one.
    pub fn check_lines(&self) -> Result<()> {
        let kinds = self.aggregates.iter().map(|of| of.kind.name());
        let is_plain = self.shown.len() == self.aggregates.len();
        let is_of_one = self
            .aggregates
            .windows(2)
            .all(|two| two[0].column == two[1].column);
        match self.keys.len() == 1 && is_of_one && is_plain && kinds.eq(LINES) {
            true => Ok(()),
            false => Err(no_lines()),
        }
    }

    /// A field's number.
    ///
    /// # Errors
    /// Why it isn't one.
    pub(crate) fn read_number(&self, field: &[u8]) -> Result<Number, String> {
        Number::read_as(field, self.grammar)
    }

    /// Whether the first record looks like names, and is read as a record like others.
    pub fn has_unread_names(&self) -> bool {
        self.unread_names.is_some()
    }

    /// A column's value that a condition tests. It may be a long number, unless that is null where the column is computed
    /// on.
    pub(crate) fn operand<'a>(&self, column: usize, bytes: &'a [u8]) -> Bytes<'a> {
        let wants_number = self.wants_number(column);
        Bytes {
            bytes,
            is_null: self.is_null(bytes),
            wants_number,
            grammar: Grammar {
                is_long: !wants_number || self.grammar.is_long,
                ..self.grammar
            },
        }
    }

    /// Whether what isn't a number is null in a column: an aggregate computes on it, and the run doesn't fail for such
    /// values.
    pub(crate) fn wants_number(&self, column: usize) -> bool {
        self.rejecting.on_error == OnError::Null && self.numbers.contains(&column)
    }

    /// What is wrong with a value that isn't a number.
    pub(crate) fn value_cause(&self, value: &[u8], column: usize, why: &str) -> Cause {
        self.number_cause(value, column, why, number_cause)
    }

    /// The same where `cause_of` finds what helps.
    pub(crate) fn number_cause(
        &self,
        value: &[u8],
        column: usize,
        why: &str,
        cause_of: fn(&[u8], String, Grammar) -> Cause,
    ) -> Cause {
        let why = match self.is_pairs {
            true => why.to_string(),
            false => format!("{why} (column {})", self.column_name(column)),
        };
        match self.is_unread_name(value, column) {
            true => hinted(why, Hint::Names),
            false => cause_of(value, why, self.grammar),
        }
    }

    /// What is wrong with a value that isn't a time.
    pub(crate) fn time_cause(&self, value: &[u8], column: usize, why: &str) -> Cause {
        let why = format!("{why} (column {})", self.column_name(column));
        match self.is_unread_name(value, column) {
            true => hinted(why, Hint::Names),
            false => why.into(),
        }
    }

    fn is_unread_name(&self, value: &[u8], column: usize) -> bool {
        let names = self.unread_names.as_ref();
        names.is_some_and(|names| names.get(column).is_some_and(|name| name == value))
    }

    /// Appends a part of a key to those before; null is the empty one.
    pub(crate) fn push_key(&self, key: &mut Vec<u8>, part: &[u8]) {
        push_part(key, if self.is_null(part) { b"" } else { part });
    }

    /// Whether it finds the same records in the input as another plan, and leaves malformed ones out as that one does.
    pub(crate) fn reads_as(&self, other: &Plan) -> bool {
        self.dialect.reads_as(&other.dialect)
            && self.files == other.files
            && (self.skip_lines, self.has_header) == (other.skip_lines, other.has_header)
            && (self.max_record, self.is_pairs) == (other.max_record, other.is_pairs)
            && self.rejecting.on_error == other.rejecting.on_error
    }

    pub(crate) fn is_null(&self, value: &[u8]) -> bool {
        value.is_empty() && !self.is_pairs || self.nulls.iter().any(|null| null == value)
    }

    /// How a column is called in an error.
    pub(crate) fn column_name(&self, column: usize) -> String {
        if let Some(computed) = self.computed(column) {
            let of = computed.lookup();
            let of = of.map_or(String::new(), |table| format!(" of {}", table.file));
            let text = crate::decimal::number::shown(computed.text.as_bytes());
            return format!("`{text}`{of}");
        }
        let header = self.shape.as_ref().and_then(|shape| shape.header.as_ref());
        match header {
            Some(header) => format!("`{}`", crate::decimal::number::shown(&header[column])),
            None => (column + 1).to_string(),
        }
    }
}
