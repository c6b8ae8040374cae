//! Columns: the values of one for many groups, as they are gathered for a file and as they lie in one.
//!
//! Decimals lie as 64-bit mantissas at the column's scale. Where one of a block doesn't fit, or is no decimal but an infinity
//! or nan, all of the block lie as bytes of their own length: what it is, and the mantissa.

use std::ops::Range;

use num_bigint::BigInt;

use crate::decimal::number::{Exact, Number, Special};
use crate::partial::description::{Column, Rule};
use crate::partial::key::prefix;
use crate::partial::layout::{End, Fixed};

/// The mantissa that stands for no decimal.
pub(crate) const NULL: i64 = i64::MIN;
/// The most bytes of a mantissa. The sum of 2^64 squares of the longest numbers with exponents takes less.
pub(crate) const MANTISSA_BYTES_MAX: usize = 1000;

/// What the first byte of a decimal of variable length says that it is.
const DECIMAL: u8 = 0;
const SPECIAL: [(u8, Special); 3] = [
    (1, Special::NegativeInfinity),
    (2, Special::Infinity),
    (3, Special::Nan),
];

/// A file and a byte in it.
pub(crate) type Place = (u32, u64);

/// Values of up to so many bytes are copied as if they had as many.
const SHORT: usize = 64;

/// Values of any length, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Ragged {
    pub(crate) ends: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Ragged {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// Adds a value of a block.
    #[inline(always)]
    pub(crate) fn push_of(&mut self, values: &Variable<'_>, at: usize) {
        let (start, end) = values.range(at);
        // A copy of known length takes no call and no branch on the length. Most keys are shorter.
        match values.bytes[start..].first_chunk::<SHORT>() {
            Some(bytes) if end - start <= SHORT => {
                let all = self.bytes.len() + end - start;
                self.bytes.extend_from_slice(bytes);
                self.bytes.truncate(all);
            }
            _ => self.bytes.extend_from_slice(&values.bytes[start..end]),
        }
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn append(&mut self, more: &Ragged) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&more.bytes);
        self.ends.extend(more.ends.iter().map(|end| before + end));
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.ends[at]]
    }

    /// Where a value begins.
    pub(crate) fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Leaves out the first values.
    pub(crate) fn remove_first(&mut self, count: usize) {
        let bytes = self.start(count);
        self.bytes.drain(..bytes);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
    }
}

/// A column's values that are gathered.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) column: Column,
    /// Counts and mantissas.
    pub(crate) fixed: Vec<Fixed>,
    /// The mantissas that don't fit, with their rows in `fixed`, where they are null.
    pub(crate) wide: Vec<(usize, Vec<u8>)>,
    /// Texts.
    pub(crate) texts: Ragged,
}

impl Gathered {
    pub(crate) fn new(column: Column) -> Gathered {
        Gathered {
            column,
            fixed: Vec::new(),
            wide: Vec::new(),
            texts: Ragged::default(),
        }
    }

    /// Adds a count.
    pub(crate) fn push_count(&mut self, count: u64) {
        // No input has as many rows.
        let count = i64::try_from(count).expect("a count of less than 2^63");
        self.fixed.push(count.into());
    }

    /// Adds a mantissa at the column's scale, or [`NULL`].
    pub(crate) fn push_mantissa(&mut self, mantissa: i64) {
        self.fixed.push(mantissa.into());
    }

    /// Adds a decimal.
    pub(crate) fn push_exact(&mut self, exact: Option<&Exact>) {
        let Some(exact) = exact else {
            return self.push_mantissa(NULL);
        };
        if let Some(special) = exact.special() {
            let tag = SPECIAL.iter().find(|(_, known)| *known == special);
            return self.push_wide(tag.expect("all are listed").0, &[]);
        }
        let scale = self.column.scale;
        let small = match exact.parts() {
            (Some(mantissa), own) if own == scale => Some(mantissa),
            _ => exact.clone().with_scale(scale).parts().0,
        };
        match small {
            Some(mantissa) => self.push_small(mantissa),
            None => self.push_wide(DECIMAL, &exact.at(scale).to_signed_bytes_le()),
        }
    }

    /// Adds a decimal.
    pub(crate) fn push_number(&mut self, number: Option<Number>) {
        match number {
            None => self.push_mantissa(NULL),
            Some(number) => match number.at(self.column.scale) {
                Some(mantissa) => self.push_small(mantissa),
                None => self.push_exact(Some(&number.exact())),
            },
        }
    }

