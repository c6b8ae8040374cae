//! Keys and aggregates as they are written: `time@hour`, `sum:price`, `sum(price * qty) as revenue`.

use std::borrow::Cow;

use ringfold_read::{Error, Kind as ErrorKind, Result};

use crate::aggregate::composed::composed_named;
use crate::aggregate::named;
use crate::aggregate::values::{TOP, TOP_MAX};
use crate::answer::scope::{AGGREGATES, COUNT_IF};
use crate::expression::Expression;
use crate::expression::item::{AggregateText, aggregate, alias};
use crate::expression::leaf::Composed;
use crate::plan::columns::Columns;
use crate::plan::shown::ComputedItem;
use crate::plan::{Asked, Key};
use crate::query::ask::{Item, Query};
use crate::refusal::{AGGREGATE, KEY};

impl Query {
    /// One more column of the key, or several, as docs/query.md says: `city`, `2-4`, `time@hour`, `lower(city) as town`.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::report::grid::{GridFormat, write_grid};
    /// use ringfold::{Config, Input, fold};
    ///
    /// let text = &b"city,price,qty\nBern,1.50,2\nOslo,20,1\nBERN,2.25,4\n"[..];
    /// let (input, config) = (Input::memory([text]), Config::default());
    /// let query = Query::new(b',')
    ///     .key_text("lower(city) as town")?
    ///     .aggregate_text("sum(price * qty) as revenue")?
    ///     .aggregate_text("count_if(qty > 1)")?;
    /// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
    /// let mut csv = Vec::new();
    /// write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
    /// assert_eq!(csv, b"town,revenue,count_if(qty > 1)\nbern,12.00,2\noslo,20.00,0\n");
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// It can't be understood.
    pub fn key_text(mut self, item: &str) -> Result<Query> {
        let (text, name) = alias(item);
        if let (None, Some(time)) = (&name, Columns::read_time(item)?) {
            let mut query = self.with_key(time.columns, time.clock, Some(time.unit));
            let key = query.keys.last_mut().expect("it was added");
            key.zone = time.zone;
            return Ok(query);
        }
        let read = Columns::read(text)?;
        let value = self.value_of(text, &read, name.is_some(), KEY);
        let columns = match value.is_some() {
            true => Columns::Name(item.into()),
            false => read,
        };
        self.keys.push(Key {
            columns,
            value,
            name,
            clock: None,
            unit: None,
            zone: None,
        });
        Ok(self)
    }

    /// One more aggregate as docs/query.md says: `count`, `sum:price`, `sum(price) filter (where qty > 1) as dear`.
    ///
    /// # Errors
    /// It can't be understood.
    pub fn aggregate_text(self, item: &str) -> Result<Query> {
        let found = aggregate(item);
        if let Some(found) = found
            .as_ref()
            .filter(|found| (AGGREGATES.is_one)(found.name))
        {
            return self.called(found);
        }
        let (text, name) = alias(item);
        let is_short =
            matches!((item.find(':'), item.find('(')), (Some(colon), Some(open)) if colon < open);
        match Expression::of_aggregates(text, AGGREGATE, &AGGREGATES) {
            Ok((value, leaves)) if !leaves.is_empty() => return self.computed(value, name, leaves),
            Err(error) if item.contains('(') && !is_short => return Err(error),
            _ => {}
        }
        if let Some(found) = found {
            return self.called(&found);
        }
        let (kind, (text, name)) = match item.split_once(':') {
            Some((kind, columns)) => (Some(kind), alias(columns)),
            None => (None, alias(item)),
        };
        if let Some(composed) = kind.and_then(composed_named) {
            return self.composed_of_column(composed, text, name);
        }
        let mut query = match kind.map(|kind| (kind, text)) {
            Some((kind, columns)) if columns.ends_with("@time") => {
                let columns = columns.strip_suffix("@time").expect("it ends so");
                self.aggregate_times(kind, Columns::read(columns)?)?
            }
            Some((kind, columns)) => {
                let read = Columns::read(columns)?;
                let value = self.value_of(columns, &read, false, AGGREGATE);
                let mut query = self.aggregate(kind, Some(read))?;
                let asked = query.aggregates.last_mut().expect("it was added");
                asked.value = value;
                query
            }
            None => self.aggregate(text, None)?,
        };
        let asked = query.aggregates.last_mut().expect("it was added");
        let length = kind.map_or(0, |kind| kind.len() + 1) + text.len();
        (asked.name, asked.text) = (name, item[..length].into());
        Ok(query)
    }

