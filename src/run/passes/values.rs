//! What aggregates without lanes take of each row: a value, or its digest.

use crate::aggregate::digest::of_number;
use crate::aggregate::state::{Digest, Value};
use crate::decimal::number::{Grammar, Number};
use crate::plan::Plan;
use crate::run::passes::computed::text_of;
use crate::run::passes::{Passes, Scratch};
use crate::scan::index::TextWindow;
use crate::scan::spans::value;
use crate::sketch::distinct::HashKey;
use crate::table::lane_plan::{LaneAggregate, Served};
use crate::table::states::Table;

impl Passes {
    /// Shows the values of a batch to the aggregates that must see each.
    #[inline(never)]
    pub(super) fn see_values(
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
    pub(super) fn digest_values(
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
        let window = text_of(&self.computed, self.first_computed, column, window);
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
                let texts = spans.iter().map(|span| value(window, *span));
                let known = groups.iter().copied().zip(texts);
                table.digest_texts(known.filter(|(_, text)| !plan.is_null(text)), digests);
            }
            (Digest::Numbers(digest), Some(source)) => {
                let source = &self.sources[source];
                let numbers = &source.column.numbers.values[from..from + groups.len()];
                let scale = source.column.scale.unwrap_or_default();
                digest(numbers, scale, &mut each[..]);
                let all = groups.iter().zip(&each[..]);
                let all = all.map(|(group, digest)| group.digested(*digest));
                match source.column.numbers.has_nulls {
                    false => digests.extend(all),
                    true => {
                        let known = (from..).zip(all);
                        let known = known.filter(|(row, _)| !source.column.numbers.is_null(*row));
                        digests.extend(known.map(|(_, digested)| digested));
                    }
                }
            }
            (Digest::Numbers(_), None) => unreachable!("numbers have a source"),
        }
    }

    /// The digests of a batch's numbers for bags, but for nulls. Those without a digest are groups of their own.
    pub(super) fn keep_numbers(
        &mut self,
        aggregate: usize,
        source: usize,
        from: usize,
        table: &mut Table,
    ) {
        let Scratch {
            groups, digests, ..
        } = &mut self.scratch;
        digests.clear();
        let source = &self.sources[source];
        let scale = source.column.scale.unwrap_or_default();
        let factor = 10_i64.pow(table.raise(aggregate, scale) - scale);
        for (row, group) in (from..).zip(&*groups) {
            if source.column.numbers.is_null(row) {
                continue;
            }
            let number = source.column.numbers.values[row];
            match number.checked_mul(factor).and_then(of_number) {
                Some(digest) => digests.push(group.digested(digest)),
                None => {
                    let value = Value {
                        bytes: b"",
                        number: Number::new(number.into(), scale),
                        hash_key: &HashKey::NONE,
                        grammar: Grammar::PLAIN,
                        zone: None,
                        place: (0, 0),
                    };
                    table.update(*group, aggregate, &value);
                }
            }
        }
    }

    /// What an aggregate sees of a row, unless it is null: of a column, which has numbers if there is a source of them.
    pub(super) fn value<'a>(
        &'a self,
        plan: &'a Plan,
        window: TextWindow<'a>,
        place: (u32, u64),
        (column, source): (usize, Option<usize>),
        row: usize,
    ) -> Option<Value<'a>> {
        let text = text_of(&self.computed, self.first_computed, column, window);
        let bytes = value(text, self.spans[column][row]);
        let number = match source {
            Some(source) if self.sources[source].column.numbers.is_null(row) => return None,
            Some(source) => {
                let source = &self.sources[source];
                Number::new(
                    source.column.numbers.values[row].into(),
                    source.column.scale.unwrap_or_default(),
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
            grammar: plan.grammar,
            zone: plan.time_zones.local(),
            place: (place.0, place.1 + start),
        })
    }
}
