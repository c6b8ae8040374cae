//! The sweep: the N-th read of a real file fails, for every N, once and for good, in every way a
//! read can fail, under every engine. A run ends with the exact answer or with the one line that
//! names the file and the bytes; it never hangs and leaves nothing behind.
//!
//! In the library, so that thousands of cases are quick; what the program makes of them is looked
//! at in a few. The library's cases have a process of their own, so that threads, descriptors and
//! memory can be counted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ringfold::{Config, Engine, Error, Input, Kind, fold};
use rustix::process::{Pid, Signal, kill_process};

use crate::catalogue::are_all_wanted;
use crate::fuse::{At, Fault, Fuse, Pages, Rule};
use crate::library::{Keep, check};
use crate::probe::{Feature, skips};
use crate::reference::{self, Style};
use crate::support::{STATIONS, WAYS, Way, end, end_of, ringfold, start};

/// No case takes a tenth of it.
const HANGS: Duration = Duration::from_secs(50);
const BLOCK: usize = 4096;
const ALONE: &str = "RINGFOLD_TESTS_SWEEP_ALONE";

const ERRNOS: [(i32, &str); 5] = [
    (libc::EIO, "[EIO]"),
    (libc::ENODATA, "[ENODATA]"),
    (libc::EAGAIN, "[EAGAIN]"),
    (libc::EINTR, "[EINTR]"),
    (libc::ECANCELED, "[ECANCELED]"),
];

/// What a case must end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    /// The exact answer.
    Answer,
    /// The error.
    Fail,
    /// The one or the other: the kernel may have tried again, or known the bytes already.
    Either,
}

fn is_transient(errno: i32) -> bool {
    matches!(errno, libc::EAGAIN | libc::EINTR)
}

impl Must {
    fn of(direct: bool, pages: Pages, rule: &Rule) -> Must {
        match (rule.fault, pages, rule.forever) {
            (Fault::Errno(errno), Pages::None, false) if is_transient(errno) => Must::Answer,
            (Fault::Errno(_), Pages::Cached, false) => Must::Either,
            (Fault::Errno(_), _, _) => Must::Fail,
            // Past the page cache the next read must be aligned: a few bytes are no progress.
            (Fault::Short(most), _, true) if direct && most < BLOCK => Must::Fail,
            (Fault::Short(_), _, _) => Must::Answer,
            (Fault::Zero, _, _) => Must::Fail,
            (other, _, _) => panic!("{other:?} isn't swept"),
        }
    }
}

/// Every fault for a file whose pages are treated so. Some are of a kind with others: `make test-all` has them.
fn faults(pages: Pages) -> Vec<Fault> {
    let mut faults: Vec<Fault> = ERRNOS.map(|(errno, _)| Fault::Errno(errno)).to_vec();
    let is_alike = |errno| matches!(errno, libc::ENODATA | libc::EINTR);
    faults.retain(|fault| {
        are_all_wanted() || !matches!(fault, Fault::Errno(errno) if is_alike(*errno))
    });
    if pages == Pages::None {
        // In the page cache a short answer is the kernel's end of the file, and zeros behind it.
        faults.extend([1, 1000, 5000].map(Fault::Short));
        faults.push(Fault::Zero);
    }
    faults
}

/// A file under a way of reading.
struct Bench<'a> {
    way: Way,
    pages: Pages,
    block: usize,
    text: &'a [u8],
    fuse: Fuse,
}

/// How many cases ended how.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    answers: u64,
    errors: u64,
    /// The most reads that a run took that met no fault.
    reads: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.answers += other.answers;
        self.errors += other.errors;
        self.reads = self.reads.max(other.reads);
    }

    fn cases(&self) -> u64 {
        self.answers + self.errors
    }
}

