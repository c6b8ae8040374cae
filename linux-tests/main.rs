//! Tests of ringfold as its users meet it: the program as a child process, and the library where
//! only a program could look. See [`probe`] for tests that need something of the machine.

mod answers;
mod count;
mod edges;
mod faults;
mod fuse;
mod generate;
mod hard;
mod knobs;
mod library;
mod malformed;
mod probe;
mod probe_command;
mod reference;
mod stats;
mod support;
mod sweep;
mod sys;
mod uring_raw;
mod usage;
