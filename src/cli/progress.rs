//! Progress on stderr while a run goes on.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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

/// A bar that follows a counter of bytes.
pub(super) struct Bar {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    pub(super) fn start(when: When, quiet: bool, total: Option<u64>, done: Arc<AtomicU64>) -> Bar {
        let stop = Arc::new(AtomicBool::new(false));
        let draw = match when {
            When::Auto => !quiet && std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        let thread = draw.then(|| {
            let stop = Arc::clone(&stop);
            let follow = move || follow(total, &done, &stop);
            // Where no thread is to be had the run goes on without a bar.
            std::thread::Builder::new().spawn(follow).ok()
        });
        Bar {
            stop,
            thread: thread.flatten(),
        }
    }

    pub(super) fn finish(mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A bar that couldn't be drawn is no reason to lose the answer.
            let _ = thread.join();
        }
    }
}

fn follow(total: Option<u64>, done: &AtomicU64, stop: &AtomicBool) {
    std::thread::park_timeout(PATIENCE);
    if stop.load(Relaxed) {
        return;
    }
    let target = ProgressDrawTarget::stderr();
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::with_draw_target(Some(total), target),
            "{bar:30} {percent:>3}%  {binary_bytes} of {binary_total_bytes}  \
             {binary_bytes_per_sec}  {eta} left",
        ),
        None => (
            ProgressBar::with_draw_target(None, target),
            "{spinner} {binary_bytes}  {binary_bytes_per_sec}",
        ),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    while !stop.load(Relaxed) {
        bar.set_position(done.load(Relaxed));
        bar.tick();
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
