//! `ringfold inspect`: what a partial says of itself.

use std::path::PathBuf;

use clap::Args;

use crate::Result;
use crate::cli::console::print;
use crate::query::Partial;

/// Print what a partial is of: query, files, rows and groups; all of it is checked
#[derive(Args)]
#[command(after_help = "\
Example:
  ringfold inspect monday.part
      which query and which files it is of, and whether it is whole")]
pub(super) struct Command {
    /// Partials; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let mut text = String::new();
        for (at, path) in self.files.iter().enumerate() {
            let partial = Partial::open(path)?;
            partial.check()?;
            if at > 0 {
                text.push('\n');
            }
            text += &partial.inspected();
        }
        print(text.as_bytes()).map(drop)
    }
}
