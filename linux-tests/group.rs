//! Control groups with one limit, of version 1 or 2.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// A group of a test's own; it goes away.
pub struct Group(PathBuf);

impl Group {
    /// A group in which `controller`, "memory" or "pids", allows no more than `limit`.
    pub fn new(controller: &str, limit: u64) -> io::Result<Group> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfold-test-{}-{number}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let v1 = root.join(controller).is_dir();
        let dir = match v1 {
            true => root.join(controller).join(name),
            false => {
                fs::read_to_string(root.join("cgroup.controllers"))?;
                root.join(name)
            }
        };
        let file = match controller {
            "memory" if v1 => "memory.limit_in_bytes".to_string(),
            _ => format!("{controller}.max"),
        };
        fs::create_dir(&dir)?;
        let group = Group(dir);
        group.set(&file, limit)?;
        if controller == "memory" {
            // No swap beside it, where that is counted apart.
            let swap = [
                ("memory.swap.max", 0),
                ("memory.memsw.limit_in_bytes", limit),
            ];
            for (file, value) in swap {
                if group.0.join(file).exists() {
                    group.set(file, value)?;
                }
            }
        }
        Ok(group)
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    /// Lets the child begin in the group.
    pub fn take_in(&self, command: &mut Command) {
        let procs = OpenOptions::new()
            .write(true)
            .open(self.0.join("cgroup.procs"));
        sys::join(command, vec![procs.unwrap()]);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Who has just ended leaves it a moment later.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
