//! Reads a partial: checks its head, description, index and tail at once, and each block when it is asked for.
//!
//! A file is read, not mapped: what was checked is what is used, also when somebody changes the file meanwhile. No
//! allocation is larger than the file.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use ringfold_read::{Error, Kind, Result};
use zerocopy::FromBytes;

use crate::partial::block::{Block, Sections};
use crate::partial::column::{ColumnView, Variable};
use crate::partial::description::{Column, Description};
use crate::partial::layout::{
    ALIGNMENT, BLOCK_HEAD_BYTES, END_MAGIC, HEAD_BYTES, Head, INDEX_ENTRY_BYTES, IndexEntry, MAGIC,
    TAIL_BYTES, Tail, VERSION, checksum,
};

/// A partial that can be read.
#[derive(Debug)]
pub(crate) struct Reader {
    name: Arc<str>,
    storage: Storage,
    bytes: u64,
    pub(crate) description: Description,
    pub(crate) columns: Vec<Column>,
    index: Vec<IndexEntry>,
    groups: u64,
}

enum Storage {
    File(File),
    Memory(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::File(file) => file.fmt(f),
            Storage::Memory(_) => f.write_str("Memory"),
        }
    }
}

/// A block that was checked, in memory.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
    reader: &'a Reader,
    at: usize,
    /// Its bytes, unless the whole partial is in memory.
    buffer: Vec<u8>,
    sections: Sections,
}

impl Loaded<'_> {
    pub(crate) fn groups(&self) -> usize {
        self.sections.groups()
    }

    pub(crate) fn view(&self) -> Block<'_> {
        self.sections.view(self.bytes(), &self.reader.columns)
    }

    pub(crate) fn keys(&self) -> Variable<'_> {
        self.sections.keys(self.bytes())
    }

    pub(crate) fn column(&self, at: usize) -> ColumnView<'_> {
        let column = self.reader.columns[at];
        self.sections.column(at, column, self.bytes())
    }

    /// Bytes of the block.
    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    /// What to say of it.
    pub(crate) fn damaged(&self, why: &str) -> Error {
        self.reader.damaged_block(self.at, why)
    }

    /// Leaves the memory for another block.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn bytes(&self) -> &[u8] {
        self.reader.bytes_of(self.at, &self.buffer)
    }
}

