//! The limit on open files.

use std::fs::File;

/// Descriptors that a ring and its runtime take, and some to look into /proc by.
const RESERVED: usize = 16;

/// Takes descriptors that others need, as long as files are opened that could be done without.
pub(crate) fn reserve() -> Vec<File> {
    let one = || File::open("/dev/null").ok();
    (0..RESERVED).map_while(|_| one()).collect()
}

/// Allows so many files to be open at once: raises the soft limit on descriptors to the hard one, and enlarges their
/// table now. With several threads each growth waits until all processors have seen it, so this is to be called before
/// there are any.
#[cfg(feature = "cli")]
pub fn raise_descriptor_limit(files: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it a run over few files works as well.
    let _ = setrlimit(Resource::Nofile, limit);
    // Each is opened twice, to be read past the page cache too; and 64 for everything else.
    let most = limit.current.unwrap_or(u64::MAX).saturating_sub(1);
    let wanted = most.min(files.saturating_mul(2).saturating_add(64) as u64);
    // A descriptor with the highest number; it is closed at once, and the table stays.
    if let (Ok(highest), Ok(null)) = (wanted.try_into(), File::open("/dev/null")) {
        let _ = rustix::io::fcntl_dupfd_cloexec(null, highest);
    }
}
