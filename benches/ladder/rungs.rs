//! The rungs: the same aggregate of `key;value` lines written in the ways that people write it, from the first that comes
//! to mind to what ringfold does. Each changes one thing, is as small as it can be, and gives the same answer.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ahash::{AHashMap, RandomState};
use hashbrown::HashTable;
use ringfold::{Block, BlockError, Config, Engine, Error, Fold, Input, Kind, fold};
use tokio::sync::mpsc;

/// A rung: how it is called, what it changes, and what it does.
pub struct Rung {
    /// Its name.
    pub name: &'static str,
    /// What it changes over the one before.
    pub what: &'static str,
    /// Reads the file and groups its lines.
    pub run: fn(&Path) -> io::Result<Groups>,
}

/// All rungs that group, from the first on.
pub const RUNGS: [Rung; 11] = [
    Rung {
        name: "lines",
        what: "BufRead::lines, String keys, parse::<f64>",
        run: lines,
    },
    Rung {
        name: "bytes",
        what: "bytes instead of text, tenths as integers",
        run: bytes,
    },
    Rung {
        name: "ahash",
        what: "a map without SipHash",
        run: ahash,
    },
    Rung {
        name: "blocks",
        what: "reads of 4 MiB, lines found in place by memchr",
        run: blocks,
    },
    Rung {
        name: "tasks-shared-map",
        what: "tokio tasks, channels, a pool of buffers; one map with locks for all",
        run: tasks_shared_map,
    },
    Rung {
        name: "tasks-map-a-buffer",
        what: "a map for each buffer, merged at once",
        run: tasks_map_a_buffer,
    },
    Rung {
        name: "tasks-interned",
        what: "a map for each task, keys interned in one piece of memory",
        run: tasks_interned,
    },
    Rung {
        name: "threads-pread",
        what: "no reader: each thread reads its own blocks",
        run: |path| by_engine(path, Engine::Pread, false),
    },
    Rung {
        name: "threads-mmap",
        what: "each thread maps its own blocks",
        run: |path| by_engine(path, Engine::Mmap, false),
    },
    Rung {
        name: "ring-buffered",
        what: "io_uring through the page cache, threads work on what has come",
        run: |path| by_engine(path, Engine::Uring, false),
    },
    Rung {
        name: "ring-direct",
        what: "io_uring past the page cache into registered huge pages",
        run: |path| by_engine(path, Engine::Uring, true),
    },
];

/// What is known of a key, in tenths.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    min: i64,
    max: i64,
    sum: i64,
    rows: i64,
}

/// The groups, sorted by key.
pub type Groups = BTreeMap<Vec<u8>, Stats>;

impl Stats {
    fn of(tenths: i64) -> Stats {
        Stats {
            min: tenths,
            max: tenths,
            sum: tenths,
            rows: 1,
        }
    }

    fn add(&mut self, tenths: i64) {
        self.merge(&Stats::of(tenths));
    }

    fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.rows += other.rows;
    }
}

/// The answer as `ringfold aggregate` prints it; means are rounded half up.
pub fn text(groups: &Groups) -> Vec<u8> {
    let tenths = |n: i64| {
        let sign = if n < 0 { "-" } else { "" };
        format!("{sign}{}.{}", n.abs() / 10, n.abs() % 10)
    };
    let mut out = b"{".to_vec();
    for (number, (key, stats)) in groups.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        let mean = (2 * stats.sum + stats.rows).div_euclid(2 * stats.rows);
        out.extend_from_slice(key);
        let figures = [stats.min, mean, stats.max].map(tenths);
        out.extend_from_slice(format!("={}/{}/{}", figures[0], figures[1], figures[2]).as_bytes());
    }
    out.extend_from_slice(b"}\n");
    out
}

fn malformed(line: &[u8]) -> io::Error {
    let line = String::from_utf8_lossy(&line[..line.len().min(80)]);
    io::Error::other(format!(
        "the ladder takes only key;value with one decimal: {line:?}"
    ))
}

/// A line's key and value.
fn record(line: &[u8]) -> io::Result<(&[u8], i64)> {
    let at = memchr::memrchr(b';', line).ok_or_else(|| malformed(line))?;
    let tenths = tenths(&line[at + 1..]).ok_or_else(|| malformed(line))?;
    Ok((&line[..at], tenths))
}

/// `-12.3` as -123.
fn tenths(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let [whole @ .., b'.', last] = digits else {
        return None;
    };
    if whole.is_empty() || whole.len() > 15 {
        return None;
    }
    let mut value = 0;
    for digit in whole.iter().chain([last]) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// Adds a row to a map that owns its keys.
fn add<S: BuildHasher>(map: &mut HashMap<Vec<u8>, Stats, S>, key: &[u8], tenths: i64) {
    // Not `entry`, which wants a key of its own for each row.
    match map.get_mut(key) {
        Some(stats) => stats.add(tenths),
        None => {
            map.insert(key.to_vec(), Stats::of(tenths));
        }
    }
}

fn lines(path: &Path) -> io::Result<Groups> {
    let mut map: HashMap<String, Stats> = HashMap::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let (key, value) = line
            .rsplit_once(';')
            .ok_or_else(|| malformed(line.as_bytes()))?;
        let value: f64 = value.parse().map_err(|_| malformed(line.as_bytes()))?;
        let tenths = (value * 10.0).round() as i64;
        map.entry(key.to_string())
            .and_modify(|stats| stats.add(tenths))
            .or_insert(Stats::of(tenths));
    }
    Ok(map
        .into_iter()
        .map(|(key, stats)| (key.into_bytes(), stats))
        .collect())
}

