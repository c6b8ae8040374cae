//! Tables beside the input. A column of one is computed: it is the field in the row that has a record's key.

use std::sync::Arc;

use ringfold_read::{Cause, Error, Kind as ErrorKind, Result};

use crate::decimal::number::{Number, shown};
use crate::expression::Expression;
use crate::expression::formula::{Formula, row_of};
use crate::expression::value::{Missing, Record, Value, ValueError, Wrong};
use crate::lookup::LookupTable;
use crate::plan::Plan;
use crate::plan::columns::{Columns, list};

/// A table, and what finds its rows.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) table: Arc<LookupTable>,
    /// The key of a record.
    pub(crate) key: Arc<[Formula]>,
    /// A column of the table that the query looks at, and whether a condition does.
    pub(crate) used: Option<(usize, bool)>,
}

/// A table as it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct AskedLookup {
    pub(crate) table: Arc<LookupTable>,
    /// A column of the input for each of the table's key, or in place of that a value.
    pub(crate) key: Vec<(Columns, Option<Expression>)>,
}

impl AskedLookup {
    /// What decides about its columns, in words.
    pub(crate) fn described(&self) -> String {
        let own = self.key.iter().map(|(columns, value)| match value {
            Some(value) => value.text().trim().to_string(),
            None => String::from_utf8_lossy(&columns.names().concat()).into_owned(),
        });
        let pairs = own.zip(&self.table.keys).map(|(own, &other)| {
            let title = String::from_utf8_lossy(&self.table.titles[other]);
            format!("{own}={title}")
        });
        let LookupTable {
            name, fingerprint, ..
        } = &*self.table;
        let pairs = pairs.collect::<Vec<_>>().join(",");
        format!("{name} on {pairs}, contents {fingerprint:016x}")
    }

    /// Shows the columns of the input in its key, and of tables before it.
    pub(crate) fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        for (columns, value) in &self.key {
            match value {
                Some(value) => value.each_column(see),
                None => see(columns),
            }
        }
    }
}

/// The table and the column that a query calls so.
///
/// # Errors
/// Several tables have it.
pub(crate) fn in_tables<'a>(
    tables: impl Iterator<Item = &'a Arc<LookupTable>>,
    name: &[u8],
) -> Result<Option<(usize, usize)>, String> {
    let mut found = None;
    for (at, table) in tables.enumerate() {
        let Some(column) = table.column(name) else {
            continue;
        };
        let other = found.replace((at, column, table));
        if let Some((_, before, other)) = other {
            let (one, two) = (other.full_name(before), table.full_name(column));
            return Err(format!(
                "several tables have `{}`: say `{}` or `{}`",
                shown(name),
                shown(&one),
                shown(&two)
            ));
        }
    }
    Ok(found.map(|(at, column, _)| (at, column)))
}

