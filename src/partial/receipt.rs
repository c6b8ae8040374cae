//! What a run reads: which files, in which state, and which bytes of them.

#[cfg(feature = "decompress")]
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
#[cfg(feature = "decompress")]
use std::os::unix::fs::FileExt;

use crate::partial::description::{Extent, Source, Span};
use crate::partial::layout::checksum;
#[cfg(feature = "decompress")]
use ringfold_read::internals::reopened;
use ringfold_read::{Error, Input, Kind, Result, Source as Open};

/// As many bytes at a file's start and at its end are looked at to know it again.
const LOOKED_AT: u64 = 64 << 10;

/// What a run reads. It is taken before the run, so that a file that is written to meanwhile isn't taken for the one that
/// it becomes.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub(crate) sources: Vec<Source>,
    pub(crate) spans: Vec<Span>,
}

/// A file that begins with so many bytes of another one is a later state of it, whatever it is called.
const COPIED: u64 = 4096;
/// So many pairs of files are compared for that.
const PAIRS: usize = 4096;

impl Receipt {
    /// Of an input.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn of(input: &Input) -> Result<Receipt> {
        let sources: Vec<Source> = (input.sources().iter())
            .map(|source| identified(on_disk(source)))
            .collect::<Result<_>>()?;
        let (part, parts) = input.part_of().unwrap_or((1, 1));
        let division = match parts {
            1 => 0,
            _ => division(&sources, parts),
        };
        let span = |source, from, to| Span {
            source,
            from,
            to,
            part,
            parts,
            division,
            extent: Extent::Plain,
        };
        let mut spans: Vec<Span> = (input.spans().iter())
            .map(|read| {
                // The text of a compressed file is read as a whole.
                let of = &sources[read.source as usize];
                let is_compressed = input.source(read).is_compressed() && !of.is_stream;
                let to = if is_compressed { of.bytes } else { read.to };
                span(read.source, read.from, to)
            })
            .filter(|span| span.from < span.to)
            .collect();
        if parts > 1 && spans.is_empty() && !sources.is_empty() {
            // A part without bytes is there, too.
            spans.push(span(0, 0, 0));
        }
        Ok(Receipt { sources, spans })
    }
}

impl Receipt {
    /// Looks for files of which an earlier state was read, which had fewer bytes.
    ///
    /// # Errors
    /// There is one, or a file can't be read.
    pub fn refuse_grown(&self, known: &Receipt, input: &Input) -> Result<()> {
        let open = input.sources().iter().map(|source| on_disk(source));
        let looks_at_all = self.sources.len().saturating_mul(known.sources.len()) <= PAIRS;
        for (own, open) in self.sources.iter().zip(open) {
            let may_be = known.sources.iter().filter(|known| {
                let is_shorter = !known.is_stream && (1..own.bytes).contains(&known.bytes);
                let is_same = (known.device, known.inode) == (own.device, own.inode);
                let may_be_copied = looks_at_all && known.bytes >= COPIED;
                is_shorter && (is_same || known.name == own.name || may_be_copied)
            });
            for known in may_be {
                let before = fingerprint(open, known.bytes)?;
                if before == known.fingerprint {
                    let cause = format!(
                        "the file has grown since it was read: its first {} bytes are in the partial, as {}: begin the \
                         partial again, with files that have their last length",
                        known.bytes,
                        String::from_utf8_lossy(&known.name)
                    );
                    let error = Error::new(Kind::Data, cause);
                    return Err(error.in_file(open.index(), open.name()));
                }
            }
        }
        Ok(())
    }
}

impl Receipt {
    /// Looks for files whose bytes were read before, under another name, at another time of writing, or before they were
    /// compressed. To know the latter, a compressed file is decoded once more where a file that was read may be its text.
    ///
    /// # Errors
    /// There is one, or a file can't be read.
    pub fn refuse_copies(&self, known: &Receipt, input: &Input) -> Result<()> {
        let files = known
            .sources
            .iter()
            .filter(|known| !known.is_stream && known.bytes > 0);
        let files: Vec<&Source> = files.collect();
        for (own, open) in self.sources.iter().zip(input.sources()) {
            let is_copy = |known: &&Source| {
                (known.bytes, known.fingerprint) == (own.bytes, own.fingerprint)
                    && !own.is_stream
                    && !known.is_same(own)
            };
            let copy = files.iter().copied().find(is_copy);
            #[cfg(feature = "decompress")]
            let copy = copy.or_else(|| text_among(open, &files));
            if let Some(copy) = copy {
                let name = String::from_utf8_lossy(&copy.name);
                let cause = format!("the same bytes are in the partial, as {name}");
                return Err(Error::new(Kind::Data, cause).in_file(open.index(), open.name()));
            }
        }
        Ok(())
    }
}

