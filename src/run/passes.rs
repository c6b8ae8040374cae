//! The passes over the windows of a block: how a worker adds most records, many at a time.
//!
//! Index, spans, numbers, keys, groups, lanes: each pass does one thing for all rows of a window. What a pass can't do
//! for a row is done by the job record by record, so that both give the same answer: other numbers of fields, quotes
//! that can't be understood, doubled quotes, numbers that are too long.
//!
//! Invariant of this module: keys that are looked up are spans of a window or of the buffer for composed keys.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::aggregate::bag;
use crate::aggregate::lanes::{Kept, Lane, MAGNITUDE_MAX, NARROW_MAX, Part, SHORT_MAX, Traits};
use crate::aggregate::state::{Argument, Digest, DigestRow, Value};
use crate::condition::{Condition, Doubts, Reading};
use crate::decimal::number::Number;
use crate::engine::sink::BlockError;
use crate::format::dialect::Marks;
use crate::format::field::Field;
use crate::format::time::read;
use crate::level::Level;
use crate::plan::Plan;
use crate::record::block::{Block, PADDING};
use crate::run::pairs::{self, Pairs};
use crate::run::selection::{Candidates, Selection};
use crate::scan::decimal::{decode, usual_scale};
use crate::scan::index::{Index, TextWindow, WINDOW, index};
use crate::scan::key_number::window::ScanWindow;
use crate::scan::keys::{COMPOSED_BYTES, COMPOSED_KEY_MAX, compose};
use crate::scan::lines::Lines;
use crate::scan::log_lines::LogLines;
use crate::scan::numbers::{Numbers, ROWS, SCALE_MAX};
use crate::scan::spans::{RecordStarts, is_empty, spans, strip_quotes, strip_returns, value};
use crate::sketch::distinct::HashKey;
use crate::table::batch::BATCH;
use crate::table::entries::KEY_MAX;
use crate::table::isa::Seeds;
use crate::table::lane_groups::{KeptBatch, LaneGroups};
use crate::table::lane_plan::{KeyForm, LaneAggregate, LanePlan, Served};
use crate::table::lane_table::GROUP_LANES;
use crate::table::shared::SharedGroups;
use crate::table::states::{Group, Table};
use crate::table::stats::BIAS;

/// What a worker needs for the passes, and the lanes of the groups that it has found.
pub(crate) struct Passes {
    level: Level,
    /// What the index looks for; without it the dialect splits one record after the other.
    marks: Option<Marks>,
    /// What splits the lines of a log.
    log_lines: Option<LogLines>,
    fields: usize,
    fields_of_line: Vec<Field>,
    /// The columns that are looked at, from 0, and where their values stand.
    columns: Vec<usize>,
    spans: Vec<Box<[u32]>>,
    /// Those that a condition looks at, and the others, among `columns`.
    tested: Vec<usize>,
    untested: Vec<usize>,
    /// The columns of the key, among `columns`.
    keys: Vec<usize>,
    /// Whether the key is what stands between the first of its columns and the last.
    has_raw_keys: bool,
    /// Columns whose values lanes are about.
    sources: Vec<Source>,
    groups: LaneGroups,
    /// Adds windows of the usual records before the passes are tried, where the plan allows it.
    pairs: Option<Box<Pairs>>,
    index: Index,
    selection: Selection,
    scratch: Scratch,
}

/// Some of the columns that are looked at.
#[derive(Clone, Copy)]
enum Columns {
    /// Those that a condition looks at.
    Tested,
    /// The others.
    Untested,
}

/// A column whose values lanes are about.
struct Source {
    /// Among the passes' columns.
    at: usize,
    /// Which of the plan's numbers it is. If none, only nulls matter.
    number: Option<usize>,
    /// Whether its numbers are squared.
    is_squared: bool,
    numbers: Numbers,
    /// Decimals of the numbers' unit, once there was a number.
    scale: Option<u32>,
    traits: Traits,
}

/// Lists of the current window and batch.
struct Scratch {
    /// For each record the number of its last end, and of rows that of the end before the first field.
    last_ends: Vec<u16>,
    firsts: Vec<u16>,
    /// Where rows begin.
    starts: Vec<u32>,
    /// Rows that are taken out, and where records begin that are added one by one.
    out: Vec<u32>,
    others: Vec<u32>,
    key: Vec<u8>,
    key_spans: Vec<u32>,
    composed: Box<[u8]>,
    added: Box<[[i64; BATCH]; GROUP_LANES]>,
    groups: Vec<Group>,
    digests: Vec<DigestRow>,
    digest: Box<[u64; BATCH]>,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch {
            last_ends: Vec::new(),
            firsts: Vec::new(),
            starts: Vec::new(),
            out: Vec::new(),
            others: Vec::new(),
            key: Vec::new(),
            key_spans: Vec::new(),
            composed: vec![0; COMPOSED_BYTES * BATCH + PADDING].into(),
            added: Box::new([[0; BATCH]; GROUP_LANES]),
            groups: Vec::new(),
            digests: Vec::new(),
            digest: Box::new([0; BATCH]),
        }
    }
}

