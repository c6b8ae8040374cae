//! The table for few keys: open addressing, with key and statistics side by side in a bucket.
//!
//! A displaced key costs a mispredicted branch on each of its rows. So the table is sparse, most of all
//! while it is small. Where keys are so few that none needs to collide, the table tries other seeds.
//!
//! Invariant of this module: the number of buckets is a power of two, at least one is empty, and a hash
//! masked by `mask` is a bucket's place in units of `UNIT` bytes.
#![allow(unsafe_code)]

use ringfold_read::internals::{
    Level,
    isa::{Portable, dispatch},
    pages::{HUGE_PAGE, PAGE},
    prefetch,
};
use zerocopy::FromZeros;

use crate::scan::key_number::lookahead::RowLookahead;
use crate::scan::key_number::window::ScanWindow;
use crate::table::isa::{Kernels, Seeds};
use crate::table::key::{Key, hash};
use crate::table::pages::Pages;
use crate::table::stats::Stats;

/// A key and its statistics. Empty if they count no row.
#[derive(Clone, Copy, FromZeros)]
#[repr(C)]
struct Bucket<K: Key> {
    _line: [K::Line; 0],
    key: K,
    stats: Stats,
}

/// Bytes of keys that are hashed and prefetched before they are compared.
const BATCH_BYTES: usize = 4096;
/// The most rows of a batch.
const BATCH: usize = 128;
/// Up to so many bytes of used buckets the first-level cache holds most of them; prefetching would cost more
/// than the misses.
const L1_BYTES: usize = 64 << 10;
/// Buckets of a new table.
const BUCKETS_MIN: usize = 1 << 9;
/// The most bytes of buckets.
const BYTES_MAX: usize = 8 << 20;

/// How many pairs of rows with a displaced key it takes until seeds are first drawn again.
const DISPLACED_MAX: usize = 4096;
/// Seeds tried at once: of 512 keys in 32,768 buckets one seed in fifty displaces none.
const SEED_DRAWS: usize = 64;

/// Whether at most eight keys are expected to collide, so that some seeds displace none.
fn may_be_collision_free(keys: usize, buckets: usize) -> bool {
    keys * keys <= 16 * buckets
}

/// The table of a size class.
pub(crate) struct DirectTable<K: Key> {
    level: Level,
    buckets: Pages<Bucket<K>>,
    /// Masks a hash to a place.
    mask: u32,
    used: usize,
    used_max: usize,
    /// This table's own.
    seeds: Seeds,
    /// Pairs of rows with a displaced key since seeds were drawn, and how many cause the next draw.
    displaced: usize,
    displaced_max: usize,
    batch: Batch<K>,
}

/// The keys and places of the current batch. It is kept, so that no batch begins by clearing memory.
struct Batch<K> {
    keys: [K; BATCH],
    /// Of home buckets.
    places: [u32; BATCH],
}

impl<K: Key> DirectTable<K> {
    /// Bytes that a place counts: 8, by which an address is scaled at no cost, where buckets have a power of
    /// two bytes.
    const UNIT: usize = if size_of::<Bucket<K>>().is_power_of_two() {
        8
    } else {
        size_of::<Bucket<K>>()
    };
    /// Places that a bucket spans.
    const STEP: u32 = (size_of::<Bucket<K>>() / Self::UNIT) as u32;
    /// Rows of a batch: a multiple of those that are loaded at once.
    const ROWS: usize = if BATCH_BYTES / size_of::<K>() < BATCH {
        (BATCH_BYTES / size_of::<K>()) & !3
    } else {
        BATCH
    };
    const BUCKETS_MAX: usize = (BYTES_MAX / size_of::<Bucket<K>>()).next_power_of_two();

    pub(crate) fn new(level: Level, seeds: Seeds) -> Self {
        DirectTable {
            level,
            buckets: Pages::new(BUCKETS_MIN),
            mask: Self::mask_of(BUCKETS_MIN),
            used: 0,
            used_max: Self::used_max_of(BUCKETS_MIN),
            seeds,
            displaced: 0,
            displaced_max: DISPLACED_MAX,
            batch: Batch {
                keys: [K::new_zeroed(); BATCH],
                places: [0; BATCH],
            },
        }
    }

