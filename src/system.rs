//! Small files of procfs and sysfs, and sizes in words.

pub(crate) mod apart;
pub(crate) mod groups;

use std::fs;
use std::path::Path;

/// A file's text without the newline at its end; or why there is none.
pub(crate) fn text(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim_end().to_string()),
        Err(error) => Err(format!(
            "{}: {}",
            path.display(),
            crate::error::describe(&error)
        )),
    }
}

/// A file that holds a number.
pub(crate) fn number(path: impl AsRef<Path>) -> Result<u64, String> {
    let path = path.as_ref();
    let text = text(path)?;
    let number = text.trim().parse();
    number.map_err(|_| format!("{}: {text:?} is no number", path.display()))
}

/// What is chosen in `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> &str {
    let inner = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(chosen, _)| chosen)
}

/// The value of a line `name: value` of a file like /proc/self/status.
pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().into());
    text.lines().find_map(value)
}

/// A field that counts kibibytes, in bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = field(text, name)?.trim_end_matches(" kB").parse().ok()?;
    kib.checked_mul(1024)
}

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub id: u64,
    /// What of the file system is mounted.
    pub root: String,
    pub point: String,
    pub fs: String,
    pub source: String,
    /// Of the mount and of the file system.
    pub options: Vec<String>,
}

/// All mounts that this process sees.
pub(crate) fn mounts() -> Result<Vec<Mount>, String> {
    let text = text("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(mount).collect())
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

/// A size as people write it: `1 MiB`, `2.5 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes == 1 {
        return "1 byte".into();
    }
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    let whole = 1u64 << (10 * unit);
    match bytes % whole {
        0 => format!("{} {}", bytes / whole, units[unit]),
        _ => format!("{:.1} {}", bytes as f64 / whole as f64, units[unit]),
    }
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

    #[test]
    fn words() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (4096, "4 KiB"),
            (2_621_440, "2.5 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
