//! What the values of a column are, whatever they are: no query asks for it by name, but a description of an input does.

use memchr::memchr2;

use crate::aggregate::definition::{Definition, Kind};
use crate::aggregate::mean::MORE;
use crate::aggregate::percentile::percentile;
use crate::aggregate::share::Share;
use crate::aggregate::state::{Argument, Outcome, State, StateColumn, Value};
use crate::decimal::number::{Exact, Number};
use crate::decimal::quotient::Quotient;
use crate::format::time::read;
use crate::partial::column::{ColumnView, Gathered};
use crate::partial::description::Rule;
use crate::sketch::Sketch;
use crate::sketch::profile::{Class, Profile};

static PROFILE: Definition = Definition::of::<Profile>("profile");

/// The aggregate.
pub(crate) fn kind() -> Kind {
    Kind::from(&PROFILE)
}

/// The quartiles of numbers.
pub(crate) fn quartiles(profile: &Profile) -> [Outcome<'static>; 3] {
    ["p25", "p50", "p75"].map(|name| {
        let share = Share::named(name).expect("a percentile");
        match profile.sizes(Class::Number) {
            Some(numbers) if numbers.count() > 0 => percentile(numbers, share, profile.decimals),
            _ => Outcome::Null,
        }
    })
}

/// Their mean, with as many digits as that of a column.
pub(crate) fn mean(profile: &Profile) -> Outcome<'static> {
    match profile.of(Class::Number).count {
        0 => Outcome::Null,
        count => Outcome::Quotient {
            value: Quotient::new(profile.sum.clone(), count.into()),
            digits: profile.decimals + MORE,
        },
    }
}

impl State for Profile {
    const ARGUMENT: Argument = Argument::Bytes;
    const COLUMNS: &'static [StateColumn] = &[StateColumn::of(Rule::Sketch(Sketch::Profile))];

    fn update(&mut self, value: &Value<'_>) {
        let text = value.bytes;
        let hash = value.hash_key.hash(text);
        // Most others are told by their first letter or by signs of times, and reading them makes a sentence of why they are no
        // numbers.
        let is_named = !value.grammar.is_float && text.first().is_some_and(u8::is_ascii_alphabetic);
        let is_text = is_named || memchr2(b':', b'/', text).is_some();
        let read_number = || Number::read_as(text, value.grammar).ok();
        if let Some(number) = if is_text { None } else { read_number() } {
            return self.add_number((text, number), hash, value.place);
        }
        match read(text) {
            Ok(time) => {
                let time = (text, &time.rank()[..], time.seconds().0);
                self.add_time(time, hash, value.place);
            }
            Err(_) => self.add_text(text, hash, value.place),
        }
    }

    fn merge(&mut self, from: Profile) {
        Profile::merge(self, from);
    }

    fn heap(&self) -> usize {
        self.bytes()
    }

    fn finish(&self, _: u32) -> Outcome<'_> {
        Outcome::Number(Exact::small(self.count().into(), 0))
    }

    fn encode(&self, to: &mut [Gathered]) {
        to[0].push_text(&Profile::encode(self));
    }

    fn decode(from: &[ColumnView<'_>], row: usize) -> Result<Self, &'static str> {
        Profile::decode(from[0].text(row))
    }
}
