//! Keys that are merged against a map, and blocks that are damaged.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::decimal::number::Exact;
use crate::partial::block::BLOCK_BYTES;
use crate::partial::description::{
    Aggregate, Column, Counts, Description, Extent, Rule, Source, Span,
};
use crate::partial::merge::*;
use crate::partial::writer::Writer;

/// Counts and sums by key.
pub(crate) fn description(rows: u64) -> Description {
    let column = |rule, scale| Column { rule, scale };
    let aggregate = |name: &str, columns| Aggregate {
        name: name.into(),
        title: name.into(),
        scale: 2,
        is_numeric: true,
        columns,
    };
    let counts = Counts {
        rows,
        ..Counts::default()
    };
    Description {
        query: vec![(b"key".to_vec(), b"city".to_vec())],
        keys: vec![b"city".to_vec()],
        aggregates: vec![
            aggregate("mean", vec![column(Rule::Count, 0), column(Rule::Sum, 2)]),
            aggregate("lexmax", vec![column(Rule::GreatestText, 0)]),
        ],
        counts,
        sources: vec![Source {
            name: b"a.csv".to_vec(),
            is_stream: false,
            device: 1,
            inode: 2,
            bytes: 100,
            seconds: -5,
            nanoseconds: 7,
            fingerprint: 99,
        }],
        spans: vec![Span {
            source: 0,
            from: 3,
            to: 100,
            part: 2,
            parts: 5,
            division: 77,
            extent: Extent::Plain,
        }],
    }
}

type Values = BTreeMap<Vec<u8>, (u64, i128)>;

fn text(count: u64) -> Vec<u8> {
    b"x".repeat(count as usize % 9)
}

fn file(values: &Values) -> Vec<u8> {
    let rows = values.values().map(|(count, _)| count).sum();
    let mut writer = Writer::new(Vec::new(), &description(rows)).unwrap();
    for (key, (count, sum)) in values {
        let to = writer.gathered();
        to.keys.push(key);
        to.columns[0].push_count(*count);
        to.columns[1].push_exact(Some(&Exact::small(*sum, 2)));
        to.columns[2].push_text(&text(*count));
        writer.write_full().unwrap();
    }
    writer.finish().unwrap()
}

fn reader(bytes: Vec<u8>) -> Reader {
    Reader::in_memory("a.part".into(), bytes).unwrap()
}

fn merged(readers: &[Reader]) -> Result<Vec<u8>> {
    let counts = readers.iter().map(|reader| reader.description.counts);
    let rows = counts.map(|counts| counts.rows).sum();
    let merge = || Merge::new(readers.iter().map(|reader| (reader, vec![0])));
    let description = description(rows);
    let want = alone(merge(), &description);
    // In ranges of keys, by any number of threads.
    for pool in &*POOLS {
        let mut writer = Writer::new(Vec::new(), &description).unwrap();
        let merged = pool.install(|| {
            merge().for_each(
                &description,
                |groups| groups,
                |parts| {
                    parts
                        .into_iter()
                        .for_each(|groups| writer.gathered().append(groups));
                    writer.write_full()
                },
            )
        });
        let got = merged.map(|written| {
            written.unwrap();
            writer.finish().unwrap()
        });
        match (&got, &want) {
            (Ok(got), Ok(want)) => assert!(got == want),
            (Err(got), Err(want)) => assert_eq!(got.to_string(), want.to_string()),
            _ => panic!("{got:?} {want:?}"),
        }
    }
    want
}

fn alone(mut merge: Merge<'_>, description: &Description) -> Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), description).unwrap();
    while merge.next(writer.gathered())? {
        writer.write_full().unwrap();
    }
    Ok(writer.finish().unwrap())
}

static POOLS: LazyLock<Vec<ThreadPool>> = LazyLock::new(|| {
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    [1, 3].map(|threads| pool(threads).unwrap()).into()
});

