//! The tables of a partial together: which keys go where, and when they move.
//!
//! | keys, with their delimiter | few keys | many keys, local and shared |
//! |---|---|---|
//! | up to 32 bytes | one direct table | two dense tables: up to 16 bytes, and longer |
//! | up to 96 bytes | one direct table | two dense tables: up to 64 bytes, and longer |
//! | up to 128 bytes | one direct table | one dense table |

use std::sync::Arc;

use rayon::prelude::*;

use crate::scan::key_number::rows::{List, Rows};
use crate::scan::key_number::window::ScanWindow;
use crate::table::config::TableConfig;
use crate::table::dense::BATCH;
use crate::table::direct::DirectTable;
use crate::table::isa::{InlineKey, LongKey, MiddleKey, WideKey};
use crate::table::key::{Key, ShortKey};
use crate::table::local::LocalTable;
use crate::table::merge;
use crate::table::shards::{self, Shards};
use crate::table::sorted::SortedKeys;
use crate::table::stats::Stats;

type Inline = SplitTable<ShortKey, InlineKey>;
type Long = SplitTable<MiddleKey, LongKey>;
type Wide = LocalTable<WideKey>;

/// Every table of a partial.
pub(crate) struct Tables {
    inline: SizeClass<Inline>,
    long: SizeClass<Long>,
    wide: SizeClass<Wide>,
}

/// The shards of all size classes, which all workers of a run share.
pub(crate) struct ClassShards {
    config: TableConfig,
    inline: <Inline as DenseTables>::Shards,
    long: <Long as DenseTables>::Shards,
    wide: <Wide as DenseTables>::Shards,
}

impl ClassShards {
    pub(crate) fn new(config: TableConfig) -> Self {
        ClassShards {
            inline: ShardSet::new(&config),
            long: ShardSet::new(&config),
            wide: ShardSet::new(&config),
            config,
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.inline.bytes() + self.long.bytes() + self.wide.bytes()
    }

    /// Takes the keys of the shards that `which` chooses by number; these shards are empty then.
    pub(crate) fn drain_if(&self, which: impl Fn(usize) -> bool) -> DrainedClasses {
        DrainedClasses {
            config: self.config.clone(),
            inline: self.inline.drain_if(&which),
            long: self.long.drain_if(&which),
            wide: self.wide.drain_if(&which),
        }
    }

    /// Shards of a size class.
    pub(crate) fn shard_count(&self) -> usize {
        1 << self.config.shard_bits
    }
}

/// Keys taken out of shards.
pub(crate) struct DrainedClasses {
    config: TableConfig,
    inline: <<Inline as DenseTables>::Shards as ShardSet>::Drained,
    long: <<Long as DenseTables>::Shards as ShardSet>::Drained,
    wide: <<Wide as DenseTables>::Shards as ShardSet>::Drained,
}

impl Tables {
    pub(crate) fn new(shared: &ClassShards) -> Self {
        Tables {
            inline: SizeClass::new(&shared.config, &shared.inline),
            long: SizeClass::new(&shared.config, &shared.long),
            wide: SizeClass::new(&shared.config, &shared.wide),
        }
    }

    /// Takes the rows of `window` that are not listed as its rest; returns how dense.
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>, rows: &Rows) -> usize {
        self.inline.fold(window, &rows.inline);
        self.long.fold(window, &rows.long);
        self.wide.fold(window, &rows.wide);
        rows.lists().map(|list| list.keys().len()).sum()
    }

    /// Merges the keys of all workers with those that were `shared`, each key once. All must have the same
    /// seeds.
    pub(crate) fn sorted(all: Vec<Tables>, drained: DrainedClasses) -> Vec<Box<dyn SortedKeys>> {
        let (mut inline, mut long, mut wide) = (Vec::new(), Vec::new(), Vec::new());
        for tables in all {
            inline.push(tables.inline);
            long.push(tables.long);
            wide.push(tables.wide);
        }
        let (config, mut sorted) = (drained.config, Vec::new());
        SizeClass::sorted(inline, drained.inline, &config, &mut sorted);
        SizeClass::sorted(long, drained.long, &config, &mut sorted);
        SizeClass::sorted(wide, drained.wide, &config, &mut sorted);
        sorted
    }

    /// Moves all keys to the shards. From now on new local tables keep the keys that come first, and the
    /// rows of all others go to the shards.
    pub(crate) fn share(&mut self) {
        self.inline.share();
        self.long.share();
        self.wide.share();
    }

    pub(crate) fn shares(&self) -> bool {
        self.inline.shares
    }

    /// Takes the keys out; the tables are empty then. Rows buffered for the shards are sent first.
    pub(crate) fn take(&mut self) -> Tables {
        Tables {
            inline: self.inline.take(),
            long: self.long.take(),
            wide: self.wide.take(),
        }
    }

    /// How many keys there are, those in the shards aside.
    pub(crate) fn len(&self) -> usize {
        self.inline.len() + self.long.len() + self.wide.len()
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.inline.bytes() + self.long.bytes() + self.wide.bytes();
        bytes as u64
    }
}

