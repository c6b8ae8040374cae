//! What all jobs that read share: their flags, their files, and a run with progress.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ringfold_bench::measure::memory::Sampler;
use ringfold_bench::measure::reads::ReadWatch;
use ringfold_read::internals::{head::look_at_heads, line_of};

use crate::budget::default_bytes;
use crate::cli::console::{give_up, notice, saying_to, usage};
use crate::cli::duration::duration;
use crate::cli::hosted::Host;
use crate::cli::progress::{self, Bar, When};
use crate::cli::size::size;
use crate::cli::{inherited, knobs, profile, spell, stats};
use crate::output::file::Output;
use crate::partial::layout::MAGIC;
use crate::query::Refusal;
use crate::{Config, Engine, Error, Input, Progress, Result, RingDefaults};

/// Decoders have this part of the memory, within limits.
const DECODERS: u64 = 4;
const DECODERS_MIN: u64 = 16 << 20;
const DECODERS_MAX: u64 = 1 << 30;

/// Checks that the first file is text in lines, as [`Input::check_text`] does, and no partial.
pub(super) fn check_text(input: &Input) -> Result<()> {
    let partial = look_at_heads(input.sources(), |source, bytes, ended| {
        let is_enough = ended || bytes.len() >= MAGIC.len();
        let error = || Error::from(Refusal::Partial).in_file(source.index(), source.name());
        let found = || bytes.starts_with(&MAGIC).then(error);
        is_enough.then(|| (!bytes.is_empty()).then(found))
    });
    match partial?.flatten() {
        Some(error) => Err(error),
        None => input.check_text(),
    }
}

/// The flags that all jobs that read share.
#[derive(Args)]
pub(super) struct ReadFlags {
    /// Worker threads [default: one for each core; one less for pipes, which a thread of their own reads]
    #[arg(short = 'j', long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Print rows, time and memory on stderr; =full prints all figures, =json prints them as JSON
    ///
    /// Memory has two figures: the process's own (anonymous pages), and mapped pages of files, which
    /// the kernel takes back when it needs them. Each is the most of 50 samples a second.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "text", hide_possible_values = true)]
    pub(super) stats: Option<stats::Format>,
    /// When to draw progress on stderr (auto: on a terminal)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    progress: When,
    /// No progress and no notices. Errors and the number of skipped records are still printed
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Read compressed files as they are. Otherwise gzip, zstd, bzip2, xz and lz4 are decompressed, known by their first
    /// bytes
    #[arg(long, hide_short_help = true)]
    no_decompress: bool,
    /// What the windows of zstd and xz files may take together. Files wait for each other; one that alone needs more is an
    /// error [default: a quarter of --memory, 16M to 1G, taken off what keys may have]
    #[arg(long, value_name = "SIZE", value_parser = size, hide_short_help = true)]
    decoder_memory: Option<u64>,
    /// Print the flags that say how files are read: engines, block sizes, io_uring, the page cache
    #[arg(long)]
    pub(super) help_io: bool,
    #[command(flatten)]
    pub(super) how: IoFlags,
    /// Looks at the reads, where the figures are wanted.
    #[arg(skip)]
    watch: Arc<ReadWatch>,
    /// The program that the run is in, if it isn't this one.
    #[arg(skip)]
    pub(super) host: Option<Host>,
}

/// How files are read: `--help-io`.
#[derive(Args)]
#[command(next_help_heading = "I/O")]
pub(super) struct IoFlags {
    /// What reads the input: auto (workers read what is cached, the ring reads the rest), uring,
    /// uring-raw, read, pread, mmap or memory
    #[arg(long, value_name = "ENGINE", default_value = "auto", hide_possible_values = true,
          value_parser = Engine::ALL.map(Engine::name))]
    engine: String,
    /// Read past the page cache (O_DIRECT); an error where the file system refuses it. Helps with
    /// files that aren't cached: nothing is copied, nothing evicted
    #[arg(long)]
    pub(super) direct: bool,
    /// Bytes of a read, such as 256K or 1M. Large blocks take less processor time, small ones less
    /// memory [default: 512K through the ring, 2M with pread, up to 16M with mmap]
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    block_size: Option<u64>,
    /// Reads in flight at most. A higher number helps until the device is busy [default: 32]
    #[arg(long, alias = "iodepth", value_name = "N")]
    queue_depth: Option<usize>,
    /// Take block size and queue depth of rings from a profile of `ringfold tune`: its name, or auto for that of the
    /// first file's device. Other flags beat it
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Buffers of the ring, at least one more than the queue depth. A higher number helps if workers
    /// are slow now and then [default: depth + 2 x threads; 12 more for blocks below 1M]
    #[arg(long, value_name = "N")]
    buffers: Option<usize>,
    /// The longest record allowed
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    max_record: u64,
    /// End the run with an error when one read takes longer than this, such as 500ms, 30s or 2m. The
    /// time in the device's queue counts. Pipes and terminals have no limit [default: none; after 30s
    /// there is a notice]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    io_timeout: Option<Duration>,
    #[command(flatten)]
    switches: knobs::Switches,
}

