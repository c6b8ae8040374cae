//! The groups of [`pairs`](crate::run::pairs) of a whole run, in the order of their keys.
//!
//! Tables are sorted in place, so millions of keys need no second copy. A key that lanes or a table have too is moved
//! there: a group is in one place.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

use crate::aggregate::lanes::Kept;
use crate::aggregate::state::{Kind, Outcome, Rounding};
use crate::partial::column::Gathered;
use crate::report::grid::Digits;
use crate::table::lane_groups::LaneRows;
use crate::table::sorted::SortedKeys;
use crate::table::states::{Group, Table, parts, push_part};
use crate::table::stats::Stats;
use crate::table::tables::{DrainedClasses, Tables};

/// Digits behind the point of the numbers in the groups.
pub(crate) const SCALE: u32 = 1;

/// Keys of the longest list in a part that is merged.
const PART: usize = 1 << 15;

/// Groups of keys and statistics in tenths.
pub(crate) struct PairRows {
    /// One for each size of keys; no key is in two of them.
    lists: Vec<Box<dyn SortedKeys>>,
    kinds: Vec<&'static Kind>,
}

impl PairRows {
    /// Merges the tables of some workers and what was taken out of those that they share. Statistics that don't fit their
    /// entries go to `table`, and so do the keys that are null.
    pub(crate) fn merge(
        all: Vec<Tables>,
        drained: DrainedClasses,
        table: &mut Table,
        nulls: &[Vec<u8>],
    ) -> PairRows {
        PairRows::of(Tables::sorted(all, drained), table, nulls)
    }

    fn of(lists: Vec<Box<dyn SortedKeys>>, table: &mut Table, nulls: &[Vec<u8>]) -> PairRows {
        let mut rows = PairRows {
            lists,
            kinds: table.kinds().collect(),
        };
        let mut whole = Vec::new();
        for list in &mut rows.lists {
            for (key, stats) in list.take_overflow() {
                let key: &[u8] = if nulls.contains(&key) { b"" } else { &key };
                rows_to_table(table, key, &kept(&stats), &mut whole);
            }
        }
        for null in nulls {
            if let Some(found) = rows.find(null) {
                rows.move_to(table, found, b"", &mut whole);
            }
        }
        rows
    }

    /// Shows all keys and their statistics.
    pub(crate) fn each(&self, mut see: impl FnMut(&[u8], &Stats)) {
        for list in &self.lists {
            for at in 0..list.len() {
                let stats = list.stats(at);
                if stats.count() > 0 {
                    see(list.key(at), &stats);
                }
            }
        }
    }

    fn len(&self) -> usize {
        self.lists.iter().map(|list| list.len()).sum()
    }

    /// Moves groups to the table that lanes or the table have too.
    pub(crate) fn settle(&mut self, table: &mut Table, lanes: Option<&mut LaneRows>) {
        if self.len() == 0 {
            return;
        }
        let mut whole = Vec::new();
        let lanes_len = lanes.as_ref().map_or(0, |lanes| lanes.len());
        let mut moved: Vec<(usize, usize)> = Vec::new();
        if self.len() <= table.len() + lanes_len {
            for (list, keys) in self.lists.iter().enumerate() {
                for at in 0..keys.len() {
                    whole.clear();
                    push_part(&mut whole, keys.key(at));
                    let is_known = |lanes: &LaneRows| lanes.place_of(keys.key(at)).is_some();
                    if table.find(&whole).is_some() || lanes.as_deref().is_some_and(is_known) {
                        moved.push((list, at));
                    }
                }
            }
        } else {
            let of_table = table.groups().filter_map(|group| {
                let part = parts(table.key(group)).next();
                self.find(part.unwrap_or_default())
            });
            moved.extend(of_table);
            if let Some(lanes) = &lanes {
                let of_lanes: Vec<(usize, usize)> = lanes
                    .groups()
                    .filter_map(|group| {
                        let part = group.lanes().and_then(|place| lanes.parts(place).next());
                        self.find(part.unwrap_or_default())
                    })
                    .collect();
                moved.extend(of_lanes);
            }
        }
        let mut lanes = lanes;
        let mut key = Vec::new();
        for found in moved {
            key.clear();
            key.extend_from_slice(self.lists[found.0].key(found.1));
            self.move_to(table, found, &key, &mut whole);
            if let Some(lanes) = &mut lanes {
                lanes.move_key(&key, table);
            }
        }
    }