    fn mask_of(buckets: usize) -> u32 {
        let places = u32::try_from(buckets * Self::STEP as usize).expect("a table under 32 GiB");
        places - Self::STEP
    }

    fn used_max_of(buckets: usize) -> usize {
        match buckets * size_of::<Bucket<K>>() {
            ..HUGE_PAGE => buckets / 64,
            _ if buckets < Self::BUCKETS_MAX => buckets / 16,
            _ => buckets / 2,
        }
    }

    /// Adds rows whose keys are in `window` until the table [is full](Self::is_full); returns how many.
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) -> usize {
        let mut taken = 0;
        for (keys, values) in keys.chunks(Self::ROWS).zip(values.chunks(Self::ROWS)) {
            while self.used + keys.len() > self.used_max {
                if self.is_full() {
                    return taken;
                }
                self.grow();
            }
            if self.displaced > self.displaced_max {
                self.draw_seeds();
            }
            taken += keys.len();
            // SAFETY: the list's keys are in the window.
            dispatch!(self.level, isa => unsafe { self.batch(isa, window, keys, values) });
        }
        taken
    }

    /// # Safety
    /// - `keys` are of `window`, of this size class, and no more than [`Self::ROWS`], as are `values`.
    /// - There is space for as many new keys.
    #[inline(always)]
    unsafe fn batch<I: Kernels>(
        &mut self,
        isa: I,
        window: ScanWindow<'_>,
        keys: &[u32],
        values: &[u32],
    ) {
        let count = keys.len().min(values.len()).min(Self::ROWS);
        let buckets = self.buckets.pointer();
        let mask = self.mask;
        let lookahead = RowLookahead::new(window, keys);
        let exceeds_l1 = self.used * size_of::<Bucket<K>>() > L1_BYTES;
        let (fours, _) = keys[..count].as_chunks::<4>();
        let (to, _) = self.batch.keys.as_chunks_mut::<4>();
        let (places, _) = self.batch.places.as_chunks_mut::<4>();
        for ((four, to), places) in fours.iter().zip(to).zip(places) {
            // SAFETY: the keys are in the window; a masked place is in the table.
            unsafe {
                lookahead.prefetch::<K>(four);
                let hashes = isa.load_four(&self.seeds, window.pointer(), four, to);
                *places = hashes.map(|hash| hash & mask);
                if exceeds_l1 {
                    for &place in &*places {
                        Self::prefetch(buckets, place);
                    }
                }
            }
        }
        for row in 4 * fours.len()..count {
            // SAFETY: `row < count`; the key is in the window; a masked place is in the table.
            unsafe {
                let key = *keys.get_unchecked(row);
                let start = window.pointer().add((key & 0xffff) as usize);
                let to = self.batch.keys.get_unchecked_mut(row);
                let place = isa.load(&self.seeds, start, key >> 16, to) as u32 & mask;
                *self.batch.places.get_unchecked_mut(row) = place;
                Self::prefetch(buckets, place);
            }
        }
        let Batch { keys, places } = &self.batch;
        let rows = (&keys[..count], &places[..count], &values[..count]);
        let (key_pairs, key) = rows.0.as_chunks::<2>();
        let (place_pairs, place) = rows.1.as_chunks::<2>();
        let (value_pairs, value) = rows.2.as_chunks::<2>();
        let (used, displaced) = (&mut self.used, &mut self.displaced);
        for ((keys, places), values) in key_pairs.iter().zip(place_pairs).zip(value_pairs) {
            // SAFETY: a masked place is in the table, and no bucket is borrowed but here.
            unsafe {
                let [first, second] = places.map(|place| Self::bucket(buckets, place));
                if isa.equal_two(keys, [&(*first).key, &(*second).key]) {
                    isa.update_two([&raw mut (*first).stats, &raw mut (*second).stats], values);
                    continue;
                }
                cold();
                *displaced += 1;
                for row in 0..2 {
                    let bucket = Self::probe(isa, buckets, mask, used, &keys[row], places[row]);
                    isa.update(&mut (*bucket).stats, values[row]);
                }
            }
        }
        for ((key, place), value) in key.iter().zip(place).zip(value) {
            // SAFETY: as above.
            unsafe {
                let bucket = Self::probe(isa, buckets, mask, used, key, *place);
                isa.update(&mut (*bucket).stats, *value);
            }
        }
    }

    /// # Safety
    /// - `place` is masked.
    #[inline(always)]
    unsafe fn bucket(buckets: *mut Bucket<K>, place: u32) -> *mut Bucket<K> {
        // SAFETY: a masked place is in the table.
        unsafe { buckets.byte_add(place as usize * Self::UNIT) }
    }

    /// # Safety
    /// - `place` is masked.
    #[inline(always)]
    unsafe fn prefetch(buckets: *mut Bucket<K>, place: u32) {
        // SAFETY: a masked place is in the table; a prefetch reads nothing.
        unsafe {
            let bucket = Self::bucket(buckets, place).cast::<u8>();
            for line in (0..size_of::<Bucket<K>>()).step_by(64) {
                prefetch::into_l1(bucket.add(line));
            }
        }
    }

    /// The bucket of a key, searched from its home on. A new key gets an empty one.
    ///
    /// # Safety
    /// - `buckets` and `mask` are a table's, `place` is masked, and the table has an empty bucket to spare.
    #[inline(always)]
    unsafe fn probe<I: Kernels>(
        isa: I,
        buckets: *mut Bucket<K>,
        mask: u32,
        used: &mut usize,
        key: &K,
        mut place: u32,
    ) -> *mut Bucket<K> {
        loop {
            // SAFETY: a masked place is in the table.
            unsafe {
                let bucket = Self::bucket(buckets, place);
                if (*bucket).stats.count == 0 {
                    (*bucket).key = *key;
                    *used += 1;
                    return bucket;
                }
                if isa.equals(key, &(*bucket).key) {
                    return bucket;
                }
                place = place.wrapping_add(Self::STEP) & mask;
            }
        }
    }

    /// Whether the keys are too many for a direct table; then no row may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.used + Self::ROWS > Self::used_max_of(Self::BUCKETS_MAX)
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Bytes of memory in use, at most: each key touches a page, or a huge page where the buckets fill one.
    /// A page counts in any case, because an empty key with a NUL delimiter isn't counted as used.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = size_of_val(&*self.buckets);
        let page = if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE };
        bytes.min(self.used.max(1) * page)
    }

    /// Takes out every key and its statistics.
    pub(crate) fn drain(self) -> impl Iterator<Item = (K, Stats)> {
        let buckets = self.buckets;
        (0..buckets.len())
            .map(move |at| buckets[at])
            .filter(|bucket| bucket.stats.count > 0)
            .map(|bucket| (bucket.key, bucket.stats))
    }

    /// Adds statistics of `key`. The table may not be full.
    pub(crate) fn add(&mut self, key: &K, stats: &Stats) {
        if self.used + 1 > self.used_max {
            self.grow();
        }
        let place = hash(self.level, &self.seeds, key) & self.mask;
        let buckets = self.buckets.pointer();
        // SAFETY: there is an empty bucket to spare.
        let bucket =
            unsafe { &mut *Self::probe(Portable, buckets, self.mask, &mut self.used, key, place) };
        bucket.stats.merge(stats);
    }

    #[cold]
    fn grow(&mut self) {
        self.lay_out((self.buckets.len() * 4).min(Self::BUCKETS_MAX));
    }

    /// Moves the keys into so many buckets, by the current seeds.
    fn lay_out(&mut self, buckets: usize) {
        let old = std::mem::replace(&mut self.buckets, Pages::new(buckets));
        self.mask = Self::mask_of(buckets);
        self.used_max = Self::used_max_of(buckets);
        self.used = 0;
        for bucket in old.iter().filter(|bucket| bucket.stats.count > 0) {
            self.add(&bucket.key, &bucket.stats);
        }
    }

    /// Tries seeds until none of the keys is displaced, and keeps the best seeds of these.
    #[cold]
    fn draw_seeds(&mut self) {
        self.displaced = 0;
        self.displaced_max = self.displaced_max.saturating_mul(2);
        let buckets = self.buckets.len();
        if !may_be_collision_free(self.used, buckets) {
            return;
        }
        let empty = Bucket::new_zeroed();
        let used = self
            .buckets
            .iter_mut()
            .filter(|bucket| bucket.stats.count > 0);
        let taken: Vec<_> = used
            .map(|bucket| std::mem::replace(bucket, empty))
            .collect();
        self.used = 0;
        let (level, mask) = (self.level, self.mask);
        let mut is_taken = vec![false; buckets];
        let mut displaced_by = |seeds: &Seeds| {
            is_taken.fill(false);
            let home = |key: &K| (hash(level, seeds, key) & mask) / Self::STEP;
            let homes = taken.iter().map(|bucket| home(&bucket.key) as usize);
            homes
                .filter(|&at| std::mem::replace(&mut is_taken[at], true))
                .count()
        };
        let mut fewest = displaced_by(&self.seeds);
        for _ in 0..SEED_DRAWS {
            if fewest == 0 {
                break;
            }
            let seeds = Seeds::random();
            let count = displaced_by(&seeds);
            if count < fewest {
                (fewest, self.seeds) = (count, seeds);
            }
        }
        for bucket in &taken {
            self.add(&bucket.key, &bucket.stats);
        }
    }
}

