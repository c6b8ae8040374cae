//! The user and the limits of this process: locked memory, open files, processors, control groups.

use std::path::Path;

use ringfold_read::internals::{
    cgroups::{self, Found},
    mounts, proc,
    sizing::MemoryLimit,
    units::size,
};
use rustix::process::{Resource, getrlimit};

use crate::probe::check::Check;
use crate::probe::findings::{Section, Value};

/// The capability that lifts the limit on locked memory.
const CAP_IPC_LOCK: u32 = 14;

pub(crate) fn look(group_min: u64) -> Section {
    let mut section = Section::new("user", None);
    let uid = rustix::process::geteuid();
    let meaning = match uid.is_root() {
        true => "root: an ordinary user may meet limits that this report doesn't show",
        false => "an ordinary user: the limits below hold",
    };
    section.add("uid", u64::from(uid.as_raw()), meaning);
    locked_memory(&mut section);
    let files = getrlimit(Resource::Nofile);
    let hard = files.maximum.map_or("no limit".into(), |n| n.to_string());
    let meaning =
        format!("files open at the same time; ringfold raises it to the hard limit, {hard}");
    let files = files.current.map_or(Value::from("no limit"), Value::Count);
    section.add("open files", files, meaning);
    processors(&mut section);
    cgroups(&mut section, group_min);
    section
}

fn locked_memory(section: &mut Section) {
    let memory = MemoryLimit::of_this_process();
    let buffers = memory.ring(memory.threads(&[]));
    let (words, locked) = (buffers.words(), size(buffers.locks()));
    let wanted = format!("a run with defaults registers {words} ({locked})");
    let limit = getrlimit(Resource::Memlock).current;
    let lifted = proc::text("/proc/self/status").ok().and_then(|status| {
        let capabilities = proc::field(&status, "CapEff")?;
        let capabilities = u64::from_str_radix(&capabilities, 16).ok()?;
        Some(capabilities >> CAP_IPC_LOCK & 1 == 1)
    });
    match (limit, lifted) {
        (Some(limit), None | Some(false)) if buffers.within(limit) < buffers.count() => {
            let (limit, kib) = (size(limit), buffers.locks().div_ceil(1024));
            section.check(Check::fair(
                format!("only {limit} of locked memory: buffers aren't registered with the ring"),
                format!("raise the limit: ulimit -l {kib} (in KiB)"),
            ));
        }
        _ => section.check(Check::good("buffers can be registered with the ring")),
    }
    let meaning = match (limit, lifted) {
        (_, Some(true)) => {
            format!("no limit for this process, which has CAP_IPC_LOCK; {wanted}")
        }
        (None, _) => format!("no limit; {wanted}"),
        (Some(limit), _) => {
            let fit = buffers.within(limit);
            let follows = match fit >= buffers.count() {
                true => "which fit if no other process of this user locks memory",
                false => {
                    "which don't fit: it reads into unregistered ones; raise `ulimit -l`, or lower --buffers \
                     and --queue-depth"
                }
            };
            let block = size(buffers.block());
            format!("enough to register {fit} buffers of {block}; {wanted}, {follows}")
        }
    };
    let value = limit.map_or(Value::from("no limit"), Value::Bytes);
    section.add("locked memory", value, meaning);
}

fn processors(section: &mut Section) {
    let workers = MemoryLimit::of_this_process().threads(&[]);
    let meaning = format!("in the affinity mask of this process; {workers} workers by default");
    let set = rustix::thread::sched_getaffinity(None);
    let count = set.map(|set| (u64::from(set.count()), meaning));
    section.fact("processors", count);
}

fn cgroups(section: &mut Section, group_min: u64) {
    let groups = proc::text("/proc/self/cgroup");
    let (memory, processors) = match groups.and_then(|groups| Ok((groups, mounts::mounts()?))) {
        Ok((groups, mounts)) => (
            cgroups::memory(&groups, &mounts),
            cgroups::limit(&groups, &mounts, "cpu", processors_of_group),
        ),
        Err(why) => (Found::Hidden(why.clone()), Found::Hidden(why)),
    };
    if let Some(bytes) = limit(section, "cgroup memory", memory, "memory") {
        group_memory(section, bytes as u64, group_min);
    }
    if let Some(processors) = limit(section, "cgroup cpu", processors, "processor time") {
        section.check(Check::fair(
            format!("the control group has the time of {processors:.2} processors"),
            "more --threads don't help; raise cpu.max",
        ));
        let meaning =
            "the group is stopped when it has used up its time: more --threads don't help";
        section.add("cgroup cpu", format!("{processors:.2} processors"), meaning);
    }
}

/// The limit of a control group; without one, that is added to the section.
fn limit(section: &mut Section, name: &'static str, limit: Found, of: &str) -> Option<f64> {
    match limit {
        Found::Limit(limit) => return Some(limit),
        Found::None => {
            let meaning = format!("no control group limits the {of}");
            section.add(name, "no limit", meaning);
        }
        Found::Hidden(why) => section.unknown(name, why),
    }
    None
}

fn group_memory(section: &mut Section, bytes: u64, group_min: u64) {
    let memory = MemoryLimit::of_this_process();
    if bytes < group_min {
        let least = size(group_min);
        section.check(Check::bad(
            format!("the control group allows {} of memory", size(bytes)),
            format!("aggregate needs {least}: raise memory.max; count works"),
        ));
    }
    let meaning = format!(
        "beyond it processes are killed; cached pages of files count too, but go first; a run with defaults stays below \
         it (threads: {}, buffers of {})",
        memory.threads(&[]),
        size(crate::probe::machine::default_block())
    );
    section.add("cgroup memory", Value::Bytes(bytes), meaning);
}

/// How many processors' time a group has, by its directory.
fn processors_of_group(dir: &Path) -> Option<f64> {
    let v2 = proc::text(dir.join("cpu.max")).ok().and_then(|text| {
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    v2.or_else(|| {
        let quota = proc::text(dir.join("cpu.cfs_quota_us")).ok()?;
        let period = proc::number(dir.join("cpu.cfs_period_us")).ok()?;
        Some(quota.parse::<f64>().ok().filter(|&quota| quota > 0.0)? / period as f64)
    })
}
