//! Puts groups as they lie in files into a table, by all threads: each has some of the table's shards.

use ahash::RandomState;
use rayon::prelude::*;

use crate::partial::block::{Block, Groups, Sections};
use crate::partial::column::Ragged;
use crate::partial::description::{Column, Description};
use crate::partial::key;
use crate::table::states::{SHARDS, Table, push_part, shard_of};

/// How groups are looked at before they are put into a table.
pub(crate) struct Filing<'a> {
    description: &'a Description,
    columns: Vec<Column>,
    /// How many parts keys have.
    keys: usize,
    hasher: RandomState,
}

/// Groups that were looked at.
pub(crate) struct Filed {
    bytes: Vec<u8>,
    /// `None` where there are no groups.
    sections: Option<Sections>,
    /// Their keys as a table has them.
    keys: Ragged,
    /// For each shard the hashes and rows of its groups.
    of_shards: Vec<Vec<(u32, u32)>>,
}

impl Filing<'_> {
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn file(&self, groups: Groups) -> Result<Filed, &'static str> {
        let mut filed = Filed {
            bytes: Vec::new(),
            sections: None,
            keys: Ragged::default(),
            of_shards: vec![Vec::new(); SHARDS],
        };
        if groups.len() == 0 {
            return Ok(filed);
        }
        groups.write(0..groups.len(), &mut filed.bytes)?;
        let sections = Sections::check(&filed.bytes, self.description, &self.columns)?;
        filed.sections = Some(sections);
        for row in 0..groups.len() {
            let parts = key::parts(groups.keys.get(row), self.keys);
            for part in parts.ok_or("a key has other parts")? {
                push_part(&mut filed.keys.bytes, &part);
            }
            filed.keys.ends.push(filed.keys.bytes.len());
            let hash = self.hasher.hash_one(filed.keys.get(row));
            filed.of_shards[shard_of(hash)].push((hash as u32, row as u32));
        }
        Ok(filed)
    }
}

impl Table {
    /// For groups of a description, whose keys have so many parts.
    pub(crate) fn filing<'a>(&self, description: &'a Description, keys: usize) -> Filing<'a> {
        Filing {
            description,
            columns: description.columns().collect(),
            keys,
            hasher: self.hasher.clone(),
        }
    }

    /// Adds groups that aren't there yet.
    ///
    /// # Errors
    /// What is wrong with the states.
    pub(crate) fn insert_all(
        &mut self,
        filing: &Filing<'_>,
        filed: &[Filed],
    ) -> Result<(), &'static str> {
        let views = filed.iter().map(|filed| {
            let sections = filed.sections.as_ref()?;
            Some(sections.view(&filed.bytes, &filing.columns))
        });
        let views: Vec<Option<Block<'_>>> = views.collect();
        let slots = &self.slots;
        let shards = self.shards.par_iter_mut().enumerate();
        let filled = shards.map(|(number, shard)| {
            for (part, (filed, view)) in filed.iter().zip(&views).enumerate() {
                let Some(view) = view else { continue };
                for &(hash, row) in &filed.of_shards[number] {
                    let key = filed.keys.get(row as usize);
                    let inserted = shard.insert(hash, key, slots, &view.columns, row as usize);
                    inserted.map_err(|why| (part, row, why))?;
                }
            }
            Ok(())
        });
        // Of several errors that of the first group, whatever shard it is in.
        let filled: Vec<Result<(), (usize, u32, &str)>> = filled.collect();
        let first = filled.into_iter().filter_map(Result::err).min();
        first.map_or(Ok(()), |(_, _, why)| Err(why))
    }
}
