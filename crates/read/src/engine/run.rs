//! Runs an input through an engine: checks the request, cuts the input into blocks, sets the threads
//! to work, and reports the lowest failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::engine::cache::advice;
use crate::engine::cancellation::cancellable;
#[cfg(feature = "decompress")]
use crate::engine::changes::report_left_out;
use crate::engine::changes::{changes, cut_off, report_changes};
use crate::engine::config::{Config, Engine};
use crate::engine::deliver::delivery::Delivery;
use crate::engine::deliver::watch::{Watchdog, is_watched};
use crate::engine::knobs::FileAdvice;
use crate::engine::lines;
use crate::engine::plan::settings;
use crate::engine::plan::sizing::MemoryLimit;
use crate::engine::pool;
use crate::engine::sink::Sink;
use crate::engine::stats::Stats;
use crate::engine::strategy::Run;
use crate::error::{Error, Kind, Result};
use crate::input::load::load;
use crate::input::source::Source;
use crate::input::spans::Input;
use crate::linux::affinity::Affinity;
use crate::linux::threads;

/// Reads the input's spans and hands their records to the sink.
///
/// # Errors
/// The lowest of all failures: in the data, from the kernel, or of a worker. Or the engine or a
/// setting that was asked for isn't available.
pub fn run(input: &Input, config: &Config, sink: &dyn Sink) -> Result<Stats> {
    run_then(input, config, sink, &Arc::default(), || ()).map(|(stats, ())| stats)
}

/// The same, and then does something with the run's own threads. `delivered` counts the bytes that the sink takes.
pub(crate) fn run_then<T: Send>(
    input: &Input,
    config: &Config,
    sink: &dyn Sink,
    delivered: &Arc<AtomicU64>,
    then: impl FnOnce() -> T + Send,
) -> Result<(Stats, T)> {
    run_to_end(input, config, sink, delivered, then).map_err(|error| input.marked(error))
}

fn run_to_end<T: Send>(
    input: &Input,
    config: &Config,
    sink: &dyn Sink,
    delivered: &Arc<AtomicU64>,
    then: impl FnOnce() -> T + Send,
) -> Result<(Stats, T)> {
    settings::check(config)?;
    let input = &input.begun();
    let started = Instant::now();
    let memory = MemoryLimit::of_this_process();
    let pool = pool::of_run(input, config, &memory)?;
    let pin = Some(&config.knobs.pin).filter(|pin| !pin.is_empty());
    let _pinned = pin.map(|pin| Affinity::new(pin)).transpose()?;
    let threads = pool.current_num_threads();
    let read_ahead = advice::limit_read_ahead(input, config, &memory, threads);
    let watch = Watchdog::new(input, config, delivered)?;
    let fadvise = match config.knobs.fadvise {
        Some(advice) => advice::advise(input, advice)?.then_some(advice),
        None => read_ahead.map(|_| FileAdvice::Random),
    };
    let opened = input;
    let loaded;
    let input = match config.engine {
        Engine::Memory => {
            memory.check_loadable(input)?;
            loaded = load_all(input, config, &watch)?;
            &loaded
        }
        _ => input,
    };
    let delivery = Delivery::new(input, sink, config, &watch);
    if delivery.framing.is_stateful() {
        check_cuts(input)?;
    }
    let observed = config
        .observer
        .as_ref()
        .map(|observer| (observer, WorkersCpu::begin(&pool)));
    let mut run = Run {
        input,
        config,
        delivery: &delivery,
        pool: &pool,
        memory,
        read_ahead,
        keeps: false,
        longest_block: settings::MAX_BLOCK,
        sequence: 0,
        has_reported_fallback: false,
        stats: begun(opened, config, threads, fadvise),
    };
    let outcome = run.read_all();
    let Run { mut stats, .. } = run;
    if let Some((observer, before)) = observed {
        observer.workers_ended(before.end(&pool));
    }
    stats.without_effect = settings::without_effect(config, &stats);
    stats.blocks = delivery.blocks();
    given_up(&watch)?;
    check_outcome(opened, &delivery, config, &pool, outcome)?;
    let done = pool.install(|| cancellable(then))?;
    stats.elapsed_s = started.elapsed().as_secs_f64();
    Ok((stats, done))
}

/// The processor time that all workers had taken before a run.
struct WorkersCpu(Arc<AtomicU64>);

impl WorkersCpu {
    /// Each worker tells before its first work of the run. Nobody waits for that: threads may just be starting.
    fn begin(pool: &ThreadPool) -> WorkersCpu {
        let before = Arc::<AtomicU64>::default();
        let sum = Arc::clone(&before);
        pool.spawn_broadcast(move |_| {
            sum.fetch_add(threads::own_cpu().as_nanos() as u64, Relaxed);
        });
        WorkersCpu(before)
    }

