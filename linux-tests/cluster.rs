//! The scripts of docs/cluster.md, with programs in the place of a cluster's: they run local processes, some of which fail.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{dir, end, program, ringfold, write};

/// Runs the tasks of an array, one after the other. The first try of the third one is killed, as on a node that fails.
const SBATCH: &str = r#"#!/bin/sh
for word in "$@"; do
  case $word in --array=*) array=${word#--array=} ;; --requeue) requeued=yes ;; --parsable) echo 1 ;; esac
  last=$word
done
for task in $(seq "${array%-*}" "${array#*-}"); do
  export SLURM_ARRAY_TASK_ID=$task
  [ "$task" != 3 ] || timeout -s KILL 0.01 sh -c "$last" || [ -n "$requeued" ] || exit 1
  sh -c "$last" >&2 || exit 1
done
"#;

/// Runs an Indexed Job when it is applied, and waits for nothing. Each index fails once, the third one twice.
const KUBECTL: &str = r#"#!/bin/sh
[ "$1" = wait ] && exec test -e "done.${4#job/}"
job=$(cat "$([ "$3" = - ] && echo /dev/stdin || echo "$3")")
field() { echo "$job" | sed -n "s/.*$1: *\([^ }]*\).*/\1/p" | head -1; }
command=$(echo "$job" | sed -n "s/.*command: \[sh, -c, '\(.*\)'\]/\1/p")
for index in $(seq 0 $(($(field completions) - 1))); do
  export JOB_COMPLETION_INDEX=$index
  tries=0
  timeout -s KILL 0.01 sh -c "$command"
  until [ "$tries" -gt 0 -o "$index" != 2 ] && sh -c "$command"; do
    tries=$((tries + 1))
    [ "$tries" -le "$(field backoffLimitPerIndex)" ] || exit 1
  done
done
touch "done.$(field name)"
"#;

/// Has the shell at the other end, to which words come as one line. Of three hosts `b` is down.
const SSH: &str = r#"#!/bin/sh
shift
[ "$1" != b ] || exit 255
shift
exec sh -c "$*"
"#;

struct Cluster {
    dir: TempDir,
}

impl Cluster {
    /// The folder that all hosts see, with the scripts of the page.
    fn new() -> Cluster {
        let dir = dir();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cluster.md");
        let page = std::fs::read_to_string(page).unwrap();
        for block in page.split("\n```").skip(1).step_by(2) {
            let (words, text) = block.split_once('\n').unwrap();
            let (_, name) = words.split_once(' ').expect("each block has a name");
            write(dir.path(), name, format!("{text}\n").as_bytes());
        }
        for name in ["parts", "answer", "trips", "bin"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for (name, text) in [("sbatch", SBATCH), ("kubectl", KUBECTL), ("ssh", SSH)] {
            let path = write(&dir.path().join("bin"), name, text.as_bytes());
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        // A quoted field that is longer than a range has lines that look like records; what is within it isn't counted.
        let lines = |from: u32, to: u32| -> String {
            let line = |at| format!("city {},{}.{:02}\n", at % 97, at % 1009, at % 100);
            (from..to).map(line).collect()
        };
        let quoted = lines(0, 900);
        let texts = [
            format!("city,price\n{}", lines(0, 2000)),
            format!(
                "city,price\n{}\"{quoted}\",1\n{}",
                lines(7, 500),
                lines(3, 900)
            ),
        ];
        for (at, text) in texts.iter().enumerate() {
            let trips = dir.path().join("trips");
            write(&trips, &format!("{at}.csv"), text.as_bytes());
        }
        write(dir.path(), "hosts", b"a\nb\nc\n");
        Cluster { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn run(&self, script: &str) -> crate::support::Ended {
        let path = std::env::var("PATH").unwrap_or_default();
        let own = program().parent().unwrap().display().to_string();
        let path = format!("{}:{own}:{path}", self.path().join("bin").display());
        let mut sh = Command::new("sh");
        end(sh.arg(script).env("PATH", path).current_dir(self.path()))
    }

    /// The rows of one run over all files.
    fn at_once(&self, files: &[&str]) -> BTreeSet<String> {
        let mut command = ringfold(["aggregate", "-k", "city", "-a", "count,sum:price"]);
        let answer = end(command.args(files).current_dir(self.path())).answer();
        rows(std::str::from_utf8(&answer).unwrap())
    }

    /// The rows of all parts of the answer, none of which comes twice.
    fn answer(&self) -> BTreeSet<String> {
        let parts = (1..=4).map(|part| {
            let path = self.path().join(format!("answer/{part}.csv"));
            rows(&std::fs::read_to_string(path).unwrap())
        });
        let parts: Vec<BTreeSet<String>> = parts.collect();
        assert!(parts.iter().all(|part| part.len() > 5));
        let count: usize = parts.iter().map(BTreeSet::len).sum();
        let all: BTreeSet<String> = parts.into_iter().flatten().collect();
        assert_eq!(all.len(), count);
        all
    }
}

/// Without the header. A field with newlines is a few rows here, which does no harm.
fn rows(answer: &str) -> BTreeSet<String> {
    answer.lines().skip(1).map(String::from).collect()
}

const FILES: [&str; 2] = ["trips/0.csv", "trips/1.csv"];

#[test]
fn schedulers_give_the_answer_of_one_run() {
    for script in ["slurm.sh", "kubernetes.sh", "ssh.sh"] {
        let cluster = Cluster::new();
        let ended = cluster.run(script);
        assert_eq!(ended.code, Some(0), "{script}: {}", ended.stderr);
        assert_eq!(cluster.answer(), cluster.at_once(&FILES), "{script}");
    }
}

/// The page's data has ranges that are read from a wrong byte on, and are read again.
#[test]
fn wrong_ranges_are_read_again() {
    let cluster = Cluster::new();
    let sh = |script: &str, number: u32| {
        let line = format!("PATH=bin:$PATH sh {script} {number}");
        write(cluster.path(), "line", line.as_bytes());
        cluster.run("line")
    };
    for number in 1..=16 {
        assert_eq!(sh("part.sh", number).code, Some(0));
    }
    let mut merge = ringfold(["merge"]);
    let parts = (1..=16).map(|part| format!("parts/{part}"));
    let error = end(merge.args(parts).current_dir(cluster.path())).failure(1);
    assert!(
        error.contains("run it again with `--range") || error.contains("run them again"),
        "{error}"
    );
    assert_eq!(sh("merge.sh", 1).code, Some(0));

    // What can't go well ends, and says why.
    std::fs::remove_file(cluster.path().join("parts/5")).unwrap();
    let ended = sh("merge.sh", 1);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("part 5 of 16 is missing"),
        "{}",
        ended.stderr
    );
    write(cluster.path(), "trips/0.csv", b"city,price\nBern,1\nOslo\n");
    let ended = sh("part.sh", 1);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.starts_with("ringfold: trips/0.csv: "),
        "{}",
        ended.stderr
    );
}

/// A folder of each host instead of one that all see: here they have the same file under different names.
#[test]
fn hosts_with_files_of_their_own() {
    let cluster = Cluster::new();
    let page = std::fs::read_to_string(cluster.path().join("own.sh")).unwrap();
    write(cluster.path(), "hosts", b"0\n1\n");
    let here = page.replace("/var/log/trips.csv", "trips/$host.csv");
    write(cluster.path(), "own.sh", here.as_bytes());
    let ended = cluster.run("own.sh");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answer = std::fs::read_to_string(cluster.path().join("answer.csv")).unwrap();
    assert_eq!(rows(&answer), cluster.at_once(&FILES));
}
