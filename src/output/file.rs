//! Where bytes go: the standard output, or the file of `-o`.
//!
//! A regular file appears whole or not at all. Its bytes go into a file without a name
//! (`O_TMPFILE`) in the target's directory, which [`Output::finish`] links to the target's name;
//! until then the old file stands untouched, and whatever ends the process takes the nameless file
//! with it. Replacing an old file takes two calls, a link under a temporary name and a rename over
//! the target; a kill exactly between them leaves the temporary name. Where the filesystem has no
//! nameless files the temporary name is there from the start, and is removed on drop. The file and its
//! directory are synced before [`Output::finish`] returns, so a power failure leaves the old file or the
//! new one, whole.
//!
//! The kernel resolves the path, so that its protections of shared directories apply
//! (`fs.protected_symlinks`, `_regular`, `_fifos`). In a directory that others may write to, a file that
//! belongs to somebody else is replaced by one of ours: its owner and its permissions aren't taken over.
//!
//! What is no regular file (`/dev/null`, a FIFO, `/dev/stdout`) is written to directly, unless it is to
//! be held back until [`Output::finish`].

use ringfold_read::internals::{describe, errno_name};
use rustix::fs::{self as sys, AtFlags, CWD, FsWord, Mode, OFlags};
use rustix::io::Errno;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many bytes are gathered before they are written.
const BUFFER_BYTES: usize = 64 * 1024;
/// How many symbolic links are followed, as in the kernel.
const LINKS_MAX: usize = 40;
/// How many temporary names are tried.
const NAMES_MAX: usize = 10_000;
/// Filesystems that report a failed write only when the file is closed or synced: `FUSE_SUPER_MAGIC`,
/// `SMB2_SUPER_MAGIC` and `CIFS_SUPER_MAGIC` besides NFS.
const LATE_ERRORS: [FsWord; 4] = [sys::NFS_SUPER_MAGIC, 0x6573_5546, 0xfe53_4d42, 0xff53_4d42];

/// An open output.
///
/// Writes are gathered; errors are [`OutputError`]s within [`io::Error`]. Only [`Output::finish`]
/// makes a file appear: dropping an unfinished output, after a failure, discards what was gathered
/// and leaves the target as it was.
#[derive(Debug)]
pub struct Output {
    name: PathBuf,
    file: File,
    /// What turns the file into the target; `None` where bytes go directly.
    pending: Option<Pending>,
    held: Option<Held>,
    buffer: Vec<u8>,
    /// The first write error: the output lacks bytes.
    failed: Option<Errno>,
}

