//! What a plan does, in words and with a look at the first records: for people who want to know before a long run.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use ringfold_read::internals::{Level, head::look_at_heads, visible};
use ringfold_read::{Input, Result, Source};

use crate::decimal::number::{Grammar, Number, shown};
use crate::format::dialect::mark_len;
use crate::format::hint::is_grouped;
use crate::format::json;
use crate::format::time::{Form, TimeZone, Zones, read};
use crate::plan::columns::{plural, unknown};
use crate::plan::lookups::Lookup;
use crate::plan::{Cut, Plan};
use crate::run::passes::Passes;
use crate::table::shared::SharedGroups;

/// Records that are looked at.
const RECORDS: usize = 1000;

/// Values of a column that are shown.
const SHOWN: usize = 5;

/// What a plan does. `Display` writes it as a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    facts: Vec<(&'static str, String)>,
    columns: Vec<[String; 5]>,
}

/// How many first records there are, and how many of them have another width or can't be split.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RecordCounts {
    pub(crate) records: usize,
    unequal: usize,
    malformed: usize,
}

impl RecordCounts {
    /// Whether so many are all of them, and none has another number of fields.
    pub(crate) fn has_all(&self, count: usize) -> bool {
        count >= self.records && self.unequal == 0
    }
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Values {
    /// There are none.
    Nulls,
    /// Some are no numbers.
    Texts,
    /// All are times.
    Times,
    /// All are numbers, of so many decimals at most.
    Numbers(u32),
}

/// What the first values of a column are.
#[derive(Default)]
pub(crate) struct ColumnSample {
    pub(crate) nulls: usize,
    texts: usize,
    /// Times, and how they are written where all are alike.
    times: usize,
    form: Option<Form>,
    numbers: usize,
    decimals: u32,
    longest: usize,
    /// Values that are shown.
    pub(crate) first: Vec<Vec<u8>>,
    different: BTreeSet<Vec<u8>>,
}

impl ColumnSample {
    fn add(&mut self, plan: &Plan, value: &[u8], takes_times: bool) {
        self.longest = self.longest.max(value.len());
        let time = read(value).ok();
        match plan.read_number(value) {
            _ if plan.is_null(value) => self.nulls += 1,
            number if time.is_some_and(|_| number.is_err() || takes_times) => {
                let form = time.map(|time| time.form);
                self.form = form.filter(|form| self.times == 0 || self.form == Some(*form));
                self.times += 1;
            }
            Ok(number) => {
                self.numbers += 1;
                self.decimals = self.decimals.max(number.decimals());
            }
            Err(_) => self.texts += 1,
        }
    }

    /// Adds a value that may be shown.
    pub(crate) fn show(&mut self, plan: &Plan, value: &[u8]) {
        self.add(plan, value, false);
        self.different.insert(value.to_vec());
        if self.first.len() < SHOWN {
            self.first.push(value.to_vec());
        }
    }

    pub(crate) fn distinct(&self) -> usize {
        self.different.len()
    }

    pub(crate) fn values(&self) -> Values {
        match (self.numbers, self.texts, self.times) {
            (0, 0, 0) => Values::Nulls,
            (_, 0, 0) => Values::Numbers(self.decimals),
            (0, 0, _) => Values::Times,
            _ => Values::Texts,
        }
    }

