//! Partials: groups by key with what is kept of each, in files and in memory.
//!
//! docs/partial-format.md has the format to the byte. It knows no query: a group is a key and a row of columns, and each
//! column says by its [`Rule`](description::Rule) how the values of one key in two partials become one. So partials are
//! merged without the states of any aggregate; `query` encodes its states into columns and decodes them.
//!
//! Groups are sorted by key, so any number of partials is merged with a block of each in memory.

pub(crate) mod block;
pub(crate) mod chain;
pub(crate) mod column;
pub(crate) mod combine;
pub(crate) mod description;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod merge;
pub(crate) mod plain;
pub(crate) mod reader;
pub(crate) mod receipt;
pub(crate) mod shard;
pub(crate) mod writer;
