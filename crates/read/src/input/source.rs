//! A file to read: its kind, its length, its descriptor, and what O_DIRECT wants aligned.

use std::cmp::Ordering;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::{Advice, OFlags, fadvise};

use crate::error::refusal::{Facility, Foreign, Refusal, Refuser};
use crate::error::{Error, Kind, Result};
#[cfg(feature = "decompress")]
use crate::input::codec::Decoder;
use crate::input::descriptors::{self, InTurn, Permit};
use crate::input::object::{Object, SharedObject};
use crate::input::peeked::Prefix;
use crate::sync::lock;

/// What a pipe may hold, as much as an ordinary user may ask for.
const PIPE: usize = 1 << 20;

/// Why a file can't be read past the page cache.
const O_DIRECT_REFUSED: &str = "the file system refuses to read past the page cache (O_DIRECT)";

/// What a source allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A size that is known, and bytes that can be read anywhere.
    Seekable(u64),
    /// Bytes come in order until they end: pipes, terminals, character devices, procfs.
    Stream,
    /// Bytes in memory, for tests and for pricing our own overhead.
    Memory(Arc<[u8]>),
    /// Bytes that lie elsewhere and can be read anywhere.
    Object(SharedObject),
}

/// What somebody did to a file while it was open.
pub(crate) enum Change {
    /// Its size now, which is smaller.
    Cut(u64),
    /// Its size now, which is larger.
    Grown(u64),
    /// Something was written to it, or cut off.
    Written,
}

/// The descriptor of a source.
#[derive(Debug)]
enum Descriptor {
    /// Open from the start to the end. Of files there are as many as the permits allow.
    Permanent {
        file: Arc<File>,
        _permit: Option<Permit>,
    },
    /// Opened when it is read, with the advice that was given on it.
    InTurn(InTurn, Mutex<Option<Advice>>),
    /// It lies in memory, or is an object.
    None,
}

