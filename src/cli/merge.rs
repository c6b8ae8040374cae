//! `ringfold merge`: an answer or a partial of several partials.

use std::path::PathBuf;

use clap::Args;
use rayon::ThreadPool;
use ringfold_read::internals::{heap, units::counted};

use crate::cli::answer_flags::{self, AnswerFlags, Form, first};
use crate::cli::console::{notice, open_output, say, usage, write_output};
use crate::cli::own_input::{self, is_standard, is_standard_output};
use crate::cli::partials::range;
use crate::cli::query::{tell_estimates, tell_spilled};
use crate::cli::size::size;
use crate::cli::skipped::tell_unread_rows;
use crate::query::{Answer, Layout, Merged, Partial, Refusal, Shown};
use crate::report::grid::GridFormat;
use crate::{Error, Kind, Result};

/// Merge partials that `aggregate --save-partial` has kept, and print the answer of all
///
/// The answer is that of one run over everything. Partials of other queries are refused, and so are records that come twice
/// and parts that are missing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfold merge days/*.part
      the answer of all days
  ringfold merge --sort count:desc --top 10 a.part b.part
      the ten groups with most records
  ringfold merge --save-partial all.part a.part b.part
      one partial of two
  ssh host ringfold aggregate -k 1 --save-partial - log.csv | ringfold merge - here.part
      another machine's part comes through a pipe
  ringfold merge --keys 3/8 -o 3.csv days/*.part
      the third of eight parts of the answer's rows")]
pub(super) struct Command {
    /// Partials; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The format of the answer [default: csv, or table on a terminal]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<GridFormat>,
    /// The file to write; it appears when the answer is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    shown: AnswerFlags,
    /// The file to keep the groups in, as one partial, instead of printing them
    #[arg(long, value_name = "FILE")]
    save_partial: Option<PathBuf>,
    /// Print the answer as well
    #[arg(long, requires = "save_partial")]
    report_too: bool,
    /// Print the answer although parts are missing, and say on stderr which
    #[arg(long)]
    allow_gaps: bool,
    /// Only the keys of shard I of N. A key's hash says which one it is in, so N commands with 1/N to N/N, anywhere and in any
    /// order, print each row of the whole answer once; with --save-partial, shard I of each partial can be merged first
    #[arg(long, value_name = "I/N", value_parser = range)]
    keys: Option<(u32, u32)>,
    /// Memory for the groups of an answer, such as 512M or 8G; when they need more they are merged to a temporary file
    /// without a name [default: two fifths of the free memory, or of what a control group allows]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// The directory for groups that don't fit into the memory [default: $TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    spill_dir: Option<PathBuf>,
    /// Worker threads [default: one for each core]
    #[arg(short = 'j', long, value_name = "N")]
    pub(super) threads: Option<usize>,
}

impl Command {
    pub(super) fn run(&self) -> Result<()> {
        self.refuse_stray_flags()?;
        let reports = self.save_partial.is_none() || self.report_too;
        let output = reports
            .then(|| open_output(self.output.as_ref()))
            .transpose()?;
        own_input::refuse(self.output.as_ref(), &self.files)?;
        let keep = self.save_partial.as_ref();
        let answer = reports.then(|| own_input::answer(self.output.as_ref()));
        own_input::refuse_twice(&[answer, keep.map(|path| ("--save-partial", &**path))])?;
        let kept = keep.map(|path| open_output(Some(path))).transpose()?;
        let partials: Vec<Partial> = self
            .files
            .iter()
            .map(Partial::open)
            .collect::<Result<_>>()?;
        let merged = self.narrowed(Partial::merge(&partials)?)?;
        let form = answer_flags::form(self.format, self.output.as_deref())?;
        let (layout, shown) = self.shown(form)?;
        if self.memory.is_some() {
            heap::return_large();
        }
        merged.check_layout(&layout, &shown)?;
        self.check_missing(&merged, reports)?;
        let pool = pool(self.threads)?;
        if let Some(kept) = kept {
            pool.install(|| write_output(kept, |out| merged.save(out)))?;
        }
        let Some(output) = output else {
            return Ok(());
        };
        let mut answer = pool.install(|| merged.answer(&shown))?;
        let directory = shown.directory();
        let odd = (self.shown).print(&mut answer, &layout, form, output, &directory, &pool)?;
        odd.into_iter().for_each(notice);
        tell(&answer);
        Ok(())
    }

    /// Only the keys that are asked for.
    pub(super) fn narrowed<'a>(&self, merged: Merged<'a>) -> Result<Merged<'a>> {
        if let Some((number, count)) = self.keys {
            return merged.keys(number, count);
        }
        if let Some((number, count)) = merged.shard() {
            notice(format!("only the keys of shard {number}/{count} are here"));
        }
        Ok(merged)
    }

    /// Says what wasn't read.
    ///
    /// # Errors
    /// Some wasn't, and the answer is to be of all.
    pub(super) fn check_missing(&self, merged: &Merged<'_>, reports: bool) -> Result<()> {
        let missing = merged.missing();
        if missing.is_empty() {
            return Ok(());
        }
        if reports && !self.allow_gaps {
            let missing = missing.to_string();
            return Err(Refusal::Incomplete { missing }.into());
        }
        notice(missing);
        Ok(())
    }

    /// How the answer of partials is shown.
    pub(super) fn shown(&self, form: Form) -> Result<(Layout, Shown)> {
        let layout = self.shown.layout(form)?;
        let shown = (self.shown).settings(self.memory, self.spill_dir.as_ref())?;
        Ok((layout, shown))
    }

    fn refuse_stray_flags(&self) -> Result<()> {
        let own = [
            (self.format.is_some(), "--format"),
            (self.output.is_some(), "--output"),
        ];
        let flags = self.shown.flags();
        let asked = first(own.iter().chain(&flags));
        if let (Some(flag), Some(_), false) = (asked, &self.save_partial, self.report_too) {
            return Err(usage(format!(
                "{flag} is about the answer, which isn't printed: add --report-too"
            )));
        }
        let is_kept_there = (self.save_partial.as_deref()).is_some_and(is_standard);
        if is_kept_there && self.report_too && is_standard_output(self.output.as_ref()) {
            return Err(usage(
                "the answer goes to standard output: name a file for --save-partial",
            ));
        }
        match self.files.iter().filter(|path| is_standard(path)).count() {
            0 | 1 => Ok(()),
            _ => Err(usage("standard input can be read only once")),
        }
    }
}

/// The threads that merge and make the answer.
pub(super) fn pool(threads: Option<usize>) -> Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    let pool = pool.build();
    pool.map_err(|error| Error::new(Kind::Engine, error.to_string()))
}

/// Says what is to be known of an answer of partials.
pub(super) fn tell(answer: &Answer) {
    tell_estimates(answer);
    tell_unread_rows(answer);
    if answer.spilled_bytes > 0 {
        tell_spilled(answer.spilled_bytes);
    }
    if answer.skipped > 0 {
        let skipped = counted(answer.skipped, "record");
        say(&format!(
            "{skipped} skipped by the runs that made the partials"
        ));
    }
}
