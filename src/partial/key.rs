//! Keys of several parts as bytes whose order is that of the parts, compared one after the other.
//!
//! The last part lies as it is. In each part before, a zero is followed by 0xff, and two zeros end it. So the key of one
//! column is the field itself.

use std::borrow::Cow;

const ESCAPED: u8 = 0xff;
const END: [u8; 2] = [0, 0];

/// Appends a key of these parts.
pub(crate) fn push<'a>(to: &mut Vec<u8>, parts: impl Iterator<Item = &'a [u8]>) {
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            to.extend_from_slice(part);
            break;
        }
        match memchr::memchr(0, part) {
            None => to.extend_from_slice(part),
            Some(_) => {
                for &byte in part {
                    to.push(byte);
                    if byte == 0 {
                        to.push(ESCAPED);
                    }
                }
            }
        }
        to.extend_from_slice(&END);
    }
}

/// The parts of a key; `None` if it isn't a key of so many parts.
pub(crate) fn parts(key: &[u8], count: usize) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut parts = Vec::with_capacity(count);
    each_part(key, count, |part| parts.push(part))?;
    Some(parts)
}

/// Shows the parts of a key; `None` if it isn't a key of so many parts.
pub(crate) fn each_part<'a>(
    key: &'a [u8],
    count: usize,
    mut see: impl FnMut(Cow<'a, [u8]>),
) -> Option<()> {
    let mut rest = key;
    if count == 0 {
        return key.is_empty().then_some(());
    }
    for _ in 1..count {
        let mut part = Cow::Borrowed(&b""[..]);
        loop {
            let zero = memchr::memchr(0, rest)?;
            let (before, behind) = rest.split_at(zero);
            let escape = *behind.get(1)?;
            rest = &behind[2..];
            match (&mut part, escape) {
                (Cow::Borrowed([]), 0) => {
                    part = Cow::Borrowed(before);
                    break;
                }
                (part, 0) => {
                    part.to_mut().extend_from_slice(before);
                    break;
                }
                (part, ESCAPED) => {
                    let part = part.to_mut();
                    part.extend_from_slice(before);
                    part.push(0);
                }
                _ => return None,
            }
        }
        see(part);
    }
    see(Cow::Borrowed(rest));
    Some(())
}

/// The first bytes of a key as a number; keys with different numbers are in the order of these.
pub(crate) fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut key = Vec::new();
        push(&mut key, parts.iter().map(Vec::as_slice));
        key
    }

    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(
            prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()],
            0..12,
        )
    }

    #[test]
    fn a_key_of_one_part_is_that_part() {
        assert_eq!(key(&[b"a\0b".to_vec()]), b"a\0b");
        assert_eq!(key(&[b"a\0".to_vec(), b"b\0".to_vec()]), b"a\0\xff\0\0b\0");
        assert_eq!(parts(b"", 0), Some(vec![]));
        assert_eq!(parts(b"a", 0), None);
        for damaged in [&b"a"[..], b"a\0", b"a\0\x01b", b""] {
            assert_eq!(parts(damaged, 2), None, "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_parts(
            one in prop::collection::vec(part(), 3),
            two in prop::collection::vec(part(), 3),
            count in 1..=3_usize,
            same in 0..3_usize,
        ) {
            let mut two = two;
            two[..same].clone_from_slice(&one[..same]);
            let (one, two) = (&one[..count], &two[..count]);
            let keys = [key(one), key(two)];
            prop_assert_eq!(keys[0].cmp(&keys[1]), one.cmp(two));
            let prefixes = [prefix(&keys[0]), prefix(&keys[1])];
            prop_assert!(prefixes[0] == prefixes[1] || prefixes[0].cmp(&prefixes[1]) == one.cmp(two));
            let back = parts(&keys[0], count).unwrap();
            let back: Vec<Vec<u8>> = back.into_iter().map(Cow::into_owned).collect();
            prop_assert_eq!(back, one);
        }

        #[test]
        fn any_bytes_are_parts_or_none(bytes in part(), count in 0..4_usize) {
            if let Some(found) = parts(&bytes, count) {
                let found: Vec<Vec<u8>> = found.into_iter().map(Cow::into_owned).collect();
                prop_assert_eq!(key(&found), bytes);
            }
        }
    }
}