    /// Where a key is.
    fn find(&self, wanted: &[u8]) -> Option<(usize, usize)> {
        let lists = self.lists.iter().enumerate();
        let mut found = lists.map(|(list, keys)| (list, first_from(&**keys, wanted)));
        found.find(|&(list, at)| {
            let keys = &self.lists[list];
            at < keys.len() && keys.key(at) == wanted && keys.stats(at).count() > 0
        })
    }

    fn move_to(
        &mut self,
        table: &mut Table,
        (list, at): (usize, usize),
        key: &[u8],
        whole: &mut Vec<u8>,
    ) {
        let list = &mut self.lists[list];
        let stats = list.stats(at);
        if stats.count() > 0 {
            rows_to_table(table, key, &kept(&stats), whole);
            list.remove(at);
        }
    }

    /// All groups, in the order of the bytes of their keys.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let Some(longest) = self.lists.iter().max_by_key(|list| list.len()) else {
            return Vec::new();
        };
        let cuts = (PART..longest.len()).step_by(PART);
        let cuts: Vec<&[u8]> = cuts.map(|at| longest.key(at)).collect();
        let starts = |cut: Option<&&[u8]>, otherwise: fn(&dyn SortedKeys) -> usize| -> Vec<usize> {
            let lists = self.lists.iter();
            lists
                .map(|list| cut.map_or_else(|| otherwise(&**list), |cut| first_from(&**list, cut)))
                .collect()
        };
        let parts = (0..=cuts.len()).into_par_iter().map(|part| {
            let from = starts(part.checked_sub(1).map(|before| &cuts[before]), |_| 0);
            let to = starts(cuts.get(part), |list| list.len());
            let ranges = from.into_iter().zip(to).map(|(from, to)| from..to);
            self.merged(ranges.collect())
        });
        parts.flatten_iter().collect()
    }

    /// The groups of some places of each list, in order.
    fn merged(&self, mut ranges: Vec<Range<usize>>) -> Vec<Group> {
        let mut groups = Vec::with_capacity(ranges.iter().map(Range::len).sum());
        while let Some(list) = self.least(&ranges) {
            let at = ranges[list].start;
            ranges[list].start += 1;
            if self.lists[list].stats(at).count() > 0 {
                groups.push(Group::in_pairs(list, at));
            }
        }
        groups
    }

    /// The list whose next key is the least.
    fn least(&self, ranges: &[Range<usize>]) -> Option<usize> {
        let open = (0..ranges.len()).filter(|&list| !ranges[list].is_empty());
        let key = |list: usize| self.lists[list].key(ranges[list].start);
        open.reduce(|one, other| if key(other) < key(one) { other } else { one })
    }

    /// Whether groups are in the order of the bytes of their keys.
    pub(crate) fn are_sorted(&self, groups: &[Group]) -> bool {
        let key = |group: &Group| group.pair().map(|(list, at)| self.key(list, at));
        groups
            .par_windows(2)
            .all(|two| match [&two[0], &two[1]].map(|group| group.pair()) {
                [Some(one), Some(two)] if one.0 == two.0 => one.1 < two.1,
                [Some(_), Some(_)] => key(&two[0]) < key(&two[1]),
                _ => false,
            })
    }

    pub(crate) fn key(&self, list: usize, at: usize) -> &[u8] {
        self.lists[list].key(at)
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(
        &self,
        (list, at): (usize, usize),
        aggregate: usize,
        scale: u32,
    ) -> Outcome<'static> {
        let stats = self.lists[list].stats(at);
        self.kinds[aggregate].outcome(&kept(&stats), scale)
    }

    /// What is printed of it.
    pub(crate) fn digits(
        &self,
        (list, at): (usize, usize),
        aggregate: usize,
        scale: u32,
        rounding: Rounding,
    ) -> Option<Digits<'static>> {
        let stats = self.lists[list].stats(at);
        self.kinds[aggregate].digits(&kept(&stats), scale, rounding)
    }

    /// Adds a group's state of one of the aggregates to its columns.
    pub(crate) fn encode(&self, (list, at): (usize, usize), aggregate: usize, to: &mut [Gathered]) {
        let stats = self.lists[list].stats(at);
        self.kinds[aggregate].encode(&kept(&stats), to);
    }

    /// Fetches a group into the cache.
    pub(crate) fn prefetch(&self, (list, at): (usize, usize)) {
        self.lists[list].prefetch(at);
    }
}

