//! The command line once more, as somebody would type it for another input or with more flags.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use ringfold_bench::probe::quoted;

/// The words of the command line, from the subcommand on.
static LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the command line.
pub(super) fn keep(line: &[OsString]) {
    let _ = LINE.set(line.iter().skip(1).cloned().collect());
}

/// The command with `more` flags before its files, and without `--explain`.
pub(super) fn with_flags(more: &[String], files: &[PathBuf]) -> String {
    let mut words = words();
    let files: Vec<String> = files
        .iter()
        .map(|file| file.to_string_lossy().into())
        .collect();
    for file in &files {
        if let Some(at) = words.iter().rposition(|word| word == file) {
            words.remove(at);
        }
    }
    words.retain(|word| word != "--explain");
    if let Some(word) = words.first_mut().filter(|word| *word == "describe") {
        *word = "aggregate".into();
        leave_out_output(&mut words);
    }
    let is_piped = files == ["-"];
    let files = files.into_iter().filter(|_| !is_piped);
    let words = words.into_iter().chain(more.iter().cloned()).chain(files);
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    let piped = if is_piped { "… | " } else { "" };
    format!("{piped}ringfold {}", words.join(" "))
}

/// A flag and its value, written for a shell.
pub(super) fn flag(flag: &str, value: &str) -> String {
    format!("`{flag} {}`", quoted(value))
}

/// Leaves out the flags of a description's output.
fn leave_out_output(words: &mut Vec<String>) {
    let mut is_value = false;
    words.retain(|word| {
        let is_left_out = std::mem::take(&mut is_value);
        let name = word.split('=').next().unwrap_or_default();
        let is_short = word.starts_with("-f") || word.starts_with("-o");
        let is_long = ["--format", "--output", "--ascii"].contains(&name);
        is_value = match is_short {
            true => word.len() == 2,
            false => is_long && name == word && name != "--ascii",
        };
        !(is_left_out || is_short || is_long)
    });
}

/// The command with `other` in the place of a file, written for a shell, and with one more flag; `None` where the file isn't among
/// its words, or a pipe would be read in parts.
pub(super) fn with_file(file: &str, other: &str, flag: Option<&str>) -> Option<String> {
    let words = words_with(flag);
    let is_divided = |word: &String| word == "--range" || word.starts_with("--range=");
    if other == "-" && words.iter().any(is_divided) {
        return None;
    }
    let at = words.iter().rposition(|word| word == file)?;
    let words = words
        .iter()
        .enumerate()
        .map(|(place, word)| match place == at {
            true => other.to_string(),
            false => quoted(word),
        });
    let words: Vec<String> = words.collect();
    Some(format!("ringfold {}", words.join(" ")))
}

/// The command as it is, written for a shell, and with one more flag.
pub(super) fn of_pipe(flag: Option<&str>) -> String {
    let words: Vec<String> = words_with(flag).iter().map(|word| quoted(word)).collect();
    format!("ringfold {}", words.join(" "))
}

fn words_with(flag: Option<&str>) -> Vec<String> {
    let mut words = words();
    if let Some(flag) = flag.filter(|flag| !words.iter().any(|word| word == flag)) {
        words.insert(1, flag.into());
    }
    words
}

fn words() -> Vec<String> {
    let words = LINE.get().into_iter().flatten();
    words.map(|word| word.to_string_lossy().into()).collect()
}
