//! The injector: a file system of ours, served over /dev/fuse by a thread of the test, whose reads
//! fail, come short, wait or hang as a plan says.
//!
//! The mount is never attached to a directory: it has a descriptor, files are reached by
//! `/proc/PID/fd/N/name`, and it is gone with the process whatever happens. When a [`Fuse`] is
//! dropped everything that was held back is answered and the device is closed, which ends every
//! read that somebody still waits for.
//!
//! Hangs and mappings are for children, not for the test's own process: a test that is killed in the
//! middle of a hang would wait for itself, and a page fault on a mapped file holds the lock on its
//! process's addresses that the server, a thread of the same process, may need to answer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use crate::probe::{Feature, skips};

/// What a file holds: pieces by their places, and zeros between them, which are holes.
#[derive(Debug, Clone)]
pub struct Content {
    /// The file's length at first.
    pub len: u64,
    /// In order; they may go past the length.
    pub pieces: Vec<(u64, Vec<u8>)>,
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Content {
        Content {
            len: bytes.len() as u64,
            pieces: vec![(0, bytes.to_vec())],
        }
    }
}

impl Content {
    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut out = vec![0; (range.end - range.start) as usize];
        for (at, bytes) in &self.pieces {
            let from = range.start.max(*at);
            let to = range.end.min(at + bytes.len() as u64);
            if from < to {
                let piece = &bytes[(from - at) as usize..(to - at) as usize];
                out[(from - range.start) as usize..(to - range.start) as usize]
                    .copy_from_slice(piece);
            }
        }
        out
    }

    /// Where the next data, or the next hole, begins from `at` on.
    fn seek(&self, at: u64, data: bool) -> Result<u64, i32> {
        if at >= self.len {
            return Err(libc::ENXIO);
        }
        let mut at = at;
        for (start, bytes) in &self.pieces {
            let piece = *start..*start + bytes.len() as u64;
            if data && at < piece.end {
                return Ok(at.max(piece.start));
            }
            if !data && piece.contains(&at) {
                at = piece.end;
            }
        }
        match data {
            true => Err(libc::ENXIO),
            false => Ok(at.min(self.len)),
        }
    }
}

/// How the kernel treats the file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Every read reaches the server and every answer the reader (FOPEN_DIRECT_IO). The file can't
    /// be mapped.
    None,
    /// Through the page cache, emptied whenever the file is opened. A short answer is to the kernel
    /// the end of the file.
    Cached,
}

/// Which reads are meant.
#[derive(Debug, Clone)]
pub enum At {
    /// The one with this number, from 0 on.
    Read(u64),
    /// The first that touches these bytes.
    Bytes(Range<u64>),
}

/// What happens to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Errno(i32),
    /// Nothing but so many bytes.
    Short(usize),
    /// Nothing, as at the end of the file.
    Zero,
    /// The answer comes late.
    Delay(Duration),
    /// No answer until [`Fuse::release`], or until the reader is interrupted.
    Hang,
    /// No answer until [`Fuse::release`], as from a device that is gone: not even a kill ends it.
    Deaf,
    /// The file has this length from just before the read is answered: fewer bytes than it began
    /// with, or more where its pieces hold more.
    Length(u64),
    /// The file's bytes are inverted from this read on.
    Rewrite,
}

/// What is to happen, and when.
#[derive(Debug, Clone)]
pub struct Rule {
    pub at: At,
    /// Once, or also for what comes after (with [`At::Bytes`]: every time).
    pub forever: bool,
    pub fault: Fault,
}

#[derive(Debug)]
struct State {
    content: Content,
    /// The file's length by now.
    len: u64,
    inverted: bool,
    pages: Pages,
    rules: Vec<(Rule, bool)>,
    reads: Vec<Range<u64>>,
    released: bool,
    /// How many reads are held back now.
    held: usize,
}

/// A mounted file system with one file.
#[derive(Debug)]
pub struct Fuse {
    name: String,
    mount: OwnedFd,
    state: Arc<Mutex<State>>,
    /// Wakes the server; closed when it is to end.
    waker: Option<io::PipeWriter>,
    server: Option<JoinHandle<()>>,
}

