//! What this kernel, user, memory, processor, file and device allow, and what follows from it.
//!
//! The probe changes nothing: it tries flags on rings, mappings and descriptors of its own, reads a few pages
//! of a file at most, and evicts none. An entry that can't be found out says why, and never fails the probe.
//!
//! One module each: `kernel`, `user`, `memory`, `file` and `device`; `pages` finds the folios in which the
//! page cache holds a file.

mod check;
mod device;
mod file;
mod kernel;
mod memory;
mod pages;
mod user;

pub use check::{Check, Mark};
pub(crate) use file::quoted;

use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::engine::plan::sizing::MemoryLimit;
use crate::error::Result;
use crate::group::level::Level;

/// The version of the shape of [`Findings`] as it is serialised.
const SCHEMA: u32 = 1;

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// The version of this shape; it changes when a field is removed or changes its meaning.
    pub schema: u32,
    /// What was examined, in order.
    pub sections: Vec<Section>,
    /// What `auto` would do here, and what to try.
    pub summary: Vec<String>,
    /// What is good, fair and bad here, and what to change: the worst first.
    pub checks: Vec<Check>,
}

/// One thing that was examined.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// `kernel`, `user`, `memory`, `processor`, `file` or `device`.
    pub name: &'static str,
    /// Which file or device, where there can be several.
    pub subject: Option<String>,
    /// Its facts, in order.
    pub entries: Vec<Entry>,
    /// What of it matters most; told with those of all sections.
    #[serde(skip)]
    checks: Vec<Check>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name; the kernel's own word where there is one.
    pub name: &'static str,
    /// What was found.
    pub value: Value,
    /// What follows from it for ringfold, or why it is unknown.
    pub meaning: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A name or a list of names.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A percentage.
    Percent(f64),
    /// Yes or no.
    Flag(bool),
    /// Unknown; the meaning says why.
    Unknown,
}

impl Value {
    /// The unit of its number, where that isn't the entry's name.
    pub fn unit(&self) -> Option<&'static str> {
        match self {
            Value::Bytes(_) => Some("bytes"),
            Value::Percent(_) => Some("percent"),
            _ => None,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Count(n) | Value::Bytes(n) => serializer.serialize_u64(*n),
            Value::Percent(share) => serializer.serialize_f64((share * 10.0).round() / 10.0),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Unknown => serializer.serialize_none(),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_struct("Entry", 4)?;
        entry.serialize_field("name", self.name)?;
        entry.serialize_field("value", &self.value)?;
        entry.serialize_field("unit", &self.value.unit())?;
        entry.serialize_field("meaning", &self.meaning)?;
        entry.end()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Count(n)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl Section {
    fn new(name: &'static str, subject: Option<String>) -> Section {
        Section {
            name,
            subject,
            entries: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn add(&mut self, name: &'static str, value: impl Into<Value>, meaning: impl Into<String>) {
        self.entries.push(Entry {
            name,
            value: value.into(),
            meaning: meaning.into(),
        });
    }

    fn check(&mut self, check: Check) {
        self.checks.push(check);
    }

    fn unknown(&mut self, name: &'static str, why: impl std::fmt::Display) {
        self.add(name, Value::Unknown, format!("can't be told: {why}"));
    }
}

/// What the summary and other sections need to know about the machine.
struct Machine {
    /// Why there is no ring, where there is none.
    ring: Result<()>,
    /// Whether `auto` uses the ring on this kernel.
    trusted: Result<()>,
}

impl Machine {
    /// Whether `auto` uses the ring.
    fn auto_rings(&self) -> bool {
        self.ring.is_ok() && self.trusted.is_ok()
    }
}

/// Examines the machine, and these files with their devices; `-` is standard input.
///
/// # Errors
/// A file can't be opened.
pub fn probe<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<Findings> {
    let files = files.into_iter().enumerate();
    let files: Vec<_> = files
        .map(|(index, path)| file::Subject::open(index as u32, path.as_ref()))
        .collect::<Result<_>>()?;
    let (kernel, ring, trusted) = kernel::look();
    let memory = memory::look();
    let machine = Machine { ring, trusted };
    let mut sections = vec![kernel, user::look(), memory, processor()];
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

/// Bytes of a read by default.
fn default_block() -> u64 {
    let memory = MemoryLimit::of_this_process();
    memory.ring(memory.threads(&[])).block()
}

fn processor() -> Section {
    let mut section = Section::new("processor", None);
    let (level, meaning) = match Level::detect() {
        Level::Portable => (
            "portable",
            "aggregate runs on 64-bit words: neither AVX2 nor AVX-512 is there",
        ),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => ("AVX2", "aggregate runs its AVX2 passes"),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => ("AVX-512", "aggregate runs its AVX-512 passes, the fastest"),
    };
    section.add("vector code", level, meaning);
    section.add(
        "architecture",
        std::env::consts::ARCH,
        "the vector passes are for x86_64; every other one runs the portable code",
    );
    section
}
