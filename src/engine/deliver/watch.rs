//! Watches for reads that get no answer: tells of one after [`Config::silence`], and ends the run
//! after [`Config::io_timeout`].
//!
//! Whoever reads has a [`Place`], where it says what it is about to read and that it is done. One
//! thread looks at all places now and then, and counts for how long it has met the same read. So a
//! reader needs no clock, the time that a job takes isn't counted, and neither is the time for
//! which the whole process was stopped.
//!
//! Only files and block devices are watched: a pipe or a terminal may take its time.

use std::fs;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::engine::config::{Config, Overdue};
use crate::error::{Error, Kind, Result};
use crate::input::source::Source;
use crate::input::spans::Input;

/// The longest pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Whether a source is of the kind that answers at once or is in trouble.
pub(crate) fn is_watched(source: &Source) -> bool {
    source.file().is_some() && source.len().is_some()
}

/// The watch over one run.
pub(crate) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// By source.
    names: Vec<Arc<str>>,
    silence: Duration,
    timeout: Option<Duration>,
    places: Mutex<Vec<Place>>,
    overdue: OnceLock<Error>,
    /// The same for who awaits it.
    given_up: tokio::sync::watch::Sender<bool>,
    over: Mutex<bool>,
    end: Condvar,
}

impl Watchdog {
    /// Begins to watch.
    ///
    /// # Errors
    /// There is no thread to be had for it, although a limit was named.
    pub(crate) fn new(input: &Input, config: &Config) -> Result<Watchdog> {
        let name = |source: &Arc<Source>| Arc::clone(source.name());
        let shared = Arc::new(Shared {
            names: input.sources().iter().map(name).collect(),
            silence: config.silence,
            timeout: config.io_timeout,
            places: Mutex::default(),
            overdue: OnceLock::new(),
            given_up: tokio::sync::watch::Sender::new(false),
            over: Mutex::new(false),
            end: Condvar::new(),
        });
        let mut watch = Watchdog {
            shared,
            thread: None,
        };
        if input.sources().iter().any(|source| is_watched(source)) {
            let shared = Arc::clone(&watch.shared);
            let (notice, overdue) = (Arc::clone(&config.notice), config.overdue.clone());
            let look = move || shared.watch(&*notice, overdue.as_deref());
            match Builder::new().name("watch".to_string()).spawn(look) {
                Ok(thread) => watch.thread = Some(thread),
                // Without a notice of silence the run is as good.
                Err(_) if config.io_timeout.is_none() => {}
                Err(error) => {
                    let cause = "--io-timeout: can't start a thread to watch the reads: lower \
                                 --threads, or raise the limit on processes (ulimit -u)";
                    return Err(Error::new(Kind::Engine, cause).with_errno(&error));
                }
            }
        }
        Ok(watch)
    }

    /// A new place.
    pub(crate) fn place(&self) -> Place {
        let place = Place::default();
        lock(&self.shared.places).push(place.clone());
        place
    }

    /// Why the run is given up, if it is.
    pub(crate) fn overdue(&self) -> Option<&Error> {
        self.shared.overdue.get()
    }

    /// Waits until the run is given up, for ever if it never is.
    pub(crate) async fn given_up(&self) {
        let mut given_up = self.shared.given_up.subscribe();
        // The sender lives as long as the watch.
        let _ = given_up.wait_for(|&given_up| given_up).await;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.shared.over) = true;
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            // A notice that panics is its owner's affair.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Looks at the places until the run is over or given up.
    fn watch(&self, notice: &dyn Fn(&str), overdue: Option<&Overdue>) {
        let shortest = self
            .timeout
            .map_or(self.silence, |timeout| timeout.min(self.silence));
        let pause = (shortest / 8).clamp(Duration::from_millis(1), PAUSE);
        let mut next_notice = self.silence;
        let mut over = lock(&self.over);
        loop {
            let started = Instant::now();
            over = self
                .end
                .wait_timeout_while(over, pause, |over| !*over)
                .map_or_else(|e| e.into_inner().0, |(over, _)| over);
            if *over {
                return;
            }
            // More is a time in which nobody ran.
            let passed = started.elapsed().min(2 * pause);
            let waiting = self.look(passed);
            if let Some(limit) = self.timeout
                && let Some(first) = first(&waiting, limit)
            {
                let error = first.error(limit);
                // Nobody else sets it.
                let _ = self.overdue.set(error.clone());
                self.given_up.send_replace(true);
                if let Some(overdue) = overdue {
                    overdue(&error);
                }
                return;
            }
            if first(&waiting, self.silence).is_none() {
                next_notice = self.silence;
            } else if let Some(first) = first(&waiting, next_notice) {
                notice(&first.notice());
                next_notice += self.silence;
            }
        }
    }