fn values(most: usize) -> impl Strategy<Value = Values> {
    let key = prop_oneof![
        4 => prop::collection::vec(0..4_u8, 0..4),
        1 => "[ab]{7,12}".prop_map(String::into_bytes),
        1 => "[a-z]{0,300}".prop_map(String::into_bytes),
    ];
    let sum = prop_oneof![
        8 => -1000..1000_i128,
        1 => i128::from(i64::MIN)..=i128::from(i64::MAX),
        1 => any::<i128>().prop_map(|sum| sum / 2),
        1 => Just(i128::from(i64::MAX)),
        1 => Just(i128::from(i64::MIN)),
    ];
    prop::collection::btree_map(key, (1..1000_u64, sum), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Any number of files gives the file that a map gives, to the byte.
    #[test]
    fn files_are_merged(
        parts in prop_oneof![
            3 => prop::collection::vec(values(40), 1..7),
            1 => prop::collection::vec(values(8), 7..60),
        ],
        repeat in 1..60_usize,
        are_apart in any::<bool>(),
    ) {
        // Files may have no key in common, and all of one before those of the next.
        let parts: Vec<Values> = match are_apart {
            true => (0_u8..).zip(parts).map(|(at, part)| {
                let own = |(key, value): (Vec<u8>, _)| ([&[at], &key[..]].concat(), value);
                part.into_iter().map(own).collect()
            }).collect(),
            false => parts,
        };
        // Many groups, so that there are several blocks.
        let many = |values: &Values| -> Values {
            let each = |(key, value): (&Vec<u8>, &(u64, i128))| {
                let key = key.clone();
                let value = *value;
                (0..repeat).map(move |at| ([&key[..], at.to_string().as_bytes()].concat(), value))
            };
            values.iter().flat_map(each).collect()
        };
        let parts: Vec<Values> = parts.iter().map(many).collect();
        let mut want = Values::new();
        let mut texts = BTreeMap::<Vec<u8>, Vec<u8>>::new();
        for (key, (count, sum)) in parts.iter().flatten() {
            let entry = want.entry(key.clone()).or_default();
            let Some(both) = entry.1.checked_add(*sum) else {
                return Ok(());
            };
            *entry = (entry.0 + count, both);
            let known = texts.entry(key.clone()).or_default();
            *known = text(*count).max(known.clone());
        }
        let readers: Vec<Reader> = parts.iter().map(|part| reader(file(part))).collect();
        let got = merged(&readers).unwrap();
        let back = reader(got.clone());
        prop_assert_eq!(back.groups(), want.len() as u64);
        let mut rows = want.iter().zip(texts.values());
        for block in 0..back.blocks() {
            let loaded = back.load(block, Vec::new()).unwrap();
            let view = loaded.view();
            for row in 0..view.len() {
                let ((key, (count, sum)), text) = rows.next().unwrap();
                prop_assert_eq!(view.keys.get(row), &key[..]);
                prop_assert_eq!(view.columns[0].count(row), *count);
                prop_assert_eq!(view.columns[1].exact(row), Some(Exact::small(*sum, 2)));
                prop_assert_eq!(view.columns[2].text(row), &text[..]);
            }
        }
        // Of one file the same file comes.
        prop_assert_eq!(&merged(&[back]).unwrap(), &got);
    }
}

fn many() -> Values {
    let key = |at: u32| format!("key {at:06}").into_bytes();
    (0..20_000).map(|at| (key(at), (3, at.into()))).collect()
}

#[test]
fn blocks_are_small() {
    let whole = reader(file(&many()));
    assert!(whole.blocks() > 3);
    let largest = (0..whole.blocks()).map(|at| whole.load(at, Vec::new()).unwrap().view().len());
    assert!(largest.max().unwrap() < BLOCK_BYTES / 30);
}

/// No damage goes unnoticed, and none makes it crash.
#[test]
fn damage_is_noticed() {
    let values: Values = many().into_iter().take(40).collect();
    let good = file(&values);
    let check = |bytes: &[u8]| -> Result<()> {
        let reader = Reader::in_memory("a.part".into(), bytes.to_vec())?;
        merged(std::slice::from_ref(&reader)).map(drop)
    };
    check(&good).unwrap();
    for at in 0..good.len() {
        for bit in [1, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            let error = check(&bad).unwrap_err().to_string();
            assert!(
                error.starts_with("a.part: ") && error.lines().count() == 1,
                "{error}"
            );
        }
        let error = check(&good[..at]).unwrap_err().to_string();
        assert!(
            error.contains("cut short") || error.contains("isn't a partial"),
            "{at}: {error}"
        );
    }
    for more in [&b"\0"[..], b"12345678", &good] {
        check(&[&good, more].concat()).unwrap_err();
    }
    // The start of one and the end of another.
    let other = file(&many().into_iter().skip(1).take(40).collect());
    assert_eq!(other.len(), good.len());
    for cut in (8..good.len()).step_by(8) {
        let mixed = [&good[..cut], &other[cut..]].concat();
        assert!(
            mixed == good || mixed == other || check(&mixed).is_err(),
            "{cut}"
        );
    }
}

/// Also within a block that isn't the first, and where a block is replaced by one of the same length.
#[test]
fn damage_of_any_block_is_noticed() {
    let good = file(&many());
    let check = |bytes: &[u8]| -> Result<()> {
        let reader = Reader::in_memory("a.part".into(), bytes.to_vec())?;
        merged(std::slice::from_ref(&reader)).map(drop)
    };
    check(&good).unwrap();
    let mut random = 1_u64;
    for _ in 0..200 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut bad = good.clone();
        bad[(random >> 20) as usize % good.len()] ^= 1 << (random >> 60 & 7);
        let error = check(&bad).unwrap_err().to_string();
        assert!(error.starts_with("a.part: "), "{error}");
    }
    // docs/partial-format.md: where the index begins, and in it where each block lies.
    let long = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    let index = long(good.len() - 64);
    let block =
        |at: usize| long(index + 32 * at)..long(index + 32 * at) + long(index + 32 * at + 8);
    let (one, two) = (block(1), block(2));
    assert_eq!((one.len(), one.end), (two.len(), two.start));
    let mut swapped = good.clone();
    swapped[one.start..two.end].rotate_left(one.len());
    assert!(swapped != good);
    check(&swapped).unwrap_err();
}

