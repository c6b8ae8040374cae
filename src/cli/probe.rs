//! `ringfold probe`: what the machine and a file allow, for people and for programs.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use crate::Result;
use crate::budget::GROUP_MIN;
use clap::Args;
use ringfold_bench::probe::{Check, Entry, Findings, Mark, Section, Value, probe};
use ringfold_read::internals::units;

use crate::cli::console::{columns, open_output, write_output};

/// Columns of a line where there is no terminal, and the fewest it is cut to.
const WIDTH: usize = 100;
const WIDTH_MIN: usize = 20;
/// Where values and meanings begin; below [`TABLE`] columns they stand under each other.
const VALUE: usize = 23;
const MEANING: usize = 41;
const TABLE: usize = 70;

/// Show what this machine and a file allow: io_uring, limits, O_DIRECT, the device
#[derive(Args)]
#[command(after_help = "\
The first lines say what auto does. Then come things that are bad (!), fair (~) and good (+), and
what to change. The probe itself changes nothing, reads a few pages of a file at most, and doesn't
need root. The exit code is 0 whatever was found, and 1 when a FILE can't be opened.

Examples:
  ringfold probe                              the kernel, the user, memory and processor
  ringfold probe data.txt                     the same, then the file and the device it lies on
  ringfold probe --all data.txt               all details
  ringfold probe --json data.txt | jq '.sections[] | select(.name == \"device\")'

docs/probe.md explains every line and the JSON.")]
pub(super) struct Command {
    /// Files to examine, with their devices; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print all details: a name, a value, and what it means for ringfold
    #[arg(long)]
    all: bool,
    /// Print JSON: sections with entries of name, value, unit and meaning
    #[arg(long, conflicts_with = "all")]
    json: bool,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        let output = open_output(None)?;
        let findings = probe(&self.files, GROUP_MIN)?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&findings).expect("plain values") + "\n",
            false => Page::here().text(&findings, self.all),
        };
        write_output(output, |out| out.write_all(text.as_bytes()))
    }
}

/// Where the text goes.
struct Page {
    width: usize,
    colours: bool,
}

impl Page {
    /// As standard output has it.
    fn here() -> Page {
        let terminal = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Page {
            width: columns().map_or(WIDTH, |columns| columns.max(WIDTH_MIN)),
            colours: terminal && !plain,
        }
    }

    fn text(&self, findings: &Findings, all: bool) -> String {
        let mut out = String::new();
        let is_command = |line: &&String| line.starts_with("try: ");
        for line in findings.summary.iter().filter(|line| !is_command(line)) {
            out += &(wrapped(line, self.width).join("\n") + "\n");
        }
        let of = |mark| {
            findings
                .checks
                .iter()
                .filter(move |check| check.mark == mark)
                .count()
        };
        let verdict = match (of(Mark::Bad), of(Mark::Fair)) {
            (0, 0) => "Nothing is in the way.".to_string(),
            (0, 1) => "Nothing is in the way. 1 thing to know:".to_string(),
            (0, fair) => format!("Nothing is in the way. {fair} things to know:"),
            (1, _) => "1 thing is in the way:".to_string(),
            (bad, _) => format!("{bad} things are in the way:"),
        };
        out += &(wrapped(&verdict, self.width).join("\n") + "\n\n");
        for check in &findings.checks {
            self.check(&mut out, check);
        }
        out.push('\n');
        // A command stays on its line, to be copied.
        for line in findings.summary.iter().filter(is_command) {
            out += &format!("{line}\n");
        }
        if !all {
            return out + "all details: --all\n";
        }
        for section in &findings.sections {
            out.push('\n');
            title(&mut out, section);
            for entry in &section.entries {
                line(&mut out, entry, self.width);
            }
        }
        out
    }