impl Reader {
    /// Opens a file; `-` is the standard input. A stream is taken into memory.
    ///
    /// # Errors
    /// It can't be read, or isn't a whole partial that this version knows.
    pub(crate) fn open(path: &Path) -> Result<Reader> {
        let name: Arc<str> = path.to_string_lossy().into();
        let failed = |error: io::Error| Error::io(&error).in_file(0, &name);
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map_err(failed)?;
            return Reader::in_memory(name, bytes);
        }
        let file = File::open(path).map_err(failed)?;
        Reader::of_file(name, file)
    }

    /// Reads an open file from its start.
    ///
    /// # Errors
    /// See [`Reader::open`].
    pub(crate) fn of_file(name: Arc<str>, mut file: File) -> Result<Reader> {
        let failed = |error: io::Error| Error::io(&error).in_file(0, &name);
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            return Reader::in_memory(name, bytes);
        }
        Reader::new(name, Storage::File(file), meta.len())
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.storage, Storage::Memory(_))
    }

    /// Reads a partial in memory.
    ///
    /// # Errors
    /// See [`Reader::open`].
    pub(crate) fn in_memory(
        name: Arc<str>,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Reader> {
        let len = bytes.as_ref().len() as u64;
        Reader::new(name, Storage::Memory(Box::new(bytes)), len)
    }

    /// All bytes: where they lie, if they are in memory.
    ///
    /// # Errors
    /// The file can't be read.
    pub(crate) fn to_bytes(&self) -> Result<Cow<'_, [u8]>> {
        match &self.storage {
            Storage::File(_) => self.some(0, self.bytes as usize).map(Cow::Owned),
            Storage::Memory(bytes) => Ok(Cow::Borrowed((**bytes).as_ref())),
        }
    }

    fn new(name: Arc<str>, storage: Storage, bytes: u64) -> Result<Reader> {
        let mut reader = Reader {
            name,
            storage,
            bytes,
            description: Description::default(),
            columns: Vec::new(),
            index: Vec::new(),
            groups: 0,
        };
        let head = reader.head()?;
        let tail = reader.tail(&head)?;
        let after = reader.describe(&head)?;
        reader.read_index(&tail, after)?;
        Ok(reader)
    }

    /// What it is called in errors.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn groups(&self) -> u64 {
        self.groups
    }

    /// How many groups a block has.
    pub(crate) fn groups_of(&self, block: usize) -> u64 {
        self.index[block].groups.get()
    }

    pub(crate) fn blocks(&self) -> usize {
        self.index.len()
    }

    /// Bytes of a block.
    pub(crate) fn bytes_of_block(&self, block: usize) -> u64 {
        self.index[block].bytes.get()
    }

    /// Bytes of the largest block.
    pub(crate) fn largest_block(&self) -> u64 {
        let bytes = self.index.iter().map(|entry| entry.bytes.get());
        bytes.max().unwrap_or(0)
    }

    /// Reads a block and checks all of it but the order of its keys. `buffer` is memory that is used again.
    ///
    /// # Errors
    /// It can't be read, or is damaged.
    pub(crate) fn load(&self, at: usize, mut buffer: Vec<u8>) -> Result<Loaded<'_>> {
        let entry = &self.index[at];
        if let Storage::File(file) = &self.storage {
            // The index was checked: the block is within the file.
            buffer.resize(entry.bytes.get() as usize, 0);
            let read = file.read_exact_at(&mut buffer, entry.offset.get());
            read.map_err(|error| self.unread(&error))?;
        }
        let bytes = self.bytes_of(at, &buffer);
        let sections = Sections::check(bytes, &self.description, &self.columns);
        let sections = sections.map_err(|why| self.damaged_block(at, why))?;
        let is_indexed = bytes.starts_with(&entry.checksum.to_bytes());
        if !is_indexed || sections.groups() as u64 != entry.groups.get() {
            return Err(self.damaged_block(at, "the index has another one"));
        }
        Ok(Loaded {
            reader: self,
            at,
            buffer,
            sections,
        })
    }

    /// The bytes of a block.
    fn bytes_of<'a>(&'a self, at: usize, buffer: &'a [u8]) -> &'a [u8] {
        match &self.storage {
            Storage::File(_) => buffer,
            Storage::Memory(bytes) => {
                let entry = &self.index[at];
                let from = entry.offset.get() as usize;
                &(**bytes).as_ref()[from..from + entry.bytes.get() as usize]
            }
        }
    }

    /// What to say of a block.
    fn damaged_block(&self, at: usize, why: &str) -> Error {
        let from = self.index[at].offset.get();
        let bytes = from..from + self.index[at].bytes.get();
        let cause = format!("this block of the partial is damaged: {why}");
        self.wrong(cause).at_bytes(bytes)
    }

    /// What to say of the whole.
    pub(crate) fn wrong(&self, cause: impl Into<ringfold_read::Cause>) -> Error {
        Error::new(Kind::Data, cause).in_file(0, &self.name)
    }

    fn unread(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let bytes = self.bytes;
                let cause = format!("the file had {bytes} bytes when it was opened, and has fewer");
                Error::new(Kind::Io, cause).in_file(0, &self.name)
            }
            _ => Error::io(error).in_file(0, &self.name),
        }
    }

    /// Some bytes of the file.
    fn some(&self, from: u64, len: usize) -> Result<Vec<u8>> {
        match &self.storage {
            Storage::File(file) => {
                let mut bytes = vec![0; len];
                let read = file.read_exact_at(&mut bytes, from);
                read.map_err(|error| self.unread(&error))?;
                Ok(bytes)
            }
            Storage::Memory(bytes) => Ok((**bytes).as_ref()[from as usize..][..len].to_vec()),
        }
    }

    fn head(&self) -> Result<Head> {
        let not_one = "this isn't a partial of ringfold";
        let first = self.some(0, HEAD_BYTES.min(self.bytes as usize))?;
        if !first.starts_with(&MAGIC) {
            return Err(
                self.wrong(match MAGIC.starts_with(&first) && !first.is_empty() {
                    true => "the partial is cut short",
                    false => not_one,
                }),
            );
        }
        let Ok(head) = Head::read_from_bytes(&first) else {
            return Err(self.wrong("the partial is cut short"));
        };
        // Another version may have another head.
        let version = head.version.get();
        if !(1..=VERSION).contains(&version) {
            return Err(self.wrong(format!(
                "this is a partial of version {version}, and this ringfold knows versions up to {VERSION}"
            )));
        }
        if head.checksum.get() != head.right_checksum() || head.reserved.get() != 0 {
            return Err(self.damaged("head", 0, HEAD_BYTES as u64));
        }
        Ok(head)
    }

    fn damaged(&self, what: &str, from: u64, to: u64) -> Error {
        self.wrong(format!("the partial's {what} is damaged"))
            .at_bytes(from..to)
    }

    fn tail(&self, head: &Head) -> Result<Tail> {
        let short = || self.wrong("the partial is cut short");
        let least = (HEAD_BYTES + TAIL_BYTES) as u64;
        if self.bytes < least {
            return Err(short());
        }
        let at = self.bytes - TAIL_BYTES as u64;
        let last = self.some(at, TAIL_BYTES)?;
        let tail = Tail::read_from_bytes(&last).map_err(|_| short())?;
        if tail.magic != END_MAGIC {
            return Err(short());
        }
        let is_right =
            tail.checksum.get() == tail.right_checksum() && tail.file_bytes.get() == self.bytes;
        if !is_right {
            return Err(self.damaged("tail", at, self.bytes));
        }
        if tail.head_checksum != head.checksum {
            return Err(self.wrong("the start and the end are of different partials"));
        }
        Ok(tail)
    }

    /// Reads the description; returns where the first block begins.
    fn describe(&mut self, head: &Head) -> Result<u64> {
        let len = head.description_bytes.get();
        let from = HEAD_BYTES as u64;
        let most = self.bytes - from - TAIL_BYTES as u64;
        let filled = len.checked_next_multiple_of(ALIGNMENT as u64);
        let Some(filled) = filled.filter(|filled| *filled <= most) else {
            return Err(self.damaged("head", 0, from));
        };
        let bytes = self.some(from, filled as usize)?;
        if checksum(&bytes) != head.description_checksum.get() {
            return Err(self.damaged("description", from, from + len));
        }
        let description = Description::decode(&bytes[..len as usize], head.version.get());
        self.description = description.map_err(|why| {
            let cause = format!("the partial's description is damaged: {why}");
            self.wrong(cause).at_bytes(from..from + len)
        })?;
        self.columns = self.description.columns().collect();
        Ok(from + filled)
    }

    fn read_index(&mut self, tail: &Tail, after: u64) -> Result<()> {
        let from = tail.index_offset.get();
        let end = self.bytes - TAIL_BYTES as u64;
        let bytes = tail.blocks.get().checked_mul(INDEX_ENTRY_BYTES as u64);
        let fits = from >= after && from <= end && bytes == Some(end - from);
        if !fits {
            return Err(self.damaged("tail", end, self.bytes));
        }
        let wrong = || self.damaged("index", from, end);
        let bytes = self.some(from, (end - from) as usize)?;
        if checksum(&bytes) != tail.index_checksum.get() {
            return Err(wrong());
        }
        let index = <[IndexEntry]>::ref_from_bytes(&bytes).map_err(|_| wrong())?;
        let (mut at, mut groups) = (after, 0_u64);
        for entry in index {
            // Blocks lie one after the other.
            let bytes = entry.bytes.get();
            let is_right = entry.offset.get() == at
                && bytes >= BLOCK_HEAD_BYTES as u64
                && bytes <= from - at
                && entry.groups.get() <= bytes;
            if !is_right {
                return Err(wrong());
            }
            at += bytes;
            groups += entry.groups.get();
        }
        if at != from || groups != tail.groups.get() {
            return Err(wrong());
        }
        self.index = index.to_vec();
        self.groups = groups;
        Ok(())
    }
}