    pub(crate) fn kind(&self) -> String {
        if self.times > 0 && self.numbers + self.texts == 0 {
            return match self.form {
                Some(form) => format!("times, {}", form.name()),
                None => "times of several forms".into(),
            };
        }
        match (self.numbers, self.texts + self.times, self.decimals) {
            (0, 0, _) => "nothing but nulls".into(),
            (_, 0, 0) => "whole numbers".into(),
            (_, 0, 1) => "numbers with 1 decimal".into(),
            (_, 0, decimals) => format!("numbers with up to {decimals} decimals"),
            (0, ..) => format!("text of up to {}", plural(self.longest, "byte")),
            (numbers, texts, _) => format!(
                "{} and {}",
                plural(texts, "text"),
                plural(numbers, "number")
            ),
        }
    }
}

/// The keys of the first object among JSON lines.
pub(crate) fn first_keys(input: &Input) -> Result<Vec<Vec<u8>>> {
    let look = |_: &Source, bytes: &[u8], ended: bool| {
        let keys = Some(json::keys(bytes)).filter(|keys| !keys.is_empty());
        (ended || keys.is_some()).then_some(keys)
    };
    Ok(look_at_heads(input.sources(), look)?.unwrap_or_default())
}

/// The keys of the first records among JSON lines, each once, and whether there are more records.
pub(crate) fn keys_of_first(input: &Input) -> Result<(Vec<Vec<u8>>, bool)> {
    let look = |_: &Source, bytes: &[u8], ended: bool| {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
        for line in lines.by_ref().take(RECORDS) {
            let new = json::keys(line).into_iter();
            keys.extend(new.filter(|key| seen.insert(key.clone())));
        }
        let has_more = lines.any(|line| !line.trim_ascii().is_empty());
        (ended || has_more).then(|| (!keys.is_empty()).then_some((keys, has_more)))
    };
    let (keys, has_more) = look_at_heads(input.sources(), look)?.unwrap_or_default();
    Ok((keys, has_more || input.sources().len() > 1))
}

impl Plan {
    /// Says what the plan does with an input, of which it looks at the first records.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn explain(&self, input: &Input) -> Result<Explanation> {
        let width = self.shape.as_ref().map_or(0, |shape| shape.width);
        let (seen, looked) = self.first_records(input, width)?;
        let mut facts = self.facts(looked);
        for Lookup { table, .. } in &self.lookups {
            let key = table.keys.iter().map(|&key| shown(&table.titles[key]));
            let (rows, key) = (plural(table.row_count(), "row"), key.collect::<Vec<_>>());
            facts.push((
                "table",
                format!("{}: {rows} by {}", table.name, key.join(",")),
            ));
        }
        if self.filter.is_some() {
            facts.push((
                "condition",
                "decided before numbers and keys are read".into(),
            ));
        }
        let is_as_written = |cut: &Cut| cut.unit.zones.is_none();
        if self.cuts.iter().flatten().any(is_as_written) {
            let cut = "cut as they are written: zones aren't looked at";
            facts.push(("times", cut.into()));
        }
        for Zones { zone, input } in &self.zoned.zones {
            let local = match zone == input {
                true => String::new(),
                false => format!(", those without an offset from that of {}", input.name()),
            };
            let (name, version) = (zone.name(), TimeZone::database());
            facts.push((
                "times",
                format!("on the clock of {name}{local} (tz database {version})"),
            ));
        }
        match Passes::new(self, &Arc::new(SharedGroups::new(&self.budget))) {
            Some(passes) => {
                facts.push(("passes", passes.names(self)));
                let level = level_name(self.level);
                facts.push((
                    "instructions",
                    match passes.splits_lines() {
                        true => format!("{level}, after the split into fields"),
                        false => level.into(),
                    },
                ));
            }
            None => facts.push(("passes", "none: records are added one by one".into())),
        }
        let has_estimates = self.aggregates.iter().any(|of| of.kind.is_estimate());
        let exact = match has_estimates {
            true => "all but estimates of large groups; what is rounded is so once, for print",
            false => "all results; means, variances and deviations are rounded once, for print",
        };
        facts.push(("exact", exact.into()));
        let columns = seen.iter().enumerate().filter_map(|(column, seen)| {
            let uses = self.uses(column);
            let name = self.shape.as_ref()?.header.as_ref();
            let name = name.map_or(String::new(), |names| shown(&names[column]).into_owned());
            let number = (column + 1).to_string();
            let nulls = seen.nulls.to_string();
            (!uses.is_empty()).then(|| [number, name, uses.join(", "), seen.kind(), nulls])
        });
        Ok(Explanation {
            facts,
            columns: columns.collect(),
        })
    }

