//! A few keys that come often, each with what is known of it: a table of open addressing, because a look into one of
//! many such tables is one cache miss that can be fetched before.

use std::sync::LazyLock;

use ahash::RandomState;
use ringfold_read::internals::prefetch;

/// What keys are multiplied by, drawn for each run, so that nobody can choose keys that meet.
static MULTIPLIER: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u64) | 1);

/// The fewest places of a table that has any.
const PLACES_MIN: usize = 8;

/// Keys other than zero.
#[derive(Debug, Clone)]
pub(crate) struct Few<T> {
    /// The keys at their places, zeros elsewhere. A power of two, and some are zero; or there is none.
    keys: Box<[u64]>,
    known: Box<[T]>,
    len: usize,
    /// Bits of a product that don't choose a place.
    shift: u32,
    multiplier: u64,
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few {
            keys: Box::default(),
            known: Box::default(),
            len: 0,
            shift: u64::BITS - 1,
            multiplier: 1,
        }
    }
}

impl<T: Copy + Default> Few<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        (size_of::<u64>() + size_of::<T>()) * self.keys.len()
    }

    /// All keys, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, T)> {
        let all = self.keys.iter().zip(&self.known);
        all.filter(|(key, _)| **key != 0)
            .map(|(key, known)| (*key, *known))
    }

    /// The place where a key's search begins.
    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        // The upper bits of a product depend on all bits; doubles of whole numbers differ in their upper bits alone.
        let mixed = key.wrapping_mul(self.multiplier);
        (mixed >> self.shift) as usize
    }

    /// What is known of a key that is there.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        let mut at = self.place(key);
        loop {
            match self.keys[at] {
                found if found == key => return Some(&mut self.known[at]),
                0 => return None,
                _ => at = (at + 1) & (self.keys.len() - 1),
            }
        }
    }

    /// Adds a key that isn't there.
    pub(crate) fn insert(&mut self, key: u64, known: T) {
        debug_assert!(key != 0, "zero is no key");
        // Searches of keys that aren't there end at one that is free.
        if 8 * (self.len + 1) > 7 * self.keys.len() {
            let places = (2 * self.keys.len()).max(PLACES_MIN);
            let grown = Few {
                keys: vec![0; places].into(),
                known: vec![T::default(); places].into(),
                len: 0,
                shift: u64::BITS - places.trailing_zeros(),
                multiplier: *MULTIPLIER,
            };
            let before = std::mem::replace(self, grown);
            before.iter().for_each(|(key, known)| self.put(key, known));
        }
        self.put(key, known);
    }

    fn put(&mut self, key: u64, known: T) {
        let mut at = self.place(key);
        while self.keys[at] != 0 {
            at = (at + 1) & (self.keys.len() - 1);
        }
        (self.keys[at], self.known[at]) = (key, known);
        self.len += 1;
    }

    /// Fetches a key's place into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64) {
        let at = self.place(key);
        prefetch::into_l1(self.keys.as_ptr().wrapping_add(at).cast());
        if size_of::<T>() > 0 {
            prefetch::into_l1(self.known.as_ptr().wrapping_add(at).cast());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(keys in prop::collection::vec(prop_oneof![1..40_u64, any::<u64>()], 0..300)) {
            let (mut few, mut want) = (Few::default(), BTreeMap::new());
            for key in keys.into_iter().filter(|key| *key != 0) {
                few.prefetch(key);
                match few.get_mut(key) {
                    Some(count) => *count += 1,
                    None => few.insert(key, 1_u32),
                }
                *want.entry(key).or_insert(0) += 1;
                prop_assert_eq!(few.len(), want.len());
            }
            let mut got: Vec<_> = few.iter().collect();
            got.sort_unstable();
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
            prop_assert!(few.bytes() <= 12 * (few.len() * 16 / 7 + 8));
        }
    }
}
