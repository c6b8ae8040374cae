//! The tables of a partial together: which keys go where, and when they move.
//!
//! | keys, with their delimiter | while few | by the thousand, own and shared |
//! |---|---|---|
//! | up to 32 bytes | direct | dense, those up to 16 bytes apart |
//! | up to 96 bytes | direct | dense, those up to 64 bytes apart |
//! | up to 128 bytes | direct | dense |

use std::sync::Arc;

use rayon::prelude::*;

use crate::group::accumulate::stats::Stats;
use crate::group::scan::rows::{List, Rows};
use crate::group::scan::window::ScanWindow;
use crate::group::table::config::TableConfig;
use crate::group::table::dense::BATCH;
use crate::group::table::direct::DirectTable;
use crate::group::table::isa::{InlineKey, LongKey, MiddleKey, WideKey};
use crate::group::table::key::{Key, ShortKey};
use crate::group::table::local::LocalTable;
use crate::group::table::merge;
use crate::group::table::shards::{self, Shards};
use crate::group::table::sorted::SortedKeys;

type Inline = Apart<ShortKey, InlineKey>;
type Long = Apart<MiddleKey, LongKey>;
type Wide = LocalTable<WideKey>;

/// Every table of a partial.
pub(crate) struct Tables {
    inline: Class<Inline>,
    long: Class<Long>,
    wide: Class<Wide>,
}

/// What the partials of a run have in common: the keys that their own tables have no room for.
pub(crate) struct Shared {
    config: TableConfig,
    inline: <Inline as Many>::Shards,
    long: <Long as Many>::Shards,
    wide: <Wide as Many>::Shards,
}

impl Shared {
    pub(crate) fn new(config: TableConfig) -> Self {
        Shared {
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

    /// What the shards of some numbers hold; they stay as they were new.
    pub(crate) fn take(&self, which: impl Fn(usize) -> bool) -> Taken {
        Taken {
            config: self.config.clone(),
            inline: self.inline.take(&which),
            long: self.long.take(&which),
            wide: self.wide.take(&which),
        }
    }

    /// Shards of a size class.
    pub(crate) fn shards(&self) -> usize {
        1 << self.config.shard_bits
    }
}

/// What was shared.
pub(crate) struct Taken {
    config: TableConfig,
    inline: <<Inline as Many>::Shards as ShardSet>::Taken,
    long: <<Long as Many>::Shards as ShardSet>::Taken,
    wide: <<Wide as Many>::Shards as ShardSet>::Taken,
}

impl Tables {
    pub(crate) fn new(shared: &Shared) -> Self {
        Tables {
            inline: Class::new(&shared.config, &shared.inline),
            long: Class::new(&shared.config, &shared.long),
            wide: Class::new(&shared.config, &shared.wide),
        }
    }

    /// Takes the rows of `window` that are not listed as its rest; returns how many.
    pub(crate) fn fold(&mut self, window: ScanWindow<'_>, rows: &Rows) -> usize {
        self.inline.fold(window, &rows.inline);
        self.long.fold(window, &rows.long);
        self.wide.fold(window, &rows.wide);
        rows.lists().map(|list| list.keys().len()).sum()
    }

    /// What all of them hold together with what was `shared`, each key once; they must have the same
    /// seeds.
    pub(crate) fn sorted(all: Vec<Tables>, shared: Taken) -> Vec<Box<dyn SortedKeys>> {
        let (mut inline, mut long, mut wide) = (Vec::new(), Vec::new(), Vec::new());
        for tables in all {
            inline.push(tables.inline);
            long.push(tables.long);
            wide.push(tables.wide);
        }
        let (config, mut sorted) = (shared.config, Vec::new());
        Class::sorted(inline, shared.inline, &config, &mut sorted);
        Class::sorted(long, shared.long, &config, &mut sorted);
        Class::sorted(wide, shared.wide, &config, &mut sorted);
        sorted
    }

    /// Hands what they hold over to the shards, and from now on the rows of all keys but those that come
    /// first.
    pub(crate) fn share(&mut self) {
        self.inline.share();
        self.long.share();
        self.wide.share();
    }

    pub(crate) fn shares(&self) -> bool {
        self.inline.shares
    }

    /// What they hold; they stay as they were new. Rows on their way are shared then.
    pub(crate) fn take(&mut self) -> Tables {
        Tables {
            inline: self.inline.take(),
            long: self.long.take(),
            wide: self.wide.take(),
        }
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.inline.bytes() + self.long.bytes() + self.wide.bytes();
        bytes as u64
    }
}

/// The keys of a size class.
struct Class<M: Many> {
    config: TableConfig,
    shards: M::Shards,
    /// Whether it shares its keys with others.
    shares: bool,
    keys: Keys<M>,
}

enum Keys<M: Many> {
    None,
    SmallTables(Box<DirectTable<M::Key>>),
    Many(Box<M>),
}

/// Where the keys of a class go once they are many.
trait Many: Send + Sized {
    type Key: Key;
    type Shards: ShardSet;
    fn new(config: &TableConfig, shards: &Self::Shards) -> Self;
    fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]);
    fn add(&mut self, key: &Self::Key, stats: &Stats);
    /// Hands the keys over to the shards, and from now on the rows of others than those that come first.
    fn share(&mut self);
    /// Hands rows over that are on their way.
    fn flush(&mut self);
    fn bytes(&self) -> usize;
    /// What all of them hold together with what was shared.
    fn sorted(
        all: Vec<Self>,
        shared: <Self::Shards as ShardSet>::Taken,
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    );
}

