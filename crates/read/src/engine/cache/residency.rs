//! Which parts of a file are in the page cache.

use std::fs::File;
use std::os::fd::AsRawFd;

use rayon::prelude::*;
use rustix::io::{Errno, ReadWriteFlags};

use crate::engine::plan::sizing::MemoryLimit;
use crate::input::spans::{Input, Span};
use crate::linux::calls::{self, AddressRange};
use crate::linux::pages::PAGE;
use crate::linux::proc;
use crate::linux::reads::read_at;

/// Bytes of the smallest part that is classified as resident or cold.
const GRAIN: u64 = 1 << 20;
/// Bytes that are queried at once. Only a stride that is partly resident is queried by the grain.
const STRIDE: u64 = 64 << 20;
/// How many pages of a stride are sampled where cachestat is refused.
const SAMPLES: u64 = 8;
/// Bytes of a small input: see [`is_small`].
const SMALL: u64 = 8 << 20;

/// Whether a byte is in the page cache, by a read that may not wait; `None` where that fails.
pub fn is_cached(file: &File, at: u64) -> Option<bool> {
    match read_at(file, &mut [0], at, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// Whether samples of `from..to` are in the page cache, for files on which cachestat is refused. `None` where
/// sampling fails too.
fn sampled(file: &File, from: u64, to: u64) -> Option<bool> {
    let step = ((to - from) / SAMPLES).max(1);
    for at in (from..to).step_by(step as usize) {
        if !is_cached(file, at)? {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether all of `from..to` is in the page cache, by mincore on a mapping: on an overlay it reports the pages
/// of the layer below. `None` where it fails.
fn mapped_is_resident(file: &File, from: u64, to: u64) -> Option<bool> {
    let begin = from / PAGE as u64 * PAGE as u64;
    let mapped = AddressRange::of_file(file, begin, (to - begin) as usize).ok()?;
    Some(mapped.resident().ok()?.iter().all(|&page| page))
}

/// Whether the file lies on an overlay, which has no cached pages of its own: they belong to the layer below.
fn is_overlay(file: &File) -> bool {
    const OVERLAYFS: rustix::fs::FsWord = 0x794c_7630;
    rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == OVERLAYFS)
}

/// The file, opened again without read-ahead, so that sampling a page reads no others.
pub fn opened_to_sample(file: &File) -> Option<File> {
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    rustix::fs::fadvise(&again, 0, None, rustix::fs::Advice::Random).ok()?;
    Some(again)
}

/// The spans of an input, cut into those that are cached and those that aren't, each in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Those that are cached.
    pub resident: Vec<Span>,
    /// The others.
    pub cold: Vec<Span>,
    /// Whether the kernel reported it for all parts.
    pub known: bool,
}

/// Asks the kernel which parts of the spans are cached. It examines every cached page, so the threads of the
/// current pool share the work. Unknown parts count as cold.
pub fn split(input: &Input, spans: &[Span]) -> Split {
    let strides: Vec<Span> = spans
        .iter()
        .flat_map(|span| {
            let starts = (span.from / STRIDE + 1..).map(|stride| stride * STRIDE);
            let ends = starts.take_while(|&at| at < span.to).chain([span.to]);
            ends.scan(span.from, |from, to| {
                let stride = Span {
                    from: *from,
                    to,
                    ..*span
                };
                *from = to;
                Some(stride)
            })
        })
        .filter(|stride| stride.from < stride.to)
        .collect();
    let parts = strides.into_par_iter();
    let parts: Vec<Split> = parts.map(|stride| split_stride(input, stride)).collect();
    let mut split = Split {
        known: parts.iter().all(|part| part.known),
        ..Split::default()
    };
    for part in parts {
        part.resident.iter().for_each(|span| split.add(span, true));
        part.cold.iter().for_each(|span| split.add(span, false));
    }
    split
}

/// Splits one stride of a span. It stays whole where all or none of it is cached.
fn split_stride(input: &Input, stride: Span) -> Split {
    let mut split = Split {
        known: true,
        ..Split::default()
    };
    let Ok(file) = input.source(&stride).file() else {
        return split;
    };
    let (file, Span { from, to, .. }) = (&*file, stride);
    let by_samples = || opened_to_sample(file).and_then(|again| sampled(&again, from, to));
    match calls::cachestat(file, from, to) {
        Err(_) => {
            let resident = by_samples();
            split.known = resident.is_some();
            split.add(&stride, resident.unwrap_or(false));
        }
        Ok(pages) if pages >= pages_of(from, to) => split.add(&stride, true),
        Ok(0) if is_overlay(file) => {
            split.add(&stride, mapped_is_resident(file, from, to) == Some(true));
        }
        Ok(0) => split.add(&stride, false),
        Ok(_) => {
            let mut grain = from;
            while grain < to {
                let end = ((grain / GRAIN + 1) * GRAIN).min(to);
                let pages = calls::cachestat(file, grain, end).unwrap_or(0);
                let part = Span {
                    from: grain,
                    to: end,
                    ..stride
                };
                split.add(&part, pages >= pages_of(grain, end));
                grain = end;
            }
        }
    }
    split
}

/// The number of pages that have some of these bytes.
pub fn pages_of(from: u64, to: u64) -> u64 {
    to.div_ceil(PAGE as u64) - from / PAGE as u64
}

impl Split {
    /// What `auto` makes of it, in words.
    pub fn words(&self) -> String {
        let (resident, cold) = (bytes(&self.resident), bytes(&self.cold));
        if cold == 0 {
            return "all of it is cached: the workers fetch it".into();
        }
        if !self.known {
            return "what is cached can't be told".into();
        }
        if resident == 0 {
            return "nothing is cached: uring".into();
        }
        let share = 100.0 * resident as f64 / (resident + cold) as f64;
        format!("{share:.0}% is cached: the workers fetch it; the rest: uring")
    }

    /// Adds the next part, to the one before it if they touch.
    fn add(&mut self, part: &Span, resident: bool) {
        let list = if resident {
            &mut self.resident
        } else {
            &mut self.cold
        };
        match list.last_mut() {
            Some(last) if last.source == part.source && last.to == part.from => last.to = part.to,
            _ => list.push(*part),
        }
    }
}

/// Whether there is so little that it is simply read: a ring isn't worth its set-up.
pub fn is_small(spans: &[Span]) -> bool {
    bytes(spans) <= SMALL
}

/// Why workers fetch what isn't cached.
pub const CACHING_WORDS: &str = "it fits into memory: the workers fetch it, and it stays cached";

/// How much memory programs can have without swapping, cached files included.
fn available_memory() -> Option<u64> {
    let text = proc::text("/proc/meminfo").ok()?;
    proc::kib_field(&text, "MemAvailable")
}

/// Whether an input of this size fits into the memory that is available, and leaves most of it.
pub fn fits(memory: &MemoryLimit, bytes: u64) -> bool {
    bytes <= memory.page_cache(available_memory().unwrap_or(0))
}

/// Why `auto` simply reads what is small.
pub const SMALL_WORDS: &str = "small input: the workers fetch it";

/// How many bytes some spans cover.
pub fn bytes(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.to - span.from).sum()
}