    fn push_small(&mut self, mantissa: i128) {
        match i64::try_from(mantissa) {
            Ok(mantissa) if mantissa != NULL => self.push_mantissa(mantissa),
            _ => {
                let mut bytes = mantissa.to_le_bytes();
                self.push_wide(DECIMAL, shortest(&mut bytes));
            }
        }
    }

    fn push_wide(&mut self, tag: u8, mantissa: &[u8]) {
        let value = [&[tag], mantissa].concat();
        self.wide.push((self.fixed.len(), value));
        self.push_mantissa(NULL);
    }

    /// Adds a text; an empty one isn't there.
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        self.texts.push(text);
    }

    /// Adds a text with its place.
    pub(crate) fn push_placed(&mut self, value: Option<(Place, &[u8])>) {
        if let Some(((file, at), text)) = value {
            let bytes = &mut self.texts.bytes;
            bytes.extend_from_slice(&file.to_le_bytes());
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(text);
        }
        self.texts.ends.push(self.texts.bytes.len());
    }

    /// Adds the values of a column of the same rule and scale.
    pub(crate) fn append(&mut self, more: Gathered) {
        let before = self.fixed.len();
        self.fixed.extend_from_slice(&more.fixed);
        let wide = more.wide.into_iter();
        (self.wide).extend(wide.map(|(row, bytes)| (before + row, bytes)));
        self.texts.append(&more.texts);
    }

    /// Leaves out the first values.
    pub(crate) fn remove_first(&mut self, count: usize) {
        if self.column.rule.is_text() {
            self.texts.remove_first(count);
            return;
        }
        self.fixed.drain(..count);
        self.wide.retain_mut(|(row, _)| {
            let stays = *row >= count;
            *row = row.wrapping_sub(count);
            stays
        });
    }
}

/// As many bytes of a number, the least first, as hold it and its sign.
fn shortest(bytes: &mut [u8]) -> &mut [u8] {
    let mut len = bytes.len();
    while len > 1 {
        let sign = if bytes[len - 2] < 0x80 { 0 } else { 0xff };
        if bytes[len - 1] != sign {
            break;
        }
        len -= 1;
    }
    &mut bytes[..len]
}

/// A mantissa of 64 bits as a decimal of variable length.
pub(crate) fn push_variable(mantissa: i64, to: &mut Ragged) {
    if mantissa != NULL {
        to.bytes.push(DECIMAL);
        to.bytes
            .extend_from_slice(shortest(&mut mantissa.to_le_bytes()));
    }
    to.ends.push(to.bytes.len());
}

/// A decimal that isn't null, as it lies in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal<'a> {
    Fixed { mantissa: i64, scale: u32 },
    Variable { value: &'a [u8], scale: u32 },
}

impl Decimal<'_> {
    /// Mantissa and scale, if that has 64 bits in the block.
    #[inline]
    pub(crate) fn mantissa(&self) -> Option<(i64, u32)> {
        match *self {
            Decimal::Fixed { mantissa, scale } => Some((mantissa, scale)),
            Decimal::Variable { .. } => None,
        }
    }

    pub(crate) fn exact(&self) -> Exact {
        match *self {
            Decimal::Fixed { mantissa, scale } => Exact::small(mantissa.into(), scale),
            Decimal::Variable { value, scale } => {
                variable(value, scale).unwrap_or_else(|| Exact::of(Special::Nan))
            }
        }
    }
}

/// A decimal of variable length. It was checked.
fn variable(value: &[u8], scale: u32) -> Option<Exact> {
    let (tag, mantissa) = value.split_first()?;
    match SPECIAL.iter().find(|(known, _)| known == tag) {
        Some((_, special)) => Some(Exact::of(*special)),
        None => Some(Exact::new(BigInt::from_signed_bytes_le(mantissa), scale)),
    }
}

fn is_decimal(value: &[u8]) -> bool {
    match value.split_first() {
        None => true,
        Some((&DECIMAL, mantissa)) => (1..=MANTISSA_BYTES_MAX).contains(&mantissa.len()),
        Some((tag, rest)) => rest.is_empty() && SPECIAL.iter().any(|(known, _)| known == tag),
    }
}

/// Values of any length in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable<'a> {
    pub(crate) ends: &'a [End],
    pub(crate) bytes: &'a [u8],
}

