//! What can't be meant is refused with exit code 2 before anything is read.

use std::fs::File;

use crate::probe::{Feature, skips};
use crate::support::{dir, end, names, ringfold, str, write};

#[test]
fn contradictions() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    for (flags, words) in [
        (
            &["--buffers", "4", "--queue-depth", "4"][..],
            &["--buffers 4", "--queue-depth 4", "5"][..],
        ),
        (
            &["--buffers", "3", "--iodepth", "4"],
            &["--buffers 3", "--queue-depth 4"],
        ),
        (&["--buffers", "1"], &["--buffers 1", "2 to"]),
        (&["--direct", "--engine", "mmap"], &["--direct", "mmap"]),
        (&["--direct", "--engine", "memory"], &["--direct", "memory"]),
        (&["--block-size", "0"], &["--block-size 0"]),
        (
            &["--block-size", "2G"],
            &["--block-size 2147483648", "1073741824"],
        ),
        (&["--queue-depth", "0"], &["--queue-depth 0"]),
        (&["--queue-depth", "100000"], &["--queue-depth 100000"]),
        (&["--threads", "0"], &["--threads 0"]),
        (&["--max-record", "0"], &["--max-record 0"]),
    ] {
        for job in ["aggregate", "count"] {
            let error = end(ringfold([job]).args(flags).arg(&path)).failure(2);
            for word in words {
                assert!(error.contains(word), "{flags:?}: {error} lacks {word}");
            }
        }
    }
}

#[test]
fn a_block_size_that_direct_reads_cannot_have() {
    if skips(
        "a_block_size_that_direct_reads_cannot_have",
        &[Feature::Direct],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    for block in ["1", "100", "4097", "1000000"] {
        for engine in ["auto", "uring", "uring-raw", "read", "pread"] {
            let flags = [
                "aggregate",
                "--direct",
                "-b",
                block,
                "--engine",
                engine,
                str(&path),
            ];
            let error = end(&mut ringfold(flags)).failure(2);
            assert!(
                error.contains("--block-size must be a multiple of "),
                "{error}"
            );
            assert!(error.contains("--direct"), "{error}");
        }
    }
}

#[test]
fn what_cannot_be_understood() {
    for (args, words) in [
        (&[][..], "Usage:"),
        (&["frobnicate"], "frobnicate"),
        (&["aggregate", "--engine", "warp", "x"], "warp"),
        (&["probe", "--deep"], "--deep"),
        (&["aggregate", "-f", "xml", "x"], "xml"),
        (&["aggregate", "-b", "1Q", "x"], "1Q"),
        (&["aggregate", "-b", "-1", "x"], "-1"),
        (&["aggregate", "-d", "ab", "x"], "ab"),
        (&["aggregate", "-d", "\n", "x"], "delimiter"),
        (&["aggregate", "--on-error", "cry", "x"], "cry"),
        (&["aggregate", "--stats=xml", "x"], "xml"),
        (
            &["aggregate", "--queue-depth", "99999999999999999999999", "x"],
            "99999999999999999999999",
        ),
        (&["generate"], "--output"),
        (&["generate", "-o", "x"], "--rows"),
        (&["generate", "-o", "x", "--rows", "many"], "many"),
        (
            &["generate", "-o", "x", "--rows", "1", "--keys", "0"],
            "--keys",
        ),
        (
            &["generate", "-o", "x", "--rows", "1", "--keys", "5e9"],
            "--keys",
        ),
    ] {
        let ended = end(&mut ringfold(args));
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{args:?}");
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}

/// One would replace the other, whatever they are called.
#[test]
fn outputs_that_are_one_file_are_refused() {
    let dir = dir();
    write(dir.path(), "file", b"a,1\nb,x\n");
    let refused = |args: &[&str], twice: &str| {
        let mut command = ringfold(["aggregate", "-k", "1", "-a", "sum:2", "file"]);
        let error = end(command.args(args).current_dir(dir.path())).failure(2);
        assert_eq!(error, format!("{twice} are the same file"), "{args:?}");
    };
    std::fs::create_dir(dir.path().join("below")).unwrap();
    refused(&["--rejects", "r", "-o", "./r"], "--output and --rejects");
    let kept = [
        "--save-partial",
        "r",
        "--on-error",
        "skip",
        "--rejects",
        "below/../r",
    ];
    refused(&kept, "--save-partial and --rejects");
    let state = ["--continue", "r", "--report-too", "-o", "below/../r"];
    refused(&state, "--output and --continue");
    write(dir.path(), "old", b"");
    std::os::unix::fs::symlink("old", dir.path().join("symbolic")).unwrap();
    refused(
        &["--rejects", "symbolic", "-o", "old"],
        "--output and --rejects",
    );
    assert_eq!(names(dir.path()), ["below", "file", "old", "symbolic"]);
    let mut command = ringfold([
        "aggregate",
        "-k",
        "1",
        "-a",
        "sum:2",
        "file",
        "--rejects",
        "old",
    ]);
    let appended = File::options()
        .append(true)
        .open(dir.path().join("old"))
        .unwrap();
    let ended = command
        .current_dir(dir.path())
        .stdout(appended)
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        said,
        "ringfold: standard output and --rejects are the same file\n"
    );
    // Devices and pipes may be written by several.
    let both = ["--rejects", "/dev/null", "-o", "/dev/null"];
    let mut command = ringfold(["aggregate", "-k", "1", "-a", "sum:2", "file"]);
    assert_eq!(
        end(command.args(both).current_dir(dir.path())).code,
        Some(0)
    );
}

#[test]
fn no_file_is_standard_input() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    for (job, want) in [("aggregate", "{a=1.0/1.0/1.0}\n"), ("count", "1 6\n")] {
        let mut command = ringfold([job]);
        command.stdin(std::fs::File::open(&path).unwrap());
        assert_eq!(String::from_utf8(end(&mut command).answer()).unwrap(), want);
    }
}

