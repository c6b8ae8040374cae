//! Vector instructions in safe code: a token of each instruction set, and its operations as methods.
//!
//! A kernel is a function over any instruction set, and is called through [`dispatch!`]:
//!
//! ```text
//! let count = dispatch!(level, isa => count(isa, chunks, b'\n'));
//!
//! #[inline(always)]
//! fn count<I: Isa>(isa: I, chunks: &[[u8; 64]], byte: u8) -> u32 {
//!     let mut count = 0;
//!     for chunk in chunks {
//!         count += isa.equal(isa.load(chunk), byte).count_ones();
//!     }
//!     count
//! }
//! ```
//!
//! - `#[inline(always)]` on the kernel and on what it calls for each vector: only what is inlined has the features. A
//!   closure over vectors may not be inlined, so loops are better.
//! - The operations take arrays. Where a window ends, [`Padded`](crate::record::block::Padded) gives whole ones.
//! - [`lanes`] and [`lanes32`] have vectors of numbers.
//! - A level that a kernel forgets doesn't compile. A test runs it at each of [`Level::available`](crate::level::Level).

#[cfg(target_arch = "x86_64")]
pub mod lanes;
#[cfg(target_arch = "x86_64")]
pub mod lanes32;
#[cfg(target_arch = "x86_64")]
pub mod x86;

use std::mem::MaybeUninit;

/// An instruction set: a value of no size that proves its features.
pub trait Isa: Copy {
    /// 64 bytes.
    type Bytes: Copy;

    /// The vector of these bytes.
    fn load(self, from: &[u8; 64]) -> Self::Bytes;

    /// A bit for each byte that equals `byte`, the first byte's lowest.
    fn equal(self, bytes: Self::Bytes, byte: u8) -> u64;

    /// A bit for each byte that equals one of two.
    #[inline(always)]
    fn among(self, bytes: Self::Bytes, [one, two]: [u8; 2]) -> u64 {
        self.equal(bytes, one) | self.equal(bytes, two)
    }

    /// A bit for each byte up to `most`, which is below 128, or that equals one of two.
    fn special(self, bytes: &[u8; 64], most: u8, others: [u8; 2]) -> u64;

    /// Copies as one vector. The compiler takes an array for an integer, whose address it computes first.
    #[inline(always)]
    fn copy_sixteen(self, from: &[u8; 16], to: &mut MaybeUninit<[u8; 16]>) {
        to.write(*from);
    }

    /// Bits set from each set bit up to the next one, which isn't set, and so on.
    #[inline(always)]
    fn between(self, quotes: u64) -> u64 {
        between(quotes)
    }

    /// A place that [`Isa::list`] counts from.
    type Base: Copy;

    /// The base of the first places.
    fn base(self, place: u16) -> Self::Base;

    /// Writes `base` plus the place of each of `bits`, of which there are `count`, and returns the base of the next 64.
    /// The rest of `to` may be overwritten.
    fn list(self, bits: u64, count: u32, base: Self::Base, to: &mut [u16; 64]) -> Self::Base;
}

/// Runs a kernel with the instructions of a level: `dispatch!(level, isa => kernel(isa, …))`. After `else` is what runs
/// where there are no vectors.
#[doc(hidden)]
#[macro_export]
macro_rules! dispatch {
    ($level:expr, $isa:ident => $kernel:expr) => {
        $crate::internals::isa::dispatch!($level, $isa => $kernel, else {
            let $isa = $crate::internals::isa::Portable;
            $kernel
        })
    };
    ($level:expr, $isa:ident => $kernel:expr, else $portable:expr) => {
        match $level {
            $crate::internals::Level::Portable => $portable,
            #[cfg(target_arch = "x86_64")]
            $crate::internals::Level::Avx2($isa) => $isa.vectorize(
                #[inline(always)]
                || $kernel,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::internals::Level::Avx512($isa) => $isa.vectorize(
                #[inline(always)]
                || $kernel,
            ),
        }
    };
}
pub use dispatch;

#[inline(always)]
fn between(mut quotes: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        quotes ^= quotes << shift;
    }
    quotes
}

/// 64-bit words, any processor.
#[derive(Clone, Copy)]
pub struct Portable;

/// A byte in each place of a word.
const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// All bits of a byte but the highest, in each place of a word.
const LOW: u64 = splat(0x7f);

/// A bit for each byte of 64 whose highest bit `tops` sets in the byte's word.
#[inline(always)]
fn gather(words: [u64; 8], tops: impl Fn(u64) -> u64) -> u64 {
    words.iter().enumerate().fold(0, |bits, (at, &word)| {
        let tops = (tops(word) & !LOW) >> 7;
        bits | tops.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at)
    })
}

