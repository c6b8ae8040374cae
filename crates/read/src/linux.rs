//! Linux beside the reads: procfs, sysfs, control groups, processors, pages, the heap, SIGBUS.

pub(crate) mod affinity;
pub(crate) mod block_device;
pub mod calls;
pub mod cgroups;
pub mod heap;
pub(crate) mod io_priority;
pub mod mounts;
pub(crate) mod numa;
pub mod pages;
pub mod proc;
pub mod reads;
pub(crate) mod retry;
pub(crate) mod sigbus;
pub mod smaps;
pub(crate) mod threads;