/// By whatever name, and nothing is read or made.
#[test]
fn an_output_that_is_an_input_is_refused() {
    let dir = dir();
    let text = b"a;1.0\n";
    let path = write(dir.path(), "file", text);
    let other = write(dir.path(), "other", b"b;2.0\n");
    let (symbolic, hard) = (dir.path().join("symbolic"), dir.path().join("hard"));
    std::os::unix::fs::symlink("file", &symbolic).unwrap();
    std::fs::hard_link(&path, &hard).unwrap();
    let roundabout = dir.path().join("./file");
    let unchanged = || {
        assert_eq!(std::fs::read(&path).unwrap(), text);
        assert_eq!(names(dir.path()), ["file", "hard", "other", "symbolic"]);
    };
    for output in [&path, &symbolic, &hard, &roundabout] {
        let refused = |error: String| {
            let begins = format!("{} is the input", str(output));
            assert!(error.starts_with(&begins), "{error}");
            unchanged();
        };
        let mut command = ringfold(["aggregate", "-o", str(output), str(&other), str(&path)]);
        refused(end(&mut command).failure(2));
        for names in [&["-"][..], &[]] {
            let mut command = ringfold(["aggregate", "-o", str(output)]);
            command.args(names).stdin(File::open(&path).unwrap());
            refused(end(&mut command).failure(2));
        }
    }
    // Standard output: what is appended would be read.
    let appended = || File::options().append(true).open(&path).unwrap();
    let stdout = |args: &[&str]| {
        let mut command = ringfold(["aggregate"]);
        command.args(args).stdin(File::open(&path).unwrap());
        let ended = command.stdout(appended()).output().unwrap();
        (
            ended.status.code(),
            String::from_utf8(ended.stderr).unwrap(),
        )
    };
    for args in [
        &[str(&hard)][..],
        &["-"],
        &["-o", "-", str(&path)],
        &["-o", "/dev/stdout"],
    ] {
        let (code, said) = stdout(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(" is the input"), "{said}");
        unchanged();
    }
    // What isn't read may be written to.
    assert_eq!(stdout(&[str(&other)]), (Some(0), String::new()));
    assert_eq!(std::fs::read(&path).unwrap(), b"a;1.0\n{b=2.0/2.0/2.0}\n");
    std::fs::write(&path, "").unwrap();
    // A shell has emptied it.
    for args in [&[str(&path)][..], &["-"], &["-k", "1", str(&hard)]] {
        let (code, said) = stdout(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains("`>` has emptied it"), "{said}");
    }
    let mut command = ringfold(["aggregate", "-o", "/dev/null", "/dev/null"]);
    assert_eq!(end(&mut command).answer(), b"");
}

#[test]
fn help_and_version_and_completions_go_to_standard_output() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["aggregate", "--help"],
        &["count", "-h"],
        &["generate", "--help"],
        &["probe", "--help"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["completions", "fish"],
        &["man"],
        &["man", "aggregate"],
        &["count", "--help-io"],
    ] {
        let out = end(&mut ringfold(args)).answer();
        assert!(
            String::from_utf8(out).unwrap().contains("ringfold"),
            "{args:?}"
        );
    }
}