    /// The short form of an aggregate of one column that is composed of others.
    fn composed_of_column(
        self,
        composed: &Composed,
        text: &str,
        name: Option<Vec<u8>>,
    ) -> Result<Query> {
        let read = Columns::read(text)?;
        let (argument, label) = match (self.value_of(text, &read, false, AGGREGATE), &read) {
            (None, Columns::Number(number)) => (format!("${number}"), text.into()),
            (None, Columns::Name(name)) => {
                let name = String::from_utf8_lossy(name);
                (
                    format!("\"{}\"", name.replace('"', "\"\"")),
                    name.into_owned(),
                )
            }
            (_, _) => (text.into(), text.into()),
        };
        let name = name.unwrap_or_else(|| format!("{}_{label}", composed.name).into());
        let text = format!("{}({argument})", composed.name);
        let (value, leaves) = Expression::of_aggregates(&text, AGGREGATE, &AGGREGATES)?;
        self.computed(value, Some(name), leaves)
    }

    /// A value that is computed of aggregates.
    fn computed(
        mut self,
        value: Expression,
        name: Option<Vec<u8>>,
        leaves: Vec<String>,
    ) -> Result<Query> {
        for leaf in leaves {
            if self
                .aggregates
                .iter()
                .any(|asked| asked.is_leaf(leaf.as_bytes()))
            {
                continue;
            }
            let found = aggregate(&leaf).expect("an aggregate was read");
            self = self.called(&found)?;
            self.items.pop();
        }
        self.items
            .push(Item::Computed(ComputedItem { value, name }));
        Ok(self)
    }

    /// An aggregate with parentheses.
    fn called(mut self, found: &AggregateText<'_>) -> Result<Query> {
        let is_count_if = found.name.eq_ignore_ascii_case(COUNT_IF);
        let condition = match (is_count_if, found.filter) {
            (true, Some(_)) => {
                let why = "count_if has its condition between the parentheses";
                return Err(Error::new(ErrorKind::Usage, why));
            }
            (true, None) => Some(found.argument),
            (false, filter) => filter,
        };
        let filter = condition.map(|text| Expression::condition(text, AGGREGATE));
        let is_top = found.name.eq_ignore_ascii_case(TOP);
        let (name, arguments): (Cow<'_, str>, _) = match (is_count_if, &found.arguments[..]) {
            (true, _) => ("count".into(), &[][..]),
            (false, [count, of @ ..]) if is_top => {
                let name = format!("{TOP}{count}");
                if named(&name).is_none() || of.len() != 1 {
                    let why = format!("`{TOP}` is written {TOP}(3, x), with up to {TOP_MAX}");
                    return Err(Error::new(ErrorKind::Usage, why));
                }
                (name.into(), of)
            }
            (false, ["" | "*"]) => (found.name.into(), &[][..]),
            (false, arguments) => (found.name.into(), arguments),
        };
        let kind = Query::kind(&name, arguments.len())?;
        let value = match (arguments, kind.of_several) {
            ([], _) => None,
            ([_, _, ..], Some(function)) => {
                Some(Expression::call(function, found.argument, AGGREGATE))
            }
            ([one, ..], _) => Some(Expression::value(one, AGGREGATE)),
        };
        let value = value.transpose()?;
        self.items.push(Item::Aggregate(self.aggregates.len()));
        self.aggregates.push(Asked {
            value,
            filter: filter.transpose()?,
            name: found.alias.clone(),
            text: found.text.into(),
            ..Asked::of(kind, None)
        });
        Ok(self)
    }

    /// The value that an item may be, if it isn't plainly a column.
    pub(super) fn value_of(
        &self,
        text: &str,
        read: &Columns,
        has_alias: bool,
        setting: ringfold_read::Setting,
    ) -> Option<Expression> {
        let is_name = matches!(read, Columns::Name(_)) && !text.starts_with('"');
        if !(is_name || has_alias) || matches!(read, Columns::Number(_) | Columns::Range(..)) {
            return None;
        }
        // Keys of JSON lines may have any letters: `content-type`, `a/b`.
        if self.is_json && !text.contains(['(', ' ', '@']) {
            return None;
        }
        // What can't be understood may be a name of the header.
        let value = Expression::value(text, setting).ok()?;
        (has_alias || !value.is_column()).then_some(value)
    }
}