/// The keys of a size class.
struct SizeClass<M: DenseTables> {
    config: TableConfig,
    shards: M::Shards,
    /// Whether keys go to the shards.
    shares: bool,
    keys: TableState<M>,
}

enum TableState<M: DenseTables> {
    Empty,
    Direct(Box<DirectTable<M::Key>>),
    Dense(Box<M>),
}

/// The tables of a size class once its keys are many.
trait DenseTables: Send + Sized {
    type Key: Key;
    type Shards: ShardSet;
    fn new(config: &TableConfig, shards: &Self::Shards) -> Self;
    fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]);
    fn add(&mut self, key: &Self::Key, stats: &Stats);
    /// See [`Tables::share`].
    fn share(&mut self);
    /// Sends the rows that are buffered for the shards.
    fn flush(&mut self);
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
    /// Merges the keys of all workers with those that were shared.
    fn sorted(
        all: Vec<Self>,
        shared: <Self::Shards as ShardSet>::Drained,
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    );
}

/// The shards of a class.
trait ShardSet: Clone + Send + Sync {
    type Drained: Send;
    fn new(config: &TableConfig) -> Self;
    fn bytes(&self) -> u64;
    fn drain_if(&self, which: impl Fn(usize) -> bool) -> Self::Drained;
    fn is_empty(taken: &Self::Drained) -> bool;
}

impl<M: DenseTables> SizeClass<M> {
    fn new(config: &TableConfig, shards: &M::Shards) -> Self {
        SizeClass {
            config: config.clone(),
            shards: shards.clone(),
            shares: false,
            keys: TableState::Empty,
        }
    }

    #[inline]
    fn fold(&mut self, window: ScanWindow<'_>, list: &List) {
        let (mut keys, mut values) = (list.keys(), list.values());
        if keys.is_empty() {
            return;
        }
        if matches!(self.keys, TableState::Empty) && !self.shares {
            let table = DirectTable::new(self.config.level, self.config.seeds.clone());
            self.keys = TableState::Direct(Box::new(table));
        }
        if let TableState::Direct(table) = &mut self.keys {
            let taken = table.fold(window, keys, values);
            (keys, values) = (&keys[taken..], &values[taken..]);
        }
        if keys.is_empty() {
            return;
        }
        if self.shares && matches!(self.keys, TableState::Empty) {
            self.dense().share();
        }
        self.dense().fold(window, keys, values);
    }

    /// The dense tables. Keys of a direct table move there first.
    fn dense(&mut self) -> &mut M {
        if !matches!(self.keys, TableState::Dense(_)) {
            let mut dense = M::new(&self.config, &self.shards);
            if let TableState::Direct(direct) = std::mem::replace(&mut self.keys, TableState::Empty)
            {
                for (key, stats) in direct.drain() {
                    dense.add(&key, &stats);
                }
            }
            self.keys = TableState::Dense(Box::new(dense));
        }
        match &mut self.keys {
            TableState::Dense(dense) => dense,
            _ => unreachable!("made dense above"),
        }
    }

    fn share(&mut self) {
        self.shares = true;
        if !matches!(self.keys, TableState::Empty) {
            self.dense().share();
        }
    }

    fn take(&mut self) -> Self {
        if let TableState::Dense(dense) = &mut self.keys {
            dense.flush();
        }
        let mut fresh = SizeClass::new(&self.config, &self.shards);
        fresh.shares = self.shares;
        std::mem::replace(self, fresh)
    }

    fn len(&self) -> usize {
        match &self.keys {
            TableState::Empty => 0,
            TableState::Direct(direct) => direct.len(),
            TableState::Dense(dense) => dense.len(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.keys {
            TableState::Empty => 0,
            TableState::Direct(direct) => direct.bytes(),
            TableState::Dense(dense) => dense.bytes(),
        }
    }

    /// Merges the keys of all workers with those that were `shared`. The result is a direct table where one
    /// has space for the sum of all keys.
    fn sorted(
        mut all: Vec<Self>,
        shared: <M::Shards as ShardSet>::Drained,
        config: &TableConfig,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let direct_keys = |class: &Self| match &class.keys {
            TableState::Empty => Some(0),
            TableState::Direct(table) => Some(table.len()),
            TableState::Dense(_) => None,
        };
        let keys: Option<usize> = all.iter().map(direct_keys).sum();
        if M::Shards::is_empty(&shared) && keys.is_some_and(DirectTable::<M::Key>::holds) {
            let tables = all.into_par_iter().filter_map(|class| match class.keys {
                TableState::Direct(table) => Some(table),
                _ => None,
            });
            let merged = tables.reduce_with(|mut into, from| {
                for (key, stats) in from.drain() {
                    into.add(&key, &stats);
                }
                into
            });
            if let Some(table) = merged {
                to.push(Box::new(table.into_sorted(config.delimiter)));
            }
            return;
        }
        all.retain(|class| !matches!(class.keys, TableState::Empty));
        all.par_iter_mut().for_each(|class| {
            class.dense();
        });
        let dense = all.into_iter().filter_map(|class| match class.keys {
            TableState::Dense(dense) => Some(*dense),
            _ => None,
        });
        M::sorted(dense.collect(), shared, config.delimiter, to);
    }
}

impl<K: Key> DenseTables for LocalTable<K> {
    type Key = K;
    type Shards = Arc<Shards<K>>;

    fn new(config: &TableConfig, shards: &Arc<Shards<K>>) -> Self {
        LocalTable::new(config, shards)
    }

    fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        LocalTable::fold(self, window, keys, values);
    }

    fn add(&mut self, key: &K, stats: &Stats) {
        LocalTable::add(self, key, stats);
    }

    fn share(&mut self) {
        LocalTable::share(self);
    }

    fn flush(&mut self) {
        LocalTable::flush(self);
    }

    fn len(&self) -> usize {
        LocalTable::len(self)
    }

    fn bytes(&self) -> usize {
        LocalTable::bytes(self)
    }

    fn sorted(
        all: Vec<Self>,
        shared: shards::DrainedShards<K>,
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let all = all.into_iter().map(LocalTable::into_table).collect();
        to.push(Box::new(merge::sorted(all, shared, delimiter)));
    }
}

impl<K: Key> ShardSet for Arc<Shards<K>> {
    type Drained = shards::DrainedShards<K>;

