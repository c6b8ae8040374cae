//! `ringfold aggregate FILE` without a question: what is in the file, and what to type next.

use std::path::PathBuf;

use ringfold_bench::probe::quoted;

use crate::cli::again;
use crate::cli::console::{self, notice};
use crate::cli::query::Run;
use crate::cli::reading::check_text;
use crate::cli::spell;
use crate::query::{Column, Form, Overview, Query, Values};
use crate::{Config, Input, Result};

/// Characters of a line where the output isn't a terminal.
const WIDTH: usize = 100;

/// Prints what is in an input, of which `query` says what the command line says, if it has so many columns; returns whether
/// it has.
pub(super) fn print(query: &Query, input: &Input, run: &Run<'_>, columns: usize) -> Result<bool> {
    let config = Config {
        max_record: run.command.reading.max_record(),
        ..Config::default()
    };
    check_text(input)?;
    let overview = query.overview(input, &config)?;
    if overview.columns.len() < columns {
        return Ok(false);
    }
    let mut text = file(run.paths);
    // Writing to a string can't fail.
    let _ = overview.write(console::columns().unwrap_or(WIDTH), &mut text);
    text += "\nAsk, for example:\n";
    let flags = flags(&overview);
    for question in questions(&overview) {
        let line = again::with_flags(&[flags.clone(), question].concat(), run.paths);
        text += &format!("  {line}\n");
    }
    let described = again::with_flags(&flags, run.paths);
    let described = described.replacen("ringfold aggregate", "ringfold describe", 1);
    text += &format!("What all records hold:\n  {described}\n");
    console::print(text.as_bytes())?;
    for doubt in overview
        .doubts
        .iter()
        .filter(|_| !run.command.reading.quiet)
    {
        notice(spell::doubt(doubt));
    }
    Ok(true)
}

/// The line that names the file.
pub(super) fn file(paths: &[PathBuf]) -> String {
    let first = paths
        .first()
        .map_or("-".into(), |path| path.to_string_lossy());
    let first = match &*first {
        "-" => "standard input".into(),
        name => quoted(name),
    };
    let others = match paths.len() {
        0 | 1 => String::new(),
        several => format!(", the first of {several}"),
    };
    format!("{:13} {first}{others}\n", "file")
}

/// The flags that say what was found.
pub(super) fn flags(overview: &Overview) -> Vec<String> {
    let flags: &[&str] = match &overview.form {
        Form::JsonLines => &["--jsonl"],
        Form::Log(pattern) => &["--log", pattern],
        Form::Fields(b'\t') => &["--comment", "#", "-d", "\\t"],
        Form::Fields(b' ') => &["--comment", "#", "-d", " "],
        Form::Fields(_) => &["--comment", "#", "-d", ","],
        Form::Commented(mark) => &["--comment", mark],
        Form::Lines => &["-d", "\\x1f"],
        _ => &[],
    };
    let comma = overview.has_decimal_comma.then_some("--decimal-comma");
    let flags = flags.iter().copied().chain(comma);
    flags.map(String::from).collect()
}

/// Questions about columns that are likely keys and numbers.
pub(super) fn questions(overview: &Overview) -> Vec<Vec<String>> {
    let columns = &overview.columns;
    let repeats = |column: &&Column| column.distinct > 1 && column.distinct < overview.records;
    let is_text = |column: &&Column| column.values == Values::Texts;
    let is_there = |column: &&Column| column.values != Values::Nulls;
    let mut texts = columns.iter().filter(is_text);
    let key = texts.clone().find(repeats).or(texts.next());
    let key = key.or(columns.iter().filter(is_there).find(repeats));
    let key = key.or(columns.first());
    let Some(key) = key else {
        return Vec::new();
    };
    let numbers = || {
        let numbers = columns.iter().filter(|column| column.number != key.number);
        numbers.filter(|column| matches!(column.values, Values::Numbers(_)))
    };
    let decimals = numbers().find(|column| column.values != Values::Numbers(0));
    let number = decimals.or(numbers().next_back());
    let time = columns.iter().find(|column| column.values == Values::Times);
    // Names imply a header; numbers alone don't.
    let question = |used: &[&Column], words: [String; 2], what: Option<String>| {
        let is_numbered = |column: &&&Column| called(column, columns) == column.number.to_string();
        let is_plain = matches!(
            overview.form,
            Form::Plain | Form::Commented(_) | Form::Lines
        );
        let has_header = is_plain && key.is_callable;
        let header =
            (has_header && used.iter().all(|column| is_numbered(&column))).then(|| "-H".into());
        let what = what.into_iter().flat_map(|what| ["-a".into(), what]);
        header.into_iter().chain(words).chain(what).collect()
    };
    let by = |column: &Column, unit: &str| {
        [
            "-k".to_string(),
            format!("{}{unit}", called(column, columns)),
        ]
    };
    let mut questions = vec![question(&[key], by(key, ""), None)];
    if let Some(number) = number {
        let name = called(number, columns);
        let what = format!("count,sum:{name},mean:{name}");
        questions.push(question(&[key, number], by(key, ""), Some(what)));
    }
    questions.extend(time.map(|time| question(&[time], by(time, "@day"), None)));
    questions
}

/// How a column is called: by its name, if no other has it.
fn called(column: &Column, all: &[Column]) -> String {
    let name = column.name.as_deref().filter(|_| column.is_callable);
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let is_alone = |name: &&str| {
        let is_same = |other: &&Column| other.name.as_deref() == Some(name.as_bytes());
        !name.is_empty() && all.iter().filter(is_same).count() == 1
    };
    let Some(name) = name.filter(is_alone) else {
        return column.number.to_string();
    };
    let is_plain = name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
        && !name.contains([',', ':', '@', '"']);
    match is_plain {
        true => name.into(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
