//! Counts the lines before a byte, for the number of a line in an error.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::engine::sink::{BlockError, Sink};
use crate::error::Result;
#[cfg(feature = "decompress")]
use crate::input::decode;
use crate::input::source::Shape;
#[cfg(feature = "decompress")]
use crate::input::source::Source;
use crate::input::spans::{Input, Span};
use crate::record::block::Block;
use crate::record::bytes;
use crate::record::framing::{Delimited, Framing};

/// No more bytes of an object are fetched again to count lines.
const FETCHED_AGAIN: u64 = 1 << 30;

/// How often `line_end` stands in the first `end` bytes of a source; `None` for a pipe, and where `run`, which reads
/// them, fails. Compressed sources are decompressed once more.
pub fn before<T>(
    input: &Input,
    source: u32,
    end: u64,
    line_end: u8,
    run: impl FnOnce(&Input, &dyn Sink) -> Result<T>,
) -> Option<u64> {
    let found = input.sources().get(source as usize)?;
    #[cfg(feature = "decompress")]
    if let Some(text) = decode::reopened(found) {
        return in_text(&text, end, line_end);
    }
    found.len()?;
    if matches!(found.shape, Shape::Object(_)) && end > FETCHED_AGAIN {
        return None;
    }
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

/// The same in a compressed source.
#[cfg(feature = "decompress")]
fn in_text(text: &Source, end: u64, line_end: u8) -> Option<u64> {
    let mut part = vec![0; 1 << 20];
    let (mut at, mut lines) = (0, 0);
    while at < end {
        let wanted = (end - at).min(part.len() as u64) as usize;
        let n = text
            .read_stream(&mut part[..wanted])
            .ok()
            .filter(|n| *n > 0)?;
        lines += bytes::count(line_end, &part[..n]) as u64;
        at += n as u64;
    }
    Some(lines)
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
