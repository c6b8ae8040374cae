//! What `ringfold aggregate` asks of which columns, and the run that answers it.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use ringfold_read::internals::{describe, units, visible};

use crate::cli::aggregate::Command;
use crate::cli::answer_flags::{AnswerFlags, Form, first};
use crate::cli::console::{notice, open_output, usage, write_output};
use crate::cli::input::InputFlags;
use crate::cli::partials::PartialFlags;
use crate::cli::reading::FoldOutput;
use crate::cli::records::RecordFlags;
use crate::cli::skipped::{nothing_but_skipped, tell_skipped, tell_unread, tell_unread_rows};
use crate::cli::{own_input, spell};
use crate::query::{Answer, Columns, Occurrences, Plan, Query, Shown};
use crate::{Config, Input, Receipt, Result};

/// What is asked of which columns.
#[derive(Args)]
pub(super) struct QueryFlags {
    /// Columns to group by: numbers from 1, ranges such as 2-4, or names in the first line
    ///
    /// `-k time@hour` cuts times down. Units are year, month, week, day, hour, minute, second, weekday, and minutes such as
    /// 10m. A date and a time of day in two columns are joined: date+time@hour. Values are computed: -k 'lower(city) as town'.
    /// docs/query.md lists the functions.
    #[arg(short, long = "key", value_name = "COLUMN,...")]
    key: Vec<String>,
    /// What to compute of each group: count, sum:price, mean:3, ... [default: count]
    ///
    /// There are count, sum, min, max, mean, range, var, stddev, var_pop, stddev_pop, first, last, lexmin, lexmax, median,
    /// percentiles such as p99.9, distinct and mode. The column follows after a colon: `-a count,sum:price,mean:3`. A name with
    /// a comma or colon is quoted: `-a 'sum:"a,b"'`. Values are computed: `-a 'sum(price * qty) as revenue'`, `-a
    /// 'count_if(status >= 500) / count()'`. All numbers are exact. Estimates are asked for by name: approx_median,
    /// approx_p99.9, approx_distinct. Without -k the whole input is one group.
    #[arg(short = 'a', long = "aggregate", value_name = "WHAT[:COLUMN],...")]
    aggregate: Vec<String>,
    #[command(flatten)]
    input: InputFlags,
    #[command(flatten)]
    shown: AnswerFlags,
    /// Estimate percentiles and distinct counts of large groups, in little memory; they are exact otherwise
    #[arg(long, hide_short_help = true)]
    approximate: bool,
    /// Hash values with the secret key in this file for estimates of distinct counts, so that nobody can choose values that count
    /// as fewer; at least 16 bytes
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    hash_key: Option<PathBuf>,
    /// Percentiles and distinct counts are exact, as they are anyway
    #[arg(long, hide = true, conflicts_with = "approximate")]
    exact: bool,
    /// Print what the query does with the input, and what its first records look like, instead of an answer
    #[arg(long, hide_short_help = true)]
    explain: bool,
    #[command(flatten)]
    records: RecordFlags,
    #[command(flatten)]
    partials: PartialFlags,
}

/// A run of `aggregate`.
pub(super) struct Run<'a> {
    pub(super) command: &'a Command,
    pub(super) paths: &'a [PathBuf],
    pub(super) form: Form,
    /// Min, mean and max of a key and a number, because nothing else is asked.
    pub(super) is_pairs: bool,
}

impl QueryFlags {
    /// Whether there is a query: keys or aggregates.
    pub(super) fn is_query(&self) -> bool {
        !self.key.is_empty() || !self.aggregate.is_empty()
    }

    /// Whether a flag asks something of the records or the answer, and not only how they are written.
    pub(super) fn wants_answer(&self) -> bool {
        let is_asked = self.approximate || self.exact || self.hash_key.is_some();
        let (left_out, shown) = (self.records.of_rejects(), self.shown.flags());
        let partials = self.partials.flags();
        let others = left_out.iter().chain(&shown).chain(&partials);
        is_asked || self.input.is_filtered() || first(others).is_some()
    }

