//! Partials of queries: an answer's groups are saved, and read one after the other.

pub(crate) mod groups;
mod inspected;
pub(crate) mod merged;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use ringfold_read::internals::cancellable;
use ringfold_read::{Config, Error, Input, Kind, Result, Stats, fold};

use crate::aggregate::definition::Slot;
use crate::aggregate::state::Argument;
use crate::aggregate::{named, names};
use crate::answer::Answer;
use crate::partial::description::{Aggregate, Counts, Description, Rule};
use crate::partial::merge::Merge;
use crate::partial::merge::split::split;
use crate::partial::reader::Reader;
use crate::partial::receipt::Receipt;
use crate::partial::shard::Shard;
use crate::partial::writer::Writer;
use crate::plan::Plan;
use crate::query::ask::Query;
use crate::refusal::Refusal;
use crate::saved::groups::SavedGroups;
use crate::spill::stored::Lost;

impl Plan {
    /// What a partial says of itself whose aggregates have numbers of these scales.
    fn description(&self, scales: &[u32], counts: Counts, receipt: &Receipt) -> Description {
        let slots = self.slots().into_iter();
        let aggregates = slots.zip(scales).zip(&self.titles);
        let aggregates = aggregates.map(|((slot, &scale), title)| Aggregate {
            name: slot.kind.name().as_bytes().to_vec(),
            title: title.clone(),
            scale,
            is_numeric: slot.kind.argument == Argument::Numbers,
            columns: slot.columns(scale),
        });
        Description {
            query: self.asked.clone(),
            keys: self.key_titles.clone(),
            aggregates: aggregates.collect(),
            counts,
            sources: receipt.sources.clone(),
            spans: receipt.spans.clone(),
        }
    }

    /// The partial of a run that has found no groups: whether others can be merged with what the plan's run gives is known
    /// before it.
    ///
    /// # Errors
    /// None that is known of.
    pub fn nothing(&self, receipt: &Receipt) -> Result<Partial> {
        let scales = vec![0; self.aggregates.len()];
        let description = self.description(&scales, Counts::default(), receipt);
        let written = Writer::new(Vec::new(), &description).and_then(Writer::finish);
        Partial::read("the input", written.map_err(|error| Error::output(&error))?)
    }
}

impl Answer {
    /// Writes all groups as a partial, whatever rows the answer shows. `receipt` is what the plan's run has read.
    ///
    /// # Errors
    /// `out` can't be written, or groups that went to files can't be read back, which is an [`Error`] within the
    /// [`io::Error`].
    pub fn save(&self, plan: &Plan, receipt: &Receipt, out: impl Write) -> io::Result<()> {
        cancellable(|| self.write(plan, receipt, out)).map_err(io::Error::other)?
    }

    fn write(&self, plan: &Plan, receipt: &Receipt, out: impl Write) -> io::Result<()> {
        let counts = Counts {
            rows: self.rows,
            filtered: self.filtered,
            empty_lines: self.empty_lines,
            nulled: self.nulled,
            skipped: self.skipped,
        };
        let mut description = plan.description(self.scales(), counts, receipt);
        if plan.part.is_some() {
            self.extremes.note(&mut description);
        }
        let mut writer = Writer::new(out, &description)?;
        if let Some(stored) = self.outgrown() {
            let lost = |_| {
                let directory = plan.spill_directory().to_owned();
                io::Error::other(Error::from(Refusal::SpillLost { directory }))
            };
            let run = stored.reader();
            let sources = (0..run.description.sources.len() as u32).collect();
            let mut merge = Merge::new([(run, sources)]);
            while merge.next(writer.gathered()).map_err(lost)? {
                plan.budget.unwind();
                writer.write_full()?;
            }
            return writer.finish().map(drop);
        }
        let (form, all) = (plan.stored_form(), self.all());
        let gathered = match form.has_values() {
            true => form.gather_values(all, &mut writer),
            false => {
                let groups = self.all_by_key().into_iter();
                form.gather(groups.map(|group| (all, group)), &mut writer)
            }
        };
        gathered.map_err(|lost| match lost {
            Lost::Write(error) => error,
            Lost::Read | Lost::Damaged(_) | Lost::Long(_) => io::ErrorKind::InvalidData.into(),
        })?;
        writer.finish().map(drop)
    }
}

