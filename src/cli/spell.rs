//! Writes settings, errors and notices for users of the command line: settings as flags, with advice.

use ringfold_bench::probe::quoted;
use ringfold_read::internals::units;

use crate::cli::again;
use crate::query::{self, Doubt, DoubtKind, Hint};
use crate::refusal::{FILTER, LOOKUP, WrongPart};
use crate::{
    Begin, Cause, Choice, Error, Facility, Foreign, Notice, Refusal, Refuser, Setting, Speller,
};

/// An error's line.
pub(super) fn error(error: &Error) -> String {
    let line = error.spelled(&Flags {
        file: error.file(),
        is_decompressed: error.is_decompressed(),
    });
    let advice = match (error.file(), error.errno()) {
        (Some(directory), Some(libc::EISDIR)) => Some(files_of(directory)),
        (Some(address), Some(libc::ENOENT)) => fetched(address),
        _ => None,
    };
    match advice {
        Some(advice) => format!("{line}: {advice}"),
        None => line,
    }
}

/// What to do about an address: another program fetches it.
fn fetched(address: &str) -> Option<String> {
    let (scheme, _) = address.split_once("://")?;
    let name = quoted(address);
    let program = match scheme {
        "http" | "https" | "ftp" | "file" => format!("curl -sSfL {name}"),
        "s3" => format!("aws s3 cp {name} -"),
        "gs" => format!("gcloud storage cat {name}"),
        _ => return None,
    };
    let again = again::with_file(address, "-", None)?;
    Some(format!("try `{program} | {again}`"))
}

/// What to do about a directory.
fn files_of(directory: &str) -> String {
    let name = quoted(directory);
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_nested = entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let again =
        |files: &str| again::with_file(directory, files, None).unwrap_or_else(|| files.into());
    match is_nested {
        true => format!("try `find {name} -type f -exec {} +`", again("{}")),
        false => format!(
            "try `{}`",
            again(&format!("{}/*", name.trim_end_matches('/')))
        ),
    }
}

/// What is wrong with a record.
pub(super) fn cause(cause: &Cause) -> String {
    cause.spelled(&Flags::default())
}

/// A notice's line.
pub(super) fn notice(notice: &Notice) -> String {
    notice.spelled(&Flags::default())
}

/// What may be read otherwise, in a line.
pub(super) fn doubt(doubt: &Doubt) -> String {
    let Doubt {
        file, byte, line, ..
    } = doubt;
    let what = match doubt.kind {
        DoubtKind::Quotes => {
            "fields begin with quotes that aren't closed, so quotes are bytes like others: `--quote none` says so, \
             `--quote '\"'` reads them"
        }
        DoubtKind::BlanksBeforeQuotes => {
            "blanks before a quote, which belong to the field as the quote does: `--trim` takes them off"
        }
        DoubtKind::CarriageReturns => {
            "several carriage returns end lines, and are left out: `tr -d '\\r' <FILE` takes them off"
        }
    };
    format!("{file}: byte {byte} (line {line}): {what}")
}

/// How many records were left out because they are the header again.
pub(super) fn repeated(count: u64, place: &str) -> String {
    let records = match count {
        1 => "a record is the header again and is left out".to_string(),
        _ => format!(
            "{} records are the header again and are left out",
            units::grouped(count)
        ),
    };
    format!("{records}, the first at {place}: `--repeated-header keep` takes them for records")
}

/// The flag that makes a setting: mostly the name of its field.
pub(super) fn flag(setting: Setting) -> String {
    let name = match setting {
        Setting::Cache => "cache",
        Setting::Punt => "async",
        FILTER => "where",
        LOOKUP => "on",
        other => other.name(),
    };
    format!("--{}", name.replace('_', "-"))
}

/// Settings as flags.
#[derive(Default)]
struct Flags<'a> {
    /// The file that an error is about.
    file: Option<&'a str>,
    is_decompressed: bool,
}

