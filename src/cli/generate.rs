//! `ringfold generate`: measurements to try the other commands on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::generate::Generate;
use crate::{Error, Kind, Result, units};
use clap::Args;

use crate::cli::console::{open_output, say, write_output};
use crate::cli::progress::{Bar, When};
use crate::cli::size::size;

/// Write measurements: `key;value` lines, the same ones for the same seed
#[derive(Args)]
pub(super) struct Command {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Number of rows
    #[arg(long, value_name = "N", value_parser = rows)]
    rows: Option<u64>,
    /// Size of the file: as many whole rows as fit into it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Number of distinct keys, names of 1 to 100 bytes [default: the 413 stations of the challenge]
    #[arg(long, value_name = "N", value_parser = rows)]
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
            let cause = format!("--keys {keys} is out of range: 1 to 4294967296");
            return Err(Error::new(Kind::Usage, cause));
        }
        if self.rows.is_none() && self.bytes.is_none() {
            return Err(Error::new(
                Kind::Usage,
                "name a size: --rows N or --bytes SIZE",
            ));
        }
        let generate = Generate {
            rows: self.rows,
            bytes: self.bytes,
            keys: self.keys,
            seed: self.seed,
            threads: self.threads.unwrap_or(0),
        };
        // Rows of the 413 stations have 13.8 bytes on average.
        let expected = self
            .bytes
            .or(self.rows.map(|rows| (rows as f64 * 13.8) as u64));
        let expected = if self.keys.is_some() {
            self.bytes
        } else {
            expected
        };
        let done = Arc::new(AtomicU64::new(0));
        let bar = Bar::start(self.progress, self.quiet, expected, Arc::clone(&done));
        let mut generated = None;
        let written = write_output(open_output(Some(&self.output))?, |out| {
            generated = Some(generate.run(out, &|_, bytes| done.store(bytes, Relaxed))?);
            Ok(())
        });
        bar.finish();
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

/// A number of rows: `1000000`, `1_000_000`, `1e9`, `10M`.
fn rows(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let (number, zeros) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 3),
        Some((at, 'm' | 'M')) => (&plain[..at], 6),
        Some((at, 'g' | 'G')) => (&plain[..at], 9),
        _ => match plain.split_once('e') {
            Some((number, zeros)) => (number, zeros.parse().map_err(|_| "a number, as 1e9")?),
            None => (&plain[..], 0),
        },
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a number, as 10000, 1e9 or 10M")?;
    let scale = 10u64.checked_pow(zeros).ok_or("too large")?;
    number.checked_mul(scale).ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use crate::cli::generate::rows;

    #[test]
    fn numbers_of_rows() {
        for (text, n) in [
            ("0", 0),
            ("1000", 1000),
            ("1e9", 1_000_000_000),
            ("10M", 10_000_000),
        ] {
            assert_eq!(rows(text), Ok(n));
        }
        for wrong in ["", "M", "1e", "1e99", "x", "-1"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }
}
