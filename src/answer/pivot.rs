//! The values of a key as columns: a row of the answer is the groups that have the same other keys.
//!
//! Groups are put in the order of the other keys first, so those of a row stand side by side, in memory and in files.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;
use ringfold_read::{Error, Kind, Result};

use crate::answer::Answer;
use crate::answer::columns::{AnswerColumns, GroupRecord};
use crate::answer::layout::{Layout, Total};
use crate::answer::order::{Place, Sort};
use crate::answer::outgrown::Page;
use crate::answer::sorted::Rank;
use crate::decimal::number::{Grammar, shown};
use crate::expression::value::{Record, Value, ValueError};
use crate::report::grid::Cell;
use crate::table::groups::Groups;
use crate::table::states::Group;

/// The most columns that values become.
const COLUMNS_MAX: usize = 1000;
/// Rows of a file that are read at once have so many groups, or are one.
const PAGE_GROUPS: usize = if cfg!(test) { 8 } else { 4096 };

/// What the empty value is called.
const NULL: &[u8] = b"null";

/// The rows of an answer of which a key became columns.
pub(super) struct Pivot {
    /// The part of the key.
    key: usize,
    /// The names of the columns.
    pub(super) names: Vec<Vec<u8>>,
    /// The values in their order.
    values: Vec<Vec<u8>>,
    /// Of each group which value it has.
    ids: Vec<u16>,
    /// The groups of each row.
    rows: Vec<Range<usize>>,
    /// The rows in a file that are read at once: the first of each time, and what was read for those who asked for a row.
    pages: Vec<(usize, OnceLock<Page>)>,
}

impl Answer {
    /// Makes columns of the values of a part of the key.
    ///
    /// # Errors
    /// They are too many, there is no such column to sort by, or files can't be written or read back.
    pub(super) fn pivot(&mut self, key: usize, layout: &Layout) -> Result<()> {
        let others: Vec<usize> = (0..self.columns.keys).filter(|at| *at != key).collect();
        let by_keys = self.order_of_keys(layout.order(), &others);
        let mut places = by_keys.clone().unwrap_or_default();
        // Groups of a row stand side by side, also where another row's key is the same number.
        let of_others = others.iter().flat_map(|&at| [(at, false), (at, true)]);
        for (place, is_text) in of_others.chain([(key, false)]) {
            if (places.iter()).all(|known| (known.place, known.is_text) != (place, is_text)) {
                places.push(Place {
                    place,
                    descending: false,
                    is_text,
                });
            }
        }
        self.sort_by(&places, usize::MAX)?;
        let mut pivot = self.rows_by(key)?;
        pivot.names = self.pivot_names(&pivot, &others);
        if pivot.names.is_empty() {
            let why = "there are no groups, so there is no value to make a column of";
            return Err(Error::new(Kind::Usage, why));
        }
        if by_keys.is_none() {
            self.sort_pivot(&mut pivot, layout.order())?;
        }
        let per = layout.per_keys(&self.names[..self.columns.keys])?;
        self.keep_rows(&mut pivot, layout, &per)?;
        if self.stored.is_some() {
            pivot.set_pages();
        }
        if let Some(total) = &mut self.total {
            let of_part = |group: &Option<Group>| {
                let part = total.groups.parts(group.expect("one of each")).nth(key);
                (part.expect("a part of the key"), *group)
            };
            let of_parts: HashMap<&[u8], Option<Group>> = total.cells.iter().map(of_part).collect();
            let values = pivot.values.iter();
            total.cells = values
                .map(|value| of_parts.get(&**value).copied().flatten())
                .collect();
        }
        self.pivot = Some(pivot);
        Ok(())
    }

    /// Where the columns stand that rows are sorted by, if all of them are keys.
    fn order_of_keys(&self, sort: &Sort, others: &[usize]) -> Option<Vec<Place>> {
        let Sort::Columns(list) = sort else {
            return Some(Vec::new());
        };
        let names: Vec<Vec<u8>> = others.iter().map(|&at| self.names[at].clone()).collect();
        let mut columns = AnswerColumns::of_names(names.len(), 0, self.columns.grammar);
        let places = list.iter().map(|by| {
            let found = by.place(&names, &mut columns).ok()?;
            let place = *others.get(found.place)?;
            Some(Place { place, ..found })
        });
        places.collect()
    }

