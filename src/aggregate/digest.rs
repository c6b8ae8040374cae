//! The digest of a value: 64 bits from which it comes back.
//!
//! It is that of a number at the scale that all numbers of the column have in a table, of a text of up to 7 ASCII letters, or
//! of the number of another text among the table's. Numbers that have no digest are groups of their own (`spill::exact`).

use crate::decimal::number::Number;

/// The digest of zero; those of other numbers are as far from it.
pub(super) const ZERO: u64 = 1 << 63;

/// The digest of a number in units of the table's scale; digests have the order of numbers. None is zero.
pub(crate) fn of_number(number: i64) -> Option<u64> {
    (number != i64::MIN).then_some((number ^ i64::MIN).cast_unsigned())
}

/// The number of a digest.
pub(crate) fn number(digest: u64) -> i64 {
    digest.cast_signed() ^ i64::MIN
}

/// The most bytes of a text that is its own digest, and bits of its length.
const SHORT_MAX: usize = 7;
const LENGTH_BITS: u32 = 3;

/// The digest of a short text of ASCII letters; digests have the order of texts.
pub(crate) fn of_text(text: &[u8]) -> Option<u64> {
    let len = text.len();
    let bytes = match len {
        0 => 0,
        // Bytes that are read twice are the same at the same place.
        1..=3 => {
            let byte = |at: usize| u64::from(text[at]) << (48 - 8 * at);
            byte(0) | byte(len / 2) | byte(len - 1)
        }
        4..=SHORT_MAX => {
            let four = |at: usize| {
                text[at..]
                    .first_chunk()
                    .map_or(0, |four| u32::from_be_bytes(*four))
            };
            u64::from(four(0)) << 24 | u64::from(four(len - 4)) << (56 - 8 * len)
        }
        _ => return None,
    };
    if bytes & 0x80_8080_8080_8080 != 0 {
        return None;
    }
    // Seven bits of each byte, then those of two, then those of four.
    let bits = bytes & 0x7f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00) >> 1;
    let bits = bits & 0x3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
    let bits = bits & 0xfff_ffff | (bits & 0xfff_ffff_0000_0000) >> 4;
    Some(ZERO | bits << LENGTH_BITS | len as u64)
}

/// The digest of a text by its number among the table's.
pub(crate) fn of_long(text: u32) -> u64 {
    ZERO - 1 - u64::from(text)
}

/// What a text's digest says.
pub(crate) enum Text {
    Short([u8; 8], usize),
    /// The number of a text.
    Long(u32),
}

pub(crate) fn text(digest: u64) -> Text {
    let Some(short) = digest.checked_sub(ZERO) else {
        return Text::Long((ZERO - 1 - digest) as u32);
    };
    let bits = short >> LENGTH_BITS;
    let bytes = (0..SHORT_MAX).map(|at| (bits >> (42 - 7 * at)) as u8 & 0x7f);
    let mut text = [0; 8];
    text.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    Text::Short(text, (short & ((1 << LENGTH_BITS) - 1)) as usize)
}

/// Bytes that name an aggregate in the part of a value. None of them is zero.
pub(crate) const NAME: usize = 2;
const BASE: usize = 255;

pub(crate) fn name(aggregate: usize) -> [u8; NAME] {
    [1 + aggregate / BASE % BASE, 1 + aggregate % BASE].map(|byte| byte as u8)
}

/// Appends the part of a number that is a group of its own to the parts of its group's key.
pub(crate) fn push_own(key: &mut Vec<u8>, aggregate: usize, number: &Number) {
    let start = key.len();
    key.extend_from_slice(&[0; 4]);
    key.extend_from_slice(&name(aggregate));
    number.push_ordered(key);
    let length = (key.len() - start - 4) as u32;
    key[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_their_digests(one in prop::collection::vec(0..3_u8, 0..8), two in prop::collection::vec(0..128_u8, 0..8)) {
            let digests = [&one, &two].map(|bytes| of_text(bytes).unwrap());
            prop_assert_eq!(digests[0].cmp(&digests[1]), one.cmp(&two));
            for (bytes, digest) in [(&one, digests[0]), (&two, digests[1])] {
                let Text::Short(found, len) = text(digest) else {
                    panic!("a long text");
                };
                prop_assert_eq!(&found[..len], &bytes[..]);
            }
        }

        #[test]
        fn others_are_numbered(mut bytes in prop::collection::vec(0..128_u8, 1..8), at in 0..7_usize, number: u32) {
            let at = at % bytes.len();
            bytes[at] |= 0x80;
            prop_assert_eq!(of_text(&bytes), None);
            prop_assert_eq!(of_text(b"8 bytes."), None);
            prop_assert!(matches!(text(of_long(number)), Text::Long(found) if found == number));
        }
    }
}
