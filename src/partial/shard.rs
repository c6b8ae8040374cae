//! Shards: the groups of a partial by ranges of their keys' hashes, so that many keys are merged shard by shard, anywhere.

use std::fmt;

use crate::partial::description::{Description, Rule};
use crate::partial::key;
use crate::partial::layout::checksum;

/// The name that it has in a query.
pub(crate) const SHARD: &[u8] = b"shard";

/// One of so many shards, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shard {
    pub(crate) count: u32,
    pub(crate) number: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl Shard {
    pub(crate) fn new(number: u32, count: u32) -> Option<Shard> {
        let shard = Shard { count, number };
        (1..=count).contains(&number).then_some(shard)
    }

    /// The only one that a partial has groups of; `None` if it has those of all.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(description: &Description) -> Result<Option<Shard>, &'static str> {
        let mut query = description.query.iter();
        let Some((_, value)) = query.find(|(name, _)| name == SHARD) else {
            return Ok(None);
        };
        let text = str::from_utf8(value).unwrap_or_default();
        let shard = text.split_once('/').and_then(|(number, count)| {
            let shard = Shard::new(number.parse().ok()?, count.parse().ok()?)?;
            (shard.to_string() == text).then_some(shard)
        });
        shard.map(Some).ok_or("its shard isn't one of several")
    }

    /// Has a partial say that it has the groups of this one only. The only one is the whole.
    pub(crate) fn mark(self, description: &mut Description) {
        if self.count > 1 {
            let value = self.to_string().into_bytes();
            description.query.push((SHARD.into(), value));
        }
    }
}

/// Tells which shard keys are in.
pub(crate) struct Shards {
    count: u32,
    key_parts: usize,
    has_values: bool,
}

impl Shards {
    pub(crate) fn new(count: u32, description: &Description) -> Shards {
        Shards {
            count,
            key_parts: description.key_parts(),
            has_values: description
                .columns()
                .any(|column| column.rule == Rule::Values),
        }
    }

    /// The number, from 1, of a key's shard; that of a value is its group's. `None` if the key has other parts.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        let hash = match self.has_values {
            false => checksum(key),
            true => {
                let mut parts = key::parts(key, self.key_parts)?;
                parts.pop();
                let mut own = Vec::new();
                key::push(&mut own, parts.iter().map(|part| &**part));
                checksum(&own)
            }
        };
        let range = (u128::from(hash) * u128::from(self.count)) >> 64;
        Some(range as u32 + 1)
    }
}
