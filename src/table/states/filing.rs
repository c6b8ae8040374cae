//! Puts groups as they lie in files into a table, by all threads: each has some of the table's shards.

use std::borrow::Cow;

use rayon::prelude::*;
use ringfold_read::Result;

use crate::partial::block::Block;
use crate::partial::column::Ragged;
use crate::partial::key;
use crate::partial::reader::Loaded;
use crate::table::states::{SHARDS, Table, push_part, shard_of};

/// A block whose groups were looked at before they are put into a table.
pub(crate) struct Filed<'a> {
    block: Loaded<'a>,
    /// Its keys as a table has them.
    keys: Ragged,
    /// For each shard the hashes and rows of its groups.
    of_shards: Vec<Vec<(u32, u32)>>,
}

impl Table {
    /// Looks at groups whose keys have so many parts.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn file<'a>(&self, block: Loaded<'a>, parts: usize) -> Result<Filed<'a>> {
        let (mut keys, mut of_shards) = (Ragged::default(), vec![Vec::new(); SHARDS]);
        let from = block.keys();
        for row in 0..block.groups() {
            let push = |part: Cow<'_, [u8]>| push_part(&mut keys.bytes, &part);
            if key::each_part(from.get(row), parts, push).is_none() {
                return Err(block.damaged("a key has other parts"));
            }
            keys.ends.push(keys.bytes.len());
            let hash = self.hasher.hash_one(keys.get(row));
            of_shards[shard_of(hash)].push((hash as u32, row as u32));
        }
        Ok(Filed {
            block,
            keys,
            of_shards,
        })
    }

    /// Adds groups that aren't there yet.
    ///
    /// # Errors
    /// What is wrong with the states.
    pub(crate) fn insert_all(&mut self, filed: &[Filed<'_>]) -> Result<()> {
        let views: Vec<Block<'_>> = filed.iter().map(|filed| filed.block.view()).collect();
        let slots = &self.slots;
        let shards = self.shards.par_iter_mut().enumerate();
        let filled = shards.map(|(number, shard)| {
            for (part, (filed, view)) in filed.iter().zip(&views).enumerate() {
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
        first.map_or(Ok(()), |(part, _, why)| Err(filed[part].block.damaged(why)))
    }
}