impl Bench<'_> {
    fn new(way: Way, pages: Pages, block: usize, text: &[u8]) -> Bench<'_> {
        Bench {
            way,
            pages,
            block,
            text,
            fuse: Fuse::serve("rows", text, pages),
        }
    }

    /// Reads everything, within bounded time.
    fn run(&self, what: &str) -> Result<(), Error> {
        let config = Config {
            block_size: Some(self.block),
            queue_depth: Some(3),
            threads: Some(2),
            knobs: self.way.rings(2),
            ..self.way.config()
        };
        let path = self.fuse.path();
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let ended = Input::open([path]).and_then(|input| fold(&input, &config, &Keep));
            // Where nobody waits any more nobody wants it.
            drop(done.send(ended));
        });
        let ended = wait.recv_timeout(HANGS);
        let (kept, stats) = ended.unwrap_or_else(|error| panic!("{what}: {error}"))?;
        check(&kept, &[self.text], |_, _| true, &what);
        assert_eq!(stats.bytes, self.text.len() as u64, "{what}");
        Ok(())
    }

    /// One case.
    fn case(&self, rule: Rule, tally: &mut Tally) {
        let (way, pages) = (self.way, self.pages);
        let what = format!("{way:?}, pages {pages:?}, {rule:?}");
        self.fuse.plan([rule.clone()]);
        let ended = self.run(&what);
        let reads = self.fuse.reads();
        // Where threads race there may have been fewer reads this time.
        let faulty: Vec<Range<u64>> = match &rule.at {
            At::Read(n) if rule.forever => reads.into_iter().skip(*n as usize).collect(),
            At::Read(n) => reads.into_iter().skip(*n as usize).take(1).collect(),
            At::Bytes(bytes) => vec![bytes.clone()],
        };
        let must = match faulty[..] {
            [] => Must::Answer,
            _ => Must::of(self.direct(), pages, &rule),
        };
        match ended {
            Ok(()) => {
                assert_ne!(must, Must::Fail, "{what}: it was taken for whole");
                tally.answers += 1;
            }
            Err(error) => {
                assert_ne!(must, Must::Answer, "{what}: {error}");
                self.check_error(&error, rule.fault, &faulty, &what);
                tally.errors += 1;
            }
        }
    }

    /// Checks an error's line: the file, bytes that were asked for in vain, and the cause.
    fn check_error(&self, error: &Error, fault: Fault, faulty: &[Range<u64>], what: &str) {
        let line = error.to_string();
        let bytes = error.bytes().unwrap_or_else(|| panic!("{what}: {line}"));
        let name = self.fuse.path();
        let begins = format!("{}: byte {}-{}: ", name.display(), bytes.start, bytes.end);
        let cause = line.strip_prefix(&begins);
        let cause = cause.unwrap_or_else(|| panic!("{what}: {line}"));
        assert!(
            faulty
                .iter()
                .any(|read| read.start < bytes.end && bytes.start < read.end),
            "{what}: {line}: the reads that failed were of {faulty:?}"
        );
        assert_eq!(error.kind(), Kind::Io, "{what}: {line}");
        match fault {
            Fault::Errno(errno) => {
                let (_, name) = ERRNOS
                    .into_iter()
                    .find(|&(known, _)| known == errno)
                    .unwrap();
                assert!(cause.ends_with(name), "{what}: {line}");
            }
            _ => {
                let (had, ends) = (self.text.len(), "the file ends at byte ");
                let had = format!(", but had {had} bytes when it was opened");
                let at = cause
                    .strip_prefix(ends)
                    .and_then(|rest| rest.strip_suffix(&had));
                let at: u64 = at
                    .and_then(|at| at.parse().ok())
                    .unwrap_or_else(|| panic!("{what}: {line}"));
                // An aligned read begins before what is wanted of it.
                let begins = bytes.start.saturating_sub(2 * BLOCK as u64);
                assert!((begins..bytes.end).contains(&at), "{what}: {line}");
            }
        }
    }

    /// Whether auto has enough to read for the ring.
    fn large(&self) -> bool {
        self.way.engine == Engine::Auto && self.text.len() > 8 << 20
    }

    fn direct(&self) -> bool {
        self.way.direct || self.large()
    }

    /// Whether it is io_uring that reads.
    fn rings(&self) -> bool {
        match self.way.engine {
            Engine::Uring | Engine::UringRaw => true,
            Engine::Auto => self.direct(),
            _ => false,
        }
    }

    /// All cases.
    fn sweep(&self, faults: &[Fault]) -> Tally {
        let mut tally = Tally::default();
        self.fuse.plan([]);
        self.run("without faults").unwrap();
        let reads = self.fuse.reads();
        tally.reads = reads.len() as u64;
        for &fault in faults {
            for n in 0..reads.len() as u64 {
                for forever in [false, true] {
                    // Trying ten times in vain takes its time: at the beginning, the middle, the end.
                    let slow = forever && matches!(fault, Fault::Errno(e) if is_transient(e));
                    // The kernel's business: see `a_ring_waits_for_storage_that_is_busy`.
                    if forever && self.rings() && fault == Fault::Errno(libc::EAGAIN) {
                        continue;
                    }
                    if slow && ![0, tally.reads / 2, tally.reads - 1].contains(&n) {
                        continue;
                    }
                    let at = At::Read(n);
                    self.case(Rule { at, forever, fault }, &mut tally);
                }
            }
        }
        // A bad sector, as it were, at both ends of the file and around a block's edge.
        let (len, block) = (self.text.len() as u64, self.block as u64);
        for at in [0, block - 1, block, 2 * block + 1, len - 1] {
            for errno in [libc::EIO, libc::ENODATA] {
                let rule = Rule {
                    at: At::Bytes(at..at + 1),
                    forever: true,
                    fault: Fault::Errno(errno),
                };
                self.case(rule, &mut tally);
            }
        }
        tally
    }
}

