//! Which records of a window are rows, and where the values of their columns stand.

use crate::expression::tree::Test;
use crate::expression::{Condition, Doubts};
use crate::format::dialect::Marks;
use crate::plan::Plan;
use crate::run::passes::computed::{Row, Rows};
use crate::run::passes::{Passes, Scratch};
use crate::run::rest::Rest;
use crate::scan::index::TextWindow;
use crate::scan::lines::Lines;
use crate::scan::numbers::Numbers;
use crate::scan::spans::{RecordStarts, is_empty, spans, strip_quotes, strip_returns, value};

impl Passes {
    /// Lists rows and their values as the dialect splits them; returns where the last record ends.
    #[inline(never)]
    pub(super) fn lines(&mut self, plan: &Plan, window: TextWindow<'_>) -> usize {
        let lists = &mut self.scratch;
        lists.out.clear();
        lists.others.clear();
        lists.starts.clear();
        if let Some(lines) = &mut self.log_lines {
            let (starts, others) = (&mut lists.starts, &mut lists.others);
            return lines.read(self.level, window, &mut self.spans, starts, others);
        }
        let mut lines = Lines {
            dialect: &plan.dialect,
            width: self.fields,
            columns: &self.columns[..self.first_computed],
            fields: &mut self.fields_of_line,
            spans: &mut self.spans,
        };
        lines.read(window, &mut lists.starts, &mut lists.others)
    }

    /// Lists where rows begin, and where records that are none. Returns whether there is none of these, and where the
    /// last record ends.
    #[inline(never)]
    pub(super) fn list(&mut self, window: TextWindow<'_>) -> (bool, usize) {
        let lists = &mut self.scratch;
        lists.out.clear();
        lists.others.clear();
        let regular = (self.index).regular_starts(window, self.fields, &mut lists.starts);
        if let Some(end) = regular {
            return (true, end);
        }
        let ends = self.index.ends();
        self.index.last_ends(self.level, &mut lists.last_ends);
        lists.starts.clear();
        lists.firsts.clear();
        let mut first = 0;
        for &last in &lists.last_ends {
            let start = u32::from(ends[usize::from(first)]);
            if usize::from(last - first) == self.fields {
                lists.firsts.push(first);
                lists.starts.push(start);
            } else {
                lists.others.push(start);
            }
            first = last;
        }
        (false, usize::from(ends[usize::from(first)]))
    }

    /// Lists which end is before the first field of each row, where all records are rows.
    pub(super) fn list_firsts(&mut self) {
        let Scratch { firsts, starts, .. } = &mut self.scratch;
        firsts.clear();
        firsts.extend((0..starts.len()).map(|row| (row * self.fields) as u16));
    }

    /// Where the values of those columns stand that a condition tests, or of the others, if it isn't known yet. Takes out
    /// rows that passes can't add because of these.
    pub(super) fn columns(&mut self, window: TextWindow<'_>, are_tested: bool, is_regular: bool) {
        let Some(marks) = self.marks else {
            return;
        };
        let all = std::mem::take(self.tested_or_not(are_tested));
        // Those that are computed come after them.
        let of_input = all.partition_point(|&at| at < self.first_computed);
        let columns = &all[..of_input];
        let mut has_quoted = false;
        for &column in columns {
            has_quoted |= self.column(window, marks, column, is_regular);
        }
        if self.fields == 1 && !columns.is_empty() {
            self.take_out_empty();
        }
        // Doubled quotes stand in quoted values. Those of keys are undone later.
        self.may_be_doubled = has_quoted;
        if has_quoted {
            let only_keys = &self.only_keys;
            let columns = columns.iter().filter(|at| !only_keys.contains(at));
            let columns: Vec<usize> = columns.copied().collect();
            self.take_out_doubled(&columns);
        }
        *self.tested_or_not(are_tested) = all;
    }

    fn tested_or_not(&mut self, are_tested: bool) -> &mut Vec<usize> {
        match are_tested {
            true => &mut self.tested,
            false => &mut self.untested,
        }
    }

    /// Where the values of a column stand. Says whether some are quoted.
    #[inline(never)]
    pub(super) fn column(
        &mut self,
        window: TextWindow<'_>,
        marks: Marks,
        column: usize,
        is_regular: bool,
    ) -> bool {
        let records = match is_regular {
            true => RecordStarts::Every(self.fields),
            false => RecordStarts::Listed(&self.scratch.firsts),
        };
        let rows = self.scratch.starts.len();
        let list = &mut self.spans[column][..rows];
        spans(self.index.ends(), records, self.columns[column], list);
        if self.columns[column] + 1 == self.fields {
            strip_returns(window, list);
        }
        let quote = marks.quote.filter(|_| self.index.has_quotes);
        let has_quoted = quote.is_some_and(|quote| strip_quotes(window, quote, list));
        self.spans[column][rows..rows + 8].fill(0);
        has_quoted
    }

