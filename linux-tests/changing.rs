//! Files that change while the program reads them. Over FUSE they change at a read of our choice; on
//! a real file system while the run is held at another file, opened before them and read first.
//!
//! A truncated file is one error line with both lengths, one that grows is read up to the length it
//! had when it was opened, one that is replaced is read as it was opened, one that is rewritten gets a
//! notice, and no change whatever
//! ends a run in any other way than with an answer or with one line.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use ringfold::Engine;

use crate::catalogue::drawn;
use crate::fuse::{At, Content, Fault, Fuse, Pages, Rule};
use crate::liveness::{all_at_once, ways};
use crate::probe::{Feature, skips};
use crate::reference::{self, Style};
use crate::support::{Ended, STATIONS, WAYS, Way, dir, end, end_of, ringfold, start, str, write};

/// What is read at once of the small file: it has more such blocks than any queue is deep.
const SMALL: [&str; 2] = ["-b", "4096"];
const MORE: &[u8] = b"5\nmore;1.0\nand more;2.0\n";

/// Blocks by the dozen, and enough that `auto` takes the ring.
fn texts() -> [(Vec<u8>, &'static [&'static str]); 2] {
    [(STATIONS.clone(), &SMALL), (STATIONS.repeat(36), &[])]
}

fn answer(texts: &[&[u8]]) -> Vec<u8> {
    reference::aggregate(texts, b';', 1 << 20).text(Style::OneBrc)
}

fn once(at: At, fault: Fault) -> [Rule; 1] {
    [Rule {
        at,
        forever: false,
        fault,
    }]
}

/// Checks the one line of a run that met the end of the file at `left` of `had` bytes.
#[track_caller]
fn tells_of_the_end(error: &str, path: &Path, left: usize, had: usize) {
    let bytes = error
        .strip_prefix(&format!("{}: byte ", str(path)))
        .and_then(|rest| {
            rest.strip_suffix(&format!(
                ": the file ends at byte {left}, but had {had} bytes when it was opened"
            ))
        })
        .and_then(|bytes| bytes.split_once('-'));
    let (from, to) = bytes.unwrap_or_else(|| panic!("{left} of {had}: {error}"));
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    // Those bytes aren't all there any more.
    assert!(from < to && left < to && to <= had, "{left}: {error}");
}

/// Checks that the run ended with an answer, or with one line and none.
#[track_caller]
fn ends_in_order(ended: Ended, what: &str) -> bool {
    let shown = format!(
        "{what}: {:?}, {:?}: {}",
        ended.code, ended.signal, ended.stderr
    );
    assert!(!ended.stderr.contains("panicked"), "{shown}");
    let ours = |line: &str| line.starts_with("ringfold: ");
    assert!(ended.stderr.lines().all(ours), "{shown}");
    let notice = |line: &&str| line.starts_with("ringfold: notice: ");
    let errors = ended.stderr.lines().filter(|line| !notice(line)).count();
    let good = ended.code == Some(0);
    match good {
        true => assert!(errors == 0 && !ended.stdout.is_empty(), "{shown}"),
        false => assert!(
            ended.code == Some(1) && errors == 1 && ended.stdout.is_empty(),
            "{shown}"
        ),
    }
    good
}

#[test]
fn a_file_truncated_at_any_read_is_told_with_both_lengths() {
    let test = "a_file_truncated_at_any_read_is_told_with_both_lengths";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let runs = AtomicUsize::new(0);
    for (text, flags) in texts() {
        let (len, middle) = (text.len() as u64, text.len() as u64 / 2);
        all_at_once(&ways(), |(way, pages)| {
            let fuse = Fuse::serve("rows", &text[..], pages);
            let path = fuse.path();
            for (at, left) in [
                (At::Read(0), 0),
                (At::Read(0), middle + 7),
                (At::Read(0), len - 1),
                // That read itself comes short or brings nothing.
                (At::Bytes(middle..middle + 1), 0),
                (At::Bytes(middle..middle + 1), middle),
                (At::Bytes(len - 1..len), len - 1),
                (At::Bytes(len - 1..len), (len - 1) / 4096 * 4096),
            ] {
                fuse.plan(once(at.clone(), Fault::Length(left)));
                let mut command = ringfold(["aggregate", str(&path)]);
                let ended = end(command.args(way.flags()).args(flags));
                assert_eq!(
                    ended.code,
                    Some(1),
                    "{way:?} {pages:?} {at:?} {left}: {ended:?}"
                );
                tells_of_the_end(&ended.failure(1), &path, left as usize, text.len());
                runs.fetch_add(1, Relaxed);
            }
        });
    }
    eprintln!("{} runs, as many lines", runs.load(Relaxed));
}

