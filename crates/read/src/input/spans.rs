//! What a run reads: sources, and the spans of them.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::input::begin::Begin;
#[cfg(feature = "decompress")]
use crate::input::codec::Means;
#[cfg(feature = "decompress")]
use crate::input::decode;
#[cfg(feature = "decompress")]
use crate::input::memory::DecoderMemory;
use crate::input::object::Object;
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

/// What all decoders of an input may have if nobody says.
#[cfg(feature = "decompress")]
const DECODER_MEMORY: u64 = 1 << 30;

/// The texts of those sources that are compressed. Files that aren't cached are looked at many at a time.
#[cfg(feature = "decompress")]
fn texts_of(sources: &[Arc<Source>], means: &Means) -> Result<Vec<Option<Source>>> {
    use rayon::prelude::*;
    const THREADS_MAX: usize = 16;
    const SOURCES_A_THREAD: usize = 8;
    let threads = sources.len().div_ceil(SOURCES_A_THREAD).min(THREADS_MAX);
    let look = |source: &Arc<Source>| decode::decompressed(source, means);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    if threads > 1
        && let Ok(pool) = pool.build()
    {
        let found: Vec<_> = pool.install(|| sources.par_iter().map(look).collect());
        return found.into_iter().collect();
    }
    sources.iter().map(look).collect()
}