/// Line by line into one buffer.
fn line_by_line<S: BuildHasher + Default>(path: &Path) -> io::Result<Groups> {
    let mut map: HashMap<Vec<u8>, Stats, S> = HashMap::default();
    let mut reader = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let (key, tenths) = record(line.strip_suffix(b"\n").unwrap_or(&line))?;
        add(&mut map, key, tenths);
        line.clear();
    }
    Ok(map.into_iter().collect())
}

fn bytes(path: &Path) -> io::Result<Groups> {
    line_by_line::<std::hash::RandomState>(path)
}

fn ahash(path: &Path) -> io::Result<Groups> {
    line_by_line::<RandomState>(path)
}

/// Counts lines as one would at first: a byte at a time.
pub fn count_by_byte(path: &Path) -> io::Result<u64> {
    let mut lines = 0;
    for byte in BufReader::new(File::open(path)?).bytes() {
        lines += u64::from(byte? == b'\n');
    }
    Ok(lines)
}

/// The same over large reads, with vectors.
pub fn count_by_vector(path: &Path) -> io::Result<u64> {
    let mut lines = 0;
    for_blocks(path, |block| {
        lines += bytecount::count(&block, b'\n') as u64;
        Ok(block)
    })?;
    Ok(lines)
}

/// Bytes of a read.
const BLOCK: usize = 4 << 20;

/// Reads a file in blocks that end with a line. `with` takes a buffer and gives another one for the next block.
fn for_blocks(path: &Path, mut with: impl FnMut(Vec<u8>) -> io::Result<Vec<u8>>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut rest = Vec::new();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        buffer.append(&mut rest);
        let had = buffer.len();
        buffer.resize(had + BLOCK, 0);
        let mut filled = had;
        while filled < buffer.len() {
            match file.read(&mut buffer[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        let at_end = filled < buffer.len();
        buffer.truncate(filled);
        if !at_end {
            let whole = memchr::memrchr(b'\n', &buffer).map_or(0, |at| at + 1);
            rest.extend_from_slice(&buffer[whole..]);
            buffer.truncate(whole);
        }
        buffer = with(buffer)?;
        if at_end {
            return Ok(());
        }
    }
}

/// Calls `row` for each line of a block.
fn for_rows(block: &[u8], mut row: impl FnMut(&[u8], i64)) -> io::Result<()> {
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (key, tenths) = record(&rest[..end])?;
        row(key, tenths);
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(())
}

fn blocks(path: &Path) -> io::Result<Groups> {
    let mut map: AHashMap<Vec<u8>, Stats> = AHashMap::new();
    for_blocks(path, |block| {
        for_rows(&block, |key, tenths| add(&mut map, key, tenths))?;
        Ok(block)
    })?;
    Ok(map.into_iter().collect())
}

/// Reads on one thread, and has tasks work on buffers that go round: filled ones to the tasks, empty ones back.
fn tasks<T: Send + 'static>(
    path: &Path,
    begin: impl Fn() -> T,
    work: impl Fn(&mut T, &[u8]) -> io::Result<()> + Clone + Send + 'static,
) -> io::Result<Vec<T>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(workers)
        .build()?;
    let (empty, mut emptied) = mpsc::channel::<Vec<u8>>(2 * workers + 2);
    let (filled, to_work) = mpsc::channel::<Vec<u8>>(2 * workers);
    for _ in 0..2 * workers + 1 {
        empty.try_send(Vec::new()).map_err(io::Error::other)?;
    }
    let to_work = Arc::new(Mutex::new(to_work));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let (to_work, empty, work) = (Arc::clone(&to_work), empty.clone(), work.clone());
            let mut state = begin();
            runtime.spawn_blocking(move || {
                loop {
                    // The lock is held while this task waits: another one couldn't get a buffer sooner.
                    let next = to_work
                        .lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .blocking_recv();
                    let Some(block) = next else {
                        return io::Result::Ok(state);
                    };
                    let done = work(&mut state, &block);
                    // The reader may have ended.
                    let _ = empty.blocking_send(block);
                    done?;
                }
            })
        })
        .collect();
    // When all tasks have ended, the reader is told.
    drop((empty, to_work));
    let read = for_blocks(path, |block| {
        let gone = || io::Error::other("all tasks have ended");
        filled.blocking_send(block).map_err(|_| gone())?;
        emptied.blocking_recv().ok_or_else(gone)
    });
    drop(filled);
    let done: Vec<io::Result<T>> = runtime.block_on(async {
        let mut done = Vec::new();
        for task in tasks {
            done.push(task.await.map_err(io::Error::other).and_then(|done| done));
        }
        done
    });
    // What is wrong with a line counts before what followed from it.
    let done = done.into_iter().collect::<io::Result<Vec<T>>>()?;
    read.map(|()| done)
}

