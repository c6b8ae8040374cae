//! Refuses an output that is one of the inputs: the answer would replace the data.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{Error, Kind, Result};

/// Compares device and inode; nothing is opened. A path that can't be examined fails when it is opened.
///
/// # Errors
/// The output is an input, under whatever name, or standard output is a file that is read and holds something.
pub(super) fn refuse(output: Option<&PathBuf>, inputs: &[PathBuf]) -> Result<()> {
    let output = output.filter(|output| output.as_os_str() != "-");
    let target = match output {
        Some(output) => fs::metadata(output).ok(),
        // A file after `>` is empty by now. The answer would be appended to any other one, and read by the next run.
        None => of(io::stdout()).filter(|meta| meta.is_file() && meta.len() > 0),
    };
    let Some(target) = target.as_ref().and_then(identity) else {
        return Ok(());
    };
    let is_target = |input: &&PathBuf| {
        let meta = match input.as_os_str() == "-" {
            true => of(io::stdin()),
            false => fs::metadata(input).ok(),
        };
        meta.as_ref().and_then(identity) == Some(target)
    };
    let Some(input) = inputs.iter().find(is_target) else {
        return Ok(());
    };
    let output = output.map_or(Path::new("standard output"), PathBuf::as_path);
    let cause = match input.as_os_str() == "-" || input == output {
        true => format!(
            "{} is the input and the output: name another file for the answer",
            output.display()
        ),
        false => format!(
            "{} is the input {} under another name: name another file for the answer",
            output.display(),
            input.display()
        ),
    };
    Err(Error::new(Kind::Usage, cause))
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
