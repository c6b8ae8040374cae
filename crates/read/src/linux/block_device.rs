//! What sysfs tells of a block device, by its number.

use rustix::fs::{major, minor};

use crate::linux::pages::PAGE;
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

/// The bytes that a device takes as one request, wherever their pages lie; `None` where nothing says so.
pub(crate) fn largest_request(device: u64) -> Option<u64> {
    let number = |name: &str| of_queue(device, name)?.0.parse::<u64>().ok();
    // What doesn't begin with a page takes one segment more.
    let segments = number("max_segments")?.saturating_sub(1);
    let bytes = number("max_sectors_kb")?.checked_mul(1024)?;
    Some(bytes.min(segments.checked_mul(PAGE as u64)?))
}

/// The file that says that a device has no poll queues; `None` where it has some, or nothing says so.
pub(crate) fn without_poll_queues(device: u64) -> Option<String> {
    let (queues, path) = of_queue(device, "io_poll")?;
    (queues == "0").then_some(path)
}

/// What a file of a device's queue says, and its path.
fn of_queue(device: u64, name: &str) -> Option<(String, String)> {
    let device = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has the queue of its disk.
    let mut paths = ["queue", "../queue"]
        .map(|queue| format!("{device}/{queue}/{name}"))
        .into_iter();
    paths.find_map(|path| Some((proc::text(&path).ok()?, path)))
}
