//! What an aggregate is: its states, and how they grow, merge and end.

use std::any::Any;
use std::borrow::Cow;

use ringfold_read::internals::prefetch;

use crate::aggregate::lanes::{Kept, Part};
use crate::aggregate::share::Share;
use crate::decimal::number::{Exact, Grammar, Number, Special};
use crate::decimal::quotient::{Quotient, short_quotient};
use crate::format::time::TimeZone;
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
    /// What its bytes are hashed with, and how a number is written in them.
    pub(crate) hash_key: &'a HashKey,
    pub(crate) grammar: Grammar,
    /// The zone of a time without an offset, if it isn't UTC.
    pub(crate) zone: Option<TimeZone>,
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
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Numeral::Decimal(digits) => digits.text(),
            Numeral::Special(special) => special.text().into(),
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
    if let Some(special) = Special::of(value) {
        return Numeral::Special(special);
    }
    let text = format!("{value:?}");
    let short = text.strip_suffix(".0").map(String::from);
    Numeral::Decimal(short.unwrap_or(text).into())
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
    /// The same as an outcome, where 128 bits are enough.
    pub(crate) fn of(exact: &Exact) -> Option<Ratio> {
        let (mantissa, scale) = exact.parts();
        Some(Ratio::number(mantissa?, scale))
    }

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
    pub(crate) fn digits(&self, scale: u32, rounding: Rounding) -> Option<Digits<'static>> {
        let (digits, is_up) = match rounding {
            // It has all of its own.
            Rounding::Own if self.scale > scale => return None,
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
    /// Its outcomes are quotients, which have more digits than its column.
    const IS_QUOTIENT: bool = false;
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

    /// The outcome where it is no more than a ratio and isn't null.
    fn ratio(&self) -> Option<Ratio> {
        None
    }

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
pub(super) fn add_all<S: States>(states: &mut [&mut dyn States], digests: &[DigestRow]) -> isize {
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
    /// See [`State::ratio`].
    fn ratio(&self, group: usize) -> Option<Ratio>;
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

    fn ratio(&self, group: usize) -> Option<Ratio> {
        self[group].ratio()
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

/// The text of an [`Outcome::Time`].
pub(crate) fn text_of(time: &[u8]) -> &[u8] {
    &time[RANK_BYTES..]
}

/// Keeps bytes in memory that is there already.
pub(super) fn set(bytes: &mut Vec<u8>, to: &[u8]) {
    bytes.clear();
    bytes.extend_from_slice(to);
}
