//! What the values of a column are: how many of them are numbers, times and other texts, and what is known of each kind.

use num_bigint::BigInt;

use crate::decimal::number::{Exact, Number, Special};
use crate::sketch::bytes::take_u64;
use crate::sketch::distinct::{Distinct, FEW};
use crate::sketch::frequencies::Frequencies;
use crate::sketch::histogram::{Histogram, integer};

/// Frequencies are known of up to so many different values, of so many bytes in all.
const VALUES_MAX: usize = FEW;
const BYTES_MAX: usize = 256 << 10;
/// After so many values memory is looked at.
const COUNTED: u64 = 256;
/// Bytes of the first value that are kept.
const SHOWN: usize = 100;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Number,
    Time,
    Text,
}

/// The first byte of a record, in a file.
type Place = (u32, u64);

/// What is known of the values of one class. Extremes compare as bytes: a number's ordered bytes, a time's rank and text, a
/// text's own bytes. Those of texts are over the values of all classes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Of {
    pub(crate) count: u64,
    pub(crate) extremes: Option<[Vec<u8>; 2]>,
    /// The first value in the input.
    pub(crate) first: Option<(Place, Vec<u8>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Profile {
    classes: [Of; 3],
    /// The most digits after the point.
    pub(crate) decimals: u32,
    pub(crate) sum: Exact,
    /// Numbers, and seconds of times.
    sizes: [Histogram; 2],
    pub(crate) distinct: Distinct,
    /// `None` beyond the limits.
    pub(crate) frequencies: Option<Frequencies>,
    /// Bytes of different values, as long as there are frequencies.
    text_bytes: usize,
    /// The doubles next to the least and the greatest number.
    bounds: Option<(f64, f64)>,
    /// Bytes elsewhere, as they were some values ago.
    heap: usize,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            classes: Default::default(),
            decimals: 0,
            sum: Exact::default(),
            sizes: Default::default(),
            distinct: Distinct::default(),
            frequencies: Some(Frequencies::default()),
            text_bytes: 0,
            bounds: None,
            heap: 0,
        }
    }
}

impl Of {
    fn add(&mut self, text: &[u8], place: Place) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|(first, _)| place < *first) {
            self.first = Some((place, text[..text.len().min(SHOWN)].to_vec()));
        }
    }

    fn extend(&mut self, ranked: &[u8]) {
        match &mut self.extremes {
            None => self.extremes = Some([ranked.to_vec(), ranked.to_vec()]),
            Some([least, _]) if ranked < &**least => *least = ranked.to_vec(),
            Some([_, greatest]) if ranked > &**greatest => *greatest = ranked.to_vec(),
            Some(_) => {}
        }
    }

    fn merge(&mut self, from: Of) {
        self.count = self.count.saturating_add(from.count);
        for ranked in from.extremes.iter().flatten() {
            self.extend(ranked);
        }
        let own = self.first.as_ref().map(|(place, _)| *place);
        if let Some((place, _)) = &from.first
            && own.is_none_or(|own| *place < own)
        {
            self.first = from.first;
        }
    }
}

impl Profile {
    pub(crate) fn of(&self, class: Class) -> &Of {
        &self.classes[class as usize]
    }

