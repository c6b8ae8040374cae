//! A query becomes a plan: by what the first records of the input say.

use std::sync::Arc;

use ahash::RandomState;
use ringfold_read::{Config, Error, Input, Kind as ErrorKind, Result};

use crate::aggregate::named;
use crate::decimal::number::Number;
use crate::format::dialect::Dialect;
use crate::format::json::Paths;
use crate::format::repeats::Repeats;
use crate::format::sniff::{Delimiter, DoubtKind, Sample, Style};
use crate::plan::columns::Columns;
use crate::plan::head::Head;
use crate::plan::order::Order;
use crate::plan::part::{Form, QuotedPart};
use crate::plan::zoned::ZonedTimes;
use crate::plan::{Asked, Plan, Shape};
use crate::query::ask::{Item, Query};
use crate::query::explain::first_keys;
use crate::reject::rejects::{OnError, Rejecting};

/// A delimiter that is neither a quote nor begins a comment, for an input without a record.
const ANY: u8 = 0x1f;

impl Query {
    /// Compiles the query for an input, whose first record says which columns there are. Waits for that record where the
    /// input begins with a pipe.
    ///
    /// # Errors
    /// There is no such column, the names are too few or too many, or the first record can't be read.
    pub fn plan(&self, input: &Input, config: &Config) -> Result<Plan> {
        let refused = |why: &str| Error::new(ErrorKind::Usage, why);
        self.shown.check_precision()?;
        let sample = self.sample(input)?;
        let dialect = match &self.log {
            Some(pattern) => Dialect::of_log(pattern.clone()),
            None if self.is_json => {
                input.check_json_lines()?;
                Dialect::of_json(self.paths(input)?)
            }
            None => Dialect::new(sample.delimiter.unwrap_or(ANY), sample.quote)
                .and_then(|dialect| dialect.styled(&self.style))
                .map_err(refused)?
                .many_returns(sample.has(DoubtKind::CarriageReturns)),
        };
        let leaves_out = self.on_error != OnError::Fail;
        let has_header = self.has_header();
        let head = Head {
            dialect: dialect.clone(),
            has_header,
            leaves_out,
            skip_lines: self.style.skip_lines,
            has_separator_line: sample.has_separator_line,
            max_record: config.max_record,
        };
        let framing = dialect.framing();
        let first = input.sources().first();
        let shape = match (first, dialect.names().filter(|_| dialect.is_json())) {
            (Some(first), Some(names)) => Some(Shape {
                width: names.len(),
                header: Some(names.to_vec()),
                header_line: None,
                file: Arc::clone(first.name()),
            }),
            _ if self.is_pairs && !has_header => first.map(|first| Shape {
                width: 2,
                header: None,
                header_line: None,
                file: Arc::clone(first.name()),
            }),
            _ => head.shape(input)?,
        };
        let shape = shape.map(|shape| self.widened(shape, config.max_record));
        let width = shape.as_ref().map(|shape| shape.width);
        let form = Form {
            dialect: &dialect,
            framing: &*framing,
            width: width.filter(|_| !self.style.is_ragged),
        };
        let part = QuotedPart::of(input, &form)?;
        let framing = dialect.framing_of(part.as_ref().map(|part| part.begin));
        let mut plan = Plan {
            order: self.order(input, framing.is_stateful(), &sample),
            framing,
            part,
            dialect,
            rejecting: Rejecting::new(
                self.on_error,
                self.max_errors,
                self.keeps_rejects,
                !input.can_repeat(),
            ),
            is_ragged: self.style.is_ragged,
            grammar: self.grammar(),
            max_record: config.max_record,
            skip_lines: self.style.skip_lines,
            begins: head.begins(input)?,
            files: (input.sources().iter())
                .map(|source| Arc::clone(source.name()))
                .collect(),
            has_numeric_nulls: self.nulls.iter().any(|null| Number::read(null).is_ok()),
            nulls: self.nulls.clone(),
            shape,
            has_header,
            unread_names: None,
            has_separator_line: sample.has_separator_line,
            repeats: None,
            longer: sample.longer,
            time_zones: self.time_zones,
            zoned: ZonedTimes::default(),
            doubts: sample.doubts,
            filter: None,
            computed: Vec::new(),
            lookups: Vec::new(),
            shadowed: Vec::new(),
            keys: Vec::new(),
            cuts: Vec::new(),
            numbers: Vec::new(),
            times: Vec::new(),
            aggregates: Vec::new(),
            names: Vec::new(),
            shown: Vec::new(),
            key_titles: Vec::new(),
            titles: Vec::new(),
            asked: Vec::new(),
            fill: None,
            having: None,
            hidden: Vec::new(),
            precision: self.shown.precision,
            budget: self.shown.budget(config.cancellation.clone()),
            hasher: RandomState::new(),
            hash_key: self.hash_key,
            level: self.level,
            is_pairs: self.is_pairs,
        };
        let mut checked = Ok(());
        self.each_column(&mut |columns| {
            if checked.is_ok() && !self.is_pairs {
                checked = columns.check(config.max_record);
            }
        });
        checked.map_err(|why| refused(&why))?;
        for lookup in &self.lookups {
            plan.add_lookup(lookup)?;
        }
        for key in &self.keys {
            plan.add_key(key)?;
        }
        plan.key_titles.clone_from(&plan.names);
        let mut places = Vec::new();
        for asked in &self.aggregates {
            let estimates = self.is_approximate && asked.kind.is_estimate();
            let exact = asked.kind.exact().filter(|_| !estimates);
            let from = plan.aggregates.len();
            plan.add_aggregate(&Asked {
                kind: exact.unwrap_or(asked.kind),
                ..asked.clone()
            })?;
            places.push(from..plan.aggregates.len());
        }
        if self.aggregates.is_empty() {
            let kind = named("count").expect("it is one of them");
            plan.add_aggregate(&Asked::of(kind, None))?;
            plan.show(0..1);
        }
        for item in &self.items {
            match item {
                Item::Aggregate(at) => plan.show(places[*at].clone()),
                Item::Computed(computed) => {
                    let leaves = &self.aggregates;
                    let leaf = |text: &[u8]| {
                        let at = leaves.iter().position(|asked| asked.is_leaf(text))?;
                        Some(places[at].start)
                    };
                    plan.show_computed(computed, leaf)?;
                }
            }
        }
        if self.hash_key.fingerprint().is_some() && !plan.has_hashes() {
            return Err(refused(
                "a hash key is for estimates of distinct values, and none is asked for",
            ));
        }
        plan.want_numbers();
        plan.set_filter(&self.filters)?;
        plan.note_lookups();
        plan.set_zoned()?;
        plan.repeats = self.repeats(&plan);
        plan.asked = self.described(&plan);
        if !self.shown.names.is_empty() {
            plan.rename(&self.shown.names)?;
        }
        plan.set_fill(self.shown.fill.as_deref())?;
        plan.set_having(&self.shown.having)?;
        plan.unread_names = self.unread_names(input, &plan.dialect)?;
        Ok(plan)
    }

