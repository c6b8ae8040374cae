//! Exact percentiles, distinct counts and modes, however many values a group has.
//!
//! Each value of a column of which one is asked for is a group of its own: its key has the parts of its group's key and
//! one more, which names the aggregate and has the value. In the group itself that part is empty. So values are counted,
//! spilled, merged and saved as groups are, and lie behind their group in the order of numbers or bytes. One pass over all
//! of them finds what was asked for, and leaves the groups alone.

use std::io::Write;

use ahash::RandomState;

use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::partial::key;
use crate::partial::reader::{Cursor, Reader};
use crate::partial::writer::Writer;
use crate::query::accumulator::share::Share;
use crate::query::accumulator::state::{Outcome, Slot, Takes, Value, Wanted};
use crate::query::groups::{FETCHED, Groups};
use crate::query::key_order::KeyOrder;
use crate::query::number::{Exact, Number};
use crate::query::stored::{Lost, Stored, StoredForm};
use crate::query::table::{Group, Table};

/// Bytes that name an aggregate in the part of a value. None of them is zero.
const NAME: usize = 2;
const BASE: usize = 255;

fn name(aggregate: usize) -> [u8; NAME] {
    [1 + aggregate / BASE % BASE, 1 + aggregate % BASE].map(|byte| byte as u8)
}

/// Appends the part of a value to the parts of its group's key.
pub(crate) fn push_value(key: &mut Vec<u8>, aggregate: usize, takes: Takes, value: &Value<'_>) {
    let start = key.len();
    key.extend_from_slice(&[0; 4]);
    key.extend_from_slice(&name(aggregate));
    match takes {
        Takes::Numbers => value.number.push_ordered(key),
        _ => key.extend_from_slice(value.bytes),
    }
    // A field is shorter than 4 GiB.
    let length = u32::try_from(key.len() - start - 4).expect("a value of less than 4 GiB");
    key[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

impl StoredForm {
    /// Whether values are groups of their own.
    pub(crate) fn has_values(&self) -> bool {
        self.slots.iter().any(|slot| slot.kind.of_values.is_some())
    }

    /// How the groups lie without their values.
    pub(crate) fn settled(&self) -> StoredForm {
        let slots = self
            .slots
            .iter()
            .enumerate()
            .map(|(owner, slot)| match slot.kind.of_values {
                Some(of) => Slot {
                    kind: of.settled,
                    owner,
                },
                None => *slot,
            });
        StoredForm {
            slots: slots.collect(),
            keys: self.keys - 1,
            ..self.clone()
        }
    }

    /// A table without groups, for those of this form.
    pub(crate) fn no_groups(&self) -> Table {
        Table::new(&RandomState::new(), &self.slots)
    }

    /// The groups of a file with what is found in their values.
    ///
    /// # Errors
    /// A file can't be written or read back, or there are values without their group.
    pub(crate) fn settle_stored(&self, all: &Reader, scales: &[u32]) -> Result<Reader, Lost> {
        let form = self.settled();
        let mut settling = Settling::new(self, scales, form.writer(scales)?);
        let mut cursor = Cursor::new(all, 0).map_err(|_| Lost::Read)?;
        let firsts = firsts(&self.slots);
        while let Some(loaded) = cursor.loaded() {
            let view = loaded.view();
            for row in 0..view.len() {
                let stored = StoredRow {
                    columns: &view.columns,
                    firsts: &firsts,
                    row,
                };
                settling.add(view.keys.get(row), &stored)?;
            }
            cursor.next_block().map_err(|_| Lost::Read)?;
        }
        form.reader(settling.finish()?)
    }

    /// Groups in memory with what is found in their values.
    ///
    /// # Errors
    /// There are values without their group.
    pub(crate) fn settle(&self, all: &Groups, scales: &[u32]) -> Result<Groups, Lost> {
        let form = self.settled();
        let writer = Writer::new(Vec::new(), &form.description(scales))?;
        let mut settling = Settling::new(self, scales, writer);
        let mut bytes = Vec::new();
        let sorted = all.sorted(all.all(), &KeyOrder::BYTES);
        for (at, &group) in sorted.iter().enumerate() {
            all.fetch(at + FETCHED, |at| sorted.get(at).copied());
            bytes.clear();
            key::push(&mut bytes, all.parts(group));
            settling.add(&bytes, &TableRow { all, group })?;
        }
        let reader = Reader::in_memory("groups".into(), settling.finish()?.finish()?);
        let reader = reader.map_err(|_| Lost::Read)?;
        let stored = Stored::new(reader, form.keys, form.no_groups());
        let loaded = stored.load(0..stored.len());
        loaded.map(|(_, groups)| groups).map_err(|_| Lost::Read)
    }
}

/// For each aggregate the first of its columns.
fn firsts(slots: &[Slot]) -> Vec<usize> {
    let lengths = slots.iter().map(|slot| slot.kind.columns.len());
    let sums = lengths.scan(0, |sum, length| {
        let first = *sum;
        *sum += length;
        Some(first)
    });
    sums.collect()
}

/// A group or a value with what is kept of it.
trait Row {
    /// How many values there are, of an aggregate that counts them.
    fn count(&self, aggregate: usize) -> u64;
    /// Adds what is kept for another aggregate to its columns.
    fn copy(&self, aggregate: usize, to: &mut [Gathered]);
}

struct TableRow<'a> {
    all: &'a Groups,
    group: Group,
}

impl Row for TableRow<'_> {
    fn count(&self, aggregate: usize) -> u64 {
        match self.all.finish(self.group, aggregate, 0) {
            Outcome::Number(count) => count.parts().0.unwrap_or_default() as u64,
            other => unreachable!("{other:?} for a count"),
        }
    }

    fn copy(&self, aggregate: usize, to: &mut [Gathered]) {
        self.all.encode(self.group, aggregate, to);
    }
}

