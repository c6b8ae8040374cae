//! `--stats`: figures that add up, and memory that doesn't grow with the input.

use std::fs;

use serde_json::Value;

use ringfold::{Engine, Input};

use crate::probe::{self, Feature};
use crate::support::{KEYS_10K, STATIONS, WAYS, cached_ways, dir, end, ringfold, str, write};

fn json(flags: &[&str], path: &str) -> (Vec<u8>, Value) {
    let mut command = ringfold(flags.iter().chain(&["--stats=json", path]));
    let (out, stats) = end(&mut command).answer_and_notices();
    assert_eq!(stats.lines().count(), 1, "{stats}");
    (out, serde_json::from_str(&stats).unwrap())
}

pub fn figure(stats: &Value, name: &str) -> u64 {
    stats[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no figure {name} in {stats}"))
}

#[test]
fn json_holds_the_figures_of_the_run() {
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS);
    let rows = STATIONS.iter().filter(|&&b| b == b'\n').count() as u64;
    for way in WAYS.iter() {
        let flags = [&["aggregate", "-b", "64K", "-j", "2"], &way.flags()[..]].concat();
        let (out, stats) = json(&flags, str(&path));
        assert!(out.starts_with(b"{") && out.ends_with(b"}\n"));
        assert_eq!(figure(&stats, "schema"), 1);
        assert_eq!(stats["engine"], way.engine.name());
        assert_eq!(figure(&stats, "bytes"), STATIONS.len() as u64);
        assert_eq!(figure(&stats, "threads"), 2);
        assert_eq!(figure(&stats, "block_size"), 64 << 10);
        let reads = STATIONS.len() as u64 / (64 << 10);
        assert!(figure(&stats, "blocks") >= reads, "{stats}");
        let parts = ["dispatched_bytes", "copied_bytes", "mapped_bytes"];
        let brought: u64 = parts.iter().map(|part| figure(&stats, part)).sum();
        assert!(brought >= STATIONS.len() as u64, "{stats}");
        assert_eq!(figure(&stats["job"], "rows"), rows);
        assert_eq!(figure(&stats["job"], "keys"), 413);
        assert_eq!(figure(&stats["job"], "skipped"), 0);
        assert!(stats["elapsed_s"].as_f64().unwrap() > 0.0);
        assert!(stats["gib_per_s"].as_f64().unwrap() > 0.0);
        assert!(figure(&stats, "peak_memory_bytes") > 0);
        assert!(figure(&stats, "peak_anonymous_bytes") > 0);
        assert!(figure(&stats, "peak_mapped_bytes") > 0);
        if matches!(way.engine, Engine::Uring | Engine::UringRaw) {
            assert!(
                (1..=16).contains(&figure(&stats, "max_in_flight")),
                "{stats}"
            );
        }
    }
}

#[test]
fn the_table_holds_them_too() {
    let dir = dir();
    let path = write(dir.path(), "rows", b"a;1.0\n\nb;2.0\nbroken\n");
    for way in WAYS.iter() {
        for flag in ["--stats", "--stats=text", "--stats=full"] {
            let mut command = ringfold(["aggregate", "--on-error=skip", flag]);
            command.args(way.flags()).arg(&path);
            let (_, said) = end(&mut command).answer_and_notices();
            let rows: Vec<(&str, &str)> = said
                .lines()
                .filter(|line| !line.starts_with("ringfold: "))
                .map(|line| line.split_once("  ").unwrap_or_else(|| panic!("{line}")))
                .collect();
            let row = |name: &str| {
                let found = rows.iter().find(|(row, _)| *row == name);
                found
                    .unwrap_or_else(|| panic!("no {name} in {said}"))
                    .1
                    .trim()
            };
            assert_eq!(row("rows"), "2 of 2 keys");
            assert!(row("time").contains(" s for 20 bytes, "), "{said}");
            assert!(row("memory").ends_with("iB of mapped files"), "{said}");
            if flag != "--stats=full" {
                assert_eq!(rows.len(), 3, "{said}");
                continue;
            }
            assert!(row("engine").starts_with(way.engine.name()), "{said}");
            for (name, figure) in [
                ("bytes", "20"),
                ("keys", "2"),
                ("empty lines", "1"),
                ("skipped", "1"),
            ] {
                assert_eq!(row(name), figure, "{said}");
            }
        }
    }
}

#[test]
fn bytes_are_those_of_the_input_when_streams_are_among_it() {
    let dir = dir();
    let (rows, empty) = (
        write(dir.path(), "rows", b"a;1.0\nb;2.0\n"),
        write(dir.path(), "e", b""),
    );
    for way in cached_ways() {
        let mut command = ringfold(["aggregate", "-b", "4", "--stats=json"]);
        command.args(way.flags()).args([&rows, &empty, &rows]);
        let (_, stats) = end(&mut command).answer_and_notices();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(figure(&stats, "bytes"), 24, "{way:?}");
    }
}

