//! The command line as a whole: which subcommands there are.

use clap::{Parser, Subcommand};

use crate::cli::{
    aggregate, bench, ceiling, count, describe, discard, generate, inspect, man, merge, probe,
    quote, tune,
};

/// Group-by over text at the speed of the drive.
#[derive(Parser)]
#[command(
    version,
    arg_required_else_help = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = "\
To begin with: ringfold FILE, which prints what is in a file and what to ask of it, or aggregates lines of `key;value`.
All flags of a command: ringfold COMMAND --help, or ringfold man COMMAND | man -l -"
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    Aggregate(Box<aggregate::Command>),
    Describe(Box<describe::Command>),
    Merge(merge::Command),
    Inspect(inspect::Command),
    Count(count::Command),
    Quote(quote::Command),
    Generate(generate::Command),
    Probe(probe::Command),
    Bench(Box<bench::Command>),
    Tune(tune::Command),
    #[command(hide = true)]
    Discard(Box<discard::Command>),
    #[command(hide = true)]
    Ceiling(ceiling::Command),
    Man(man::Command),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}