struct StoredRow<'a> {
    columns: &'a [ColumnView<'a>],
    firsts: &'a [usize],
    row: usize,
}

impl Row for StoredRow<'_> {
    fn count(&self, aggregate: usize) -> u64 {
        self.columns[self.firsts[aggregate]].count(self.row)
    }

    fn copy(&self, aggregate: usize, to: &mut [Gathered]) {
        let columns = &self.columns[self.firsts[aggregate]..];
        for (from, to) in columns.iter().zip(to) {
            match from.column.rule {
                Rule::Count => to.push_count(from.count(self.row)),
                rule if rule.is_text() => to.push_text(from.text(self.row)),
                _ => to.push_exact(from.exact(self.row).as_ref()),
            }
        }
    }
}

/// Groups and their values, as they come in the order of keys.
struct Settling<'a, W: Write> {
    form: &'a StoredForm,
    scales: &'a [u32],
    firsts: Vec<usize>,
    writer: Writer<W>,
    /// The key of the last group, without the part that is empty there.
    group: Option<Vec<u8>>,
    /// What is looked for in its values.
    searches: Vec<Search>,
}

const NO_GROUP: Lost = Lost::Damaged("there are values without their group");

impl<'a, W: Write> Settling<'a, W> {
    fn new(form: &'a StoredForm, scales: &'a [u32], writer: Writer<W>) -> Settling<'a, W> {
        Settling {
            form,
            scales,
            firsts: firsts(&form.settled().slots),
            writer,
            group: None,
            searches: Vec::new(),
        }
    }

    /// Adds a group or a value, with a key as it lies in a file.
    fn add(&mut self, key: &[u8], row: &impl Row) -> Result<(), Lost> {
        // No other group's key begins with that of this one, because each of its parts has an end.
        let value = self
            .group
            .as_ref()
            .and_then(|group| key.strip_prefix(&group[..]));
        let Some(value) = value else {
            return self.begin(key, row);
        };
        let (owner, value) = value.split_first_chunk().ok_or(NO_GROUP)?;
        let mut is_known = false;
        for search in self
            .searches
            .iter_mut()
            .filter(|of| name(of.owner) == *owner)
        {
            is_known = true;
            search.add(value, row.count(search.owner))?;
        }
        match is_known {
            true => Ok(()),
            false => Err(Lost::Damaged("there are values of no aggregate")),
        }
    }

    fn begin(&mut self, key: &[u8], row: &impl Row) -> Result<(), Lost> {
        self.end()?;
        let StoredForm { slots, keys, .. } = self.form;
        let parts = key::parts(key, *keys);
        let parts = parts.filter(|parts| parts.last().is_some_and(|last| last.is_empty()));
        let parts = parts.ok_or(NO_GROUP)?;
        let to = self.writer.gathered();
        let own = parts[..keys - 1].iter().map(|part| &**part);
        key::push(&mut to.keys.bytes, own);
        to.keys.ends.push(to.keys.bytes.len());
        for (at, slot) in slots.iter().enumerate() {
            match slot.kind.of_values {
                Some(of) => {
                    let all = row.count(slot.owner);
                    self.searches.push(Search::new(of.wanted, slot.owner, all));
                }
                None => row.copy(
                    at,
                    &mut to.columns[self.firsts[at]..][..slot.kind.columns.len()],
                ),
            }
        }
        self.group = Some(key.to_vec());
        Ok(())
    }

    /// Adds what was found in the values of the last group.
    fn end(&mut self) -> Result<(), Lost> {
        let slots = self.form.slots.iter().enumerate();
        let of_values = slots.filter(|(_, slot)| slot.kind.of_values.is_some());
        let to = self.writer.gathered();
        for ((at, _), search) in of_values.zip(self.searches.drain(..)) {
            search.end(self.scales[at], &mut to.columns[self.firsts[at]])?;
        }
        Ok(self.writer.write_full()?)
    }

    fn finish(mut self) -> Result<Writer<W>, Lost> {
        self.end()?;
        Ok(self.writer)
    }
}

