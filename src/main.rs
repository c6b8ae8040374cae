//! The `ringfold` program: see `ringfold::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ringfold::cli::main()
}