/// By `--help`, and by `--help-io`.
fn flags_told(help: &str) -> Vec<String> {
    let out = end(&mut ringfold(["aggregate", help])).answer();
    let out = String::from_utf8(out).unwrap();
    let lines = out
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-') && line.contains("--"));
    let flag = |line: &str| {
        let from = line.find("--").unwrap();
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        let length = line[from..]
            .find(|c| !is_name(c))
            .unwrap_or(line.len() - from);
        line[from..from + length].to_string()
    };
    lines.map(flag).collect()
}

#[test]
fn everyday_flags_come_first_and_examples_last() {
    for (help, most, examples) in [("-h", 8, 4), ("--help", 58, 12)] {
        let flags = flags_told(help);
        assert_eq!(
            flags[..5],
            ["--key", "--aggregate", "--where", "--sort", "--top"]
        );
        assert!(flags.len() <= most, "{flags:?}");
        let out = String::from_utf8(end(&mut ringfold(["aggregate", help])).answer()).unwrap();
        let (_, shown) = out.split_once("Examples:\n").expect(&out);
        assert_eq!(
            shown.matches("ringfold aggregate ").count(),
            examples,
            "{shown}"
        );
    }
    let io = flags_told("--help-io");
    assert!(
        ["--engine", "--direct", "--block-size", "--sqpoll"]
            .iter()
            .all(|flag| io.iter().any(|listed| listed == flag)),
        "{io:?}"
    );
    assert!(!io.iter().any(|listed| listed == "--format"), "{io:?}");
}

/// The manual holds what both have.
#[test]
fn the_manual_documents_every_flag() {
    let page = |args: &[&str]| {
        let out = end(ringfold(["man"]).args(args)).answer();
        String::from_utf8(out).unwrap().replace('\\', "")
    };
    let manual = page(&["aggregate"]);
    for flag in flags_told("--help").iter().chain(&flags_told("--help-io")) {
        assert!(manual.contains(&**flag), "no {flag} in {manual}");
    }
    for title in [".TH ringfold-aggregate 1", "EXAMPLES", "SEE ALSO"] {
        assert!(manual.contains(title), "no {title} in {manual}");
    }
    let overview = page(&[]);
    for words in [
        "ringfold-aggregate",
        "ringfold-count",
        "ringfold-probe",
        "EXIT STATUS",
    ] {
        assert!(overview.contains(words), "no {words} in {overview}");
    }
    let error = end(&mut ringfold(["man", "nothing"])).failure(2);
    assert!(
        error.contains("aggregate, describe, merge, inspect, "),
        "{error}"
    );
    let help = String::from_utf8(end(&mut ringfold(["--help"])).answer()).unwrap();
    assert!(
        help.lines().any(|line| line.starts_with("  man ")),
        "{help}"
    );
}

#[test]
fn a_file_without_a_command_is_aggregated() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    // A command's name is one.
    write(dir.path(), "count", b"b;2.0\n");
    for args in [
        &[str(&path)][..],
        &["file"],
        &["./file"],
        &["file", "-f", "1brc"],
        &["-"],
    ] {
        let mut command = ringfold(args);
        command
            .current_dir(dir.path())
            .stdin(File::open(&path).unwrap());
        assert_eq!(end(&mut command).answer(), b"{a=1.0/1.0/1.0}\n", "{args:?}");
    }
    let counted = end(ringfold(["count"]).current_dir(dir.path())).answer();
    assert_eq!(counted, b"0 0\n");
    for word in ["missing.txt", "a/b"] {
        let error = end(&mut ringfold([word])).failure(2);
        assert_eq!(error, format!("{word} is neither a command nor a file"));
    }
}

/// Of a flag that is given twice the last one holds; files are all read.
#[test]
fn the_last_of_a_flag_holds() {
    let dir = dir();
    let (one, two) = (
        write(dir.path(), "one", b"a,1.0\n"),
        write(dir.path(), "two", b"a,2.0\n"),
    );
    let mut command = ringfold([
        "aggregate",
        "-d",
        ";",
        "-f",
        "lines",
        "-q",
        "-d",
        ",",
        "--format=1brc",
    ]);
    command.args(["-q", str(&one), "-j1", str(&two), "-j", "2"]);
    assert_eq!(end(&mut command).answer(), b"{a=1.0/1.5/2.0}\n");
}

#[test]
fn flags_without_effect_are_told() {
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\n");
    let mut command = ringfold(["aggregate", "--engine", "pread", "--stats=json"]);
    command
        .args(["--queue-depth", "3", "--buffers", "9"])
        .arg(&path);
    let (_, stats) = end(&mut command).answer_and_notices();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(
        stats["without_effect"],
        serde_json::json!(["--queue-depth", "--buffers"])
    );
}
