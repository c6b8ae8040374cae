//! Whether partials belong together, and what the one says of itself that they become.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use ringfold_read::{Begin, Error, Kind, Result};

use crate::partial::chain::Chain;
use crate::partial::description::{Counts, Description, Extent, Rule, Source, Span};
use crate::partial::reader::Reader;
use crate::partial::shard::{SHARD, Shard};
use crate::refusal::{Refusal, WrongPart};

/// What partials become.
#[derive(Debug)]
pub(crate) struct Combined {
    pub(crate) description: Description,
    /// For each partial where its sources stand in the result.
    pub(crate) sources: Vec<Vec<u32>>,
    pub(crate) missing: Missing,
}

/// What was not read of the files that were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Parts that aren't there, and how many parts the input has.
    pub parts: Vec<(u32, u32)>,
    /// Files, and bytes of them.
    pub bytes: Vec<(String, Range<u64>)>,
    /// Parts that are there, and how many parts the input has: only one that is missing can tell whether a quoted field goes on
    /// over their start.
    pub unconfirmed: Vec<(u32, u32)>,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// How many of them are told.
const TOLD: usize = 4;

/// The first of them, and how many more there are.
fn list(items: Vec<String>) -> String {
    let more = items.len().saturating_sub(TOLD);
    let mut told = items[..items.len().min(TOLD)].join(", ");
    if more > 0 {
        told += &format!(" and {more} more");
    }
    told
}

/// Parts as `part 3 of 8` or `parts 3, 5 of 8`.
fn listed(parts: &[(u32, u32)]) -> String {
    // Mostly they are of one input.
    let of = parts.first().map_or(0, |(_, of)| *of);
    let same = parts.iter().all(|(_, other)| *other == of);
    let each = parts.iter().map(|(part, of)| match same {
        true => part.to_string(),
        false => format!("{part} of {of}"),
    });
    let each = list(each.collect());
    let of = if same {
        format!(" of {of}")
    } else {
        String::new()
    };
    match parts.len() {
        1 => format!("part {each}{of}"),
        _ => format!("parts {each}{of}"),
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.iter().map(|(name, bytes)| {
            let Range { start, end } = bytes;
            format!("{name} byte {start}-{end}")
        });
        let bytes = list(bytes.collect());
        let parts = listed(&self.parts);
        match self.parts.len() {
            0 => write!(f, "not all of the input is there: {bytes} is missing")?,
            1 => write!(f, "{parts} is missing: {bytes}")?,
            _ => write!(f, "{parts} are missing: {bytes}")?,
        }
        if self.unconfirmed.is_empty() {
            return Ok(());
        }
        let unconfirmed = listed(&self.unconfirmed);
        write!(
            f,
            "; {unconfirmed} may begin within a quoted field: only what is missing tells"
        )
    }
}

