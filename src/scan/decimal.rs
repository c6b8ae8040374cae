//! The third pass: the numbers of a column, in units of a power of ten.
//!
//! It reads values of up to eight bytes, `-?[0-9]*\.?[0-9]*` with a digit and no more decimals than the scale, and longer ones
//! [one by one](crate::scan::long_decimal). What else there is it leaves to a caller, by row.

use crate::decimal::number::Number;
use crate::scan::index::{TextWindow, WINDOW};
use crate::scan::long_decimal::decode_long;
use crate::scan::numbers::{FACTORS, Numbers, SCALE_MAX, SHORT_SCALE_MAX};
use crate::scan::spans::value;
#[cfg(target_arch = "x86_64")]
use ringfold_read::internals::isa::lanes::Lanes;
use ringfold_read::internals::{Level, isa::dispatch};

/// The most decimals among those of some values that `read` takes for numbers, as far as the units of all of these are less than
/// `limit` then.
pub(crate) fn usual_scale<E>(
    window: TextWindow<'_>,
    spans: &[u32],
    limit: u64,
    read: impl Fn(&[u8]) -> Result<Number, E>,
) -> u32 {
    let values = spans.iter().map(|&span| value(window, span));
    let numbers: Vec<Number> = values.flat_map(read).collect();
    let scales = numbers.iter().map(Number::decimals);
    let most = scales.filter(|scale| *scale <= SCALE_MAX).max();
    let fits = |number: &Number, scale| match number.at(scale) {
        Some(units) => units.unsigned_abs() < limit.into(),
        None => number.decimals() > scale,
    };
    let fits_all = |scale: &u32| numbers.iter().all(|number| fits(number, *scale));
    let scales = (0..=most.unwrap_or_default()).rev();
    { scales }.find(fits_all).unwrap_or_default()
}

/// Decodes the first `rows` of `spans`, which are of `window`, with at most `scale` decimals after the byte `point`. Eight
/// spans more are looked at.
pub(crate) fn decode(
    level: Level,
    window: TextWindow<'_>,
    spans: &[u32],
    rows: usize,
    (scale, point): (u32, u8),
    to: &mut Numbers,
) {
    assert!(rows + 8 <= spans.len() && rows <= WINDOW && scale <= SCALE_MAX);
    to.unread.clear();
    to.has_nulls = false;
    (to.magnitudes, to.decimals) = (0, 0);
    let short = (scale.min(SHORT_SCALE_MAX), point);
    let mut trimmed = std::mem::take(&mut to.trimmed);
    trimmed.clear();
    let spans = if to.has_blanks {
        dispatch!(level, _isa => trim_all(window, &spans[..rows], &mut trimmed));
        to.has_blanks = trimmed != spans[..rows];
        trimmed.extend([0; 8]);
        &*trimmed
    } else {
        spans
    };
    dispatch!(
        level,
        isa => vectors(isa, window, spans, rows, short, to),
        else portable(window, &spans[..rows], short, to)
    );
    if scale > SHORT_SCALE_MAX {
        to.raise(rows, 10_u64.pow(scale - SHORT_SCALE_MAX));
    }
    if !to.unread.is_empty() {
        let unread = to.unread.iter().map(|row| spans[*row as usize]);
        let some = unread.take(SAMPLE_LEN);
        to.has_blanks |= { some }.any(|span| trim(window, span) != span);
        decode_long(level, window, spans, (scale, point), to);
    }
    to.trimmed = trimmed;
}

/// So many unread values tell whether there are blanks.
const SAMPLE_LEN: usize = 8;

#[inline(always)]
fn trim_all(window: TextWindow<'_>, spans: &[u32], to: &mut Vec<u32>) {
    to.extend(spans.iter().map(|span| trim(window, *span)));
}

/// A span without the blanks around its value, up to eight on each side.
#[inline(always)]
fn trim(window: TextWindow<'_>, span: u32) -> u32 {
    let (start, end) = ((span & 0xffff) as usize, (span >> 16) as usize);
    let differences = |word: &[u8; 8]| u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8]);
    let before = differences(window.from(start)).trailing_zeros() / 8;
    let after = differences(window.before(end - 1)).leading_zeros() / 8;
    let is_blank = (before + after) as usize >= end - start - 1;
    if is_blank {
        span
    } else {
        span + before - (after << 16)
    }
}

/// Eight at a time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vectors<I: Lanes>(
    isa: I,
    window: TextWindow<'_>,
    spans: &[u32],
    rows: usize,
    (scale, point): (u32, u8),
    to: &mut Numbers,
) {
    let factors = isa.table(&FACTORS[scale as usize]);
    let (mut magnitudes, mut most) = (isa.splat(0), isa.splat(0));
    for eight in (0..rows).step_by(8) {
        let (mut nulls, mut good) = (0, 0);
        for from in (0..8).step_by(I::COUNT) {
            let places = eight + from..eight + from + I::COUNT;
            let read = read_lanes(isa, window, &spans[places.clone()], factors, point);
            magnitudes = isa.or(magnitudes, read.magnitudes);
            most = isa.max(most, read.decimals);
            nulls |= isa.bits(read.nulls) << from;
            good |= isa.bits(read.good) << from;
            let values = isa.negate(read.negative, read.magnitudes);
            isa.store(values, &mut to.values[places]);
        }
        to.book(eight, rows, nulls, good);
    }
    let mut lanes = [0; 8];
    isa.store(magnitudes, &mut lanes);
    to.magnitudes = lanes.into_iter().fold(0, |all, lane| all | lane as u64);
    isa.store(most, &mut lanes);
    to.decimals = lanes.into_iter().max().unwrap_or_default() as u32;
}

