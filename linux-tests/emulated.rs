//! Hardware that isn't at hand, emulated: two NVMe drives with poll queues, and two NUMA nodes. Every
//! knob that takes such hardware gives the answer there, and does what it says.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::probe::skip;
use crate::qemu;
use crate::support::{dir, end, ringfold, rows, str, write};

/// Flags of `aggregate` over the files of both drives. All must be granted, but for the last ones.
const RUNS: [&str; 13] = [
    "--engine auto --direct",
    "--engine uring --direct",
    "--engine uring --direct --sqpoll",
    "--engine uring-raw --direct",
    "--engine uring-raw --direct --rings 2",
    "--engine uring-raw --direct --rings 3 --registered-files",
    "--engine uring-raw --direct --iopoll",
    "--engine uring-raw --direct --iopoll --block-size 64K --queue-depth 32",
    "--engine uring-raw --direct --iopoll --rings 2",
    "--engine uring-raw --direct --iopoll --sqpoll",
    "--engine pread --direct",
    "--engine mmap",
    REFUSED,
];

/// More than a drive takes as one request can't be polled for.
const REFUSED: &str = "--engine uring-raw --direct --iopoll --block-size 512K";

/// What the machine runs. For each run: the reads that both drives finished, their interrupts, the
/// processors that the rings' threads were bound to, and the statistics.
fn script() -> String {
    let mut script = String::from(
        "mkdir /mnt/0 /mnt/1\n\
         mount -o ro /dev/nvme0n1 /mnt/0 && mount -o ro /dev/nvme1n1 /mnt/1\n\
         echo KERNEL $(uname -r) polls $(cat /sys/block/nvme*n1/queue/io_poll) \
           nodes $(cat /sys/devices/system/node/online) \
           sectors $(cat /sys/block/nvme*n1/queue/logical_block_size)\n\
         reads() { cat /sys/block/nvme*n1/stat | awk '{ sum += $1 } END { print sum }'; }\n\
         interrupts() {\n\
           awk '/nvme[0-9]+q[1-9]/ { for (n = 2; $n ~ /^[0-9]+$/; n++) sum += $n } END { print sum + 0 }' /proc/interrupts\n\
         }\n\
         bound() {\n\
           seen=\n\
           while read -r _ _ state _ </proc/$1/stat && [ $state != Z ]; do\n\
             for task in /proc/$1/task/*; do\n\
               read -r name <$task/comm || continue\n\
               case $name in ring-*)\n\
                 while read -r key value; do\n\
                   [ $key != Cpus_allowed_list: ] || seen=\"$seen $name=$value\"\n\
                 done <$task/status ;;\n\
               esac\n\
             done 2>/dev/null\n\
           done 2>/dev/null\n\
           printf '%s\\n' $seen | sort -u | tr '\\n' ';'\n\
         }\n\
         run() {\n\
           echo 3 > /proc/sys/vm/drop_caches\n\
           reads=$(reads) interrupts=$(interrupts)\n\
           ringfold aggregate --stats=json \"$@\" /mnt/0/file /mnt/1/file >/out 2>/err &\n\
           pid=$!\n\
           bound=$(bound $pid)\n\
           wait $pid; code=$?\n\
           cmp -s /out /want && same=answer || same=other\n\
           echo \"RAN $code $same $(($(reads) - reads)) $(($(interrupts) - interrupts)) ${bound:-none}\"\n\
           echo \"SAID $(tr '\\n' ' ' </err)\"\n\
         }\n",
    );
    for args in RUNS {
        writeln!(script, "run {args}").unwrap();
    }
    script
}

/// The initial memory file system and the images of the drives.
fn prepare(dir: &Path) -> Result<(), String> {
    write(dir, "0", &rows(400_000, None, 35));
    write(dir, "1", &rows(300_000, None, 36));
    let mut aggregate = ringfold(["aggregate", str(&dir.join("0")), str(&dir.join("1"))]);
    let answer = end(&mut aggregate).answer();
    qemu::make_root(dir, &script())?;
    write(&dir.join("root"), "want", &answer);
    qemu::shell(
        dir,
        "for drive in 0 1; do
           mkdir files$drive && mv $drive files$drive/file
           truncate -s 24M drive$drive && mkfs.ext4 -q -F -b 4096 -d files$drive drive$drive
         done",
    )
}

