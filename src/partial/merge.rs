//! Merges any number of partials: one block of each is in memory.
//!
//! A batch is what lies between two changes of blocks. Its keys are merged first, which gives a list of the rows that make
//! each group. Then each column is merged in one go by its rule.

pub(crate) mod batch;
mod columns;
mod tournament;

use crate::error::Result;
use crate::partial::block::{Block, Groups};
use crate::partial::column::{ColumnView, KeyPlace};
use crate::partial::merge::batch::{Batch, Row};
use crate::partial::merge::tournament::Tournament;
use crate::partial::reader::{Cursor, Loaded, Reader};
use crate::prefetch;

/// The most groups of a batch, so that what is gathered stays in the cache.
const BATCH: usize = 2048;
/// As many bytes more must all keys have in common before prefixes are made again behind them.
const SKIP_STEP: usize = 4;

/// A partial that is merged.
struct Input<'a> {
    cursor: Cursor<'a>,
    state: State,
}

/// How far an input is merged.
struct State {
    /// Where its sources stand in the result.
    sources: Vec<u32>,
    /// The row of the block in memory that is next.
    row: usize,
    /// For each row of that block where its key lies, and what it begins with behind the bytes that are skipped. None before
    /// they are made.
    places: Vec<KeyPlace>,
    /// The last key of the block before.
    last: Option<Vec<u8>>,
}

/// Partials that are being merged.
pub(crate) struct Merge<'a> {
    inputs: Vec<Input<'a>>,
    /// With so many bytes all keys of the blocks in memory begin alike.
    skip: usize,
    /// Rows that were merged since all prefixes were made.
    merged: usize,
    batch: Batch,
    tournament: Tournament,
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
            let state = State {
                sources,
                row: 0,
                places: Vec::new(),
                last: None,
            };
            Ok(Input {
                cursor: Cursor::new(reader, 0)?,
                state,
            })
        };
        Ok(Merge {
            inputs: partials.into_iter().map(input).collect::<Result<_>>()?,
            skip: 0,
            merged: 0,
            batch: Batch::default(),
            tournament: Tournament::default(),
        })
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
        let mut blocks = Vec::with_capacity(self.inputs.len());
        let mut states = Vec::with_capacity(self.inputs.len());
        for Input { cursor, state } in &mut self.inputs {
            let Some(block) = cursor.loaded().map(Loaded::view) else {
                continue;
            };
            if state.places.is_empty() && !state.is_in_order(&block) {
                let why = "its keys aren't in order";
                return Err(cursor.reader().damaged_block(cursor.block, why));
            }
            blocks.push(block);
            states.push(state);
        }
        let common = common(&blocks, &states);
        let rows: usize = blocks.iter().map(Block::len).sum();
        // Prefixes behind more common bytes tell more keys apart, but are made for all rows.
        let is_worth_it = common >= self.skip + SKIP_STEP && self.merged >= rows;
        let is_other = common < self.skip || is_worth_it;
        if is_other {
            (self.skip, self.merged) = (common, 0);
        }
        for (state, block) in states.iter_mut().zip(&blocks) {
            if is_other || state.places.is_empty() {
                block.keys.places(self.skip, &mut state.places);
            }
        }
        let mut heads: Vec<Head<'_>> = (blocks.iter().zip(&states))
            .map(|(block, state)| Head {
                keys: block.keys.bytes,
                places: &state.places,
                row: state.row,
            })
            .collect();
        merge_keys(&mut heads, &mut self.tournament, &mut self.batch);
        self.merged += self.batch.firsts.len() + self.batch.others.len();
        for &Row { input, row } in &self.batch.firsts {
            let head = &heads[input as usize];
            to.keys.push_of(head.keys, head.places[row as usize]);
        }
        let sources: Vec<&[u32]> = states.iter().map(|state| &state.sources[..]).collect();
        for (at, column) in to.columns.iter_mut().enumerate() {
            let views: Vec<ColumnView<'_>> = blocks.iter().map(|block| block.columns[at]).collect();
            columns::merge(&self.batch, &views, &sources, column);
        }
        let rows: Vec<usize> = heads.iter().map(|head| head.row).collect();
        for (state, row) in states.into_iter().zip(rows) {
            state.row = row;
        }
        Ok(true)
    }
}

