//! What this machine allows. A test that needs a feature asks for it first and says why it skips;
//! a machine that allows none of them fails [`some_of_the_features_are_here`], so that a run that
//! tested nothing is never green.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::sync::OnceLock;

use crate::support::{cold, dir, ringfold};
use crate::sys;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    IoUring,
    Direct,
    Seccomp,
    /// Being root: children can become somebody else.
    OtherUser,
    /// Pages can be dropped from the page cache.
    Eviction,
    /// Files without a name (O_TMPFILE).
    Nameless,
    DevFull,
    Procfs,
    Tmpfs,
    /// strace, and the right to trace.
    Strace,
}

const ALL: [Feature; 10] = [
    Feature::IoUring,
    Feature::Direct,
    Feature::Seccomp,
    Feature::OtherUser,
    Feature::Eviction,
    Feature::Nameless,
    Feature::DevFull,
    Feature::Procfs,
    Feature::Tmpfs,
    Feature::Strace,
];

/// Whether it is here.
pub fn has(feature: Feature) -> bool {
    found(feature).is_ok()
}

/// Whether a test must skip; it says so.
pub fn skips(test: &str, needs: &[Feature]) -> bool {
    for &feature in needs {
        if let Err(reason) = found(feature) {
            eprintln!("skip: {test}: {feature:?}: {reason}");
            return true;
        }
    }
    false
}

fn found(feature: Feature) -> &'static Result<(), String> {
    static FOUND: [OnceLock<Result<(), String>>; ALL.len()] =
        [const { OnceLock::new() }; ALL.len()];
    FOUND[feature as usize].get_or_init(|| look(feature).map_err(|error| error.to_string()))
}

fn look(feature: Feature) -> Result<(), Box<dyn std::error::Error>> {
    match feature {
        Feature::IoUring => drop(io_uring::IoUring::new(8)?),
        Feature::Direct => {
            let dir = dir();
            fs::write(dir.path().join("probe"), "probe")?;
            let mut options = OpenOptions::new();
            options
                .read(true)
                .custom_flags(libc::O_DIRECT)
                .open(dir.path().join("probe"))?;
        }
        Feature::Seccomp => {
            let mut command = ringfold(["--version"]);
            sys::deny_calls(&mut command, &[sys::SETUP], libc::EPERM);
            command.output()?;
        }
        Feature::OtherUser => {
            if !sys::is_root() {
                return Err("not root".into());
            }
            let mut command = ringfold(["--version"]);
            command.uid(sys::NOBODY).gid(sys::NOBODY);
            if !command.output()?.status.success() {
                return Err("nobody may not run the program".into());
            }
        }
        Feature::Eviction => {
            let dir = dir();
            let file = File::open(cold(dir.path(), "probe", &[b'x'; 1 << 20]))?;
            let mut byte = [0];
            let mut slices = [std::io::IoSliceMut::new(&mut byte)];
            // A read that may not wait finds only what is cached.
            let nowait = rustix::io::ReadWriteFlags::NOWAIT;
            match rustix::io::preadv2(&file, &mut slices, 4096, nowait) {
                Err(rustix::io::Errno::AGAIN) => {}
                other => return Err(format!("still cached after fadvise: {other:?}").into()),
            }
        }
        Feature::Nameless => {
            let mut options = OpenOptions::new();
            options
                .write(true)
                .custom_flags(libc::O_TMPFILE)
                .open(dir().path())?;
        }
        Feature::DevFull => drop(OpenOptions::new().write(true).open("/dev/full")?),
        Feature::Procfs => drop(fs::read("/proc/version")?),
        Feature::Tmpfs => {
            let fs = rustix::fs::statfs("/dev/shm")?;
            if fs.f_type as u64 != 0x0102_1994 {
                return Err("/dev/shm is no tmpfs".into());
            }
            drop(tempfile::tempfile_in("/dev/shm")?);
        }
        Feature::Strace => {
            let mut command = std::process::Command::new("strace");
            command.args(["-f", "-X", "raw", "-o", "/dev/null", "true"]);
            if !command.output()?.status.success() {
                return Err("it may not trace".into());
            }
        }
    }
    Ok(())
}

#[test]
fn some_of_the_features_are_here() {
    for feature in ALL {
        let state = found(feature)
            .as_ref()
            .map_or_else(|reason| &**reason, |()| "here");
        eprintln!("{feature:?}: {state}");
    }
    assert!(
        ALL.into_iter().any(has),
        "every test that needs the machine's help was skipped"
    );
}
