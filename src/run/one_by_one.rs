//! Adds records one by one: those that the passes leave, and all where there are no passes. It says what is wrong with
//! malformed ones, and leaves them out where that is asked for.

use std::ops::Range;

use memchr::{memchr, memmem};
use ringfold_read::internals::{Cut, foreign, nuls};
use ringfold_read::{Block, BlockError, Cause, Malformed, Refusal, Result};

use crate::aggregate::state::Value;
use crate::decimal::number::{Number, shown};
use crate::expression::formula::tested;
use crate::expression::tree::Test;
use crate::expression::value::{Record, Value as Computable};
use crate::format::dialect::{BYTE_ORDER_MARK, last_multiline, unreadable};
use crate::format::field::{Field, Unreadable, names_of};
use crate::format::pair_hint;
use crate::format::repeats::{Occurrences, Repeats};
use crate::format::time::{Cutter, read_in};
use crate::plan::computed::{Computed, Fields};
use crate::plan::head::unclosed;
use crate::plan::zoned::TimeSource;
use crate::plan::{Plan, Shape, hinted};
use crate::refusal::Hint;
use crate::reject::rejects::{Met, OnError, Rejected};
use crate::run::partial::{Partial, Scratch};

/// Values of a record that are taken for none.
struct Nulled {
    /// Otherwise there may be none.
    is_lenient: bool,
    count: u64,
    /// The columns that have them: each is counted once.
    columns: Vec<usize>,
    /// Why the first one is.
    first: Option<Cause>,
}

impl Nulled {
    /// Adds a column's value, or one that is computed of several.
    ///
    /// # Errors
    /// There may be none.
    fn add(&mut self, column: Option<usize>, why: impl FnOnce() -> Cause) -> Result<(), Cause> {
        if !self.is_lenient {
            return Err(why());
        }
        if column.is_some_and(|column| self.columns.contains(&column)) {
            return Ok(());
        }
        self.columns.extend(column);
        self.count += 1;
        self.first.get_or_insert_with(why);
        Ok(())
    }
}

/// Whether a record has a time without an offset there, and none before it is known.
fn lack_offset(
    sources: &[TimeSource],
    record: &Fields<'_>,
    place: (u32, u64),
    known: &Occurrences,
) -> bool {
    known.first.is_none_or(|first| place < first)
        && sources.iter().any(|source| source.lacks_offset(record))
}

impl Plan {
    /// The record at `at` of a block, of which all records before `done` are done.
    pub(super) fn met<'a>(&'a self, block: &Block<'a>, done: usize, at: usize) -> Met<'a> {
        Met {
            rejecting: &self.rejecting,
            block: *block,
            done,
            at,
        }
    }