impl Input<'_> {
    /// Goes to the next block where the one in memory has no more rows.
    fn load(&mut self) -> Result<()> {
        let Input { cursor, state } = self;
        if let Some(loaded) = cursor.loaded()
            && loaded.groups() == state.row
        {
            let keys = loaded.view().keys;
            let last = state.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(keys.last());
            state.row = 0;
            state.places.clear();
            cursor.next_block()?;
        }
        Ok(())
    }
}

impl State {
    /// Whether a block's keys ascend, from the last one of the block before.
    fn is_in_order(&self, block: &Block<'_>) -> bool {
        let is_next = |last: &Vec<u8>| last.as_slice() < block.keys.get(0);
        self.last.as_ref().is_none_or(is_next) && block.keys.are_ascending()
    }
}

/// With how many bytes all keys begin alike that are left.
fn common(blocks: &[Block<'_>], states: &[&mut State]) -> usize {
    let firsts = blocks
        .iter()
        .zip(states)
        .map(|(block, state)| block.keys.get(state.row));
    let lasts = blocks.iter().map(|block| block.keys.last());
    match (firsts.min(), lasts.max()) {
        (Some(least), Some(greatest)) => least
            .iter()
            .zip(greatest)
            .take_while(|(one, two)| one == two)
            .count(),
        _ => 0,
    }
}

/// The keys of an input's block, and which is next.
struct Head<'b> {
    keys: &'b [u8],
    places: &'b [KeyPlace],
    row: usize,
}

/// Rows of an input after which its next places are prefetched: other inputs' rows come between.
const PREFETCHED: usize = 4;

impl<'b> Head<'b> {
    #[inline(always)]
    fn key(&self) -> &'b [u8] {
        self.places[self.row].of(self.keys)
    }

    /// Goes to the next row, and returns its prefix.
    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        self.row += 1;
        let place = self.places.get(self.row)?;
        prefetch::into_l2(self.keys.as_ptr().wrapping_add(place.start as usize));
        prefetch::into_l1(
            self.places
                .as_ptr()
                .wrapping_add(self.row + PREFETCHED)
                .cast(),
        );
        Some(place.prefix)
    }
}

/// Whether two keys are the same. Most are short: a call takes longer than to compare them.
#[inline(always)]
fn are_same(one: &[u8], two: &[u8]) -> bool {
    const CHUNK: usize = 16;
    if one.len() != two.len() {
        return false;
    }
    let (Some(last), Some(other_last)) = (one.last_chunk::<CHUNK>(), two.last_chunk::<CHUNK>())
    else {
        return one == two;
    };
    let chunks = one.as_chunks::<CHUNK>().0.iter().zip(two.as_chunks().0);
    last == other_last && chunks.fold(true, |are_same, (one, two)| are_same & (one == two))
}

/// Says which rows make the next groups, up to the end of a block.
fn merge_keys(heads: &mut [Head<'_>], tournament: &mut Tournament, batch: &mut Batch) {
    let is_before = |heads: &[Head<'_>], one: u32, two: u32| {
        let [first, second] = [one, two].map(|input| heads[input as usize].key());
        match are_same(first, second) {
            true => one < two,
            false => first < second,
        }
    };
    batch.clear();
    let prefixes = heads.iter().map(|head| head.places[head.row].prefix);
    tournament.start(prefixes, |one, two| is_before(heads, one, two));
    let (mut has_ended, mut group_prefix, mut group_key) = (false, 0, None);
    loop {
        let winner = tournament.winner();
        let Some(head) = heads.get_mut(winner.input as usize) else {
            break;
        };
        let row = Row {
            input: winner.input,
            row: head.row as u32,
        };
        let is_same =
            winner.prefix == group_prefix && group_key.is_some_and(|key| are_same(key, head.key()));
        if is_same {
            batch.others.push((batch.len() as u32 - 1, row));
        } else {
            if has_ended || batch.len() == BATCH {
                break;
            }
            (group_prefix, group_key) = (winner.prefix, Some(head.key()));
            batch.firsts.push(row);
        }
        let next = head.next();
        has_ended |= next.is_none();
        tournament.replace_winner(next, |one, two| is_before(heads, one, two));
    }
}

#[cfg(test)]
mod tests;