#[test]
fn a_file_that_grows_at_any_read_is_read_up_to_the_length_it_had() {
    let test = "a_file_that_grows_at_any_read_is_read_up_to_the_length_it_had";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let runs = AtomicUsize::new(0);
    for (text, flags) in texts() {
        // The last line's newline comes with what is added, and so does its number's last digit.
        let text = &text[..text.len() - 1];
        let (len, grown) = (text.len() as u64, (text.len() + MORE.len()) as u64);
        let want = answer(&[text]);
        let content = Content {
            len,
            pieces: vec![(0, [text, MORE].concat())],
        };
        all_at_once(&ways(), |(way, pages)| {
            let fuse = Fuse::serve("rows", content.clone(), pages);
            let path = fuse.path();
            for at in [At::Read(0), At::Bytes(len - 1..len)] {
                fuse.plan(once(at.clone(), Fault::Length(grown)));
                let mut command = ringfold(["aggregate", str(&path)]);
                let ended = end(command.args(way.flags()).args(flags));
                let (got, said) = ended.answer_and_notices();
                assert!(got == want, "{way:?} {pages:?} {at:?}");
                assert_eq!(said, growth(&path, len, grown), "{way:?} {pages:?} {at:?}");
                runs.fetch_add(1, Relaxed);
            }
        });
    }
    eprintln!("{} runs, as many exact answers", runs.load(Relaxed));
}

/// The notice of a file that has grown.
fn growth(path: &Path, was: u64, now: u64) -> String {
    let path = str(path);
    format!(
        "ringfold: notice: {path}: has grown from {was} to {now} bytes; what was added wasn't read\n"
    )
}

/// From one read on every byte is inverted: no row there is valid, no line ends.
#[test]
fn a_file_that_is_rewritten_at_any_read_ends_the_run_in_order() {
    let test = "a_file_that_is_rewritten_at_any_read_ends_the_run_in_order";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let (answers, errors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for (text, flags) in texts() {
        let (len, middle) = (text.len() as u64, text.len() as u64 / 2);
        all_at_once(&ways(), |(way, pages)| {
            let fuse = Fuse::serve("rows", &text[..], pages);
            let path = fuse.path();
            for at in [
                At::Read(0),
                At::Bytes(middle..middle + 1),
                At::Bytes(len - 1..len),
            ] {
                for job in ["aggregate", "count"] {
                    fuse.plan(once(at.clone(), Fault::Rewrite));
                    let mut command = ringfold([job, str(&path)]);
                    let ended = end(command.args(way.flags()).args(flags));
                    let what = format!("{job}, {way:?} {pages:?} {at:?}");
                    let good = ends_in_order(ended, &what);
                    // Rows of which none is valid have no answer. Where the file was sound at first it
                    // may have one: a block in which no line ends is a part of the line before it,
                    // and whoever has read that one may have seen its end.
                    let whole = matches!(at, At::Read(0));
                    assert!(good || job == "aggregate", "{what}");
                    assert!(!good || job == "count" || !whole, "{what}");
                    if good { &answers } else { &errors }.fetch_add(1, Relaxed);
                }
            }
        });
    }
    let (answers, errors) = (answers.into_inner(), errors.into_inner());
    eprintln!("{answers} answers and {errors} errors");
}

// Real files.

/// Runs the program over two files: the first gives no byte until the second, which was opened, but
/// not read, has changed.
fn held(way: Way, path: &Path, change: impl FnOnce()) -> Ended {
    let first = Fuse::serve("first", &STATIONS[..], Pages::Cached);
    first.plan([Rule {
        at: At::Read(0),
        forever: true,
        fault: Fault::Hang,
    }]);
    let mut command = ringfold(["aggregate", "-j", "1", "--queue-depth", "2"]);
    command.args(SMALL).args(way.flags());
    let mut child = start(command.args([&first.path(), path]));
    let started = Instant::now();
    while first.held() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "{way:?}: it has ended");
        assert!(started.elapsed() < Duration::from_secs(50), "{way:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(opens(&child, path), "{way:?}: {path:?} isn't open");
    change();
    first.release();
    end_of(child)
}

/// Whether the child has the file open.
fn opens(child: &Child, path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    open.flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path))
}

