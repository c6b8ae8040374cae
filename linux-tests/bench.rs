//! `ringfold bench`: runs in turns from a proven state, compared answers, and what is said where something can't be had.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::Value;

use crate::probe::{Feature, skips};
use crate::support::{STATIONS, dir, end, ringfold, start, str, write};
use crate::sys;

/// The tables and the JSON of a benchmark that goes well.
fn results(path: &Path, flags: &[&str]) -> (String, Value) {
    let json = path.with_extension("json");
    let mut command = ringfold(["bench", str(path), "--no-ceilings", "-w0", "-r2"]);
    command.args(flags).arg("--export-json").arg(&json);
    let text = String::from_utf8(end(&mut command).answer()).unwrap();
    (text, read(&json))
}

fn read(json: &Path) -> Value {
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

fn rows(case: &Value) -> &Vec<Value> {
    case["rows"].as_array().unwrap()
}

#[test]
fn everybody_runs_in_every_round_and_every_other_round_goes_backwards() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let flags = [
        "--state=cached",
        "--engine=read,pread,mmap",
        "--command=wc -l {}",
        "-r4",
    ];
    let (text, json) = results(&path, &flags);
    let case = &json["cases"][0];
    let mut places = Vec::new();
    for row in rows(case) {
        assert!(text.contains(row["name"].as_str().unwrap()), "{text}");
        let runs = row["runs"].as_array().unwrap();
        places.push(runs.iter().map(|run| run["place"].as_u64().unwrap()));
        for (round, run) in (1..).zip(runs) {
            assert_eq!(run["round"], round);
            assert!(run["resident_share"].as_f64().unwrap() >= 0.99);
            assert!(run["wall_s"].as_f64().unwrap() > 0.0);
            assert!(run["peak_memory_bytes"].as_u64().unwrap() > 0);
        }
        let summary = &row["summary"];
        let gib = STATIONS.len() as f64 / (1 << 30) as f64;
        let rate = gib / summary["time_s"]["median"].as_f64().unwrap();
        assert!((summary["gib_per_s"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9);
    }
    let places: Vec<Vec<u64>> = places.into_iter().map(Iterator::collect).collect();
    let of_round = |round: usize| places.iter().map(move |row| row[round]);
    assert!(of_round(0).eq([0, 1, 2, 3]) && of_round(1).eq([7, 6, 5, 4]));
    assert!(of_round(2).eq([8, 9, 10, 11]) && of_round(3).eq([15, 14, 13, 12]));
    assert_eq!(rows(case)[0]["summary"]["ratio"]["median"], 1.0);
    assert_eq!(json["schema_version"], 3);
    assert_eq!(json["file"]["lines"], 20_000);
    let sections = json["probe"]["sections"].as_array().unwrap();
    assert!(sections.iter().any(|section| section["name"] == "device"));
}

#[test]
fn states_are_proven_before_each_run() {
    if skips("states_are_proven_before_each_run", &[Feature::Eviction]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS.repeat(20));
    let flags = ["--state=cold,half,cached", "--engine=pread,mmap"];
    let (text, json) = results(&path, &flags);
    let cases = json["cases"].as_array().unwrap();
    for (case, range) in cases.iter().zip([0.0..=0.01, 0.4..=0.6, 0.99..=1.0]) {
        for run in rows(case)
            .iter()
            .flat_map(|row| row["runs"].as_array().unwrap())
        {
            let share = run["resident_share"].as_f64().unwrap();
            assert!(range.contains(&share), "{}: {share}", case["state"]);
        }
    }
    for title in ["count, cold:", "count, half:", "count, cached:"] {
        assert!(text.contains(title), "{text}");
    }
    assert!(text.contains("Resident before each run: 0.0%"), "{text}");
}

/// Pages that somebody has mapped can't be dropped: there is no cold run of them.
#[test]
fn a_state_that_cannot_be_made_is_told_and_nothing_is_run() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let json = dir.path().join("json");
    let held = sys::mapped(&File::open(&path).unwrap(), STATIONS.len());
    let flags = ["--no-ceilings", "-r1", "-w0", "--engine=read"];
    for (states, code) in [("cold", 1), ("cold,cached", 0)] {
        let mut command = ringfold(["bench", str(&path), "--state", states]);
        let ended = end(command.args(flags).arg("--export-json").arg(&json));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(
            text.contains("No runs: 100% of the file is in the page cache"),
            "{text}"
        );
        let json = read(&json);
        assert!(json["cases"][0]["impossible"].is_string(), "{json}");
        assert!(rows(&json["cases"][0]).is_empty());
    }
    drop(held);
}

/// Of a file of somebody else's the kernel says that all is cached, which proves nothing.
#[test]
fn a_state_that_the_kernel_does_not_tell_is_not_proven() {
    let test = "a_state_that_the_kernel_does_not_tell_is_not_proven";
    if skips(test, &[Feature::OtherUser]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let permit = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for (mode, state, code) in [
        (0o644, "cached", 1),
        (0o644, "cold", 1),
        (0o666, "cached", 0),
    ] {
        permit(mode);
        let mut command = ringfold(["bench", str(&path), "--no-ceilings", "-r1", "-w0"]);
        command.args(["--engine=pread", "--state", state]);
        let ended = end(command.uid(sys::NOBODY).gid(sys::NOBODY));
        let text = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(
            ended.code,
            Some(code),
            "{mode:o} {state}: {text} {}",
            ended.stderr
        );
        let told = text.contains("No runs: the file belongs to somebody else");
        assert_eq!(told, code == 1, "{text}");
    }
    permit(0o644);
    let mut tune = ringfold(["tune", str(&path)]);
    let error = end(tune.uid(sys::NOBODY).gid(sys::NOBODY)).failure(1);
    assert!(error.contains("it belongs to somebody else"), "{error}");
}

#[test]
fn another_answer_is_an_error() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    for (job, command, right) in [
        ("count", "echo 20000 lines", true),
        ("count", "echo 20001", false),
        ("count", "false", false),
        ("count", "no-such-program {}", false),
        ("aggregate -k 1 -a count", "head -c 9 {}", false),
        ("quote", "sh -c 'sed s/.*/x/ < {}'", false),
    ] {
        let mut bench = ringfold(["bench", str(&path), "--state=cached", "--no-ceilings"]);
        bench.args(["-w0", "-r2", "--engine=pread", "--job", job]);
        let ended = end(bench.args(["--command", command]));
        let text = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.code, Some(i32::from(!right)), "{command}: {text}");
        assert_eq!(text.contains("FAILED"), !right, "{command}: {text}");
        assert_eq!(
            ended.stderr.contains("see FAILED"),
            !right,
            "{}",
            ended.stderr
        );
    }
    let mut bench = ringfold(["bench", str(&path), "--state=cached", "--no-ceilings"]);
    bench.args(["-r1", "--engine=pread", "--own-answers", "--command=echo 1"]);
    end(&mut bench).answer();
}