/// One file of the input.
#[derive(Debug)]
pub struct Source {
    pub(crate) index: u32,
    pub(crate) name: Arc<str>,
    path: Option<PathBuf>,
    pub(crate) shape: Shape,
    descriptor: Descriptor,
    /// When a regular file was last written to, as it was opened; seconds and nanoseconds.
    written: Option<(i64, i64)>,
    /// The descriptor past the page cache, or that it is opened in turn.
    direct: OnceLock<Result<Option<Arc<File>>>>,
    /// What statx says that offsets, lengths and memory must be multiples of under O_DIRECT, once
    /// somebody wants to know.
    direct_align: OnceLock<Option<u32>>,
    /// The number of the device that it is or lies on.
    device: Option<u64>,
    /// Which file it is: the device that it lies on, and its number there.
    inode: Option<(u64, u64)>,
    /// What it is if its first bytes were looked at and are no text.
    foreign: OnceLock<Foreign>,
    /// What was taken out of a stream before the run.
    pub(crate) peeked: Prefix,
    /// What makes a stream of a compressed source.
    #[cfg(feature = "decompress")]
    decoder: Option<Decoder>,
    /// The compressed source.
    #[cfg(feature = "decompress")]
    origin: Option<Arc<Source>>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// It is missing, unreadable, a directory, or the limit on open files is reached.
    pub(crate) fn open(index: u32, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
            return Self::from_file(index, "-", None, file);
        }
        let file = descriptors::open(|| File::open(path));
        Self::from_file(index, &path.to_string_lossy(), Some(path.to_owned()), file)
    }

    /// Bytes in memory as a source; `name` stands for it in errors.
    pub(crate) fn memory(index: u32, name: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        Source {
            index,
            name: name.into(),
            path: None,
            shape: Shape::Memory(bytes.into()),
            descriptor: Descriptor::None,
            written: None,
            direct: OnceLock::new(),
            direct_align: OnceLock::new(),
            device: None,
            inode: None,
            foreign: OnceLock::new(),
            peeked: Prefix::default(),
            #[cfg(feature = "decompress")]
            decoder: None,
            #[cfg(feature = "decompress")]
            origin: None,
        }
    }

    /// An object as a source; `name` stands for it in errors.
    pub(crate) fn object(index: u32, name: &str, object: Arc<dyn Object>) -> Self {
        Source {
            written: object.written(),
            shape: Shape::Object(SharedObject(object)),
            ..Source::memory(index, name, [])
        }
    }

    /// What a decoder makes of a source, as a stream.
    #[cfg(feature = "decompress")]
    pub(crate) fn decoded(origin: &Arc<Source>, decoder: Decoder) -> Source {
        Source {
            shape: Shape::Stream,
            decoder: Some(decoder),
            origin: Some(Arc::clone(origin)),
            ..Source::memory(origin.index, &origin.name, [])
        }
    }

    /// The compressed source that this is the text of.
    #[doc(hidden)]
    pub fn origin(&self) -> Option<&Arc<Source>> {
        #[cfg(feature = "decompress")]
        return self.origin.as_ref();
        #[cfg(not(feature = "decompress"))]
        None
    }

    /// What makes a stream of a compressed source.
    #[cfg(feature = "decompress")]
    pub(crate) fn decoder(&self) -> Option<&Decoder> {
        self.decoder.as_ref()
    }

    /// Gives back the memory of its decoder, if a file can be read by it anew.
    pub(crate) fn rest(&self) {
        #[cfg(feature = "decompress")]
        if let Some(decoder) = &self.decoder {
            decoder.rest();
        }
    }

    /// Whether its bytes can be read a second time: it is no pipe, and no text of one.
    #[doc(hidden)]
    pub fn can_repeat(&self) -> bool {
        self.origin()
            .map_or(self.len(), |origin| origin.len())
            .is_some()
    }

    /// Whether its bytes are those of the text in a compressed file.
    pub fn is_compressed(&self) -> bool {
        #[cfg(feature = "decompress")]
        return self.decoder.is_some();
        #[cfg(not(feature = "decompress"))]
        false
    }

    /// Reads on in a stream, as its own pace allows.
    ///
    /// # Errors
    /// The kernel's, or compressed data is damaged.
    #[doc(hidden)]
    pub fn read_stream(&self, to: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "decompress")]
        if let Some(decoder) = &self.decoder {
            return decoder.read(to);
        }
        Ok(rustix::io::read(self, to)?)
    }

    fn from_file(
        index: u32,
        name: &str,
        path: Option<PathBuf>,
        file: io::Result<File>,
    ) -> Result<Self> {
        let named = Source::memory(index, name, []);
        let refused = |error: io::Error| named.error(&error);
        let file = file.map_err(|error| match no_descriptor_left(&error) {
            Some(cause) => named.error(Error::new(Kind::Io, cause).with_errno(&error)),
            None => refused(error),
        })?;
        let meta = file.metadata().map_err(refused)?;
        let kind = meta.file_type();
        if kind.is_dir() {
            return Err(refused(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        let shape = if kind.is_block_device() {
            // Standard input shares its position with others: put it back.
            let before = position(&file).unwrap_or(0);
            let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
            let _ = rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(before));
            Shape::Seekable(size.map_err(|errno| refused(errno.into()))?)
        } else if kind.is_file() && !size_is_a_guess(&file, &meta) {
            Shape::Seekable(meta.size())
        } else {
            if kind.is_fifo() {
                // A full pipe wakes its reader once for every 64 KiB; where the limit on pipes is
                // used up it stays at that.
                let _ = rustix::pipe::fcntl_setpipe_size(&file, PIPE);
            }
            Shape::Stream
        };
        let shape = match shape {
            // Standard input may stand anywhere in a file that a shell has opened: read on from there.
            Shape::Seekable(_) if path.is_none() && position(&file) != Some(0) => Shape::Stream,
            shape => shape,
        };
        // What can't be opened again by its name stays open, and so do the first files.
        let is_file = path.is_some() && kind.is_file() && shape != Shape::Stream;
        let permit = is_file.then(Permit::new).flatten();
        let descriptor = match is_file && permit.is_none() {
            true => Descriptor::InTurn(InTurn::new(), Mutex::default()),
            false => Descriptor::Permanent {
                file: Arc::new(file),
                _permit: permit,
            },
        };
        Ok(Source {
            path,
            shape,
            device: Some(match kind.is_block_device() {
                true => meta.rdev(),
                false => meta.dev(),
            }),
            inode: Some((meta.dev(), meta.ino())),
            descriptor,
            written: meta.is_file().then(|| (meta.mtime(), meta.mtime_nsec())),
            ..named
        })
    }

    /// Its number among the input's sources.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its name as errors show it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// An error that concerns it.
    pub(crate) fn error(&self, error: impl Into<Error>) -> Error {
        error.into().in_file(self.index, &self.name)
    }

    /// The size when it was opened; `None` for a stream.
    pub fn len(&self) -> Option<u64> {
        match &self.shape {
            Shape::Seekable(len) => Some(*len),
            Shape::Memory(bytes) => Some(bytes.len() as u64),
            Shape::Object(object) => Some(object.0.bytes()),
            Shape::Stream => None,
        }
    }

    /// Whether it is known to hold nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// What to say when the bytes stop at `seen`, before the length that the source had.
    pub(crate) fn ended(&self, seen: u64) -> Error {
        let now = self
            .length_now()
            .map_or(seen, |now| now.min(self.len().unwrap_or(now)));
        let had = self.len().unwrap_or(0);
        // Under O_DIRECT the last bytes may not have been shown.
        let end = if now < had { now } else { seen };
        let cause = format!("the file ends at byte {end}, but had {had} bytes when it was opened");
        self.error(Error::new(Kind::Io, cause))
    }

    /// The length of the file by now, where it is a regular one.
    pub(crate) fn length_now(&self) -> Option<u64> {
        Some(self.look_again()?.len())
    }

    /// What became of the file since it was opened, where it is a regular one. A write before that has
    /// left its time already; one that follows it within the clock's grain, milliseconds, may leave the
    /// same and isn't seen. (The inode's own time would change with links and names too.)
    pub(crate) fn change(&self) -> Option<Change> {
        let meta = self.look_again()?;
        match meta.len().cmp(&self.len()?) {
            Ordering::Less => Some(Change::Cut(meta.len())),
            Ordering::Greater => Some(Change::Grown(meta.len())),
            Ordering::Equal => {
                let written = Some((meta.mtime(), meta.mtime_nsec())) != self.written;
                written.then_some(Change::Written)
            }
        }
    }

    fn look_again(&self) -> Option<Metadata> {
        self.len()?;
        let meta = match &self.descriptor {
            Descriptor::Permanent { file, .. } => file.metadata().ok()?,
            Descriptor::InTurn(..) => {
                // A file that has taken its place says nothing of it.
                let meta = std::fs::metadata(self.path.as_ref()?).ok()?;
                (self.inode == Some((meta.dev(), meta.ino()))).then_some(meta)?
            }
            Descriptor::None => return None,
        };
        meta.is_file().then_some(meta)
    }

    /// Where data goes on at or after `at`; the file's length if only a hole follows. A file system
    /// that doesn't tell has data everywhere.
    pub(crate) fn next_data(&self, at: u64) -> u64 {
        let (Ok(file), Some(len)) = (self.file(), self.len()) else {
            return at;
        };
        match rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data.min(len),
            Err(rustix::io::Errno::NXIO) => len.max(at),
            Err(_) => at,
        }
    }

    /// The data of `range` without the holes of a sparse file, as far as the file system tells of them.
    pub(crate) fn data(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let allocated = |meta: Metadata| meta.blocks().saturating_mul(512);
        let is_sparse =
            (self.look_again()).is_some_and(|meta| allocated(meta) < range.end - range.start);
        let (Ok(file), true) = (self.file(), is_sparse) else {
            return vec![range];
        };
        let (mut data, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let from = self.next_data(at);
            if from >= range.end {
                break;
            }
            let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(from));
            at = hole.unwrap_or(range.end).clamp(from + 1, range.end);
            data.push(from..at);
        }
        // Who reads on from where the file stands expects it at its beginning.
        let _ = rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0));
        data
    }

    /// The bytes of a source in memory.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.shape {
            Shape::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Reads some bytes of what is no stream from a place on, through the page cache.
    ///
    /// # Errors
    /// They can't be read.
    pub(crate) fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        match &self.shape {
            Shape::Memory(bytes) => {
                let from = bytes.get(at as usize..).unwrap_or_default();
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
                Ok(n)
            }
            Shape::Object(object) => object.0.read_at(to, at),
            Shape::Seekable(_) => self.file()?.read_at(to, at),
            Shape::Stream => Err(io::Error::from_raw_os_error(libc::ESPIPE)),
        }
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// They can't be read, or there are fewer.
    #[doc(hidden)]
    pub fn read_exact_at(&self, mut to: &mut [u8], mut at: u64) -> io::Result<()> {
        while !to.is_empty() {
            match self.read_at(to, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    to = &mut to[n..];
                    at += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether it has a descriptor: it doesn't lie in memory, and is no object.
    pub fn is_file(&self) -> bool {
        !matches!(self.descriptor, Descriptor::None)
    }

    /// Whether it is opened when it is read, and so without a position of its own.
    pub(crate) fn opens_in_turn(&self) -> bool {
        matches!(self.descriptor, Descriptor::InTurn(..))
    }

    /// The file, which stays open as long as somebody has it.
    ///
    /// # Errors
    /// It can't be opened again, or the source lies in memory.
    pub fn file(&self) -> io::Result<Arc<File>> {
        match &self.descriptor {
            Descriptor::Permanent { file, .. } => Ok(Arc::clone(file)),
            Descriptor::InTurn(turn, advice) => turn.get(false, || {
                let file = self.open_again(OFlags::empty())?;
                if let Some(advice) = *lock(advice) {
                    // It was taken before.
                    let _ = fadvise(&file, 0, None, advice);
                }
                Ok(file)
            }),
            Descriptor::None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Advises the kernel on how all of the file will be read.
    ///
    /// # Errors
    /// The kernel takes no advice on it, or it can't be opened.
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        if let Descriptor::InTurn(_, of_all) = &self.descriptor {
            *lock(of_all) = Some(advice);
        }
        Ok(fadvise(self.file()?, 0, None, advice)?)
    }

    /// What it is if its first bytes were looked at and are no text.
    pub(crate) fn foreign(&self) -> Option<Foreign> {
        self.foreign.get().copied()
    }

    /// Its first bytes were looked at and are no text.
    #[cfg(feature = "decompress")]
    pub(crate) fn set_foreign(&self, what: Foreign) {
        // It may have been looked at before.
        let _ = self.foreign.set(what);
    }

    /// Which file it is: the device that it lies on, and its number there.
    #[doc(hidden)]
    pub fn inode(&self) -> Option<(u64, u64)> {
        self.inode
    }

    /// When a regular file was last written to, as it was opened; seconds and nanoseconds.
    #[doc(hidden)]
    pub fn written(&self) -> Option<(i64, i64)> {
        self.written
    }

    /// The number of the device that it is or lies on; a file system without one has a number too.
    pub(crate) fn device(&self) -> Option<u64> {
        self.device
    }

    /// What offsets, lengths and memory must be multiples of under O_DIRECT.
    #[doc(hidden)]
    pub fn direct_align(&self) -> u64 {
        u64::from(self.reported_align().unwrap_or(4096))
    }

    /// Whether that is known, not assumed.
    #[doc(hidden)]
    pub fn direct_align_is_known(&self) -> bool {
        self.reported_align().is_some()
    }

    fn reported_align(&self) -> Option<u32> {
        let ask = || direct_align(&*self.file().ok()?);
        *self.direct_align.get_or_init(ask)
    }

    /// The same file opened a second time with O_DIRECT.
    ///
    /// # Errors
    /// The file system refuses it, or the path names another file by now.
    #[doc(hidden)]
    pub fn direct(&self) -> Result<Arc<File>> {
        let asked = self.direct.get_or_init(|| {
            let file = Arc::new(self.open_direct()?);
            Ok((!self.opens_in_turn()).then_some(file))
        });
        asked.as_ref().map_err(Clone::clone)?;
        self.granted_direct().map_err(|error| self.error(&error))
    }

    /// The same where it was granted before.
    pub(crate) fn granted_direct(&self) -> io::Result<Arc<File>> {
        match (self.direct.get(), &self.descriptor) {
            (Some(Ok(Some(file))), _) => Ok(Arc::clone(file)),
            (Some(Ok(None)), Descriptor::InTurn(turn, _)) => {
                turn.get(true, || self.open_again(OFlags::DIRECT))
            }
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Whether blocks of this size can be read past the page cache.
    pub(crate) fn takes_direct(&self, block: u64) -> bool {
        block.is_multiple_of(self.direct_align()) && self.direct().is_ok()
    }

    fn open_direct(&self) -> Result<File> {
        let refused = |by, why: &str| self.error(no_direct(by, why));
        let opened = match &self.descriptor {
            Descriptor::None => return Err(refused(Refuser::Memory, "O_DIRECT needs a file")),
            Descriptor::InTurn(..) => descriptors::open(|| self.open_again(OFlags::DIRECT)),
            Descriptor::Permanent { file, .. } => {
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(libc::O_DIRECT);
                let by_fd = || options.open(format!("/proc/self/fd/{}", file.as_raw_fd()));
                // By its name takes a third of the time.
                let by_name = descriptors::open(|| self.open_again(OFlags::DIRECT));
                by_name.or_else(|error| match by_fd() {
                    // No /proc.
                    Err(none) if none.kind() == io::ErrorKind::NotFound => Err(error),
                    opened => opened,
                })
            }
        };
        opened.map_err(|error| match no_descriptor_left(&error) {
            Some(cause) => {
                let cause =
                    format!("to read past the page cache (O_DIRECT) takes one more: {cause}");
                refused(Refuser::DescriptorLimit, &cause).with_errno(&error)
            }
            None => refused(Refuser::FileSystem, O_DIRECT_REFUSED).with_errno(&error),
        })
    }

    /// By its name, as long as that names the same file.
    fn open_again(&self, flags: OFlags) -> io::Result<File> {
        let path = self.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // What has taken the file's place meanwhile, a pipe even, isn't waited for.
        let without_wait = flags | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(without_wait.bits() as i32)
            .open(path)?;
        let meta = file.metadata()?;
        if self.inode != Some((meta.dev(), meta.ino())) {
            let why = "another file has taken its place since the run began";
            return Err(io::Error::other(why));
        }
        rustix::fs::fcntl_setfl(&file, flags)?;
        Ok(file)
    }
}

/// What it means when a read fails past the page cache as if its file system had refused O_DIRECT,
/// although it let the file be opened so: some look at it only then.
pub(crate) fn refused_late(error: &io::Error) -> Option<Error> {
    let errno = error.raw_os_error();
    matches!(errno, Some(libc::EINVAL | libc::EOPNOTSUPP))
        .then(|| no_direct(Refuser::FileSystem, O_DIRECT_REFUSED).with_errno(error))
}

/// Why a file can't be read past the page cache.
fn no_direct(by: Refuser, why: &str) -> Error {
    Refusal::unavailable(Facility::DirectReads, by, why).into()
}

impl AsFd for Source {
    /// # Panics
    /// On what is no stream: only their descriptors stay open in any case.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Permanent { file, .. } => file.as_fd(),
            _ => unreachable!("a stream stays open"),
        }
    }
}

/// What to say when it is the limit on descriptors that forbids to open a file.
fn no_descriptor_left(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error() {
        Some(libc::EMFILE) => Some("too many open files: raise the limit with `ulimit -n`"),
        Some(libc::ENFILE) => Some("too many open files in the whole system: see fs.file-max"),
        _ => None,
    }
}

fn position(file: &File) -> Option<u64> {
    rustix::fs::seek(file, rustix::fs::SeekFrom::Current(0)).ok()
}

/// Whether the file lies in a file system that makes up sizes (procfs, sysfs and their like), or
/// has bytes although its size is 0.
fn size_is_a_guess(file: &File, meta: &Metadata) -> bool {
    const MADE_UP: [i64; 6] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x27_e0eb,
        0x6367_7270,
    ];
    // First, because a look into some of these files takes away what it saw, or waits.
    // What lies on a block device, whose number has a major part, is none of them.
    let listed = || rustix::fs::fstatfs(file).is_ok_and(|fs| MADE_UP.contains(&fs.f_type));
    let made_up = rustix::fs::major(meta.dev()) == 0 && listed();
    made_up || (meta.size() == 0 && !matches!(rustix::io::pread(file, &mut [0], 0), Ok(0)))
}

/// What statx says of O_DIRECT's alignment; `None` where it says nothing.
fn direct_align(file: &File) -> Option<u32> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let align = stat.stx_dio_offset_align.max(stat.stx_dio_mem_align);
    (align.is_power_of_two() && align <= 65536).then_some(align)
}
