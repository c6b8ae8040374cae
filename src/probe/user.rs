//! The user and what limits this process: locked memory, open files, processors, control groups.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

use super::system::{self, Mount, size};
use super::{Section, Value};
use crate::engine::run::{buffers_within, default_buffers};

/// The capability that lifts the limit on locked memory.
const CAP_IPC_LOCK: u32 = 14;

pub(super) fn look() -> Section {
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
    match files.current {
        Some(n) => section.add("open files", n, meaning),
        None => section.add("open files", "no limit", meaning),
    }
    processors(&mut section);
    cgroups(&mut section);
    section
}

fn locked_memory(section: &mut Section) {
    let (buffers, locks) = default_buffers(threads());
    let wanted = format!(
        "a run with defaults registers {buffers} of 1 MiB ({})",
        size(locks)
    );
    let limit = getrlimit(Resource::Memlock).current;
    let lifted = system::text("/proc/self/status").ok().and_then(|status| {
        let capabilities = system::field(&status, "CapEff")?;
        let capabilities = u64::from_str_radix(&capabilities, 16).ok()?;
        Some(capabilities >> CAP_IPC_LOCK & 1 == 1)
    });
    let meaning = match (limit, lifted) {
        (_, Some(true)) => {
            format!("doesn't bind: this process has CAP_IPC_LOCK; {wanted}")
        }
        (None, _) => format!("binds nothing; {wanted}"),
        (Some(limit), _) => {
            let fit = buffers_within(limit);
            let follows = match fit >= buffers as u64 {
                true => "which fit if no other process of this user locks memory",
                false => {
                    "which don't fit: it reads into unregistered ones; raise `ulimit -l`, or lower --buffers \
                     and --queue-depth"
                }
            };
            format!("room to register {fit} buffers of 1 MiB; {wanted}, {follows}")
        }
    };
    let value = limit.map_or(Value::from("no limit"), Value::Bytes);
    section.add("locked memory", value, meaning);
}

/// How many workers a run has where nobody says otherwise.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn processors(section: &mut Section) {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => section.add(
            "processors",
            u64::from(set.count()),
            format!(
                "in the affinity mask of this process; {} workers by default",
                threads()
            ),
        ),
        Err(errno) => section.unknown("processors", errno),
    }
}

fn cgroups(section: &mut Section) {
    let groups = system::text("/proc/self/cgroup");
    let (groups, mounts) = match (groups, system::mounts()) {
        (Ok(groups), Ok(mounts)) => (groups, mounts),
        (Err(why), _) | (_, Err(why)) => {
            section.unknown("cgroup memory", &why);
            section.unknown("cgroup cpu", &why);
            return;
        }
    };
    match memory(&groups, &mounts) {
        Found::Limit(bytes) => section.add(
            "cgroup memory",
            Value::Bytes(bytes as u64),
            "beyond it processes are killed; cached pages of files count too, but go first; lower \
             --buffers or --block-size if it is small",
        ),
        Found::None => section.add("cgroup memory", "no limit", "no group binds the memory"),
        Found::Hidden(why) => section.unknown("cgroup memory", why),
    }
    let cpu = limit(&groups, &mounts, "cpu", |dir| {
        let v2 = system::text(dir.join("cpu.max")).ok().and_then(|text| {
            let (quota, period) = text.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        });
        v2.or_else(|| {
            let quota = system::text(dir.join("cpu.cfs_quota_us")).ok()?;
            let period = system::number(dir.join("cpu.cfs_period_us")).ok()?;
            Some(quota.parse::<f64>().ok().filter(|&quota| quota > 0.0)? / period as f64)
        })
    });
    match cpu {
        Found::Limit(processors) => section.add(
            "cgroup cpu",
            format!("{processors:.2} processors"),
            "the group is stopped when it has used up its time: more --threads don't help",
        ),
        Found::None => section.add(
            "cgroup cpu",
            "no limit",
            "no group binds the processor time",
        ),
        Found::Hidden(why) => section.unknown("cgroup cpu", why),
    }
}

