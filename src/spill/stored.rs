//! Groups in temporary files: sorted runs of what outgrew the memory, in the format of partials, and the one file that
//! they are merged to.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use ringfold_read::{Error, Kind};

use crate::aggregate::definition::Slot;
use crate::budget::Budget;
use crate::partial::block::{BLOCK_BYTES, Block, Groups as Gathered};
use crate::partial::description::{Aggregate, Counts, Description, Source};
use crate::partial::key;
use crate::partial::merge::Merge;
use crate::partial::reader::{Loaded, Reader};
use crate::partial::writer::Writer;
use crate::refusal::Refusal;
use crate::spill::regroup::Gathering;
use crate::table::groups::Groups;
use crate::table::key_order::KeyOrder;
use crate::table::states::filing::Filed;
use crate::table::states::{Group, Table, push_part};

/// The most runs that are merged at once: a block of each is in memory.
const FAN_IN: usize = if cfg!(test) { 3 } else { 64 };
/// Groups that are gathered at once: few beside those of a block, because what doesn't go into one is moved.
const AT_ONCE: usize = 512;
/// Blocks that each thread reads before their groups are put into a table.
const BLOCKS_AT_ONCE: usize = 4;
/// Merging takes so much memory, though the budget is smaller.
const MEMORY_MIN: u64 = 8 << 20;

/// Why there is no file.
#[derive(Debug)]
pub(crate) enum Lost {
    /// One can't be written.
    Write(io::Error),
    /// One can't be read back.
    Read,
    /// What is wrong with groups that no run gives.
    Damaged(&'static str),
    /// A list of values is too long.
    Long(String),
}

impl Lost {
    pub(crate) fn error(&self, budget: &Budget) -> Error {
        match self {
            Lost::Write(error) => budget.spill_error(error).into(),
            Lost::Long(why) => Error::new(Kind::Data, why.clone()),
            Lost::Read | Lost::Damaged(_) => {
                let directory = budget.directory().to_owned();
                Refusal::SpillLost { directory }.into()
            }
        }
    }
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Lost {
        Lost::Write(error)
    }
}

/// How groups lie in the files of a run.
#[derive(Clone)]
pub(crate) struct StoredForm {
    pub(crate) slots: Vec<Slot>,
    /// How many parts keys have.
    pub(crate) keys: usize,
    /// How many sources the input has.
    pub(crate) sources: usize,
    /// Where the files are, and what merging them may take in memory.
    pub(crate) budget: Arc<Budget>,
}

impl StoredForm {
    pub(crate) fn description(&self, scales: &[u32]) -> Description {
        let aggregates = self.slots.iter().zip(scales);
        let aggregates = aggregates.map(|(slot, &scale)| Aggregate {
            name: slot.kind.name().as_bytes().to_vec(),
            title: slot.kind.name().as_bytes().to_vec(),
            scale,
            is_numeric: false,
            columns: slot.columns(scale),
        });
        let source = Source {
            is_stream: true,
            ..Source::default()
        };
        Description {
            aggregates: aggregates.collect(),
            counts: Counts {
                // No count is greater.
                rows: i64::MAX as u64,
                ..Counts::default()
            },
            sources: vec![source; self.sources],
            ..Description::default()
        }
    }

    pub(crate) fn writer(&self, scales: &[u32]) -> Result<Writer<File>, Lost> {
        let file = tempfile::tempfile_in(self.budget.directory())?;
        Ok(Writer::new(file, &self.description(scales))?)
    }

    /// What groups are written with that stay in memory.
    pub(crate) fn writer_in_memory(&self, scales: &[u32]) -> Result<Writer<Vec<u8>>, Lost> {
        Ok(Writer::new(Vec::new(), &self.description(scales))?)
    }

    pub(crate) fn reader_in_memory(&self, writer: Writer<Vec<u8>>) -> Result<Reader, Lost> {
        let bytes = writer.finish()?;
        Reader::in_memory("memory".into(), bytes).map_err(|_| Lost::Read)
    }

