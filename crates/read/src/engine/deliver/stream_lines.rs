//! Counts the lines of streams as their blocks are delivered, for the line of an error: a pipe can't be read again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use crate::input::spans::Input;
use crate::record::bytes;
use crate::sync::lock;

/// The lines of an input's streams.
pub(crate) struct StreamLines {
    /// What ends a line.
    end: u8,
    /// For each source; `None` for one that can be read again.
    sources: Vec<Option<Mutex<LineCount>>>,
}

/// What is known of a stream whose blocks come in nearly any order.
#[derive(Default)]
struct LineCount {
    /// All bytes before this one were counted.
    to: u64,
    /// How many lines end in them.
    ends: u64,
    /// Blocks behind: where each ends, and how many lines end in it.
    ahead: BTreeMap<u64, (u64, u64)>,
}

impl StreamLines {
    /// `None` where each source can be read again.
    pub(crate) fn new(input: &Input, end: u8) -> Option<StreamLines> {
        let sources = input.sources().iter();
        let sources = sources.map(|source| (!source.can_repeat()).then(Mutex::default));
        let sources: Vec<_> = sources.collect();
        let has_stream = sources.iter().any(Option::is_some);
        has_stream.then_some(StreamLines { end, sources })
    }

    /// Adds the bytes of a block up to a failure within it.
    pub(crate) fn add(&self, file: u32, place: Range<u64>, bytes: &[u8]) {
        if let Some(mut counted) = self.counted(file) {
            let ends = bytes::count(self.end, bytes) as u64;
            counted.add(place, ends);
        }
    }

    /// How many lines end before a byte, if all before it were counted.
    pub(crate) fn before(&self, file: u32, at: u64) -> Option<u64> {
        let counted = self.counted(file)?;
        (counted.to == at).then_some(counted.ends)
    }

    fn counted(&self, file: u32) -> Option<MutexGuard<'_, LineCount>> {
        let counted = self.sources.get(file as usize)?.as_ref()?;
        Some(lock(counted))
    }
}

impl LineCount {
    fn add(&mut self, block: Range<u64>, ends: u64) {
        self.ahead.insert(block.start, (block.end, ends));
        while let Some((to, ends)) = self.ahead.remove(&self.to) {
            self.ends += ends;
            // A failure at a block's first byte.
            if to == self.to {
                break;
            }
            self.to = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_in_any_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let mut counted = LineCount::default();
            let blocks = [(0..4, 1), (4..9, 2), (9..10, 0)];
            for at in order {
                let (block, ends) = blocks[at].clone();
                counted.add(block, ends);
            }
            assert_eq!((counted.to, counted.ends), (10, 3));
            assert!(counted.ahead.is_empty());
        }
        // What fails ends the count, whatever comes after.
        let mut counted = LineCount::default();
        counted.add(8..20, 5);
        counted.add(0..3, 1);
        assert_eq!((counted.to, counted.ends), (3, 1));
        counted.add(3..3, 0);
        assert_eq!((counted.to, counted.ends), (3, 1));
    }
}
