//! `ringfold tune` and `--profile`: a search that ends in its time, a profile that is used, and what is said otherwise.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::probe::{Feature, skips};
use crate::support::{STATIONS, dir, end, ringfold, str, write};
use crate::sys;

/// A command whose profiles are kept in this folder.
fn with_profiles(folder: &Path, args: &[&str]) -> Command {
    let mut command = ringfold(args);
    command.env("XDG_CONFIG_HOME", folder);
    command
}

fn profiles(folder: &Path) -> std::path::PathBuf {
    folder.join("ringfold/profiles.toml")
}

#[test]
fn a_search_ends_in_time_and_its_profile_is_used() {
    if skips(
        "a_search_ends_in_time_and_its_profile_is_used",
        &[Feature::Eviction],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS.repeat(40));
    let page = dir.path().join("tune.html");
    let started = std::time::Instant::now();
    let flags = [
        "tune",
        "--budget=12s",
        "--name=mine",
        "--report",
        str(&page),
        str(&path),
    ];
    let ended = end(&mut with_profiles(dir.path(), &flags));
    let text = String::from_utf8(ended.stdout).unwrap();
    if ended.code == Some(2) && ended.stderr.contains("--budget") {
        crate::probe::skip(
            "a_search_ends_in_time_and_its_profile_is_used",
            ended.stderr,
        );
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    for words in [
        "GiB/s",
        "depth 32",
        "512K",
        "* is the choice",
        "profile mine in",
        "--profile auto",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("<svg") && page.contains("is the choice"),
        "{page}"
    );
    let kept = fs::read_to_string(profiles(dir.path())).unwrap();
    for words in [
        "[mine]",
        "block_size_bytes = ",
        "queue_depth = ",
        "file_system = ",
    ] {
        assert!(kept.contains(words), "{words}: {kept}");
    }
    // Another one beside it, and both stay.
    let flags = [
        "tune",
        "--budget=12s",
        "--name=other",
        "--dry-run",
        "-q",
        str(&path),
    ];
    end(&mut with_profiles(dir.path(), &flags));
    assert_eq!(fs::read_to_string(profiles(dir.path())).unwrap(), kept);
    for name in ["mine", "auto"] {
        let profile = [
            "count",
            "--engine=uring",
            "--profile",
            name,
            "-q",
            str(&path),
        ];
        let answer = end(&mut with_profiles(dir.path(), &profile));
        assert!(
            answer.code == Some(0) || !crate::probe::has(Feature::IoUring),
            "{}",
            answer.stderr
        );
    }
}

const PROFILE: &str =
    "[a]\ndevice = \"none\"\nfile_system = \"none\"\nblock_size_bytes = 131072\nqueue_depth = 3\n";

#[test]
fn a_profile_sets_what_flags_do_not() {
    if skips("a_profile_sets_what_flags_do_not", &[Feature::IoUring]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS.repeat(8));
    fs::create_dir(dir.path().join("ringfold")).unwrap();
    fs::write(profiles(dir.path()), PROFILE).unwrap();
    let used = |flags: &[&str]| {
        let args = [
            &["count", "--stats=json", "--profile=a"],
            flags,
            &[str(&path)],
        ]
        .concat();
        let (_, told) = end(&mut with_profiles(dir.path(), &args)).answer_and_notices();
        let told: Value = serde_json::from_str(&told).unwrap();
        ["block_size", "queue_depth"].map(|name| told[name].as_u64().unwrap())
    };
    assert_eq!(used(&["--engine=uring"]), [128 << 10, 3]);
    assert_eq!(used(&["--engine=uring-raw"]), [128 << 10, 3]);
    assert_eq!(used(&["--engine=uring", "-b64K"]), [64 << 10, 3]);
    assert_eq!(used(&["--engine=uring", "--queue-depth=2"]), [128 << 10, 2]);
    // Workers that read by themselves don't follow it.
    let [plain, with] = [&[][..], &["--profile=a"]].map(|flags| {
        let args = [
            &["count", "--stats=json", "--engine=pread"],
            flags,
            &[str(&path)],
        ]
        .concat();
        let (_, told) = end(&mut with_profiles(dir.path(), &args)).answer_and_notices();
        serde_json::from_str::<Value>(&told).unwrap()["block_size"].clone()
    });
    assert_eq!(plain, with);
}

#[test]
fn a_profile_that_is_not_there_is_told() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let count = |name: &str| {
        end(&mut with_profiles(
            dir.path(),
            &["count", "--profile", name, str(&path)],
        ))
    };
    let none = count("a").failure(2);
    assert!(
        none.contains("no profile a in") && none.contains("ringfold tune FILE"),
        "{none}"
    );
    let (_, notice) = count("auto").answer_and_notices();
    assert!(
        notice.contains("there is no profile for this device"),
        "{notice}"
    );
    fs::create_dir(dir.path().join("ringfold")).unwrap();
    fs::write(profiles(dir.path()), PROFILE).unwrap();
    let other = count("b").failure(2);
    assert!(other.contains("there are a"), "{other}");
    count("a").answer();
    fs::write(profiles(dir.path()), "[a]\nqueue_depth = \"many\"\n").unwrap();
    let broken = count("a").failure(1);
    assert!(broken.contains("profiles.toml: "), "{broken}");
    let mut nowhere = ringfold(["count", "--profile=a", str(&path)]);
    let nowhere = end(nowhere.env_remove("XDG_CONFIG_HOME").env_remove("HOME")).failure(2);
    assert!(
        nowhere.contains("neither XDG_CONFIG_HOME nor HOME"),
        "{nowhere}"
    );
}

#[test]
fn what_cannot_be_searched_is_one_line() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let tune = |flags: &[&str]| {
        let args = [&["tune", str(&path)], flags].concat();
        end(&mut with_profiles(dir.path(), &args))
    };
    let job = tune(&["--job=sort"]).failure(2);
    assert!(job.contains("a job begins with"), "{job}");
    let report = tune(&["--report=no/such/page.html"]).failure(1);
    assert!(
        report.contains("no/such/page.html: cannot open"),
        "{report}"
    );
    if crate::probe::has(Feature::Eviction) {
        let short = tune(&["--budget=20ms"]).failure(2);
        assert!(short.contains("--budget"), "{short}");
    }
    let held = sys::mapped(&File::open(&path).unwrap(), STATIONS.len());
    let mapped = tune(&[]).failure(1);
    assert!(mapped.contains("it can't be made cold"), "{mapped}");
    drop(held);
    assert!(!profiles(dir.path()).exists());
}
