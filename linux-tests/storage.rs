//! Devices and file systems that fail, refuse, or want their own alignment: each for real, on loop
//! devices.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::LazyLock;

use ringfold::Engine;
use rustix::fs::ftruncate;

use crate::disks::{Disk, Loop, mount_image};
use crate::probe::{Feature, skip, skips};
use crate::support::{Ended, STATIONS, WAYS, Way, dir, end, evict, ringfold, rows, str, write};

const BLOCK: u64 = 4096;
/// The largest part of a file that the page cache holds as one.
const FOLIO: u64 = 2 << 20;
/// More than `auto` simply reads.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| rows(900_000, None, 31));

fn counted(text: &[u8], path: &Path) -> String {
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    format!("{lines} {} {}\n", text.len(), str(path))
}

fn count(way: Way, flags: &[&str], path: &Path) -> Ended {
    let mut command = ringfold(["count"]);
    end(command.args(way.flags()).args(flags).arg(path))
}

/// A run that met bytes that can't be had: one line that names them, and nothing else.
#[track_caller]
fn check_error(ended: Ended, path: &Path, bad: u64, what: &str) {
    let error = ended.failure(1);
    let range = error
        .strip_prefix(&format!("{}: byte ", str(path)))
        .and_then(|rest| rest.split_once(": "))
        .and_then(|(range, _)| range.split_once('-'));
    let (from, to) = range.unwrap_or_else(|| panic!("{what}: no bytes are named: {error}"));
    let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
    // What the page cache holds as one folio the kernel can only have as a whole.
    let end = to.next_multiple_of(FOLIO);
    assert!(from <= bad && bad < end, "{what}: {bad} isn't in: {error}");
    let errno = ["[EIO]", "[ENODATA]"];
    assert!(errno.iter().any(|errno| error.ends_with(errno)), "{error}");
}

/// Reads with every engine, a few flags each, a file of which the byte `bad` can't be had.
fn every_engine_tells(path: &Path, len: u64, bad: u64) {
    for way in WAYS.iter().copied() {
        let ways_to: &[&[&str]] = match way.engine {
            // With no populating in front the fault is a SIGBUS.
            Engine::Mmap => &[&[], &["--populate", "on"], &["--populate", "off"]],
            Engine::UringRaw => &[&[], &["--rings", "3"]],
            _ => &[&[], &["--block-size", "64K", "--threads", "3"]],
        };
        for flags in ways_to {
            evict(path, 0..len);
            check_error(
                count(way, flags, path),
                path,
                bad,
                &format!("{way:?} {flags:?}"),
            );
        }
    }
}

#[test]
fn a_bad_sector_is_told_with_its_bytes_by_every_engine() {
    let test = "a_bad_sector_is_told_with_its_bytes_by_every_engine";
    let disk = match Disk::ext4(&[("file", &LARGE)], 512) {
        Ok(disk) => disk,
        Err(reason) => return skip(test, reason),
    };
    let path = disk.path("file");
    let len = LARGE.len() as u64;
    let blocks: Vec<u64> = disk
        .said()
        .split_whitespace()
        .map(|block| block.parse().unwrap())
        .collect();
    assert_eq!(blocks.len() as u64, len.div_ceil(BLOCK));
    // The device ends within the file: what lies behind is lost.
    let cut = blocks[blocks.len() * 2 / 3];
    let image = OpenOptions::new().write(true).open(disk.image()).unwrap();
    ftruncate(&image, cut * BLOCK).unwrap();
    let bad = blocks.iter().position(|&block| block >= cut).unwrap() as u64 * BLOCK;
    every_engine_tells(&path, len, bad);
}