impl Plan {
    /// Adds a table, which may have its key in tables before it.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn add_lookup(&mut self, asked: &AskedLookup) -> Result<()> {
        let mut key = Vec::new();
        for (columns, value) in &asked.key {
            key.push(match value.as_ref().filter(|_| self.is_computed(columns)) {
                Some(value) => value.formula(self)?.0,
                None => Formula::Column(self.find_one(columns)?.0),
            });
        }
        self.lookups.push(Lookup {
            table: Arc::clone(&asked.table),
            key: key.into(),
            used: None,
        });
        Ok(())
    }

    /// Whether a column has fields, those of a table included, and isn't computed of them.
    pub(crate) fn is_field(&self, column: usize) -> bool {
        self.computed(column).is_none_or(|of| of.lookup().is_some())
    }

    /// The table and the column that a name is in, unless the input has it.
    ///
    /// # Errors
    /// Several tables have it.
    pub(crate) fn in_tables(&self, columns: &Columns) -> Result<Option<(usize, usize)>, String> {
        let header = self.shape.as_ref().and_then(|shape| shape.header.as_ref());
        match columns {
            Columns::Name(name) if header.is_none_or(|header| !header.contains(name)) => {
                in_tables(self.lookups.iter().map(|lookup| &lookup.table), name)
            }
            _ => Ok(None),
        }
    }

    /// Where columns stand.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn places(&mut self, columns: &Columns) -> Result<Vec<usize>, String> {
        let Some(shape) = &self.shape else {
            // Without a record nothing is ever looked up.
            return Ok(vec![0; columns.names().len()]);
        };
        if let Some((at, column)) = self.in_tables(columns)? {
            let Lookup { table, key, .. } = &self.lookups[at];
            let formula = Formula::Lookup(Arc::clone(table), column, Arc::clone(key));
            let name = columns.names().concat();
            let text = String::from_utf8_lossy(&name).into_owned();
            return Ok(vec![self.compute(formula, &text, false)]);
        }
        if self.dialect.is_json() {
            columns.check_named()?;
        }
        let found = columns.find(shape.width, shape.header.as_deref());
        match (&found, columns) {
            (Err(why), Columns::Name(_)) => {
                let tables = self.lookups.iter().map(|lookup| &lookup.table);
                let others =
                    tables.map(|table| format!("; {} has: {}", table.name, list(&table.titles)));
                Err(others.fold(why.clone(), |all, other| all + &other))
            }
            (Ok(_), Columns::Name(name)) => {
                self.note_shadowed(name);
                found
            }
            _ => found,
        }
    }

    /// Notes that a name of the input is one of a table, too, unless that is equal to it.
    fn note_shadowed(&mut self, name: &[u8]) {
        for Lookup { table, key, .. } in &self.lookups {
            let Some(column) = table.column(name) else {
                continue;
            };
            let is_same = |(at, of): (&usize, &Formula)| {
                let is_own = matches!(of, Formula::Column(own) if self.name_of(*own) == name);
                *at == column && is_own
            };
            let shadowed = (name.to_vec(), table.full_name(column));
            if !table.keys.iter().zip(&**key).any(is_same) && !self.shadowed.contains(&shadowed) {
                self.shadowed.push(shadowed);
            }
        }
    }

    /// Where columns stand, and how they are called.
    pub(crate) fn find(&mut self, columns: &Columns) -> Result<Vec<(usize, Vec<u8>)>> {
        let found = self.places(columns);
        let found = found.map_err(|why| Error::new(ErrorKind::Usage, why))?;
        let is_told = self.shape.is_some() && !matches!(columns, Columns::Name(_));
        let names = match is_told {
            true => found.iter().map(|&at| self.name_of(at)).collect(),
            false => columns.names(),
        };
        Ok(found.into_iter().zip(names).collect())
    }

    /// The same of columns that are one.
    pub(crate) fn find_one(&mut self, columns: &Columns) -> Result<(usize, Vec<u8>)> {
        let mut found = self.find(columns)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => {
                let why = "one column is wanted here, and not several";
                Err(Error::new(ErrorKind::Usage, why))
            }
        }
    }

    /// Notes which tables a condition looks at, and which others the rest of the query does.
    pub(crate) fn note_lookups(&mut self) {
        let mut tested = Vec::new();
        if let Some(filter) = &self.filter {
            filter.each_test(&mut |test| tested.extend([Some(test.column), test.clock]));
        }
        let aggregates = self.aggregates.iter().map(|of| of.column);
        let untested = self.keys.iter().map(|&key| Some(key)).chain(aggregates);
        let mut all = Vec::new();
        for (columns, is_tested) in [(tested, true), (untested.collect(), false)] {
            for column in columns.into_iter().flatten() {
                self.each_needed(column, &mut |column| all.push((column, is_tested)));
            }
        }
        for (column, is_tested) in all {
            if let Some(at) = self.lookup_at(column) {
                self.lookups[at].used.get_or_insert((column, is_tested));
            }
        }
    }

    /// Which table a column is of, if it is one's.
    fn lookup_at(&self, column: usize) -> Option<usize> {
        let table = self.computed(column)?.lookup()?;
        let mut tables = self.lookups.iter().map(|lookup| &lookup.table);
        tables.position(|known| Arc::ptr_eq(known, table))
    }

    pub(crate) fn lookup_of(&self, column: usize) -> Option<&Lookup> {
        Some(&self.lookups[self.lookup_at(column)?])
    }

    /// The number in a field of a record, of a table's column too.
    ///
    /// # Errors
    /// It isn't one.
    pub(crate) fn number_in(
        &self,
        column: usize,
        record: &dyn Record,
    ) -> Result<Option<Number>, ValueError> {
        let Value::Text(text) = record.value(column)? else {
            return Ok(None);
        };
        let number = self.read_number(&text).map(Some);
        number.map_err(|why| ValueError {
            text: text.into_owned(),
            column: Some(column),
            wrong: Wrong::Number(why),
        })
    }

    /// Shows a column and all that it is computed of.
    fn each_needed(&self, column: usize, see: &mut dyn FnMut(usize)) {
        see(column);
        if let Some(computed) = self.computed(column) {
            let formula = &computed.formula;
            formula.each_column(&mut |needed| self.each_needed(needed, see));
        }
    }

    /// What tables are looked at by conditions, or by the rest of the query, with the column that shows it.
    pub(crate) fn used_lookups(
        &self,
        by_condition: bool,
    ) -> impl Iterator<Item = (usize, &Lookup, usize)> {
        let lookups = self.lookups.iter().enumerate();
        lookups.filter_map(move |(at, lookup)| {
            let (column, is_tested) = lookup.used?;
            (is_tested == by_condition).then_some((at, lookup, column))
        })
    }
}

impl Lookup {
    /// The row of a record, if there is one.
    fn row(&self, record: &dyn Record) -> Result<Option<usize>, Missing> {
        row_of(&self.table, &self.key, record)
    }

    /// Whether a record has a key, and no row has it.
    pub(crate) fn is_unmatched(&self, record: &dyn Record) -> bool {
        matches!(self.row(record), Ok(None))
    }

    /// What is said of such a record.
    pub(crate) fn unmatched_cause(&self, record: &dyn Record) -> Cause {
        let mut key = Vec::new();
        for part in &*self.key {
            key.extend_from_slice(if key.is_empty() { b"" } else { b"," });
            // It was written before.
            let _ = part.write(record, &mut key);
        }
        format!("`{}` isn't in {}", shown(&key), self.table.file).into()
    }

    /// Where the row of a record stands in the table's file.
    pub(crate) fn line(&self, record: &dyn Record) -> Option<u64> {
        Some(self.table.line(self.row(record).ok()??))
    }
}
