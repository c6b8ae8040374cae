//! Tests of ringfold as its users meet it: the program as a child process, and the library where
//! only a program could look. See [`probe`] for tests that need something of the machine.

mod answers;
mod catalogue;
mod changing;
mod count;
mod disks;
mod edges;
mod faults;
mod fuse;
mod generate;
mod group;
mod hard;
mod injected;
mod knobs;
mod layers;
mod library;
mod limits;
mod liveness;
mod malformed;
mod memory;
mod old_kernels;
mod probe;
mod probe_command;
mod progress;
mod quoted;
mod reference;
mod soak;
mod sparse;
mod stats;
mod storage;
mod support;
mod sweep;
mod sys;
mod transform;
mod uring_raw;
mod usage;
