//! Merges any number of partials: one block of each is in memory.
//!
//! A batch is what lies between two changes of blocks. Its keys are merged first, which gives a list of the rows that make
//! each group. Then each column is merged in one go by its rule.

use std::cmp::Ordering;

use crate::error::Result;
use crate::partial::block::{BLOCK_BYTES, Block, Groups};
use crate::partial::column::{ColumnView, Gathered, NULL, Values, placed};
use crate::partial::description::Rule;
use crate::partial::key::prefix;
use crate::partial::layout::Fixed;
use crate::partial::reader::{Cursor, Loaded, Reader};
use crate::query::number::Exact;

/// The most groups of a batch, so that what is gathered stays in the cache.
const BATCH: usize = 2048;

/// A partial that is merged.
struct Input<'a> {
    cursor: Cursor<'a>,
    /// Where its sources stand in the result.
    sources: Vec<u32>,
    /// The last key of the block before.
    last: Option<Vec<u8>>,
}

/// Partials that are being merged.
pub(crate) struct Merge<'a> {
    inputs: Vec<Input<'a>>,
}

/// A row of an input.
#[derive(Debug, Clone, Copy)]
struct Row {
    input: u32,
    row: u32,
}

/// The rows that make some groups.
#[derive(Debug, Default)]
struct Batch {
    rows: Vec<Row>,
    /// Where those of each group end.
    ends: Vec<u32>,
}

impl Batch {
    fn groups(&self) -> impl Iterator<Item = &[Row]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let rows = &self.rows[start..end as usize];
            start = end as usize;
            rows
        })
    }
}

impl<'a> Merge<'a> {
    /// Begins to merge partials of the same columns, which differ in nothing but scale; with each come the numbers that its
    /// sources have in the result.
    ///
    /// # Errors
    /// A first block can't be read, or is damaged.
    pub(crate) fn new(
        partials: impl IntoIterator<Item = (&'a Reader, Vec<u32>)>,
    ) -> Result<Merge<'a>> {
        let input = |(reader, sources)| {
            Ok(Input {
                cursor: Cursor::new(reader, 0)?,
                sources,
                last: None,
            })
        };
        let inputs = partials.into_iter().map(input).collect::<Result<_>>()?;
        Ok(Merge { inputs })
    }

    /// Gathers some of the next groups; `false` where there are none.
    ///
    /// # Errors
    /// A block can't be read or is damaged, or keys aren't in order.
    pub(crate) fn next(&mut self, to: &mut Groups) -> Result<bool> {
        for input in &mut self.inputs {
            let groups = input.cursor.loaded().map(Loaded::groups);
            if groups == Some(input.cursor.row) {
                let last = input.cursor.loaded().map(|loaded| {
                    let keys = loaded.view().keys;
                    keys.get(keys.ends.len() - 1).to_vec()
                });
                input.last = last;
                input.cursor.next_block()?;
            }
        }
        self.inputs.retain(|input| input.cursor.loaded().is_some());
        if self.inputs.is_empty() {
            return Ok(false);
        }
        let blocks: Vec<Block<'_>> = (self.inputs.iter())
            .filter_map(|input| Some(input.cursor.loaded()?.view()))
            .collect();
        for (input, block) in self.inputs.iter().zip(&blocks) {
            let is_next = |last: &Vec<u8>| last.as_slice() < block.keys.get(input.cursor.row);
            if input.cursor.row == 0 && !input.last.as_ref().is_none_or(is_next) {
                return Err(unsorted(input));
            }
        }
        let mut heads = Heads::new(&blocks, self.inputs.iter().map(|input| input.cursor.row));
        let merged = heads.merge(to);
        let rows = std::mem::take(&mut heads.rows);
        let batch = merged.map_err(|input| unsorted(&self.inputs[input]))?;
        for (at, column) in to.columns.iter_mut().enumerate() {
            let views: Vec<ColumnView<'_>> = blocks.iter().map(|block| block.columns[at]).collect();
            match column.column.rule {
                Rule::Count => merge_counts(&batch, &views, column),
                rule if rule.is_text() => merge_texts(&batch, &views, &self.inputs, column),
                _ => merge_decimals(&batch, &views, column),
            }
        }
        for (input, row) in self.inputs.iter_mut().zip(rows) {
            input.cursor.row = row;
        }
        Ok(true)
    }
}

