//! Linux beside the reads: procfs, sysfs, control groups, processors, pages, the heap, SIGBUS.

pub(crate) mod affinity;
pub(crate) mod block_device;
pub(crate) mod cgroups;
pub(crate) mod heap;
pub(crate) mod io_priority;
pub(crate) mod mounts;
pub(crate) mod numa;
pub(crate) mod pages;
pub(crate) mod proc;
pub(crate) mod retry;
pub(crate) mod sigbus;
pub(crate) mod smaps;
pub(crate) mod threads;
