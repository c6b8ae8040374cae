//! `ringfold rung`: a rung of the ladder. `ringfold bench --ladder` calls it.

use std::path::PathBuf;

use clap::Args;

use crate::cli::console::print;
use crate::measure::ladder::{RUNGS, count_by_byte, count_by_vector, text};
use crate::{Error, Kind, Result};

/// Group or count the lines of a file in one of the ways of the ladder
#[derive(Args)]
pub(super) struct Command {
    /// Which way
    name: String,
    /// Lines of key;value with one decimal
    file: PathBuf,
}

/// Rungs that only count: their names, and what each does.
pub(super) const COUNTING: [(&str, &str); 2] = [
    ("count-bytes", "read, a byte at a time"),
    ("count-vectors", "reads of 4 MiB, counted with vectors"),
];

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let answer = match &*self.name {
            "count-bytes" => {
                count_by_byte(&self.file).map(|lines| format!("{lines}\n").into_bytes())
            }
            "count-vectors" => {
                count_by_vector(&self.file).map(|lines| format!("{lines}\n").into_bytes())
            }
            name => match RUNGS.iter().find(|rung| rung.name == name) {
                Some(rung) => (rung.run)(&self.file).map(|groups| text(&groups)),
                None => {
                    let names = RUNGS.iter().map(|rung| rung.name);
                    let names: Vec<_> = names.chain(COUNTING.map(|rung| rung.0)).collect();
                    let cause = format!("there is no rung {name}; there are {}", names.join(", "));
                    return Err(Error::new(Kind::Usage, cause));
                }
            },
        };
        let answer = answer.map_err(|error| match error.raw_os_error() {
            Some(_) => Error::io(&error).in_file(0, &self.file.display().to_string().into()),
            None => Error::new(Kind::Data, error.to_string()),
        })?;
        print(&answer).map(drop)
    }
}
