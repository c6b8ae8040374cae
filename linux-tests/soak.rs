//! The soak (`make soak`): for half an hour runs of every kind at once, each checked against the
//! reference, beside a process that does nothing but use the library over and over, and must not grow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ringfold::job::Count;
use ringfold::query::OnError;
use ringfold::{Config, Engine, Input, Kind, fold};
use rustix::process::{Pid, Signal, kill_process};

use crate::answers::pairs;
use crate::fuse::{At, Fault, Fuse, Pages, Rule};
use crate::probe::{Feature, has};
use crate::reference::{self, Style};
use crate::support::{
    KEYS_10K, STATIONS, WAYS, dir, end_of, evict, feed, names, ringfold, start, str, write,
};

/// Processes at the same time.
const AT_ONCE: u64 = 3;

/// A generator whose seed decides everything.
pub struct Random(u64);

impl Random {
    /// Seeds lie far apart: the numbers of neighbours would be the same, one later.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A file and what is true of it.
struct Case {
    path: PathBuf,
    text: Vec<u8>,
    lines: usize,
    /// For the good ones: the answer by style.
    answers: Option<[Vec<u8>; 3]>,
    /// How the error of a bad one begins.
    bad: Option<String>,
}

impl Case {
    fn new(dir: &Path, name: &str, text: Vec<u8>) -> Case {
        let path = write(dir, name, &text);
        let answer = reference::aggregate(&[&text], b';', 1 << 20);
        let bad = answer.lowest().map(|bad| bad.place(str(&path)));
        let answers = bad
            .is_none()
            .then(|| Style::ALL.map(|style| answer.text(style)));
        Case {
            lines: text.iter().filter(|&&byte| byte == b'\n').count(),
            path,
            text,
            answers,
            bad,
        }
    }
}

fn cases(dir: &Path) -> Vec<Case> {
    let mut bad = STATIONS.repeat(3);
    let at = bad.len() / 2;
    bad[at..at + 4].copy_from_slice(b";;\n;");
    [
        ("empty", Vec::new()),
        ("tiny", b"a;1.0\nb;-2.5\n".to_vec()),
        ("small", STATIONS[..5_000].to_vec()),
        ("stations", STATIONS.clone()),
        ("keys", KEYS_10K.clone()),
        ("large", STATIONS.repeat(60)),
        ("keys-large", KEYS_10K.repeat(20)),
        ("bad", bad),
    ]
    .map(|(name, text)| Case::new(dir, name, text))
    .into()
}

#[derive(Default)]
struct Counts {
    right: AtomicU64,
    refused: AtomicU64,
    killed: AtomicU64,
    timed_out: AtomicU64,
}

impl Counts {
    fn line(&self) -> String {
        let [right, refused, killed, timed_out] =
            [&self.right, &self.refused, &self.killed, &self.timed_out]
                .map(|count| count.load(Relaxed));
        format!(
            "{right} answers right, {refused} correct errors, {killed} killed, {timed_out} \
             ended at their limit"
        )
    }
}

/// Flags that any engine takes, whether they have an effect or not.
fn some_flags(random: &mut Random, direct: bool, by_pipe: bool) -> Vec<String> {
    let mut flags = Vec::new();
    let mut maybe = |random: &mut Random, flag: &str, values: &[&str]| {
        if random.one_in(3) {
            flags.push(flag.to_string());
            flags.push(random.of(values).to_string());
        }
    };
    let blocks: &[&str] = match direct {
        true => &["4K", "64K", "1M", "3M"],
        false => &["4K", "5000", "64K", "1M", "3M"],
    };
    maybe(random, "--block-size", blocks);
    maybe(random, "--queue-depth", &["1", "3", "16", "64"]);
    maybe(random, "--threads", &["1", "2", "7"]);
    maybe(random, "--huge-pages", &["off", "auto"]);
    maybe(random, "--registered-buffers", &["off", "auto"]);
    maybe(random, "--populate", &["on", "off"]);
    maybe(
        random,
        "--map-advice",
        &["sequential", "random", "willneed"],
    );
    maybe(random, "--io-timeout", &["10m"]);
    if random.one_in(5) {
        flags.push("--async".to_string());
    }
    if random.one_in(5) && !direct && !by_pipe {
        let advice = *random.of(&["sequential", "dontneed", "random"]);
        flags.extend(["--fadvise".to_string(), advice.to_string()]);
    }
    flags
}

/// One run of the program, whatever it is to be.
fn one_process(random: &mut Random, cases: &[Case], dir: &Path, counts: &Counts) {
    let case = random.of(cases);
    let way = *random.of(&WAYS);
    if has(Feature::Eviction) && random.one_in(3) && !case.text.is_empty() {
        let len = case.text.len() as u64;
        evict(&case.path, 0..len / (1 + random.below(2) as u64));
    }
    let by_pipe = !way.direct && random.one_in(6);
    let flags = some_flags(random, way.direct, by_pipe);
    let name = if by_pipe { "-" } else { str(&case.path) };
    let counting = random.one_in(4);
    let (style, at) = {
        let at = random.below(3);
        (Style::ALL[at].flag(), at)
    };
    let target = (!counting && random.one_in(4)).then(|| dir.join("out"));
    let mut command = match counting {
        true => ringfold(["count"]),
        false => ringfold(["aggregate", "--format", style]),
    };
    command.arg("--quiet").args(way.flags()).args(&flags);
    if let Some(target) = &target {
        command.arg("--output").arg(target);
    }
    command.arg(name);
    if by_pipe {
        command.stdin(Stdio::piped());
    }
    let what = format!("{command:?}");
    let mut child = start(&mut command);
    if by_pipe {
        feed(&mut child, case.text.clone());
    }
    let kill = random.one_in(12);
    if kill {
        std::thread::sleep(Duration::from_millis(random.below(100) as u64));
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
    }
    let ended = end_of(child);
    if kill && ended.signal == Some(libc::SIGKILL) {
        if let Some(target) = &target {
            // Complete or not there; the name of the half-made is none.
            let _ = fs::remove_file(target);
        }
        counts.killed.fetch_add(1, Relaxed);
        return;
    }
    if counting {
        let want = format!("{} {} {name}\n", case.lines, case.text.len());
        let got = String::from_utf8(ended.answer()).unwrap();
        assert_eq!(got, want, "{what}");
    } else if let Some(answers) = &case.answers {
        let mut got = ended.answer();
        if let Some(target) = &target {
            got = fs::read(target).unwrap();
            fs::remove_file(target).unwrap();
        }
        assert!(got == answers[at], "{what}: another answer");
    } else {
        let bad = case.bad.as_ref().expect("good or bad");
        let error = ended.failure(1);
        // What comes by a pipe has no line number, but a place.
        let place = match by_pipe {
            true => bad.replace(str(&case.path), "-"),
            false => bad.clone(),
        };
        let place = &place[..place.find(" (line").unwrap()];
        assert!(error.starts_with(place), "{what}: {error}, not {bad}");
        assert!(target.is_none_or(|target| !target.exists()), "{what}");
        counts.refused.fetch_add(1, Relaxed);
        return;
    }
    counts.right.fetch_add(1, Relaxed);
}

/// One run over storage that fails or hangs.
fn one_fault(random: &mut Random, case: &Case, counts: &Counts) {
    let way = *random.of(&WAYS);
    let pages = match way.engine == Engine::Mmap || random.one_in(2) {
        true => Pages::Cached,
        false => Pages::None,
    };
    let fuse = Fuse::serve("rows", &case.text[..], pages);
    let hangs = random.one_in(2);
    let byte = random.below(case.text.len()) as u64;
    fuse.plan([Rule {
        at: At::Bytes(byte..byte + 1),
        forever: true,
        fault: match hangs {
            true => Fault::Deaf,
            false => Fault::Errno(libc::EIO),
        },
    }]);
    let mut command = ringfold(["aggregate", "--quiet", "--io-timeout"]);
    command.arg(if hangs { "300ms" } else { "10m" });
    let path = fuse.path();
    let error = end_of(start(command.args(way.flags()).arg(&path))).failure(1);
    let (name, count) = match hangs {
        true => ("[ETIMEDOUT]", &counts.timed_out),
        false => ("[EIO]", &counts.refused),
    };
    assert!(
        error.starts_with(str(&path)) && error.ends_with(name),
        "{way:?}: {error}"
    );
    count.fetch_add(1, Relaxed);
}

/// One run of the library in this process.
fn one_call(random: &mut Random, cases: &[Case]) {
    let case = random.of(cases);
    let way = *random.of(&WAYS);
    let config = Config {
        block_size: random
            .of(&[None, Some(4096), Some(65_536), Some(1 << 20)])
            .to_owned(),
        queue_depth: Some(1 + random.below(32)),
        threads: Some(1 + random.below(4)),
        io_timeout: random.one_in(2).then(|| Duration::from_secs(600)),
        knobs: way.rings(1 + random.below(3)),
        ..way.config()
    };
    let input = Input::open([&case.path]).unwrap();
    if random.one_in(2) {
        let config = Config { ..config };
        let (counted, _) = fold(&input, &config, &Count { delimiter: b'\n' }).unwrap();
        let counted = counted.first().copied().unwrap_or_default();
        let got = (counted.records, counted.bytes);
        assert_eq!(
            got,
            (case.lines as u64, case.text.len() as u64),
            "{config:?}"
        );
    } else {
        match (pairs(&input, &config, OnError::Fail), &case.answers) {
            (Ok((_, got)), Some(answers)) => {
                assert!(got == answers[0], "{config:?}: another answer");
            }
            (Err(error), None) => {
                let bad = case.bad.as_ref().expect("good or bad");
                assert_eq!(error.kind(), Kind::Data, "{config:?}");
                assert!(
                    error.to_string().starts_with(bad.as_str()),
                    "{error}, not {bad}"
                );
            }
            (done, _) => panic!("{config:?}: {:?}", done.map(drop)),
        }
    }
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    rss_kib: u64,
    fds: usize,
    threads: u64,
    maps: usize,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    Held {
        rss_kib: field("VmRSS:"),
        fds: fs::read_dir("/proc/self/fd").unwrap().count(),
        threads: field("Threads:"),
        maps: fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .count(),
    }
}

/// For how long, in minutes.
const MINUTES: &str = "SOAK_MINUTES";

fn until() -> (f64, Instant) {
    let minutes = std::env::var(MINUTES).map_or(30.0, |text| text.parse().unwrap());
    (
        minutes,
        Instant::now() + Duration::from_secs_f64(60.0 * minutes),
    )
}

#[test]
#[ignore = "it takes half an hour: make soak"]
fn soak() {
    let (minutes, end) = until();
    let dir = dir();
    let cases = cases(dir.path());
    let faulty = Case::new(dir.path(), "faulty", STATIONS.repeat(8));
    let counts = Counts::default();
    let faults = has(Feature::Fuse);
    let started = Instant::now();
    let mut library = Command::new(std::env::current_exe().unwrap());
    // Else the C library's allocator takes ever larger pieces into its arenas, one a thread, and keeps
    // there what was freed: tens of mebibytes, now here, now there.
    library.env("MALLOC_MMAP_THRESHOLD_", "131072");
    library.env(MINUTES, minutes.to_string()).args([
        "--exact",
        "soak::the_library_over_and_over",
        "--ignored",
        "--nocapture",
    ]);
    let mut library = library.stdout(Stdio::null()).spawn().unwrap();
    std::thread::scope(|scope| {
        for n in 0..AT_ONCE {
            let (counts, cases, dir, faulty) = (&counts, &cases, dir.path(), &faulty);
            scope.spawn(move || {
                let own = dir.join(format!("of-{n}"));
                fs::create_dir(&own).unwrap();
                let mut random = Random::new(n);
                while Instant::now() < end {
                    match faults && random.one_in(10) {
                        true => one_fault(&mut random, faulty, counts),
                        false => one_process(&mut random, cases, &own, counts),
                    }
                }
                assert!(names(&own).is_empty(), "left behind: {:?}", names(&own));
            });
        }
        scope.spawn(|| {
            while Instant::now() < end {
                let left = end.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_secs(60)));
                let minutes = started.elapsed().as_secs_f64() / 60.0;
                eprintln!("{minutes:4.1} min: {}", counts.line());
            }
        });
    });
    let library = library.wait().unwrap();
    eprintln!("{minutes} minutes of processes: {}", counts.line());
    assert!(library.success(), "the process of the library: {library}");
}

