//! Numbers that the third pass leaves: of up to 20 digits, with a sign, with blanks around. Vectors read those that are as long
//! as the first one, about; the others are read one after the other.

#[cfg(target_arch = "x86_64")]
use ringfold_read::internals::isa::lanes::Lanes;
use ringfold_read::internals::{
    Level,
    isa::{Isa, dispatch},
};

use crate::aggregate::lanes::MAGNITUDE_MAX;
use crate::scan::index::TextWindow;
use crate::scan::numbers::Numbers;

/// The most digits, and the point.
const LENGTH_MAX: usize = 20;
/// The most digits on either side of the point.
const DIGITS_MAX: usize = 19;
/// A byte in each place of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Reads unread rows of a column, `spans` of `window`, at most `scale` decimals after the byte `point`. What it can't read stays
/// unread.
pub(super) fn decode_long(
    level: Level,
    window: TextWindow<'_>,
    spans: &[u32],
    (scale, point): (u32, u8),
    to: &mut Numbers,
) {
    dispatch!(level, isa => vectors(isa, window, spans, (scale, point), to), else {});
    dispatch!(level, isa => rows(isa, window, spans, (scale, point), to));
}

/// One after the other.
#[inline(always)]
fn rows<I: Isa>(
    isa: I,
    window: TextWindow<'_>,
    spans: &[u32],
    (scale, point): (u32, u8),
    to: &mut Numbers,
) {
    let mut left = 0;
    for at in 0..to.unread.len() {
        let row = to.unread[at];
        match read(isa, window, spans[row as usize], point, scale) {
            Some((magnitude, is_negative, decimals)) => {
                to.magnitudes |= magnitude;
                to.decimals = to.decimals.max(decimals);
                let value = magnitude.cast_signed();
                to.values[row as usize] = if is_negative { -value } else { value };
            }
            None => {
                to.unread[left] = row;
                left += 1;
            }
        }
    }
    to.unread.truncate(left);
}

/// Several at a time, if they are like the first one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vectors<I: Lanes>(
    isa: I,
    window: TextWindow<'_>,
    spans: &[u32],
    form: (u32, u8),
    to: &mut Numbers,
) {
    let span = |row: &u32| spans[*row as usize];
    let Some(parts) = to
        .unread
        .first()
        .and_then(|row| Parts::of(isa, window, span(row), form))
    else {
        return;
    };
    let (mut left, mut values) = (0, [0; 8]);
    let whole = to.unread.len() - to.unread.len() % I::COUNT;
    for at in (0..whole).step_by(I::COUNT) {
        let some: &[u32] = &to.unread[at..at + I::COUNT];
        let (read, good) = parts.read(isa, window, |lane| span(&some[lane]));
        isa.store(read, &mut values);
        let good = isa.bits(good);
        for (lane, value) in values.iter().enumerate().take(I::COUNT) {
            let row = to.unread[at + lane];
            if good >> lane & 1 == 1 {
                to.magnitudes |= value.unsigned_abs();
                to.values[row as usize] = *value;
            } else {
                to.unread[left] = row;
                left += 1;
            }
        }
    }
    to.decimals = to.decimals.max(parts.decimals);
    to.unread.copy_within(whole.., left);
    to.unread.truncate(to.unread.len() - whole + left);
}

/// Where the digits of a number stand: up to eight before the point, and up to sixteen after it, or all before none.
#[cfg(target_arch = "x86_64")]
struct Parts {
    decimals: u32,
    point: Option<u8>,
    /// Digits of the last two words.
    last: [usize; 2],
    /// What each of three words is multiplied by.
    factors: [u64; 3],
    /// The most digits of the first, so that all fit.
    most: usize,
}

#[cfg(target_arch = "x86_64")]
impl Parts {
    /// Those of a value that can be read, if there are some.
    #[inline(always)]
    fn of<I: Isa>(
        isa: I,
        window: TextWindow<'_>,
        span: u32,
        (scale, point): (u32, u8),
    ) -> Option<Parts> {
        let (.., decimals) = read(isa, window, span, point, scale)?;
        let length = (span >> 16) - 1 - (span & 0xffff);
        let last = match decimals as usize {
            0 => [if length > 16 { 8 } else { 0 }, 8],
            some @ 1..=16 => [some.saturating_sub(8), some.min(8)],
            _ => return None,
        };
        let zeros = (scale - decimals) as usize;
        let powers = [last[0] + last[1], last[1], 0].map(|digits| digits + zeros);
        Some(Parts {
            decimals,
            point: (decimals > 0).then_some(point),
            last,
            factors: [0, 1, 2].map(|word| POWERS.get(powers[word]).copied().unwrap_or_default()),
            most: DIGITS_MAX.checked_sub(powers[0])?,
        })
    }