/// The shards of a class.
trait ShardSet: Clone + Send + Sync {
    type Taken: Send;
    fn new(config: &TableConfig) -> Self;
    fn bytes(&self) -> u64;
    fn take(&self, which: impl Fn(usize) -> bool) -> Self::Taken;
    fn is_empty(taken: &Self::Taken) -> bool;
}

impl<M: Many> Class<M> {
    fn new(config: &TableConfig, shards: &M::Shards) -> Self {
        Class {
            config: config.clone(),
            shards: shards.clone(),
            shares: false,
            keys: Keys::None,
        }
    }

    #[inline]
    fn fold(&mut self, window: ScanWindow<'_>, list: &List) {
        let (mut keys, mut values) = (list.keys(), list.values());
        if keys.is_empty() {
            return;
        }
        if matches!(self.keys, Keys::None) && !self.shares {
            let table = DirectTable::new(self.config.level, self.config.seeds.clone());
            self.keys = Keys::SmallTables(Box::new(table));
        }
        if let Keys::SmallTables(table) = &mut self.keys {
            let taken = table.fold(window, keys, values);
            (keys, values) = (&keys[taken..], &values[taken..]);
        }
        if keys.is_empty() {
            return;
        }
        if self.shares && matches!(self.keys, Keys::None) {
            self.many().share();
        }
        self.many().fold(window, keys, values);
    }

    /// The tables for many keys; the few move there.
    fn many(&mut self) -> &mut M {
        if !matches!(self.keys, Keys::Many(_)) {
            let mut many = M::new(&self.config, &self.shards);
            if let Keys::SmallTables(few) = std::mem::replace(&mut self.keys, Keys::None) {
                for (key, stats) in few.drain() {
                    many.add(&key, &stats);
                }
            }
            self.keys = Keys::Many(Box::new(many));
        }
        match &mut self.keys {
            Keys::Many(many) => many,
            _ => unreachable!("made many above"),
        }
    }

    fn share(&mut self) {
        self.shares = true;
        if !matches!(self.keys, Keys::None) {
            self.many().share();
        }
    }

    fn take(&mut self) -> Self {
        if let Keys::Many(many) = &mut self.keys {
            many.flush();
        }
        let mut fresh = Class::new(&self.config, &self.shards);
        fresh.shares = self.shares;
        std::mem::replace(self, fresh)
    }

    fn bytes(&self) -> usize {
        match &self.keys {
            Keys::None => 0,
            Keys::SmallTables(few) => few.bytes(),
            Keys::Many(many) => many.bytes(),
        }
    }

