//! Memory: huge pages, as configured and as granted, and NUMA nodes.

use ringfold_read::HugePages;
use ringfold_read::internals::{
    Arena, Layout, describe,
    pages::{THP, transparent_huge_pages},
    proc::{self, kib_field},
    units::size,
};

use crate::probe::check::Check;
use crate::probe::findings::{Section, Value};

/// Bytes that are mapped to see what is granted: two huge pages.
const TRIED: Layout = Layout {
    block: 1 << 20,
    slots: 3,
};

pub(crate) fn look() -> Section {
    let mut section = Section::new("memory", None);
    let meminfo = proc::text("/proc/meminfo");
    let bytes = |name: &str| -> Result<u64, String> {
        let text = meminfo.as_ref().map_err(String::clone)?;
        kib_field(text, name).ok_or_else(|| format!("/proc/meminfo has no {name}"))
    };
    let total = bytes("MemTotal").and_then(|total| {
        let free = size(bytes("MemAvailable")?);
        let meaning =
            format!("{free} of it available: a file that is larger can't stay in the page cache");
        Ok((Value::Bytes(total), meaning))
    });
    section.fact("total", total);
    let setting = transparent_huge_pages().map(|setting| {
        let meaning = match &*setting {
            "always" | "madvise" => {
                "buffers can be transparent huge pages: ringfold advises the kernel so"
            }
            "never" => "no transparent huge pages: try --huge-pages hugetlb",
            _ => "an unknown setting",
        };
        (setting, meaning)
    });
    section.fact("THP", setting);
    match granted(&mut section) {
        Some(true) => section.check(Check::good("buffers lie in huge pages")),
        Some(false) => section.check(Check::fair(
            "no huge pages for buffers: reads past the page cache may be split, and cost more",
            format!("echo madvise > {THP} (as root), free memory, or --huge-pages hugetlb"),
        )),
        None => {}
    }
    pool(&mut section, &meminfo);
    let nodes = proc::text("/sys/devices/system/node/online").map(|nodes| {
        let meaning = match nodes.contains([',', '-']) {
            true => {
                "several: buffers lie where the ring's thread first touched them; keep a run on the device's node \
                 (numactl)"
            }
            false => "one node: all memory is equally near",
        };
        (nodes, meaning)
    });
    section.fact("NUMA nodes", nodes);
    section
}

/// Maps an arena, touches it, and finds out in which pages it lies.
fn granted(section: &mut Section) -> Option<bool> {
    const NAME: &str = "huge pages";
    let arena = match Arena::new(TRIED, HugePages::Auto) {
        Ok(arena) => arena,
        Err(error) => {
            section.unknown(NAME, error);
            return None;
        }
    };
    let (slots, _home) = arena.slots();
    for mut slot in slots {
        slot.target_bytes(0).fill(1);
    }
    let status = proc::text("/proc/self/status").unwrap_or_default();
    let forbidden = proc::field(&status, "THP_enabled").as_deref() == Some("0");
    let all = arena.bytes() as u64;
    let huge = arena.huge_bytes();
    let meaning = |huge: u64| match huge {
        0 if forbidden => {
            "none: they were forbidden to this process by who started it (PR_SET_THP_DISABLE)"
        }
        0 => {
            "none granted for buffers that were mapped and touched: reads past the page cache are split by the \
             device's segments; see THP, or free memory"
        }
        _ if huge < all => {
            "granted for a part of the buffers that were mapped and touched: memory is fragmented"
        }
        _ => {
            "granted for all of the buffers that were mapped and touched: a read is one piece of memory or two"
        }
    };
    let is_granted = huge.as_ref().ok().map(|huge| *huge > 0);
    let huge = huge.map(|huge| (Value::Bytes(huge), meaning(huge)));
    let huge = huge.map_err(|error| format!("/proc/self/smaps: {}", describe(&error)));
    section.fact(NAME, huge);
    is_granted
}

fn pool(section: &mut Section, meminfo: &Result<String, String>) {
    let read = |name: &str| {
        let text = meminfo.as_ref().map_err(String::clone)?;
        let value = proc::field(text, name).and_then(|value| value.parse::<u64>().ok());
        value.ok_or_else(|| format!("/proc/meminfo has no {name}"))
    };
    let pool = read("HugePages_Total").and_then(|total| {
        let meaning = match total {
            0 => {
                "--huge-pages hugetlb needs pages: sysctl vm.nr_hugepages=64 (as root) makes 128 MiB of 2 MiB each"
                    .into()
            }
            _ => format!("{} of them free for --huge-pages hugetlb", read("HugePages_Free")?),
        };
        Ok((total, meaning))
    });
    section.fact("hugetlb pool", pool);
}