/// A search among the values of a group.
struct Search {
    /// The aggregate whose values they are.
    owner: usize,
    /// How many there are, and how many of them have come.
    all: u64,
    before: u64,
    found: Found,
}

enum Found {
    Percentile {
        share: Share,
        place: u64,
        /// How far it lies towards the next place.
        rest: u64,
        low: Option<Exact>,
        high: Option<Exact>,
    },
    Distinct(u64),
    Mode {
        count: u64,
        value: Vec<u8>,
    },
}

impl Search {
    fn new(wanted: Wanted, owner: usize, all: u64) -> Search {
        let found = match wanted {
            Wanted::Percentile(share) => {
                let (place, rest) = if all == 0 { (0, 0) } else { share.place(all) };
                Found::Percentile {
                    share,
                    place,
                    rest,
                    low: None,
                    high: None,
                }
            }
            Wanted::Distinct => Found::Distinct(0),
            Wanted::Mode => Found::Mode {
                count: 0,
                value: Vec::new(),
            },
        };
        Search {
            owner,
            all,
            before: 0,
            found,
        }
    }

    /// Adds the next value, which is there so many times.
    fn add(&mut self, bytes: &[u8], times: u64) -> Result<(), Lost> {
        let places = self.before..self.before.saturating_add(times);
        self.before = places.end;
        match &mut self.found {
            Found::Percentile {
                place,
                rest,
                low,
                high,
                ..
            } => {
                let next = *place + u64::from(*rest > 0);
                for (place, to) in [(*place, low), (next, high)] {
                    if places.contains(&place) {
                        let number = Number::of_ordered(bytes);
                        let number = number.ok_or(Lost::Damaged("a value isn't a number"))?;
                        *to = Some(number.exact());
                    }
                }
            }
            Found::Distinct(count) => *count += 1,
            // Of several that are there as often, the first is the least.
            Found::Mode { count, value } => {
                if times > *count {
                    *count = times;
                    value.clear();
                    value.extend_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    /// Adds what was found to its column.
    fn end(self, scale: u32, to: &mut Gathered) -> Result<(), Lost> {
        if self.before != self.all {
            return Err(Lost::Damaged("a group has another number of values"));
        }
        match self.found {
            Found::Percentile {
                share,
                rest,
                low: Some(low),
                high: Some(high),
                ..
            } => to.push_exact(Some(&share.between(low, high, rest, scale))),
            Found::Percentile { .. } => to.push_exact(None),
            Found::Distinct(count) => to.push_count(count),
            Found::Mode { value, .. } => to.push_text(&value),
        }
        Ok(())
    }
}
