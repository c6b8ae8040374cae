//! Rows for the values of a key that no record has, between the first and the last one.
//!
//! Groups are put in the order of the other keys first, so those of each combination stand side by side, in memory and in files.
//! What is made is added to them, or merged with them in a file.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringfold_read::{Error, Kind, Result};

use crate::answer::Answer;
use crate::answer::order::Place;
use crate::answer::outgrown::StoredRows;
use crate::answer::steps::{KINDS, Steps};
use crate::decimal::number::shown;
use crate::format::time::TimeZones;
use crate::partial::merge::Merge;
use crate::plan::columns::unknown;
use crate::spill::stored::{Lost, Stored, StoredForm};
use crate::table::groups::Groups;
use crate::table::key_order::KeyOrder;
use crate::table::states::push_part;

/// The most rows that are made.
const ROWS_MAX: usize = if cfg!(test) { 1000 } else { 1_000_000 };
/// What a row that is made takes in memory, beside its key, at most.
const ROW_BYTES: usize = 1024;

/// A key whose missing values become rows.
#[derive(Debug, Clone)]
pub(crate) struct Fill {
    /// The part of the key.
    key: usize,
    name: Vec<u8>,
    steps: Steps,
}

fn refused(why: String) -> Error {
    Error::new(Kind::Usage, why)
}

impl Fill {
    /// That of the key called `name` among `names`; `words` are what a partial keeps of the query.
    ///
    /// # Errors
    /// There is no such key, or nothing says which value comes next.
    pub(crate) fn of(
        name: &[u8],
        names: &[Vec<u8>],
        words: &[(Vec<u8>, Vec<u8>)],
        zones: TimeZones,
    ) -> Result<Fill> {
        let found = names.iter().position(|key| key == name);
        let key = found.ok_or_else(|| refused(unknown("the key", name, names)))?;
        let mut keys = words.iter().filter(|(name, _)| name == b"key");
        let written = keys.nth(key).map(|(_, word)| String::from_utf8_lossy(word));
        let steps = written.and_then(|written| Steps::of_key(&written, zones));
        let steps = steps.ok_or_else(|| {
            let name = shown(name);
            refused(format!(
                "`{name}` can't be filled, because nothing says which value comes next: it is said of {KINDS}"
            ))
        })?;
        Ok(Fill {
            key,
            name: name.to_vec(),
            steps,
        })
    }

    fn too_many(&self) -> Error {
        let name = shown(&self.name);
        refused(format!(
            "filling `{name}` makes more than {ROWS_MAX} rows: longer steps make fewer, and so does a condition on records"
        ))
    }
}

impl Answer {
    /// Adds rows for the values that a key lacks, with each combination of the other keys that there is.
    ///
    /// # Errors
    /// They are too many, a value isn't one of the key's, or files can't be written or read back.
    pub(super) fn fill(&mut self, fill: &Fill) -> Result<()> {
        let Some(values) = self.values_of(fill)? else {
            return Ok(());
        };
        // Files of groups are in the order of keys.
        let before = self.stored.as_ref().map(|rows| Arc::clone(&rows.stored));
        let others = (0..self.columns.keys).filter(|at| *at != fill.key);
        let places = others.chain([fill.key]).map(|place| Place {
            place,
            descending: false,
            is_text: true,
        });
        let places: Vec<Place> = places.collect();
        let key_order = std::mem::replace(&mut self.key_order, KeyOrder::BYTES);
        let sorted = self.sort_by(&places, usize::MAX);
        self.key_order = key_order;
        sorted?;
        let mut gaps = Gaps {
            fill,
            values: values.into_iter().collect(),
            before: None,
            next: 0,
            made: Vec::new(),
        };
        self.each_group(&mut |groups, group| gaps.see(&groups.parts(group).collect::<Vec<_>>()))?;
        gaps.finish()?;
        let made = gaps.made;
        match &self.stored {
            Some(_) => self.add_stored(&made, before),
            None => self.add_rows(&made),
        }
    }

    /// All values of a key, if there are groups.
    fn values_of(&self, fill: &Fill) -> Result<Option<BTreeSet<Vec<u8>>>> {
        let (mut first, mut last) = (None, None);
        let (mut groups, mut either) = (0, BTreeSet::new());
        let mut known = Vec::new();
        // Groups come in any order: the least wrong value is the one that is told.
        let mut wrong: Option<Vec<u8>> = None;
        self.each_group(&mut |of, group| {
            groups += 1;
            let text = of.parts(group).nth(fill.key).unwrap_or_default();
            if text.is_empty() || text == known {
                return Ok(());
            }
            known = text.to_vec();
            if matches!(text, b"inf" | b"-inf" | b"nan") && !matches!(fill.steps, Steps::Times(_)) {
                return Ok(());
            }
            let Some(place) = fill.steps.place(text) else {
                if wrong.as_ref().is_none_or(|wrong| text < &wrong[..]) {
                    wrong = Some(known.clone());
                }
                return Ok(());
            };
            if first.as_ref().is_none_or(|(first, _)| place < *first) {
                first = Some((place.clone(), known.clone()));
            }
            if last.as_ref().is_none_or(|(last, _)| place > *last) {
                last = Some((place, known.clone()));
            }
            if let Steps::Times(spans) = &fill.steps
                && spans.is_either(text)
            {
                either.insert(known.clone());
            }
            Ok(())
        })?;
        if let Some(wrong) = wrong {
            let [name, text] = [&fill.name[..], &wrong].map(shown);
            return Err(refused(format!(
                "`{name}` can't be filled: `{text}` isn't a value of such a key"
            )));
        }
        let (Some((_, first)), Some((_, last))) = (first, last) else {
            return Ok(None);
        };
        let values = fill
            .steps
            .between(&first, &last, &either, groups + ROWS_MAX);
        values.map(Some).ok_or_else(|| fill.too_many())
    }

