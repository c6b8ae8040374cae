//! What a run reads: sources, and the spans of them.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
#[cfg(feature = "decompress")]
use crate::input::decode;
use crate::input::source::Source;

/// A part of a source: the records whose first byte lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The source's number.
    pub source: u32,
    /// The first byte.
    pub from: u64,
    /// One past the last byte; `u64::MAX` for a stream, which ends where it ends.
    pub to: u64,
}

/// What a run reads: sources, and the spans of them in order.
#[derive(Debug, Clone, Default)]
pub struct Input {
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) spans: Vec<Span>,
}

impl Input {
    /// Whole files, in order; `-` is standard input.
    ///
    /// # Errors
    /// A file is missing, unreadable or a directory, or the limit on open files is reached.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let mut input = Input::default();
        for path in paths {
            input.add(path)?;
        }
        Ok(input)
    }

    /// One more whole file; `-` is standard input. If it can't be opened nothing is added.
    ///
    /// # Errors
    /// See [`Input::open`].
    pub fn add(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.push(Source::open(self.sources.len() as u32, path)?);
        Ok(())
    }

    /// The same with each compressed source as the text in it, a stream: gzip, zstd, bzip2, xz and lz4, known by their
    /// first bytes. Of a pipe this waits for these bytes.
    ///
    /// # Errors
    /// A source can't be read, or its compressed data is damaged from the start.
    #[cfg(feature = "decompress")]
    pub fn decompressed(mut self) -> Result<Self> {
        for source in &mut self.sources {
            if let Some(text) = decode::decompressed(source)? {
                for span in &mut self.spans {
                    if span.source == text.index {
                        span.to = u64::MAX;
                    }
                }
                *source = Arc::new(text);
            }
        }
        Ok(self)
    }

    /// Texts in memory, in order, named by their numbers.
    pub fn memory<B: Into<Arc<[u8]>>>(texts: impl IntoIterator<Item = B>) -> Self {
        let mut input = Input::default();
        for text in texts {
            let index = input.sources.len() as u32;
            input.push(Source::memory(index, &format!("memory:{index}"), text));
        }
        input
    }

    fn push(&mut self, source: Source) {
        self.spans.push(Span {
            source: source.index,
            from: 0,
            to: source.len().unwrap_or(u64::MAX),
        });
        self.sources.push(Arc::new(source));
    }

    /// The same sources, but only these spans of them.
    ///
    /// # Errors
    /// A span that isn't within its source, or a part of a stream; spans that overlap or aren't in
    /// the order of the input, which is what "the lowest failure" goes by.
    pub fn with_spans(mut self, spans: Vec<Span>) -> Result<Self> {
        let ordered =
            |pair: &[Span]| (pair[0].source, pair[0].to) <= (pair[1].source, pair[1].from);
        if !spans.windows(2).all(ordered) {
            return Err(Error::new(
                Kind::Usage,
                "spans overlap or aren't in the input's order",
            ));
        }
        for span in &spans {
            let len = self
                .sources
                .get(span.source as usize)
                .map(|source| source.len());
            let within = match len {
                Some(Some(len)) => span.from <= span.to && span.to <= len,
                Some(None) => (span.from, span.to) == (0, u64::MAX),
                None => false,
            };
            if !within {
                return Err(Error::new(
                    Kind::Usage,
                    format!("{span:?} isn't within its source"),
                ));
            }
        }
        self.spans = spans;
        Ok(self)
    }

    /// The same without the holes of sparse files, as far as the file system tells of them: for jobs
    /// that know what zeros come to. A span never ends within what was one, so this is only for
    /// [`Delimited::EVERY_BYTE`](crate::Delimited::EVERY_BYTE).
    pub fn without_holes(mut self) -> Self {
        let spans = std::mem::take(&mut self.spans);
        for span in spans {
            let source = &self.sources[span.source as usize];
            let data = source.data(span.from..span.to).into_iter();
            self.spans.extend(data.map(|data| Span {
                from: data.start,
                to: data.end,
                ..span
            }));
        }
        self
    }

    /// How many bytes of each source no span covers; 0 of a stream.
    pub fn left_out(&self) -> Vec<u64> {
        let lens = self.sources.iter().map(|source| source.len().unwrap_or(0));
        let mut left_out: Vec<u64> = lens.collect();
        for span in self.spans.iter().filter(|span| span.to != u64::MAX) {
            left_out[span.source as usize] -= span.to - span.from;
        }
        left_out
    }

    /// The sources.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// The spans, in the order in which they are read.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// An error of this input, which says where its bytes are.
    pub(crate) fn marked(&self, error: Error) -> Error {
        let source = self.sources.get(error.file_index() as usize);
        let is_compressed =
            error.file().is_some() && source.is_some_and(|source| source.is_compressed());
        error.decompressed(is_compressed)
    }

    /// The source of a span.
    pub fn source(&self, span: &Span) -> &Arc<Source> {
        &self.sources[span.source as usize]
    }

    /// How many bytes the spans cover; `None` when a stream is among them.
    pub fn len(&self) -> Option<u64> {
        self.spans
            .iter()
            .map(|span| (span.to != u64::MAX).then(|| span.to - span.from))
            .sum::<Option<u64>>()
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}
