//! What departures from the plainest query cost, as multiples of it, and beside DuckDB and Polars.
//!
//! `make bench-grid`. docs/benchmarks.md tells the method.

mod departures;
mod plot;
mod report;
mod variants;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use ringfold::internals::cache::{CachedFile, State};
use ringfold::internals::machine::Machine;
use ringfold::internals::process::{self, Cost};
use ringfold::internals::statistics::{Interval, median};
use ringfold::query::Columns;
use serde_json::json;

use crate::answers::{self, Shape};
use crate::files::{self, Kind};
use crate::lines;
use crate::pair::judged;
use crate::program;
use crate::tools::{Found, Tool};
use departures::{Departure, Input, PARTS, Peers};
use report::{Beside, Measured, Report};

/// The binary, the files, and how often each row is run.
pub struct Grid<'a> {
    pub program: &'a str,
    pub runs: usize,
    pub bytes: u64,
    pub folder: &'a Path,
    pub output: &'a Path,
}

impl Grid<'_> {
    /// Runs all rows that are wanted and writes the results; tells whether all answers were right.
    pub fn measure(&self, is_wanted: impl Fn(usize) -> bool) -> Result<bool, Box<dyn Error>> {
        let mut peers = Vec::new();
        for tool in [Tool::DuckDb, Tool::Polars] {
            match tool.find() {
                Ok(found) => peers.push(found),
                Err(why) => println!("left out: {why}"),
            }
        }
        let orders = files::file(Kind::Orders, self.bytes, self.folder)?;
        files::countries(self.folder)?;
        let mut report = Report {
            commit: program::commit(),
            machine: Machine::look(&orders),
            mebibytes: self.bytes >> 20,
            rounds: self.runs,
            peers: peers
                .iter()
                .map(|peer| format!("{} {}", peer.name, peer.version))
                .collect(),
            rows: Vec::new(),
        };
        fs::create_dir_all(self.output)?;
        let all = PARTS
            .iter()
            .flat_map(|part| part.departures.iter().map(move |one| (part, one)));
        for (number, (part, departure)) in (1..).zip(all) {
            if !is_wanted(number) {
                continue;
            }
            let plainest = match departure.base {
                Some(flags) => Departure {
                    flags,
                    input: departure.input,
                    ..part.plainest
                },
                None => part.plainest,
            };
            let measured = self.row(&plainest, departure, &peers);
            let row = report::Row {
                number,
                part: part.name,
                name: departure.name,
                flags: departure.flags.into(),
                limit: departure.limit,
                measured: measured.map_err(|why| why.to_string()),
            };
            println!("{}", row.line());
            report.rows.push(row);
            // After each row: who stops a long run keeps what is done.
            fs::write(self.output.join("results.md"), report.as_markdown())?;
            fs::write(self.output.join("results.json"), report.as_json()?)?;
            plot::draw(&report, &self.output.join("results.svg"))?;
        }
        Ok(report.rows.iter().all(|row| row.measured.is_ok()))
    }

    /// Runs a departure, the plainest query and the peers in turn. The first round only warms up, and its answers are
    /// compared.
    fn row(
        &self,
        plainest: &Departure,
        departure: &Departure,
        peers: &[Found],
    ) -> Result<Measured, Box<dyn Error>> {
        let (plain_path, path) = (self.file(plainest.input)?, self.file(departure.input)?);
        for path in [&plain_path, &path] {
            let file = CachedFile::open(path)?;
            file.begin(State::Cached)?;
            file.prepare(State::Cached)?;
        }
        let (plain_line, line) = (
            self.line(plainest, &plain_path, &[]),
            self.line(departure, &path, &[]),
        );
        let [first, answer] = ["reference", "answer"].map(|name| self.folder.join(name));
        let reference = saved(&line, &first)?;
        if ran(&self.line(departure, &path, &["-j", "1"]))?.1 != reference {
            return Err("WRONG ANSWER: one thread gives other bytes".into());
        }
        ran(&plain_line)?;
        let mut asked = Vec::new();
        for peer in peers {
            if let Some(line) = ask(peer, departure, &path) {
                let agreed = saved(&line, &answer).and_then(|_| agree(departure, &first, &answer));
                agreed.map_err(|why| format!("{}: {why}", peer.name))?;
                asked.push((peer.name, line, Vec::new()));
            }
        }
        let (mut plain, mut costs) = (Vec::new(), Vec::new());
        for round in 0..self.runs {
            let first = ran(if round % 2 == 0 { &plain_line } else { &line })?;
            let second = ran(if round % 2 == 0 { &line } else { &plain_line })?;
            let (base, own) = if round % 2 == 0 {
                (first, second)
            } else {
                (second, first)
            };
            if own.1 != reference {
                return Err("WRONG ANSWER: not the same bytes as in the first run".into());
            }
            plain.push(base.0);
            costs.push(own.0);
            for (_, line, seconds) in &mut asked {
                let ended = process::run(line)?;
                seconds.push(ended.last_line().parse::<f64>()?);
            }
        }
        let records = |costs: &[Cost], figure: fn(&Cost) -> f64| {
            median(costs.iter().map(figure)).unwrap_or(f64::NAN)
        };
        let processor: Vec<f64> = costs.iter().map(Cost::cpu_s).collect();
        let over: Vec<f64> = plain.iter().map(Cost::cpu_s).collect();
        let wall_s = records(&costs, |cost| cost.wall_s);
        Ok(Measured {
            ratio: Interval::of_ratio(&processor, &over).ok_or("no runs")?,
            wall_s,
            processor_s: records(&costs, Cost::cpu_s),
            peak_memory_bytes: records(&costs, |cost| cost.peak_memory_bytes as f64) as u64,
            peers: asked
                .into_iter()
                .filter_map(|(name, _, seconds)| {
                    let peer_s = median(seconds)?;
                    Some(Beside {
                        name,
                        wall_s: peer_s,
                        ratio: wall_s / peer_s,
                    })
                })
                .collect(),
        })
    }

    /// The file that is asked, made where it is missing.
    fn file(&self, input: Input) -> io::Result<PathBuf> {
        match input {
            Input::File(kind) => files::file(kind, self.bytes, self.folder),
            Input::Pipe => files::file(Kind::Orders, self.bytes, self.folder),
            Input::Variant(variant) => variant.file(self.bytes, self.folder),
            Input::Pairs(name) => lines::file(name, self.bytes, self.folder, self.program),
        }
    }

    fn line(&self, departure: &Departure, path: &Path, more: &[&str]) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        if matches!(departure.input, Input::Pipe) {
            line.extend(["sh", "-c", r#"cat "$0" | "$@""#].map(OsString::from));
            line.push(path.into());
        }
        line.extend([self.program, "aggregate", "--quiet"].map(OsString::from));
        // Before any --next.
        line.extend(more.iter().map(OsString::from));
        line.extend(departure.words().into_iter().map(OsString::from));
        line.push(match departure.input {
            Input::Pipe => "-".into(),
            _ => path.into(),
        });
        line
    }
}

