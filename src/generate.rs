//! Makes measurement files for the One Billion Row Challenge: `key;value` lines from a seed.
//!
//! Rows are made in chunks of fixed size on all threads and written in order by the calling one. A row
//! depends only on the seed and on its number (`noise`), so that the bytes are the same for any number of
//! threads. `keys` makes the names.

mod keys;

use ringfold_bench::noise::{Normal, Words};

use crate::generate::keys::{KEYS_MAX, KeySet, Keys, WINDOW};
use crate::output::ordered::make_in_order;
use std::io::{self, Write};

/// Rows of a chunk: about half a megabyte, so that a chunk is still in the core's cache when it
/// is written.
const CHUNK_ROWS: u64 = 32 * 1024;
/// The shortest line: `a;0.0` and its newline.
const LINE_BYTES_MIN: u64 = 6;
/// The longest value with its delimiter and newline: `;-99.9\n`.
const VALUE_BYTES_MAX: usize = 7;
/// Values are held within ±99.9.
const VALUE_TENTHS_MAX: i32 = 999;

/// What to generate.
///
/// Each line is a key, drawn uniformly, and a value, drawn from a normal distribution (by table:
/// an approximation cut at 4.5 sigma) around the key's own mean with a standard deviation of 10.0,
/// rounded to one decimal and held within ±99.9; zero is never negative.
///
/// At least one of `rows` and `bytes` must be given; with both, the tighter one counts.
///
/// The keys and their means depend on `keys` alone, so that files of different seeds share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generate {
    /// Exactly so many rows.
    pub rows: Option<u64>,
    /// As many whole rows as fit in so many bytes.
    pub bytes: Option<u64>,
    /// So many invented names of 1 to 100 bytes, all distinct (1 to 2^32), instead of the
    /// challenge's 413 stations.
    pub keys: Option<u64>,
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Threads that make rows; 0 for one a core. With 1 the calling thread does it all, otherwise
    /// it only writes.
    pub threads: usize,
}

/// What was generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Lines written.
    pub rows: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl Generate {
    /// Writes the rows, in order, from the calling thread, and flushes. `progress` is called after every
    /// chunk with the rows and bytes written so far.
    ///
    /// # Errors
    /// The errors of `out`; [`io::ErrorKind::InvalidInput`] if neither `rows` nor
    /// `bytes` is given or if `keys` is out of range.
    pub fn run(
        &self,
        out: &mut impl Write,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> io::Result<Volume> {
        let rows_max = self.rows_max()?;
        let threads = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let writer = Writer {
            out,
            progress,
            bytes_max: self.bytes,
            written: Volume::default(),
        };
        match KeySet::new(self.keys) {
            KeySet::KeyTable(keys) => pump(&Rows::new(keys, self.seed), rows_max, threads, writer),
            KeySet::Invented(keys) => pump(&Rows::new(keys, self.seed), rows_max, threads, writer),
        }
    }

    /// The most rows there can be: with `bytes` alone, as many as the shortest lines would give.
    fn rows_max(&self) -> io::Result<u64> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if self
            .keys
            .is_some_and(|keys| !(1..=KEYS_MAX).contains(&keys))
        {
            return invalid("the number of keys must be from 1 to 4294967296");
        }
        match (self.rows, self.bytes) {
            (None, None) => invalid("give a number of rows or of bytes"),
            (Some(rows), None) => Ok(rows),
            (rows, Some(bytes)) => Ok(rows.unwrap_or(u64::MAX).min(bytes / LINE_BYTES_MIN)),
        }
    }
}

/// Makes rows of any number.
struct Rows<K> {
    keys: K,
    seed: u64,
    normal: Normal,
    values: Values,
}

impl<K: Keys> Rows<K> {
    fn new(keys: K, seed: u64) -> Self {
        Self {
            keys,
            seed,
            normal: Normal::default(),
            values: Values::new(),
        }
    }

    /// A buffer for any chunk of at most `rows` rows. Its pages take memory only once they are written to,
    /// and most never are.
    fn buffer(&self, rows: u64) -> Vec<u8> {
        let row_bytes_max = self.keys.longest() + VALUE_BYTES_MAX;
        vec![0; rows.min(CHUNK_ROWS) as usize * row_bytes_max + WINDOW]
    }

