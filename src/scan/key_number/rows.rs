//! The rows of a window, listed by the size class of their keys, as a decoder hands them to the tables.
//!
//! The classes are *inline* (the key and its delimiter fit 32 bytes), *long* (96 bytes) and *wide* (128
//! bytes). *Rest* are rows of a longer key, or whose number the decoder doesn't read.
//!
//! A list holds at most the rows of a window. Its fields are open to the decoders, which store whole vectors
//! behind its end.

use crate::scan::key_number::window::WINDOW;

/// Bytes of an inline key, its delimiter included.
pub(crate) const INLINE: usize = 32;
/// Bytes of a long key, its delimiter included.
pub(crate) const LONG: usize = 96;
/// Bytes of a wide key, its delimiter included.
pub(crate) const WIDE: usize = 128;

/// Rows of a list: as many as a window can have, and 16 more for whole vectors.
const CAPACITY: usize = WINDOW / 2 + 16;

/// Aligned, so that a whole vector is stored into one line.
#[repr(align(64))]
pub(super) struct Words(pub(super) [u32; CAPACITY]);

/// Keys and values, row by row.
pub(crate) struct List {
    pub(super) keys: Box<Words>,
    pub(super) values: Box<Words>,
    pub(super) count: usize,
}

impl List {
    pub(crate) fn new() -> Self {
        List {
            keys: Box::new(Words([0; CAPACITY])),
            values: Box::new(Words([0; CAPACITY])),
            count: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Each row's key: the low half is where it starts, the high half its length with its delimiter.
    pub(crate) fn keys(&self) -> &[u32] {
        &self.keys.0[..self.count]
    }

    /// Each row's value: in tenths with the tables' bias added. In the rest it is a span: the
    /// low half is where the number starts, the high half where the next row does.
    pub(crate) fn values(&self) -> &[u32] {
        &self.values.0[..self.count]
    }

    /// Writes a row past the end, and keeps it if `keep`.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u32, value: u32, keep: bool) {
        self.keys.0[self.count] = key;
        self.values.0[self.count] = value;
        self.count += usize::from(keep);
    }
}

/// The rows of a window by the size class of their keys, and the rest.
pub(crate) struct Rows {
    pub(crate) inline: List,
    pub(crate) long: List,
    pub(crate) wide: List,
    pub(crate) rest: List,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Rows {
            inline: List::new(),
            long: List::new(),
            wide: List::new(),
            rest: List::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.inline.clear();
        self.long.clear();
        self.wide.clear();
        self.rest.clear();
    }

    /// Lists a row: by its class, or in the rest if its value isn't `good` or its key has no class. Every
    /// list is written to, so that there is no branch on the data.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u32, value: u32, good: bool, span: u32) {
        let length = (key >> 16) as usize;
        let [inline, long, wide] = [INLINE, LONG, WIDE].map(|most| length <= most);
        self.inline.push(key, value, good & inline);
        self.long.push(key, value, good & !inline & long);
        self.wide.push(key, value, good & !long & wide);
        self.rest.push(key, span, !(good & wide));
    }

    /// The lists of rows for the tables.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &List> {
        [&self.inline, &self.long, &self.wide].into_iter()
    }
}
