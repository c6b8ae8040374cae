//! What is done with the groups in each format, with a clock, and what came out of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::Instant;

use ahash::{AHasher, RandomState};
use ringfold::internals::PlainWriter;
use ringfold::query::{Partial, SavedGroup, Value};
use twox_hash::XxHash3_64;

use crate::formats::{Format, Rows};
use crate::groups::{Group, Groups, View};

/// Files of the merge of many.
pub const MANY: usize = 64;

/// What is done, in the order of the table.
pub const STEPS: [&str; 6] = [
    "encode",
    "ready to read",
    "into owned values",
    "merge of two",
    "merge of 64",
    "shuffle to two",
];

/// Seconds of each step, bytes of the encoding, and what the steps gave: the same for all formats.
pub struct Measured {
    pub seconds: [f64; STEPS.len()],
    pub bytes: usize,
    pub digests: [u64; STEPS.len()],
}

/// Does it twice, the first time so that all memory has been used before; returns the seconds of the second.
fn timed<T>(mut step: impl FnMut() -> T) -> (f64, T) {
    drop(black_box(step()));
    let start = Instant::now();
    let result = black_box(step());
    (start.elapsed().as_secs_f64(), result)
}

/// What tells groups apart.
#[derive(Default)]
struct Digest(AHasherFixed);

struct AHasherFixed(AHasher);

impl Default for AHasherFixed {
    fn default() -> AHasherFixed {
        AHasherFixed(RandomState::with_seeds(1, 2, 3, 4).build_hasher())
    }
}

impl Digest {
    fn add(&mut self, row: View<'_>) {
        let hasher = &mut self.0.0;
        hasher.write(row.key.as_bytes());
        hasher.write_u64(row.count);
        hasher.write_i64(row.sum);
        hasher.write_i32(row.min);
        hasher.write_i32(row.max);
    }

    fn of<'a>(rows: impl Iterator<Item = View<'a>>) -> u64 {
        let mut digest = Digest::default();
        rows.for_each(|row| digest.add(row));
        digest.0.0.finish()
    }
}

fn rows<'a, R: Rows<'a>>(opened: &R) -> impl Iterator<Item = View<'a>> {
    (0..opened.len()).map(|at| opened.row(at))
}

/// Where a group is sent.
fn destination(hasher: &RandomState, key: &[u8]) -> usize {
    (hasher.hash_one(key) & 1) as usize
}

fn hasher() -> RandomState {
    RandomState::with_seeds(5, 6, 7, 8)
}

/// One of the formats.
pub fn measure<F: Format>(groups: &Groups) -> Measured {
    let (mut whole, mut out) = (F::Bytes::default(), F::Bytes::default());
    let mut other = F::Bytes::default();
    let encode = timed(|| F::encode(&groups.all, &mut whole)).0;
    let ready = timed(|| drop(black_box(F::open(&whole)))).0;
    let owned = || {
        let opened = F::open(&whole);
        rows(&opened).map(View::owned).collect::<Vec<Group>>()
    };
    let (own, all) = timed(owned);
    let all = Digest::of(all.iter().map(Group::view));
    let shuffled = timed(|| {
        let opened = F::open(&whole);
        let hasher = hasher();
        let mut builders = [(); 2].map(|()| F::Builder::default());
        for row in rows(&opened) {
            F::push(&mut builders[destination(&hasher, row.key.as_bytes())], row);
        }
        let [one, two] = builders;
        F::finish(one, &mut out);
        F::finish(two, &mut other);
    });
    let first = Digest::of(rows(&F::open(&out)));
    let digest_shuffled = first ^ Digest::of(rows(&F::open(&other)));
    let bytes = F::len(&whole);
    drop((whole, other));

    let mut builders = [(); 2].map(|()| F::Builder::default());
    for (group, is_in) in groups.in_two() {
        for (builder, _) in builders.iter_mut().zip(is_in).filter(|(_, is_in)| *is_in) {
            F::push(builder, group.view());
        }
    }
    let two = builders.map(encoded::<F>);
    let merged = timed(|| merge_two::<F>(&two, &mut out)).0;
    let digest_two = Digest::of(rows(&F::open(&out)));
    drop(two);

    let mut builders: Vec<F::Builder<'_>> = (0..MANY).map(|_| F::Builder::default()).collect();
    for (group, files) in groups.in_many(MANY) {
        for file in files {
            F::push(&mut builders[file], group.view());
        }
    }
    let many: Vec<F::Bytes> = builders.into_iter().map(encoded::<F>).collect();
    let merged_many = timed(|| merge_many::<F>(&many, &mut out)).0;
    let digest_many = Digest::of(rows(&F::open(&out)));
    Measured {
        seconds: [encode, ready, own, merged, merged_many, shuffled.0],
        bytes,
        digests: [all, all, all, digest_two, digest_many, digest_shuffled],
    }
}

