//! The block device under a file, and the devices below it: their queues, by sysfs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringfold_read::internals::{
    describe,
    mounts::Mount,
    pages::PAGE,
    proc::{self, chosen},
    units::size,
};

use crate::probe::check::Check;
use crate::probe::findings::Section;

/// The value of drivers that have no limit on a request.
const NO_LIMIT_KB: u64 = i32::MAX as u64;
/// The most devices of a stack that are reported.
const MOST: usize = 12;

/// A device, or why there is none.
pub(crate) struct Device {
    number: Result<(u32, u32), String>,
}

impl Device {
    pub(crate) fn number(dev: u64) -> Device {
        Device {
            number: Ok((rustix::fs::major(dev), rustix::fs::minor(dev))),
        }
    }

    pub(crate) fn none(why: &str) -> Device {
        Device {
            number: Err(why.into()),
        }
    }

    /// The device of a mounted file system; `dev` is the device number of a file in it.
    pub(crate) fn of_mount(dev: u64, mount: &Mount) -> Device {
        if rustix::fs::major(dev) != 0 {
            return Device::number(dev);
        }
        // btrfs and others have device numbers of their own; the mount names the block device.
        match fs::metadata(&mount.source) {
            Ok(meta) if meta.file_type().is_block_device() => Device::number(meta.rdev()),
            _ => Device::none(&match mount.fs.as_str() {
                "overlay" => {
                    "an overlay doesn't say which layer holds the file: probe a file of the layer"
                        .into()
                }
                "tmpfs" | "ramfs" | "devtmpfs" => format!("{} lies in memory", mount.fs),
                name => format!("{name} names no block device"),
            }),
        }
    }
}

