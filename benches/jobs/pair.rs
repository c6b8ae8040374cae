//! Two builds of ringfold, run in turn: what a change costs or gains. Their answers must be the same bytes.
//!
//! `make bench-pair OLD=PATH`.

use std::error::Error;
use std::ffi::OsString;
use std::hash::Hasher;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use ringfold::internals::cache::{CachedFile, State};
use ringfold::internals::figures;
use ringfold::internals::process::{self, Cost, Output};
use ringfold::internals::statistics::{Interval, median};
use twox_hash::XxHash3_64;

use crate::tools::{QUERIES, arguments};
use crate::{files, lines};

/// The same as the plain command, as a query.
const AS_QUERY: &str = "-d ; -k 1 -a min:2,mean:2,max:2";

/// What is asked of them.
const ROWS: [(&str, &str); 17] = [
    ("413-keys.txt", "-j 1"),
    ("413-keys.txt", "-j 2"),
    ("10000-keys.txt", "-j 1"),
    ("10000-keys.txt", "-j 2"),
    ("prefix.txt", "-j 1"),
    ("prefix.txt", "-j 2"),
    ("1000000-keys.txt", "-j 1"),
    ("1000000-keys.txt", "-j 2"),
    ("1000000-keys.txt", "--memory 16M"),
    ("200000-cents.txt", ""),
    ("200000-integers.txt", ""),
    ("413-keys.txt", AS_QUERY),
    ("10000-keys.txt", AS_QUERY),
    ("1000000-keys.txt", AS_QUERY),
    ("200000-cents.txt", AS_QUERY),
    ("200000-integers.txt", AS_QUERY),
    ("1000000-keys.txt", "--memory 16M -d ; -k 1 -a stddev:2"),
];

/// The two programs, and how they are compared.
pub struct Pair<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Rounds that count.
    pub runs: usize,
    pub state: State,
    pub bytes: u64,
    pub folder: &'a Path,
}

/// A run's cost, or what it said when it failed; and its answer's hash.
pub type Ran = Result<(Cost, u64), String>;

impl Pair<'_> {
    /// Runs all that is wanted; tells whether all answers were the same.
    pub fn measure(&self, is_wanted: impl Fn(usize) -> bool) -> Result<bool, Box<dyn Error>> {
        println!(
            "old {}, new {}, {} rounds, {}, files of {} MiB; ratios are new / old, with the interval of 95%\n\n\
             | | aggregate | old s | new s | wall | processor time | memory |\n\
             |---|---|---|---|---|---|---|",
            self.old,
            self.new,
            self.runs,
            self.state.name(),
            self.bytes >> 20
        );
        let mut are_same = true;
        let all = ROWS.len() + QUERIES.len();
        for number in (1..=all).filter(|number| is_wanted(*number)) {
            let (line, path) = match self.line(number) {
                Ok(asked) => asked,
                Err(why) => {
                    println!("| {number} | not compared: {why} |");
                    continue;
                }
            };
            let shown = line.join(" ");
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let figures = match self.run(&line, &path)? {
                Ok(figures) => figures,
                Err(Apart::Refused(why)) => format!("not compared: {why} |"),
                Err(Apart::Different(why)) => {
                    are_same = false;
                    format!("DIFFERENT: {why} |")
                }
            };
            println!("| {number} | {shown} {name} | {figures}");
        }
        Ok(are_same)
    }

    /// The arguments of a row, from 1, and its file.
    fn line(&self, number: usize) -> io::Result<(Vec<String>, PathBuf)> {
        match ROWS.get(number - 1) {
            Some((file, flags)) => {
                let flags = flags.split_whitespace().map(String::from);
                let path = lines::file(file, self.bytes, self.folder, self.new)?;
                Ok((flags.collect(), path))
            }
            None => {
                let query = &QUERIES[number - 1 - ROWS.len()];
                let line = arguments(query);
                Ok((line, files::file(query.file, self.bytes, self.folder)?))
            }
        }
    }

    /// Runs both once a round, in turns; the first round only warms up.
    fn run(&self, line: &[String], path: &Path) -> io::Result<Result<String, Apart>> {
        let file = CachedFile::open(path)?;
        file.begin(self.state)?;
        let mut costs = [Vec::new(), Vec::new()];
        let ask = |program: &str| {
            file.prepare(self.state)?;
            let mut whole: Vec<OsString> = vec![program.into(), "aggregate".into()];
            whole.extend(line.iter().map(OsString::from));
            whole.extend(["--quiet".into(), path.into()]);
            judged(process::run(&whole)?)
        };
        for round in 0..=self.runs {
            let first = ask([self.old, self.new][round % 2])?;
            let second = ask([self.new, self.old][round % 2])?;
            let ran = match round % 2 {
                0 => [first, second],
                _ => [second, first],
            };
            match ran {
                [Err(why), Ok(_)] => return Ok(Err(Apart::Refused(format!("old: {why}")))),
                [Err(why), Err(_)] => return Ok(Err(Apart::Refused(format!("both: {why}")))),
                [Ok(_), Err(why)] => return Ok(Err(Apart::Different(format!("new: {why}")))),
                [Ok((_, old)), Ok((_, new))] if old != new => {
                    return Ok(Err(Apart::Different("other bytes".into())));
                }
                [Ok((old, _)), Ok((new, _))] if round > 0 => {
                    costs[0].push(old);
                    costs[1].push(new);
                }
                _ => {}
            }
        }
        Ok(Ok(row(&costs)))
    }
}

/// Why a row has no figures.
enum Apart {
    Refused(String),
    Different(String),
}

/// The cost and a hash of the answer, or what it said.
pub fn judged(mut ended: Output) -> io::Result<Ran> {
    if !ended.status.success() {
        let said = ended.stderr.trim().lines().next().unwrap_or_default();
        return Ok(Err(format!("{}: {said}", ended.status)));
    }
    // Not all at once: a child inherits the mark of our memory.
    let (mut hasher, mut piece) = (XxHash3_64::default(), [0; 1 << 14]);
    ended.stdout.rewind()?;
    loop {
        match ended.stdout.read(&mut piece)? {
            0 => return Ok(Ok((ended.cost, hasher.finish()))),
            read => hasher.write(&piece[..read]),
        }
    }
}

/// Medians, and the ratios of the pairs.
fn row([old, new]: &[Vec<Cost>; 2]) -> String {
    let seconds = |costs: &[Cost]| median(costs.iter().map(|cost| cost.wall_s)).unwrap_or(f64::NAN);
    let ratio = |figure: fn(&Cost) -> f64| {
        let pairs = old.iter().zip(new);
        let ratios: Vec<f64> = pairs.map(|(old, new)| figure(new) / figure(old)).collect();
        let Interval { median, low, high } = Interval::of(&ratios).expect("there are runs");
        format!("{median:.3} ({low:.3} - {high:.3}) |")
    };
    let [was, is] = [old, new].map(|costs| figures::bare(seconds(costs)));
    let wall = ratio(|cost| cost.wall_s);
    let processor = ratio(Cost::cpu_s);
    let memory = ratio(|cost| cost.peak_memory_bytes as f64);
    format!("{was} | {is} | {wall} {processor} {memory}")
}
