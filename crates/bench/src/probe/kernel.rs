//! The kernel: io_uring with its set-up flags, features and opcodes, and other system calls.

use std::fs::File;
use std::io;

use io_uring::{Builder, IoUring, cqueue, opcode, squeue};
use ringfold_read::internals::{calls, describe, errno_name, proc, reads, uring};
use ringfold_read::{Refusal, Refuser, Result};

use crate::probe::check::Check;
use crate::probe::findings::{Section, Value};
use crate::probe::pages;

/// Entries of the rings that are tried.
const ENTRIES: u32 = 8;
/// Why something of rings is unknown.
const NO_RING: &str = "there is no ring";

/// The section; whether a ring works; whether `auto` would use one on this kernel.
pub(crate) fn look() -> (Section, Result<()>, Result<()>) {
    let mut section = Section::new("kernel", None);
    let release = proc::release();
    let trusted = uring::kernel_is_trusted();
    let meaning = match &trusted {
        Ok(()) => "6.1 or later: auto uses the ring without being asked",
        Err(_) => "older than 6.1: auto reads with pread, a ring only with --engine uring",
    };
    section.add("release", release.clone(), meaning);
    let ring = uring::probe(&uring::Setup::plain()).map(drop);
    let tried = (ring.as_ref())
        .map(|()| "tried: set up, a buffer registered, a read done")
        .map_err(|error| format!("{error}: auto reads with pread, --engine uring is an error"));
    section.works("io_uring", tried);
    let sysctl = proc::number("/proc/sys/kernel/io_uring_disabled");
    section.check(match (&ring, &trusted) {
        (Ok(()), Ok(())) => Check::good("io_uring works"),
        (Ok(()), Err(_)) => Check::fair(
            format!("Linux {release} is older than 6.1: auto reads with pread"),
            "a newer kernel, or --engine uring where it works",
        ),
        (Err(error), _) => Check::bad(
            format!("no io_uring, so auto reads with pread: {error}"),
            match (&sysctl, error.refusal()) {
                (_, Some(Refusal::Unavailable { by, .. })) if *by == Refuser::LockedMemoryLimit => {
                    "raise the limit on locked memory: ulimit -l"
                }
                (_, Some(Refusal::Unavailable { by, .. })) if *by == Refuser::DescriptorLimit => {
                    "raise the limit on open files: ulimit -n"
                }
                (Ok(1 | 2), _) => "sysctl kernel.io_uring_disabled=0 (as root)",
                _ => {
                    "allow io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile of the \
                     container or service"
                }
            },
        ),
    });
    let allows = |n: u64| match n {
        0 => "the sysctl allows io_uring to everybody",
        1 => "the sysctl allows io_uring to root and kernel.io_uring_group only",
        _ => "the sysctl forbids io_uring to everybody",
    };
    let sysctl = sysctl.map(|n| (n, allows(n)));
    let sysctl = sysctl.map_err(|why| format!("{why} (the sysctl exists from 6.6 on)"));
    section.fact("io_uring_disabled", sysctl);
    if ring.is_ok() {
        features(&mut section);
        opcodes(&mut section);
    } else {
        section.unknown("features", NO_RING);
        section.unknown("opcodes", NO_RING);
    }
    flags(&mut section, ring.is_ok());
    calls(&mut section, &release);
    (section, ring, trusted)
}

type Setup = Builder<squeue::Entry, cqueue::Entry>;

fn set_up(
    flags: impl Fn(&mut Setup) -> &mut Setup,
) -> io::Result<IoUring<squeue::Entry, cqueue::Entry>> {
    uring::retry_nomem(|| {
        let mut builder = IoUring::builder();
        flags(&mut builder);
        builder.build(ENTRIES)
    })
}

fn features(section: &mut Section) {
    let ring = match set_up(|plain| plain) {
        Ok(ring) => ring,
        Err(error) => return section.unknown("features", describe(&error)),
    };
    let params = ring.params();
    let all = [
        ("single_mmap", params.is_feature_single_mmap()),
        ("nodrop", params.is_feature_nodrop()),
        ("submit_stable", params.is_feature_submit_stable()),
        ("rw_cur_pos", params.is_feature_rw_cur_pos()),
        ("cur_personality", params.is_feature_cur_personality()),
        ("fast_poll", params.is_feature_fast_poll()),
        ("poll_32bits", params.is_feature_poll_32bits()),
        ("sqpoll_nonfixed", params.is_feature_sqpoll_nonfixed()),
        ("ext_arg", params.is_feature_ext_arg()),
        ("native_workers", params.is_feature_native_workers()),
        ("rsrc_tags", params.is_feature_resource_tagging()),
        ("cqe_skip", params.is_feature_skip_cqe_on_success()),
        ("linked_file", params.is_feature_linked_file()),
    ];
    let have: Vec<_> = (all.iter())
        .filter_map(|(name, has)| has.then_some(*name))
        .collect();
    let meaning = match (
        params.is_feature_nodrop(),
        params.is_feature_native_workers(),
    ) {
        (true, true) => "nodrop and native_workers are what ringfold needs",
        (false, _) => "without nodrop (5.5) completions could be lost: --engine pread is safer",
        (_, false) => "without native_workers (5.12) reads may run outside this process's limits",
    };
    section.add("features", have.join(" "), meaning);
}