/// How a peer is asked; `None` where it can't be.
fn ask(peer: &Found, departure: &Departure, path: &Path) -> Option<Vec<OsString>> {
    let (Peers::Ask(sql, polars) | Peers::AnyOf(sql, polars)) = departure.peers else {
        return None;
    };
    let (separator, duckdb_options, polars_options) = match departure.input {
        Input::Variant(variant) => (variant.delimiter, variant.duckdb, variant.polars),
        _ => (',', "", ""),
    };
    let (query, options) = match peer.tool {
        Tool::DuckDb => (sql, duckdb_options),
        _ => (polars, polars_options),
    };
    let asked = json!({
        "tool": peer.name,
        "path": path,
        "separator": separator,
        "options": options,
        "columns": files::COLUMNS,
        "query": query,
    });
    let python = peer.python.as_deref().unwrap_or("python3");
    let line = [
        python,
        "-c",
        include_str!("grid/peer.py"),
        &asked.to_string(),
    ];
    (!query.is_empty()).then(|| line.map(OsString::from).to_vec())
}

/// Compares a peer's answer with ours, in a process of its own: it takes memory, and a child inherits the mark of its
/// parent.
fn agree(departure: &Departure, reference: &Path, answer: &Path) -> Result<(), Box<dyn Error>> {
    let words = departure.words();
    let keys = words.iter().skip_while(|word| *word != "-k").nth(1);
    let keys = keys.map_or(0, |keys| Columns::items(keys).len());
    let values = match departure.peers {
        Peers::AnyOf(..) => "any",
        _ => "mean",
    };
    let this = std::env::current_exe()?;
    let mut compare: Vec<OsString> = vec![this.into(), "--alike".into()];
    compare.extend([
        keys.to_string().into(),
        values.into(),
        reference.into(),
        answer.into(),
    ]);
    let ended = process::run(&compare)?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("OTHER ANSWER: {}", ended.last_line()).into()),
    }
}

/// A run that succeeded, whose answer goes to a file; returns the answer's hash.
fn saved(line: &[OsString], to: &Path) -> Result<u64, Box<dyn Error>> {
    let mut ended = process::run(line)?;
    ended.stdout.rewind()?;
    io::copy(&mut ended.stdout, &mut fs::File::create(to)?)?;
    Ok(judged(ended)??.1)
}

/// A run that succeeded: its cost, and its answer's hash.
fn ran(line: &[OsString]) -> Result<(Cost, u64), Box<dyn Error>> {
    Ok(judged(process::run(line)?)??)
}

/// Whether two answers have the same keys and values of this kind.
pub fn alike(keys: usize, values: &str, reference: &Path, answer: &Path) -> Result<(), String> {
    let text = fs::read_to_string(reference).map_err(|error| error.to_string())?;
    let columns = text.lines().next().unwrap_or_default().split(',').count();
    let mut fields = vec!["key"; keys];
    fields.resize(columns, values);
    let shape = Shape {
        delimiter: ',',
        header: true,
    };
    answers::compare(reference, answer, &shape, &fields).map(|_| ())
}
