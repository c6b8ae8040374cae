//! Compares programs over one file: whole processes, in turns, from a known state of the page cache.
//!
//! One module each: `cache` makes and proves states of the page cache, `process` runs a program and tells what it
//! cost, `memory` samples what a process has, `rounds` has all of them run in turns, `answers` compares what they print, `ceilings`, `limits` and `bound` tell
//! what limits a result, `statistics` and `results` make figures of the runs. `table`, `export` and `html` show them, with
//! the pictures of `charts`.
//! docs/measuring.md explains each figure.

pub mod answers;
pub mod bound;
pub mod cache;
pub mod ceilings;
pub mod charts;
pub mod compare;
pub mod counters;
pub mod export;
pub mod figures;
pub mod halving;
pub mod heat;
pub mod html;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod participant;
pub mod process;
pub mod reads;
pub mod results;
pub mod rounds;
pub mod statistics;
pub mod svg;
pub mod table;
