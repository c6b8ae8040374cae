//! Columns that are computed: numbers by arithmetic, and texts, each column with a text of its own in which spans say where
//! its values are.
//!
//! A value that is computed of one short text is looked up: where few texts are different, each is computed once.

use ringfold_read::PaddedBuf;
use ringfold_read::internals::Level;

use crate::decimal::number::Grammar;
use crate::expression::formula::Formula;
use crate::expression::value::{Record, Value, ValueError};
use crate::plan::Plan;
use crate::run::passes::Passes;
use crate::run::passes::arithmetic::{Arithmetic, Operands};
use crate::run::verdicts::{Known, Text};
use crate::scan::index::TextWindow;
use crate::scan::numbers::Numbers;
use crate::scan::spans::value;

/// A value without bytes.
const EMPTY: u32 = 1 << 16;
/// The most bytes of a column's text: few enough for 16-bit positions.
const TEXT_MAX: usize = 60 << 10;
/// From so many bytes on, values that are known are computed anew.
const KNOWN_MAX: usize = 40 << 10;

/// A column that is computed.
pub(super) struct ComputedColumn {
    pub(super) form: Form,
    /// Where its values are, each with a byte after it; numbers leave it empty.
    texts: PaddedBuf,
}

pub(super) enum Form {
    Texts(Box<Texts>),
    Numbers(Box<ComputedNumbers>),
}

/// What numbers are computed by, and those of the window.
pub(super) struct ComputedNumbers {
    arithmetic: Arithmetic,
    pub(super) numbers: Numbers,
    pub(super) scale: u32,
}

/// What texts are computed by.
pub(super) struct Texts {
    /// The plan's, with searches of its own.
    formula: Formula,
    /// The only column that it is computed of, among the passes'.
    source: Option<usize>,
    /// Values of the window that aren't in the text yet.
    added: Vec<u8>,
    /// The spans of what is computed of known texts.
    known: Known<u32, { 1 << 12 }>,
}

/// What is to be computed, and of which columns.
#[derive(Default)]
pub(super) struct Computation {
    /// All columns of the input that something is computed of, and those that conditions need before.
    pub(super) columns: Vec<usize>,
    pub(super) tested: Vec<usize>,
    /// The columns that are computed, in the order in which they may be.
    pub(super) computed: Vec<usize>,
}

impl Computation {
    /// Adds a column that is looked at, if it is computed.
    pub(super) fn add(&mut self, plan: &Plan, column: usize, is_tested: bool) {
        let Some(computed) = plan.computed(column) else {
            return;
        };
        computed.formula.each_column(&mut |needed| {
            self.add_needed(plan, needed, is_tested);
            // Tests within a number are of columns, too.
            if computed.is_number {
                self.add(plan, needed, is_tested);
            }
        });
        if !self.computed.contains(&column) {
            self.computed.push(column);
        }
        if is_tested {
            self.tested.push(column);
        }
    }

    /// Adds the columns of the input and of tables that a column is computed of.
    fn add_needed(&mut self, plan: &Plan, column: usize, is_tested: bool) {
        if plan.computed(column).is_some() && plan.is_field(column) {
            return self.add(plan, column, is_tested);
        }
        if let Some(computed) = plan.computed(column) {
            let formula = &computed.formula;
            formula.each_column(&mut |column| self.add_needed(plan, column, is_tested));
            return;
        }
        self.columns.push(column);
        if is_tested {
            self.tested.push(column);
        }
    }
}

impl ComputedColumn {
    pub(super) fn new(
        level: Level,
        plan: &Plan,
        column: usize,
        among: impl Fn(usize) -> usize,
    ) -> ComputedColumn {
        let computed = plan.computed(column).expect("a column that is computed");
        let formula = &computed.formula;
        let form = if computed.is_number {
            Form::Numbers(Box::new(ComputedNumbers {
                arithmetic: Arithmetic::new(level, plan, formula, &among),
                numbers: Numbers::new(),
                scale: 0,
            }))
        } else {
            let mut columns = Vec::new();
            formula.each_column(&mut |column| columns.push(column));
            columns.sort_unstable();
            columns.dedup();
            Form::Texts(Box::new(Texts {
                formula: formula.clone(),
                source: match *columns {
                    [one] if plan.is_field(one) => Some(among(one)),
                    _ => None,
                },
                added: Vec::new(),
                known: Known::new(),
            }))
        };
        ComputedColumn {
            form,
            texts: PaddedBuf::default(),
        }
    }

    /// Where its values are.
    fn window(&self) -> TextWindow<'_> {
        TextWindow::whole(&self.texts.block(0, 0, 0))
    }

    pub(super) fn numbers_mut(&mut self) -> Option<&mut Numbers> {
        match &mut self.form {
            Form::Numbers(numbers) => Some(&mut numbers.numbers),
            Form::Texts(_) => None,
        }
    }

    /// Its numbers, if it is of numbers.
    pub(super) fn numbers(&self) -> Option<&ComputedNumbers> {
        match &self.form {
            Form::Numbers(numbers) => Some(numbers),
            Form::Texts(_) => None,
        }
    }
}

