//! Progress on stderr while a run goes on: one line, as wide as the terminal allows, gone at the end.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use ringfold_read::internals::units;
use rustix::event::{PollFd, PollFlags, poll};

use crate::Progress;

/// When to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum When {
    /// When stderr is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A line about bytes that are done.
pub(super) struct Bar {
    started: Instant,
    /// The last ticks: when, and how many bytes were done.
    seen: Mutex<VecDeque<(Instant, u64)>>,
}

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(100);
/// The rate is measured over this many ticks.
const TICKS: usize = 30;
/// Columns where stderr is no terminal.
const WIDTH: usize = 80;
/// Columns of the bar itself, its brackets included.
const BAR: std::ops::RangeInclusive<usize> = 12..=32;
/// To the line's start, and everything from there on cleared.
const CLEAR: &str = "\r\x1b[K";

/// What is on the line of progress.
enum Line {
    Nothing,
    Progress,
    /// The process ends: nothing is drawn any more.
    Over,
}

static LINE: Mutex<Line> = Mutex::new(Line::Nothing);

/// Clears the line of progress for another message. The next tick draws it again.
pub(super) fn clear() {
    let mut line = LINE.lock().unwrap_or_else(|error| error.into_inner());
    if let Line::Progress = *line {
        write(CLEAR);
        *line = Line::Nothing;
    }
}

/// Clears the line for good, as the process ends. It waits neither for a terminal that accepts nothing nor for a
/// thread that is stuck writing to it.
pub(super) fn clear_for_good() {
    // Drawing takes a moment, unless the terminal accepts nothing.
    let free = (0..10).find_map(|_| match LINE.try_lock() {
        Ok(line) => Some(line),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(Duration::from_millis(5));
            None
        }
    });
    let Some(mut line) = free else {
        return;
    };
    let stderr = io::stderr();
    let mut takes = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = rustix::time::Timespec::default();
    if let (Line::Progress, Ok(1)) = (&*line, poll(&mut takes, Some(&at_once))) {
        let _ = rustix::io::write(&stderr, CLEAR.as_bytes());
    }
    *line = Line::Over;
}

fn write(text: &str) {
    // A line that can't be drawn is no reason to lose the answer.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn draw(text: &str) {
    let mut line = LINE.lock().unwrap_or_else(|error| error.into_inner());
    if !matches!(*line, Line::Over) {
        write(&format!("{CLEAR}{text}"));
        *line = Line::Progress;
    }
}

/// Whether to draw.
pub(super) fn is_wanted(when: When, quiet: bool) -> bool {
    match when {
        When::Auto => !quiet && io::stderr().is_terminal(),
        When::Always => true,
        When::Never => false,
    }
}

/// Draws a step of work that is counted in runs: what is done, what it does now, and how long the rest will take.
pub(super) fn show(now: &str, done: usize, all: usize, elapsed: Duration) {
    let share = done as f64 / all.max(1) as f64;
    let percent = format!("{:>3}%", (100.0 * share) as u64);
    let rest = match done {
        0 => String::new(),
        _ => left(elapsed.as_secs_f64() * (all - done.min(all)) as f64 / done as f64) + " left",
    };
    let width = width();
    let text = fitting(
        &[&[&percent, &rest, now], &[&percent, now], &[&percent]],
        width,
    );
    draw(&text);
}

impl Bar {
    /// What draws the line, if somebody is to see it.
    pub(super) fn of(when: When, quiet: bool) -> Option<Arc<Progress>> {
        is_wanted(when, quiet).then(|| {
            let started = Instant::now();
            let bar = Bar {
                started,
                seen: Mutex::new(VecDeque::from([(started, 0)])),
            };
            Arc::new(move |done, total| bar.tick(done, total)) as Arc<Progress>
        })
    }