fn tasks_shared_map(path: &Path) -> io::Result<Groups> {
    const SHARDS: usize = 64;
    type Shard = Mutex<AHashMap<Vec<u8>, Stats>>;
    let shards: Arc<Vec<Shard>> = Arc::new((0..SHARDS).map(|_| Shard::default()).collect());
    let hasher = RandomState::new();
    let map = Arc::clone(&shards);
    tasks(
        path,
        || (),
        move |(), block| {
            for_rows(block, |key, tenths| {
                let shard = &map[hasher.hash_one(key) as usize % SHARDS];
                add(
                    &mut shard.lock().unwrap_or_else(|e| e.into_inner()),
                    key,
                    tenths,
                );
            })
        },
    )?;
    let mut groups = Groups::new();
    for shard in shards.iter() {
        let shard = shard.lock().unwrap_or_else(|e| e.into_inner());
        groups.extend(shard.iter().map(|(key, stats)| (key.clone(), *stats)));
    }
    Ok(groups)
}

fn tasks_map_a_buffer(path: &Path) -> io::Result<Groups> {
    let groups = Arc::new(Mutex::new(Groups::new()));
    let all = Arc::clone(&groups);
    tasks(
        path,
        || (),
        move |(), block| {
            let mut map: AHashMap<Vec<u8>, Stats> = AHashMap::new();
            for_rows(block, |key, tenths| add(&mut map, key, tenths))?;
            let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
            map.into_iter()
                .for_each(|(key, stats)| merge(&mut all, key, stats));
            Ok(())
        },
    )?;
    let mut groups = groups.lock().unwrap_or_else(|e| e.into_inner());
    Ok(std::mem::take(&mut groups))
}

/// Keys one after the other in one piece of memory, each with its place and what is known of it.
#[derive(Default)]
struct Interned {
    keys: Vec<u8>,
    rows: Vec<(usize, usize, Stats)>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl Interned {
    fn add(&mut self, key: &[u8], tenths: i64) {
        let Interned {
            keys,
            rows,
            index,
            hasher,
        } = self;
        let of = |row: u32| {
            let (from, to, _) = rows[row as usize];
            &keys[from..to]
        };
        let hash = hasher.hash_one(key);
        match index.find(hash, |&row| of(row) == key) {
            Some(&row) => rows[row as usize].2.add(tenths),
            None => {
                let row = rows.len() as u32;
                index.insert_unique(hash, row, |&row| hasher.hash_one(of(row)));
                rows.push((keys.len(), keys.len() + key.len(), Stats::of(tenths)));
                keys.extend_from_slice(key);
            }
        }
    }

    fn merge_into(&self, groups: &mut Groups) {
        for &(from, to, stats) in &self.rows {
            merge(groups, self.keys[from..to].to_vec(), stats);
        }
    }
}

fn merge(groups: &mut Groups, key: Vec<u8>, stats: Stats) {
    groups
        .entry(key)
        .and_modify(|known| known.merge(&stats))
        .or_insert(stats);
}

fn tasks_interned(path: &Path) -> io::Result<Groups> {
    let maps = tasks(path, Interned::default, |map, block| {
        for_rows(block, |key, tenths| map.add(key, tenths))
    })?;
    let mut groups = Groups::new();
    maps.iter().for_each(|map| map.merge_into(&mut groups));
    Ok(groups)
}

/// The same work on what one of this program's engines brings.
struct Plain;

impl Fold for Plain {
    type Partial = Interned;
    type Output = Interned;

    fn partial(&self) -> Interned {
        Interned::default()
    }

    fn block(&self, map: &mut Interned, block: &Block<'_>) -> Result<(), BlockError> {
        for_rows(block.bytes(), |key, tenths| map.add(key, tenths))
            .map_err(|error| Error::new(Kind::Data, error.to_string()).into())
    }

    fn merge(&self, into: &mut Interned, from: Interned) {
        let mut groups = Groups::new();
        into.merge_into(&mut groups);
        from.merge_into(&mut groups);
        *into = Interned::default();
        for (key, stats) in groups {
            into.add(&key, 0);
            if let Some(row) = into.rows.last_mut() {
                row.2 = stats;
            }
        }
    }

    fn finish(&self, map: Interned) -> Interned {
        map
    }
}

fn by_engine(path: &Path, engine: Engine, direct: bool) -> io::Result<Groups> {
    let input = Input::open([path]).map_err(io::Error::other)?;
    let config = Config {
        engine,
        direct,
        ..Config::default()
    };
    let (map, _) = fold(&input, &config, &Plain).map_err(io::Error::other)?;
    let mut groups = Groups::new();
    map.merge_into(&mut groups);
    Ok(groups)
}
