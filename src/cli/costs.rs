//! What each part of a query costs: the query is run with and without it over the first records.

use std::time::Duration;

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
/// Each query is run so often, in turn with the others, and its least time counts.
const ROUNDS: usize = 5;
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
    let all = std::iter::once(query).chain(parts.iter().map(|(_, query)| query));
    let Some((times, records)) = times(plan, all, &sample) else {
        return Ok(Vec::new());
    };
    let size = units::size(sample.len().unwrap_or(0));
    let each = |time: Duration| time.as_nanos() as f64 / records as f64;
    let whole = each(times[0]);
    let mut said = vec![format!(
        "{whole:.0} ns a record of one processor, in the first {size}"
    )];
    let mut named: Vec<(f64, &str)> = Vec::new();
    for ((name, _), time) in parts.iter().zip(&times[1..]) {
        if whole > NAMED * each(*time) {
            named.push((whole - each(*time), name));
        }
    }
    named.sort_by(|one, two| two.0.total_cmp(&one.0));
    said.extend((named.iter()).map(|(cost, name)| format!("{cost:.0} ns less without {name}")));
    Ok(said)
}

/// The first records of an input, if they are many.
fn sample(plan: &Plan, input: &Input) -> Result<Option<Input>> {
    let Some(source) = input.sources().first() else {
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

/// The least time of each query, and the records that there are.
fn times<'a>(
    plan: &Plan,
    queries: impl Iterator<Item = &'a Query>,
    sample: &Input,
) -> Option<(Vec<Duration>, u64)> {
    let config = Config {
        threads: Some(1),
        max_record: plan.max_record,
        ..Config::default()
    };
    let plans = queries.map(|query| query.clone().header(plan.has_header).plan(sample, &config));
    let plans: Vec<Plan> = plans.collect::<Result<_>>().ok()?;
    let mut times = vec![Duration::MAX; plans.len()];
    let mut records = 0;
    for _ in 0..ROUNDS {
        for (plan, least) in plans.iter().zip(&mut times) {
            let before = processor_time();
            let (answer, _) = fold(sample, &config, plan).ok()?;
            *least = (processor_time() - before).min(*least);
            // The first plan is that of the whole query; without a condition there are more.
            records = records.max(answer.rows);
        }
    }
    (records > 0).then_some((times, records))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
