//! What a query keeps of a column in each group: an open set.
//!
//! An aggregate is a [`State`] in a file of its own and a line in [`ALL`]. Its states of all groups lie side by side.
//! Merging is associative and commutative in what `finish` gives.

mod count;
mod first;
mod last;
mod lexmax;
mod lexmin;
mod max;
mod mean;
mod min;
mod range;
mod spread;
pub(crate) mod state;
mod sum;

use crate::query::accumulator::state::Kind;

/// All aggregates.
pub(crate) static ALL: &[Kind] = &[
    Kind::of::<count::Count>("count"),
    Kind::of::<sum::Sum>("sum"),
    Kind::of::<min::Min>("min"),
    Kind::of::<max::Max>("max"),
    Kind::of::<mean::Mean>("mean"),
    Kind::of::<range::Range>("range"),
    Kind::of::<spread::Var>("var"),
    Kind::of::<spread::Stddev>("stddev"),
    Kind::of::<spread::VarPop>("var_pop"),
    Kind::of::<spread::StddevPop>("stddev_pop"),
    Kind::of::<first::First>("first"),
    Kind::of::<last::Last>("last"),
    Kind::of::<lexmin::LexMin>("lexmin"),
    Kind::of::<lexmax::LexMax>("lexmax"),
];

/// The aggregate of a name.
pub(crate) fn named(name: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::accumulator::state::{Outcome, Rounding, States, Value};
    use crate::query::number::Number;

    fn text(outcome: &Outcome<'_>) -> Option<String> {
        match outcome {
            Outcome::Null => None,
            Outcome::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            number => Some(number.printed(Rounding::Own)?.text().to_string()),
        }
    }

    /// Feeds values to one group.
    fn fed(kind: &Kind, values: &[(u64, &str)]) -> Box<dyn States> {
        let mut states = kind.states();
        states.push();
        for (at, bytes) in values {
            let number = Number::read(bytes.as_bytes());
            states.update(
                0,
                &Value {
                    bytes: bytes.as_bytes(),
                    number: number.unwrap_or(Number::ZERO),
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
        ] {
            let states = fed(named(name).unwrap(), &values);
            assert_eq!(text(&states.finish(0, 2)).as_deref(), Some(want), "{name}");
        }
        assert_eq!(ALL.len(), 14);
    }

    #[test]
    fn over_nothing_is_null() {
        for kind in ALL {
            let states = fed(kind, &[]);
            let want = (kind.name == "count").then(|| "0".to_string());
            assert_eq!(text(&states.finish(0, 2)), want, "{}", kind.name);
            let one = fed(kind, &[(0, "1")]);
            let is_sample = matches!(kind.name, "var" | "stddev");
            assert_eq!(
                text(&one.finish(0, 0)).is_none(),
                is_sample,
                "{}",
                kind.name
            );
        }
    }

    proptest! {
        /// Any split into any number of parts, merged in any order, gives what one gives.
        #[test]
        fn merging_is_commutative(
            values in prop::collection::vec("-?[0-9]{1,25}(\\.[0-9]{1,12})?", 0..12),
            parts in prop::collection::vec(0..3_usize, 12),
            backwards: bool,
        ) {
            for kind in ALL {
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
                let mut merged = split.remove(0);
                for from in split {
                    merged.merge(from, &[0]);
                }
                prop_assert_eq!(merged.finish(0, 12), whole.finish(0, 12));
                prop_assert_eq!(text(&merged.finish(0, 12)), text(&whole.finish(0, 12)));
            }
        }
    }
}
