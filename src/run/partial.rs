//! What a worker knows of the records that it has added.

use std::sync::Arc;

use crate::answer::Answer;
use crate::budget::Share;
use crate::decimal::number::Number;
use crate::expression::Reading;
use crate::format::field::Field;
use crate::format::repeats::Occurrences;
use crate::format::time::Cutter;
use crate::partial::chain::Extremes;
use crate::partial::reader::Reader;
use crate::plan::order::InOrder;
use crate::reject::rejects::Rejected;
use crate::reject::unread::Unread;
use crate::run::passes::Passes;
use crate::table::lane_groups::LaneGroups;
use crate::table::shared::{Drained, SharedGroups};
use crate::table::states::Table;

/// What a worker knows.
pub struct Partial {
    pub(super) table: Table,
    /// Tables of partials that were merged into this one and had no room in its own.
    pub(super) tables: Vec<Table>,
    /// The groups in lanes of partials that were merged into this one.
    pub(super) merged: Vec<LaneGroups>,
    /// The groups that all partials of the run share.
    pub(super) shared: Arc<SharedGroups>,
    /// What partials of another run shared.
    pub(super) drained: Vec<Drained>,
    /// Partials that shared their groups.
    pub(super) key_sharers: u64,
    /// Groups in lanes, and bytes of the table, when the budget was last looked at.
    pub(super) lane_groups: usize,
    pub(super) table_bytes: usize,
    /// What groups take of the budget, and those that went to files.
    pub(super) share: Share,
    pub(super) runs: Vec<Reader>,
    pub(super) spilled_bytes: u64,
    /// In the end, the answer, if all went there or if making it may fail.
    pub(super) answer: Option<Answer>,
    /// For each of the plan's numbers the most digits behind a point.
    pub(super) scales: Vec<u32>,
    pub(super) rows: u64,
    pub(super) filtered: u64,
    pub(super) empty_lines: u64,
    /// Values that weren't numbers and were taken for none.
    pub(super) nulled: Unread,
    /// For each table beside the input, records with a key that it doesn't have.
    pub(super) unmatched: Vec<Unread>,
    pub(super) repeated: Occurrences,
    pub(super) doubted: Doubted,
    /// The passes have decided about the record that is added, and counted what they met.
    pub(super) is_taken: bool,
    /// Lines that go on after a log's pattern.
    pub(super) longer: Occurrences,
    /// Records with a time without an offset that is looked at in a zone; the first counts.
    pub(super) local_times: Occurrences,
    pub(crate) rejected: Rejected,
    /// Where the blocks are that were added.
    pub(super) extremes: Extremes,
    /// A block ended within a record.
    pub(crate) is_cut: bool,
    /// What is known of the file that is being read in order.
    pub(crate) reading: Option<InOrder>,
    pub(super) scratch: Scratch,
    /// Most records are added by passes over windows, where the plan allows it.
    pub(super) passes: Option<Box<Passes>>,
}

/// Records about which the condition decides otherwise if values are read in another way.
#[derive(Default)]
pub(super) struct Doubted {
    /// It might be true if values could be read as numbers or times.
    pub(super) unread: Unread,
    /// It says something else where texts are read as numbers.
    pub(super) bytewise: Unread,
}

impl Doubted {
    pub(super) fn of(&mut self, reading: Reading) -> &mut Unread {
        match reading {
            Reading::Numeric => &mut self.bytewise,
            Reading::Strict | Reading::Hopeful => &mut self.unread,
        }
    }
}

#[derive(Default)]
pub(super) struct Scratch {
    pub(super) fields: Vec<Field>,
    /// The plan's numbers in the current record; `None` is null.
    pub(super) numbers: Vec<Option<Number>>,
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) joined: Vec<u8>,
    /// For each aggregate what is computed for it.
    pub(super) texts: Vec<Vec<u8>>,
    /// For each column of the key.
    pub(super) cutters: Vec<Cutter>,
}
