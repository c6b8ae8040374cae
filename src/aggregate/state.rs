//! What an aggregate is: its states, and how they grow, merge and end.

use std::any::Any;
use std::borrow::Cow;
use std::ops::Deref;

use ringfold_read::internals::prefetch;

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::share::Share;
use crate::decimal::number::{Exact, Number, Special};
use crate::decimal::quotient::{Quotient, short_quotient};
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::{Column, RANK_BYTES, Rule};
use crate::report::grid::Digits;
use crate::sketch::distinct::HashKey;

/// What an aggregate takes of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The row, or of a column each value that isn't null.
    Anything,
    /// A column's values as bytes.
    Bytes,
    /// A column's values as numbers.
    Numbers,
}

/// What a state makes of a value, if 64 bits are all that it needs of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Digest {
    /// The hash of its bytes under the query's key.
    Hash,
    /// Of many numbers in units of `10^-scale`, as long as there is room for what it makes of them.
    Numbers(fn(numbers: &[i64], scale: u32, to: &mut [u64])),
    /// The value itself, as the table has it (`bag`).
    Values,
}

/// The digest of a value, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DigestRow {
    /// The number of the states, and that of the group among them.
    pub(crate) states: u32,
    pub(crate) group: u32,
    pub(crate) digest: u64,
}

/// A value that isn't null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) bytes: &'a [u8],
    /// Set where an aggregate takes numbers.
    pub(crate) number: Number,
    /// What its bytes are hashed with.
    pub(crate) hash_key: &'a HashKey,
    /// File and first byte of its record: the place in the input.
    pub(crate) place: (u32, u64),
}

/// What is known in the end, exactly. Outcomes of one aggregate are ordered by value.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome<'a> {
    Null,
    Text(&'a [u8]),
    /// A time's rank, and its text.
    Time(&'a [u8]),
    Number(Exact),
    Quotient {
        value: Quotient,
        /// How many digits after the point are printed unless others are asked for: at least so many, and three
        /// significant ones.
        digits: u32,
    },
}

/// How a number is rounded for print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// As its aggregate gives it.
    Own,
    /// To so many digits after the point, half away from zero.
    Digits(u32),
    /// The same, half towards +infinity: as the One Billion Row Challenge has it.
    Up(u32),
    /// The same of a mean that is computed in doubles of tenths.
    OfDoubles(u32),
    /// To the nearest double, of which the shortest form is printed.
    Double,
}

impl Rounding {
    /// Of an aggregate that computes on numbers or doesn't, with these digits if they are asked for.
    pub(crate) fn of(is_numeric: bool, digits: Option<u32>, is_float: bool) -> Rounding {
        match digits {
            _ if !is_numeric => Rounding::Own,
            Some(digits) => Rounding::Digits(digits),
            None if is_float => Rounding::Double,
            None => Rounding::Own,
        }
    }
}

/// What is printed of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Numeral {
    Decimal(Digits<'static>),
    Special(Special),
}

impl Numeral {
    pub(crate) fn text(&self) -> &str {
        match self {
            Numeral::Decimal(digits) => digits,
            Numeral::Special(special) => special.text(),
        }
    }
}

impl Outcome<'_> {
    /// What is printed, if it is a number.
    pub(crate) fn printed(&self, rounding: Rounding) -> Option<Numeral> {
        let exact = match (self, rounding) {
            (Outcome::Null | Outcome::Text(_) | Outcome::Time(_), _) => return None,
            (Outcome::Number(exact), Rounding::Double) => return Some(double(exact.nearest())),
            (Outcome::Quotient { value, .. }, Rounding::Double) => {
                return Some(double(value.nearest()));
            }
            (Outcome::Quotient { value, .. }, Rounding::OfDoubles(digits)) => {
                let mean = value.of_tenths();
                return Some(Numeral::Decimal(
                    format!("{mean:.*}", digits as usize).into(),
                ));
            }
            (Outcome::Number(exact), Rounding::Own) => Cow::Borrowed(exact),
            (Outcome::Number(exact), Rounding::Up(digits) | Rounding::OfDoubles(digits))
                if exact.parts() == (exact.parts().0, digits) =>
            {
                Cow::Borrowed(exact)
            }
            (Outcome::Number(exact), Rounding::Up(digits) | Rounding::OfDoubles(digits)) => {
                Cow::Owned(Quotient::new(exact.clone(), 1).rounded_up(digits))
            }
            (Outcome::Quotient { value, .. }, Rounding::Up(digits)) => {
                Cow::Owned(value.rounded_up(digits))
            }
            (Outcome::Number(exact), Rounding::Digits(digits)) => {
                Cow::Owned(Quotient::new(exact.clone(), 1).rounded(digits))
            }
            (Outcome::Quotient { value, digits }, Rounding::Own) => {
                Cow::Owned(value.printed(*digits))
            }
            (Outcome::Quotient { value, .. }, Rounding::Digits(digits)) => {
                Cow::Owned(value.rounded(digits))
            }
        };
        Some(match exact.special() {
            Some(special) => Numeral::Special(special),
            None => Numeral::Decimal(exact.digits()),
        })
    }
}