/// What some spans have.
#[cfg(target_arch = "x86_64")]
struct Read<I: Lanes> {
    /// 0 where no number was read, and so are the decimals.
    magnitudes: I::Lanes,
    decimals: I::Lanes,
    negative: I::Mask,
    nulls: I::Mask,
    good: I::Mask,
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_lanes<I: Lanes>(
    isa: I,
    window: TextWindow<'_>,
    spans: &[u32],
    factors: I::Table,
    point: u8,
) -> Read<I> {
    let (none, ones, low_byte) = (isa.splat(0), isa.splat(!0), isa.splat(0xff));
    let lanes = isa.widen(spans);
    let start = isa.and(lanes, isa.splat(0xffff));
    let end = isa.shr(lanes, isa.splat(16));
    let length = isa.sub(isa.sub(end, start), isa.splat(1));
    // Longer values are shifted out as a whole, and don't count.
    let shift = isa.shl(isa.sub(isa.splat(8), length), isa.splat(3));
    let words = isa.collect(
        #[inline(always)]
        |lane| {
            let nine = window.before::<9>((spans[lane] >> 16) as usize);
            u64::from_le_bytes(*nine.first_chunk().expect("eight bytes"))
        },
    );
    let digits = isa.xor(words, isa.splat_bytes(b'0'));
    let mut word = isa.and(digits, isa.shl(ones, shift));
    let dash = isa.splat(u64::from(b'-' ^ b'0'));
    let negative = isa.equal_lanes(isa.and(isa.shr(word, shift), low_byte), dash);
    word = isa.xor(word, isa.keep(negative, isa.shl(dash, shift)));
    // The first point is taken out, and what stands before it moves up; a second one is no digit.
    let points = isa.equal_bytes(word, isa.splat_bytes(point ^ b'0'));
    let no_point = isa.equal_lanes(points, none);
    let has_point = isa.not(no_point);
    let before = isa.without(isa.add(points, ones), points);
    let up_to = isa.or(isa.shl(before, isa.splat(8)), low_byte);
    let after = isa.keep(has_point, isa.without(ones, up_to));
    let moved = isa.shl(isa.and(word, before), isa.splat(8));
    word = isa.select(no_point, word, isa.or(isa.and(word, after), moved));
    let decimals = isa.sum_bytes(isa.and(after, isa.splat_bytes(1)));
    let factor = isa.look_up(factors, decimals);
    let count = isa.decrement(has_point, isa.decrement(negative, length));
    let fits = isa.both(isa.greater(isa.splat(9), length), isa.greater(count, none));
    let above_nine = isa.add_saturating_bytes(word, isa.splat_bytes(0x76));
    let above_nine = isa.and(above_nine, isa.splat_bytes(0x80));
    let good = isa.both(fits, isa.equal_lanes(above_nine, none));
    let good = isa.both(good, isa.not(isa.equal_lanes(factor, none)));
    Read {
        magnitudes: isa.keep(good, isa.mul(isa.join_digits(word), factor)),
        decimals: isa.keep(good, decimals),
        negative,
        nulls: isa.equal_lanes(length, none),
        good,
    }
}

/// One after the other, in 64-bit words.
fn portable(window: TextWindow<'_>, spans: &[u32], (scale, point): (u32, u8), to: &mut Numbers) {
    let factors = &FACTORS[scale as usize];
    for (eight, spans) in spans.chunks(8).enumerate() {
        let (mut nulls, mut good) = (0, 0);
        for (at, &span) in spans.iter().enumerate() {
            let value = value(window, span);
            to.values[8 * eight + at] = 0;
            nulls |= u8::from(value.is_empty()) << at;
            let Some((number, decimals)) = read(value, point) else {
                continue;
            };
            if decimals <= scale {
                let magnitude = number.unsigned_abs() * u64::from(factors[decimals as usize]);
                to.magnitudes |= magnitude;
                to.decimals = to.decimals.max(decimals);
                to.values[8 * eight + at] = number.signum() * magnitude as i64;
                good |= 1 << at;
            }
        }
        to.book(8 * eight, 8 * eight + spans.len(), nulls, good);
    }
}

/// A number of up to eight bytes without its point, and the digits after that.
fn read(value: &[u8], decimal_point: u8) -> Option<(i64, u32)> {
    if value.len() > 8 {
        return None;
    }
    let (is_negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut number, mut point, mut seen) = (0, None, 0);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + i64::from(byte - b'0');
                seen += 1;
            }
            byte if *byte == decimal_point && point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| digits.len() - point - 1);
    (seen > 0).then_some((if is_negative { -number } else { number }, decimals as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::lanes::MAGNITUDE_MAX;
    use proptest::prelude::*;
    use ringfold_read::PaddedBuf;

    /// Every level against the parser of single numbers.
    fn check(values: &[String], scale: u32) {
        let text: String = values.iter().map(|value| format!("{value}\n")).collect();
        // The last line may lack its newline.
        for text in [&*text, text.strip_suffix('\n').unwrap_or_default()] {
            check_text(text, values, scale);
        }
    }

    fn check_text(text: &str, values: &[String], scale: u32) {
        let padded = PaddedBuf::from(text.as_bytes());
        let block = padded.block(0, 0, 0);
        let window = TextWindow::at(&block, 0);
        let (mut spans, mut at) = (vec![], 0);
        for value in values {
            let end = at + value.len() as u32 + 1;
            spans.push(at | end << 16);
            at = end;
        }
        spans.extend([0; 8]);
        let levels = Level::available().into_iter();
        let levels = levels.flat_map(|level| [(level, false), (level, true)]);
        for (level, has_blanks) in levels {
            let mut numbers = Numbers::new();
            numbers.has_blanks = has_blanks;
            numbers.values.fill(7);
            decode(
                level,
                window,
                &spans,
                values.len(),
                (scale, b'.'),
                &mut numbers,
            );
            let (mut unread, mut magnitudes, mut decimals) = (vec![], 0, 0);
            for (row, value) in values.iter().enumerate() {
                assert_eq!(numbers.is_null(row), value.is_empty());
                let got = numbers.values[row];
                let number = Number::read(value.as_bytes()).ok();
                // What the pass may leave to others, it must leave: exponents, long numbers.
                let plain = value.trim_matches([' ', '\t']);
                let plain = plain.strip_prefix(['-', '+']).unwrap_or(plain);
                let is_digit = |c: char| c == '.' || c.is_ascii_digit();
                let is_plain = plain.len() <= 20 && plain.chars().all(is_digit);
                let is_plain = is_plain && !plain.split('.').any(|part| part.len() > 19);
                let number = number.filter(|_| is_plain);
                let number = number.filter(|number| number.decimals() <= scale);
                let units = number.and_then(|number| i64::try_from(number.at(scale)?).ok());
                let units = units.filter(|units| units.unsigned_abs() < MAGNITUDE_MAX);
                match number.zip(units) {
                    Some((number, want)) => {
                        assert_eq!(got, want, "{value}");
                        magnitudes |= want.unsigned_abs();
                        decimals = decimals.max(number.decimals());
                    }
                    None => {
                        assert_eq!(got, 0, "{value}");
                        if !value.is_empty() {
                            unread.push(row as u32);
                        }
                    }
                }
            }
            assert_eq!(numbers.unread, unread, "{values:?}");
            assert_eq!(numbers.magnitudes, magnitudes);
            // Those of values that are too large may count.
            assert!(numbers.decimals >= decimals && numbers.decimals <= scale);
            assert_eq!(numbers.has_nulls, values.iter().any(String::is_empty));
        }
    }

    proptest! {
        #[test]
        fn as_the_parser_reads(
            values in prop::collection::vec(
                prop_oneof![
                    "-?[0-9]{0,9}", "-?[0-9]{1,5}\\.[0-9]{0,4}", "[-+. 0-9a/:\"]{0,10}", "-?\\.?[0-9]?",
                    " ?[-+]?[0-9]{0,20}\\.?[0-9]{0,20} ?", "[0-9]{17,21}", "[0-9]{1,3}\\.[0-9]{13,19}\t?",
                ],
                0..40),
            scale in 0..=SCALE_MAX,
        ) {
            check(&values, scale);
        }

        /// Most are as long as the first.
        #[test]
        fn as_the_parser_reads_long_ones(
            values in prop::sample::select(&[
                "-?[0-9]{1,3}\\.[0-9]{15}", "-?[0-9]{0,8}\\.[0-9]{9}", "-?[0-9]{17,20}", "-?[0-9]{8,16}",
                "[-+0-9. ]{0,3}\\.?[0-9]{5,18}",
            ][..]).prop_flat_map(|form| prop::collection::vec(form, 0..40)),
            odd in prop::collection::vec((0..40_usize, "[-+. 0-9a]{0,20}"), 0..3),
            scale in prop_oneof![Just(0), Just(9), Just(15), 0..=SCALE_MAX],
        ) {
            let mut values = values;
            for (at, odd) in odd {
                values.insert(at % (values.len() + 1), odd);
            }
            check(&values, scale);
        }
    }

    /// Every text of up to four bytes that are near digits, points and signs.
    #[test]
    fn all_short_texts() {
        let bytes = b"0179.-+/:, ";
        let mut texts = vec![String::new()];
        for _ in 0..if cfg!(miri) { 1 } else { 4 } {
            let longer = texts.iter().flat_map(|text| {
                bytes
                    .iter()
                    .map(move |&byte| format!("{text}{}", byte as char))
            });
            texts = longer.chain([String::new()]).collect();
        }
        for values in texts.chunks(3000) {
            check(values, 2);
        }
    }
}
