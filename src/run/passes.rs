//! The passes over the windows of a block: how a worker adds most records, many at a time.
//!
//! Index, spans, numbers, keys, groups, lanes: each pass does one thing for all rows of a window. What a pass can't do
//! for a row is done by the job record by record, so that both give the same answer: other numbers of fields, quotes
//! that can't be understood, doubled quotes, numbers that are too long.

use std::sync::Arc;

use ringfold_read::internals::Level;
use ringfold_read::{BlockError, PADDING};

use crate::aggregate::lanes::{Part, Traits};
use crate::aggregate::state::{Argument, DigestRow};
use crate::format::dialect::Marks;
use crate::format::field::Field;
use crate::plan::Plan;
use crate::run::pairs::Pairs;
use crate::run::passes::computed::{Computation, ComputedColumn};
use crate::run::passes::cuts::CutColumn;
use crate::run::passes::numbers::Source;
use crate::run::passes::selection::Selection;
use crate::run::rest::Rest;
use crate::scan::index::{Index, TextWindow, WINDOW, index};
use crate::scan::keys::COMPOSED_BYTES;
use crate::scan::log_lines::LogLines;
use crate::scan::numbers::ROWS;
use crate::table::batch::BATCH;
use crate::table::isa::Seeds;
use crate::table::key::KeyForm;
use crate::table::lane_groups::LaneGroups;
use crate::table::lane_plan::{LaneAggregate, LanePlan, Served};
use crate::table::lane_table::{ENTRY_ROWS, GROUP_LANES};
use crate::table::shared::SharedGroups;
use crate::table::states::{Group, Table};

mod arithmetic;
mod computed;
mod cuts;
mod fold;
mod numbers;
mod offsets;
mod pairs;
mod quotients;
mod rows;
mod selection;
mod values;

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
    /// The columns that are computed, from this one on.
    first_computed: usize,
    computed: Vec<ComputedColumn>,
    /// Those that a condition looks at, and the others, among `columns`.
    tested: Vec<usize>,
    untested: Vec<usize>,
    /// The columns of the key.
    keys: Vec<KeyColumn>,
    /// Those of them that nothing else looks at, and whether some values of the window are quoted.
    only_keys: Vec<usize>,
    may_be_doubled: bool,
    /// Those of them whose times are cut down.
    cuts: Vec<CutColumn>,
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

/// A column of the key.
struct KeyColumn {
    /// Among the passes' columns.
    at: usize,
    /// Among those whose times are cut down.
    cut: Option<usize>,
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
            composed: vec![0; COMPOSED_BYTES * ENTRY_ROWS + PADDING].into(),
            added: Box::new([[0; BATCH]; GROUP_LANES]),
            groups: Vec::new(),
            digests: Vec::new(),
            digest: Box::new([0; BATCH]),
        }
    }
}