fn encoded<F: Format>(builder: F::Builder<'_>) -> F::Bytes {
    let mut bytes = F::Bytes::default();
    F::finish(builder, &mut bytes);
    bytes
}

/// Reads both in the order of their keys.
fn merge_two<F: Format>(files: &[F::Bytes; 2], to: &mut F::Bytes) {
    let [one, two] = [F::open(&files[0]), F::open(&files[1])];
    let mut builder = F::Builder::default();
    let (mut left, mut right) = (0, 0);
    while left < one.len() && right < two.len() {
        let (a, b) = (one.row(left), two.row(right));
        let order = a.key.cmp(b.key);
        left += usize::from(order.is_le());
        right += usize::from(order.is_ge());
        let row = match order {
            std::cmp::Ordering::Less => a,
            std::cmp::Ordering::Equal => a.plus(b),
            std::cmp::Ordering::Greater => b,
        };
        F::push(&mut builder, row);
    }
    (left..one.len()).for_each(|at| F::push(&mut builder, one.row(at)));
    (right..two.len()).for_each(|at| F::push(&mut builder, two.row(at)));
    F::finish(builder, to);
}

/// Reads all in the order of their keys, by a heap.
fn merge_many<F: Format>(files: &[F::Bytes], to: &mut F::Bytes) {
    let opened: Vec<F::Opened<'_>> = files.iter().map(|bytes| F::open(bytes)).collect();
    let mut builder = F::Builder::default();
    let firsts = opened.iter().enumerate().filter(|(_, rows)| rows.len() > 0);
    let mut heap: BinaryHeap<_> = firsts
        .map(|(file, rows)| Reverse((rows.row(0).key, file, 0)))
        .collect();
    let mut last: Option<View<'_>> = None;
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((key, file, at)) = *least;
        let row = opened[file].row(at);
        last = match last {
            Some(last) if last.key == key => Some(last.plus(row)),
            before => {
                before
                    .into_iter()
                    .for_each(|row| F::push(&mut builder, row));
                Some(row)
            }
        };
        if at + 1 < opened[file].len() {
            *least = Reverse((opened[file].row(at + 1).key, file, at + 1));
        } else {
            PeekMut::pop(least);
        }
    }
    last.into_iter().for_each(|row| F::push(&mut builder, row));
    F::finish(builder, to);
}

/// More rows than the groups have.
const ROWS: u64 = 1 << 40;

/// A partial that is written to memory that has been used before.
fn writer(to: &mut Vec<u8>) -> PlainWriter<&mut Vec<u8>> {
    to.clear();
    PlainWriter::new(ROWS, to).expect("memory takes everything")
}

fn push(writer: &mut PlainWriter<&mut Vec<u8>>, row: View<'_>) {
    let View {
        key,
        count,
        sum,
        min,
        max,
    } = row;
    let pushed = writer.push(key.as_bytes(), [count as i64, sum, min.into(), max.into()]);
    pushed.expect("memory takes everything");
}

fn read(bytes: &[u8]) -> Partial {
    Partial::read("bench", bytes.to_vec()).expect("it was just made")
}

fn number(group: &SavedGroup<'_>, column: usize) -> i64 {
    match group.value(column) {
        Value::Decimal(decimal) => decimal.mantissa().expect("it is small").0,
        _ => panic!("column {column} has decimals"),
    }
}

fn view<'a>(group: &SavedGroup<'a>) -> View<'a> {
    let Value::Count(count) = group.value(0) else {
        panic!("column 0 has counts");
    };
    View {
        key: std::str::from_utf8(group.key()).expect("it was just made"),
        count,
        sum: number(group, 1),
        min: number(group, 2) as i32,
        max: number(group, 3) as i32,
    }
}

