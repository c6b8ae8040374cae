//! A job of one's own over any engine: the longest line of some files, and where it stands.
//!
//! ```sh
//! cargo run --release --example longest_line -- FILE...
//! ```

use ringfold::{Block, BlockError, Config, Fold, Input, fold};

/// The length of a line and its place: the file's number and the byte it begins at.
type Longest = Option<(usize, (u32, u64))>;

struct LongestLine;

impl LongestLine {
    /// The longer one; of two alike the earlier, whatever the order they are met in.
    fn longer(a: Longest, b: Longest) -> Longest {
        match (a, b) {
            (Some((long, at)), Some((other, place))) => {
                let first = long > other || (long == other && at < place);
                if first { a } else { b }
            }
            (a, b) => a.or(b),
        }
    }
}

impl Fold for LongestLine {
    type Partial = Longest;
    type Output = Longest;

    fn partial(&self) -> Longest {
        None
    }

    fn block(&self, longest: &mut Longest, block: &Block<'_>) -> Result<(), BlockError> {
        let mut offset = block.offset();
        for line in block.bytes().split_inclusive(|&byte| byte == b'\n') {
            let length = line.strip_suffix(b"\n").unwrap_or(line).len();
            *longest = Self::longer(*longest, Some((length, (block.file(), offset))));
            offset += line.len() as u64;
        }
        Ok(())
    }

    fn merge(&self, into: &mut Longest, from: Longest) {
        *into = Self::longer(*into, from);
    }

    fn finish(&self, longest: Longest) -> Longest {
        longest
    }
}

fn main() -> Result<(), ringfold::Error> {
    let input = Input::open(std::env::args_os().skip(1))?;
    let (longest, stats) = fold(&input, &Config::default(), &LongestLine)?;
    match longest {
        Some((length, (file, offset))) => {
            let name = input.sources()[file as usize].name();
            println!("{name}: byte {offset}: {length} bytes");
        }
        None => println!("no line at all"),
    }
    eprintln!(
        "{} bytes in {:.3} s by {}",
        stats.bytes, stats.elapsed_s, stats.engine
    );
    Ok(())
}
