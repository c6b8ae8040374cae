//! Records and values that are left out: how many, which is the first, and all of them on request.

pub(crate) mod rejects;
pub(crate) mod skipped;
pub(crate) mod unread;