fn unsorted(input: &Input<'_>) -> crate::error::Error {
    let why = "its keys aren't in order";
    input.cursor.reader().damaged_block(input.cursor.block, why)
}

/// The next key of each input, in a tournament.
struct Heads<'b> {
    blocks: &'b [Block<'b>],
    /// For each input the row that is next.
    rows: Vec<usize>,
    /// The first bytes of its key.
    prefixes: Vec<u64>,
    /// Whether its block has no more.
    ended: Vec<bool>,
    has_ended: bool,
    /// For each match its winner; matches 2n and 2n + 1 are played before match n. Behind them are the inputs.
    winners: Vec<usize>,
}

/// No input.
const NONE: usize = usize::MAX;

impl<'b> Heads<'b> {
    fn new(blocks: &'b [Block<'b>], rows: impl Iterator<Item = usize>) -> Heads<'b> {
        let rows: Vec<usize> = rows.collect();
        let prefixes = (blocks.iter().zip(&rows)).map(|(block, &row)| prefix(block.keys.get(row)));
        let leaves = blocks.len().next_power_of_two();
        let mut heads = Heads {
            prefixes: prefixes.collect(),
            ended: vec![false; blocks.len()],
            has_ended: false,
            winners: vec![NONE; 2 * leaves],
            blocks,
            rows,
        };
        for input in 0..blocks.len() {
            heads.winners[leaves + input] = input;
        }
        for place in (1..leaves).rev() {
            heads.play(place);
        }
        heads
    }

    fn key(&self, input: usize) -> &'b [u8] {
        self.blocks[input].keys.get(self.rows[input])
    }

    fn play(&mut self, place: usize) {
        let (one, two) = (self.winners[2 * place], self.winners[2 * place + 1]);
        self.winners[place] = if self.is_before(one, two) { one } else { two };
    }

    fn is_before(&self, one: usize, two: usize) -> bool {
        if two == NONE || one == NONE {
            return two == NONE;
        }
        match self.prefixes[one].cmp(&self.prefixes[two]) {
            Ordering::Equal if self.ended[one] || self.ended[two] => self.ended[two],
            Ordering::Equal => self.key(one) <= self.key(two),
            order => order.is_lt(),
        }
    }

    /// Goes to the next row of an input.
    fn advance(&mut self, input: usize) -> Result<(), usize> {
        let keys = &self.blocks[input].keys;
        let row = self.rows[input];
        self.rows[input] += 1;
        if row + 1 == keys.ends.len() {
            self.ended[input] = true;
            self.has_ended = true;
            self.prefixes[input] = u64::MAX;
        } else {
            let key = keys.get(row + 1);
            let prefix = prefix(key);
            let before = std::mem::replace(&mut self.prefixes[input], prefix);
            if prefix < before || prefix == before && key <= keys.get(row) {
                return Err(input);
            }
        }
        let mut place = (self.winners.len() / 2 + input) / 2;
        while place > 0 {
            self.play(place);
            place /= 2;
        }
        Ok(())
    }

    /// Gathers keys up to the end of a block, and says which rows make their groups.
    ///
    /// # Errors
    /// Which input isn't in order.
    fn merge(&mut self, to: &mut Groups) -> Result<Batch, usize> {
        let mut batch = Batch::default();
        let is_text = |view: &ColumnView<'_>| view.column.rule.is_text();
        let columns = &self.blocks[0].columns;
        let texts: Vec<usize> = (0..columns.len())
            .filter(|&at| is_text(&columns[at]))
            .collect();
        let mut text_bytes = 0;
        while !self.has_ended && batch.ends.len() < BATCH && text_bytes < BLOCK_BYTES {
            let mut input = self.winners[1];
            let (key, prefix) = (self.key(input), self.prefixes[input]);
            to.keys.push(key);
            text_bytes += key.len();
            loop {
                let row = self.rows[input] as u32;
                batch.rows.push(Row {
                    input: input as u32,
                    row,
                });
                for &text in &texts {
                    text_bytes += self.blocks[input].columns[text].text(row as usize).len();
                }
                self.advance(input)?;
                input = self.winners[1];
                let is_same =
                    self.prefixes[input] == prefix && !self.ended[input] && self.key(input) == key;
                if !is_same {
                    break;
                }
            }
            batch.ends.push(batch.rows.len() as u32);
        }
        Ok(batch)
    }
}

