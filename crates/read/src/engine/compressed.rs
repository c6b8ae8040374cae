//! Compressed files that aren't cached: a ring reads them ahead, past the page cache, while decoders make text of them.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use crate::engine::arena::{Arena, Layout};
use crate::engine::cache::residency;
use crate::engine::config::Engine;
use crate::engine::plan::sizing;
use crate::engine::ring::ahead::{self, Totals};
use crate::engine::ring::setup::Setup;
use crate::engine::ring::uring;
use crate::engine::strategy::Run;
use crate::error::Result;
use crate::input::ahead::{AHEAD, AheadEngine};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::input::spans::{Input, Span};

impl Run<'_> {
    /// Reads streams. The texts of compressed files are decoded beside a ring that reads the files.
    pub(crate) fn compressed(&mut self, spans: &[Span]) -> Result<()> {
        let config = self.config;
        let (files, caching) = match config.engine {
            Engine::Uring => (self.files_of(spans), config.caching()),
            Engine::Auto => {
                let mut files = self.cold_files_of(spans);
                if self.fits_page_cache(residency::bytes(&self.files_of(spans))) {
                    files.clear();
                }
                (files, Caching::Direct)
            }
            _ => (Vec::new(), Caching::Cached),
        };
        // Shared by the files that are decoded at a time. Some are on their way back.
        let threads = self.stats.threads;
        let blocks = (threads + 2) * AHEAD;
        let capacity = (threads + 1) * AHEAD / files.len().clamp(1, threads);
        let setup = Setup::new(&config.knobs, blocks);
        let can = || uring::kernel_is_trusted().and_then(|()| uring::probe(&setup).map(drop));
        if files.is_empty() || config.engine == Engine::Auto && can().is_err() {
            return self.streams(spans);
        }
        let block = self.memory.ring_block(sizing::RING_BLOCK, |_| blocks);
        let slots = blocks;
        let arena = Arena::new(Layout { block, slots }, config.knobs.huge_pages)?;
        let (slots, returned) = arena.slots();
        let (requests, arrivals) = ahead::requests();
        let (done, totals) = thread::scope(|scope| {
            let closing = requests.closing();
            let run = || {
                uring::run(&arena, &setup, async |ring| {
                    ahead::run(ring, arrivals, slots, returned, caching).await
                })
            };
            let ring = thread::Builder::new().spawn_scoped(scope, run);
            attach(self.input, &files, |source| {
                requests.of(source, block, capacity)
            });
            let done = self.streams(spans);
            drop(closing);
            // Without a thread for it decoders read the files themselves.
            let totals = ring.map(|ring| ring.join().unwrap_or_else(|panic| resume_unwind(panic)));
            (done, totals.ok())
        });
        match totals {
            // What it says of a knob counts where the ring was asked for.
            Some(Err(error)) if config.engine == Engine::Uring => return done.and(Err(error)),
            Some(Ok((Totals { reads, bytes }, facts))) if reads > 0 => {
                self.because("the ring reads compressed files");
                self.count_ring(facts);
                self.stats.reads += reads;
                self.stats.compressed_bytes += bytes;
            }
            _ => {}
        }
        done
    }

    /// The compressed files of texts, each as a span of its own.
    fn files_of(&self, spans: &[Span]) -> Vec<Span> {
        let file = |span: &Span| {
            let origin = self.input.source(span).origin()?;
            let len = origin.len().filter(|_| origin.is_file())?;
            Some(Span {
                from: 0,
                to: len,
                ..*span
            })
        };
        spans.iter().filter_map(file).collect()
    }

    /// Those of which more than half isn't cached, but for small ones.
    fn cold_files_of(&self, spans: &[Span]) -> Vec<Span> {
        let mut files = self.files_of(spans);
        files.retain(|file| !residency::is_small(&[*file]));
        let compressed = self.input.compressed();
        let split = self.pool.install(|| residency::split(&compressed, &files));
        files.retain(|file| {
            let cold = split.cold.iter().filter(|part| part.source == file.source);
            cold.map(|part| part.to - part.from).sum::<u64>() > file.to / 2
        });
        files
    }
}

/// Gives the decoders of these files what reads them ahead.
fn attach(input: &Input, files: &[Span], engine: impl Fn(&Arc<Source>) -> Box<dyn AheadEngine>) {
    for text in files.iter().map(|file| input.source(file)) {
        let compressed = text.decoder().and_then(|decoder| decoder.file.as_ref());
        if let Some((origin, compressed)) = text.origin().zip(compressed) {
            compressed.read_ahead_by(engine(origin));
        }
    }
}