    /// The numbers of some spans, and which were read.
    #[inline(always)]
    fn read<I: Lanes>(
        &self,
        isa: I,
        window: TextWindow<'_>,
        span: impl Fn(usize) -> u32,
    ) -> (I::Lanes, I::Mask) {
        let number = |number: usize| isa.splat(number as u64);
        let end = |lane| (span(lane) >> 16) as usize - 1;
        let [two, three] = self.last;
        let mut length = isa.collect(
            #[inline(always)]
            |lane| end(lane) as u64 - u64::from(span(lane) & 0xffff),
        );
        let mut first = words(isa, window, &end, two + three);
        length = isa.sub(length, number(two + three));
        let mut good = isa.greater(number(9), length);
        if let Some(point) = self.point {
            good = isa.equal_lanes(isa.shr(first, number(56)), isa.splat(point.into()));
            good = isa.both(good, isa.greater(number(9), length));
            first = isa.shl(first, number(8));
            length = isa.decrement(isa.equal_lanes(first, first), length);
        }
        good = isa.both(good, isa.greater(length, isa.splat(!0)));
        // What is no part of the value is shifted out.
        let shift = isa.shl(isa.sub(number(8), length), number(3));
        first = own(isa, first, shift);
        let dash = isa.splat(u64::from(b'-' ^ b'0'));
        let negative = isa.and(isa.shr(first, shift), isa.splat(0xff));
        let negative = isa.equal_lanes(negative, dash);
        first = isa.xor(first, isa.keep(negative, isa.shl(dash, shift)));
        length = isa.decrement(negative, length);
        good = isa.both(good, isa.greater(number(self.most + 1), length));
        let second = own(isa, words(isa, window, &end, three), number(64 - 8 * two));
        let third = own(isa, words(isa, window, &end, 0), number(64 - 8 * three));
        let (mut value, mut above_nine) = (isa.splat(0), isa.splat(0));
        for (digits, factor) in [first, second, third].into_iter().zip(self.factors) {
            let above = isa.add_saturating_bytes(digits, isa.splat_bytes(0x76));
            above_nine = isa.or(above_nine, above);
            let digits = isa.join_digits(digits);
            let low = isa.mul(digits, isa.splat(factor & 0xffff_ffff));
            let high = isa.mul(digits, isa.splat(factor >> 32));
            value = isa.add(value, isa.add(low, isa.shl(high, number(32))));
        }
        let above_nine = isa.and(above_nine, isa.splat_bytes(0x80));
        let past = isa.or(isa.shr(value, number(62)), above_nine);
        good = isa.both(good, isa.equal_lanes(past, isa.splat(0)));
        (isa.negate(negative, value), good)
    }
}

/// Eight bytes that end so many before the end of each value.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn words<I: Lanes>(
    isa: I,
    window: TextWindow<'_>,
    end: &impl Fn(usize) -> usize,
    before: usize,
) -> I::Lanes {
    isa.collect(
        #[inline(always)]
        |lane| u64::from_le_bytes(*window.before(end(lane).saturating_sub(before))),
    )
}

/// The digits of words, without what the shift moves out.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn own<I: Lanes>(isa: I, words: I::Lanes, shift: I::Lanes) -> I::Lanes {
    let digits = isa.xor(words, isa.splat_bytes(b'0'));
    isa.and(digits, isa.shl(isa.splat(!0), shift))
}

/// A magnitude in units of `10^-scale`, whether it is negative, and its decimals.
#[inline(always)]
fn read<I: Isa>(
    isa: I,
    window: TextWindow<'_>,
    span: u32,
    point: u8,
    scale: u32,
) -> Option<(u64, bool, u32)> {
    let (mut start, mut end) = ((span & 0xffff) as usize, (span >> 16) as usize - 1);
    let bytes = window.bytes();
    let is_blank = |at: usize| matches!(bytes[at], b' ' | b'\t');
    while start < end && is_blank(start) {
        start += 1;
    }
    while start < end && is_blank(end - 1) {
        end -= 1;
    }
    let sign = bytes.get(start).copied().filter(|_| start < end);
    start += usize::from(matches!(sign, Some(b'-' | b'+')));
    let length = end - start;
    if length == 0 || length > LENGTH_MAX {
        return None;
    }
    let points = isa.equal(isa.load(window.from(start)), point) & !(!0 << length);
    let (whole, decimals) = match points {
        0 => (length, 0),
        _ => {
            let whole = points.trailing_zeros() as usize;
            (whole, length - whole - 1)
        }
    };
    if whole + decimals == 0 || whole.max(decimals) > DIGITS_MAX || decimals > scale as usize {
        return None;
    }
    let units = u128::from(digits(window, start + whole, whole)?) * power(scale as usize)
        + u128::from(digits(window, end, decimals)?) * power(scale as usize - decimals);
    let magnitude = u64::try_from(units).ok()?;
    let is_negative = sign == Some(b'-');
    (magnitude < MAGNITUDE_MAX).then_some((magnitude, is_negative, decimals as u32))
}

const POWERS: [u64; DIGITS_MAX + 1] = {
    let mut powers = [1; DIGITS_MAX + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

fn power(exponent: usize) -> u128 {
    POWERS[exponent].into()
}

/// The number of so many digits that end before `end`.
#[inline(always)]
fn digits(window: TextWindow<'_>, end: usize, length: usize) -> Option<u64> {
    let [high, middle, low] = eights(window.before::<24>(end));
    match length {
        0 => Some(0),
        1..=8 => eight(low, length),
        9..=16 => Some(eight(middle, length - 8)? * 100_000_000 + eight(low, 8)?),
        _ => {
            let high = eight(high, length - 16)? * 10_000_000_000_000_000;
            high.checked_add(eight(middle, 8)? * 100_000_000 + eight(low, 8)?)
        }
    }
}

#[inline(always)]
fn eights(bytes: &[u8; 24]) -> [u64; 3] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

/// The number of the last `length` bytes of a word, one at least, the first of which is in the lowest place.
#[inline(always)]
fn eight(word: u64, length: usize) -> Option<u64> {
    let digits = (word ^ (u64::from(b'0') * ONES)) & (!0 << (64 - 8 * length));
    let above_nine = ((digits & (0x7f * ONES)) + 0x76 * ONES) | digits;
    if above_nine & (0x80 * ONES) != 0 {
        return None;
    }
    // Two, four, eight digits in a place.
    let two = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let four = (two * 100 + (two >> 16)) & 0x0000_ffff_0000_ffff;
    Some((four * 10_000 + (four >> 32)) & 0xffff_ffff)
}
