//! Which of the standard streams were closed when the program began (`<&-`, `>&-`). Rust's runtime
//! opens /dev/null in their place before `main`: the input would be empty, or the answer lost, without
//! an error.
//!
//! # Invariant of this module
//! [`look`] runs before the runtime is set up, while there is one thread: it makes system calls that
//! take numbers and keeps two flags, nothing else.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringfold_read::internals::calls;

use crate::{Error, Kind, Result};

/// Standard input and standard output.
static CLOSED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

// SAFETY: the section holds functions of this kind, which the C library calls before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        closed.store(!calls::is_open(fd), Relaxed);
    }
}

/// An error where standard input was closed.
pub(super) fn standard_input() -> Result<()> {
    open(0, "-: standard input is closed: name a FILE")
}

/// An error where standard output was closed.
pub(super) fn standard_output() -> Result<()> {
    open(1, "standard output is closed: the answer can't be written")
}

fn open(fd: usize, otherwise: &str) -> Result<()> {
    match CLOSED[fd].load(Relaxed) {
        true => Err(Error::new(Kind::Io, otherwise)),
        false => Ok(()),
    }
}