impl<'a> Variable<'a> {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &'a [u8] {
        let (start, end) = self.range(at);
        &self.bytes[start..end]
    }

    #[inline(always)]
    fn range(&self, at: usize) -> (usize, usize) {
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.ends[before].get());
        (start as usize, self.ends[at].get() as usize)
    }

    /// The last one. There is one.
    pub(crate) fn last(&self) -> &'a [u8] {
        self.get(self.ends.len() - 1)
    }

    /// Whether each is greater than the one before.
    pub(crate) fn are_ascending(&self) -> bool {
        let (mut from, mut start, mut before) = (0, 0, 0);
        (0..).zip(self.ends).all(|(at, end)| {
            let here = start;
            let end = end.get() as usize;
            let prefix = self.prefix(here, end);
            let is_greater = prefix > before
                || at == 0
                || prefix == before && self.bytes[here..end] > self.bytes[from..here];
            (from, start, before) = (here, end, prefix);
            is_greater
        })
    }

    /// The first bytes of one as a number: see [`prefix`](fn@prefix).
    #[inline(always)]
    pub(crate) fn prefix_of(&self, at: usize) -> u64 {
        let (start, end) = self.range(at);
        self.prefix(start, end)
    }

    /// The bytes after the first `skip` of some as numbers.
    #[inline(always)]
    pub(crate) fn prefixes(&self, some: Range<usize>, skip: usize) -> impl Iterator<Item = u64> {
        let mut start = some
            .start
            .checked_sub(1)
            .map_or(0, |before| self.ends[before].get()) as usize;
        self.ends[some].iter().map(move |end| {
            let end = end.get() as usize;
            let prefix = self.prefix(end.min(start + skip), end);
            start = end;
            prefix
        })
    }

    /// Whether one is the same as one of other values. Most are short: a comparison of known length has no branch on theirs.
    #[inline(always)]
    pub(crate) fn is_same(&self, at: usize, others: &Variable<'_>, other: usize) -> bool {
        let ((start, end), (other_start, other_end)) = (self.range(at), others.range(other));
        let len = end - start;
        if len != other_end - other_start {
            return false;
        }
        let bytes = self.bytes[start..].first_chunk::<SHORT>();
        let others_bytes = others.bytes[other_start..].first_chunk::<SHORT>();
        match (bytes, others_bytes) {
            (Some(one), Some(two)) if len <= SHORT => {
                let mut different = 0;
                for at in 0..SHORT {
                    let mask = if at < len { !0 } else { 0 };
                    different |= (one[at] ^ two[at]) & mask;
                }
                different == 0
            }
            _ => self.get(at) == others.get(other),
        }
    }

    #[inline(always)]
    fn prefix(&self, start: usize, end: usize) -> u64 {
        // The bytes after a short one are there to be read, too.
        match self.bytes[start..].first_chunk::<8>() {
            Some(first) => u64::from_be_bytes(*first) & FIRST_BYTES[(end - start).min(8)],
            None => prefix(&self.bytes[start..end]),
        }
    }
}

/// For each number of bytes below 8 a mask of as many first ones.
const FIRST_BYTES: [u64; 9] = {
    let mut masks = [!0; 9];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = !(!0 >> (8 * bytes));
        bytes += 1;
    }
    masks
};

/// Values in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    Fixed(&'a [Fixed]),
    Variable(Variable<'a>),
}

/// A column in a block. Its values were checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnView<'a> {
    pub(crate) column: Column,
    pub(crate) values: Values<'a>,
}