    fn tick(&self, done: u64, total: Option<u64>) {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(|error| error.into_inner());
        let is_early = seen.back().is_some_and(|(last, _)| now - *last < TICK);
        if is_early || now - self.started < PATIENCE {
            return;
        }
        if seen.len() == TICKS {
            seen.pop_front();
        }
        seen.push_back((now, done));
        let (then, before) = seen[0];
        let bytes = done.saturating_sub(before);
        draw(&line(
            total,
            done,
            (bytes, (now - then).as_secs_f64()),
            width(),
        ));
    }
}

/// Columns that may be written to.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr().as_fd());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { WIDTH } else { columns };
    // The terminal may write `^C` after the line, and wraps after the last column.
    columns.saturating_sub(3)
}

/// The line after `done` bytes: as much as fits into `width` columns.
fn line(total: Option<u64>, done: u64, (bytes, seconds): (u64, f64), width: usize) -> String {
    let rate = units::rate(bytes, seconds);
    let Some(total) = total else {
        let done = units::size(done);
        return fitting(&[&[&done, &rate], &[&done]], width);
    };
    let done = done.min(total);
    let share = if total == 0 {
        1.0
    } else {
        done as f64 / total as f64
    };
    let percent = format!("{:>3}%", (100.0 * share) as u64);
    let amounts = format!("{} of {}", units::size(done), units::size(total));
    let left = match bytes {
        0 => String::new(),
        _ => left((total - done) as f64 * seconds / bytes as f64) + " left",
    };
    let all: [&str; 4] = [&percent, &amounts, &rate, &left];
    let text = fitting(
        &[
            &all,
            &[&percent, &rate, &left],
            &[&percent, &left],
            &[&percent],
        ],
        width,
    );
    let space = width.saturating_sub(text.chars().count() + 2);
    if space < *BAR.start() {
        return text;
    }
    let columns = space.min(*BAR.end()) - 2;
    let full = (share * columns as f64) as usize;
    let head = if full < columns { ">" } else { "" };
    let bar = format!("{}{head}", "=".repeat(full));
    format!("[{bar:columns$}]  {text}")
}

/// The first of several that fits.
fn fitting(choices: &[&[&str]], width: usize) -> String {
    let joined = choices.iter().map(|parts| {
        let parts = parts.iter().copied().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("  ")
    });
    let mut fitting = joined.filter(|text| text.len() <= width);
    fitting.next().unwrap_or_default()
}

/// Seconds in words: `5 s`, `2 min 5 s`, `1 h 3 min`.
fn left(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::progress::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn it_is_as_long_as_the_terminal_allows() {
        let at = |width| line(Some(8 * GIB), 2 * GIB, (GIB, 0.5), width);
        let whole = format!(
            "[{:30}]   25%  2 GiB of 8 GiB  2.00 GiB/s  3 s left",
            "=======>"
        );
        assert_eq!(at(199), whole);
        assert_eq!(at(79), whole);
        assert_eq!(
            at(60),
            "[===>          ]   25%  2 GiB of 8 GiB  2.00 GiB/s  3 s left"
        );
        assert_eq!(at(43), " 25%  2 GiB of 8 GiB  2.00 GiB/s  3 s left");
        assert_eq!(at(39), " 25%  2.00 GiB/s  3 s left");
        assert_eq!(at(20), " 25%  3 s left");
        assert_eq!(at(5), " 25%");
        assert_eq!(at(1), "");
        let stream = |width| line(None, 2 * GIB, (GIB, 0.5), width);
        assert_eq!(stream(79), "2 GiB  2.00 GiB/s");
        assert_eq!(stream(9), "2 GiB");
        for width in 0..120 {
            for (total, done) in [(Some(0), 0), (Some(7), 7), (Some(u64::MAX), GIB), (None, 9)] {
                let text = line(total, done, (done, 1.0), width);
                assert!(text.len() <= width, "{text}");
            }
        }
    }

    #[test]
    fn what_is_left() {
        for (seconds, text) in [
            (0.2, "1 s"),
            (59.0, "59 s"),
            (125.0, "2 min 5 s"),
            (3780.0, "1 h 3 min"),
        ] {
            assert_eq!(left(seconds), text);
        }
    }
}