impl Passes {
    /// The passes of a plan, if they can be used for it. `shared` are the groups that all workers share.
    pub(crate) fn new(plan: &Plan, shared: &Arc<SharedGroups>) -> Option<Passes> {
        let level = plan.level?;
        let marks = plan.dialect.marks();
        if plan.dialect.has_zeros() || marks.is_none() && plan.framing.is_stateful() {
            // A key's last byte isn't zero, and a record of lines ends in the window.
            return None;
        }
        // A record that is too long is told one by one.
        let may_be_long = plan.framing.is_stateful() && plan.max_record < WINDOW;
        if may_be_long {
            return None;
        }
        let fields = plan.shape.as_ref()?.width;
        let mut columns: Vec<usize> = plan.keys.clone();
        columns.extend(plan.cuts.iter().flatten().filter_map(|cut| cut.clock));
        columns.extend(plan.aggregates.iter().filter_map(|of| of.column));
        let mut tested = Vec::new();
        if let Some(filter) = &plan.filter {
            filter.each_test(&mut |test| {
                tested.push(test.column);
                tested.extend(test.clock);
            });
        }
        let mut computed = Computation::default();
        let of_aggregates = plan.aggregates.iter().filter_map(|of| of.column);
        let untested = plan.keys.iter().copied().chain(of_aggregates);
        tested
            .iter()
            .for_each(|&column| computed.add(plan, column, true));
        untested.for_each(|column| computed.add(plan, column, false));
        tested.extend_from_slice(&computed.tested);
        columns.extend_from_slice(&tested);
        columns.extend_from_slice(&computed.columns);
        columns.retain(|column| *column < fields);
        if fields == 1 {
            // It tells which lines are empty.
            columns.push(0);
        }
        columns.sort_unstable();
        columns.dedup();
        let first_computed = columns.len();
        columns.extend(&computed.computed);
        let (tested, untested): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|&at| tested.contains(&columns[at]));
        let among = |column: usize| {
            let at = columns.iter().position(|known| *known == column);
            at.expect("a column of the plan")
        };
        let source = |column: usize, number: Option<usize>| Source {
            column: numbers::Column::new(among(column)),
            number,
            is_squared: plan.aggregates.iter().any(|of| {
                let parts = of.kind.parts.unwrap_or_default();
                of.column == Some(column) && parts.contains(&Part::Squares)
            }),
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
                sources.iter().position(|source| source.column.at == at)
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
        let mut cuts = Vec::new();
        let keys = plan.keys.iter().zip(&plan.cuts).map(|(&column, cut)| {
            let at = among(column);
            let cut = cut.map(|cut| {
                cuts.push(CutColumn::new(cut.unit, at, cut.clock.map(&among)));
                cuts.len() - 1
            });
            KeyColumn { at, cut }
        });
        let keys: Vec<KeyColumn> = keys.collect();
        let is_looked_at = |column: &usize| {
            let others = plan.aggregates.iter().filter_map(|of| of.column);
            let mut others = others.chain(plan.times.iter().copied());
            others.any(|other| other == *column) || computed.columns.contains(column)
        };
        let uncut = plan.keys.iter().zip(&plan.cuts);
        let uncut = uncut.filter(|(column, cut)| cut.is_none() && **column < fields);
        let only_keys = uncut.map(|(&column, _)| column);
        let only_keys = only_keys.filter(|column| !is_looked_at(column));
        let only_keys = only_keys.map(&among).filter(|at| untested.contains(at));
        let only_keys: Vec<usize> = only_keys.collect();
        let is_of_input = plan.keys.iter().all(|&key| key < fields);
        let is_ascending = plan.keys.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let between = marks.filter(|marks| marks.quote.is_none());
        let has_raw_keys = plan.keys.len() == 1 || is_ascending && is_of_input && between.is_some();
        let has_raw_keys = has_raw_keys && plan.cuts.iter().all(Option::is_none);
        let form = match plan.keys.len() {
            0 => KeyForm::None,
            1 if has_raw_keys => KeyForm::One,
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
            log_lines: (plan.dialect.log_pattern())
                .and_then(|log| LogLines::new(log, &columns[..first_computed])),
            computed: (computed.computed.iter())
                .map(|&column| ComputedColumn::new(level, plan, column, among))
                .collect(),
            first_computed,
            fields_of_line: Vec::new(),
            fields,
            spans: columns.iter().map(|_| vec![0; ROWS].into()).collect(),
            tested,
            untested,
            only_keys,
            may_be_doubled: false,
            keys,
            cuts,
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
        add(!self.computed.is_empty(), "computed values");
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
            .map(|source| source.column.scale.unwrap_or_default());
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

    /// The groups that lanes know of.
    pub(crate) fn groups(&mut self) -> &mut LaneGroups {
        &mut self.groups
    }

    /// The same, in the end.
    pub(crate) fn into_groups(self) -> LaneGroups {
        self.groups
    }

    /// Adds the records of the window of a block that begins at `at` with a record; returns where the next one begins.
    ///
    /// # Errors
    /// The first malformed record.
    pub(super) fn window(&mut self, at: usize, rest: &mut Rest<'_>) -> Result<usize, BlockError> {
        let (plan, block) = (rest.plan, &rest.text.block);
        let mut window = TextWindow::at(block, at);
        match plan.dialect.comment_in(window.bytes()) {
            Some(0) => return rest.add(at, at + 1),
            Some(length) => window = TextWindow::of(block, at, length),
            None => {}
        }
        let (mut is_regular, end) = match self.marks {
            None => (false, self.lines(plan, window)),
            Some(marks) => {
                index(self.level, window, marks, &mut self.index);
                if self.index.has_offence {
                    return rest.add(at, at + window.bytes().len());
                }
                match self.index.records() {
                    0 => (false, 0),
                    _ => self.list(window),
                }
            }
        };
        if end == 0 {
            return rest.add(at, at + 1);
        }
        if let Some(LogLines {
            longer: (count @ 1.., first),
            ..
        }) = self.log_lines
        {
            let first = at + first as usize;
            let met = rest.met(first, first);
            (rest.partial.longer).add(count, met, &mut rest.partial.rejected);
        }
        let mut undecided = usize::MAX;
        if let Some(filter) = &plan.filter {
            // Other columns are looked at in the rows that it takes.
            self.columns(window, true, is_regular);
            if std::mem::take(&mut is_regular) {
                self.list_firsts();
            }
            self.remove_out(true, false);
            self.compute(plan, window, true);
            self.remove_out(true, false);
            self.unmatched(plan, (window, at), true, rest);
            self.note_offsets(plan, &plan.zoned.tested, (window, at), rest);
            undecided = self.scratch.others.len();
            let filtered = self.filter(plan, filter, (window, at), rest);
            rest.partial.filtered += filtered as u64;
        }
        self.columns(window, false, is_regular);
        self.remove_out(true, false);
        self.compute(plan, window, false);
        self.remove_out(true, false);
        for source in 0..self.sources.len() {
            self.numbers(plan, window, source, &mut rest.partial.table);
        }
        self.times(plan, window);
        self.cuts(plan, window);
        self.remove_out(true, true);
        self.note_decimals(plan, window, &mut rest.partial.scales);
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
                    true => rest.add_taken(start)?,
                    false => rest.add(start, start + 1)?,
                };
            }
        }
        self.unmatched(plan, (window, at), false, rest);
        self.note_offsets(plan, &plan.zoned.added, (window, at), rest);
        rest.partial.rows += self.scratch.starts.len() as u64;
        let place = (block.file(), block.offset() + at as u64);
        self.fold(plan, window, place, &mut rest.partial.table);
        Ok(at + end)
    }
}
