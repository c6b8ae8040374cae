//! The values of a column in some groups, by its rule: in one pass over the groups' first rows, and one over the others.

use crate::decimal::number::Exact;
use crate::partial::column::{ColumnView, Gathered, NULL, Values, placed};
use crate::partial::description::Rule;
use crate::partial::layout::Fixed;
use crate::partial::merge::batch::Batch;
use crate::partial::merge::order::Row;

/// Adds a value for each group. `views` are the column in the inputs' blocks, and `sources` where these have their sources in
/// the result.
pub(crate) fn merge(
    batch: &Batch,
    views: &[ColumnView<'_>],
    sources: &[&[u32]],
    to: &mut Gathered,
) {
    match to.column.rule {
        Rule::Count | Rule::Values => merge_counts(batch, views, to),
        rule if rule.is_text() => merge_texts(batch, views, sources, to),
        _ => merge_decimals(batch, views, to),
    }
}

fn value(fixed: &[&[Fixed]], row: Row) -> i64 {
    fixed[row.input()][row.row()].get()
}

/// Adds the value of each group's first row; returns what was added.
fn push_firsts<'t>(batch: &Batch, fixed: &[&[Fixed]], to: &'t mut Gathered) -> &'t mut [Fixed] {
    let start = to.fixed.len();
    let firsts = batch.firsts.iter();
    let firsts = firsts.map(|&row| Fixed::new(value(fixed, row)));
    to.fixed.extend(firsts);
    &mut to.fixed[start..]
}

fn merge_counts(batch: &Batch, views: &[ColumnView<'_>], to: &mut Gathered) {
    let counts: Vec<&[Fixed]> = views.iter().map(ColumnView::fixed).collect();
    let merged = push_firsts(batch, &counts, to);
    for &(group, row) in &batch.others {
        let count = &mut merged[group as usize];
        // All rows of the inputs together are fewer than 2^63.
        *count = Fixed::new(count.get().wrapping_add(value(&counts, row)));
    }
}

fn merge_texts(batch: &Batch, views: &[ColumnView<'_>], sources: &[&[u32]], to: &mut Gathered) {
    let rule = to.column.rule;
    let text = |row: Row| views[row.input()].text(row.row());
    for rows in batch.groups() {
        if !rule.is_placed() {
            let texts = rows.map(text).filter(|text| !text.is_empty());
            if let Rule::Sketch(sketch) = rule {
                to.push_text(&sketch.merged(texts));
                continue;
            }
            let text = match rule {
                Rule::LeastText | Rule::EarliestTime => texts.min(),
                _ => texts.max(),
            };
            to.push_text(text.unwrap_or_default());
            continue;
        }
        let values = rows.filter_map(|row| {
            let ((file, at), text) = placed(text(row))?;
            let file = sources[row.input()][file as usize];
            Some(((file, at), text))
        });
        to.push_placed(match rule {
            Rule::FirstText => values.min(),
            _ => values.max(),
        });
    }
}

fn merge_decimals(batch: &Batch, views: &[ColumnView<'_>], to: &mut Gathered) {
    let (rule, scale) = (to.column.rule, to.column.scale);
    // What mantissas at the inputs' scales are multiplied by; without it they are merged as exact values.
    let fixed = views.iter().map(|view| {
        let factor = 10_i64.checked_pow(scale.checked_sub(view.column.scale)?)?;
        match view.values {
            Values::Fixed(fixed) => Some((fixed, factor)),
            Values::Variable(_) => None,
        }
    });
    if let Some(fixed) = fixed.collect::<Option<Vec<_>>>() {
        let (fixed, factors): (Vec<_>, Vec<_>) = fixed.into_iter().unzip();
        match factors.iter().all(|&factor| factor == 1) {
            true if merge_mantissas(batch, &fixed, to) => return,
            true => {}
            false => return merge_scaled(batch, views, &fixed, &factors, to),
        }
    }
    for rows in batch.groups() {
        let exact = exact_of(rows, views, rule);
        to.push_exact(exact.as_ref());
    }
}

/// Mantissas of one scale; adds nothing and returns `false` where a sum doesn't fit.
fn merge_mantissas(batch: &Batch, fixed: &[&[Fixed]], to: &mut Gathered) -> bool {
    let (rule, start) = (to.column.rule, to.fixed.len());
    let merged = push_firsts(batch, fixed, to);
    let each = batch
        .others
        .iter()
        .map(|&(group, row)| (group as usize, value(fixed, row)));
    let mut fits = true;
    match rule {
        Rule::Sum => each.for_each(|(group, mantissa)| {
            let sum = &mut merged[group];
            let both = plus(sum.get(), mantissa);
            fits &= both.is_some();
            *sum = Fixed::new(both.unwrap_or(NULL));
        }),
        Rule::Least => each.for_each(|(group, mantissa)| {
            let least = &mut merged[group];
            // One less, NULL becomes the greatest.
            let other = mantissa.wrapping_sub(1);
            *least = Fixed::new(least.get().wrapping_sub(1).min(other).wrapping_add(1));
        }),
        // NULL is less than any.
        _ => each.for_each(|(group, mantissa)| {
            let greatest = &mut merged[group];
            *greatest = Fixed::new(greatest.get().max(mantissa));
        }),
    }
    if !fits {
        to.fixed.truncate(start);
    }
    fits
}

/// The sum of two mantissas, either of which may be null; `None` where it doesn't fit.
fn plus(one: i64, two: i64) -> Option<i64> {
    match (one, two) {
        (NULL, other) | (other, NULL) => Some(other),
        (one, two) => one.checked_add(two).filter(|sum| *sum != NULL),
    }
}

/// Mantissas that are multiplied first.
fn merge_scaled(
    batch: &Batch,
    views: &[ColumnView<'_>],
    fixed: &[&[Fixed]],
    factors: &[i64],
    to: &mut Gathered,
) {
    let rule = to.column.rule;
    for rows in batch.groups() {
        let mantissas = rows
            .clone()
            .map(|row| (value(fixed, row), factors[row.input()]));
        match scaled(mantissas, rule) {
            Some(mantissa) => to.push_mantissa(mantissa),
            None => {
                let exact = exact_of(rows, views, rule);
                to.push_exact(exact.as_ref());
            }
        }
    }
}

/// What a rule makes of mantissas, each with its factor; `None` where that doesn't fit.
fn scaled(mantissas: impl Iterator<Item = (i64, i64)>, rule: Rule) -> Option<i64> {
    let mut merged = NULL;
    for (mantissa, factor) in mantissas {
        if mantissa == NULL {
            continue;
        }
        let mantissa = mantissa.checked_mul(factor)?;
        merged = match (merged, rule) {
            (NULL, _) => mantissa,
            (one, Rule::Sum) => one.checked_add(mantissa)?,
            (one, Rule::Least) => one.min(mantissa),
            (one, _) => one.max(mantissa),
        };
        if merged == NULL {
            return None;
        }
    }
    Some(merged)
}

/// What a rule makes of some rows' values.
fn exact_of(
    rows: impl Iterator<Item = Row>,
    views: &[ColumnView<'_>],
    rule: Rule,
) -> Option<Exact> {
    let values = rows.filter_map(|row| views[row.input()].exact(row.row()));
    values.reduce(|mut one, two| match rule {
        Rule::Sum => {
            one.add_exact(&two);
            one
        }
        Rule::Least => one.min(two),
        _ => one.max(two),
    })
}