    fn new(config: &TableConfig) -> Self {
        Arc::new(Shards::new(config.level, config.shard_bits))
    }

    fn bytes(&self) -> u64 {
        Shards::bytes(self)
    }

    fn drain_if(&self, which: impl Fn(usize) -> bool) -> shards::DrainedShards<K> {
        Shards::drain_if(self, which)
    }

    fn is_empty(taken: &shards::DrainedShards<K>) -> bool {
        taken.is_empty()
    }
}

/// Two dense tables: keys that fit `S` take less memory.
struct SplitTable<S: Key, L: Key> {
    delimiter: u8,
    short: LocalTable<S>,
    long: LocalTable<L>,
    lists: Lists,
}

/// Keys and values, twice: short and long rows.
type Lists = [[Vec<u32>; 2]; 2];

/// Rows that are split at once.
const SPLIT_ROWS: usize = 8 * BATCH;

impl<S: Key, L: Key> DenseTables for SplitTable<S, L> {
    type Key = L;
    type Shards = (Arc<Shards<S>>, Arc<Shards<L>>);

    fn new(config: &TableConfig, (short, long): &Self::Shards) -> Self {
        let list = || vec![0; SPLIT_ROWS];
        SplitTable {
            delimiter: config.delimiter,
            short: LocalTable::new(config, short),
            long: LocalTable::new(config, long),
            lists: [[list(), list()], [list(), list()]],
        }
    }

    fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        let [[short_keys, short_values], [long_keys, long_values]] = &mut self.lists;
        for (keys, values) in keys.chunks(SPLIT_ROWS).zip(values.chunks(SPLIT_ROWS)) {
            // Each row is written to both lists, and kept in one: no branch on its length.
            let (mut shorts, mut longs) = (0, 0);
            for (&key, &value) in keys.iter().zip(values) {
                (short_keys[shorts], short_values[shorts]) = (key, value);
                (long_keys[longs], long_values[longs]) = (key, value);
                let is_short = (key >> 16) as usize <= size_of::<S>();
                shorts += usize::from(is_short);
                longs += usize::from(!is_short);
            }
            self.short
                .fold(window, &short_keys[..shorts], &short_values[..shorts]);
            self.long
                .fold(window, &long_keys[..longs], &long_values[..longs]);
        }
    }

    fn add(&mut self, key: &L, stats: &Stats) {
        let bytes = &key.bytes()[..size_of::<S>()];
        if bytes.contains(&self.delimiter) {
            let mut short = S::EMPTY;
            short.bytes_mut().copy_from_slice(bytes);
            self.short.add(&short, stats);
        } else {
            self.long.add(key, stats);
        }
    }

    fn share(&mut self) {
        self.short.share();
        self.long.share();
    }

    fn flush(&mut self) {
        self.short.flush();
        self.long.flush();
    }

    fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    fn bytes(&self) -> usize {
        self.short.bytes() + self.long.bytes()
    }

    fn sorted(
        all: Vec<Self>,
        (short, long): (shards::DrainedShards<S>, shards::DrainedShards<L>),
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let tables = all.into_iter().map(|tables| (tables.short, tables.long));
        let (shorts, longs) = tables.unzip();
        LocalTable::sorted(shorts, short, delimiter, to);
        LocalTable::sorted(longs, long, delimiter, to);
    }
}

impl<S: Key, L: Key> ShardSet for (Arc<Shards<S>>, Arc<Shards<L>>) {
    type Drained = (shards::DrainedShards<S>, shards::DrainedShards<L>);

    fn new(config: &TableConfig) -> Self {
        (ShardSet::new(config), ShardSet::new(config))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes() + self.1.bytes()
    }

    fn drain_if(&self, which: impl Fn(usize) -> bool) -> Self::Drained {
        (self.0.drain_if(&which), self.1.drain_if(&which))
    }

    fn is_empty((short, long): &Self::Drained) -> bool {
        short.is_empty() && long.is_empty()
    }
}