/// The file that is the text of a compressed one. What is damaged is left for the run to tell.
#[cfg(feature = "decompress")]
fn text_among<'k>(open: &Open, files: &[&'k Source]) -> Option<&'k Source> {
    let file = open.origin()?;
    let len = file.len()?;
    let length = length_by_gzip(file, len);
    let may_be = |known: &&&Source| match length {
        Some(length) => known.bytes as u32 == length,
        // Little is larger when it is compressed.
        None => known.bytes + 1024 >= len,
    };
    let files: Vec<&Source> = files.iter().filter(may_be).copied().collect();
    let most = files.iter().map(|known| known.bytes).max()?;
    let text = reopened(open)?;
    let (mut first, mut last, mut all) = (Vec::new(), VecDeque::<u8>::new(), 0);
    let mut bytes = vec![0; LOOKED_AT as usize];
    loop {
        let n = match text.read_stream(&mut bytes).ok()? {
            0 => break,
            n => n,
        };
        all += n as u64;
        if all > most {
            return None;
        }
        let room = 2 * bytes.len() - first.len();
        first.extend_from_slice(&bytes[..n.min(room)]);
        last.extend(&bytes[..n]);
        last.drain(..last.len().saturating_sub(bytes.len()));
    }
    let fingerprint = match all <= 2 * LOOKED_AT {
        true => checksum(&first),
        false => {
            first.truncate(bytes.len());
            first.extend(last);
            checksum(&first)
        }
    };
    let is_it = |known: &&Source| (known.bytes, known.fingerprint) == (all, fingerprint);
    files.into_iter().find(is_it)
}

/// What the end of a gzip file says of its text's length, modulo 4 GiB; that of files of many members says nothing.
#[cfg(feature = "decompress")]
fn length_by_gzip(file: &Open, len: u64) -> Option<u32> {
    let (mut head, mut tail) = ([0; 2], [0; 4]);
    let open = file.file().ok()?;
    open.read_exact_at(&mut head, 0).ok()?;
    open.read_exact_at(&mut tail, len.checked_sub(4)?).ok()?;
    let length = u32::from_le_bytes(tail);
    (head == [0x1f, 0x8b] && length > 0).then_some(length)
}

/// The file: of text that comes out of a compressed one, that one.
fn on_disk(source: &Open) -> &Open {
    #[cfg(feature = "decompress")]
    if let Some(origin) = source.origin() {
        return origin;
    }
    source
}

/// What parts of the same input have in common: the files, in their order and state, and how many parts there are.
fn division(sources: &[Source], parts: u32) -> u64 {
    let mut bytes = parts.to_le_bytes().to_vec();
    for source in sources {
        bytes.extend(source.fingerprint.to_le_bytes());
        bytes.extend(source.bytes.to_le_bytes());
        bytes.extend(source.seconds.to_le_bytes());
        bytes.extend(source.nanoseconds.to_le_bytes());
    }
    // Zero means that there are no parts.
    checksum(&bytes).max(1)
}

fn identified(source: &Open) -> Result<Source> {
    let (device, inode) = source.inode().unwrap_or_default();
    let (seconds, nanoseconds) = source.written().unwrap_or_default();
    let fingerprint = match source.len() {
        Some(len) => fingerprint(source, len)?,
        // A stream isn't known again.
        None => RandomState::new().hash_one(source.index()),
    };
    Ok(Source {
        name: source.name().as_bytes().to_vec(),
        is_stream: source.len().is_none(),
        device,
        inode,
        bytes: source.len().unwrap_or(0),
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        fingerprint,
    })
}

/// The fingerprint of the first `len` bytes of a source.
fn fingerprint(source: &Open, len: u64) -> Result<u64> {
    let mut bytes = vec![0; len.min(2 * LOOKED_AT) as usize];
    let (first, last) = bytes.split_at_mut(len.min(LOOKED_AT) as usize);
    let at = len - last.len() as u64;
    let read = (source.read_exact_at(first, 0)).and_then(|()| source.read_exact_at(last, at));
    read.map_err(|error| Error::io(&error).in_file(source.index(), source.name()))?;
    Ok(checksum(&bytes))
}

impl Source {
    /// Whether both are the same file in the same state, whatever it is called.
    pub(crate) fn is_same(&self, other: &Source) -> bool {
        let state = |source: &Source| {
            (
                source.is_stream,
                source.bytes,
                source.seconds,
                source.nanoseconds,
                source.fingerprint,
            )
        };
        state(self) == state(other)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn files_and_memory_have_the_same_fingerprint() {
        for len in [0, 1, 65_536, 65_537, 131_072, 131_073, 300_000] {
            let bytes: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
            let of = |bytes: &[u8]| {
                let input = Input::memory([bytes]);
                fingerprint(&input.sources()[0], bytes.len() as u64).unwrap()
            };
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let open = Input::open([file.path()]).unwrap();
            let of_file = fingerprint(&open.sources()[0], len.into()).unwrap();
            assert_eq!(of_file, of(&bytes));
            let whole = 2 * LOOKED_AT as usize;
            if bytes.len() > whole {
                let ends = [&bytes[..whole / 2], &bytes[bytes.len() - whole / 2..]].concat();
                assert_eq!(of_file, checksum(&ends));
            }
            if len > 0 {
                for at in [0, len - 1] {
                    let mut other = bytes.clone();
                    other[at as usize] ^= 1;
                    assert_ne!(of(&other), of(&bytes));
                }
            }
        }
    }
}