    /// The flag that says that records are no fields between delimiters.
    pub(super) fn other_records(&self) -> Option<&'static str> {
        self.input.other_records()
    }

    /// The byte between fields, if it is named.
    pub(super) fn delimiter(&self) -> Option<u8> {
        self.input.delimiter
    }

    /// Whether a flag says how records are written.
    pub(super) fn has_form(&self) -> bool {
        let values = self.records.of_values();
        self.explain || self.input.has_form(&self.records) || first(&values).is_some()
    }

    /// The query that the flags describe.
    pub(super) fn query(&self, run: &Run<'_>) -> Result<Query> {
        let on_error = self.records.on_error(run.command.on_error)?;
        let query = self.input.query(&self.records, run.paths, run.is_pairs)?;
        let mut query = query.approximate(self.approximate).on_error(on_error);
        if let Some(path) = &self.hash_key {
            query = query.hash_key(&secret(path)?);
        }
        for item in self.key.iter().flat_map(|list| Columns::items(list)) {
            query = query.key_text(item)?;
        }
        for item in self.aggregate.iter().flat_map(|list| Columns::items(list)) {
            query = query.aggregate_text(item)?;
        }
        self.input.check_names(&query)?;
        Ok(query.shown(self.answer_settings(run)?))
    }

    /// What is done with the groups.
    fn answer_settings(&self, run: &Run<'_>) -> Result<Shown> {
        let command = run.command;
        (self.shown).settings(command.memory, command.spill_dir.as_ref())
    }

    /// Answers the query, over `input` if it was opened already.
    pub(super) fn run(&self, run: &Run<'_>, input: Option<Input>) -> Result<()> {
        if let (Form::Lines(_), Some(flag)) = (run.form, self.shown.of_columns()) {
            let why = format!("{flag} has no effect on this format: `-f csv` shows its columns");
            return Err(usage(why));
        }
        let query = self.query(run)?;
        let (reading, target) = (&run.command.reading, run.command.output.as_ref());
        let shown = self.shown.flags();
        let about_answer = [
            (target.is_some(), "--output"),
            (run.command.format.is_some(), "--format"),
        ];
        let reports = (self.partials).reports(&[&shown[..], &about_answer].concat())?;
        own_input::refuse(target, run.paths)?;
        let answer = reports.then(|| own_input::answer(target));
        let kept = self.partials.output().map(|(flag, path)| (flag, &**path));
        own_input::refuse_twice(&[answer, kept, self.records.output()])?;
        let keeping = self.partials.open(target, run.paths)?;
        let output = reports.then(|| open_output(target)).transpose()?;
        let rejects = self.records.open(target, run.paths)?;
        let input = match input {
            Some(input) => input,
            None => reading.open(run.paths, run.command.memory)?,
        };
        let input = self.partials.part(input)?;
        let memory = reading.memory();
        let config = Config {
            max_record: reading.max_record(),
            ..Config::default()
        };
        let sort = self.shown.sort(run.form)?;
        input.check_text()?;
        let query = match reading.memory_of_keys(run.command.memory, &input) {
            Some(bytes) => query.memory(bytes),
            None => query,
        };
        let plan = query.plan(&input, &config)?;
        plan.check_sort(&sort)?;
        if let Form::Lines(_) = run.form {
            plan.check_lines()?;
        }
        if self.explain {
            let explained = plan.explain(&input)?;
            let output = output.map_or_else(|| open_output(None), Ok)?;
            return write_output(output, |out| {
                out.write_all(explained.to_string().as_bytes())
            });
        }
        if !reading.quiet {
            self.notices(&plan, &input)?.iter().for_each(notice);
        }
        let receipt = keeping.as_ref().map(|_| Receipt::of(&input)).transpose()?;
        if let (Some(keeping), Some(receipt)) = (&keeping, &receipt) {
            keeping.check(&plan, &input, receipt)?;
        }
        let FoldOutput {
            output: mut answer,
            stats: figures,
            pool,
        } = reading.fold(&input, &plan)?;
        if plan.has_unread_names() && !reading.quiet {
            notice(
                "the first record looks like a header, and is counted: `-H` takes it for the names of the columns, \
                 `--no-header` for a record",
            );
        }
        if let (Some(output), Some(rejects)) = (rejects, &answer.rejects) {
            pool.install(|| write_output(output, |out| rejects.write(&input, out)))?;
        }
        if let Some(first) = answer.first_skipped.as_mut() {
            let place = (first.file, first.bytes.start);
            first.line = first.line.or_else(|| reading.line(&input, &pool, place));
        }
        let is_nothing = answer.rows == 0 && answer.filtered == 0;
        if let Some(first) = answer.first_skipped.as_ref().filter(|_| is_nothing) {
            return Err(nothing_but_skipped(&input, first, answer.skipped));
        }
        if let (Some(keeping), Some(receipt)) = (keeping, &receipt) {
            let settings = self.answer_settings(run)?;
            let shown = Some(&settings).filter(|_| reports);
            let kept = pool.install(|| keeping.keep(&answer, &plan, receipt, shown))?;
            if let Some(all) = kept {
                let own = answer;
                answer = all;
                answer.take_records_of(own);
            }
        }
        if let Some(output) = output {
            let directory = plan.spill_directory();
            let odd = (self.shown).print(&mut answer, &sort, run.form, output, directory, &pool)?;
            odd.filter(|_| !reading.quiet).into_iter().for_each(notice);
        }
        tell_skipped(&input, answer.first_skipped.as_ref(), answer.skipped);
        if !reading.quiet {
            let place = |place, line| reading.place(&input, &pool, place, line);
            tell_longer(&answer.longer, place);
            let repeated = answer.repeated_headers;
            if let Some(first) = repeated.first.map(|first| place(first, repeated.line)) {
                notice(spell::repeated(repeated.count, &first));
            }
            tell_estimates(&answer);
        }
        tell_unread(&answer, &input, reading, &pool);
        tell_unread_rows(&answer);
        if answer.spilled_bytes > 0 && !reading.quiet {
            tell_spilled(answer.spilled_bytes);
        }
        if reading.stats.is_some() {
            let delimiter = query
                .is_sniffed()
                .then(|| plan.delimiter().escape_ascii().to_string());
            let delimiter = delimiter.map(|name| ("delimiter", name));
            let numbers = (self.records.is_float()).then(|| ("numbers", "doubles".to_string()));
            let told: Vec<_> = delimiter.into_iter().chain(numbers).collect();
            let counted = counted(&answer);
            reading.print_stats(&figures, &counted, &told, memory);
        }
        Ok(())
    }

    /// What is to be known of the first records before a run.
    fn notices(&self, plan: &Plan, input: &Input) -> Result<Vec<String>> {
        let mut notices = plan.unseen(input)?;
        notices.extend(plan.doubts().iter().map(spell::doubt));
        let mut sources = input.sources().iter();
        let stream = sources.find(|source| !source.can_repeat());
        if let (Some(("--continue", _)), Some(stream)) = (self.partials.output(), stream) {
            let name = stream.name();
            notices.push(format!(
                "{name}: a stream isn't known again: added a second time, it counts twice"
            ));
        }
        for (column, value) in plan.thousands(input)? {
            notices.push(format!(
                "--decimal-comma reads `{value}` (column {column}) as {}: if commas stand between thousands, they have to be \
                 taken out before (docs/not-for.md)",
                value.replace(',', ".")
            ));
        }
        Ok(notices)
    }
}