    /// Takes out empty lines.
    pub(super) fn take_out_empty(&mut self) {
        let lines = (0..).zip(&self.spans[0][..self.scratch.starts.len()]);
        let empty = lines.filter(|(_, span)| is_empty(**span));
        self.scratch.out.extend(empty.map(|(row, _)| row));
    }

    /// Takes out rows with doubled quotes in a value of these columns.
    #[inline(never)]
    pub(super) fn take_out_doubled(&mut self, columns: &[usize]) {
        let Scratch { starts, out, .. } = &mut self.scratch;
        let mut row = 0;
        for quote in self.index.doubled() {
            while starts.get(row + 1).is_some_and(|&next| next <= quote) {
                row += 1;
            }
            let has_it = |spans: &[u32]| spans[row] & 0xffff <= quote && quote < spans[row] >> 16;
            let mut spans = columns.iter().map(|&column| &self.spans[column]);
            if row < starts.len() && spans.any(|spans| has_it(spans)) {
                out.push(row as u32);
            }
        }
    }

    /// The rows of the window as they are now.
    pub(super) fn rows<'a>(&'a self, plan: &'a Plan, window: TextWindow<'a>) -> Rows<'a> {
        Rows {
            plan,
            window,
            count: self.scratch.starts.len(),
            columns: &self.columns,
            spans: &self.spans,
            computed: &self.computed,
            first_computed: self.first_computed,
        }
    }

    /// Counts the rows that tables have no row for: tables that a condition looks at, or the others.
    pub(super) fn unmatched(
        &self,
        plan: &Plan,
        (window, at): (TextWindow<'_>, usize),
        by_condition: bool,
        rest: &mut Rest<'_>,
    ) {
        let rows = self.rows(plan, window);
        for (table, lookup, column) in plan.used_lookups(by_condition) {
            let spans = &rows.values(column).1[..rows.count];
            let empty = spans
                .iter()
                .enumerate()
                .filter(|(_, span)| is_empty(**span));
            let records = empty.map(|(row, _)| Row { rows: &rows, row });
            let mut unmatched = records.filter(|row| lookup.is_unmatched(row));
            if let Some(first) = unmatched.next() {
                let start = at + self.scratch.starts[first.row] as usize;
                let count = 1 + unmatched.count() as u64;
                let cause = || lookup.unmatched_cause(&first);
                let met = rest.met(at, start);
                let partial = &mut *rest.partial;
                partial.unmatched[table].add(count, met, &mut partial.rejected, cause);
            }
        }
    }

    /// Keeps only the rows that a condition takes; returns how many the others are.
    #[inline(never)]
    pub(super) fn filter(
        &mut self,
        plan: &Plan,
        filter: &Condition,
        (window, at): (TextWindow<'_>, usize),
        rest: &mut Rest<'_>,
    ) -> usize {
        let starts = &mut self.scratch.starts;
        let rows = Rows {
            plan,
            window,
            count: starts.len(),
            columns: &self.columns,
            spans: &self.spans,
            computed: &self.computed,
            first_computed: self.first_computed,
        };
        let mut doubts = Doubts::default();
        let taken = self.selection.select(plan, filter, &rows, &mut doubts);
        for reading in doubts.readings() {
            let mut doubts = Doubts::of(reading);
            let otherwise = self.selection.select(plan, filter, &rows, &mut doubts);
            let bits = taken.iter().zip(&otherwise);
            let differ: Vec<u64> = bits.map(|(one, other)| one ^ other).collect();
            let Some(word) = differ.iter().position(|bits| *bits != 0) else {
                continue;
            };
            let row = 64 * word + differ[word].trailing_zeros() as usize;
            let count = differ.iter().map(|bits| u64::from(bits.count_ones())).sum();
            let text = |test: &Test| {
                let of = |column: usize| {
                    let (window, spans) = rows.values(column);
                    value(window, spans[row])
                };
                Ok(match test.clock {
                    None => of(test.column).to_vec(),
                    Some(clock) => {
                        let parts = [of(test.column), of(clock)];
                        plan.joined_parts(parts, &mut Vec::new()).to_vec()
                    }
                })
            };
            let met = rest.met(at, at + starts[row] as usize);
            let partial = &mut *rest.partial;
            let doubted = partial.doubted.of(reading);
            doubted.add(count, met, &mut partial.rejected, || {
                plan.doubtful(filter, reading, text)
            });
        }
        for (column, spans) in self.spans.iter_mut().enumerate() {
            // By an index the others aren't known yet.
            if self.marks.is_none() || self.tested.contains(&column) {
                let kept = keep(&taken, spans);
                spans[kept..kept + 8].fill(0);
            }
        }
        let (sources, untested) = (&self.sources, &self.untested);
        // What is computed later may test these numbers.
        let is_last = (untested.last()).is_none_or(|&at| at < self.first_computed);
        for (place, column) in self.computed.iter_mut().enumerate() {
            let at = self.first_computed + place;
            let is_needed = !is_last || sources.iter().any(|source| source.column.at == at);
            if let Some(numbers) = column.numbers_mut().filter(|_| is_needed) {
                keep_numbers(&taken, numbers);
            }
        }
        if self.marks.is_some() {
            let kept = keep(&taken, &mut self.scratch.firsts);
            self.scratch.firsts.truncate(kept);
        }
        let before = starts.len();
        let count = keep(&taken, starts);
        starts.truncate(count);
        before - count
    }

    /// Removes the rows that were taken out from all lists; they are added one by one if `to_others`. Numbers are among
    /// the lists if `has_numbers`.
    pub(super) fn remove_out(&mut self, to_others: bool, has_numbers: bool) {
        let lists = &mut self.scratch;
        if lists.out.is_empty() {
            return;
        }
        lists.out.sort_unstable();
        lists.out.dedup();
        let out = &lists.out;
        if to_others {
            let starts = out.iter().map(|&row| lists.starts[row as usize]);
            lists.others.extend(starts);
        }
        let rows = lists.starts.len();
        for spans in &mut self.spans {
            keep_others(out, rows, |from, to| spans[to] = spans[from]);
            spans[rows - out.len()..][..8].fill(0);
        }
        let sources = self.sources.iter_mut().filter(|_| has_numbers);
        let sources = sources.map(|source| &mut source.column.numbers);
        let computed = self
            .computed
            .iter_mut()
            .filter_map(|column| column.numbers_mut());
        for numbers in sources.chain(computed) {
            let has_nulls = numbers.has_nulls;
            keep_others(out, rows, |from, to| {
                numbers.values[to] = numbers.values[from];
                if has_nulls {
                    let is_null = numbers.is_null(from);
                    numbers.set_null(to, is_null);
                }
            });
        }
        for cut in self.cuts.iter_mut().filter(|_| has_numbers) {
            keep_others(out, rows, |from, to| cut.texts[to] = cut.texts[from]);
        }
        let (starts, firsts) = (&mut lists.starts, &mut lists.firsts);
        keep_others(out, rows, |from, to| starts[to] = starts[from]);
        if firsts.len() == rows {
            keep_others(out, rows, |from, to| firsts[to] = firsts[from]);
            firsts.truncate(rows - out.len());
        }
        starts.truncate(rows - out.len());
        lists.out.clear();
    }
}

/// Keeps the values whose bits are set, at the list's start; returns how many they are.
fn keep<T: Copy>(bits: &[u64], list: &mut [T]) -> usize {
    let mut kept = 0;
    for (word, &bits) in bits.iter().enumerate() {
        let mut left = bits;
        while left != 0 {
            list[kept] = list[64 * word + left.trailing_zeros() as usize];
            kept += 1;
            left &= left - 1;
        }
    }
    kept
}

/// The same of numbers.
fn keep_numbers(bits: &[u64], numbers: &mut Numbers) {
    if numbers.has_nulls {
        let mut kept = 0;
        for row in 0..64 * bits.len() {
            if bits[row / 64] >> (row % 64) & 1 == 1 {
                let is_null = numbers.is_null(row);
                numbers.set_null(kept, is_null);
                kept += 1;
            }
        }
    }
    keep(bits, &mut numbers.values);
}

/// Calls `copy` for each of `rows` that isn't `out`, with its place and its new one.
fn keep_others(out: &[u32], rows: usize, mut copy: impl FnMut(usize, usize)) {
    let mut to = out[0] as usize;
    for (removed, &row) in out.iter().enumerate() {
        let next = out.get(removed + 1).map_or(rows, |&next| next as usize);
        for from in row as usize + 1..next {
            copy(from, to);
            to += 1;
        }
    }
}
