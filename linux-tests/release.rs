//! What a release says of itself, and the program of one that is for another processor.

use std::path::Path;

use crate::probe::{Feature, has, skip};
use crate::support::{PROGRAM, dir, end, ringfold, write};

/// The text of a file of the tree.
fn text(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_newest_version_in_the_changelog_is_that_of_every_crate() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = text("CHANGELOG.md");
    let heading = changelog.lines().find_map(|line| line.strip_prefix("## "));
    let (named, state) = heading.and_then(|line| line.split_once(", ")).unwrap();
    assert_eq!(named, version);
    let python = text("python/Cargo.toml");
    assert!(
        python.contains(&format!("\nversion = \"{version}\"\n")),
        "{python}"
    );
    let is_date = state.len() == 10 && state.bytes().filter(|&byte| byte == b'-').count() == 2;
    assert!(state == "unreleased" || is_date, "{state}");
    for manifest in [
        "Cargo.toml",
        "crates/read/Cargo.toml",
        "crates/bench/Cargo.toml",
    ] {
        let text = text(manifest);
        assert!(text.contains("\nversion.workspace = true\n"), "{manifest}");
        // What a crate asks of another is the same release.
        for line in text
            .lines()
            .filter(|line| line.contains("path = \"") && line.contains("version"))
        {
            assert!(
                line.contains(&format!("version = \"{version}\"")),
                "{manifest}: {line}"
            );
        }
    }
    let printed = end(&mut ringfold(["--version"])).answer();
    assert_eq!(printed, format!("ringfold {version}\n").as_bytes());
}

/// An emulator has no rings: the program says so, and reads by other engines.
#[test]
fn an_emulated_program_says_that_it_has_no_ring_and_reads_all_the_same() {
    let test = "release::an_emulated_program_says_that_it_has_no_ring_and_reads_all_the_same";
    if std::env::var_os(PROGRAM).is_none() || has(Feature::IoUring) {
        return skip(test, "left to make test-aarch64");
    }
    let dir = dir();
    let path = write(dir.path(), "file", b"a;1.0\nb;2.0\na;3.0\n");
    let error = end(ringfold(["aggregate", "--engine", "uring"]).arg(&path)).failure(1);
    assert!(error.contains("io_uring"), "{error}");
    let ended = end(ringfold(["aggregate", "--direct"]).arg(&path));
    let (answer, notice) = ended.answer_and_notices();
    assert_eq!(answer, b"{a=1.0/2.0/3.0, b=2.0/2.0/2.0}\n");
    assert_eq!(notice.lines().count(), 1, "{notice}");
    assert!(notice.contains("io_uring"), "{notice}");
    for engine in ["auto", "read", "pread", "mmap", "memory"] {
        let ended = end(ringfold(["aggregate", "--engine", engine]).arg(&path));
        assert_eq!(ended.answer(), answer, "{engine}");
    }
}
