//! Groups by key, and the states of each.
//!
//! Groups are spread over shards by the hashes of their keys, so that tables are merged by all threads.

use std::any::Any;

use ahash::RandomState;
use rayon::prelude::*;
use ringfold_read::CancellationToken;
use ringfold_read::internals::prefetch;

use crate::aggregate::bag::{Bags, Values};
use crate::aggregate::definition::{Kind, Slot};
use crate::aggregate::digest::{self, Text};
use crate::aggregate::lanes::Kept;
use crate::aggregate::state::{Argument, DigestRow, Outcome, Ratio, State, States, Value};
use crate::decimal::number::Number;
use crate::partial::column::{ColumnView, Gathered};
use crate::table::entries::{EntryRef, KEY_UNIT_BITS};
use crate::table::entry_order::Place;

/// A power of two, of which a hash tells one by bits that hash tables don't look at.
const SHARDS: usize = 64;

/// Groups of lanes are in shards from this number on, a table of them in as many as keys have units.
const LANES_FROM: usize = SHARDS;

/// The most digits after the point by which a single number raises the scale of a bag. Those of a pass may raise it more.
const BAG_SCALE_MAX: u32 = 7;

/// How many keys ahead of their turn places are fetched.
const AHEAD: usize = 16;

/// What a group takes where it is put in order, beside others.
pub(crate) const ORDER_BYTES: usize = 48;
/// Values that are put side by side and looked at take so many times their memory beside.
const BAG_GROWTH: usize = 2;

/// The groups that have been seen.
pub(crate) struct Table {
    hasher: RandomState,
    slots: Vec<Slot>,
    /// For each aggregate which states are its own.
    places: Vec<usize>,
    shards: Vec<Shard>,
    /// For each aggregate whose numbers are in bags their scale, once there is one.
    scales: Vec<Option<u32>>,
    /// Long texts of bags.
    texts: Keys,
    /// Bytes that states have elsewhere.
    heap: usize,
    pub(crate) cancellation: Option<CancellationToken>,
}

/// A group of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    shard: u32,
    at: u32,
}

impl Group {
    /// A group that no table has, by its place among those of lanes.
    pub(crate) fn in_lanes(place: Place) -> Group {
        let of_lanes = place.table << KEY_UNIT_BITS | (place.entry.key_units() - 1);
        Group {
            shard: (LANES_FROM + of_lanes) as u32,
            at: place.entry.place(),
        }
    }

    /// Its place among the groups of lanes, if it is one of these.
    pub(crate) fn lanes(self) -> Option<Place> {
        let of_lanes = (self.shard as usize).checked_sub(LANES_FROM)?;
        let key_units = (of_lanes & ((1 << KEY_UNIT_BITS) - 1)) + 1;
        Some(Place {
            table: of_lanes >> KEY_UNIT_BITS,
            entry: EntryRef::new(self.at, key_units),
        })
    }

    /// The digest of a value of its own.
    pub(crate) fn digested(self, digest: u64) -> DigestRow {
        DigestRow {
            states: self.shard,
            group: self.at,
            digest,
        }
    }

    /// A number that isn't negative.
    pub(crate) fn number(self) -> i64 {
        i64::from(self.shard) << 32 | i64::from(self.at)
    }

    /// The group with this number.
    pub(crate) fn numbered(number: i64) -> Group {
        Group {
            shard: (number >> 32) as u32,
            at: number as u32,
        }
    }
}

/// Keys numbered from 0, in a hash table whose places can be fetched ahead.
#[derive(Default)]
struct Keys {
    /// At each place a key's hash in the upper half, and its number from 1; or zero. There are a power of two, or none.
    places: Vec<u64>,
    /// All keys, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// The place where the search for a hash begins.
    fn home(&self, hash: u32) -> usize {
        // The upper bits of all are those of a product.
        ((u64::from(hash) * self.places.len() as u64) >> 32) as usize
    }