    /// Finds the rows, whose groups stand side by side, and the values.
    fn rows_by(&self, key: usize) -> Result<Pivot> {
        let shown_columns = self.columns.shown.len();
        let most = COLUMNS_MAX / shown_columns.max(1);
        let (mut known, mut values) = (HashMap::<Vec<u8>, u16>::new(), Vec::new());
        let (mut ids, mut rows) = (Vec::new(), Vec::<Range<usize>>::new());
        let mut before: Option<Vec<Vec<u8>>> = None;
        self.each_group(&mut |groups, group| {
            let at = ids.len();
            let parts: Vec<&[u8]> = groups.parts(group).collect();
            let is_same = before.as_ref().is_some_and(|before| {
                let mut pairs = before.iter().zip(&parts).enumerate();
                pairs.all(|(at, (one, two))| at == key || one == two)
            });
            match rows.last_mut().filter(|_| is_same) {
                Some(row) => row.end = at + 1,
                None => {
                    rows.push(at..at + 1);
                    before = Some(parts.iter().map(|part| part.to_vec()).collect());
                }
            }
            let id = match known.get(parts[key]) {
                Some(id) => *id,
                None => {
                    let id = values.len() as u16;
                    values.push(parts[key].to_vec());
                    known.insert(parts[key].to_vec(), id);
                    id
                }
            };
            ids.push(id);
            match values.len() > most {
                true => {
                    let name = shown(&self.names[key]);
                    let why = format!(
                        "the values of `{name}` make more than {COLUMNS_MAX} columns, the most that an answer has: leave values \
                         out by a condition, or make columns of a computed key that has fewer"
                    );
                    Err(Error::new(Kind::Usage, why))
                }
                false => Ok(()),
            }
        })?;
        let order = &self.key_order;
        let mut sorted: Vec<usize> = (0..values.len()).collect();
        sorted.sort_by(|&one, &two| {
            let [one, two] = [one, two].map(|at| &values[at][..]);
            let by_number = match order.is_number(key) {
                true => order.number(one).cmp(&order.number(two)),
                false => std::cmp::Ordering::Equal,
            };
            by_number.then_with(|| one.cmp(two))
        });
        let mut ranks = vec![0; values.len()];
        (0..).zip(&sorted).for_each(|(rank, &at)| ranks[at] = rank);
        let ids = ids.into_iter().map(|id| ranks[usize::from(id)]);
        Ok(Pivot {
            key,
            names: Vec::new(),
            ids: ids.collect(),
            values: sorted.iter().map(|&at| values[at].clone()).collect(),
            rows,
            pages: Vec::new(),
        })
    }

    /// A value alone, or before the name of each column if there are several.
    fn pivot_names(&self, pivot: &Pivot, others: &[usize]) -> Vec<Vec<u8>> {
        let own = &self.names[self.columns.keys..];
        // Where a text is called like that, no name is left for what is no value.
        let null = match pivot.values.iter().any(|value| value == NULL) {
            true => &b""[..],
            false => NULL,
        };
        let columns = pivot.values.iter().flat_map(|value| {
            let value = if value.is_empty() { null } else { value };
            own.iter().map(move |name| match own.len() {
                1 => value.to_vec(),
                _ => [value, b"_", name].concat(),
            })
        });
        let keys = others.iter().map(|&at| self.names[at].clone());
        keys.chain(columns).collect()
    }