/// All ways, for files in the page cache; `auto` reads these while it waits for others.
fn in_order() -> impl Iterator<Item = Way> {
    let in_order = |way: &Way| way.engine != Engine::Auto;
    WAYS.iter().copied().filter(in_order)
}

#[test]
fn a_real_file_truncated_before_it_is_read_is_told_with_both_lengths() {
    let test = "a_real_file_truncated_before_it_is_read_is_told_with_both_lengths";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let dir = dir();
    for way in in_order() {
        for left in [0, 5_000, 4096 * 20, STATIONS.len() - 1] {
            let path = write(dir.path(), "rows", &STATIONS);
            let ended = held(way, &path, || {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(left as u64).unwrap();
            });
            assert_eq!(ended.code, Some(1), "{way:?} {left}: {ended:?}");
            tells_of_the_end(&ended.failure(1), &path, left, STATIONS.len());
        }
    }
}

#[test]
fn a_real_file_that_grows_before_it_is_read_is_read_up_to_the_length_it_had() {
    let test = "a_real_file_that_grows_before_it_is_read_is_read_up_to_the_length_it_had";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let dir = dir();
    let text = &STATIONS[..STATIONS.len() - 1];
    let want = answer(&[&STATIONS, text]);
    for way in WAYS.iter() {
        let path = write(dir.path(), "rows", text);
        let ended = held(*way, &path, || {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(MORE, text.len() as u64).unwrap();
        });
        let (got, said) = ended.answer_and_notices();
        assert!(got == want, "{way:?}");
        let (was, now) = (text.len(), text.len() + MORE.len());
        assert_eq!(said, growth(&path, was as u64, now as u64), "{way:?}");
    }
}

#[test]
fn a_real_file_that_is_replaced_or_removed_is_read_as_it_was_opened() {
    let test = "a_real_file_that_is_replaced_or_removed_is_read_as_it_was_opened";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let dir = dir();
    let want = answer(&[&STATIONS, &STATIONS]);
    for way in WAYS.iter() {
        let path = write(dir.path(), "rows", &STATIONS);
        let other = write(dir.path(), "other", b"another;1.0\n");
        let ended = held(*way, &path, || fs::rename(&other, &path).unwrap());
        assert!(ended.answer() == want, "replaced, {way:?}");
        let path = write(dir.path(), "rows", &STATIONS);
        let ended = held(*way, &path, || fs::remove_file(&path).unwrap());
        assert!(ended.answer() == want, "removed, {way:?}");
    }
}

/// Rows as long as these, and as valid.
fn others(text: &[u8]) -> Vec<u8> {
    let swap = |&byte| match byte {
        b'1' => b'2',
        b'2' => b'1',
        other => other,
    };
    text.iter().map(swap).collect()
}

#[test]
fn a_real_file_that_is_rewritten_in_place_is_read_as_it_is_then() {
    let test = "a_real_file_that_is_rewritten_in_place_is_read_as_it_is_then";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let dir = dir();
    let rewritten = others(&STATIONS);
    let want = answer(&[&STATIONS, &rewritten]);
    for way in in_order() {
        let path = written_long_ago(dir.path());
        let ended = held(way, &path, || {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(&rewritten, 0).unwrap();
        });
        let (got, said) = ended.answer_and_notices();
        assert!(got == want, "over the old bytes, {way:?}");
        assert_eq!(said, rewriting(&path), "over the old bytes, {way:?}");
        // As a shell's `>` does: empty in between.
        let path = written_long_ago(dir.path());
        let ended = held(way, &path, || fs::write(&path, &rewritten).unwrap());
        let (got, said) = ended.answer_and_notices();
        assert!(got == want, "anew, {way:?}");
        assert_eq!(said, rewriting(&path), "anew, {way:?}");
        let path = write(dir.path(), "rows", &STATIONS);
        let ended = held(way, &path, || fs::write(&path, b"another;1.0\n").unwrap());
        tells_of_the_end(&ended.failure(1), &path, 12, STATIONS.len());
    }
}

/// A file whose time no write of now can have, however coarse the clock.
fn written_long_ago(dir: &Path) -> PathBuf {
    let path = write(dir, "rows", &STATIONS);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600))
        .unwrap();
    path
}

/// The notice of a file that was written to.
fn rewriting(path: &Path) -> String {
    let path = str(path);
    format!(
        "ringfold: notice: {path}: was written to while it was read; the answer may mix old and new \
         bytes\n"
    )
}

