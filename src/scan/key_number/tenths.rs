//! Stage 2, *decode*: reads and checks the numbers of a balanced window that have one decimal, and lists the
//! rows by the size of their keys. The rest is for others.
//!
//! The shape read here is `-?[0-9]{1,2}\.[0-9]`, before an optional carriage return. A number is aligned by
//! its end, so that its point needs no search: of the 8 bytes that end at it, the last is the decimal digit,
//! then point, units, tens. One saturating addition checks digits and point: after an exclusive-or with
//! `00.0` a digit is at most 9 and the point 0, so adding 0x76 (0x7f for the point) sets the top bit of
//! every other byte.

use ringfold_read::internals::{Level, isa::dispatch};
#[cfg(target_arch = "x86_64")]
use ringfold_read::{PADDING, internals::isa::lanes32::Lanes32};

use crate::scan::key_number::index::Ends;
use crate::scan::key_number::rows::Rows;
#[cfg(target_arch = "x86_64")]
use crate::scan::key_number::rows::{INLINE, LONG, List, WIDE};
use crate::scan::key_number::window::ScanWindow;
use crate::table::stats::BIAS;

/// Lists the rows of a balanced `window` in `to`. With `trims_cr` a carriage return before the terminator
/// belongs to the line end.
pub(crate) fn decode(
    level: Level,
    window: ScanWindow<'_>,
    ends: &Ends,
    trims_cr: bool,
    to: &mut Rows,
) {
    debug_assert!(ends.balanced());
    to.clear();
    dispatch!(level, isa => vectors(isa, window, ends, trims_cr, to), else {
        portable(window, ends, trims_cr, to);
    });
}

/// Of the last four bytes of a number.
const SHAPE: u32 = u32::from_le_bytes(*b"00.0");
const LIMITS: u32 = u32::from_le_bytes([0x76, 0x76, 0x7f, 0x76]);
const INVALID: u32 = u32::from_le_bytes([0x80; 4]);

/// The scalar counterpart of the vector kernels, row by row in 64-bit words. A byte carries into its
/// neighbour only if it is invalid already.
fn portable(window: ScanWindow<'_>, ends: &Ends, trims_cr: bool, to: &mut Rows) {
    for ends in ends.ends().windows(3).step_by(2) {
        let [start, key_end, end] = [ends[0], ends[1], ends[2]].map(u32::from);
        let mut word = window.word_before(end as usize - 1);
        // Arithmetic in place of branches, because the shape of a number can't be predicted.
        let trim = u32::from(trims_cr & (word >> 56 == u64::from(b'\r')));
        word <<= 8 * trim;
        let mut unused = 64_u32
            .wrapping_sub(8 * (end - key_end - 1))
            .wrapping_add(8 * trim);
        // From 64 on the shifts mean nothing, but then the number doesn't fit.
        let negative = u32::from(word.wrapping_shr(unused) as u8 == b'-');
        unused = unused.wrapping_add(8 * negative);
        let fits = unused.wrapping_sub(32) & !8 == 0;
        let word = (word ^ u64::from(SHAPE) << 32) & u64::MAX.wrapping_shl(unused);
        let digits = (word >> 32) as u32;
        // Bytes below 0x80 can't carry; those above are invalid by themselves.
        let low = digits & 0x7f7f_7f7f;
        let invalid = (low.wrapping_add(LIMITS) | digits) & INVALID;
        let good = fits & (invalid == 0);
        let tenths = ((digits & 0xff) * 100 + (digits >> 8 & 0xff) * 10).wrapping_add(digits >> 24);
        let sign = negative.wrapping_neg();
        let value = BIAS.wrapping_add(tenths ^ sign).wrapping_add(negative);
        let key = start | (key_end - start) << 16;
        to.push(key, value, good, key_end | end << 16);
    }
}

