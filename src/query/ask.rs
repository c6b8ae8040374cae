//! What is asked: a query, before it is known what the input looks like.

use ahash::RandomState;

use crate::engine::config::Config;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::group::aggregate::OnError;
use crate::input::spans::Input;
use crate::level::Level;
use crate::query::accumulator::state::Takes;
use crate::query::accumulator::{ALL, named};
use crate::query::columns::Columns;
use crate::query::dialect::Dialect;
use crate::query::number::Number;
use crate::query::plan::{Asked, Plan, shape};

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
#[derive(Debug, Clone)]
pub struct Query {
    delimiter: u8,
    quote: Option<u8>,
    has_header: bool,
    nulls: Vec<Vec<u8>>,
    on_error: OnError,
    level: Option<Level>,
    keys: Vec<Columns>,
    aggregates: Vec<Asked>,
}

impl Query {
    /// Over fields between `delimiter`s, without quotes and header. Without an aggregate it counts.
    pub fn new(delimiter: u8) -> Query {
        Query {
            delimiter,
            quote: None,
            has_header: false,
            nulls: Vec::new(),
            on_error: OnError::Fail,
            level: Some(Level::detect()),
            keys: Vec::new(),
            aggregates: Vec::new(),
        }
    }

    /// The byte that quotes fields, as RFC 4180 has them.
    pub fn quote(self, quote: Option<u8>) -> Query {
        Query { quote, ..self }
    }

    /// Whether the first line of each file names the columns.
    pub fn header(self, has_header: bool) -> Query {
        Query { has_header, ..self }
    }

    /// One more value that is null, beside the empty one.
    pub fn null_value(mut self, value: impl Into<Vec<u8>>) -> Query {
        self.nulls.push(value.into());
        self
    }

    /// What to do about a malformed record.
    pub fn on_error(self, on_error: OnError) -> Query {
        Query { on_error, ..self }
    }

    /// The instructions that are used, the processor's best by default; without any, records are added one by one.
    pub fn level(self, level: Option<Level>) -> Query {
        Query { level, ..self }
    }

    /// One more column of the key, or several.
    pub fn key(mut self, columns: impl Into<Columns>) -> Query {
        self.keys.push(columns.into());
        self
    }

    /// One more aggregate, of a column or several; `count` may have none.
    ///
    /// # Errors
    /// There is no such aggregate, or it needs a column.
    pub fn aggregate(mut self, name: &str, columns: Option<Columns>) -> Result<Query> {
        let refused = |why| Error::new(ErrorKind::Usage, why);
        let Some(kind) = named(name) else {
            let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
            let names = names.join(", ");
            return Err(refused(format!(
                "there is no aggregate `{name}`, but {names}"
            )));
        };
        if columns.is_none() && kind.takes != Takes::Anything {
            return Err(refused(format!("`{name}` needs a column")));
        }
        self.aggregates.push(Asked { kind, columns });
        Ok(self)
    }

    /// Compiles the query for an input, whose first record says which columns there are. Waits for that record where the
    /// input begins with a pipe.
    ///
    /// # Errors
    /// There is no such column, or the first record can't be read.
    pub fn plan(&self, input: &Input, config: &Config) -> Result<Plan> {
        let refused = |why: &str| Error::new(ErrorKind::Usage, why);
        let dialect = Dialect::new(self.delimiter, self.quote).map_err(refused)?;
        let max_record = config.max_record;
        let shape = shape(input, dialect, self.has_header, self.on_error, max_record)?;
        let mut plan = Plan {
            framing: dialect.framing(),
            dialect,
            on_error: self.on_error,
            has_numeric_nulls: self.nulls.iter().any(|null| Number::read(null).is_ok()),
            nulls: self.nulls.clone(),
            shape,
            has_header: self.has_header,
            keys: Vec::new(),
            numbers: Vec::new(),
            aggregates: Vec::new(),
            names: Vec::new(),
            hasher: RandomState::new(),
            level: self.level,
        };
        for columns in &self.keys {
            plan.add_key(columns)?;
        }
        for asked in &self.aggregates {
            plan.add_aggregate(asked)?;
        }
        if self.aggregates.is_empty() {
            let kind = named("count").expect("it is one of them");
            plan.add_aggregate(&Asked {
                kind,
                columns: None,
            })?;
        }
        Ok(plan)
    }
}