/// What a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    threads: usize,
    descriptors: usize,
    data_kib: u64,
}

impl Held {
    fn now() -> Held {
        let count = |dir: &str| std::fs::read_dir(dir).unwrap().count();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status
            .lines()
            .find_map(|line| line.strip_prefix("VmData:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
        Held {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            data_kib: size.unwrap(),
        }
    }

    /// Once threads that were asked to end have ended.
    fn settled(before: &Held) -> Held {
        let start = Instant::now();
        loop {
            let now = Held::now();
            let same = (now.threads, now.descriptors) == (before.threads, before.descriptors);
            if same || start.elapsed() > Duration::from_secs(20) {
                return now;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Runs this test once more in a process of its own and tells what it said; `false` there.
fn elsewhere(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, "1")
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "{test}: {}", output.status);
    assert!(said.contains("1 passed"), "{test} wasn't run");
    true
}

/// Rows, a record over several blocks, and a last one without its newline.
fn text() -> Vec<u8> {
    let mut text = STATIONS[..20_000].to_vec();
    text.extend([b'x'; 9_000]);
    text.extend(&STATIONS[20_000..40_000]);
    text.extend(b"\nthe last;1.0");
    text
}

#[test]
fn the_nth_read_fails_in_every_way_under_every_engine() {
    let test = "the_nth_read_fails_in_every_way_under_every_engine";
    if skips(test, &[Feature::Fuse]) || elsewhere(&format!("sweep::{test}")) {
        return;
    }
    let text = text();
    // Large enough that auto takes the ring, too.
    let large = STATIONS.repeat(34);
    let mut benches = Vec::new();
    for &way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
        // Without pages nothing can be mapped; and who maps a file that its own process serves may
        // wait for itself: a page fault holds what the server needs. The program maps it below.
        let maps = way.engine == Engine::Mmap || way.engine == Engine::Auto && !way.direct;
        if way.engine != Engine::Mmap {
            benches.push((way, Pages::None, BLOCK, &text[..]));
        }
        if !maps {
            benches.push((way, Pages::Cached, BLOCK, &text[..]));
        }
        if way.engine == Engine::Auto && !way.direct {
            benches.push((way, Pages::None, 1 << 20, &large));
        }
    }
    let first = Held::now();
    // Many cases only wait: all engines at once.
    let sweep = |benches: &[(Way, Pages, usize, &[u8])], faults: fn(Pages) -> Vec<Fault>| {
        std::thread::scope(|scope| {
            let mut total = Tally::default();
            let sweeps: Vec<_> = benches
                .iter()
                .map(|&(way, pages, block, text)| {
                    scope.spawn(move || {
                        let tally = Bench::new(way, pages, block, text).sweep(&faults(pages));
                        eprintln!("{way:?}, pages {pages:?}, {} bytes: {tally:?}", text.len());
                        tally
                    })
                })
                .collect();
            for sweep in sweeps {
                total.add(sweep.join().expect("a case of the sweep failed"));
            }
            total
        })
    };
    let total = sweep(&benches, faults);
    println!(
        "sweep of {} benches: {} cases, {} exact answers, {} errors",
        benches.len(),
        total.cases(),
        total.answers,
        total.errors
    );
    assert!(total.answers > 500 && total.errors > 500, "{total:?}");
    let before = Held::settled(&first);
    // By now the heaps are as large as they get: what errors leave behind once more is a leak.
    benches.retain(|(_, _, block, _)| *block == BLOCK);
    let again = sweep(&benches, |_| vec![Fault::Errno(libc::EIO)]);
    let after = Held::settled(&before);
    println!(
        "{} errors more: before {before:?}, after {after:?}",
        again.errors
    );
    assert_eq!(
        (after.threads, after.descriptors),
        (first.threads, first.descriptors),
        "something was left behind"
    );
    // The buffers of one case are twice as much.
    let grown = after.data_kib.saturating_sub(before.data_kib) << 10;
    assert!(
        grown < again.cases() * (64 << 10),
        "{grown} bytes of memory were left behind"
    );
}

#[test]
fn the_program_answers_or_says_in_one_line_why_not() {
    let test = "the_program_answers_or_says_in_one_line_why_not";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let rows = &STATIONS[..50_000];
    let rows = &rows[..=rows.iter().rposition(|&b| b == b'\n').unwrap()];
    let want = reference::aggregate(&[rows], b';', 1 << 20).text(Style::OneBrc);
    let len = rows.len();
    let fuses = BTreeMap::from([false, true].map(|cached| {
        let pages = if cached { Pages::Cached } else { Pages::None };
        (cached, Fuse::serve("rows", rows, pages))
    }));
    let (mut answers, mut errors) = (0, 0);
    for way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
        let cached = way.engine == Engine::Mmap;
        let fuse = &fuses[&cached];
        let path = fuse.path();
        let name = path.display();
        for (fault, forever, cause) in [
            (
                Fault::Errno(libc::EIO),
                true,
                Some("Input/output error [EIO]"),
            ),
            (
                Fault::Errno(libc::ENODATA),
                true,
                Some("No data available [ENODATA]"),
            ),
            (Fault::Errno(libc::EAGAIN), false, None),
            (Fault::Errno(libc::EINTR), false, None),
            (
                Fault::Errno(libc::EINTR),
                true,
                Some("Interrupted system call [EINTR]"),
            ),
            (Fault::Short(1000), false, None),
            (Fault::Zero, true, Some("the file ends at byte ")),
        ] {
            // A page that can't be mapped doesn't say why, and may be tried again by the kernel.
            let cause = match (cached, cause) {
                (true, None) => continue,
                (true, Some(_)) if !matches!(fault, Fault::Errno(_)) => continue,
                (true, Some(_)) => Some("Input/output error [EIO]"),
                (false, cause) => cause,
            };
            // The fourth block.
            let at = At::Bytes(12_288..16_384);
            fuse.plan([Rule { at, forever, fault }]);
            let mut command = ringfold(["aggregate", "-b", "4096"]);
            let ended = end(command.args(way.flags()).arg(&path));
            let Some(cause) = cause else {
                assert!(ended.answer() == want, "{way:?}, {fault:?}");
                answers += 1;
                continue;
            };
            let error = ended.failure(1);
            let place = error
                .strip_prefix(&format!("{name}: byte "))
                .and_then(|rest| rest.split_once(": "))
                .and_then(|(bytes, said)| Some((bytes.split_once('-')?, said)));
            let Some(((from, to), said)) = place else {
                panic!("{way:?}, {fault:?}: {error}");
            };
            let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
            assert!(
                from < 16_384 && to > 12_288 && to <= len,
                "{way:?}, {fault:?}: {error}"
            );
            assert!(said.contains(cause), "{way:?}, {fault:?}: {error}");
            errors += 1;
        }
    }
    println!("the program under faults: {answers} exact answers, {errors} errors");
    assert!(answers > 5 && errors > 5);
}

/// A file that can be polled, as FUSE's can, io_uring reads again by itself when that says EAGAIN, a
/// hundred times and more, and no completion tells of it: to the program that is storage that doesn't
/// answer.
#[test]
fn a_ring_waits_for_storage_that_is_busy() {
    let test = "a_ring_waits_for_storage_that_is_busy";
    if skips(test, &[Feature::Fuse, Feature::IoUring]) {
        return;
    }
    // Far more often than the program tries.
    const BUSY: u64 = 200;
    let text = text();
    let fuse = Fuse::serve("rows", &text[..], Pages::None);
    let path = fuse.path();
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    let want = format!("{lines} {} {}\n", text.len(), path.display());
    let fault = Fault::Errno(libc::EAGAIN);
    for engine in ["uring", "uring-raw"] {
        let count = || ringfold(["count", "-b", "4096", "--engine", engine]);
        fuse.plan((3..3 + BUSY).map(|n| Rule {
            at: At::Read(n),
            forever: false,
            fault,
        }));
        let ended = end(count().arg(&path));
        if fuse.reads().len() as u64 > BUSY {
            assert_eq!(ended.answer(), want.as_bytes(), "{engine}");
        } else {
            // A kernel that completes with EAGAIN.
            let error = ended.failure(1);
            assert!(error.ends_with("[EAGAIN]"), "{engine}: {error}");
        }

        fuse.plan([Rule {
            at: At::Read(3),
            forever: true,
            fault,
        }]);
        let mut child = start(count().arg(&path));
        while (fuse.reads().len() as u64) < BUSY && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_none() {
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        }
        let ended = end_of(child);
        if ended.code == Some(1) {
            // The kernel gave up, once it had tried so often that the program's tries were spent too.
            let error = ended.failure(1);
            assert!(error.ends_with("[EAGAIN]"), "{engine}: {error}");
        } else {
            assert_eq!(
                (ended.code, &*ended.stdout),
                (Some(143), &b""[..]),
                "{engine}"
            );
        }
    }
}
