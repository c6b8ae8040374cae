//! The watchdog over reads: gives a notice of a read without an answer after [`Config::silence`], and ends the
//! run after [`Config::io_timeout`].
//!
//! Each reader marks a [`Place`] with the read that it begins, and clears it when the read is done. One thread
//! checks all places a few times a second and measures for how long it has seen the same read. So a reader
//! needs no clock, and the time of the job, or while the whole process is stopped, isn't counted.
//!
//! Only files and block devices are watched: pipes and terminals may be slow.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::engine::config::{Config, Overdue};
use crate::engine::notice::Notice;
use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Kind, Result};
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::linux::threads;
use crate::sync::lock;

/// The longest pause between two checks, and the shortest between two reports of progress.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a source is a file or block device, whose reads are expected to end soon.
pub(crate) fn is_watched(source: &Source) -> bool {
    source.is_file() && source.len().is_some()
}

/// The watchdog of one run.
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
    /// Bytes that the job has taken, and those of the input.
    delivered: Arc<AtomicU64>,
    total: Option<u64>,
    overdue: OnceLock<Error>,
    /// The same for tasks that await it.
    given_up: tokio::sync::watch::Sender<bool>,
    over: Mutex<bool>,
    end: Condvar,
}

impl Watchdog {
    /// Starts the watchdog's thread. `delivered` has what the job took of the input before this run.
    ///
    /// # Errors
    /// The thread can't be started, although a timeout was named.
    pub(crate) fn new(
        input: &Input,
        config: &Config,
        delivered: &Arc<AtomicU64>,
    ) -> Result<Watchdog> {
        let name = |source: &Arc<Source>| Arc::clone(source.name());
        let shared = Arc::new(Shared {
            names: input.sources().iter().map(name).collect(),
            silence: config.silence,
            timeout: config.io_timeout,
            places: Mutex::default(),
            delivered: Arc::clone(delivered),
            total: input.len().map(|bytes| bytes + delivered.load(Relaxed)),
            overdue: OnceLock::new(),
            given_up: tokio::sync::watch::Sender::new(false),
            over: Mutex::new(false),
            end: Condvar::new(),
        });
        let mut watch = Watchdog {
            shared,
            thread: None,
        };
        if config.progress.is_some() || input.sources().iter().any(|source| is_watched(source)) {
            let shared = Arc::clone(&watch.shared);
            let (notice, overdue) = (Arc::clone(&config.notice), config.overdue.clone());
            let progress = config.progress.clone();
            let look = move || {
                let tell = || {
                    if let Some(progress) = &progress {
                        progress(shared.delivered.load(Relaxed), shared.total);
                    }
                };
                shared.watch(&*notice, overdue.as_deref(), &tell);
                tell();
            };
            match Builder::new().name("watch".to_string()).spawn(look) {
                Ok(thread) => watch.thread = Some(thread),
                // Without notices the run works as well.
                Err(_) if config.io_timeout.is_none() => {}
                Err(error) => {
                    let (setting, by) = (Setting::IoTimeout, Refuser::ProcessLimit);
                    let why = "can't start a thread to watch the reads";
                    let refusal = Refusal::not_granted(setting, by, why);
                    return Err(Error::from(refusal).with_errno(&error));
                }
            }
        }
        Ok(watch)
    }

    /// The job has taken so many bytes.
    pub(crate) fn count(&self, bytes: u64) {
        self.shared.delivered.fetch_add(bytes, Relaxed);
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
        // The sender lives as long as the watchdog.
        let _ = given_up.wait_for(|&given_up| given_up).await;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.shared.over) = true;
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in the caller's notice is ignored.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Checks the places until the run is over or given up.
    fn watch(&self, notice: &dyn Fn(&Notice), overdue: Option<&Overdue>, tell: &dyn Fn()) {
        let shortest = self
            .timeout
            .map_or(self.silence, |timeout| timeout.min(self.silence));
        let pause = (shortest / 8).clamp(Duration::from_millis(1), PAUSE);
        let mut next_notice = self.silence;
        let mut told = Instant::now();
        let mut over = lock(&self.over);
        loop {
            let started = Instant::now();
            over = self
                .end
                .wait_timeout_while(over, pause, |over| !*over)
                .map_or_else(|error| error.into_inner().0, |(over, _)| over);
            if *over {
                return;
            }
            if told.elapsed() >= PAUSE {
                tell();
                told = Instant::now();
            }
            // More means that the process was stopped.
            let passed = started.elapsed().min(2 * pause);
            let waiting = self.look(passed);
            if let Some(limit) = self.timeout
                && let Some(first) = first(&waiting, limit)
            {
                let error = first.error(limit);
                // Only this thread sets it.
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

    /// All pending reads, each older by the time that has passed since the last check.
    fn look(&self, passed: Duration) -> Vec<Waiting<'_>> {
        let mut places = lock(&self.places);
        // Drop places that no reader has any more.
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

/// A read that is pending.
struct Waiting<'a> {
    name: &'a Arc<str>,
    source: u32,
    bytes: Range<u64>,
    age: Duration,
}

/// Of the reads of at least this age, the first in the input.
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

    fn notice(&self) -> Notice {
        Notice::Silent {
            file: Arc::clone(self.name),
            bytes: self.bytes.clone(),
            age: Duration::from_secs(self.age.as_secs()),
        }
    }
}

/// A duration as people say it.
fn words(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{} s", duration.as_secs()),
        _ => format!("{} ms", duration.as_millis()),
    }
}

/// Marks the pending read of one reader.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place(Arc<Mutex<Option<Read>>>);

#[derive(Debug)]
struct Read {
    source: u32,
    bytes: Range<u64>,
    /// Whether a check has seen it, and for how long checks have.
    met: bool,
    age: Duration,
    /// For a mapped window: the thread that accesses it, and its major faults at the last check.
    mapped: Option<(i32, u64)>,
}

impl Place {
    /// A read begins. It is pending until the next one begins here, or until [`Place::done`].
    pub(crate) fn begin(&self, source: &Source, bytes: Range<u64>) {
        self.set(source, bytes, None);
    }

    /// This thread begins to access a mapped window. It waits in page faults and works in between; only the
    /// time in a fault counts.
    pub(crate) fn begin_looking(&self, source: &Source, bytes: Range<u64>) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.set(source, bytes, Some((thread, 0)));
    }

    fn set(&self, source: &Source, bytes: Range<u64>, mapped: Option<(i32, u64)>) {
        *lock(&self.0) = is_watched(source).then(|| Read {
            source: source.index(),
            bytes,
            met: false,
            age: Duration::ZERO,
            mapped,
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
        if let Some((thread, before)) = &mut self.mapped {
            let (asleep, faults) = threads::waits_for_page(*thread).unwrap_or_default();
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