/// Marks a branch as unlikely, so that the compiler lays out the other one straight.
#[cold]
fn cold() {}

#[cfg(test)]
mod tests {
    use crate::table::direct::*;
    use crate::table::isa::{InlineKey, LongKey, WideKey};
    use crate::table::stats::BIAS;
    use ringfold_read::PaddedBuf;

    /// Keys in a set.
    const KEYS: usize = 256;
    /// Bits of a hash that an attacker would aim at: those of a place here, and in a dense table.
    const AIMED: [fn(u32) -> u32; 2] = [|hash| hash & 0x1ff, |hash| hash >> 23];

    fn key<K: Key>(text: &str) -> K {
        let mut key = K::new_zeroed();
        key.as_mut_bytes()[..text.len()].copy_from_slice(text.as_bytes());
        key
    }

    /// Buckets probed while the keys are put into a table twice as large.
    fn looks(hashes: impl Iterator<Item = u32>) -> usize {
        let mut used = vec![false; 2 * KEYS];
        let mut looks = 0;
        for hash in hashes {
            let mut place = hash as usize % used.len();
            while std::mem::replace(&mut used[place], true) {
                place = (place + 1) % used.len();
                looks += 1;
            }
            looks += 1;
        }
        looks
    }

    fn check<K: Key>(level: Level) {
        let size = size_of::<K>();
        // As long as the class allows; they differ in the last bytes only.
        let numbered = |number: usize| key::<K>(&format!("{number:0width$};", width = size - 1));
        // They differ in one bit.
        let flipped = |number: usize| {
            let mut key = numbered(0);
            key.as_mut_bytes()[number % (size - 1)] ^= 1 << (number / (size - 1) % 8);
            key
        };
        let (theirs, ours) = (Seeds::random(), Seeds::random());
        let worst = |keys: &[K], seeds: &Seeds| {
            let looks =
                AIMED.map(|aimed| looks(keys.iter().map(|key| aimed(hash(level, seeds, key)))));
            looks.into_iter().max().expect("two")
        };
        let random: Vec<K> = (0..KEYS)
            .map(|number| numbered(number.wrapping_mul(0x9e37_79b9) % 100_000_000))
            .collect();
        let usual = worst(&random, &ours);
        assert!(usual < 3 * KEYS, "{level:?}: {usual} looks for random keys");
        for aimed in AIMED {
            let meeting = (0..).map(numbered);
            let meeting: Vec<K> = meeting
                .filter(|key| aimed(hash(level, &theirs, key)) == 0)
                .take(KEYS)
                .collect();
            let flood = worst(&meeting, &theirs);
            assert!(flood > 50 * KEYS, "{level:?}: {flood} looks: no flood");
            let spread = worst(&meeting, &ours);
            assert!(
                spread <= 3 * usual,
                "{level:?}: {spread} looks, not {usual}"
            );
        }
        let flips = (size - 1) * 8;
        let flipped: Vec<K> = (0..KEYS.min(flips)).map(flipped).collect();
        let spread = worst(&flipped, &ours);
        assert!(
            spread <= 3 * usual,
            "{level:?}: {spread} looks, not {usual}"
        );
    }

