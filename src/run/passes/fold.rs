//! Rows go to their groups: keys are looked up, and values are added to lanes.

use crate::aggregate::lanes::{Kept, Lane};
use crate::format::escape::Escape;
use crate::format::short_text::ShortText;
use crate::plan::Plan;
use crate::run::passes::computed::text_of;
use crate::run::passes::{KeyColumn, Passes, Scratch};
use crate::scan::index::TextWindow;
use crate::scan::keys::{KeyPart, compose};
use crate::scan::spans::value;
use crate::table::batch::BATCH;
use crate::table::entries::{KEY_MAX, SHORT_MAX};
use crate::table::lane_plan::Served;
use crate::table::lane_table::{ENTRY_ROWS, GROUP_LANES};
use crate::table::states::{Group, Table};

impl Passes {
    /// Adds the rows to their groups.
    #[inline(never)]
    pub(super) fn fold(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        place: (u32, u64),
        table: &mut Table,
    ) {
        let longest = self.fold_long(plan, window, place, table);
        let rows = self.scratch.starts.len();
        // Long keys are in entries.
        let is_long = longest > SHORT_MAX;
        let mut next = 0;
        while next < rows {
            let from = next;
            let most = match is_long {
                true => ENTRY_ROWS,
                false => self.groups.slots.batch_rows(),
            };
            let count = most.min(rows - from);
            next += count;
            self.groups.reserve(count, table);
            let text = match self.compose_keys(window, from, count, longest) {
                None => &*self.scratch.composed,
                Some(at) => {
                    text_of(&self.computed, self.first_computed, at, window).bytes_and_padding()
                }
            };
            self.groups.slots.find(text, &self.scratch.key_spans);
            if let Some(lane) = self.groups.layout().group_lane() {
                self.find_groups(plan, window, from, lane, table);
                self.see_values(plan, window, place, from, table);
            }
            for first in (0..self.groups.layout().lanes().len()).step_by(GROUP_LANES) {
                self.add_lanes(first, from, count);
            }
        }
    }

    /// Adds rows whose keys don't fit a slot, or have doubled quotes, and takes them out. Returns what no key of the others is
    /// longer than.
    pub(super) fn fold_long(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        place: (u32, u64),
        table: &mut Table,
    ) -> usize {
        let rows = self.scratch.starts.len();
        let longest = self.longest_key(rows);
        if longest > KEY_MAX {
            let long = (0..rows).filter(|row| self.key_length(*row) > KEY_MAX);
            let long: Vec<u32> = long.map(|row| row as u32).collect();
            self.scratch.out.extend(long);
        }
        if self.may_be_doubled {
            let keys = std::mem::take(&mut self.only_keys);
            self.take_out_doubled(&keys);
            self.only_keys = keys;
        }
        self.scratch.out.sort_unstable();
        self.scratch.out.dedup();
        for at in 0..self.scratch.out.len() {
            let row = self.scratch.out[at] as usize;
            let mut key = std::mem::take(&mut self.scratch.key);
            self.key_of_row(plan, window, row, &mut key);
            let group = table.group(&key);
            self.scratch.key = key;
            for (at, of) in self.groups.plan().aggregates.iter().enumerate() {
                match of.served {
                    Served::Lanes(source) => {
                        let kept = source.map_or(Kept::of(Some(0), 0), |source| {
                            let source = &self.sources[source];
                            let value = source.column.numbers.values[row];
                            let value = (!source.column.numbers.is_null(row)).then_some(value);
                            Kept::of(value, source.column.scale.unwrap_or_default())
                        });
                        table.absorb(group, at, &kept);
                    }
                    Served::Shared => {}
                    Served::Values(column, source) => {
                        if let Some(value) = self.value(plan, window, place, (column, source), row)
                        {
                            table.update(group, at, &value);
                        }
                    }
                }
            }
        }
        self.remove_out(false, true);
        longest.min(KEY_MAX)
    }

    /// What no key of these rows is longer than, with the byte after it; found without a branch for each row.
    fn longest_key(&self, rows: usize) -> usize {
        let longest = |first: &KeyColumn, last: &KeyColumn| {
            let pairs = self.spans[first.at].iter().zip(&*self.spans[last.at]);
            let lengths = pairs
                .take(rows)
                .map(|(first, last)| raw_length(*first, *last));
            lengths.max().unwrap_or_default()
        };
        match &*self.keys {
            [one] if self.has_raw_keys => longest(one, one),
            [first, .., last] if self.has_raw_keys => longest(first, last),
            keys => {
                let parts = keys.iter().map(|key| match key.cut {
                    Some(cut) => {
                        let lengths = self.cuts[cut].texts[..rows].iter().map(ShortText::len);
                        1 + lengths.max().unwrap_or_default()
                    }
                    None => longest(key, key),
                });
                1 + parts.sum::<usize>()
            }
        }
    }

