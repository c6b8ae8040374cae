//! Records at the edges of blocks, blocks without any newline, and the limit on records.

use std::path::PathBuf;

use proptest::prelude::*;
use ringfold::Config;
use ringfold::query::OnError;

use crate::answers::{any_config, compare};
use crate::catalogue::drawn;
use crate::reference;
use crate::support::{WAYS, dir, end, ringfold, str, write};

/// A text of exactly `len` bytes, rows of any length, whose newline nearest to `edge` stands there.
fn newline_at(edge: usize, len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut n = 0;
    while text.len() + 40 < edge {
        text.extend(format!("key {};{}.{}\n", n % 97, n % 50, n % 10).bytes());
        n += 1;
    }
    let key = edge - text.len() - 4;
    text.extend(vec![b'e'; key]);
    text.extend(b";1.5\n");
    assert_eq!((text.len(), text[edge]), (edge + 1, b'\n'));
    while text.len() + 40 < len {
        text.extend(format!("key {};-{}.{}\n", n % 89, n % 70, n % 10).bytes());
        n += 1;
    }
    text.extend(vec![b'f'; len - text.len() - 4]);
    text.extend(b";2.5");
    text
}

#[test]
fn a_newline_at_an_edge_and_a_byte_either_side() {
    let dir = dir();
    let mut cases = 0;
    for block in [4096, 65536] {
        for off in [-2, -1, 0, 1] {
            let edge = (2 * block as i64 + off) as usize;
            for len in [3 * block - 1, 3 * block, 3 * block + 1] {
                let text = newline_at(edge, len);
                let answer = reference::aggregate(&[&text], b';', 1 << 20);
                let paths = [write(dir.path(), "text", &text)];
                for way in WAYS.iter() {
                    let config = Config {
                        block_size: Some(block),
                        queue_depth: Some(3),
                        threads: Some(2),
                        ..way.config()
                    };
                    compare(&paths, &config, OnError::Fail, &answer);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases >= 100);
}

#[test]
fn files_as_long_as_blocks_and_pages() {
    let dir = dir();
    for len in [4095, 4096, 4097, 8191, 8192, 8193, 65_535, 65_536, 65_537] {
        let text = newline_at(len / 2, len);
        for text in [text.clone(), [&text[..len - 1], b"\n"].concat()] {
            let paths = [write(dir.path(), "text", &text)];
            let answer = reference::aggregate(&[&text], b';', 1 << 20);
            for way in WAYS.iter() {
                for block in [4096, 32_768] {
                    let config = Config {
                        block_size: Some(block),
                        ..way.config()
                    };
                    compare(&paths, &config, OnError::Fail, &answer);
                }
            }
        }
    }
}

/// Rows around records of `lens` bytes.
fn long_records(lens: &[usize]) -> Vec<u8> {
    let mut text = b"first;1.0\n".to_vec();
    for (at, &len) in lens.iter().enumerate() {
        text.extend(vec![b'a' + at as u8; len - 4]);
        text.extend(b";2.5\nbetween;3.0\n");
    }
    text.extend(b"last;4.0");
    text
}

#[test]
fn records_over_many_blocks() {
    let dir = dir();
    let text = long_records(&[100_000, 5_000, 4_096, 300_000, 20, 70_000]);
    let paths = [write(dir.path(), "text", &text)];
    let answer = reference::aggregate(&[&text], b';', 1 << 20);
    for way in WAYS.iter() {
        for block in [4096, 16_384, 65_536, 1 << 20] {
            for depth in [1, 2, 16] {
                let config = Config {
                    block_size: Some(block),
                    queue_depth: Some(depth),
                    buffers: Some(depth + 1),
                    threads: Some(2),
                    ..way.config()
                };
                compare(&paths, &config, OnError::Fail, &answer);
            }
        }
    }
}

#[test]
fn the_limit_on_records_is_exact() {
    let dir = dir();
    for max_record in [10, 4_095, 4_096, 4_097, 100_000] {
        for over in [0, 1] {
            // The long record in the middle, and at the end without a newline.
            let middle = long_records(&[10, max_record + over, 7]);
            let mut end = long_records(&[]);
            end.truncate(10);
            end.extend(vec![b'k'; max_record + over - 4]);
            end.extend(b";9.9");
            for text in [middle, end] {
                let paths = [write(dir.path(), "text", &text)];
                let answer = reference::aggregate(&[&text], b';', max_record);
                if max_record > 20 {
                    assert_eq!(answer.malformed.len(), over);
                }
                for way in WAYS.iter() {
                    for block in [4096, 1 << 20] {
                        let config = Config {
                            block_size: Some(block),
                            max_record,
                            threads: Some(2),
                            ..way.config()
                        };
                        compare(&paths, &config, OnError::Fail, &answer);
                        compare(&paths, &config, OnError::Skip, &answer);
                    }
                }
            }
        }
    }
}

#[test]
fn the_default_limit_is_a_mebibyte() {
    let dir = dir();
    for over in [0, 1] {
        let text = long_records(&[(1 << 20) + over]);
        let path = write(dir.path(), "text", &text);
        for way in WAYS.iter() {
            let mut command = ringfold(["aggregate"]);
            let ended = end(command.args(way.flags()).arg(&path));
            if over == 0 {
                let answer = reference::aggregate(&[&text], b';', 1 << 20);
                assert!(
                    ended.answer() == answer.text(reference::Style::OneBrc),
                    "{way:?}"
                );
            } else {
                let want = format!(
                    "{}: byte 10-1048586 (line 2): a record of more than 1048576 bytes: \
                     raise --max-record",
                    str(&path)
                );
                assert_eq!(ended.failure(1), want, "{way:?}");
            }
        }
    }
}

#[test]
fn a_file_without_any_newline() {
    let dir = dir();
    let mut text = vec![b'x'; 900_000];
    text.extend(b";-12.3");
    let paths = [write(dir.path(), "text", &text)];
    for (max_record, fits) in [(1 << 20, true), (text.len(), true), (text.len() - 1, false)] {
        let answer = reference::aggregate(&[&text], b';', max_record);
        assert_eq!(answer.lowest().is_none(), fits);
        for way in WAYS.iter() {
            for block in [4096, 65_536, 1 << 20] {
                let config = Config {
                    block_size: Some(block),
                    max_record,
                    ..way.config()
                };
                compare(&paths, &config, OnError::Fail, &answer);
            }
        }
    }
}

fn any_lens() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(
        prop_oneof![5..40usize, 60..300usize, 4_000..9_000usize],
        1..8,
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: drawn(60, 200), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn long_records_in_any_way(lens in any_lens(), config in any_config(), max in 300..10_000usize) {
        let dir = dir();
        let texts = [long_records(&lens), long_records(&lens[..1])];
        let paths: Vec<PathBuf> =
            (0..2).map(|n| write(dir.path(), &n.to_string(), &texts[n])).collect();
        for max_record in [1 << 20, max] {
            let answer = reference::aggregate(&texts, b';', max_record);
            let config = Config { max_record, ..config.clone() };
            compare(&paths, &config, OnError::Fail, &answer);
        }
    }
}