/// How many bytes the control groups allow; beyond them processes are killed.
pub(crate) fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let groups = system::text("/proc/self/cgroup").ok()?;
        match memory(&groups, &system::mounts().ok()?) {
            Found::Limit(bytes) => Some(bytes as u64),
            Found::None | Found::Hidden(_) => None,
        }
    })
}

fn memory(groups: &str, mounts: &[Mount]) -> Found {
    limit(groups, mounts, "memory", |dir| {
        let v2 = system::number(dir.join("memory.max"));
        v2.or_else(|_| system::number(dir.join("memory.limit_in_bytes")))
            .ok()
            // "No limit" is a very large number with v1.
            .filter(|&limit| limit < 1 << 60)
            .map(|limit| limit as f64)
    })
}

enum Found {
    Limit(f64),
    None,
    Hidden(String),
}

/// The least limit of the controller's groups from this process's own to the root.
fn limit(
    groups: &str,
    mounts: &[Mount],
    controller: &str,
    read: impl Fn(&Path) -> Option<f64>,
) -> Found {
    let dirs = group_dirs(groups, mounts, controller);
    if dirs.is_empty() {
        return Found::Hidden(format!(
            "the {controller} control groups aren't mounted here"
        ));
    }
    let limits = dirs.iter().filter_map(|dir| read(dir));
    limits
        .min_by(f64::total_cmp)
        .map_or(Found::None, Found::Limit)
}

/// The directories of this process's group and of those above it, in the hierarchies (v1 and v2)
/// that may hold the controller.
fn group_dirs(groups: &str, mounts: &[Mount], controller: &str) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let v2 = controllers.is_empty();
        if !v2 && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let mount = mounts.iter().find(|mount| match v2 {
            true => mount.fs == "cgroup2",
            false => mount.fs == "cgroup" && mount.options.iter().any(|name| name == controller),
        });
        let Some(mount) = mount else {
            continue;
        };
        // A container sees its own group as the mount's root.
        let below = Path::new(path)
            .strip_prefix(&mount.root)
            .unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        dirs.extend(
            below
                .ancestors()
                .map(|below| Path::new(&mount.point).join(below))
                .filter(|dir| dir.is_dir()),
        );
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &Path, fs: &str, root: &str, options: &[&str]) -> Mount {
        Mount {
            id: 1,
            root: root.into(),
            point: point.to_str().unwrap().into(),
            fs: fs.into(),
            source: "cgroup".into(),
            options: options.iter().map(|option| option.to_string()).collect(),
        }
    }

    /// The least limit counts, wherever it stands above this process, in v1 and in v2, and where a
    /// container sees its group as the root.
    #[test]
    fn limits_of_groups() {
        let dir = tempfile::tempdir().unwrap();
        let (v1, v2) = (dir.path().join("v1"), dir.path().join("v2"));
        for group in [v1.join("a/b"), v2.join("a/b")] {
            std::fs::create_dir_all(group).unwrap();
        }
        std::fs::write(v1.join("a/limit"), "7").unwrap();
        std::fs::write(v1.join("a/b/limit"), "9").unwrap();
        std::fs::write(v2.join("a/b/limit"), "8").unwrap();
        let mounts = [
            mount(&v1, "cgroup", "/", &["rw", "memory"]),
            mount(&v2, "cgroup2", "/pod", &["rw"]),
        ];
        let read = |dir: &Path| system::number(dir.join("limit")).ok().map(|n| n as f64);
        let least = |groups: &str| match limit(groups, &mounts, "memory", read) {
            Found::Limit(limit) => Some(limit),
            _ => None,
        };
        assert_eq!(least("4:memory:/a/b\n0::/"), Some(7.0));
        assert_eq!(least("4:cpu,cpuacct:/a/b\n0::/pod/a/b"), Some(8.0));
        assert_eq!(least("4:memory:/\n0::/pod"), None);
        let none = limit("4:memory:/a", &[], "memory", read);
        assert!(matches!(none, Found::Hidden(_)));
    }
}