    /// The columns of JSON lines, each once.
    ///
    /// # Errors
    /// One has a number, or the input can't be read.
    fn paths(&self, input: &Input) -> Result<Paths> {
        let mut checked = Ok(());
        self.each_column(&mut |columns| {
            if checked.is_ok() {
                checked = columns.check_named();
            }
        });
        checked.map_err(|why| Error::new(ErrorKind::Usage, why))?;
        let known = match self.lookups.is_empty() {
            true => Vec::new(),
            false => first_keys(input)?,
        };
        Ok(Paths::new(self.column_names(&known)))
    }

    /// Of ragged records without a header, further ones may have columns that the first hasn't.
    fn widened(&self, shape: Shape, max_record: usize) -> Shape {
        if !self.style.is_ragged || shape.header.is_some() {
            return shape;
        }
        let mut width = shape.width;
        let mut add = |columns: &Columns| match columns {
            // A record has no more fields than bytes.
            Columns::Number(last) | Columns::Range(_, last) if *last <= max_record => {
                width = width.max(*last);
            }
            _ => {}
        };
        self.each_column(&mut add);
        self.filters
            .iter()
            .for_each(|filter| filter.each_column(&mut add));
        Shape { width, ..shape }
    }

    /// What tells headers that come again.
    fn repeats(&self, plan: &Plan) -> Option<Repeats> {
        let shape = plan
            .shape
            .as_ref()
            .filter(|_| !self.keeps_repeated_headers)?;
        let (line, names) = (shape.header_line.as_ref()?, shape.header.as_ref()?);
        let is_number = |name: &[u8]| plan.is_null(name) || plan.read_number(name).is_ok();
        let mut numbers = plan.numbers.iter().filter_map(|&column| names.get(column));
        let is_noticed = plan.filter.is_none() && numbers.any(|name| !is_number(name));
        Some(Repeats::new(line, is_noticed))
    }

    /// What the first records say of all.
    fn sample(&self, input: &Input) -> Result<Sample> {
        if self.log.is_some() || self.is_json {
            return Ok(Sample::default());
        }
        if let (true, Delimiter::Named(delimiter)) = (self.is_pairs, self.delimiter) {
            return Ok(Sample {
                delimiter: Some(delimiter),
                quote: self.style.quote.flatten(),
                ..Sample::default()
            });
        }
        if self.delimiter == Delimiter::Sniffed {
            input.check_json_lines()?;
        }
        self.style().look(input, self.delimiter)
    }

    /// The names in the first record, where it looks like names and nobody says whether it is a header.
    fn unread_names(&self, input: &Input, dialect: &Dialect) -> Result<Option<Vec<Vec<u8>>>> {
        let is_told = self.has_header.is_some() || self.has_header() || dialect.names().is_some();
        let is_told = is_told || self.is_pairs;
        match is_told {
            true => Ok(None),
            false => self.style().names(input, dialect),
        }
    }

    fn style(&self) -> Style {
        Style {
            has_header: self.has_header(),
            ..self.style.clone()
        }
    }

    /// What must be read in order from the start, because a pipe can't be read again.
    fn order(&self, input: &Input, is_multiline: bool, sample: &Sample) -> Order {
        let has_stream = input.sources().iter().any(|source| source.len().is_none());
        let has_comments = !self.style.comment.is_empty();
        let has_preamble = self.style.skip_lines > 0
            || sample.has_separator_line
            || self.has_header() && (has_comments || sample.has_empty_lines);
        let may_be_cut = self.on_error != OnError::Fail || has_comments;
        let can_repeat = input.can_repeat();
        // The first one was looked at; a block of a further one may be the empty line before its header.
        let mut further = input.sources().iter().skip(1);
        let may_be_empty = self.has_header() && further.any(|source| !source.can_repeat());
        let is_wanted =
            has_stream && has_preamble || may_be_empty || !can_repeat && is_multiline && may_be_cut;
        Order::new(is_wanted, can_repeat)
    }
}
