//! A job of one's own: how often each word stands in some files. Each worker counts for itself, and the counts are merged.
//!
//! ```sh
//! cargo run --release -p ringfold-read --example fold -- FILE...
//! ```

use std::collections::HashMap;

use ringfold_read::{Block, BlockError, Config, Fold, Input, Malformed, fold};

type Counts = HashMap<String, u64>;

/// The job: counts of words.
pub struct Words;

impl Fold for Words {
    type Partial = Counts;
    type Output = Vec<(String, u64)>;

    fn partial(&self) -> Counts {
        Counts::new()
    }

    fn block(&self, counts: &mut Counts, block: &Block<'_>) -> Result<(), BlockError> {
        // Whole lines: no word is cut. A line that isn't UTF-8 ends the run with an error that names its bytes.
        let text = str::from_utf8(block.bytes()).map_err(|error| Malformed {
            start: error.valid_up_to(),
            end: error.valid_up_to() + 1,
            cause: "this byte isn't UTF-8".into(),
        })?;
        for word in text.split_whitespace() {
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.into(), 1)),
            }
        }
        Ok(())
    }

    fn merge(&self, into: &mut Counts, from: Counts) {
        for (word, count) in from {
            *into.entry(word).or_default() += count;
        }
    }

    fn finish(&self, counts: Counts) -> Self::Output {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|(a, many), (b, few)| few.cmp(many).then_with(|| a.cmp(b)));
        counts
    }
}

fn main() -> Result<(), ringfold_read::Error> {
    let input = Input::open(std::env::args_os().skip(1))?;
    let (counts, stats) = fold(&input, &Config::default(), &Words)?;
    for (word, count) in counts.iter().take(10) {
        println!("{count} {word}");
    }
    eprintln!(
        "{} bytes in {:.3} s by {}",
        stats.bytes, stats.elapsed_s, stats.engine
    );
    Ok(())
}
