//! The mounts that this process sees: /proc/self/mountinfo.

use std::os::fd::AsRawFd;

use crate::linux::proc::{field, text};

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// The kind of file system.
    pub fs: String,
    /// The device, or what the file system has for one.
    pub source: String,
    /// Of the mount and of the file system.
    pub options: Vec<String>,
}

/// All mounts that this process sees.
pub fn mounts() -> Result<Vec<Mount>, String> {
    let text = text("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(mount).collect())
}

/// The mount that an open file lies in.
pub fn of_file(file: &impl AsRawFd) -> Result<Mount, String> {
    let info = text(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = field(&info, "mnt_id").and_then(|id| id.parse::<u64>().ok());
    let found = mounts()?.into_iter().find(|mount| Some(mount.id) == id);
    found.ok_or_else(|| "its mount isn't in /proc/self/mountinfo".into())
}

fn mount(line: &str) -> Option<Mount> {
    let (before, behind) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let id = before.next()?.parse().ok()?;
    let root = unescaped(before.nth(2)?);
    let point = unescaped(before.next()?);
    let of_mount = before.next()?;
    let mut behind = behind.split(' ');
    let fs = behind.next()?.to_string();
    let source = unescaped(behind.next()?);
    let mut options: Vec<String> = Vec::new();
    for option in of_mount.split(',').chain(behind.next()?.split(',')) {
        if !options.iter().any(|known| known == option) {
            options.push(option.into());
        }
    }
    Some(Mount {
        id,
        root,
        point,
        fs,
        source,
        options,
    })
}

/// The kernel writes blanks, tabs, newlines and backslashes as three octal digits.
fn unescaped(text: &str) -> String {
    let mut out = text.to_string();
    for (code, byte) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        out = out.replace(code, byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo() {
        let line = r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime shared:2 - ext3 /dev/root rw,usrquota";
        let mount = mount(line).unwrap();
        assert_eq!(
            (mount.id, &*mount.root, &*mount.point),
            (36, "/mnt1", "/mnt 2")
        );
        assert_eq!((&*mount.fs, &*mount.source), ("ext3", "/dev/root"));
        assert_eq!(mount.options, ["rw", "noatime", "usrquota"]);
    }
}
