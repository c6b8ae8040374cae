//! Reads an input in order, one block at a time, cut at lines: for what a framing can't tell.
//!
//! Where a record begins behind a quote that nobody closes is only known at the next quote, or when the record has become
//! too long. Here a record that isn't whole yet is kept until it is. Memory: the longest record and a block.

use memchr::memchr;
use ringfold_read::internals::{Cut, bytes};
use ringfold_read::{Block, BlockError, Error, Kind, PaddedBuf, Result};

use crate::format::dialect::mark_len;
use crate::format::sniff::separator_line;
use crate::plan::Plan;
use crate::plan::order::InOrder;
use crate::run::one_by_one::{End, Text};
use crate::run::partial::Partial;

impl Plan {
    /// Adds the block that comes next.
    pub(crate) fn next_block(
        &self,
        partial: &mut Partial,
        block: &Block<'_>,
    ) -> Result<(), BlockError> {
        if (partial.reading.as_ref()).is_none_or(|reading| reading.file != block.file()) {
            self.end_of_file(partial)?;
        }
        let mut reading = partial.reading.take().unwrap_or_else(|| InOrder {
            file: block.file(),
            rest: PaddedBuf::default(),
            offset: block.offset(),
            lines: 0,
            look_at: 0,
            skip_lines: self.skip_lines,
            wants_header: self.has_header,
        });
        let done = match reading.rest.is_empty() {
            true => self.look(partial, &mut reading, block, End::More),
            false => {
                reading.rest.extend(block.bytes());
                // A record that was cut is too long, whatever comes behind it.
                reading.look_at = block.cut().map_or(reading.look_at, |_| 0);
                self.look_at_rest(partial, &mut reading, block.cut(), End::More)
            }
        };
        if block.cut().is_some() {
            reading.offset = block.offset() + block.length();
        }
        partial.reading = Some(reading);
        done
    }

    /// Adds what is left of the file that was read last.
    pub(crate) fn end_of_file(&self, partial: &mut Partial) -> Result<()> {
        let Some(mut reading) = partial.reading.take() else {
            return Ok(());
        };
        if reading.rest.is_empty() {
            return Ok(());
        }
        let done = self.look_at_rest(partial, &mut reading, None, End::File);
        done.map_err(|error| match error {
            BlockError::Sink(error) => error,
            BlockError::Malformed(_) => unreachable!("it has its place"),
        })
    }

    fn look_at_rest(
        &self,
        partial: &mut Partial,
        reading: &mut InOrder,
        cut: Option<Cut>,
        end: End,
    ) -> Result<(), BlockError> {
        if end == End::More && reading.rest.len() < reading.look_at {
            return Ok(());
        }
        let rest = std::mem::take(&mut reading.rest);
        let block = rest.block(reading.file, reading.offset, 0).with_cut(cut);
        let before = reading.lines;
        let done = self.look(partial, reading, &block, end);
        done.map_err(|error| match error {
            // The bytes aren't those of the engine's block.
            BlockError::Malformed(malformed) => {
                let lines = before + bytes::count(b'\n', &block.bytes()[..malformed.start]) as u64;
                let at = |place: usize| block.offset() + place as u64;
                let error = Error::new(Kind::Data, malformed.cause)
                    .in_file(reading.file, &self.files[reading.file as usize])
                    .at_bytes(at(malformed.start)..at(malformed.end))
                    .at_line(1 + lines);
                error.into()
            }
            sink => sink,
        })
    }

    /// Adds the records of a block, and keeps the one that it ends within.
    fn look(
        &self,
        partial: &mut Partial,
        reading: &mut InOrder,
        block: &Block<'_>,
        end: End,
    ) -> Result<(), BlockError> {
        let bytes = block.bytes();
        let text = Text { block: *block, end };
        let mut done = match block.offset() {
            0 => mark_len(bytes),
            _ => 0,
        };
        let outcome = self.after_preamble(partial, reading, &text, &mut done);
        let outcome = outcome.and_then(|is_behind| {
            if is_behind {
                done = self.records(partial, &text, done, usize::MAX)?;
            }
            Ok(())
        });
        partial.rejected.end_block(&self.rejecting, block, done);
        reading.rest = PaddedBuf::from(&bytes[done..]);
        reading.lines += bytes::count(b'\n', &bytes[..done]) as u64;
        reading.offset = block.offset() + done as u64;
        let len = reading.rest.len();
        reading.look_at = (2 * len).min((len + 1).max(self.max_record.saturating_add(3)));
        outcome
    }

    /// Goes behind the lines that are left out and the header, from `at` on; `false` where the text ends before.
    fn after_preamble(
        &self,
        partial: &mut Partial,
        reading: &mut InOrder,
        text: &Text<'_>,
        at: &mut usize,
    ) -> Result<bool, BlockError> {
        let bytes = text.block.bytes();
        if self.has_separator_line && text.block.offset() == 0 {
            *at = separator_line(bytes).map_or(*at, |(_, end)| end);
        }
        while reading.skip_lines > 0 && *at < bytes.len() {
            reading.skip_lines -= 1;
            *at = memchr(b'\n', &bytes[*at..]).map_or(bytes.len(), |end| *at + end + 1);
        }
        while reading.wants_header && *at < bytes.len() {
            if let Some(next) = self.dialect.after_comment(bytes, *at) {
                *at = next;
                continue;
            }
            match self.header(partial, text, *at)? {
                Some(behind) => (*at, reading.wants_header) = (behind, false),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}