fn each(partial: &Partial, mut to: impl FnMut(View<'_>)) {
    let mut groups = partial.groups();
    while let Some(block) = groups.next_block().expect("it is whole") {
        block.iter().for_each(|group| to(view(&group)));
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut digest = Digest::default();
    each(&read(bytes), |row| digest.add(row));
    digest.0.0.finish()
}

/// Writes all groups as a partial.
fn write_all(groups: &Groups, to: &mut Vec<u8>) {
    let mut writer = writer(to);
    groups
        .all
        .iter()
        .for_each(|group| push(&mut writer, group.view()));
    writer.finish().expect("memory takes everything");
}

/// Ringfold's own.
pub fn measure_ringfold(groups: &Groups) -> Measured {
    let (mut whole, mut out, mut other) = (Vec::new(), Vec::new(), Vec::new());
    let encode = timed(|| write_all(groups, &mut whole));
    let partial = read(&whole);
    let ready = timed(|| {
        let mut groups = partial.groups();
        while let Some(block) = groups.next_block().expect("it is whole") {
            black_box(&block);
        }
    });
    let (own, all) = timed(|| {
        let mut all = Vec::with_capacity(partial.len() as usize);
        each(&partial, |row| all.push(row.owned()));
        all
    });
    let all = Digest::of(all.iter().map(Group::view));
    let shuffled = timed(|| {
        let hasher = hasher();
        let mut writers = [writer(&mut out), writer(&mut other)];
        each(&partial, |row| {
            push(&mut writers[destination(&hasher, row.key.as_bytes())], row)
        });
        for writer in writers {
            writer.finish().expect("memory takes everything");
        }
    });
    let digest_shuffled = digest(&out) ^ digest(&other);
    let bytes = whole.len();
    drop((partial, whole, other));

    let mut two = [(); 2].map(|()| Vec::new());
    let [one, other] = &mut two;
    let mut writers = [writer(one), writer(other)];
    for (group, is_in) in groups.in_two() {
        for (writer, _) in writers.iter_mut().zip(is_in).filter(|(_, is_in)| *is_in) {
            push(writer, group.view());
        }
    }
    for writer in writers {
        writer.finish().expect("memory takes everything");
    }
    let two = two.map(|bytes| Partial::read("bench", bytes).expect("it was just made"));
    let merged = timed(|| merge_ringfold(&two, &mut out)).0;
    let digest_two = digest(&out);
    drop(two);

    let mut many = vec![Vec::new(); MANY];
    let mut writers: Vec<_> = many.iter_mut().map(writer).collect();
    for (group, files) in groups.in_many(MANY) {
        for file in files {
            push(&mut writers[file], group.view());
        }
    }
    for writer in writers {
        writer.finish().expect("memory takes everything");
    }
    let many = many.into_iter();
    let many = many.map(|bytes| Partial::read("bench", bytes).expect("it was just made"));
    let many: Vec<Partial> = many.collect();
    let merged_many = timed(|| merge_ringfold(&many, &mut out)).0;
    Measured {
        seconds: [encode.0, ready.0, own, merged, merged_many, shuffled.0],
        bytes,
        digests: [all, all, all, digest_two, digest(&out), digest_shuffled],
    }
}

fn merge_ringfold(files: &[Partial], to: &mut Vec<u8>) {
    to.clear();
    let merged = Partial::merge(files).expect("they are of one query");
    merged.save(to).expect("memory takes everything");
}

/// What of the step to be ready to read is due to what: reading all bytes, their checksum, and everything.
pub fn safety(groups: &Groups) -> [(&'static str, f64); 3] {
    let mut whole = Vec::new();
    write_all(groups, &mut whole);
    let sum = || {
        let words = whole.as_chunks::<8>().0.iter();
        words.fold(0_u64, |sum, word| {
            sum.wrapping_add(u64::from_le_bytes(*word))
        })
    };
    let read = timed(sum).0;
    // A block at a time, as a reader does.
    let checksums = || {
        let blocks = whole.chunks(128 << 10);
        blocks.fold(0, |sum, block| sum ^ XxHash3_64::oneshot(block))
    };
    let summed = timed(checksums).0;
    let partial = self::read(&whole);
    let ready = timed(|| {
        let mut groups = partial.groups();
        while let Some(block) = groups.next_block().expect("it is whole") {
            black_box(&block);
        }
    });
    [
        ("a sum of all words", read),
        ("checksums", summed),
        ("checksums, offsets, values and the order of keys", ready.0),
    ]
}

/// A copy of as many bytes as the groups have.
pub fn memcpy(bytes: u64) -> f64 {
    let from = vec![1_u8; bytes as usize];
    let mut to = vec![0_u8; bytes as usize];
    timed(|| to.copy_from_slice(black_box(&from))).0
}