/// What the passes can't do, and what they add to beside their own lanes.
pub(crate) trait OneByOne {
    /// Adds the records of the block that begin at `from` and up to `until`, and those that can't be told apart from
    /// them; returns where the next one begins.
    ///
    /// # Errors
    /// The first malformed record.
    fn add(&mut self, from: usize, until: usize) -> Result<usize, BlockError>;

    /// Adds a record that the condition was found to take: what it met is counted already.
    ///
    /// # Errors
    /// It is malformed.
    fn add_taken(&mut self, from: usize) -> Result<usize, BlockError>;

    fn table(&mut self) -> &mut Table;

    /// For each of the plan's numbers the most decimals.
    fn scales(&mut self) -> &mut [u32];

    /// So many rows were added.
    fn added(&mut self, rows: usize);

    /// So many lines go on after a log's pattern, the first from there on.
    fn longer(&mut self, count: u64, first: usize);

    /// So many rows were left out because of the condition.
    fn filtered(&mut self, rows: usize);

    /// The condition decides otherwise about so many rows if it is read so. `places` says where the window begins, and where
    /// the first of these rows; `value` gives the values of that one.
    fn doubted<'a>(
        &mut self,
        reading: Reading,
        rows: u64,
        places: (usize, usize),
        value: impl Fn(usize) -> &'a [u8],
    );
}

impl Passes {
    /// The passes of a plan, if they can be used for it. `shared` are the groups that all workers share.
    pub(crate) fn new(plan: &Plan, shared: &Arc<SharedGroups>) -> Option<Passes> {
        let level = plan.level?;
        if plan.cuts.iter().any(Option::is_some) {
            return None;
        }
        let marks = plan.dialect.marks();
        if plan.dialect.has_zeros() || marks.is_none() && plan.framing.is_stateful() {
            // A key's last byte isn't zero, and a record of lines ends in the window.
            return None;
        }
        // A record that is too long is told one by one.
        let may_be_long = plan.framing.is_stateful() && plan.max_record < WINDOW;
        if plan.grammar.decimal_point != b'.' || may_be_long {
            return None;
        }
        let fields = plan.shape.as_ref()?.width;
        let mut columns: Vec<usize> = plan.keys.clone();
        columns.extend(plan.aggregates.iter().filter_map(|of| of.column));
        let mut tested = Vec::new();
        let mut has_two = false;
        if let Some(filter) = &plan.filter {
            filter.each_test(&mut |test| {
                tested.push(test.column);
                has_two |= test.clock.is_some();
            });
        }
        if has_two {
            return None;
        }
        columns.extend_from_slice(&tested);
        if fields == 1 {
            // It tells which lines are empty.
            columns.push(0);
        }
        columns.sort_unstable();
        columns.dedup();
        let (tested, untested) = (0..columns.len()).partition(|&at| tested.contains(&columns[at]));
        let among = |column: usize| {
            let at = columns.iter().position(|known| *known == column);
            at.expect("a column of the plan")
        };
        let source = |column: usize, number: Option<usize>| Source {
            at: among(column),
            number,
            is_squared: plan.aggregates.iter().any(|of| {
                let parts = of.kind.parts.unwrap_or_default();
                of.column == Some(column) && parts.contains(&Part::Squares)
            }),
            numbers: Numbers::new(),
            scale: None,
            traits: Traits::default(),
        };
        let numbers = plan.numbers.iter().enumerate();
        let mut sources: Vec<Source> = numbers
            .map(|(number, &column)| source(column, Some(number)))
            .collect();
        let served = plan.aggregates.iter().enumerate().map(|(at, of)| {
            if of.owner != at {
                return Served::Shared;
            }
            let Some(column) = of.column else {
                return Served::Lanes(None);
            };
            let known = |sources: &[Source]| {
                let at = among(column);
                sources.iter().position(|source| source.at == at)
            };
            if of.kind.parts.is_none() {
                let numbers = (of.kind.argument == Argument::Numbers).then(|| known(&sources));
                return Served::Values(among(column), numbers.flatten());
            }
            let known = known(&sources).unwrap_or_else(|| {
                sources.push(source(column, None));
                sources.len() - 1
            });
            Served::Lanes(Some(known))
        });
        let served: Vec<Served> = served.collect();
        let is_ascending = plan.keys.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let between = marks.filter(|marks| marks.quote.is_none());
        let has_raw_keys = is_ascending && (plan.keys.len() == 1 || between.is_some());
        let form = match plan.keys.len() {
            0 => KeyForm::None,
            1 => KeyForm::One,
            _ => match between.filter(|_| has_raw_keys) {
                Some(marks) => KeyForm::Between(marks.delimiter),
                None => KeyForm::Prefixed,
            },
        };
        let wanted = plan.aggregates.iter().zip(&served);
        let wanted = wanted.flat_map(|(of, served)| {
            let source = match served {
                Served::Lanes(source) => *source,
                Served::Values(..) | Served::Shared => None,
            };
            let parts = of.kind.parts.unwrap_or_default().iter();
            parts.filter_map(move |part| Some((source?, *part)))
        });
        let lanes = LanePlan {
            level,
            seeds: Seeds::drawn(&plan.hasher),
            form,
            nulls: plan.nulls.clone(),
            wanted: wanted.collect(),
            aggregates: (plan.aggregates.iter().zip(&served))
                .map(|(of, &served)| LaneAggregate {
                    kind: of.kind,
                    served,
                })
                .collect(),
        };
        Some(Passes {
            level,
            marks,
            log_lines: (plan.dialect.log_pattern()).and_then(|log| LogLines::new(log, &columns)),
            fields_of_line: Vec::new(),
            fields,
            spans: columns.iter().map(|_| vec![0; ROWS].into()).collect(),
            tested,
            untested,
            keys: plan.keys.iter().map(|&column| among(column)).collect(),
            has_raw_keys,
            columns,
            pairs: Pairs::new(plan).map(Box::new),
            groups: LaneGroups::new(lanes, sources.len(), shared),
            sources,
            index: Index::new(),
            selection: Selection::new(level),
            scratch: Scratch::new(),
        })
    }

