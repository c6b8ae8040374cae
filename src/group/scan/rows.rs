//! The rows of a window, listed by the size class of their keys, as a decoder hands them to the tables.
//!
//! The classes are *inline* (the key and its delimiter fit 32 bytes), *long* (96 bytes) and *wide* (128
//! bytes). *Rest* are rows of a longer key, or whose number the decoder doesn't read.
//!
//! A list holds at most the rows of a window. Its fields are open to the decoders, which store whole vectors
//! behind its end.

use crate::group::scan::window::WINDOW;

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
pub(super) struct Words<T>(pub(super) [T; CAPACITY]);

/// Keys and values, row by row.
pub(crate) struct List<V = u32> {
    pub(super) keys: Box<Words<u32>>,
    pub(super) values: Box<Words<V>>,
    pub(super) count: usize,
}

impl<V: Copy + Default> List<V> {
    pub(crate) fn new() -> Self {
        List {
            keys: Box::new(Words([0; CAPACITY])),
            values: Box::new(Words([V::default(); CAPACITY])),
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

    /// Each row's value: in millionths, or in tenths with the tables' bias added. In the rest it is a span: the
    /// low half is where the number starts, the high half where the next row does.
    pub(crate) fn values(&self) -> &[V] {
        &self.values.0[..self.count]
    }

    /// Writes a row past the end, and keeps it if `keep`.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u32, value: V, keep: bool) {
        self.keys.0[self.count] = key;
        self.values.0[self.count] = value;
        self.count += usize::from(keep);
    }

    /// Keeps all of these rows.
    #[inline(always)]
    pub(crate) fn push_all<const N: usize>(&mut self, keys: &[u32; N], values: &[V; N]) {
        self.keys.0[self.count..][..N].copy_from_slice(keys);
        self.values.0[self.count..][..N].copy_from_slice(values);
        self.count += N;
    }
}

/// The rows of a window by the size class of their keys, and the rest.
pub(crate) struct Rows<V = u32> {
    pub(crate) inline: List<V>,
    pub(crate) long: List<V>,
    pub(crate) wide: List<V>,
    pub(crate) rest: List,
}

impl<V: Copy + Default> Rows<V> {
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
    pub(crate) fn push(&mut self, key: u32, value: V, good: bool, span: u32) {
        let length = (key >> 16) as usize;
        let [inline, long, wide] = [INLINE, LONG, WIDE].map(|most| length <= most);
        self.inline.push(key, value, good & inline);
        self.long.push(key, value, good & !inline & long);
        self.wide.push(key, value, good & !long & wide);
        self.rest.push(key, span, !(good & wide));
    }

    /// The lists of rows for the tables.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &List<V>> {
        [&self.inline, &self.long, &self.wide].into_iter()
    }
}
