//! Runs a program and measures it: wall time, CPU time, memory, and what else the machine did.
//!
//! # Invariant of this module
//! One call, wait4(2): it alone gives the resources of one child, and neither std nor rustix has
//! it. It writes to two structures on our stack.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use serde::Serialize;

/// What a run took.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// From before fork and exec to after the end.
    pub wall_s: f64,
    /// What it says itself of how long its work took, without start and end; counts where it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_clock_s: Option<f64>,
    pub user_s: f64,
    pub system_s: f64,
    /// No less than the harness's own memory: a child inherits that mark.
    pub peak_memory_bytes: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// CPU time that other processes and the kernel's own threads used meanwhile, on all cores.
    pub others_cpu_s: f64,
    /// CPU time that the host kept from this machine meanwhile, on all cores.
    pub stolen_cpu_s: f64,
}

impl Cost {
    /// The time that counts.
    pub fn time_s(&self) -> f64 {
        self.own_clock_s.unwrap_or(self.wall_s)
    }

    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// A run that has ended.
pub struct Ended {
    pub cost: Cost,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Runs a command line to its end.
pub fn run(line: &[OsString]) -> io::Result<Ended> {
    let [program, arguments @ ..] = line else {
        return Err(io::Error::other("an empty command line"));
    };
    // Files in memory: nobody has to drain them while the clock runs.
    let (mut stdout, mut stderr) = (memory_file()?, memory_file()?);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    let before = Ticks::now();
    let started = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait(&child)?;
    let wall = started.elapsed();
    let after = Ticks::now();
    let cpu =
        [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6);
    let mut ended = Ended {
        cost: Cost {
            wall_s: wall.as_secs_f64(),
            own_clock_s: None,
            user_s: cpu[0],
            system_s: cpu[1],
            peak_memory_bytes: usage.ru_maxrss as u64 * 1024,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            others_cpu_s: (seconds(after.busy.saturating_sub(before.busy)) - cpu[0] - cpu[1])
                .max(0.0),
            stolen_cpu_s: seconds(after.stolen.saturating_sub(before.stolen)),
        },
        status,
        stdout: Vec::new(),
        stderr: String::new(),
    };
    stdout.rewind()?;
    stdout.read_to_end(&mut ended.stdout)?;
    stderr.rewind()?;
    let mut text = Vec::new();
    stderr.read_to_end(&mut text)?;
    ended.stderr = String::from_utf8_lossy(&text).into_owned();
    Ok(ended)
}

/// The harness's own peak memory, the floor of what it can tell of others.
pub fn own_peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = kib.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn memory_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(file))
}

fn wait(child: &Child) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: a rusage is made of integers; all zeros is one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both are ours and outlive the call. The child is ours, and as nobody else waits
        // for it its number isn't another's.
        let pid = unsafe { libc::wait4(child.id().cast_signed(), &mut status, 0, &mut usage) };
        if pid >= 0 {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// What all cores have done since the machine started.
#[derive(Default)]
struct Ticks {
    busy: u64,
    stolen: u64,
}

impl Ticks {
    fn now() -> Ticks {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first
            .split_whitespace()
            .skip(1)
            .flat_map(str::parse)
            .collect();
        match ticks[..] {
            [
                user,
                nice,
                system,
                _idle,
                _waiting,
                irq,
                softirq,
                stolen,
                ..,
            ] => Ticks {
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
