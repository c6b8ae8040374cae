//! Processor affinity: each worker is bound to one processor of a list, in turn; the ring's thread may use
//! all of the list.
//!
//! The ring's thread is the caller's and mostly idle. Bound to one processor it would wait for the worker
//! there.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::refusal::{Refusal, Refuser};
use crate::error::setting::Setting;
use crate::error::{Error, Result};

/// Binds the calling thread to some processors until it is dropped.
pub(crate) struct Affinity {
    before: CpuSet,
}

impl Affinity {
    /// Tries each processor alone, then allows all of them.
    ///
    /// # Errors
    /// A processor doesn't exist, or the process may not use it.
    pub(crate) fn new(cpus: &[u32]) -> Result<Affinity> {
        let before = sched_getaffinity(None).map_err(|errno| refused(cpus[0], errno))?;
        let pinned = Affinity { before };
        for &cpu in cpus {
            to(cpu)?;
        }
        allow(cpus).map_err(|errno| refused(cpus[0], errno))?;
        Ok(pinned)
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // A failure is ignored: the thread was allowed these processors before.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Binds the calling thread to one processor.
pub(crate) fn to(cpu: u32) -> Result<()> {
    allow(&[cpu]).map_err(|errno| refused(cpu, errno))
}

fn allow(cpus: &[u32]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = cpu as usize;
        // The kernel silently ignores processors that it doesn't have.
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
    let why = format!(
        "there is no such processor, it is offline, or the cpuset forbids it to this process{online}"
    );
    let refusal = Refusal::not_granted(Setting::Pin.of(cpu), Refuser::Processor, why);
    Error::from(refusal).with_errno(&errno.into())
}

/// Binds the thread to those of these processors that it may use, if there are any.
pub(crate) fn prefer(cpus: &[usize]) {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu < CpuSet::MAX_CPU && allowed.is_set(cpu) {
            set.set(cpu);
        }
    }
    if set.count() > 0 {
        // A failure only costs speed.
        let _ = sched_setaffinity(None, &set);
    }
}
