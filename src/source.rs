//! What is read: an open file, its kind, length and alignment; and the spans of a run.

use std::cmp::Ordering;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::engine::retry;
use crate::error::{Error, Kind, Result};

/// What a pipe may hold, as much as an ordinary user may ask for.
const PIPE: usize = 1 << 20;
/// What a file is loaded by: little enough that a read of it is a matter of moments.
const LOAD: usize = 8 << 20;

/// Why a file can't be read past the page cache.
const O_DIRECT_REFUSED: &str = "the file system refuses to read past the page cache (O_DIRECT)";

/// What a source allows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// A size that is known, and bytes that can be read anywhere.
    Seekable(u64),
    /// Bytes come in order until they end: pipes, terminals, character devices, procfs.
    Stream,
    /// Bytes in memory, for tests and for pricing our own overhead.
    Memory(Arc<[u8]>),
}

/// What somebody did to a file while it was open.
pub(crate) enum Change {
    /// It has so many bytes now, fewer than before.
    Cut(u64),
    /// It has so many bytes now, more than before.
    Grown(u64),
    /// Something was written to it, or cut off.
    Written,
}

/// One file of the input, open.
#[derive(Debug)]
pub struct Source {
    index: u32,
    name: Arc<str>,
    path: Option<PathBuf>,
    shape: Shape,
    file: Option<File>,
    /// When a regular file was last written to, as it was opened; seconds and nanoseconds.
    written: Option<(i64, i64)>,
    direct: OnceLock<Result<File>>,
    /// What statx says that offsets, lengths and memory must be multiples of under O_DIRECT, once
    /// somebody wants to know.
    direct_align: OnceLock<Option<u32>>,
    /// The number of the device that it is or lies on.
    device: Option<u64>,
    /// Which file it is: the device that it lies on, and its number there.
    inode: Option<(u64, u64)>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// It is missing, unreadable, a directory, or the limit on open files is reached.
    pub fn open(index: u32, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
            return Self::from_file(index, "-".into(), None, file);
        }
        let name: Arc<str> = path.to_string_lossy().into();
        Self::from_file(index, name, Some(path.to_owned()), File::open(path))
    }

    /// Bytes in memory as a source; `name` stands for it in errors.
    pub fn memory(index: u32, name: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        Source {
            index,
            name: name.into(),
            path: None,
            shape: Shape::Memory(bytes.into()),
            file: None,
            written: None,
            direct: OnceLock::new(),
            direct_align: OnceLock::new(),
            device: None,
            inode: None,
        }
    }

    fn from_file(
        index: u32,
        name: Arc<str>,
        path: Option<PathBuf>,
        file: io::Result<File>,
    ) -> Result<Self> {
        let refused = |error: io::Error| Error::io(&error).in_file(index, &name);
        let file = file.map_err(|error| match no_descriptor_left(&error) {
            Some(cause) => Error::new(Kind::Io, cause)
                .with_errno(&error)
                .in_file(index, &name),
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
        Ok(Source {
            index,
            name,
            path,
            shape,
            direct_align: OnceLock::new(),
            device: Some(match kind.is_block_device() {
                true => meta.rdev(),
                false => meta.dev(),
            }),
            inode: Some((meta.dev(), meta.ino())),
            file: Some(file),
            written: meta.is_file().then(|| (meta.mtime(), meta.mtime_nsec())),
            direct: OnceLock::new(),
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

    /// The size when it was opened; `None` for a stream.
    pub fn len(&self) -> Option<u64> {
        match &self.shape {
            Shape::Seekable(len) => Some(*len),
            Shape::Memory(bytes) => Some(bytes.len() as u64),
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
        Error::new(Kind::Io, cause).in_file(self.index, &self.name)
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
        let meta = self.file.as_ref()?.metadata().ok()?;
        meta.is_file().then_some(meta)
    }

    /// Where data goes on at or after `at`; the file's length if only a hole follows. A file system
    /// that doesn't tell has data everywhere.
    pub(crate) fn next_data(&self, at: u64) -> u64 {
        let Some((file, len)) = self.file.as_ref().zip(self.len()) else {
            return at;
        };
        match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data.min(len),
            Err(rustix::io::Errno::NXIO) => len.max(at),
            Err(_) => at,
        }
    }

    /// Pushes the data of a span of this source.
    fn push_data(&self, span: Span, to: &mut Vec<Span>) {
        let sparse = self.file.as_ref().is_some_and(|file| {
            let allocated = |meta: Metadata| meta.blocks().saturating_mul(512);
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && allocated(meta) < span.to - span.from)
        });
        let (Some(file), true) = (&self.file, sparse && self.len().is_some()) else {
            return to.push(span);
        };
        let mut at = span.from;
        while at < span.to {
            let from = self.next_data(at);
            if from >= span.to {
                break;
            }
            let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(from));
            at = hole.unwrap_or(span.to).clamp(from + 1, span.to);
            to.push(Span {
                from,
                to: at,
                ..span
            });
        }
        // Who reads on from where the file stands expects it at its beginning.
        let _ = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0));
    }

    /// The bytes of a source in memory.
    pub(crate) fn bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.shape {
            Shape::Memory(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The file, unless the source lies in memory.
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// The raw descriptor to read from, with O_DIRECT or without.
    pub(crate) fn raw_fd(&self, direct: bool) -> Option<RawFd> {
        match direct {
            true => self.direct().ok().map(AsRawFd::as_raw_fd),
            false => self.file.as_ref().map(AsRawFd::as_raw_fd),
        }
    }

    /// The number of the device that it is or lies on; a file system without one has a number too.
    pub(crate) fn device(&self) -> Option<u64> {
        self.device
    }

    /// What offsets, lengths and memory must be multiples of under O_DIRECT.
    pub(crate) fn direct_align(&self) -> u64 {
        u64::from(self.told_align().unwrap_or(4096))
    }

    /// Whether that is known, not assumed.
    pub(crate) fn direct_align_is_known(&self) -> bool {
        self.told_align().is_some()
    }

    fn told_align(&self) -> Option<u32> {
        let ask = || direct_align(self.file.as_ref()?);
        *self.direct_align.get_or_init(ask)
    }

    /// The same file opened a second time with O_DIRECT.
    ///
    /// # Errors
    /// The file system refuses it, or the path names another file by now.
    pub(crate) fn direct(&self) -> Result<&File> {
        self.direct
            .get_or_init(|| self.open_direct())
            .as_ref()
            .map_err(Clone::clone)
    }

    fn open_direct(&self) -> Result<File> {
        let refused = |cause: &str| Error::new(Kind::Engine, cause).in_file(self.index, &self.name);
        let Some(file) = &self.file else {
            return Err(refused("O_DIRECT needs a file"));
        };
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECT);
        let by_fd = || options.open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let opened = self.open_direct_by_name().or_else(|error| match by_fd() {
            // No /proc.
            Err(none) if none.kind() == io::ErrorKind::NotFound => Err(error),
            opened => opened,
        });
        opened.map_err(|error| match no_descriptor_left(&error) {
            Some(cause) => {
                let cause =
                    format!("to read past the page cache (O_DIRECT) takes one more: {cause}");
                refused(&cause).with_errno(&error)
            }
            None => refused(O_DIRECT_REFUSED).with_errno(&error),
        })
    }

    /// By its name, as long as that names the same file: it takes a third of the time of the way
    /// through /proc.
    fn open_direct_by_name(&self) -> io::Result<File> {
        let path = self.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // What has taken the file's place meanwhile, a pipe even, isn't waited for.
        let flags = libc::O_DIRECT | libc::O_NONBLOCK;
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let meta = direct.metadata()?;
        if self.inode != Some((meta.dev(), meta.ino())) {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        rustix::fs::fcntl_setfl(&direct, rustix::fs::OFlags::DIRECT)?;
        Ok(direct)
    }
}

/// What it means when a read fails past the page cache as if its file system had refused O_DIRECT,
/// although it let the file be opened so: some look at it only then.
pub(crate) fn refused_late(error: &io::Error) -> Option<Error> {
    let errno = error.raw_os_error();
    matches!(errno, Some(libc::EINVAL | libc::EOPNOTSUPP))
        .then(|| Error::new(Kind::Engine, O_DIRECT_REFUSED).with_errno(error))
}

impl AsFd for Source {
    /// # Panics
    /// On a source in memory, which has no descriptor.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file
            .as_ref()
            .expect("a source in memory has no descriptor")
            .as_fd()
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

/// A part of a source: the records whose first byte lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The source's number.
    pub source: u32,
    /// The first byte.
    pub from: u64,
    /// One past the last byte; `u64::MAX` for a stream, which ends where it ends.
    pub to: u64,
}

/// What a run reads: sources, and the spans of them in order.
#[derive(Debug, Clone, Default)]
pub struct Input {
    sources: Vec<Arc<Source>>,
    spans: Vec<Span>,
}

impl Input {
    /// Whole files, in order; `-` is standard input.
    ///
    /// # Errors
    /// See [`Source::open`].
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let mut input = Input::default();
        for path in paths {
            input.push(Source::open(input.sources.len() as u32, path)?);
        }
        Ok(input)
    }

    /// Texts in memory, in order, named by their numbers.
    pub fn memory<B: Into<Arc<[u8]>>>(texts: impl IntoIterator<Item = B>) -> Self {
        let mut input = Input::default();
        for text in texts {
            let index = input.sources.len() as u32;
            input.push(Source::memory(index, &format!("memory:{index}"), text));
        }
        input
    }

    fn push(&mut self, source: Source) {
        self.spans.push(Span {
            source: source.index,
            from: 0,
            to: source.len().unwrap_or(u64::MAX),
        });
        self.sources.push(Arc::new(source));
    }

    /// The same sources, but only these spans of them.
    ///
    /// # Errors
    /// A span that isn't within its source, or a part of a stream; spans that overlap or aren't in
    /// the order of the input, which is what "the lowest failure" goes by.
    pub fn with_spans(mut self, spans: Vec<Span>) -> Result<Self> {
        let ordered =
            |pair: &[Span]| (pair[0].source, pair[0].to) <= (pair[1].source, pair[1].from);
        if !spans.windows(2).all(ordered) {
            return Err(Error::new(
                Kind::Usage,
                "spans overlap or aren't in the input's order",
            ));
        }
        for span in &spans {
            let len = self
                .sources
                .get(span.source as usize)
                .map(|source| source.len());
            let within = match len {
                Some(Some(len)) => span.from <= span.to && span.to <= len,
                Some(None) => (span.from, span.to) == (0, u64::MAX),
                None => false,
            };
            if !within {
                return Err(Error::new(
                    Kind::Usage,
                    format!("{span:?} isn't within its source"),
                ));
            }
        }
        self.spans = spans;
        Ok(self)
    }

    /// The same without the holes of sparse files, as far as the file system tells of them: for jobs
    /// that know what zeros come to. A span never ends within what was one, so this is only for
    /// [`Delimited::EVERY_BYTE`](crate::Delimited::EVERY_BYTE).
    pub fn without_holes(mut self) -> Self {
        let spans = std::mem::take(&mut self.spans);
        for span in spans {
            self.sources[span.source as usize].push_data(span, &mut self.spans);
        }
        self
    }

    /// How many bytes of each source no span covers; 0 of a stream.
    pub fn left_out(&self) -> Vec<u64> {
        let lens = self.sources.iter().map(|source| source.len().unwrap_or(0));
        let mut left_out: Vec<u64> = lens.collect();
        for span in self.spans.iter().filter(|span| span.to != u64::MAX) {
            left_out[span.source as usize] -= span.to - span.from;
        }
        left_out
    }

    /// The sources.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// The spans, in the order in which they are read.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The source of a span.
    pub fn source(&self, span: &Span) -> &Arc<Source> {
        &self.sources[span.source as usize]
    }

    /// How many bytes the spans cover; `None` when a stream is among them.
    pub fn len(&self) -> Option<u64> {
        self.spans
            .iter()
            .map(|span| (span.to != u64::MAX).then(|| span.to - span.from))
            .sum::<Option<u64>>()
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// Reads whole files into memory, for the memory engine. `reads` is told of each read before it
/// begins.
pub(crate) fn load(input: &Input, reads: &dyn Fn(&Source, Range<u64>)) -> Result<Input> {
    let mut loaded = Input::default();
    for source in &input.sources {
        let bytes = match (&source.shape, &source.file) {
            (Shape::Memory(bytes), _) => Arc::clone(bytes),
            (shape, Some(file)) => {
                // What was added since it was opened isn't asked for.
                let most = match shape {
                    Shape::Seekable(len) => *len,
                    _ => u64::MAX,
                };
                let tell = |range| reads(source, range);
                let bytes = read_all(file, most, &tell).map_err(|(error, seen)| {
                    let error = Error::io(&error).in_file(source.index, &source.name);
                    match shape {
                        Shape::Seekable(len) => error.at_bytes(seen..*len),
                        _ => error,
                    }
                })?;
                let seen = bytes.len() as u64;
                if source.len().is_some_and(|len| seen < len) {
                    return Err(source
                        .ended(seen)
                        .at_bytes(seen..source.len().unwrap_or(seen)));
                }
                bytes.into()
            }
            (_, None) => unreachable!("a source has a file or lies in memory"),
        };
        let memory = Source::memory(source.index, &source.name, bytes);
        loaded.sources.push(Arc::new(memory));
    }
    for span in &input.spans {
        let len = loaded.source(span).len().unwrap_or(0);
        loaded.spans.push(Span {
            to: span.to.min(len),
            ..*span
        });
    }
    Ok(loaded)
}

/// A stream to its end, or the first `most` bytes of a file, wherever its position stands. A failure
/// comes with the number of bytes before it.
fn read_all(
    mut file: &File,
    most: u64,
    reads: &dyn Fn(Range<u64>),
) -> Result<Vec<u8>, (io::Error, u64)> {
    let mut bytes = Vec::new();
    if most == u64::MAX {
        io::Read::read_to_end(&mut file, &mut bytes).map_err(|error| (error, 0))?;
        return Ok(bytes);
    }
    let len = usize::try_from(most).map_err(|_| (io::ErrorKind::OutOfMemory.into(), 0))?;
    if bytes.try_reserve_exact(len).is_err() {
        return Err((io::ErrorKind::OutOfMemory.into(), 0));
    }
    bytes.resize(len, 0);
    let (mut filled, mut tries) = (0, 0);
    while filled < bytes.len() {
        let end = bytes.len().min(filled + LOAD);
        reads(filled as u64..end as u64);
        match rustix::io::pread(file, &mut bytes[filled..end], filled as u64) {
            Ok(0) => break,
            Ok(n) => (filled, tries) = (filled + n, 0),
            Err(errno) => {
                let error = errno.into();
                if !retry::may_pass(&error) || tries >= retry::MOST {
                    return Err((error, filled as u64));
                }
                retry::pause(tries);
                tries += 1;
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Makes room for so many files at once: raises the soft limit on descriptors to the hard one, and has
/// their table grow now. Once there are several threads every growth waits until all processors have
/// seen it, 15 ms each: to be called before there are.
pub fn make_room_for_files(files: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it a run over few files works as well.
    let _ = setrlimit(Resource::Nofile, limit);
    // Each is opened twice, to be read past the page cache too; and 64 for everything else.
    let most = limit.current.unwrap_or(u64::MAX).saturating_sub(1);
    let wanted = most.min(files.saturating_mul(2).saturating_add(64) as u64);
    // A descriptor with the highest number; it is closed at once, and the table stays.
    if let (Ok(highest), Ok(null)) = (wanted.try_into(), File::open("/dev/null")) {
        let _ = rustix::io::fcntl_dupfd_cloexec(null, highest);
    }
}
