//! Keys by the million where memory is short: they go to files, and the answer is the same.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::group::Group;
use crate::probe::{Feature, skips};
use crate::support::{dir, end, names, ringfold, rows, str, write};

const KEYS: u64 = 1_000_000;

/// A file of so many keys, three rows each, and its answer.
fn many_keys() -> &'static (TempDir, PathBuf, Vec<u8>) {
    static MANY: LazyLock<(TempDir, PathBuf, Vec<u8>)> = LazyLock::new(|| {
        let dir = dir();
        let path = write(dir.path(), "many", &rows(3 * KEYS, Some(KEYS), 7));
        let answer = end(&mut ringfold(["aggregate", str(&path)])).answer();
        (dir, path, answer)
    });
    &MANY
}

#[test]
fn any_budget_gives_the_same_answer() {
    let (dir, path, answer) = many_keys();
    for (budget, threads) in [("20M", "1"), ("20M", "8"), ("1M", "2"), ("0", "2")] {
        let mut command = ringfold(["aggregate", "--memory", budget, "-j", threads, str(path)]);
        command.args(["--spill-dir", str(dir.path())]);
        let (stdout, notice) = end(&mut command).answer_and_notices();
        assert!(stdout == *answer, "{budget}");
        assert_eq!(notice.lines().count(), 1, "{notice}");
        assert!(notice.contains("outgrew the memory (--memory)"), "{notice}");
    }
    assert_eq!(names(dir.path()), ["many"]);
}

/// The careful way's keys go there too.
#[test]
fn any_kind_of_key_and_number_is_spilled() {
    let dir = dir();
    let mut text = String::new();
    for row in 0..200_000_u64 {
        let key = row % 40_000;
        let wide = "x".repeat((key % 200) as usize);
        text += &match row % 3 {
            0 => format!("{key}{wide};{}.{}\n", row % 90, row % 10),
            1 => format!("{key}{wide};{}\n", row * 1_000_003),
            _ => format!("{key}{wide};-{row}12345678901234567890.5\n"),
        };
    }
    let path = write(dir.path(), "file", text.as_bytes());
    let plain = end(&mut ringfold(["aggregate", str(&path)])).answer();
    let small = ["aggregate", "-q", "--memory", "2M", str(&path)];
    assert!(end(&mut ringfold(small)).answer() == plain);
}

/// The limit would have the kernel kill a run that keeps its tables in memory.
#[test]
fn millions_of_keys_under_a_control_group() {
    if skips(
        "millions_of_keys_under_a_control_group",
        &[Feature::MemoryGroup],
    ) {
        return;
    }
    let (_, path, answer) = many_keys();
    let group = Group::new("memory", 160 << 20).unwrap();
    for engine in ["auto", "uring", "pread", "mmap"] {
        let mut run = ringfold(["aggregate", "--engine", engine, str(path)]);
        group.take_in(&mut run);
        let (stdout, said) = end(&mut run).answer_and_notices();
        assert!(stdout == *answer, "{engine}");
        assert!(said.contains("outgrew the memory"), "{engine}: {said}");
    }
}

#[test]
fn no_room_to_spill_is_told() {
    let (dir, path, _) = many_keys();
    let nowhere = dir.path().join("nowhere");
    for (memory, words) in [("1M", "1 MiB"), ("1", "1 byte")] {
        let mut command = ringfold(["aggregate", "--memory", memory, str(path)]);
        command.args(["--spill-dir", str(&nowhere)]);
        // The input has nothing to do with it.
        let want = format!(
            "the keys take more than {words} of memory (--memory) and can't be written to {}: No such \
             file or directory [ENOENT]: name a directory with room by --spill-dir",
            nowhere.display()
        );
        assert_eq!(end(&mut command).failure(1), want);
    }

    if skips("no_room_to_spill_is_told", &[Feature::Overlay]) {
        return;
    }
    let place = crate::support::dir();
    let mut shell = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";
    shell.args(["--mount", "sh", "-c", mount, str(place.path())]);
    let run = ringfold(["aggregate", "--memory", "1M", str(path), "--spill-dir"]);
    shell
        .arg(run.get_program())
        .args(run.get_args())
        .arg(place.path());
    let said = end(&mut shell).failure(1);
    assert!(said.contains("No space left on device [ENOSPC]"), "{said}");
}
