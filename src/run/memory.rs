//! Bounds the memory of groups: workers share the tables of pairs, then write groups to files, which are merged in the end.

use std::sync::Arc;

use crate::error::Result;
use crate::linux::heap;
use crate::plan::Plan;
use crate::run::partial::Partial;
use crate::run::passes::Passes;
use crate::spill::stored::{Stored, StoredForm};
use crate::table::groups::Groups;
use crate::table::lane_groups::{LaneGroups, LaneRows};
use crate::table::pair_rows::PairRows;
use crate::table::states::{ORDER_BYTES, Table};
use crate::table::tables::{DrainedClasses, Tables};

/// The most bytes by which groups are expected to grow until the next look, as they did since the last one: a few long records.
const GROWTH_MAX: usize = 16 << 20;

impl Plan {
    /// Makes groups ready to be taken.
    pub(super) fn settle(&self, partial: &mut Partial) {
        if let Some(passes) = &mut partial.passes {
            passes.settle(&mut partial.table);
        }
    }

    /// What a partial has in memory but for pairs, and what it takes beside to write it or to put it in order.
    fn bytes(&self, partial: &mut Partial, passes: Option<&mut Passes>) -> (u64, u64) {
        let before = partial.lane_groups;
        let lane_bytes = passes.map_or(0, |passes| {
            let slots = &passes.groups().slots;
            partial.lane_groups = slots.len();
            // What comes until the next look may bring as many new groups as came since the last one, and some more.
            slots.bytes_with(2 * slots.len().saturating_sub(before))
        });
        let table_bytes = partial.table.bytes();
        let growth = table_bytes.saturating_sub(partial.table_bytes);
        let growth = growth.min(GROWTH_MAX);
        partial.table_bytes = table_bytes;
        let more = ORDER_BYTES * partial.lane_groups + partial.table.bytes_in_order();
        ((lane_bytes + table_bytes + growth) as u64, more as u64)
    }

    /// If all partials together exceed the budget, they share the tables of pairs, so that each key is in memory once; if
    /// that is too much too, groups are written to files.
    pub(super) fn enforce_budget(
        &self,
        partial: &mut Partial,
        mut passes: Option<&mut Passes>,
    ) -> Result<()> {
        let (bytes, more) = self.bytes(partial, passes.as_deref_mut());
        let mut shared = None;
        let exceeds = match passes.as_deref_mut().and_then(|passes| passes.pairs()) {
            None => partial.share.set_with(bytes, more),
            Some(pairs) => {
                if partial.share.set_with(bytes + pairs.bytes(), more) {
                    pairs.shared_tables().request_sharing();
                }
                pairs.share_if_requested();
                shared = Some(Arc::clone(pairs.shared_tables()));
                partial.share.set_with(bytes + pairs.bytes(), more)
            }
        };
        if exceeds {
            self.spill_own(partial, passes)?;
        }
        if let Some(shared) = shared
            && let Some((drained, share)) = shared.drain_excess(&self.budget)
        {
            self.spill_pairs(partial, Vec::new(), drained)?;
            drop(share);
        }
        Ok(())
    }

    /// Writes a partial's groups to files.
    fn spill_own(&self, partial: &mut Partial, mut passes: Option<&mut Passes>) -> Result<()> {
        if let Some(passes) = &mut passes {
            passes.settle(&mut partial.table);
            if let Some(pairs) = passes.pairs().filter(|pairs| pairs.len() > 0) {
                let (own, none) = (pairs.take(), pairs.shared_tables().drain_none());
                self.spill_pairs(partial, vec![own], none)?;
            }
        }
        let mut lanes = passes.as_mut().map(|passes| passes.groups());
        let count = lanes.as_ref().map_or(0, |groups| groups.slots.len());
        if count + partial.table.len() > 0 {
            let taken = lanes.as_mut().map(|groups| groups.take());
            let table = partial.table.like();
            let table = std::mem::replace(&mut partial.table, table);
            self.spill(partial, taken.into_iter().collect(), table)?;
        }
        partial.lane_groups = 0;
        partial.table_bytes = 0;
        // No pairs are left.
        let (left, _) = self.bytes(partial, passes);
        partial.share.set(left);
        Ok(())
    }

    /// Writes groups of pairs to a file.
    fn spill_pairs(
        &self,
        partial: &mut Partial,
        own: Vec<Tables>,
        drained: DrainedClasses,
    ) -> Result<()> {
        let mut table = partial.table.like();
        let pairs = PairRows::merge(own, drained, &mut table, &self.nulls);
        self.write(partial, Groups::new(table, None).with_pairs(pairs))
    }

    /// Writes groups to a file.
    fn spill(&self, partial: &mut Partial, lanes: Vec<LaneGroups>, mut table: Table) -> Result<()> {
        let lanes = LaneRows::merge(lanes, &mut table);
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

    /// The most digits behind the point of each aggregate's numbers.
    pub(super) fn scales(&self, partial: &Partial) -> Vec<u32> {
        let aggregates = self.aggregates.iter();
        let scale = |number: Option<usize>| number.map_or(0, |at| partial.scales[at]);
        aggregates.map(|of| scale(of.number)).collect()
    }

    /// Merges what went to files, if something did.
    pub(super) fn merge_spilled(&self, total: &mut Partial) -> Result<()> {
        self.gather_lanes(total);
        let settled = if self.has_values() { 2 } else { 1 };
        let bytes = settled * total.table.bytes() + total.table.bytes_in_order();
        let bytes = bytes + LaneGroups::bytes_merged(&total.merged);
        for drained in std::mem::take(&mut total.drained) {
            self.spill_pairs(total, Vec::new(), drained)?;
        }
        let has_room = total.tables.is_empty() && self.budget.has_room(bytes as u64);
        if total.runs.is_empty() && has_room {
            return Ok(());
        }
        for table in std::mem::take(&mut total.tables) {
            self.spill(total, Vec::new(), table)?;
        }
        if !has_room {
            for lanes in std::mem::take(&mut total.merged) {
                self.spill(total, vec![lanes], total.table.like())?;
            }
        }
        // There is no memory to merge the rest into one table.
        if let Some(shared) = total.shared.clone() {
            for own in std::mem::take(&mut total.merged_pairs) {
                self.spill_pairs(total, vec![own], shared.drain_none())?;
            }
            if shared.holds_keys() {
                self.spill_pairs(total, Vec::new(), shared.drain_all())?;
            }
        }
        let (lanes, table) = self.take_groups(total);
        if lanes.len() + table.len() > 0 {
            self.spill(total, lanes, table)?;
        }
        let runs = std::mem::take(&mut total.runs);
        let merged = self.stored_form().merge(runs, &self.scales(total));
        let merged = merged.map_err(|lost| lost.error(&self.budget))?;
        let form = self.stored_form();
        let stored = Stored::new(merged, form.keys, total.table.like());
        let nothing = Groups::new(total.table.like(), None);
        let mut answer = self.answer(total, nothing, None);
        let kept = answer.store(stored, &form, self.having());
        kept.map_err(|lost| lost.error(&self.budget))?;
        total.outgrown = Some(answer);
        Ok(())
    }

    /// Puts the groups of the passes beside those of other workers.
    pub(super) fn gather_lanes(&self, total: &mut Partial) {
        self.settle(total);
        if let Some(mut passes) = total.passes.take() {
            (total.merged_pairs).extend(passes.pairs().map(|pairs| pairs.take()));
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
