//! The keys a generated file draws from: the 413 stations, or any number of invented names.
//!
//! An invented name depends only on its index and on how many names there are, so that names are distinct
//! without being stored. Up to [`STORED_MAX`] names are stored, because that is faster; beyond that a name is
//! made again for every row, in constant memory.

use ringfold_bench::noise::mix;

/// Bytes a row may be written into; a key is always the start of such a window.
pub const WINDOW: usize = 128;
/// The longest key, in bytes: the challenge's limit.
pub const KEY_BYTES_MAX: usize = 100;
/// Up to how many invented names are kept in memory (about 40 bytes each).
const STORED_MAX: u64 = 1 << 20;
/// The most names there can be.
pub const KEYS_MAX: u64 = 1 << 32;
/// Key bytes that are copied at once.
const HEAD_BYTES: usize = 32;

/// A set of keys by index.
pub trait Keys: Sync {
    /// How many keys there are: at least one.
    fn count(&self) -> u64;
    /// Writes a key at the window's start; returns its length and its mean in tenths. The content of the
    /// window after the key is undefined.
    fn put(&self, index: u64, window: &mut [u8; WINDOW]) -> (usize, i32);
    /// The longest key's length.
    fn longest(&self) -> usize;
}

/// The keys of a run.
pub enum KeySet {
    /// Kept in memory.
    KeyTable(KeyTable),
    /// Made from their index each time.
    Invented(Inventor),
}

impl KeySet {
    /// `count` invented names, or the stations for `None`.
    pub fn new(count: Option<u64>) -> Self {
        match count {
            None => Self::KeyTable(stations()),
            Some(count) => {
                let inventor = Inventor::new(count);
                if count <= STORED_MAX {
                    Self::KeyTable(KeyTable::from_inventor(&inventor))
                } else {
                    Self::Invented(inventor)
                }
            }
        }
    }
}

/// Keys in memory: each key's first bytes, padded, in a slot of fixed size, so that most keys take
/// a single copy of fixed length; the rest of the long ones lies in one string of tails.
pub struct KeyTable {
    slots: Vec<Slot>,
    tails: Vec<u8>,
    longest: usize,
}

struct Slot {
    head: [u8; HEAD_BYTES],
    tail_at: u32,
    mean_tenths: i16,
    len: u8,
}

impl KeyTable {
    fn with_capacity(keys: usize) -> Self {
        Self {
            slots: Vec::with_capacity(keys),
            tails: Vec::new(),
            longest: 0,
        }
    }

    fn from_inventor(inventor: &Inventor) -> Self {
        let mut stored = Self::with_capacity(inventor.count as usize);
        let mut window = [0; WINDOW];
        for index in 0..inventor.count {
            let (len, mean_tenths) = inventor.put(index, &mut window);
            stored.push(&window[..len], mean_tenths as i16);
        }
        stored
    }

    fn push(&mut self, key: &[u8], mean_tenths: i16) {
        assert!(
            (1..=KEY_BYTES_MAX).contains(&key.len()),
            "a key has 1 to 100 bytes"
        );
        let in_head = key.len().min(HEAD_BYTES);
        let mut head = [0; HEAD_BYTES];
        head[..in_head].copy_from_slice(&key[..in_head]);
        let tail_at = u32::try_from(self.tails.len()).expect("a million keys have short tails");
        self.tails.extend_from_slice(&key[in_head..]);
        self.slots.push(Slot {
            head,
            tail_at,
            mean_tenths,
            len: key.len() as u8,
        });
        self.longest = self.longest.max(key.len());
    }
}

impl Keys for KeyTable {
    fn count(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline(always)]
    fn put(&self, index: u64, window: &mut [u8; WINDOW]) -> (usize, i32) {
        let slot = &self.slots[index as usize];
        let len = usize::from(slot.len);
        window[..HEAD_BYTES].copy_from_slice(&slot.head);
        if len > HEAD_BYTES {
            let tail = &self.tails[slot.tail_at as usize..][..len - HEAD_BYTES];
            window[HEAD_BYTES..len].copy_from_slice(tail);
        }
        (len, i32::from(slot.mean_tenths))
    }

    fn longest(&self) -> usize {
        self.longest
    }
}

/// The challenge's stations, with their mean temperatures.
fn stations() -> KeyTable {
    let mut stored = KeyTable::with_capacity(413);
    for line in include_str!("stations.txt").lines() {
        let (name, mean) = line.split_once(';').expect("stations.txt: name;mean");
        let mean: f64 = mean.parse().expect("stations.txt: a mean is a decimal");
        stored.push(name.as_bytes(), (mean * 10.0).round() as i16);
    }
    stored
}

