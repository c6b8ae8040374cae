//! A compressed file that decoders read, in order or anywhere, and an engine that reads ahead for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What reads past the page cache begin and end at multiples of.
pub(crate) const ALIGN: u64 = 4096;
/// Reads that are under way for one reader.
pub(crate) const AHEAD: usize = 4;
/// Fewer bytes aren't worth a read through an engine.
const FEW: usize = 128 << 10;
/// Who wants few bytes more often than this looks at all of the file first, through the page cache.
const FEW_OFTEN: u32 = 64;

/// What a read has brought: as many bytes as were asked for, or as there are up to the end of the file.
pub(crate) type Arrived = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An engine that reads a file ahead.
pub(crate) trait ReadAhead: fmt::Debug + Send + Sync {
    /// Bytes of a read at most, a multiple of [`ALIGN`].
    fn block(&self) -> u64;

    /// Begins to read `len` bytes from `from` on, both multiples of [`ALIGN`]. Who gets nothing, now or later, reads these
    /// bytes himself, and learns why.
    fn begin(&self, from: u64, len: u64) -> Option<Receiver<Option<Arrived>>>;
}

/// A compressed file, shared by those who decode it.
#[derive(Debug)]
pub(crate) struct CompressedFile {
    /// The source's own: thousands of files may be open, and descriptors are few.
    pub(crate) file: Arc<File>,
    engine: OnceLock<Box<dyn ReadAhead>>,
}

impl CompressedFile {
    pub(crate) fn new(file: Arc<File>) -> Arc<CompressedFile> {
        let engine = OnceLock::new();
        Arc::new(CompressedFile { file, engine })
    }

    /// From now on this engine reads ahead, unless there is one.
    pub(crate) fn read_ahead_by(&self, engine: Box<dyn ReadAhead>) {
        let _ = self.engine.set(engine);
    }
}

/// Reads a part of a compressed file from its start to its end.
pub(crate) struct AheadReader {
    file: Arc<CompressedFile>,
    at: u64,
    end: u64,
    /// Reads under way, each with where it begins, in order and without gaps.
    coming: VecDeque<(u64, Receiver<Option<Arrived>>)>,
    /// Where the next of them begins.
    next: u64,
    arrived: Option<(u64, Arrived)>,
}

impl AheadReader {
    /// The bytes from `at` up to `end`, or to the end of the file.
    pub(crate) fn new(file: &Arc<CompressedFile>, at: u64, end: u64) -> AheadReader {
        AheadReader {
            file: Arc::clone(file),
            at,
            end,
            coming: VecDeque::new(),
            next: 0,
            arrived: None,
        }
    }

    /// Bytes that the engine has read; `None` where it has none.
    fn read_arrived(&mut self, to: &mut [u8]) -> Option<usize> {
        loop {
            if let Some((from, arrived)) = &self.arrived {
                let before = usize::try_from(self.at - from).ok()?;
                let rest = (**arrived).as_ref().get(before..).unwrap_or_default();
                if !rest.is_empty() {
                    let n = rest.len().min(to.len());
                    to[..n].copy_from_slice(&rest[..n]);
                    return Some(n);
                }
                self.arrived = None;
            }
            self.begin_reads()?;
            let (from, coming) = self.coming.pop_front()?;
            let arrived = coming.recv().ok()??;
            if from + (*arrived).as_ref().len() as u64 <= self.at {
                // The file ends before.
                return None;
            }
            self.arrived = Some((from, arrived));
        }
    }

    /// Has reads under way, from the place on.
    fn begin_reads(&mut self) -> Option<()> {
        let engine = self.file.engine.get()?;
        let holds = |from: u64| (from..from + engine.block()).contains(&self.at);
        if !self.coming.front().is_some_and(|(from, _)| holds(*from)) {
            // Bytes were read without the engine since.
            self.coming.clear();
            self.next = self.at / ALIGN * ALIGN;
        }
        while self.coming.len() < AHEAD && self.next < self.end {
            let left = self.end.min(u64::MAX - ALIGN) - self.next;
            let len = left.min(engine.block()).next_multiple_of(ALIGN);
            let Some(coming) = engine.begin(self.next, len) else {
                break;
            };
            self.coming.push_back((self.next, coming));
            self.next += len;
        }
        Some(())
    }
}

impl Read for AheadReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = to.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let to = &mut to[..wanted];
        let n = match self.read_arrived(to) {
            Some(n) => n,
            None => self.file.file.read_at(to, self.at)?,
        };
        self.at += n as u64;
        Ok(n)
    }
}

/// Reads of several threads that move on together through a compressed file.
#[derive(Debug)]
pub(crate) struct AheadBlocks {
    file: Arc<CompressedFile>,
    /// How many blocks are kept, or are being read: those of the threads, and some ahead of them.
    kept: usize,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// By where they begin.
    all: BTreeMap<u64, Block>,
    /// How often few bytes were wanted.
    few: u32,
}