/// What a run reads: sources, and the spans of them in order.
#[derive(Debug, Clone, Default)]
pub struct Input {
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) spans: Vec<Span>,
    /// Which of how many parts it is, where it was divided.
    pub(crate) part: Option<(u32, u32)>,
    pub(crate) begin: Begin,
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
    /// A source can't be read. What is damaged is told by the run that reads it.
    #[cfg(feature = "decompress")]
    pub fn decompressed(self) -> Result<Self> {
        let processors = std::thread::available_parallelism();
        self.decompressed_by(processors.map_or(1, usize::from))
    }

    /// The same, each source by at most `threads` threads. Formats and files differ in how many can work at once.
    ///
    /// # Errors
    /// See [`Input::decompressed`].
    #[cfg(feature = "decompress")]
    pub fn decompressed_by(mut self, threads: usize) -> Result<Self> {
        let means = Means {
            threads: threads.max(1),
            memory: DecoderMemory::new(DECODER_MEMORY),
        };
        for text in texts_of(&self.sources, &means)?.into_iter().flatten() {
            let index = text.index;
            self.spans
                .iter_mut()
                .filter(|span| span.source == index)
                .for_each(|span| span.to = u64::MAX);
            self.sources[index as usize] = Arc::new(text);
        }
        Ok(self)
    }

    /// The same, where all decoders together have at most `bytes` bytes of memory for what the data makes them keep: the
    /// windows of zstd and xz. They wait for each other. A file that takes more alone is an error of the run. The default
    /// is 1 GiB.
    #[cfg(feature = "decompress")]
    pub fn decoder_memory(self, bytes: u64) -> Self {
        for decoder in self.sources.iter().filter_map(|source| source.decoder()) {
            decoder.means.memory.set_limit(bytes);
        }
        self
    }

    /// Whether what some decoder keeps is for the data to say.
    #[doc(hidden)]
    #[cfg(feature = "decompress")]
    pub fn has_windows(&self) -> bool {
        let mut decoders = self.sources.iter().filter_map(|source| source.decoder());
        decoders.any(|decoder| decoder.has_window())
    }

    /// Whether it can be read a second time: nothing is a pipe.
    #[doc(hidden)]
    pub fn can_repeat(&self) -> bool {
        self.sources.iter().all(|source| source.can_repeat())
    }

    /// The same, to be read a second time: compressed sources are decompressed anew.
    ///
    /// # Errors
    /// See [`Input::decompressed`].
    pub(crate) fn repeated(&self) -> Result<Input> {
        let input = self.clone();
        #[cfg(feature = "decompress")]
        let input = Input {
            sources: (input.sources.into_iter())
                .map(|source| {
                    let Some((origin, decoder)) = source.origin().zip(source.decoder()) else {
                        return Ok(source);
                    };
                    let text = decode::decompressed(origin, &decoder.means)?;
                    let other = || Error::new(Kind::Data, "it isn't compressed any more");
                    text.map(Arc::new).ok_or_else(|| origin.error(other()))
                })
                .collect::<Result<_>>()?,
            ..input
        };
        Ok(input)
    }

    /// The compressed files in the place of their texts.
    #[cfg(feature = "decompress")]
    pub(crate) fn compressed(&self) -> Input {
        let source = |source: &Arc<Source>| Arc::clone(source.origin().unwrap_or(source));
        Input {
            sources: self.sources.iter().map(source).collect(),
            ..Input::default()
        }
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

    /// One more source, an object that is read by ranges; `name` stands for it in errors and receipts.
    ///
    /// ```
    /// use std::io;
    /// use std::sync::Arc;
    ///
    /// use ringfold_read::{Input, Object};
    ///
    /// struct Greeting;
    ///
    /// impl Object for Greeting {
    ///     fn bytes(&self) -> u64 {
    ///         6
    ///     }
    ///
    ///     fn read_at(&self, mut to: &mut [u8], at: u64) -> io::Result<usize> {
    ///         io::Write::write(&mut to, &b"hello\n"[at as usize..])
    ///     }
    /// }
    ///
    /// let mut input = Input::default();
    /// input.add_object("store://bucket/greeting", Arc::new(Greeting));
    /// assert_eq!(input.len(), Some(6));
    /// ```
    pub fn add_object(&mut self, name: &str, object: Arc<dyn Object>) {
        self.push(Source::object(self.sources.len() as u32, name, object));
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
            let cause = "spans overlap or aren't in the input's order";
            return Err(Error::new(Kind::Usage, cause));
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
                let cause = format!("{span:?} isn't within its source");
                return Err(Error::new(Kind::Usage, cause));
            }
        }
        self.spans = spans;
        (self.part, self.begin) = (None, Begin::default());
        Ok(self)
    }

    /// One of `parts` parts of about as many bytes each, counted from 1. All sources are cut as one. A record belongs to the
    /// part that its first byte lies in. Where newlines may stand in quoted fields, [`Input::begin`] says where the first
    /// record begins.
    ///
    /// # Errors
    /// There is no such part, or a source is a stream, which can't be cut.
    pub fn part(mut self, part: u32, parts: u32) -> Result<Self> {
        if part == 0 || part > parts {
            let cause = format!("there is no part {part} of {parts}: parts are counted from 1");
            return Err(Error::new(Kind::Usage, cause));
        }
        if let Some(stream) = self.sources.iter().find(|source| source.len().is_none()) {
            let cause = match stream.is_compressed() {
                true => {
                    "a compressed file can't be divided into parts: read it alone and whole, and merge its partial with the \
                     others"
                }
                false => {
                    "a pipe or another stream can't be divided into parts: read it whole, or write it to a file first"
                }
            };
            return Err(stream.error(Error::new(Kind::Usage, cause)));
        }
        let lengths = self.spans.iter().map(|span| span.to - span.from);
        let total: u128 = lengths.map(u128::from).sum();
        let cut = |part: u32| total * u128::from(part) / u128::from(parts);
        let (from, to) = (cut(part - 1), cut(part));
        let mut before = 0;
        for span in &mut self.spans {
            let bytes = u128::from(span.to - span.from);
            // Both are at most the span's length.
            let within = |at: u128| at.clamp(before, before + bytes).abs_diff(before) as u64;
            (span.from, span.to) = (span.from + within(from), span.from + within(to));
            before += bytes;
        }
        self.spans.retain(|span| span.from < span.to);
        self.part = Some((part, parts));
        Ok(self)
    }

    /// Which of how many [parts](Input::part) it is, from 1, where it was divided.
    pub fn part_of(&self) -> Option<(u32, u32)> {
        self.part
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all() {
        for lens in [&[][..], &[0], &[1], &[5, 0, 7], &[3, 1, 1, 20]] {
            let texts = || lens.iter().map(|len| vec![b'a'; *len]);
            let whole = Input::memory(texts());
            let bytes: usize = lens.iter().sum();
            for parts in 1..=30 {
                let (mut got, mut at) = (Vec::new(), 0);
                for part in 1..=parts {
                    let input = Input::memory(texts()).part(part, parts).unwrap();
                    let len = input.len().unwrap() as usize;
                    assert!(len.abs_diff(bytes / parts as usize) <= 1);
                    got.extend(input.spans().to_vec());
                    at += len;
                }
                assert_eq!(at, bytes);
                let mut joined: Vec<Span> = Vec::new();
                for span in got {
                    match joined.last_mut() {
                        Some(last) if (last.source, last.to) == (span.source, span.from) => {
                            last.to = span.to;
                        }
                        _ => joined.push(span),
                    }
                }
                let want = whole.spans().iter().filter(|span| span.from < span.to);
                assert!(joined.iter().eq(want), "{lens:?} {parts}");
            }
        }
        let text = || Input::memory([&b"a"[..]]);
        assert!(text().part(0, 2).is_err() && text().part(3, 2).is_err());
    }
}
