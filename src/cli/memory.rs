//! How much memory the process has had, for `--stats`: its own, and mapped files.
//!
//! The kernel only keeps the peak of both together (`VmHWM`), so a thread samples each during the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use ringfold_read::internals::proc;

/// The time between two samples.
const TICK: Duration = Duration::from_millis(20);

/// The most memory that was seen, in bytes; `None` where /proc has no figure.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Peak {
    /// The process's own: anonymous pages, huge ones included.
    pub(super) anonymous: Option<u64>,
    /// Pages of mapped files, which belong to the page cache.
    pub(super) mapped: Option<u64>,
    /// The most of both at a time, as the kernel has it.
    pub(super) together: Option<u64>,
}

/// Samples the memory until it is asked for the peak.
pub(super) struct Watch {
    samples: Arc<Samples>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Samples {
    stop: AtomicBool,
    anonymous: AtomicU64,
    mapped: AtomicU64,
}

impl Watch {
    /// Starts sampling, if the figures are wanted.
    pub(super) fn start(wanted: bool) -> Watch {
        let samples = Arc::new(Samples::default());
        let thread = wanted.then(|| {
            let samples = Arc::clone(&samples);
            let watch = move || {
                while !samples.stop.load(Relaxed) {
                    samples.look();
                    std::thread::park_timeout(TICK);
                }
            };
            // Without a thread there is the sample at the end.
            std::thread::Builder::new()
                .name("memory".into())
                .spawn(watch)
                .ok()
        });
        Watch {
            samples,
            thread: thread.flatten(),
        }
    }

    /// What was seen, and what there is now.
    pub(super) fn peak(mut self) -> Peak {
        let now = self.samples.look();
        self.samples.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        let samples = |peak: &AtomicU64| now.map(|_| peak.load(Relaxed));
        Peak {
            anonymous: samples(&self.samples.anonymous),
            mapped: samples(&self.samples.mapped),
            together: now.flatten(),
        }
    }
}

impl Samples {
    /// Takes a sample; returns the kernel's own peak, if /proc has any figures.
    fn look(&self) -> Option<Option<u64>> {
        let status = proc::text("/proc/self/status").ok()?;
        let bytes = |name| proc::kib_field(&status, name);
        let anonymous = bytes("RssAnon")? + bytes("HugetlbPages").unwrap_or(0);
        self.anonymous.fetch_max(anonymous, Relaxed);
        self.mapped.fetch_max(bytes("RssFile")?, Relaxed);
        Some(bytes("VmHWM"))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::memory::*;

    /// Memory that was freed before the end was seen.
    #[test]
    fn a_peak_that_has_passed() {
        const SIZE: usize = 32 << 20;
        let watch = Watch::start(true);
        let held = std::hint::black_box(vec![1_u8; SIZE]);
        let reached = || watch.samples.anonymous.load(Relaxed) >= SIZE as u64;
        while !reached() {
            std::thread::yield_now();
        }
        drop(held);
        let peak = watch.peak();
        assert!(peak.anonymous.unwrap() >= SIZE as u64, "{peak:?}");
        assert!(peak.mapped.unwrap() > 0, "{peak:?}");
        assert!(peak.together.unwrap() >= SIZE as u64, "{peak:?}");
    }
}