    /// What all of them hold together with what was `shared`: in a direct table where one has room for
    /// all, even if each had keys of its own.
    fn sorted(
        mut all: Vec<Self>,
        shared: <M::Shards as ShardSet>::Taken,
        config: &TableConfig,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let few = |class: &Self| match &class.keys {
            Keys::None => Some(0),
            Keys::SmallTables(table) => Some(table.len()),
            Keys::Many(_) => None,
        };
        let keys: Option<usize> = all.iter().map(few).sum();
        if M::Shards::is_empty(&shared) && keys.is_some_and(DirectTable::<M::Key>::holds) {
            let tables = all.into_par_iter().filter_map(|class| match class.keys {
                Keys::SmallTables(table) => Some(table),
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
        all.retain(|class| !matches!(class.keys, Keys::None));
        all.par_iter_mut().for_each(|class| {
            class.many();
        });
        let many = all.into_iter().filter_map(|class| match class.keys {
            Keys::Many(many) => Some(*many),
            _ => None,
        });
        M::sorted(many.collect(), shared, config.delimiter, to);
    }
}

impl<K: Key> Many for LocalTable<K> {
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

    fn bytes(&self) -> usize {
        LocalTable::bytes(self)
    }

    fn sorted(
        all: Vec<Self>,
        shared: shards::Taken<K>,
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let all = all.into_iter().map(LocalTable::into_table).collect();
        to.push(Box::new(merge::sorted(all, shared, delimiter)));
    }
}

impl<K: Key> ShardSet for Arc<Shards<K>> {
    type Taken = shards::Taken<K>;

    fn new(config: &TableConfig) -> Self {
        Arc::new(Shards::new(config.level, config.shard_bits))
    }

    fn bytes(&self) -> u64 {
        Shards::bytes(self)
    }

    fn take(&self, which: impl Fn(usize) -> bool) -> shards::Taken<K> {
        Shards::take(self, which)
    }

    fn is_empty(taken: &shards::Taken<K>) -> bool {
        taken.is_empty()
    }
}

/// Keys by the thousand, of which those that fit `S` take less memory.
struct Apart<S: Key, L: Key> {
    delimiter: u8,
    short: LocalTable<S>,
    long: LocalTable<L>,
    lists: Lists,
}

/// Keys and values, twice: short and long rows.
type Lists = [[Vec<u32>; 2]; 2];

/// Rows told apart at once.
const APART: usize = 8 * BATCH;

impl<S: Key, L: Key> Many for Apart<S, L> {
    type Key = L;
    type Shards = (Arc<Shards<S>>, Arc<Shards<L>>);

    fn new(config: &TableConfig, (short, long): &Self::Shards) -> Self {
        let list = || vec![0; APART];
        Apart {
            delimiter: config.delimiter,
            short: LocalTable::new(config, short),
            long: LocalTable::new(config, long),
            lists: [[list(), list()], [list(), list()]],
        }
    }

    fn fold(&mut self, window: ScanWindow<'_>, keys: &[u32], values: &[u32]) {
        let [[short_keys, short_values], [long_keys, long_values]] = &mut self.lists;
        for (keys, values) in keys.chunks(APART).zip(values.chunks(APART)) {
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

    fn bytes(&self) -> usize {
        self.short.bytes() + self.long.bytes()
    }

    fn sorted(
        all: Vec<Self>,
        (short, long): (shards::Taken<S>, shards::Taken<L>),
        delimiter: u8,
        to: &mut Vec<Box<dyn SortedKeys>>,
    ) {
        let apart = all.into_iter().map(|tables| (tables.short, tables.long));
        let (shorts, longs) = apart.unzip();
        LocalTable::sorted(shorts, short, delimiter, to);
        LocalTable::sorted(longs, long, delimiter, to);
    }
}

impl<S: Key, L: Key> ShardSet for (Arc<Shards<S>>, Arc<Shards<L>>) {
    type Taken = (shards::Taken<S>, shards::Taken<L>);

    fn new(config: &TableConfig) -> Self {
        (ShardSet::new(config), ShardSet::new(config))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes() + self.1.bytes()
    }

    fn take(&self, which: impl Fn(usize) -> bool) -> Self::Taken {
        (self.0.take(&which), self.1.take(&which))
    }

    fn is_empty((short, long): &Self::Taken) -> bool {
        short.is_empty() && long.is_empty()
    }
}