    /// Whether the dialect splits one line after the other.
    pub(crate) fn splits_lines(&self) -> bool {
        self.marks.is_none() && self.log_lines.is_none()
    }

    /// What is done with each window, for people.
    pub(crate) fn names(&self, plan: &Plan) -> String {
        let mut names = match self.marks {
            Some(_) => vec!["index".to_string(), "spans".into()],
            None if self.log_lines.is_some() => vec!["bitmaps".to_string(), "spans".into()],
            None => vec!["lines one by one".to_string()],
        };
        let mut add = |is_there: bool, name: &str| {
            names.extend(is_there.then(|| name.to_string()));
        };
        add(plan.filter.is_some(), "condition");
        add(
            self.sources.iter().any(|source| source.number.is_some()),
            "numbers",
        );
        add(!self.keys.is_empty(), "keys");
        let layout = self.groups.layout();
        let lanes = match layout.lanes().len() {
            1 => "1 lane a group".into(),
            lanes => format!("{lanes} lanes a group"),
        };
        add(true, &lanes);
        add(layout.group_lane().is_some(), "values");
        let names = names.join(", ");
        match self.pairs {
            Some(_) => format!("one loop where numbers have 1 decimal, else {names}"),
            None => names,
        }
    }

    /// Has lanes for what is known of the columns now.
    fn set_columns(&mut self, table: &mut Table) {
        let scales = self
            .sources
            .iter()
            .map(|source| source.scale.unwrap_or_default());
        let traits = self.sources.iter().map(|source| source.traits);
        self.groups
            .set_columns(scales.collect(), traits.collect(), table);
    }

    /// Moves lanes to the table where groups have values besides, because a group's number says where in this table it is.
    pub(crate) fn settle(&mut self, table: &mut Table) {
        self.drain_pairs(false, table);
        if self.groups.plan().has_values() {
            self.groups.flush(table);
        }
    }

    /// Moves the groups of pairs to lanes, and to the table what these can't hold. From now on rows are for lanes if memory
    /// is short.
    pub(crate) fn drain_pairs(&mut self, is_short: bool, table: &mut Table) {
        let Some(pairs) = &mut self.pairs else {
            return;
        };
        if is_short {
            pairs.stop();
        }
        if pairs.len() > 0 {
            self.set_pair_columns(table);
            self.move_pairs(true, table);
        }
    }

    /// Moves groups of pairs to lanes: all, or those of sizes that have too many keys.
    fn move_pairs(&mut self, all: bool, table: &mut Table) {
        let (groups, mut batch) = (&mut self.groups, KeptBatch::default());
        let pairs = self.pairs.as_mut();
        pairs.into_iter().for_each(|pairs| {
            pairs.drain(all, |key, kept| {
                if !batch.push(key, kept) {
                    groups.add_kept(&mut batch, table);
                }
            });
        });
        if !batch.is_empty() {
            groups.add_kept(&mut batch, table);
        }
    }

    /// Has lanes for the numbers of pairs, and for many keys.
    fn set_pair_columns(&mut self, table: &mut Table) {
        // Lanes are about the numbers alone.
        let source = &mut self.sources[0];
        if source.scale < Some(pairs::SCALE) {
            source.scale = Some(pairs::SCALE);
            self.set_columns(table);
        }
        self.groups.slots.expect_many();
    }

    /// Bytes of the groups of pairs.
    pub(crate) fn pair_bytes(&self) -> usize {
        self.pairs.as_ref().map_or(0, |pairs| pairs.bytes())
    }

