//! Puts the rows of a batch in the order of their keys: runs, each in order, are merged by twos.
//!
//! Rows are compared by a number that begins like their keys, without a branch that depends on the data.

use std::hint::select_unpredictable;

/// A row of an input: both in one word, which is moved on a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Row(u64);

impl Row {
    pub(crate) const fn new(input: u32, row: u32) -> Row {
        Row((input as u64) << 32 | row as u64)
    }

    #[inline(always)]
    pub(crate) fn input(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub(crate) fn row(self) -> usize {
        self.0 as u32 as usize
    }
}

/// A row with the first bytes of its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ranked {
    /// The first bytes as a number.
    pub(crate) prefix: u64,
    pub(crate) row: Row,
}

/// Rows that are put in order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    rows: Vec<Ranked>,
    /// Where each run ends.
    ends: Vec<usize>,
    /// Memory for the rows of the next pass.
    merged: Vec<Ranked>,
}

impl Order {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
    }

    /// Adds rows that are in order.
    pub(crate) fn push_run(&mut self, rows: impl Iterator<Item = Ranked>) {
        self.rows.extend(rows);
        if self.ends.last().copied().unwrap_or(0) < self.rows.len() {
            self.ends.push(self.rows.len());
        }
    }

    /// All rows by their prefixes. Those with the same one are in the order in which they were added.
    pub(crate) fn sort(&mut self) -> &mut [Ranked] {
        let Order { rows, ends, merged } = self;
        merged.resize(rows.len(), Ranked::default());
        while ends.len() > 1 {
            let mut from = 0;
            for pair in ends.chunks(2) {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                merge(
                    &rows[from..middle],
                    &rows[middle..end],
                    &mut merged[from..end],
                );
                from = end;
            }
            std::mem::swap(rows, merged);
            // Of two runs one end is left.
            let pairs = ends.len().div_ceil(2);
            for at in 0..pairs {
                ends[at] = ends[ends.len().min(2 * at + 2) - 1];
            }
            ends.truncate(pairs);
        }
        rows
    }
}

/// Merges two runs from both ends at once: two chains of steps that don't wait for each other.
fn merge(one: &[Ranked], two: &[Ranked], to: &mut [Ranked]) {
    // What stands for a row where a run has none.
    const GREATEST: Ranked = Ranked {
        prefix: u64::MAX,
        row: Row::new(0, 0),
    };
    const LEAST: Ranked = Ranked {
        prefix: 0,
        ..GREATEST
    };
    let next = |run: &[Ranked], start: usize| run.get(start).copied().unwrap_or(GREATEST);
    let before = |run: &[Ranked], end: usize| match end {
        0 => LEAST,
        _ => run[end - 1],
    };
    let (first_half, second_half) = to.split_at_mut(to.len() / 2);
    let (mut start, mut other_start) = (0, 0);
    let (mut end, mut other_end) = (one.len(), two.len());
    for (front, back) in first_half.iter_mut().zip(second_half.iter_mut().rev()) {
        let (first, second) = (next(one, start), next(two, other_start));
        let is_second = (second.prefix < first.prefix) | (start == one.len());
        *front = select(is_second, second, first);
        start += usize::from(!is_second);
        other_start += usize::from(is_second);

        let (first, second) = (before(one, end), before(two, other_end));
        let is_first = (second.prefix < first.prefix) | (other_end == 0);
        *back = select(is_first, first, second);
        end -= usize::from(is_first);
        other_end -= usize::from(!is_first);
    }
    if first_half.len() < second_half.len() {
        second_half[0] = if start < end {
            one[start]
        } else {
            two[other_start]
        };
    }
}

#[inline(always)]
fn select(is_so: bool, if_so: Ranked, otherwise: Ranked) -> Ranked {
    Ranked {
        prefix: select_unpredictable(is_so, if_so.prefix, otherwise.prefix),
        row: select_unpredictable(is_so, if_so.row, otherwise.row),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As a stable sort does it, also at both ends of the numbers.
        #[test]
        fn rows_are_put_in_order(
            runs in prop::collection::vec(
                prop::collection::vec(prop_oneof![Just(0), 1..4_u64, Just(u64::MAX), any::<u64>()], 0..20),
                0..9,
            ),
        ) {
            let mut order = Order::default();
            // What was there before makes no difference.
            for runs in [&runs[..runs.len() / 2], &runs] {
                order.clear();
                let mut want = Vec::new();
                for (input, prefixes) in (0..).zip(runs) {
                    let mut prefixes = prefixes.clone();
                    prefixes.sort_unstable();
                    let run = (0..).zip(prefixes);
                    let run = run.map(|(row, prefix)| Ranked { prefix, row: Row::new(input, row) });
                    want.extend(run.clone());
                    order.push_run(run);
                }
                want.sort_by_key(|ranked| ranked.prefix);
                prop_assert_eq!(&*order.sort(), &want[..]);
            }
        }
    }
}