/// Looks whether partials are of one query and of different records.
///
/// # Errors
/// They aren't, and in what they differ.
pub(crate) fn combine(partials: &[&Reader]) -> Result<Combined> {
    let Some(first) = partials.first() else {
        return Err(Error::new(Kind::Usage, "there is no partial"));
    };
    // Where the first record of an empty input would have told something, another partial does.
    let is_known = |partial: &&&Reader| {
        partial
            .description
            .query
            .iter()
            .all(|(_, value)| !value.is_empty())
    };
    let known = partials.iter().find(is_known).unwrap_or(first);
    for partial in partials {
        compare(known, partial)?;
    }
    let shards = shards(partials)?;
    let mut description = Description {
        counts: Counts::default(),
        sources: Vec::new(),
        spans: Vec::new(),
        ..known.description.clone()
    };
    // Of each shard, what was read.
    let mut read = BTreeMap::<Option<Shard>, Vec<(Span, usize)>>::new();
    let mut sources = Vec::new();
    for (at, (partial, shard)) in partials.iter().zip(&shards).enumerate() {
        let other = &partial.description;
        // Each shard has the counts of the whole.
        if *shard == shards[0] {
            let counts = description.counts.plus(other.counts);
            description.counts = counts.ok_or_else(|| partial.wrong("its counts are too large"))?;
        }
        let owners = read.entry(*shard).or_default();
        for (to, from) in description.aggregates.iter_mut().zip(&other.aggregates) {
            to.scale = to.scale.max(from.scale);
            for (to, from) in to.columns.iter_mut().zip(&from.columns) {
                to.scale = to.scale.max(from.scale);
            }
        }
        let places = place_sources(&mut description.sources, &other.sources);
        for span in &other.spans {
            let source = places[span.source as usize];
            owners.push((Span { source, ..*span }, at));
        }
        sources.push(places);
    }
    for owners in read.values_mut() {
        owners.sort_by_key(|(span, _)| (span.source, span.from, span.to));
        refuse_doubles(owners, &description.sources, partials)?;
    }
    let spans_of = |owners: &[(Span, usize)]| owners.iter().map(|(span, _)| *span).collect();
    let owners = read.remove(&shards[0]).unwrap_or_default();
    for (shard, others) in &read {
        if joined(spans_of(others)) != joined(spans_of(&owners)) {
            let at = shards.iter().position(|known| known == shard);
            let cause = format!(
                "this shard isn't of the same records as that of {}",
                first.name()
            );
            return Err(partials[at.unwrap_or_default()].wrong(cause));
        }
    }
    if !read.is_empty() {
        // All shards are the whole.
        description.query.retain(|(name, _)| name != SHARD);
    }
    let spans: Vec<Span> = spans_of(&owners);
    let mut missing = missing(&spans, &description.sources);
    if !missing.is_empty() {
        refuse_mixed(&owners, &description.sources, partials)?;
    }
    let chain = Chain::of(&spans);
    refuse_wrong(&chain, &owners, &description.sources, partials)?;
    // Each shard may have been read by a run of its own.
    for others in read.values() {
        let spans: Vec<Span> = spans_of(others);
        refuse_wrong(&Chain::of(&spans), others, &description.sources, partials)?;
    }
    let unconfirmed = chain.unconfirmed.iter().map(|&at| &spans[at]);
    missing.unconfirmed = unconfirmed.map(|span| (span.part, span.parts)).collect();
    missing.unconfirmed.dedup();
    description.spans = joined(spans);
    Ok(Combined {
        description,
        sources,
        missing,
    })
}

/// The shard of each partial: the same of all, or all that there are.
///
/// # Errors
/// They aren't.
fn shards(partials: &[&Reader]) -> Result<Vec<Option<Shard>>> {
    let shard = |partial: &&Reader| {
        let shard = Shard::of(&partial.description);
        shard.map_err(|why| partial.wrong(why))
    };
    let shards: Vec<Option<Shard>> = partials.iter().map(shard).collect::<Result<_>>()?;
    let words = |shard: Option<Shard>| {
        shard.map_or("all keys".into(), |shard| {
            format!("the keys of shard {shard}")
        })
    };
    let count = |shard: Option<Shard>| shard.map(|shard| shard.count);
    for (partial, shard) in partials.iter().zip(&shards) {
        if count(*shard) != count(shards[0]) {
            let (here, there) = (words(*shard), words(shards[0]));
            let first = partials[0].name();
            return Err(partial.wrong(format!("this partial has {here}, and {first} has {there}")));
        }
    }
    let known: BTreeSet<u32> = shards.iter().flatten().map(|shard| shard.number).collect();
    let all = 1..=count(shards[0]).unwrap_or(0);
    if known.len() > 1 && known.len() < all.end().to_owned() as usize {
        let mut absent = all.clone().filter(|number| !known.contains(number));
        let one = absent.next().unwrap_or_default();
        let cause = format!(
            "shard {one} of {} is missing: merge shards of one number, or all of them",
            all.end()
        );
        return Err(Error::new(Kind::Data, cause));
    }
    Ok(shards)
}