impl<'a> ColumnView<'a> {
    /// Values of 64 bits; none where they aren't.
    #[inline]
    pub(crate) fn fixed(&self) -> &'a [Fixed] {
        match self.values {
            Values::Fixed(fixed) => fixed,
            Values::Variable(_) => &[],
        }
    }

    /// A count.
    #[inline]
    pub(crate) fn count(&self, row: usize) -> u64 {
        self.fixed()[row].get().cast_unsigned()
    }

    /// A decimal, where it lies.
    #[inline]
    pub(crate) fn decimal(&self, row: usize) -> Option<Decimal<'a>> {
        let scale = self.column.scale;
        match self.values {
            Values::Fixed(fixed) => match fixed[row].get() {
                NULL => None,
                mantissa => Some(Decimal::Fixed { mantissa, scale }),
            },
            Values::Variable(values) => match values.get(row) {
                b"" => None,
                value => Some(Decimal::Variable { value, scale }),
            },
        }
    }

    /// A decimal.
    pub(crate) fn exact(&self, row: usize) -> Option<Exact> {
        self.decimal(row).map(|decimal| decimal.exact())
    }

    /// A decimal that was read from a field.
    ///
    /// # Errors
    /// It has more digits than a field's number.
    pub(crate) fn number(&self, row: usize) -> Result<Option<Number>, &'static str> {
        let Some(exact) = self.exact(row) else {
            return Ok(None);
        };
        let number = Number::of(&exact);
        number
            .map(Some)
            .ok_or("a number has more digits than a field may have")
    }

    /// A text; empty where there is none.
    #[inline]
    pub(crate) fn text(&self, row: usize) -> &'a [u8] {
        match self.values {
            Values::Fixed(_) => b"",
            Values::Variable(values) => values.get(row),
        }
    }

    /// A text with its place.
    pub(crate) fn placed(&self, row: usize) -> Option<(Place, &'a [u8])> {
        placed(self.text(row))
    }
}

/// What lies in a column of placed texts.
pub(crate) fn placed(value: &[u8]) -> Option<(Place, &[u8])> {
    let (file, rest) = value.split_first_chunk::<4>()?;
    let (at, text) = rest.split_first_chunk::<8>()?;
    Some(((u32::from_le_bytes(*file), u64::from_le_bytes(*at)), text))
}

/// What is wrong with the values of a column, if something is. `rows` and `sources` are those of the description.
pub(crate) fn fault(view: &ColumnView<'_>, rows: u64, sources: usize) -> Option<&'static str> {
    match (view.column.rule, view.values) {
        (Rule::Count | Rule::Values, Values::Fixed(fixed)) => {
            let greatest = fixed.iter().map(|count| count.get().cast_unsigned()).max();
            (greatest.unwrap_or(0) > rows).then_some("a count is greater than the number of rows")
        }
        (Rule::Count | Rule::Values, Values::Variable(_)) => Some("counts aren't of 64 bits"),
        (rule, Values::Fixed(_)) if rule.is_text() => Some("texts are of 64 bits"),
        (rule, Values::Variable(values)) if rule.is_placed() => {
            let is_right = |at| match values.get(at) {
                b"" => true,
                value => placed(value).is_some_and(|((file, _), _)| (file as usize) < sources),
            };
            let all = (0..values.ends.len()).all(is_right);
            (!all).then_some("a text has no place in the input")
        }
        (Rule::Sketch(sketch), Values::Variable(values)) => {
            (0..values.ends.len()).find_map(|at| sketch.check(values.get(at)).err())
        }
        (rule, Values::Variable(values)) if rule.is_decimal() => {
            let all = (0..values.ends.len()).all(|at| is_decimal(values.get(at)));
            (!all).then_some("a number isn't one, or is too long")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_bytes_are_those_of_big_integers(number: i128, short in -300..300_i128, shift in 0..128_u32) {
            for number in [number, short, number >> shift, short << (shift % 110), i128::MIN, i128::MAX] {
                let mut bytes = number.to_le_bytes();
                prop_assert_eq!(shortest(&mut bytes), BigInt::from(number).to_signed_bytes_le());
            }
        }

        #[test]
        fn the_first_values_are_removed(
            numbers in prop::collection::vec(prop_oneof![any::<i64>().prop_map(i128::from), any::<i128>()], 0..20),
            count in 0..20_usize,
        ) {
            let count = count.min(numbers.len());
            let gathered = |numbers: &[i128]| {
                let mut gathered = Gathered::new(Column { rule: Rule::Sum, scale: 2 });
                let mut texts = Gathered::new(Column { rule: Rule::LeastText, scale: 0 });
                for number in numbers {
                    gathered.push_exact(Some(&Exact::small(*number, 2)));
                    texts.push_text(shortest(&mut number.to_le_bytes()));
                }
                (gathered, texts)
            };
            let (mut numbers_left, mut texts_left) = gathered(&numbers);
            numbers_left.remove_first(count);
            texts_left.remove_first(count);
            let (want, want_texts) = gathered(&numbers[count..]);
            prop_assert_eq!(numbers_left.wide, want.wide);
            prop_assert_eq!(numbers_left.fixed, want.fixed);
            prop_assert_eq!(texts_left.texts.ends, want_texts.texts.ends);
            prop_assert_eq!(texts_left.texts.bytes, want_texts.texts.bytes);
        }
    }
}
