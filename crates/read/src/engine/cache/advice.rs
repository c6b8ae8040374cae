//! How the page cache is used: reads that leave nothing there (RWF_DONTCACHE), advice on whole files, and
//! read-ahead.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags};

use crate::engine::config::{Config, Engine};
use crate::engine::knobs::FileAdvice;
use crate::engine::plan::sizing::MemoryLimit;
use crate::error::Result;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::linux::block_device;
use crate::linux::reads::{DONTCACHE, read_at};

/// The read-ahead of a device that doesn't report it: the kernel's default.
const READ_AHEAD: u64 = 128 << 10;

/// Refuses reads that leave nothing in the page cache where the file system does.
pub(crate) fn check_dontcache(source: &Source) -> Result<()> {
    let setting = Setting::Dontcache;
    if !source.is_file() || source.len().is_none() {
        return Err(source.error(Refusal::NotAFile { setting }));
    }
    let file = source.file().map_err(|error| source.error(&error))?;
    // A read that may not wait reads nothing from the device. Where such reads are refused, one that may wait
    // gives the reason.
    let mut tried = Ok(0);
    for flags in [DONTCACHE | ReadWriteFlags::NOWAIT, DONTCACHE] {
        tried = read_at(&file, &mut [0], 0, flags);
        if matches!(tried, Ok(_) | Err(Errno::AGAIN)) {
            return Ok(());
        }
    }
    match tried {
        Err(errno @ (Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS)) => {
            let why = "the file system refuses it, or the kernel is older than 6.14";
            let refusal = Refusal::not_granted(setting, Refuser::FileSystem, why);
            Err(source.error(refusal).with_errno(&errno.into()))
        }
        // The read itself fails: the run will report where.
        _ => Ok(()),
    }
}

/// Advises the kernel on how the files will be read. Returns whether there was any file.
pub(crate) fn advise(input: &Input, advice: FileAdvice) -> Result<bool> {
    let word = match advice {
        FileAdvice::Normal => Advice::Normal,
        FileAdvice::Sequential => Advice::Sequential,
        FileAdvice::Random => Advice::Random,
        FileAdvice::NoReuse => Advice::NoReuse,
        FileAdvice::WillNeed => Advice::WillNeed,
        FileAdvice::DontNeed => Advice::DontNeed,
    };
    let mut any = false;
    for source in input.sources() {
        if !source.is_file() {
            continue;
        }
        source.advise(word).map_err(|error| {
            let why = "the kernel takes no advice on this file";
            let refusal = Refusal::not_granted(Setting::Fadvise.of(advice), Refuser::Kernel, why);
            source.error(refusal).with_errno(&error)
        })?;
        any = true;
    }
    Ok(any)
}

/// Where the memory limit is too small for the kernel's read-ahead: turns it off, and returns how far the run
/// reads ahead itself. Settings that were named take precedence.
pub(crate) fn limit_read_ahead(
    input: &Input,
    config: &Config,
    memory: &MemoryLimit,
    threads: usize,
) -> Option<u64> {
    let knobs = &config.knobs;
    if !memory.is_limited() || knobs.fadvise.is_some() || knobs.readahead.is_some() {
        return None;
    }
    // How many places are read at the same time. Reads of one ring are adjacent.
    let places = match config.engine {
        Engine::Uring | Engine::Read | Engine::Memory => 1,
        Engine::UringRaw => knobs.rings.unwrap_or(1),
        Engine::Auto | Engine::Pread | Engine::Mmap => threads,
    };
    let distances = read_aheads(input);
    let mut distance = None;
    for (source, usual) in input.sources().iter().zip(distances) {
        let Some(len) = source.len().filter(|_| source.is_file()) else {
            continue;
        };
        let instead = memory.own_read_ahead(usual, len, places);
        if instead.is_some() && source.advise(Advice::Random).is_ok() {
            distance = instead;
        }
    }
    distance
}

/// By source: how far the kernel reads ahead, where it reports it. Each device is looked up once.
fn read_aheads(input: &Input) -> Vec<Option<u64>> {
    let mut known = HashMap::new();
    let sources = input.sources().iter();
    let distance = |source: &Arc<Source>| {
        let device = source.device()?;
        *known
            .entry(device)
            .or_insert_with(|| block_device::read_ahead(device))
    };
    sources.map(distance).collect()
}

/// Requests read-ahead for readers that read in order.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    /// How far ahead, in bytes.
    distance: u64,
    /// By source: the most bytes of one request.
    requests_max: Vec<u64>,
    /// Files that are requested before their turn, with their ends in the input; none unless that is asked for.
    files: Vec<(Arc<Source>, u64)>,
    /// Up to where in the input such files were requested.
    reached: AtomicU64,
    requested: AtomicU64,
}

impl ReadAhead {
    pub(crate) fn new(input: &Input, distance: u64) -> ReadAhead {
        let distances = read_aheads(input).into_iter();
        ReadAhead {
            distance,
            requests_max: distances
                .map(|distance| distance.unwrap_or(READ_AHEAD))
                .collect(),
            files: Vec::new(),
            reached: AtomicU64::new(0),
            requested: AtomicU64::new(0),
        }
    }

    /// The same, that also requests the next files when one begins.
    pub(crate) fn over_files(mut self, input: &Input) -> ReadAhead {
        let mut end = 0;
        let sources = input.sources().iter();
        self.files = sources
            .map(|source| {
                end += source.len().unwrap_or(0);
                (Arc::clone(source), end)
            })
            .collect();
        self
    }

    /// To be called before `range` is read: requests the same number of bytes at the distance, or for the
    /// `first` read everything up to there.
    pub(crate) fn of(&self, source: &Source, range: Range<u64>, first: bool) {
        let (Ok(file), Some(len)) = (source.file(), source.len()) else {
            return;
        };
        let at = |offset: u64| offset.saturating_add(self.distance).min(len);
        let from = match first {
            true => range.start,
            false => at(range.start),
        };
        self.request(source, &file, from..at(range.end));
        let index = source.index() as usize;
        if let Some((_, end)) = self.files.get(index).filter(|_| first) {
            self.request_files(index, *end);
        }
    }

    /// Requests the files that begin within the distance after the end of one.
    fn request_files(&self, index: usize, end: u64) {
        let reach = end.saturating_add(self.distance);
        let reached = self.reached.fetch_max(reach, Relaxed);
        let known = self.files.partition_point(|(_, end)| *end < reached);
        for next in index.max(known) + 1..self.files.len() {
            if self.files[next - 1].1 >= reach {
                break;
            }
            let (source, _) = &self.files[next];
            if let (Ok(file), Some(len)) = (source.file(), source.len()) {
                self.request(source, &file, 0..len.min(self.distance));
            }
        }
    }

    fn request(&self, source: &Source, file: &File, range: Range<u64>) {
        let (mut from, to) = (range.start, range.end);
        while from < to {
            let bytes = self.requests_max[source.index() as usize].min(to - from);
            // A failure does no harm: the bytes are read when they are needed.
            let len = std::num::NonZeroU64::new(bytes);
            let _ = fadvise(file, from, len, Advice::WillNeed);
            self.requested.fetch_add(bytes, Relaxed);
            from += bytes;
        }
    }

    /// Bytes that were requested.
    pub(crate) fn bytes(&self) -> u64 {
        self.requested.load(Relaxed)
    }
}