    /// Adds the record whose fields were split; nothing is added when the condition isn't true of it or it is malformed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn add(
        &self,
        partial: &mut Partial,
        shape: &Shape,
        block: &Block<'_>,
        at: usize,
    ) -> Result<(), Cause> {
        let bytes = block.bytes();
        let met = self.met(block, at, at);
        let place = met.place();
        let Scratch {
            fields,
            numbers,
            key,
            value: scratch,
            joined,
            cutters,
            texts,
        } = &mut partial.scratch;
        if fields.len() != shape.width {
            if !self.is_ragged {
                return Err(self.mismatch(shape, fields, bytes));
            }
            fields.resize(shape.width, Field::EMPTY);
        }
        let record = Fields {
            plan: self,
            fields,
            bytes,
            has_numbers: false,
        };
        let mut note_unmatched = |by_condition: bool, rejected: &mut Rejected| {
            for (table, lookup, _) in self.used_lookups(by_condition) {
                if lookup.is_unmatched(&record) {
                    let cause = || lookup.unmatched_cause(&record);
                    partial.unmatched[table].add(1, met, rejected, cause);
                }
            }
        };
        if !partial.is_taken {
            note_unmatched(true, &mut partial.rejected);
        }
        let (is_taken, otherwise) = self.takes(&record);
        for reading in otherwise.into_iter().filter(|_| !partial.is_taken) {
            let value = |test: &Test| {
                let mut text = Vec::new();
                // What has no text has been computed all the same.
                let _ = tested(test, &record)?.write(&mut text);
                Ok(text)
            };
            let filter = self.filter.as_ref().expect("it was decided");
            let doubted = partial.doubted.of(reading);
            doubted.add(1, met, &mut partial.rejected, || {
                self.doubtful(filter, reading, value)
            });
        }
        if lack_offset(&self.zoned.tested, &record, place, &partial.local_times) {
            partial.local_times.add(1, met, &mut partial.rejected);
        }
        if !is_taken {
            partial.filtered += 1;
            return Ok(());
        }
        numbers.clear();
        let mut nulled = Nulled {
            is_lenient: self.rejecting.on_error == OnError::Null,
            count: 0,
            columns: Vec::new(),
            first: None,
        };
        // What the rest is computed of: no texts where numbers are wanted.
        let own = Fields {
            has_numbers: true,
            ..record
        };
        for &column in &self.numbers {
            if let Some(computed) = self.computed(column) {
                let number = match computed.lookup() {
                    None => computed.formula.stored_number(&own),
                    Some(_) => self.number_in(column, &record),
                };
                let number = match number {
                    Ok(number) => number,
                    Err(why) => {
                        let cause = || self.unread_cause(column, &why, Some(&record));
                        nulled.add(why.column, cause)?;
                        None
                    }
                };
                numbers.push(number);
                continue;
            }
            let value = fields[column].value(bytes, scratch);
            let number = match self.is_null(value) {
                true => None,
                false => match self.read_number(value) {
                    Ok(number) => Some(number),
                    Err(why) if !nulled.is_lenient && self.begins_quoted(value) => {
                        let why = format!("{why} (column {})", self.column_name(column));
                        return Err(hinted(why, Hint::Trim));
                    }
                    Err(why) => {
                        nulled.add(Some(column), || self.value_cause(value, column, &why))?;
                        None
                    }
                },
            };
            numbers.push(number);
        }
        for &column in &self.times {
            let value = match record.value(column) {
                Ok(Computable::Text(value)) => value,
                Ok(_) => continue,
                Err(why) => {
                    let cause = || self.unread_cause(column, &why, Some(&record));
                    nulled.add(why.column, cause)?;
                    continue;
                }
            };
            if let Err(why) = read_in(&value, self.time_zones.local()) {
                let why = self.no_time(&value, column, &why.why(&value))?;
                nulled.add(Some(column), || self.value_cause(&value, column, &why))?;
            }
        }
        for (most, number) in partial.scales.iter_mut().zip(&*numbers) {
            *most = number.map_or(*most, |number| number.decimals().max(*most));
        }
        key.clear();
        texts.resize_with(self.aggregates.len(), Vec::new);
        cutters.resize_with(self.keys.len(), Cutter::default);
        for ((&column, cut), cutter) in self.keys.iter().zip(&self.cuts).zip(cutters) {
            let clock = cut.and_then(|cut| cut.clock);
            if let Some(computed) = self.computed(column) {
                joined.clear();
                if !self.is_no_number(column, numbers) {
                    self.write_computed(column, computed, &own, &mut nulled, joined)?;
                }
                self.push_key(key, joined);
                continue;
            }
            let value = match clock {
                None => fields[column].value(bytes, scratch),
                Some(clock) => self.joined([column, clock], fields, bytes, scratch, joined),
            };
            match cut {
                None if self.is_no_number(column, numbers) => self.push_key(key, b""),
                Some(cut) if !self.is_null(value) => match cutter.cut(cut.unit, value) {
                    Ok(time) => self.push_key(key, time.bytes()),
                    Err(why) => {
                        let why = self.no_time(value, column, &why.why(value))?;
                        nulled.add(Some(column), || self.value_cause(value, column, &why))?;
                        self.push_key(key, b"");
                    }
                },
                _ => self.push_key(key, value),
            }
        }
        self.end_key(key);
        // All that may be malformed is known before anything is added.
        for (at, aggregate) in self.aggregates.iter().enumerate() {
            if let (Some(column), None) = (aggregate.column, aggregate.number)
                && let Some(computed) = self.computed(column)
            {
                texts[at].clear();
                if !self.is_no_number(column, numbers) {
                    self.write_computed(column, computed, &own, &mut nulled, &mut texts[at])?;
                }
            }
        }
        note_unmatched(false, &mut partial.rejected);
        let group = partial.table.group(key);
        let aggregates = self.aggregates.iter().enumerate();
        for (at, aggregate) in aggregates.filter(|(at, of)| of.owner == *at) {
            let (value, number) = match (aggregate.column, aggregate.number) {
                (_, Some(number)) => match numbers[number] {
                    Some(number) => (&b""[..], number),
                    None => continue,
                },
                (Some(column), None) if self.computed(column).is_some() => match &*texts[at] {
                    null if self.is_null(null) => continue,
                    value => (value, Number::ZERO),
                },
                (Some(column), None) if self.is_no_number(column, numbers) => continue,
                (Some(column), None) => match fields[column].value(bytes, scratch) {
                    null if self.is_null(null) => continue,
                    value => (value, Number::ZERO),
                },
                (None, None) => (&b""[..], Number::ZERO),
            };
            let value = Value {
                bytes: value,
                number,
                hash_key: &self.hash_key,
                grammar: self.grammar,
                zone: self.time_zones.local(),
                place,
            };
            partial.table.update(group, at, &value);
        }
        partial.rows += 1;
        if lack_offset(&self.zoned.added, &record, place, &partial.local_times) {
            partial.local_times.add(1, met, &mut partial.rejected);
        }
        if let Some(why) = nulled.first {
            let nulled = nulled.count;
            (partial.nulled).add(nulled, met, &mut partial.rejected, || why);
        }
        Ok(())
    }

    /// Writes what a computed column has of a record to an empty text.
    ///
    /// # Errors
    /// It can't be computed.
    fn write_computed(
        &self,
        column: usize,
        computed: &Computed,
        record: &Fields<'_>,
        nulled: &mut Nulled,
        to: &mut Vec<u8>,
    ) -> Result<(), Cause> {
        computed.formula.write(record, to).or_else(|why| {
            to.clear();
            nulled.add(why.column, || self.unread_cause(column, &why, Some(record)))
        })
    }

    /// Says why a value that isn't a time counts as null.
    ///
    /// # Errors
    /// It doesn't: its record is malformed.
    pub(super) fn no_time(&self, value: &[u8], column: usize, why: &str) -> Result<String, Cause> {
        let why = format!("`{}` {why}", shown(value));
        match self.rejecting.on_error {
            OnError::Null => Ok(why),
            _ => Err(self.time_cause(value, column, &why)),
        }
    }

    /// Whether a record has no number in a column where only numbers count.
    pub(super) fn is_no_number(&self, column: usize, numbers: &[Option<Number>]) -> bool {
        let at = || self.numbers.iter().position(|&known| known == column);
        self.wants_number(column) && at().is_some_and(|at| numbers[at].is_none())
    }

    /// Compares the header of a file with the plan's; returns where the records behind it begin, or nothing where the
    /// text ends within it.
    pub(crate) fn header(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        mut at: usize,
    ) -> Result<Option<usize>, Malformed> {
        let bytes = text.block.bytes();
        let Some(shape) = &self.shape else {
            return Ok(Some(at));
        };
        let fields = &mut partial.scratch.fields;
        let (is_end, mut empty_lines) = (self.is_end(text), 0);
        let record = loop {
            if at >= bytes.len() && !is_end {
                return Ok(None);
            }
            match self.dialect.split(bytes, at, fields) {
                Err(bad) if bad.is_open && !is_end => return Ok(None),
                Err(bad) => {
                    return Err(self.misquoted(bad.bytes, bad.cause.into_owned(), bad.hint));
                }
                Ok(record) if fields.is_empty() && !(record.next == bytes.len() && is_end) => {
                    (at, empty_lines) = (record.next, empty_lines + 1);
                }
                Ok(record) => break record,
            }
        };
        partial.empty_lines += empty_lines + u64::from(fields.is_empty());
        match shape.differs(&names_of(fields, bytes)) {
            Some(why) if !fields.is_empty() => Err(Malformed {
                start: at,
                end: record.end,
                cause: why.into(),
            }),
            _ => Ok(Some(record.next)),
        }
    }

    /// What is wrong with the number of fields of a record, with a hint if quoted fields would be as many as they should.
    pub(super) fn mismatch(&self, shape: &Shape, fields: &[Field], bytes: &[u8]) -> Cause {
        let why = shape.mismatch(fields.len(), self.is_pairs);
        let [first, .., last] = fields else {
            return why.into();
        };
        let record = &bytes[first.start..last.end];
        let is_hinted = self.rejecting.on_error == OnError::Fail;
        let has_escape = self.dialect.quote().is_some() && memmem::find(record, b"\\\"").is_some();
        let longer = self.longer.filter(|_| fields.len() == shape.width + 1);
        let is_whole = |at: usize| fields.iter().filter(|field| field.start <= at).count();
        let ends_line =
            memchr(b'\r', record).is_some_and(|at| is_whole(first.start + at) == shape.width);
        let mut values = fields.iter().map(|field| &bytes[field.start..field.end]);
        let hint = if self.dialect.fields_if_quoted(record) == Some(shape.width) {
            Hint::Quotes
        } else if values.any(|value| self.begins_quoted(value)) {
            Hint::Trim
        } else if ends_line {
            Hint::LoneReturn
        } else if let Some(hint) = longer {
            hint
        } else if has_escape {
            Hint::Escape
        } else {
            return why.into();
        };
        match is_hinted {
            true => hinted(why, hint),
            false => why.into(),
        }
    }

    /// Whether a field without quotes has some behind blanks.
    pub(super) fn begins_quoted(&self, value: &[u8]) -> bool {
        let text = value.trim_ascii_start();
        text.len() < value.len()
            && text
                .first()
                .is_some_and(|byte| Some(*byte) == self.dialect.quote())
    }

    /// What is wrong with the quote at the start of these bytes.
    pub(crate) fn misquoted(
        &self,
        bytes: Range<usize>,
        why: String,
        hint: Option<Hint>,
    ) -> Malformed {
        Malformed {
            start: bytes.start,
            end: bytes.end,
            cause: match hint {
                Some(hint) => hinted(why, hint),
                None => why.into(),
            },
        }
    }

    /// What is wrong with a line that isn't an object. The first one of a file may begin an array, or an object of several
    /// lines.
    pub(super) fn not_json_lines(&self, text: &Text<'_>, at: usize, bad: Unreadable) -> Malformed {
        let bytes = text.block.bytes();
        let (before, rest) = bytes.split_at(at);
        let before = before.strip_prefix(BYTE_ORDER_MARK).unwrap_or(before);
        let is_first = text.block.offset() == 0 && before.trim_ascii().is_empty();
        let why = bad.cause.into_owned();
        match is_first.then(|| foreign::json(rest)).flatten() {
            Some(what) => Malformed {
                start: bad.bytes.start,
                end: bad.bytes.end,
                cause: Refusal::NotText { why, what }.into(),
            },
            None => self.misquoted(bad.bytes, why, None),
        }
    }

    /// What is wrong with a record that can't be split, with another pattern if that one reads it.
    pub(super) fn unreadable(
        &self,
        bytes: &[u8],
        record: Range<usize>,
        why: String,
        hint: Option<Hint>,
    ) -> Malformed {
        match self.dialect.cause_of_log(&bytes[record.clone()], &why) {
            Some(cause) if !self.rejecting.leaves_out() => Malformed {
                start: record.start,
                end: record.end,
                cause,
            },
            _ => self.misquoted(record, why, hint),
        }
    }

    /// Whether nothing of the file comes behind a text.
    pub(super) fn is_end(&self, text: &Text<'_>) -> bool {
        match text.end {
            End::File => true,
            End::More => false,
            End::Block => {
                let block = &text.block;
                let state = self.framing.at_record(block.offset());
                let end = self.framing.last_end(state, block.bytes());
                end != Some(block.bytes().len())
            }
        }
    }

    /// Adds the records of a text that begin at `at` and up to `until`; returns where the next one begins, or the one that
    /// the text ends within.
    pub(crate) fn records(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        mut at: usize,
        until: usize,
    ) -> Result<usize, BlockError> {
        let bytes = text.block.bytes();
        while at < bytes.len().min(until) {
            if let Some(next) = self.dialect.after_comment(bytes, at) {
                at = next;
                continue;
            }
            match self.record(partial, text, at)? {
                Some(next) => at = next,
                None => return Ok(at),
            }
        }
        Ok(at)
    }

    /// Adds the record at `at`; returns where the next one begins, or nothing where the text ends within it.
    pub(super) fn record(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        at: usize,
    ) -> Result<Option<usize>, BlockError> {
        let bytes = text.block.bytes();
        // A longer record may be one whose quote isn't closed. Behind the record may be a line's end of two bytes.
        let end = bytes
            .len()
            .min(at.saturating_add(self.max_record).saturating_add(2));
        let fields = &mut partial.scratch.fields;
        let record = match self.dialect.split(&bytes[..end], at, fields) {
            Ok(record) if record.end - at <= self.max_record => record,
            Ok(record) => {
                if let Some(open) = last_multiline(bytes, fields) {
                    return self.too_long(partial, text, at, open);
                }
                let rest = memchr(b'\n', &bytes[record.end..]);
                let line_end = rest.map_or(bytes.len(), |length| record.end + length);
                self.reject_long(partial, text, at..line_end)?;
                return Ok(Some((line_end + 1).min(bytes.len())));
            }
            Err(bad) if bad.is_open && end < bytes.len() => {
                return self.too_long(partial, text, at, bad.bytes.start);
            }
            Err(bad) if bad.is_open && !self.is_end(text) => return Ok(None),
            Err(bad) => {
                let next = bad.next;
                let hole = self.nul_run(&bytes[bad.bytes.clone()]);
                let malformed = match (hole, self.dialect.is_json()) {
                    (Some(run), _) => {
                        Malformed::hole(run, bad.bytes.start, !self.rejecting.leaves_out())
                    }
                    (None, true) => self.not_json_lines(text, at, bad),
                    (None, false) => {
                        self.unreadable(bytes, bad.bytes, bad.cause.into_owned(), bad.hint)
                    }
                };
                let record = at..malformed.end;
                self.reject(partial, text, record, malformed)?;
                return Ok(Some(next));
            }
        };
        if let (Some(tail), Some(last)) = (self.dialect.log_tail(), partial.scratch.fields.last())
            && last.end + tail < record.end
        {
            let met = self.met(&text.block, at, at);
            partial.longer.add(1, met, &mut partial.rejected);
        }
        let is_header = |repeats: &Repeats| repeats.is_header(&bytes[at..record.end]);
        if partial.scratch.fields.is_empty() {
            partial.empty_lines += 1;
        } else if self.repeats.as_ref().is_some_and(is_header) {
            let met = self.met(&text.block, at, at);
            partial.repeated.add(1, met, &mut partial.rejected);
        } else if let Some(run) = self.nul_run(&bytes[at..record.end]) {
            let malformed = Malformed::hole(run, at, !self.rejecting.leaves_out());
            self.reject(partial, text, at..record.end, malformed)?;
        } else if let Some(shape) = &self.shape {
            // Without a shape there is no record that can be read.
            if let Err(why) = self.add(partial, shape, &text.block, at) {
                let malformed = Malformed {
                    start: at,
                    end: record.end,
                    cause: why,
                };
                self.reject(partial, text, at..record.end, malformed)?;
            }
        }
        Ok(Some(record.next))
    }

    /// Leaves out a record that is over the limit, as its length says.
    pub(super) fn reject_long(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        record: Range<usize>,
    ) -> Result<(), BlockError> {
        let cut = text.block.cut().unwrap_or(Cut {
            max_record: self.max_record,
            ..Cut::default()
        });
        let bytes = &text.block.bytes()[record.clone()];
        let is_hinted = !self.rejecting.leaves_out();
        let malformed = Malformed::too_long(bytes, record.start, cut, is_hinted);
        self.reject(partial, text, record, malformed)
    }

    /// Bytes of zero in a text that are no delimiters.
    pub(super) fn nul_run(&self, bytes: &[u8]) -> Option<Range<usize>> {
        nuls::run(bytes).filter(|_| !self.dialect.has_zeros())
    }

    /// Leaves out the line of a quote that isn't closed within the longest record; returns what begins behind it.
    pub(super) fn too_long(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        at: usize,
        open: usize,
    ) -> Result<Option<usize>, BlockError> {
        let line = unreadable(text.block.bytes(), open, "", None);
        let malformed = Malformed {
            start: line.bytes.start,
            end: line.bytes.end,
            cause: unclosed(self.max_record),
        };
        self.reject(partial, text, at..malformed.end, malformed)?;
        Ok(Some(line.next))
    }

    /// Ends the job with a malformed record, or leaves it out.
    pub(super) fn reject(
        &self,
        partial: &mut Partial,
        text: &Text<'_>,
        record: Range<usize>,
        mut malformed: Malformed,
    ) -> Result<(), BlockError> {
        if self.is_pairs && partial.rejected.count == 0 {
            self.hint_at_pairs(&mut malformed, text);
        }
        (partial.rejected).add(&self.rejecting, &text.block, record, malformed)
    }

    /// Says what may help where the first record of a file isn't a key and a number.
    pub(super) fn hint_at_pairs(&self, malformed: &mut Malformed, text: &Text<'_>) {
        let bytes = text.block.bytes();
        let before = &bytes[..malformed.start];
        let is_first = before.is_empty() || before == BYTE_ORDER_MARK;
        if text.block.offset() > 0 || !is_first {
            return;
        }
        let mut records = bytes[malformed.start..]
            .split(|&byte| byte == b'\n')
            .map(pair_hint::trim);
        let record = records.next().unwrap_or_default();
        if let Some(hint) = pair_hint::hint(record, records, self.dialect.delimiter()) {
            malformed.cause = hinted(malformed.cause.to_string(), hint);
        }
    }
}

/// Records of a file, one behind the other.
pub(crate) struct Text<'a> {
    pub(crate) block: Block<'a>,
    pub(crate) end: End,
}

/// What comes behind a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As an engine has cut it by the plan's framing.
    Block,
    /// Perhaps more of the file.
    More,
    /// Nothing.
    File,
}