impl Output {
    /// Opens `path`; `-` is the standard output.
    ///
    /// # Errors
    /// When the target can't be written, or its directory can't take a new file.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::stdout();
        }
        let (file, pending) = open_target(path, Nameless::Try)
            .map_err(|refused| failure(path, refused.action, refused.errno))?;
        Ok(Self::new(path.to_owned(), file, pending))
    }

    /// The standard output.
    ///
    /// # Errors
    /// When its descriptor can't be duplicated.
    pub fn stdout() -> io::Result<Self> {
        // Not through `std::io::Stdout`, which flushes at every newline.
        let name = PathBuf::from("standard output");
        match io::stdout().as_fd().try_clone_to_owned() {
            Ok(stdout) => Ok(Self::new(name, stdout.into(), None)),
            Err(error) => Err(failure(&name, "open", errno_of(&error))),
        }
    }

    fn new(name: PathBuf, file: File, pending: Option<Pending>) -> Self {
        Self {
            name,
            file,
            pending,
            held: None,
            buffer: Vec::new(),
            failed: None,
        }
    }

    /// Has everything go to a nameless file in `directory` first, and from there to where it belongs by
    /// [`Output::finish`]: for what may turn out to be wrong while it is written. A regular file's bytes
    /// are held back anyway.
    ///
    /// # Errors
    /// The file can't be made.
    pub fn hold_back(&mut self, directory: &Path) -> io::Result<()> {
        if self.pending.is_none() {
            let file = tempfile::tempfile_in(directory)
                .map_err(|error| failure(directory, "create a file in it", errno_of(&error)))?;
            self.held = Some(Held {
                file,
                directory: directory.to_owned(),
            });
        }
        Ok(())
    }

    /// Has [`Output::finish`] fail with `EEXIST` where something else has got the name meanwhile; false where
    /// something has it already.
    pub fn reserve(&mut self) -> bool {
        match &mut self.pending {
            Some(pending) if pending.place != Place::Taken => {
                pending.place = Place::Reserved;
                true
            }
            _ => false,
        }
    }

    /// Whether what is written goes to a file or a device, and not to a pipe or a terminal, where somebody may be
    /// reading it.
    pub fn is_stored(&self) -> bool {
        let is_pipe = || {
            self.file
                .metadata()
                .is_ok_and(|meta| meta.file_type().is_fifo())
        };
        self.pending.is_some() || !(self.file.is_terminal() || is_pipe())
    }

    /// Writes what was gathered and puts the file in its place.
    ///
    /// # Errors
    /// When that fails, or when a write had failed before: a file that lacks bytes never appears.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(errno) = self.failed {
            return Err(failure(&self.name, "write", errno));
        }
        self.flush()?;
        if let Some(held) = self.held.take() {
            self.let_go(held)?;
        }
        if self.pending.is_some() || reports_late(&self.file) {
            // Also asks for the errors that closing would report to nobody.
            synced(sys::fsync(&self.file)).map_err(|errno| failure(&self.name, "write", errno))?;
        }
        if let Some(pending) = self.pending.take() {
            pending
                .commit(&self.file)
                .map_err(|errno| failure(&self.name, "create", errno))?;
        }
        Ok(())
    }

    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut file, name) = match &self.held {
            Some(held) => (&held.file, &held.directory),
            None => (&self.file, &self.name),
        };
        file.write_all(bytes).map_err(|error| {
            let errno = errno_of(&error);
            self.failed.get_or_insert(errno);
            failure(name, "write", errno)
        })
    }

    /// Writes what was held back.
    fn let_go(&mut self, mut held: Held) -> io::Result<()> {
        let unread = |error| failure(&held.directory, "read back", errno_of(&error));
        held.file.rewind().map_err(unread)?;
        let mut bytes = vec![0; BUFFER_BYTES];
        loop {
            match held.file.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(read) => self.write_through(&bytes[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unread(error)),
            }
        }
    }
}

/// What is not to be seen yet.
#[derive(Debug)]
struct Held {
    file: File,
    directory: PathBuf,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            self.write_through(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Emptied even on failure, so that no byte is ever written twice.
        let mut gathered = std::mem::take(&mut self.buffer);
        let outcome = self.write_through(&gathered);
        gathered.clear();
        self.buffer = gathered;
        outcome
    }
}

/// What went wrong with an output: `out.csv: cannot write: No space left on device [ENOSPC]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputError {
    path: PathBuf,
    action: &'static str,
    errno: Errno,
}

impl OutputError {
    /// The output's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error's number.
    pub fn errno(&self) -> i32 {
        self.errno.raw_os_error()
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            action,
            errno,
        } = self;
        let why = match *errno {
            Errno::MFILE => "too many open files: raise the limit with `ulimit -n` [EMFILE]".into(),
            errno => described(errno),
        };
        write!(out, "{}: cannot {action}: {why}", path.display())
    }
}

impl Error for OutputError {}

/// Whether an error says that nobody reads the output any more: no failure, but a reason to end
/// quietly (with exit code 141, as the signal would).
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<OutputError>())
        .is_some_and(|error| error.errno == Errno::PIPE)
}

fn failure(path: &Path, action: &'static str, errno: Errno) -> io::Error {
    let kind = io::Error::from(errno).kind();
    io::Error::new(
        kind,
        OutputError {
            path: path.to_owned(),
            action,
            errno,
        },
    )
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The system's words for an error, and its name in brackets: `Permission denied [EACCES]`.
fn described(errno: Errno) -> String {
    let words = describe(&errno.into());
    match errno_name(errno.raw_os_error()) {
        Some(name) => format!("{words} [{name}]"),
        None => format!("{words} [errno {}]", errno.raw_os_error()),
    }
}

/// Whether to try a file without a name first; tests also force the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nameless {
    Try,
    #[cfg(test)]
    Skip,
}

/// The outcome of a sync; a device, a pipe or a filesystem without one has nothing to sync.
fn synced(outcome: Result<(), Errno>) -> Result<(), Errno> {
    match outcome {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::ROFS) => Ok(()),
        outcome => outcome,
    }
}

/// Why an output can't be opened.
#[derive(Debug)]
struct Refused {
    action: &'static str,
    errno: Errno,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self {
            action: "open for writing",
            errno,
        }
    }
}

