//! How much memory a process has had: its own, and mapped files.
//!
//! The kernel only keeps the peak of both together (`VmHWM`), so a thread samples each while the process runs.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use ringfold_read::internals::{lock, proc};

/// The time between two samples.
const TICK: Duration = Duration::from_millis(20);

/// The most memory of all samples, in bytes; `None` where /proc has no figure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peak {
    /// The process's own: anonymous pages, huge ones included.
    pub anonymous: Option<u64>,
    /// Pages of mapped files, which belong to the page cache.
    pub mapped: Option<u64>,
    /// The most of both at a time, as the kernel has it.
    pub together: Option<u64>,
}

/// Samples the memory of a process until it is asked for the peak.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The process; 0 for none.
    process: AtomicU32,
    is_over: AtomicBool,
    peak: Mutex<Peak>,
}

impl Sampler {
    /// For a process that is named later.
    pub fn start() -> Sampler {
        let shared = Arc::<Shared>::default();
        let sampled = Arc::clone(&shared);
        let sample = move || {
            while !sampled.is_over.load(Relaxed) {
                sampled.sample();
                std::thread::park_timeout(TICK);
            }
        };
        // Without a thread there is the sample at the end.
        let thread = std::thread::Builder::new().name("memory".into());
        let thread = thread.spawn(sample).ok();
        Sampler { shared, thread }
    }

    /// For this process.
    pub fn of_this_process() -> Sampler {
        let sampler = Sampler::start();
        sampler.watch(std::process::id());
        sampler
    }

    /// From now on the samples are of this process; of none for 0.
    pub fn watch(&self, process: u32) {
        self.shared.process.store(process, Relaxed);
    }

    /// The peak of all samples and of what there is now.
    pub fn peak(mut self) -> Peak {
        self.shared.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.shared.sample()
    }
}

impl Shared {
    /// Takes a sample; returns the peak.
    fn sample(&self) -> Peak {
        let status = match self.process.load(Relaxed) {
            0 => String::new(),
            // A process that has ended has no memory.
            process => proc::text(format!("/proc/{process}/status")).unwrap_or_default(),
        };
        let bytes = |name| proc::kib_field(&status, name);
        let anonymous = bytes("RssAnon").map(|own| own + bytes("HugetlbPages").unwrap_or(0));
        let mut peak = lock(&self.peak);
        peak.anonymous = peak.anonymous.max(anonymous);
        peak.mapped = peak.mapped.max(bytes("RssFile"));
        peak.together = peak.together.max(bytes("VmHWM"));
        *peak
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::memory::*;

    /// Memory that was freed before the end was sampled.
    #[test]
    fn a_peak_that_has_passed() {
        const SIZE: u64 = 32 << 20;
        let sampler = Sampler::of_this_process();
        let held = std::hint::black_box(vec![1_u8; SIZE as usize]);
        while sampler.shared.peak.lock().unwrap().anonymous < Some(SIZE) {
            std::thread::yield_now();
        }
        drop(held);
        let peak = sampler.peak();
        assert!(peak.anonymous >= Some(SIZE), "{peak:?}");
        assert!(peak.mapped > Some(0), "{peak:?}");
        assert!(peak.together >= Some(SIZE), "{peak:?}");
    }
}
