//! What a record is: fields between delimiters, lines of a log, JSON lines; what values mean; and what the first records
//! say of all.

pub(crate) mod dialect;
pub(crate) mod escape;
pub(crate) mod field;
pub(crate) mod hint;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod near;
pub(crate) mod pair_hint;
#[cfg(feature = "cli")]
pub(crate) mod pairs;
pub(crate) mod repeats;
pub(crate) mod short_text;
pub(crate) mod sixteen;
pub(crate) mod sniff;
pub(crate) mod time;