    /// Sorts the rows by their columns.
    fn sort_pivot(&self, pivot: &mut Pivot, sort: &Sort) -> Result<()> {
        let Sort::Columns(list) = sort else {
            return Ok(());
        };
        let keys = self.columns.keys - 1;
        let cells = pivot.names.len() - keys;
        let mut columns = AnswerColumns::of_names(keys, cells, self.columns.grammar);
        let places = list.iter().map(|by| by.place(&pivot.names, &mut columns));
        let places: Vec<Place> = places.collect::<Result<_>>()?;
        let ranks = |answer: &Answer, pivot: &Pivot, row: &Range<usize>| -> Vec<Rank<'static>> {
            let record = PivotRecord {
                answer,
                pivot,
                columns: &columns,
                row: row.clone(),
            };
            let ranks = places.iter().map(|by| record.rank(*by).into_owned());
            ranks.collect()
        };
        let mut ranked: Vec<(Vec<Rank<'static>>, Range<usize>)> = Vec::new();
        if self.stored.is_some() {
            pivot.set_pages();
            let mut first = 0;
            while let Some(page) = self.pivot_page(pivot, first..pivot.rows.len()) {
                let own = page.rows.pivot.as_ref().expect("a part of the pivot");
                self.check()?;
                let rows = own.rows.iter().map(|row| ranks(&page.rows, own, row));
                let end = first + own.rows.len();
                ranked.extend(rows.zip(pivot.rows[first..end].iter().cloned()));
                if end == pivot.rows.len() {
                    break;
                }
                first = end;
            }
        } else {
            let rows = pivot.rows.par_iter();
            let ranks = rows.map(|row| (ranks(self, pivot, row), row.clone()));
            ranks.collect_into_vec(&mut ranked);
        }
        ranked.par_sort_by(|(one, one_row), (two, two_row)| {
            let pairs = one.iter().zip(two).zip(&places);
            let mut orders = pairs.map(|((one, two), by)| one.compare(two, by.descending));
            let found = orders.find(|order| order.is_ne());
            found.unwrap_or_else(|| one_row.start.cmp(&two_row.start))
        });
        pivot.rows = ranked.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    /// Leaves the first rows, or those of each combination of some keys.
    fn keep_rows(&self, pivot: &mut Pivot, layout: &Layout, per: &[usize]) -> Result<()> {
        let first = layout.rows().unwrap_or(usize::MAX);
        if per.is_empty() {
            pivot.rows.truncate(first);
            return Ok(());
        }
        // The keys of a row are those of its first group.
        let mut keys: HashMap<usize, Vec<Vec<u8>>> = HashMap::new();
        let starts: HashSet<usize> = pivot.rows.iter().map(|row| row.start).collect();
        let mut at = 0;
        self.each_group(&mut |groups, group| {
            if starts.contains(&at) {
                let parts: Vec<&[u8]> = groups.parts(group).collect();
                keys.insert(at, per.iter().map(|&part| parts[part].to_vec()).collect());
            }
            at += 1;
            Ok(())
        })?;
        let mut counts: HashMap<Vec<Vec<u8>>, usize> = HashMap::new();
        pivot.rows.retain(|row| {
            let key = keys.remove(&row.start).expect("its first group");
            let count = counts.entry(key).or_default();
            *count += 1;
            *count <= first
        });
        Ok(())
    }

    /// Adds the cells of a row.
    pub(super) fn push_pivot<'a>(&'a self, pivot: &'a Pivot, at: usize, cells: &mut Vec<Cell<'a>>) {
        let row = pivot.rows[at].clone();
        let order = self.order();
        let parts = self.all.parts(order[row.start]).enumerate();
        let keys = parts.filter(|(part, _)| *part != pivot.key);
        cells.extend(keys.map(|(_, text)| Cell::Text(text)));
        let mut groups = row.peekable();
        for value in 0..pivot.values.len() {
            let group = groups.next_if(|at| usize::from(pivot.ids[*at]) == value);
            self.push_group(&self.all, group.map(|at| order[at]), cells);
        }
    }

