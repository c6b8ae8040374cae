//! What this kernel, user, memory, processor, file and device allow, and what follows from it.
//!
//! Everything is looked at, nothing is changed: flags are tried on rings, mappings and descriptors
//! of our own, of a file a few pages are read at most, and none of it is evicted. What can't be
//! known says why, and never fails the probe.
//!
//! One room each: `kernel`, `user`, `memory`, `file` and `device`; `pages` asks in which folios the
//! page cache holds a file, and `system` reads the small files of procfs and sysfs.

mod device;
mod file;
mod kernel;
mod memory;
mod pages;
mod user;

use std::path::Path;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::engine::plan::sizing::MemoryLimit;
use crate::error::Result;
use crate::group::level::Level;

/// The version of the shape of [`Findings`] as it is serialised.
const SCHEMA: u32 = 1;

/// All that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// The version of this shape; it changes when a field goes or means something else.
    pub schema: u32,
    /// What was looked at, in order.
    pub sections: Vec<Section>,
    /// What `auto` would do here, and what to try.
    pub summary: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// `kernel`, `user`, `memory`, `processor`, `file` or `device`.
    pub name: &'static str,
    /// Which file or device, where there can be several.
    pub subject: Option<String>,
    /// What was found of it, in order.
    pub entries: Vec<Entry>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is called; the kernel's own word where there is one.
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
    /// A share of a hundred.
    Percent(f64),
    /// Whether it is so.
    Flag(bool),
    /// It can't be told; the meaning says why.
    Unknown,
}

impl Value {
    /// What its number counts, where that isn't the entry's name.
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
        }
    }

    fn add(&mut self, name: &'static str, value: impl Into<Value>, meaning: impl Into<String>) {
        self.entries.push(Entry {
            name,
            value: value.into(),
            meaning: meaning.into(),
        });
    }

    fn unknown(&mut self, name: &'static str, why: impl std::fmt::Display) {
        self.add(name, Value::Unknown, format!("can't be told: {why}"));
    }
}

/// What the summary and other sections need to know of the machine.
struct Machine {
    /// Why there is no ring, where there is none.
    ring: Result<()>,
    /// Whether the kernel is one on which `auto` uses the ring.
    trusted: Result<()>,
    /// Whether an arena gets huge pages; `None` where it can't be told.
    huge_pages: Option<bool>,
}

impl Machine {
    /// Whether `auto` uses the ring.
    fn auto_rings(&self) -> bool {
        self.ring.is_ok() && self.trusted.is_ok()
    }
}

/// Looks at the machine, and at these files with their devices; `-` is standard input.
///
/// # Errors
/// A file can't be opened.
pub fn probe<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<Findings> {
    let files = files.into_iter().enumerate();
    let files: Vec<_> = files
        .map(|(index, path)| file::Subject::open(index as u32, path.as_ref()))
        .collect::<Result<_>>()?;
    let (kernel, ring, trusted) = kernel::look();
    let (memory, huge_pages) = memory::look();
    let machine = Machine {
        ring,
        trusted,
        huge_pages,
    };
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
    if let Some(false) = machine.huge_pages {
        summary.push(
            "no huge pages were granted: reads past the page cache will be split and slower".into(),
        );
    }
    Ok(Findings {
        schema: SCHEMA,
        sections,
        summary,
    })
}

/// Bytes that a read of a run with defaults brings.
fn default_block() -> u64 {
    let room = MemoryLimit::of_this_process();
    room.ring(room.threads(&[])).block()
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
