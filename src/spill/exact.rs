//! Exact percentiles, distinct counts, modes and lists, however many values a group has.
//!
//! In memory a group has its values in a bag (`aggregate::bag`). In files, and where a number doesn't fit a bag, each
//! different value is a group of its own: its key has the parts of its group's key and one more, which names the aggregate
//! and has the value. In the group itself that part is empty. So values are spilled, merged and saved as groups are, and
//! come after their group in the order of numbers or bytes. One pass over all of them finds what was asked for, and leaves
//! the groups alone.

use std::io::Write;
use std::ops::Range;

use ahash::RandomState;
use rayon::prelude::*;

use crate::aggregate::bag::Values;
use crate::aggregate::definition::{Kind, Slot, Statistic};
use crate::aggregate::digest::{NAME, name};
use crate::aggregate::share::Share;
use crate::aggregate::state::Argument;
use crate::decimal::number::{Exact, Number};
use crate::partial::block::Groups as Gathered;
use crate::partial::column::{ColumnView, Gathered as Column};
use crate::partial::description::Rule;
use crate::partial::key;
use crate::partial::reader::{Cursor, Reader};
use crate::partial::writer::Writer;
use crate::spill::list::Listing;
use crate::spill::regroup::Gathering;
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::Groups;
use crate::table::key_order::KeyOrder;
use crate::table::states::{Group, Table};

/// Groups whose values are looked at before what is found is written.
const AT_ONCE: usize = 1 << 14;

impl StoredForm {
    /// Whether there are aggregates of all values.
    pub(crate) fn has_values(&self) -> bool {
        self.slots.iter().any(|slot| slot.kind.of_values.is_some())
    }