fn double(value: f64) -> Numeral {
    match value {
        f64::INFINITY => Numeral::Special(Special::Infinity),
        f64::NEG_INFINITY => Numeral::Special(Special::NegativeInfinity),
        value if value.is_nan() => Numeral::Special(Special::Nan),
        value => {
            let text = format!("{value:?}");
            let short = text.strip_suffix(".0").map(String::from);
            Numeral::Decimal(short.unwrap_or(text).into())
        }
    }
}

/// `dividend / divisor / 10^scale`. In its own column it has `more` digits than the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) dividend: i128,
    pub(crate) divisor: u64,
    pub(crate) scale: u32,
    pub(crate) more: u32,
}

impl Ratio {
    /// One of a column's numbers, or their sum.
    pub(crate) fn number(dividend: impl Into<i128>, scale: u32) -> Ratio {
        Ratio {
            dividend: dividend.into(),
            divisor: 1,
            scale,
            more: 0,
        }
    }

    /// As [`Outcome::printed`] prints it in a column of this scale, where 64 bits are enough for that.
    fn digits(&self, scale: u32, rounding: Rounding) -> Option<Digits<'static>> {
        let (digits, is_up) = match rounding {
            Rounding::Own => (scale + self.more, false),
            Rounding::Digits(digits) => (digits, false),
            Rounding::Up(digits) => (digits, true),
            Rounding::OfDoubles(_) | Rounding::Double => return None,
        };
        let dividend = i64::try_from(self.dividend).ok()?;
        let divisor = i64::try_from(self.divisor).ok()?;
        let (up, down) = (
            digits.saturating_sub(self.scale),
            self.scale.saturating_sub(digits),
        );
        let mantissa = short_quotient(dividend, divisor, (up, down), is_up)?;
        // A short one may have more digits.
        let is_short = self.more > 0 && rounding == Rounding::Own && mantissa.abs() <= 100;
        (!is_short || self.dividend == 0).then(|| Digits::decimal(mantissa.into(), digits))
    }
}

/// What is kept of a column in one group.
pub(crate) trait State: Default + Send + Sync + 'static {
    const ARGUMENT: Argument;
    /// What it must know of many rows at once; `None` if it must see each value.
    const PARTS: Option<&'static [Part]> = None;
    /// What is kept of it in a partial. Merging the columns by their rules is merging states.
    const COLUMNS: &'static [StateColumn];

    fn update(&mut self, value: &Value<'_>);

    /// See [`Digest`].
    const DIGEST: Option<Digest> = None;

    /// Adds the value of a digest.
    fn add(&mut self, digest: u64) {
        unreachable!("{digest} for an aggregate without digests");
    }

    /// Adds the value of a digest if that is quick and takes no memory; `false` if it isn't added.
    fn note(&mut self, digest: u64) -> bool {
        unreachable!("{digest} for an aggregate without digests");
    }

    /// Fetches what a digest will change into the cache.
    fn prefetch(&self, _digest: u64) {}

    /// What it is of many rows, where it is no more than a ratio.
    const RATIO: Option<fn(&Kept) -> Ratio> = None;

    /// Adds what is known of many rows, as far as [`State::PARTS`] asks for it.
    fn absorb(&mut self, kept: &Kept) {
        unreachable!("{kept:?} for an aggregate that sees each value");
    }

    fn merge(&mut self, from: Self);

    /// Bytes that it has elsewhere, about.
    fn heap(&self) -> usize {
        0
    }

    /// The outcome in a column whose numbers have up to `scale` digits after the point. It is printed with as many digits
    /// as all outcomes of the column, whatever the order of rows.
    fn finish(&self, scale: u32) -> Outcome<'_>;

    /// The outcome of a percentile.
    fn percentile(&self, share: Share, scale: u32) -> Outcome<'_> {
        unreachable!("{share:?} of numbers that aren't kept, at {scale}")
    }

    /// Adds the state to its columns.
    fn encode(&self, to: &mut [Gathered]);

    /// The state in a row of its columns.
    ///
    /// # Errors
    /// What is wrong with it. No values were ever folded to such a state.
    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str>;
}