/// Opens what the bytes of `path` go into, and says how it becomes `path`.
fn open_target(path: &Path, nameless: Nameless) -> Result<(File, Option<Pending>), Refused> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(Errno::ISDIR.into());
    }
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.file_name().is_some() => {
            if path.is_symlink() {
                let action = "create the file that this link names";
                let errno = Errno::NOENT;
                return Err(Refused { action, errno });
            }
            return open_pending(path, None, nameless);
        }
        Err(error) => return Err(errno_of(&error).into()),
    };
    if !found.is_file() || leads_through_proc(path) {
        return Ok((open_direct(path)?, None));
    }
    // With O_CREAT the kernel also protects files of others in shared directories.
    let old = File::from(sys::openat(
        CWD,
        path,
        OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o666),
    )?);
    let found = old.metadata().map_err(|error| errno_of(&error))?;
    let name = fs::read_link(proc_name(&old)).map_err(|error| errno_of(&error))?;
    if !found.is_file() {
        // It has become something else since it was looked at.
        return Err(Errno::AGAIN.into());
    }
    open_pending(&name, Some(found), nameless)
}

/// Whether a link on the way is one of `/proc`'s, which lead to an open file rather than to a name, as
/// `/dev/stdout` and `/dev/fd/3` do.
fn leads_through_proc(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = path.read_link() else {
            return false;
        };
        if is_in_proc(&path) {
            return true;
        }
        // An absolute link replaces the whole path.
        path = directory_of(&path).join(link);
    }
    false
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether a link is one of `/proc`'s, which lead to an open file rather than to a name.
fn is_in_proc(link: &Path) -> bool {
    sys::statfs(directory_of(link)).is_ok_and(|found| found.f_type == sys::PROC_SUPER_MAGIC)
}

/// Opens what is no regular file. The process's own outputs are shared rather than opened anew:
/// a socket couldn't be, and a regular file would start over at its first byte.
fn open_direct(path: &Path) -> Result<File, Errno> {
    if let Ok(wanted) = path.metadata() {
        let own = [
            io::stdout().as_fd().try_clone_to_owned(),
            io::stderr().as_fd().try_clone_to_owned(),
        ];
        for file in own.into_iter().flatten().map(File::from) {
            let same = |own: Metadata| (own.dev(), own.ino()) == (wanted.dev(), wanted.ino());
            if !wanted.is_dir() && file.metadata().is_ok_and(same) {
                return Ok(file);
            }
        }
    }
    // With O_CREAT the kernel also protects pipes of others in shared directories.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOCTTY | OFlags::CLOEXEC;
    match sys::openat(CWD, path, flags, Mode::from_raw_mode(0o666)) {
        // `/proc` has nothing that could be created.
        Err(Errno::ACCESS | Errno::NOENT) if leads_through_proc(path) => {
            sys::openat(CWD, path, flags - OFlags::CREATE, Mode::empty())
        }
        opened => opened,
    }
    .map(File::from)
}

/// Opens a new file that will be `path`, with the old file's permissions and, where we may, owner.
fn open_pending(
    path: &Path,
    old: Option<Metadata>,
    nameless: Nameless,
) -> Result<(File, Option<Pending>), Refused> {
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = sys::openat(CWD, directory_of(path), flags, Mode::empty())?;
    if let Some(old) = &old {
        let now = sys::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (now.st_dev, now.st_ino) != (old.dev(), old.ino()) {
            // It was moved or removed since it was opened.
            return Err(Errno::NOENT.into());
        }
    }
    // From here on the directory is at fault, not the file.
    let action = match old {
        Some(_) => "create a file beside it",
        None => "create",
    };
    let beside = |errno| Refused { action, errno };
    let shared = sys::fstat(&directory)?.st_mode & 0o022 != 0;
    let mine = rustix::process::geteuid().as_raw();
    let place = match old {
        Some(_) => Place::Taken,
        None => Place::Free,
    };
    let old = old.filter(|old| !shared || old.uid() == mine);
    let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
    let mut pending = Pending {
        directory,
        name: name.to_owned(),
        place,
        temporary: None,
    };
    let file = match open_nameless(&pending.directory, mode, nameless).map_err(beside)? {
        Some(file) => file,
        None => pending
            .with_temporary(|directory, temporary| {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                sys::openat(directory, temporary, flags, mode)
            })
            .map_err(beside)?,
    };
    let new = File::from(file);
    if let Some(old) = old {
        let ours = new.metadata().map_err(|error| errno_of(&error))?;
        if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) {
            // Only root may give files away; for others the new file is theirs.
            let _ = fchown(&new, Some(old.uid()), Some(old.gid()));
        }
        // Without the bits that have programs run as their owner.
        sys::fchmod(&new, Mode::from_raw_mode(old.mode() & 0o777))?;
    }
    Ok((new, Some(pending)))
}

