//! The rows that are looked up at once: their keys, loaded and hashed, and where their lanes are found.
//!
//! Invariant of this module: as that of [`isa`](crate::table::isa).
#![allow(unsafe_code)]

use crate::table::entries::{SHORT_MAX, tag_of};
use crate::table::isa::{InlineKey, Kernels, Seeds};
use crate::table::key::{ANY_KEY, AnyKey, load_any};

/// The most rows.
pub(crate) const BATCH: usize = 256;

/// The rows.
pub(crate) struct Batch {
    /// Short keys.
    pub(crate) keys: [InlineKey; BATCH],
    /// All keys, if some are longer.
    pub(crate) wide: Vec<AnyKey>,
    /// Where the lanes of each row are, in units. Before they are found, the keys' hashes, or tags.
    pub(crate) places: [u32; BATCH],
    /// Rows whose keys are new, each key once.
    pub(crate) fresh: Vec<u32>,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch {
            keys: [InlineKey([0; SHORT_MAX]); BATCH],
            wide: Vec::new(),
            places: [0; BATCH],
            fresh: Vec::new(),
        }
    }

    /// Loads keys of up to [`SHORT_MAX`] bytes, which are spans of `text`; their hashes are in `places` then. `fetch` is called
    /// for each hash as soon as it is known.
    ///
    /// # Safety
    /// Each span is of a key, as readable as the module's invariant says.
    #[inline(always)]
    pub(crate) unsafe fn load<I: Kernels>(
        &mut self,
        isa: I,
        seeds: &Seeds,
        text: *const u8,
        spans: &[u32],
        fetch: impl Fn(u32),
    ) {
        let (fours, rest) = spans.as_chunks::<4>();
        let (keys, rest_keys) = self.keys[..spans.len()].as_chunks_mut::<4>();
        let (places, rest_places) = self.places[..spans.len()].as_chunks_mut::<4>();
        for ((spans, keys), places) in fours.iter().zip(keys).zip(places) {
            // A start, and in the high half a length.
            let spans = spans.map(|span| span - (span << 16));
            // SAFETY: as the caller's.
            *places = unsafe { isa.load_four(seeds, text, &spans, keys) };
            places.iter().for_each(|hash| fetch(*hash));
        }
        for ((&span, key), place) in rest.iter().zip(rest_keys).zip(rest_places) {
            let (start, end) = (span & 0xffff, span >> 16);
            // SAFETY: as the caller's.
            unsafe {
                *place = isa.load(seeds, text.add(start as usize), end - start, key) as u32;
            }
            fetch(*place);
        }
    }

    /// Loads keys of any length; their tags are in `places` then.
    ///
    /// # Safety
    /// As that of [`Batch::load`].
    #[inline(always)]
    pub(crate) unsafe fn load_wide<I: Kernels>(
        &mut self,
        isa: I,
        seeds: &Seeds,
        text: *const u8,
        spans: &[u32],
        fetch: impl Fn(u32),
    ) {
        self.wide.resize(BATCH, ANY_KEY);
        let rows = spans.iter().zip(&mut self.wide).zip(&mut self.places);
        for ((span, key), place) in rows {
            let (start, length) = (span & 0xffff, (span >> 16) - (span & 0xffff));
            // SAFETY: as the caller's.
            let hash = unsafe { load_any(isa, seeds, text.add(start as usize), length, key) };
            *place = tag_of(hash, length as usize);
            fetch(hash);
        }
    }
}