/// Where the sources of a partial stand among those that are known, to which it adds its own.
fn place_sources(known: &mut Vec<Source>, own: &[Source]) -> Vec<u32> {
    let before = known.len();
    let mut places = Vec::with_capacity(own.len());
    for source in own {
        // Two of one partial are two, also if they are the same.
        let is_same = |at: &usize| known[*at].is_same(source) && !places.contains(&(*at as u32));
        let place = (0..before).find(is_same).unwrap_or_else(|| {
            known.push(source.clone());
            known.len() - 1
        });
        places.push(place as u32);
    }
    places
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The values that a query has under a name.
fn values<'a>(description: &'a Description, name: &[u8]) -> Vec<&'a [u8]> {
    let query = description.query.iter();
    let named = query.filter(|(known, _)| known == name);
    named.map(|(_, value)| &value[..]).collect()
}

/// Whether two partials are of one query.
fn compare(one: &Reader, two: &Reader) -> Result<()> {
    let (known, other) = (&one.description, &two.description);
    let names = known.query.iter().chain(&other.query).map(|(name, _)| name);
    for name in names.filter(|name| *name != SHARD) {
        let [here, there] = [other, known].map(|description| values(description, name));
        let are_same = here.len() == there.len()
            && (here.iter().zip(&there)).all(|(here, there)| {
                // What isn't known is as the other one has it.
                here == there || here.is_empty() || there.is_empty()
            });
        if !are_same {
            let told = |values: Vec<&[u8]>| match values.is_empty() {
                true => "nothing".into(),
                false => format!("`{}`", lossy(&values.join(&b", "[..]))),
            };
            let cause = format!(
                "this is a partial of another query than {}: {} is {} here and {} there",
                one.name(),
                lossy(name),
                told(here),
                told(there)
            );
            return Err(two.wrong(cause));
        }
    }
    let columns = |description: &Description| -> Vec<_> {
        let aggregates = description.aggregates.iter();
        aggregates
            .map(|aggregate| {
                let rules = aggregate.columns.iter().map(|column| {
                    let values = (column.rule == Rule::Values).then_some(column.scale);
                    (column.rule, values)
                });
                (aggregate.name.clone(), rules.collect::<Vec<_>>())
            })
            .collect()
    };
    match columns(known) == columns(other) && known.keys.len() == other.keys.len() {
        true => Ok(()),
        false => {
            let cause = format!("this partial has other columns than {}", one.name());
            Err(two.wrong(cause))
        }
    }
}

/// Looks for records that are in two partials.
fn refuse_doubles(
    owners: &[(Span, usize)],
    sources: &[Source],
    partials: &[&Reader],
) -> Result<()> {
    // Of the spans so far the one that reaches farthest.
    let mut before: Option<&(Span, usize)> = None;
    for here in owners.iter().filter(|(span, _)| span.from < span.to) {
        let (span, owner) = here;
        if let Some((last, other)) = before
            && (last.source, last.to) > (span.source, span.from)
        {
            let what = twice(last, span, &sources[span.source as usize]);
            let cause = format!("{what}: {} has it too", partials[*other].name());
            return Err(partials[*owner].wrong(cause));
        }
        before = Some(here);
    }
    Ok(())
}

/// What to say of two spans that overlap.
fn twice(one: &Span, two: &Span, source: &Source) -> String {
    let name = lossy(&source.name);
    let (part, parts) = (two.part, two.parts);
    if one.division == two.division && parts > 1 && one.part == part {
        return format!("part {part} of {parts} of {name} comes twice");
    }
    if one.parts.min(parts) > 1 && one.parts != parts {
        let first = one.parts;
        return format!(
            "{name} was divided into {first} parts for the one and into {parts} for the other"
        );
    }
    let is_whole = |span: &Span| (span.from, span.to) == (0, source.bytes);
    match source.is_stream || is_whole(one) && is_whole(two) {
        true => format!("{name} comes twice"),
        false => format!(
            "{name} byte {}-{} comes twice",
            two.from,
            one.to.min(two.to)
        ),
    }
}

