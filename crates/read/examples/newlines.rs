//! The newlines of some files, by a sink: the reader gives blocks, and nothing else.
//!
//! ```sh
//! cargo run --release -p ringfold-read --example newlines -- FILE...
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringfold_read::{Block, BlockError, Config, Input, Result, Sink, Stats, run};

/// Blocks come on many threads at the same time.
#[derive(Default)]
struct Newlines(AtomicU64);

impl Sink for Newlines {
    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let newlines = block.bytes().iter().filter(|&&byte| byte == b'\n');
        self.0.fetch_add(newlines.count() as u64, Relaxed);
        Ok(())
    }
}

/// The number of newlines.
///
/// # Errors
/// The input can't be read.
pub fn count(input: &Input, config: &Config) -> Result<(u64, Stats)> {
    let newlines = Newlines::default();
    let stats = run(input, config, &newlines)?;
    Ok((newlines.0.into_inner(), stats))
}

fn main() -> Result<()> {
    let input = Input::open(std::env::args_os().skip(1))?;
    let (newlines, stats) = count(&input, &Config::default())?;
    println!("{newlines}");
    eprintln!(
        "{} bytes in {:.3} s by {}",
        stats.bytes, stats.elapsed_s, stats.engine
    );
    Ok(())
}
