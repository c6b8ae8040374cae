//! The job: folds blocks into groups as a plan says.
//!
//! Where a record's quotes can't be understood, the line of the quote that opens ends it, and the next record begins
//! behind that line. Engines cut by the framing, which knows nothing of that. So a block may end within a record as it is
//! read then. The run is given up in that case, and `in_order` reads the input again.

use std::sync::Arc;

use ringfold_read::internals::{Cut, lines::Counted, nuls};
use ringfold_read::{
    Block, BlockError, Delimited, Error, Fold, Framing, Kind as ErrorKind, Malformed, Refusal,
    Result,
};

use crate::answer::Answer;
use crate::answer::columns::AnswerColumns;
use crate::budget::Share;
use crate::format::dialect::mark_len;
use crate::format::repeats::Occurrences;
use crate::partial::chain::Extremes;
use crate::plan::Plan;
use crate::refusal::{self, Hint};
use crate::reject::rejects::Rejected;
use crate::reject::unread::Unread;
use crate::run::one_by_one::{End, Text};
use crate::run::partial::{Doubted, Partial, Scratch};
use crate::run::passes::Passes;
use crate::run::rest::Rest;
use crate::scan::index::WINDOW;
use crate::table::groups::Groups;
use crate::table::lane_rows::LaneRows;
use crate::table::shared::SharedGroups;
use crate::table::states::Table;

#[cfg(test)]
mod tests;

/// After so many bytes of a block its worker looks at what groups take of the budget.
const LOOK_BYTES: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

impl Plan {
    /// The error of a record, as a run that isn't in order reports it.
    fn explained(&self, error: Error, rejected: Rejected) -> Error {
        let Some(most) = self.rejecting.exceeded() else {
            return match error.refusal() {
                Some(&Refusal::Exceeded {
                    max_record,
                    has_nuls: true,
                }) if !self.dialect.has_zeros() => error.because(nuls::endless(max_record)),
                _ => error,
            };
        };
        // Which record was one too many depends on the order of blocks.
        let (first, _) = rejected.finish(&self.rejecting, |_| ());
        match first {
            Some(first) if (first.file, first.bytes.start) <= error.place() => {
                let name = &self.files[first.file as usize];
                let before = format!("more than {most} records are malformed, this one first: ");
                let found = Error::new(ErrorKind::Data, refusal::after(&before, first.cause))
                    .in_file(first.file, name)
                    .at_bytes(first.bytes);
                match first.line {
                    Some(line) => found.at_line(line),
                    None => found,
                }
            }
            _ => error,
        }
    }

    /// Whether a run that failed may not do so in order.
    pub(super) fn is_for_order(&self, error: &Error, partials: &[Partial]) -> bool {
        // The order begins with a file, or a record that is known.
        if self.part.is_some() {
            return false;
        }
        let is_cut = partials.iter().any(|partial| partial.is_cut);
        let is_long = matches!(error.refusal(), Some(Refusal::Exceeded { .. }));
        is_cut || is_long && self.framing.is_stateful()
    }

    /// What a run ends with that failed.
    pub(super) fn failure(&self, error: Error, partials: Vec<Partial>) -> Error {
        let mut rejected = Rejected::default();
        for partial in partials {
            rejected.merge(partial.rejected);
        }
        self.doubted(self.explained(error, rejected))
    }

    /// Adds a block that any engine has cut.
    fn any_block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        let (bytes, offset) = (block.bytes(), block.offset());
        let mark = match offset {
            0 => mark_len(bytes),
            _ => 0,
        };
        // Lines before it are no records.
        let begin = self.begins.get(block.file() as usize).map_or(0, |&at| at);
        let before = usize::try_from(begin.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut at = mark.max(before);
        if at >= bytes.len() {
            return Ok(());
        }
        let text = Text {
            block: *block,
            end: End::Block,
        };
        let is_header = self.has_header && begin >= offset;
        if let Some(cut) = block.cut() {
            let is_comment = self.dialect.after_comment(bytes, at).is_some();
            // What the limit is about begins with the block.
            let start = if at == mark { 0 } else { at };
            let record = start..bytes.len() - 1;
            return match is_comment {
                true => Ok(()),
                false if is_header => {
                    Err(Malformed::too_long(&bytes[record], start, cut, false).into())
                }
                false => self.reject_long(partial, &text, record),
            };
        }
        if is_header {
            match self.header(partial, &text, at)? {
                Some(behind) => at = behind,
                None => return Err(self.cut(partial, at)),
            }
        }
        if let Some(mut passes) = partial.passes.take() {
            let done = self.windows(partial, &mut passes, &text, at);
            partial.passes = Some(passes);
            return done;
        }
        while at < bytes.len() {
            let until = at.saturating_add(LOOK_BYTES).min(bytes.len());
            at = self.records(partial, &text, at, until)?;
            if at < until {
                return Err(self.cut(partial, at));
            }
            self.enforce_budget(partial, None)?;
        }
        Ok(())
    }