#[test]
fn corrupt_data_on_btrfs_is_told_with_its_bytes_by_every_engine() {
    let test = "corrupt_data_on_btrfs_is_told_with_its_bytes_by_every_engine";
    let mut text = LARGE.clone();
    let bad = text.len() * 3 / 4 / BLOCK as usize * BLOCK as usize + 100;
    let mark = b"only here;7.7\n";
    text[bad..bad + mark.len()].copy_from_slice(mark);
    let make = "truncate -s 256M image && mkfs.btrfs -q -m single -d single --rootdir files image";
    let corrupt = format!(
        "at=$(grep -abo 'only here' image | cut -d: -f1) && \
         printf XX | dd of=image bs=1 seek=$at conv=notrunc status=none && {}",
        mount_image("-o ro", 512)
    );
    let disk = match Disk::new(&[("file", &text)], &format!("{make} && {corrupt}")) {
        Ok(disk) => disk,
        Err(reason) => return skip(test, reason),
    };
    every_engine_tells(&disk.path("file"), text.len() as u64, bad as u64);
}

#[test]
fn reads_are_aligned_to_sectors_of_4_kib() {
    let test = "reads_are_aligned_to_sectors_of_4_kib";
    // Tails of every kind.
    let odd = &LARGE[..LARGE.len() / 4096 * 4096 - 1];
    let files: [(&str, &[u8]); 4] = [
        ("file", odd),
        ("whole", &LARGE[..8 << 20]),
        ("short", b"a;1.0"),
        ("past", &LARGE[..(8 << 20) + 513]),
    ];
    for (kind, made) in [
        ("ext4", Disk::ext4(&files, 4096)),
        ("xfs", Disk::xfs(&files, 4096)),
    ] {
        let disk = match made {
            Ok(disk) => disk,
            Err(reason) => {
                skip(test, format_args!("{kind}: {reason}"));
                continue;
            }
        };
        for (name, text) in files {
            aligned_reads(&disk.path(name), text);
        }
    }
}

/// Reads a file on sectors of 4 KiB by blocks of all sorts.
fn aligned_reads(path: &Path, text: &[u8]) {
    for way in WAYS.iter().copied() {
        for block in ["4K", "12K", "1M", "1020K", "1000", "100001"] {
            let any = block.ends_with(['K', 'M']);
            // In memory nothing is aligned, and tiny blocks of it are tried elsewhere.
            if block == "1000" && text.len() > 1 << 20 || way.engine == Engine::Memory {
                continue;
            }
            evict(path, 0..text.len() as u64);
            let ended = count(way, &["--block-size", block], path);
            if way.direct && !any {
                let error = ended.failure(2);
                let words = "--block-size must be a multiple of 4096 with --direct on this file";
                assert!(error.contains(words), "{error}");
            } else {
                let got = String::from_utf8(ended.answer()).unwrap();
                assert_eq!(got, counted(text, path), "{way:?} {block}");
            }
        }
    }
}

/// The size of a block device isn't what stat says, which is 0.
#[test]
fn a_block_device_is_read_to_its_end() {
    let test = "a_block_device_is_read_to_its_end";
    let dir = dir();
    for (sector, len) in [(512, (9 << 20) + 512), (4096, (9 << 20) + 4096)] {
        let text = &LARGE[..len];
        let backing = write(dir.path(), "backing", text);
        let device = match Loop::with_sectors(&backing, sector) {
            Ok(device) => device,
            Err(reason) => return skip(test, reason),
        };
        if let Err(error) = std::fs::File::open(&device.0) {
            return skip(test, format_args!("{}: {error}", device.0.display()));
        }
        for way in WAYS.iter().copied() {
            let got = count(way, &[], &device.0).answer();
            assert_eq!(
                String::from_utf8(got).unwrap(),
                counted(text, &device.0),
                "{way:?}"
            );
        }
    }
}