impl Fuse {
    /// Serves one file.
    ///
    /// # Errors
    /// There is no FUSE here, or only for others.
    pub fn try_serve(name: &str, content: impl Into<Content>, pages: Pages) -> io::Result<Fuse> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/fuse")?;
        let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in [
            ("fd", &*device.as_raw_fd().to_string()),
            ("rootmode", "40000"),
            ("user_id", "0"),
            ("group_id", "0"),
        ] {
            fsconfig_set_string(&context, key, value)?;
        }
        fsconfig_create(&context)?;
        let mount = fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
        )?;
        let content = content.into();
        let state = Arc::new(Mutex::new(State {
            len: content.len,
            content,
            inverted: false,
            pages,
            rules: Vec::new(),
            reads: Vec::new(),
            released: false,
            held: 0,
        }));
        let (wakeups, waker) = io::pipe()?;
        let server = Server {
            name: name.to_string(),
            device,
            wakeups,
            state: Arc::clone(&state),
            held: Vec::new(),
        };
        let server = std::thread::Builder::new()
            .name("fuse".into())
            .spawn(move || server.run())?;
        Ok(Fuse {
            name: name.to_string(),
            mount,
            state,
            waker: Some(waker),
            server: Some(server),
        })
    }

    /// Serves one file, where a test has asked for [`Feature::Fuse`] before.
    pub fn serve(name: &str, content: impl Into<Content>, pages: Pages) -> Fuse {
        Fuse::try_serve(name, content, pages).expect("a test asks for FUSE before it serves")
    }

    /// The file's path, good for children too.
    pub fn path(&self) -> PathBuf {
        let (pid, fd) = (std::process::id(), self.mount.as_raw_fd());
        format!("/proc/{pid}/fd/{fd}/{}", self.name).into()
    }

    /// Begins anew: the file is whole, no read has been made, these are the rules.
    pub fn plan(&self, rules: impl IntoIterator<Item = Rule>) {
        let mut state = self.state();
        state.len = state.content.len;
        state.inverted = false;
        state.rules = rules.into_iter().map(|rule| (rule, false)).collect();
        state.reads.clear();
        state.released = false;
    }

    /// The bytes that were asked for since the last plan, in the order in which they were.
    pub fn reads(&self) -> Vec<Range<u64>> {
        self.state().reads.clone()
    }

    /// How many reads are held back at the moment.
    pub fn held(&self) -> usize {
        self.state().held
    }

    /// Answers all reads that hang, and those that would.
    pub fn release(&self) {
        self.state().released = true;
        self.ring();
    }

    fn ring(&self) {
        if let Some(mut waker) = self.waker.as_ref() {
            waker.write_all(b"!").expect("the server listens");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // The server sees the end of the pipe, answers what it holds back and closes the device.
        self.waker = None;
        let ended = self.server.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was started").expect("the server panicked");
        }
    }
}

/// A read that is answered later.
struct Held {
    unique: u64,
    fault: Fault,
    due: Option<Instant>,
    range: Range<u64>,
}

struct Server {
    name: String,
    device: File,
    wakeups: io::PipeReader,
    state: Arc<Mutex<State>>,
    held: Vec<Held>,
}

/// The numbers of the protocol, as linux/fuse.h has them.
mod op {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const INIT: u32 = 26;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
    pub const LSEEK: u32 = 46;
}

const ASYNC_READ: u32 = 1 << 0;
const ASYNC_DIO: u32 = 1 << 15;
const MAX_PAGES: u32 = 1 << 22;
const DIRECT_IO: u32 = 1 << 0;
const NO_FLUSH: u32 = 1 << 5;
const ROOT: u64 = 1;
const FILE: u64 = 2;
/// Before the arguments of a request.
const HEADER: usize = 40;

/// Fields of an answer, one behind the other.
#[derive(Default)]
struct Answer(Vec<u8>);

