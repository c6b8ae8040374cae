//! The job `count`: records and bytes, like `wc -l` and `wc -c`. As little work as a job can do,
//! so its time is the time of reading.
//!
//! # Invariant (`unsafe` module)
//! Each byte of a block is compared once, and no length or index comes of it: so blocks may change meanwhile.
#![allow(unsafe_code)]

use ringfold_read::internals::bytes;
use ringfold_read::{Block, BlockError, Delimited, Fold, Framing, SharedPages};

/// Counts record ends and bytes, file by file.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The byte that ends a record.
    pub delimiter: u8,
}

/// What was counted in one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Delimiters: a last record that lacks its own isn't counted, as in `wc -l`.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Fold for Count {
    type Partial = Vec<Counted>;
    /// One a file that has any bytes, by the file's number; missing ones at the end hold nothing.
    type Output = Vec<Counted>;

    fn partial(&self) -> Vec<Counted> {
        Vec::new()
    }

    /// Lines are counted, not looked at: they may be as long as they like, and lie across blocks.
    fn framing(&self) -> &dyn Framing {
        &Delimited::EVERY_BYTE
    }

    fn shared_pages(&self) -> Option<SharedPages> {
        // SAFETY: the module's invariant; and the framing looks at no byte, because records end everywhere.
        Some(unsafe { SharedPages::new() })
    }

    fn block(&self, counted: &mut Vec<Counted>, block: &Block<'_>) -> Result<(), BlockError> {
        let file = block.file() as usize;
        if counted.len() <= file {
            counted.resize(file + 1, Counted::default());
        }
        counted[file].records += bytes::count(self.delimiter, block.bytes()) as u64;
        counted[file].bytes += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut Vec<Counted>, from: Vec<Counted>) {
        into.resize(into.len().max(from.len()), Counted::default());
        for (into, from) in into.iter_mut().zip(from) {
            into.records += from.records;
            into.bytes += from.bytes;
        }
    }

    fn finish(&self, total: Vec<Counted>) -> Vec<Counted> {
        total
    }
}