    pub(crate) fn reader(&self, writer: Writer<File>) -> Result<Reader, Lost> {
        let file = writer.finish()?;
        let name = self.budget.directory().to_string_lossy().into();
        Reader::of_file(name, file).map_err(|_| Lost::Read)
    }

    /// Writes groups in the order of their keys. No number has more digits after the point than `scales` say of each
    /// aggregate.
    pub(crate) fn write(&self, groups: &Groups, scales: &[u32]) -> Result<Reader, Lost> {
        let mut writer = self.writer(scales)?;
        if self.has_values() {
            self.gather_values(groups, &mut writer)?;
            return self.reader(writer);
        }
        let order = groups.sorted(groups.all(), &KeyOrder::BYTES);
        let _turn = self.budget.turn(groups.table().largest());
        self.gather(order.into_iter().map(|group| (groups, group)), &mut writer)?;
        self.reader(writer)
    }

    /// The groups that went to a writer.
    pub(crate) fn stored(&self, writer: Writer<File>, table: &Table) -> Result<Stored, Lost> {
        let reader = self.reader(writer)?;
        Ok(Stored::new(reader, self.keys, table.like()))
    }

    /// Writes groups as they come.
    pub(crate) fn gather<'g>(
        &self,
        rows: impl Iterator<Item = (&'g Groups, Group)>,
        writer: &mut impl Gathering,
    ) -> Result<(), Lost> {
        let mut rows = rows.peekable();
        let mut some = Vec::with_capacity(AT_ONCE);
        while rows.peek().is_some() {
            self.budget.unwind();
            some.clear();
            let mut bytes = 0;
            while let Some((groups, group)) =
                rows.next_if(|_| some.len() < AT_ONCE && bytes < BLOCK_BYTES)
            {
                groups.prefetch(group);
                bytes += groups.bytes_of(group);
                some.push((groups, group));
            }
            let to = writer.gathered();
            for &(groups, group) in &some {
                key::push(&mut to.keys.bytes, groups.parts(group));
                to.keys.ends.push(to.keys.bytes.len());
            }
            let mut columns = &mut to.columns[..];
            for (at, slot) in self.slots.iter().enumerate() {
                let (own, rest) = columns.split_at_mut(slot.kind.columns.len());
                columns = rest;
                some.iter()
                    .for_each(|(groups, group)| groups.encode(*group, at, own));
            }
            writer.put_full()?;
        }
        Ok(())
    }

    /// Merges all runs to one, each key once.
    pub(crate) fn merge(&self, mut runs: Vec<Reader>, scales: &[u32]) -> Result<Reader, Lost> {
        while runs.len() > 1 {
            // Of each a block is in memory, and the last key of the one before.
            let bytes = runs.iter().scan(0, |sum, run| {
                *sum += 2 * run.largest_block();
                Some(*sum)
            });
            let memory = self.budget.bytes().max(MEMORY_MIN);
            let count = bytes.take_while(|bytes| *bytes <= memory).count();
            // The oldest first, so that all are merged about equally often.
            let rest = runs.split_off(runs.len().min(count.clamp(2, FAN_IN)));
            let merged = self.merge_some(&runs, scales)?;
            runs = rest;
            runs.push(merged);
        }
        runs.pop().ok_or(Lost::Read)
    }

    fn merge_some(&self, runs: &[Reader], scales: &[u32]) -> Result<Reader, Lost> {
        let sources: Vec<u32> = (0..self.sources as u32).collect();
        let inputs = runs.iter().map(|run| (run, sources.clone()));
        let mut merge = Merge::new(inputs);
        self.write_merged(scales, |groups| merge.next(groups).map_err(|_| Lost::Read))
    }

    /// Writes what `next` gathers, in the order of its keys, as long as it returns `true`.
    pub(crate) fn write_merged<E: From<Lost>>(
        &self,
        scales: &[u32],
        mut next: impl FnMut(&mut Gathered) -> Result<bool, E>,
    ) -> Result<Reader, E> {
        let mut writer = self.writer(scales)?;
        while next(writer.gathered())? {
            self.budget.unwind();
            writer.write_full().map_err(Lost::Write)?;
        }
        Ok(self.reader(writer)?)
    }