/// Invents names.
///
/// A name starts with its number, written in syllables to the base of 64 (scrambled first, so that
/// neighbours differ); random syllables follow until it has its length. No syllable is another's beginning,
/// so that names with different numbers differ. All numbers have the same number of syllables. A few names
/// are shorter than any number, and differ from each other by their length or their first syllable.
pub struct Inventor {
    count: u64,
    /// Syllables that a number takes.
    digits: u32,
    /// The first so many indexes are the short names.
    shorts: u64,
    scripts: Vec<Script>,
}

/// The 64 syllables of one script.
struct Script {
    syllables: [Syllable; 64],
    /// The same with a capital.
    initials: [Syllable; 64],
}

#[derive(Clone, Copy, Default)]
struct Syllable {
    bytes: [u8; 4],
    len: u8,
}

const ASCII: usize = 0;
const ACCENTED: usize = 1;
const CYRILLIC: usize = 2;
const HAN: usize = 3;
const HAN_COMPATIBILITY: usize = 4;
const HAN_SUPPLEMENT: usize = 5;

/// Which script a name is in, by four random bits: mostly ASCII, as in the list of stations.
fn script(bits: usize) -> usize {
    match bits {
        ..9 => ASCII,
        9..12 => ACCENTED,
        12 => CYRILLIC,
        13 => HAN,
        14 => HAN_COMPATIBILITY,
        _ => HAN_SUPPLEMENT,
    }
}

const CONSONANTS: [char; 16] = [
    'b', 'd', 'f', 'g', 'h', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'w', 'z',
];
const VOWELS: [char; 4] = ['a', 'e', 'i', 'o'];
const ACCENTED_VOWELS: [char; 4] = ['á', 'é', 'ü', 'õ'];
const CYRILLIC_CONSONANTS: [char; 16] = [
    'б', 'в', 'г', 'д', 'ж', 'з', 'к', 'л', 'м', 'н', 'п', 'р', 'с', 'т', 'ф', 'ч',
];
const CYRILLIC_VOWELS: [char; 4] = ['а', 'е', 'и', 'о'];
/// Separators between two parts of a name, among them some that break naive parsers of the answer.
const SEPARATORS: [u8; 8] = *b"   -'/=,";
/// The most short names of one length.
const SHORTS_PER_LENGTH: u64 = 16;

impl Inventor {
    /// Makes `count` names: 1 to [`KEYS_MAX`].
    pub fn new(count: u64) -> Self {
        assert!((1..=KEYS_MAX).contains(&count), "1 to 2^32 names");
        let mut digits = 1;
        while 64u64.pow(digits) < count {
            digits += 1;
        }
        let shorts = match count {
            1 => 0,
            _ => (count / 16).clamp(1, SHORTS_PER_LENGTH * short_lengths(digits)),
        };
        let paired = |consonants: [char; 16], vowels: [char; 4]| {
            Script::new(|digit| format!("{}{}", consonants[digit / 4], vowels[digit % 4]))
        };
        let spread = |first: u32, step: u32| {
            Script::new(|digit| {
                char::from_u32(first + step * digit as u32)
                    .expect("a letter")
                    .to_string()
            })
        };
        let scripts = vec![
            paired(CONSONANTS, VOWELS),
            paired(CONSONANTS, ACCENTED_VOWELS),
            paired(CYRILLIC_CONSONANTS, CYRILLIC_VOWELS),
            spread(0x4e00, 97),
            // These two sort one way as bytes and the other way as UTF-16.
            spread(0xf900, 1),
            spread(0x2_0000, 331),
        ];
        Self {
            count,
            digits,
            shorts,
            scripts,
        }
    }

    /// Writes the short name of a rank: one of 1 to `2 * digits - 1` bytes.
    fn put_short(&self, index: u64, window: &mut [u8; WINDOW]) -> usize {
        let lengths = short_lengths(self.digits);
        let (len, rank) = (1 + index % lengths, (index / lengths) as usize);
        let mut name = Name { window, len: 0 };
        match (len, rank % 4) {
            (1, _) => name.letter(rank, true),
            // A letter of 2, 3 or 4 bytes alone.
            (2, 3) => {
                let vowel = ACCENTED_VOWELS[rank / 4];
                name.syllable(Syllable::new(vowel.encode_utf8(&mut [0; 4])));
            }
            (3, 3) => name.syllable(self.scripts[HAN].syllables[rank]),
            (4, 3) => name.syllable(self.scripts[HAN_SUPPLEMENT].syllables[rank]),
            _ => {
                let script = &self.scripts[ASCII];
                name.syllable(script.initials[(rank * 5 + 3) % 64]);
                let mut chance = mix(index);
                while name.len + 2 <= len as usize {
                    name.syllable(script.syllables[take(&mut chance, 6)]);
                }
                if name.len < len as usize {
                    name.letter(take(&mut chance, 4), false);
                }
            }
        }
        name.len
    }

