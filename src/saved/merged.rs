//! Partials that are merged: to one more partial, or to an answer.

use std::io::{self, Write};
use std::sync::Arc;

use ahash::RandomState;
use ringfold_read::internals::cancellable;
use ringfold_read::{CancellationToken, Error, Kind, Result};

use crate::aggregate::definition::Slot;
use crate::answer::Answer;
use crate::answer::columns::AnswerColumns;
use crate::answer::fill::Fill;
use crate::answer::layout::Layout;
use crate::answer::outgrown::GROWTH;
use crate::answer::scope;
use crate::budget::Budget;
use crate::decimal::number::Grammar;
use crate::partial::block::Groups;
use crate::partial::combine::{Combined, Missing, combine};
use crate::partial::description::Description;
use crate::partial::key;
use crate::partial::merge::Merge;
use crate::partial::reader::Reader;
use crate::partial::shard::Shard;
use crate::partial::writer::Writer;
use crate::plan::names::renamed;
use crate::plan::shown::{columns_of, zones_of};
use crate::query::shown::Shown;
use crate::saved::{Partial, shard_of, slots};
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::Groups as AllGroups;
use crate::table::states::Table;

/// Partials that belong together. Nothing but what they say of themselves was read.
pub struct Merged<'a> {
    partials: Vec<&'a Partial>,
    combined: Combined,
    /// The only shard that is wanted of them.
    shard: Option<Shard>,
    cancellation: Option<CancellationToken>,
}

impl Partial {
    /// Looks whether partials are of one query and of different records, so that they can be merged. Groups are merged by
    /// what is done with the result. `first` and `last` go by place: the files of the first partial come first.
    ///
    /// # Errors
    /// They aren't, and in what they differ or what comes twice.
    pub fn merge<'a>(partials: impl IntoIterator<Item = &'a Partial>) -> Result<Merged<'a>> {
        let partials: Vec<&Partial> = partials.into_iter().collect();
        let readers: Vec<&Reader> = partials.iter().map(|partial| &partial.reader).collect();
        let combined = combine(&readers)?;
        Ok(Merged {
            partials,
            combined,
            shard: None,
            cancellation: None,
        })
    }
}

