//! What all records of an input hold, column by column: a query whose only aggregate is the profile of each column.

mod table;

use ringfold_read::{Config, Input, Result};

use crate::aggregate::profile;
use crate::aggregate::state::{Numeral, Outcome, Rounding, text_of};
use crate::answer::Answer;
use crate::decimal::number::Number;
use crate::plan::columns::Columns;
use crate::plan::{Asked, Plan};
use crate::query::ask::{Item, Query};
use crate::query::explain::{Values, keys_of_first};
use crate::query::overview::{Column, Overview};
use crate::report::grid::{Cell, Digits, Rows};
use crate::sketch::profile::{Class, Profile};

/// Parts of a histogram.
const PARTS: usize = 8;
/// How many of the most frequent values are named.
const TOP: usize = 3;

/// An input that is to be described: its first records say what its columns are.
pub struct Describe {
    /// What the first records say.
    pub overview: Overview,
    /// The job whose answer [`Describe::of`] takes.
    pub plan: Plan,
}

/// What the columns of an input hold. Its rows are the columns.
pub struct Description {
    /// How records are written, what the columns are over all records, and how many records there are.
    pub overview: Overview,
    /// The columns.
    pub columns: Vec<ColumnDescription>,
    /// Malformed records that were left out.
    pub skipped: u64,
    filtered: u64,
    /// The columns of the file with the description, by name, and their cells.
    names: Vec<Vec<u8>>,
    rows: Vec<Vec<Owned>>,
}

/// What a column holds.
#[derive(Debug, Clone)]
pub struct ColumnDescription {
    /// What most of its values are: all of them, but for `others`.
    pub values: Values,
    /// How many there are.
    pub count: u64,
    /// Records without a value.
    pub nulls: u64,
    /// Values that are of another kind than most, and aren't in any number of the description but those that count values.
    pub others: u64,
    /// File and first byte of the record with the first of them, and what it is.
    pub first_other: Option<((u32, u64), Vec<u8>)>,
    /// How many different values there are.
    pub distinct: u64,
    /// Whether that is an estimate, within 2% in 95 of 100 cases.
    pub is_distinct_estimated: bool,
    /// Whether the quartiles are estimates, within 0.8% of the numbers next to them, and the histogram is.
    pub is_histogram_estimated: bool,
    least: Owned,
    greatest: Owned,
    mean: Owned,
    quartiles: [Owned; 3],
    /// The most frequent values, unless there are too many values to know.
    top: Option<Vec<(Vec<u8>, u64)>>,
    /// How many values lie in each part between the least and the greatest.
    parts: Option<[u64; PARTS]>,
    first: Vec<u8>,
}

/// A cell that is kept.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Null,
    Text(Vec<u8>),
    Number(Digits<'static>),
}

impl Owned {
    fn cell(&self) -> Cell<'_> {
        match self {
            Owned::Null => Cell::Null,
            Owned::Text(text) => Cell::Text(text),
            Owned::Number(digits) => Cell::Number(digits.clone()),
        }
    }

    fn count(count: u64) -> Owned {
        Owned::Number(Digits::decimal(count.into(), 0))
    }

    fn number(outcome: &Outcome<'_>, rounding: Rounding) -> Owned {
        match outcome.printed(rounding) {
            Some(Numeral::Decimal(digits)) => Owned::Number(digits),
            Some(Numeral::Special(special)) => Owned::Text(special.text().into()),
            None => Owned::Null,
        }
    }
}

impl Query {
    /// Prepares a description of an input: of each column its type, nulls, different values, least, greatest, mean, quartiles
    /// and most frequent values, over all records. The first records say how they are written, unless the query does; its
    /// conditions hold, and it may ask for nothing else.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let text = &b"city,price\nBern,1.50\nOslo,20\nBern,2.25\n"[..];
    /// let (input, config) = (Input::memory([text]), Config::default());
    /// let describe = Query::new(b',').describe(&input, &config)?;
    /// let (answer, _) = fold(&input, &config, &describe.plan)?;
    /// let description = describe.of(&answer)?;
    /// assert_eq!(description.columns[0].distinct, 2);
    /// let mut json = Vec::new();
    /// write_grid(description.names(), &description, GridFormat::Ndjson, None, &mut json).unwrap();
    /// assert!(json.starts_with(br#"{"column":1,"name":"city","type":"text","nulls":0"#));
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first records can't be read as columns.
    pub fn describe(&self, input: &Input, config: &Config) -> Result<Describe> {
        let mut asked = self.clone();
        if self.first_name().is_some() {
            asked = asked.header(true);
        }
        let overview = asked.look(input, config, keys_of_first)?;
        let mut query = overview.query.without_columns();
        query.filters.clone_from(&self.filters);
        let all = match query.is_json() {
            true => overview
                .columns
                .iter()
                .map(|column| {
                    let name = column.name.clone().unwrap_or_default();
                    Columns::Name(name)
                })
                .collect(),
            false => vec![Columns::Range(1, overview.columns.len())],
        };
        for columns in all {
            query.items.push(Item::Aggregate(query.aggregates.len()));
            query
                .aggregates
                .push(Asked::of(profile::kind(), Some(columns)));
        }
        let plan = query.plan(input, config)?;
        Ok(Describe { overview, plan })
    }
}

