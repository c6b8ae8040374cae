//! `ringfold ceiling`: how fast memory is read here. `ringfold bench` calls it as a process of its own, because its
//! buffers would count as the memory of every child.

use clap::Args;

use ringfold_bench::measure::ceilings;

use crate::Result;
use crate::cli::console::print;

/// Measure how fast memory is read, by one thread and by more, and print it as JSON
#[derive(Args)]
pub(super) struct Command {
    /// The most threads
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let threads = self.threads.unwrap_or_else(ceilings::threads).max(1);
        let rates = ceilings::memory(threads)?;
        let text = serde_json::to_string(&rates).expect("plain values");
        print((text + "\n").as_bytes()).map(drop)
    }
}
