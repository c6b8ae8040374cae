//! What a run has written survives a power failure and other runs: files on a simulated disk that drops what wasn't
//! synced, and several runs that begin one file.
//!
//! The disk replays the system calls of a run. It may have kept a name that wasn't synced yet, or not; bytes that weren't
//! synced are lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::probe::{Feature, skips};
use crate::support::{dir, end, end_of, names, ringfold, start, str, write};

/// The calls of a run that finish, in the order in which they do so.
fn calls(dir: &Path, args: &[&str]) -> Vec<String> {
    let log = dir.join("../log");
    let program = ringfold(args);
    let mut command = Command::new("strace");
    let what = "trace=write,pwrite64,writev,linkat,link,rename,renameat,renameat2,fsync,fdatasync,syncfs,unlink,unlinkat";
    command.args(["-f", "-qq", "-y", "-s", "0", "-e", what, "-o", str(&log)]);
    command
        .arg(program.get_program())
        .args(args)
        .current_dir(dir);
    assert_eq!(end(&mut command).code, Some(0), "{args:?}");
    let mut begun = BTreeMap::new();
    let mut calls = Vec::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(head) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread.to_string(), head.to_string());
        } else if call.starts_with("<... ") {
            let (_, tail) = call.split_once(" resumed>").unwrap();
            calls.push(begun.remove(thread).unwrap() + tail);
        } else {
            calls.push(call.to_string());
        }
    }
    calls
}

/// A file, by what strace calls it, or a name in the directory.
#[derive(Default)]
struct Disk {
    /// Bytes that were written, and those of them that were synced.
    files: BTreeMap<String, (u64, u64)>,
    /// The file of each name in the directory, and whether the name was synced.
    names: BTreeMap<String, (String, bool)>,
}

impl Disk {
    /// Takes a call; what it does to the directory must leave whole files, whatever is lost now.
    fn take(&mut self, dir: &Path, call: &str) {
        let (head, result) = call.rsplit_once(" = ").unwrap();
        if result.starts_with('-') {
            return;
        }
        let (name, args) = head.split_once('(').unwrap();
        // The descriptor's file, as strace tells it.
        let file = |args: &str| {
            let path = args.split_once('<')?.1.split_once('>')?.0;
            Some(path.trim_end_matches(" (deleted)").to_string())
        };
        let texts: Vec<&str> = args.split('"').skip(1).step_by(2).collect();
        match name {
            "write" | "pwrite64" | "writev" => {
                let file = file(args).unwrap_or_default();
                if file.starts_with(str(dir)) {
                    let written: u64 = result.split(' ').next().unwrap().parse().unwrap();
                    self.files.entry(file).or_default().0 += written;
                }
            }
            "fsync" | "fdatasync" if file(args).as_deref() == Some(str(dir)) => {
                self.names
                    .values_mut()
                    .for_each(|(_, synced)| *synced = true);
            }
            "fsync" | "fdatasync" => {
                if let Some((written, synced)) =
                    file(args).and_then(|file| self.files.get_mut(&file))
                {
                    *synced = *written;
                }
            }
            "linkat" => {
                // The only files without a name that the run has written to and linked yet.
                let linked = self
                    .files
                    .keys()
                    .find(|file| !self.names.values().any(|(other, _)| other == *file));
                let file = linked.expect("a file is linked").clone();
                self.names.insert(texts[1].to_string(), (file, false));
            }
            "rename" | "renameat" | "renameat2" => {
                let (file, _) = self.names.remove(texts[0]).unwrap();
                self.names.insert(texts[1].to_string(), (file, false));
            }
            "unlink" | "unlinkat" => drop(self.names.remove(texts[0])),
            other => panic!("{other} isn't known to this disk"),
        }
        for (name, (file, _)) in &self.names {
            let (written, synced) = self.files[file];
            assert_eq!(
                written, synced,
                "`{name}` is there before its bytes are: {call}"
            );
        }
    }
}

#[test]
fn a_file_is_whole_after_a_power_failure() {
    if skips("a_file_is_whole_after_a_power_failure", &[Feature::Strace]) {
        return;
    }
    let root = dir();
    let dir = root.path().join("outputs");
    fs::create_dir(&dir).unwrap();
    let dir = fs::canonicalize(dir).unwrap();
    let input = |name: &str, city: &str| {
        let path = write(
            root.path(),
            name,
            format!("{city},1\n{city},x\n{city},2\n").as_bytes(),
        );
        str(&path).to_string()
    };
    let (one, two) = (input("1.csv", "Bern"), input("2.csv", "Rom"));
    let query = [
        "aggregate",
        "-d,",
        "-k1",
        "-asum:2",
        "--on-error=skip",
        "-q",
    ];
    let with = |more: &[&'static str], file: &str| -> Vec<String> {
        let all = query.iter().chain(more).map(|arg| arg.to_string());
        all.chain([file.to_string()]).collect()
    };
    for (args, targets) in [
        (with(&["-oanswer"], &one), &["answer"][..]),
        (with(&["-oanswer"], &two), &["answer"]),
        (
            with(&["-oanswer", "--rejects=bad"], &two),
            &["answer", "bad"],
        ),
        (with(&["--save-partial=part"], &one), &["part"]),
        (with(&["--save-partial=part"], &two), &["part"]),
        (with(&["--continue=state"], &one), &["state"]),
        (with(&["--continue=state"], &two), &["state"]),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut disk = Disk::default();
        for call in calls(&dir, &args) {
            disk.take(&dir, &call);
        }
        let found: BTreeSet<&str> = disk.names.keys().map(String::as_str).collect();
        assert_eq!(found, targets.iter().copied().collect(), "{args:?}");
        for (name, (file, is_synced)) in &disk.names {
            assert!(*is_synced, "{args:?}: the name `{name}` may be lost");
            let len = fs::metadata(dir.join(name)).unwrap().len();
            assert_eq!(disk.files[file].1, len, "{args:?}: `{name}`");
        }
    }
    assert_eq!(names(&dir), ["answer", "bad", "part", "state"]);
}

/// The rows in a state are those of the runs that say so.
#[test]
fn of_runs_that_begin_one_state_those_that_end_well_are_in_it() {
    for trial in 0..8 {
        let dir = dir();
        let dir = dir.path();
        let runs: Vec<_> = (0..8)
            .map(|run| {
                write(dir, &format!("{run}.csv"), format!("{run},1\n").as_bytes());
                let mut run_of = ringfold(["aggregate", "-d,", "-k1", "--continue=state"]);
                (
                    run,
                    start(run_of.arg(format!("{run}.csv")).current_dir(dir)),
                )
            })
            .collect();
        let mut want = Vec::new();
        for (run, child) in runs {
            let ended = end_of(child);
            match ended.code {
                Some(0) => want.push(format!("{run},1")),
                _ => {
                    let said = ended.failure(1);
                    assert!(
                        said == "state: another run continues it at this moment"
                            || said
                                == "state: another run has written it meanwhile: nothing was added",
                        "{said}"
                    );
                }
            }
        }
        want.sort();
        let shown = end(ringfold(["merge", "state"]).current_dir(dir)).answer();
        let shown = String::from_utf8(shown).unwrap();
        let got: Vec<&str> = shown.lines().skip(1).collect();
        assert_eq!(got, want, "trial {trial}");
        assert!(!want.is_empty());
    }
}