/// Opens a file without a name; `None` where there are none, or where it couldn't get one later.
fn open_nameless(
    directory: &OwnedFd,
    mode: Mode,
    nameless: Nameless,
) -> Result<Option<OwnedFd>, Errno> {
    if nameless != Nameless::Try {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match sys::openat(directory, ".", flags, mode) {
        Ok(file) => Ok(sys::stat(proc_name(&file)).is_ok().then_some(file)),
        // What filesystems and kernels without O_TMPFILE say.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
            Ok(None)
        }
        Err(errno) => Err(errno),
    }
}

/// The name by which an open file without one can be linked.
fn proc_name(file: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Whether the filesystem of an open file keeps errors for later.
fn reports_late(file: &File) -> bool {
    sys::fstatfs(file).is_ok_and(|found| LATE_ERRORS.contains(&found.f_type))
}

/// What the name of a pending file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// An old file, to be replaced.
    Taken,
    /// Nothing. What gets the name meanwhile is replaced, as if it had been there before.
    Free,
    /// Nothing. What gets the name meanwhile stays.
    Reserved,
}

/// A file that is not yet at its place.
#[derive(Debug)]
struct Pending {
    directory: OwnedFd,
    name: OsString,
    place: Place,
    /// The name it has meanwhile, if any: removed on drop.
    temporary: Option<OsString>,
}

impl Pending {
    /// Puts the file at its place.
    fn commit(mut self, file: &File) -> Result<(), Errno> {
        let source = proc_name(file);
        let link = |directory: &OwnedFd, name: &OsStr| {
            sys::linkat(CWD, &source, directory, name, AtFlags::SYMLINK_FOLLOW)
        };
        let is_linked = self.temporary.is_none()
            && self.place != Place::Taken
            && match link(&self.directory, &self.name) {
                Ok(()) => true,
                Err(Errno::EXIST) if self.place == Place::Free => false,
                Err(errno) => return Err(errno),
            };
        if !is_linked {
            if self.temporary.is_none() {
                self.with_temporary(link)?;
            }
            let temporary = (self.temporary.as_deref()).expect("the file has a name by now");
            self.rename(temporary)?;
            self.temporary = None;
        }
        self.sync_directory(file)
    }

    /// Gives the file its name in place of the temporary one.
    fn rename(&self, temporary: &OsStr) -> Result<(), Errno> {
        let (directory, name) = (&self.directory, &self.name);
        if self.place != Place::Reserved {
            return sys::renameat(directory, temporary, directory, name);
        }
        let flags = sys::RenameFlags::NOREPLACE;
        match sys::renameat_with(directory, temporary, directory, name, flags) {
            // Filesystems and kernels without that flag. The temporary name is removed on drop.
            Err(Errno::INVAL | Errno::NOSYS) => {
                sys::linkat(directory, temporary, directory, name, AtFlags::empty())?;
                sys::unlinkat(directory, temporary, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Has the file's name reach the disk.
    fn sync_directory(&self, file: &File) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        synced(
            match sys::openat(&self.directory, ".", flags, Mode::empty()) {
                Ok(directory) => sys::fsync(directory),
                // It may be written to but not read.
                Err(Errno::ACCESS) => sys::syncfs(file),
                Err(errno) => Err(errno),
            },
        )
    }

    /// Gives the file a name that nothing else has.
    fn with_temporary<T>(
        &mut self,
        create: impl Fn(&OwnedFd, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut tries = 0;
        loop {
            tries += 1;
            let name = temporary_name();
            match create(&self.directory, &name) {
                // What processes of the same number have left behind.
                Err(Errno::EXIST) if tries < NAMES_MAX => {}
                Err(errno) => return Err(errno),
                Ok(created) => {
                    self.temporary = Some(name);
                    return Ok(created);
                }
            }
        }
    }
}

/// A name that this process hasn't given yet.
fn temporary_name() -> OsString {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!(".ringfold-{}-{number}.tmp", std::process::id()).into()
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nobody is left to hear of a failure.
            let _ = sys::unlinkat(&self.directory, temporary, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