    /// Adds the records of a window that is one of pairs; returns where the next one begins.
    ///
    /// # Errors
    /// The first malformed record.
    pub(crate) fn add_pairs(
        &mut self,
        block: &Block<'_>,
        at: usize,
        others: &mut impl OneByOne,
    ) -> Result<Option<usize>, BlockError> {
        let Some(pairs) = &mut self.pairs else {
            return Ok(None);
        };
        let Some(window) = pairs.read(block, at) else {
            return Ok(None);
        };
        for &start in pairs.others() {
            let start = at + start as usize;
            others.add(start, start + 1)?;
        }
        let (rows, has_more) = pairs.fold(window);
        let end = pairs.end();
        if has_more {
            self.fold_pairs(window, others.table());
        }
        others.added(rows);
        if rows > 0 {
            let scale = &mut others.scales()[0];
            *scale = pairs::SCALE.max(*scale);
        }
        Ok(Some(at + end))
    }

    /// Adds the rows of pairs that are for lanes.
    #[inline(never)]
    fn fold_pairs(&mut self, window: ScanWindow<'_>, table: &mut Table) {
        self.set_pair_columns(table);
        self.move_pairs(false, table);
        let Some(pairs) = self.pairs.take() else {
            return;
        };
        let source = &mut self.sources[0];
        source.numbers.has_nulls = false;
        let factor = 10_i64.pow(source.scale.unwrap_or_default() - pairs::SCALE);
        for (keys, values) in pairs.for_lanes() {
            let most = self.groups.slots.batch_rows();
            for (keys, values) in keys.chunks(most).zip(values.chunks(most)) {
                self.groups.reserve(keys.len(), table);
                let spans = &mut self.scratch.key_spans;
                spans.clear();
                // A start, and in the high half a length.
                spans.extend(keys.iter().map(|key| key + (key << 16)));
                let numbers = &mut self.sources[0].numbers.values;
                for (number, &value) in numbers.iter_mut().zip(values) {
                    *number = (i64::from(value) - i64::from(BIAS)) * factor;
                }
                // SAFETY: keys are in the window, after which 64 bytes are readable, and no longer than those of the
                // lists' classes.
                unsafe { self.groups.slots.find(window.pointer(), spans) };
                for first in (0..self.groups.layout().lanes().len()).step_by(GROUP_LANES) {
                    self.add_lanes(first, 0, keys.len());
                }
            }
        }
        self.pairs = Some(pairs);
    }

    /// The groups that lanes know of.
    pub(crate) fn groups(&mut self) -> &mut LaneGroups {
        &mut self.groups
    }

    /// The same, in the end.
    pub(crate) fn into_groups(self) -> LaneGroups {
        self.groups
    }

    /// Adds the records of the window of `block` that begins at `at` with a record; returns where the next one begins.
    ///
    /// # Errors
    /// The first malformed record.
    pub(crate) fn window(
        &mut self,
        plan: &Plan,
        block: &Block<'_>,
        at: usize,
        others: &mut impl OneByOne,
    ) -> Result<usize, BlockError> {
        let window = TextWindow::at(block, at);
        let (mut is_regular, end) = match self.marks {
            None => (false, self.lines(plan, window)),
            Some(marks) => {
                index(self.level, window, marks, &mut self.index);
                if self.index.has_offence {
                    return others.add(at, at + window.bytes().len());
                }
                match self.index.records() {
                    0 => (false, 0),
                    _ => self.list(window),
                }
            }
        };
        if end == 0 {
            return others.add(at, at + 1);
        }
        if let Some(LogLines {
            longer: (count @ 1.., first),
            ..
        }) = self.log_lines
        {
            others.longer(count, at + first as usize);
        }
        let mut undecided = usize::MAX;
        if let Some(filter) = &plan.filter {
            // Other columns are looked at in the rows that it takes.
            self.columns(window, Columns::Tested, is_regular);
            if std::mem::take(&mut is_regular) {
                self.list_firsts();
            }
            self.remove_out(true, false);
            undecided = self.scratch.others.len();
            let filtered = self.filter(plan, filter, (window, at), others);
            others.filtered(filtered);
        }
        self.columns(window, Columns::Untested, is_regular);
        self.remove_out(true, false);
        for source in 0..self.sources.len() {
            self.numbers(plan, window, source, others.table());
        }
        self.times(plan, window);
        self.remove_out(true, true);
        self.note_decimals(plan, window, others.scales());
        if !self.scratch.others.is_empty() {
            // The lowest malformed record is the one that is told.
            let taken = self
                .scratch
                .others
                .split_off(undecided.min(self.scratch.others.len()));
            let undecided = self.scratch.others.drain(..).map(|start| (start, false));
            let mut all: Vec<_> = undecided
                .chain(taken.into_iter().map(|start| (start, true)))
                .collect();
            all.sort_unstable();
            for (start, is_taken) in all {
                let start = at + start as usize;
                match is_taken {
                    true => others.add_taken(start)?,
                    false => others.add(start, start + 1)?,
                };
            }
        }
        others.added(self.scratch.starts.len());
        let place = (block.file(), block.offset() + at as u64);
        self.fold(plan, window, place, others.table());
        Ok(at + end)
    }

