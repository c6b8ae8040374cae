//! Profiles: settings that `ringfold tune` has found for a device and its file system, and `--profile` uses.
//!
//! They are kept in `ringfold/profiles.toml` of the user's configuration folder, a table each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use ringfold_bench::measure::machine::place;

use crate::cli::console::{about, usage, write_file};
use crate::{Error, Kind, Result};

/// Settings for a device with its file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Profile {
    /// The device that a mount names, and the file system's type.
    pub(super) device: String,
    pub(super) file_system: String,
    /// Bytes of a ring's read, and how many are in flight.
    pub(super) block_size_bytes: u64,
    pub(super) queue_depth: usize,
    /// How it was found.
    #[serde(default)]
    pub(super) job: String,
    #[serde(default)]
    pub(super) kernel: String,
    #[serde(default)]
    pub(super) measured_unix_s: u64,
    #[serde(default)]
    pub(super) gib_per_s: f64,
    #[serde(default)]
    pub(super) default_gib_per_s: f64,
}

/// All profiles by name.
type Profiles = BTreeMap<String, Profile>;

/// The name that means: the one for the first file's device.
pub(super) const AUTO: &str = "auto";

/// The file of profiles.
pub(super) fn path() -> Result<PathBuf> {
    user_file("profiles.toml", "profiles")
}

/// A file of the user's configuration folder, which need not be there.
pub(super) fn user_file(name: &str, what: &str) -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")));
    let config = config.ok_or_else(|| {
        usage(format!(
            "there is no place for {what}: neither XDG_CONFIG_HOME nor HOME is set"
        ))
    })?;
    Ok(config.join("ringfold").join(name))
}

/// What a file of the configuration folder has; nothing where it isn't there.
///
/// # Errors
/// It can't be read, or isn't what it should be: an error of this kind.
pub(super) fn read_toml<T: DeserializeOwned + Default>(path: &Path, kind: Kind) -> Result<T> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| {
            // It is several lines with a picture; the first one says where.
            let text = error.to_string();
            let place = text.lines().next().unwrap_or_default();
            let cause = format!("{place}: {}", error.message());
            Error::new(kind, cause).in_file(0, &path.display().to_string().into())
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(about(path, &error)),
    }
}

/// Adds a profile, or replaces that of the same name. Others stay as they are.
pub(super) fn write(name: &str, profile: Profile) -> Result<PathBuf> {
    let path = path()?;
    let mut profiles: Profiles = read_toml(&path, Kind::Data)?;
    profiles.insert(name.into(), profile);
    let text = toml::to_string(&profiles).map_err(|error| {
        Error::new(Kind::Data, format!("the profile can't be written: {error}"))
    })?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| about(&path, &error))?;
    }
    write_file(&path, &text)?;
    Ok(path)
}

/// The profile of this name; with `auto` the one for the device of `file`, if there is one.
///
/// # Errors
/// There is none of this name, or the file of profiles can't be read.
pub(super) fn find(name: &str, file: Option<&Path>) -> Result<Option<Profile>> {
    let path = path()?;
    let mut profiles: Profiles = read_toml(&path, Kind::Data)?;
    if name == AUTO {
        let place = file.and_then(place);
        let is_here = |profile: &Profile| {
            place.as_ref().is_some_and(|[file_system, device]| {
                (file_system, device) == (&profile.file_system, &profile.device)
            })
        };
        return Ok(profiles.into_values().find(is_here));
    }
    match profiles.remove(name) {
        Some(profile) => Ok(Some(profile)),
        None => {
            let names: Vec<_> = profiles.keys().map(String::as_str).collect();
            let there = match names.is_empty() {
                true => "there is none yet: `ringfold tune FILE` makes one".to_string(),
                false => format!("there are {}", names.join(", ")),
            };
            let path = path.display();
            Err(usage(format!("no profile {name} in {path}: {there}")))
        }
    }
}
