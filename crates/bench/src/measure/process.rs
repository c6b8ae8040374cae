//! Runs a program and tells what it cost: wall time, processor time, memory, and what else the machine did.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Instant;

use ringfold_read::internals::{calls, proc};
use serde::{Deserialize, Serialize};

use crate::measure::counters::{Counters, Counts};
use crate::measure::memory::Sampler;

/// What a run cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cost {
    /// From before fork and exec to after the end.
    pub wall_s: f64,
    /// How long its work took by its own clock, without start and end; counts where it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_clock_s: Option<f64>,
    /// Processor time of all its threads, in user space and in the kernel.
    pub user_s: f64,
    /// See `user_s`.
    pub system_s: f64,
    /// The most memory at a time, mapped files included. No less than the parent's own: a child inherits that mark.
    pub peak_memory_bytes: u64,
    /// The most anonymous memory that was seen; `None` where the run was too short for a sample.
    pub peak_anonymous_bytes: Option<u64>,
    /// Page faults without and with a read from the device.
    pub minor_faults: u64,
    /// See `minor_faults`.
    pub major_faults: u64,
    /// How often a thread of it waited, or had to let others run.
    pub voluntary_switches: u64,
    /// See `voluntary_switches`.
    pub involuntary_switches: u64,
    /// Bytes that it had block devices read.
    #[serde(default)]
    pub device_read_bytes: u64,
    /// What the processor counted.
    pub counted: Option<Counts>,
    /// Processor time that other processes and the kernel's own threads used meanwhile, on all cores.
    pub others_cpu_s: f64,
    /// Processor time that the host kept from this machine meanwhile, on all cores.
    pub stolen_cpu_s: f64,
}

impl Cost {
    /// The time that counts.
    pub fn time_s(&self) -> f64 {
        self.own_clock_s.unwrap_or(self.wall_s)
    }

    /// Processor time.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Output {
    /// What it cost.
    pub cost: Cost,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed, a file in memory, at its beginning.
    pub stdout: File,
    /// What it said, at most some KiB of the end.
    pub stderr: String,
}

impl Output {
    /// The last line that it said, without this program's name.
    pub fn last_line(&self) -> &str {
        let last = self.stderr.trim_end().lines().last().unwrap_or_default();
        last.strip_prefix("ringfold: ").unwrap_or(last)
    }

    /// All that it printed.
    ///
    /// # Errors
    /// It can't be read back.
    pub fn output(&mut self) -> io::Result<Vec<u8>> {
        let mut output = Vec::new();
        self.stdout.rewind()?;
        self.stdout.read_to_end(&mut output)?;
        Ok(output)
    }
}

/// The process group of the child that runs, 0 for none: who ends this process early ends that too.
pub static CHILD: AtomicI32 = AtomicI32::new(0);

/// How much of what a program says is kept.
const SAID: i64 = 64 << 10;
/// A block of `ru_inblock`, whatever the device's own are.
const BLOCK: u64 = 512;

/// Runs a command line to its end.
///
/// # Errors
/// It can't be started or waited for.
pub fn run(line: &[OsString]) -> io::Result<Output> {
    let [program, arguments @ ..] = line else {
        return Err(io::Error::other("an empty command line"));
    };
    // Files in memory: nobody has to drain them while the clock runs.
    let (stdout, mut stderr) = (memory_file()?, memory_file()?);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // A group of its own, so that whoever ends it reaches what it has started.
    command
        .process_group(0)
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    let sampler = Sampler::start();
    // After the sampler's thread, which would inherit them.
    let counters = Counters::begin().ok();
    let before = Ticks::now();
    let started = Instant::now();
    let child = command.spawn()?;
    CHILD.store(child.id().cast_signed(), Relaxed);
    sampler.watch(child.id());
    let waited = calls::wait4(&child);
    let wall = started.elapsed();
    // Its number may be another's from now on.
    sampler.watch(0);
    CHILD.store(0, Relaxed);
    let counted = counters.map(Counters::end);
    let (status, usage) = waited?;
    let after = Ticks::now();
    let cpu =
        [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6);
    let cost = Cost {
        wall_s: wall.as_secs_f64(),
        own_clock_s: None,
        user_s: cpu[0],
        system_s: cpu[1],
        peak_memory_bytes: usage.ru_maxrss as u64 * 1024,
        peak_anonymous_bytes: sampler.peak().anonymous,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        device_read_bytes: usage.ru_inblock as u64 * BLOCK,
        counted,
        others_cpu_s: (seconds(after.busy.saturating_sub(before.busy)) - cpu[0] - cpu[1]).max(0.0),
        stolen_cpu_s: seconds(after.stolen.saturating_sub(before.stolen)),
    };
    let len = stderr.metadata()?.len() as i64;
    stderr.seek(io::SeekFrom::Start((len - SAID).max(0) as u64))?;
    let mut said = Vec::new();
    stderr.read_to_end(&mut said)?;
    Ok(Output {
        cost,
        status,
        stdout,
        stderr: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// This process's own peak memory, the floor of what can be told of others.
pub fn own_peak_bytes() -> u64 {
    let status = proc::text("/proc/self/status").unwrap_or_default();
    proc::kib_field(&status, "VmHWM").unwrap_or(0)
}

fn memory_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(file))
}

/// What all cores have done since the machine started.
#[derive(Default)]
struct Ticks {
    busy: u64,
    stolen: u64,
}

impl Ticks {
    fn now() -> Ticks {
        let stat = proc::text("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let numbers = first.split_whitespace().skip(1);
        let ticks: Vec<u64> = numbers.flat_map(str::parse).collect();
        // Idle time and that of waiting for I/O are left out.
        match ticks[..] {
            [user, nice, system, _, _, irq, softirq, stolen, ..] => Ticks {
                busy: user + nice + system + irq + softirq,
                stolen,
            },
            _ => Ticks::default(),
        }
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
