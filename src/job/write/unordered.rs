//! Writes as it comes: each worker writes what it has made, one at a time.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use ringfold_read::{Block, BlockError, Config, Error, Framing, Input, Result, Sink, Stats, run};

use crate::job::transform::Transform;

/// See [`transform`](crate::transform).
pub(super) fn transform<T: Transform>(
    input: &Input,
    config: &Config,
    job: &T,
    out: &mut (dyn Write + Send),
) -> Result<Stats> {
    let writer = Writer {
        job,
        texts: Mutex::default(),
        out: Mutex::new(out),
        is_broken: AtomicBool::new(false),
    };
    run(input, config, &writer)
}

/// The sink of such a job.
struct Writer<'a, T> {
    job: &'a T,
    /// Memory to be reused: a text for each worker.
    texts: Mutex<Vec<Vec<u8>>>,
    out: Mutex<&'a mut (dyn Write + Send)>,
    is_broken: AtomicBool,
}

impl<T: Transform> Sink for Writer<'_, T> {
    fn framing(&self) -> &dyn Framing {
        self.job.framing()
    }

    fn block(&self, block: &Block<'_>) -> std::result::Result<(), BlockError> {
        let mut text = lock(&self.texts).pop().unwrap_or_default();
        text.clear();
        let done = self.job.block(block, &mut text);
        let mut out = lock(&self.out);
        // What follows bytes that are missing isn't written: the output stays whole.
        if !self.is_broken.load(Relaxed) {
            let written = out.write_all(&text).and_then(|()| out.flush());
            if let Err(error) = written {
                self.is_broken.store(true, Relaxed);
                return Err(Error::output(&error).into());
            }
        }
        drop(out);
        lock(&self.texts).push(text);
        done
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
