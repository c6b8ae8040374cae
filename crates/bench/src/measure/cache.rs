//! States of the page cache: brought about before a run, and proven by looking.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use ringfold_read::internals::calls::AddressRange;
use ringfold_read::internals::pages::{HUGE_PAGE, PAGE};
use rustix::fs::{Access, Advice, AtFlags, CWD};
use serde::{Deserialize, Serialize};

/// How much of the file lies in the page cache when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All of the file is in the page cache.
    Cached,
    /// Nothing of it is.
    Cold,
    /// The first half is.
    Half,
}

impl State {
    /// Each of them.
    pub const ALL: [State; 3] = [State::Cached, State::Cold, State::Half];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Cached => "cached",
            State::Cold => "cold",
            State::Half => "half",
        }
    }

    /// What it means, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            State::Cached => "the whole file is in the page cache",
            State::Cold => "nothing of the file is in the page cache",
            State::Half => "the first half of the file is in the page cache",
        }
    }
}

/// A state as it was found right before a run.
#[derive(Debug, Clone, Copy)]
pub struct Residency {
    /// Resident pages among all.
    pub resident_share: f64,
    /// Whether that is the state that was wanted.
    pub proven: bool,
}

/// Above this share a part counts as cached, and below one less it as evicted.
const CACHED: f64 = 0.99;
/// How often eviction is tried: pages under write-back stay the first time.
const TRIES: u32 = 5;
/// How long pages take that the last reader had asked for and didn't wait for: they can't be
/// dropped on their way and don't count as resident before they are there.
const PAUSE: Duration = Duration::from_millis(50);
/// What is mapped or read at once.
const WINDOW: u64 = 64 << 20;

/// A file whose place in the page cache is ours to choose.
pub struct CachedFile {
    file: File,
    len: u64,
    is_visible: bool,
}

impl CachedFile {
    /// Opens a file or a block device.
    ///
    /// # Errors
    /// It can't be opened, or has no size.
    pub fn open(path: &Path) -> io::Result<CachedFile> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let cause = "not a regular file or block device: it can't be read again and again";
            return Err(io::Error::other(cause));
        }
        let len = file.seek(SeekFrom::End(0))?;
        if len == 0 {
            return Err(io::Error::other("empty: there is nothing to measure"));
        }
        let user = rustix::process::geteuid();
        let writes = || rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
        let is_visible = user.is_root() || user.as_raw() == metadata.uid() || writes();
        Ok(CachedFile {
            file,
            len,
            is_visible,
        })
    }

    /// Whether the kernel tells this user what is cached of it: only those who own a file or may write to it. For others
    /// all pages seem to be cached.
    pub fn is_visible(&self) -> bool {
        self.is_visible
    }

    /// Its size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an empty one isn't opened")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Begins a case: everything out, and in again by one sequential pass where it is wanted, so
    /// that how the pages lie doesn't depend on what was done to the file before.
    ///
    /// # Errors
    /// The kernel can't read the file, or tell what is cached.
    pub fn begin(&self, state: State) -> io::Result<Residency> {
        self.evict(0)?;
        self.prepare(state)
    }

    /// Where the first half ends. The largest folios begin at multiples of a huge page, so no folio lies in both
    /// halves; in a small file the cut is at a page.
    fn half(&self) -> u64 {
        let unit = match self.len < 4 * HUGE_PAGE as u64 {
            true => PAGE as u64,
            false => HUGE_PAGE as u64,
        };
        self.len / 2 / unit * unit
    }

    /// Brings the file into a state, by as little as is needed, and looks.
    ///
    /// # Errors
    /// As [`CachedFile::begin`].
    pub fn prepare(&self, state: State) -> io::Result<Residency> {
        let cut = match state {
            State::Cached => self.len,
            State::Cold => 0,
            State::Half => self.half(),
        };
        if self.share(0..cut)?.is_some_and(|share| share < CACHED) {
            self.read(0..cut)?;
        }
        self.evict(cut)?;
        let (kept, evicted) = (self.share(0..cut)?, self.share(cut..self.len)?);
        Ok(Residency {
            resident_share: self.share(0..self.len)?.unwrap_or(0.0),
            proven: kept.is_none_or(|share| share >= CACHED)
                && evicted.is_none_or(|share| share < 1.0 - CACHED),
        })
    }

    /// Drops what lies after `from`. Dirty pages can't be dropped, so they are written first.
    fn evict(&self, from: u64) -> io::Result<()> {
        for _ in 0..TRIES {
            if from >= self.len {
                break;
            }
            // Where this fails, the share that is left tells.
            let _ = rustix::fs::fsync(&self.file);
            rustix::fs::fadvise(&self.file, from, None::<NonZeroU64>, Advice::DontNeed)?;
            std::thread::sleep(PAUSE);
            if self.share(from..self.len)? == Some(0.0) {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        let mut at = range.start;
        while at < range.end {
            match self.file.read_at(&mut buffer, at)? {
                0 => break,
                n => at += n as u64,
            }
        }
        Ok(())
    }

    /// Resident pages among all of a range that begins at a page; `None` for an empty one.
    fn share(&self, range: Range<u64>) -> io::Result<Option<f64>> {
        let (mut resident, mut all) = (0, 0);
        let mut at = range.start;
        while at < range.end {
            let end = (at + WINDOW).min(range.end);
            let pages = AddressRange::of_file(&self.file, at, (end - at) as usize)?.resident()?;
            resident += pages.iter().filter(|&&page| page).count();
            all += pages.len();
            at = end;
        }
        Ok((all > 0).then(|| resident as f64 / all as f64))
    }
}
