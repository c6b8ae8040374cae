//! The facts without which a time says nothing: machine, drive, file system, kernel's settings.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::competitors::{output_of, ringfold_version};

/// Where a run took place. What can't be found out is `None`.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub ringfold: Option<String>,
    /// The commit of the sources, with `-dirty` where they were changed since.
    pub commit: Option<String>,
    pub kernel: String,
    pub cpu: Option<String>,
    /// Cores that a process may use here.
    pub cores: usize,
    /// Whether the processor says that it belongs to a virtual machine.
    pub virtual_machine: bool,
    pub cpu_governor: Option<String>,
    pub memory_bytes: u64,
    pub load_average: Option<String>,
    pub file_system: Option<String>,
    pub device: Option<String>,
    pub device_model: Option<String>,
    pub scheduler: Option<String>,
    pub read_ahead_kb: Option<u64>,
    pub transparent_huge_pages: Option<String>,
    /// How large the folios of cached pages are: the kernel doesn't tell.
    pub large_folios: Option<bool>,
    pub wc: Option<String>,
}

impl Machine {
    /// Asks the machine about itself and about what `file` lies on.
    pub fn look(file: &Path) -> Machine {
        let uname = rustix::system::uname();
        let cpuinfo = line("/proc/cpuinfo").unwrap_or_default();
        let mount = mount_of(file);
        let queue = mount.as_ref().and_then(|mount| queue_of(&mount.device));
        let setting = |path: &str| queue.as_ref().and_then(|queue| line(queue.join(path)));
        let commit = output_of("git", &["describe", "--always", "--dirty", "--exclude=*"]);
        Machine {
            ringfold: ringfold_version(),
            commit,
            kernel: uname.release().to_string_lossy().into_owned(),
            cpu: field(&cpuinfo, "model name").map(str::to_string),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            cpu_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_bytes: memory_bytes(),
            load_average: line("/proc/loadavg")
                .and_then(|text| text.split(' ').next().map(str::to_string)),
            file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
            device: mount.map(|mount| mount.source),
            device_model: setting("../device/model"),
            scheduler: setting("scheduler").as_deref().and_then(chosen),
            read_ahead_kb: setting("read_ahead_kb").and_then(|text| text.parse().ok()),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .as_deref()
                .and_then(chosen),
            large_folios: None,
            wc: output_of("wc", &["--version"])
                .and_then(|text| text.lines().next().map(str::to_string)),
        }
    }

    /// The facts for people, each with its name.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or("unknown".into());
        let commit = or_unknown(&self.commit);
        let virtual_machine = if self.virtual_machine {
            ", virtual machine"
        } else {
            ""
        };
        let governor = self
            .cpu_governor
            .as_ref()
            .map(|text| format!(", governor {text}"));
        let model = self.device_model.as_ref().map(|text| format!(" ({text})"));
        let read_ahead = self
            .read_ahead_kb
            .map_or("unknown".into(), |kb| format!("{kb} KiB"));
        vec![
            (
                "ringfold",
                format!("{}, commit {commit}", or_unknown(&self.ringfold)),
            ),
            ("kernel", self.kernel.clone()),
            (
                "processor",
                format!(
                    "{}, {} cores{virtual_machine}{}",
                    or_unknown(&self.cpu),
                    self.cores,
                    governor.unwrap_or_default()
                ),
            ),
            (
                "memory",
                format!("{:.1} GB", self.memory_bytes as f64 / 1e9),
            ),
            ("load before", or_unknown(&self.load_average)),
            ("file system", or_unknown(&self.file_system)),
            (
                "drive",
                format!(
                    "{}{}, scheduler {}, read-ahead {read_ahead}",
                    or_unknown(&self.device),
                    model.unwrap_or_default(),
                    or_unknown(&self.scheduler)
                ),
            ),
            (
                "transparent huge pages",
                or_unknown(&self.transparent_huge_pages),
            ),
            ("large folios", "unknown: the kernel doesn't tell".into()),
            ("wc", or_unknown(&self.wc)),
        ]
    }
}

/// A small file's text without the white space around it.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string())
}

/// What stands behind `name` and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// The choice in brackets among those the kernel lists.
fn chosen(list: &str) -> Option<String> {
    let (_, rest) = list.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

fn memory_bytes() -> u64 {
    let meminfo = line("/proc/meminfo").unwrap_or_default();
    let kib = field(&meminfo, "MemTotal").and_then(|value| value.strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

struct Mount {
    /// Major and minor number, as `254:0`.
    device: String,
    file_system: String,
    /// The device's name.
    source: String,
}

/// The mount that a file lies on: of those with its device number the last one, for it covers the
/// others.
fn mount_of(file: &Path) -> Option<Mount> {
    let device = fs::metadata(file).ok()?.dev();
    let wanted = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let mounts = line("/proc/self/mountinfo")?;
    mounts.lines().rev().find_map(|mount| {
        let (before, behind) = mount.split_once(" - ")?;
        let device = before
            .split(' ')
            .nth(2)
            .filter(|device| *device == wanted)?;
        let mut behind = behind.split(' ');
        Some(Mount {
            device: device.to_string(),
            file_system: behind.next()?.to_string(),
            source: behind.next()?.trim_start_matches("/dev/").to_string(),
        })
    })
}

/// The settings of a device's queue; a partition's are those of its drive.
fn queue_of(device: &str) -> Option<PathBuf> {
    let own = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let drive = [own.as_path(), own.parent()?].map(|path| path.join("queue"));
    drive.into_iter().find(|queue| queue.is_dir())
}