impl Query {
    /// Runs the query to a partial in memory, with a receipt of the input. What the run has to say of records is in the
    /// [`Answer`]: how many were left out, and the first of them.
    ///
    /// # Errors
    /// Those of [`Query::plan`] and of [`fold`].
    pub fn partial(&self, input: &Input, config: &Config) -> Result<(Partial, Answer, Stats)> {
        // The receipt is of the input as it is before the run.
        let (plan, receipt) = (self.plan(input, config)?, Receipt::of(input)?);
        let (answer, stats) = fold(input, config, &plan)?;
        let mut bytes = Vec::new();
        let saved = answer.save(&plan, &receipt, &mut bytes);
        saved.map_err(|error| Error::output(&error))?;
        let name = input
            .sources()
            .first()
            .map_or("nothing", |first| first.name());
        let name = match input.part_of() {
            Some((part, parts)) => format!("{name} {part}/{parts}"),
            None => name.into(),
        };
        Ok((Partial::read(&name, bytes)?, answer, stats))
    }
}

/// Groups by key with what is kept of each, saved by a run. Several are [merged](Partial::merge) to what one run over
/// everything gives.
///
/// ```
/// use ringfold::query::{Partial, Query, Shown};
/// use ringfold::{Config, Input};
///
/// let query = Query::new(b',').key(1).aggregate("sum", Some(2.into()))?;
/// let run = |text: &'static [u8]| {
///     let (partial, ..) = query.partial(&Input::memory([text]), &Config::default())?;
///     // These travel anywhere.
///     partial.to_bytes().map(|bytes| bytes.into_owned())
/// };
/// let days = [run(b"Bern,1\nOslo,2\n")?, run(b"Bern,0.5\n")?];
/// let days = days.map(|bytes| Partial::read("a day", bytes).unwrap());
/// let merged = Partial::merge(&days)?;
/// assert_eq!(merged.answer(&Shown::default())?.groups, 2);
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Partial {
    reader: Reader,
}

impl Partial {
    /// Opens a file; `-` is the standard input. Of what isn't a file all is taken into memory. Blocks are read and checked when
    /// they are needed.
    ///
    /// # Errors
    /// It can't be read, or isn't a whole partial that this version knows.
    pub fn open(path: impl AsRef<Path>) -> Result<Partial> {
        Partial::of(Reader::open(path.as_ref())?)
    }

    /// Takes a partial in memory, where it lies; `name` stands for it in errors. Head, description, index and tail are checked
    /// now, each block when it is read, all of them by [`Partial::check`]. Whatever the bytes are, what is wrong with them is
    /// an error.
    ///
    /// # Errors
    /// It isn't a whole partial that this version knows.
    pub fn read(name: &str, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Partial> {
        Partial::of(Reader::in_memory(name.into(), bytes)?)
    }

    /// Its bytes, which [`Partial::read`] takes: where they lie, if it is in memory.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn to_bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.reader.to_bytes()
    }

    /// Reads all blocks: their checksums, values and the order of keys.
    ///
    /// # Errors
    /// One can't be read, or is damaged.
    pub fn check(&self) -> Result<()> {
        self.groups().for_each(|_| Ok(()))
    }

    /// Takes a file that has no name any more; `name` stands for it in errors.
    ///
    /// # Errors
    /// It can't be read, or isn't a whole partial that this version knows.
    pub fn of_file(name: &str, file: File) -> Result<Partial> {
        Partial::of(Reader::of_file(name.into(), file)?)
    }

    fn of(reader: Reader) -> Result<Partial> {
        slots(&reader.description).map_err(|why| reader.wrong(why))?;
        Shard::of(&reader.description).map_err(|why| reader.wrong(why))?;
        Ok(Partial { reader })
    }

    /// What it is called in errors.
    pub fn name(&self) -> &str {
        self.reader.name()
    }

    /// How many groups it has. Of an exact query, each value is one too.
    pub fn len(&self) -> u64 {
        self.reader.groups()
    }

