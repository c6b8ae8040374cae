//! The job: folds blocks into groups as a plan says.
//!
//! Where a record's quotes can't be understood, the line of the quote that opens ends it, and the next record begins
//! behind that line. Engines cut by the framing, which knows nothing of that. So a block may end within a record as it is
//! read then. The run is given up in that case, and `in_order` reads the input again.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memmem};

mod filter;

use crate::aggregate::state::{Rounding, Value};
use crate::answer::Answer;
use crate::answer::having::Having;
use crate::budget::Share;
use crate::condition::Reading;
use crate::condition::tree::Test;
use crate::decimal::number::{Number, shown};
use crate::engine::sink::{BlockError, Malformed};
use crate::error::refusal::{Hint, Refusal};
use crate::error::{Cause, Error, Kind as ErrorKind, Result};
use crate::format::dialect::{BYTE_ORDER_MARK, last_multiline, unreadable};
use crate::format::field::{Field, Unreadable, names_of};
use crate::format::pair_hint;
use crate::format::repeats::{Occurrences, Repeats};
use crate::format::time::{self, Cutter};
use crate::input::foreign;
use crate::job::fold::Fold;
use crate::linux::heap;
use crate::partial::reader::Reader;
use crate::plan::head::unclosed;
use crate::plan::order::InOrder;
use crate::plan::{Plan, Shape, hinted};
use crate::record::block::{Block, Cut};
use crate::record::framing::{Delimited, Framing};
use crate::record::lines::Counted;
use crate::record::nuls;
use crate::reject::rejects::{OnError, Rejected};
use crate::reject::unread::Unread;
use crate::run::pairs::Pairs;
use crate::run::passes::{OneByOne, Passes};
use crate::scan::index::WINDOW;
use crate::spill::stored::{Stored, StoredForm};
use crate::table::groups::Groups;
use crate::table::lane_groups::{LaneGroups, LaneRows};
use crate::table::pair_rows::PairRows;
use crate::table::shared::SharedTables;
use crate::table::states::{ORDER_BYTES, Table};
use crate::table::tables::{DrainedClasses, Tables};

/// After so many bytes of a block its worker looks at what groups take of the budget.
const LOOK_BYTES: usize = if cfg!(test) { 1 << 10 } else { 256 << 10 };

/// The most bytes by which groups are expected to grow until then, as they did since the last look: a few long records.
const GROWTH_MAX: usize = 16 << 20;

/// What a worker knows.
pub struct Partial {
    table: Table,
    /// Tables of partials that were merged into this one and had no room in its own.
    tables: Vec<Table>,
    /// The groups in lanes of partials that were merged into this one, and those of pairs.
    merged: Vec<LaneGroups>,
    merged_pairs: Vec<Tables>,
    /// The tables of pairs that all partials of the run share, and what was taken out of those of another run.
    shared: Option<Arc<SharedTables>>,
    drained: Vec<DrainedClasses>,
    /// Partials that shared their tables of pairs.
    key_sharers: u64,
    /// Groups in lanes, and bytes of the table, when the budget was last looked at.
    lane_groups: usize,
    table_bytes: usize,
    /// What groups take of the budget, and those that went to files.
    share: Share,
    runs: Vec<Reader>,
    spilled_bytes: u64,
    /// In the end, the answer of all that went there.
    outgrown: Option<Answer>,
    /// For each of the plan's numbers the most digits behind a point.
    scales: Vec<u32>,
    rows: u64,
    filtered: u64,
    empty_lines: u64,
    /// Values that weren't numbers and were taken for none.
    nulled: Unread,
    repeated: Occurrences,
    doubted: Doubted,
    /// The passes have decided about the record that is added, and counted what they met.
    is_taken: bool,
    /// Lines that go on after a log's pattern.
    longer: Occurrences,
    pub(crate) rejected: Rejected,
    /// A block ended within a record.
    pub(crate) is_cut: bool,
    /// What is known of the file that is being read in order.
    pub(crate) reading: Option<InOrder>,
    scratch: Scratch,
    /// Most records are added by passes over windows, where the plan allows it.
    passes: Option<Box<Passes>>,
}

/// Records about which the condition decides otherwise if values are read in another way.
#[derive(Default)]
struct Doubted {
    /// It might be true if values could be read as numbers or times.
    unread: Unread,
    /// It says something else where texts are read as numbers.
    bytewise: Unread,
}

impl Doubted {
    fn of(&mut self, reading: Reading) -> &mut Unread {
        match reading {
            Reading::Numeric => &mut self.bytewise,
            Reading::Strict | Reading::Hopeful => &mut self.unread,
        }
    }
}

#[derive(Default)]
struct Scratch {
    fields: Vec<Field>,
    /// The plan's numbers in the current record; `None` is null.
    numbers: Vec<Option<Number>>,
    key: Vec<u8>,
    value: Vec<u8>,
    joined: Vec<u8>,
    /// For each column of the key.
    cutters: Vec<Cutter>,
}

