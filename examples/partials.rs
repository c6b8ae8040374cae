//! Keeps what is known of each of some files beside it, merges all of it, and prints groups and answer.
//!
//! `cargo run --example partials -- monday.csv tuesday.csv` groups by the first column.

use std::path::PathBuf;

use ringfold::query::{Partial, Query, Shown, Value};
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Error, Input};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let query = Query::new(b',').key(1);
    let mut kept = Vec::new();
    for path in std::env::args_os().skip(1) {
        let (partial, ..) = query.partial(&Input::open([&path])?, &Config::default())?;
        let mut to = path;
        to.push(".part");
        std::fs::write(&to, partial.to_bytes()?)?;
        kept.push(PathBuf::from(to));
    }
    let partials: Vec<Partial> = kept
        .iter()
        .map(Partial::open)
        .collect::<Result<_, Error>>()?;

    // The groups of one, where they lie.
    if let Some(first) = partials.first() {
        let mut most = (0, Vec::new());
        let mut groups = first.groups();
        while let Some(block) = groups.next_block()? {
            for group in block.iter() {
                if let Value::Count(count) = group.value(0)
                    && (count, group.key()) > (most.0, &most.1)
                {
                    // The only copy.
                    most = (count, group.key().to_vec());
                }
            }
        }
        let key = String::from_utf8_lossy(&most.1);
        println!("most records of {}: {} of {key}", first.name(), most.0);
    }

    // The answer of all.
    let merged = Partial::merge(&partials)?;
    let answer = merged.answer(&Shown::default())?;
    let (format, out) = (GridFormat::Csv, &mut std::io::stdout());
    write_grid(answer.names(), &answer, format, None, out)?;
    Ok(())
}
