//! Kernels older than this one, booted by qemu's emulation, with the program, its libraries and a
//! file on ext4 in the initial memory file system. The emulated processors lack AVX-512, and one of
//! them AVX2.
//!
//! `make test-all` fetches the kernels; RINGFOLD_KERNELS names directories of unpacked kernel
//! packages, with a colon between.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::probe::skip;
use crate::support::{dir, end, ringfold, rows, str, write};

const KERNELS: &str = "RINGFOLD_KERNELS";
const QEMU: &str = "qemu-system-x86_64";

/// What is run there: the arguments, and what a refusal must name.
const RUNS: [(&str, &str); 25] = [
    ("aggregate --engine auto", ""),
    ("aggregate --engine auto --direct", ""),
    ("aggregate --engine auto --direct --block-size 64K", ""),
    ("aggregate --engine uring", "io_uring"),
    ("aggregate --engine uring --direct", "io_uring"),
    ("aggregate --engine uring --block-size 4K", "io_uring"),
    (
        "aggregate --engine uring --registered-buffers on",
        "io_uring",
    ),
    ("aggregate --engine uring --sqpoll", "--sqpoll"),
    ("aggregate --engine uring --async", "--async"),
    ("aggregate --engine uring --async=2", "--async=2"),
    (
        "aggregate --engine uring --task-run coop",
        "--task-run coop",
    ),
    ("aggregate --engine uring --dontcache", "--dontcache"),
    ("aggregate --engine uring-raw", "uring-raw"),
    (
        "aggregate --engine uring-raw --direct --rings 2",
        "uring-raw",
    ),
    ("aggregate --engine uring-raw --sqpoll", "--sqpoll"),
    (
        "aggregate --engine uring-raw --registered-files",
        "--registered-files",
    ),
    (
        "aggregate --engine uring-raw --task-run coop",
        "--task-run coop",
    ),
    (
        "aggregate --engine uring-raw --task-run defer",
        "--task-run defer",
    ),
    ("aggregate --engine read", ""),
    ("aggregate --engine read --direct", ""),
    ("aggregate --engine pread", ""),
    ("aggregate --engine pread --direct", ""),
    ("aggregate --engine mmap", ""),
    ("aggregate --engine mmap --populate on", "--populate on"),
    ("aggregate --engine memory", ""),
];

fn shell(dir: &Path, script: &str) -> Result<(), String> {
    let done = Command::new("sh")
        .args(["-ec", script])
        .current_dir(dir)
        .output()
        .unwrap();
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
    }
}

/// A file below a directory whose name begins so.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?;
    let mut below: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    below.sort();
    below.iter().find_map(|path| match path.is_dir() {
        true => find(path, name),
        false => path
            .file_name()?
            .to_str()?
            .starts_with(name)
            .then(|| path.clone()),
    })
}

