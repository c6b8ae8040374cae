//! How many files are open at a time. As many as the limit on descriptors allows stay open for the whole run; all further
//! ones are opened when they are read, so the number of inputs has no limit.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use rustix::process::{Resource, getrlimit};

use crate::linux::retry;
use crate::sync::lock;

/// Descriptors for everything else: outputs, rings, runtimes, spilled files, looks into /proc.
const RESERVED: u64 = 64;
/// The most descriptors of files that are opened in turn.
const IN_TURN_MAX: u64 = 256;

/// How the descriptors are shared out.
struct Shares {
    /// Files that stay open.
    permanent: usize,
    /// Descriptors of files that are opened in turn.
    in_turn: usize,
}

fn shares() -> Shares {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let free = limit - RESERVED.min(limit / 2);
    let in_turn = (free / 4).clamp(4, IN_TURN_MAX);
    // Each may be opened a second time, to be read past the page cache.
    let permanent = (free.saturating_sub(in_turn) / 2).max(1);
    Shares {
        permanent: usize::try_from(permanent).unwrap_or(usize::MAX),
        in_turn: in_turn as usize,
    }
}

static PERMITS: AtomicUsize = AtomicUsize::new(0);

/// Allows one file to stay open.
#[derive(Debug)]
pub(crate) struct Permit(());

impl Permit {
    pub(crate) fn new() -> Option<Permit> {
        let most = shares().permanent;
        let one_more = |permanent| (permanent < most).then_some(permanent + 1);
        let counted = PERMITS.fetch_update(Relaxed, Relaxed, one_more);
        counted.ok().map(|_| Permit(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        PERMITS.fetch_sub(1, Relaxed);
    }
}

/// A file that is opened in turn, and closed again when others need its descriptor.
#[derive(Debug)]
pub(crate) struct InTurn(u64);

struct Open {
    /// The number of its [`InTurn`].
    of: u64,
    /// Whether it is read past the page cache.
    direct: bool,
    file: Arc<File>,
}

/// Those that are open, the longest open one first.
static OPEN: Mutex<VecDeque<Open>> = Mutex::new(VecDeque::new());

/// Closes files that nobody uses, the longest open ones first, until `most` are left.
fn close_idle(open: &mut VecDeque<Open>, most: usize) {
    let mut over = open.len().saturating_sub(most);
    open.retain(|one| {
        let closes = over > 0 && Arc::strong_count(&one.file) == 1;
        over -= usize::from(closes);
        !closes
    });
}

/// Opens a file; where no descriptor is left, those that are opened in turn and not in use are closed first.
///
/// # Errors
/// The kernel's.
pub(crate) fn open(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let mut tries = 0;
    loop {
        match open() {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) && tries < 2 => {
                close_idle(&mut lock(&OPEN), 0);
                if tries > 0 {
                    // Other threads are about to close theirs.
                    retry::pause(retry::MOST);
                }
                tries += 1;
            }
            opened => return opened,
        }
    }
}

impl InTurn {
    pub(crate) fn new() -> InTurn {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        InTurn(NEXT.fetch_add(1, Relaxed))
    }

    /// The file, opened unless it is open already.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn get(
        &self,
        direct: bool,
        by: impl Fn() -> io::Result<File>,
    ) -> io::Result<Arc<File>> {
        let is_it = |one: &&Open| (one.of, one.direct) == (self.0, direct);
        if let Some(one) = lock(&OPEN).iter().rev().find(is_it) {
            return Ok(Arc::clone(&one.file));
        }
        let file = Arc::new(open(by)?);
        let mut all = lock(&OPEN);
        all.push_back(Open {
            of: self.0,
            direct,
            file: Arc::clone(&file),
        });
        close_idle(&mut all, shares().in_turn);
        Ok(file)
    }
}

impl Drop for InTurn {
    fn drop(&mut self) {
        lock(&OPEN).retain(|one| one.of != self.0);
    }
}

/// How many files that are opened in turn may be in use at a time.
pub(crate) fn in_turn_at_once() -> usize {
    (shares().in_turn / 2).max(1)
}

/// Allows this many files to be open at once: raises the soft limit on descriptors to the hard one, and enlarges their
/// table now. With several threads each growth waits until all processors have seen it, so this is to be called before
/// there are any.
pub fn raise_descriptor_limit(files: usize) {
    use rustix::process::setrlimit;
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
