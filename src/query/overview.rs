//! What is in an input, for people who don't know yet what to ask: its columns, and the first records.

use std::fmt;

use memchr::memchr;
use ringfold_read::internals::{head::look_at_heads, visible};
use ringfold_read::{Config, Error, Input, Kind, Result, Source};

use crate::decimal::number::shown;
use crate::format::sniff::Doubt;
use crate::query::ask::Query;
use crate::query::explain::{ColumnSample, Values, first_keys, write_table};
use crate::refusal::Refusal;

/// Keys of JSON lines that are shown.
const KEYS: usize = 200;
/// Characters of a value that are shown at least, or its record isn't.
const LEAST: usize = 10;

/// What is in an input.
#[derive(Debug, Clone)]
pub struct Overview {
    /// How its records are written.
    pub form: Form,
    /// Numbers have a comma before their decimals, and the query hasn't said so.
    pub has_decimal_comma: bool,
    pub(super) facts: Vec<(&'static str, String)>,
    /// How many of its records were looked at.
    pub records: usize,
    /// Its columns.
    pub columns: Vec<Column>,
    /// What the first records leave open, see [`Plan::doubts`](crate::query::Plan::doubts).
    pub doubts: Vec<Doubt>,
    /// Its records, and its columns where they are called by names alone.
    pub(super) query: Query,
    /// JSON lines have more records than those whose keys are the columns.
    pub(super) has_more_keys: bool,
}

/// How the records of an input are written, where a query hasn't said so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// As the query says, or as it finds out by itself.
    Plain,
    /// JSON objects, one a line.
    JsonLines,
    /// Lines of a web server's log, of this pattern.
    Log(&'static str),
    /// Lines below a `#Fields` directive, between these bytes. They begin with `#` where they are no records.
    Fields(u8),
    /// After comments that begin so.
    Commented(&'static str),
    /// Lines of one field.
    Lines,
}

/// A column of an input.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its place, from 1.
    pub number: usize,
    /// What it is called.
    pub name: Option<Vec<u8>>,
    /// Whether a query may call it so.
    pub is_callable: bool,
    /// What its values are.
    pub values: Values,
    /// How many different ones there are.
    pub distinct: usize,
    kind: String,
    nulls: usize,
    first: Vec<Vec<u8>>,
}

impl Query {
    /// What is in an input, by its first records, whatever the query asks of them. A header is found, too, and the form of
    /// the records, unless the query says it.
    ///
    /// # Errors
    /// The first records can't be read as columns.
    pub fn overview(&self, input: &Input, config: &Config) -> Result<Overview> {
        self.look(input, config, |input| Ok((first_keys(input)?, false)))
    }