impl Device {
    /// How far the file system on it reads ahead; `dev` is the device number of a file in it.
    pub(crate) fn read_ahead_kb(&self, dev: u64, fs: &str) -> Result<u64, String> {
        let (major, minor) = self.number.clone()?;
        if fs != "btrfs" {
            // The number of a block device, or of the file system on it.
            let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
            return proc::number(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
        }
        let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let name = name_of(&device.canonicalize().unwrap_or(device));
        let volumes = fs::read_dir("/sys/fs/btrfs").into_iter();
        let volume = (volumes.flatten().flatten())
            .map(|volume| volume.path())
            .find(|volume| volume.join("devices").join(&name).exists());
        let volume = volume.ok_or_else(|| format!("no volume of {name} in /sys/fs/btrfs"))?;
        proc::number(volume.join("bdi/read_ahead_kb"))
    }
}

/// A section for the device and for each device below it.
pub(crate) fn look(device: Device) -> Vec<Section> {
    let dir = device.number.and_then(|(major, minor)| {
        let link = format!("/sys/dev/block/{major}:{minor}");
        let dir = Path::new(&link).canonicalize();
        dir.map_err(|error| format!("{link}: {}", describe(&error)))
    });
    let dir = match dir {
        Ok(dir) => dir,
        Err(why) => {
            let mut section = Section::new("device", None);
            section.unknown("device", why);
            return vec![section];
        }
    };
    let mut sections = Vec::new();
    let mut dirs = vec![dir];
    while let Some(dir) = dirs.pop() {
        if sections.len() == MOST {
            break;
        }
        let (section, below) = one(&dir);
        sections.push(section);
        dirs.extend(below.into_iter().rev());
    }
    sections
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    // sysfs replaces the slash in a device's name.
    name.to_string_lossy().replace('!', "/")
}

/// A device's section, and the directories of the devices below it.
fn one(dir: &Path) -> (Section, Vec<PathBuf>) {
    let name = name_of(dir);
    let mut section = Section::new("device", Some(name.clone()));
    let number = proc::text(dir.join("dev"));
    let (disk, below) = stack(&mut section, dir, number);
    let queue = disk.join("queue");
    // A drive with several controllers counts as virtual in sysfs, but isn't.
    let own = disk.components().any(|part| part.as_os_str() == "virtual")
        && !name_of(&disk).starts_with("nvme");
    if !own {
        model(&mut section, &disk);
    }
    facts(&mut section, &queue);
    polls(&mut section, &disk, &queue);
    if !own {
        node(&mut section, &disk);
    }
    is_virtual(&mut section, &disk, own);
    (section, below)
}

/// Its number and the devices below it; returns the whole disk and these devices.
fn stack(
    section: &mut Section,
    dir: &Path,
    number: Result<String, String>,
) -> (PathBuf, Vec<PathBuf>) {
    let number = number.map(|number| (number, "its name in /sys/dev/block"));
    section.fact("number", number);
    let disk = match (dir.join("partition").exists(), dir.parent()) {
        (true, Some(disk)) => {
            let meaning = "a partition: the queue below is that of the disk";
            section.add("stands on", name_of(disk), meaning);
            disk.to_path_buf()
        }
        _ => dir.to_path_buf(),
    };
    let mut below: Vec<PathBuf> = fs::read_dir(disk.join("slaves"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.path().canonicalize().ok())
        .collect();
    below.sort();
    if !below.is_empty() {
        let names: Vec<_> = below.iter().map(|dir| name_of(dir)).collect();
        let meaning =
            "a stack: each read goes through this queue's limits, then through those below";
        section.add("stands on", names.join(" "), meaning);
    }
    if let Ok(backing) = proc::text(disk.join("loop/backing_file")) {
        let meaning = match proc::number(disk.join("loop/dio")) {
            Ok(1) => "a loop device that reads its file past the page cache",
            _ => {
                "a loop device that reads its file through the page cache: what is measured may be \
                  memory, even with --direct"
            }
        };
        section.add("stands on", backing, meaning);
    }
    (disk, below)
}

fn model(section: &mut Section, disk: &Path) {
    const MEANING: &str =
        "look up what it is said to read a second: that is the floor of a cold run";
    let words = |name: &str| proc::text(disk.join("device").join(name));
    // The vendor of a PCI or virtio device is only a number.
    let vendor = words("vendor")
        .ok()
        .filter(|vendor| !vendor.starts_with("0x"));
    let model = words("model").map(|model| match vendor {
        Some(vendor) => (format!("{} {}", vendor.trim(), model.trim()), MEANING),
        None => (model.trim().to_string(), MEANING),
    });
    section.fact("model", model.map_err(|_| "the driver names none"));
}

/// What sysfs says of the queue, and what follows for reads.
fn facts(section: &mut Section, queue: &Path) {
    let number = |name: &str| proc::number(queue.join(name));
    let rotational = number("rotational");
    let path = queue.join("scheduler");
    let scheduler = proc::text(&path);
    let scheduler = scheduler.as_deref().map(chosen);
    if let (Ok(0), Ok(other)) = (&rotational, scheduler)
        && other != "none"
    {
        section.check(Check::fair(
            format!("reads go through the scheduler {other}: none costs less"),
            format!("echo none > {} (as root)", path.display()),
        ));
    }
    let rotational = rotational.map(|n| match n {
        0 => (
            false,
            "no seeks: deep queues and many spans at once are cheap",
        ),
        _ => (
            true,
            "a disk that seeks, or a virtual one that doesn't say: large blocks in order are best",
        ),
    });
    section.fact("rotational", rotational);
    let meaning = |name: &str| match name {
        "none" => "reads go to the device as they are submitted",
        "bfq" => "bfq shares the device fairly, at some cost: `none` is faster for one reader",
        _ => {
            "it may reorder reads; for a fast drive `none` costs less (root: echo none to its queue/scheduler)"
        }
    };
    section.fact("scheduler", scheduler.map(|name| (name, meaning(name))));
    let block = crate::probe::machine::default_block();
    let shown = size(block);
    let requests = |n: u64| match n {
        1 => "one request".to_string(),
        n => format!("{n} requests"),
    };
    let facts: [(&'static str, &dyn Fn(u64) -> String); 7] = [
        ("nr_requests", &|n| {
            format!(
                "requests that wait in a queue of the device: --queue-depth up to {n} of {shown} can be taken, if none \
                 is split"
            )
        }),
        ("max_segments", &|n| match n {
            0 => "no limit".into(),
            n => {
                let pieces = block / PAGE as u64;
                let split = pieces.div_ceil(n);
                let follows = match split {
                    1 => "huge pages spare the work on pieces, not requests",
                    _ => "keep huge pages on, in which it is one piece or two",
                };
                let requests = requests(split);
                format!(
                    "a read of {shown} into 4 KiB pages is {pieces} pieces of memory, so {requests}: {follows}"
                )
            }
        }),
        ("max_sectors_kb", &|n| match n {
            0 => "no limit".into(),
            n => {
                let (most, requests) = (size(n << 10), requests(block.div_ceil(n << 10)));
                format!("a request carries at most {most}: a block of {shown} takes {requests}")
            }
        }),
        ("max_hw_sectors_kb", &|most| {
            match number("max_sectors_kb") {
                _ if most >= NO_LIMIT_KB => "the device names no limit of its own",
                Ok(now) if most > now => {
                    "what the device could take: root may raise max_sectors_kb up to it for larger blocks"
                }
                _ => "what the device can take, and does",
            }
            .into()
        }),
        ("read_ahead_kb", &|n| {
            match n {
                0 => "no read-ahead: buffered reads wait for the device each time; use --direct",
                1..512 => {
                    "short for buffered engines: root may raise it (1024 or more), or use --direct"
                }
                _ => "long enough for buffered engines",
            }
            .into()
        }),
        ("logical_block_size", &|_| {
            "the device's own unit: reads past the page cache are multiples of it".into()
        }),
        ("physical_block_size", &|_| {
            "what the drive reads at least: smaller blocks waste the rest".into()
        }),
    ];
    for (name, meaning) in facts {
        section.fact(name, number(name).map(|n| (n, meaning(n))));
    }
}

fn polls(section: &mut Section, disk: &Path, queue: &Path) {
    let name = name_of(disk);
    let drivers = [("nvme", "nvme"), ("vd", "virtio_blk")];
    let driver = drivers.iter().find(|(disks, _)| name.starts_with(disks));
    let wanted = driver.map(|(_, driver)| {
        let path = format!("/sys/module/{driver}/parameters/poll_queues");
        (driver, proc::number(path))
    });
    let polls = proc::number(queue.join("io_poll")).map(|n| match (n, wanted) {
        (0, Some((driver, Ok(0)))) => Err(format!(
            "--iopoll isn't available: the driver was loaded with {driver}.poll_queues=0; boot with \
             {driver}.poll_queues=2 to have some"
        )),
        (0, Some((driver, Ok(n)))) => {
            Err(format!("--iopoll isn't available, although {driver}.poll_queues is {n}"))
        }
        (0, _) => Err("--iopoll isn't available, and its driver has none".into()),
        _ => Ok("--iopoll is available (--engine uring-raw --direct); it helps with small blocks"),
    });
    match polls {
        Ok(tried) => {
            section.works("poll queues", tried);
        }
        Err(why) => section.unknown("poll queues", why),
    }
}

/// The NUMA node of the nearest device above it in sysfs that has one.
fn node(section: &mut Section, disk: &Path) {
    let device = disk.join("device").canonicalize().ok();
    let above = device.iter().flat_map(|device| device.ancestors());
    // A drive with several controllers has none itself, but its controllers do.
    let controllers: Vec<PathBuf> = fs::read_dir(disk.join("device"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| name_of(path).starts_with("nvme"))
        .collect();
    let node = disk
        .ancestors()
        .chain(above)
        .chain(controllers.iter().map(PathBuf::as_path))
        .find_map(|dir| proc::text(dir.join("numa_node")).ok());
    let node = node.ok_or("the device names none");
    let node = node.and_then(|node| match &*node {
        "-1" => Err("the device belongs to none (-1)"),
        _ => {
            let meaning = format!(
                "on several nodes, run there: numactl --cpunodebind={node} --membind={node}"
            );
            Ok((node, meaning))
        }
    });
    section.fact("NUMA node", node);
}

/// Whether the disk is a virtual machine's, or made by this kernel (`own`).
fn is_virtual(section: &mut Section, disk: &Path, own: bool) {
    const NAME: &str = "virtual";
    const CAVEAT: &str = "the host's cache may serve reads: \"cold\" is then not the drive's speed, and differs by \
                          the minute; compare only runs that were interleaved";
    let path = disk.to_string_lossy();
    let name = name_of(disk);
    let host = || {
        Check::fair(
            format!(
                "{name} may be a virtual disk: cold times depend on its host, and change by the minute"
            ),
            "compare only runs that were interleaved",
        )
    };
    if own {
        let meaning = "made by this kernel: as fast as what it stands on";
        return section.add(NAME, true, meaning);
    }
    if path.contains("/virtio") || path.contains("/vmbus") || name.starts_with("xvd") {
        section.check(host());
        return section.add(NAME, true, CAVEAT);
    }
    if says_hypervisor() || Path::new("/sys/hypervisor/type").exists() {
        section.check(host());
        let meaning = format!("the machine is a virtual one, so its disks may be, too: {CAVEAT}");
        return section.add(NAME, "perhaps", meaning);
    }
    let meaning = "no sign of a virtual machine: a cold read is the drive's";
    section.add(NAME, false, meaning);
}

/// Whether the processor says that it belongs to a virtual machine.
pub(crate) fn says_hypervisor() -> bool {
    let cpuinfo = proc::text("/proc/cpuinfo").unwrap_or_default();
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| {
        line.split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

#[cfg(test)]
mod tests {
    use crate::probe::device::*;
    use crate::probe::findings::Value;

    fn value(section: &Section, name: &str) -> Option<Value> {
        let entry = section.entries.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.value.clone())
    }

    fn write(dir: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    /// A logical volume on a partition of a drive, as sysfs shows it.
    #[test]
    fn a_stack_with_a_partition() {
        let sys = tempfile::tempdir().unwrap();
        let sys = sys.path().canonicalize().unwrap();
        let (pci, dm) = (sys.join("pci"), sys.join("virtual/dm-0"));
        let drive = pci.join("nvme/nvme0/nvme0n1");
        write(&pci, &[("numa_node", "1")]);
        write(
            &drive,
            &[
                ("device/model", "A drive"),
                ("queue/scheduler", "[none] mq-deadline"),
                ("queue/max_segments", "127"),
                ("queue/max_sectors_kb", "128"),
                ("queue/io_poll", "1"),
                ("nvme0n1p2/partition", "2"),
                ("nvme0n1p2/dev", "259:2"),
            ],
        );
        write(&dm, &[("dev", "252:0"), ("queue/rotational", "0")]);
        fs::create_dir(dm.join("slaves")).unwrap();
        let partition = drive.join("nvme0n1p2");
        std::os::unix::fs::symlink(&partition, dm.join("slaves/nvme0n1p2")).unwrap();

        let (section, below) = one(&dm);
        assert_eq!(below, [partition.as_path()]);
        assert_eq!(value(&section, "stands on"), Some("nvme0n1p2".into()));
        assert_eq!(value(&section, "rotational"), Some(false.into()));
        assert_eq!(value(&section, "scheduler"), Some(Value::Unknown));
        assert_eq!(value(&section, "model"), None);

        let (section, below) = one(&partition);
        assert!(below.is_empty());
        for (name, want) in [
            ("number", Value::from("259:2")),
            ("stands on", "nvme0n1".into()),
            ("model", "A drive".into()),
            ("scheduler", "none".into()),
            ("max_segments", 127.into()),
            ("poll queues", true.into()),
            ("NUMA node", "1".into()),
        ] {
            assert_eq!(value(&section, name), Some(want), "{name}");
        }
        let meaning = |name: &str| {
            let entry = section.entries.iter().find(|entry| entry.name == name);
            entry.unwrap().meaning.clone()
        };
        assert!(meaning("max_segments").contains("2 requests: keep huge pages on"));
        assert!(meaning("max_sectors_kb").contains("takes 4 requests"));
    }
}
