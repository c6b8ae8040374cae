//! Merges any number of partials: one block of each is in memory.
//!
//! A batch is all rows up to some key: the next rows of each block. They are put in the order of their keys first, which gives
//! a list of the rows that make each group. Then each column is merged in one go by its rule.

pub(crate) mod batch;
mod columns;
mod order;
pub(crate) mod split;

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

/// A partial that is merged.
struct Input<'a> {
    cursor: Cursor<'a>,
    /// Where its sources stand in the result.
    sources: Vec<u32>,
    /// The row of the block in memory that is next.
    row: usize,
}

/// Partials that are being merged.
pub(crate) struct Merge<'a> {
    inputs: Vec<Input<'a>>,
    /// The most rows of each input that the next batch has.
    step: usize,
    order: Order,
    batch: Batch,
    /// The only shard that is wanted.
    shard: Option<(u32, Shards)>,
}

impl<'a> Merge<'a> {
    /// Begins to merge partials of the same columns, which differ in nothing but scale; with each come the numbers that its
    /// sources have in the result.
    ///
    /// # Errors
    /// A first block can't be read, or is damaged.
    pub(crate) fn new(
        partials: impl IntoIterator<Item = (&'a Reader, Vec<u32>)>,
    ) -> Result<Merge<'a>> {
        let input = |(reader, sources)| {
            Ok(Input {
                cursor: Cursor::new(reader, 0)?,
                sources,
                row: 0,
            })
        };
        Ok(Merge {
            inputs: partials.into_iter().map(input).collect::<Result<_>>()?,
            step: BATCH,
            order: Order::default(),
            batch: Batch::default(),
            shard: None,
        })
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
        self.inputs.iter_mut().try_for_each(Input::load)?;
        self.inputs.retain(|input| input.cursor.loaded().is_some());
        if self.inputs.is_empty() {
            return Ok(false);
        }
        let loaded = self.inputs.iter().filter_map(|input| input.cursor.loaded());
        let loaded: Vec<&Loaded<'_>> = loaded.collect();
        let starts = self.inputs.iter().map(|input| input.row);
        let heads = loaded.iter().zip(starts).map(|(loaded, start)| Head {
            keys: loaded.keys(),
            long_bytes: loaded.len().saturating_sub(BLOCK_BYTES),
            start,
            end: start,
        });
        let mut heads: Vec<Head<'_>> = heads.collect();
        self.step = cut(&mut heads, self.step);
        put_in_order(&heads, &mut self.order, &mut self.batch);
        if let Some((wanted, shards)) = &self.shard {
            // A key that is in none is in all: whoever looks at its parts refuses it.
            let number = |row: Row| shards.number(heads[row.input()].keys.get(row.row()));
            (self.batch).retain(|row| number(row).is_none_or(|number| number == *wanted));
        }
        let sources = self.inputs.iter().map(|input| &input.sources[..]);
        let sources: Vec<&[u32]> = sources.collect();
        gather(&self.batch, &loaded, &sources, to);
        let ends: Vec<usize> = heads.iter().map(|head| head.end).collect();
        for (input, end) in self.inputs.iter_mut().zip(ends) {
            input.row = end;
        }
        Ok(true)
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
    /// Goes to the next block where the one in memory has no more rows.
    fn load(&mut self) -> Result<()> {
        if (self.cursor.loaded()).is_some_and(|loaded| loaded.groups() == self.row) {
            self.row = 0;
            self.cursor.next_block()?;
        }
        Ok(())
    }
}

/// The keys of an input's block, and which of them are in the batch.
struct Head<'b> {
    keys: Variable<'b>,
    /// Bytes of its last group, if that is long. No other one is.
    long_bytes: usize,
    start: usize,
    end: usize,
}

impl<'b> Head<'b> {
    /// The last row that the batch may have, if it has so many of each input.
    fn last(&self, step: usize) -> usize {
        self.keys.ends.len().min(self.start + step) - 1
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

/// Says which rows make the groups of a batch.
fn put_in_order(heads: &[Head<'_>], order: &mut Order, batch: &mut Batch) {
    let skip = common(heads);
    order.clear();
    for (input, head) in (0..).zip(heads) {
        let rows = head.start..head.end;
        let prefixes = head.keys.prefixes(rows.clone(), skip);
        order.push_run(prefixes.zip(rows).map(|(prefix, row)| Ranked {
            prefix,
            row: Row::new(input, row as u32),
        }));
    }
    let ranked = order.sort();
    batch.group(ranked, |one, two| one.prefix == two.prefix);
    let are_same = |one: Row, two: Row| {
        let keys = &heads[one.input()].keys;
        keys.is_same(one.row(), &heads[two.input()].keys, two.row())
    };
    let is_right = |(group, row): &(u32, Row)| are_same(batch.firsts[*group as usize], *row);
    if !batch.others.iter().all(is_right) {
        // Keys begin alike and aren't the same.
        let key = |row: Row| heads[row.input()].keys.get(row.row());
        for same in ranked.chunk_by_mut(|one, two| one.prefix == two.prefix) {
            same.sort_by(|one, two| key(one.row).cmp(key(two.row)));
        }
        batch.group(ranked, |one, two| {
            one.prefix == two.prefix && are_same(one.row, two.row)
        });
    }
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
