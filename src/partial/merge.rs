//! Merges any number of partials.
//!
//! A batch is all rows up to some key: the next rows of each block. They are put in the order of their keys first, which gives
//! a list of the rows that make each group. Then each column is merged in one go by its rule.
//!
//! [`Merge::next`] has one block of each partial in memory. [`Merge::for_each`] has more, and gathers ranges of keys side by side.

pub(crate) mod batch;
mod columns;
mod order;
pub(crate) mod split;

use rayon::prelude::*;
use ringfold_read::Result;

use crate::partial::block::{BLOCK_BYTES, Block, Groups};
use crate::partial::column::{ColumnView, Variable};
use crate::partial::description::Description;
use crate::partial::key::prefix;
use crate::partial::merge::batch::Batch;
use crate::partial::merge::order::{Order, Ranked, Row};
use crate::partial::reader::{Cursor, Loaded, Reader};
use crate::partial::shard::{Shard, Shards};

/// The most rows of a batch, so that what is gathered stays in the cache.
const BATCH: usize = if cfg!(test) { 64 } else { 8192 };
/// So many rows of each input are in a batch, if there are too many inputs for more.
const LEAST: usize = if cfg!(test) { 4 } else { 32 };
/// The most bytes of long groups in a batch, unless it has one group only.
const LONG_BYTES: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// Blocks in memory where ranges are gathered side by side: all together, unless that is less than two of each input.
const BLOCKS: usize = if cfg!(test) { 6 } else { 64 };
/// Rows of a range, about, if there aren't too many inputs, and the most ranges for each thread, so that none waits for long.
const RANGE: usize = if cfg!(test) { 16 } else { 4096 };
const RANGES: usize = 16;
/// The most keys that are looked at to find ranges, about.
const SAMPLES: usize = 4096;

/// A partial that is merged.
struct Input<'a> {
    cursor: Cursor<'a>,
    /// Where its sources stand in the result.
    sources: Vec<u32>,
    /// The blocks in memory, and the next row of each.
    blocks: Vec<(Loaded<'a>, usize)>,
}

/// Partials that are being merged.
pub(crate) struct Merge<'a> {
    inputs: Vec<Input<'a>>,
    scratch: Scratch,
    /// The only shard that is wanted.
    shard: Option<(u32, Shards)>,
}

/// What batches are gathered with, one after the other.
struct Scratch {
    /// The most rows of each block that the next batch has.
    step: usize,
    order: Order,
    batch: Batch,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            step: BATCH,
            order: Order::default(),
            batch: Batch::default(),
        }
    }
}