/// What one compares by default is left out where the machine refuses it; what one names fails.
#[test]
fn what_the_machine_refuses_is_told() {
    if skips("what_the_machine_refuses_is_told", &[Feature::Seccomp]) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let bench = |flags: &[&str]| {
        let mut command = ringfold([
            "bench",
            str(&path),
            "--state=cached",
            "--no-ceilings",
            "-r1",
        ]);
        sys::deny_calls(&mut command, &[sys::SETUP], libc::EPERM);
        end(command.args(flags))
    };
    let text = String::from_utf8(bench(&[]).answer()).unwrap();
    assert!(
        text.contains("uring --direct is left out: no io_uring"),
        "{text}"
    );
    for present in ["\n  auto ", "\n  pread ", "\n  mmap "] {
        assert!(text.contains(present), "{text}");
    }
    let named = bench(&["--engine=uring,pread"]);
    assert_eq!(named.code, Some(1));
    let text = String::from_utf8(named.stdout).unwrap();
    assert!(text.contains("uring FAILED: no io_uring"), "{text}");
}

/// The processor's counters are there, or one line says why not, by what the kernel answers.
#[test]
fn counters_are_counted_or_the_reason_is_told() {
    if skips(
        "counters_are_counted_or_the_reason_is_told",
        &[Feature::Seccomp],
    ) {
        return;
    }
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let json = path.with_extension("json");
    let bench = |refused: Option<i32>| {
        let mut command = ringfold(["bench", str(&path), "--no-ceilings", "-w0", "-r1"]);
        if let Some(errno) = refused {
            sys::deny_calls(&mut command, &[libc::SYS_perf_event_open as u32], errno);
        }
        command.args(["--state=cached", "--engine=pread", "--export-json"]);
        let text = String::from_utf8(end(command.arg(&json)).answer()).unwrap();
        let counted = rows(&read(&json)["cases"][0])[0]["runs"][0]["counted"].clone();
        (text, counted)
    };
    const MARK: &str = "Not measured: the processor's counters: ";
    for (errno, words) in [
        (libc::ENOENT, "many virtual machines have none"),
        (libc::EOPNOTSUPP, "many virtual machines have none"),
        (libc::EACCES, ""),
        (libc::ENOSYS, "this kernel was built without them"),
    ] {
        let (text, counted) = bench(Some(errno));
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(MARK));
        let why = lines.next().unwrap_or_else(|| panic!("{errno}: {text}"));
        assert!(why.contains(words) && why.ends_with('.'), "{errno}: {why}");
        assert_eq!((lines.next(), counted), (None, Value::Null), "{text}");
    }
    let (text, counted) = bench(None);
    match counted {
        Value::Null => assert!(text.contains(MARK), "{text}"),
        counted => {
            assert!(!text.contains(MARK), "{text}");
            assert!(counted["cycles"].as_f64().unwrap() > 0.0, "{counted}");
        }
    }
}