/// The numbers after a word of a line.
fn after<'a>(line: &'a str, word: &str) -> Vec<&'a str> {
    let words = line.split_whitespace().skip_while(|&w| w != word).skip(1);
    words
        .take_while(|w| w.starts_with(|c: char| c.is_ascii_digit()))
        .collect()
}

fn check(console: &str) {
    let machine = console
        .lines()
        .find_map(|line| Some(line.split_once("KERNEL ")?.1));
    let machine = machine.unwrap_or_else(|| panic!("it didn't boot: {console}"));
    assert_eq!(after(machine, "polls"), ["1", "1"], "{machine}");
    assert_eq!(after(machine, "nodes"), ["0-1"], "{machine}");
    assert_eq!(after(machine, "sectors"), ["512", "4096"], "{machine}");
    let lines = |mark: &'static str| {
        console
            .lines()
            .filter_map(move |line| line.strip_prefix(mark))
    };
    let ran: Vec<_> = lines("RAN ").collect();
    assert_eq!(ran.len(), RUNS.len(), "it hung: {console}");
    for ((args, line), said) in RUNS.iter().zip(ran).zip(lines("SAID ")) {
        println!("{args}: {line}");
        let mut parts = line.splitn(5, ' ');
        let mut part = || parts.next().unwrap();
        let ended = (part(), part());
        if *args == REFUSED {
            assert_eq!(ended, ("1", "other"), "{args}: {said}");
            let refusal =
                "ringfold: /mnt/0/file: --block-size 524288: one request of the device reads ";
            assert!(said.starts_with(refusal), "{args}: {said}");
            continue;
        }
        assert_eq!(ended, ("0", "answer"), "{args}: {said}");
        let [reads, interrupts] = [part(), part()].map(|number| number.parse::<u64>().unwrap());
        let bound = part();
        let stats: Value =
            serde_json::from_str(said).unwrap_or_else(|e| panic!("{args}: {e}: {said}"));
        assert_eq!(
            stats["without_effect"],
            Value::Array(Vec::new()),
            "{args}: {said}"
        );
        let has = |flag: &str| args.contains(flag);
        if has("uring") {
            let flags = format!("{}{}", stats["ring_flags"], stats["sqpoll"]).to_lowercase();
            assert_eq!(flags.contains("iopoll"), has("--iopoll"), "{args}: {said}");
            let sqpoll = flags.contains("sqpoll") || stats["sqpoll"].is_string();
            assert_eq!(sqpoll, has("--sqpoll"), "{args}: {said}");
        }
        // Reads that are polled for interrupt nobody; what few others there are belong to the file system.
        match has("--iopoll") {
            true => assert!(interrupts < reads / 2, "{args}: {line}"),
            false => assert!(interrupts > 0, "{args}: {line}"),
        }
        if has("--rings 2") {
            let apart = ["ring-0=0-1;", "ring-1=2-3;"].map(|ring| bound.contains(ring));
            assert_eq!(
                apart, [true; 2],
                "{args}: rings on nodes of their own: {bound}"
            );
        }
    }
}

#[test]
fn drives_with_poll_queues_and_numa_nodes() {
    let test = "drives_with_poll_queues_and_numa_nodes";
    let kernels = match qemu::kernels() {
        Ok(kernels) => kernels,
        Err(reason) => return skip(test, reason),
    };
    let dir = dir();
    if let Err(reason) = prepare(dir.path()) {
        return skip(test, reason);
    }
    let kernel = kernels.last().unwrap();
    let machine = "-cpu max -m 1024 -smp 4 \
        -object memory-backend-ram,size=512M,id=m0 -numa node,cpus=0-1,memdev=m0 \
        -object memory-backend-ram,size=512M,id=m1 -numa node,cpus=2-3,memdev=m1 \
        -drive file=drive0,format=raw,if=none,id=d0,snapshot=on -device nvme,drive=d0,serial=0,max_ioqpairs=8 \
        -drive file=drive1,format=raw,if=none,id=d1,snapshot=on \
        -device nvme,drive=d1,serial=1,max_ioqpairs=8,logical_block_size=4096,physical_block_size=4096";
    let machine: Vec<_> = machine.split_whitespace().collect();
    let console = qemu::boot(dir.path(), kernel, &["nvme poll_queues=1"], &machine)
        .unwrap_or_else(|reason| panic!("{}: {reason}", kernel.display()));
    check(&console);
}
