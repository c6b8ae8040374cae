//! Keys and the lanes of each, to which most rows are added: inline while keys are few, in entries once they are many.
//!
//! Rows come in batches: hash and prefetch all, then compare, then add. Both tables say where a row's lanes are by the units
//! before them, so one loop adds to either.
//!
//! Invariant of this module: the places of a batch are those of lanes in the table. After a key that is looked up
//! [`READABLE`] bytes can be read.
#![allow(unsafe_code)]

use rayon::iter::Either;
use ringfold_read::internals::{Level, isa::dispatch};

use crate::aggregate::lanes::Addition;
use crate::table::batch::{BATCH, Batch};
use crate::table::entries::{EntryTable, KEY_MAX, Key, SHORT_MAX, UNIT, tag_of};
use crate::table::inline::InlineTable;
use crate::table::isa::{Kernels, READABLE, Seeds};
use crate::table::key::hash;

/// Lanes that are added to at once.
pub(crate) const GROUP_LANES: usize = 4;
/// The most rows of a batch where keys are in entries: what is fetched for them stays in the second-level cache.
pub(crate) const ENTRY_ROWS: usize = 128;

/// The bytes of the longest span, more than any key has if an end isn't after its start, and the last end.
#[inline(always)]
fn bounds(spans: &[u32]) -> (usize, usize) {
    let (mut longest, mut last) = (0, 0);
    for span in spans {
        // Without the byte after the key.
        let length = (span >> 16).wrapping_sub(span & 0xffff).wrapping_sub(1);
        longest = length.max(longest);
        last = last.max(*span);
    }
    let one = usize::from(!spans.is_empty());
    (longest as usize + one, (last >> 16) as usize)
}

/// The table.
pub(crate) struct LaneTable {
    level: Level,
    seeds: Seeds,
    lanes: usize,
    is_short: bool,
    keys: Keys,
    batch: Box<Batch>,
}

enum Keys {
    Inline(InlineTable),
    Entries(EntryTable),
}

