//! Numbers that the third pass leaves, one after the other: of up to 20 digits, with a sign, with blanks around.

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
    dispatch!(level, isa => rows(isa, window, spans, (scale, point), to));
}

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

fn power(exponent: usize) -> u128 {
    const POWERS: [u64; DIGITS_MAX + 1] = {
        let mut powers = [1; DIGITS_MAX + 1];
        let mut at = 1;
        while at < powers.len() {
            powers[at] = 10 * powers[at - 1];
            at += 1;
        }
        powers
    };
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