    /// The sizes of numbers or times.
    pub(crate) fn sizes(&self, class: Class) -> Option<&Histogram> {
        self.sizes.get(class as usize)
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> u64 {
        let counts = self.classes.iter().map(|of| of.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Adds a value of a class, its hash and place.
    fn add(&mut self, class: Class, text: &[u8], hash: u64, place: Place) -> &mut Of {
        self.distinct.add(hash);
        if let Some(known) = &mut self.frequencies {
            let before = known.len();
            known.add(text);
            if known.len() > before {
                self.text_bytes += text.len();
                self.check_frequencies();
            }
        }
        if self.count().is_multiple_of(COUNTED) {
            self.heap = self.measured();
        }
        self.classes[Class::Text as usize].extend(text);
        let of = &mut self.classes[class as usize];
        of.add(text, place);
        of
    }

    fn check_frequencies(&mut self) {
        let is_long = self.text_bytes > BYTES_MAX;
        let exceeds = |known: &mut Frequencies| is_long || known.len() > VALUES_MAX;
        drop(self.frequencies.take_if(exceeds));
    }

    pub(crate) fn add_text(&mut self, text: &[u8], hash: u64, place: Place) {
        self.add(Class::Text, text, hash, place);
    }

    /// Adds a time that is ordered by its rank and its text.
    pub(crate) fn add_time(
        &mut self,
        (text, rank, seconds): (&[u8], &[u8], i64),
        hash: u64,
        place: Place,
    ) {
        let of = self.add(Class::Time, text, hash, place);
        let is_inside = of.extremes.as_ref().is_some_and(|[least, greatest]| {
            least[..rank.len()] < *rank && *rank < greatest[..rank.len()]
        });
        if !is_inside {
            of.extend(&[rank, text].concat());
        }
        self.sizes[Class::Time as usize].add(integer(seconds as f64));
    }

    pub(crate) fn add_number(&mut self, (text, number): (&[u8], Number), hash: u64, place: Place) {
        let nearest = number.nearest();
        let is_inside = |(least, greatest): (f64, f64)| least < nearest && nearest < greatest;
        let bounds = self.bounds;
        let of = self.add(Class::Number, text, hash, place);
        if !bounds.is_some_and(is_inside) {
            let mut ranked = Vec::new();
            number.push_ordered(&mut ranked);
            of.extend(&ranked);
            let (least, greatest) = bounds.unwrap_or((nearest, nearest));
            self.bounds = Some((least.min(nearest), greatest.max(nearest)));
        }
        self.decimals = self.decimals.max(number.decimals());
        self.sum.add(number);
        self.sizes[Class::Number as usize].add(integer(nearest));
    }

    pub(crate) fn merge(&mut self, from: Profile) {
        for (own, from) in self.classes.iter_mut().zip(from.classes) {
            own.merge(from);
        }
        self.decimals = self.decimals.max(from.decimals);
        self.sum.add_exact(&from.sum);
        for (own, from) in self.sizes.iter_mut().zip(from.sizes) {
            own.merge(from);
        }
        self.distinct.merge(from.distinct);
        self.frequencies =
            (self.frequencies.take().zip(from.frequencies)).map(|(mut own, from)| {
                own.merge(from);
                own
            });
        self.count_bytes();
        self.check_frequencies();
        self.heap = self.measured();
    }

    fn count_bytes(&mut self) {
        let known = self.frequencies.as_ref();
        self.text_bytes = known.map_or(0, Frequencies::text_bytes);
    }

    /// Bytes that it has elsewhere, about.
    pub(crate) fn bytes(&self) -> usize {
        self.heap
    }

    fn measured(&self) -> usize {
        let extremes = self
            .classes
            .iter()
            .flat_map(|of| of.extremes.iter().flatten());
        let sizes = self.sizes.iter().map(Histogram::bytes);
        let frequencies = self.frequencies.as_ref();
        extremes.map(Vec::capacity).sum::<usize>()
            + sizes.sum::<usize>()
            + self.distinct.bytes()
            + frequencies.map_or(0, |known| known.bytes() + self.text_bytes)
    }

    /// Its bytes; none if it has no values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.count() == 0 {
            return bytes;
        }
        for of in &self.classes {
            bytes.extend_from_slice(&of.count.to_le_bytes());
            for at in 0..2 {
                let extreme = of.extremes.as_ref().map(|both| &*both[at]);
                push(&mut bytes, extreme.unwrap_or_default());
            }
            let ((file, byte), text) = of
                .first
                .as_ref()
                .map_or(((0, 0), &[][..]), |(place, text)| (*place, text));
            bytes.extend_from_slice(&u64::from(file).to_le_bytes());
            bytes.extend_from_slice(&byte.to_le_bytes());
            push(&mut bytes, text);
        }
        bytes.extend_from_slice(&u64::from(self.decimals).to_le_bytes());
        let scale = self.sum.parts().1;
        let special = self.sum.special().map_or(0, |special| {
            1 + SPECIALS
                .iter()
                .position(|known| *known == special)
                .unwrap_or(0)
        });
        bytes.extend_from_slice(&(special as u64).to_le_bytes());
        bytes.extend_from_slice(&u64::from(scale).to_le_bytes());
        let mantissa = match special {
            0 => self.sum.at(scale).to_signed_bytes_le(),
            _ => Vec::new(),
        };
        push(&mut bytes, &mantissa);
        for sizes in &self.sizes {
            push(&mut bytes, &sizes.encode());
        }
        push(&mut bytes, &self.distinct.encode());
        if let Some(known) = &self.frequencies {
            push(&mut bytes, &known.encode());
        }
        bytes
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Profile, &'static str> {
        const WRONG: &str = "a profile has other numbers than a column can have";
        let mut profile = Profile::default();
        if bytes.is_empty() {
            return Ok(profile);
        }
        let bytes = &mut bytes;
        for of in &mut profile.classes {
            of.count = take_u64(bytes)?;
            let extremes = [take(bytes)?.to_vec(), take(bytes)?.to_vec()];
            let file = u32::try_from(take_u64(bytes)?).map_err(|_| WRONG)?;
            let first = ((file, take_u64(bytes)?), take(bytes)?.to_vec());
            of.extremes = (!extremes[0].is_empty()).then_some(extremes);
            of.first = (of.count > 0).then_some(first);
        }
        let numbers = profile.of(Class::Number).extremes.iter().flatten();
        if { numbers }.any(|ranked| Number::of_ordered(ranked).is_none()) {
            return Err(WRONG);
        }
        let times = profile.of(Class::Time).extremes.iter().flatten();
        let classes = profile.classes.iter();
        let lacks = { classes }.any(|of| of.count > 0 && of.extremes.is_none());
        if lacks || { times }.any(|ranked| ranked.len() <= RANK_BYTES) {
            return Err(WRONG);
        }
        let digits = |bytes: &mut &[u8]| match take_u64(bytes)? {
            digits @ 0..=DIGITS_MAX => Ok(digits as u32),
            _ => Err(WRONG),
        };
        profile.decimals = digits(bytes)?;
        let special = take_u64(bytes)? as usize;
        let scale = digits(bytes)?;
        let mantissa = take(bytes)?;
        profile.sum = match special.checked_sub(1) {
            None => Exact::new(BigInt::from_signed_bytes_le(mantissa), scale),
            Some(at) => Exact::of(*SPECIALS.get(at).ok_or(WRONG)?),
        };
        for sizes in &mut profile.sizes {
            *sizes = Histogram::decode(take(bytes)?)?;
        }
        profile.distinct = Distinct::decode(take(bytes)?)?;
        profile.frequencies = match bytes.is_empty() {
            true => None,
            false => Some(Frequencies::decode(take(bytes)?)?),
        };
        profile.count_bytes();
        profile.heap = profile.measured();
        Ok(profile)
    }
}

/// Bytes before the text of a time.
pub(crate) const RANK_BYTES: usize = 16;

/// More digits after the point than any number has.
const DIGITS_MAX: u64 = 2000;

const SPECIALS: [Special; 3] = [Special::NegativeInfinity, Special::Infinity, Special::Nan];

fn push(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let len = usize::try_from(take_u64(bytes)?).unwrap_or(usize::MAX);
    let (taken, rest) = bytes.split_at_checked(len).ok_or("a sketch is cut short")?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sketch::distinct::HashKey;

    fn of<'a>(values: impl Iterator<Item = (usize, &'a String)>) -> Profile {
        let mut profile = Profile::default();
        for (at, text) in values {
            let (bytes, place) = (text.as_bytes(), (0, at as u64));
            let hash = HashKey::NONE.hash(bytes);
            match (Number::read(bytes), bytes[0]) {
                (Ok(number), _) => profile.add_number((bytes, number), hash, place),
                (_, b't') => profile.add_time((bytes, &[7; 16], 7), hash, place),
                _ => profile.add_text(bytes, hash, place),
            }
        }
        profile
    }

    proptest! {
        /// Parts, merged in any order and by their bytes, are the whole.
        #[test]
        fn it_depends_on_the_values_alone(
            values in prop::collection::vec("-?[0-9]{1,3}(\\.[0-9]{1,2})?|t[a-c]|[a-c]{1,3}", 1..60),
            parts in prop::collection::vec(0..3_usize, 60),
        ) {
            let all = || values.iter().enumerate();
            let whole = of(all()).encode();
            let mut split: Vec<Profile> = (0..3)
                .map(|part| of(all().filter(|(at, _)| parts[*at] == part).collect::<Vec<_>>().into_iter().rev()))
                .collect();
            let encoded: Vec<_> = split.iter().map(Profile::encode).collect();
            let mut merged = split.remove(2);
            split.into_iter().for_each(|part| merged.merge(part));
            let mut back = Profile::default();
            encoded.iter().for_each(|bytes| back.merge(Profile::decode(bytes).unwrap()));
            // The sum's scale isn't told by its value.
            for profile in [&mut merged, &mut back] {
                profile.sum = std::mem::take(&mut profile.sum).with_scale(2);
            }
            let mut want = Profile::decode(&whole).unwrap();
            want.sum = want.sum.with_scale(2);
            prop_assert_eq!(merged.encode(), want.encode());
            prop_assert_eq!(back.encode(), want.encode());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Profile::decode(&bytes);
        }
    }

    #[test]
    fn frequencies_are_of_few_values() {
        let values: Vec<String> = (0..=VALUES_MAX)
            .map(|number| format!("v{number}"))
            .collect();
        let few = of(values[1..].iter().enumerate());
        assert!(few.frequencies.is_some());
        assert!(of(values.iter().enumerate()).frequencies.is_none());
        let mut merged = of(values[..1].iter().enumerate());
        merged.merge(few);
        assert!(merged.frequencies.is_none());
        assert!(
            Profile::decode(&merged.encode())
                .unwrap()
                .frequencies
                .is_none()
        );
    }
}