    /// Writes a name that starts with its number.
    fn put_numbered(&self, index: u64, window: &mut [u8; WINDOW]) -> usize {
        let mut chance = mix(index ^ 0x6e61_6d65);
        let script = &self.scripts[script(take(&mut chance, 4))];
        let len = if index == self.shorts && self.count > 1 {
            KEY_BYTES_MAX
        } else {
            length(take(&mut chance, 8), take(&mut chance, 16))
        };
        let mut number = scramble(index, 6 * self.digits);
        let mut name = Name { window, len: 0 };
        name.syllable(script.initials[take(&mut number, 6)]);
        for _ in 1..self.digits {
            name.syllable(script.syllables[take(&mut number, 6)]);
        }
        while name.len < len {
            let left = len - name.len;
            chance = mix(chance.wrapping_add(left as u64));
            let mut bits = chance;
            if left >= 8 && take(&mut bits, 3) == 0 {
                name.byte(SEPARATORS[take(&mut bits, 3)]);
                name.syllable(script.initials[take(&mut bits, 6)]);
                continue;
            }
            let syllable = script.syllables[take(&mut bits, 6)];
            if usize::from(syllable.len) <= left {
                name.syllable(syllable);
            } else {
                name.letter(take(&mut bits, 4), false);
            }
        }
        name.len
    }
}

impl Keys for Inventor {
    fn count(&self) -> u64 {
        self.count
    }

    fn put(&self, index: u64, window: &mut [u8; WINDOW]) -> (usize, i32) {
        let len = if index < self.shorts {
            self.put_short(index, window)
        } else {
            self.put_numbered(index, window)
        };
        // Means from -15.0 to 35.0.
        let mean_tenths = (mix(!index) % 501) as i32 - 150;
        (len, mean_tenths)
    }

    fn longest(&self) -> usize {
        KEY_BYTES_MAX
    }
}

impl Script {
    fn new(syllable: impl Fn(usize) -> String) -> Self {
        let mut script = Self {
            syllables: [Syllable::default(); 64],
            initials: [Syllable::default(); 64],
        };
        for digit in 0..64 {
            let small = syllable(digit);
            let mut letters = small.chars();
            let first = letters.next().expect("a syllable has a letter");
            let capital: String = first.to_uppercase().chain(letters).collect();
            script.syllables[digit] = Syllable::new(&small);
            script.initials[digit] = Syllable::new(&capital);
        }
        script
    }
}

impl Syllable {
    fn new(text: &str) -> Self {
        let mut bytes = [0; 4];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self {
            bytes,
            len: text.len() as u8,
        }
    }
}

/// A name that is being written.
struct Name<'a> {
    window: &'a mut [u8; WINDOW],
    len: usize,
}

impl Name<'_> {
    #[inline]
    fn syllable(&mut self, syllable: Syllable) {
        self.window[self.len..][..4].copy_from_slice(&syllable.bytes);
        self.len += usize::from(syllable.len);
    }

    fn byte(&mut self, byte: u8) {
        self.window[self.len] = byte;
        self.len += 1;
    }

    fn letter(&mut self, which: usize, capital: bool) {
        let letter = CONSONANTS[which] as u8;
        self.byte(if capital {
            letter.to_ascii_uppercase()
        } else {
            letter
        });
    }
}

/// How many lengths the short names have: those too short for a number.
fn short_lengths(digits: u32) -> u64 {
    2 * u64::from(digits) - 1
}

/// A length: mostly 8 to 20, with a tail up to [`KEY_BYTES_MAX`] and a few that are shorter (as
/// short as the name's number allows).
fn length(class: usize, within: usize) -> usize {
    match class {
        0..8 => within % 8,
        8..200 => 8 + within % 13,
        200..240 => 21 + within % 20,
        _ => 41 + within % 60,
    }
}

/// Takes the lowest bits of a word.
#[inline]
fn take(word: &mut u64, bits: u32) -> usize {
    let taken = *word & ((1 << bits) - 1);
    *word >>= bits;
    taken as usize
}

/// A permutation of the numbers of so many bits: each step is a bijection.
#[inline]
fn scramble(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let mut number = number & mask;
    for odd in [
        0x9e37_79b9_7f4a_7c15u64,
        0xd1b5_4a32_d192_ed03,
        0xaef1_7502_108e_f2d9,
    ] {
        number = number.wrapping_mul(odd) & mask;
        number ^= number >> (bits / 2);
    }
    number
}

