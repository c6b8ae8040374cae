//! What `ringfold aggregate` asks of which columns, and the run that answers it.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rayon::ThreadPool;
use ringfold_read::internals::{describe, units, visible};

use crate::cli::aggregate::Command;
use crate::cli::answer_flags::{Form, first};
use crate::cli::asked::Asked;
use crate::cli::console::{notice, open_output, usage, write_output};
use crate::cli::costs::costs;
use crate::cli::input::InputFlags;
use crate::cli::lookup::LookupFlags;
use crate::cli::partials::{PartialOutput, begin, range};
use crate::cli::reading::{FoldOutput, ReadFlags, check_text};
use crate::cli::records::RecordFlags;
use crate::cli::skipped::{settle, tell_records, tell_unread, tell_unread_rows};
use crate::cli::{console, own_input, spell};
use crate::output::Output;
use crate::query::{Answer, Hint, Layout, Plan, Plans, Query, Shown};
use crate::report::grid::GridFormat;
use crate::{Begin, Config, Input, Receipt, Result};

/// How records are written, and how all queries of a run take them.
#[derive(Args)]
pub(super) struct QueryFlags {
    #[command(flatten)]
    input: InputFlags,
    #[command(flatten)]
    pub(super) lookups: LookupFlags,
    /// Look at times on the clock of this zone, where they are cut down, computed on or compared: Europe/Berlin, UTC, +05:30
    /// [default: as they are written]
    ///
    /// A zone in an expression comes first: -k 'time@hour[Asia/Tokyo]', hour(time, 'Asia/Tokyo'). Where the clock shows an hour
    /// twice, the offset follows it. In --where, '2026-11-25 13:59' is a time of this zone.
    #[arg(long, value_name = "ZONE", hide_short_help = true)]
    time_zone: Option<String>,
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
    /// Read times without an offset in this zone [default: the zone that they are shown in]
    #[arg(long, value_name = "ZONE", hide_short_help = true)]
    input_time_zone: Option<String>,
    /// Print what the query does with the input, and what its first records look like, instead of an answer
    #[arg(long, hide_short_help = true)]
    pub(super) explain: bool,
    /// Take only the I-th of N parts of the input, from 1; a record belongs to the part that its first byte lies in
    #[arg(long, help_heading = "Partials", hide_short_help = true, value_name = "I/N", value_parser = range)]
    range: Option<(u32, u32)>,
    /// Where the first record of a part begins, if quoted fields hold newlines: after the next record's end as if the part began
    /// outside quotes (unquoted) or within them (quoted), or at a byte of the file. `merge` names the byte if it was another one
    /// [default: as the part's first records look]
    #[arg(long, help_heading = "Partials", hide_short_help = true, value_name = "WHERE", value_parser = begin, requires = "range")]
    begin: Option<Begin>,
    #[command(flatten)]
    pub(super) records: RecordFlags,
}

/// A run of `aggregate`.
pub(super) struct Run<'a> {
    pub(super) command: &'a Command,
    pub(super) paths: &'a [PathBuf],
    /// The queries, and the forms of their answers.
    pub(super) asked: Vec<(&'a Asked, Form)>,
    /// Min, mean and max of a key and a number, because nothing else is asked.
    pub(super) is_pairs: bool,
}

/// A query of a run, and what becomes of its answer.
pub(super) struct Question<'a> {
    asked: &'a Asked,
    form: Form,
    pub(super) layout: Layout,
    /// Whether the answer is printed.
    reports: bool,
    output: Option<Output>,
    keeping: Option<PartialOutput>,
}