    /// How records are written, and how many were looked at.
    pub(crate) fn facts(&self, looked: RecordCounts) -> Vec<(&'static str, String)> {
        let width = self.shape.as_ref().map_or(0, |shape| shape.width);
        let is_json = self.dialect.is_json();
        let is_log = self.dialect.names().is_some() && !is_json;
        let named = match self.has_header {
            _ if is_log => "named by the log's pattern",
            true => "named by a header",
            false => "without names",
        };
        let quotes = match self.dialect.quote() {
            Some(b'"') => ", which may stand in double quotes".into(),
            Some(quote) => format!(", which may be quoted by {}", quote.escape_ascii()),
            None => String::new(),
        };
        let mut facts = vec![match is_json {
            true => ("records", "JSON objects, one a line".to_string()),
            false => ("records", format!("{} {named}", plural(width, "field"))),
        }];
        // Of lines of one field nothing is between them.
        if !(is_log || is_json || self.delimiter() == 0x1f && width == 1) {
            let between = between(self.delimiter());
            facts.push(("fields", format!("{between}{quotes}")));
        }
        let RecordCounts {
            records,
            unequal,
            malformed,
        } = looked;
        let fact = |count: usize, one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {several}"),
        };
        let mut looked_at = format!("the first {}", plural(records, "record"));
        let found = match (is_json || is_log, malformed) {
            _ if unequal + malformed == 0 => None,
            (true, _) if is_log => Some(fact(
                unequal + malformed,
                "doesn't fit the pattern",
                "don't fit the pattern",
            )),
            (true, _) => Some(fact(unequal + malformed, "is malformed", "are malformed")),
            (false, _) => {
                let unequal = (unequal > 0).then(|| {
                    fact(
                        unequal,
                        "has another number of fields",
                        "have other numbers of fields",
                    )
                });
                let malformed = (malformed > 0).then(|| {
                    let what = "quotes that can't be understood";
                    fact(malformed, &format!("has {what}"), &format!("have {what}"))
                });
                Some(
                    [unequal, malformed]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join(" and "),
                )
            }
        };
        if let Some(found) = found {
            looked_at += &format!(", of which {found}");
        }
        facts.push(("looked at", looked_at));
        facts
    }

    /// What is to be said of columns of JSON lines that are in none of the first records.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn unseen(&self, input: &Input) -> Result<Vec<String>> {
        let Some(names) = self.dialect.names().filter(|_| self.dialect.is_json()) else {
            return Ok(Vec::new());
        };
        let (seen, counts) = self.first_records(input, names.len())?;
        let known = first_keys(input)?;
        let columns = names.iter().zip(seen);
        let unseen = columns.filter(|(name, seen)| {
            !known.is_empty()
                && seen.nulls == counts.records - counts.malformed
                && !name.is_empty()
                && !known.contains(name)
        });
        Ok(unseen
            .map(|(name, _)| unknown("the first record", name, &known))
            .collect())
    }

    /// Whether a column's values are read as times, if they can be.
    fn takes_times(&self, column: usize) -> bool {
        let cuts = self.keys.iter().zip(&self.cuts);
        let mut cuts = cuts.filter(|(_, cut)| cut.is_some());
        let mut is_tested = false;
        if let Some(filter) = &self.filter {
            filter.each_test(&mut |test| {
                is_tested |= test.column == column && test.is_of_times();
            });
        }
        is_tested || self.times.contains(&column) || cuts.any(|(key, _)| *key == column)
    }

    /// What a column is used for.
    fn uses(&self, column: usize) -> Vec<String> {
        let mut uses = Vec::new();
        if let Some(filter) = &self.filter {
            let mut is_tested = false;
            filter.each_test(&mut |test| {
                is_tested |= test.column == column || test.clock == Some(column);
            });
            uses.extend(is_tested.then(|| "condition".to_string()));
        }
        let mut is_computed = false;
        for computed in &self.computed {
            computed
                .formula
                .each_column(&mut |needed| is_computed |= needed == column);
        }
        uses.extend(is_computed.then(|| "computed values".to_string()));
        let clocks = self.cuts.iter().filter_map(|cut| cut.as_ref()?.clock);
        let mut keys = self.keys.iter().copied().chain(clocks);
        uses.extend(keys.any(|key| key == column).then(|| "key".to_string()));
        let aggregates = self.aggregates.iter();
        let of_it = aggregates.filter(|aggregate| aggregate.column == Some(column));
        uses.extend(of_it.map(|aggregate| aggregate.kind.name().into_owned()));
        uses
    }

    /// What the first records hold in each column, and how many they are.
    fn first_records(
        &self,
        input: &Input,
        width: usize,
    ) -> Result<(Vec<ColumnSample>, RecordCounts)> {
        let mut seen: Vec<ColumnSample> = (0..width).map(|_| ColumnSample::default()).collect();
        let times: Vec<bool> = (0..width).map(|column| self.takes_times(column)).collect();
        let add = |column: usize, value: &[u8]| seen[column].add(self, value, times[column]);
        Ok(match self.each_value(input, width, add)? {
            Some(looked) => (seen, looked),
            None => (Vec::new(), RecordCounts::default()),
        })
    }

    /// The columns that are read as numbers with a comma before the decimals, and whose first values may have it between
    /// thousands: each with one of these.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn thousands(&self, input: &Input) -> Result<Vec<(String, String)>> {
        if self.grammar.decimal_point != b',' {
            return Ok(Vec::new());
        }
        let mut columns = self.numbers.clone();
        if let Some(filter) = &self.filter {
            filter.each_test(&mut |test| columns.extend(test.is_numeric().then_some(test.column)));
        }
        columns.sort_unstable();
        columns.dedup();
        // One with thousands, and whether there are others with a comma.
        let mut seen: Vec<(Option<String>, bool)> = vec![(None, false); columns.len()];
        let width = self.shape.as_ref().map_or(0, |shape| shape.width);
        self.each_value(input, width, |column, value| {
            let Some(at) = columns.iter().position(|known| *known == column) else {
                return;
            };
            let text = String::from_utf8_lossy(value);
            let text = text.trim();
            match is_grouped(text, ',') {
                true => drop(seen[at].0.get_or_insert_with(|| text.into())),
                false => seen[at].1 |= text.contains(','),
            }
        })?;
        let found = columns.iter().zip(seen);
        let found = found.filter_map(|(&column, (grouped, is_other))| {
            let grouped = grouped.filter(|_| !is_other)?;
            Some((self.column_name(column), grouped))
        });
        Ok(found.collect())
    }

    /// Whether the first values of a column are numbers with a comma before their decimals, and not without it.
    pub(crate) fn has_decimal_commas(&self, input: &Input) -> Result<bool> {
        let width = self.shape.as_ref().map_or(0, |shape| shape.width);
        let comma = Grammar {
            decimal_point: b',',
            ..self.grammar
        };
        // Whether all are numbers so far, and some have such a comma.
        let mut seen = vec![(true, false); width];
        self.each_value(input, width, |column, value| {
            let (is_number, has_comma) = &mut seen[column];
            let is_other = !self.is_null(value) && self.read_number(value).is_err();
            *is_number &= !is_other || Number::read_as(value, comma).is_ok();
            *has_comma |= is_other && !is_grouped(&String::from_utf8_lossy(value), ',');
        })?;
        Ok(seen.contains(&(true, true)))
    }

    /// Shows column and value of each field in the first records of the first file that has one. Says how many records these
    /// are.
    pub(crate) fn each_value(
        &self,
        input: &Input,
        width: usize,
        mut show: impl FnMut(usize, &[u8]),
    ) -> Result<Option<RecordCounts>> {
        look_at_heads(input.sources(), |source, bytes, ended| {
            self.values_of(source, bytes, ended, width, &mut show)
        })
    }

    /// The same of one file; nothing is shown where more bytes are needed.
    fn values_of(
        &self,
        source: &Source,
        bytes: &[u8],
        ended: bool,
        width: usize,
        show: &mut impl FnMut(usize, &[u8]),
    ) -> Option<Option<RecordCounts>> {
        let begin = self.begins.get(source.index() as usize);
        let begin = begin.map_or(0, |&at| at as usize);
        let mut at = begin.max(mark_len(bytes));
        let mut is_header = self.has_header;
        let mut looked = RecordCounts::default();
        let (mut fields, mut scratch) = (Vec::new(), Vec::new());
        while at < bytes.len() && looked.records < RECORDS {
            if let Some(next) = self.dialect.after_comment(bytes, at) {
                at = next;
                continue;
            }
            let (next, is_malformed) = match self.dialect.split(bytes, at, &mut fields) {
                Ok(record) => (record.next, false),
                Err(bad) => (bad.next, true),
            };
            // The last record may go on in bytes that aren't there.
            if next >= bytes.len() && !ended {
                break;
            }
            at = next;
            if is_malformed {
                looked.records += 1;
                looked.malformed += 1;
                continue;
            }
            if fields.is_empty() || std::mem::take(&mut is_header) {
                continue;
            }
            looked.records += 1;
            looked.unequal += usize::from(fields.len() != width);
            for (column, field) in fields.iter().enumerate().take(width) {
                show(column, field.value(bytes, &mut scratch));
            }
        }
        match looked.records {
            0 if ended => Some(None),
            0 => None,
            _ => Some(Some(looked)),
        }
    }
}

