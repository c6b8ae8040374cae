//! How often each value is there, for the most frequent one. It keeps every value.

use std::cmp::Reverse;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::sketch::bytes::take_u64;

#[derive(Debug, Clone, Default)]
pub(crate) struct Frequencies(HashMap<Vec<u8>, u64, RandomState>);

impl Frequencies {
    pub(crate) fn add(&mut self, value: &[u8]) {
        self.add_times(value, 1);
    }

    fn add_times(&mut self, value: &[u8], times: u64) {
        let count = self.0.entry_ref(value).or_insert(0);
        *count = count.saturating_add(times);
    }

    pub(crate) fn merge(&mut self, mut from: Frequencies) {
        if from.0.len() > self.0.len() {
            std::mem::swap(self, &mut from);
        }
        for (value, count) in &from.0 {
            self.add_times(value, *count);
        }
    }

    /// Bytes in memory, about: most values are short.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = size_of::<(Vec<u8>, u64)>() + 32;
        EACH * self.0.capacity()
    }

    /// How many different values there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes of all different values.
    pub(crate) fn text_bytes(&self) -> usize {
        self.0.keys().map(Vec::len).sum()
    }

    /// Those that are there most often, with their counts; of several the least.
    pub(crate) fn most(&self, values: usize) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(value, count)| (&**value, *count))
            .collect();
        all.sort_unstable_by_key(|(value, count)| (Reverse(*count), *value));
        all.truncate(values);
        all
    }

    /// The value that is there most often; of several the least.
    pub(crate) fn mode(&self) -> Option<&[u8]> {
        let most = self
            .0
            .iter()
            .max_by_key(|(value, count)| (**count, Reverse(*value)));
        most.map(|(value, _)| &**value)
    }

    /// Its bytes; none if it has no values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_unstable();
        let mut bytes = Vec::new();
        for (value, count) in all {
            bytes.extend_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            bytes.extend_from_slice(value);
        }
        bytes
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Frequencies, &'static str> {
        let mut all = Frequencies::default();
        let mut last: Option<&[u8]> = None;
        while !bytes.is_empty() {
            let count = take_u64(&mut bytes)?;
            let len = usize::try_from(take_u64(&mut bytes)?).unwrap_or(usize::MAX);
            let (value, rest) = bytes.split_at_checked(len).ok_or("a sketch is cut short")?;
            bytes = rest;
            if count == 0 || last.is_some_and(|last| last >= value) {
                return Err("a sketch's values aren't in order");
            }
            last = Some(value);
            all.0.insert(value.into(), count);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn of(values: &[String]) -> Frequencies {
        let mut all = Frequencies::default();
        values.iter().for_each(|value| all.add(value.as_bytes()));
        all
    }

    proptest! {
        #[test]
        fn as_an_ordered_map_has_it(values in prop::collection::vec("[a-c]{0,2}", 0..40), cut in 0..40_usize) {
            let mut counts = BTreeMap::<&[u8], u64>::new();
            values.iter().for_each(|value| *counts.entry(value.as_bytes()).or_default() += 1);
            let most = counts.values().max();
            let want = counts.iter().find(|(_, count)| Some(*count) == most).map(|(value, _)| *value);
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut merged = of(one);
            merged.merge(of(two));
            prop_assert_eq!(merged.mode(), want);
            let bytes = merged.encode();
            prop_assert_eq!(&bytes, &of(&values).encode());
            prop_assert_eq!(&Frequencies::decode(&bytes).unwrap().encode(), &bytes);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(all) = Frequencies::decode(&bytes) {
                prop_assert_eq!(all.encode(), bytes);
            }
        }
    }
}