impl LaneTable {
    /// For keys with so many lanes. Tables of the same seeds have the same hashes. Where memory is short, all keys are in
    /// entries, without slots that are left empty for speed.
    pub(crate) fn new(level: Level, seeds: &Seeds, lanes: usize, is_short: bool) -> LaneTable {
        LaneTable {
            level,
            seeds: seeds.clone(),
            lanes,
            is_short,
            keys: match is_short {
                true => Keys::Entries(EntryTable::new(lanes, true)),
                false => Keys::Inline(InlineTable::new(lanes)),
            },
            batch: Box::new(Batch::new()),
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        match &self.keys {
            Keys::Inline(table) => table.len(),
            Keys::Entries(table) => table.len(),
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        match &self.keys {
            Keys::Inline(table) => table.bytes(),
            Keys::Entries(table) => table.bytes(),
        }
    }

    /// The most memory that is taken while so many keys more are added.
    pub(crate) fn bytes_with(&self, more: usize) -> usize {
        match &self.keys {
            Keys::Inline(table) => table.bytes() + more * (KEY_MAX + self.lanes * size_of::<i64>()),
            Keys::Entries(table) => table.bytes_with(more),
        }
    }

    /// All keys, with the byte after each, and their lanes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[i64])> {
        match &self.keys {
            Keys::Inline(table) => Either::Left(table.iter()),
            Keys::Entries(table) => Either::Right(table.iter()),
        }
    }

    /// Calls `change` for each of them.
    pub(crate) fn each_mut(&mut self, change: impl FnMut(&[u8], &mut [i64])) {
        match &mut self.keys {
            Keys::Inline(table) => table.each_mut(change),
            Keys::Entries(table) => table.each_mut(change),
        }
    }

    /// All keys, in entries, where they are moved to.
    #[cold]
    pub(crate) fn entries(&mut self) -> &mut EntryTable {
        if let Keys::Inline(table) = &self.keys {
            let mut entries = EntryTable::new(self.lanes, self.is_short);
            for (key, lanes) in table.iter() {
                let key = Key::of(key).expect("a short key");
                let tag = key.tag(self.level, &self.seeds);
                entries.add(tag, &key, &lanes[..self.lanes], |_, _| true);
            }
            self.keys = Keys::Entries(entries);
        }
        match &mut self.keys {
            Keys::Entries(entries) => entries,
            Keys::Inline(_) => unreachable!("moved above"),
        }
    }

    /// Is ready for many keys.
    pub(crate) fn expect_many(&mut self) {
        self.entries();
    }

    /// Whether it is.
    pub(crate) fn expects_many(&self) -> bool {
        matches!(self.keys, Keys::Entries(_))
    }

    /// The same, in the end.
    pub(crate) fn into_entries(mut self) -> EntryTable {
        self.entries();
        match self.keys {
            Keys::Entries(entries) => entries,
            Keys::Inline(_) => unreachable!("moved above"),
        }
    }

    /// Makes room for so many keys, the longest of which has so many bytes.
    fn reserve(&mut self, keys: usize, longest: usize) {
        if let Keys::Inline(table) = &mut self.keys {
            let level = self.level;
            let has_room = longest <= SHORT_MAX
                && table.reserve(keys, &self.seeds, |seeds, key| hash(level, seeds, key));
            if has_room {
                return;
            }
        }
        let units = longest.max(SHORT_MAX).div_ceil(UNIT);
        self.entries().reserve(keys, units);
    }

    /// Adds a key that isn't there yet, with its lanes.
    pub(crate) fn insert(&mut self, key: &Key, lanes: &[i64]) {
        let short = key.short();
        self.reserve(1, short.as_ref().map_or(KEY_MAX, |_| SHORT_MAX));
        match (&mut self.keys, &short) {
            (Keys::Inline(table), Some(short)) => {
                let hash = hash(self.level, &self.seeds, short);
                table.insert(hash, short)[..lanes.len()].copy_from_slice(lanes);
            }
            (Keys::Inline(_), None) => unreachable!("long keys are in entries"),
            (Keys::Entries(table), _) => {
                let tag = key.tag(self.level, &self.seeds);
                table.add(tag, key, lanes, |_, _| unreachable!("each key once"));
            }
        }
    }

    /// The most rows of the next batch.
    pub(crate) fn batch_rows(&self) -> usize {
        match &self.keys {
            Keys::Inline(_) => BATCH,
            Keys::Entries(_) => ENTRY_ROWS,
        }
    }

    /// Looks up the keys of a batch, which are spans of `text`; each is a key's start and, in the high half, the end of
    /// the byte after it. In the text [`READABLE`] bytes follow each key. New keys get lanes of zeros, and their rows are
    /// [fresh](LaneTable::fresh).
    pub(crate) fn find(&mut self, text: &[u8], spans: &[u32]) {
        assert!(spans.len() <= BATCH);
        self.batch.fresh.clear();
        let (longest, end) = dispatch!(self.level, _isa => bounds(spans));
        assert!(longest <= KEY_MAX && end + READABLE <= text.len());
        let text = text.as_ptr();
        self.reserve(spans.len(), longest);
        let is_short = longest <= SHORT_MAX;
        // SAFETY: checked above.
        dispatch!(self.level, isa => unsafe { self.find_by(isa, text, spans, is_short) });
    }

    /// # Safety
    /// After each key [`READABLE`] bytes of the text are readable, and no key has more than [`KEY_MAX`]; there is room
    /// for as many new keys.
    #[inline(always)]
    unsafe fn find_by<I: Kernels>(
        &mut self,
        isa: I,
        text: *const u8,
        spans: &[u32],
        is_short: bool,
    ) {
        let (seeds, batch) = (&self.seeds, &mut *self.batch);
        let table = match &mut self.keys {
            // SAFETY: as the caller's.
            Keys::Inline(table) => return unsafe { table.find(isa, seeds, text, spans, batch) },
            Keys::Entries(table) => table,
        };
        let fetch = |hash| table.prefetch_home(hash);
        // SAFETY: as the caller's.
        unsafe {
            match is_short {
                true => {
                    batch.load(isa, seeds, text, spans, fetch);
                    for (tag, span) in batch.places.iter_mut().zip(spans) {
                        *tag = tag_of(*tag, ((span >> 16) - (span & 0xffff)) as usize);
                    }
                }
                false => batch.load_wide(isa, seeds, text, spans, fetch),
            }
        }
        let tags = &mut batch.places[..spans.len()];
        let mut slots = [0; BATCH];
        for (slot, tag) in slots.iter_mut().zip(&*tags) {
            *slot = table.seek(*tag);
        }
        for ((row, tag), slot) in tags.iter_mut().enumerate().zip(slots) {
            let key = match is_short {
                true => batch.keys[row].0.as_ptr(),
                false => batch.wide[row][0].0.as_ptr(),
            };
            // SAFETY: room was made; a key has as many units as its tag says.
            let (place, is_new) = unsafe { table.find_or_push(*tag, key.cast(), slot as usize) };
            *tag = place;
            if is_new {
                batch.fresh.push(row as u32);
            }
        }
    }

    /// The rows of the batch whose keys were new, each key once.
    pub(crate) fn fresh(&self) -> &[u32] {
        &self.batch.fresh
    }

    /// The lanes of a row of the batch.
    pub(crate) fn lanes(&mut self, row: usize) -> &mut [i64] {
        let place = self.batch.places[row];
        match &mut self.keys {
            Keys::Inline(table) => table.lanes_mut(place),
            Keys::Entries(table) => table.lanes_mut(place),
        }
    }

    /// The first unit of the table.
    fn pointer(&mut self) -> *mut u8 {
        match &mut self.keys {
            Keys::Inline(table) => table.pointer(),
            Keys::Entries(table) => table.pointer().cast(),
        }
    }

    /// Adds to the lanes from `first` on, which is a multiple of [`GROUP_LANES`]: for each of them a value of each row of
    /// the batch, as `additions` say.
    pub(crate) fn add(
        &mut self,
        first: usize,
        values: [&[i64]; GROUP_LANES],
        additions: [Addition; GROUP_LANES],
    ) {
        let rows = values[0].len();
        assert!(first < self.lanes && rows <= BATCH);
        assert!(values.iter().all(|lane| lane.len() == rows));
        // Lanes are in whole units of two.
        let is_two = self.lanes - first <= 2;
        match self.level {
            // SAFETY: as the module's invariant says.
            Level::Portable => unsafe { self.add_rows(0, first, values, additions, is_two) },
            // SAFETY: a level is only made where the processor has its features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) | Level::Avx512(_) => unsafe {
                match is_two {
                    true => self.add_two_avx2(first, values, additions),
                    false => self.add_four_avx2(first, values, additions),
                }
            },
        }
    }

