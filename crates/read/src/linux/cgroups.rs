//! Limits of control groups, v1 and v2.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::linux::mounts::{self, Mount};
use crate::linux::proc;

/// The result of looking for a limit.
pub enum Found {
    /// The lowest limit.
    Limit(f64),
    /// No group has one.
    None,
    /// Unknown, and why: the probe reports it.
    Hidden(String),
}

/// The lowest limit of the controller's groups, from this process's own to the root.
pub fn limit(
    groups: &str,
    mounts: &[Mount],
    controller: &str,
    read: impl Fn(&Path) -> Option<f64>,
) -> Found {
    let dirs = group_dirs(groups, mounts, controller);
    if dirs.is_empty() {
        let why = format!("the {controller} control groups aren't mounted here");
        return Found::Hidden(why);
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
        let above = below.ancestors();
        let above = above.map(|below| Path::new(&mount.point).join(below));
        dirs.extend(above.filter(|dir| dir.is_dir()));
    }
    dirs
}

/// How many bytes the groups allow this process; beyond them it is killed.
pub fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let groups = proc::text("/proc/self/cgroup").ok()?;
        match memory(&groups, &mounts::mounts().ok()?) {
            Found::Limit(bytes) => Some(bytes as u64),
            Found::None | Found::Hidden(_) => None,
        }
    })
}

/// The same, or why there is none.
pub fn memory(groups: &str, mounts: &[Mount]) -> Found {
    limit(groups, mounts, "memory", |dir| {
        let v2 = proc::number(dir.join("memory.max"));
        v2.or_else(|_| proc::number(dir.join("memory.limit_in_bytes")))
            .ok()
            // "No limit" is a very large number with v1.
            .filter(|&limit| limit < 1 << 60)
            .map(|limit| limit as f64)
    })
}

#[cfg(test)]
mod tests {
    use crate::linux::cgroups::*;
    use crate::linux::proc;

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
        let read = |dir: &Path| proc::number(dir.join("limit")).ok().map(|n| n as f64);
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
