//! The processor's counters over a child: cycles, instructions, misses of the last cache and of the data TLB.
//!
//! They are opened on this thread, and a child that it starts inherits them. What a child has counted is added when it
//! ends. The kernel allows them by `perf_event_paranoid`; many virtual machines have none.

use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use ringfold_read::internals::{describe, proc};
use serde::{Deserialize, Serialize};

/// What was counted; `None` is what this processor doesn't count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Cycles of all its threads.
    pub cycles: Option<f64>,
    /// Instructions.
    pub instructions: Option<f64>,
    /// Reads that missed the last cache.
    pub llc_misses: Option<f64>,
    /// Reads that missed the data TLB.
    pub dtlb_misses: Option<f64>,
    /// Whether the kernel's work is counted too.
    pub with_kernel: bool,
}

/// Up to this level of `perf_event_paranoid` everybody may count what is done outside of the kernel.
const USER_SPACE: i32 = 2;

/// Counters that run.
pub struct Counters {
    /// In the order of the fields of [`Counts`].
    counters: [Option<Counter>; 4],
    with_kernel: bool,
}

impl Counters {
    /// Begins to count what children of this thread do from now on.
    ///
    /// # Errors
    /// The kernel allows none, or there are none.
    pub fn begin() -> io::Result<Counters> {
        // An ordinary user may often count only what is done outside of the kernel.
        let with_kernel = open(Hardware::CPU_CYCLES, true).is_ok();
        let cycles = open(Hardware::CPU_CYCLES, with_kernel)?;
        let misses = |which| Cache {
            which,
            operation: CacheOp::READ,
            result: CacheResult::MISS,
        };
        let mut counters = Counters {
            counters: [
                Some(cycles),
                open(Hardware::INSTRUCTIONS, with_kernel).ok(),
                open(misses(CacheId::LL), with_kernel).ok(),
                open(misses(CacheId::DTLB), with_kernel).ok(),
            ],
            with_kernel,
        };
        for counter in counters.counters.iter_mut().flatten() {
            counter.enable()?;
        }
        Ok(counters)
    }

    /// What was counted by children that have ended.
    pub fn end(mut self) -> Counts {
        let counters = self.counters.iter_mut();
        let mut counted = counters.map(|counter| scaled(counter.as_mut()?));
        let mut next = || counted.next().flatten();
        Counts {
            cycles: next(),
            instructions: next(),
            llc_misses: next(),
            dtlb_misses: next(),
            with_kernel: self.with_kernel,
        }
    }
}

/// Why there are no counters, and what to do where that helps.
pub fn why_none(error: &io::Error) -> String {
    match error.raw_os_error() {
        // It has no such event, or nothing that counts.
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) => {
            "this processor has none that Linux can read; many virtual machines have none".into()
        }
        Some(libc::ENOSYS) => "this kernel was built without them".into(),
        Some(libc::EACCES | libc::EPERM) => {
            let level = proc::text("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            match level.parse::<i32>() {
                Ok(level) if level > USER_SPACE => format!(
                    "sysctl kernel.perf_event_paranoid is {level}: it takes root, or {USER_SPACE} or less"
                ),
                _ => "seccomp, the container or a security module forbids them".into(),
            }
        }
        _ => format!("the kernel refuses them: {}", describe(error)),
    }
}

fn open(event: impl Event, with_kernel: bool) -> io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder.inherit(true).exclude_kernel(!with_kernel);
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    builder.read_format(times).build()
}

/// A counter's value. Where there are more counters than the processor has, each runs for a part of the time.
fn scaled(counter: &mut Counter) -> Option<f64> {
    let read = counter.read_full().ok()?;
    let enabled = read.time_enabled()?.as_secs_f64();
    let running = read.time_running()?.as_secs_f64();
    (running > 0.0).then(|| read.count() as f64 * enabled / running)
}

#[cfg(test)]
mod tests {
    use perf_event::events::Software;

    use crate::measure::counters::*;

    /// A clock is counted in the same way, and every machine has one.
    #[test]
    fn what_a_child_does_is_counted_and_what_this_process_does_is_not_its() {
        let Ok(mut counter) = open(Software::TASK_CLOCK, false) else {
            eprintln!("skip: the kernel allows no counters");
            return;
        };
        counter.enable().unwrap();
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let status = std::process::Command::new("sh")
            .args(["-c", script])
            .status();
        assert!(status.unwrap().success());
        let nanoseconds = scaled(&mut counter).unwrap();
        assert!(nanoseconds > 2e6, "{nanoseconds}");
    }

    #[test]
    fn counters_are_there_or_the_kernel_says_why_not() {
        match Counters::begin() {
            Ok(counters) => {
                let status = std::process::Command::new("true").status();
                assert!(status.unwrap().success());
                let counted = counters.end();
                assert!(
                    counted.cycles.is_none_or(|cycles| cycles > 1000.0),
                    "{counted:?}"
                );
            }
            Err(error) => assert!(
                !why_none(&error).starts_with("the kernel refuses"),
                "{error}"
            ),
        }
    }

    #[test]
    fn what_is_refused_has_its_reason() {
        let why = |errno| why_none(&io::Error::from_raw_os_error(errno));
        for errno in [libc::ENOENT, libc::EOPNOTSUPP] {
            assert!(why(errno).contains("virtual machines"), "{}", why(errno));
        }
        for errno in [libc::EACCES, libc::EPERM] {
            let paranoid = why(errno).contains("perf_event_paranoid is ");
            assert!(paranoid || why(errno).contains("seccomp"), "{}", why(errno));
        }
        assert!(why(libc::ENOSYS).contains("built without"));
        assert_eq!(
            why(libc::EBUSY),
            "the kernel refuses them: Device or resource busy"
        );
    }
}
