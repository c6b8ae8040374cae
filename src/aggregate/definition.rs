//! What is known of an aggregate by its name, before there is a state.

use std::borrow::Cow;
use std::ops::Deref;

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::share::Share;
use crate::aggregate::state::{
    Argument, Digest, DigestRow, Outcome, Ratio, State, StateColumn, States, add_all,
};
use crate::expression::function::Function;
use crate::partial::column::Gathered;
use crate::partial::description::{Column, Rule};

/// What is looked for in all values of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statistic {
    /// The number at a share of all.
    Percentile(Share),
    /// How many there are.
    Distinct,
    /// The most frequent one.
    Mode,
    List(List),
}

/// A list of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// So many of the most frequent ones, with their counts; of several that are there as often the least come first.
    Top(u32),
    /// All different ones.
    Values,
    /// The same with their counts.
    Histogram,
}

/// An aggregate as a query asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    definition: &'static Definition,
    /// The share of a percentile.
    pub(crate) share: Option<Share>,
    /// How many values a list of the most frequent ones has.
    top: Option<u32>,
}

impl Kind {
    pub(super) const fn percentile(definition: &'static Definition, share: Share) -> Kind {
        Kind {
            definition,
            share: Some(share),
            top: None,
        }
    }

    pub(super) const fn top(definition: &'static Definition, top: u32) -> Kind {
        Kind {
            definition,
            share: None,
            top: Some(top),
        }
    }

    pub(crate) fn name(self) -> Cow<'static, str> {
        if let Some(top) = self.top {
            return format!("{}{top}", self.definition.name).into();
        }
        match (self.share, self.definition.share) {
            (Some(share), None) => format!("{}{share}", self.definition.name).into(),
            _ => self.definition.name.into(),
        }
    }

    /// The same aggregate, exact whatever the size of a group, if it isn't that anyway.
    pub(crate) fn exact(self) -> Option<Kind> {
        self.with(self.definition.exact)
    }

    /// The same aggregate of times.
    pub(crate) fn of_times(self) -> Option<Kind> {
        self.with(self.definition.of_times)
    }

    /// What keeps that which is found among all values.
    pub(crate) fn result(self) -> Option<Kind> {
        self.with(self.definition.result)
    }

    /// What is looked for among all values.
    pub(crate) fn statistic(self) -> Option<Statistic> {
        let statistic = self.of_values?;
        let top = self.top.map(|top| Statistic::List(List::Top(top)));
        Some(
            top.or(self.share.map(Statistic::Percentile))
                .unwrap_or(statistic),
        )
    }

    fn with(self, definition: Option<&'static Definition>) -> Option<Kind> {
        definition.map(|definition| Kind { definition, ..self })
    }

    /// Whether an aggregate of the same column can have the same states.
    pub(crate) fn shares_states(self, other: Kind) -> bool {
        match (self.of_values, other.of_values) {
            (Some(_), Some(_)) => self.argument == other.argument,
            (None, None) => self.share.is_some() && other.share.is_some(),
            _ => false,
        }
    }
}

impl From<&'static Definition> for Kind {
    fn from(definition: &'static Definition) -> Kind {
        Kind {
            definition,
            share: definition.share,
            top: None,
        }
    }
}

impl Deref for Kind {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.definition
    }
}

/// What is known of an aggregate, or of all percentiles.
#[derive(Debug)]
pub(crate) struct Definition {
    /// What its name begins with, if it is one of percentiles.
    pub(crate) name: &'static str,
    pub(crate) argument: Argument,
    /// See [`State::PARTS`].
    pub(crate) parts: Option<&'static [Part]>,
    /// See [`State::COLUMNS`].
    pub(crate) columns: &'static [StateColumn],
    /// See [`State::DIGEST`].
    pub(crate) digest: Option<Digest>,
    /// See [`add_all`].
    pub(crate) add_all: fn(&mut [&mut dyn States], &[DigestRow]) -> isize,
    /// Makes the states of no groups.
    pub(crate) states: fn() -> Box<dyn States>,
    outcome: fn(&Kept, u32) -> Outcome<'static>,
    encode: fn(&Kept, &mut [Gathered]),
    /// See [`State::RATIO`].
    ratio: Option<fn(&Kept) -> Ratio>,
    /// The share of a median.
    share: Option<Share>,
    /// What it finds among all values.
    pub(crate) of_values: Option<Statistic>,
    /// What keeps that.
    result: Option<&'static Definition>,
    /// The same aggregate, exact whatever the size of a group, if it isn't that anyway.
    exact: Option<&'static Definition>,
    /// The same aggregate of times.
    of_times: Option<&'static Definition>,
    /// What makes one value of several columns.
    pub(crate) of_several: Option<&'static Function>,
    /// See [`State::IS_QUOTIENT`].
    pub(crate) is_quotient: bool,
    /// Its outcomes are lists in JSON.
    pub(crate) is_list: bool,
}