    /// Writes `rows` rows from `first_row` on into the buffer; returns how many bytes that took.
    fn fill(&self, first_row: u64, rows: u64, buffer: &mut [u8]) -> usize {
        let mut words = Words::from_row(self.seed, first_row);
        let keys = self.keys.count();
        let mut at = 0;
        for _ in 0..rows {
            // One multiplication gives both draws: its upper half is the key, uniform in 0..keys; its
            // lower half is where between two keys the word fell, which is uniform too.
            let draw = u128::from(words.next_word()) * u128::from(keys);
            let window = buffer[at..]
                .first_chunk_mut()
                .expect("the buffer fits every row");
            let (len, mean) = self.keys.put((draw >> 64) as u64, window);
            let value = self.values.get(mean + self.normal.tenths(draw as u64));
            window[len..][..8].copy_from_slice(value);
            at += len + usize::from(value[7]);
        }
        at
    }
}

/// The text of every value, from its delimiter to its newline; the eighth byte is its length.
struct Values {
    texts: Vec<[u8; 8]>,
}

impl Values {
    fn new() -> Self {
        let text = |tenths: i32| {
            let sign = if tenths < 0 { "-" } else { "" };
            let text = format!(";{sign}{}.{}\n", tenths.abs() / 10, tenths.abs() % 10);
            let mut padded = [0; 8];
            padded[..text.len()].copy_from_slice(text.as_bytes());
            padded[7] = text.len() as u8;
            padded
        };
        Self {
            texts: (-VALUE_TENTHS_MAX..=VALUE_TENTHS_MAX).map(text).collect(),
        }
    }

    #[inline(always)]
    fn get(&self, tenths: i32) -> &[u8; 8] {
        let held = tenths.clamp(-VALUE_TENTHS_MAX, VALUE_TENTHS_MAX);
        &self.texts[(held + VALUE_TENTHS_MAX) as usize]
    }
}

/// The writer: it writes chunks in order, counts, and stops at the limit of bytes.
struct Writer<'a, W> {
    out: &'a mut W,
    progress: &'a (dyn Fn(u64, u64) + Sync),
    bytes_max: Option<u64>,
    written: Volume,
}

impl<W: Write> Writer<'_, W> {
    /// Writes a chunk, or the whole rows of it that fit. Returns whether more may follow.
    fn chunk(&mut self, chunk: &[u8], rows: u64) -> io::Result<bool> {
        let left = self
            .bytes_max
            .map_or(u64::MAX, |max| max - self.written.bytes);
        let fits = chunk.len() as u64 <= left;
        let (chunk, rows) = if fits {
            (chunk, rows)
        } else {
            whole_rows(&chunk[..left as usize])
        };
        self.out.write_all(chunk)?;
        self.written.rows += rows;
        self.written.bytes += chunk.len() as u64;
        (self.progress)(self.written.rows, self.written.bytes);
        Ok(fits)
    }

    fn finish(self) -> io::Result<Volume> {
        self.out.flush()?;
        Ok(self.written)
    }
}

/// The whole rows at the start of a chunk's part, and how many they are.
fn whole_rows(part: &[u8]) -> (&[u8], u64) {
    let end = part
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let rows = part[..end].iter().filter(|&&byte| byte == b'\n').count();
    (&part[..end], rows as u64)
}

/// Makes chunks on `threads` threads and hands them to the writer in order.
fn pump<K: Keys>(
    rows: &Rows<K>,
    rows_max: u64,
    threads: usize,
    mut writer: Writer<'_, impl Write>,
) -> io::Result<Volume> {
    let chunks = rows_max.div_ceil(CHUNK_ROWS);
    let rows_of = |chunk: u64| (rows_max - chunk * CHUNK_ROWS).min(CHUNK_ROWS);
    if threads == 1 || chunks <= 1 {
        let mut buffer = rows.buffer(rows_max);
        for chunk in 0..chunks {
            let len = rows.fill(chunk * CHUNK_ROWS, rows_of(chunk), &mut buffer);
            if !writer.chunk(&buffer[..len], rows_of(chunk))? {
                break;
            }
        }
        return writer.finish();
    }

    let threads = threads.min(usize::try_from(chunks).unwrap_or(usize::MAX));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("generate-{index}"))
        .build()
        .map_err(io::Error::other)?;
    let ahead = 2 * threads as u64 + 2;
    let size = rows.buffer(rows_max).len();
    let make = |chunk, buffer: &mut Vec<u8>| {
        buffer.resize(size, 0);
        let len = rows.fill(chunk * CHUNK_ROWS, rows_of(chunk), buffer);
        buffer.truncate(len);
    };
    let mut written = Ok(true);
    make_in_order(&pool, chunks, ahead, make, |chunk, text| {
        written = writer.chunk(text, rows_of(chunk));
        matches!(written, Ok(true))
    });
    written.and_then(|_| writer.finish())
}

