//! The numbers of a column, and which of its values are null.

use ringfold_read::internals::Level;

use crate::aggregate::lanes::{MAGNITUDE_MAX, NARROW_MAX, SHORT_MAX, Traits};
use crate::format::time::read_in;
use crate::plan::Plan;
use crate::run::passes::Passes;
use crate::run::passes::computed::{Row, text_of};
use crate::scan::decimal::{decode, usual_scale};
use crate::scan::index::TextWindow;
use crate::scan::numbers::{Numbers, SCALE_MAX};
use crate::scan::spans::value;
use crate::table::states::Table;

/// A column that is decoded.
pub(super) struct Column {
    /// Among the passes' columns.
    pub(super) at: usize,
    pub(super) numbers: Numbers,
    /// Decimals of the numbers' unit, once there was a number.
    pub(super) scale: Option<u32>,
    /// All values so far without their signs in this unit, by `or`.
    pub(super) magnitudes: u64,
}

impl Column {
    pub(super) fn new(at: usize) -> Column {
        Column {
            at,
            numbers: Numbers::new(),
            scale: None,
            magnitudes: 0,
        }
    }

    /// Has a scale of at least so many decimals, if no value so far becomes too large by that.
    fn raise(&mut self, wanted: u32, limit: u64) {
        let scale = *self.scale.get_or_insert(wanted.min(SCALE_MAX));
        let most = (limit - 1) / (self.magnitudes | 1);
        let factor = wanted
            .checked_sub(scale)
            .and_then(|zeros| 10_u64.checked_pow(zeros));
        if let Some(factor) = factor.filter(|factor| *factor <= most && wanted <= SCALE_MAX) {
            (self.scale, self.magnitudes) = (Some(wanted), self.magnitudes * factor);
        }
    }
}

/// A column whose values lanes are about.
pub(super) struct Source {
    pub(super) column: Column,
    /// Which of the plan's numbers it is. If none, only nulls matter.
    pub(super) number: Option<usize>,
    /// Whether its numbers are squared.
    pub(super) is_squared: bool,
    pub(super) traits: Traits,
}

