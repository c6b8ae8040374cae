//! What this machine allows. A test that needs a feature asks for it first and says why it skips;
//! a machine that allows none of them fails [`some_of_the_features_are_here`], so that a run that
//! tested nothing is never green.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use io_uring::IoUring;

use crate::fuse::{Fuse, Pages};
use crate::support::{PROGRAM, cold, dir, ringfold, write};
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
    /// Overlay file systems may be mounted, out of others' sight.
    Overlay,
    /// Reads that leave nothing in the page cache, in the directory of the tests.
    DontCache,
    /// A kernel thread may poll a ring of ours.
    SqPoll,
    /// Rings that don't interrupt their thread.
    CoopTaskRun,
    /// Rings that do completion work when their thread asks.
    DeferTaskRun,
    /// Transparent huge pages for who asks.
    TransparentHuge,
    /// System calls can be watched, by a strace that knows the names.
    Strace,
    /// Control groups can be made that limit memory.
    MemoryGroup,
    /// A file system of the test's own can be mounted.
    Fuse,
    /// The program without a sanitizer, whose runtime wants memory and calls of its own.
    Plain,
    /// Python 3.11, whose readers are independent of ours, and whose `csv` takes zeros.
    Python,
    /// Python with a tz database.
    TimeZones,
}

const ALL: [Feature; 21] = [
    Feature::IoUring,
    Feature::Direct,
    Feature::Seccomp,
    Feature::OtherUser,
    Feature::Eviction,
    Feature::Nameless,
    Feature::DevFull,
    Feature::Procfs,
    Feature::Tmpfs,
    Feature::Overlay,
    Feature::DontCache,
    Feature::SqPoll,
    Feature::CoopTaskRun,
    Feature::DeferTaskRun,
    Feature::TransparentHuge,
    Feature::Strace,
    Feature::MemoryGroup,
    Feature::Fuse,
    Feature::Plain,
    Feature::Python,
    Feature::TimeZones,
];

/// Whether it is here.
pub fn has(feature: Feature) -> bool {
    found(feature).is_ok()
}

/// Whether a test must skip; it says so.
pub fn skips(test: &str, needs: &[Feature]) -> bool {
    for &feature in needs {
        if let Err(reason) = found(feature) {
            skip(test, format_args!("{feature:?}: {reason}"));
            return true;
        }
    }
    false
}

/// Names the file to which skipped tests are added for [`crate::catalogue`], which counts them at
/// the end of `make test`: cargo shows nothing of what a test says that passes.
pub const SKIPS: &str = "RINGFOLD_SKIPS";

/// Says that a test skips, and why.
pub fn skip(test: &str, reason: impl std::fmt::Display) {
    let line = format!("{test}: {reason}").replace('\n', " ");
    eprintln!("skip: {line}");
    if let Some(path) = std::env::var_os(SKIPS) {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(path).unwrap();
        // In one call, because tests skip at the same time.
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

fn found(feature: Feature) -> &'static Result<(), String> {
    static FOUND: [OnceLock<Result<(), String>>; ALL.len()] =
        [const { OnceLock::new() }; ALL.len()];
    FOUND[feature as usize].get_or_init(|| look(feature).map_err(|error| error.to_string()))
}

fn look(feature: Feature) -> Result<(), Box<dyn std::error::Error>> {
    match feature {
        Feature::MemoryGroup => drop(crate::group::Group::new("memory", 64 << 20)?),
        Feature::IoUring => {
            drop(IoUring::new(8)?);
            // One that runs in an emulator may lack it all the same.
            if std::env::var_os(PROGRAM).is_some() {
                let output = ringfold(["count", "--engine", "uring", "/etc/passwd"]).output()?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).trim().into());
                }
            }
        }
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
        Feature::Overlay => {
            let dir = dir();
            let output = on_overlay(dir.path(), "true").output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).trim().into());
            }
        }
        Feature::DontCache => {
            let dir = dir();
            let file = File::open(write(dir.path(), "probe", b"probe"))?;
            let mut byte = [0];
            let flags = rustix::io::ReadWriteFlags::from_bits_retain(0x80);
            rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut byte)], 0, flags)?;
        }
        Feature::SqPoll => {
            let _: IoUring = IoUring::builder().setup_sqpoll(1).build(8)?;
        }
        Feature::CoopTaskRun => {
            let _: IoUring = IoUring::builder().setup_coop_taskrun().build(8)?;
        }
        Feature::DeferTaskRun => {
            let mut builder = IoUring::builder();
            let _: IoUring = builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .build(8)?;
        }
        Feature::TransparentHuge => {
            let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")?;
            if mode.contains("[never]") {
                return Err("switched off".into());
            }
        }
        Feature::Strace => {
            let version = Command::new("strace").arg("-V").output()?.stdout;
            let version = String::from_utf8(version)?;
            let number = version
                .lines()
                .next()
                .and_then(|line| line.split(' ').next_back());
            let major = number.and_then(|number| number.split('.').next()?.parse::<u32>().ok());
            if major.is_none_or(|major| major < 6) {
                return Err(format!("{number:?} doesn't know all the names").into());
            }
            let mut command = Command::new("strace");
            let output = command.args(["-f", "-e", "trace=none", "true"]).output()?;
            if !output.status.success() {
                return Err("strace may not trace".into());
            }
        }
        Feature::Plain => {
            let flags = option_env!("RUSTFLAGS").unwrap_or_default();
            if flags.contains("sanitizer") {
                return Err(format!("built with {flags}").into());
            }
        }
        Feature::TimeZones => {
            let zone = "import zoneinfo; zoneinfo.ZoneInfo('Europe/Berlin')";
            let output = Command::new("python3").args(["-c", zone]).output()?;
            if !output.status.success() {
                return Err("zoneinfo has no Europe/Berlin".into());
            }
        }
        Feature::Python => {
            let version =
                "import sys; sys.exit(None if sys.version_info >= (3, 11) else sys.version)";
            let output = Command::new("python3").args(["-c", version]).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).trim().into());
            }
        }
        Feature::Fuse => {
            let fuse = Fuse::try_serve("probe", &b"probe"[..], Pages::None)?;
            if fs::read(fuse.path())? != b"probe" {
                return Err("it brings other bytes".into());
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

/// A shell command run where `merged` is an overlay over `lower`, in `dir`, for its eyes alone.
pub fn on_overlay(dir: &std::path::Path, command: &str) -> Command {
    let mount = "mkdir -p lower upper work merged && mount -t overlay overlay \
                 -o lowerdir=lower,upperdir=upper,workdir=work merged";
    let mut shell = Command::new("unshare");
    shell
        .args(["--mount", "sh", "-c", &format!("{mount} && {command}")])
        .current_dir(dir);
    shell
}