/// A column of an aggregate's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateColumn {
    pub(crate) rule: Rule,
    /// Its decimals have up to twice as many digits after the point as the numbers.
    pub(crate) is_squared: bool,
}

impl StateColumn {
    pub(crate) const fn of(rule: Rule) -> StateColumn {
        StateColumn {
            rule,
            is_squared: false,
        }
    }

    /// The same in a partial, where numbers have a scale of `scale`.
    pub(crate) fn column(self, scale: u32) -> Column {
        let scale = match (self.rule.is_decimal(), self.is_squared) {
            (false, _) => 0,
            (true, false) => scale,
            (true, true) => 2 * scale,
        };
        Column {
            rule: self.rule,
            scale,
        }
    }
}

/// How many groups ahead of their turn states are prefetched.
const AHEAD: usize = 16;

/// Adds values to the states of their groups, by their digests; returns by how much the states' [heap](State::heap) has
/// grown.
fn add_all<S: States>(states: &mut [&mut dyn States], digests: &[DigestRow]) -> isize {
    let of_type = states.iter_mut().map(|states| {
        let states: &mut dyn Any = *states;
        states.downcast_mut::<S>().expect("of the same aggregate")
    });
    let mut states: Vec<&mut S> = of_type.collect();
    for of in digests {
        states[of.states as usize].prefetch_for(of.group as usize, of.digest);
    }
    let mut growth = 0;
    for of in digests {
        let (states, group) = (&mut states[of.states as usize], of.group as usize);
        if !states.note(group, of.digest) {
            growth += states.add(group, of.digest);
        }
    }
    growth
}

