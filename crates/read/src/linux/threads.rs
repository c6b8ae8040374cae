//! The threads of this process, as /proc shows them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::linux::proc;

/// A file of /proc on a thread.
fn of_thread(id: i32, name: &str) -> Result<String, String> {
    proc::text(format!("/proc/self/task/{id}/{name}"))
}

/// Whether a thread of this process waits for a page, and how many major faults it has had so far.
pub(crate) fn waits_for_page(thread: i32) -> Option<(bool, u64)> {
    let stat = of_thread(thread, "stat").ok()?;
    // The thread's name in parentheses may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let waits = match fields.next()? {
        "D" => true,
        // Some file systems wait interruptibly. A job that waits for a lock does too, but in a system call;
        // a fault happens in none, or in the madvise that populates.
        "S" => {
            let populates = libc::SYS_madvise.to_string();
            let call = of_thread(thread, "syscall").unwrap_or_default();
            let number = call.split_ascii_whitespace().next();
            number.is_some_and(|number| number == "-1" || number == populates)
        }
        _ => false,
    };
    let faults = fields.nth(8)?.parse().ok()?;
    Some((waits, faults))
}

/// The name of a thread and the processors that it may use.
pub(crate) fn placed(id: i32) -> String {
    let status = of_thread(id, "status").unwrap_or_default();
    let cpus = proc::field(&status, "Cpus_allowed_list");
    let cpus = cpus.as_deref().unwrap_or("?");
    let name = of_thread(id, "comm").unwrap_or_default();
    format!("{name} on CPU {cpus}")
}

/// The number of the kernel's worker threads for submissions of this thread.
pub(crate) fn io_workers_of(id: i32) -> usize {
    let name = format!("iou-wrk-{id}");
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks
        .flatten()
        .filter(|task| proc::text(task.path().join("comm")).is_ok_and(|comm| comm == name))
        .count()
}

/// The processor time that this thread has taken.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The processor time that the kernel's threads for this process's rings have taken: workers and pollers.
pub(crate) fn io_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let io = tasks.flatten().filter(|task| {
        let name = proc::text(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("iou-"))
    });
    // The first number is the time on a processor, in nanoseconds.
    let times = io.filter_map(|task| {
        let text = proc::text(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}
