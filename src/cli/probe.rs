//! `ringfold probe`: what the machine and a file allow, for people and for programs.

use std::io::Write;
use std::path::PathBuf;

use crate::probe::{Entry, Findings, Section, Value, probe};
use crate::{Result, units};
use clap::Args;

use crate::cli::{open_output, write_output};

/// Columns of a line, and where values and meanings begin.
const WIDTH: usize = 100;
const VALUE: usize = 23;
const MEANING: usize = 41;

/// Tell what this machine and a file allow: io_uring, limits, O_DIRECT, the device
#[derive(Args)]
#[command(after_help = "\
Each line is a name, what was found, and what follows from it for ringfold. Nothing is changed,
of a file a few pages are read at most, and root isn't needed: what can't be known says why. The
exit code is 0 whatever was found, and 1 where a FILE can't be opened.

Examples:
  ringfold probe                              the kernel, the user, memory and processor
  ringfold probe data.txt                     the same, then the file and the device it lies on
  ringfold probe --json data.txt | jq '.sections[] | select(.name == \"device\")'

docs/probe.md explains every line and the JSON.")]
pub(super) struct Command {
    /// Files to look at, with their devices; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON: sections with entries of name, value, unit and meaning
    #[arg(long)]
    json: bool,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let output = open_output(None)?;
        let findings = probe(&self.files)?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&findings).expect("plain values") + "\n",
            false => text(&findings),
        };
        write_output(output, |out| out.write_all(text.as_bytes()))
    }
}

fn text(findings: &Findings) -> String {
    let mut out = String::new();
    for section in &findings.sections {
        title(&mut out, section);
        for entry in &section.entries {
            line(&mut out, entry);
        }
        out.push('\n');
    }
    out.push_str("summary\n");
    for line in &findings.summary {
        // A command stays on its line, to be copied.
        match line.starts_with("try: ") {
            true => out.push_str(&format!("  {line}\n")),
            false => out.push_str(&format!("  {}\n", wrapped(line, WIDTH - 2).join("\n    "))),
        }
    }
    out
}

fn title(out: &mut String, section: &Section) {
    out.push_str(section.name);
    if let Some(subject) = &section.subject {
        out.push(' ');
        out.push_str(subject);
    }
    out.push('\n');
}

/// Three columns; what doesn't fit goes on below its column, a long value over the whole width.
fn line(out: &mut String, entry: &Entry) {
    let mut row = format!("  {:width$}", entry.name, width = VALUE - 2);
    let value = shown(&entry.value);
    let mut lines = wrapped(&entry.meaning, WIDTH - MEANING).into_iter();
    if value.chars().count() <= MEANING - VALUE - 2 {
        let first = lines.next().unwrap_or_default();
        row += &format!("{value:width$}{first}", width = MEANING - VALUE);
        push(out, &row);
    } else {
        let mut values = wrapped(&value, WIDTH - VALUE).into_iter();
        row += &values.next().unwrap_or_default();
        push(out, &row);
        for rest in values {
            push(out, &format!("{:VALUE$}{rest}", ""));
        }
    }
    for rest in lines {
        push(out, &format!("{:MEANING$}{rest}", ""));
    }
}

fn push(out: &mut String, row: &str) {
    out.push_str(row.trim_end());
    out.push('\n');
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Count(n) => n.to_string(),
        Value::Bytes(bytes) => units::size(*bytes),
        Value::Percent(share) => format!("{share:.1}%"),
        Value::Flag(true) => "yes".into(),
        Value::Flag(false) => "no".into(),
        Value::Unknown => "?".into(),
    }
}

/// A text in lines of at most `width` characters, cut at blanks, and in longer words behind commas
/// or anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut room = width;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let line = lines.last().expect("there is always one");
        if !line.is_empty() {
            if word.len() < room {
                lines.last_mut().expect("as above").push(' ');
                room -= 1;
            } else {
                lines.push(String::new());
                room = width;
            }
        }
        while word.len() > room {
            let comma = word[..room].iter().rposition(|&c| c == ',');
            let rest = word.split_off(comma.map_or(room, |at| at + 1));
            lines.last_mut().expect("as above").extend(word);
            lines.push(String::new());
            (word, room) = (rest, width);
        }
        room -= word.len();
        lines.last_mut().expect("as above").extend(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::cli::probe::*;

    #[test]
    fn lines_are_no_longer_than_asked() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("ab cd efg", 5), ["ab cd", "efg"]);
        assert_eq!(wrapped("ab,cd,efg", 6), ["ab,cd,", "efg"]);
        assert_eq!(wrapped("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
    }

    #[test]
    fn columns() {
        let entry = |value: &str| Entry {
            name: "name",
            value: Value::from(value),
            meaning: "meaning ".repeat(9).trim().into(),
        };
        for value in ["short", &"a,long,value,".repeat(20)] {
            let mut out = String::new();
            line(&mut out, &entry(value));
            assert!(out.lines().all(|line| line.len() <= WIDTH), "{out}");
            assert_eq!(out.matches("meaning").count(), 9, "{out}");
            assert_eq!(out.lines().next().unwrap().find(&value[..5]), Some(VALUE));
        }
    }
}