impl Merged<'_> {
    /// Ends from another thread what is done with them, and with their answer.
    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Some(token);
        self
    }

    /// Leaves all groups out but those of a shard, from 1 to `count`: what [`Partial::split`] makes of each, merged.
    ///
    /// # Errors
    /// There is no such shard, or they are shards.
    pub fn keys(mut self, number: u32, count: u32) -> Result<Self> {
        let refused = |why: String| Err(Error::new(Kind::Usage, why));
        if let Some((known, of)) = self.shard() {
            return refused(format!(
                "the partials are shards {known}/{of}, which aren't divided again"
            ));
        }
        let Some(shard) = Shard::new(number, count) else {
            return refused(format!(
                "there is no shard {number} of {count}: they are counted from 1"
            ));
        };
        shard.mark(&mut self.combined.description);
        self.shard = Some(shard);
        Ok(self)
    }

    /// Which of how many shards it is, if it has the groups of one only.
    pub fn shard(&self) -> Option<(u32, u32)> {
        shard_of(self.description())
    }

    /// # Errors
    /// It has the groups of a shard, and `what` is of all groups.
    fn refuse_shard(&self, what: Option<&str>) -> Result<()> {
        match (self.shard(), what) {
            (Some((number, count)), Some(what)) => {
                let why =
                    format!("{what} of all keys, and these are those of shard {number}/{count}");
                Err(Error::new(Kind::Usage, why))
            }
            _ => Ok(()),
        }
    }

    /// What was not read of the files that were.
    pub fn missing(&self) -> &Missing {
        &self.combined.missing
    }

    fn description(&self) -> &Description {
        &self.combined.description
    }

    fn merge(&self) -> Merge<'_> {
        let sources = self.combined.sources.iter().cloned();
        let readers = self.partials.iter().map(|partial| &partial.reader);
        Merge::new(readers.zip(sources)).only(self.shard, self.description())
    }

    /// Writes one partial of all, by the threads of the pool that it is called in. It is the same for any number of threads. A
    /// few blocks of each are in memory.
    ///
    /// # Errors
    /// One can't be read or is damaged, which is an [`Error`] within the [`io::Error`]; or `out` can't be written.
    pub fn save(&self, out: impl Write) -> io::Result<()> {
        let description = self.description();
        let mut writer = Writer::new(out, description)?;
        let written = self.merge().for_each(
            description,
            |groups| groups,
            |parts| {
                let token = self.cancellation.as_ref();
                let going_on = token.map_or(Ok(()), CancellationToken::check);
                going_on.map_err(io::Error::other)?;
                for groups in parts {
                    writer.gathered().append(groups);
                }
                writer.write_full()
            },
        );
        written.map_err(io::Error::other)??;
        writer.finish().map(drop)
    }

    /// The answer's columns and their names.
    fn columns(&self, shown: &Shown) -> Result<(AnswerColumns, Vec<Vec<u8>>)> {
        let Description {
            query,
            keys,
            aggregates,
            ..
        } = self.description();
        let kinds: Vec<_> = self.slots().iter().map(|slot| slot.kind).collect();
        let (columns, mut names) = columns_of(query, keys, aggregates, &kinds)?;
        if !shown.names.is_empty() {
            names = renamed(&names, &shown.names)?;
        }
        let is_set = |flag: &[u8]| query.iter().any(|(name, _)| name == flag);
        let grammar = Grammar {
            decimal_point: if is_set(b"decimal comma") { b',' } else { b'.' },
            is_long: true,
            is_float: is_set(b"float"),
        };
        let aggregates = kinds.into_iter().zip(aggregates);
        let columns = AnswerColumns::new(
            keys.len(),
            aggregates.map(|(kind, of)| (kind, of.is_numeric, of.scale)),
            columns,
            query,
            (shown.precision, grammar),
        );
        Ok((columns, names))
    }

    /// The key that is to be filled.
    fn fill(&self, shown: &Shown, names: &[Vec<u8>]) -> Result<Option<Fill>> {
        let Description { query, keys, .. } = self.description();
        let zones = zones_of(query)?;
        let fill = shown.fill.as_ref();
        let fill = fill.map(|name| Fill::of(name, &names[..keys.len()], query, zones));
        fill.transpose()
    }

    /// Whether the answer can be shown so.
    ///
    /// # Errors
    /// It has no such column.
    pub fn check_layout(&self, layout: &Layout, shown: &Shown) -> Result<()> {
        let (mut columns, names) = self.columns(shown)?;
        let fill = self.fill(shown, &names)?;
        let is_filled = fill.is_some();
        self.refuse_shard(
            layout
                .of_all()
                .or(is_filled.then_some("the filled-in rows are")),
        )?;
        layout.check(&names, &mut columns)
    }

    /// The answer that one run over everything gives. If the groups may outgrow [`Shown::memory`], they are merged to a
    /// temporary file, from which rows are read when they are needed.
    ///
    /// # Errors
    /// One can't be read or is damaged; names, digits or a condition don't fit; or the temporary file can't be written.
    pub fn answer(&self, shown: &Shown) -> Result<Answer> {
        cancellable(|| self.merged_answer(shown)).flatten()
    }

    fn merged_answer(&self, shown: &Shown) -> Result<Answer> {
        let (mut columns, names) = self.columns(shown)?;
        let having = scope::conditions(&shown.having, &names, &mut columns)?;
        let fill = self.fill(shown, &names)?;
        let has_totals = columns.has_totals();
        self.refuse_shard(has_totals.then_some("a share is"))?;
        self.refuse_shard(fill.is_some().then_some("the filled-in rows are"))?;
        shown.check_precision()?;
        let scales = columns.scales.clone();
        let budget = shown.budget(self.cancellation.clone());
        // Of one shard, too: a single group may have most of the bytes.
        let bytes: u64 = self.partials.iter().map(|partial| partial.bytes()).sum();
        // Beside the run that they are read from.
        let fits = bytes.saturating_mul(GROWTH + 1) <= budget.bytes();
        let form = self.form(&budget);
        let run = self.merged_run(&form, &scales, fits);
        let (run, are_numbers) = run.map_err(|failed| self.told(failed, &budget))?;
        let stored = Stored::new(run, form.keys, self.no_groups());
        let lost = |lost| self.told(Failed::Lost(lost), &budget);
        // What is wrong with a state is found before rows are printed.
        let is_plain = are_numbers && !form.has_values();
        let needs_groups = !is_plain || having.is_some() || fill.is_some();
        let groups = match fits && needs_groups {
            true => stored.load_all()?,
            false => AllGroups::new(self.no_groups(), None),
        };
        let answer = match fits && form.has_values() {
            true => {
                let settled = form.settle(&groups, &scales).map_err(lost)?;
                Answer::new(names, columns, settled).with_all(groups)
            }
            false => Answer::new(names, columns, groups),
        };
        let mut answer = answer.of_form(form.clone());
        if !fits {
            answer.spilled_bytes = stored.bytes();
        }
        if !(fits && needs_groups) {
            answer.store(stored, &form).map_err(lost)?;
        }
        answer.choose(fill.as_ref(), having.as_ref())?;
        let counts = self.description().counts;
        answer.rows = counts.rows;
        answer.filtered = counts.filtered;
        answer.empty_lines = counts.empty_lines;
        answer.nulled = counts.nulled;
        answer.skipped = counts.skipped;
        Ok(answer)
    }

    fn slots(&self) -> Vec<Slot> {
        slots(self.description()).expect("they were known when the partials were opened")
    }

    fn no_groups(&self) -> Table {
        Table::new(
            &RandomState::new(),
            &self.slots(),
            self.cancellation.clone(),
        )
    }

    /// How groups lie in a temporary file.
    fn form(&self, budget: &Arc<Budget>) -> StoredForm {
        StoredForm {
            slots: self.slots(),
            keys: self.description().key_parts(),
            sources: self.description().sources.len(),
            budget: Arc::clone(budget),
        }
    }

    /// All groups, in memory or in a temporary file, and whether their states are numbers of 64 bits: these are states
    /// whatever they are.
    fn merged_run(
        &self,
        form: &StoredForm,
        scales: &[u32],
        in_memory: bool,
    ) -> Result<(Reader, bool), Failed> {
        if !in_memory {
            let (writer, are_numbers) = self.write_run(form, form.writer(scales)?)?;
            return Ok((form.reader(writer)?, are_numbers));
        }
        let (writer, are_numbers) = self.write_run(form, form.writer_in_memory(scales)?)?;
        Ok((form.reader_in_memory(writer)?, are_numbers))
    }

    fn write_run<W: Write>(
        &self,
        form: &StoredForm,
        mut writer: Writer<W>,
    ) -> Result<(Writer<W>, bool), Failed> {
        let parts = form.keys;
        let decimals = |slot: &Slot| {
            let columns = slot.kind.columns.iter();
            columns.filter(|column| column.rule.is_decimal()).count()
        };
        let mut are_numbers = form.slots.iter().all(|slot| decimals(slot) <= 1);
        // A run's columns are those of the partials.
        let check = |groups: Groups| {
            let mut keys = (0..groups.len()).map(|at| groups.keys.get(at));
            let are_keys = parts == 1 || keys.all(|key| key::parts(key, parts).is_some());
            are_keys.then_some(groups)
        };
        let written = self.merge().for_each(self.description(), check, |checked| {
            form.budget.unwind();
            for groups in checked {
                let groups = groups.ok_or_else(|| self.wrong("a key has other parts"));
                let groups = groups.map_err(Failed::Input)?;
                are_numbers &= groups.are_numbers();
                writer.gathered().append(groups);
            }
            writer
                .write_full()
                .map_err(|error| Failed::Lost(Lost::Write(error)))
        });
        written.map_err(Failed::Input)??;
        Ok((writer, are_numbers))
    }

    fn told(&self, failed: Failed, budget: &Budget) -> Error {
        match failed {
            Failed::Input(error) => error,
            Failed::Lost(Lost::Damaged(why)) => self.wrong(why),
            Failed::Lost(lost) => lost.error(budget),
        }
    }

    /// What to say of groups that no run gives. Which partial they are from isn't known any more.
    fn wrong(&self, why: &str) -> Error {
        match self.partials[..] {
            [one] => one.reader.wrong(format!("the partial is damaged: {why}")),
            _ => Error::new(Kind::Data, format!("one of the partials is damaged: {why}")),
        }
    }
}

/// Why partials aren't merged to a temporary file.
enum Failed {
    Input(Error),
    Lost(Lost),
}

impl From<Lost> for Failed {
    fn from(lost: Lost) -> Failed {
        Failed::Lost(lost)
    }
}