    /// The numbers of the keys with a hash, from its first place on.
    fn with_hash(&self, hash: u32) -> impl Iterator<Item = u32> {
        let (before, after) = self.places.split_at(self.home(hash));
        let places = after.iter().chain(before).take_while(|place| **place != 0);
        let same = places.filter(move |place| (**place >> 32) as u32 == hash);
        same.map(|place| *place as u32 - 1)
    }

    fn find(&self, hash: u32, wanted: &[u8]) -> Option<u32> {
        (self.with_hash(hash)).find(|number| self.key(*number) == wanted)
    }

    /// Adds a key that isn't there yet.
    fn push(&mut self, hash: u32, key: &[u8]) -> u32 {
        let number = u32::try_from(self.ends.len() + 1).expect("less than 4 billion keys");
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        if 4 * self.ends.len() > 3 * self.places.len() {
            let places = (2 * self.places.len()).max(8);
            let before = std::mem::replace(&mut self.places, vec![0; places]);
            let keys = before.into_iter().filter(|place| *place != 0);
            keys.for_each(|place| self.put(place));
        }
        self.put(u64::from(hash) << 32 | u64::from(number));
        number - 1
    }

    fn put(&mut self, place: u64) {
        let mut at = self.home((place >> 32) as u32);
        while self.places[at] != 0 {
            at = (at + 1) % self.places.len();
        }
        self.places[at] = place;
    }

    fn number(&mut self, hash: u32, wanted: &[u8]) -> u32 {
        (self.find(hash, wanted)).unwrap_or_else(|| self.push(hash, wanted))
    }

    /// Fetches the place where a search begins into the cache.
    fn prefetch(&self, hash: u32) {
        prefetch::into_l1(self.places.as_ptr().wrapping_add(self.home(hash)).cast());
    }

    /// The same of the key that is found, once the place is there.
    fn prefetch_key(&self, hash: u32) {
        if let Some(number) = self.with_hash(hash).next() {
            prefetch::into_l1(self.key(number).as_ptr());
        }
    }

    /// The hashes of all keys by their numbers.
    fn hashes(&self) -> Vec<u32> {
        let mut hashes = vec![0; self.len()];
        for place in self.places.iter().filter(|place| **place != 0) {
            hashes[*place as u32 as usize - 1] = (place >> 32) as u32;
        }
        hashes
    }

    /// Memory that is taken.
    fn memory(&self) -> usize {
        let places = size_of::<u64>() * self.places.capacity();
        places + size_of::<usize>() * self.ends.capacity() + self.bytes.capacity()
    }
}

/// Groups by their keys.
struct Shard {
    keys: Keys,
    /// For each aggregate that has states of its own, those of all groups.
    states: Vec<Box<dyn States>>,
}

impl Shard {
    fn new(slots: &[Slot]) -> Shard {
        let owners = slots
            .iter()
            .enumerate()
            .filter(|(at, slot)| slot.owner == *at);
        Shard {
            keys: Keys::default(),
            states: owners.map(|(_, slot)| (slot.kind.states)()).collect(),
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, group: u32) -> &[u8] {
        self.keys.key(group)
    }

    fn group(&mut self, hash: u32, wanted: &[u8]) -> u32 {
        if let Some(group) = self.keys.find(hash, wanted) {
            return group;
        }
        let group = self.keys.push(hash, wanted);
        for states in &mut self.states {
            states.push();
        }
        group
    }

    /// Adds a group that isn't there yet.
    fn insert(
        &mut self,
        hash: u32,
        key: &[u8],
        slots: &[Slot],
        mut columns: &[ColumnView<'_>],
        row: usize,
    ) -> Result<u32, &'static str> {
        let mut states = self.states.iter_mut();
        for (at, slot) in slots.iter().enumerate() {
            let (own, rest) = columns.split_at(slot.kind.columns.len());
            columns = rest;
            if slot.owner == at {
                let states = states.next().expect("each owner has states");
                states.push_decoded(own, row)?;
            }
        }
        Ok(self.keys.push(hash, key))
    }

    fn bytes(&self) -> usize {
        let states: usize = self.states.iter().map(|states| states.bytes()).sum();
        self.keys.memory() + states
    }

    fn merge(&mut self, mut from: Shard) {
        if from.len() > self.len() {
            std::mem::swap(self, &mut from);
        }
        let hashes = from.keys.hashes();
        let groups = hashes.iter().enumerate().map(|(group, &hash)| {
            if let Some(&ahead) = hashes.get(group + AHEAD) {
                self.keys.prefetch(ahead);
            }
            self.group(hash, from.key(group as u32)) as usize
        });
        let into: Vec<usize> = groups.collect();
        for (states, from) in self.states.iter_mut().zip(from.states) {
            states.merge(from, &into);
        }
    }
}

impl Table {
    pub(crate) fn new(
        hasher: &RandomState,
        slots: &[Slot],
        cancellation: Option<CancellationToken>,
    ) -> Table {
        let place = |slot: &Slot| (0..slot.owner).filter(|&at| slots[at].owner == at).count();
        Table {
            hasher: hasher.clone(),
            shards: (0..SHARDS).map(|_| Shard::new(slots)).collect(),
            places: slots.iter().map(place).collect(),
            scales: vec![None; slots.len()],
            texts: Keys::default(),
            slots: slots.to_vec(),
            heap: 0,
            cancellation,
        }
    }

