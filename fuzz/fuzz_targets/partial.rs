//! Any bytes as a partial, partials with edits, and blocks of any sections, all of these with wrong checksums or right ones:
//! they are refused by one line, or read, shown, merged and answered. Merged again they are the same. No allocation is much
//! larger than the file.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use ringfold::query::{Partial, Query, Shown};
use ringfold::report::grid::{GridFormat, write_grid};
use ringfold::{Config, Error, Input};
use twox_hash::XxHash3_64;

/// The largest allocation since it was set to zero.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watched;

/// A load and a branch: an atomic maximum takes longer than the allocation. The inputs are checked by one thread.
#[inline]
fn note(size: usize) {
    if size > LARGEST.load(Relaxed) {
        LARGEST.store(size, Relaxed);
    }
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// What is taken beside the file: tables of fixed size, and a few bytes in memory for each byte of a list.
const BESIDE: usize = 256 << 10;
const TIMES: usize = 16;

const HEAD: usize = 40;
const TAIL: usize = 64;
const BLOCK_HEAD: usize = 24;
const SECTION_HEAD: usize = 16;
const INDEX_ENTRY: usize = 32;

#[derive(Debug, Arbitrary)]
enum Case {
    Raw(Vec<u8>),
    Edited {
        base: u8,
        edits: Vec<(u16, u8)>,
        cut: Option<u16>,
        is_mended: bool,
    },
    Sections {
        base: u8,
        blocks: Vec<(u8, Vec<Section>)>,
    },
}

/// A section of a block: values of 8 bytes, or with such lengths.
#[derive(Debug, Arbitrary)]
struct Section {
    lengths: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

/// Partials of a query, and how many columns they keep.
struct Base {
    bytes: Vec<u8>,
    /// Of other records.
    other: Partial,
    columns: usize,
}

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let numbers = [
        "sum",
        "min",
        "max",
        "mean",
        "range",
        "var",
        "stddev",
        "var_pop",
        "stddev_pop",
        "median",
        "p99.9",
    ];
    let texts = [
        "count", "first", "last", "lexmin", "lexmax", "distinct", "mode",
    ];
    let mut names: Vec<Vec<&str>> = vec![vec!["count"], numbers.to_vec(), texts.to_vec()];
    names.push([&numbers[..], &texts].concat());
    let bases = names
        .iter()
        .flat_map(|names| [1, 2].map(|keys| (names, keys)));
    let bases: Vec<Base> = bases
        .map(|(names, keys)| {
            let query = (1..=keys).fold(Query::new(b','), |query, key| query.key(key));
            let query = names.iter().fold(query.float(false), |query, name| {
                let column = if numbers.contains(name) { 3 } else { 4 };
                query.aggregate(name, Some(column.into())).expect("it is known")
            });
            let text = b"a,x,1.5,red\nb,,-20,\nb,y,99999999999999999999.25,blue\na,x,3,green\nc,\x00,,red\n";
            let other = saved(&query, b"a,x,0.25,blue\nd,y,-7,\n");
            Base {
                bytes: saved(&query, text),
                other: Partial::read("other", other).expect("it was just saved"),
                columns: 0,
            }
            .counted()
        })
        .collect();
    // What isn't edited is the same each time: it is checked here.
    for (base, other) in bases.iter().zip(bases.iter().cycle().skip(2)) {
        check(base.bytes.clone(), base).expect("it was just saved");
        check(base.bytes.clone(), other).expect_err("they are of other queries");
    }
    bases
});

impl Base {
    fn counted(mut self) -> Base {
        let partial = Partial::read("base", self.bytes.clone()).expect("it was just saved");
        let mut groups = partial.groups();
        groups
            .for_each(|group| {
                self.columns = group.columns();
                Ok(())
            })
            .expect("it was just saved");
        self
    }
}

fn saved(query: &Query, text: &'static [u8]) -> Vec<u8> {
    let ran = query.partial(&Input::memory([text]), &Config::default());
    let (partial, ..) = ran.expect("query and records are right");
    partial.to_bytes().expect("it is memory").into_owned()
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    XxHash3_64::oneshot(bytes).to_le_bytes()
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let found = bytes.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(found.try_into().ok()?)).ok()
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + what.len()) {
        to.copy_from_slice(what);
    }
}