impl Flags<'_> {
    /// The text of the file, as a program writes it, in the place of the file.
    fn piped(&self, program: &str) -> String {
        let Some(file) = self.file.filter(|file| *file != "-") else {
            let program = match program.trim_end_matches(" <") {
                "tar -xOf" if !self.is_decompressed => "tar -xOf -".into(),
                // These read no pipe, or none that is compressed.
                program @ ("tar -xOf" | "unzip -p" | "xlsx2csv") => format!("{program} FILE"),
                program if self.is_decompressed => format!("zcat | {program}"),
                program => program.to_string(),
            };
            return match self.file {
                Some(_) => format!(
                    "try `{program} | {}`",
                    again::of_pipe(needs_jsonl(&program))
                ),
                None => format!("try `{program}`"),
            };
        };
        let name = quoted(file);
        let program = match program.contains("FILE") {
            true => program
                .replace("'FILE'", &single(file))
                .replace("FILE", &name),
            false if program.ends_with('<') && self.is_decompressed => {
                format!(
                    "{} {name} | {}",
                    decompressor(file),
                    &program[..program.len() - 2]
                )
            }
            false if program.ends_with('<') => format!("{program}{name}"),
            false => format!("{program} {name}"),
        };
        match again::with_file(file, "-", needs_jsonl(&program)) {
            Some(again) => format!("try `{program} | {again}`"),
            None => format!("try `{program}`"),
        }
    }

    /// What to do about an input of another kind.
    fn text_of(&self, what: Foreign) -> String {
        match what {
            Foreign::Encoded { program, .. } | Foreign::Piped { program, .. } => {
                self.piped(program)
            }
            Foreign::Nuls => self.piped("tr -d '\\0' <"),
            Foreign::NulRun => format!(
                "{}, or `--on-error skip`, which leaves the record out",
                self.piped("tr -d '\\0' <")
            ),
            Foreign::CarriageReturns => self.piped("tr '\\r' '\\n' <"),
        }
    }
}

/// The flag that reads what a program writes, where its name doesn't tell.
fn needs_jsonl(program: &str) -> Option<&'static str> {
    program.starts_with("jq").then_some("--jsonl")
}

/// What decompresses a file of this name.
fn decompressor(file: &str) -> &'static str {
    match file.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "zst" => "zstdcat",
        "xz" | "lzma" => "xzcat",
        "bz2" => "bzcat",
        "lz4" => "lz4cat",
        _ => "zcat",
    }
}

/// A name between single quotes within double ones, as SQL has it.
fn single(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:@%, ".contains(letter);
    match name.chars().all(is_plain) {
        true => format!("'{name}'"),
        false => "'FILE'".into(),
    }
}

impl Speller for Flags<'_> {
    fn choice(&self, choice: &Choice) -> String {
        let flag = flag(choice.setting);
        match (&choice.value, choice.setting) {
            (None, _) => flag,
            // The value of these flags is optional, so it needs the `=`.
            (Some(value), Setting::Sqpoll | Setting::Punt) => format!("{flag}={value}"),
            (Some(value), _) => format!("{flag} {value}"),
        }
    }

    fn advice(&self, refusal: &Refusal) -> Option<String> {
        let advice = match refusal {
            Refusal::Zero { .. } => "raise it, or leave it out",
            Refusal::Contradiction { .. } => "leave one of them out",
            Refusal::NotGranted { choice, by, .. } => return Some(otherwise(choice, *by)),
            Refusal::Missing { .. } => "leave it out",
            Refusal::Unavailable {
                what: Facility::Ring,
                by: Refuser::DescriptorLimit,
                ..
            } => "raise it, or lower --rings",
            Refusal::Unavailable {
                what: Facility::Mapping,
                by: Refuser::FileSystem,
                ..
            } => "read it with another engine",
            Refusal::NoMemory { .. } => "lower --buffers, --queue-depth or --block-size",
            Refusal::NoThreads {
                setting: Setting::Rings,
                ..
            } => "lower --rings, or raise the limit on processes (ulimit -u)",
            Refusal::NoThreads { .. } => "lower --threads",
            Refusal::Exceeded { .. } => "raise --max-record",
            Refusal::NotText { what, .. } => return Some(self.text_of(*what)),
            Refusal::DecoderMemory { needed, .. } => {
                let mebibytes = needed.div_ceil(1 << 20);
                return Some(format!("`--decoder-memory {mebibytes}M` allows it"));
            }
            _ => return None,
        };
        Some(advice.to_string())
    }

    fn job(&self, error: &(dyn std::error::Error + 'static)) -> String {
        match error.downcast_ref::<query::Refusal>() {
            Some(refusal) => match advice(refusal) {
                Some(advice) => format!("{}: {advice}", refusal.fact(self)),
                None => refusal.fact(self),
            },
            None => error.to_string(),
        }
    }
}

