//! Small files of procfs and sysfs.

use std::fs;
use std::path::Path;

use crate::error::describe;

/// A file's text without the newline at its end, or why it can't be read.
pub fn text(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    let bytes = fs::read(path);
    let bytes = bytes.map_err(|error| format!("{}: {}", path.display(), describe(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_string())
}

/// A file that holds a number.
pub fn number(path: impl AsRef<Path>) -> Result<u64, String> {
    let path = path.as_ref();
    let text = text(path)?;
    let number = text.trim().parse();
    number.map_err(|_| format!("{}: {text:?} is no number", path.display()))
}

/// The kernel's release, such as `6.14.0-rc1`.
pub fn release() -> String {
    let release = rustix::system::uname();
    release.release().to_string_lossy().into_owned()
}

/// The version that a kernel's release begins with; `None` of another text.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The word in brackets, as in `always [madvise] never`.
pub fn chosen(text: &str) -> &str {
    let inner = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(chosen, _)| chosen)
}

/// The value of a line `name: value` of a file like /proc/self/status.
pub fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().into());
    text.lines().find_map(value)
}

/// A field that counts kibibytes, in bytes.
pub fn kib_field(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = field(text, name)?.trim_end_matches(" kB").parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use crate::linux::proc::*;

    #[test]
    fn words() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn releases() {
        assert_eq!(version("6.14.0-rc1"), Some((6, 14)));
        assert_eq!(version("7.0"), Some((7, 0)));
        assert_eq!(version("what"), None);
        assert!(version(&release()).is_some());
    }
}
