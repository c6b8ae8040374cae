//! What the probe finds: sections of facts, and checks.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::probe::check::Check;

/// The version of the shape of [`Findings`] as it is serialised.
pub(crate) const SCHEMA: u32 = 1;

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
    /// What of it matters most; shown with those of all sections.
    #[serde(skip)]
    pub(crate) checks: Vec<Check>,
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A name or a list of names.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A percentage.
    Percent(#[serde(serialize_with = "rounded")] f64),
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

/// A percentage to a tenth.
fn rounded<S: Serializer>(share: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((share * 10.0).round() / 10.0)
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
    pub(crate) fn new(name: &'static str, subject: Option<String>) -> Section {
        Section {
            name,
            subject,
            entries: Vec::new(),
            checks: Vec::new(),
        }
    }

    pub(crate) fn add(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        meaning: impl Into<String>,
    ) {
        self.entries.push(Entry {
            name,
            value: value.into(),
            meaning: meaning.into(),
        });
    }

    /// What was found and what follows from it, or why it is unknown.
    pub(crate) fn fact(
        &mut self,
        name: &'static str,
        found: Result<(impl Into<Value>, impl Into<String>), impl std::fmt::Display>,
    ) {
        match found {
            Ok((value, meaning)) => self.add(name, value, meaning),
            Err(why) => self.unknown(name, why),
        }
    }

    /// Whether something works, and what follows. Returns the first.
    pub(crate) fn works(
        &mut self,
        name: &'static str,
        tried: Result<impl Into<String>, impl Into<String>>,
    ) -> bool {
        let works = tried.is_ok();
        let meaning = tried.map_or_else(Into::into, Into::into);
        self.add(name, works, meaning);
        works
    }

    pub(crate) fn check(&mut self, check: Check) {
        self.checks.push(check);
    }

    pub(crate) fn unknown(&mut self, name: &'static str, why: impl std::fmt::Display) {
        self.add(name, Value::Unknown, format!("unknown: {why}"));
    }
}