/// What to do when a query is refused.
fn advice(refusal: &query::Refusal) -> Option<String> {
    use query::Refusal;
    let advice = match refusal {
        Refusal::Malformed { hint, .. } => return Some(hinted(*hint)),
        Refusal::OtherLog { pattern, .. } => {
            let pattern = match pattern.contains(' ') {
                true => format!("'{}'", pattern.replace('\'', "'\\''")),
                false => pattern.clone(),
            };
            return Some(format!("`--log {pattern}` reads this line"));
        }
        Refusal::Undelimited {
            is_even_quoted: true,
            ..
        } => return Some(hinted(Hint::Quotes)),
        Refusal::Undelimited {
            uneven: Some(uneven),
            ..
        } => {
            let byte = written(uneven.delimiter);
            return Some(format!("`-d '{byte}'` names it, if that is right"));
        }
        Refusal::Undelimited { candidates, .. } => return Some(delimiters(candidates)),
        Refusal::LooksLikeJson => {
            "--jsonl reads JSON lines; -d names a byte between fields all the same"
        }
        Refusal::LooksLikeLog { pattern } => {
            return Some(format!(
                "`--log {pattern}` reads it; -d names a byte between fields all the same"
            ));
        }
        Refusal::LooksLikeFields { delimiter } => {
            let delimiter = written(*delimiter);
            return Some(format!(
                "`--comment '#' -d '{delimiter}'` reads the records, whose columns have numbers"
            ));
        }
        Refusal::LooksLikeComments { mark } => {
            return Some(format!("`--comment '{mark}'` leaves them out"));
        }
        Refusal::OtherDelimiter {
            delimiter, found, ..
        } => {
            let [named, found] = [*delimiter, *found].map(written);
            return Some(format!(
                "try `-d '{found}'`, or say `-d '{named}'` if that is right"
            ));
        }
        Refusal::Partial => "`ringfold merge` prints the answer that it holds",
        Refusal::Incomplete { .. } => "--allow-gaps reports without it",
        Refusal::WrongParts(wrong) => return Some(rerun(wrong)),
        Refusal::NotSpilled { .. } => "name a directory with free space by --spill-dir",
        Refusal::SpillLost { .. } => "name another directory by --spill-dir, or raise --memory",
        Refusal::Condition { .. } => return None,
    };
    Some(advice.to_string())
}