/// Makes all checksums right that can be found.
fn mend(bytes: &mut Vec<u8>) -> Option<()> {
    let tail = bytes.len().checked_sub(TAIL)?;
    let description = long(bytes, 16)?.checked_next_multiple_of(8)?;
    let end = HEAD.checked_add(description)?;
    let sum = checksum(bytes.get(HEAD..end)?);
    put(bytes, 24, &sum);
    let sum = checksum(&bytes[..32]);
    put(bytes, 32, &sum);
    put(bytes, tail + 32, &sum);
    let index = long(bytes, tail)?;
    if let Some(entries) = bytes.get(index..tail).map(<[u8]>::len) {
        for at in (index..index + entries / INDEX_ENTRY * INDEX_ENTRY).step_by(INDEX_ENTRY) {
            let (from, len) = (long(bytes, at)?, long(bytes, at + 8)?);
            let Some(block) = bytes.get(from.checked_add(8)?..from.checked_add(len)?) else {
                continue;
            };
            let sum = checksum(block);
            put(bytes, from, &sum);
            put(bytes, at + 24, &sum);
        }
        let sum = checksum(&bytes[index..tail]);
        put(bytes, tail + 40, &sum);
    }
    let sum = checksum(&bytes[tail..tail + 48]);
    put(bytes, tail + 48, &sum);
    Some(())
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// A file of such blocks.
fn built(base: &Base, blocks: &[(u8, Vec<Section>)]) -> Vec<u8> {
    let description = long(&base.bytes, 16)
        .expect("it is whole")
        .next_multiple_of(8);
    let mut bytes = base.bytes[..HEAD + description].to_vec();
    let (mut index, mut all) = (Vec::new(), 0_u64);
    for (groups, given) in blocks {
        let sections: Vec<&Section> = given.iter().take(1 + base.columns).collect();
        let from = bytes.len();
        bytes.resize(from + BLOCK_HEAD + sections.len() * SECTION_HEAD, 0);
        put(&mut bytes, from + 16, &u32::from(*groups).to_le_bytes());
        put(
            &mut bytes,
            from + 20,
            &(sections.len() as u32).to_le_bytes(),
        );
        for (at, section) in sections.into_iter().enumerate() {
            let head = from + BLOCK_HEAD + at * SECTION_HEAD;
            if let Some(lengths) = &section.lengths {
                put(&mut bytes, head, &1_u32.to_le_bytes());
                let mut end = 0_u32;
                for &length in lengths
                    .iter()
                    .chain(std::iter::repeat(&0))
                    .take(usize::from(*groups))
                {
                    end += u32::from(length);
                    bytes.extend(end.min(section.bytes.len() as u32).to_le_bytes());
                }
                pad(&mut bytes);
            }
            put(
                &mut bytes,
                head + 8,
                &(section.bytes.len() as u64).to_le_bytes(),
            );
            bytes.extend(&section.bytes);
            pad(&mut bytes);
        }
        let len = (bytes.len() - from) as u64;
        put(&mut bytes, from + 8, &len.to_le_bytes());
        for entry in [from as u64, len, u64::from(*groups), 0] {
            index.extend(entry.to_le_bytes());
        }
        all += u64::from(*groups);
    }
    let at = bytes.len();
    bytes.extend(index);
    let file = (bytes.len() + TAIL) as u64;
    for number in [at as u64, blocks.len() as u64, all, file, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"RFP-end\n");
    mend(&mut bytes);
    bytes
}

fn one_line(error: &Error) {
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.is_empty(), "{text:?}");
}

/// Where texts go that are made, but not read.
struct Unread;

impl Write for Unread {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        Ok(())
    }
}

/// Looks at all groups, and makes texts of all values; returns how many groups there are.
fn walk(partial: &Partial) -> Result<u64, Error> {
    let mut count = 0;
    partial.groups().for_each(|group| {
        let parts = group.parts();
        let _ = write!(Unread, "{} {}", parts.len(), group.key().len());
        for at in 0..group.columns() {
            let _ = write!(Unread, "{}", group.value(at));
        }
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn merged(partials: &[&Partial]) -> Result<Vec<u8>, Error> {
    let merged = Partial::merge(partials.iter().copied())?;
    let _ = merged.missing().to_string();
    let mut bytes = Vec::new();
    match merged.save(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => match error.into_inner().map(|inner| inner.downcast::<Error>()) {
            Some(Ok(error)) => Err(*error),
            _ => panic!("memory takes everything"),
        },
    }
}

fn answer(partials: &[&Partial]) -> Result<(), Error> {
    let answer = Partial::merge(partials.iter().copied())?.answer(&Shown::default())?;
    let _ = write_grid(
        answer.names(),
        &answer,
        GridFormat::Csv,
        None,
        &mut Vec::new(),
    );
    Ok(())
}

fn check(bytes: Vec<u8>, base: &Base) -> Result<(), Error> {
    LARGEST.store(0, Relaxed);
    let most = BESIDE + TIMES * bytes.len();
    let partial = Partial::read("fuzz", bytes)?;
    let _ = partial.inspected();
    let groups = walk(&partial)?;
    partial.check().expect("all of it was read");
    let largest = LARGEST.load(Relaxed);
    assert!(
        largest <= most,
        "{largest} bytes at once for a file of {}",
        partial.bytes()
    );
    assert_eq!(groups, partial.len());
    let once = merged(&[&partial])?;
    if let Ok(shards) = partial.split(3) {
        let all: Vec<&Partial> = shards.iter().collect();
        assert_eq!(merged(&all).expect("they are all"), once);
    }
    let largest = LARGEST.load(Relaxed);
    assert!(
        largest <= most,
        "{largest} bytes at once for a file of {}",
        partial.bytes()
    );
    let back = Partial::read("merged", once.clone()).expect("it was just saved");
    assert_eq!(back.len(), partial.len());
    assert_eq!(merged(&[&back]).expect("it was just saved"), once);
    answer(&[&partial])?;
    let both = merged(&[&partial, &base.other])?;
    let both = Partial::read("both", both).expect("it was just saved");
    walk(&both).expect("it was just saved");
    answer(&[&base.other, &partial])
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let Ok(case) = Case::arbitrary(&mut input) else {
        return;
    };
    let base = |number: u8| &BASES[usize::from(number) % BASES.len()];
    let (bytes, base) = match &case {
        Case::Raw(bytes) => (bytes.clone(), base(0)),
        Case::Edited {
            base: number,
            edits,
            cut,
            is_mended,
        } => {
            let base = base(*number);
            let mut bytes = base.bytes.clone();
            for &(at, byte) in edits {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(usize::from(*cut) % (bytes.len() + 1));
            }
            if *is_mended {
                mend(&mut bytes);
            }
            if bytes == base.bytes {
                return;
            }
            (bytes, base)
        }
        Case::Sections {
            base: number,
            blocks,
        } => (built(base(*number), blocks), base(*number)),
    };
    if let Err(error) = check(bytes, base) {
        one_line(&error);
    }
});