fn opcodes(section: &mut Section) {
    let asked = set_up(|plain| plain).and_then(|ring| {
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        Ok(probe)
    });
    let found = asked.map(|probe| {
        let all = [
            ("read", opcode::Read::CODE),
            ("read_fixed", opcode::ReadFixed::CODE),
        ];
        let (have, lack): (Vec<_>, Vec<_>) =
            (all.into_iter()).partition(|(_, code)| probe.is_supported(*code));
        let names = |of: Vec<(&'static str, u8)>| {
            let names: Vec<&str> = of.into_iter().map(|(name, _)| name).collect();
            names.join(" ")
        };
        let meaning = match lack.is_empty() {
            true => "all that ringfold submits".to_string(),
            false => format!("the ring can't be used without {}", names(lack)),
        };
        (names(have), meaning)
    });
    section.fact("opcodes", found.map_err(|error| describe(&error)));
}

/// Tries each set-up flag that a knob sets.
fn flags(section: &mut Section, ring: bool) {
    type Set = fn(&mut Setup) -> &mut Setup;
    let flags: [(&'static str, Set, &str, &str); 4] = [
        (
            "COOP_TASKRUN",
            |b| b.setup_coop_taskrun(),
            "--task-run coop is available: fewer interrupts of the ring's thread",
            "--task-run coop is refused (Linux 5.19)",
        ),
        (
            "DEFER_TASKRUN",
            |b| b.setup_single_issuer().setup_defer_taskrun(),
            "--task-run defer is available with --engine uring-raw",
            "--task-run defer is refused (Linux 6.1)",
        ),
        (
            "SQPOLL",
            |b| b.setup_sqpoll(1),
            "--sqpoll is available; its kernel thread uses up a processor while the run lasts",
            "--sqpoll is refused (before 5.13 it needs CAP_SYS_NICE)",
        ),
        (
            "IOPOLL",
            |b| b.setup_iopoll(),
            "a ring for --iopoll can be set up; it needs poll queues: see the device",
            "--iopoll is refused",
        ),
    ];
    for (name, set, granted, refused) in flags {
        if !ring {
            section.unknown(name, NO_RING);
            continue;
        }
        let tried = set_up(set).map(|_| granted);
        let tried = tried.map_err(|error| format!("{refused}: {}", describe(&error)));
        section.works(name, tried);
    }
}

/// The other system calls, tried on the running program's file, of which nothing is read.
fn calls(section: &mut Section, release: &str) {
    let program = File::open("/proc/self/exe");
    let program = program.map_err(|error| format!("/proc/self/exe: {}", describe(&error)));
    let program = program.as_ref();
    cachestat(section, program.map(|file| calls::cachestat(file, 0, 1)));
    let taken = program.map(|file| dontcache(file, file.metadata()?.len()));
    rwf_dontcache(section, taken, release);
    let populated = pages::populate()
        .map(|()| "--populate on is available: one call fills a mapping, not page faults")
        .map_err(|error| format!("{} (Linux 5.14): no --populate on", named(&error)));
    section.works("MADV_POPULATE_READ", populated);
}

/// The error, and its name.
pub(crate) fn named(error: &io::Error) -> String {
    match error.raw_os_error().and_then(errno_name) {
        Some(name) => format!("{} [{name}]", describe(error)),
        None => describe(error),
    }
}

/// What cachestat answers; or why it couldn't be tried.
fn cachestat(section: &mut Section, answer: Result<io::Result<u64>, &String>) {
    match answer {
        Ok(Ok(_)) => section.add("cachestat", true, "auto learns what is cached at once and exactly"),
        // It exists, but works only on one's own files.
        Ok(Err(error)) if error.raw_os_error() == Some(libc::EPERM) => section.add(
            "cachestat",
            true,
            "auto learns what is cached of files that you own or may write; of others it takes samples",
        ),
        Ok(Err(error)) => {
            let meaning = format!("{} (Linux 6.5): auto takes samples instead", named(&error));
            section.add("cachestat", false, meaning);
        }
        Err(why) => section.unknown("cachestat", why),
    }
}

/// Whether a read with RWF_DONTCACHE is taken; or why it couldn't be tried.
fn rwf_dontcache(section: &mut Section, answer: Result<io::Result<()>, &String>, release: &str) {
    const NAME: &str = "RWF_DONTCACHE";
    match answer {
        Ok(Ok(())) => {
            let meaning = "--dontcache is available where the file system allows it: see the file";
            section.add(NAME, true, meaning);
        }
        Ok(Err(error)) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => {
            section.unknown(NAME, named(&error));
        }
        Ok(Err(_)) if proc::version(release) >= Some((6, 14)) => section.add(
            NAME,
            Value::Unknown,
            "the release should have it (6.14), but the file system that ringfold itself lies on refuses it: see the \
             file",
        ),
        Ok(Err(_)) => section.add(NAME, false, "--dontcache is refused (Linux 6.14)"),
        Err(why) => section.unknown(NAME, why),
    }
}

/// Whether the kernel takes RWF_DONTCACHE for this file. The read is at its `end` and reads nothing, because
/// the flag is checked before.
pub(crate) fn dontcache(file: &File, end: u64) -> io::Result<()> {
    reads::read_at(file, &mut [0], end, reads::DONTCACHE)?;
    Ok(())
}
