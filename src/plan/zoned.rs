//! The times of records that are looked at on the clock of a zone. A notice names the first that has no offset.

use ringfold_read::{Error, Kind as ErrorKind, Result};

use crate::expression::formula::{Formula, joined};
use crate::expression::value::Record;
use crate::expression::{Condition, Prepared};
use crate::format::time::{TimeZones, Zones, may_lack_offset};
use crate::plan::Plan;

/// Where such times are, and the zones.
#[derive(Debug, Default)]
pub(crate) struct ZonedTimes {
    /// Of the condition on records: times of all of them.
    pub(crate) tested: Vec<TimeSource>,
    /// Of keys and aggregates: times of records that are added.
    pub(crate) added: Vec<TimeSource>,
    pub(crate) zones: Vec<Zones>,
}

#[derive(Debug, Clone)]
pub(crate) enum TimeSource {
    /// A column, and that of the time of day, where the first has the date alone.
    Column(usize, Option<usize>),
    Value(Formula),
}

impl Plan {
    /// Looks where times are looked at in zones. With an input zone, no notice is needed.
    ///
    /// # Errors
    /// An input zone is named, and no other zone is.
    pub(crate) fn set_zoned(&mut self) -> Result<()> {
        self.zoned = ZonedTimes::of(self);
        let TimeZones { zone, input } = self.time_zones;
        if input.is_none() {
            return Ok(());
        }
        self.zoned.tested.clear();
        self.zoned.added.clear();
        if zone.is_none() && self.zoned.zones.is_empty() {
            let why = "the zone of times without an offset has an effect only where times are looked at in a zone: name that zone, too";
            return Err(Error::new(ErrorKind::Usage, why));
        }
        Ok(())
    }
}

impl TimeSource {
    /// Whether a record has a time without an offset there.
    pub(crate) fn lacks_offset(&self, record: &dyn Record) -> bool {
        let text = match self {
            TimeSource::Column(date, clock) => joined(record, *date, *clock),
            TimeSource::Value(formula) => formula.text(record),
        };
        text.is_ok_and(|text| may_lack_offset(&text))
    }
}

impl ZonedTimes {
    /// Those of a plan, whose columns are known.
    pub(crate) fn of(plan: &Plan) -> ZonedTimes {
        let (mut tested, mut added) = (Found::default(), Found::default());
        if let Some(filter) = &plan.filter {
            tested.condition(plan, filter);
        }
        for (&column, cut) in plan.keys.iter().zip(&plan.cuts) {
            match cut {
                Some(cut) => added.column(column, cut.clock, cut.unit.zones),
                None => added.computed(plan, column),
            }
        }
        for &column in &plan.times {
            added.column(column, None, plan.time_zones.of(None));
        }
        for column in plan.aggregates.iter().filter_map(|of| of.column) {
            added.computed(plan, column);
        }
        let mut zones = tested.zones;
        zones.extend(added.zones);
        let mut times = ZonedTimes {
            tested: tested.sources,
            added: added.sources,
            zones: Vec::new(),
        };
        for one in zones {
            if !times.zones.contains(&one) {
                times.zones.push(one);
            }
        }
        times
    }
}

#[derive(Default)]
struct Found {
    sources: Vec<TimeSource>,
    zones: Vec<Zones>,
}

impl Found {
    fn add(&mut self, source: TimeSource, zones: Zones) {
        self.zones.push(zones);
        let text = format!("{source:?}");
        if !(self.sources.iter()).any(|known| format!("{known:?}") == text) {
            self.sources.push(source);
        }
    }

    fn column(&mut self, column: usize, clock: Option<usize>, zones: Option<Zones>) {
        if let Some(zones) = zones {
            self.add(TimeSource::Column(column, clock), zones);
        }
    }

    fn computed(&mut self, plan: &Plan, column: usize) {
        if let Some(computed) = plan.computed(column) {
            self.formula(plan, &computed.formula);
        }
    }

    fn condition(&mut self, plan: &Plan, condition: &Condition) {
        condition.each_test(&mut |test| {
            let whole = test.zones.filter(|_| test.is_of_times());
            let zones = test.unit.map_or(whole, |unit| unit.zones);
            self.column(test.column, test.clock, zones);
            let columns = [Some(test.column), test.clock].into_iter().flatten();
            columns.for_each(|column| self.computed(plan, column));
        });
    }

    fn formula(&mut self, plan: &Plan, formula: &Formula) {
        match formula {
            Formula::Null | Formula::Number(_) | Formula::Text(_) => {}
            Formula::Column(column) => self.computed(plan, *column),
            Formula::Time(date, clock, unit) => {
                self.column(*date, *clock, unit.zones);
                let columns = [Some(*date), *clock].into_iter().flatten();
                columns.for_each(|column| self.computed(plan, column));
            }
            Formula::Negative(inner) => self.formula(plan, inner),
            Formula::Operation(_, sides) => sides.iter().for_each(|side| self.formula(plan, side)),
            Formula::Call(_, arguments, prepared) => {
                let time = match prepared {
                    Prepared::Zones(zones) => Some((0, *zones)),
                    Prepared::Bucket(_, Some(zones)) => Some((1, *zones)),
                    _ => None,
                };
                if let Some((at, zones)) = time {
                    let source = match &arguments[at] {
                        Formula::Column(column) => TimeSource::Column(*column, None),
                        value => TimeSource::Value(value.clone()),
                    };
                    self.add(source, zones);
                }
                arguments.iter().for_each(|one| self.formula(plan, one));
            }
            Formula::Choice(cases, other) => {
                for (condition, value) in cases {
                    self.condition(plan, condition);
                    self.formula(plan, value);
                }
                self.formula(plan, other);
            }
            Formula::Truth(both) => self.condition(plan, &both[0]),
            Formula::Lookup(_, _, keys) => keys.iter().for_each(|key| self.formula(plan, key)),
        }
    }
}