/// A vector of rows at a time, each a 32-bit lane: the last four bytes of its number hold all digits, and only
/// a number of five bytes has one before them, which must be its sign.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vectors<I: Lanes32>(isa: I, window: ScanWindow<'_>, ends: &Ends, trims_cr: bool, to: &mut Rows) {
    const WEIGHTS: u32 = u32::from_le_bytes([100, 10, 0, 1]);
    let text = window.with_padding();
    for row in (0..ends.rows()).step_by(I::COUNT) {
        let valid = !(!0_u32 << (ends.rows() - row).min(I::COUNT)) as u16;
        let keys = isa.pairs(ends.from(2 * row));
        let keys = isa.sub(keys, isa.shl_16(keys));
        // A key's end and that of the row.
        let pairs = ends.from(2 * row + 1);
        let spans = isa.pairs(pairs);
        // The terminator is counted.
        let mut lengths = isa.sub(isa.shr_16(spans), isa.and(spans, isa.splat(0xffff)));
        // The bytes before the terminator.
        let mut words = isa.eights(text, PADDING - 9, pairs);
        let mut ending = isa.last_fours(words);
        if trims_cr {
            let trim = isa.last_byte_is(ending, b'\r');
            if isa.set(trim) != 0 {
                words = isa.move_bytes(trim, words);
                ending = isa.last_fours(words);
                lengths = isa.decrement(trim, lengths);
            }
        }
        let three = isa.equal_words(lengths, isa.splat(4));
        let four = isa.equal_words(lengths, isa.splat(5));
        let five = isa.equal_words(lengths, isa.splat(6));
        let negative = isa.both(four, isa.first_byte_is(ending, b'-'));
        let five = isa.both(five, isa.last_byte_is(isa.first_fours(words), b'-'));
        let digits = isa.xor(ending, isa.splat(SHAPE));
        let digits = isa.and_where(isa.either(three, negative), digits, isa.splat(!0xff));
        let checked = isa.add_saturating_bytes(digits, isa.splat(LIMITS));
        let fits = isa.either(isa.either(three, four), five);
        let good = isa.both(fits, isa.disjoint(checked, isa.splat(INVALID)));
        let tenths = isa.dot(digits, isa.splat(WEIGHTS));
        let values = isa.add_or_sub(isa.either(negative, five), isa.splat(BIAS), tenths);
        let good = isa.set(good) & valid;
        list(isa, [keys, values, spans], good, valid, to);
    }
}

/// Lists the `valid` ones of a vector's rows, of which `good` have a value.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn list<I: Lanes32>(
    isa: I,
    [keys, values, spans]: [I::Words; 3],
    good: u16,
    valid: u16,
    to: &mut Rows,
) {
    let all = !(!0_u32 << I::COUNT) as u16;
    let most = |length: usize| (length << 16 | 0xffff) as u32;
    let inline = good & isa.at_most(keys, isa.splat(most(INLINE)));
    if inline == all {
        return put(isa, I::COUNT, keys, values, &mut to.inline);
    }
    let long = good & !inline & isa.at_most(keys, isa.splat(most(LONG)));
    if long == all {
        return put(isa, I::COUNT, keys, values, &mut to.long);
    }
    put_some(isa, inline, keys, values, &mut to.inline);
    if inline != valid {
        let wide = good & isa.at_most(keys, isa.splat(most(WIDE)));
        put_some(isa, long, keys, values, &mut to.long);
        put_some(isa, wide & !(inline | long), keys, values, &mut to.wide);
        put_some(isa, valid & !wide, keys, spans, &mut to.rest);
    }
}

/// Lists the rows of a set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put_some<I: Lanes32>(isa: I, set: u16, keys: I::Words, values: I::Words, to: &mut List) {
    let (keys, values) = (isa.compact(set, keys), isa.compact(set, values));
    put(isa, set.count_ones() as usize, keys, values, to);
}

/// Writes a vector of rows past the end, and keeps the first `count`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put<I: Lanes32>(isa: I, count: usize, keys: I::Words, values: I::Words, to: &mut List) {
    isa.store(keys, &mut to.keys.0[to.count..]);
    isa.store(values, &mut to.values.0[to.count..]);
    to.count += count;
}