impl<'a> Merge<'a> {
    /// Merges partials of the same columns, which differ in nothing but scale; with each come the numbers that its sources
    /// have in the result.
    pub(crate) fn new(partials: impl IntoIterator<Item = (&'a Reader, Vec<u32>)>) -> Merge<'a> {
        let inputs = partials.into_iter().map(|(reader, sources)| Input {
            cursor: Cursor::new(reader),
            sources,
            blocks: Vec::new(),
        });
        Merge {
            inputs: inputs.collect(),
            scratch: Scratch::default(),
            shard: None,
        }
    }

    /// Leaves all groups out but those of a shard, if that is named.
    pub(crate) fn only(mut self, shard: Option<Shard>, description: &Description) -> Self {
        self.shard = shard.map(|shard| (shard.number, Shards::new(shard.count, description)));
        self
    }

    /// Gathers some of the next groups; `false` where there are none.
    ///
    /// # Errors
    /// A block can't be read or is damaged, or keys aren't in order.
    pub(crate) fn next(&mut self, to: &mut Groups) -> Result<bool> {
        self.inputs.iter_mut().try_for_each(|input| input.load(1))?;
        self.inputs.retain(|input| !input.blocks.is_empty());
        let blocks = Blocks::new(&self.inputs, self.shard.as_ref());
        let mut heads = blocks.heads();
        if heads.is_empty() {
            return Ok(false);
        }
        blocks.gather(&mut heads, &mut self.scratch, to);
        let ends = heads.iter().map(|head| head.end).collect();
        self.go_to(ends);
        Ok(true)
    }

    /// Hands `make` groups in many parts, on all threads, and `take` what it made of them, in the order of keys. While that
    /// works, the next parts are made. In what parts the groups come depends on the number of threads.
    ///
    /// # Errors
    /// Those of [`Merge::next`]; within, that of `take`.
    pub(crate) fn for_each<T: Send, E>(
        mut self,
        description: &Description,
        make: impl Fn(Groups) -> T + Sync,
        mut take: impl FnMut(Vec<T>) -> std::result::Result<(), E>,
    ) -> Result<std::result::Result<(), E>> {
        let mut parts = self.next_parts(description, &make)?;
        while !parts.is_empty() {
            let mut next = Ok(Vec::new());
            let taken = rayon::in_place_scope(|scope| {
                scope.spawn(|_| next = self.next_parts(description, &make));
                take(parts)
            });
            if taken.is_err() {
                return Ok(taken);
            }
            parts = next?;
        }
        Ok(Ok(()))
    }

    /// None where there are no more groups.
    fn next_parts<T: Send>(
        &mut self,
        description: &Description,
        make: impl Fn(Groups) -> T + Sync,
    ) -> Result<Vec<T>> {
        let bytes = BLOCK_BYTES * (BLOCKS / self.inputs.len().max(1)).max(2);
        let loaded = self.inputs.par_iter_mut().map(|input| input.load(bytes));
        // Of several errors that of the first input, whichever thread was faster.
        let loaded: Vec<Result<()>> = loaded.collect();
        loaded.into_iter().collect::<Result<()>>()?;
        self.inputs.retain(|input| !input.blocks.is_empty());
        let blocks = Blocks::new(&self.inputs, self.shard.as_ref());
        let mut heads = blocks.heads();
        let ranges = ranges(
            &mut heads,
            self.inputs.iter().filter_map(Input::limit).min(),
        );
        let gathered = ranges.into_par_iter().map(|mut heads| {
            let (mut groups, mut scratch) = (Groups::new(description), Scratch::default());
            while !heads.is_empty() {
                blocks.gather(&mut heads, &mut scratch, &mut groups);
                heads.iter_mut().for_each(|head| head.start = head.end);
                heads.retain(|head| head.start < head.keys.ends.len());
            }
            make(groups)
        });
        let gathered = gathered.collect();
        let ends = heads.iter().map(|head| head.end).collect();
        self.go_to(ends);
        Ok(gathered)
    }

    /// Leaves the rows of all blocks before these.
    fn go_to(&mut self, rows: Vec<usize>) {
        let blocks = self.inputs.iter_mut().flat_map(|input| &mut input.blocks);
        blocks.zip(rows).for_each(|((_, row), to)| *row = to);
    }
}

/// The blocks in memory.
struct Blocks<'b> {
    loaded: Vec<&'b Loaded<'b>>,
    keys: Vec<Variable<'b>>,
    /// The next row of each.
    rows: Vec<usize>,
    /// Where the sources of each stand in the result.
    sources: Vec<&'b [u32]>,
    shard: Option<&'b (u32, Shards)>,
}

impl<'b> Blocks<'b> {
    fn new(inputs: &'b [Input<'_>], shard: Option<&'b (u32, Shards)>) -> Blocks<'b> {
        let all = || inputs.iter().flat_map(|input| &input.blocks);
        let sources = |input: &'b Input<'_>| input.blocks.iter().map(|_| &input.sources[..]);
        Blocks {
            loaded: all().map(|(loaded, _)| loaded).collect(),
            keys: all().map(|(loaded, _)| loaded.keys()).collect(),
            rows: all().map(|(_, row)| *row).collect(),
            sources: inputs.iter().flat_map(sources).collect(),
            shard,
        }
    }

    fn heads(&self) -> Vec<Head<'b>> {
        let blocks = self.keys.iter().zip(&self.loaded).zip(&self.rows);
        let heads = (0..)
            .zip(blocks)
            .map(|(block, ((&keys, loaded), &row))| Head {
                block,
                keys,
                long_bytes: loaded.len().saturating_sub(BLOCK_BYTES),
                start: row,
                end: row,
            });
        heads.collect()
    }

