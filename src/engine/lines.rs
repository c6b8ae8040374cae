//! Counts the lines before a byte, for the number of a line in an error.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::engine::sink::{BlockError, Sink};
use crate::error::Result;
use crate::input::spans::{Input, Span};
use crate::record::block::Block;
use crate::record::bytes;
use crate::record::framing::{Delimited, Framing};

/// How often `line_end` stands in the first `end` bytes of a source; `None` for a stream, and where `run`, which
/// reads them, fails.
pub(crate) fn before<T>(
    input: &Input,
    source: u32,
    end: u64,
    line_end: u8,
    run: impl FnOnce(&Input, &dyn Sink) -> Result<T>,
) -> Option<u64> {
    input.sources().get(source as usize)?.len()?;
    let before = Span {
        source,
        from: 0,
        to: end,
    };
    let before = input.clone().with_spans(vec![before]).ok()?.without_holes();
    let holes = end - before.len()?;
    let lines = LineEnds {
        byte: line_end,
        // A hole is as many zeros.
        count: AtomicU64::new(if line_end == 0 { holes } else { 0 }),
    };
    run(&before, &lines).ok()?;
    Some(lines.count.into_inner())
}

/// Counts the bytes that end lines.
struct LineEnds {
    byte: u8,
    count: AtomicU64,
}

impl Sink for LineEnds {
    fn framing(&self) -> &dyn Framing {
        &Delimited::EVERY_BYTE
    }

    fn block(&self, block: &Block<'_>) -> Result<(), BlockError> {
        let ends = bytes::count(self.byte, block.bytes());
        self.count.fetch_add(ends as u64, Relaxed);
        Ok(())
    }
}