/// The initial memory file system: everything but the kernel's module for loop devices.
fn make_root(dir: &Path, text: &[u8]) -> Result<(), String> {
    write(dir, "file", text);
    let answer = end(&mut ringfold(["aggregate", str(&dir.join("file"))])).answer();
    let root = dir.join("root");
    for below in ["bin", "proc", "sys", "dev", "mnt"] {
        fs::create_dir_all(root.join(below)).unwrap();
    }
    write(&root, "want", &answer);
    let program = env!("CARGO_BIN_EXE_ringfold");
    shell(
        dir,
        &format!(
            "busybox=$(command -v busybox) || {{ echo no busybox >&2; exit 1; }}
             ! ldd $busybox >/dev/null 2>&1 || {{ echo busybox is not static >&2; exit 1; }}
             cp $busybox root/bin/busybox
             strip -o root/bin/ringfold {program} || cp {program} root/bin/ringfold
             ldd {program} | grep -o '/[^ ]*' | while read library; do
               mkdir -p root$(dirname $library) && cp -L $library root$library
             done
             mkdir files && mv file files/file
             truncate -s 24M root/image && mkfs.ext4 -q -F -d files root/image"
        ),
    )?;
    let mut init = String::from(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev\n\
         dmesg -n 1\n\
         [ ! -f /loop.ko ] || insmod /loop.ko\n\
         mount -o loop,ro /image /mnt && echo KERNEL $(uname -r)\n\
         run() {\n\
         echo 3 > /proc/sys/vm/drop_caches\n\
         ringfold \"$@\" /mnt/file >/out 2>/err; code=$?\n\
         if cmp -s /out /want; then same=answer; elif [ -s /out ]; then same=other; else same=nothing; fi\n\
         echo \"RAN $code $same $(wc -l </err) $(tr '\\n' ' ' </err)\"\n\
         }\n",
    );
    for (args, _) in RUNS {
        writeln!(init, "run {args}").unwrap();
    }
    init += "ringfold probe /mnt/file >/out 2>/err; echo PROBE $? $(cat /err)\nsync; poweroff -f\n";
    write(&root, "init", init.as_bytes());
    shell(dir, "chmod +x root/init")
}

/// Boots a kernel and returns what its console showed.
fn boot(dir: &Path, kernel: &Path, cpu: &str) -> Result<String, String> {
    let image = find(&kernel.join("boot"), "vmlinuz")
        .ok_or_else(|| format!("no boot/vmlinuz in {}", kernel.display()))?;
    let _ = fs::remove_file(dir.join("root/loop.ko"));
    // Where there is none it is built in.
    if let Some(module) = find(&kernel.join("lib"), "loop.ko") {
        fs::copy(module, dir.join("root/loop.ko")).unwrap();
    }
    shell(
        dir,
        "cd root && find . | busybox cpio -o -H newc >../initrd 2>/dev/null",
    )?;
    let mut qemu = Command::new("timeout");
    qemu.args(["-s", "KILL", "400", QEMU, "-accel", "tcg", "-cpu", cpu])
        .args(["-m", "768", "-smp", "2", "-nographic", "-no-reboot"])
        .args(["-nic", "none", "-append", "console=ttyS0 quiet panic=-1"])
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(dir.join("initrd"))
        .stdin(Stdio::null());
    let output = qemu.output().map_err(|error| format!("{QEMU}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

/// A release's first two numbers.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(['.', '-']).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn check(console: &str, cpu: &str) {
    // The firmware leaves its own marks on that line.
    let release = console
        .lines()
        .find_map(|line| Some(line.split_once("KERNEL ")?.1));
    let release = release.unwrap_or_else(|| panic!("it didn't boot: {console}"));
    let ran: Vec<_> = console
        .lines()
        .filter_map(|line| line.strip_prefix("RAN "))
        .collect();
    assert_eq!(ran.len(), RUNS.len(), "{release}: it hung: {console}");
    let mut answers = 0;
    for ((args, flag), line) in RUNS.iter().zip(ran) {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or("");
        let (code, answer, lines, said) = (part(), part(), part(), part());
        println!("{release} {cpu}: {args}: {code}, {answer}; {said}");
        let auto = args.contains("--engine auto");
        match code {
            "0" => {
                assert_eq!(answer, "answer", "{release}: {args}: {said}");
                // Before 6.1 auto doesn't trust the ring, and says so.
                let notices = if auto && version(release) < (6, 1) {
                    "1"
                } else {
                    "0"
                };
                assert_eq!(lines, notices, "{release}: {args}: {said}");
                answers += 1;
            }
            _ => {
                assert_eq!(
                    (code, answer, lines),
                    ("1", "nothing", "1"),
                    "{release}: {args}: {said}"
                );
                assert!(said.starts_with("ringfold: "), "{release}: {args}: {said}");
                assert!(
                    !flag.is_empty() && said.contains(flag),
                    "{release}: {args}: {said}"
                );
            }
        }
    }
    assert!(answers >= 12, "{release}: {answers} answers");
    let probe = console.lines().find(|line| line.starts_with("PROBE "));
    assert_eq!(probe.map(str::trim), Some("PROBE 0"), "{release}");
}

#[test]
fn old_kernels_give_the_answer_or_name_what_they_lack() {
    let test = "old_kernels_give_the_answer_or_name_what_they_lack";
    let Some(kernels) = std::env::var_os(KERNELS).filter(|kernels| !kernels.is_empty()) else {
        return skip(
            test,
            format_args!("{KERNELS} names no kernels: make test-all fetches some"),
        );
    };
    if let Err(error) = Command::new(QEMU).arg("--version").output() {
        return skip(test, format_args!("{QEMU}: {error}"));
    }
    let dir = dir();
    // More than `auto` simply reads.
    if let Err(reason) = make_root(dir.path(), &rows(650_000, None, 35)) {
        return skip(test, reason);
    }
    let kernels = std::env::split_paths(&kernels);
    for (kernel, cpu) in kernels.zip(["qemu64", "max"].into_iter().cycle()) {
        let started = Instant::now();
        let console = match boot(dir.path(), &kernel, cpu) {
            Ok(console) => console,
            Err(reason) => panic!("{}: {reason}", kernel.display()),
        };
        check(&console, cpu);
        println!("{} on {cpu}: {:?}", kernel.display(), started.elapsed());
    }
}