impl Plan {
    /// Adds the record whose fields were split; nothing is added when the condition isn't true of it or it is malformed.
    ///
    /// # Errors
    /// What is wrong with it.
    fn add(
        &self,
        partial: &mut Partial,
        shape: &Shape,
        block: &Block<'_>,
        at: usize,
    ) -> Result<(), Cause> {
        let bytes = block.bytes();
        let place = (block.file(), block.offset() + at as u64);
        let Scratch {
            fields,
            numbers,
            key,
            value: scratch,
            joined,
            cutters,
        } = &mut partial.scratch;
        if fields.len() != shape.width {
            if !self.is_ragged {
                return Err(self.mismatch(shape, fields, bytes));
            }
            fields.resize(shape.width, Field::EMPTY);
        }
        let (is_taken, otherwise) = self.takes(fields, bytes, scratch, joined);
        for reading in otherwise.into_iter().filter(|_| !partial.is_taken) {
            let value = |test: &Test| match test.clock {
                None => fields[test.column].value(bytes, scratch).to_vec(),
                Some(clock) => {
                    let columns = [test.column, clock];
                    self.joined(columns, fields, bytes, scratch, joined)
                        .to_vec()
                }
            };
            let filter = self.filter.as_ref().expect("it was decided");
            partial.doubted.of(reading).add(1, block, at, || {
                let mark = partial.rejected.mark(&self.rejecting, block, at, at);
                (self.doubtful(filter, reading, value), mark)
            });
        }
        if !is_taken {
            partial.filtered += 1;
            return Ok(());
        }
        numbers.clear();
        let (mut nulled, mut first_nulled) = (0, None);
        for &column in &self.numbers {
            let value = fields[column].value(bytes, scratch);
            let number = match self.is_null(value) {
                true => None,
                false => match self.read_number(value) {
                    Ok(number) => Some(number),
                    Err(why) if self.rejecting.on_error == OnError::Null => {
                        nulled += 1;
                        first_nulled.get_or_insert((column, why));
                        None
                    }
                    Err(why) if self.begins_quoted(value) => {
                        let why = format!("{why} (column {})", self.column_name(column));
                        return Err(hinted(why, Hint::Trim));
                    }
                    Err(why) => return Err(self.value_cause(value, column, &why)),
                },
            };
            numbers.push(number);
        }
        for &column in &self.times {
            let value = fields[column].value(bytes, scratch);
            match time::read(value) {
                Err(_) if self.is_null(value) => {}
                Err(why) => {
                    let why = self.no_time(value, column, &why.why(value))?;
                    nulled += 1;
                    first_nulled.get_or_insert((column, why));
                }
                Ok(_) => {}
            }
        }
        for (most, number) in partial.scales.iter_mut().zip(&*numbers) {
            *most = number.map_or(*most, |number| number.decimals().max(*most));
        }
        key.clear();
        cutters.resize_with(self.keys.len(), Cutter::default);
        for ((&column, cut), cutter) in self.keys.iter().zip(&self.cuts).zip(cutters) {
            let clock = cut.and_then(|cut| cut.clock);
            let value = match clock {
                None => fields[column].value(bytes, scratch),
                Some(clock) => self.joined([column, clock], fields, bytes, scratch, joined),
            };
            match cut {
                None if self.is_no_number(column, numbers) => self.push_key(key, b""),
                Some(cut) if !self.is_null(value) => match cutter.cut(cut.unit, value) {
                    Ok(time) => self.push_key(key, time),
                    Err(why) => {
                        let why = self.no_time(value, column, &why.why(value))?;
                        nulled += 1;
                        first_nulled.get_or_insert((column, why));
                        self.push_key(key, b"");
                    }
                },
                _ => self.push_key(key, value),
            }
        }
        self.end_key(key);
        let group = partial.table.group(key);
        let aggregates = self.aggregates.iter().enumerate();
        for (at, aggregate) in aggregates.filter(|(at, of)| of.owner == *at) {
            let (value, number) = match (aggregate.column, aggregate.number) {
                (_, Some(number)) => match numbers[number] {
                    Some(number) => (&b""[..], number),
                    None => continue,
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
                place,
            };
            partial.table.update(group, at, &value);
        }
        partial.rows += 1;
        if let Some((column, why)) = first_nulled {
            let value = fields[column].value(bytes, scratch);
            partial.nulled.add(nulled, block, at, || {
                let mark = partial.rejected.mark(&self.rejecting, block, at, at);
                (self.value_cause(value, column, &why), mark)
            });
        }
        Ok(())
    }

    /// Says why a value that isn't a time counts as null.
    ///
    /// # Errors
    /// It doesn't: its record is malformed.
    fn no_time(&self, value: &[u8], column: usize, why: &str) -> Result<String, Cause> {
        let why = format!("`{}` {why}", shown(value));
        match self.rejecting.on_error {
            OnError::Null => Ok(why),
            _ => Err(self.time_cause(value, column, &why)),
        }
    }

    /// Whether a record has no number in a column where only numbers count.
    fn is_no_number(&self, column: usize, numbers: &[Option<Number>]) -> bool {
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
    fn mismatch(&self, shape: &Shape, fields: &[Field], bytes: &[u8]) -> Cause {
        let why = shape.mismatch(fields.len());
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
    fn begins_quoted(&self, value: &[u8]) -> bool {
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
    fn not_json_lines(&self, text: &Text<'_>, at: usize, bad: Unreadable) -> Malformed {
        let bytes = text.block.bytes();
        let (before, rest) = bytes.split_at(at);
        let before = before.strip_prefix(BYTE_ORDER_MARK).unwrap_or(before);
        let is_first = text.block.offset() == 0 && before.trim_ascii().is_empty();
        let why = bad.cause.into_owned();
        let hint = is_first.then(|| foreign::json(rest)).flatten();
        self.misquoted(bad.bytes, why, hint)
    }

    /// What is wrong with a record that can't be split, with another pattern if that one reads it.
    fn unreadable(
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
    fn is_end(&self, text: &Text<'_>) -> bool {
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
            if let Some(next) = self.dialect.behind_comment(bytes, at) {
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
    fn record(
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
            let place = (text.block.file(), text.block.offset() + at as u64);
            let mark = (partial.rejected).mark(&self.rejecting, &text.block, at, at);
            partial.longer.add(1, place, mark);
        }
        let is_header = |repeats: &Repeats| repeats.is_header(&bytes[at..record.end]);
        if partial.scratch.fields.is_empty() {
            partial.empty_lines += 1;
        } else if self.repeats.as_ref().is_some_and(is_header) {
            let place = (text.block.file(), text.block.offset() + at as u64);
            let mark = (partial.rejected).mark(&self.rejecting, &text.block, at, at);
            partial.repeated.add(1, place, mark);
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
    fn reject_long(
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
    fn nul_run(&self, bytes: &[u8]) -> Option<Range<usize>> {
        nuls::run(bytes).filter(|_| !self.dialect.has_zeros())
    }

    /// Leaves out the line of a quote that isn't closed within the longest record; returns what begins behind it.
    fn too_long(
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
    fn reject(
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
    fn hint_at_pairs(&self, malformed: &mut Malformed, text: &Text<'_>) {
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
                let found = Error::new(ErrorKind::Data, first.cause.behind(&before))
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

impl Plan {
    /// Adds a block that any engine has cut.
    fn any_block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        let (bytes, offset) = (block.bytes(), block.offset());
        let mark = match offset == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
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
            let is_comment = self.dialect.behind_comment(bytes, at).is_some();
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
            } else if let Some(next) = passes.add_pairs(&text.block, at, &mut rest)? {
                // Nowhere are so many NULs side by side as in a hole: a key would be too long.
                next
            } else if let Some(run) = nuls::run(ahead) {
                rest.add(at, at + run.end)?
            } else {
                passes.window(self, &text.block, at, &mut rest)?
            };
            if at >= next_look {
                self.enforce_budget(rest.partial, Some(passes))?;
                next_look = at + LOOK_BYTES;
            }
        }
        Ok(())
    }

    /// Makes groups ready to be taken.
    fn settle(&self, partial: &mut Partial) {
        if let Some(passes) = &mut partial.passes {
            passes.settle(&mut partial.table);
        }
    }

    /// What a partial has in memory but for pairs, and what it takes beside to write it or to put it in order.
    fn bytes(&self, partial: &mut Partial, passes: Option<&mut Passes>) -> (u64, u64) {
        let before = partial.lane_groups;
        let lane_bytes = passes.map_or(0, |passes| {
            let slots = &passes.groups().slots;
            partial.lane_groups = slots.len();
            // What comes until the next look may bring as many new groups as came since the last one, and some more.
            slots.bytes_with(2 * slots.len().saturating_sub(before))
        });
        let table_bytes = partial.table.bytes();
        let growth = table_bytes.saturating_sub(partial.table_bytes);
        let growth = growth.min(GROWTH_MAX);
        partial.table_bytes = table_bytes;
        let more = ORDER_BYTES * partial.lane_groups + partial.table.bytes_in_order();
        ((lane_bytes + table_bytes + growth) as u64, more as u64)
    }

    /// If all partials together exceed the budget, they share the tables of pairs, so that each key is in memory once; if
    /// that is too much too, groups are written to files.
    fn enforce_budget(&self, partial: &mut Partial, mut passes: Option<&mut Passes>) -> Result<()> {
        let (bytes, more) = self.bytes(partial, passes.as_deref_mut());
        let mut shared = None;
        let exceeds = match passes.as_deref_mut().and_then(|passes| passes.pairs()) {
            None => partial.share.set_with(bytes, more),
            Some(pairs) => {
                if partial.share.set_with(bytes + pairs.bytes(), more) {
                    pairs.shared_tables().request_sharing();
                }
                pairs.share_if_requested();
                shared = Some(Arc::clone(pairs.shared_tables()));
                partial.share.set_with(bytes + pairs.bytes(), more)
            }
        };
        if exceeds {
            self.spill_own(partial, passes)?;
        }
        if let Some(shared) = shared
            && let Some((drained, share)) = shared.drain_excess(&self.budget)
        {
            self.spill_pairs(partial, Vec::new(), drained)?;
            drop(share);
        }
        Ok(())
    }

    /// Writes a partial's groups to files.
    fn spill_own(&self, partial: &mut Partial, mut passes: Option<&mut Passes>) -> Result<()> {
        if let Some(passes) = &mut passes {
            passes.settle(&mut partial.table);
            if let Some(pairs) = passes.pairs().filter(|pairs| pairs.len() > 0) {
                let (own, none) = (pairs.take(), pairs.shared_tables().drain_none());
                self.spill_pairs(partial, vec![own], none)?;
            }
        }
        let mut lanes = passes.as_mut().map(|passes| passes.groups());
        let count = lanes.as_ref().map_or(0, |groups| groups.slots.len());
        if count + partial.table.len() > 0 {
            let taken = lanes.as_mut().map(|groups| groups.take());
            let table = partial.table.like();
            let table = std::mem::replace(&mut partial.table, table);
            self.spill(partial, taken.into_iter().collect(), table)?;
        }
        partial.lane_groups = 0;
        partial.table_bytes = 0;
        // No pairs are left.
        let (left, _) = self.bytes(partial, passes);
        partial.share.set(left);
        Ok(())
    }

    /// Writes groups of pairs to a file.
    fn spill_pairs(
        &self,
        partial: &mut Partial,
        own: Vec<Tables>,
        drained: DrainedClasses,
    ) -> Result<()> {
        let mut table = partial.table.like();
        let pairs = PairRows::merge(own, drained, &mut table);
        self.write(
            partial,
            Groups::new(table, None).with_pairs(pairs, &self.nulls),
        )
    }

    /// Writes groups to a file.
    fn spill(&self, partial: &mut Partial, lanes: Vec<LaneGroups>, mut table: Table) -> Result<()> {
        let lanes = LaneRows::merge(lanes, &mut table);
        self.write(partial, Groups::new(table, lanes))
    }

    fn write(&self, partial: &mut Partial, groups: Groups) -> Result<()> {
        let scales = self.scales(partial);
        let written = self.stored_form().write(&groups, &scales);
        let run = written.map_err(|lost| lost.error(&self.budget))?;
        partial.spilled_bytes += run.bytes();
        partial.runs.push(run);
        drop(groups);
        heap::release();
        Ok(())
    }

    pub(crate) fn stored_form(&self) -> StoredForm {
        StoredForm {
            slots: self.slots(),
            keys: self.key_parts(),
            sources: self.files.len(),
            budget: Arc::clone(&self.budget),
        }
    }

    /// The most digits behind the point of each aggregate's numbers.
    fn scales(&self, partial: &Partial) -> Vec<u32> {
        let aggregates = self.aggregates.iter();
        let scale = |number: Option<usize>| number.map_or(0, |at| partial.scales[at]);
        aggregates.map(|of| scale(of.number)).collect()
    }

    /// Merges what went to files, if something did.
    fn merge_spilled(&self, total: &mut Partial) -> Result<()> {
        self.gather_lanes(total);
        let settled = if self.has_values() { 2 } else { 1 };
        let bytes = settled * total.table.bytes() + total.table.bytes_in_order();
        let bytes = bytes + LaneGroups::bytes_merged(&total.merged);
        for drained in std::mem::take(&mut total.drained) {
            self.spill_pairs(total, Vec::new(), drained)?;
        }
        let has_room = total.tables.is_empty() && self.budget.has_room(bytes as u64);
        if total.runs.is_empty() && has_room {
            return Ok(());
        }
        for table in std::mem::take(&mut total.tables) {
            self.spill(total, Vec::new(), table)?;
        }
        if !has_room {
            for lanes in std::mem::take(&mut total.merged) {
                self.spill(total, vec![lanes], total.table.like())?;
            }
        }
        // There is no memory to merge the rest into one table.
        if let Some(shared) = total.shared.clone() {
            for own in std::mem::take(&mut total.merged_pairs) {
                self.spill_pairs(total, vec![own], shared.drain_none())?;
            }
            if shared.holds_keys() {
                self.spill_pairs(total, Vec::new(), shared.drain_all())?;
            }
        }
        let (lanes, table) = self.take_groups(total);
        if lanes.len() + table.len() > 0 {
            self.spill(total, lanes, table)?;
        }
        let runs = std::mem::take(&mut total.runs);
        let merged = self.stored_form().merge(runs, &self.scales(total));
        let merged = merged.map_err(|lost| lost.error(&self.budget))?;
        let form = self.stored_form();
        let stored = Stored::new(merged, form.keys, total.table.like());
        let nothing = Groups::new(total.table.like(), None);
        let mut answer = self.answer(total, nothing, None);
        let kept = answer.store(stored, &form, self.having());
        kept.map_err(|lost| lost.error(&self.budget))?;
        total.outgrown = Some(answer);
        Ok(())
    }

    /// Puts the groups of the passes beside those of other workers.
    fn gather_lanes(&self, total: &mut Partial) {
        self.settle(total);
        if let Some(mut passes) = total.passes.take() {
            (total.merged_pairs).extend(passes.pairs().map(|pairs| pairs.take()));
            total.merged.push(passes.into_groups());
        }
    }

    /// Takes all groups that are in memory.
    fn take_groups(&self, total: &mut Partial) -> (Vec<LaneGroups>, Table) {
        self.gather_lanes(total);
        let table = total.table.like();
        let table = std::mem::replace(&mut total.table, table);
        (std::mem::take(&mut total.merged), table)
    }

    fn answer_in_memory(&self, total: &mut Partial) -> Answer {
        let (lanes, mut table) = self.take_groups(total);
        let lanes = LaneRows::merge(lanes, &mut table);
        if self.keys.is_empty() && lanes.as_ref().is_none_or(LaneRows::is_empty) {
            // One group, also of nothing.
            let mut key = Vec::new();
            self.end_key(&mut key);
            table.group(&key);
        }
        let mut pairs = None;
        if let Some(shared) = &total.shared {
            let all = std::mem::take(&mut total.merged_pairs);
            pairs = Some(PairRows::merge(all, shared.drain_all(), &mut table));
        }
        let mut groups = Groups::new(table, lanes);
        if let Some(pairs) = pairs {
            groups = groups.with_pairs(pairs, &self.nulls);
        }
        if !self.has_values() {
            return self.answer(total, groups, self.having());
        }
        let settled = (self.stored_form()).settle(&groups, &self.scales(total));
        let settled = settled.expect("values have groups");
        let answer = self.answer(total, settled, self.having());
        answer.with_all(groups)
    }

    fn answer(&self, total: &Partial, groups: Groups, having: Option<Having<'_>>) -> Answer {
        let roundings = self.aggregates.iter().map(|aggregate| {
            let is_float = self.grammar.is_float;
            Rounding::of(aggregate.number.is_some(), self.precision, is_float)
        });
        Answer::new(
            self.names.clone(),
            (self.keys.len(), self.grammar.decimal_point),
            self.scales(total),
            roundings.collect(),
            groups,
            having,
        )
    }

    /// Gives the run up.
    fn cut(&self, partial: &mut Partial, at: usize) -> BlockError {
        partial.is_cut = true;
        let why = "the quote that opens in this record isn't closed where it seemed to be";
        self.misquoted(at..at + 1, why.into(), None).into()
    }
}

/// What the passes leave to be added record by record.
struct Rest<'a> {
    plan: &'a Plan,
    partial: &'a mut Partial,
    text: &'a Text<'a>,
}

impl OneByOne for Rest<'_> {
    fn add(&mut self, from: usize, until: usize) -> Result<usize, BlockError> {
        let next = (self.plan).records(self.partial, self.text, from, until)?;
        // Nothing but a record that the block ends within begins before that.
        match next < until.min(self.text.block.bytes().len()) {
            true => Err(self.plan.cut(self.partial, next)),
            false => Ok(next),
        }
    }

    fn add_taken(&mut self, from: usize) -> Result<usize, BlockError> {
        self.partial.is_taken = true;
        let added = self.add(from, from + 1);
        self.partial.is_taken = false;
        added
    }

    fn table(&mut self) -> &mut Table {
        &mut self.partial.table
    }

    fn scales(&mut self) -> &mut [u32] {
        &mut self.partial.scales
    }

    fn filtered(&mut self, rows: usize) {
        self.partial.filtered += rows as u64;
    }

    fn longer(&mut self, count: u64, first: usize) {
        let block = &self.text.block;
        let place = (block.file(), block.offset() + first as u64);
        let rejected = &mut self.partial.rejected;
        let mark = rejected.mark(&self.plan.rejecting, block, first, first);
        self.partial.longer.add(count, place, mark);
    }

    fn added(&mut self, rows: usize) {
        self.partial.rows += rows as u64;
    }

    fn doubted<'a>(
        &mut self,
        reading: Reading,
        rows: u64,
        (window, start): (usize, usize),
        value: impl Fn(usize) -> &'a [u8],
    ) {
        let Rest {
            plan,
            partial,
            text,
        } = self;
        let filter = plan.filter.as_ref().expect("it was decided");
        partial
            .doubted
            .of(reading)
            .add(rows, &text.block, start, || {
                let rejected = &mut partial.rejected;
                let mark = rejected.mark(&plan.rejecting, &text.block, window, start);
                let value = |test: &Test| value(test.column).to_vec();
                (plan.doubtful(filter, reading, value), mark)
            });
    }
}

impl Plan {
    /// A partial that shares these tables of pairs with others.
    fn partial_of(&self, shared: Option<&Arc<SharedTables>>) -> Partial {
        Partial {
            table: Table::new(&self.hasher, &self.slots()),
            tables: Vec::new(),
            merged: Vec::new(),
            merged_pairs: Vec::new(),
            shared: shared.cloned(),
            drained: Vec::new(),
            key_sharers: 0,
            lane_groups: 0,
            table_bytes: 0,
            share: Share::new(&self.budget),
            runs: Vec::new(),
            spilled_bytes: 0,
            outgrown: None,
            scales: vec![0; self.numbers.len()],
            rows: 0,
            filtered: 0,
            empty_lines: 0,
            nulled: Unread::default(),
            doubted: Doubted::default(),
            is_taken: false,
            repeated: Occurrences::default(),
            longer: Occurrences::default(),
            rejected: Rejected::default(),
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
        let shared = Pairs::shared(self, &self.budget);
        move || self.partial_of(shared.as_ref())
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
        total.key_sharers = total.shared.as_ref().map_or(0, |shared| shared.sharers());
        self.merge_spilled(total)
    }

    fn failed(&self, error: Error, partials: Vec<Partial>) -> Result<()> {
        let is_cut = partials.iter().any(|partial| partial.is_cut);
        let is_long = matches!(error.refusal(), Some(Refusal::Exceeded { .. }));
        let may_help = is_cut || is_long && self.framing.is_stateful();
        if may_help && self.order.want() {
            self.rejecting.restart();
            return Ok(());
        }
        let mut rejected = Rejected::default();
        for partial in partials {
            rejected.merge(partial.rejected);
        }
        Err(self.explained(error, rejected))
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
        into.merged_pairs.append(&mut from.merged_pairs);
        into.drained.append(&mut from.drained);
        if let (Some(one), Some(other)) = (&into.shared, &from.shared)
            && !Arc::ptr_eq(one, other)
            && other.holds_keys()
        {
            into.drained.push(other.drain_all());
        }
        for (most, scale) in into.scales.iter_mut().zip(from.scales) {
            *most = scale.max(*most);
        }
        into.rows += from.rows;
        into.filtered += from.filtered;
        into.empty_lines += from.empty_lines;
        into.nulled.merge(from.nulled);
        into.doubted.unread.merge(from.doubted.unread);
        into.doubted.bytewise.merge(from.doubted.bytewise);
        into.repeated.merge(from.repeated);
        into.longer.merge(from.longer);
        into.rejected.merge(from.rejected);
        into.is_cut |= from.is_cut;
        into.reading = into.reading.take().or(from.reading);
    }

    fn finish(&self, mut total: Partial) -> Answer {
        let mut answer = match total.outgrown.take() {
            Some(answer) => answer,
            None => self.answer_in_memory(&mut total),
        };
        answer.spilled_bytes = total.spilled_bytes;
        answer.key_sharers = total.key_sharers;
        answer.rows = total.rows;
        answer.filtered = total.filtered;
        answer.empty_lines = total.empty_lines;
        answer.skipped = total.rejected.count;
        let see = |lines: &Counted| {
            answer.repeated_headers = total.repeated.finish(lines);
            answer.longer = total.longer.finish(lines);
            (answer.nulled, answer.first_nulled) = total.nulled.finish(lines);
            (answer.unread, answer.first_unread) = total.doubted.unread.finish(lines);
            (answer.bytewise, answer.first_bytewise) = total.doubted.bytewise.finish(lines);
        };
        let (first, rejects) = total.rejected.finish(&self.rejecting, see);
        (answer.first_skipped, answer.rejects) = (first, rejects);
        answer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer::order::Sort;
    use crate::engine::config::Config;
    use crate::input::spans::Input;
    use crate::level::Level;
    use crate::query::ask::Query;
    use crate::record::block::PaddedBuf;
    use crate::report::grid::{GridFormat, Rows, write_grid};

    /// The answer as CSV with all counts, or the first error; `text` is cut into blocks of records of about `block` bytes.
    fn answer(query: &Query, level: Option<Level>, text: &[u8], block: usize) -> String {
        let input = Input::memory([text]);
        let mut plan = match query.plan(&input, &Config::default()) {
            Ok(plan) => plan,
            Err(error) => return error.to_string(),
        };
        plan.level = level;
        let mut partials = [plan.partial(), plan.partial()];
        let (mut at, mut turn, mut errors) = (0, 0, Vec::new());
        while at < text.len() {
            let mut end = at;
            while end < text.len() && end - at < block {
                end = plan.dialect.framed_end(text, end);
            }
            let padded = PaddedBuf::from(&text[at..end]);
            let done = plan.block(&mut partials[turn % 2], &padded.block(0, at as u64, 0));
            match done {
                Ok(()) => {}
                Err(BlockError::Malformed(bad)) => {
                    errors.push(format!("{} {} {}", at + bad.start, at + bad.end, bad.cause));
                }
                Err(BlockError::Sink(error)) => panic!("{error}"),
            }
            (at, turn) = (end, turn + 1);
        }
        if let Some(error) = errors.into_iter().next() {
            return error;
        }
        let [mut one, two] = partials;
        plan.merge(&mut one, two);
        plan.complete(&mut one).unwrap();
        let answer = plan.finish(one);
        let mut csv = Vec::new();
        write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
        answer.check().unwrap();
        let (rows, filtered) = (answer.rows, answer.filtered);
        let (empty, skipped) = (answer.empty_lines, answer.skipped);
        let first = answer.first_skipped.map(|first| format!("{first:?}"));
        let csv = String::from_utf8_lossy(&csv);
        format!("{csv}{rows} {filtered} {empty} {skipped} {first:?}")
    }

    fn field() -> impl Strategy<Value = String> {
        prop_oneof![
            10 => "-?[0-9]{1,4}(\\.[0-9]{0,2})?",
            4 => "[a-c]{0,2}",
            1 => "-?[0-9]{7,12}(\\.[0-9]{0,5})?",
            1 => "\"[a-b0-9,\n]{0,3}\"",
            1 => "\"([a-b]|\"\"){0,3}\"",
            1 => prop::sample::select(&["NA", "-", "0", " 7 ", "+3", "1e5", "5\"", "\"x\"y", "\"open", "\r", ".5", "99999999"][..])
                .prop_map(String::from),
            1 => "[k]{28,40}",
        ]
    }

    const KEYS: &[&[usize]] = &[&[], &[1], &[3], &[1, 2], &[3, 1], &[1, 2, 3]];
    const CONDITIONS: &[Option<&str>] = &[
        None,
        None,
        Some("$2 > 1 or $1 ~ 'a'"),
        Some("$1 not in (1, 'a', 'b') and $3 is not null"),
        Some("not ($3 >= -5.5)"),
    ];
    const NULLS: &[&[&str]] = &[&[], &["NA"], &["0", "NA"]];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// The passes of every level give what adding the records one by one gives, to the byte.
        #[test]
        fn passes_give_what_single_records_give(
            good in prop::collection::vec(field(), 3),
            rows in prop::collection::vec(prop::collection::vec(field(), 3), 1..30),
            odd in prop::collection::vec((0..30_usize, prop::collection::vec(field(), 0..5)), 0..4),
            ends in prop::collection::vec(prop::sample::select(&["\n", "\n", "\n", "\r\n"][..]), 40),
            repeat in 1..30_usize,
            keys in prop::sample::select(KEYS),
            aggregates in prop::collection::vec((0..crate::aggregate::ALL.len(), 1..4_usize), 0..5),
            (is_quoted, is_exact) in any::<(bool, bool)>(),
            skips: bool,
            nulls in prop::sample::select(NULLS),
            condition in prop::sample::select(CONDITIONS),
            block in 1..3000_usize,
        ) {
            let mut records = vec![good.join(",")];
            records.extend(rows.iter().map(|row| row.join(",")));
            for (at, fields) in &odd {
                records.insert(1 + at % records.len(), fields.join(","));
            }
            let ended = records.iter().zip(ends.iter().cycle()).map(|(record, end)| format!("{record}{end}"));
            let text = ended.collect::<String>().repeat(repeat);
            let mut query = Query::new(b',').quote(is_quoted.then_some(b'"')).approximate(!is_exact);
            if skips {
                query = query.on_error(OnError::Skip);
            }
            for null in nulls {
                query = query.null_value(*null);
            }
            for &key in keys {
                query = query.key(key);
            }
            for &(kind, column) in &aggregates {
                let name = crate::aggregate::ALL[kind].name;
                query = query.aggregate(name, Some(column.into())).unwrap();
            }
            if let Some(condition) = condition {
                query = query.filter(condition).unwrap();
            }
            let want = answer(&query, None, text.as_bytes(), block);
            for level in Level::available() {
                prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// The same of lines that the dialect splits: JSON, and fields with blanks or comments between.
        #[test]
        fn passes_over_lines_give_what_single_records_give(
            rows in prop::collection::vec(prop::collection::vec(field(), 3), 1..30),
            odd in prop::collection::vec((0..30_usize, "[{}:\"a0, #]{0,9}|\\{\"k1\":\"\\\\n\"\\}"), 0..4),
            repeat in 1..30_usize,
            kind in 0..4,
            keys in prop::sample::select(KEYS),
            aggregates in prop::collection::vec((0..crate::aggregate::ALL.len(), 1..4_usize), 0..5),
            skips: bool,
            filters: bool,
            is_exact: bool,
            block in 1..3000_usize,
        ) {
            let json = |field: &String| match field.parse::<u32>() {
                Ok(number) => number.to_string(),
                Err(_) => format!("\"{}\"", field.replace('"', "\\\"").replace(['\n', '\r'], "\\n")),
            };
            let line = |row: &Vec<String>| match kind {
                0 => format!("{{\"k1\":{},\"x\":{{\"k2\": {}}},\"k3\":{}}}", json(&row[0]), json(&row[1]), json(&row[2])),
                1 => row.join(" ").replace(['\n', '\r'], ""),
                _ => row.join(",").replace(['\n', '\r'], ""),
            };
            let mut lines: Vec<String> = rows.iter().map(line).collect();
            for (at, line) in &odd {
                lines.insert(1 + at % lines.len(), line.clone());
            }
            let text = format!("{}\n", lines.join("\n")).repeat(repeat);
            let mut query = match kind {
                0 => Query::json_lines(),
                1 => Query::new(b' ').squeeze(true).quote(Some(b'"')).single_line(true).ragged(true),
                2 => Query::new(b',').comment("#"),
                _ => Query::new(b',').quote(Some(b'"')).single_line(true),
            };
            let column = |number: usize| match kind {
                0 => ["k1", "x.k2", "k3"][number - 1].into(),
                _ => crate::plan::columns::Columns::Number(number),
            };
            query = query.approximate(!is_exact);
            if skips {
                query = query.on_error(OnError::Skip);
            }
            for &key in keys {
                query = query.key(column(key));
            }
            for &(kind, number) in &aggregates {
                let name = crate::aggregate::ALL[kind].name;
                query = query.aggregate(name, Some(column(number))).unwrap();
            }
            if filters {
                query = query.filter(if kind == 0 { "k1 > 5 or x.k2 ~ 'a'" } else { "$1 > 5 or $2 ~ 'a'" }).unwrap();
            }
            let want = answer(&query, None, text.as_bytes(), block);
            for level in Level::available() {
                prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// The same of a key and a number, which has one decimal in most records.
        #[test]
        #[cfg_attr(miri, ignore = "too much for an interpreter")]
        fn pairs_give_what_single_records_give(
            rows in prop::collection::vec(
                ("[a-c]{0,2}|[x-z]{30,33}|[y-z]{126,130}", "-?[0-9]{1,2}\\.[0-9]\r?"), 1..60),
            odd in prop::collection::vec((0..60_usize, "[-0-9a.;\"+\r]{0,9}|[ab];NA|NA;1\\.5"), 0..4),
            repeat in 1..80_usize,
            quote in prop::option::of(Just(b'"')),
            on_error in prop::sample::select(&[OnError::Fail, OnError::Skip, OnError::Null][..]),
            null in prop::option::of(prop::sample::select(&["NA", "1.5", "a"][..])),
            names in prop::sample::subsequence(
                &["count", "sum", "min", "max", "mean", "range", "var"][..], 1..4),
            memory in prop::option::of(0..100_000_u64),
            block in 1..60_000_usize,
        ) {
            let lines = (0..repeat).flat_map(|_| &rows);
            let mut lines: Vec<String> = lines.map(|(key, number)| format!("{key};{number}")).collect();
            for (at, line) in odd {
                lines.insert(1 + at * (lines.len() - 1) / 60, line);
            }
            let text = format!("{}\n", lines.join("\n"));
            let mut query = Query::new(b';').quote(quote).on_error(on_error).key(1);
            for name in names {
                query = query.aggregate(name, Some(2.into())).unwrap();
            }
            query = query.aggregate("count", None).unwrap();
            if let Some(null) = null {
                query = query.null_value(null);
            }
            let want = answer(&query, None, text.as_bytes(), block);
            if let Some(memory) = memory {
                query = query.memory(memory);
            }
            for level in Level::available() {
                prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
            }
        }
    }

    /// Pairs go to tables of their own until these are full.
    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn more_keys_than_pairs_have_room_for() {
        let rows = (0..150_000).map(|row| {
            let long = if row % 3 == 0 {
                "behind a long key"
            } else {
                ""
            };
            format!("k{}{long};{}.{}\n", row * 7 % 90_000, row % 97, row % 10)
        });
        let rows: String = rows.collect();
        let query = Query::new(b';').key(1);
        let query = ["count", "sum", "min", "max"]
            .iter()
            .fold(query, |query, name| {
                query.aggregate(name, Some(2.into())).unwrap()
            });
        let want = answer(&query, None, rows.as_bytes(), 1 << 20);
        for level in Level::available() {
            assert!(answer(&query, Some(level), rows.as_bytes(), 1 << 20) == want);
        }
        let plan = query.plan(&Input::memory([rows.as_bytes()]), &Config::default());
        let plan = plan.unwrap();
        let mut partial = plan.partial();
        let end = rows[..16_000].rfind('\n').unwrap() + 1;
        let padded = PaddedBuf::from(&rows.as_bytes()[..end]);
        plan.block(&mut partial, &padded.block(0, 0, 0)).unwrap();
        let pairs = partial.passes.as_mut().and_then(|passes| passes.pairs());
        assert!(pairs.is_none_or(|pairs| pairs.bytes() > 0));
    }

    /// Records of thousands of groups, and among them what lanes can't hold: long keys, keys that are null or stand between
    /// quotes, numbers of other sizes.
    fn odd_rows() -> String {
        let mut number = 7_u64;
        let mut draw = |below: u64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (number >> 33) % below
        };
        let mut rows = String::new();
        for row in 0..12_000 {
            let key = match draw(4) {
                0 => draw(3),
                _ => draw(2500),
            };
            let odd = if row > 300 { draw(60) } else { 99 };
            rows += &match odd {
                0 => format!("\"k{key}\",b{},{row}\n", key % 7),
                1 => format!("NA,b,{row}\n"),
                2 => format!(",b,{row}\n"),
                3 => format!("k{key},{},{row}\n", "long".repeat(9)),
                4 => format!("k{key},b{},{row}00000000\n", key % 7),
                5 => format!("k{key},b{},-{row}.12345678\n", key % 7),
                6 => format!("k{key},b{},\n", key % 7),
                7 => format!("k{key},b{},{row}.1\r\n", key % 7),
                8 => format!("\"k{key}\"\"\",b{},12\n", key % 7),
                _ => format!("k{key},b{},{row}\n", key % 7),
            };
        }
        rows
    }

    /// Groups of lanes and of the table meet.
    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn groups_of_lanes_and_of_the_table_meet() {
        let rows = odd_rows();
        for (keys, quote) in [
            (&[1][..], None),
            (&[1], Some(b'"')),
            (&[1, 2], None),
            (&[2, 1], Some(b'"')),
            (&[], Some(b'"')),
        ] {
            for nulls in [&[][..], &["NA"]] {
                let mut query = Query::new(b',').quote(quote).on_error(OnError::Null);
                for &key in keys {
                    query = query.key(key);
                }
                for name in ["count", "sum", "min", "max", "stddev"] {
                    query = query.aggregate(name, Some(3.into())).unwrap();
                }
                for null in nulls {
                    query = query.null_value(*null);
                }
                let want = answer(&query, None, rows.as_bytes(), 20_000);
                for level in Level::available() {
                    let got = answer(&query, Some(level), rows.as_bytes(), 20_000);
                    assert!(got == want, "{keys:?} {quote:?} {nulls:?} {level:?}");
                }
            }
        }
    }

    /// Lanes are laid out anew when thousands of groups are there.
    #[test]
    #[cfg_attr(miri, ignore = "too much for an interpreter")]
    fn a_null_behind_many_groups() {
        let mut rows: String = (0..9000)
            .map(|row| format!("k{},{row}\n", row % 3000))
            .collect();
        rows += "k7,\nk8,0.5\nk9,99999999999\nk7,1\n";
        let query = Query::new(b',').key(1);
        let query = ["count", "sum", "min"].iter().fold(query, |query, name| {
            query.aggregate(name, Some(2.into())).unwrap()
        });
        let want = answer(&query, None, rows.as_bytes(), 20_000);
        for level in Level::available() {
            assert!(answer(&query, Some(level), rows.as_bytes(), 20_000) == want);
        }
    }

    /// Whatever the memory, the answer is the same.
    #[test]
    #[cfg_attr(miri, ignore = "it writes files")]
    fn groups_outgrow_the_memory() {
        let rows = odd_rows();
        let directory = tempfile::tempdir().unwrap();
        for (keys, aggregates) in [
            (&[1][..], &["count", "sum", "max"][..]),
            (&[1, 2], &["first", "last", "lexmin", "lexmax", "mean"]),
            (&[2, 1], &["stddev", "var_pop", "range", "min"]),
            (&[], &["sum", "first"]),
            (&[1], &["p99.9", "distinct", "median", "mode", "p10"]),
            (&[], &["p99.9", "distinct", "sum"]),
        ] {
            let options = [
                (None, false),
                (Some("count > 5"), false),
                (None, true),
                (Some("count > 5"), true),
            ];
            for (having, is_exact) in options {
                let query = Query::new(b',').quote(Some(b'"')).on_error(OnError::Null);
                let mut query = query.approximate(!is_exact);
                for &key in keys {
                    query = query.key(key);
                }
                for name in aggregates {
                    query = query.aggregate(name, Some(3.into())).unwrap();
                }
                query = query.aggregate("count", None).unwrap();
                if let Some(having) = having {
                    query = query.having(having).unwrap();
                }
                let want = answer(&query, None, rows.as_bytes(), 20_000);
                for memory in [0, 100_000, 400_000] {
                    let query = query.clone().memory(memory);
                    let query = query.spill_directory(directory.path());
                    for level in Level::available().into_iter().map(Some).chain([None]) {
                        let got = answer(&query, level, rows.as_bytes(), 20_000);
                        assert!(got == want, "{keys:?} {having:?} {memory} {level:?}");
                    }
                }
            }
        }
    }

    /// Exact answers are those of sorted lists, in memory and out of it.
    #[test]
    #[cfg_attr(miri, ignore = "it writes files")]
    fn exact_answers_are_exact() {
        use std::collections::BTreeMap;
        let directory = tempfile::tempdir().unwrap();
        let mut number = 3_u64;
        let mut draw = |below: u64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (number >> 33) % below
        };
        let mut text = String::new();
        let mut groups = BTreeMap::<String, Vec<(i128, String)>>::new();
        for row in 0..40_000 {
            let key = ["a", "b", "c", ""][draw(4).min(draw(5)) as usize % 4];
            // Hundredths, written in several ways.
            let hundredths = draw(9_000) as i128 - 3_000;
            let sign = if hundredths < 0 { "-" } else { "" };
            let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
            let value = match rest % 10 {
                0 if row % 3 == 0 => format!("{sign}{whole}.{}", rest / 10),
                _ => format!("{sign}{whole}.{rest:02}"),
            };
            let word = format!("w{}", draw(5000).min(draw(5000)));
            text += &format!("{key},{value},{word}\n");
            groups
                .entry(key.into())
                .or_default()
                .push((hundredths, word));
        }
        let names = ["p0", "p12.5", "median", "p99.9", "p100"];
        let shares = [(0, 1), (125, 1000), (1, 2), (999, 1000), (1, 1)];
        let mut want =
            String::from("key1,p0_2,p12.5_2,median_2,p99.9_2,p100_2,distinct_3,mode_3,count\n");
        for (key, rows) in &mut groups {
            rows.sort();
            want += if key.is_empty() { "\"\"" } else { key.as_str() };
            for (dividend, divisor) in shares {
                let place = (rows.len() as i128 - 1) * dividend;
                let (at, rest) = ((place / divisor) as usize, place % divisor);
                let next = rows.get(at + 1).map_or(0, |row| row.0);
                // Ten thousandths, rounded half away from zero.
                let exact = (rows[at].0 * (divisor - rest) + next * rest) * 100;
                let rounded = (2 * exact.abs() + divisor) / (2 * divisor);
                let sign = if exact < 0 && rounded > 0 { "-" } else { "" };
                want += &format!(",{sign}{}.{:04}", rounded / 10_000, rounded % 10_000);
            }
            let mut counts = BTreeMap::<&str, usize>::new();
            rows.iter()
                .for_each(|(_, word)| *counts.entry(word).or_default() += 1);
            let most = counts.values().max().unwrap();
            let (mode, _) = counts.iter().find(|(_, count)| *count == most).unwrap();
            want += &format!(",{},{mode},{}\n", counts.len(), rows.len());
        }
        let mut query = Query::new(b',').key(1);
        for name in names {
            query = query.aggregate(name, Some(2.into())).unwrap();
        }
        for name in ["distinct", "mode"] {
            query = query.aggregate(name, Some(3.into())).unwrap();
        }
        let query = query.aggregate("count", None).unwrap();
        let small = query.clone().memory(0).spill_directory(directory.path());
        for level in Level::available().into_iter().map(Some).chain([None]) {
            for query in [&query, &small] {
                let got = answer(query, level, text.as_bytes(), 50_000);
                assert_eq!(
                    got.rsplit_once('\n').unwrap().0,
                    want.trim_end(),
                    "{level:?}"
                );
            }
        }
    }

    /// Groups that have outgrown the memory are sorted by value, all of them or the first ones.
    #[test]
    #[cfg_attr(miri, ignore = "it writes files")]
    fn outgrown_answers_are_sorted() {
        let rows = odd_rows();
        let query = Query::new(b',').key(1).on_error(OnError::Null);
        let query = query.aggregate("max", Some(3.into())).unwrap();
        let query = query.aggregate("count", None).unwrap();
        let of = |query: &Query, sort: &str, first| {
            let input = Input::memory([rows.as_bytes()]);
            let plan = query.plan(&input, &Config::default()).unwrap();
            let (mut answer, _) = crate::job::fold::fold(&input, &Config::default(), &plan)?;
            answer.sort(&Sort::read(sort).unwrap(), first)?;
            let mut all = Vec::new();
            let mut cells = Vec::new();
            for at in 0..answer.len() {
                answer.row(at, &mut cells);
                all.push(format!("{cells:?}"));
            }
            answer.check()?;
            Ok((all, answer.spilled_bytes))
        };
        let directory = tempfile::tempdir().unwrap();
        let small = query.clone().memory(0).spill_directory(directory.path());
        for sort in ["max_3:desc", "max_3,key1:desc", "count,max_3:desc", "key"] {
            for first in [Some(7), Some(60), Some(150), None] {
                let (want, _) = of(&query, sort, first).unwrap();
                let got: Result<_> = of(&small, sort, first);
                let (got, spilled) = got.unwrap();
                assert!(got == want, "{sort} {first:?}");
                assert!(spilled > 0);
            }
        }
        let nowhere = query
            .memory(0)
            .spill_directory(directory.path().join("nowhere"));
        let error = of(&nowhere, "key", None).unwrap_err().to_string();
        assert!(error.contains("No such file or directory"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
