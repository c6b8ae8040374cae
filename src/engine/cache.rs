//! What buffered reads do to the page cache: reads that leave nothing behind (RWF_DONTCACHE), advice
//! on a whole file, and reading ahead of the reader.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::FileAdvice;
use crate::error::{Error, Kind, Result};
use crate::source::{Input, Source};

/// RWF_DONTCACHE, since Linux 6.14.
pub(crate) const DONTCACHE: u32 = 0x80;
/// A device's read-ahead where it can't be told: the kernel's default.
const READ_AHEAD: u64 = 128 << 10;

/// Reads once at an offset, and leaves nothing in the page cache if so told.
pub(crate) fn read_at(
    file: &File,
    target: &mut [u8],
    offset: u64,
    dontcache: bool,
) -> rustix::io::Result<usize> {
    match dontcache {
        false => pread(file, target, offset),
        true => {
            let flags = ReadWriteFlags::from_bits_retain(DONTCACHE);
            preadv2(file, &mut [IoSliceMut::new(target)], offset, flags)
        }
    }
}

/// Refuses `--dontcache` where the file system does.
pub(crate) fn check_dontcache(source: &Source) -> Result<()> {
    let refused =
        |cause: &str| Error::new(Kind::Engine, cause).in_file(source.index(), source.name());
    let (Some(file), Some(_)) = (source.file(), source.len()) else {
        return Err(refused(
            "RWF_DONTCACHE (--dontcache) needs a file with a size, not a pipe or device",
        ));
    };
    // A read that may not wait brings nothing in; where those are refused, one that may tells why.
    let dontcache = ReadWriteFlags::from_bits_retain(DONTCACHE);
    let mut tried = Ok(0);
    for flags in [dontcache | ReadWriteFlags::NOWAIT, dontcache] {
        tried = preadv2(file, &mut [IoSliceMut::new(&mut [0])], 0, flags);
        if matches!(tried, Ok(_) | Err(Errno::AGAIN)) {
            return Ok(());
        }
    }
    match tried {
        Err(errno @ (Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS)) => {
            let cause = "the file system refuses RWF_DONTCACHE (--dontcache), or the kernel is \
                         older than 6.14: leave it out, or try --direct";
            Err(refused(cause).with_errno(&errno.into()))
        }
        // The read itself fails; the run will say where.
        _ => Ok(()),
    }
}

/// Tells the kernel how the files are going to be read. Returns whether there was any to tell of.
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
        let Some(file) = source.file() else { continue };
        fadvise(file, 0, None, word).map_err(|errno| {
            let cause = format!("the kernel takes no advice on it: leave out --fadvise {advice}");
            Error::new(Kind::Engine, cause)
                .with_errno(&errno.into())
                .in_file(source.index(), source.name())
        })?;
        any = true;
    }
    Ok(any)
}

/// How much the kernel reads ahead at one word: what is asked for beyond the device's read-ahead it
/// drops in silence.
fn read_ahead_of_device(file: &File) -> u64 {
    let Ok(stat) = rustix::fs::fstat(file) else {
        return READ_AHEAD;
    };
    let (major, minor) = (
        rustix::fs::major(stat.st_dev),
        rustix::fs::minor(stat.st_dev),
    );
    // A partition has that of its disk.
    let places = [
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        format!("/sys/dev/block/{major}:{minor}/../queue/read_ahead_kb"),
    ];
    let kib = places.iter().find_map(|place| {
        let text = std::fs::read_to_string(place).ok()?;
        text.trim().parse::<u64>().ok().filter(|&kib| kib > 0)
    });
    kib.map_or(READ_AHEAD, |kib| kib << 10)
}

/// Lets the kernel read ahead of whoever reads in order.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// How far.
    distance: u64,
    /// By source: how much can be asked for at once.
    words: Vec<u64>,
    asked: AtomicU64,
}

impl Ahead {
    pub(crate) fn new(input: &Input, distance: u64) -> Ahead {
        let word = |source: &Arc<Source>| source.file().map_or(READ_AHEAD, read_ahead_of_device);
        Ahead {
            distance,
            words: input.sources().iter().map(word).collect(),
            asked: AtomicU64::new(0),
        }
    }

    /// Before `range` is read: asks for as much at the distance, or, where nobody has asked before
    /// (`first`), for everything up to there.
    pub(crate) fn of(&self, source: &Source, range: Range<u64>, first: bool) {
        let (Some(file), Some(len)) = (source.file(), source.len()) else {
            return;
        };
        let at = |offset: u64| offset.saturating_add(self.distance).min(len);
        let mut from = match first {
            true => range.start,
            false => at(range.start),
        };
        let to = at(range.end);
        while from < to {
            let word = self.words[source.index() as usize].min(to - from);
            // What isn't read ahead is read when it is wanted.
            let _ = fadvise(
                file,
                from,
                std::num::NonZeroU64::new(word),
                Advice::WillNeed,
            );
            self.asked.fetch_add(word, Relaxed);
            from += word;
        }
    }

    /// How much was asked for.
    pub(crate) fn bytes(&self) -> u64 {
        self.asked.load(Relaxed)
    }
}