    /// Adds rows of no record to those in memory, or to a file if they exceed it.
    fn add_rows(&mut self, made: &[Vec<u8>]) -> Result<()> {
        let bytes: usize = made.iter().map(|key| key.len() + ROW_BYTES).sum();
        let budget = Arc::clone(&self.form().budget);
        if budget.has_room(bytes as u64) {
            let mut found = self.take_order();
            let made = made.iter().map(|key| self.all.add(key));
            found.extend(made);
            (self.found, self.is_by_key) = (found, true);
            return Ok(());
        }
        let form = self.rows_form();
        let written = form.write(&self.all, &self.columns.scales);
        let reader = written.map_err(|lost| lost.error(&budget))?;
        let empty = Groups::new(self.all.table().like(), None);
        let stored = Stored::new(reader, form.keys, empty.table().like());
        let all = std::mem::replace(&mut self.all, empty);
        self.with_values.get_or_insert(all);
        self.order.take();
        self.found.clear();
        let stored = Arc::new(stored);
        self.stored = Some(StoredRows::new(Arc::clone(&stored), form, true));
        self.add_stored(made, Some(stored))
    }

    /// Merges rows of no record with those of a file in the order of keys.
    fn add_stored(&mut self, made: &[Vec<u8>], before: Option<Arc<Stored>>) -> Result<()> {
        let (Some(rows), Some(before)) = (self.stored.take(), before) else {
            return Ok(());
        };
        let (form, scales) = (rows.form, &self.columns.scales);
        let mut table = before.table().like();
        for key in made {
            table.group(key);
        }
        let merged = form
            .write(&Groups::new(table, None), scales)
            .and_then(|made| {
                let sources: Vec<u32> = (0..form.sources as u32).collect();
                let both = [before.reader(), &made].map(|reader| (reader, sources.clone()));
                let mut merge = Merge::new(both);
                form.write_merged(scales, |groups| merge.next(groups).map_err(|_| Lost::Read))
            });
        let merged = merged.map_err(|lost| lost.error(&form.budget))?;
        let stored = Stored::new(merged, form.keys, before.table().like());
        self.stored = Some(StoredRows::new(Arc::new(stored), form, true));
        Ok(())
    }

    /// How rows lie in files.
    fn rows_form(&self) -> StoredForm {
        match self.form().has_values() {
            true => self.form().settled(),
            false => self.form().clone(),
        }
    }
}

/// Finds the values that each combination of the other keys lacks.
struct Gaps<'a> {
    fill: &'a Fill,
    values: Vec<Vec<u8>>,
    /// The parts of the last key, and the next value that it may have.
    before: Option<Vec<Vec<u8>>>,
    next: usize,
    /// The keys of the rows that are missing, as tables have them.
    made: Vec<Vec<u8>>,
}

impl Gaps<'_> {
    /// The next key in the order of the others.
    fn see(&mut self, parts: &[&[u8]]) -> Result<()> {
        let key = self.fill.key;
        let is_same = self.before.as_ref().is_some_and(|before| {
            let mut pairs = before.iter().zip(parts).enumerate();
            pairs.all(|(at, (one, two))| at == key || one == two)
        });
        if !is_same {
            self.finish()?;
            self.before = Some(parts.iter().map(|part| part.to_vec()).collect());
        }
        while self
            .values
            .get(self.next)
            .is_some_and(|value| &**value < parts[key])
        {
            self.make()?;
        }
        self.next += usize::from(
            self.values
                .get(self.next)
                .is_some_and(|value| value == parts[key]),
        );
        Ok(())
    }

    /// All values that are left of a combination.
    fn finish(&mut self) -> Result<()> {
        if self.before.is_some() {
            while self.next < self.values.len() {
                self.make()?;
            }
        }
        self.next = 0;
        Ok(())
    }

    fn make(&mut self) -> Result<()> {
        let mut key = Vec::new();
        for (at, part) in self.before.iter().flatten().enumerate() {
            let is_filled = at == self.fill.key;
            push_part(
                &mut key,
                if is_filled {
                    &self.values[self.next]
                } else {
                    part
                },
            );
        }
        self.made.push(key);
        self.next += 1;
        match self.made.len() > ROWS_MAX {
            true => Err(self.fill.too_many()),
            false => Ok(()),
        }
    }
}