    /// Leaves the work if the run was cancelled, see [`CancellationToken::unwind`].
    #[inline]
    pub(crate) fn unwind(&self) {
        self.cancellation.as_ref().inspect(|token| token.unwind());
    }

    /// Memory that is taken.
    pub(crate) fn bytes(&self) -> usize {
        self.heap + self.texts.memory() + self.shards.iter().map(Shard::bytes).sum::<usize>()
    }

    /// What it takes beside to put the groups in order, and to look at the values of one.
    pub(crate) fn bytes_in_order(&self) -> usize {
        let is_of_values = |slot: &Slot| slot.kind.of_values.is_some();
        let values = match self.slots.iter().any(is_of_values) {
            true => BAG_GROWTH * self.heap + size_of::<(u64, u64)>() * self.texts.len(),
            false => 0,
        };
        ORDER_BYTES * self.len() + values
    }

    /// Whether bags have long texts.
    pub(crate) fn has_texts(&self) -> bool {
        self.texts.len() > 0
    }

    /// A table of the same plan, without groups.
    pub(crate) fn like(&self) -> Table {
        Table::new(&self.hasher, &self.slots, self.cancellation.clone())
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// All groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> {
        (0..).zip(&self.shards).flat_map(|(shard, groups)| {
            let all = 0..groups.len() as u32;
            all.map(move |at| Group { shard, at })
        })
    }

    pub(crate) fn key(&self, group: Group) -> &[u8] {
        self.shards[group.shard as usize].key(group.at)
    }

    /// Bytes of a group's key, and those that its states have elsewhere.
    pub(crate) fn bytes_of(&self, group: Group) -> usize {
        let states = self.shards[group.shard as usize].states.iter();
        let heap = states.map(|states| states.heap_of(group.at as usize));
        self.key(group).len() + heap.sum::<usize>()
    }

    /// Bytes of the largest group, or of a bag's longest text.
    pub(crate) fn largest(&self) -> usize {
        let groups = self.groups().map(|group| self.bytes_of(group));
        let texts = (0..self.texts.len() as u32).map(|text| self.texts.key(text).len());
        groups.chain(texts).max().unwrap_or(0)
    }

    /// The group of a key, a new one if need be.
    pub(crate) fn group(&mut self, key: &[u8]) -> Group {
        let hash = self.hasher.hash_one(key);
        let shard = shard_of(hash);
        Group {
            shard: shard as u32,
            at: self.shards[shard].group(hash as u32, key),
        }
    }

    /// Adds a value to a group's state of one of the aggregates.
    pub(crate) fn update(&mut self, group: Group, aggregate: usize, value: &Value<'_>) {
        if self.slots[aggregate].kind.of_values.is_some() {
            return self.keep(group, aggregate, value);
        }
        let states = &mut self.shards[group.shard as usize].states;
        let growth = states[self.places[aggregate]].update(group.at as usize, value);
        self.heap = self.heap.saturating_add_signed(growth);
    }

