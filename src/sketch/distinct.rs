//! How many different values there are: counted while they are few, and then estimated by a HyperLogLog.
//!
//! A value is a hash with a fixed seed, because sketches of several machines are merged. Whoever chooses values with their
//! hashes in mind can make the estimate wrong, but nothing worse.

use twox_hash::XxHash3_64;

use crate::prefetch;
use crate::sketch::few::Few;

/// Bits of a hash that choose a register.
const PRECISION: u32 = 14;
const REGISTERS: usize = 1 << PRECISION;
/// Bits of a hash that are left.
const REST: u32 = 64 - PRECISION;
/// The most hashes that are kept one by one: as numbers in a row they take as much memory as the registers.
pub(crate) const FEW: usize = REGISTERS / 8;

#[derive(Debug, Clone)]
pub(crate) enum Distinct {
    Hashes(Few<()>),
    /// For each choice the most zeros that the rest of a hash began with, and one more.
    Registers(Box<[u8; REGISTERS]>),
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct::Hashes(Few::default())
    }
}

/// The hash of a value; never zero.
pub(crate) fn hash(value: &[u8]) -> u64 {
    XxHash3_64::oneshot(value).max(1)
}

impl Distinct {
    /// Adds the value of a hash if that takes no memory; `false` if it isn't added.
    #[inline]
    pub(crate) fn note(&mut self, hash: u64) -> bool {
        match self {
            Distinct::Registers(registers) => {
                note(registers, hash);
                true
            }
            Distinct::Hashes(hashes) => hashes.get_mut(hash).is_some(),
        }
    }

    /// Fetches what [`Distinct::note`] looks at into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        match self {
            Distinct::Registers(registers) => {
                prefetch::into_l1(&raw const registers[(hash >> REST) as usize]);
            }
            Distinct::Hashes(hashes) => hashes.prefetch(hash),
        }
    }

    /// Adds the value of a hash.
    pub(crate) fn add(&mut self, hash: u64) {
        if self.note(hash) {
            return;
        }
        let Distinct::Hashes(hashes) = self else {
            return;
        };
        hashes.insert(hash, ());
        if hashes.len() > FEW {
            let mut registers = Box::new([0; REGISTERS]);
            hashes
                .iter()
                .for_each(|(hash, ())| note(&mut registers, hash));
            *self = Distinct::Registers(registers);
        }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Distinct::Hashes(hashes) => hashes.bytes(),
            Distinct::Registers(_) => REGISTERS,
        }
    }

    pub(crate) fn merge(&mut self, mut from: Distinct) {
        if let (Distinct::Hashes(_), Distinct::Registers(_)) = (&*self, &from) {
            std::mem::swap(self, &mut from);
        }
        match (&mut *self, from) {
            (Distinct::Registers(own), Distinct::Registers(others)) => {
                let pairs = own.iter_mut().zip(others.iter());
                pairs.for_each(|(own, other)| *own = *other.max(own));
            }
            (_, Distinct::Hashes(hashes)) => hashes.iter().for_each(|(hash, ())| self.add(hash)),
            (Distinct::Hashes(_), Distinct::Registers(_)) => unreachable!("they were exchanged"),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Distinct::Hashes(hashes) => hashes.len() as u64,
            Distinct::Registers(registers) => rounded(estimate(registers)),
        }
    }

    /// Its bytes; none if it has no values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Distinct::Hashes(hashes) => {
                let mut hashes: Vec<u64> = hashes.iter().map(|(hash, ())| hash).collect();
                hashes.sort_unstable();
                hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
            }
            Distinct::Registers(registers) => {
                // One more than hashes have, so that the two are told apart.
                let mut bytes = registers.to_vec();
                bytes.push(PRECISION as u8);
                bytes
            }
        }
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Distinct, &'static str> {
        if let Some((last, registers)) = bytes.split_last()
            && registers.len() == REGISTERS
        {
            let are_sound = u32::from(*last) == PRECISION
                && registers.iter().all(|most| u32::from(*most) <= REST + 1);
            let registers = registers.to_vec().try_into().ok().filter(|_| are_sound);
            return registers
                .map(Distinct::Registers)
                .ok_or("a register has more zeros than a hash");
        }
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers = numbers.iter().map(|hash| u64::from_le_bytes(*hash));
        if !rest.is_empty() || numbers.len() > FEW {
            return Err("a sketch's hashes aren't in order");
        }
        let (mut hashes, mut before) = (Few::default(), 0);
        for hash in numbers {
            // None is zero.
            if hash <= before {
                return Err("a sketch's hashes aren't in order");
            }
            hashes.insert(hash, ());
            before = hash;
        }
        Ok(Distinct::Hashes(hashes))
    }
}