/// What to do when a choice isn't granted.
fn otherwise(choice: &Choice, by: Refuser) -> String {
    let advice = match (choice.setting, choice.value.as_deref(), by) {
        (Setting::Engine, ..) => "choose another engine",
        (Setting::HugePages, _, Refuser::Kernel) => "leave it out or try hugetlb",
        (Setting::HugePages, Some("hugetlb"), _) => {
            "raise sysctl vm.nr_hugepages, lower --buffers or --block-size, or leave it out"
        }
        (Setting::HugePages, ..) => "lower --buffers or --block-size, or leave it out",
        (Setting::Dontcache, ..) => "leave it out, or try --direct",
        (Setting::Iopoll, _, Refuser::Device) => {
            "leave it out, or load its driver with poll queues (nvme.poll_queues=N)"
        }
        (Setting::Entries | Setting::BlockSize, ..) => "lower it",
        (Setting::Sqpoll, Some(_), _) => "name another processor, or none",
        (Setting::Punt, Some(workers), _) => return format!("leave out ={workers}"),
        (Setting::RegisteredBuffers, ..) => {
            "raise that, lower --buffers or --block-size, or leave it out"
        }
        (Setting::RegisteredFiles, ..) => "raise ulimit -n, or leave it out",
        (Setting::Pin, ..) => "name other processors",
        (Setting::IoTimeout, ..) => "lower --threads, or raise the limit on processes (ulimit -u)",
        _ => "leave it out",
    };
    advice.to_string()
}

/// What to do about a record that is malformed.
pub(super) fn hinted(hint: Hint) -> String {
    match hint {
        Hint::Delimiter(byte) => format!("`-d '{}'` makes it 2", written(byte)),
        Hint::Names => "`-H` takes the first line for the names of the columns".to_string(),
        Hint::HeaderAndDelimiter(byte) => {
            let byte = written(byte);
            format!("try `-d '{byte}' -H`, which takes the first line for the names of the columns")
        }
        Hint::Columns => {
            "`-k` and `-a` group by any columns, such as `-k 1 -a mean:3`, with `-H` if the first line has their names"
                .to_string()
        }
        Hint::SingleLine => {
            "leave out `--range`, or if no field holds a newline, `--single-line` ends such a field with its line"
                .to_string()
        }
        Hint::NullValue(value) => format!("`--null-value '{value}'` takes it for no value"),
        Hint::Float => "`--float` reads larger exponents, inf and nan".to_string(),
        Hint::NotFinite(value) => {
            format!("`--float` takes it for a number, `--null-value={value}` for no value")
        }
        Hint::DecimalComma => "`--decimal-comma` reads commas before decimals".to_string(),
        Hint::DecimalPoint => {
            "leave out `--decimal-comma` if a point stands before decimals".to_string()
        }
        Hint::CommaOrGroups => {
            "`--decimal-comma` takes the comma for a decimal point; commas between thousands have to be taken out \
             before (docs/not-for.md)"
                .to_string()
        }
        // The dollar means the end of a line there.
        Hint::Sign("$") => "`sed 's/[$]//g' FILE` takes the signs off".to_string(),
        Hint::Sign(sign) => format!("`sed 's/{sign}//g' FILE` takes the signs off"),
        Hint::Amount => {
            "separators of thousands and parentheses have to be taken out before (docs/not-for.md)"
                .to_string()
        }
        Hint::Quotes => "`--quote '\"'` reads fields in quotes".to_string(),
        Hint::Times => "`@time` after the column of `min` or `max` compares times".to_string(),
        Hint::QuotedTime => {
            "a date in single quotes, as '2024-05-01', is compared as a time".to_string()
        }
        Hint::Quote => {
            "`--on-error skip` leaves out such records, `--quote none` takes quotes for bytes like others".to_string()
        }
        Hint::Escape => "`--escape '\\'` reads quotes after a backslash".to_string(),
        Hint::Trim => "`--trim` takes off blanks around fields".to_string(),
        Hint::MaxRecord(bytes) => format!(
            "`--max-record {bytes}` reads longer ones; if a quote isn't closed, `--on-error skip` leaves out its line"
        ),
        Hint::LoneReturn => "`tr '\\r' '\\n' <FILE` makes it a line's end".to_string(),
        Hint::LastDelimiter(byte) => format!("try `sed 's/{}$//' FILE`", written(byte)),
        Hint::RowNames(byte) => {
            let byte = written(byte);
            format!("if each begins with the name of a row, try `sed '1s/^/row{byte}/' FILE`")
        }
        Hint::DoubledDelimiter(byte) => {
            let byte = written(byte);
            format!("try `sed 's/{byte}{byte}/{byte}/g' FILE`, or say `-d '{byte}'` if that is right")
        }
        Hint::CommentedHeader(lines) => format!(
            "`--skip-lines {lines}` without `--comment` takes it for the header; `--skip-lines {}` beside `--comment` doesn't",
            lines + 1
        ),
        Hint::Begin(Begin::Quoted) => {
            "this part was read as if it began within a quoted field: if it begins outside quotes, `--begin unquoted` reads it"
                .to_string()
        }
        Hint::Begin(_) => {
            "this part was read as if it began outside quotes: if it begins within a quoted field, `--begin quoted` reads it"
                .to_string()
        }
    }
}