impl Describe {
    /// The description, of the plan's answer.
    ///
    /// # Errors
    /// The answer was written to a file, because it outgrew the memory, and can't be read back.
    pub fn of(self, answer: &Answer) -> Result<Description> {
        let Describe { mut overview, plan } = self;
        let rounding = Rounding::of(true, None, plan.grammar.is_float);
        let columns = overview.columns.iter().enumerate();
        let nothing = Profile::default();
        let described = answer.only_group(|groups, group| {
            let profiles = columns
                .clone()
                .map(|(at, _)| groups.table().state(group, at));
            let profiles = profiles.map(|profile| profile.expect("the state of a profile"));
            profiles
                .map(|profile| column_of(profile, answer.rows, rounding))
                .collect()
        })?;
        let columns: Vec<ColumnDescription> = described.unwrap_or_else(|| {
            columns
                .map(|_| column_of(&nothing, answer.rows, rounding))
                .collect()
        });
        overview.records = usize::try_from(answer.rows).unwrap_or(usize::MAX);
        for (column, of) in overview.columns.iter_mut().zip(&columns) {
            column.values = of.values;
            column.distinct = usize::try_from(of.distinct).unwrap_or(usize::MAX);
        }
        let rows = overview.columns.iter().zip(&columns);
        Ok(Description {
            names: names(),
            rows: rows.map(|(column, of)| of.row(column)).collect(),
            columns,
            overview,
            skipped: answer.skipped,
            filtered: answer.filtered,
        })
    }
}

/// What a profile says of a column.
fn column_of(profile: &Profile, records: u64, rounding: Rounding) -> ColumnDescription {
    let count = |class| profile.of(class).count;
    let (numbers, times) = (count(Class::Number), count(Class::Time));
    // What is half texts is text, whatever else it holds.
    let class = match (numbers, times, count(Class::Text)) {
        (numbers, times, texts) if texts >= numbers.max(times) => Class::Text,
        _ if times > numbers => Class::Time,
        _ => Class::Number,
    };
    let classes = [Class::Number, Class::Time, Class::Text];
    let others = classes
        .into_iter()
        .filter(|other| class != Class::Text && *other != class);
    let first_other = others
        .clone()
        .filter_map(|other| profile.of(other).first.clone());
    let extreme = |at: usize| {
        let Some(both) = &profile.of(class).extremes else {
            return Owned::Null;
        };
        match class {
            Class::Text => Owned::Text(both[at].clone()),
            Class::Time => Owned::Text(text_of(&both[at]).to_vec()),
            Class::Number => {
                let number = Number::of_ordered(&both[at]).expect("a number's bytes");
                let exact = number.exact().with_scale(profile.decimals);
                Owned::number(&Outcome::Number(exact), rounding)
            }
        }
    };
    let is_number = class == Class::Number;
    let quartiles = profile::quartiles(profile).map(|quartile| match is_number {
        true => Owned::number(&quartile, rounding),
        false => Owned::Null,
    });
    let sizes = profile.sizes(class);
    let firsts = classes
        .iter()
        .filter_map(|class| profile.of(*class).first.as_ref());
    let known = profile.frequencies.as_ref();
    ColumnDescription {
        values: match class {
            _ if profile.count() == 0 => Values::Nulls,
            Class::Number => Values::Numbers(profile.decimals),
            Class::Time => Values::Times,
            Class::Text => Values::Texts,
        },
        count: profile.count(),
        nulls: records.saturating_sub(profile.count()),
        others: others.map(count).sum(),
        first_other: first_other.min(),
        distinct: profile.distinct.count(),
        is_distinct_estimated: !profile.distinct.is_exact(),
        is_histogram_estimated: sizes.is_some_and(|sizes| !sizes.is_exact()),
        least: extreme(0),
        greatest: extreme(1),
        mean: match is_number {
            true => Owned::number(&profile::mean(profile), rounding),
            false => Owned::Null,
        },
        quartiles,
        top: known.map(|known| {
            let most = known.most(TOP).into_iter();
            most.map(|(value, count)| (value.to_vec(), count)).collect()
        }),
        parts: sizes.and_then(|sizes| sizes.parts()),
        first: firsts
            .min()
            .map(|(_, text)| text.clone())
            .unwrap_or_default(),
    }
}