impl Definition {
    pub(super) const fn of<S: State>(name: &'static str) -> Definition {
        Definition {
            name,
            argument: S::ARGUMENT,
            parts: S::PARTS,
            columns: S::COLUMNS,
            digest: S::DIGEST,
            add_all: add_all::<Vec<S>>,
            states: || Box::new(Vec::<S>::new()),
            outcome: outcome::<S>,
            encode: |kept, to| of_kept::<S>(kept).encode(to),
            ratio: S::RATIO,
            share: None,
            of_values: None,
            result: None,
            exact: None,
            of_times: None,
            of_several: None,
            is_quotient: S::IS_QUOTIENT,
            is_list: false,
        }
    }

    /// The same, where it isn't of times.
    pub(super) const fn of_times(mut self, of_times: &'static Definition) -> Definition {
        self.of_times = Some(of_times);
        self
    }

    /// The same, whose outcomes are lists in JSON.
    pub(super) const fn of_lists(mut self) -> Definition {
        self.is_list = true;
        self
    }

    /// The same of several columns, too.
    pub(super) const fn of_several(mut self, of_several: &'static Function) -> Definition {
        self.of_several = Some(of_several);
        self
    }

    /// A median.
    pub(super) const fn of_half(mut self) -> Definition {
        self.share = Some(Share::HALF);
        self
    }

    /// # Errors
    /// Why it can't be of so many columns, as it is called.
    pub(crate) fn check_columns(&self, name: &str, count: usize) -> Result<(), String> {
        match (count, self.of_several) {
            (0, None) if self.argument != Argument::Anything => {
                Err(format!("`{name}` needs a column"))
            }
            (0 | 1, Some(function)) if !function.takes_one() || count == 0 => {
                Err(format!("`{name}` is written {}", function.usage))
            }
            (2.., None) => Err(format!("`{name}` is of one column")),
            _ => Ok(()),
        }
    }

    /// Whether it is an estimate of large groups.
    pub(crate) fn is_estimate(&self) -> bool {
        self.columns.iter().any(|of| of.rule.is_estimate())
    }

    /// Of all values, which such states have.
    pub(super) const fn of_values<S: States + Default>(
        self,
        argument: Argument,
        statistic: Statistic,
        result: &'static Definition,
    ) -> Definition {
        Definition {
            argument,
            parts: None,
            columns: const { &[StateColumn::of(Rule::Values)] },
            digest: Some(Digest::Values),
            add_all: add_all::<S>,
            states: || Box::<S>::default(),
            ratio: None,
            of_values: Some(statistic),
            result: Some(result),
            ..self
        }
    }

    /// The same, where exactness isn't asked for.
    pub(super) const fn exactly(mut self, exact: &'static Definition) -> Definition {
        self.exact = Some(exact);
        self
    }

    /// Adds the state of a group of which this is known to its columns, where there are [`Definition::parts`].
    pub(crate) fn encode(&self, kept: &Kept, to: &mut [Gathered]) {
        (self.encode)(kept, to);
    }

    /// What it is of a group of which this is known, where it is no more than a ratio, unless it is null.
    pub(crate) fn ratio(&self, kept: &Kept) -> Option<Ratio> {
        let ratio = self.ratio?;
        let is_null = kept.known == 0 && self.argument == Argument::Numbers;
        (!is_null).then(|| ratio(kept))
    }

    /// The outcome of a group of which this is known, where there are [`Definition::parts`].
    pub(crate) fn outcome(&self, kept: &Kept, scale: u32) -> Outcome<'static> {
        (self.outcome)(kept, scale)
    }
}

/// An aggregate among others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) kind: Kind,
    /// Whose states it has: its own place among the aggregates, or that of one before.
    pub(crate) owner: usize,
}

impl Slot {
    /// Its columns in a partial, where numbers have a scale of `scale`. Aggregates that share states have as many there as
    /// others: a partial is merged by those who know nothing of that.
    pub(crate) fn columns(&self, scale: u32) -> Vec<Column> {
        let column = |of: &StateColumn| match of.rule {
            Rule::Values => Column {
                rule: of.rule,
                scale: self.owner as u32,
            },
            _ => of.column(scale),
        };
        self.kind.columns.iter().map(column).collect()
    }
}

fn of_kept<S: State>(kept: &Kept) -> S {
    let mut state = S::default();
    state.absorb(kept);
    state
}

fn outcome<S: State>(kept: &Kept, scale: u32) -> Outcome<'static> {
    match of_kept::<S>(kept).finish(scale) {
        Outcome::Null => Outcome::Null,
        Outcome::Number(exact) => Outcome::Number(exact),
        Outcome::Quotient { value, digits } => Outcome::Quotient { value, digits },
        Outcome::Text(_) | Outcome::Time(_) => unreachable!("a text of numbers"),
    }
}