    /// Adds the rows of the batch from `from` on, one by one.
    ///
    /// # Safety
    /// The lanes from `first` on are the table's.
    unsafe fn add_rows(
        &mut self,
        from: usize,
        first: usize,
        values: [&[i64]; GROUP_LANES],
        additions: [Addition; GROUP_LANES],
        is_two: bool,
    ) {
        let start = self.pointer();
        let count = if is_two { 2 } else { GROUP_LANES };
        for row in from..values[0].len() {
            let place = self.batch.places[row] as usize;
            // SAFETY: by the module's invariant.
            let lanes = unsafe {
                let lanes = start.add(place * UNIT).cast::<i64>().add(first);
                std::slice::from_raw_parts_mut(lanes, count)
            };
            for ((lane, values), addition) in lanes.iter_mut().zip(values).zip(additions) {
                *lane = addition.of(*lane, values[row]);
            }
        }
    }

    /// Four rows at a time: four of each lane become four of each row.
    ///
    /// # Safety
    /// The processor has AVX2; there are as many values of each lane.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn add_four_avx2(
        &mut self,
        first: usize,
        values: [&[i64]; GROUP_LANES],
        additions: [Addition; GROUP_LANES],
    ) {
        use std::arch::x86_64::*;
        let mask = additions.map(|addition| -i64::from(addition == Addition::Greatest));
        let has_extremes = additions.contains(&Addition::Greatest);
        let has_short = additions[0] == Addition::RowsExtremes;
        let start = self.pointer();
        let whole = values[0].len() / 4 * 4;
        // SAFETY: four values of four; places of the batch are those of lanes in the table.
        unsafe {
            let mask = _mm256_set_epi64x(mask[3], mask[2], mask[1], mask[0]);
            let short_mask = _mm256_set_epi64x(0, 0, 0, !0 << 32);
            for from in (0..whole).step_by(4) {
                let a = _mm256_loadu_si256(values[0].as_ptr().add(from).cast());
                let b = _mm256_loadu_si256(values[1].as_ptr().add(from).cast());
                let c = _mm256_loadu_si256(values[2].as_ptr().add(from).cast());
                let d = _mm256_loadu_si256(values[3].as_ptr().add(from).cast());
                let (ab, ab_odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
                let (cd, cd_odd) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
                let rows = [
                    _mm256_permute2x128_si256::<0x20>(ab, cd),
                    _mm256_permute2x128_si256::<0x20>(ab_odd, cd_odd),
                    _mm256_permute2x128_si256::<0x31>(ab, cd),
                    _mm256_permute2x128_si256::<0x31>(ab_odd, cd_odd),
                ];
                let places = &self.batch.places[from..from + 4];
                for (row, &place) in rows.into_iter().zip(places) {
                    let to = start.add(place as usize * UNIT).cast::<i64>().add(first);
                    let old = _mm256_loadu_si256(to.cast());
                    let mut new = _mm256_add_epi64(old, row);
                    if has_extremes {
                        let greater = _mm256_blendv_epi8(old, row, _mm256_cmpgt_epi64(row, old));
                        new = _mm256_blendv_epi8(new, greater, mask);
                    }
                    if has_short {
                        new = _mm256_blendv_epi8(new, _mm256_max_epu16(old, row), short_mask);
                    }
                    _mm256_storeu_si256(to.cast(), new);
                }
            }
            self.add_rows(whole, first, values, additions, false);
        }
    }

    /// The same for two lanes, two rows at a time.
    ///
    /// # Safety
    /// As above.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn add_two_avx2(
        &mut self,
        first: usize,
        values: [&[i64]; GROUP_LANES],
        additions: [Addition; GROUP_LANES],
    ) {
        use std::arch::x86_64::*;
        let mask = additions.map(|addition| -i64::from(addition == Addition::Greatest));
        let has_extremes = additions.contains(&Addition::Greatest);
        let has_short = additions[0] == Addition::RowsExtremes;
        let start = self.pointer();
        let whole = values[0].len() / 2 * 2;
        // SAFETY: two values of two; places of the batch are those of lanes in the table.
        unsafe {
            let mask = _mm_set_epi64x(mask[1], mask[0]);
            let short_mask = _mm_set_epi64x(0, !0 << 32);
            for from in (0..whole).step_by(2) {
                let a = _mm_loadu_si128(values[0].as_ptr().add(from).cast());
                let b = _mm_loadu_si128(values[1].as_ptr().add(from).cast());
                let rows = [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)];
                let places = &self.batch.places[from..from + 2];
                for (row, &place) in rows.into_iter().zip(places) {
                    let to = start.add(place as usize * UNIT).cast::<i64>().add(first);
                    let old = _mm_loadu_si128(to.cast());
                    let mut new = _mm_add_epi64(old, row);
                    if has_extremes {
                        let greater = _mm_blendv_epi8(old, row, _mm_cmpgt_epi64(row, old));
                        new = _mm_blendv_epi8(new, greater, mask);
                    }
                    if has_short {
                        new = _mm_blendv_epi8(new, _mm_max_epu16(old, row), short_mask);
                    }
                    _mm_storeu_si128(to.cast(), new);
                }
            }
            self.add_rows(whole, first, values, additions, true);
        }
    }

    /// Forgets all keys. Memory of entries is kept.
    pub(crate) fn clear(&mut self) {
        match &mut self.keys {
            Keys::Inline(table) => *table = InlineTable::new(self.lanes),
            Keys::Entries(table) => table.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::entries::EntryRef;
    use rayon::prelude::*;
    use std::collections::BTreeMap;

    /// Many keys with sums and extremes, short ones alone and beside long ones, in every level, through growth and
    /// clearing.
    #[test]
    fn as_an_ordered_map_has_it() {
        // Miri takes a thousand times as long, most of all to zero tables.
        let (rows, batch) = if cfg!(miri) { (100, 19) } else { (60_000, 249) };
        let cases = [
            (1, 3000, 23, false),
            (4, 7_u64, 23, false),
            (5, 30_000, 23, false),
            (9, 900, 23, true),
            (2, 2000, 250, false),
            (3, 2000, 110, true),
        ];
        for level in Level::available() {
            for (lanes, keys, longest, is_short) in cases {
                let seeds = Seeds::random();
                let mut table = LaneTable::new(level, &seeds, lanes, is_short);
                let mut got: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
                let mut want: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
                let addition = |lane: usize| match lane {
                    0 => Addition::RowsExtremes,
                    _ if lane % 3 == 2 => Addition::Greatest,
                    _ => Addition::Sum,
                };
                let merge = |into: &mut BTreeMap<Vec<u8>, Vec<i64>>, key: &[u8], add: &[i64]| {
                    let to = into.entry(key.to_vec()).or_insert_with(|| vec![0; lanes]);
                    for (lane, (to, &add)) in to.iter_mut().zip(add).enumerate() {
                        *to = addition(lane).of(*to, add);
                    }
                };
                let take = |table: &LaneTable, got: &mut BTreeMap<_, _>| {
                    for (key, add) in table.iter() {
                        let key = key.strip_suffix(b";").unwrap();
                        merge(got, key, &add[..lanes]);
                    }
                };
                let mut number = 1_u64;
                let mut fresh = 0;
                for round in 0..rows / batch {
                    let (mut text, mut spans, mut adds) = (Vec::new(), vec![], vec![]);
                    for _ in 0..batch {
                        number = number
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let key = (number >> 33) % keys;
                        let key = format!("{}{key}", "k".repeat((key % longest) as usize));
                        let start = text.len() as u32;
                        text.extend_from_slice(key.as_bytes());
                        text.push(b';');
                        spans.push(start | (text.len() as u32) << 16);
                        let add: Vec<i64> = (0..lanes)
                            .map(|lane| match lane {
                                0 => (number >> 17 & 0xffff_0fff_0000_0001) as i64,
                                _ => (number >> (20 + lane)) as i64 & 0xfff,
                            })
                            .collect();
                        merge(&mut want, key.as_bytes(), &add);
                        adds.push(add);
                    }
                    text.extend_from_slice(&[0; READABLE]);
                    if round == rows / batch / 2 {
                        take(&table, &mut got);
                        table.clear();
                    }
                    table.find(&text, &spans);
                    fresh += table.fresh().len();
                    for first in (0..lanes).step_by(GROUP_LANES) {
                        let values: [Vec<i64>; GROUP_LANES] = std::array::from_fn(|at| {
                            let lane = |add: &Vec<i64>| add.get(first + at).copied();
                            adds.iter()
                                .map(|add| lane(add).unwrap_or_default())
                                .collect()
                        });
                        let additions = std::array::from_fn(|at| addition(first + at));
                        table.add(first, std::array::from_fn(|at| &values[at][..]), additions);
                    }
                    assert!(table.lanes(0)[..lanes].iter().any(|lane| *lane != 0));
                }
                assert!(fresh >= want.len().min(table.len()));
                let last: BTreeMap<&[u8], i64> =
                    table.iter().map(|(key, lanes)| (key, lanes[0])).collect();
                let mut changed = 0;
                let mut copy = LaneTable::new(level, &seeds, lanes, is_short);
                for (key, lanes_of) in table.iter() {
                    let key = Key::of(key).unwrap();
                    copy.insert(&key, &lanes_of[..lanes]);
                }
                copy.each_mut(|key, of| {
                    changed += 1;
                    assert_eq!(last[key], of[0]);
                    of[0] = 0;
                });
                assert_eq!((changed, copy.len()), (table.len(), table.len()));
                take(&table, &mut got);
                assert!(got == want);
                let entries = table.into_entries();
                let place = |entry: EntryRef| (entry.place(), entry.key_units());
                let mut places: Vec<_> = entries.entries().map(place).collect();
                places.sort_unstable();
                // Safe code, whose threads take Miri minutes.
                if !cfg!(miri) {
                    assert_eq!(entries.in_order().map(place).collect::<Vec<_>>(), places);
                }
                let (after, count) = (entries.after(), entries.len());
                let all: u32 = after.iter().sum();
                assert_eq!((after[usize::from(b';')], all as usize), (all, count));
            }
        }
    }
}
