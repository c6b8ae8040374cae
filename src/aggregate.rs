//! What a query keeps of a column in each group: an open set.
//!
//! An aggregate is a [`State`] in a file of its own and a line in [`ALL`]. Its states of all groups lie side by side.
//! Merging is associative and commutative in what `finish` gives.

pub(crate) mod bag;
pub(crate) mod composed;
mod count;
pub(crate) mod definition;
pub(crate) mod digest;
mod distinct;
mod extreme;
pub(crate) mod lanes;
mod lexical;
mod mean;
mod mode;
mod moment;
pub(crate) mod percentile;
mod positional;
pub(crate) mod profile;
mod range;
mod ranked;
pub(crate) mod share;
mod spread;
pub(crate) mod state;
mod sum;
pub(crate) mod values;

use crate::aggregate::definition::{Definition, Kind};
use crate::expression::function::pair;

/// All aggregates but percentiles, which are as many as their names.
pub(crate) static ALL: &[Definition] = &[
    Definition::of::<count::Count>("count"),
    Definition::of::<sum::Sum>("sum"),
    Definition::of::<extreme::Min>("min").of_times(&EARLIEST[0]),
    Definition::of::<extreme::Max>("max").of_times(&LATEST[0]),
    Definition::of::<mean::Mean>("mean"),
    Definition::of::<range::Range>("range"),
    Definition::of::<spread::Var>("var"),
    Definition::of::<spread::Stddev>("stddev"),
    Definition::of::<spread::VarPop>("var_pop"),
    Definition::of::<spread::StddevPop>("stddev_pop"),
    Definition::of::<positional::First>("first"),
    Definition::of::<positional::Last>("last"),
    Definition::of::<lexical::LexMin>("lexmin").of_times(&EARLIEST[1]),
    Definition::of::<lexical::LexMax>("lexmax").of_times(&LATEST[1]),
    percentile::MEDIAN,
    Definition::of::<distinct::Distinct>("distinct")
        .exactly(&values::DISTINCT)
        .of_several(&pair::TUPLE),
    Definition::of::<mode::Mode>("mode").exactly(&values::MODE),
    percentile::APPROX_MEDIAN,
    Definition::of::<distinct::Distinct>("approx_distinct"),
];

/// Those that take several columns at once, and lists of values. Lists of the most frequent values are as many as their names.
static FURTHER: &[Definition] = &[
    Definition::of::<ranked::Ranked>("arg_min").of_several(&pair::LEAST),
    Definition::of::<ranked::Ranked>("arg_max").of_several(&pair::GREATEST),
    values::VALUES,
    values::HISTOGRAM.of_several(&pair::BINS),
];

/// The same of times.
static EARLIEST: [Definition; 2] = [
    Definition::of::<moment::Moment<false>>("min"),
    Definition::of::<moment::Moment<false>>("lexmin"),
];
static LATEST: [Definition; 2] = [
    Definition::of::<moment::Moment<true>>("max"),
    Definition::of::<moment::Moment<true>>("lexmax"),
];

/// Other names of aggregates, as other programs have them.
const ALIASES: [(&str, &[&str]); 11] = [
    ("count", &["cnt", "len", "size"]),
    ("sum", &["total"]),
    ("min", &["minimum"]),
    ("max", &["maximum"]),
    ("mean", &["avg", "average"]),
    ("var", &["variance", "var_samp"]),
    ("stddev", &["stdev", "std", "sd", "stddev_samp"]),
    (
        "distinct",
        &["nunique", "n_unique", "count_distinct", "uniq", "unique"],
    ),
    ("median", &["med"]),
    ("arg_min", &["argmin", "min_by"]),
    ("arg_max", &["argmax", "max_by"]),
];

/// What all aggregates are called but percentiles.
pub(crate) fn names() -> Vec<&'static str> {
    let kinds = ALL.iter().chain(FURTHER).map(|kind| kind.name);
    kinds
        .chain(composed::ALL.iter().map(|one| one.name))
        .collect()
}

