//! A partial in words.

use ringfold_read::internals::{
    units::{counted, grouped},
    visible,
};

use crate::decimal::number::shown;
use crate::format::time::calendar;
use crate::partial::combine::combine;
use crate::partial::description::{Description, Extent, Source, Span};
use crate::saved::Partial;

impl Partial {
    /// What it says of itself, as aligned lines.
    pub fn inspected(&self) -> String {
        let description = &self.reader.description;
        let mut text = format!(
            "{}: partial, version {}\n",
            visible(self.name().as_bytes()),
            description.version()
        );
        let [groups, bytes] = [self.len(), self.bytes()].map(grouped);
        let blocks = counted(self.blocks() as u64, "block");
        let size = format!("{groups} in {blocks}, {bytes} bytes");
        let counts = description.counts;
        let rows = match description.key_parts() == description.keys.len() {
            true => "groups",
            false => "groups and values",
        };
        let mut lines = vec![
            (rows.to_string(), size),
            ("rows".to_string(), grouped(counts.rows)),
        ];
        for (name, count) in [
            ("filtered", counts.filtered),
            ("empty lines", counts.empty_lines),
            ("nulled", counts.nulled),
            ("skipped", counts.skipped),
        ] {
            if count > 0 {
                lines.push((name.to_string(), grouped(count)));
            }
        }
        push(&mut text, "", &lines);
        let words = |bytes: &[u8]| visible(shown(bytes).as_bytes()).into_owned();
        let query = description.query.iter();
        let query: Vec<_> = query
            .map(|(name, value)| (words(name), words(value)))
            .collect();
        push(&mut text, "query", &query);
        push(&mut text, "columns", &columns(description));
        let mut read = Vec::new();
        for (at, source) in (0..).zip(&description.sources) {
            read.push((words(&source.name), state(source)));
            let spans = description.spans.iter();
            for span in spans.filter(|span| span.source == at) {
                read.push((String::new(), place(span, source)));
            }
        }
        push(&mut text, "read", &read);
        if let Ok(combined) = combine(&[&self.reader])
            && !combined.missing.is_empty()
        {
            text += &format!("\n{}\n", combined.missing);
        }
        text
    }
}

/// Adds lines in two columns below a heading.
fn push(text: &mut String, heading: &str, lines: &[(String, String)]) {
    if !heading.is_empty() {
        *text += &format!("\n{heading}\n");
    }
    let width = lines.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    for (name, value) in lines {
        *text += format!("  {name:width$}  {value}").trim_end();
        text.push('\n');
    }
}

fn columns(description: &Description) -> Vec<(String, String)> {
    let words = |bytes: &[u8]| visible(shown(bytes).as_bytes()).into_owned();
    let keys = description.keys.iter();
    let keys = keys.map(|key| (words(key), "key".to_string()));
    let aggregates = description.aggregates.iter().map(|aggregate| {
        let mut name = words(&aggregate.name);
        if aggregate
            .columns
            .iter()
            .any(|column| column.rule.is_estimate())
        {
            name += ", estimated,";
        }
        let kind = match (aggregate.is_numeric, aggregate.scale) {
            (false, _) => name.trim_end_matches(',').into(),
            (true, 0) => format!("{name} of whole numbers"),
            (true, 1) => format!("{name} of numbers with 1 decimal"),
            (true, scale) => format!("{name} of numbers with up to {scale} decimals"),
        };
        (words(&aggregate.title), kind)
    });
    keys.chain(aggregates).collect()
}

/// The state of a source.
fn state(source: &Source) -> String {
    match (source.is_stream, source.seconds) {
        (true, _) => "a stream, which isn't known again".into(),
        (false, 0) => format!("{} bytes", grouped(source.bytes)),
        (false, seconds) => format!("{} bytes, written {}", grouped(source.bytes), time(seconds)),
    }
}

fn place(span: &Span, source: &Source) -> String {
    let bytes = match (source.is_stream, span.from, span.to) {
        (true, ..) => "all of it".into(),
        (false, 0, to) if to == source.bytes => "all of it".into(),
        (false, from, to) => format!("byte {from}-{to}"),
    };
    let mut place = match span.parts {
        0 | 1 => bytes,
        parts => format!("{bytes}, part {} of {parts}", span.part),
    };
    match span.extent {
        Extent::Plain => {}
        Extent::Empty => place += ", no record",
        Extent::Records { from, to, .. } => place += &format!(", records of byte {from}-{to}"),
    }
    place
}

/// A time as `2026-11-25 13:05:00 UTC`.
fn time(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = calendar::date(days);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @N` has them.
    #[test]
    fn times() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (1_795_612_381, "2026-11-25 13:13:01 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(time(seconds), want);
        }
        let _ = (time(i64::MAX), time(i64::MIN));
    }
}