    /// How the groups lie without their values.
    pub(crate) fn settled(&self) -> StoredForm {
        let slots = self.slots.iter().enumerate();
        let slots = slots.map(|(owner, slot)| match slot.kind.result() {
            Some(kind) => Slot { kind, owner },
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
        let token = self.budget.cancellation.clone();
        Table::new(&RandomState::new(), &self.slots, token)
    }

    /// Groups with what is found in their values: in a file where they are in one.
    ///
    /// # Errors
    /// A file can't be written or read back, or there are values without their group.
    pub(crate) fn settle_stored(&self, all: &Reader, scales: &[u32]) -> Result<Reader, Lost> {
        let form = self.settled();
        if all.is_in_memory() {
            let writer = Writer::new(Vec::new(), &form.description(scales))?;
            let bytes = self.settle_to(writer, all, scales)?.finish()?;
            return Reader::in_memory("groups".into(), bytes).map_err(|_| Lost::Read);
        }
        form.reader(self.settle_to(form.writer(scales)?, all, scales)?)
    }

    fn settle_to<W: Write>(
        &self,
        writer: Writer<W>,
        all: &Reader,
        scales: &[u32],
    ) -> Result<Writer<W>, Lost> {
        let mut settling = Settling::new(self, scales, writer);
        let (mut cursor, mut buffer) = (Cursor::new(all), Vec::new());
        let firsts = firsts(&self.slots);
        while let Some(loaded) = cursor.next_block(buffer).map_err(|_| Lost::Read)? {
            let view = loaded.view();
            self.budget.unwind();
            for row in 0..view.len() {
                let stored = StoredRow {
                    columns: &view.columns,
                    firsts: &firsts,
                    row,
                };
                settling.add(view.keys.get(row), &stored)?;
            }
            buffer = loaded.into_buffer();
        }
        settling.finish()
    }

    /// Groups in memory with what is found in their values.
    ///
    /// # Errors
    /// There are values without their group, or more or fewer than it says.
    pub(crate) fn settle(&self, all: &Groups, scales: &[u32]) -> Result<Groups, Lost> {
        let form = self.settled();
        let mut writer = form.writer_in_memory(scales)?;
        let firsts = firsts(&form.slots);
        let sorted = all.sorted(all.all(), &KeyOrder::BYTES);
        // What is found may be long.
        let at_once = match all.table().has_texts() {
            true => rayon::current_num_threads(),
            false => AT_ONCE,
        };
        for spans in self.spans(all, &sorted)?.chunks(at_once) {
            let found = spans.par_iter().map(|span| {
                self.budget.unwind();
                let (group, own) = (sorted[span.start], &sorted[span.start + 1..span.end]);
                self.find(all, group, own, scales)
            });
            let found: Vec<Vec<Found>> = found.collect::<Result<_, Lost>>()?;
            for (span, found) in spans.iter().zip(found) {
                let group = sorted[span.start];
                let to = writer.gathered();
                key::push(&mut to.keys.bytes, all.parts(group).take(form.keys));
                to.keys.ends.push(to.keys.bytes.len());
                let mut found = found.into_iter();
                for (at, slot) in self.slots.iter().enumerate() {
                    let columns = &mut to.columns[firsts[at]..];
                    match slot.kind.of_values.and_then(|_| found.next()) {
                        Some(found) => found.push(&mut columns[0]),
                        None => all.encode(group, at, &mut columns[..slot.kind.columns.len()]),
                    }
                }
                writer.write_full()?;
            }
        }
        let run = form.reader_in_memory(writer)?;
        let settled = Stored::new(run, form.keys, form.no_groups()).load_all();
        settled.map_err(|_| Lost::Read)
    }

    /// Writes groups, each with its values after it.
    ///
    /// # Errors
    /// The writer's, or there are values without their group.
    pub(crate) fn gather_values(
        &self,
        all: &Groups,
        writer: &mut impl Gathering,
    ) -> Result<(), Lost> {
        let (sorted, firsts) = (all.sorted(all.all(), &KeyOrder::BYTES), firsts(&self.slots));
        let _turn = self.budget.turn(all.table().largest());
        let mut nothing = self.no_groups();
        let no_values = nothing.group(b"");
        let nothing = Groups::new(nothing, None);
        let width = |slot: &Slot| slot.kind.columns.len();
        let mut row = |bytes: &mut dyn FnMut(&mut Gathered), value: Option<(usize, u64)>, group| {
            let to = writer.gathered();
            bytes(to);
            to.keys.ends.push(to.keys.bytes.len());
            for (at, slot) in self.slots.iter().enumerate() {
                let columns = &mut to.columns[firsts[at]..][..width(slot)];
                match value {
                    Some((owner, times)) if slot.owner == owner => columns[0].push_count(times),
                    Some(_) => nothing.encode(no_values, at, columns),
                    None => all.encode(group, at, columns),
                }
            }
            self.budget.unwind();
            writer.put_full()
        };
        for span in self.spans(all, &sorted)? {
            let (group, own) = (sorted[span.start], &sorted[span.start + 1..span.end]);
            let mut own_key = Vec::new();
            key::push(&mut own_key, all.parts(group));
            row(
                &mut |to| to.keys.bytes.extend_from_slice(&own_key),
                None,
                group,
            )?;
            for (owner, kind) in self.owners() {
                self.each_value(all, group, own, (owner, kind), |value, times| {
                    let mut bytes = |to: &mut Gathered| {
                        to.keys.bytes.extend_from_slice(&own_key);
                        to.keys.bytes.extend_from_slice(&name(owner));
                        to.keys.bytes.extend_from_slice(value);
                    };
                    row(&mut bytes, Some((owner, times)), group)
                })?;
            }
        }
        Ok(())
    }

    /// The aggregates that have bags.
    fn owners(&self) -> impl Iterator<Item = (usize, Kind)> {
        let slots = self.slots.iter().enumerate();
        let owners = slots.filter(|(at, slot)| slot.owner == *at && slot.kind.of_values.is_some());
        owners.map(|(at, slot)| (at, slot.kind))
    }

    /// Groups in the order of their keys, each with those that are its values.
    fn spans(&self, all: &Groups, sorted: &[Group]) -> Result<Vec<Range<usize>>, Lost> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        for (at, &group) in sorted.iter().enumerate() {
            let own = self.keys - 1;
            let is_value = all.parts(group).last().is_some_and(|last| !last.is_empty());
            if !is_value {
                spans.push(at..at + 1);
                continue;
            }
            let last = spans.last_mut().ok_or(NO_GROUP)?;
            let parts = |group| all.parts(group).take(own);
            if !parts(sorted[last.start]).eq(parts(group)) {
                return Err(NO_GROUP);
            }
            last.end = at + 1;
        }
        Ok(spans)
    }

    /// Calls `each` with all values of a group in their order, and how often each is there. `own` are those that are groups
    /// of their own.
    fn each_value(
        &self,
        all: &Groups,
        group: Group,
        own: &[Group],
        (owner, kind): (usize, Kind),
        mut each: impl FnMut(&[u8], u64) -> Result<(), Lost>,
    ) -> Result<(), Lost> {
        let table = all.table();
        let mut counted: Vec<(u64, u64)> = table.values(group, owner).counted().collect();
        if kind.argument != Argument::Numbers {
            // Short texts are in order, and stay so.
            counted.sort_by(|one, two| {
                table.with_text(one.0, |one| table.with_text(two.0, |two| one.cmp(two)))
            });
        }
        let value = |own: &Group| {
            let part = all.parts(*own).last().unwrap_or_default();
            let value = part.strip_prefix(&name(owner))?;
            Some((value, table.own_values(*own, owner)))
        };
        let mut own = own.iter().filter_map(value).peekable();
        let mut bytes = Vec::new();
        for (digest, mut times) in counted {
            bytes.clear();
            match kind.argument {
                Argument::Numbers => table.number_of(owner, digest).push_ordered(&mut bytes),
                _ => table.with_text(digest, |text| bytes.extend_from_slice(text)),
            }
            while let Some((value, times)) = own.next_if(|(value, _)| *value < &bytes[..]) {
                each(value, times)?;
            }
            if let Some((_, more)) = own.next_if(|(value, _)| *value == &bytes[..]) {
                times += more;
            }
            each(&bytes, times)?;
        }
        own.try_for_each(|(value, times)| each(value, times))
    }

    /// What is found in the values of a group, for each aggregate of all values.
    fn find(
        &self,
        all: &Groups,
        group: Group,
        own: &[Group],
        scales: &[u32],
    ) -> Result<Vec<Found>, Lost> {
        for own in own {
            let part = all.parts(*own).last().unwrap_or_default();
            if !self
                .owners()
                .any(|(owner, _)| part.starts_with(&name(owner)))
            {
                return Err(NO_AGGREGATE);
            }
        }
        let table = all.table();
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (owner, kind) in self.owners() {
            let slots = self.slots.iter().enumerate();
            let slots = slots.filter(|(_, slot)| slot.owner == owner);
            let wanted = slots.filter_map(|(at, slot)| Some((at, slot.kind.statistic()?)));
            let (mut values, own_values) =
                (table.values(group, owner), table.own_values(group, owner));
            let is_whole = !own.iter().any(|own| table.own_values(*own, owner) > 0);
            if is_whole && own_values == 0 {
                for (at, wanted) in wanted {
                    let one = find_among(table, owner, &mut values, wanted, scales[at])?;
                    found.push((at, one));
                }
                continue;
            }
            let count = values.count() + own_values;
            let searches = wanted.map(|(at, wanted)| (at, Search::new(wanted, owner, count)));
            let mut searches: Vec<(usize, Search)> = searches.collect();
            self.each_value(all, group, own, (owner, kind), |value, times| {
                let mut each = searches.iter_mut();
                each.try_for_each(|(_, search)| search.add(value, times))
            })?;
            for (at, search) in searches {
                found.push((at, search.end(scales[at])?));
            }
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }
}

/// What is found among all values of a group.
fn find_among(
    table: &Table,
    owner: usize,
    values: &mut Values,
    wanted: Statistic,
    scale: u32,
) -> Result<Found, Lost> {
    Ok(match wanted {
        Statistic::Percentile(share) => {
            let count = values.count();
            if count == 0 {
                return Ok(Found::Number(None));
            }
            let (place, rest) = share.place(count);
            let pair = values.at(place, rest > 0);
            let [low, high] = pair.map(|digest| table.number_of(owner, digest).exact());
            Found::Number(Some(share.between(low, high, rest, scale)))
        }
        Statistic::Distinct => Found::Count(values.counted().count() as u64),
        Statistic::Mode => {
            let (mut most, mut least) = (0, Vec::new());
            for (digest, times) in values.counted().filter(|(_, times)| *times > 0) {
                if times >= most {
                    table.with_text(digest, |text| {
                        // Of several that are there as often, the least.
                        if times > most || *text < least[..] {
                            least.clear();
                            least.extend_from_slice(text);
                        }
                    });
                    most = times;
                }
            }
            Found::Text(least)
        }
        Statistic::List(list) => {
            let mut listing = Listing::new(list);
            for (digest, times) in values.counted() {
                let added = table.with_text(digest, |text| listing.add(text, times));
                added.map_err(Lost::Long)?;
            }
            Found::Text(listing.json())
        }
    })
}

/// What is found among values.
enum Found {
    /// A percentile times the divisor of its share, if there are numbers.
    Number(Option<Exact>),
    Count(u64),
    Text(Vec<u8>),
}

impl Found {
    fn push(self, to: &mut Column) {
        match self {
            Found::Number(number) => to.push_exact(number.as_ref()),
            Found::Count(count) => to.push_count(count),
            Found::Text(text) => to.push_text(&text),
        }
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

/// A group or a value in a file.
struct StoredRow<'a> {
    columns: &'a [ColumnView<'a>],
    firsts: &'a [usize],
    row: usize,
}

impl StoredRow<'_> {
    /// How many values there are, of an aggregate of all values.
    fn count(&self, aggregate: usize) -> u64 {
        self.columns[self.firsts[aggregate]].count(self.row)
    }

    /// Adds what is kept for another aggregate to its columns.
    fn copy(&self, aggregate: usize, to: &mut [Column]) {
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
const NO_AGGREGATE: Lost = Lost::Damaged("there are values of no aggregate");

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
    fn add(&mut self, key: &[u8], row: &StoredRow<'_>) -> Result<(), Lost> {
        // No other group's key begins with that of this one, because each of its parts has an end.
        let group = self.group.as_ref();
        let Some(value) = group.and_then(|group| key.strip_prefix(&group[..])) else {
            return self.begin(key, row);
        };
        let (owner, value) = value.split_first_chunk::<NAME>().ok_or(NO_GROUP)?;
        let mut is_known = false;
        let searches = self.searches.iter_mut();
        for search in searches.filter(|of| name(of.owner) == *owner) {
            is_known = true;
            search.add(value, row.count(search.owner))?;
        }
        match is_known {
            true => Ok(()),
            false => Err(NO_AGGREGATE),
        }
    }

    fn begin(&mut self, key: &[u8], row: &StoredRow<'_>) -> Result<(), Lost> {
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
            match slot.kind.statistic() {
                Some(wanted) => {
                    let all = row.count(slot.owner);
                    let search = Search::new(wanted, slot.owner, all);
                    self.searches.push(search);
                }
                None => {
                    let own = &mut to.columns[self.firsts[at]..];
                    row.copy(at, &mut own[..slot.kind.columns.len()]);
                }
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
            let found = search.end(self.scales[at])?;
            found.push(&mut to.columns[self.firsts[at]]);
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
    kept: Sought,
}

/// What is known of the values that have come.
enum Sought {
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
    List(Listing),
}

impl Search {
    fn new(wanted: Statistic, owner: usize, all: u64) -> Search {
        let kept = match wanted {
            Statistic::Percentile(share) => {
                let (place, rest) = if all == 0 { (0, 0) } else { share.place(all) };
                Sought::Percentile {
                    share,
                    place,
                    rest,
                    low: None,
                    high: None,
                }
            }
            Statistic::Distinct => Sought::Distinct(0),
            Statistic::Mode => Sought::Mode {
                count: 0,
                value: Vec::new(),
            },
            Statistic::List(list) => Sought::List(Listing::new(list)),
        };
        Search {
            owner,
            all,
            before: 0,
            kept,
        }
    }

    /// Adds the next value, which is there so many times.
    fn add(&mut self, bytes: &[u8], times: u64) -> Result<(), Lost> {
        let places = self.before..self.before.saturating_add(times);
        self.before = places.end;
        match &mut self.kept {
            Sought::Percentile {
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
            Sought::Distinct(count) => *count += 1,
            Sought::List(listing) => listing.add(bytes, times).map_err(Lost::Long)?,
            // Of several that are there as often, the first is the least.
            Sought::Mode { count, value } => {
                if times > *count {
                    *count = times;
                    value.clear();
                    value.extend_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    fn end(self, scale: u32) -> Result<Found, Lost> {
        if self.before != self.all {
            return Err(Lost::Damaged("a group has another number of values"));
        }
        Ok(match self.kept {
            Sought::Percentile {
                share,
                rest,
                low: Some(low),
                high: Some(high),
                ..
            } => Found::Number(Some(share.between(low, high, rest, scale))),
            Sought::Percentile { .. } => Found::Number(None),
            Sought::Distinct(count) => Found::Count(count),
            Sought::Mode { value, .. } => Found::Text(value),
            Sought::List(listing) => Found::Text(listing.json()),
        })
    }
}