impl ReadFlags {
    /// Whether reads have a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.how.io_timeout.is_some()
    }

    /// The longest record that is allowed.
    pub(super) fn max_record(&self) -> usize {
        usize::try_from(self.how.max_record).unwrap_or(usize::MAX)
    }

    /// Opens files; compressed ones are read as the text in them. `memory` is that of `--memory`.
    pub(super) fn open<P: AsRef<Path>>(&self, paths: &[P], memory: Option<u64>) -> Result<Input> {
        let input = match &self.host {
            Some(host) => host.open(paths)?,
            None => Input::open(paths)?,
        };
        self.text_of(input, memory)
    }

    /// An input with the text of compressed files in the place of these.
    pub(super) fn text_of(&self, input: Input, memory: Option<u64>) -> Result<Input> {
        let input = match (self.no_decompress, self.threads) {
            (true, _) => return Ok(input),
            (false, Some(threads)) => input.decompressed_by(threads)?,
            (false, None) => input.decompressed()?,
        };
        if !input.has_windows() {
            return Ok(input);
        }
        let default = || {
            let all = memory.unwrap_or_else(default_bytes);
            (all / DECODERS).clamp(DECODERS_MIN, DECODERS_MAX)
        };
        let bytes = self.decoder_memory.unwrap_or_else(default);
        Ok(input.decoder_memory(bytes))
    }

    /// What is left of `--memory` for keys.
    pub(super) fn memory_of_keys(&self, memory: Option<u64>, input: &Input) -> Option<u64> {
        let is_shared = self.decoder_memory.is_none() && input.has_windows();
        let decoders = |all: u64| if is_shared { all / DECODERS } else { 0 };
        memory.map(|all| all - decoders(all).min(DECODERS_MAX))
    }

    /// Whether reads are looked at. It costs two looks at the clock a read.
    fn is_watched(&self) -> bool {
        matches!(self.stats, Some(stats::Format::Full | stats::Format::Json))
    }

    /// Samples the memory of this process, if the figures are wanted.
    pub(super) fn memory(&self) -> Option<Sampler> {
        self.stats.map(|_| Sampler::of_this_process())
    }

    /// Prints the figures of a run, if they are wanted. `job` has what the job counted, the rows first; `found` what it
    /// found that isn't a number.
    pub(super) fn print_stats(
        &self,
        stats: &crate::Stats,
        job: &[(&str, u64)],
        found: &[(&str, String)],
        memory: Option<Sampler>,
    ) {
        if let (Some(format), Some(memory)) = (self.stats, memory) {
            let reads = self.is_watched().then(|| self.watch.figures());
            stats::print(format, stats, job, found, memory.peak(), reads.as_ref());
        }
    }

    /// What a profile says, if one is to be used.
    fn ring_defaults(&self, input: &Input) -> Result<RingDefaults> {
        let Some(name) = &self.how.profile else {
            return Ok(RingDefaults::default());
        };
        let first = input.sources().first().filter(|source| source.is_file());
        let path = first.map(|source| Path::new(&**source.name()));
        let found = profile::find(name, path)?;
        if found.is_none() && !self.quiet {
            notice("there is no profile for this device: `ringfold tune FILE` makes one");
        }
        Ok(
            found.map_or(RingDefaults::default(), |profile| RingDefaults {
                block_size: usize::try_from(profile.block_size_bytes).ok(),
                queue_depth: Some(profile.queue_depth),
            }),
        )
    }

    fn config(&self, input: &Input, progress: Option<Arc<Progress>>) -> Result<Config> {
        let quiet = self.quiet;
        let lines = self.host.as_ref().map(|host| host.lines.clone());
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Ok(Config {
            engine: self.how.engine.parse::<Engine>()?,
            direct: self.how.direct,
            block_size: self.how.block_size.map(bytes),
            queue_depth: self.how.queue_depth,
            ring_defaults: self.ring_defaults(input)?,
            buffers: self.how.buffers,
            threads: self.threads,
            max_record: self.max_record(),
            knobs: self.how.switches.knobs(),
            cancellation: self.host.as_ref().map(Host::cancellation),
            progress,
            io_timeout: self.how.io_timeout,
            observer: self
                .is_watched()
                .then(|| Arc::clone(&self.watch) as Arc<dyn crate::Observer>),
            // Threads and rings that wait for the read may never return, so the process doesn't wait for them.
            overdue: match &self.host {
                Some(_) => None,
                None => Some(Arc::new(|error| give_up(error))),
            },
            notice: Arc::new(move |said| {
                if !quiet {
                    saying_to(lines.as_ref(), || notice(spell::notice(said)));
                }
            }),
            ..Config::default()
        })
    }

    /// Transforms files and draws progress; `threads` counts before the flag.
    pub(super) fn transform<T: crate::Transform>(
        &self,
        input: &Input,
        threads: Option<usize>,
        job: &T,
        out: &mut Output,
    ) -> Result<crate::Stats> {
        // Somebody may be looking at the output on the same terminal, here or behind a pipe.
        let progress = match self.progress {
            When::Auto if !out.is_stored() => When::Never,
            when => when,
        };
        let mut config = self.config(input, Bar::of(progress, self.quiet))?;
        config.threads = threads.or(config.threads);
        let transformed = crate::transform(input, &config, job, out);
        progress::clear();
        transformed
    }

    /// Folds files and draws progress. What follows may use the threads of the run.
    pub(super) fn fold<F: crate::Fold>(
        &self,
        input: &Input,
        job: &F,
    ) -> Result<FoldOutput<F::Output>> {
        let progress = match &self.host {
            Some(host) => Some(host.follower()),
            None => Bar::of(self.progress, self.quiet),
        };
        let mut config = self.config(input, progress)?;
        let pool = crate::pool(input, &config)?;
        config.pool = Some(Arc::clone(&pool));
        let folded = crate::fold(input, &config, job);
        progress::clear();
        let (output, stats) = folded?;
        Ok(FoldOutput {
            output,
            stats,
            pool,
        })
    }
}