    /// Leaves only the groups that `keep` takes.
    pub(crate) fn filter(
        &self,
        stored: &Stored,
        scales: &[u32],
        mut keep: impl FnMut(Vec<Group>, Groups) -> (Vec<Group>, Groups),
    ) -> Result<Reader, Lost> {
        let mut writer = self.writer(scales)?;
        for rows in stored.in_parts(0..stored.len()) {
            let (order, groups) = stored.load(rows).map_err(|_| Lost::Read)?;
            let (order, groups) = keep(order, groups);
            self.gather(order.iter().map(|&group| (&groups, group)), &mut writer)?;
        }
        self.reader(writer)
    }
}

/// Adds a group of a block to a table that doesn't have it. `whole` is memory for its key.
fn put_row(
    table: &mut Table,
    keys: usize,
    view: &Block<'_>,
    row: usize,
    whole: &mut Vec<u8>,
) -> Result<Group, &'static str> {
    whole.clear();
    let parts = key::each_part(view.keys.get(row), keys, |part| push_part(whole, &part));
    parts.ok_or("a key has other parts")?;
    table.insert(whole, &view.columns, row)
}

/// All groups of an answer, in the order of their keys, in a file.
pub(crate) struct Stored {
    reader: Reader,
    /// The first group of each block, and how many there are.
    firsts: Vec<usize>,
    /// How many parts keys have.
    keys: usize,
    /// A table without groups.
    table: Table,
}

impl Stored {
    pub(crate) fn new(reader: Reader, keys: usize, table: Table) -> Stored {
        let mut firsts = vec![0];
        for block in 0..reader.blocks() {
            firsts.push(firsts[block] + reader.groups_of(block) as usize);
        }
        Stored {
            reader,
            firsts,
            keys,
            table,
        }
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn len(&self) -> usize {
        self.reader.groups() as usize
    }

    /// A table without groups.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.reader.bytes()
    }

