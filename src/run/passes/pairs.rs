//! Windows of pairs: direct tables take the rows, and lanes those of too many keys.

use ringfold_read::BlockError;

use crate::run::pairs;
use crate::run::passes::Passes;
use crate::run::rest::Rest;
use crate::scan::key_number::window::ScanWindow;
use crate::table::lane_groups::KeptBatch;
use crate::table::lane_table::GROUP_LANES;
use crate::table::states::Table;
use crate::table::stats::BIAS;

impl Passes {
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
    pub(super) fn move_pairs(&mut self, all: bool, table: &mut Table) {
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
    pub(super) fn set_pair_columns(&mut self, table: &mut Table) {
        // Lanes are about the numbers alone.
        let source = &mut self.sources[0];
        if source.column.scale < Some(pairs::SCALE) {
            source.column.scale = Some(pairs::SCALE);
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
    pub(in crate::run) fn add_pairs(
        &mut self,
        at: usize,
        rest: &mut Rest<'_>,
    ) -> Result<Option<usize>, BlockError> {
        let Some(pairs) = &mut self.pairs else {
            return Ok(None);
        };
        let Some(window) = pairs.read(&rest.text.block, at) else {
            return Ok(None);
        };
        for &start in pairs.others() {
            let start = at + start as usize;
            rest.add(start, start + 1)?;
        }
        let (rows, has_more) = pairs.fold(window);
        let end = pairs.end();
        if has_more {
            self.fold_pairs(window, &mut rest.partial.table);
        }
        rest.partial.rows += rows as u64;
        if rows > 0 {
            let scale = &mut rest.partial.scales[0];
            *scale = pairs::SCALE.max(*scale);
        }
        Ok(Some(at + end))
    }

    /// Adds the rows of pairs that are for lanes.
    #[inline(never)]
    pub(super) fn fold_pairs(&mut self, window: ScanWindow<'_>, table: &mut Table) {
        self.set_pair_columns(table);
        self.move_pairs(false, table);
        let Some(pairs) = self.pairs.take() else {
            return;
        };
        let source = &mut self.sources[0];
        source.column.numbers.has_nulls = false;
        let factor = 10_i64.pow(source.column.scale.unwrap_or_default() - pairs::SCALE);
        for (keys, values) in pairs.for_lanes() {
            let most = self.groups.slots.batch_rows();
            for (keys, values) in keys.chunks(most).zip(values.chunks(most)) {
                self.groups.reserve(keys.len(), table);
                let spans = &mut self.scratch.key_spans;
                spans.clear();
                // A start, and in the high half a length.
                spans.extend(keys.iter().map(|key| key + (key << 16)));
                let numbers = &mut self.sources[0].column.numbers.values;
                for (number, &value) in numbers.iter_mut().zip(values) {
                    *number = (i64::from(value) - i64::from(BIAS)) * factor;
                }
                self.groups.slots.find(window.bytes_and_padding(), spans);
                for first in (0..self.groups.layout().lanes().len()).step_by(GROUP_LANES) {
                    self.add_lanes(first, 0, keys.len());
                }
            }
        }
        self.pairs = Some(pairs);
    }
}
