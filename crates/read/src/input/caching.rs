//! How reads use the page cache: one value for each source, carried with each read.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use crate::input::source::Source;
use crate::linux::reads::DONTCACHE;

/// How a read uses the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Through it, and the bytes stay there.
    Cached,
    /// Through it, but what the read brings in is dropped at once (RWF_DONTCACHE).
    Uncached,
    /// Past it (O_DIRECT): offset, length and memory are aligned.
    Direct,
}

impl Caching {
    /// The flags of each read. Some file systems refuse RWF_DONTCACHE on direct reads.
    pub(crate) fn flags(self) -> ReadWriteFlags {
        match self {
            Caching::Cached | Caching::Direct => ReadWriteFlags::empty(),
            Caching::Uncached => DONTCACHE,
        }
    }

    /// For reads of a source that can't be aligned: the same, but never past the page cache.
    pub(crate) fn unaligned(self) -> Caching {
        match self {
            Caching::Direct => Caching::Cached,
            through => through,
        }
    }
}

impl Source {
    /// The file to read from in this way.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn file_for(&self, caching: Caching) -> io::Result<Arc<File>> {
        match caching {
            Caching::Cached | Caching::Uncached => self.file(),
            Caching::Direct => self.granted_direct(),
        }
    }

    /// What offsets and lengths of such reads must be multiples of.
    pub(crate) fn align_for(&self, caching: Caching) -> u64 {
        match caching {
            Caching::Cached | Caching::Uncached => 1,
            Caching::Direct => self.direct_align(),
        }
    }
}
