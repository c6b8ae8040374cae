//! What this kernel, user, memory, processor, file and device allow, and what follows from it.
//!
//! The probe changes nothing: it tries flags on rings, mappings and descriptors of its own, reads a few pages
//! of a file at most, and evicts none. An entry that can't be found out says why, and never fails the probe.
//!
//! One module each: `kernel`, `user`, `memory`, `file` and `device`; `pages` finds the folios in which the
//! page cache holds a file.

mod check;
pub(crate) mod device;
mod file;
mod findings;
mod kernel;
mod machine;
mod memory;
mod pages;
mod user;

use std::path::Path;

use ringfold_read::Result;
use ringfold_read::internals::Level;

use crate::probe::findings::SCHEMA;
use crate::probe::machine::Machine;

pub use check::{Check, Mark};
pub use file::quoted;
pub use findings::{Entry, Findings, Section, Value};

/// Examines the machine, and these files with their devices; `-` is standard input. `group_min` is the least memory, in bytes,
/// of a control group that aggregation works in.
///
/// # Errors
/// A file can't be opened.
pub fn probe<P: AsRef<Path>>(
    files: impl IntoIterator<Item = P>,
    group_min: u64,
) -> Result<Findings> {
    let files = files.into_iter().enumerate();
    let files: Vec<_> = files
        .map(|(index, path)| file::Subject::open(index as u32, path.as_ref()))
        .collect::<Result<_>>()?;
    let (kernel, ring, trusted) = kernel::look();
    let memory = memory::look();
    let machine = Machine { ring, trusted };
    let mut sections = vec![kernel, user::look(group_min), memory, processor()];
    let mut summary = Vec::new();
    for file in &files {
        let (section, plan) = file.look(&machine);
        sections.push(section);
        sections.extend(device::look(file.device()));
        summary.extend(plan);
    }
    if files.is_empty() {
        summary.push(match &machine.ring {
            Ok(()) if machine.trusted.is_ok() => {
                "auto reads what isn't cached through io_uring, past the page cache".into()
            }
            Ok(()) => "auto reads with pread: this kernel is older than 6.1".into(),
            Err(error) => format!("auto reads with pread: {error}"),
        });
        summary.push("name a FILE to see what holds for it: ringfold probe FILE".into());
    }
    let mut checks: Vec<Check> = Vec::new();
    for check in sections
        .iter_mut()
        .flat_map(|section| section.checks.drain(..))
    {
        // Files may lie on one device.
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks.sort_by_key(|check| std::cmp::Reverse(check.mark));
    Ok(Findings {
        schema: SCHEMA,
        sections,
        summary,
        checks,
    })
}

fn processor() -> Section {
    let mut section = Section::new("processor", None);
    let (level, meaning) = match Level::detect() {
        Level::Portable => (
            "portable",
            "aggregate runs on 64-bit words: neither AVX2 nor AVX-512 is there",
        ),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2(_) => ("AVX2", "aggregate runs its AVX2 code"),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512(_) => ("AVX-512", "aggregate runs its AVX-512 code, the fastest"),
    };
    section.add("vector code", level, meaning);
    section.add(
        "architecture",
        std::env::consts::ARCH,
        "the vector code is for x86_64; every other one runs the portable code",
    );
    section
}