    /// All reads that are waited for, each older by the time that has passed since the last look.
    fn look(&self, passed: Duration) -> Vec<Waiting<'_>> {
        let mut places = lock(&self.places);
        // Those that nobody has any more are swept out.
        places.retain(|place| Arc::strong_count(&place.0) > 1);
        let waiting = places.iter().filter_map(|place| {
            let mut cell = lock(&place.0);
            let read = cell.as_mut()?;
            read.grow(passed);
            Some(Waiting {
                name: &self.names[read.source as usize],
                source: read.source,
                bytes: read.bytes.clone(),
                age: read.age,
            })
        });
        waiting.collect()
    }
}

/// A read that hasn't been answered by now.
struct Waiting<'a> {
    name: &'a Arc<str>,
    source: u32,
    bytes: Range<u64>,
    age: Duration,
}

/// Of those that are so old the first in the input.
fn first<'w, 'a>(waiting: &'w [Waiting<'a>], age: Duration) -> Option<&'w Waiting<'a>> {
    let old = waiting.iter().filter(|waiting| waiting.age >= age);
    old.min_by_key(|waiting| (waiting.source, waiting.bytes.start))
}

impl Waiting<'_> {
    fn error(&self, limit: Duration) -> Error {
        let cause = format!("no answer for {}", words(limit));
        Error::new(Kind::Io, cause)
            .with_errno(&rustix::io::Errno::TIMEDOUT.into())
            .in_file(self.source, self.name)
            .at_bytes(self.bytes.clone())
    }

    fn notice(&self) -> String {
        let Range { start, end } = self.bytes;
        let (name, seconds) = (self.name, words(Duration::from_secs(self.age.as_secs())));
        format!("{name}: byte {start}-{end}: no answer for {seconds}, waiting on")
    }
}

/// A duration as people say it.
fn words(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{} s", duration.as_secs()),
        _ => format!("{} ms", duration.as_millis()),
    }
}

/// Where at most one read at a time is waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place(Arc<Mutex<Option<Read>>>);

#[derive(Debug)]
struct Read {
    source: u32,
    bytes: Range<u64>,
    /// Whether a look has met it, and for how long looks have.
    met: bool,
    age: Duration,
    /// Of a mapped window: the thread that looks at it, and its major faults at the last look.
    looker: Option<(i32, u64)>,
}

impl Place {
    /// A read begins. It is waited for until the next one begins here, or [`Place::done`].
    pub(crate) fn begin(&self, source: &Source, bytes: Range<u64>) {
        self.set(source, bytes, None);
    }

    /// This thread begins to look at a mapped window. It waits in page faults, between them it
    /// works: only the time in a fault counts.
    pub(crate) fn begin_looking(&self, source: &Source, bytes: Range<u64>) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.set(source, bytes, Some((thread, 0)));
    }

    fn set(&self, source: &Source, bytes: Range<u64>, looker: Option<(i32, u64)>) {
        *lock(&self.0) = is_watched(source).then(|| Read {
            source: source.index(),
            bytes,
            met: false,
            age: Duration::ZERO,
            looker,
        });
    }

    /// The read has ended, well or not.
    pub(crate) fn done(&self) {
        *lock(&self.0) = None;
    }
}

impl Read {
    fn grow(&mut self, passed: Duration) {
        let mut waits = std::mem::replace(&mut self.met, true);
        if let Some((thread, before)) = &mut self.looker {
            let (asleep, faults) = in_the_kernel(*thread).unwrap_or_default();
            waits &= asleep && faults == std::mem::replace(before, faults);
            if !waits {
                self.age = Duration::ZERO;
            }
        }
        if waits {
            self.age += passed;
        }
    }
}

/// Whether a thread of this process waits for a page, and how many page faults it has waited for so
/// far.
fn in_the_kernel(thread: i32) -> Option<(bool, u64)> {
    let about = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}"));
    let stat = about("stat").ok()?;
    // The name before it may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let waits = match fields.next()? {
        "D" => true,
        // Some file systems wait so that a signal could end it. So does a job that waits for a lock,
        // but that is in a call of its own: a fault is in none, or in the one that populates.
        "S" => {
            let populates = libc::SYS_madvise.to_string();
            let call = about("syscall").unwrap_or_default();
            let number = call.split_ascii_whitespace().next();
            number.is_some_and(|number| number == "-1" || number == populates)
        }
        _ => false,
    };
    let faults = fields.nth(8)?.parse().ok()?;
    Some((waits, faults))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