    /// Adds values to the states of their groups, by their digests.
    pub(crate) fn add(&mut self, aggregate: usize, digests: &[DigestRow]) {
        let place = self.places[aggregate];
        let states = self
            .shards
            .iter_mut()
            .map(|shard| &mut *shard.states[place]);
        let mut states: Vec<&mut dyn States> = states.collect();
        let growth = (self.slots[aggregate].kind.add_all)(&mut states, digests);
        self.heap = self.heap.saturating_add_signed(growth);
    }

    /// Adds a value to a group's bag.
    fn keep(&mut self, group: Group, aggregate: usize, value: &Value<'_>) {
        let is_number = self.slots[aggregate].kind.argument == Argument::Numbers;
        let digest = match is_number {
            true => self.number_digest(aggregate, &value.number),
            false => Some(self.text_digest(value.bytes)),
        };
        match digest {
            Some(digest) => {
                let states = &mut self.shards[group.shard as usize].states;
                let growth = states[self.places[aggregate]].add(group.at as usize, digest);
                self.heap = self.heap.saturating_add_signed(growth);
            }
            None => self.count_own(group, aggregate, &value.number, 1),
        }
    }

    /// Counts a number of a group as a group of its own.
    fn count_own(&mut self, group: Group, aggregate: usize, number: &Number, times: u64) {
        let mut key = self.key(group).to_vec();
        // The part of the value is empty in the group itself.
        key.truncate(key.len() - size_of::<u32>());
        digest::push_own(&mut key, aggregate, number);
        let own = self.group(&key);
        let known = Kept {
            known: times,
            ..Kept::default()
        };
        self.absorb(own, aggregate, &known);
        self.absorb(group, aggregate, &known);
    }

    /// The digest of a number, if it has one at the scale that all numbers in bags have, or may have.
    fn number_digest(&mut self, aggregate: usize, number: &Number) -> Option<u64> {
        let decimals = number.decimals();
        let scale = match self.scales[aggregate] {
            Some(scale) if scale >= decimals => scale,
            _ if decimals <= BAG_SCALE_MAX => self.raise(aggregate, decimals),
            _ => return None,
        };
        let number = number.at(scale)?;
        digest::of_number(i64::try_from(number).ok()?)
    }

    /// The scale of numbers in an aggregate's bags, from now on at least this one.
    pub(crate) fn raise(&mut self, aggregate: usize, scale: u32) -> u32 {
        match self.scales[aggregate] {
            Some(known) if known >= scale => return known,
            Some(known) => self.rescale(aggregate, known, scale),
            None => {}
        }
        self.scales[aggregate] = Some(scale);
        scale
    }

    #[cold]
    fn rescale(&mut self, aggregate: usize, from: u32, to: u32) {
        let factor = 10_i64.pow(to - from);
        let other = |digest| {
            let number = digest::number(digest).checked_mul(factor);
            number.and_then(digest::of_number)
        };
        let mut without = Vec::new();
        for (shard, groups) in (0..).zip(&mut self.shards) {
            let bags = bags_mut(&mut groups.states[self.places[aggregate]]);
            bags.replace(other, |at, digest, times| {
                without.push((Group { shard, at }, digest, times));
            });
        }
        for (group, digest, times) in without {
            let number = Number::new(digest::number(digest).into(), from);
            self.count_own(group, aggregate, &number, times);
        }
    }

    /// The digest of a text.
    fn text_digest(&mut self, text: &[u8]) -> u64 {
        digest::of_text(text).unwrap_or_else(|| {
            let hash = self.hasher.hash_one(text) as u32;
            digest::of_long(self.texts.number(hash, text))
        })
    }