#[test]
fn csv_and_markdown_hold_the_runs() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let [csv, markdown] = ["out.csv", "out.md"].map(|name| dir.path().join(name));
    let flags = [
        "--state=cached",
        "--engine=pread",
        "--command=sh -c 'wc -l < {}'",
        "--note=a, \"note\"",
        "--export-csv",
        str(&csv),
        "--export-markdown",
        str(&markdown),
    ];
    results(&path, &flags);
    let text = fs::read_to_string(&csv).unwrap();
    let ringfold = [
        "aggregate",
        "-H",
        "-k",
        "name",
        "-a",
        "count,min:time_s",
        "-f",
        "csv",
        "--sort",
        "name",
    ];
    let grouped = end(crate::support::ringfold(ringfold).arg(&csv)).answer();
    let grouped = String::from_utf8(grouped).unwrap();
    let lines: Vec<&str> = grouped.lines().collect();
    assert!(lines[1].starts_with("pread,2,"), "{grouped}");
    assert!(lines[2].starts_with("sh -c 'wc -l < {}',2,"), "{grouped}");
    assert_eq!(text.lines().count(), 5, "{text}");
    let text = fs::read_to_string(&markdown).unwrap();
    for words in [
        "a, \"note\"",
        "## count, cached",
        "| pread |",
        "## The machine",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_cannot_be_measured_is_one_line() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let empty = write(dir.path(), "empty", b"");
    let missing = dir.path().join("missing");
    for (path, flags, code, words) in [
        (&missing, &[][..], 1, "missing: "),
        (&empty, &[], 1, "empty: there is nothing to measure"),
        (&dir.path().to_path_buf(), &[], 1, "not a regular file"),
        (
            &path,
            &["--report=no/such/page.html", "-r20"],
            1,
            "no/such/page.html: cannot open for writing: No such file",
        ),
        (&path, &["--job=sort"], 2, "a job begins with count"),
        (&path, &["--job=count 'x"], 2, "a quote isn't closed"),
        (&path, &["--engine=warp"], 2, "warp"),
        (
            &path,
            &["--job=read", "--engine=pread,mmap"],
            2,
            "--job read with mmap: a mapping reads only",
        ),
        (
            &path,
            &["--engine=read", "--baseline=x"],
            2,
            "--baseline x: there are read",
        ),
    ] {
        let mut command = ringfold(["bench", str(path), "--no-ceilings", "-r1"]);
        let error = end(command.args(flags)).failure(code);
        assert!(error.contains(words), "{error}");
    }
}