/// How parts that were read from a wrong place on are read again.
fn rerun(wrong: &[WrongPart]) -> String {
    let flags: Vec<_> = (wrong.iter())
        .map(|part| {
            let begin = begin(part.begin);
            format!("`--range {}/{} --begin {begin}`", part.part, part.parts)
        })
        .collect();
    let others = match wrong.iter().any(|part| part.has_others) {
        true => ", and merge it anew with the other parts of that partial",
        false => "",
    };
    let it = if flags.len() == 1 { "it" } else { "them" };
    format!("run {it} again with {}{others}", flags.join(" and "))
}

/// How it is said where the first record of a part begins.
fn begin(begin: Begin) -> String {
    match begin {
        Begin::Likely | Begin::Unquoted => "unquoted".into(),
        Begin::Quoted => "quoted".into(),
        Begin::At(byte) => byte.to_string(),
    }
}

/// How one of these delimiters is named.
fn delimiters(candidates: &[(u8, usize)]) -> String {
    let flags: Vec<_> = (candidates.iter())
        .map(|(byte, _)| format!("`-d '{}'`", written(*byte)))
        .collect();
    match flags.is_empty() {
        true => {
            "name it, as `-d ','`; any byte that is in no record makes each line one field".into()
        }
        false => format!("name it by {}", flags.join(" or ")),
    }
}

