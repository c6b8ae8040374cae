//! Writes in the input's order, on a thread of its own.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringfold_read::{
    Block, BlockError, Config, Error, Finished, Framing, Input, Kind, Ordered, Result, Sink, Stats,
    run,
};

use crate::job::transform::Transform;
use crate::output::ordered::{self, Text};

/// How far blocks run ahead of the first whose bytes aren't written: enough for all reads in flight, and a block for each
/// of some workers.
const WINDOW: u64 = 48;

/// See [`transform`](crate::transform).
pub(super) fn transform<T: Transform>(
    input: &Input,
    config: &Config,
    job: &T,
    out: &mut (dyn Write + Send),
) -> Result<Stats> {
    let writer = Writer {
        job,
        texts: ordered::Ordered::new(),
        end: Mutex::new((u32::MAX, u64::MAX)),
        is_broken: AtomicBool::new(false),
        broken: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("writer".to_string());
        let writing = thread.spawn_scoped(scope, || writer.write(out));
        let writing = writing.map_err(|error| {
            Error::new(Kind::Engine, "can't start a thread to write the output").with_errno(&error)
        })?;
        let close = Close(&writer.texts);
        let ran = run(input, config, &writer);
        drop(close);
        if let Err(panic) = writing.join() {
            std::panic::resume_unwind(panic);
        }
        match writer.broken() {
            Some(error) => Err(error),
            None => ran,
        }
    })
}

/// Lets the writing thread end, also when the run panics.
struct Close<'a>(&'a ordered::Ordered<Finished>);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The sink of a transforming job.
struct Writer<'a, T> {
    job: &'a T,
    texts: ordered::Ordered<Finished>,
    /// File and byte from which on nothing is written any more.
    end: Mutex<(u32, u64)>,
    /// Whether the output has failed, and by what.
    is_broken: AtomicBool,
    broken: Mutex<Option<Error>>,
}

impl<T: Transform> Writer<'_, T> {
    fn write(&self, out: &mut dyn Write) {
        self.texts.write_all(|text| {
            let is_behind_end = text.is_some_and(|text| text.place >= *lock(&self.end));
            if is_behind_end || self.is_broken.load(Relaxed) {
                return;
            }
            let written = match text {
                Some(text) => out.write_all(&text.bytes),
                None => out.flush(),
            };
            if let Err(error) = written {
                self.fail(&error);
            }
        });
    }

    fn fail(&self, error: &std::io::Error) {
        *lock(&self.broken) = Some(Error::output(error));
        self.is_broken.store(true, Relaxed);
    }

    fn broken(&self) -> Option<Error> {
        lock(&self.broken).clone()
    }
}

impl<T: Transform> Sink for Writer<'_, T> {
    fn framing(&self) -> &dyn Framing {
        self.job.framing()
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        if self.is_broken.load(Relaxed)
            && let Some(error) = self.broken()
        {
            return Err(error.into());
        }
        let mut bytes = self.texts.buffer();
        bytes.clear();
        let done = self.job.block(block, &mut bytes);
        let place = (block.file(), block.offset());
        self.texts.put(block.sequence(), Text { place, bytes });
        done
    }

    fn order(&self) -> Option<&dyn Ordered> {
        Some(self)
    }
}

impl<T: Transform> Ordered for Writer<'_, T> {
    fn window(&self) -> u64 {
        WINDOW
    }

    fn finished(&self, finished: Finished) {
        self.texts.finish(finished.sequence(), finished);
    }

    fn failed(&self, file: u32, offset: u64) {
        let mut end = lock(&self.end);
        *end = (*end).min((file, offset));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
