//! What each part of a query costs: the query is run with and without it over the first records.

use std::time::{Duration, Instant};

use memchr::{memchr_iter, memrchr};
use ringfold_read::internals::head::look_at_head;
use ringfold_read::internals::units;
use rustix::time::{ClockId, clock_gettime};

use crate::query::{Plan, Query};
use crate::{Config, Input, Result, fold};

/// Bytes that are enough to tell parts of a query apart, and few enough to be read over and over.
const SAMPLE: usize = 8 << 20;
/// Fewer bytes cost so little that nobody asks.
const SAMPLE_MIN: usize = 1 << 20;
/// Each query is run at most so often, in turn with the others, and its least time counts.
const ROUNDS: usize = 5;
/// No round begins later than this.
const PATIENCE: Duration = Duration::from_secs(1);
/// Where one round would take longer, no parts are measured.
const ROUND_MAX: Duration = Duration::from_secs(4);
/// A part is named where the query takes so many times as long with it.
const NAMED: f64 = 1.2;

/// What a query costs a record, and the parts that cost most of it, each with the query without it. Nothing is said of a
/// small input, or where the first records end the run.
///
/// # Errors
/// The input can't be read.
pub(super) fn costs(
    plan: &Plan,
    query: &Query,
    parts: &[(String, Query)],
    input: &Input,
) -> Result<Vec<String>> {
    let Some(sample) = sample(plan, input)? else {
        return Ok(Vec::new());
    };
    let config = Config {
        threads: Some(1),
        max_record: plan.max_record,
        ..Config::default()
    };
    let planned = |query: &Query| {
        let query = query.clone().header(plan.has_header);
        query.plan(&sample, &config).ok()
    };
    let Some(whole) = planned(query) else {
        return Ok(Vec::new());
    };
    // Some queries can't be without a part.
    let without = |(name, query): &'_ (String, Query)| Some((name.clone(), planned(query)?));
    let mut without: Vec<(String, Plan)> = parts.iter().filter_map(without).collect();
    let Some((first, records)) = time(&whole, &sample, &config) else {
        return Ok(Vec::new());
    };
    let count = without.len();
    if first * (count as u32 + 1) > ROUND_MAX {
        without.clear();
    }
    let (mut least, mut others) = (first, vec![Duration::MAX; without.len()]);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        if round > 0 && begun.elapsed() > PATIENCE {
            break;
        }
        let plans = without.iter().map(|(_, plan)| plan).zip(&mut others);
        for (plan, least) in std::iter::once((&whole, &mut least)).chain(plans) {
            if let Some((time, _)) = time(plan, &sample, &config) {
                *least = time.min(*least);
            }
        }
    }
    let each = |time: Duration| time.as_nanos() as f64 / records as f64;
    let (whole, size) = (each(least), units::size(sample.len().unwrap_or(0)));
    let mut said = vec![format!(
        "{whole:.0} ns a record of one processor, in the first {size}"
    )];
    if without.len() < count {
        said.push(format!("its {count} parts take too long to be measured"));
    }
    let mut named: Vec<(f64, &str)> = Vec::new();
    for ((name, _), time) in without.iter().zip(others) {
        if whole > NAMED * each(time) {
            named.push((whole - each(time), name));
        }
    }
    named.sort_by(|one, two| two.0.total_cmp(&one.0));
    said.extend((named.iter()).map(|(cost, name)| format!("{cost:.0} ns less without {name}")));
    Ok(said)
}

/// The first records of an input, if they are many.
fn sample(plan: &Plan, input: &Input) -> Result<Option<Input>> {
    // A pipe isn't waited for.
    let first = input.sources().first();
    let Some(source) = first.filter(|source| source.can_repeat()) else {
        return Ok(None);
    };
    look_at_head(source, |bytes, ended| {
        let bytes = match bytes.len() {
            len if len < SAMPLE && !ended => return None,
            len => &bytes[..len.min(SAMPLE)],
        };
        // The last record is whole where quotes are closed before its end.
        let mut end = memrchr(b'\n', bytes);
        if let Some(quote) = plan.dialect.quote() {
            let mut open = memchr_iter(quote, &bytes[..end.unwrap_or(0)]).count() % 2 == 1;
            while let (true, Some(at)) = (open, end) {
                end = memrchr(b'\n', &bytes[..at]);
                let between = &bytes[end.unwrap_or(0)..at];
                open = memchr_iter(quote, between).count().is_multiple_of(2);
            }
        }
        let whole = &bytes[..end.map_or(0, |at| at + 1)];
        Some((whole.len() >= SAMPLE_MIN).then(|| Input::memory([whole])))
    })
}

/// What a run takes, and how many records it has taken or left out. `None`: it fails, or there is no record.
fn time(plan: &Plan, sample: &Input, config: &Config) -> Option<(Duration, u64)> {
    let before = processor_time();
    let (answer, _) = fold(sample, config, plan).ok()?;
    let records = answer.rows + answer.filtered;
    (records > 0).then_some((processor_time() - before, records))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