    /// Bytes of a row's key beside its lanes, with the one after it.
    pub(super) fn key_length(&self, row: usize) -> usize {
        let span = |key: &KeyColumn| self.spans[key.at][row];
        match &*self.keys {
            [first, .., last] if self.has_raw_keys => raw_length(span(first), span(last)),
            [one] if self.has_raw_keys => raw_length(span(one), span(one)),
            keys => {
                let parts = keys.iter().map(|key| match key.cut {
                    Some(cut) => 1 + self.cuts[cut].texts[row].len(),
                    None => raw_length(span(key), span(key)),
                });
                1 + parts.sum::<usize>()
            }
        }
    }

    /// The key of a row as the table has it.
    pub(super) fn key_of_row(
        &self,
        plan: &Plan,
        window: TextWindow<'_>,
        row: usize,
        to: &mut Vec<u8>,
    ) {
        to.clear();
        for key in &self.keys {
            match key.cut {
                Some(cut) => plan.push_key(to, self.cuts[cut].texts[row].bytes()),
                None => {
                    let text = text_of(&self.computed, self.first_computed, key.at, window);
                    let part = value(text, self.spans[key.at][row]);
                    let quote = self.marks.and_then(|marks| marks.quote);
                    let quote = quote.filter(|_| key.at < self.first_computed);
                    match quote.filter(|quote| part.contains(quote)) {
                        None => plan.push_key(to, part),
                        Some(quote) => {
                            let mut meant = Vec::new();
                            Escape::Doubled(quote).undo(part, &mut meant);
                            plan.push_key(to, &meant);
                        }
                    }
                }
            }
        }
        plan.end_key(to);
    }

    /// Finds the keys of a batch. Returns the column that they are spans of; without one they are spans of the composed keys.
    #[inline(never)]
    fn compose_keys(
        &mut self,
        window: TextWindow<'_>,
        from: usize,
        count: usize,
        longest: usize,
    ) -> Option<usize> {
        let Scratch {
            key_spans,
            composed,
            ..
        } = &mut self.scratch;
        key_spans.clear();
        match &*self.keys {
            [] => {
                composed[0] = 1;
                key_spans.resize(count, 1 << 16);
            }
            [one] if self.has_raw_keys => {
                key_spans.extend_from_slice(&self.spans[one.at][from..from + count]);
                return Some(one.at);
            }
            [first, .., last] if self.has_raw_keys => {
                let at = first.at;
                let first = &self.spans[first.at][from..from + count];
                let last = &self.spans[last.at][from..from + count];
                let pairs = first.iter().zip(last);
                key_spans.extend(pairs.map(|(first, last)| first & 0xffff | last & 0xffff_0000));
                return Some(at);
            }
            keys => {
                let rows = from..from + count;
                let parts = keys.iter().map(|key| match key.cut {
                    Some(cut) => KeyPart::Texts(&self.cuts[cut].texts[rows.clone()]),
                    None => {
                        let text = text_of(&self.computed, self.first_computed, key.at, window);
                        KeyPart::Spans(text, &self.spans[key.at][rows.clone()])
                    }
                });
                compose(count, longest, parts, composed, key_spans);
            }
        }
        None
    }

    /// Finds the groups of a batch's rows, whose numbers are in `lane`; new slots get those of theirs.
    pub(super) fn find_groups(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        from: usize,
        lane: usize,
        table: &mut Table,
    ) {
        let mut key = std::mem::take(&mut self.scratch.key);
        for fresh in 0..self.groups.slots.fresh().len() {
            let row = self.groups.slots.fresh()[fresh] as usize;
            self.key_of_row(plan, window, from + row, &mut key);
            self.groups.slots.lanes(row)[lane] = table.group(&key).number();
        }
        self.scratch.key = key;
        self.scratch.groups.clear();
        for row in 0..self.scratch.key_spans.len() {
            let group = Group::numbered(self.groups.slots.lanes(row)[lane]);
            self.scratch.groups.push(group);
        }
    }

    /// Adds a batch's rows to four lanes, the first of which is `first`.
    #[inline(never)]
    pub(super) fn add_lanes(&mut self, first: usize, from: usize, count: usize) {
        static ZEROS: [i64; BATCH] = [0; BATCH];
        static ONES: [i64; BATCH] = [1; BATCH];
        let lanes = &self.groups.layout().lanes()[first..];
        let mut values = [&ZEROS[..count]; GROUP_LANES];
        let places = values.iter_mut().zip(&mut *self.scratch.added);
        for (lane, (values, added)) in lanes.iter().zip(places) {
            let Some(source) = lane.column() else {
                if *lane == Lane::Rows {
                    *values = &ONES[..count];
                }
                continue;
            };
            let numbers = &self.sources[source].column.numbers;
            let column = &numbers.values[from..from + count];
            *values = match lane {
                Lane::Sum(_) => column,
                _ => {
                    let to = &mut added[..count];
                    match numbers.has_nulls {
                        true => lane.fill(column, |row| numbers.is_null(from + row), to),
                        false => lane.fill(column, |_| false, to),
                    }
                    to
                }
            };
        }
        let additions = self.groups.layout().additions(first);
        self.groups.slots.add(first, values, additions);
    }
}

/// Bytes from the start of one span to the end of another, with the byte after it.
fn raw_length(first: u32, last: u32) -> usize {
    (last >> 16) as usize - (first & 0xffff) as usize
}
