//! Group-by over the columns of any delimited text: many keys, many aggregates, exactly.
//!
//! [`Query`] is what is asked. It is compiled to a [`Plan`], which is data and a job; the job's result is an [`Answer`].

pub(crate) mod ask;
pub(crate) mod describe;
pub(crate) mod explain;
pub(crate) mod overview;
pub(crate) mod shown;

pub use crate::answer::Answer;
pub use crate::answer::layout::Layout;
pub use crate::answer::order::{By, Sort};
pub use crate::format::repeats::Occurrences;
pub use crate::format::sniff::{Doubt, DoubtKind};
pub use crate::format::time::Unit;
pub use crate::plan::Plan;
pub use crate::plan::columns::Columns;
pub use crate::refusal::{
    AGGREGATE, FILTER, HAVING, Hint, KEY, LOOKUP, MEMORY, PRECISION, Refusal, SORT, Uneven,
    WrongPart,
};
pub use crate::reject::rejects::{OnError, Rejects};
pub use crate::reject::skipped::Skipped;
pub use crate::run::plans::Plans;
pub use crate::saved::Partial;
pub use crate::saved::groups::{Decimal, SavedBlock, SavedGroup, SavedGroups, Value};
pub use crate::saved::merged::Merged;
pub use ask::Query;
pub use describe::{ColumnDescription, Describe, Description};
pub use explain::{Explanation, Values};
pub use overview::{Column, Form, Overview};
pub use shown::Shown;
