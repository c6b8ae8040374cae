//! How many different values there are: counted while they are few, and then estimated by a HyperLogLog.
//!
//! A value is a hash. Unless a key is given it has a fixed seed, because sketches of several machines are merged. Whoever chooses
//! values with such hashes in mind can make the estimate wrong, but no larger than the number of values, which is counted.

use ringfold_read::internals::prefetch;
use siphasher::{sip::SipHasher13, sip128};
use twox_hash::XxHash3_64;

use crate::sketch::few::Few;

/// Bits of a hash that choose a register.
const PRECISION: u32 = 14;
const REGISTERS: usize = 1 << PRECISION;
/// Bits of a hash that are left.
const REST: u32 = 64 - PRECISION;
/// The most hashes that are kept one by one: as numbers in a row they take as much memory as the registers.
pub(crate) const FEW: usize = REGISTERS / 8;

#[derive(Debug, Clone, Default)]
pub(crate) struct Distinct {
    /// How many values were added, the same ones again too.
    added: u64,
    seen: Seen,
}

#[derive(Debug, Clone)]
enum Seen {
    Hashes(Few<()>),
    /// For each choice the most zeros that the rest of a hash began with, and one more.
    Registers(Box<[u8; REGISTERS]>),
}

impl Default for Seen {
    fn default() -> Seen {
        Seen::Hashes(Few::default())
    }
}

/// The last byte of hashes that were added more than once each.
const REPEATED: u8 = 0;

/// What values are hashed with: a secret key, or none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HashKey(Option<SipHasher13>);

impl HashKey {
    pub(crate) const NONE: HashKey = HashKey(None);

    /// The key of a secret of any length.
    pub(crate) fn of(secret: &[u8]) -> HashKey {
        let key = sip128::SipHasher13::new().hash(secret);
        HashKey(Some(SipHasher13::new_with_keys(key.h1, key.h2)))
    }

    /// The hash of a value; never zero.
    #[inline]
    pub(crate) fn hash(&self, value: &[u8]) -> u64 {
        let hash = match &self.0 {
            Some(keyed) => keyed.hash(value),
            None => XxHash3_64::oneshot(value),
        };
        hash.max(1)
    }

    /// What differs between keys, and tells nothing of them.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.0
            .map(|keyed| format!("{:016x}", keyed.hash(b"ringfold")))
    }
}

impl Distinct {
    /// Adds the value of a hash if that takes no memory; `false` if it isn't added.
    #[inline]
    pub(crate) fn note(&mut self, hash: u64) -> bool {
        let is_noted = match &mut self.seen {
            Seen::Registers(registers) => {
                note(registers, hash);
                true
            }
            Seen::Hashes(hashes) => hashes.get_mut(hash).is_some(),
        };
        self.added += u64::from(is_noted);
        is_noted
    }

    /// Fetches what [`Distinct::note`] looks at into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        match &self.seen {
            Seen::Registers(registers) => {
                prefetch::into_l1(&raw const registers[(hash >> REST) as usize]);
            }
            Seen::Hashes(hashes) => hashes.prefetch(hash),
        }
    }

    /// Adds the value of a hash.
    pub(crate) fn add(&mut self, hash: u64) {
        if self.note(hash) {
            return;
        }
        self.added += 1;
        self.seen.add(hash);
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        match &self.seen {
            Seen::Hashes(hashes) => hashes.bytes(),
            Seen::Registers(_) => REGISTERS,
        }
    }

    pub(crate) fn merge(&mut self, from: Distinct) {
        self.added = self.added.saturating_add(from.added);
        self.seen.merge(from.seen);
    }

    /// Whether their number is counted, not estimated.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.seen, Seen::Hashes(_))
    }

    /// How many there are: no more than were added.
    pub(crate) fn count(&self) -> u64 {
        match &self.seen {
            Seen::Hashes(hashes) => hashes.len() as u64,
            Seen::Registers(registers) => rounded(estimate(registers)).min(self.added),
        }
    }

    /// Its bytes; none if it has no values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match &self.seen {
            Seen::Hashes(hashes) => {
                let mut hashes: Vec<u64> = hashes.iter().map(|(hash, ())| hash).collect();
                hashes.sort_unstable();
                let mut bytes: Vec<u8> =
                    (hashes.iter().flat_map(|hash| hash.to_le_bytes())).collect();
                if self.added != hashes.len() as u64 {
                    bytes.extend(self.added.to_le_bytes());
                    bytes.push(REPEATED);
                }
                bytes
            }
            Seen::Registers(registers) => {
                let mut bytes = registers.to_vec();
                bytes.extend(self.added.to_le_bytes());
                bytes.push(PRECISION as u8);
                bytes
            }
        }
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Distinct, &'static str> {
        let (added, seen) = match bytes {
            // As older programs wrote them, which didn't count.
            [registers @ .., last]
                if registers.len() == REGISTERS && u32::from(*last) == PRECISION =>
            {
                (Some(u64::MAX), Seen::of_registers(registers)?)
            }
            [rest @ .., last] if bytes.len() % 8 == 1 => {
                let (seen, added) = rest.split_last_chunk().ok_or(NOT_A_SKETCH)?;
                let seen = match *last {
                    REPEATED => Seen::of_hashes(seen)?,
                    last if u32::from(last) == PRECISION => Seen::of_registers(seen)?,
                    _ => return Err(NOT_A_SKETCH),
                };
                (Some(u64::from_le_bytes(*added)), seen)
            }
            hashes => (None, Seen::of_hashes(hashes)?),
        };
        let least = match &seen {
            Seen::Hashes(hashes) => hashes.len() as u64,
            Seen::Registers(_) => FEW as u64 + 1,
        };
        // Hashes that came once each are written without a count.
        let is_plain = matches!(seen, Seen::Hashes(_)) && added == Some(least);
        match added.unwrap_or(least) {
            added if added < least || is_plain => Err("a sketch has more values than were added"),
            added => Ok(Distinct { added, seen }),
        }
    }
}