    /// Adds the records of a block from `at` on.
    fn windows(
        &self,
        partial: &mut Partial,
        passes: &mut Passes,
        text: &Text<'_>,
        mut at: usize,
    ) -> Result<(), BlockError> {
        let mut rest = Rest {
            plan: self,
            partial,
            text,
        };
        let mut next_look = at + LOOK_BYTES;
        let bytes = text.block.bytes();
        let repeats = self.repeats.as_ref();
        let repeats = repeats.map(|repeats| repeats.places(bytes, at..bytes.len()));
        let mut repeats = repeats.unwrap_or_default().into_iter().peekable();
        while at < bytes.len() {
            while repeats.next_if(|place| *place < at).is_some() {}
            let ahead = &bytes[at..bytes.len().min(at + WINDOW)];
            let repeat = repeats.peek().filter(|place| **place < at + WINDOW);
            at = if let Some(place) = repeat {
                rest.add(at, place + 1)?
            } else if let Some(next) = passes.add_pairs(at, &mut rest)? {
                // Nowhere are so many NULs side by side as in a hole: a key would be too long.
                next
            } else if let Some(run) = nuls::run(ahead) {
                rest.add(at, at + run.end)?
            } else {
                passes.window(at, &mut rest)?
            };
            if at >= next_look {
                self.enforce_budget(rest.partial, Some(passes))?;
                next_look = at + LOOK_BYTES;
            }
        }
        Ok(())
    }

    /// # Errors
    /// A list of values is too long.
    pub(super) fn answer_in_memory(&self, total: &mut Partial) -> Result<Answer> {
        let (lanes, mut table) = self.take_groups(total);
        let lanes = LaneRows::merge(lanes, total.shared.drain(), true, &mut table);
        if self.keys.is_empty() && lanes.as_ref().is_none_or(LaneRows::is_empty) {
            // One group, also of nothing.
            let mut key = Vec::new();
            self.end_key(&mut key);
            table.group(&key);
        }
        let groups = Groups::new(table, lanes);
        if !self.has_values() {
            return self.chosen(self.answer(total, groups));
        }
        let settled = (self.stored_form()).settle(&groups, &self.scales(total));
        let settled = settled.map_err(|lost| lost.error(&self.budget))?;
        self.chosen(self.answer(total, settled).with_all(groups))
    }

    /// An answer with the rows that are asked for.
    pub(super) fn chosen(&self, mut answer: Answer) -> Result<Answer> {
        answer.choose(self.fill.as_ref(), self.having.as_ref())?;
        Ok(answer)
    }

    pub(super) fn answer(&self, total: &Partial, groups: Groups) -> Answer {
        let columns = AnswerColumns::of(self, self.scales(total));
        let answer = Answer::new(self.names.clone(), columns, groups);
        answer.of_form(self.stored_form())
    }

    /// Gives the run up.
    pub(super) fn cut(&self, partial: &mut Partial, at: usize) -> BlockError {
        partial.is_cut = true;
        let why = "the quote that opens in this record isn't closed where it seemed to be";
        // Only a part isn't read again.
        let hint = self.part.is_some().then_some(Hint::SingleLine);
        self.misquoted(at..at + 1, why.into(), hint).into()
    }
}

impl Plan {
    /// A partial that may share these groups with others.
    fn partial_of(&self, shared: &Arc<SharedGroups>) -> Partial {
        shared.add_partial();
        Partial {
            table: Table::new(
                &self.hasher,
                &self.slots(),
                self.budget.cancellation.clone(),
            ),
            tables: Vec::new(),
            merged: Vec::new(),
            shared: Arc::clone(shared),
            drained: Vec::new(),
            key_sharers: 0,
            lane_groups: 0,
            table_bytes: 0,
            share: Share::new(&self.budget),
            runs: Vec::new(),
            spilled_bytes: 0,
            answer: None,
            scales: vec![0; self.numbers.len()],
            rows: 0,
            filtered: 0,
            empty_lines: 0,
            nulled: Unread::default(),
            unmatched: self.lookups.iter().map(|_| Unread::default()).collect(),
            doubted: Doubted::default(),
            is_taken: false,
            repeated: Occurrences::default(),
            longer: Occurrences::default(),
            local_times: Occurrences::default(),
            rejected: Rejected::default(),
            extremes: Extremes::default(),
            is_cut: false,
            reading: None,
            scratch: Scratch::default(),
            passes: (!self.in_order())
                .then(|| Passes::new(self, shared).map(Box::new))
                .flatten(),
        }
    }
}