#[cfg(test)]
mod tests {
    use crate::generate::*;
    use std::collections::HashMap;
    use std::sync::Mutex;

    fn made(generate: &Generate) -> Vec<u8> {
        let mut out = Vec::new();
        let generated = generate.run(&mut out, &|_, _| ()).unwrap();
        assert_eq!(generated.bytes, out.len() as u64);
        assert_eq!(
            generated.rows,
            out.iter().filter(|&&byte| byte == b'\n').count() as u64
        );
        out
    }

    /// Splits a line by the challenge's grammar.
    fn key_and_tenths(line: &[u8]) -> (&str, i32) {
        let line = std::str::from_utf8(line).expect("UTF-8");
        let (key, value) = line.split_once(';').expect("a delimiter");
        assert!((1..=100).contains(&key.len()), "{line:?}");
        assert!(!key.chars().any(char::is_control), "{line:?}");
        let digits = value.strip_prefix('-').unwrap_or(value);
        let (whole, tenth) = digits.split_once('.').expect("a decimal point");
        assert!(
            (1..=2).contains(&whole.len()) && tenth.len() == 1,
            "{line:?}"
        );
        assert!(whole.len() == 1 || !whole.starts_with('0'), "{line:?}");
        assert!(
            digits
                .bytes()
                .all(|byte| byte == b'.' || byte.is_ascii_digit()),
            "{line:?}"
        );
        assert_ne!(value, "-0.0");
        let size: i32 = whole.parse::<i32>().unwrap() * 10 + tenth.parse::<i32>().unwrap();
        (key, if value.starts_with('-') { -size } else { size })
    }

    fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let body = bytes.strip_suffix(b"\n").expect("the last line is whole");
        body.split(|&byte| byte == b'\n')
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bytes() {
        for keys in [None, Some(1000)] {
            let with = |threads| {
                made(&Generate {
                    rows: Some(9 * CHUNK_ROWS + 5),
                    keys,
                    seed: 42,
                    threads,
                    ..Generate::default()
                })
            };
            let one = with(1);
            for threads in [2, 3, 8] {
                assert!(one == with(threads), "{threads} threads differ");
            }
        }
    }

    #[test]
    fn rows_are_exact() {
        for rows in [0, 1, 2, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 100_000] {
            for threads in [1, 2] {
                let mut out = Vec::new();
                let generate = Generate {
                    rows: Some(rows),
                    threads,
                    seed: 3,
                    ..Generate::default()
                };
                let generated = generate.run(&mut out, &|_, _| ()).unwrap();
                assert_eq!(generated.rows, rows);
                assert_eq!(
                    out.iter().filter(|&&byte| byte == b'\n').count() as u64,
                    rows
                );
            }
        }
    }

    #[test]
    fn bytes_are_filled_with_as_many_rows_as_fit() {
        let stream = made(&Generate {
            rows: Some(200_000),
            seed: 9,
            ..Generate::default()
        });
        let third_line = stream.split_inclusive(|&byte| byte == b'\n').take(3);
        let three_rows = third_line.map(<[u8]>::len).sum::<usize>() as u64;
        for bytes in [
            0,
            1,
            5,
            10,
            three_rows - 1,
            three_rows,
            three_rows + 1,
            100_000,
            2_000_000,
        ] {
            for threads in [1, 2] {
                let out = made(&Generate {
                    bytes: Some(bytes),
                    threads,
                    seed: 9,
                    ..Generate::default()
                });
                assert!(
                    stream.starts_with(&out),
                    "{bytes}: the same rows as without the limit"
                );
                assert!(out.len() as u64 <= bytes);
                let next = stream[out.len()..]
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .unwrap()
                    + 1;
                assert!(
                    (out.len() + next) as u64 > bytes,
                    "{bytes}: one more row fits"
                );
            }
        }
        let both = Generate {
            rows: Some(3),
            bytes: Some(1000),
            seed: 9,
            ..Generate::default()
        };
        assert_eq!(made(&both).len() as u64, three_rows);
    }

