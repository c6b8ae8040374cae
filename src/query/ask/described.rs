//! A query in words, as a partial keeps it: what two runs must have in common for their groups to mean the same.
//!
//! How the answer is shown isn't part of it: names, order, digits, conditions on its rows.

use crate::format::time::TimeZones;
use crate::plan::Plan;
use crate::plan::columns::Columns;
use crate::plan::shown::{INPUT_TIME_ZONE, TIME_ZONE};
use crate::query::ask::{Item, Query};
use crate::reject::rejects::OnError;

impl Query {
    /// Names and values. A value that only a record could tell is empty where there was none.
    pub(super) fn described(&self, plan: &Plan) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut words = Vec::new();
        let mut say = |name: &str, value: &[u8]| words.push((name.into(), value.to_vec()));
        let byte = |byte: u8| match byte {
            b' '..=b'~' => vec![byte],
            _ => byte.escape_ascii().to_string().into_bytes(),
        };
        let is_told = plan.shape.is_some() || !self.is_sniffed();
        match (self.is_json, is_told) {
            (true, _) => say("lines", b"JSON"),
            (false, true) => say("delimiter", &byte(plan.delimiter())),
            (false, false) => say("delimiter", b""),
        }
        if let Some(pattern) = &self.log {
            say("log", pattern.text.as_bytes());
        }
        if let Some(quote) = plan.dialect.quote() {
            say("quote", &byte(quote));
        }
        if let Some(escape) = self.style.escape {
            say("escape", &byte(escape));
        }
        if !self.style.comment.is_empty() {
            say("comment", &self.style.comment);
        }
        if self.style.skip_lines > 0 {
            say("skip lines", self.style.skip_lines.to_string().as_bytes());
        }
        for (is_set, name) in [
            (plan.has_header, "header"),
            (self.style.is_single_line, "single line"),
            (self.style.is_ragged, "ragged"),
            (self.style.is_squeezed, "squeeze"),
            (self.style.is_trimmed, "trim"),
            (self.keeps_repeated_headers, "keep repeated headers"),
            (self.style.has_decimal_comma, "decimal comma"),
            (self.is_float, "float"),
            (plan.has_values() && !self.is_estimated(), "exact"),
            (self.on_error == OnError::Null, "what is no number is null"),
        ] {
            if is_set {
                say(name, b"yes");
            }
        }
        if let Some(fingerprint) = self.hash_key.fingerprint() {
            say("hash key", fingerprint.as_bytes());
        }
        let TimeZones { zone, input } = self.time_zones;
        for (name, zone) in [(TIME_ZONE, zone), (INPUT_TIME_ZONE, input)] {
            if let Some(zone) = zone {
                say(name, zone.name().as_bytes());
            }
        }
        for null in self.nulls.iter().filter(|null| !null.is_empty()) {
            say("null value", null);
        }
        for lookup in &self.lookups {
            say("lookup", lookup.described().as_bytes());
        }
        for filter in &self.filters {
            say("where", filter.text().as_bytes());
        }
        for key in &self.keys {
            if let Some(value) = key
                .value
                .as_ref()
                .filter(|_| plan.is_computed(&key.columns))
            {
                say("key", value.text().trim().as_bytes());
                continue;
            }
            let clock = key.clock.as_ref();
            let clock =
                clock.map(|columns| [&b"+"[..], &self.labels(columns, plan).concat()].concat());
            let zone = key.zone.map(|zone| format!("[{}]", zone.name()));
            let zone = zone.unwrap_or_default();
            let cut = key
                .unit
                .map_or(String::new(), |unit| format!("@{unit}{zone}"));
            for label in self.labels(&key.columns, plan) {
                let clock = clock.as_deref().unwrap_or_default();
                say("key", &[&label, clock, cut.as_bytes()].concat());
            }
        }
        for asked in &self.aggregates {
            if asked.filter.is_some() || asked.value.is_some() {
                let is_column = asked.columns.as_ref();
                let is_column = is_column.is_some_and(|columns| !plan.is_computed(columns));
                if !is_column || asked.filter.is_some() {
                    say("aggregate", asked.text.trim().as_bytes());
                    continue;
                }
            }
            let name = asked.kind.name();
            let name = name.as_bytes();
            let Some(columns) = &asked.columns else {
                say("aggregate", name);
                continue;
            };
            for label in self.labels(columns, plan) {
                let value = match label.is_empty() {
                    true => Vec::new(),
                    false if asked.is_time => [name, b":", &label, b"@time"].concat(),
                    false => [name, b":", &label].concat(),
                };
                say("aggregate", &value);
            }
        }
        if self.aggregates.is_empty() {
            say("aggregate", b"count");
        }
        let computed = self.items.iter().filter_map(|item| match item {
            Item::Aggregate(_) => None,
            Item::Computed(computed) => Some(computed.clone()),
        });
        words.extend(plan.described_columns(&computed.collect::<Vec<_>>()));
        words
    }

    /// What columns are called: by a header's names, or by numbers.
    fn labels(&self, columns: &Columns, plan: &Plan) -> Vec<Vec<u8>> {
        let number = |at: usize| (at + 1).to_string().into_bytes();
        match &plan.shape {
            None => match columns {
                Columns::Number(_) | Columns::Range(..) if plan.has_header => {
                    vec![Vec::new(); columns.names().len()]
                }
                known => known.names(),
            },
            Some(shape) => {
                if let Ok(Some((at, column))) = plan.in_tables(columns) {
                    return vec![plan.lookups[at].table.full_name(column)];
                }
                let found = columns.find(shape.width, shape.header.as_deref());
                // They were found before.
                let found = found.unwrap_or_default().into_iter();
                let name = |at: usize| match &shape.header {
                    Some(header) => header[at].clone(),
                    None => number(at),
                };
                found.map(name).collect()
            }
        }
    }
}