    /// Adds what is shown of a group, or nulls where there is none.
    pub(super) fn push_group<'a>(
        &'a self,
        groups: &'a Groups,
        group: Option<Group>,
        cells: &mut Vec<Cell<'a>>,
    ) {
        match group {
            Some(group) => self.columns.push_cells(groups, group, cells),
            None => cells.resize(cells.len() + self.columns.shown.len(), Cell::Null),
        }
    }

    /// Some rows of a file: as many as are read at once of those that are asked for.
    pub(super) fn pivot_page(&self, pivot: &Pivot, rows: Range<usize>) -> Option<Page> {
        let stored = self.stored.as_ref()?;
        let next = pivot
            .pages
            .partition_point(|(first, _)| *first <= rows.start);
        let end = pivot
            .pages
            .get(next)
            .map_or(pivot.rows.len(), |page| page.0);
        let rows = rows.start..rows.end.min(end);
        let of_rows = &pivot.rows[rows.clone()];
        let mut page = self.page(stored, rows, of_rows.iter().cloned());
        let (mut ids, mut based) = (Vec::new(), Vec::new());
        // If they couldn't be read, which the answer's check tells, there are none.
        if !page.rows.order().is_empty() {
            for row in of_rows {
                based.push(ids.len()..ids.len() + row.len());
                ids.extend_from_slice(&pivot.ids[row.clone()]);
            }
        }
        page.columns = pivot.names.len();
        page.rows.key_order = self.key_order.clone();
        page.rows.pivot = Some(Pivot {
            key: pivot.key,
            names: Vec::new(),
            values: pivot.values.clone(),
            ids,
            rows: based,
            pages: Vec::new(),
        });
        Some(page)
    }

    /// The same for those who ask for a row.
    pub(super) fn pivot_page_of<'a>(&'a self, pivot: &'a Pivot, at: usize) -> Option<&'a Page> {
        self.stored.as_ref()?;
        let page = pivot.pages.partition_point(|(first, _)| *first <= at) - 1;
        let (first, page) = &pivot.pages[page];
        let load = || self.pivot_page(pivot, *first..pivot.rows.len());
        Some(page.get_or_init(|| load().expect("rows of a file")))
    }
}

impl Pivot {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Says which rows are read at once.
    fn set_pages(&mut self) {
        self.pages.clear();
        let mut groups = 0;
        for (at, row) in self.rows.iter().enumerate() {
            groups += row.len();
            if at == 0 || groups > PAGE_GROUPS {
                self.pages.push((at, OnceLock::new()));
                groups = row.len();
            }
        }
    }
}

/// A row as a record of the columns of the pivot.
struct PivotRecord<'a> {
    answer: &'a Answer,
    pivot: &'a Pivot,
    columns: &'a AnswerColumns,
    row: Range<usize>,
}

impl<'a> PivotRecord<'a> {
    fn rank(&self, by: Place) -> Rank<'a> {
        if let Some(computed) = self.columns.hidden(by.place) {
            return Rank::of(computed.formula.value(self));
        }
        match self.group_of(by.place) {
            Ok(Some((group, place))) => {
                let order = self.answer.columns(&[]);
                order.rank(&self.answer.all, group, Place { place, ..by })
            }
            _ => Rank::NULL,
        }
    }

    /// The group that has the value of a column, and where it has it.
    fn group_of(&self, place: usize) -> Result<Option<(Group, usize)>, ValueError> {
        let answer = self.answer;
        let keys = answer.columns.keys - 1;
        let order = answer.order();
        let Some(cell) = place.checked_sub(keys) else {
            let part = place + usize::from(place >= self.pivot.key);
            return Ok(Some((order[self.row.start], part)));
        };
        let shown = answer.columns.shown.len();
        let (value, column) = (cell / shown, cell % shown);
        let mut groups = self.row.clone();
        let at = groups.find(|at| usize::from(self.pivot.ids[*at]) == value);
        let place = answer.columns.place(answer.columns.keys + column);
        Ok(at.map(|at| (order[at], place)))
    }
}

impl Record for PivotRecord<'_> {
    fn value(&self, place: usize) -> Result<Value<'_>, ValueError> {
        if let Some(computed) = self.columns.hidden(place) {
            return Ok(computed.formula.value(self)?.into_owned());
        }
        let Some((group, place)) = self.group_of(place)? else {
            return Ok(Value::Null);
        };
        let record = GroupRecord {
            columns: &self.answer.columns,
            totals: None,
            groups: &self.answer.all,
            group,
        };
        Ok(record.value(place)?.into_owned())
    }

    fn grammar(&self) -> Grammar {
        self.columns.grammar
    }

    fn wants_number(&self, _: usize) -> bool {
        false
    }
}

impl Total {
    /// Adds the cells of the row.
    pub(super) fn push<'a>(&'a self, answer: &'a Answer, keys: usize, cells: &mut Vec<Cell<'a>>) {
        cells.push(Cell::Total);
        cells.resize(keys, Cell::Null);
        for &group in &self.cells {
            answer.push_group(&self.groups, group, cells);
        }
    }
}
