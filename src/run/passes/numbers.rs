//! The numbers of a column, and which of its values are null.

use crate::aggregate::lanes::{MAGNITUDE_MAX, NARROW_MAX, SHORT_MAX, Traits};
use crate::format::time::read;
use crate::plan::Plan;
use crate::run::passes::Passes;
use crate::scan::decimal::{decode, usual_scale};
use crate::scan::index::TextWindow;
use crate::scan::numbers::{Numbers, SCALE_MAX};
use crate::scan::spans::value;
use crate::table::states::Table;

/// A column whose values lanes are about.
pub(super) struct Source {
    /// Among the passes' columns.
    pub(super) at: usize,
    /// Which of the plan's numbers it is. If none, only nulls matter.
    pub(super) number: Option<usize>,
    /// Whether its numbers are squared.
    pub(super) is_squared: bool,
    pub(super) numbers: Numbers,
    /// Decimals of the numbers' unit, once there was a number.
    pub(super) scale: Option<u32>,
    /// All values so far without their signs in this unit, by `or`.
    pub(super) magnitudes: u64,
    pub(super) traits: Traits,
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
        let mut traits = self.sources[source].traits;
        let taken_out = self.scratch.out.len();
        loop {
            let Source {
                at,
                number,
                is_squared,
                numbers,
                scale,
                magnitudes,
                ..
            } = &mut self.sources[source];
            let spans = &self.spans[*at];
            if number.is_none() {
                numbers.has_nulls = false;
                mark_nulls(plan, window, &spans[..rows], numbers);
                traits.has_nulls |= numbers.has_nulls;
                break;
            }
            let limit = if *is_squared {
                NARROW_MAX
            } else {
                MAGNITUDE_MAX
            };
            let known = *scale.get_or_insert_with(|| {
                usual_scale(window, &spans[..rows], limit, |text| plan.read_number(text))
            });
            let form = (known, plan.grammar.decimal_point);
            decode(self.level, window, spans, rows, form, numbers);
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
            let wanted = read_rest(
                plan,
                window,
                spans,
                (known, *magnitudes),
                limit,
                numbers,
                &mut self.scratch.out,
            );
            if wanted > known {
                *scale = Some(wanted);
                *magnitudes *= 10_u64.pow(wanted - known);
                self.scratch.out.truncate(taken_out);
                continue;
            }
            *magnitudes |= numbers.magnitudes;
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

    /// Takes out rows that lack a time where one is wanted.
    pub(super) fn times(&mut self, plan: &Plan, window: TextWindow<'_>) {
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
/// decimals that there should be, where all values are less than `limit` then; takes out rows whose values are no numbers, or not less than `limit`.
fn read_rest(
    plan: &Plan,
    window: TextWindow<'_>,
    spans: &[u32],
    (scale, magnitudes): (u32, u64),
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