/// The first place whose key isn't less than this one.
fn first_from(keys: &dyn SortedKeys, bound: &[u8]) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low.midpoint(high);
        match keys.key(middle).cmp(bound) {
            Ordering::Less => low = middle + 1,
            _ => high = middle,
        }
    }
    low
}

/// What is known of a group's rows.
pub(crate) fn kept(stats: &Stats) -> Kept {
    Kept {
        known: stats.count(),
        scale: SCALE,
        sum: stats.sum().into(),
        least: stats.min(),
        greatest: stats.max(),
        squares: 0,
    }
}

/// Adds what is known of a key's rows to a table. All of a plan's aggregates are about these numbers.
pub(crate) fn rows_to_table(table: &mut Table, key: &[u8], kept: &Kept, whole: &mut Vec<u8>) {
    whole.clear();
    push_part(whole, key);
    let group = table.group(whole);
    for aggregate in 0..table.aggregates() {
        table.absorb(group, aggregate, kept);
    }
}

#[cfg(test)]
mod tests {
    use ahash::RandomState;

    use super::*;
    use crate::aggregate;
    use crate::aggregate::state::Slot;

    /// One key, and statistics that did not fit its entry.
    struct Entry {
        stats: Stats,
        overflow: Vec<(Vec<u8>, Stats)>,
    }

    impl SortedKeys for Entry {
        fn len(&self) -> usize {
            1
        }

        fn key(&self, _: usize) -> &[u8] {
            b"NA"
        }

        fn stats(&self, _: usize) -> Stats {
            self.stats
        }

        fn remove(&mut self, _: usize) {
            self.stats.count = 0;
        }

        fn prefetch(&self, _: usize) {}

        fn take_overflow(&mut self) -> Vec<(Vec<u8>, Stats)> {
            std::mem::take(&mut self.overflow)
        }
    }

    #[test]
    fn overflow_of_a_key_goes_where_the_key_goes() {
        let rows = |count| Stats {
            count,
            ..Stats::default()
        };
        for (nulls, wanted) in [(vec![], "NA"), (vec![b"NA".to_vec()], "")] {
            let kind = aggregate::named("count").unwrap();
            let mut table = Table::new(&RandomState::new(), &[Slot { kind, owner: 0 }]);
            let list = Entry {
                stats: rows(2),
                overflow: vec![(b"NA".to_vec(), rows(5))],
            };
            let mut pairs = PairRows::of(vec![Box::new(list)], &mut table, &nulls);
            pairs.settle(&mut table, None);
            let groups: Vec<Group> = table.groups().collect();
            let parts: Vec<&[u8]> = parts(table.key(groups[0])).collect();
            let count = table.finish(groups[0], 0, 0).printed(Rounding::Own);
            assert_eq!((groups.len(), parts), (1, vec![wanted.as_bytes()]));
            assert_eq!(count.unwrap().text().to_string(), "7");
            assert!(pairs.groups().is_empty());
        }
    }
}