impl<'a> Question<'a> {
    pub(super) fn new(asked: &'a Asked, form: Form) -> Result<Question<'a>> {
        let shown = asked.shown.flags();
        let about_answer = [
            (asked.output.is_some(), "--output"),
            (asked.format.is_some(), "--format"),
        ];
        Ok(Question {
            asked,
            form,
            layout: asked.shown.layout(form)?,
            reports: (asked.partials).reports(&[&shown[..], &about_answer].concat())?,
            output: None,
            keeping: None,
        })
    }

    /// Opens what is written.
    fn open(&mut self, paths: &[PathBuf]) -> Result<()> {
        let target = self.asked.output.as_ref();
        self.keeping = self.asked.partials.open(target, paths)?;
        self.output = self.reports.then(|| open_output(target)).transpose()?;
        Ok(())
    }

    /// Keeps the groups, if they are kept; `answer` becomes that of all that is kept now.
    fn keep(
        &mut self,
        run: &Run<'_>,
        plan: &Plan,
        receipt: Option<&Receipt>,
        answer: &mut Answer,
        pool: &ThreadPool,
    ) -> Result<()> {
        let (Some(keeping), Some(receipt)) = (self.keeping.take(), receipt) else {
            return Ok(());
        };
        let settings = answer_settings(run, self.asked)?;
        let shown = Some(&settings).filter(|_| self.reports);
        let kept = pool.install(|| keeping.keep(answer, plan, receipt, shown))?;
        if let Some(all) = kept {
            let own = std::mem::replace(answer, all);
            answer.take_records_of(own);
        }
        Ok(())
    }

    /// Prints the answer, if it is printed; returns what is to be said of its keys.
    fn print(
        &mut self,
        plan: &Plan,
        answer: &mut Answer,
        pool: &ThreadPool,
    ) -> Result<Option<String>> {
        let Some(output) = self.output.take() else {
            return Ok(None);
        };
        let shown = &self.asked.shown;
        let directory = plan.spill_directory();
        shown.print(answer, &self.layout, self.form, output, directory, pool)
    }
}

/// What is done with the groups of a query.
fn answer_settings(run: &Run<'_>, asked: &Asked) -> Result<Shown> {
    let command = run.command;
    (asked.shown).settings(command.memory, command.spill_dir.as_ref())
}

/// Refuses outputs that are inputs, or of which two would be mixed.
fn refuse_mixed(
    questions: &[Question<'_>],
    rejects: Option<(&'static str, &Path)>,
    paths: &[PathBuf],
) -> Result<()> {
    let mut outputs = Vec::new();
    let (mut prints, mut has_whole) = (0, false);
    for question in questions {
        let target = question.asked.output.as_ref();
        own_input::refuse(target, paths)?;
        let kept = question.asked.partials.output();
        outputs.push(kept.map(|(flag, path)| (flag, &**path)));
        if !question.reports {
            continue;
        }
        // Answers follow each other on standard output.
        let is_standard = own_input::is_standard_output(target);
        prints += usize::from(is_standard);
        if !is_standard || prints == 1 {
            outputs.insert(0, Some(own_input::answer(target)));
        }
        let is_whole = matches!(question.form, Form::Grid(format) if format == GridFormat::Html || !format.is_text());
        has_whole |= is_standard && is_whole;
        if prints > 1 && has_whole {
            return Err(usage(
                "answers in this format don't follow each other on standard output: name a file for each by -o",
            ));
        }
    }
    outputs.push(rejects);
    own_input::refuse_twice(&outputs)
}

/// Says what is to be known of an answer.
pub(super) fn tell(reading: &ReadFlags, input: &Input, pool: &Arc<ThreadPool>, answer: &Answer) {
    tell_records(answer, input, reading, pool);
    if !reading.quiet {
        tell_estimates(answer);
    }
    tell_unread(answer, input, reading, pool);
    tell_unread_rows(answer);
    if answer.spilled_bytes > 0 && !reading.quiet {
        tell_spilled(answer.spilled_bytes);
    }
}

impl QueryFlags {
    /// Whether a flag asks something of the records, and not only how they are written.
    pub(super) fn wants_answer(&self) -> bool {
        let is_asked = self.approximate || self.exact || self.hash_key.is_some();
        let is_asked = is_asked || self.time_zone.is_some() || self.input_time_zone.is_some();
        is_asked || self.range.is_some() || first(&self.records.of_rejects()).is_some()
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
    pub(super) fn query(&self, run: &Run<'_>, asked: &Asked) -> Result<Query> {
        self.asking(self.unasked(run)?, run, asked)
    }

    /// The same that asks nothing yet.
    fn unasked(&self, run: &Run<'_>) -> Result<Query> {
        let on_error = self.records.on_error(run.command.on_error)?;
        let query = self.input.query(&self.records, run.paths, run.is_pairs)?;
        let mut query = query.approximate(self.approximate).on_error(on_error);
        if let Some(path) = &self.hash_key {
            query = query.hash_key(&secret(path)?);
        }
        if let Some(name) = &self.time_zone {
            query = query.time_zone(name)?;
        }
        if let Some(name) = &self.input_time_zone {
            query = query.input_time_zone(name)?;
        }
        self.lookups.applied(query, run)
    }

    /// The same that asks what one of the run's queries does.
    fn asking(&self, query: Query, run: &Run<'_>, asked: &Asked) -> Result<Query> {
        let query = asked.items().applied(query)?;
        self.input.check_names(&query)?;
        Ok(query.shown(answer_settings(run, asked)?))
    }

    /// The queries of a run, after one that asks nothing yet.
    pub(super) fn queries(&self, run: &Run<'_>) -> Result<(Query, Vec<Query>)> {
        if let (true, Some((flag, _))) = (run.asked.len() > 1, self.records.output()) {
            let why = "is about the records that one query leaves out: ask that query by itself";
            return Err(usage(format!("{flag} {why}")));
        }
        let unasked = self.unasked(run)?;
        let mut queries = Vec::new();
        for (asked, form) in &run.asked {
            if let (Form::Lines(_), Some(flag)) = (form, asked.shown.of_columns()) {
                let why =
                    format!("{flag} has no effect on this format: `-f csv` shows its columns");
                return Err(usage(why));
            }
            queries.push(self.asking(unasked.clone(), run, asked)?);
        }
        // The first line is what one of them takes it for.
        if queries.iter().any(Query::has_header) {
            queries = queries
                .into_iter()
                .map(|query| query.header(true))
                .collect();
        }
        Ok((unasked, queries))
    }

    /// Opens the input, if it isn't open, and compiles the queries for it.
    pub(super) fn compile(
        &self,
        run: &Run<'_>,
        queries: &[Query],
        questions: &[Question<'_>],
        input: Option<Input>,
    ) -> Result<(Input, Plans)> {
        let (command, reading) = (run.command, &run.command.reading);
        let input = match input {
            Some(input) => input,
            None => reading.open(run.paths, command.memory)?,
        };
        let input = match self.range {
            Some((part, parts)) => input.part(part, parts)?,
            None => input,
        };
        let input = match self.begin {
            Some(begin) => input.begin(begin)?,
            None => input,
        };
        let config = Config {
            max_record: reading.max_record(),
            ..Config::default()
        };
        check_text(&input)?;
        let bytes = reading.memory_of_keys(command.memory, &input);
        let mut plans = Vec::new();
        for (query, question) in queries.iter().zip(questions) {
            let query = match bytes {
                Some(bytes) => &query.clone().memory(bytes),
                None => query,
            };
            let plan = query.plan(&input, &config)?;
            plan.check_layout(&question.layout)?;
            if let Form::Lines(_) = question.form {
                plan.check_lines()?;
            }
            plans.push(plan);
        }
        Ok((input, Plans::new(plans)?))
    }

    /// What is to be known of the first records before a run, for each query; nothing if it is to be quiet.
    pub(super) fn before(
        &self,
        run: &Run<'_>,
        questions: &[Question<'_>],
        (input, plans): (&Input, &Plans),
    ) -> Result<Vec<Vec<String>>> {
        if run.command.reading.quiet {
            return Ok(Vec::new());
        }
        let each = questions.iter().zip(plans.all());
        let each = each.map(|(question, plan)| self.notices(question.asked, plan, input));
        each.collect()
    }

    /// Reads the input, and settles what becomes of records that are left out.
    pub(super) fn fold(
        &self,
        run: &Run<'_>,
        input: &Input,
        plans: &Plans,
        mut rejects: Option<Output>,
    ) -> Result<FoldOutput<Vec<Answer>>> {
        let reading = &run.command.reading;
        let mut folded = reading.fold(input, plans)?;
        if plans.all().iter().any(Plan::has_unread_names) && !reading.quiet {
            notice(
                "the first record looks like a header, and is counted: `-H` takes it for the names of the columns, \
                 `--no-header` for a record",
            );
        }
        for answer in &mut folded.output {
            settle(answer, rejects.take(), input, reading, &folded.pool)?;
        }
        Ok(folded)
    }

    /// Answers the queries of a run, over `input` if it was opened already.
    pub(super) fn run(&self, run: &Run<'_>, input: Option<Input>) -> Result<()> {
        let reading = &run.command.reading;
        let (unasked, queries) = self.queries(run)?;
        let questions = run.asked.iter();
        let questions = questions.map(|(asked, form)| Question::new(asked, *form));
        let mut questions: Vec<_> = questions.collect::<Result<_>>()?;
        let inputs = run.paths.iter().cloned().chain(self.lookups.paths());
        let inputs: Vec<_> = inputs.collect();
        refuse_mixed(&questions, self.records.output(), &inputs)?;
        for question in &mut questions {
            question.open(&inputs)?;
        }
        let target = run.asked[0].0.output.as_ref();
        let rejects = self.records.open(target, &inputs)?;
        let memory = reading.memory();
        let (input, plans) = self.compile(run, &queries, &questions, input)?;
        if self.explain {
            for ((question, plan), query) in questions.into_iter().zip(plans.all()).zip(&queries) {
                let explained = explained((&unasked, query, plan), question.asked, &input)?;
                let output = question.output.map_or_else(|| open_output(None), Ok)?;
                write_output(output, |out| out.write_all(explained.as_bytes()))?;
            }
            return Ok(());
        }
        for notices in self.before(run, &questions, (&input, &plans))? {
            console::gather(|| notices.iter().for_each(notice));
        }
        console::say_gathered();
        let is_kept = questions.iter().any(|question| question.keeping.is_some());
        let receipt = is_kept.then(|| Receipt::of(&input)).transpose()?;
        for (question, plan) in questions.iter().zip(plans.all()) {
            if let (Some(keeping), Some(receipt)) = (&question.keeping, &receipt) {
                keeping.check(plan, &input, receipt)?;
            }
        }
        let FoldOutput {
            output: mut answers,
            stats: figures,
            pool,
        } = self.fold(run, &input, &plans, rejects)?;
        // What is kept says it, and is checked when it is merged.
        let is_printed = questions.iter().any(|question| question.reports);
        let guess = plans.all()[0].guessed();
        if let (true, false, Some(begin)) = (is_printed, reading.quiet, guess) {
            notice(spell::hinted(Hint::Begin(begin)));
        }
        let mut prints = 0;
        for ((question, plan), answer) in questions.iter_mut().zip(plans.all()).zip(&mut answers) {
            question.keep(run, plan, receipt.as_ref(), answer, &pool)?;
            let goes_to_stdout = own_input::is_standard_output(question.asked.output.as_ref());
            if question.output.is_some() && goes_to_stdout {
                prints += 1;
                if prints > 1 {
                    console::print(b"\n")?;
                }
            }
            let odd = question.print(plan, answer, &pool)?;
            console::gather(|| {
                odd.filter(|_| !reading.quiet).into_iter().for_each(notice);
                tell(reading, &input, &pool, answer);
            });
        }
        console::say_gathered();
        if reading.stats.is_some() {
            let delimiter = queries[0]
                .is_sniffed()
                .then(|| plans.all()[0].delimiter().escape_ascii().to_string());
            let delimiter = delimiter.map(|name| ("delimiter", name));
            let numbers = (self.records.is_float()).then(|| ("numbers", "doubles".to_string()));
            let told: Vec<_> = delimiter.into_iter().chain(numbers).collect();
            let counted = counted(&answers);
            let counted: Vec<_> = counted.iter().map(|(name, n)| (&**name, *n)).collect();
            reading.print_stats(&figures, &counted, &told, memory);
        }
        Ok(())
    }

    /// What is to be known of the first records before a run.
    fn notices(&self, asked: &Asked, plan: &Plan, input: &Input) -> Result<Vec<String>> {
        let mut notices = plan.unseen(input)?;
        notices.extend(plan.doubts().iter().map(spell::doubt));
        notices.extend(plan.shadowed.iter().map(|(name, of_table)| {
            let (name, of_table) = (visible(name), visible(of_table));
            format!(
                "`{name}` is taken for the input's column: that of the table is called {of_table}"
            )
        }));
        let mut sources = input.sources().iter();
        let stream = sources.find(|source| !source.can_repeat());
        if let (Some(("--continue", _)), Some(stream)) = (asked.partials.output(), stream) {
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

/// What a query does with the input, in words. `unasked` is the same query that asks nothing yet.
pub(super) fn explained(
    (unasked, query, plan): (&Query, &Query, &Plan),
    asked: &Asked,
    input: &Input,
) -> Result<String> {
    let mut explained = plan.explain(input)?;
    let parts = asked.items().all_but_one().into_iter();
    let parts = parts.map(|(name, items)| Ok((name, items.applied(unasked.clone())?)));
    let parts: Vec<_> = parts.collect::<Result<_>>()?;
    for cost in costs(plan, query, &parts, input)? {
        explained.add("costs", cost);
    }
    Ok(explained.to_string())
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

/// Says that groups went to files.
pub(super) fn tell_spilled(bytes: u64) {
    let bytes = units::grouped(bytes);
    notice(format!(
        "the keys outgrew the memory (--memory): {bytes} bytes went to temporary files"
    ));
}

/// What was counted, of the first query and of further ones with their numbers.
pub(super) fn counted(answers: &[Answer]) -> Vec<(String, u64)> {
    let each = answers.iter().zip(1..).flat_map(|(answer, number)| {
        let counted = [
            ("rows", answer.rows),
            ("keys", answer.groups),
            ("filtered", answer.filtered),
            ("empty_lines", answer.empty_lines),
            ("skipped", answer.skipped),
            ("repeated_headers", answer.repeated_headers.count),
            ("nulled", answer.nulled),
            (
                "unmatched",
                answer.unmatched.iter().map(|(count, _)| count).sum(),
            ),
            ("unread", answer.unread),
            ("bytewise", answer.bytewise),
            ("key_sharers", answer.key_sharers),
            ("spilled_bytes", answer.spilled_bytes),
        ];
        counted.map(|(name, n)| match number {
            1 => (name.to_string(), n),
            _ => (format!("{name}_{number}"), n),
        })
    });
    each.collect()
}