/// squashfs knows no O_DIRECT: `auto` reads that file through the page cache and says so once, and
/// the other file past it; --direct gives an error that says why.
#[test]
fn o_direct_refused_is_a_fallback_a_file_at_a_time() {
    let test = "o_direct_refused_is_a_fallback_a_file_at_a_time";
    if skips(
        test,
        &[Feature::IoUring, Feature::Direct, Feature::Eviction],
    ) {
        return;
    }
    let script = "mksquashfs files image -quiet -no-progress -noI -noD -noF >/dev/null && ";
    let files: [(&str, &[u8]); 2] = [("one", &LARGE), ("two", &LARGE)];
    let disk = match Disk::new(&files, &format!("{script}{}", mount_image("-o ro", 512))) {
        Ok(disk) => disk,
        Err(reason) => return skip(test, reason),
    };
    let dir = dir();
    let granted = write(dir.path(), "granted", &LARGE);
    let len = LARGE.len() as u64;
    for refused in [&["one"][..], &["one", "two"]] {
        let paths: Vec<_> = refused.iter().map(|name| disk.path(name)).collect();
        let run = |engine: &str| {
            paths
                .iter()
                .chain([&granted])
                .for_each(|path| evict(path, 0..len));
            let mut command = ringfold(["count", "--cache=none", "--engine", engine]);
            end(command.arg(&granted).args(&paths))
        };
        let want = run("read").answer();
        let (got, said) = run("auto").answer_and_notices();
        assert!(got == want);
        assert_eq!(said.lines().count(), 1, "not one notice: {said}");
        for words in [str(&paths[0]), "O_DIRECT", "reading through the page cache"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains(str(&granted)), "{said}");
    }
    let path = disk.path("two");
    for engine in ["auto", "uring", "uring-raw", "read", "pread"] {
        let mut command = ringfold(["count", "--direct", "--engine", engine]);
        let error = end(command.arg(&granted).arg(&path)).failure(1);
        assert!(error.starts_with(str(&path)), "{error}");
        assert!(
            error.contains("O_DIRECT") && error.contains("--direct"),
            "{error}"
        );
    }
}

/// What is named and can't be had on a file system is refused with the reason, by every engine;
/// unnamed, the answer comes without a word.
#[test]
fn what_file_systems_refuse_is_told_by_name() {
    let test = "what_file_systems_refuse_is_told_by_name";
    let tmpfs = "mount -t tmpfs tmpfs mnt && cp files/* mnt";
    let ramfs = "mount -t ramfs ramfs mnt && cp files/* mnt";
    let overlay = "mkdir up work && mount -t overlay overlay -o \
                   lowerdir=files,upperdir=up,workdir=work mnt";
    let btrfs = format!(
        "truncate -s 256M image && mkfs.btrfs -q --rootdir files image && {}",
        mount_image("", 512)
    );
    let mut made = 0;
    for (name, script) in [
        ("tmpfs", tmpfs),
        ("ramfs", ramfs),
        ("overlay", overlay),
        ("btrfs", &btrfs),
    ] {
        let disk = match Disk::new(&[("file", &STATIONS)], script) {
            Ok(disk) => disk,
            Err(reason) => {
                skip(test, format_args!("{name}: {reason}"));
                continue;
            }
        };
        made += 1;
        let path = disk.path("file");
        for way in WAYS.iter().copied() {
            for flag in ["--direct", "--dontcache"] {
                if way.direct
                    || flag == "--direct" && matches!(way.engine, Engine::Mmap | Engine::Memory)
                {
                    continue;
                }
                let ended = count(way, &[flag], &path);
                if ended.code == Some(0) {
                    let got = ended.answer();
                    assert_eq!(String::from_utf8(got).unwrap(), counted(&STATIONS, &path));
                } else if ended.code == Some(2) {
                    // Engines that don't read.
                    assert!(
                        matches!(way.engine, Engine::Mmap | Engine::Memory),
                        "{ended:?}"
                    );
                } else {
                    let error = ended.failure(1);
                    assert!(error.starts_with(str(&path)), "{name} {way:?}: {error}");
                    assert!(error.contains(flag), "{name} {way:?}: {error}");
                }
            }
            if !way.direct {
                let got = count(way, &[], &path).answer();
                assert_eq!(String::from_utf8(got).unwrap(), counted(&STATIONS, &path));
            }
        }
    }
    eprintln!("{made} of 4 file systems");
}
