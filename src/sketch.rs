//! What is kept of many values where an answer needs more than a few numbers: exact while they are few, and then in
//! bounded memory.
//!
//! What a sketch is in the end depends on its values alone, not on their order, nor on how they were divided and merged. So
//! the same input gives the same bytes with any number of threads.

mod bytes;
pub(crate) mod distinct;
pub(crate) mod few;
pub(crate) mod frequencies;
pub(crate) mod histogram;
pub(crate) mod profile;

use distinct::Distinct;
use frequencies::Frequencies;
use histogram::Histogram;
use profile::Profile;

/// A kind of sketch, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sketch {
    Histogram,
    Distinct,
    Frequencies,
    Profile,
}

impl Sketch {
    /// Whether it is one of many values.
    pub(crate) fn is_estimate(self) -> bool {
        matches!(self, Sketch::Histogram | Sketch::Distinct)
    }

    /// # Errors
    /// What is wrong with the bytes of a sketch.
    pub(crate) fn check(self, bytes: &[u8]) -> Result<(), &'static str> {
        match self {
            Sketch::Histogram => Histogram::decode(bytes).map(drop),
            Sketch::Distinct => Distinct::decode(bytes).map(drop),
            Sketch::Frequencies => Frequencies::decode(bytes).map(drop),
            Sketch::Profile => Profile::decode(bytes).map(drop),
        }
    }

    /// Several that were checked as one.
    pub(crate) fn merged<'a>(self, all: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        match self {
            Sketch::Histogram => merged(all, Histogram::decode, Histogram::merge).encode(),
            Sketch::Distinct => merged(all, Distinct::decode, Distinct::merge).encode(),
            Sketch::Frequencies => merged(all, Frequencies::decode, Frequencies::merge).encode(),
            Sketch::Profile => merged(all, Profile::decode, Profile::merge).encode(),
        }
    }
}

fn merged<'a, S: Default>(
    all: impl Iterator<Item = &'a [u8]>,
    decode: fn(&[u8]) -> Result<S, &'static str>,
    merge: fn(&mut S, S),
) -> S {
    let mut merged = S::default();
    all.for_each(|bytes| merge(&mut merged, decode(bytes).expect("it was checked")));
    merged
}
