//! A compressed file that decoders read, and an engine that reads ahead for them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock};

use crate::sync::lock;

/// Blocks that are read, or are being read, from a reader's place on.
pub(crate) const AHEAD: usize = 4;
/// Fewer bytes aren't worth a read through an engine.
const FEW: usize = 128 << 10;
/// Who wants few bytes more often than this looks at all of the file first, through the page cache.
const FEW_OFTEN: u32 = 64;

/// The bytes of a block: all of them, or as many as there are up to the end of the file.
pub(crate) type Arrived = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What reads the blocks of a file ahead.
pub(crate) trait AheadEngine: fmt::Debug + Send + Sync {
    /// Bytes of a block. Files are cut into blocks from their start.
    fn block(&self) -> u64;

    /// How many blocks of the file may be kept or under way, at least [`AHEAD`].
    fn capacity(&self) -> usize;

    /// Begins to read the block at `from`. A reader that gets nothing, now or later, reads the bytes itself, and learns why.
    fn begin(&self, from: u64) -> Option<Receiver<Option<Arrived>>>;
}

/// Opens a file, unless it is open.
type Opener = dyn Fn() -> io::Result<Arc<File>> + Send + Sync;

/// A compressed file, and what reads it ahead.
pub(crate) struct CompressedFile {
    open: Box<Opener>,
    engine: OnceLock<Box<dyn AheadEngine>>,
}

impl fmt::Debug for CompressedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompressedFile").field(&self.engine).finish()
    }
}

impl CompressedFile {
    pub(crate) fn new(
        open: impl Fn() -> io::Result<Arc<File>> + Send + Sync + 'static,
    ) -> Arc<CompressedFile> {
        Arc::new(CompressedFile {
            open: Box::new(open),
            engine: OnceLock::new(),
        })
    }

    /// The file, open as long as somebody has it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        (self.open)()
    }

    /// From now on this engine reads ahead, unless there is one.
    pub(crate) fn read_ahead_by(&self, engine: Box<dyn AheadEngine>) {
        let _ = self.engine.set(engine);
    }
}

/// Where compressed bytes come from.
pub(crate) enum Compressed {
    /// A file that can be read anywhere.
    File(Arc<CompressedFile>),
    Stream(Box<dyn Read + Send>),
}

/// Reads anywhere in a compressed file, for threads that move on through it together.
#[derive(Debug)]
pub(crate) struct AheadReader {
    file: Arc<CompressedFile>,
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

impl AheadReader {
    pub(crate) fn new(file: Arc<CompressedFile>) -> AheadReader {
        AheadReader {
            file,
            blocks: Mutex::default(),
        }
    }

    /// The length of the file.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.file()?.metadata()?.len())
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
            None => self.file.file()?.read_at(to, at),
        }
    }

    /// The block with the byte at `at`, and how many of its bytes lie before that; `None` where the engine hasn't brought it.
    fn block(&self, at: u64, wanted: usize) -> Option<(usize, Arrived)> {
        let engine = self.file.engine.get()?;
        let mut blocks = lock(&self.blocks);
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
        for next in (from..).step_by(size as usize).take(AHEAD) {
            if blocks.all.contains_key(&next) {
                continue;
            }
            if blocks.all.len() >= engine.capacity() {
                // The threads that wanted those before are further on.
                match blocks.all.first_entry() {
                    Some(first) if *first.key() < from => drop(first.remove()),
                    _ => break,
                }
            }
            let Some(coming) = engine.begin(next) else {
                break;
            };
            blocks.all.insert(next, Block::Coming(coming));
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

/// Reads a compressed file from its start to its end.
#[derive(Debug)]
pub(crate) struct InOrder {
    reader: AheadReader,
    at: u64,
}

impl InOrder {
    pub(crate) fn new(file: Arc<CompressedFile>) -> InOrder {
        InOrder::from(file, 0)
    }

    /// From a place on.
    pub(crate) fn from(file: Arc<CompressedFile>, at: u64) -> InOrder {
        InOrder {
            reader: AheadReader::new(file),
            at,
        }
    }
}

impl Read for InOrder {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read_at(to, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    const BLOCK: u64 = 8192;

    /// An engine that has read a text, but answers only some of the requests.
    #[derive(Debug)]
    struct SomeArrive {
        text: Vec<u8>,
        /// Of the requests in order, what becomes of them: it isn't begun, it fails, or it arrives.
        fates: Mutex<Vec<u8>>,
        kept: usize,
    }

    impl AheadEngine for SomeArrive {
        fn block(&self) -> u64 {
            BLOCK
        }

        fn capacity(&self) -> usize {
            self.kept
        }

        fn begin(&self, from: u64) -> Option<Receiver<Option<Arrived>>> {
            assert_eq!(from % BLOCK, 0);
            let fate = self.fates.lock().unwrap().pop().unwrap_or(2);
            if fate == 0 || from >= self.text.len() as u64 {
                return None;
            }
            let (send, receive) = sync_channel(1);
            let to = self.text.len().min((from + BLOCK) as usize);
            let arrived = self.text[from as usize..to].to_vec();
            let arrived: Option<Arrived> = (fate == 2).then(|| Arc::new(arrived) as Arrived);
            send.send(arrived).unwrap();
            Some(receive)
        }
    }

    /// Whatever the engine brings, the bytes are those of the file, and no more blocks are kept than may be.
    #[test]
    fn bytes_are_right_whatever_the_engine_brings() {
        let text: Vec<u8> = (0..400_003_u64).map(|n| ((n * n) >> 7) as u8).collect();
        let len = text.len() as u64;
        for seed in 0..200_u64 {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text).unwrap();
            let file = Arc::new(file);
            let file = CompressedFile::new(move || Ok(Arc::clone(&file)));
            let kept = AHEAD + seed as usize % 9;
            if seed > 0 {
                let fates = (0..40).map(|n| (seed * 7 + n * seed / 3 % 5) as u8 % 3);
                file.read_ahead_by(Box::new(SomeArrive {
                    text: text.clone(),
                    fates: Mutex::new(fates.collect()),
                    kept,
                }));
            }
            let mut reader = InOrder::new(Arc::clone(&file));
            let mut got: Vec<u8> = Vec::new();
            let mut to = vec![0; FEW + seed as usize % 2];
            loop {
                let few = usize::from(got.len() % 7 == 1) * (1 + seed as usize);
                match reader.read(&mut to[few..]).unwrap() {
                    0 => break,
                    n => got.extend(&to[few..few + n]),
                }
                assert!(reader.reader.blocks.lock().unwrap().all.len() <= kept);
            }
            assert!(got == text, "seed {seed}");
            // From several places that move on, and from one that stays where it is.
            let reader = AheadReader::new(file);
            for step in 0..40_u64 {
                for place in [0, 1, 3, 7, 11] {
                    let at = (step * place * (977 + seed * 13)) % (len + 1);
                    let few = usize::from(at.is_multiple_of(7)) * (1 + seed as usize);
                    let n = reader.read_at(&mut to[few..], at).unwrap();
                    let want = &text[at as usize..at as usize + n];
                    assert!(&to[few..few + n] == want, "seed {seed}, {at}");
                    assert!(n > 0 || at == len);
                    assert!(reader.blocks.lock().unwrap().all.len() <= kept);
                }
            }
        }
    }
}
