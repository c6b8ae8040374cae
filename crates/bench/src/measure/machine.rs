//! The facts without which a time says nothing: kernel, processor, memory, file system, drive.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ringfold_read::internals::{
    mounts,
    pages::transparent_huge_pages,
    proc::{chosen, field, kib_field, number, release, text},
    units::size,
};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::probe::device::says_hypervisor;

/// Where a run took place. What can't be found out is `None`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// The version of ringfold.
    pub ringfold: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub cpu: Option<String>,
    /// Cores that a process may use here.
    pub cores: usize,
    /// Whether the processor says that it belongs to a virtual machine.
    pub virtual_machine: bool,
    /// Who decides on the processors' frequency.
    pub cpu_governor: Option<String>,
    /// Memory.
    pub memory_bytes: u64,
    /// Processes that wanted to run, in the minute before.
    pub load_average: Option<String>,
    /// The file system's type.
    pub file_system: Option<String>,
    /// What it lies on.
    pub device: Option<String>,
    /// Its model.
    pub device_model: Option<String>,
    /// Its I/O scheduler.
    pub scheduler: Option<String>,
    /// Its read-ahead.
    pub read_ahead_kib: Option<u64>,
    /// Whether anonymous memory gets huge pages.
    pub transparent_huge_pages: Option<String>,
}

impl Machine {
    /// Asks the machine about itself and about what `file` lies on.
    pub fn look(file: &Path) -> Machine {
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let meminfo = text("/proc/meminfo").unwrap_or_default();
        let device = device_of(file);
        let queue = device.as_deref().and_then(queue_of);
        let setting = |name: &str| text(queue.as_ref()?.join(name)).ok();
        let is_drive = |file: &Path| Some(fs::metadata(file).ok()?.file_type().is_block_device());
        let [file_system, source] = match is_drive(file) {
            // It lies on no file system: that of its node is none of its own.
            Some(true) => [None, Some(file.display().to_string())],
            _ => place(file).map_or([None, None], |place| place.map(Some)),
        };
        Machine {
            ringfold: env!("CARGO_PKG_VERSION").into(),
            kernel: release(),
            cpu: field(&cpuinfo.replace('\t', ""), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            virtual_machine: says_hypervisor(),
            cpu_governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok(),
            memory_bytes: kib_field(&meminfo, "MemTotal").unwrap_or(0),
            load_average: text("/proc/loadavg")
                .ok()
                .and_then(|text| text.split(' ').next().map(str::to_string)),
            file_system,
            device: source,
            device_model: setting("../device/model").map(|model| model.trim().to_string()),
            scheduler: setting("scheduler").map(|list| chosen(&list).to_string()),
            read_ahead_kib: queue.and_then(|queue| number(queue.join("read_ahead_kb")).ok()),
            transparent_huge_pages: transparent_huge_pages().ok(),
        }
    }

    /// The facts for people, each with its name.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or("unknown".into());
        let with = |before: &str, text: &Option<String>, after: &str| {
            let text = text.as_ref();
            text.map_or(String::new(), |text| format!("{before}{text}{after}"))
        };
        let kind = match self.virtual_machine {
            true => ", virtual machine",
            false => "",
        };
        let read_ahead = self
            .read_ahead_kib
            .map_or("unknown".into(), |kib| format!("{kib} KiB"));
        let processor = format!(
            "{}, {} cores{kind}{}",
            or_unknown(&self.cpu),
            self.cores,
            with(", governor ", &self.cpu_governor, "")
        );
        let drive = format!(
            "{}{}, scheduler {}, read-ahead {read_ahead}",
            or_unknown(&self.device).trim_start_matches("/dev/"),
            with(" (", &self.device_model, ")"),
            or_unknown(&self.scheduler)
        );
        vec![
            ("ringfold", self.ringfold.clone()),
            ("kernel", self.kernel.clone()),
            ("processor", processor),
            ("memory", size(self.memory_bytes)),
            ("load before", or_unknown(&self.load_average)),
            ("file system", or_unknown(&self.file_system)),
            ("drive", drive),
            (
                "transparent huge pages",
                or_unknown(&self.transparent_huge_pages),
            ),
        ]
    }
}

/// The file system's type that a file lies on, and its device.
pub fn place(file: &Path) -> Option<[String; 2]> {
    // A pipe isn't opened to be read: that would wait for its writer.
    let file = rustix::fs::open(file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let mount = mounts::of_file(&file.ok()?).ok()?;
    Some([mount.fs, mount.source])
}

/// The number of the device that a file lies on, or that it is, as `254:0`.
fn device_of(file: &Path) -> Option<String> {
    let meta = fs::metadata(file).ok()?;
    let device = match meta.rdev() {
        0 => meta.dev(),
        own => own,
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Some(format!("{major}:{minor}"))
}

/// The settings of a device's queue; a partition's are those of its drive.
fn queue_of(device: &str) -> Option<PathBuf> {
    let own = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let drive = [own.as_path(), own.parent()?].map(|path| path.join("queue"));
    drive.into_iter().find(|queue| queue.is_dir())
}