    /// Lists rows and their values as the dialect splits them; returns where the last record ends.
    #[inline(never)]
    fn lines(&mut self, plan: &Plan, window: TextWindow<'_>) -> usize {
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
            columns: &self.columns,
            fields: &mut self.fields_of_line,
            spans: &mut self.spans,
        };
        lines.read(window, &mut lists.starts, &mut lists.others)
    }

    /// Lists where rows begin, and where records that are none. Returns whether there is none of these, and where the
    /// last record ends.
    #[inline(never)]
    fn list(&mut self, window: TextWindow<'_>) -> (bool, usize) {
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
    fn list_firsts(&mut self) {
        let Scratch { firsts, starts, .. } = &mut self.scratch;
        firsts.clear();
        firsts.extend((0..starts.len()).map(|row| (row * self.fields) as u16));
    }

    /// Where the values of some columns stand, if it isn't known yet. Takes out rows that passes can't add because of
    /// these.
    fn columns(&mut self, window: TextWindow<'_>, which: Columns, is_regular: bool) {
        let Some(marks) = self.marks else {
            return;
        };
        let columns = match which {
            Columns::Tested => std::mem::take(&mut self.tested),
            Columns::Untested => std::mem::take(&mut self.untested),
        };
        for &column in &columns {
            self.column(window, marks, column, is_regular);
        }
        if !columns.is_empty() {
            self.take_out_unusual(&columns);
        }
        match which {
            Columns::Tested => self.tested = columns,
            Columns::Untested => self.untested = columns,
        }
    }

    /// Where the values of a column stand.
    #[inline(never)]
    fn column(&mut self, window: TextWindow<'_>, marks: Marks, column: usize, is_regular: bool) {
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
        if let Some(quote) = marks.quote.filter(|_| self.index.has_quotes) {
            strip_quotes(window, quote, list);
        }
        self.spans[column][rows..rows + 8].fill(0);
    }

    /// Takes out empty lines, and rows with doubled quotes in a value of these columns.
    #[inline(never)]
    fn take_out_unusual(&mut self, columns: &[usize]) {
        let Scratch { starts, out, .. } = &mut self.scratch;
        if self.fields == 1 {
            let lines = (0..).zip(&self.spans[0][..starts.len()]);
            let empty = lines.filter(|(_, span)| is_empty(**span));
            out.extend(empty.map(|(row, _)| row));
        }
        let mut row = 0;
        for &quote in &self.index.doubled {
            let quote = u32::from(quote);
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

    /// The numbers of a source, and which of its values are null. Takes out rows whose values can't be added to lanes.
    #[inline(never)]
    fn numbers(&mut self, plan: &Plan, window: TextWindow<'_>, source: usize, table: &mut Table) {
        let rows = self.scratch.starts.len();
        let mut traits = self.sources[source].traits;
        let taken_out = self.scratch.out.len();
        loop {
            let Source {
                at,
                number,
                is_squared,
                numbers,
                scale,
                ..
            } = &mut self.sources[source];
            let spans = &self.spans[*at];
            if number.is_none() {
                numbers.has_nulls = false;
                mark_nulls(plan, window, &spans[..rows], numbers);
                traits.has_nulls |= numbers.has_nulls;
                break;
            }
            let known = *scale.get_or_insert_with(|| usual_scale(window, &spans[..rows]));
            decode(self.level, window, spans, rows, known, numbers);
            if plan.is_pairs && std::mem::take(&mut numbers.has_nulls) {
                let empty = (0..rows).filter(|&row| numbers.is_null(row));
                let empty: Vec<usize> = empty.collect();
                for row in empty {
                    numbers.set_null(row, false);
                    self.scratch.out.push(row as u32);
                }
                numbers.has_nulls = false;
            }
            if plan.has_numeric_nulls {
                mark_nulls(plan, window, &spans[..rows], numbers);
            }
            let limit = if *is_squared {
                NARROW_MAX
            } else {
                MAGNITUDE_MAX
            };
            let wanted = read_rest(
                plan,
                window,
                spans,
                known,
                limit,
                numbers,
                &mut self.scratch.out,
            );
            if wanted > known {
                self.sources[source].scale = Some(wanted);
                self.scratch.out.truncate(taken_out);
                continue;
            }
            traits.has_nulls |= numbers.has_nulls;
            traits.exceeds_short |= numbers.magnitudes >= SHORT_MAX;
            if numbers.magnitudes >= NARROW_MAX {
                traits.is_wide |= !*is_squared;
                if *is_squared {
                    let values = (0..).zip(&numbers.values[..rows]);
                    let wide = values.filter(|(_, value)| value.unsigned_abs() >= NARROW_MAX);
                    self.scratch.out.extend(wide.map(|(row, _)| row));
                }
            }
            break;
        }
        self.sources[source].traits = traits;
        let scale = self.sources[source].scale.unwrap_or_default();
        if !self.groups.is_about(source, scale, traits) {
            self.set_columns(table);
        }
    }

    /// Takes out rows that lack a time where one is wanted.
    fn times(&mut self, plan: &Plan, window: TextWindow<'_>) {
        for column in &plan.times {
            let at = self.columns.iter().position(|known| known == column);
            let spans = &self.spans[at.expect("a column of the plan")];
            let rows = (0..).zip(&spans[..self.scratch.starts.len()]);
            let others = rows.filter(|(_, span)| {
                let bytes = value(window, **span);
                !plan.is_null(bytes) && read(bytes).is_err()
            });
            self.scratch.out.extend(others.map(|(row, _)| row));
        }
    }

    /// Keeps only the rows that a condition takes; returns how many the others are.
    #[inline(never)]
    fn filter(
        &mut self,
        plan: &Plan,
        filter: &Condition,
        (window, at): (TextWindow<'_>, usize),
        others: &mut impl OneByOne,
    ) -> usize {
        let starts = &mut self.scratch.starts;
        let rows = Candidates {
            window,
            count: starts.len(),
            columns: &self.columns,
            spans: &self.spans,
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
            let start = at + starts[row] as usize;
            others.doubted(reading, count, (at, start), |column| {
                value(window, rows.spans(column)[row])
            });
        }
        for (column, spans) in self.spans.iter_mut().enumerate() {
            // By an index the others aren't known yet.
            if self.marks.is_none() || self.tested.contains(&column) {
                let kept = keep(&taken, spans);
                spans[kept..kept + 8].fill(0);
            }
        }
        if self.marks.is_some() {
            keep(&taken, &mut self.scratch.firsts);
        }
        let before = starts.len();
        let count = keep(&taken, starts);
        starts.truncate(count);
        before - count
    }

    /// Removes the rows that were taken out from all lists; they are added one by one if `to_others`. Numbers are among
    /// the lists if `has_numbers`.
    fn remove_out(&mut self, to_others: bool, has_numbers: bool) {
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
        for source in self.sources.iter_mut().filter(|_| has_numbers) {
            let numbers = &mut source.numbers;
            let has_nulls = numbers.has_nulls;
            keep_others(out, rows, |from, to| {
                numbers.values[to] = numbers.values[from];
                if has_nulls {
                    let is_null = numbers.is_null(from);
                    numbers.set_null(to, is_null);
                }
            });
        }
        let (starts, firsts) = (&mut lists.starts, &mut lists.firsts);
        keep_others(out, rows, |from, to| starts[to] = starts[from]);
        starts.truncate(rows - out.len());
        if firsts.len() == rows {
            keep_others(out, rows, |from, to| firsts[to] = firsts[from]);
        }
        lists.out.clear();
    }

    /// Notes the most decimals of the rows' numbers.
    #[inline(never)]
    fn note_decimals(&mut self, plan: &Plan, window: TextWindow<'_>, scales: &mut [u32]) {
        let rows = self.scratch.starts.len();
        for source in &self.sources {
            let Some(number) = source.number else {
                continue;
            };
            if source.numbers.decimals <= scales[number] {
                continue;
            }
            // Rows that were taken out don't count. It happens as often as there are decimals.
            for (row, &span) in self.spans[source.at][..rows].iter().enumerate() {
                if !source.numbers.is_null(row) {
                    let read = plan.read_number(value(window, span));
                    let decimals = read.map_or(0, |number| number.decimals());
                    scales[number] = scales[number].max(decimals);
                }
            }
        }
    }

    /// Adds the rows to their groups.
    #[inline(never)]
    fn fold(&mut self, plan: &Plan, window: TextWindow<'_>, place: (u32, u64), table: &mut Table) {
        self.fold_long(plan, window, place, table);
        let rows = self.scratch.starts.len();
        let mut next = 0;
        while next < rows {
            let from = next;
            let count = self.groups.slots.batch_rows().min(rows - from);
            next += count;
            self.groups.reserve(count, table);
            let text = self.key_spans(window, from, count);
            // SAFETY: keys are in the window or in the buffer for composed ones, behind both of which 64 bytes are
            // readable; long ones were taken out.
            unsafe { self.groups.slots.find(text, &self.scratch.key_spans) };
            if let Some(lane) = self.groups.layout().group_lane() {
                self.find_groups(plan, window, from, lane, table);
                self.see_values(plan, window, place, from, table);
            }
            for first in (0..self.groups.layout().lanes().len()).step_by(GROUP_LANES) {
                self.add_lanes(first, from, count);
            }
        }
    }

    /// Adds rows whose keys don't fit a slot, and takes them out.
    fn fold_long(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        place: (u32, u64),
        table: &mut Table,
    ) {
        let rows = self.scratch.starts.len();
        let (Some(&first), Some(&last)) = (self.keys.first(), self.keys.last()) else {
            return;
        };
        if self.has_raw_keys {
            // Without a branch for each row.
            let pairs = self.spans[first].iter().zip(&*self.spans[last]);
            let longest = pairs
                .take(rows)
                .map(|(first, last)| raw_length(*first, *last));
            if longest
                .max()
                .is_none_or(|longest| longest <= self.key_max())
            {
                return;
            }
        }
        for row in 0..rows {
            if self.key_length(row) <= self.key_max() {
                continue;
            }
            self.scratch.out.push(row as u32);
            let mut key = std::mem::take(&mut self.scratch.key);
            self.key_of_row(plan, window, row, &mut key);
            let group = table.group(&key);
            self.scratch.key = key;
            for (at, of) in self.groups.plan().aggregates.iter().enumerate() {
                match of.served {
                    Served::Lanes(source) => {
                        let kept = source.map_or(Kept::of(Some(0), 0), |source| {
                            let source = &self.sources[source];
                            let value = source.numbers.values[row];
                            let value = (!source.numbers.is_null(row)).then_some(value);
                            Kept::of(value, source.scale.unwrap_or_default())
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
    }

    /// The most bytes of a key that has lanes, with the one after it.
    fn key_max(&self) -> usize {
        match self.has_raw_keys {
            true => KEY_MAX,
            false => COMPOSED_KEY_MAX,
        }
    }

    /// Bytes of a row's key beside its lanes, with the one after it.
    fn key_length(&self, row: usize) -> usize {
        let span = |column: usize| self.spans[column][row];
        match &*self.keys {
            [first, ..] if self.has_raw_keys => {
                raw_length(span(*first), span(self.keys[self.keys.len() - 1]))
            }
            keys => {
                let parts = keys.iter().map(|&key| raw_length(span(key), span(key)));
                1 + parts.sum::<usize>()
            }
        }
    }

    /// The key of a row as the table has it.
    fn key_of_row(&self, plan: &Plan, window: TextWindow<'_>, row: usize, to: &mut Vec<u8>) {
        to.clear();
        for &column in &self.keys {
            plan.push_key(to, value(window, self.spans[column][row]));
        }
        plan.end_key(to);
    }

    /// The keys of a batch: spans in what is returned.
    #[inline(never)]
    fn key_spans(&mut self, window: TextWindow<'_>, from: usize, count: usize) -> *const u8 {
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
            [one] => {
                key_spans.extend_from_slice(&self.spans[*one][from..from + count]);
                return window.pointer();
            }
            [first, .., last] if self.has_raw_keys => {
                let first = &self.spans[*first][from..from + count];
                let last = &self.spans[*last][from..from + count];
                let pairs = first.iter().zip(last);
                key_spans.extend(pairs.map(|(first, last)| first & 0xffff | last & 0xffff_0000));
                return window.pointer();
            }
            keys => {
                let parts = keys
                    .iter()
                    .map(|&column| &self.spans[column][from..from + count]);
                compose(window, parts, composed, key_spans);
            }
        }
        composed.as_ptr()
    }

    /// Finds the groups of a batch's rows, whose numbers are in `lane`; new slots get those of theirs.
    fn find_groups(
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

    /// Shows the values of a batch to the aggregates that must see each.
    #[inline(never)]
    fn see_values(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        place: (u32, u64),
        from: usize,
        table: &mut Table,
    ) {
        for at in 0..self.groups.plan().aggregates.len() {
            let LaneAggregate { kind, served } = self.groups.plan().aggregates[at];
            let Served::Values(column, source) = served else {
                continue;
            };
            if let Some(digest) = kind.digest {
                match (digest, source) {
                    (Digest::Values, Some(source)) => self.keep_numbers(at, source, from, table),
                    _ => self.digest_values(plan, window, digest, (column, source), from, table),
                }
                table.add(at, &self.scratch.digests);
                continue;
            }
            for (row, &group) in (from..).zip(&self.scratch.groups) {
                if let Some(value) = self.value(plan, window, place, (column, source), row) {
                    table.update(group, at, &value);
                }
            }
        }
    }

    /// The digests of a batch's values, but for nulls.
    fn digest_values(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        digest: Digest,
        (column, source): (usize, Option<usize>),
        from: usize,
        table: &mut Table,
    ) {
        let Scratch {
            groups,
            digests,
            digest: each,
            ..
        } = &mut self.scratch;
        digests.clear();
        match (digest, source) {
            (Digest::Hash, _) => {
                let spans = &self.spans[column][from..from + groups.len()];
                let values = spans.iter().map(|span| value(window, *span));
                let known = groups.iter().zip(values);
                let known = known.filter(|(_, value)| !plan.is_null(value));
                let key = plan.hash_key;
                digests.extend(known.map(|(group, value)| group.digested(key.hash(value))));
            }
            (Digest::Values, _) => {
                let spans = &self.spans[column][from..from + groups.len()];
                for (group, span) in groups.iter().zip(spans) {
                    let text = value(window, *span);
                    if !plan.is_null(text) {
                        digests.push(group.digested(table.text_digest(text)));
                    }
                }
            }
            (Digest::Numbers(digest), Some(source)) => {
                let source = &self.sources[source];
                let numbers = &source.numbers.values[from..from + groups.len()];
                let scale = source.scale.unwrap_or_default();
                digest(numbers, scale, &mut each[..]);
                let all = groups.iter().zip(&each[..]);
                let all = all.map(|(group, digest)| group.digested(*digest));
                match source.numbers.has_nulls {
                    false => digests.extend(all),
                    true => {
                        let known = (from..).zip(all);
                        let known = known.filter(|(row, _)| !source.numbers.is_null(*row));
                        digests.extend(known.map(|(_, digested)| digested));
                    }
                }
            }
            (Digest::Numbers(_), None) => unreachable!("numbers have a source"),
        }
    }

    /// The digests of a batch's numbers for bags, but for nulls. Those without a digest are groups of their own.
    fn keep_numbers(&mut self, aggregate: usize, source: usize, from: usize, table: &mut Table) {
        let Scratch {
            groups, digests, ..
        } = &mut self.scratch;
        digests.clear();
        let source = &self.sources[source];
        let scale = source.scale.unwrap_or_default();
        let factor = 10_i64.pow(table.raise(aggregate, scale) - scale);
        for (row, group) in (from..).zip(&*groups) {
            if source.numbers.has_nulls && source.numbers.is_null(row) {
                continue;
            }
            let number = source.numbers.values[row];
            match number.checked_mul(factor).and_then(bag::of_number) {
                Some(digest) => digests.push(group.digested(digest)),
                None => {
                    let value = Value {
                        bytes: b"",
                        number: Number::new(number.into(), scale),
                        hash_key: &HashKey::NONE,
                        place: (0, 0),
                    };
                    table.update(*group, aggregate, &value);
                }
            }
        }
    }

    /// What an aggregate sees of a row, unless it is null: of a column, which has numbers if there is a source of them.
    fn value<'a>(
        &self,
        plan: &'a Plan,
        window: TextWindow<'a>,
        place: (u32, u64),
        (column, source): (usize, Option<usize>),
        row: usize,
    ) -> Option<Value<'a>> {
        let bytes = value(window, self.spans[column][row]);
        let number = match source {
            Some(source) if self.sources[source].numbers.is_null(row) => return None,
            Some(source) => {
                let source = &self.sources[source];
                Number::new(
                    source.numbers.values[row].into(),
                    source.scale.unwrap_or_default(),
                )
            }
            None if plan.is_null(bytes) => return None,
            None => Number::ZERO,
        };
        let start = u64::from(self.scratch.starts[row]);
        Some(Value {
            bytes,
            number,
            hash_key: &plan.hash_key,
            place: (place.0, place.1 + start),
        })
    }

    /// Adds a batch's rows to four lanes, the first of which is `first`.
    #[inline(never)]
    fn add_lanes(&mut self, first: usize, from: usize, count: usize) {
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
            let numbers = &self.sources[source].numbers;
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

/// Bytes from the start of one span to the end of another, with the byte behind it.
fn raw_length(first: u32, last: u32) -> usize {
    (last >> 16) as usize - (first & 0xffff) as usize
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

/// Marks values that are null; their numbers are zero.
fn mark_nulls(plan: &Plan, window: TextWindow<'_>, spans: &[u32], numbers: &mut Numbers) {
    for (row, &span) in spans.iter().enumerate() {
        let is_null = plan.is_null(value(window, span));
        numbers.set_null(row, is_null);
        if is_null {
            numbers.values[row] = 0;
        }
    }
}

/// Reads what the pass over numbers didn't: null values, and numbers with blanks, signs or many digits. Returns the most
/// decimals that there should be; takes out rows whose values are no numbers, or not less than `limit`.
fn read_rest(
    plan: &Plan,
    window: TextWindow<'_>,
    spans: &[u32],
    scale: u32,
    limit: u64,
    numbers: &mut Numbers,
    out: &mut Vec<u32>,
) -> u32 {
    let mut wanted = scale;
    let unread = std::mem::take(&mut numbers.unread);
    for &row in &unread {
        let text = value(window, spans[row as usize]);
        if plan.is_null(text) {
            numbers.set_null(row as usize, true);
            continue;
        }
        let Ok(number) = plan.read_number(text) else {
            out.push(row);
            continue;
        };
        if number.decimals() > scale {
            if number.decimals() <= SCALE_MAX {
                wanted = wanted.max(number.decimals());
            }
            out.push(row);
            continue;
        }
        let value = number.at(scale).and_then(|value| i64::try_from(value).ok());
        match value.filter(|value| value.unsigned_abs() < limit) {
            Some(value) => {
                numbers.values[row as usize] = value;
                numbers.magnitudes |= value.unsigned_abs();
                numbers.decimals = numbers.decimals.max(number.decimals());
            }
            None => out.push(row),
        }
    }
    numbers.unread = unread;
    wanted
}