    /// What they have taken since. A worker does what it is told in order, so all have told by then.
    fn end(self, pool: &ThreadPool) -> Duration {
        let after: Duration = pool.broadcast(|_| threads::own_cpu()).into_iter().sum();
        after.saturating_sub(Duration::from_nanos(self.0.load(Relaxed)))
    }
}

/// The lowest failure of a run, of which `outcome` is what the engine says; and notices of files that have changed.
fn check_outcome(
    opened: &Input,
    delivery: &Delivery<'_>,
    config: &Config,
    pool: &Arc<ThreadPool>,
    outcome: Result<()>,
) -> Result<()> {
    let changes = pool.install(|| changes(opened));
    let cut_off = cut_off(opened, &changes);
    let found = delivery.outcome().map_err(|error| match &cut_off {
        Some(cut) if error.kind() == Kind::Data && cut.file_index() == error.file_index() => {
            cut.clone()
        }
        _ => with_line(delivery, config, pool, error),
    });
    // What was found in the data counts before what an engine couldn't do after it.
    found.and(outcome)?;
    cut_off.map_or(Ok(()), Err)?;
    report_changes(opened, &changes, config);
    #[cfg(feature = "decompress")]
    report_left_out(opened, config);
    Ok(())
}

/// The figures of a run that begins.
fn begun(input: &Input, config: &Config, threads: usize, fadvise: Option<FileAdvice>) -> Stats {
    let watched = input.sources().iter().any(|source| is_watched(source));
    let io_timeout = config.io_timeout.filter(|_| watched);
    Stats {
        threads,
        engine: config.engine.to_string(),
        fadvise: fadvise.map(|advice| advice.to_string()),
        pinned_cpus: config.knobs.pin.clone(),
        io_timeout_s: io_timeout.map(|limit| limit.as_secs_f64()),
        ..Stats::default()
    }
}

/// Loads the whole input, watched.
fn load_all(input: &Input, config: &Config, watch: &Watchdog) -> Result<Input> {
    let place = watch.place();
    let reads = |source: &Source, bytes| {
        let token = config.cancellation.as_ref();
        token.inspect(|token| token.unwind());
        place.begin(source, bytes);
    };
    let loaded = cancellable(|| load(input, u64::MAX, &reads)).flatten();
    place.done();
    given_up(watch).and(loaded)
}

/// What the run ends with when a read took too long, whatever else there is to tell.
fn given_up(watch: &Watchdog) -> Result<()> {
    watch.overdue().cloned().map_or(Ok(()), Err)
}

/// Refuses spans that begin within a file at a place before which not all bytes are read: where records end there isn't
/// known with a stateful framing.
fn check_cuts(input: &Input) -> Result<()> {
    // `Input::begin` says where a part begins.
    let begins = input.begins().map(|(first, _)| (first.source, first.from));
    let mut before = begins.unwrap_or_default();
    for span in input.spans() {
        let known = span.from == 0 || (span.source, span.from) == before;
        if !known {
            let source = input.source(span);
            let cause = "where records end at a span's start is only known when all bytes before it are read";
            let error = source.error(Error::new(Kind::Usage, cause));
            return Err(error.at_bytes(span.from..span.to));
        }
        before = (span.source, span.to);
    }
    Ok(())
}

/// Adds the number of the line to a failure in the data. Blocks come in any order, so the lines of files are counted only
/// now, by a run of the same engine and threads.
fn with_line(
    delivery: &Delivery<'_>,
    config: &Config,
    pool: &Arc<ThreadPool>,
    error: Error,
) -> Error {
    let (Kind::Data, Some(bytes), Some(line_end)) =
        (error.kind(), error.bytes(), delivery.framing.line_end())
    else {
        return error;
    };
    if error.line().is_some() {
        return error;
    }
    let (file, start) = (error.file_index(), bytes.start);
    let counted = delivery.lines.as_ref();
    let counted = counted.and_then(|lines| lines.before(file, start));
    let again = || line_of(delivery.input, config, pool, (file, start), line_end);
    match counted.map(|lines| lines + 1).or_else(again) {
        Some(line) => error.at_line(line),
        None => error,
    }
}

/// The number of the line, from 1, of a place, a file and a byte of it. What lies before it is read once more, which needs
/// another input than a stream.
pub fn line_of(
    input: &Input,
    config: &Config,
    pool: &Arc<ThreadPool>,
    (file, byte): (u32, u64),
    line_end: u8,
) -> Option<u64> {
    let config = Config {
        pool: Some(Arc::clone(pool)),
        progress: None,
        observer: None,
        notice: Arc::new(|_| {}),
        ..config.clone()
    };
    let before = |before: &Input, sink: &dyn Sink| run(before, &config, sink);
    let lines = lines::before(input, file, byte, line_end, before)?;
    Some(lines + 1)
}