fn level_name(level: Option<Level>) -> &'static str {
    match level {
        None | Some(Level::Portable) => "portable",
        #[cfg(target_arch = "x86_64")]
        Some(Level::Avx2(_)) => "AVX2",
        #[cfg(target_arch = "x86_64")]
        Some(Level::Avx512(_)) => "AVX-512",
    }
}

#[cfg(feature = "cli")]
impl Explanation {
    /// Adds a line to those above the table.
    pub(crate) fn add(&mut self, name: &'static str, fact: String) {
        self.facts.push((name, fact));
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, fact) in &self.facts {
            // What is asked stands in it, and a terminal must not obey that.
            writeln!(to, "{name:13} {}", visible(fact.as_bytes()))?;
        }
        writeln!(to)?;
        let head = ["column", "name", "used for", "looks like", "nulls"];
        let rows: Vec<_> = self.columns.iter().map(|row| row.to_vec()).collect();
        write_table(to, &head, &rows)
    }
}

/// Writes rows below the heads of their columns, numbers on the right of theirs.
pub(crate) fn write_table(
    to: &mut dyn fmt::Write,
    head: &[&str],
    rows: &[Vec<String>],
) -> fmt::Result {
    let head: Vec<String> = head.iter().map(|&name| name.into()).collect();
    // Names and values come from the input, and a terminal must not obey them.
    let cell = |cell: &String| visible(cell.as_bytes()).into_owned();
    let rows = rows.iter().map(|row| row.iter().map(cell).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    let all = || std::iter::once(&head).chain(&rows);
    // The head of the last columns goes over all of them.
    let last = head
        .iter()
        .position(String::is_empty)
        .map_or(head.len(), |at| at - 1);
    let width = |at: usize| {
        let head = head.iter().take(last).skip(at).take(1);
        let cells = head.chain(rows.iter().map(|row| &row[at]));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let is_number = |at: usize| ["column", "nulls"].contains(&&*head[at]);
    for row in all() {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match is_number(at) {
                true => line += &format!("{cell:>width$}  "),
                false => line += &format!("{cell:width$}  "),
            }
        }
        writeln!(to, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What stands between fields, in words.
fn between(delimiter: u8) -> String {
    let name = match delimiter {
        b',' => "commas",
        b'\t' => "tabs",
        b';' => "semicolons",
        b' ' => "blanks",
        other => return format!("between {}", other.escape_ascii()),
    };
    format!("between {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::Query;
    use ringfold_read::Config;

    #[test]
    fn a_plan_is_explained() {
        let text = "city,price,when\nBern,1.50,\nOslo,20,x\nRome,2\nBern,NA,3\n".repeat(2);
        let input = Input::memory([text.as_bytes()]);
        let config = Config::default();
        let query = Query::new(b',')
            .header(true)
            .null_value("NA")
            .key("city")
            .aggregate("mean", Some("price".into()))
            .and_then(|query| query.aggregate("first", Some("when".into())))
            .and_then(|query| query.filter("price > 1"))
            .unwrap();
        let plan = query.plan(&input, &config).unwrap();
        let explained = plan.explain(&input).unwrap().to_string();
        for part in [
            "records       3 fields named by a header\n",
            "fields        between commas, which may stand in double quotes\n",
            "the first 9 records, of which 2 have other numbers of fields\n",
            "passes        index, spans, condition, numbers, keys, 3 lanes a group, values\n",
            "column  name   used for         looks like             nulls\n",
            "     1  city   key              text of up to 4 bytes      0\n",
            "     2  price  condition, mean  1 text and 6 numbers       2\n",
        ] {
            assert!(explained.contains(part), "{part}\n{explained}");
        }
        let pairs = Input::memory([&b"a;1.5\n"[..]]);
        let query_of_pairs = Query::new(b';').key(1).aggregate("max", Some(2.into()));
        let plan = query_of_pairs.unwrap().plan(&pairs, &config).unwrap();
        let explained = plan.explain(&pairs).unwrap().to_string();
        let part =
            "one loop where numbers have 1 decimal, else index, spans, numbers, keys, 1 lane";
        assert!(explained.contains(part), "{explained}");
        let lines = Input::memory([&b"{\"a\": 1}\n"[..]]);
        let plan = Query::json_lines().key("a").plan(&lines, &config).unwrap();
        let json = plan.explain(&lines).unwrap().to_string();
        assert!(json.contains(", after the split into fields\n"), "{json}");
        let plain = query.level(None).plan(&input, &config).unwrap();
        let explained = plain.explain(&input).unwrap().to_string();
        assert!(explained.contains("one by one"), "{explained}");
    }

    #[test]
    fn an_empty_input_is_explained() {
        let input = Input::memory([&b""[..], b"\n\n"]);
        let plan = Query::new(b',').key(1).plan(&input, &Config::default());
        let explained = plan.unwrap().explain(&input).unwrap().to_string();
        assert!(explained.contains("the first 0 records"), "{explained}");
    }
}