fn merge_counts(batch: &Batch, views: &[ColumnView<'_>], to: &mut Gathered) {
    let counts: Vec<_> = views.iter().map(ColumnView::fixed).collect();
    let sums = batch.groups().map(|rows| {
        // All rows of the inputs together are fewer than 2^63.
        let counts = (rows.iter()).map(|row| counts[row.input as usize][row.row as usize].get());
        Fixed::new(counts.fold(0, i64::wrapping_add))
    });
    to.fixed.extend(sums);
}

fn merge_texts(batch: &Batch, views: &[ColumnView<'_>], inputs: &[Input<'_>], to: &mut Gathered) {
    let rule = to.column.rule;
    for rows in batch.groups() {
        let text = |row: &Row| views[row.input as usize].text(row.row as usize);
        if !rule.is_placed() {
            let texts = rows.iter().map(text).filter(|text| !text.is_empty());
            if let Rule::Sketch(sketch) = rule {
                to.push_text(&sketch.merged(texts));
                continue;
            }
            let text = match rule {
                Rule::LeastText => texts.min(),
                _ => texts.max(),
            };
            to.push_text(text.unwrap_or_default());
            continue;
        }
        let values = rows.iter().filter_map(|row| {
            let ((file, at), text) = placed(text(row))?;
            let file = inputs[row.input as usize].sources[file as usize];
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
    let Some(fixed) = fixed.collect::<Option<Vec<_>>>() else {
        for rows in batch.groups() {
            let exact = exact_of(rows, views, rule);
            to.push_exact(exact.as_ref());
        }
        return;
    };
    let has_factors = fixed.iter().any(|(_, factor)| *factor != 1);
    for rows in batch.groups() {
        let mantissas = rows.iter().map(|row| {
            let (fixed, factor) = fixed[row.input as usize];
            (fixed[row.row as usize].get(), factor)
        });
        let mantissa = match (has_factors, rule) {
            (true, _) => scaled(mantissas, rule),
            (false, Rule::Sum) => summed(mantissas.map(|(mantissa, _)| mantissa)),
            (false, Rule::Least) => Some(least(mantissas.map(|(mantissa, _)| mantissa))),
            // NULL is less than any.
            (false, _) => mantissas.map(|(mantissa, _)| mantissa).max(),
        };
        match mantissa {
            Some(mantissa) => to.push_mantissa(mantissa),
            None => {
                let exact = exact_of(rows, views, rule);
                to.push_exact(exact.as_ref());
            }
        }
    }
}

/// The least mantissa that isn't null, if there is one.
fn least(mantissas: impl Iterator<Item = i64>) -> i64 {
    // One less, NULL becomes the greatest.
    let least = mantissas.map(|mantissa| mantissa.wrapping_sub(1)).min();
    least.unwrap_or(i64::MAX).wrapping_add(1)
}

/// The sum; `None` where it doesn't fit.
fn summed(mantissas: impl Iterator<Item = i64>) -> Option<i64> {
    let mut sum = NULL;
    for mantissa in mantissas {
        sum = match (sum, mantissa) {
            (NULL, other) | (other, NULL) => other,
            (one, two) => one.checked_add(two).filter(|sum| *sum != NULL)?,
        };
    }
    Some(sum)
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
fn exact_of(rows: &[Row], views: &[ColumnView<'_>], rule: Rule) -> Option<Exact> {
    let values = (rows.iter()).filter_map(|row| views[row.input as usize].exact(row.row as usize));
    values.reduce(|mut one, two| match rule {
        Rule::Sum => {
            one.add_exact(&two);
            one
        }
        Rule::Least => one.min(two),
        _ => one.max(two),
    })
}

#[cfg(test)]
mod tests;