    /// Gathers the groups of a batch of rows, which are those of `heads` then.
    fn gather(&self, heads: &mut [Head<'_>], scratch: &mut Scratch, to: &mut Groups) {
        let Scratch { step, order, batch } = scratch;
        *step = cut(heads, *step);
        self.put_in_order(heads, order, batch);
        if let Some((wanted, shards)) = self.shard {
            // A key that is in none is in all: whoever looks at its parts refuses it.
            let number = |row: Row| shards.number(self.keys[row.input()].get(row.row()));
            batch.retain(|row| number(row).is_none_or(|number| number == *wanted));
        }
        gather(batch, &self.loaded, &self.sources, to);
    }

    /// Says which rows make the groups of a batch.
    fn put_in_order(&self, heads: &[Head<'_>], order: &mut Order, batch: &mut Batch) {
        let skip = common(heads);
        order.clear();
        for head in heads {
            let rows = head.start..head.end;
            let prefixes = head.keys.prefixes(rows.clone(), skip);
            order.push_run(prefixes.zip(rows).map(|(prefix, row)| Ranked {
                prefix,
                row: Row::new(head.block, row as u32),
            }));
        }
        let ranked = order.sort();
        batch.group(ranked, |one, two| one.prefix == two.prefix);
        let are_same = |one: Row, two: Row| {
            let keys = &self.keys[one.input()];
            keys.is_same(one.row(), &self.keys[two.input()], two.row())
        };
        let is_right = |(group, row): &(u32, Row)| are_same(batch.firsts[*group as usize], *row);
        if !batch.others.iter().all(is_right) {
            // Keys begin alike and aren't the same.
            let key = |row: Row| self.keys[row.input()].get(row.row());
            for same in ranked.chunk_by_mut(|one, two| one.prefix == two.prefix) {
                same.sort_by(|one, two| key(one.row).cmp(key(two.row)));
            }
            batch.group(ranked, |one, two| {
                one.prefix == two.prefix && are_same(one.row, two.row)
            });
        }
    }
}

/// Gathers the groups of a batch of rows of these blocks.
fn gather(batch: &Batch, blocks: &[&Loaded<'_>], sources: &[&[u32]], to: &mut Groups) {
    let keys: Vec<Variable<'_>> = blocks.iter().map(|block| block.keys()).collect();
    for row in &batch.firsts {
        to.keys.push_of(&keys[row.input()], row.row());
    }
    for (at, column) in to.columns.iter_mut().enumerate() {
        let views: Vec<ColumnView<'_>> = blocks.iter().map(|block| block.column(at)).collect();
        columns::merge(batch, &views, sources, column);
    }
}

/// Gathers the groups of some blocks, whose rows may have any order and any key more than once.
pub(crate) fn merge_rows(blocks: &[Block<'_>], sources: &[u32], to: &mut Groups) {
    let key = |row: Row| blocks[row.input()].keys.get(row.row());
    let rows = (0..)
        .zip(blocks)
        .flat_map(|(input, block)| (0..block.len() as u32).map(move |row| Row::new(input, row)));
    let mut ranked: Vec<Ranked> = rows
        .map(|row| Ranked {
            prefix: prefix(key(row)),
            row,
        })
        .collect();
    ranked.sort_by(|one, two| {
        let prefixes = one.prefix.cmp(&two.prefix);
        prefixes.then_with(|| key(one.row).cmp(key(two.row)))
    });
    let mut batch = Batch::default();
    batch.group(&ranked, |one, two| {
        one.prefix == two.prefix && key(one.row) == key(two.row)
    });
    for row in &batch.firsts {
        to.keys.push_of(&blocks[row.input()].keys, row.row());
    }
    let sources: Vec<&[u32]> = blocks.iter().map(|_| sources).collect();
    for (at, column) in to.columns.iter_mut().enumerate() {
        let views: Vec<ColumnView<'_>> = blocks.iter().map(|block| block.columns[at]).collect();
        columns::merge(&batch, &views, &sources, column);
    }
}

impl Input<'_> {
    /// Leaves the blocks that have no more rows, and reads further ones until they have so many bytes.
    fn load(&mut self, bytes: usize) -> Result<()> {
        let is_done = |(loaded, row): &mut (Loaded<'_>, usize)| *row == loaded.groups();
        let done = self.blocks.extract_if(.., is_done);
        let mut buffers: Vec<Vec<u8>> = done.map(|(loaded, _)| loaded.into_buffer()).collect();
        let mut in_memory: usize = self.blocks.iter().map(|(loaded, _)| loaded.len()).sum();
        while in_memory < bytes
            && let Some(loaded) = self.cursor.next_block(buffers.pop().unwrap_or_default())?
        {
            in_memory += loaded.len();
            self.blocks.push((loaded, 0));
        }
        Ok(())
    }

    /// The last key in memory, if there are more: keys up to this one are known of all inputs.
    fn limit(&self) -> Option<&[u8]> {
        let (last, _) = self.blocks.last().filter(|_| self.cursor.has_more())?;
        Some(last.keys().last())
    }
}

/// The keys of a block, and which of them are in the batch.
#[derive(Clone, Copy)]
struct Head<'b> {
    /// Its number among those in memory.
    block: u32,
    keys: Variable<'b>,
    /// Bytes of its last group, if that is long. No other one is.
    long_bytes: usize,
    start: usize,
    end: usize,
}

impl<'b> Head<'b> {
    /// The last row that the batch may have, if it has so many of each input.
    fn last(&self, step: usize) -> usize {
        self.keys.ends.len().min(self.start.saturating_add(step)) - 1
    }

    /// How many rows from the first on have no greater key.
    fn count(&self, key: &[u8], step: usize) -> usize {
        let prefix = prefix(key);
        let (mut low, mut high) = (0, self.last(step) + 1 - self.start);
        while low < high {
            let middle = low.midpoint(high);
            let row = self.start + middle;
            match (self.keys.prefix_of(row), self.keys.get(row)) <= (prefix, key) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Chooses the rows of a batch: all up to one key, not more than `step` of an input, and not too many of all. Returns the step
/// of the next batch.
fn cut(heads: &mut [Head<'_>], mut step: usize) -> usize {
    let most = BATCH.max(LEAST * heads.len());
    loop {
        let lasts = heads.iter().map(|head| head.keys.get(head.last(step)));
        let Some(key) = lasts.min() else {
            return step;
        };
        let (mut rows, mut long_bytes) = (0, 0);
        for head in &mut *heads {
            let count = head.count(key, step);
            head.end = head.start + count;
            rows += count;
            if head.end == head.keys.ends.len() {
                long_bytes += head.long_bytes;
            }
        }
        // Where inputs overlap, each has a part of the rows. Where they don't, one has all.
        if rows <= most && long_bytes <= LONG_BYTES || step == 1 {
            return if rows < most / 4 {
                most.min(2 * step)
            } else {
                step
            };
        }
        step /= 2;
    }
}

/// Divides the rows up to a key, or all, into ranges of keys with about as many rows each. `heads` have all of them then.
fn ranges<'b>(heads: &mut [Head<'b>], limit: Option<&[u8]>) -> Vec<Vec<Head<'b>>> {
    let ends = |heads: &[Head<'_>], key: Option<&[u8]>| -> Vec<usize> {
        let rows = |head: &Head<'_>| match key {
            Some(key) => head.start + head.count(key, usize::MAX),
            None => head.keys.ends.len(),
        };
        heads.iter().map(rows).collect()
    };
    let last = ends(heads, limit);
    let spans = || heads.iter().zip(&last).map(|(head, &end)| head.start..end);
    let rows: usize = spans().map(|span| span.len()).sum();
    let count = rows / RANGE.max(LEAST * heads.len());
    let stride = (rows / SAMPLES).max(RANGE / 16);
    let sampled = heads.iter().zip(spans()).flat_map(|(head, span)| {
        let rows = span.step_by(stride);
        rows.map(|row| head.keys.get(row))
    });
    let mut sampled: Vec<&[u8]> = sampled.collect();
    sampled.sort_unstable();
    // More than these are left for the next time: what is gathered takes memory, too.
    let most = RANGES * rayon::current_num_threads();
    let cuts = (1..count).map(|range| ends(heads, Some(sampled[sampled.len() * range / count])));
    let cuts: Vec<Vec<usize>> = cuts.chain([last]).take(most).collect();
    let range = |ends: Vec<usize>| {
        let own = heads.iter_mut().zip(ends).filter_map(|(head, end)| {
            let start = std::mem::replace(&mut head.end, end);
            let keys = Variable {
                ends: &head.keys.ends[..end],
                ..head.keys
            };
            (start < end).then_some(Head {
                keys,
                start,
                ..*head
            })
        });
        own.collect()
    };
    let ranges = cuts.into_iter().map(range);
    ranges.filter(|heads: &Vec<_>| !heads.is_empty()).collect()
}

/// With how many bytes all keys of a batch begin alike.
fn common(heads: &[Head<'_>]) -> usize {
    let own = heads.iter().filter(|head| head.start < head.end);
    let firsts = own.clone().map(|head| head.keys.get(head.start));
    let lasts = own.map(|head| head.keys.get(head.end - 1));
    match (firsts.min(), lasts.max()) {
        (Some(least), Some(greatest)) => least
            .iter()
            .zip(greatest)
            .take_while(|(one, two)| one == two)
            .count(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