    #[test]
    fn every_line_is_within_the_grammar() {
        for keys in [None, Some(1), Some(2), Some(10_000), Some(3_000_000)] {
            let out = made(&Generate {
                rows: Some(100_000),
                keys,
                ..Generate::default()
            });
            assert_eq!(lines(&out).map(key_and_tenths).count(), 100_000);
        }
    }

    #[test]
    fn keys_are_uniform_and_values_normal() {
        let rows = 1_000_000;
        let out = made(&Generate {
            rows: Some(rows),
            threads: 2,
            ..Generate::default()
        });
        let mut by_key: HashMap<&str, Vec<f64>> = HashMap::new();
        for (key, tenths) in lines(&out).map(key_and_tenths) {
            by_key
                .entry(key)
                .or_default()
                .push(f64::from(tenths) / 10.0);
        }
        assert_eq!(by_key.len(), 413);
        let expected = rows as f64 / 413.0;
        let chi_squared: f64 = by_key
            .values()
            .map(|values| (values.len() as f64 - expected).powi(2) / expected)
            .sum();
        // 412 degrees of freedom: a standard deviation of 28.7.
        assert!(
            (300.0..550.0).contains(&chi_squared),
            "chi squared {chi_squared}"
        );
        for line in include_str!("generate/stations.txt").lines() {
            let (key, wanted) = line.split_once(';').unwrap();
            let values = &by_key[key];
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let variance = values
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>()
                / count;
            assert!(
                (mean - wanted.parse::<f64>().unwrap()).abs() < 1.2,
                "{key}: mean {mean}"
            );
            assert!(
                (variance.sqrt() - 10.0).abs() < 1.0,
                "{key}: sigma {}",
                variance.sqrt()
            );
        }
    }

    #[test]
    fn all_keys_occur() {
        let out = made(&Generate {
            rows: Some(200_000),
            keys: Some(10_000),
            ..Generate::default()
        });
        let keys: std::collections::HashSet<_> =
            lines(&out).map(|line| key_and_tenths(line).0).collect();
        assert_eq!(keys.len(), 10_000);
    }

    #[test]
    fn another_seed_gives_other_bytes() {
        let with = |seed| {
            made(&Generate {
                rows: Some(1000),
                seed,
                ..Generate::default()
            })
        };
        assert!(with(0) != with(1));
        assert!(with(1) == with(1));
    }

    #[test]
    fn progress_grows_to_the_end() {
        let seen = Mutex::new(Vec::new());
        let generate = Generate {
            rows: Some(100_000),
            threads: 2,
            ..Generate::default()
        };
        let note = |rows, bytes| seen.lock().unwrap().push((rows, bytes));
        let generated = generate.run(&mut io::sink(), &note).unwrap();
        let seen = seen.into_inner().unwrap();
        assert!(seen.is_sorted());
        assert_eq!(seen.len(), 4);
        assert_eq!(seen.last(), Some(&(generated.rows, generated.bytes)));
    }

    #[test]
    fn a_failing_writer_stops_everything_with_its_own_error() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for threads in [1, 2] {
            let endless = Generate {
                rows: Some(u64::MAX),
                threads,
                ..Generate::default()
            };
            let error = endless.run(&mut Full(5), &|_, _| ()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for generate in [
            Generate::default(),
            Generate {
                rows: Some(1),
                keys: Some(0),
                ..Generate::default()
            },
            Generate {
                rows: Some(1),
                keys: Some(KEYS_MAX + 1),
                ..Generate::default()
            },
        ] {
            let error = generate.run(&mut io::sink(), &|_, _| ()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