#[cfg(test)]
mod tests {
    use crate::generate::keys::*;
    use std::collections::{BTreeMap, HashSet};

    fn names_of(keys: &impl Keys) -> Vec<Vec<u8>> {
        let mut window = [0; WINDOW];
        let name = |index| {
            let (len, _) = keys.put(index, &mut window);
            window[..len].to_vec()
        };
        (0..keys.count()).map(name).collect()
    }

    fn names(count: u64) -> Vec<Vec<u8>> {
        names_of(&Inventor::new(count))
    }

    fn assert_good(names: &[Vec<u8>]) {
        let distinct: HashSet<&[u8]> = names.iter().map(Vec::as_slice).collect();
        assert_eq!(distinct.len(), names.len(), "names repeat");
        for name in names {
            assert!((1..=KEY_BYTES_MAX).contains(&name.len()));
            let text = std::str::from_utf8(name).expect("UTF-8");
            assert!(
                !text
                    .chars()
                    .any(|letter| letter == ';' || letter.is_control()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn stations_are_413_and_distinct() {
        let stations = stations();
        assert_eq!(stations.count(), 413);
        assert_good(&names_of(&stations));
    }

    #[test]
    fn names_are_good_for_any_count() {
        for count in (1..200).chain([413, 1000, 4095, 4096, 4097, 10_000]) {
            let names = names(count);
            assert_good(&names);
            if count >= 2 {
                assert!(
                    names.iter().any(|name| name.len() == 1),
                    "{count}: no name of 1 byte"
                );
                assert!(
                    names.iter().any(|name| name.len() == 100),
                    "{count}: none of 100"
                );
            }
        }
    }

    #[test]
    fn a_hundred_thousand_names_are_distinct_and_mixed() {
        let names = names(100_000);
        assert_good(&names);
        let mut by_length = BTreeMap::new();
        for name in &names {
            *by_length.entry(name.len()).or_insert(0u32) += 1;
        }
        assert_eq!(by_length.len(), 100, "every length from 1 to 100 occurs");
        let short: u32 = by_length.range(8..=20).map(|(_, names)| names).sum();
        assert!(
            (70_000..90_000).contains(&short),
            "{short} names of 8 to 20 bytes"
        );
        for letter_bytes in 1..=4 {
            let having = names.iter().filter(|name| {
                let text = std::str::from_utf8(name).unwrap();
                text.chars().any(|letter| letter.len_utf8() == letter_bytes)
            });
            assert!(having.count() > 3_000, "letters of {letter_bytes} bytes");
        }
    }

    #[test]
    fn numbers_can_be_read_back_from_names() {
        // Names of counts too large to compare them all, sampled at the largest count.
        let inventor = Inventor::new(KEYS_MAX);
        let mut window = [0; WINDOW];
        for sample in 0..20_000u64 {
            let index = inventor.shorts + mix(sample) % (KEYS_MAX - inventor.shorts);
            let (len, _) = inventor.put(index, &mut window);
            let mut rest = &window[..len];
            let mut number = 0;
            for digit in 0..inventor.digits {
                let found: Vec<(usize, u8)> = inventor
                    .scripts
                    .iter()
                    .flat_map(|script| {
                        let set = if digit == 0 {
                            &script.initials
                        } else {
                            &script.syllables
                        };
                        set.iter().enumerate()
                    })
                    .filter(|(_, syllable)| {
                        rest.starts_with(&syllable.bytes[..usize::from(syllable.len)])
                    })
                    .map(|(value, syllable)| (value, syllable.len))
                    .collect();
                assert_eq!(found.len(), 1, "exactly one syllable can stand here");
                number |= (found[0].0 as u64) << (6 * digit);
                rest = &rest[usize::from(found[0].1)..];
            }
            assert_eq!(number, scramble(index, 6 * inventor.digits));
        }
    }

    #[test]
    fn scramble_is_a_bijection() {
        for bits in [6, 12, 18] {
            let images: HashSet<u64> = (0..1 << bits).map(|n| scramble(n, bits)).collect();
            assert_eq!(images.len(), 1 << bits);
        }
    }

    #[test]
    fn stored_names_are_the_invented_ones() {
        let inventor = Inventor::new(5000);
        let stored = KeyTable::from_inventor(&inventor);
        let (mut one, mut other) = ([0; WINDOW], [0; WINDOW]);
        for index in 0..5000 {
            let (len, mean) = inventor.put(index, &mut one);
            assert_eq!(stored.put(index, &mut other), (len, mean));
            assert_eq!(one[..len], other[..len]);
        }
    }
}
