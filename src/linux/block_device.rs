//! What sysfs tells of a block device, by its number.

use rustix::fs::{major, minor};

use crate::linux::proc;

/// How far the kernel reads ahead on a device. It is also the most that it reads at one request; it silently
/// ignores the rest.
pub(crate) fn read_ahead(device: u64) -> Option<u64> {
    let (major, minor) = (major(device), minor(device));
    // A partition has that of its disk.
    let places = [
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        format!("/sys/dev/block/{major}:{minor}/../queue/read_ahead_kb"),
    ];
    let kib = places.iter().find_map(|place| {
        let kib = proc::number(place).ok()?;
        (kib > 0).then_some(kib)
    })?;
    kib.checked_mul(1024)
}

/// The file that says that a device has no poll queues; `None` where it has some, or nothing says so.
pub(crate) fn without_poll_queues(device: u64) -> Option<String> {
    let device = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has the queue of its disk.
    let paths = ["queue/io_poll", "../queue/io_poll"].map(|queue| format!("{device}/{queue}"));
    let known = paths
        .into_iter()
        .find_map(|path| Some((proc::text(&path).ok()?, path)));
    known.and_then(|(queues, path)| (queues == "0").then_some(path))
}