    /// The digests of texts of some groups.
    pub(crate) fn digest_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = (Group, &'t [u8])>,
        digests: &mut Vec<DigestRow>,
    ) {
        let mut long = Vec::new();
        for (group, text) in texts {
            let digest = digest::of_text(text).unwrap_or_else(|| {
                let hash = self.hasher.hash_one(text) as u32;
                self.texts.prefetch(hash);
                long.push((digests.len(), hash, text));
                0
            });
            digests.push(group.digested(digest));
        }
        (long.iter()).for_each(|(_, hash, _)| self.texts.prefetch_key(*hash));
        for (at, hash, text) in long {
            digests[at].digest = digest::of_long(self.texts.number(hash, text));
        }
    }

    /// Puts the values of each group side by side, after which none are added.
    pub(super) fn gather_values(&mut self) {
        let slots = self.slots.iter().enumerate();
        let owners = slots.filter(|(at, slot)| slot.owner == *at && slot.kind.of_values.is_some());
        let places: Vec<usize> = owners.map(|(at, _)| self.places[at]).collect();
        let shards = self.shards.par_iter_mut();
        shards.for_each(|shard| {
            places
                .iter()
                .for_each(|&place| bags_mut(&mut shard.states[place]).gather());
        });
    }

    fn bags(&self, group: Group, aggregate: usize) -> &Bags {
        let states: &dyn Any = self.states(group, aggregate);
        states.downcast_ref().expect("an aggregate of all values")
    }

    /// A copy of the values of a group but for those that are groups of their own.
    pub(crate) fn values(&self, group: Group, aggregate: usize) -> Values {
        self.bags(group, aggregate).values(group.at)
    }

    /// How many of its values are groups of their own; of such a group, how often its value is there.
    pub(crate) fn own_values(&self, group: Group, aggregate: usize) -> u64 {
        self.bags(group, aggregate).own(group.at)
    }

    /// A number in a bag.
    pub(crate) fn number_of(&self, aggregate: usize, digest: u64) -> Number {
        let scale = self.scales[aggregate].unwrap_or_default();
        Number::new(digest::number(digest).into(), scale)
    }

    /// Calls `with` with a text in a bag.
    pub(crate) fn with_text<T>(&self, digest: u64, with: impl FnOnce(&[u8]) -> T) -> T {
        match digest::text(digest) {
            Text::Short(bytes, len) => with(&bytes[..len]),
            Text::Long(number) => with(self.texts.key(number)),
        }
    }

    /// Adds what lanes have kept.
    pub(crate) fn absorb(&mut self, group: Group, aggregate: usize, kept: &Kept) {
        let states = &mut self.shards[group.shard as usize].states;
        states[self.places[aggregate]].absorb(group.at as usize, kept);
    }

    /// The states of one of the aggregates, where a group's are.
    fn states(&self, group: Group, aggregate: usize) -> &dyn States {
        &*self.shards[group.shard as usize].states[self.places[aggregate]]
    }

    /// The outcome of one of the aggregates in a group.
    pub(crate) fn finish(&self, group: Group, aggregate: usize, scale: u32) -> Outcome<'_> {
        let share = self.slots[aggregate].kind.share;
        (self.states(group, aggregate)).finish(group.at as usize, share, scale)
    }

    /// The same where it is no more than a ratio and isn't null.
    pub(crate) fn ratio(&self, group: Group, aggregate: usize) -> Option<Ratio> {
        self.states(group, aggregate).ratio(group.at as usize)
    }

    /// The state of an aggregate in a group, if it is of this type.
    pub(crate) fn state<S: State>(&self, group: Group, aggregate: usize) -> Option<&S> {
        let states: &dyn Any = self.states(group, aggregate);
        (states.downcast_ref::<Vec<S>>()?).get(group.at as usize)
    }