/// An estimate with the digits that are known of it: its error is about one in a hundred.
fn rounded(estimate: f64) -> u64 {
    let step = 10_f64
        .powi((estimate / 100.0).log10().floor() as i32)
        .max(1.0);
    ((estimate / step).round() * step) as u64
}

fn note(registers: &mut [u8; REGISTERS], hash: u64) {
    let register = &mut registers[(hash >> REST) as usize];
    let most = 1 + (hash << PRECISION).leading_zeros().min(REST) as u8;
    // Most values change nothing, and a line that isn't written to stays clean.
    if most > *register {
        *register = most;
    }
}

/// Ertl's improved estimate, which needs no constants that were measured.
fn estimate(registers: &[u8; REGISTERS]) -> f64 {
    let mut counts = [0_u32; REST as usize + 2];
    registers
        .iter()
        .for_each(|most| counts[usize::from(*most)] += 1);
    let m = REGISTERS as f64;
    let mut z = m * tau(1.0 - f64::from(counts[REST as usize + 1]) / m);
    for count in counts[1..=REST as usize].iter().rev() {
        z = 0.5 * (z + f64::from(*count));
    }
    z += m * sigma(f64::from(counts[0]) / m);
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

/// The sum of `x^(2^k) * 2^(k - 1)` over k from 1 on, and `x`.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// A third of `1 - x` less the sum of `(1 - x^(2^-k))^2 * 2^-k` over k from 1 on.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distinct {
        let mut distinct = Distinct::default();
        let texts = values.into_iter().map(|value| value.to_string());
        texts.for_each(|text| distinct.add(hash(text.as_bytes())));
        distinct
    }

    #[test]
    fn few_are_counted_exactly() {
        for count in [0, 1, 63, 64, 65, 1000, FEW as u64] {
            let twice = (0..count).chain(0..count);
            assert_eq!(of(twice).count(), count);
        }
        assert!(matches!(of(0..FEW as u64), Distinct::Hashes(_)));
        assert!(matches!(of(0..=FEW as u64), Distinct::Registers(_)));
    }

    /// What docs/query.md says: within 2 percent of 95 in 100 counts.
    #[test]
    fn many_are_estimated() {
        let (mut runs, mut far) = (0, 0);
        for count in [3_000_u64, 10_000, 60_000, 300_000] {
            for seed in 0..15_u64 {
                let got = of((0..count).map(|n| n + seed * 1_000_000_007)).count();
                let off = (got as f64 / count as f64 - 1.0).abs();
                assert!(off < 0.04, "{got} of {count}");
                (runs, far) = (runs + 1, far + u32::from(off > 0.02));
            }
        }
        assert!(far * 20 <= runs, "{far} of {runs}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// The same bytes come of any parts, and they are read back.
        #[test]
        fn it_hangs_on_the_values_alone(one in 0..5000_u64, two in 0..5000_u64, from in 0..5000_u64) {
            let want = of((0..one).chain(from..from + two)).encode();
            for (mut first, second) in [
                (of(0..one), of(from..from + two)),
                (of((from..from + two).rev()), of(0..one)),
            ] {
                first.merge(second);
                prop_assert_eq!(&first.encode(), &want);
            }
            prop_assert_eq!(&Distinct::decode(&want).unwrap().encode(), &want);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(distinct) = Distinct::decode(&bytes) {
                prop_assert_eq!(distinct.encode(), bytes);
            }
        }
    }
}