#[cfg(test)]
mod tests {
    use crate::scan::key_number::index;
    use crate::scan::key_number::rows::{INLINE, LONG, WIDE};
    use crate::scan::key_number::tenths::*;
    use crate::scan::key_number::window::WINDOW;
    use proptest::prelude::*;
    use ringfold_read::PaddedBuf;

    /// In tenths, if `text` has the shape that is read here.
    fn naive(text: &[u8]) -> Option<u32> {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let point = digits.iter().position(|&byte| byte == b'.')?;
        let shaped = (1..=2).contains(&point) && digits.len() == point + 2;
        let number: i64 = std::str::from_utf8(text)
            .ok()?
            .replacen('.', "", 1)
            .parse()
            .ok()?;
        let is_plain = digits
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.');
        (shaped && is_plain).then_some((number + i64::from(BIAS)) as u32)
    }

    fn check(lines: &[(usize, Vec<u8>)], trims_cr: bool) {
        let mut text = Vec::new();
        let mut expected: [Vec<(u32, u32)>; 3] = Default::default();
        let mut rest = Vec::new();
        for (length, value) in lines {
            let key = text.len() as u32 | (*length as u32 + 1) << 16;
            text.extend(std::iter::repeat_n(b'9', *length));
            text.push(b';');
            let start = text.len() as u32;
            text.extend_from_slice(value);
            text.push(b'\n');
            let span = start | (text.len() as u32) << 16;
            let value = match value.strip_suffix(b"\r") {
                Some(rest) if trims_cr => rest,
                _ => value,
            };
            match naive(value) {
                Some(value) if *length < INLINE => expected[0].push((key, value)),
                Some(value) if *length < LONG => expected[1].push((key, value)),
                Some(value) if *length < WIDE => expected[2].push((key, value)),
                _ => rest.push((key, span)),
            }
        }
        assert!(text.len() <= WINDOW);
        for level in Level::available() {
            let buffer = PaddedBuf::with_fill(&text, b'0');
            let window = ScanWindow::at(&buffer.block(0, 0, 0), 0, WINDOW);
            let (mut ends, mut rows) = (Ends::new(), Rows::new());
            index::index(level, window, b';', b'\n', &mut ends);
            decode(level, window, &ends, trims_cr, &mut rows);
            let lists = rows.lists().chain([&rows.rest]);
            for (list, expected) in lists.zip(expected.iter().chain([&rest])) {
                let pairs = list
                    .keys()
                    .iter()
                    .copied()
                    .zip(list.values().iter().copied());
                assert!(pairs.eq(expected.iter().copied()), "{level:?}");
            }
        }
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => "-?[0-9]{1,2}\\.[0-9]\r?".prop_map(String::into_bytes),
            1 => "[-+.,/:0-9\r]{0,8}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>().prop_filter("a field", |b| !b";\n".contains(b)), 0..8),
        ]
    }

    proptest! {
        #[test]
        fn levels_agree_with_the_naive(
            lines in prop::collection::vec((0..150_usize, value()), 0..50),
            trims_cr in any::<bool>(),
        ) {
            check(&lines, trims_cr);
        }
    }

    /// Every value that differs from a good one in one byte, at every length around.
    #[test]
    fn near_misses() {
        // Miri takes a thousand times as long.
        let step = if cfg!(miri) { 97 } else { 1 };
        for good in [
            "1.2", "12.3", "-1.2", "-12.3", "99.9", "-99.9", "0.0", "-0.0",
        ] {
            let mut lines = Vec::new();
            // One place more, for what stands where a carriage return may.
            for at in 0..=good.len() {
                let bytes = (0..=255).step_by(step);
                for byte in bytes.filter(|byte| !b";\n".contains(byte)) {
                    let mut value = good.as_bytes().to_vec();
                    value.splice(at..good.len().min(at + 1), [byte]);
                    lines.push((1, value));
                }
                lines.push((1, good.as_bytes()[at..].to_vec()));
                lines.push((1, good.as_bytes()[..at].to_vec()));
            }
            for lines in lines.chunks(400) {
                check(lines, false);
                check(lines, true);
            }
        }
    }
}
