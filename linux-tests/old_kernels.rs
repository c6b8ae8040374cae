//! Kernels older than this one, emulated, with a file on ext4. The emulated processors lack AVX-512, and
//! one of them AVX2.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use crate::probe::skip;
use crate::qemu;
use crate::support::{dir, end, ringfold, rows, str, write};

/// What is run there: the arguments, and what a refusal must name.
const RUNS: [(&str, &str); 26] = [
    ("aggregate --engine auto", ""),
    ("aggregate --engine auto --cache none", ""),
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

/// The initial memory file system, with an image of ext4 that holds the file.
fn prepare(dir: &Path, text: &[u8]) -> Result<(), String> {
    write(dir, "file", text);
    let answer = end(&mut ringfold(["aggregate", str(&dir.join("file"))])).answer();
    let mut script = String::from(
        "mount -o loop,ro /image /mnt && echo KERNEL $(uname -r)\n\
         run() {\n\
         echo 3 > /proc/sys/vm/drop_caches\n\
         ringfold \"$@\" /mnt/file >/out 2>/err; code=$?\n\
         if cmp -s /out /want; then same=answer; elif [ -s /out ]; then same=other; else same=nothing; fi\n\
         echo \"RAN $code $same $(wc -l </err) $(tr '\\n' ' ' </err)\"\n\
         }\n",
    );
    for (args, _) in RUNS {
        writeln!(script, "run {args}").unwrap();
    }
    script += "ringfold probe /mnt/file >/out 2>/err; echo PROBE $? $(cat /err)\n";
    qemu::make_root(dir, &script)?;
    write(&dir.join("root"), "want", &answer);
    qemu::shell(
        dir,
        "mkdir files && mv file files/file
         truncate -s 24M root/image && mkfs.ext4 -q -F -d files root/image",
    )
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
        // A small input stays in the page cache: auto wants no ring for it by itself.
        let wants_ring = args.contains("--direct") || args.contains("--cache none");
        let auto = args.contains("--engine auto") && wants_ring;
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
    let kernels = match qemu::kernels() {
        Ok(kernels) => kernels,
        Err(reason) => return skip(test, reason),
    };
    let dir = dir();
    // More than `auto` simply reads.
    if let Err(reason) = prepare(dir.path(), &rows(650_000, None, 35)) {
        return skip(test, reason);
    }
    for (kernel, cpu) in kernels.iter().zip(["qemu64", "max"].into_iter().cycle()) {
        let started = Instant::now();
        let machine = ["-cpu", cpu, "-m", "768", "-smp", "2"];
        let console = match qemu::boot(dir.path(), kernel, &["loop"], &machine) {
            Ok(console) => console,
            Err(reason) => panic!("{}: {reason}", kernel.display()),
        };
        check(&console, cpu);
        println!("{} on {cpu}: {:?}", kernel.display(), started.elapsed());
    }
}