/// As many bytes are read once more for the number of a line in a notice. An error's line takes as many as it needs.
const LINE_BYTES: u64 = 256 << 20;

impl ReadFlags {
    /// The number of the line where a record of a run begins, at this byte of this file.
    pub(super) fn line(
        &self,
        input: &Input,
        pool: &Arc<rayon::ThreadPool>,
        place: (u32, u64),
    ) -> Option<u64> {
        if place.1 > LINE_BYTES {
            return None;
        }
        let config = self.config(input, None).ok()?;
        line_of(input, &config, pool, place, b'\n')
    }

    /// The place of such a record, in words.
    pub(super) fn place(
        &self,
        input: &Input,
        pool: &Arc<rayon::ThreadPool>,
        place: (u32, u64),
        line: Option<u64>,
    ) -> String {
        place_of(input, place, line.or_else(|| self.line(input, pool, place)))
    }
}

/// A place in words.
pub(super) fn place_of(input: &Input, (file, byte): (u32, u64), line: Option<u64>) -> String {
    let name = input.sources()[file as usize].name();
    let line = line.map_or(String::new(), |line| format!(" line {line}"));
    format!("{name} byte {byte}{line}")
}

/// The output of a job, what the run did, and its threads.
pub(super) struct FoldOutput<T> {
    pub(super) output: T,
    pub(super) stats: crate::Stats,
    pub(super) pool: Arc<rayon::ThreadPool>,
}

/// What to read.
#[derive(Args)]
pub(super) struct Files {
    /// Files to read; - is standard input, which is also read when there is no FILE
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

impl Files {
    /// The paths. Without a FILE, a terminal as standard input is an error: nobody means to type the data.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>> {
        let paths = match self.files.is_empty() {
            true if io::stdin().is_terminal() => {
                return Err(usage("no FILE to read: name one, or pipe into ringfold"));
            }
            true => vec!["-".into()],
            false => self.files.clone(),
        };
        if paths.iter().any(|path| path.as_os_str() == "-") {
            inherited::standard_input()?;
        }
        Ok(paths)
    }
}
