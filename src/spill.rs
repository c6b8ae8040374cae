//! Groups that outgrow the memory: sorted runs in temporary files, and values that are groups themselves.

pub(crate) mod exact;
mod list;
pub(crate) mod regroup;
pub(crate) mod stored;