/// The secret in a file.
fn secret(path: &Path) -> Result<Vec<u8>> {
    const BYTES: RangeInclusive<usize> = 16..=4096;
    let name = visible(path.as_os_str().as_bytes());
    let mut secret = Vec::new();
    File::open(path)
        .and_then(|file| file.take(*BYTES.end() as u64 + 1).read_to_end(&mut secret))
        .map_err(|error| usage(format!("{name}: {}", describe(&error))))?;
    match BYTES.contains(&secret.len()) {
        true => Ok(secret),
        false => Err(usage(format!(
            "{name}: a hash key has 16 to 4096 bytes: head -c 32 /dev/urandom makes one"
        ))),
    }
}

/// Says which columns of an answer are estimates, and how good.
pub(super) fn tell_estimates(answer: &Answer) {
    let named = |is_percentile: bool, bound: &str| {
        let estimates = answer.estimates();
        let named = estimates.filter(|(_, percentile)| *percentile == is_percentile);
        let names: Vec<_> = named.map(|(name, _)| visible(name)).collect();
        (!names.is_empty()).then(|| format!("{} {bound}", names.join(", ")))
    };
    let percentiles = named(true, "within 0.8% of the numbers next to it");
    let distinct = named(false, "within 2% in 95 of 100 cases");
    let all: Vec<_> = percentiles.into_iter().chain(distinct).collect();
    if !all.is_empty() {
        let all = all.join("; ");
        notice(format!("estimates where groups are large: {all}"));
    }
}

/// Says that lines of a log go on after its pattern.
fn tell_longer(longer: &Occurrences, place: impl Fn((u32, u64), Option<u64>) -> String) {
    let Some(first) = longer.first.map(|first| place(first, longer.line)) else {
        return;
    };
    let lines = units::counted(longer.count, "line");
    let go = if longer.count == 1 { "goes" } else { "go" };
    notice(format!(
        "{lines} {go} on after the log's pattern, the first at {first}: what follows isn't read"
    ));
}

/// Says that groups went to files.
pub(super) fn tell_spilled(bytes: u64) {
    let bytes = units::grouped(bytes);
    notice(format!(
        "the keys outgrew the memory (--memory): {bytes} bytes went to temporary files"
    ));
}

fn counted(answer: &Answer) -> [(&'static str, u64); 11] {
    [
        ("rows", answer.rows),
        ("keys", answer.groups),
        ("filtered", answer.filtered),
        ("empty_lines", answer.empty_lines),
        ("skipped", answer.skipped),
        ("repeated_headers", answer.repeated_headers.count),
        ("nulled", answer.nulled),
        ("unread", answer.unread),
        ("bytewise", answer.bytewise),
        ("key_sharers", answer.key_sharers),
        ("spilled_bytes", answer.spilled_bytes),
    ]
}
