//! `ringfold discard`: reads and does nothing with the bytes. `ringfold bench` calls it for the rates that no job can
//! exceed.

use clap::Args;

use crate::cli::reading::{Files, FoldOutput, ReadFlags};
use crate::{Block, BlockError, Fold, Framing, Input, Result};

/// Read files and look at no byte of them: the rate that no job can exceed
#[derive(Args)]
pub(super) struct Command {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    pub(super) reading: ReadFlags,
}

/// Counts the bytes of blocks, and looks at none.
struct Discard;

impl Fold for Discard {
    type Partial = u64;
    type Output = u64;

    fn partial(&self) -> u64 {
        0
    }

    /// No record's end is looked for.
    fn framing(&self) -> &dyn Framing {
        &ringfold_read::Delimited::EVERY_BYTE
    }

    fn block(&self, bytes: &mut u64, block: &Block<'_>) -> Result<(), BlockError> {
        *bytes += block.bytes().len() as u64;
        Ok(())
    }

    fn merge(&self, into: &mut u64, from: u64) {
        *into += from;
    }

    fn finish(&self, bytes: u64) -> u64 {
        bytes
    }
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let input = Input::open(self.files.paths()?)?;
        let memory = self.reading.memory();
        let FoldOutput {
            output: bytes,
            stats,
            ..
        } = self.reading.fold(&input, &Discard)?;
        crate::cli::console::print(format!("{bytes}\n").as_bytes())?;
        let counted = [("bytes", bytes)];
        self.reading.print_stats(&stats, &counted, &[], memory);
        Ok(())
    }
}