/// The program that runs when the benchmark is ended ends with it.
#[test]
fn no_child_outlives_a_signal() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    let pid = dir.path().join("pid");
    let script = format!("sh -c 'echo $$ > {}; exec sleep 100'", pid.display());
    let mut command = ringfold(["bench", str(&path), "--state=cached", "--no-ceilings"]);
    let child = start(command.args(["--engine=read", "--command", &script]));
    let sleeper = loop {
        let text = fs::read_to_string(&pid).unwrap_or_default();
        if let Ok(pid) = text.trim().parse::<i32>() {
            break pid;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let bench = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(bench, rustix::process::Signal::TERM).unwrap();
    assert_eq!(crate::support::end_of(child).code, Some(143));
    let ended = std::time::Instant::now();
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
        !(stat.is_empty() || stat.contains(") Z "))
    };
    while runs() {
        assert!(
            ended.elapsed() < crate::support::PATIENCE,
            "it still sleeps"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn raw_reads_take_all_bytes_in_every_way() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS);
    for way in crate::support::WAYS.iter() {
        let mut command = ringfold(["discard", "--quiet"]);
        let answer = end(command.args(way.flags()).arg(&path)).answer();
        assert_eq!(
            answer,
            format!("{}\n", STATIONS.len()).as_bytes(),
            "{way:?}"
        );
    }
    // A mapping reads nothing of what nobody looks at: it takes no part where it wasn't named.
    let (text, json) = results(&path, &["--job=read", "--state=cached", "-r1"]);
    let left_out = rows(&json["cases"][0]).iter();
    let left_out = left_out.filter(|row| {
        row["left_out"]
            .as_str()
            .is_some_and(|why| why.starts_with("a mapping"))
    });
    assert_eq!(left_out.count(), 2, "{text}");
    assert!(
        text.contains("mmap is left out: a mapping reads only"),
        "{text}"
    );
    let rates = end(&mut ringfold(["ceiling", "-j", "2"])).answer();
    let rates: Value = serde_json::from_slice(&rates).unwrap();
    assert_eq!(rates[1]["threads"], 2);
    assert!(rates[1]["gib_per_s"].as_f64().unwrap() > 0.0);
}

/// Latencies, reads in flight and processor time by thread, where reads go through a ring.
#[test]
fn reads_through_a_ring_are_looked_at() {
    let dir = dir();
    let path = write(dir.path(), "rows.txt", &STATIONS.repeat(8));
    let size = 8 * STATIONS.len() as u64;
    for way in crate::support::WAYS.iter() {
        let mut command = ringfold(["count", "-b64K", "--queue-depth=4", "--stats=json", "-j2"]);
        let (_, told) = end(command.args(way.flags()).arg(&path)).answer_and_notices();
        let told: Value = serde_json::from_str(&told).unwrap();
        let cpu = &told["cpu_by_thread"];
        let worked = cpu["workers_s"].as_f64().unwrap();
        assert!(worked > 0.0 && worked < 60.0, "{told}");
        if !matches!(way.engine.name(), "uring" | "uring-raw" | "read") {
            continue;
        }
        assert!(cpu["ring_s"].as_f64().unwrap() > 0.0, "{told}");
        let latency = &told["read_latency"];
        assert_eq!(latency["reads"], told["reads"], "{told}");
        assert!(
            latency["reads"].as_u64().unwrap() >= size / (64 << 10),
            "{told}"
        );
        let percentiles = ["p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"];
        let percentiles = percentiles.map(|name| latency[name].as_f64().unwrap());
        assert!(percentiles.is_sorted() && percentiles[0] > 0.0, "{told}");
        let mean = told["in_flight"]["mean"].as_f64().unwrap();
        assert!(mean > 0.0 && mean <= 4.0, "{told}");
        let (_, full) = {
            let mut command = ringfold(["count", "--stats=full", "-b64K"]);
            end(command.args(way.flags()).arg(&path)).answer_and_notices()
        };
        for words in ["read latency", "in flight ", "processor time"] {
            assert!(full.contains(words), "{words}: {full}");
        }
    }
}

/// What a browser renders of the page, with flags that keep it from looking for a network.
fn browser(dir: &Path) -> Option<std::process::Command> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| {
        let version = std::process::Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    let Some(found) = found else {
        crate::probe::skip("the_report_in_a_browser", "no chromium is installed");
        return None;
    };
    let mut command = std::process::Command::new(found);
    let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
                 --disable-component-update --disable-sync";
    command.args(flags.split_whitespace());
    command.arg(format!("--user-data-dir={}", dir.join("profile").display()));
    Some(command)
}

#[test]
fn the_report_is_one_page_that_a_browser_renders() {
    let dir = dir();
    let path = write(dir.path(), "<rows> & \"more\".txt", &STATIONS.repeat(8));
    let page = dir.path().join("report.html");
    let flags = [
        "--state=cached",
        "--engine=uring,pread",
        "--job=count",
        "--job=aggregate",
        "--report",
        str(&page),
    ];
    results(&path, &flags);
    let text = fs::read_to_string(&page).unwrap();
    for alien in ["<script", "http-equiv", "@import", "url("] {
        assert!(!text.contains(alien), "{alien}");
    }
    let links = text.matches("http").count();
    let names = text.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert!(
        links == names && names >= 8,
        "{links} links in {names} pictures"
    );
    assert!(!text.contains("<rows>") && text.contains("&lt;rows&gt; &amp; &quot;more&quot;"));
    let Some(mut browser) = browser(dir.path()) else {
        return;
    };
    let url = format!("file://{}", page.display());
    let output = end(browser.arg("--dump-dom").arg(&url));
    let dom = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for words in [
        "count, cached",
        "aggregate, cached",
        "Throughput",
        "<rect class=\"ours\"",
    ] {
        assert!(dom.contains(words), "{words}: {dom}");
    }
}

#[test]
fn results_are_shown_side_by_side() {
    let dir = dir();
    let [a, b] = ["a.txt", "b.txt"].map(|name| write(dir.path(), name, &STATIONS.repeat(4)));
    results(
        &a,
        &[
            "--state=cached",
            "--engine=pread,mmap",
            "-r5",
            "--note=before",
        ],
    );
    results(&b, &["--state=cached", "--engine=mmap", "-r5"]);
    let [a, b] = [a, b].map(|path| path.with_extension("json"));
    // Twice as slow, in all runs.
    let mut slow = read(&b);
    for run in slow["cases"][0]["rows"][0]["runs"].as_array_mut().unwrap() {
        let wall = run["wall_s"].as_f64().unwrap();
        run["wall_s"] = Value::from(100.0 * wall);
    }
    slow["machine"]["kernel"] = Value::from("1.2.3");
    fs::write(&b, slow.to_string()).unwrap();
    let text = end(ringfold(["bench", "--compare"]).args([&a, &b])).answer();
    let text = String::from_utf8(text).unwrap();
    for words in ["before", "kernel:\n   A: ", "   B: 1.2.3", "count, cached"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let row = |name: &str| {
        let mut lines = text.lines().map(str::trim_start);
        lines
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_string()
    };
    assert!(row("mmap ").ends_with("slower"), "{text}");
    assert!(!row("pread ").contains('x'), "{text}");
    let same = end(ringfold(["bench", "--compare"]).args([&a, &a])).answer();
    let same = String::from_utf8(same).unwrap();
    assert!(
        same.contains("1.00x") && same.contains("no difference shown"),
        "{same}"
    );

    let other = write(dir.path(), "other.json", br#"{"schema_version": 7}"#);
    let error = end(ringfold(["bench", "--compare"]).args([&a, &other])).failure(1);
    assert!(
        error.contains("other.json: its schema_version is 7"),
        "{error}"
    );
    let other = write(dir.path(), "other.json", b"a;1.0\n");
    let error = end(ringfold(["bench", "--compare"]).args([&a, &other])).failure(1);
    assert!(error.contains("not results of ringfold bench"), "{error}");
    assert_eq!(end(ringfold(["bench", "--compare"]).arg(&a)).code, Some(2));
    assert_eq!(end(&mut ringfold(["bench"])).code, Some(2));
}