impl Isa for Portable {
    type Bytes = [u64; 8];
    type Base = u16;

    #[inline(always)]
    fn load(self, from: &[u8; 64]) -> [u64; 8] {
        let (words, _) = from.as_chunks();
        std::array::from_fn(|at| u64::from_le_bytes(words[at]))
    }

    #[inline(always)]
    fn equal(self, bytes: [u64; 8], byte: u8) -> u64 {
        gather(bytes, |word| {
            let differences = word ^ splat(byte);
            !(((differences & LOW) + LOW) | differences)
        })
    }

    #[inline(always)]
    fn special(self, bytes: &[u8; 64], most: u8, others: [u8; 2]) -> u64 {
        let bytes = self.load(bytes);
        let up_to = |word: u64| !(((word & LOW) + LOW - splat(most)) | word);
        gather(bytes, up_to) | self.among(bytes, others)
    }

    #[inline(always)]
    fn base(self, place: u16) -> u16 {
        place
    }

    #[inline(always)]
    fn list(self, mut bits: u64, count: u32, base: u16, to: &mut [u16; 64]) -> u16 {
        // A mispredicted branch costs as much as several places.
        for four in to
            .chunks_exact_mut(4)
            .take(count.div_ceil(4).max(2) as usize)
        {
            for to in four {
                *to = base.wrapping_add(bits.trailing_zeros() as u16);
                bits &= bits.wrapping_sub(1);
            }
        }
        base.wrapping_add(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    /// The masks of 64 bytes and of a mask.
    #[inline(always)]
    fn masks<I: Isa>(isa: I, text: &[u8; 64], byte: u8, quotes: u64) -> [u64; 4] {
        let bytes = isa.load(text);
        [
            isa.equal(bytes, byte),
            isa.among(bytes, [byte, 0x86]),
            isa.special(text, byte & 0x7f, [0x83, 0x84]),
            isa.between(quotes),
        ]
    }

    #[test]
    fn bits_of_bytes() {
        let bytes: [u8; 64] = std::array::from_fn(|at| (at * at % 7) as u8 | ((at as u8) << 7));
        let mut quotes = 0x9e37_79b9_7f4a_7c15_u64;
        for byte in [0, 1, 2, 4, 0x80, 0x81, 0x7f, 0xff] {
            let bits = |is_in: &dyn Fn(u8) -> bool| {
                (0..64).fold(0, |mask, at| mask | u64::from(is_in(bytes[at])) << at)
            };
            quotes = quotes.wrapping_mul(quotes | 1);
            let want = [
                bits(&|other| other == byte),
                bits(&|other| other == byte || other == 0x86),
                bits(&|other| other <= byte & 0x7f || matches!(other, 0x83 | 0x84)),
                between(quotes),
            ];
            for level in Level::available() {
                let got = dispatch!(level, isa => masks(isa, &bytes, byte, quotes));
                assert_eq!(got, want, "{level:?} {byte}");
            }
        }
    }

    #[test]
    fn between_bits() {
        assert_eq!(between(0b1_0010), 0b0_1110);
        assert_eq!(between(0b1000), !0b111);
        assert_eq!(between(0b11), 0b01);
    }

    #[test]
    fn each_bit_is_listed() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let many = (0..2_000).map(|round| {
            bits = bits.wrapping_mul(bits | 1).rotate_left(29);
            // Few bits and many.
            match round % 3 {
                0 => bits,
                1 => bits & bits.rotate_left(7) & bits.rotate_left(19),
                _ => bits | bits.rotate_left(7) | bits.rotate_left(19),
            }
        });
        for bits in many.chain([0, !0]) {
            let places = (0..64).filter(|place| bits >> place & 1 == 1);
            let want: Vec<u16> = places.map(|place| 9 + place).collect();
            for level in Level::available() {
                let mut places = [0; 64];
                // The bits come a second time, as those of the next 64 places.
                for (count, first) in [(bits.count_ones(), 0), (bits.count_ones(), 64)] {
                    dispatch!(level, isa => {
                        let mut base = isa.base(9);
                        for _ in (0..=first).step_by(64) {
                            base = isa.list(bits, count, base, &mut places);
                        }
                    });
                    let want = want.iter().map(|place| place + first);
                    assert!(
                        places[..count as usize].iter().copied().eq(want),
                        "{level:?}"
                    );
                }
            }
        }
    }
}