    fn grown<K: Key>(rows: usize) {
        let mut table = DirectTable::<K>::new(Level::Portable, Seeds::random());
        let one = Stats {
            count: 1,
            ..Stats::default()
        };
        let most = ((8 << 20) / size_of::<Bucket<K>>()).next_power_of_two();
        let (mut buckets, mut used) = (512, 0);
        while !table.is_full() {
            table.add(&key(&format!("{used:08};")), &one);
            used += 1;
            let used_max = match buckets * size_of::<Bucket<K>>() {
                ..0x20_0000 => buckets / 64,
                _ if buckets < most => buckets / 16,
                _ => buckets / 2,
            };
            if used > used_max {
                buckets = (4 * buckets).min(most);
            }
            assert_eq!((table.buckets.len(), table.used), (buckets, used));
            let bytes = buckets * size_of::<Bucket<K>>();
            let page = if bytes < 0x20_0000 { 0x1000 } else { 0x20_0000 };
            assert_eq!(table.bytes(), bytes.min(used * page));
        }
        // A table is full as soon as a batch may not fit.
        assert_eq!((buckets, used + rows), (most, most / 2 + 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn growth_comes_at_its_edges() {
        grown::<InlineKey>(128);
        grown::<LongKey>(40);
        grown::<WideKey>(32);
    }

    /// The number of displaced keys.
    fn displaced_by<K: Key>(table: &DirectTable<K>) -> usize {
        let used = |(_, bucket): &(usize, &Bucket<K>)| bucket.stats.count > 0;
        let step = DirectTable::<K>::STEP as usize;
        let home = |key| (hash(table.level, &table.seeds, key) & table.mask) as usize / step;
        let buckets = table.buckets.iter().enumerate().filter(used);
        buckets
            .filter(|(at, bucket)| home(&bucket.key) != *at)
            .count()
    }

    fn without_collisions<K: Key>(level: Level) {
        let names: Vec<String> = (0..300).map(|number| format!("{number:07};")).collect();
        let text = PaddedBuf::from(names.concat().as_bytes());
        let block = text.block(0, 0, 0);
        let window = ScanWindow::at(&block, 0, 8 * names.len());
        let rows: Vec<u32> = (0..300).map(|row| (8 << 16) | (8 * row)).collect();
        let values = vec![BIAS; rows.len()];
        let mut table = DirectTable::<K>::new(level, Seeds::random());
        let mut folds = 0;
        let mut fold = |table: &mut DirectTable<K>| {
            assert_eq!(table.fold(window, &rows, &values), rows.len());
            folds += 1;
        };
        fold(&mut table);
        while displaced_by(&table) == 0 {
            table.seeds = Seeds::random();
            table.lay_out(table.buckets.len());
        }
        while table.displaced_max == DISPLACED_MAX {
            fold(&mut table);
        }
        assert_eq!(displaced_by(&table), 0, "{level:?}");
        // The new seeds find the keys that the old ones placed.
        fold(&mut table);
        let mut found: Vec<(Vec<u8>, u64)> = table
            .drain()
            .map(|(key, stats)| (key.as_bytes()[..8].to_vec(), stats.count))
            .collect();
        found.sort();
        let wanted = names.iter().map(|name| (name.clone().into_bytes(), folds));
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{level:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn few_keys_end_in_their_home_buckets() {
        for level in Level::available() {
            without_collisions::<InlineKey>(level);
            without_collisions::<LongKey>(level);
            without_collisions::<WideKey>(level);
        }
    }

    /// An attacker who knows the hash, but not the seeds of this run, can't choose colliding keys.
    #[test]
    fn hash_flooding() {
        for level in Level::available() {
            check::<InlineKey>(level);
            check::<LongKey>(level);
            check::<WideKey>(level);
        }
    }
}
