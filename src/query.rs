//! Group-by over the columns of any delimited text: many keys, many aggregates, exactly.
//!
//! [`Query`] is what is asked. It is compiled to a [`Plan`], which is data and a job; the job's result is an [`Answer`].
//! Records go through `dialect` (bytes to fields) and `number` (fields to numbers) to the `table` (groups by key, and
//! the states of each `accumulator`).

pub(crate) mod accumulator;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod columns;
pub(crate) mod condition;
pub(crate) mod dialect;
pub(crate) mod escape;
pub(crate) mod exact;
pub(crate) mod explain;
pub(crate) mod field;
pub(crate) mod groups;
mod head;
pub(crate) mod hint;
pub(crate) mod in_order;
pub(crate) mod job;
pub(crate) mod json;
pub(crate) mod key_order;
pub(crate) mod lane_groups;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod number;
pub(crate) mod order;
pub(crate) mod overview;
pub(crate) mod pair_hint;
pub(crate) mod pair_rows;
pub(crate) mod pairs;
pub(crate) mod passes;
pub(crate) mod plan;
pub(crate) mod quotient;
pub(crate) mod rejects;
pub(crate) mod repeats;
pub(crate) mod saved;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod sixteen;
pub(crate) mod skipped;
pub(crate) mod slots;
pub(crate) mod sniff;
pub(crate) mod stored;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod unread;

pub use answer::Answer;
pub use answer::order::{By, Sort};
pub use ask::Query;
pub use columns::Columns;
pub use explain::{Explanation, Values};
pub use overview::{Column, Form, Overview};
pub use plan::Plan;
pub use rejects::{OnError, Rejects};
pub use repeats::Occurrences;
pub use saved::Partial;
pub use saved::groups::{Decimal, SavedBlock, SavedGroup, SavedGroups, Value};
pub use saved::merged::{Merged, Shown};
pub use skipped::Skipped;
pub use sniff::{Doubt, DoubtKind};
pub use time::Unit;