    /// Leaves only those parts of keys to be compared as numbers that are numbers in all of them.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn narrow(&self, order: &mut KeyOrder) -> Result<(), Lost> {
        let mut buffer = Vec::new();
        for block in 0..self.reader.blocks() {
            if order.is_of_bytes() {
                break;
            }
            let loaded = self.reader.load(block, buffer).map_err(|_| Lost::Read)?;
            let keys = loaded.view().keys;
            order.narrow(|order, at| {
                (0..loaded.view().len()).all(|row| {
                    let parts = key::parts(keys.get(row), self.keys).unwrap_or_default();
                    let part = parts.get(at).filter(|part| !part.is_empty());
                    part.is_none_or(|part| order.number(part).is_some())
                })
            });
            buffer = loaded.into_buffer();
        }
        Ok(())
    }

    /// Whether the groups lie in an order of their keys.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn is_sorted(&self, order: &KeyOrder) -> Result<bool, Lost> {
        let is_before = |one: &[u8], two: &[u8]| {
            let keys = [one, two].map(|key| key::parts(key, self.keys).unwrap_or_default());
            let [one, two] = keys
                .each_ref()
                .map(|parts| parts.iter().map(|part| &**part));
            order.compare(one, two).is_le()
        };
        // A key may be as long as a block: no more than one is kept beside it.
        let mut last: Option<Vec<u8>> = None;
        let mut buffer = Vec::new();
        for block in 0..self.reader.blocks() {
            let loaded = self.reader.load(block, buffer).map_err(|_| Lost::Read)?;
            let (keys, groups) = (loaded.view().keys, loaded.view().len());
            let mut pairs = (1..groups).map(|row| (keys.get(row - 1), keys.get(row)));
            let is_next = last.is_none_or(|last| is_before(&last, keys.get(0)));
            if !is_next || !pairs.all(|(one, two)| is_before(one, two)) {
                return Ok(false);
            }
            last = Some(keys.last().to_vec());
            buffer = loaded.into_buffer();
        }
        Ok(true)
    }

    fn block_of(&self, row: usize) -> usize {
        self.firsts.partition_point(|&first| first <= row) - 1
    }

    /// The groups by block.
    pub(crate) fn in_parts(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let blocks = self.firsts[self.block_of(rows.start)..].windows(2);
        let blocks = blocks.take_while(move |block| block[0] < rows.end);
        let parts = blocks.map(move |block| block[0].max(rows.start)..block[1].min(rows.end));
        parts.filter(|part| !part.is_empty())
    }

    /// Reads some groups, in their order.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn load(&self, rows: Range<usize>) -> Result<(Vec<Group>, Groups), Error> {
        self.load_each([rows].into_iter())
    }

    /// Reads all groups, in no order, by all threads.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn load_all(&self) -> Result<Groups, Error> {
        let mut table = self.table.like();
        let blocks: Vec<usize> = (0..self.reader.blocks()).collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE * rayon::current_num_threads()) {
            table.unwind();
            let filed = some.par_iter().map(|&block| {
                let loaded = self.reader.load(block, Vec::new())?;
                table.file(loaded, self.keys)
            });
            // Of several errors that of the first block, whichever thread was faster.
            let filed: Vec<Result<Filed<'_>, Error>> = filed.collect();
            let filed: Vec<Filed<'_>> = filed.into_iter().collect::<Result<_, _>>()?;
            table.insert_all(&filed)?;
        }
        Ok(Groups::new(table, None))
    }

    /// The first part of a key in some rows that is as wanted.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn find_part(
        &self,
        rows: Range<usize>,
        is_wanted: impl Fn(&[u8]) -> bool + Sync,
    ) -> Result<Option<Vec<u8>>, Error> {
        let parts: Vec<Range<usize>> = self.in_parts(rows).collect();
        let found = parts.into_par_iter().find_map_first(|rows| {
            let block = self.block_of(rows.start);
            let loaded = match self.reader.load(block, Vec::new()) {
                Ok(loaded) => loaded,
                Err(error) => return Some(Err(error)),
            };
            let (first, keys) = (self.firsts[block], loaded.keys());
            let mut rows = rows.map(|row| keys.get(row - first));
            let found = rows.find_map(|key| {
                let mut found = None;
                key::each_part(key, self.keys, |part| {
                    found = found.take().or(is_wanted(&part).then_some(part));
                })?;
                found
            });
            Some(Ok(found?.into_owned()))
        });
        found.transpose()
    }

    /// Reads some groups here and there.
    ///
    /// # Errors
    /// They can't be read back.
    pub(crate) fn load_each(
        &self,
        ranges: impl Iterator<Item = Range<usize>>,
    ) -> Result<(Vec<Group>, Groups), Error> {
        let mut table = self.table.like();
        let (mut order, mut whole) = (Vec::new(), Vec::new());
        let mut last: Option<(usize, Loaded<'_>)> = None;
        for rows in ranges {
            let mut at = rows.start;
            while at < rows.end {
                // They may be sorted by other columns: the order of keys isn't looked at.
                let block = self.block_of(at);
                let loaded = match last.take() {
                    Some((known, loaded)) if known == block => loaded,
                    other => {
                        let buffer = other.map_or(Vec::new(), |(_, loaded)| loaded.into_buffer());
                        self.reader.load(block, buffer)?
                    }
                };
                let view = loaded.view();
                let first = self.firsts[block];
                let end = rows.end.min(first + view.len());
                for row in at - first..end - first {
                    let group = put_row(&mut table, self.keys, &view, row, &mut whole);
                    order.push(group.map_err(|why| loaded.damaged(why))?);
                }
                at = end;
                last = Some((block, loaded));
            }
        }
        Ok((order, Groups::new(table, None)))
    }
}