    /// The same, with the columns of JSON lines that `keys` finds, and whether others may have more.
    pub(super) fn look(
        &self,
        input: &Input,
        config: &Config,
        keys: impl Fn(&Input) -> Result<(Vec<Vec<u8>>, bool)>,
    ) -> Result<Overview> {
        let mut form = Form::Plain;
        let mut query = self.without_columns();
        if let Err(error) = query.plan(input, config) {
            (query, form) = match error.job() {
                Some(Refusal::LooksLikeJson) => (self.clone().of_json(), Form::JsonLines),
                Some(Refusal::LooksLikeLog { pattern }) => {
                    (self.clone().of_log(pattern)?, Form::Log(pattern))
                }
                Some(Refusal::LooksLikeFields { delimiter }) => {
                    (self.clone().of_fields(*delimiter), Form::Fields(*delimiter))
                }
                Some(Refusal::LooksLikeComments { mark }) => {
                    (self.clone().comment(*mark), Form::Commented(mark))
                }
                Some(Refusal::Undelimited {
                    candidates,
                    uneven: None,
                    ..
                }) if candidates.is_empty() && is_text(input)? => {
                    (self.clone().of_lines(), Form::Lines)
                }
                _ => return Err(error),
            };
            query = query.without_columns();
        }
        let (mut named, mut has_more_keys) = (Vec::new(), false);
        if query.is_json() {
            let (keys, has_more) = keys(input)?;
            has_more_keys = has_more || keys.len() > KEYS;
            let keys = keys.into_iter().take(KEYS);
            for key in keys.filter_map(|key| String::from_utf8(key).ok()) {
                query = query.key(&*key);
            }
        } else if form != Form::Plain {
            named = fields_directive(input)?;
        }
        let mut plan = query.plan(input, config)?;
        if plan.unread_names.is_some() {
            query = query.header(true);
            plan = query.plan(input, config)?;
        }
        let mut has_decimal_comma = false;
        if plan.delimiter() != b',' && plan.has_decimal_commas(input)? {
            has_decimal_comma = true;
            query = query.decimal_comma(true);
            plan = query.plan(input, config)?;
        }
        let header = plan.shape.as_ref().and_then(|shape| shape.header.as_ref());
        let width = plan.shape.as_ref().map_or(0, |shape| shape.width);
        let mut seen: Vec<ColumnSample> = (0..width).map(|_| ColumnSample::default()).collect();
        let looked = plan.each_value(input, width, |column, value| {
            seen[column].show(&plan, value)
        })?;
        let looked = looked.unwrap_or_default();
        if width == 0 {
            let error = Error::new(Kind::Data, "there is no record in it");
            let first = input.sources().first();
            return Err(first.map_or(error.clone(), |source| error.in_file(0, source.name())));
        }
        let columns = seen.into_iter().enumerate().map(|(at, seen)| {
            let name = header.map(|names| &names[at]);
            Column {
                number: at + 1,
                is_callable: name.is_some(),
                name: name.or(named.get(at)).cloned(),
                values: seen.values(),
                distinct: seen.distinct(),
                kind: seen.kind(),
                nulls: seen.nulls,
                first: seen.first,
            }
        });
        Ok(Overview {
            form,
            has_decimal_comma,
            records: looked.records,
            columns: columns.collect(),
            facts: plan.facts(looked),
            doubts: plan.doubts().to_vec(),
            query,
            has_more_keys,
        })
    }
}

/// Whether the first bytes of an input are text.
fn is_text(input: &Input) -> Result<bool> {
    let is_odd = |byte: &u8| *byte < b'\t' || (14..32).contains(byte) && *byte != 0x1b;
    let look = |_: &Source, bytes: &[u8], ended: bool| {
        let is_enough = ended || memchr(b'\n', bytes).is_some();
        is_enough.then(|| Some(!bytes.iter().any(is_odd)))
    };
    Ok(look_at_heads(input.sources(), look)?.unwrap_or(false))
}

/// The names in the line `#Fields: date time …` before the first record.
fn fields_directive(input: &Input) -> Result<Vec<Vec<u8>>> {
    let look = |_: &Source, bytes: &[u8], _: bool| {
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(b"#Fields:"));
        let names = line.unwrap_or_default().split(u8::is_ascii_whitespace);
        let names = names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec);
        Some(Some(names.collect()))
    };
    Ok(look_at_heads(input.sources(), look)?.unwrap_or_default())
}

impl Overview {
    /// Writes it as tables of at most so many characters a line, if that is enough for them.
    ///
    /// # Errors
    /// `to` can't be written.
    pub fn write(&self, width: usize, to: &mut dyn fmt::Write) -> fmt::Result {
        for (name, fact) in &self.facts {
            writeln!(to, "{name:13} {fact}")?;
        }
        writeln!(to)?;
        let is_named = self.columns.iter().any(|column| column.name.is_some());
        let mut head = vec!["column", "name", "looks like", "nulls"];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for column in &self.columns {
            let name = column.name.as_ref();
            let name = name.map_or(String::new(), |name| cut(&shown(name), 3 * LEAST));
            let (number, kind) = (column.number.to_string(), column.kind.clone());
            rows.push(vec![number, name, kind, column.nulls.to_string()]);
        }
        if !is_named {
            head.remove(1);
            rows.iter_mut().for_each(|row| drop(row.remove(1)));
        }
        let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
        let left = head.iter().enumerate();
        let left: usize = left
            .map(|(at, head)| 2 + head.len().max(widest(at).unwrap_or(0)))
            .sum();
        let records = self.columns.iter().map(|column| column.first.len()).max();
        let (records, limit) = fitting(records.unwrap_or(0), width.saturating_sub(left));
        head.push("first records");
        head.resize(head.len() - 1 + records, "");
        for (row, column) in rows.iter_mut().zip(&self.columns) {
            let value = |at: usize| {
                let value = column.first.get(at);
                value.map_or("".into(), |value| visible(value))
            };
            row.extend((0..records).map(|at| cut(&value(at), limit)));
        }
        write_table(to, &head, &rows)
    }
}

/// How many of the records fit into so many characters, and how many of them each value may have.
fn fitting(records: usize, width: usize) -> (usize, usize) {
    let each = |records: usize| (width / records).saturating_sub(2);
    let fits = (1..=records).rev().find(|&records| each(records) >= LEAST);
    let records = fits.unwrap_or(records.min(1));
    (records, each(records.max(1)).max(LEAST))
}

/// At most so many characters of a text.
fn cut(text: &str, limit: usize) -> String {
    match text.chars().count() > limit {
        true => text.chars().take(limit - 1).chain(['…']).collect(),
        false => text.into(),
    }
}
