//! Refuses an output that is one of the inputs, or another output: one would replace the other.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::cli::console::usage;

/// Compares device and inode; nothing is opened. A path that can't be examined fails when it is opened.
///
/// # Errors
/// The output is an input, under whatever name, or standard output is a file that is read.
pub(super) fn refuse(output: Option<&PathBuf>, inputs: &[PathBuf]) -> Result<()> {
    let output = output.map_or(Path::new(STANDARD), PathBuf::as_path);
    let found = metadata(output, io::stdout());
    let Some(target) = found.as_ref().and_then(identity) else {
        return Ok(());
    };
    let is_target =
        |input: &&PathBuf| metadata(input, io::stdin()).as_ref().and_then(identity) == Some(target);
    let Some(input) = inputs.iter().find(is_target) else {
        return Ok(());
    };
    let (is_stdin, is_stdout) = (is_standard(input), is_standard(output));
    let is_emptied = is_stdout && found.is_some_and(|meta| meta.len() == 0);
    let (input, output) = (
        shown(input, "standard input"),
        shown(output, "standard output"),
    );
    let fact = match (is_emptied, is_stdin || input == output, is_stdout) {
        (true, ..) => format!(
            "{input} is the input and the output, and `>` has emptied it before this program began"
        ),
        (_, true, _) => format!("{output} is the input and the output"),
        (_, _, true) => format!("{output} is the input {input}"),
        _ => format!("{output} is the input {input} under another name"),
    };
    Err(usage(format!("{fact}: name another file for the answer")))
}

/// Refuses outputs of which two are one file, under whatever names. Each comes with its flag.
///
/// # Errors
/// One would replace the other, or both would be mixed.
pub(super) fn refuse_twice(outputs: &[Option<(&str, &Path)>]) -> Result<()> {
    let mut known: Vec<(&str, Place)> = Vec::new();
    for (flag, output) in outputs.iter().flatten() {
        let Some(place) = place(output) else {
            continue;
        };
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == place) {
            return Err(usage(format!("{other} and {flag} are the same file")));
        }
        known.push((flag, place));
    }
    Ok(())
}

/// Where the answer goes, and how that is called.
pub(super) fn answer(output: Option<&PathBuf>) -> (&'static str, &Path) {
    match output.filter(|output| !is_standard(output)) {
        Some(output) => ("--output", output),
        None => ("standard output", Path::new(STANDARD)),
    }
}

/// What a file is called that stands for one of the standard streams.
const STANDARD: &str = "-";

/// Where an output goes; `None` for a pipe or a device, which may be written by several.
#[derive(PartialEq)]
enum Place {
    Known((bool, u64, u64)),
    /// A file that isn't there yet: the directory's path, and its name.
    New(PathBuf, OsString),
}

fn place(output: &Path) -> Option<Place> {
    if let Some(meta) = metadata(output, io::stdout()) {
        return identity(&meta).map(Place::Known);
    }
    let directory = output
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(Place::New(directory, output.file_name()?.to_owned()))
}

pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// Whether the answer goes to standard output.
pub(super) fn is_standard_output(output: Option<&PathBuf>) -> bool {
    output.is_none_or(|output| is_standard(output))
}

fn metadata(path: &Path, standard: impl AsFd) -> Option<Metadata> {
    match is_standard(path) {
        true => of(standard),
        false => fs::metadata(path).ok(),
    }
}

fn shown<'a>(path: &'a Path, standard: &'a str) -> Cow<'a, str> {
    match is_standard(path) {
        true => standard.into(),
        false => path.to_string_lossy(),
    }
}

fn of(stream: impl AsFd) -> Option<Metadata> {
    let file = stream.as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).ok()
}

/// Which file or drive it is. It is safe to read and write the same pipe or terminal.
fn identity(meta: &Metadata) -> Option<(bool, u64, u64)> {
    let kind = meta.file_type();
    match kind.is_block_device() {
        true => Some((true, meta.rdev(), 0)),
        false => kind.is_file().then(|| (false, meta.dev(), meta.ino())),
    }
}