/// An overlay file system has no pages of its own, so cachestat finds none there.
#[test]
fn auto_sees_what_is_cached_through_an_overlay() {
    if probe::skips(
        "auto_sees_what_is_cached_through_an_overlay",
        &[Feature::Overlay],
    ) {
        return;
    }
    let dir = dir();
    fs::create_dir(dir.path().join("lower")).unwrap();
    let text = STATIONS.repeat((16 << 20) / STATIONS.len() + 1);
    write(&dir.path().join("lower"), "file", &text);
    let program = ringfold([""; 0]);
    let program = program.get_program().to_str().unwrap();
    let command =
        format!("cat merged/file > /dev/null && {program} count --stats=json merged/file");
    // Memory may be short, and then pages go in between.
    let seen = (0..4).any(|_| {
        let mut command = probe::on_overlay(dir.path(), &command);
        let (_, stats) = end(&mut command).answer_and_notices();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(figure(&stats, "bytes"), text.len() as u64);
        stats["engine_reason"]
            .as_str()
            .unwrap()
            .contains("cached: the workers")
    });
    assert!(seen, "nothing of the file counts as cached");
}

#[test]
fn nothing_is_said_unasked() {
    let dir = dir();
    let path = write(dir.path(), "rows", b"a;1.0\n");
    for way in WAYS.iter() {
        end(ringfold(["aggregate"]).args(way.flags()).arg(&path)).answer();
    }
}

#[test]
fn buffers_do_not_grow_with_the_input() {
    let dir = dir();
    let small = write(dir.path(), "small", &KEYS_10K.repeat(2));
    let large = write(dir.path(), "large", &KEYS_10K.repeat(16));
    for way in WAYS.iter().filter(|way| way.engine != Engine::Memory) {
        for flags in [
            &["-b", "64K", "--queue-depth", "4", "-j", "2"][..],
            &["-j", "2"],
        ] {
            let flags = [&["count"], flags, &way.flags()].concat();
            let ((_, few), (_, many)) = (json(&flags, str(&small)), json(&flags, str(&large)));
            let (few, many) = (figure(&few, "buffer_bytes"), figure(&many, "buffer_bytes"));
            if flags.contains(&"64K") {
                assert_eq!(few, many, "{flags:?}");
            }
            assert!(many <= 32 << 20, "{many} bytes for {flags:?}");
        }
    }
}

#[test]
fn a_small_file_takes_little_memory() {
    if probe::skips("a_small_file_takes_little_memory", &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let rows = STATIONS[..1024].iter().rposition(|&b| b == b'\n').unwrap() + 1;
    let path = write(dir.path(), "small", &STATIONS[..rows]);
    for way in WAYS.iter() {
        for job in ["count", "aggregate"] {
            let (_, stats) = json(&[&[job], &way.flags()[..]].concat(), str(&path));
            let peak = figure(&stats, "peak_memory_bytes");
            assert!(peak < 20 << 20, "{way:?}: {peak} bytes");
        }
    }
}

/// What is mapped is no memory of the process's own.
#[test]
fn mapped_files_are_told_apart() {
    if probe::skips("mapped_files_are_told_apart", &[Feature::Plain]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows", &STATIONS.repeat(120));
    let (_, stats) = json(&["aggregate", "-j", "1", "--engine", "mmap"], str(&path));
    let own = figure(&stats, "peak_anonymous_bytes");
    assert!(own < 10 << 20, "{stats}");
    let (_, stats) = json(&["aggregate", "-j", "1", "--engine", "memory"], str(&path));
    let own = figure(&stats, "peak_anonymous_bytes");
    assert!(own >= 120 * STATIONS.len() as u64, "{stats}");
}

#[test]
fn the_library_counts_too() {
    use std::sync::{Arc, Mutex};
    let dir = dir();
    let paths = [
        write(dir.path(), "a", &STATIONS),
        write(dir.path(), "b", &KEYS_10K),
    ];
    for way in WAYS.iter() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut config = way.config();
        let telling = Arc::clone(&told);
        config.progress = Some(Arc::new(move |done, all| {
            telling.lock().unwrap().push((done, all));
        }));
        let job = ringfold::job::Count { delimiter: b'\n' };
        let (counted, stats) =
            ringfold::fold(&Input::open(&paths).unwrap(), &config, &job).unwrap();
        let bytes = (STATIONS.len() + KEYS_10K.len()) as u64;
        assert_eq!(counted.iter().map(|c| c.bytes).sum::<u64>(), bytes);
        assert_eq!(stats.bytes, bytes, "{way:?}");
        let told = told.lock().unwrap();
        assert!(told.is_sorted(), "{way:?}: {told:?}");
        assert_eq!(told.last(), Some(&(bytes, Some(bytes))), "{way:?}");
    }
}