/// Looks for parts of a file that has changed between them.
fn refuse_mixed(owners: &[(Span, usize)], sources: &[Source], partials: &[&Reader]) -> Result<()> {
    let mut seen = BTreeMap::new();
    for (span, owner) in owners.iter().filter(|(span, _)| span.parts > 1) {
        let name = &sources[span.source as usize].name;
        let &mut (division, other) =
            (seen.entry((name, span.parts))).or_insert((span.division, *owner));
        if division != span.division {
            let cause = format!(
                "{} has changed between this part and that of {}",
                lossy(name),
                partials[other].name()
            );
            return Err(partials[*owner].wrong(cause));
        }
    }
    Ok(())
}

/// Looks for parts that weren't read from their first record on.
fn refuse_wrong(
    chain: &Chain,
    owners: &[(Span, usize)],
    sources: &[Source],
    partials: &[&Reader],
) -> Result<()> {
    let wrong = chain.wrong.iter().map(|&(at, byte)| {
        let (span, owner) = &owners[at];
        let is_other = |other: &Span| (other.division, other.part) != (span.division, span.part);
        WrongPart {
            partial: partials[*owner].name().to_string(),
            has_others: partials[*owner].description.spans.iter().any(is_other),
            file: lossy(&sources[span.source as usize].name),
            part: span.part,
            parts: span.parts,
            begin: Begin::At(byte),
        }
    });
    let wrong: Vec<WrongPart> = wrong.collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Refusal::WrongParts(wrong).into()),
    }
}

/// What isn't in any span. These are in order.
fn missing(spans: &[Span], sources: &[Source]) -> Missing {
    let mut bytes = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let mut covered = 0;
        let mut gap = |from: u64, to: u64| {
            if from < to {
                bytes.push((lossy(&source.name), from..to));
            }
        };
        if source.is_stream {
            continue;
        }
        let first = spans.partition_point(|span| (span.source as usize) < at);
        let own = spans[first..].iter();
        for span in own.take_while(|span| span.source as usize == at) {
            gap(covered, span.from);
            covered = covered.max(span.to);
        }
        gap(covered, source.bytes);
    }
    if bytes.is_empty() {
        return Missing::default();
    }
    let mut parts = Vec::new();
    for division in divisions(spans) {
        let is_there =
            |part: &u32| (spans.iter()).any(|span| span.division == division && span.part == *part);
        let of = spans.iter().find(|span| span.division == division);
        let of = of.map_or(0, |span| span.parts);
        // A number that isn't true isn't counted to for long.
        let absent = (1..=of).filter(|part| !is_there(part)).take(100);
        parts.extend(absent.map(|part| (part, of)));
    }
    Missing {
        parts,
        bytes,
        ..Missing::default()
    }
}

/// The divisions of inputs that spans belong to.
fn divisions(spans: &[Span]) -> Vec<u64> {
    let divided = spans.iter().filter(|span| span.parts > 1);
    let mut divisions: Vec<u64> = divided.map(|span| span.division).collect();
    divisions.sort_unstable();
    divisions.dedup();
    divisions
}

/// The spans, where those of an input of which all parts are there are like those of an input that wasn't divided.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let is_whole = |division: &u64| {
        let own = spans.iter().filter(|span| span.division == *division);
        let mut parts: Vec<u32> = own.clone().map(|span| span.part).collect();
        parts.sort_unstable();
        parts.dedup();
        own.clone()
            .next()
            .is_some_and(|span| span.parts as usize == parts.len())
    };
    let whole: Vec<u64> = divisions(&spans).into_iter().filter(is_whole).collect();
    let mut joined: Vec<Span> = Vec::new();
    for mut span in spans {
        if whole.contains(&span.division) {
            (span.part, span.parts, span.division) = (1, 1, 0);
            span.extent = Extent::Plain;
            let last = joined.last_mut().filter(|last| last.source == span.source);
            if let Some(last) = last.filter(|last| last.to == span.from && last.division == 0) {
                last.to = span.to;
                continue;
            }
        }
        joined.push(span);
    }
    joined.retain(|span| span.from < span.to || span.division != 0);
    joined
}