impl Texts {
    /// Computes the texts of a window's rows; those that they can't be computed of are `out`.
    #[inline(never)]
    fn fill(&mut self, rows: &Rows<'_>, texts: &mut PaddedBuf, to: &mut [u32], out: &mut Vec<u32>) {
        let source = self.source.filter(|_| self.known.repeats());
        let source = source.map(|at| rows.values_at(at));
        if texts.len() > KNOWN_MAX || source.is_none() {
            texts.clear();
        }
        if texts.is_empty() && source.is_some() {
            self.known.forget();
        }
        let base = texts.len();
        if base == 0 {
            // The byte after an empty value.
            self.added.push(b'\n');
        }
        for (row, to) in to.iter_mut().enumerate() {
            let text = source.and_then(|(window, spans)| Text::at(window, spans[row]));
            let place = text.as_ref().map(|text| self.known.place(text));
            if let Some((&mut (_, span), true)) = place {
                *to = span;
                continue;
            }
            let start = self.added.len();
            let done = self.formula.write(&Row { rows, row }, &mut self.added);
            let end = self.added.len();
            if done.is_err() || base + end >= TEXT_MAX {
                self.added.truncate(start);
                out.push(row as u32);
                *to = EMPTY;
                continue;
            }
            self.added.push(b'\n');
            *to = (base + start) as u32 | ((base + end + 1) << 16) as u32;
            if let Some(((place, _), text)) = place.zip(text) {
                *place = (text, *to);
            }
        }
        texts.extend(&self.added);
        self.added.clear();
    }
}

/// The rows of a window.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) plan: &'a Plan,
    pub(super) window: TextWindow<'a>,
    pub(super) count: usize,
    /// The columns that are looked at, from 0, and where their values stand.
    pub(super) columns: &'a [usize],
    pub(super) spans: &'a [Box<[u32]>],
    /// Those that are computed so far: of the columns these, from the first one on.
    pub(super) computed: &'a [ComputedColumn],
    pub(super) first_computed: usize,
}

impl<'a> Rows<'a> {
    fn place(&self, column: usize) -> usize {
        let at = self.columns.iter().position(|known| *known == column);
        at.expect("a column of the plan")
    }

    /// A column's numbers, if they are computed.
    pub(super) fn computed_numbers(&self, column: usize) -> Option<&'a ComputedNumbers> {
        self.computed[self.place(column).checked_sub(self.first_computed)?].numbers()
    }

    /// Where a column's values stand, and in what.
    pub(super) fn values(&self, column: usize) -> (TextWindow<'a>, &'a [u32]) {
        self.values_at(self.place(column))
    }

    /// The same of one of the passes' columns.
    pub(super) fn values_at(&self, at: usize) -> (TextWindow<'a>, &'a [u32]) {
        let window = text_of(self.computed, self.first_computed, at, self.window);
        (window, &self.spans[at])
    }
}

/// A row of a window.
pub(super) struct Row<'a> {
    pub(super) rows: &'a Rows<'a>,
    pub(super) row: usize,
}

impl Record for Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, ValueError> {
        let plan = self.rows.plan;
        if let Some(computed) = plan.computed(column).filter(|_| !plan.is_field(column)) {
            return plan.computed_value(computed, self);
        }
        let (window, spans) = self.rows.values(column);
        let text = value(window, spans[self.row]);
        Ok(match plan.is_null(text) {
            true => Value::Null,
            false => Value::Text(text.into()),
        })
    }

    fn grammar(&self) -> Grammar {
        self.rows.plan.grammar
    }

    fn wants_number(&self, column: usize) -> bool {
        self.rows.plan.wants_number(column)
    }
}

/// The window that the values of a column stand in.
pub(super) fn text_of<'a>(
    computed: &'a [ComputedColumn],
    first: usize,
    at: usize,
    window: TextWindow<'a>,
) -> TextWindow<'a> {
    match at.checked_sub(first) {
        Some(at) => computed[at].window(),
        None => window,
    }
}

impl Passes {
    /// Computes those columns that a condition tests, or the others. Takes out rows that they can't be computed of.
    pub(super) fn compute(&mut self, plan: &Plan, window: TextWindow<'_>, are_tested: bool) {
        let count = self.scratch.starts.len();
        for place in 0..self.computed.len() {
            let at = self.first_computed + place;
            if self.tested.contains(&at) != are_tested {
                continue;
            }
            let (before, rest) = self.computed.split_at_mut(place);
            let ComputedColumn { form, texts } = &mut rest[0];
            let mut spans = std::mem::take(&mut self.spans[at]);
            spans[count..count + 8].fill(0);
            let rows = Rows {
                plan,
                window,
                count,
                columns: &self.columns,
                spans: &self.spans,
                computed: before,
                first_computed: self.first_computed,
            };
            let out = &mut self.scratch.out;
            match form {
                Form::Texts(form) => form.fill(&rows, texts, &mut spans[..count], out),
                Form::Numbers(form) => {
                    spans[..count].fill(EMPTY);
                    let level = self.level;
                    let mut operands = Operands { level, rows, out };
                    let numbers = &mut form.numbers;
                    form.scale = form.arithmetic.compute(&mut operands, numbers);
                }
            }
            self.spans[at] = spans;
        }
    }
}