    /// The aggregates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.slots.iter().map(|slot| slot.kind)
    }

    /// Adds a group's states of one of the aggregates to their columns.
    pub(crate) fn encode(&self, group: Group, aggregate: usize, to: &mut [Gathered]) {
        self.states(group, aggregate).encode(group.at as usize, to);
    }

    /// Adds a group that isn't there yet, with the states in a row of the aggregates' columns.
    ///
    /// # Errors
    /// What is wrong with the states.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        columns: &[ColumnView<'_>],
        row: usize,
    ) -> Result<Group, &'static str> {
        let hash = self.hasher.hash_one(key);
        let number = shard_of(hash);
        let at = self.shards[number].insert(hash as u32, key, &self.slots, columns, row)?;
        Ok(Group {
            shard: number as u32,
            at,
        })
    }

    /// Fetches the states of a group, and where its key is, into the cache.
    pub(crate) fn prefetch(&self, group: Group) {
        let Shard { keys, states } = &self.shards[group.shard as usize];
        let at = group.at as usize;
        prefetch::into_l1(keys.ends.as_ptr().wrapping_add(at).cast());
        states.iter().for_each(|states| states.prefetch(at));
    }

    /// Fetches a group's key into the cache.
    pub(crate) fn prefetch_key(&self, group: Group) {
        prefetch::into_l1(self.key(group).as_ptr());
    }

    /// Adds the groups of a table of the same plan.
    pub(crate) fn merge(&mut self, mut from: Table) {
        for aggregate in 0..self.slots.len() {
            if let Some(scale) = self.scales[aggregate].max(from.scales[aggregate]) {
                self.raise(aggregate, scale);
                from.raise(aggregate, scale);
            }
        }
        self.take_texts(&mut from);
        self.heap += from.heap;
        let token = self.cancellation.clone();
        let shards = self.shards.par_iter_mut().zip(from.shards);
        shards.for_each(|(shard, from)| {
            token.as_ref().inspect(|token| token.unwind());
            shard.merge(from);
        });
    }
}

impl Table {
    /// Takes the long texts of another table, whose bags then have this one's numbers of them.
    fn take_texts(&mut self, from: &mut Table) {
        if from.texts.len() == 0 {
            return;
        }
        if from.texts.len() > self.texts.len() {
            std::mem::swap(self, from);
        }
        let texts = std::mem::take(&mut from.texts);
        let hashes = texts.hashes();
        let numbers = hashes.iter().enumerate().map(|(number, &hash)| {
            if let Some(&ahead) = hashes.get(number + AHEAD) {
                self.texts.prefetch(ahead);
            }
            self.texts.number(hash, texts.key(number as u32))
        });
        let numbers: Vec<u32> = numbers.collect();
        let other = |digest| match digest::text(digest) {
            Text::Short(..) => Some(digest),
            Text::Long(number) => Some(digest::of_long(numbers[number as usize])),
        };
        let slots = self.slots.iter().enumerate();
        let of_texts = slots.filter(|(at, slot)| {
            let takes = slot.kind.argument;
            slot.owner == *at && slot.kind.of_values.is_some() && takes != Argument::Numbers
        });
        let places: Vec<usize> = of_texts.map(|(at, _)| self.places[at]).collect();
        from.shards.par_iter_mut().for_each(|shard| {
            for &place in &places {
                bags_mut(&mut shard.states[place]).replace(other, |_, _, _| {});
            }
        });
    }
}

fn bags_mut(states: &mut Box<dyn States>) -> &mut Bags {
    let states: &mut dyn Any = &mut **states;
    states.downcast_mut().expect("an aggregate of all values")
}

/// The shard of a key's hash, of which keys of a shard are told apart by the lower half.
fn shard_of(hash: u64) -> usize {
    (hash >> 48) as usize % SHARDS
}

/// Appends a part of a key: its length, and its bytes.
pub(crate) fn push_part(key: &mut Vec<u8>, part: &[u8]) {
    // A record is shorter than 4 GiB.
    let len = u32::try_from(part.len()).expect("a field of less than 4 GiB");
    key.extend_from_slice(&len.to_le_bytes());
    key.extend_from_slice(part);
}

/// The parts of a key.
pub(crate) fn parts(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = key.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        key = rest;
        Some(part)
    })
}

pub(crate) mod filing;
#[cfg(test)]
mod tests;
