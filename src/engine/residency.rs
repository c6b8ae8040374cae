//! What of a file lies in the page cache.
//!
//! # Invariant (`unsafe` room)
//! One system call that libc has no wrapper for; it writes to one structure on our stack.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::source::{Input, Span};

const PAGE: u64 = 4096;
/// The number of cachestat(2), the same on all architectures, since Linux 6.5.
const CACHESTAT: libc::c_long = 451;
/// The grain in which resident and cold parts are told apart.
const GRAIN: u64 = 1 << 20;
/// What is asked about at once; only where it is mixed is the grain looked at.
const STRIDE: u64 = 64 << 20;

#[repr(C)]
#[derive(Default)]
struct Range {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Stat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many pages of `from..to` are in the page cache; `None` where the kernel can't tell.
pub(crate) fn resident_pages(file: &File, from: u64, to: u64) -> Option<u64> {
    let range = Range {
        off: from,
        len: to - from,
    };
    let mut stat = Stat::default();
    let flags: libc::c_uint = 0;
    // SAFETY: both structures are laid out as the kernel has them and outlive the call.
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &range, &mut stat, flags) };
    (done == 0).then_some(stat.cache)
}

/// The spans of an input, cut into those that are cached and those that aren't, each in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub resident: Vec<Span>,
    pub cold: Vec<Span>,
    /// Whether the kernel could tell.
    pub known: bool,
}

/// Asks the kernel which parts of the spans are cached. What it can't tell counts as cold.
pub(crate) fn split(input: &Input, spans: &[Span]) -> Split {
    let mut split = Split {
        known: true,
        ..Split::default()
    };
    for span in spans {
        let Some(file) = input.source(span).file() else {
            continue;
        };
        let mut at = span.from;
        while at < span.to {
            let end = ((at / STRIDE + 1) * STRIDE).min(span.to);
            let whole = resident_pages(file, at, end);
            split.known &= whole.is_some();
            match whole {
                Some(pages) if pages >= pages_of(at, end) => split.add(span, at, end, true),
                Some(1..) => {
                    let mut grain = at;
                    while grain < end {
                        let to = ((grain / GRAIN + 1) * GRAIN).min(end);
                        let pages = resident_pages(file, grain, to).unwrap_or(0);
                        split.add(span, grain, to, pages >= pages_of(grain, to));
                        grain = to;
                    }
                }
                _ => split.add(span, at, end, false),
            }
            at = end;
        }
    }
    split
}

fn pages_of(from: u64, to: u64) -> u64 {
    to.div_ceil(PAGE) - from / PAGE
}

impl Split {
    fn add(&mut self, span: &Span, from: u64, to: u64, resident: bool) {
        let list = if resident {
            &mut self.resident
        } else {
            &mut self.cold
        };
        match list.last_mut() {
            Some(last) if last.source == span.source && last.to == from => last.to = to,
            _ => list.push(Span {
                source: span.source,
                from,
                to,
            }),
        }
    }
}

/// How many bytes some spans cover.
pub(crate) fn bytes(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.to - span.from).sum()
}