/// The aggregate of a name, also of one that other programs have, in any letters.
pub(crate) fn named(name: &str) -> Option<Kind> {
    let name = &*name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(_, aliases)| aliases.contains(&name));
    let name = alias.map_or(name, |(name, _)| name);
    let listed = ALL.iter().chain(FURTHER);
    let listed = { listed }.find(|kind| kind.name == name);
    listed
        .map(Kind::from)
        .or_else(|| percentile::named(name))
        .or_else(|| values::top_named(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::state::{Argument, Outcome, Rounding, States, Value, text_of};
    use crate::decimal::number::{Grammar, Number};
    use crate::partial::column::ColumnView;
    use crate::partial::description::{Aggregate, Counts, Description, Rule, Source};
    use crate::partial::merge::Merge;
    use crate::partial::reader::Reader;
    use crate::partial::writer::Writer;

    fn text(outcome: &Outcome<'_>) -> Option<String> {
        match outcome {
            Outcome::Null => None,
            Outcome::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            Outcome::Time(time) => Some(String::from_utf8_lossy(text_of(time)).into_owned()),
            number => Some(number.printed(Rounding::Own)?.text().to_string()),
        }
    }

    /// Feeds values to one group.
    fn fed(kind: Kind, values: &[(u64, &str)]) -> Box<dyn States> {
        let mut states = (kind.states)();
        states.push();
        for (at, bytes) in values {
            let number = Number::read_as(bytes.as_bytes(), Grammar::FLOAT);
            states.update(
                0,
                &Value {
                    bytes: bytes.as_bytes(),
                    number: number.unwrap_or(Number::ZERO),
                    hash_key: &crate::sketch::distinct::HashKey::NONE,
                    grammar: Grammar::FLOAT,
                    zone: None,
                    place: (0, *at),
                },
            );
        }
        states
    }

    #[test]
    fn outcomes() {
        let values = [(3, "2.5"), (0, "10"), (9, "-1.25"), (5, "4")];
        for (name, want) in [
            ("count", "4"),
            ("sum", "15.25"),
            ("min", "-1.25"),
            ("max", "10.00"),
            ("mean", "3.8125"),
            ("range", "11.25"),
            ("var", "21.89062500"),
            ("stddev", "4.67874182"),
            ("var_pop", "16.41796875"),
            ("stddev_pop", "4.05190927"),
            ("first", "10"),
            ("last", "-1.25"),
            ("lexmin", "-1.25"),
            ("lexmax", "4"),
            ("median", "3.2500"),
            ("distinct", "4"),
            ("mode", "-1.25"),
            ("approx_median", "3.2500"),
            ("approx_distinct", "4"),
        ] {
            let kind = named(name).unwrap();
            let states = fed(kind, &values);
            assert_eq!(
                text(&states.finish(0, kind.share, 2)).as_deref(),
                Some(want),
                "{name}"
            );
        }
        assert_eq!(ALL.len(), 19);
    }

    #[test]
    fn over_nothing_is_null() {
        for kind in ALL.iter().map(Kind::from) {
            let states = fed(kind, &[]);
            let want = matches!(kind.name, "count" | "distinct" | "approx_distinct")
                .then(|| "0".to_string());
            assert_eq!(
                text(&states.finish(0, kind.share, 2)),
                want,
                "{}",
                kind.name
            );
            let one = fed(kind, &[(0, "1")]);
            let is_sample = matches!(kind.name, "var" | "stddev");
            assert_eq!(
                text(&one.finish(0, kind.share, 0)).is_none(),
                is_sample,
                "{}",
                kind.name
            );
        }
    }

    /// A partial of one group, whose numbers have up to `scale` digits after the point.
    fn saved(kind: Kind, states: &dyn States, scale: u32) -> Reader {
        let columns = kind.columns.iter().map(|column| column.column(scale));
        let aggregate = Aggregate {
            name: kind.name().as_bytes().to_vec(),
            title: kind.name().as_bytes().to_vec(),
            scale,
            is_numeric: kind.argument == Argument::Numbers,
            columns: columns.collect(),
        };
        let source = Source {
            name: b"a".to_vec(),
            is_stream: true,
            device: 0,
            inode: 0,
            bytes: 0,
            seconds: 0,
            nanoseconds: 0,
            fingerprint: 1,
        };
        let counts = Counts {
            rows: 100,
            ..Counts::default()
        };
        let description = Description {
            aggregates: vec![aggregate],
            counts,
            sources: vec![source],
            ..Description::default()
        };
        let mut writer = Writer::new(Vec::new(), &description).unwrap();
        writer.gathered().keys.push(b"key");
        states.encode(0, &mut writer.gathered().columns);
        Reader::in_memory("a".into(), writer.finish().unwrap()).unwrap()
    }

    /// The states of the one group in a block.
    fn decoded(kind: Kind, columns: &[ColumnView<'_>]) -> Box<dyn States> {
        let mut states = (kind.states)();
        states.push_decoded(columns, 0).unwrap();
        states
    }

    /// The states that partials give when they are merged.
    fn merged(kind: Kind, parts: &[Reader]) -> Box<dyn States> {
        let scale = parts
            .iter()
            .map(|part| part.description.aggregates[0].scale);
        let whole = saved(kind, &*fed(kind, &[]), scale.max().unwrap());
        let mut writer = Writer::new(Vec::new(), &whole.description).unwrap();
        let inputs = parts.iter().map(|part| (part, vec![0]));
        let mut merge = Merge::new(inputs);
        while merge.next(writer.gathered()).unwrap() {}
        let reader = Reader::in_memory("a".into(), writer.finish().unwrap()).unwrap();
        let loaded = reader.load(0, Vec::new()).unwrap();
        decoded(kind, &loaded.view().columns)
    }

    const MONTHS: [&str; 4] = ["Jan", "Feb", "Mar", "Apr"];

    proptest! {
        /// The same of times in several forms and zones, of which some are the same instant.
        #[test]
        fn merging_times_is_commutative(
            times in prop::collection::vec((0..4_usize, 1..4_u32, 0..3_usize, 0..2_u32), 1..12),
            parts in prop::collection::vec(0..3_usize, 12),
            backwards: bool,
        ) {
            let texts: Vec<String> = times.iter().map(|&(month, day, form, hours)| match form {
                0 => format!("{day:02}/{}/2026:0{hours}:00:00 +0{hours}00", MONTHS[month]),
                1 => format!("2026-{:02}-{day:02}T00:00:00Z", month + 1),
                _ => format!("2026-{:02}-{day:02}", month + 1),
            }).collect();
            let keys = || times.iter().map(|&(month, day, ..)| (month, day)).zip(&texts);
            for kind in EARLIEST.iter().chain(&LATEST).map(Kind::from) {
                let split: Vec<Reader> = (0..3)
                    .map(|part| {
                        let own: Vec<_> = (0..).zip(&texts)
                            .filter(|(at, _)| parts[*at as usize] == part)
                            .map(|(at, text)| (at, text.as_str())).collect();
                        saved(kind, &*fed(kind, &own), 0)
                    })
                    .collect();
                let split = if backwards { split.into_iter().rev().collect() } else { split };
                let in_files = merged(kind, &split);
                let want = match kind.columns[0].rule {
                    Rule::EarliestTime => keys().min(),
                    _ => keys().max(),
                };
                let want = want.map(|(_, text)| text.clone());
                prop_assert_eq!(text(&in_files.finish(0, None, 0)), want);
            }
        }

        /// Any split into any number of parts, merged in any order, gives what one gives. So it is in partials.
        #[test]
        fn merging_is_commutative(
            values in prop::collection::vec(prop_oneof![
                9 => "-?[0-9]{1,25}(\\.[0-9]{1,12})?",
                1 => "-?[0-9]{1,5}e-?1[0-9]{0,2}",
                1 => "-?inf|nan",
            ], 0..12),
            parts in prop::collection::vec(0..3_usize, 12),
            backwards: bool,
        ) {
            let float = Grammar::FLOAT;
            let decimals = |value: &String| Number::read_as(value.as_bytes(), float).unwrap().decimals();
            let scale = values.iter().map(decimals).max().unwrap_or(0);
            for kind in ALL.iter().map(Kind::from) {
                let values: Vec<_> = (0..).zip(values.iter().map(String::as_str)).collect();
                let whole = fed(kind, &values);
                let mut split: Vec<Box<dyn States>> = (0..3)
                    .map(|part| {
                        let own: Vec<_> = values.iter().copied()
                            .filter(|(at, _)| parts[*at as usize] == part).collect();
                        fed(kind, &own)
                    })
                    .collect();
                if backwards {
                    split.reverse();
                }
                // Of an own scale each, none less than its values have.
                let partials: Vec<Reader> = split.iter().zip([scale, scale + 1, scale])
                    .map(|(states, scale)| saved(kind, &**states, scale)).collect();
                let in_files = merged(kind, &partials);
                let mut merged = split.remove(0);
                for from in split {
                    merged.merge(from, &[0]);
                }
                prop_assert_eq!(merged.finish(0, kind.share, scale), whole.finish(0, kind.share, scale));
                prop_assert_eq!(text(&merged.finish(0, kind.share, scale)), text(&whole.finish(0, kind.share, scale)));
                prop_assert_eq!(in_files.finish(0, kind.share, scale), whole.finish(0, kind.share, scale));
                prop_assert_eq!(text(&in_files.finish(0, kind.share, scale)), text(&whole.finish(0, kind.share, scale)));
            }
        }
    }
}