enum Block {
    Coming(Receiver<Option<Arrived>>),
    Here(Arrived),
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

impl AheadBlocks {
    /// For so many threads.
    pub(crate) fn new(file: Arc<CompressedFile>, threads: usize) -> AheadBlocks {
        AheadBlocks {
            file,
            kept: (threads + 1) * AHEAD,
            blocks: Mutex::default(),
        }
    }

    /// The length of the file.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.file.metadata()?.len())
    }

    /// Reads up to as many bytes as fit, at least one before the end of the file.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        match self.block(at, to.len()) {
            Some((before, block)) => {
                let rest = &(*block).as_ref()[before..];
                let n = rest.len().min(to.len());
                to[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            None => self.file.file.read_at(to, at),
        }
    }

    /// The block with the byte at `at`, and how many of its bytes lie before that; `None` where the engine hasn't brought it.
    fn block(&self, at: u64, wanted: usize) -> Option<(usize, Arrived)> {
        let engine = self.file.engine.get()?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let size = engine.block();
        let from = at / size * size;
        if wanted < FEW && !blocks.all.contains_key(&from) {
            blocks.few += 1;
            return None;
        }
        if blocks.few > FEW_OFTEN {
            blocks.all.clear();
            return None;
        }
        let lowest = blocks.all.first_key_value();
        if blocks.all.len() >= self.kept && lowest.is_some_and(|(lowest, _)| from < *lowest) {
            return None;
        }
        for from in (from..).step_by(size as usize).take(AHEAD) {
            let Entry::Vacant(place) = blocks.all.entry(from) else {
                continue;
            };
            let Some(coming) = engine.begin(from, size) else {
                break;
            };
            place.insert(Block::Coming(coming));
        }
        // The others of the threads are further on.
        while blocks.all.len() > self.kept {
            blocks.all.pop_first();
        }
        let arrived = match blocks.all.remove(&from)? {
            Block::Here(arrived) => arrived,
            // Whoever waits for the lock waits for a block that comes later.
            Block::Coming(coming) => coming.recv().ok()??,
        };
        blocks.all.insert(from, Block::Here(Arc::clone(&arrived)));
        let before = (at - from) as usize;
        (before < (*arrived).as_ref().len()).then_some((before, arrived))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// An engine that has read a text, but answers only some of the requests.
    #[derive(Debug)]
    struct SomeArrive {
        text: Vec<u8>,
        /// Of the requests in order, what becomes of them: it isn't begun, it fails, or it arrives.
        fates: Mutex<Vec<u8>>,
    }

    impl ReadAhead for SomeArrive {
        fn block(&self) -> u64 {
            2 * ALIGN
        }

        fn begin(&self, from: u64, len: u64) -> Option<Receiver<Option<Arrived>>> {
            assert_eq!((from % ALIGN, len % ALIGN), (0, 0));
            assert!(len > 0 && len <= self.block());
            let fate = self.fates.lock().unwrap().pop().unwrap_or(2);
            if fate == 0 || from >= self.text.len() as u64 {
                return None;
            }
            let (send, receive) = sync_channel(1);
            let to = self.text.len().min((from + len) as usize);
            let arrived = self.text[from as usize..to].to_vec();
            let arrived: Option<Arrived> = (fate == 2).then(|| Arc::new(arrived) as Arrived);
            send.send(arrived).unwrap();
            Some(receive)
        }
    }

    /// Whatever the engine brings, the bytes are those of the part.
    #[test]
    fn parts_are_read_whatever_the_engine_brings() {
        let text: Vec<u8> = (0..100_003_u64).map(|n| ((n * n) >> 7) as u8).collect();
        let len = text.len() as u64;
        for seed in 0..200_u64 {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text).unwrap();
            let file = CompressedFile::new(Arc::new(file));
            if seed > 0 {
                let fates = (0..40).map(|n| (seed * 7 + n * seed / 3 % 5) as u8 % 3);
                file.read_ahead_by(Box::new(SomeArrive {
                    text: text.clone(),
                    fates: Mutex::new(fates.collect()),
                }));
            }
            let from = seed * 977 % len;
            for end in [u64::MAX, len, from + 1, (from + seed * 331).min(len)] {
                let mut reader = AheadReader::new(&file, from, end);
                let mut got: Vec<u8> = Vec::new();
                let mut to = vec![0; 1 + (seed * 613 % 20_000) as usize];
                loop {
                    match reader.read(&mut to).unwrap() {
                        0 => break,
                        n => got.extend(&to[..n]),
                    }
                }
                let want = &text[from as usize..end.min(len) as usize];
                assert!(got == want, "seed {seed}, {from} to {end}");
            }
            let blocks = AheadBlocks::new(file, 1 + seed as usize % 3);
            let mut to = vec![0; FEW + seed as usize % 2];
            for at in (0..=len).step_by(1009 + seed as usize * 97) {
                let few = usize::from(at % 7 == 0) * (1 + seed as usize);
                let n = blocks.read_at(&mut to[few..], at).unwrap();
                let want = &text[at as usize..at as usize + n];
                assert!(&to[few..few + n] == want, "seed {seed}, {at}");
                assert!(n > 0 || at == len);
            }
        }
    }
}