/// Decodes a column's numbers, which are less than `limit`; other rows are `out`.
pub(super) fn decode_column(
    level: Level,
    plan: &Plan,
    (window, spans, rows): (TextWindow<'_>, &[u32], usize),
    limit: u64,
    column: &mut Column,
    out: &mut Vec<u32>,
) {
    let taken_out = out.len();
    loop {
        let Column {
            numbers,
            scale,
            magnitudes,
            ..
        } = &mut *column;
        let known = *scale.get_or_insert_with(|| {
            usual_scale(window, &spans[..rows], limit, |text| plan.read_number(text))
        });
        let form = (known, plan.grammar.decimal_point);
        decode(level, window, spans, rows, form, numbers);
        if plan.is_pairs && numbers.has_nulls {
            let empty = (0..rows).filter(|&row| numbers.is_null(row));
            let empty: Vec<usize> = empty.collect();
            for row in empty {
                numbers.set_null(row, false);
                out.push(row as u32);
            }
            numbers.has_nulls = false;
        }
        if plan.has_numeric_nulls {
            mark_nulls(plan, window, &spans[..rows], numbers);
        }
        let limits = (known, *magnitudes, limit);
        let wanted = read_rest(plan, window, spans, limits, numbers, out);
        if wanted > known {
            *scale = Some(wanted);
            *magnitudes *= 10_u64.pow(wanted - known);
            out.truncate(taken_out);
            continue;
        }
        *magnitudes |= numbers.magnitudes;
        return;
    }
}

impl Passes {
    /// The numbers of a source, and which of its values are null. Takes out rows whose values can't be added to lanes.
    #[inline(never)]
    pub(super) fn numbers(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        source: usize,
        table: &mut Table,
    ) {
        let rows = self.scratch.starts.len();
        let Source {
            column,
            number,
            is_squared,
            traits,
        } = &mut self.sources[source];
        let limit = if *is_squared {
            NARROW_MAX
        } else {
            MAGNITUDE_MAX
        };
        let spans = &self.spans[column.at];
        let computed = column.at.checked_sub(self.first_computed);
        let computed = computed.and_then(|at| self.computed[at].numbers());
        let out = &mut self.scratch.out;
        match (*number, computed) {
            (None, _) => {
                let text = text_of(&self.computed, self.first_computed, column.at, window);
                column.numbers.has_nulls = false;
                mark_nulls(plan, text, &spans[..rows], &mut column.numbers);
            }
            (Some(_), None) => {
                let text = text_of(&self.computed, self.first_computed, column.at, window);
                decode_column(self.level, plan, (text, spans, rows), limit, column, out);
            }
            (Some(_), Some(computed)) => {
                column.numbers.copy(&computed.numbers, rows);
                column.raise(computed.scale, limit);
                let scales = (computed.scale, column.scale.unwrap_or_default());
                rescale(&mut column.numbers, rows, scales, out);
                column.magnitudes |= column.numbers.magnitudes;
            }
        }
        let numbers = &column.numbers;
        traits.has_nulls |= numbers.has_nulls;
        if number.is_some() {
            traits.exceeds_short |= numbers.magnitudes >= SHORT_MAX;
            if numbers.magnitudes >= NARROW_MAX {
                traits.is_wide |= !*is_squared;
                if *is_squared {
                    let values = (0..).zip(&numbers.values[..rows]);
                    let wide = values.filter(|(_, value)| value.unsigned_abs() >= NARROW_MAX);
                    self.scratch.out.extend(wide.map(|(row, _)| row));
                }
            }
        }
        let (traits, scale) = (*traits, column.scale.unwrap_or_default());
        if !self.groups.is_about(source, scale, traits) {
            self.set_columns(table);
        }
    }

    /// Notes the most decimals of the rows' numbers.
    #[inline(never)]
    pub(super) fn note_decimals(
        &mut self,
        plan: &Plan,
        window: TextWindow<'_>,
        scales: &mut [u32],
    ) {
        let rows = self.scratch.starts.len();
        for source in &self.sources {
            let Some(number) = source.number else {
                continue;
            };
            if source.column.numbers.decimals <= scales[number] {
                continue;
            }
            // Rows that were taken out don't count. It happens as often as there are decimals.
            let computed = plan.computed(self.columns[source.column.at]);
            let all = self.rows(plan, window);
            for (row, &span) in self.spans[source.column.at][..rows].iter().enumerate() {
                if source.column.numbers.is_null(row) {
                    continue;
                }
                let read = match computed {
                    None => plan.read_number(value(window, span)).ok(),
                    Some(computed) => {
                        let record = Row { rows: &all, row };
                        computed.formula.stored_number(&record).ok().flatten()
                    }
                };
                let decimals = read.map_or(0, |number| number.decimals());
                scales[number] = scales[number].max(decimals);
            }
        }
    }

    /// Takes out rows that lack a time where one is wanted.
    pub(super) fn times(&mut self, plan: &Plan, window: TextWindow<'_>) {
        for column in &plan.times {
            let rows = self.rows(plan, window);
            let (text, spans) = rows.values(*column);
            let others = (0..).zip(&spans[..rows.count]).filter(|(_, span)| {
                let bytes = value(text, **span);
                !plan.is_null(bytes) && read_in(bytes, plan.time_zones.local()).is_err()
            });
            let others: Vec<u32> = others.map(|(row, _)| row).collect();
            self.scratch.out.extend(others);
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

/// Brings numbers of one scale to another; rows whose numbers can't be are out.
fn rescale(numbers: &mut Numbers, rows: usize, (from, to): (u32, u32), out: &mut Vec<u32>) {
    let power = |zeros: u32| 10_i64.checked_pow(zeros).unwrap_or(i64::MAX);
    let up = power(to.saturating_sub(from));
    let down = power(from.saturating_sub(to));
    if (up, down) == (1, 1) {
        return;
    }
    numbers.replace(rows, out, |_, value| {
        let scaled = value.checked_mul(up).filter(|_| value % down == 0);
        scaled.map(|scaled| scaled / down)
    });
}

/// Reads what the pass over numbers didn't: null values, and numbers with blanks, signs or many digits. Returns the most
/// decimals that there should be, where all values are less than `limit` then; takes out rows whose values are no numbers, or not less than `limit`.
fn read_rest(
    plan: &Plan,
    window: TextWindow<'_>,
    spans: &[u32],
    (scale, magnitudes, limit): (u32, u64, u64),
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
        // Most texts are told by their first letter, and reading them makes a sentence of why they are none.
        let is_text = !plan.grammar.is_float && text.first().is_some_and(u8::is_ascii_alphabetic);
        let read = || plan.read_number(text).ok();
        let Some(number) = (if is_text { None } else { read() }) else {
            out.push(row);
            continue;
        };
        if number.decimals() > scale {
            let decimals = number.decimals();
            // No value so far may become too large.
            let most = limit / ((magnitudes | numbers.magnitudes) + 1);
            let fits = |units: i128| units.unsigned_abs() < limit.into();
            if decimals <= SCALE_MAX
                && 10_u64.pow(decimals - scale) <= most
                && number.at(decimals).is_some_and(fits)
            {
                wanted = wanted.max(decimals);
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
