//! Groups by a part of their keys: those that have the same are merged, their values too.
//!
//! What is gathered is merged as partials are, column by column, whenever it has doubled; beyond some size it is a run.

use std::borrow::Cow;
use std::io::Write;

use rayon::prelude::*;

use crate::partial::block::{BLOCK_BYTES, Groups as Gathered, Sections};
use crate::partial::column::Ragged;
use crate::partial::description::{Column, Description};
use crate::partial::key;
use crate::partial::merge::{Merge, merge_rows};
use crate::partial::reader::Reader;
use crate::partial::writer::Writer;
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::Groups;

/// Merged groups of so many bytes are written to a file.
const RUN_BYTES: usize = if cfg!(test) { 1 << 10 } else { 32 << 20 };

/// The fewest groups of a thread.
const PART_MIN: usize = if cfg!(test) { 16 } else { 1 << 14 };

/// Where groups are put one after the other.
pub(crate) trait Gathering {
    fn gathered(&mut self) -> &mut Gathered;

    /// Takes what was gathered if it is much.
    fn put_full(&mut self) -> Result<(), Lost>;
}

impl<W: Write> Gathering for Writer<W> {
    fn gathered(&mut self) -> &mut Gathered {
        self.gathered()
    }

    fn put_full(&mut self) -> Result<(), Lost> {
        Ok(self.write_full()?)
    }
}

/// All groups of an answer, with their values.
pub(crate) enum Source<'a> {
    Memory(&'a Groups),
    Stored(&'a Stored),
}

impl StoredForm {
    /// The groups by those parts of their keys that are `kept`; the others are empty.
    ///
    /// # Errors
    /// A file can't be written or read back.
    pub(crate) fn regrouped(
        &self,
        source: &Source<'_>,
        kept: &[usize],
        scales: &[u32],
    ) -> Result<Stored, Lost> {
        let description = self.description(scales);
        let regrouping = || Regrouping {
            fresh: Gathered::new(&description),
            merged: Gathered::new(&description),
            columns: description.columns().collect(),
            form: self,
            scales,
            description: &description,
            kept,
            runs: Vec::new(),
        };
        let mut all = regrouping();
        match source {
            Source::Memory(groups) if self.has_values() => {
                self.gather_values(groups, &mut all)?;
            }
            Source::Memory(groups) => {
                let rows = groups.all();
                let part = rows.len().div_ceil(rayon::current_num_threads());
                let parts = rows.par_chunks(part.max(PART_MIN)).map(|part| {
                    let mut some = regrouping();
                    let rows = part.iter().map(|&group| (*groups, group));
                    self.gather(rows, &mut some)?;
                    some.finish()
                });
                let parts: Vec<Reader> = parts.collect::<Result<_, Lost>>()?;
                all.take(parts.iter())?;
            }
            Source::Stored(stored) => {
                all.take([stored.reader()].into_iter())?;
            }
        }
        let all = all.finish()?;
        Ok(match self.has_values() {
            true => {
                let settled = self.settle_stored(&all, scales)?;
                let form = self.settled();
                Stored::new(settled, form.keys, form.no_groups())
            }
            false => Stored::new(all, self.keys, self.no_groups()),
        })
    }
}

struct Regrouping<'a> {
    form: &'a StoredForm,
    scales: &'a [u32],
    description: &'a Description,
    columns: Vec<Column>,
    kept: &'a [usize],
    /// As they come.
    fresh: Gathered,
    /// By their new keys.
    merged: Gathered,
    runs: Vec<Reader>,
}

impl Gathering for Regrouping<'_> {
    fn gathered(&mut self) -> &mut Gathered {
        &mut self.fresh
    }

    fn put_full(&mut self) -> Result<(), Lost> {
        match self.fresh.bytes() >= BLOCK_BYTES.max(self.merged.bytes()) {
            true => self.merge(),
            false => Ok(()),
        }
    }
}

impl Regrouping<'_> {
    /// Takes groups that are in the order of their keys.
    fn take<'r>(&mut self, readers: impl Iterator<Item = &'r Reader>) -> Result<(), Lost> {
        let sources: Vec<u32> = (0..self.form.sources as u32).collect();
        let mut merge = Merge::new(readers.map(|reader| (reader, sources.clone())));
        while merge.next(&mut self.fresh).map_err(|_| Lost::Read)? {
            self.put_full()?;
        }
        Ok(())
    }

    /// The key of a group without the parts that aren't kept. That of a value ends with it.
    fn key(&self, key: &[u8], to: &mut Vec<u8>) -> Result<(), Lost> {
        let parts = key::parts(key, self.form.keys);
        let mut parts = parts.ok_or(Lost::Damaged("a key has other parts"))?;
        let own = self.form.keys - usize::from(self.form.has_values());
        for at in (0..own).filter(|at| !self.kept.contains(at)) {
            parts[at] = Cow::Borrowed(b"");
        }
        key::push(to, parts.iter().map(|part| &**part));
        Ok(())
    }

    fn merge(&mut self) -> Result<(), Lost> {
        let mut keys = Ragged::default();
        for at in 0..self.fresh.len() {
            self.key(self.fresh.keys.get(at), &mut keys.bytes)?;
            keys.ends.push(keys.bytes.len());
        }
        self.fresh.keys = keys;
        let mut blocks: [Vec<u8>; 2] = Default::default();
        let mut sections = Vec::new();
        let some = [&self.merged, &self.fresh];
        for (gathered, block) in some.into_iter().zip(&mut blocks) {
            if gathered.len() > 0 {
                gathered
                    .write(0..gathered.len(), block)
                    .map_err(Lost::Damaged)?;
                let checked = Sections::check(block, self.description, &self.columns);
                sections.push((checked.map_err(Lost::Damaged)?, &*block));
            }
        }
        let views = sections
            .iter()
            .map(|(of, block)| of.view(block, &self.columns));
        let views: Vec<_> = views.collect();
        let sources: Vec<u32> = (0..self.form.sources as u32).collect();
        let mut to = Gathered::new(self.description);
        merge_rows(&views, &sources, &mut to);
        self.merged = to;
        self.fresh = Gathered::new(self.description);
        if self.merged.bytes() >= RUN_BYTES {
            let writer = self.form.writer(self.scales)?;
            let run = self.write(writer)?;
            self.runs.push(self.form.reader(run)?);
        }
        Ok(())
    }

    /// Moves what is merged to a writer.
    fn write<W: Write>(&mut self, mut writer: Writer<W>) -> Result<Writer<W>, Lost> {
        let nothing = Gathered::new(self.description);
        *writer.gathered() = std::mem::replace(&mut self.merged, nothing);
        writer.write_full()?;
        Ok(writer)
    }

    fn finish(mut self) -> Result<Reader, Lost> {
        if self.fresh.len() > 0 {
            self.merge()?;
        }
        if self.runs.is_empty() {
            let writer = Writer::new(Vec::new(), self.description)?;
            let bytes = self.write(writer)?.finish()?;
            return Reader::in_memory("groups".into(), bytes).map_err(|_| Lost::Read);
        }
        if self.merged.len() > 0 {
            let writer = self.form.writer(self.scales)?;
            let run = self.write(writer)?;
            self.runs.push(self.form.reader(run)?);
        }
        let runs = std::mem::take(&mut self.runs);
        self.form.merge(runs, self.scales)
    }
}