/// A delimiter as it is typed.
fn written(byte: u8) -> String {
    match byte {
        b'\t' => "\\t".into(),
        byte => char::from(byte).into(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use crate::cli::command::Cli;
    use crate::cli::spell::*;
    use crate::refusal::{AGGREGATE, HAVING, KEY, MEMORY, PRECISION, SORT};

    /// The string literals of a Rust file, each with its line; comments are no strings.
    fn literals(text: &str) -> Vec<(usize, String)> {
        let (mut literals, mut rest, mut line) = (Vec::new(), text, 1);
        while let Some(first) = rest.chars().next() {
            let quoted = |rest: &str, quote: &str| rest.find(quote).map(|at| at + quote.len());
            let raw = rest.strip_prefix('r').map(|rest| {
                let hashes = rest.len() - rest.trim_start_matches('#').len();
                (hashes, &rest[hashes..])
            });
            let taken = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if let Some((hashes, body)) = raw
                && let Some(body) = body.strip_prefix('"')
            {
                let end = format!("\"{}", "#".repeat(hashes));
                let len = quoted(body, &end).expect("a raw string ends");
                literals.push((line, body[..len - end.len()].to_string()));
                hashes + 2 + len
            } else if first == '"' {
                let mut escaped = false;
                let len = rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                let len = len.expect("a string ends");
                literals.push((line, rest[1..1 + len].to_string()));
                len + 2
            } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
                rest[1..].find('\'').expect("a quote ends") + 2
            } else {
                first.len_utf8()
            };
            line += rest[..taken].matches('\n').count();
            rest = &rest[taken..];
        }
        literals
    }

    /// Whether a text spells a flag, or gives advice that only the command line can.
    fn is_for_users_of_flags(text: &str) -> bool {
        let is_flag = |(at, _): (usize, &str)| {
            let before = text[..at].chars().next_back();
            let after = text[at + 2..].chars().next();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
                && after.is_some_and(|c| c.is_ascii_lowercase())
        };
        text.match_indices("--").any(is_flag) || text.contains("leave it out")
    }

    #[test]
    fn strings_are_found() {
        let text = "// \"--no\"\nlet a = '\"'; f(\"--a \\\" b\", r#\"x \"--y\" \"#); let b = '\\\"';\n\"c\"";
        let found = literals(text);
        let texts: Vec<_> = found.iter().map(|(line, text)| (*line, &**text)).collect();
        let want = [(2, "--a \\\" b"), (2, "x \"--y\" "), (3, "c")];
        assert_eq!(texts, want);
        for flag in [
            "--a",
            "name (--memory) it",
            "`-d` or --on-error",
            "leave it out",
        ] {
            assert!(is_for_users_of_flags(flag), "{flag}");
        }
        for none in ["a--b", "`--5.0` is none", "---", "a -- b", ""] {
            assert!(!is_for_users_of_flags(none), "{none}");
        }
    }

    /// The library names settings by their fields; what the probe tells is for the command line's users.
    #[test]
    fn no_flag_is_spelled_in_the_library() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let src = root.join("src");
        let (mut folders, mut seen) = (vec![src.clone(), root.join("crates/read/src")], 0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&src).unwrap_or(&path).with_extension("");
                if name.starts_with("cli") || name.starts_with("probe") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    for (line, text) in literals(&std::fs::read_to_string(&path).unwrap()) {
                        let path = path.display();
                        assert!(!is_for_users_of_flags(&text), "{path}:{line}: {text}");
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 500, "{seen} strings");
    }

    /// Each setting is a flag of a job, whose help lists it.
    #[test]
    fn every_setting_has_a_flag() {
        let has = |command: &Command, name: &str| {
            command.get_arguments().any(|arg| {
                let long = arg.get_long().is_some_and(|long| long == name);
                long && !arg.is_hide_set()
            })
        };
        let program = Cli::command();
        let aggregate = program.find_subcommand("aggregate").unwrap();
        let of_queries = [
            AGGREGATE, FILTER, HAVING, KEY, LOOKUP, MEMORY, PRECISION, SORT,
        ];
        for &setting in Setting::ALL.iter().chain(&of_queries) {
            let flag = flag(setting);
            assert!(has(aggregate, &flag[2..]), "{setting} isn't {flag}");
        }
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        let written = |choice: Choice| Flags::default().choice(&choice);
        assert_eq!(written(Setting::Direct.into()), "--direct");
        assert_eq!(written(Setting::TaskRun.of("defer")), "--task-run defer");
        assert_eq!(written(Setting::Sqpoll.of(3)), "--sqpoll=3");
        assert_eq!(written(Setting::Punt.of(2)), "--async=2");
    }

    #[test]
    fn a_line_says_what_refused_and_what_to_do() {
        let missing = Refusal::Unavailable {
            what: Facility::Ring,
            by: Refuser::DescriptorLimit,
            why: "io_uring_setup: no descriptor is left, see ulimit -n".into(),
        };
        let refused = Error::from(Refusal::Missing {
            setting: Setting::Punt,
            what: Box::new(missing),
        });
        assert_eq!(
            error(&refused.with_errno(&rustix::io::Errno::MFILE.into())),
            "--async: no io_uring: io_uring_setup: no descriptor is left, see ulimit -n: raise it, \
             or lower --rings: leave it out [EMFILE]"
        );
        let refused = Error::from(Refusal::NotAFile {
            setting: Setting::Direct,
        });
        assert_eq!(
            error(&refused),
            "O_DIRECT (--direct) needs a file with a size, not a pipe or device"
        );
        assert_eq!(
            refused.to_string(),
            "O_DIRECT (direct) needs a file with a size, not a pipe or device"
        );
    }
}
