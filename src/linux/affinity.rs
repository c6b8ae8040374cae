//! Which processors the run's threads may use: each worker one of a list, in turn; the thread that
//! runs the ring any of them.
//!
//! The ring's thread is the caller's and idles most of the time. Nailed to one processor it would
//! have to wait for the worker there; free of all it would leave the ones that the run was given.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Error, Kind, Result};

/// Holds the calling thread to some processors until it is dropped.
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Tries each of the processors, then allows all of them.
    ///
    /// # Errors
    /// One isn't there, or the process may not use it.
    pub(crate) fn new(cpus: &[u32]) -> Result<Pinned> {
        let before = sched_getaffinity(None).map_err(|errno| refused(cpus[0], errno))?;
        let pinned = Pinned { before };
        for &cpu in cpus {
            to(cpu)?;
        }
        allow(cpus).map_err(|errno| refused(cpus[0], errno))?;
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Where it was allowed before it is allowed now.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Holds the calling thread to one processor.
pub(crate) fn to(cpu: u32) -> Result<()> {
    allow(&[cpu]).map_err(|errno| refused(cpu, errno))
}

fn allow(cpus: &[u32]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = cpu as usize;
        // The kernel leaves out in silence what it doesn't have.
        if cpu >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
}

fn refused(cpu: u32, errno: Errno) -> Error {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")
        .map_or(String::new(), |list| {
            format!(" ({} are online)", list.trim())
        });
    let cause = format!(
        "--pin {cpu}: there is no such processor, it is offline, or the cpuset forbids it to this \
         process{online}: name others"
    );
    Error::new(Kind::Engine, cause).with_errno(&errno.into())
}
