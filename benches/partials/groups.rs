//! The groups that are kept, from a fixed seed, and how they are dealt to several files.

use crate::data::Random;

/// A group as a program has it in memory: 48 bytes and its key.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
    bitcode::Encode,
    bitcode::Decode,
    columnar::Columnar,
)]
pub struct Group {
    pub key: String,
    pub count: u64,
    pub sum: i64,
    pub min: i32,
    pub max: i32,
}

/// A group whose key lies elsewhere.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    bitcode::Encode,
    bitcode::Decode,
)]
pub struct View<'a> {
    pub key: &'a str,
    pub count: u64,
    pub sum: i64,
    pub min: i32,
    pub max: i32,
}

impl Group {
    pub fn view(&self) -> View<'_> {
        let Group {
            ref key,
            count,
            sum,
            min,
            max,
        } = *self;
        View {
            key,
            count,
            sum,
            min,
            max,
        }
    }
}

impl<'a> View<'a> {
    pub fn owned(self) -> Group {
        let View {
            key,
            count,
            sum,
            min,
            max,
        } = self;
        Group {
            key: key.to_string(),
            count,
            sum,
            min,
            max,
        }
    }

    /// Both groups of a key as one.
    pub fn plus(self, other: View<'_>) -> View<'a> {
        View {
            key: self.key,
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// Groups by key, and how they lie in several files.
pub struct Groups {
    pub all: Vec<Group>,
    /// Bytes in memory: what rates are of.
    pub bytes: u64,
}

const KEY_BYTES: std::ops::RangeInclusive<u64> = 5..=40;

impl Groups {
    /// So many groups, with keys of letters. All begin like `prefix`.
    pub fn new(count: usize, prefix: &str) -> Groups {
        let mut random = Random(11);
        let mut keys = Vec::new();
        while keys.len() < count {
            while keys.len() < count {
                let bytes =
                    KEY_BYTES.start() + random.below(KEY_BYTES.end() - KEY_BYTES.start() + 1);
                let mut key = prefix.to_string();
                let from = prefix.len().min(bytes as usize - 5) as u64;
                key.extend((from..bytes).map(|_| char::from(b'a' + random.below(26) as u8)));
                keys.push(key);
            }
            keys.sort_unstable();
            keys.dedup();
        }
        let mut group = |key: String| {
            let count = 1 + random.below(1000);
            let [one, two] = [(); 2].map(|()| random.below(2000) as i32 - 1000);
            Group {
                key,
                count,
                sum: count as i64 * i64::from(one + two) / 2,
                min: one.min(two),
                max: one.max(two),
            }
        };
        // Copies lie in their order in memory, as groups of a sorted table do.
        let all: Vec<Group> = keys.iter().map(|key| group(key.clone())).collect();
        let texts: usize = all.iter().map(|group| group.key.len()).sum();
        Groups {
            bytes: (texts + size_of::<Group>() * all.len()) as u64,
            all,
        }
    }

    /// Which of two files have a group: a quarter of the groups is in none, and of the others a third in both.
    pub fn in_two(&self) -> impl Iterator<Item = (&Group, [bool; 2])> {
        let mut random = Random(12);
        self.all.iter().enumerate().map(move |(at, group)| {
            let drawn = random.below(3);
            (
                group,
                [drawn != 0, drawn != 1].map(|is_in| is_in && at % 4 != 3),
            )
        })
    }

    /// Which of so many files have a group: half of the groups are in none, the others in one to three.
    pub fn in_many(&self, files: usize) -> impl Iterator<Item = (&Group, Vec<usize>)> {
        let mut random = Random(13);
        self.all.iter().step_by(2).map(move |group| {
            let mut drawn = Vec::new();
            for _ in 0..=random.below(3) {
                let file = random.below(files as u64) as usize;
                if !drawn.contains(&file) {
                    drawn.push(file);
                }
            }
            (group, drawn)
        })
    }
}