impl Answer {
    fn u16(mut self, value: u16) -> Answer {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Answer {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Answer {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn zeros(mut self, bytes: usize) -> Answer {
        self.0.resize(self.0.len() + bytes, 0);
        self
    }
}

fn u32_at(request: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(request[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(request: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(request[at..at + 8].try_into().expect("eight bytes"))
}

impl Server {
    fn run(mut self) {
        let mut buffer = vec![0; 256 << 10];
        loop {
            self.answer_due(false);
            let next = self.held.iter().filter_map(|held| held.due).min();
            let wait = next.map(|due| due.saturating_duration_since(Instant::now()));
            let wait = wait.map(|wait| Timespec::try_from(wait).expect("a short while"));
            let mut fds = [
                PollFd::new(&self.device, PollFlags::IN),
                PollFd::new(&self.wakeups, PollFlags::IN),
            ];
            match poll(&mut fds, wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => panic!("poll: {errno}"),
            }
            let (asked, woken) = (fds[0].revents(), fds[1].revents());
            if !woken.is_empty() && self.wakeups.read(&mut [0]).is_ok_and(|n| n == 0) {
                // Closing the device ends what is asked later.
                return self.answer_due(true);
            }
            if !asked.is_empty() {
                match self.device.read(&mut buffer) {
                    Ok(n) => self.request(&buffer[..n]),
                    // Taken back meanwhile, or there was none.
                    Err(error)
                        if matches!(
                            error.raw_os_error(),
                            Some(libc::ENOENT | libc::EINTR | libc::EAGAIN)
                        ) => {}
                    // Unmounted.
                    Err(_) => return,
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn request(&mut self, request: &[u8]) {
        let (opcode, unique, node) = (u32_at(request, 4), u64_at(request, 8), u64_at(request, 16));
        let argument = &request[HEADER..];
        let outcome = match opcode {
            op::FORGET | op::BATCH_FORGET => return,
            op::INTERRUPT => return self.interrupt(u64_at(argument, 0)),
            op::INIT => Ok(self.init(argument)),
            op::LOOKUP => match argument.strip_suffix(b"\0") {
                Some(name) if node == ROOT && name == self.name.as_bytes() => {
                    // Nothing that is said of a file holds for longer than the answer.
                    let entry = Answer::default().u64(FILE).u64(0).zeros(24);
                    Ok(self.attributes(entry, FILE))
                }
                _ => Err(libc::ENOENT),
            },
            op::GETATTR => Ok(self.attributes(Answer::default().zeros(16), node)),
            op::OPEN => {
                let flags = match self.state().pages {
                    Pages::None => DIRECT_IO | NO_FLUSH,
                    Pages::Cached => NO_FLUSH,
                };
                Ok(Answer::default().u64(0).u32(flags).u32(0))
            }
            op::READ => {
                let (offset, size) = (u64_at(argument, 8), u32_at(argument, 16));
                return self.read(unique, offset..offset + u64::from(size));
            }
            op::LSEEK => {
                let (offset, whence) = (u64_at(argument, 8), u32_at(argument, 16) as i32);
                let data = whence == libc::SEEK_DATA;
                let found = self.state().content.seek(offset, data);
                found.map(|at| Answer::default().u64(at))
            }
            op::STATFS => Ok(Answer::default().zeros(40).u32(4096).u32(255).zeros(32)),
            op::RELEASE => Ok(Answer::default()),
            // FLUSH among them: a process that is killed closes its files when nobody serves any more.
            _ => Err(libc::ENOSYS),
        };
        self.answer(unique, outcome.map(|answer| answer.0));
    }

    /// What kernel and server agree on: its version and ours, reads of up to a mebibyte, and that
    /// pages of the page cache are read one by one, so that there are many reads.
    fn init(&self, argument: &[u8]) -> Answer {
        let offered = u32_at(argument, 12);
        let flags = offered & (ASYNC_READ | ASYNC_DIO | MAX_PAGES);
        let read_ahead = 0;
        Answer::default()
            .u32(7)
            .u32(31)
            .u32(read_ahead)
            .u32(flags)
            // In the background, and where that is much.
            .u16(64)
            .u16(48)
            // The largest write, the grain of times in ns, pages a request, and nothing else.
            .u32(4096)
            .u32(1)
            .u16(256)
            .u16(0)
            .zeros(32)
    }

    fn attributes(&self, answer: Answer, node: u64) -> Answer {
        let len = self.state().len;
        let (mode, links, len) = match node {
            ROOT => (libc::S_IFDIR | 0o555, 2, 0),
            _ => (libc::S_IFREG | 0o444, 1, len),
        };
        let answer = answer.u64(node).u64(len).u64(len.div_ceil(512));
        answer
            .zeros(36)
            .u32(mode)
            .u32(links)
            .zeros(12)
            .u32(4096)
            .u32(0)
    }

    fn read(&mut self, unique: u64, range: Range<u64>) {
        let mut state = self.state();
        let number = state.reads.len() as u64;
        state.reads.push(range.clone());
        let mut fault = None;
        for (rule, used) in &mut state.rules {
            let meant = match &rule.at {
                At::Read(n) if rule.forever => number >= *n,
                At::Read(n) => number == *n,
                At::Bytes(bytes) => bytes.start < range.end && range.start < bytes.end,
            };
            if meant && (rule.forever || !*used) {
                *used = true;
                fault = Some(rule.fault);
                break;
            }
        }
        match fault {
            Some(Fault::Length(len)) => state.len = len,
            Some(Fault::Rewrite) => state.inverted = true,
            _ => {}
        }
        let waits = !state.released;
        drop(state);
        let due = match fault {
            Some(Fault::Delay(delay)) => Some(Instant::now() + delay),
            Some(Fault::Hang | Fault::Deaf) if waits => None,
            _ => return self.answer_read(unique, range, fault),
        };
        let fault = fault.expect("only faults are held back");
        self.held.push(Held {
            unique,
            fault,
            due,
            range,
        });
        self.state().held = self.held.len();
    }

    /// Whoever waits for this request would rather not.
    fn interrupt(&mut self, unique: u64) {
        let held = |held: &Held| held.unique == unique && held.fault == Fault::Hang;
        if let Some(at) = self.held.iter().position(held) {
            let held = self.held.swap_remove(at);
            self.answer(held.unique, Err(libc::EINTR));
            self.state().held = self.held.len();
        }
    }

    /// Answers the reads whose time has come.
    fn answer_due(&mut self, all: bool) {
        let now = Instant::now();
        let all = all || self.state().released;
        let due = |held: &mut Held| all || held.due.is_some_and(|due| due <= now);
        let due: Vec<Held> = self.held.extract_if(.., due).collect();
        // Counted before the answers, so that who has one doesn't find it still counted.
        self.state().held = self.held.len();
        for Held { unique, range, .. } in due {
            self.answer_read(unique, range, None);
        }
    }

    fn answer_read(&self, unique: u64, range: Range<u64>, fault: Option<Fault>) {
        let outcome = match fault {
            Some(Fault::Errno(errno)) => Err(errno),
            Some(Fault::Zero) => Ok(Vec::new()),
            _ => {
                let state = self.state();
                let end = range.end.min(state.len).max(range.start);
                let mut bytes = state.content.read(range.start..end);
                if state.inverted {
                    bytes.iter_mut().for_each(|byte| *byte = !*byte);
                }
                if let Some(Fault::Short(most)) = fault {
                    bytes.truncate(most);
                }
                Ok(bytes)
            }
        };
        self.answer(unique, outcome);
    }

    fn answer(&self, unique: u64, outcome: Result<Vec<u8>, i32>) {
        let (error, payload) = match outcome {
            Ok(payload) => (0, payload),
            Err(errno) => (-errno, Vec::new()),
        };
        let len = 16 + payload.len() as u32;
        let mut answer = Answer::default().u32(len).u32(error as u32).u64(unique).0;
        answer.extend(payload);
        // Who asked may have gone away, or the file system: nothing to be done.
        let _ = (&self.device).write(&answer);
    }
}

#[test]
fn the_injector_does_what_its_plan_says() {
    use std::os::unix::fs::FileExt;
    if skips("the_injector_does_what_its_plan_says", &[Feature::Fuse]) {
        return;
    }
    let text: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
    let fuse = Fuse::serve("rows", &text[..], Pages::None);
    let rule = |at, forever, fault| Rule { at, forever, fault };
    let file = File::open(fuse.path()).unwrap();
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(fuse.path())
        .unwrap();
    let mut buffer = vec![0; 8192];
    for file in [&file, &direct] {
        // Straight.
        fuse.plan([]);
        assert_eq!(file.metadata().unwrap().len(), 20_000);
        assert_eq!(file.read_at(&mut buffer, 16_384).unwrap(), 3_616);
        assert!(buffer[..3_616] == text[16_384..]);
        let asked = 16_384..24_576;
        assert_eq!(fuse.reads(), std::slice::from_ref(&asked));
        // Once and for good, by number and by place.
        fuse.plan([rule(At::Read(1), false, Fault::Errno(libc::EIO))]);
        for want in [Ok(8192), Err(Some(libc::EIO)), Ok(8192)] {
            let got = file.read_at(&mut buffer, 0);
            assert_eq!(got.map_err(|error| error.raw_os_error()), want);
        }
        fuse.plan([rule(At::Bytes(9000..9001), true, Fault::Short(10))]);
        for (offset, want) in [(0, 8192), (8192, 10), (8192, 10), (9001, 8192)] {
            assert_eq!(file.read_at(&mut buffer, offset).unwrap(), want);
            assert!(buffer[..want] == text[offset as usize..][..want]);
        }
        fuse.plan([rule(At::Read(0), false, Fault::Zero)]);
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 0);
        fuse.plan([rule(At::Read(0), false, Fault::Length(5_000))]);
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5_000);
        assert_eq!(file.metadata().unwrap().len(), 5_000);
        assert_eq!(file.read_at(&mut buffer, 5_000).unwrap(), 0);
        fuse.plan([rule(At::Read(1), false, Fault::Rewrite)]);
        for inverted in [0, 0xff, 0xff] {
            assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 8192);
            assert_eq!(buffer[1], text[1] ^ inverted);
        }
        // One waits, the others don't.
        fuse.plan([rule(At::Read(0), false, Fault::Hang)]);
        std::thread::scope(|scope| {
            let hung = scope.spawn(|| file.read_at(&mut [0; 4096], 0));
            while fuse.held() == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(file.read_at(&mut buffer, 8192).unwrap(), 8192);
            assert!(!hung.is_finished());
            fuse.release();
            assert_eq!(hung.join().unwrap().unwrap(), 4096);
        });
        fuse.plan([rule(
            At::Read(0),
            false,
            Fault::Delay(Duration::from_millis(50)),
        )]);
        let start = Instant::now();
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 8192);
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
    // When it goes, it leaves nobody waiting.
    fuse.plan([rule(At::Read(0), false, Fault::Deaf)]);
    std::thread::scope(|scope| {
        let hung = scope.spawn(|| file.read_at(&mut [0; 4096], 0));
        while fuse.held() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(fuse);
        assert_eq!(hung.join().unwrap().unwrap(), 4096);
    });
    assert!(file.read_at(&mut buffer, 0).is_err());
}

#[test]
fn the_injectors_holes_are_holes() {
    use rustix::fs::{SeekFrom, seek};
    if skips("the_injectors_holes_are_holes", &[Feature::Fuse]) {
        return;
    }
    let content = Content {
        len: 15 << 40,
        pieces: vec![(0, b"first".to_vec()), (14 << 40, b"last".to_vec())],
    };
    let fuse = Fuse::serve("huge", content, Pages::Cached);
    let file = File::open(fuse.path()).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 15 << 40);
    for (from, want) in [
        (SeekFrom::Hole(0), Ok(5)),
        (SeekFrom::Data(5), Ok(14 << 40)),
        (SeekFrom::Hole(14 << 40), Ok((14 << 40) + 4)),
        (SeekFrom::Data(14 << 40 | 4), Err(rustix::io::Errno::NXIO)),
    ] {
        assert_eq!(seek(&file, from), want, "{from:?}");
    }
    let mut bytes = [1; 6];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, (14 << 40) - 1).unwrap();
    assert_eq!(&bytes, b"\0last\0");
}
