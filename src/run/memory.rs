//! Bounds the memory of groups: workers share their groups in lanes, then write groups to files, which are merged in the end.

use std::sync::Arc;

use ringfold_read::Result;
use ringfold_read::internals::heap;

use crate::plan::Plan;
use crate::run::partial::Partial;
use crate::run::passes::Passes;
use crate::spill::stored::{Stored, StoredForm};
use crate::table::groups::Groups;
use crate::table::lane_groups::LaneGroups;
use crate::table::lane_rows::{LaneRows, bytes_merged};
use crate::table::shared::Drained;
use crate::table::states::{ORDER_BYTES, Table};

/// The most bytes by which groups are expected to grow until the next look, as they did since the last one: a few long records.
const GROWTH_MAX: usize = 16 << 20;

impl Plan {
    /// Makes groups ready to be taken.
    pub(super) fn settle(&self, partial: &mut Partial) {
        if let Some(passes) = &mut partial.passes {
            passes.settle(&mut partial.table);
        }
    }

    /// What a partial has in memory, and what it takes beside to write it or to put it in order.
    fn bytes(&self, partial: &mut Partial, passes: Option<&mut Passes>) -> (u64, u64) {
        let before = partial.lane_groups;
        let lane_bytes = passes.map_or(0, |passes| {
            let pair_bytes = passes.pair_bytes();
            let slots = &passes.groups().slots;
            partial.lane_groups = slots.len();
            // What comes until the next look may bring as many new groups as came since the last one, and some more.
            pair_bytes + slots.bytes_with(2 * slots.len().saturating_sub(before))
        });
        let table_bytes = partial.table.bytes();
        let growth = table_bytes.saturating_sub(partial.table_bytes);
        let growth = growth.min(GROWTH_MAX);
        partial.table_bytes = table_bytes;
        let more = ORDER_BYTES * partial.lane_groups + partial.table.bytes_in_order();
        ((lane_bytes + table_bytes + growth) as u64, more as u64)
    }

    /// If all partials together exceed the budget, they share their groups in lanes, so that each key is in memory once; if
    /// that is too much too, groups are written to files.
    pub(super) fn enforce_budget(
        &self,
        partial: &mut Partial,
        mut passes: Option<&mut Passes>,
    ) -> Result<()> {
        self.budget.unwind();
        let (bytes, more) = self.bytes(partial, passes.as_deref_mut());
        let mut exceeds = partial.share.set_with(bytes, more);
        if let Some(passes) = passes.as_deref_mut()
            && passes.groups().may_share()
        {
            if exceeds {
                partial.shared.request();
            }
            if partial.shared.is_requested() && !passes.groups().shares() {
                passes.drain_pairs(true, &mut partial.table);
                passes.groups().share(&mut partial.table);
                partial.shared.add_sharer();
                partial.lane_groups = 0;
                let (bytes, more) = self.bytes(partial, Some(passes));
                exceeds = partial.share.set_with(bytes, more);
            }
        }
        if exceeds {
            self.spill_own(partial, passes)?;
        }
        let shared = Arc::clone(&partial.shared);
        if let Some((drained, share)) = shared.drain_excess(&self.budget) {
            let table = partial.table.like();
            self.spill(partial, Vec::new(), drained, table)?;
            drop(share);
        }
        Ok(())
    }

    /// Writes a partial's groups to files.
    fn spill_own(&self, partial: &mut Partial, mut passes: Option<&mut Passes>) -> Result<()> {
        if let Some(passes) = &mut passes {
            passes.settle(&mut partial.table);
        }
        let mut lanes = passes.as_mut().map(|passes| passes.groups());
        let count = lanes.as_ref().map_or(0, |groups| groups.slots.len());
        if count + partial.table.len() > 0 {
            let taken = lanes.as_mut().map(|groups| groups.take());
            let table = partial.table.like();
            let table = std::mem::replace(&mut partial.table, table);
            self.spill(
                partial,
                taken.into_iter().collect(),
                Drained::default(),
                table,
            )?;
        }
        partial.lane_groups = 0;
        partial.table_bytes = 0;
        let (left, _) = self.bytes(partial, passes);
        partial.share.set(left);
        Ok(())
    }

    /// Writes groups to a file.
    fn spill(
        &self,
        partial: &mut Partial,
        lanes: Vec<LaneGroups>,
        drained: Drained,
        mut table: Table,
    ) -> Result<()> {
        // Runs are in the order of bytes.
        let lanes = LaneRows::merge(lanes, drained, false, &mut table);
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

    /// The most digits after the point of each aggregate's numbers.
    pub(super) fn scales(&self, partial: &Partial) -> Vec<u32> {
        let aggregates = self.aggregates.iter();
        let scale = |number: Option<usize>| number.map_or(0, |at| partial.scales[at]);
        aggregates
            .map(|of| scale(of.number.filter(|_| of.is_numeric())))
            .collect()
    }

    /// Merges what went to files, if something did.
    pub(super) fn merge_spilled(&self, total: &mut Partial) -> Result<()> {
        self.gather_lanes(total);
        let settled = if self.has_values() { 2 } else { 1 };
        let bytes = settled * total.table.bytes() + total.table.bytes_in_order();
        let bytes = bytes + bytes_merged(&total.merged);
        for drained in std::mem::take(&mut total.drained) {
            let table = total.table.like();
            self.spill(total, Vec::new(), drained, table)?;
        }
        let has_room = total.tables.is_empty() && self.budget.has_room(bytes as u64);
        if total.runs.is_empty() && has_room {
            if self.has_values() || self.fill.is_some() {
                total.answer = Some(self.answer_in_memory(total)?);
            }
            return Ok(());
        }
        for table in std::mem::take(&mut total.tables) {
            self.spill(total, Vec::new(), Drained::default(), table)?;
        }
        if !has_room {
            for lanes in std::mem::take(&mut total.merged) {
                let table = total.table.like();
                self.spill(total, vec![lanes], Drained::default(), table)?;
            }
        }
        let (lanes, table) = self.take_groups(total);
        let drained = total.shared.drain();
        if lanes.len() + table.len() > 0 || !drained.is_empty() {
            self.spill(total, lanes, drained, table)?;
        }
        let runs = std::mem::take(&mut total.runs);
        let merged = self.stored_form().merge(runs, &self.scales(total));
        let merged = merged.map_err(|lost| lost.error(&self.budget))?;
        let form = self.stored_form();
        let stored = Stored::new(merged, form.keys, total.table.like());
        let nothing = Groups::new(total.table.like(), None);
        let mut answer = self.answer(total, nothing);
        let kept = answer.store(stored, &form);
        kept.map_err(|lost| lost.error(&self.budget))?;
        total.answer = Some(self.chosen(answer)?);
        Ok(())
    }

    /// Puts the groups of the passes beside those of other workers.
    pub(super) fn gather_lanes(&self, total: &mut Partial) {
        self.settle(total);
        if let Some(passes) = total.passes.take() {
            total.merged.push(passes.into_groups());
        }
    }

    /// Takes all groups that are in memory.
    pub(super) fn take_groups(&self, total: &mut Partial) -> (Vec<LaneGroups>, Table) {
        self.gather_lanes(total);
        let table = total.table.like();
        let table = std::mem::replace(&mut total.table, table);
        (std::mem::take(&mut total.merged), table)
    }
}