#[test]
fn keys_that_are_not_in_order_are_refused() {
    for keys in [&["b", "a"][..], &["a", "a"], &["aaaaaaaab", "aaaaaaaaa"]] {
        let mut writer = Writer::new(Vec::new(), &description(10)).unwrap();
        for key in keys {
            let to = writer.gathered();
            to.keys.push(key.as_bytes());
            to.columns[0].push_count(1);
            to.columns[1].push_exact(None);
            to.columns[2].push_text(b"");
        }
        let bad = reader(writer.finish().unwrap());
        let error = merged(&[bad]).unwrap_err().to_string();
        assert!(error.contains("keys aren't in order"), "{error}");
    }
    // Also from one block to the next.
    let mut writer = Writer::new(Vec::new(), &description(10)).unwrap();
    for key in [b"b".repeat(BLOCK_BYTES), b"a".to_vec()] {
        let to = writer.gathered();
        to.keys.push(&key);
        to.columns[0].push_count(1);
        to.columns[1].push_exact(None);
        to.columns[2].push_text(b"");
        writer.write_full().unwrap();
    }
    let bad = reader(writer.finish().unwrap());
    assert_eq!(bad.blocks(), 2);
    let error = merged(&[bad]).unwrap_err().to_string();
    assert!(error.contains("keys aren't in order"), "{error}");
}

#[test]
fn counts_are_no_greater_than_rows() {
    let mut writer = Writer::new(Vec::new(), &description(2)).unwrap();
    let to = writer.gathered();
    to.keys.push(b"a");
    to.columns[0].push_count(3);
    to.columns[1].push_exact(None);
    to.columns[2].push_text(b"");
    let bad = reader(writer.finish().unwrap());
    let error = merged(&[bad]).unwrap_err().to_string();
    assert!(error.contains("greater than the number of rows"), "{error}");
}