    /// A mark, what it is, and below what to do.
    fn check(&self, out: &mut String, check: &Check) {
        let (mark, colour) = match check.mark {
            Mark::Good => ('+', 32),
            Mark::Fair => ('~', 33),
            Mark::Bad => ('!', 31),
        };
        let mark = match self.colours {
            true => format!("\x1b[{colour}m{mark}\x1b[0m"),
            false => mark.to_string(),
        };
        let what = wrapped(&check.what, self.width - 4);
        let advice = check
            .advice
            .iter()
            .flat_map(|advice| wrapped(advice, self.width - 7));
        for (number, line) in what.iter().enumerate() {
            let before = if number == 0 { &*mark } else { " " };
            push(out, &format!("  {before} {line}"));
        }
        for (number, line) in advice.enumerate() {
            let before = if number == 0 { "->" } else { "  " };
            push(out, &format!("    {before} {line}"));
        }
    }
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
fn line(out: &mut String, entry: &Entry, width: usize) {
    if width < TABLE {
        push(out, &format!("  {}", entry.name));
        let value = shown(&entry.value);
        for text in [&value, &entry.meaning]
            .into_iter()
            .filter(|text| !text.is_empty())
        {
            for line in wrapped(text, width - 4) {
                push(out, &format!("    {line}"));
            }
        }
        return;
    }
    let mut row = format!("  {:1$}", entry.name, VALUE - 2);
    let value = shown(&entry.value);
    let mut lines = wrapped(&entry.meaning, width - MEANING).into_iter();
    if value.chars().count() <= MEANING - VALUE - 2 {
        let first = lines.next().unwrap_or_default();
        row += &format!("{value:0$}{first}", MEANING - VALUE);
        push(out, &row);
    } else {
        let mut values = wrapped(&value, width - VALUE).into_iter();
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

/// A text in lines of at most `width` characters, cut at blanks, and in longer words after commas
/// or anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut left = width;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let line = lines.last().expect("there is always one");
        if !line.is_empty() {
            if word.len() < left {
                lines.last_mut().expect("as above").push(' ');
                left -= 1;
            } else {
                lines.push(String::new());
                left = width;
            }
        }
        while word.len() > left {
            let comma = word[..left].iter().rposition(|&c| c == ',');
            let rest = word.split_off(comma.map_or(left, |at| at + 1));
            lines.last_mut().expect("as above").extend(word);
            lines.push(String::new());
            (word, left) = (rest, width);
        }
        left -= word.len();
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
            line(&mut out, &entry(value), WIDTH);
            assert!(out.lines().all(|line| line.len() <= WIDTH), "{out}");
            assert_eq!(out.matches("meaning").count(), 9, "{out}");
            assert_eq!(out.lines().next().unwrap().find(&value[..5]), Some(VALUE));
            for width in WIDTH_MIN..200 {
                let mut out = String::new();
                line(&mut out, &entry(value), width);
                assert!(
                    out.lines().all(|line| line.len() <= width),
                    "{width}: {out}"
                );
                assert_eq!(out.matches("meaning").count(), 9, "{out}");
            }
        }
    }

    #[test]
    fn the_verdict_comes_first_and_marks_have_colours_on_a_terminal() {
        let findings = Findings {
            schema: 1,
            sections: Vec::new(),
            summary: vec![
                "f: auto: all of it is cached".into(),
                "try: ringfold count f".into(),
            ],
            checks: vec![
                Check::bad("no io_uring", "allow it"),
                Check::fair("a virtual disk", "mind it"),
                Check::good("huge pages"),
            ],
        };
        let page = |width, colours| Page { width, colours }.text(&findings, false);
        assert_eq!(
            page(80, false),
            "f: auto: all of it is cached\n1 thing is in the way:\n\n  ! no io_uring\n    -> allow it\n  \
             ~ a virtual disk\n    -> mind it\n  + huge pages\n\ntry: ringfold count f\nall details: --all\n"
        );
        assert!(page(80, true).contains("  \x1b[31m!\x1b[0m no io_uring\n"));
        let narrow = page(WIDTH_MIN, false);
        let mut lines = narrow.lines().filter(|line| !line.starts_with("try: "));
        assert!(lines.all(|line| line.len() <= WIDTH_MIN), "{narrow}");
    }
}