/// The states of all groups.
pub(crate) trait States: Any + Send + Sync {
    /// One more group.
    fn push(&mut self);
    /// Returns by how much the state's [heap](State::heap) has grown.
    fn update(&mut self, group: usize, value: &Value<'_>) -> isize;
    /// Adds the value of a digest to a group; returns as [`States::update`] does.
    fn add(&mut self, group: usize, digest: u64) -> isize;
    /// The same as [`State::note`] in a group.
    fn note(&mut self, group: usize, digest: u64) -> bool;
    /// Fetches what a digest will change of a group into the cache.
    fn prefetch_for(&self, group: usize, digest: u64);
    fn absorb(&mut self, group: usize, kept: &Kept);
    /// Fetches a group's state into the cache.
    fn prefetch(&self, group: usize);
    /// Adds the states of other groups: each to the one at its place in `into`.
    fn merge(&mut self, from: Box<dyn States>, into: &[usize]);
    /// The outcome of a group: that of a percentile, if a share is asked for.
    fn finish(&self, group: usize, share: Option<Share>, scale: u32) -> Outcome<'_>;
    /// Adds a group's state to its columns.
    fn encode(&self, group: usize, to: &mut [Gathered]);
    /// One more group, with the state in a row of its columns.
    ///
    /// # Errors
    /// What is wrong with it.
    fn push_decoded(&mut self, from: &[ColumnView<'_>], row: usize) -> Result<(), &'static str>;
    /// Memory that is taken, but for what [`State::heap`] tells.
    fn bytes(&self) -> usize;
    /// Bytes that a group's state has elsewhere.
    fn heap_of(&self, group: usize) -> usize;
}

impl<S: State> States for Vec<S> {
    fn push(&mut self) {
        self.push(S::default());
    }

    fn update(&mut self, group: usize, value: &Value<'_>) -> isize {
        let before = self[group].heap();
        self[group].update(value);
        self[group].heap().cast_signed() - before.cast_signed()
    }

    fn add(&mut self, group: usize, digest: u64) -> isize {
        let before = self[group].heap();
        self[group].add(digest);
        self[group].heap().cast_signed() - before.cast_signed()
    }

    #[inline]
    fn note(&mut self, group: usize, digest: u64) -> bool {
        self[group].note(digest)
    }

    #[inline]
    fn prefetch_for(&self, group: usize, digest: u64) {
        self[group].prefetch(digest);
    }

    fn absorb(&mut self, group: usize, kept: &Kept) {
        self[group].absorb(kept);
    }

    fn prefetch(&self, group: usize) {
        let state = self.as_ptr().wrapping_add(group).cast::<u8>();
        for line in (0..size_of::<S>()).step_by(64) {
            prefetch::into_l1(state.wrapping_add(line));
        }
    }

    fn merge(&mut self, from: Box<dyn States>, into: &[usize]) {
        let from: Box<dyn Any> = from;
        let from = from.downcast::<Vec<S>>().expect("of the same aggregate");
        for (at, (state, &group)) in from.into_iter().zip(into).enumerate() {
            if let Some(&ahead) = into.get(at + AHEAD) {
                States::prefetch(self, ahead);
            }
            self[group].merge(state);
        }
    }

    fn finish(&self, group: usize, share: Option<Share>, scale: u32) -> Outcome<'_> {
        match share {
            None => self[group].finish(scale),
            Some(share) => self[group].percentile(share, scale),
        }
    }

    fn encode(&self, group: usize, to: &mut [Gathered]) {
        self[group].encode(to);
    }

    fn push_decoded(&mut self, from: &[ColumnView<'_>], row: usize) -> Result<(), &'static str> {
        self.push(S::decode(from, row)?);
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<S>() * self.capacity()
    }

    fn heap_of(&self, group: usize) -> usize {
        self[group].heap()
    }
}

/// What is looked for in all values of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statistic {
    /// The number at a share of all.
    Percentile(Share),
    /// How many there are.
    Distinct,
    /// The most frequent one.
    Mode,
}

/// An aggregate as a query asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    definition: &'static Definition,
    /// The share of a percentile.
    pub(crate) share: Option<Share>,
}

impl Kind {
    pub(super) const fn percentile(definition: &'static Definition, share: Share) -> Kind {
        Kind {
            definition,
            share: Some(share),
        }
    }

    pub(crate) fn name(self) -> Cow<'static, str> {
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
        Some(self.share.map_or(statistic, Statistic::Percentile))
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
        }
    }

    /// The same, where it isn't of times.
    pub(super) const fn of_times(self, of_times: &'static Definition) -> Definition {
        Definition {
            of_times: Some(of_times),
            ..self
        }
    }

    /// A median.
    pub(super) const fn of_half(self) -> Definition {
        Definition {
            share: Some(Share::HALF),
            ..self
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
    pub(super) const fn exactly(self, exact: &'static Definition) -> Definition {
        Definition {
            exact: Some(exact),
            ..self
        }
    }

    /// Adds the state of a group of which this is known to its columns, where there are [`Definition::parts`].
    pub(crate) fn encode(&self, kept: &Kept, to: &mut [Gathered]) {
        (self.encode)(kept, to);
    }

    /// What is printed of a group of which this is known, where that is quickly said.
    pub(crate) fn digits(
        &self,
        kept: &Kept,
        scale: u32,
        rounding: Rounding,
    ) -> Option<Digits<'static>> {
        let ratio = self.ratio?;
        match kept.known == 0 && self.argument == Argument::Numbers {
            true => None,
            false => ratio(kept).digits(scale, rounding),
        }
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

/// The text of an [`Outcome::Time`].
pub(crate) fn text_of(time: &[u8]) -> &[u8] {
    &time[RANK_BYTES..]
}

/// Keeps bytes in memory that is there already.
pub(super) fn set(bytes: &mut Vec<u8>, to: &[u8]) {
    bytes.clear();
    bytes.extend_from_slice(to);
}