/// The names of a description's columns.
fn names() -> Vec<Vec<u8>> {
    let fixed = [
        "column", "name", "type", "nulls", "other", "distinct", "least", "greatest", "mean", "p25",
        "median", "p75",
    ];
    let mut names: Vec<String> = fixed.map(String::from).to_vec();
    for at in 1..=TOP {
        names.extend([format!("top{at}"), format!("top{at}_count")]);
    }
    names.extend(["histogram".into(), "estimates".into()]);
    names.into_iter().map(String::into_bytes).collect()
}

impl ColumnDescription {
    /// What its type is called.
    fn type_name(&self) -> &'static str {
        match self.values {
            Values::Nulls => "empty",
            Values::Texts => "text",
            Values::Times => "time",
            Values::Numbers(0) => "integer",
            Values::Numbers(_) => "decimal",
        }
    }

    pub(crate) fn has_estimated_quartiles(&self) -> bool {
        self.is_histogram_estimated && matches!(self.values, Values::Numbers(_))
    }

    /// Its row.
    fn row(&self, column: &Column) -> Vec<Owned> {
        let name = column.name.as_ref();
        let mut row = vec![
            Owned::count(column.number as u64),
            name.map_or(Owned::Null, |name| Owned::Text(name.clone())),
            Owned::Text(self.type_name().into()),
            Owned::count(self.nulls),
            Owned::count(self.others),
            Owned::count(self.distinct),
            self.least.clone(),
            self.greatest.clone(),
            self.mean.clone(),
        ];
        row.extend(self.quartiles.iter().cloned());
        for at in 0..TOP {
            row.extend(match self.top.as_ref().and_then(|top| top.get(at)) {
                Some((value, count)) => [Owned::Text(value.clone()), Owned::count(*count)],
                None => [Owned::Null, Owned::Null],
            });
        }
        row.push(self.parts.map_or(Owned::Null, |parts| {
            Owned::Text(parts.map(|count| count.to_string()).join(" ").into())
        }));
        let estimates = [
            (self.is_distinct_estimated, "distinct"),
            (self.has_estimated_quartiles(), "p25 median p75"),
            (self.is_histogram_estimated, "histogram"),
        ];
        let estimates = estimates.iter().filter(|(is_one, _)| *is_one);
        let estimates: Vec<&str> = estimates.map(|(_, name)| *name).collect();
        row.push(match estimates.is_empty() {
            true => Owned::Null,
            false => Owned::Text(estimates.join(" ").into()),
        });
        row
    }
}

impl Description {
    /// The names of its columns.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Whether keys of JSON lines that only later records have aren't among its columns.
    pub fn has_more_keys(&self) -> bool {
        self.overview.has_more_keys
    }

    /// The same with histograms that are drawn, for people.
    #[must_use]
    pub fn drawn(mut self, is_ascii: bool) -> Description {
        let at = self.names.iter().position(|name| name == b"histogram");
        for (row, of) in self.rows.iter_mut().zip(&self.columns) {
            if let (Some(at), Some(parts)) = (at, &of.parts) {
                row[at] = Owned::Text(table::drawn(parts, is_ascii).into());
            }
        }
        self
    }

    /// How a column is called in a sentence.
    #[cfg(feature = "cli")]
    pub(crate) fn called(&self, at: usize) -> String {
        let column = &self.overview.columns[at];
        match &column.name {
            Some(name) => format!("`{}`", crate::decimal::number::shown(name)),
            None => column.number.to_string(),
        }
    }
}

impl Rows for Description {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        cells.clear();
        cells.extend(self.rows[at].iter().map(Owned::cell));
    }
}