impl Fold for Plan {
    type Partial = Partial;
    type Output = Answer;

    fn partial(&self) -> Partial {
        self.partials()()
    }

    fn partials(&self) -> impl Fn() -> Partial + Sync {
        let shared = Arc::new(SharedGroups::new(&self.budget));
        move || self.partial_of(&shared)
    }

    fn framing(&self) -> &dyn Framing {
        match self.in_order() {
            true => &Delimited::NEWLINE,
            false => &*self.framing,
        }
    }

    fn cut_reach(&self) -> Option<u64> {
        Some(Cut::reach(!self.rejecting.leaves_out()))
    }

    fn in_order(&self) -> bool {
        self.order.is_wanted()
    }

    fn block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        if self.in_order() {
            self.next_block(partial, block)?;
        } else {
            if self.part.is_some() {
                let first = self.first_span();
                partial.extremes.add(block, &*self.framing, first);
            }
            let done = self.any_block(partial, block);
            let len = block.bytes().len();
            partial.rejected.end_block(&self.rejecting, block, len);
            done?;
        }
        let mut passes = partial.passes.take();
        let done = self.enforce_budget(partial, passes.as_deref_mut());
        partial.passes = passes;
        Ok(done?)
    }

    fn complete(&self, total: &mut Partial) -> Result<()> {
        let done = self.end_of_file(total);
        done.map_err(|error| self.explained(error, std::mem::take(&mut total.rejected)))?;
        total.key_sharers = total.shared.sharers();
        self.merge_spilled(total)
    }

    fn failed(&self, error: Error, partials: Vec<Partial>) -> Result<()> {
        if self.is_for_order(&error, &partials) && self.order.want() {
            self.rejecting.restart();
            return Ok(());
        }
        Err(self.failure(error, partials))
    }

    fn merge(&self, into: &mut Partial, mut from: Partial) {
        rayon::join(|| self.settle(into), || self.settle(&mut from));
        self.gather_lanes(&mut from);
        // Texts are twice in memory for a while.
        let bytes = (into.table.bytes() + from.table.bytes()) as u64;
        if self.budget.has_room(bytes / 2 * 3) {
            into.table.merge(from.table);
        } else {
            into.tables.push(from.table);
        }
        into.tables.append(&mut from.tables);
        into.runs.append(&mut from.runs);
        into.spilled_bytes += from.spilled_bytes;
        into.merged.append(&mut from.merged);
        into.drained.append(&mut from.drained);
        if !Arc::ptr_eq(&into.shared, &from.shared) && from.shared.holds_keys() {
            into.drained.push(from.shared.drain());
        }
        for (most, scale) in into.scales.iter_mut().zip(from.scales) {
            *most = scale.max(*most);
        }
        into.rows += from.rows;
        into.filtered += from.filtered;
        into.empty_lines += from.empty_lines;
        into.nulled.merge(from.nulled);
        let unmatched = into.unmatched.iter_mut().zip(from.unmatched);
        unmatched.for_each(|(into, from)| into.merge(from));
        into.doubted.unread.merge(from.doubted.unread);
        into.doubted.bytewise.merge(from.doubted.bytewise);
        into.repeated.merge(from.repeated);
        into.longer.merge(from.longer);
        into.local_times.merge(from.local_times);
        into.rejected.merge(from.rejected);
        into.extremes.merge(from.extremes);
        into.is_cut |= from.is_cut;
        into.reading = into.reading.take().or(from.reading);
    }

    fn finish(&self, mut total: Partial) -> Answer {
        let made = total
            .answer
            .take()
            .map_or_else(|| self.answer_in_memory(&mut total), Ok);
        let mut answer = made.expect("a run that is complete has what may fail");
        answer.extremes = total.extremes;
        answer.spilled_bytes = total.spilled_bytes;
        answer.key_sharers = total.key_sharers;
        answer.rows = total.rows;
        answer.filtered = total.filtered;
        answer.empty_lines = total.empty_lines;
        answer.skipped = total.rejected.count;
        let see = |lines: &Counted| {
            answer.repeated_headers = total.repeated.finish(lines);
            answer.longer = total.longer.finish(lines);
            answer.local_times = total.local_times.finish(lines);
            (answer.nulled, answer.first_nulled) = total.nulled.finish(lines);
            let unmatched = total.unmatched.into_iter();
            answer.unmatched = unmatched.map(|unread| unread.finish(lines)).collect();
            (answer.unread, answer.first_unread) = total.doubted.unread.finish(lines);
            (answer.bytewise, answer.first_bytewise) = total.doubted.bytewise.finish(lines);
        };
        let (first, rejects) = total.rejected.finish(&self.rejecting, see);
        (answer.first_skipped, answer.rejects) = (first, rejects);
        answer
    }
}