const NOT_A_SKETCH: &str = "a sketch's bytes are neither hashes nor registers";

impl Seen {
    fn add(&mut self, hash: u64) {
        let hashes = match self {
            Seen::Registers(registers) => return note(registers, hash),
            Seen::Hashes(hashes) => hashes,
        };
        if hashes.get_mut(hash).is_some() {
            return;
        }
        hashes.insert(hash, ());
        if hashes.len() > FEW {
            let mut registers = Box::new([0; REGISTERS]);
            hashes
                .iter()
                .for_each(|(hash, ())| note(&mut registers, hash));
            *self = Seen::Registers(registers);
        }
    }

    fn merge(&mut self, mut from: Seen) {
        if let (Seen::Hashes(_), Seen::Registers(_)) = (&*self, &from) {
            std::mem::swap(self, &mut from);
        }
        match (&mut *self, from) {
            (Seen::Registers(own), Seen::Registers(others)) => {
                let pairs = own.iter_mut().zip(others.iter());
                pairs.for_each(|(own, other)| *own = *other.max(own));
            }
            (_, Seen::Hashes(hashes)) => hashes.iter().for_each(|(hash, ())| self.add(hash)),
            (Seen::Hashes(_), Seen::Registers(_)) => unreachable!("they were exchanged"),
        }
    }

    fn of_registers(registers: &[u8]) -> Result<Seen, &'static str> {
        let are_sound = registers.iter().all(|most| u32::from(*most) <= REST + 1);
        let registers = registers.to_vec().try_into().ok().filter(|_| are_sound);
        registers
            .map(Seen::Registers)
            .ok_or("a register has more zeros than a hash")
    }

    fn of_hashes(bytes: &[u8]) -> Result<Seen, &'static str> {
        const UNORDERED: &str = "a sketch's hashes aren't in order";
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers = numbers.iter().map(|hash| u64::from_le_bytes(*hash));
        if !rest.is_empty() || numbers.len() > FEW {
            return Err(UNORDERED);
        }
        let (mut hashes, mut before) = (Few::default(), 0);
        for hash in numbers {
            // None is zero.
            if hash <= before {
                return Err(UNORDERED);
            }
            hashes.insert(hash, ());
            before = hash;
        }
        Ok(Seen::Hashes(hashes))
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
        texts.for_each(|text| distinct.add(HashKey::NONE.hash(text.as_bytes())));
        distinct
    }

    #[test]
    fn few_are_counted_exactly() {
        for count in [0, 1, 63, 64, 65, 1000, FEW as u64] {
            let twice = (0..count).chain(0..count);
            assert_eq!(of(twice).count(), count);
        }
        assert!(matches!(of(0..FEW as u64).seen, Seen::Hashes(_)));
        assert!(matches!(of(0..=FEW as u64).seen, Seen::Registers(_)));
    }

    /// Values that were chosen for their hashes are estimated like others under a key.
    #[test]
    fn a_key_hides_hashes() {
        let texts = (0_u64..).map(|number| number.to_string());
        let chosen = texts.filter(|text| HashKey::NONE.hash(text.as_bytes()) >> 61 == 0);
        let chosen: Vec<String> = chosen.take(10_000).collect();
        let counted = |key: HashKey| {
            let mut distinct = Distinct::default();
            let hashes = chosen.iter().map(|text| key.hash(text.as_bytes()));
            hashes.for_each(|hash| distinct.add(hash));
            distinct.count()
        };
        assert!(counted(HashKey::NONE) < 5_000);
        let keys = [&b"one"[..], b"two", b""].map(HashKey::of);
        for key in keys {
            assert!((9_600..10_400).contains(&counted(key)));
        }
        assert_eq!(HashKey::NONE.fingerprint(), None);
        let [one, two, none] = keys.map(|key| key.fingerprint().unwrap());
        assert!(one != two && two != none && one != none);
    }

    /// Hashes that are forged look like many values.
    #[test]
    fn an_estimate_is_no_more_than_the_values() {
        let forged = |registers: std::ops::Range<u64>| {
            let mut distinct = Distinct::default();
            registers.for_each(|register| distinct.add(register << REST | 1));
            distinct
        };
        let most = REGISTERS as u64;
        assert_eq!(forged(0..most).count(), most);
        let mut merged = forged(0..most / 2);
        merged.merge(forged(most / 2..most));
        assert_eq!(merged.count(), most);
        let again = Distinct::decode(&merged.encode()).unwrap();
        assert_eq!(again.count(), most);
        // What an older program wrote has no count.
        let mut older = merged.encode();
        older.drain(REGISTERS..REGISTERS + 8);
        assert!(Distinct::decode(&older).unwrap().count() > most);
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
            let twice = of((0..one).chain(0..one)).encode();
            let mut both = of(0..one);
            both.merge(of(0..one));
            prop_assert_eq!(&both.encode(), &twice);
            prop_assert_eq!(&Distinct::decode(&twice).unwrap().encode(), &twice);
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