    /// Whether it has no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.reader.bytes()
    }

    /// Blocks of groups.
    pub fn blocks(&self) -> usize {
        self.reader.blocks()
    }

    /// What was asked, as names and values.
    pub fn query(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.reader.description.query
    }

    /// The names of the answer's columns: keys, then aggregates.
    pub fn titles(&self) -> Vec<&[u8]> {
        let Description {
            keys, aggregates, ..
        } = &self.reader.description;
        let aggregates = aggregates.iter().map(|aggregate| &aggregate.title[..]);
        keys.iter().map(Vec::as_slice).chain(aggregates).collect()
    }

    /// What became of the records, by the names that `--stats` of the program has for them.
    pub fn counts(&self) -> [(&'static str, u64); 5] {
        let counts = self.reader.description.counts;
        [
            ("rows", counts.rows),
            ("filtered", counts.filtered),
            ("empty_lines", counts.empty_lines),
            ("skipped", counts.skipped),
            ("nulled", counts.nulled),
        ]
    }

    /// The files that were read.
    pub fn receipt(&self) -> Receipt {
        let Description { sources, spans, .. } = &self.reader.description;
        Receipt {
            sources: sources.clone(),
            spans: spans.clone(),
        }
    }

    /// The same without groups: whether partials fit together is known from what they have read.
    ///
    /// ```
    /// use ringfold::query::Query;
    /// use ringfold::{Config, Input};
    ///
    /// let input = Input::memory([&b"a\nb\n"[..]]);
    /// let (partial, ..) = Query::new(b',').key(1).partial(&input, &Config::default())?;
    /// let receipt = partial.without_groups()?;
    /// assert_eq!((partial.len(), receipt.len()), (2, 0));
    /// assert_eq!(partial.counts(), receipt.counts());
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// None that is known of.
    pub fn without_groups(&self) -> Result<Partial> {
        let written = Writer::new(Vec::new(), &self.reader.description).and_then(Writer::finish);
        Partial::read(self.name(), written.map_err(|error| Error::output(&error))?)
    }

    /// Divides the groups by a hash of their keys into so many shards, partials in memory that are merged as others are. A key is
    /// in the same shard of every partial: docs/partial-format.md says in which. Each shard has the receipt of the whole. Those
    /// of one number are merged to the groups of that shard, all of them to all groups; a merge of some is an error.
    ///
    /// ```
    /// use ringfold::query::{Partial, Query, Shown};
    /// use ringfold::{Config, Input};
    ///
    /// let query = Query::new(b',').key(1);
    /// let days = [&b"a\nb\nc\n"[..], b"c\nd\n"].map(|text| {
    ///     let (partial, ..) = query.partial(&Input::memory([text]), &Config::default()).unwrap();
    ///     partial.split(4).unwrap()
    /// });
    /// let groups = (0..4).map(|shard| {
    ///     let merged = Partial::merge(days.iter().map(|day| &day[shard]))?;
    ///     Ok(merged.answer(&Shown::default())?.groups)
    /// });
    /// assert_eq!(groups.sum::<ringfold::Result<u64>>()?, 4);
    /// # Ok::<(), ringfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are no shards, it is one, or a block is damaged.
    pub fn split(&self, shards: u32) -> Result<Vec<Partial>> {
        if let Some((number, count)) = self.shard() {
            let why = format!("it is shard {number}/{count}, which isn't divided again");
            return Err(self.reader.wrong(why));
        }
        if shards == 0 {
            return Err(Error::new(
                Kind::Usage,
                "there are no shards: at least 1 is needed",
            ));
        }
        let numbers = 1..=shards;
        let all = numbers.filter_map(|number| Shard::new(number, shards));
        let written = (1..).zip(split(&self.reader, all)?);
        let shard = |(number, bytes): (u32, _)| {
            Partial::read(&format!("{} shard {number}/{shards}", self.name()), bytes)
        };
        written.map(shard).collect()
    }

    /// Which of how many shards it is, if it has the groups of one only.
    pub fn shard(&self) -> Option<(u32, u32)> {
        shard_of(&self.reader.description)
    }

    /// The groups in the order of their keys.
    pub fn groups(&self) -> SavedGroups<'_> {
        SavedGroups::new(&self.reader)
    }
}

/// Number and count of the shard that a partial has the groups of.
fn shard_of(description: &Description) -> Option<(u32, u32)> {
    let shard = Shard::of(description).ok().flatten()?;
    Some((shard.number, shard.count))
}

/// Which aggregates of this program they are.
fn slots(description: &Description) -> Result<Vec<Slot>, String> {
    let mut slots: Vec<Slot> = Vec::new();
    for aggregate in &description.aggregates {
        let name = String::from_utf8_lossy(&aggregate.name);
        let Some(kind) = named(&name).filter(|kind| kind.name() == name) else {
            let known = names().join(", ");
            return Err(format!(
                "it has an aggregate `{name}`, and this ringfold knows {known}"
            ));
        };
        let mut slot = Slot {
            kind,
            owner: slots.len(),
        };
        let exact = kind.exact().or(kind.of_values.map(|_| kind));
        if let ([values], Some(exact)) = (&aggregate.columns[..], exact)
            && values.rule == Rule::Values
        {
            slot.kind = exact;
            slot.owner = values.scale as usize;
        }
        if let Some(of_times) = kind.of_times()
            && aggregate.columns.iter().any(|column| column.rule.is_time())
        {
            slot.kind = of_times;
        }
        let has_owner = |slot: &Slot| {
            let owner = slots.get(slot.owner);
            slot.owner == slots.len()
                || owner
                    .is_some_and(|of| of.owner == slot.owner && of.kind.shares_states(slot.kind))
        };
        let rules = aggregate.columns.iter().map(|column| column.rule);
        let is_right = rules.eq(slot.kind.columns.iter().map(|column| column.rule))
            && aggregate.is_numeric == (slot.kind.argument == Argument::Numbers)
            && has_owner(&slot);
        if !is_right {
            return Err(format!("`{name}` has other columns in this ringfold"));
        }
        slots.push(slot);
    }
    Ok(slots)
}
