//! `ringfold generate`: measurements to try the other commands on.

use std::path::PathBuf;

use crate::Result;
use crate::generate::Generate;
use clap::Args;
use ringfold_read::internals::units;

use crate::cli::console::{open_output, say, usage, write_output};
use crate::cli::progress::{self, Bar, When};
use crate::cli::size::{count, size};

/// Write measurements: `key;value` lines, the same ones for the same seed
#[derive(Args)]
pub(super) struct Command {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Number of rows
    #[arg(long, value_name = "N", value_parser = count)]
    rows: Option<u64>,
    /// Size of the file: as many whole rows as fit into it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Number of distinct keys, names of 1 to 100 bytes [default: the 413 stations of the challenge]
    #[arg(long, value_name = "N", value_parser = count)]
    keys: Option<u64>,
    /// The same seed makes the same rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads [default: one for each core]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
    /// When to draw progress on stderr (auto: on a terminal)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    progress: When,
    /// No progress, and no line at the end
    #[arg(short, long)]
    quiet: bool,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        if self.keys == Some(0) || self.keys.is_some_and(|keys| keys > 1 << 32) {
            let keys = self.keys.unwrap_or_default();
            return Err(usage(format!(
                "--keys {keys} is out of range: 1 to 4294967296"
            )));
        }
        if self.rows.is_none() && self.bytes.is_none() {
            return Err(usage("name a size: --rows N or --bytes SIZE"));
        }
        let generate = Generate {
            rows: self.rows,
            bytes: self.bytes,
            keys: self.keys,
            seed: self.seed,
            threads: self.threads.unwrap_or(0),
        };
        // Rows of the 413 stations have 13.8 bytes on average.
        let rows = self.rows.filter(|_| self.keys.is_none());
        let expected = rows.map(|rows| (rows as f64 * 13.8) as u64);
        let expected = self.bytes.or(expected);
        let bar = Bar::of(self.progress, self.quiet);
        let tick = |_, bytes| {
            if let Some(bar) = &bar {
                bar(bytes, expected);
            }
        };
        let mut generated = None;
        let written = write_output(open_output(Some(&self.output))?, |out| {
            generated = Some(generate.run(out, &tick)?);
            Ok(())
        });
        progress::clear();
        written?;
        if let (Some(generated), false) = (generated, self.quiet) {
            let (rows, bytes) = (
                units::grouped(generated.rows),
                units::grouped(generated.bytes),
            );
            say(&format!(
                "{rows} rows, {bytes} bytes in {}",
                self.output.display()
            ));
        }
        Ok(())
    }
}