#[test]
fn a_byte_written_to_a_real_file_is_told_but_not_one_written_before() {
    let test = "a_byte_written_to_a_real_file_is_told_but_not_one_written_before";
    if skips(test, &[Feature::Fuse]) {
        return;
    }
    let dir = dir();
    let want = answer(&[&STATIONS, &STATIONS]);
    for way in WAYS.iter() {
        // By itself: what a file holds is nothing to its time.
        let path = written_long_ago(dir.path());
        let again = || {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(&STATIONS[..1], 0).unwrap();
        };
        let (got, said) = held(*way, &path, again).answer_and_notices();
        assert!(got == want, "{way:?}");
        assert_eq!(said, rewriting(&path), "{way:?}");
        // Just before it is opened, by the last of several writers.
        again();
        let chmod = || fs::set_permissions(&path, fs::metadata(&path).unwrap().permissions());
        let ended = held(*way, &path, || chmod().unwrap());
        assert!(ended.answer() == want, "{way:?}");
        for _ in 0..drawn(6, 20) {
            again();
            let mut command = ringfold(["count", "-l", str(&path)]);
            end(command.args(way.flags())).answer();
        }
    }
}

/// Runs over a file that `write` changes over and over; how many of them had an answer.
fn stormed(
    runs: usize,
    write: impl Fn(&fs::File, u64) + Sync,
    check: impl Fn(Way, Ended) -> bool,
) -> usize {
    let dir = dir();
    let path = crate::support::write(dir.path(), "rows", &STATIONS.repeat(4));
    let over = AtomicBool::new(false);
    let mut answers = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            let mut random = 0x5eed_u64;
            while !over.load(Relaxed) {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                write(&file, random >> 33);
                // Others want the processor and the file's lock too.
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let ended: Vec<(Way, Ended)> = WAYS
            .iter()
            .flat_map(|&way| std::iter::repeat_n(way, runs))
            .map(|way| {
                let mut command = ringfold(["aggregate", "-j", "2", "-b", "64K", str(&path)]);
                (way, end(command.args(way.flags())))
            })
            .collect();
        over.store(true, Relaxed);
        writer.join().unwrap();
        for (way, ended) in ended {
            answers += usize::from(check(way, ended));
        }
    });
    answers
}

#[test]
fn a_file_that_is_written_all_the_time_with_valid_rows_has_an_answer() {
    let texts = [STATIONS.repeat(4), others(&STATIONS).repeat(4)];
    let keys = reference::aggregate(&[&STATIONS[..]], b';', 1 << 20).keys();
    let write = |file: &fs::File, random: u64| {
        let text = &texts[random as usize % 2];
        let at = random as usize / 2 % text.len();
        let piece = &text[at..text.len().min(at + 50_000)];
        file.write_all_at(piece, at as u64).unwrap();
    };
    let check = |way, ended: Ended| {
        let (answer, said) = ended.answer_and_notices();
        // A run may begin and end between two writes.
        let is_notice = said.lines().count() == 1 && said.contains("/rows: was written to while");
        assert!(is_notice || said.is_empty(), "{way:?}: {said}");
        let got = answer.iter().filter(|&&byte| byte == b'=').count();
        assert_eq!(got, keys, "{way:?}");
        true
    };
    let answers = stormed(drawn(4, 10) as usize, write, check);
    eprintln!("{answers} runs, as many answers");
}

#[test]
fn a_file_that_anything_happens_to_all_the_time_ends_every_run_in_order() {
    let text = STATIONS.repeat(4);
    let junk: Vec<u8> = (0..50_000_u32).map(|n| ((n * n) >> 5) as u8).collect();
    let write = |file: &fs::File, random: u64| {
        let at = random / 8 % text.len() as u64;
        match random % 8 {
            0 => file.set_len(at).unwrap(),
            1 => file.set_len(text.len() as u64).unwrap(),
            2 => file.write_all_at(&junk, at).unwrap(),
            3 => file.write_all_at(b"\n", at).unwrap(),
            // Soon sound again, so that runs get far.
            _ => file.write_all_at(&text, 0).unwrap(),
        }
    };
    let runs = drawn(6, 20) as usize;
    let check = |way, ended| ends_in_order(ended, &format!("{way:?}"));
    let answers = stormed(runs, write, check);
    eprintln!(
        "{answers} answers and {} errors",
        runs * WAYS.len() - answers
    );
}