/// Goes over the blocks of a partial, whose keys are in order.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    reader: &'a Reader,
    /// The next block.
    block: usize,
    /// The last key of the block before, if that was read.
    last: Option<Vec<u8>>,
}

impl<'a> Cursor<'a> {
    /// At the first block.
    pub(crate) fn new(reader: &'a Reader) -> Cursor<'a> {
        Cursor {
            reader,
            block: 0,
            last: None,
        }
    }

    /// Whether there are more blocks.
    pub(crate) fn has_more(&self) -> bool {
        self.block < self.reader.blocks()
    }

    /// Reads the next block; `None` after the last one. `buffer` is memory that is used again.
    ///
    /// # Errors
    /// It can't be read, or is damaged.
    pub(crate) fn next_block(&mut self, buffer: Vec<u8>) -> Result<Option<Loaded<'a>>> {
        if !self.has_more() {
            return Ok(None);
        }
        let loaded = self.reader.load(self.block, buffer)?;
        self.block += 1;
        let keys = loaded.keys();
        let is_after = |last: &Vec<u8>| last.as_slice() < keys.get(0);
        if !self.last.as_ref().is_none_or(is_after) || !keys.are_ascending() {
            return Err(loaded.damaged("its keys aren't in order"));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(keys.last());
        Ok(Some(loaded))
    }
}
