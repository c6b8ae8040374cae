//! A transforming job over any engine: some files in upper case, in their order, on all processors.
//!
//! ```sh
//! cargo run --release --example upper -- FILE... > OUTPUT
//! ```

use std::io;
use std::process::ExitCode;

use ringfold::{Block, BlockError, Config, Input, Kind, Transform, transform};

struct Upper;

impl Transform for Upper {
    fn block(&self, block: &Block<'_>, out: &mut Vec<u8>) -> Result<(), BlockError> {
        out.extend(block.bytes().iter().map(u8::to_ascii_uppercase));
        Ok(())
    }
}

fn run() -> ringfold::Result<()> {
    let input = Input::open(std::env::args_os().skip(1))?;
    transform(&input, &Config::default(), &Upper, &mut io::stdout())?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads the output has seen enough.
        Err(error) if error.kind() == Kind::ClosedPipe => ExitCode::from(141),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