#[test]
#[ignore = "a part of the soak"]
fn the_library_over_and_over() {
    let (minutes, end) = until();
    let dir = dir();
    let cases = cases(dir.path());
    let mut random = Random::new(AT_ONCE);
    let (started, mut runs) = (Instant::now(), 0);
    let mut samples = Vec::new();
    // What is kept for later runs is there after the first tenth.
    let mut next = started + Duration::from_secs_f64(6.0 * minutes);
    let every = Duration::from_secs_f64(2.0 * minutes);
    while Instant::now() < end {
        one_call(&mut random, &cases);
        runs += 1;
        if Instant::now() >= next {
            let now = held();
            samples.push(now);
            let minutes = started.elapsed().as_secs_f64() / 60.0;
            eprintln!("{minutes:4.1} min: {runs} runs of the library right; {now:?}");
            next = Instant::now() + every;
        }
    }
    // Threads that are about to end make a sample jump: the least of some tells.
    let least = |samples: &[Held]| Held {
        rss_kib: samples.iter().map(|held| held.rss_kib).min().unwrap_or(0),
        fds: samples.iter().map(|held| held.fds).min().unwrap_or(0),
        threads: samples.iter().map(|held| held.threads).min().unwrap_or(0),
        maps: samples.iter().map(|held| held.maps).min().unwrap_or(0),
    };
    let third = samples.len().div_ceil(3);
    let (first, last) = (
        least(&samples[..third]),
        least(&samples[samples.len() - third..]),
    );
    eprintln!(
        "{minutes} minutes of the library: {runs} runs right; first {first:?}, last {last:?}"
    );
    assert!(
        last.rss_kib <= first.rss_kib + first.rss_kib / 4,
        "memory grows"
    );
    assert!(last.fds <= first.fds, "descriptors are left open");
    assert!(last.threads <= first.threads + 2, "threads stay behind");
    assert!(
        last.maps <= first.maps + first.maps / 4,
        "mappings stay behind"
    );
}
