//! Compares an answer with ringfold's: as decimals, by key.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// How far a sum of doubles may be from the exact one, as a share of it: a million additions, each with its error.
const SUM_TOLERANCE: f64 = 1e-10;

/// What the comparison found, where the answers agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    pub groups: usize,
    pub sums: usize,
    /// Sums that as decimals aren't ringfold's.
    pub inexact: usize,
    /// Whether the answers are the same byte by byte.
    pub identical: bool,
}

/// How an answer is written.
pub struct Shape {
    pub delimiter: char,
    pub header: bool,
}

/// Compares the answer at `path` with ringfold's, whose columns are `fields`.
pub fn compare(
    reference: &Path,
    path: &Path,
    shape: &Shape,
    fields: &[&str],
) -> Result<Agreement, String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (reference, answer) = (read(reference)?, read(path)?);
    let keys = fields.iter().take_while(|field| **field == "key").count();
    let csv = Shape {
        delimiter: ',',
        header: true,
    };
    let known = rows(&reference, &csv, keys, fields.len())?;
    if known.is_empty() {
        return Err("ringfold's answer is empty".into());
    }
    let found = rows(&answer, shape, keys, fields.len())?;
    let mut agreement = Agreement {
        groups: known.len(),
        identical: reference == answer,
        ..Agreement::default()
    };
    if found.len() != known.len() {
        return Err(format!("{} groups, not {}", found.len(), known.len()));
    }
    for (key, values) in &known {
        let wrong = |what: &str| format!("{what} of {}", key.join(", "));
        let others = found.get(key).ok_or_else(|| wrong("no group"))?;
        for ((field, exact), other) in fields[keys..].iter().zip(values).zip(others) {
            // A mean of nothing is no decimal.
            let equal =
                exact == other || decimal(exact).is_some_and(|it| Some(it) == decimal(other));
            let near = match *field {
                "sum" => near(exact, other, 0.0),
                // Ringfold rounds the mean to the digits it prints.
                "mean" => near(exact, other, 0.5 * last_digit(exact)),
                // Ringfold estimates these where groups are large; docs/query.md says how well.
                "median" | "p99" => near(exact, other, share_of(other, 1.0 / 128.0)),
                "distinct" => near(exact, other, share_of(other, 0.04)),
                // Several answers are right.
                "any" => true,
                _ => false,
            };
            if !equal && !near {
                return Err(wrong(&format!("{field} {other}, not {exact},")));
            }
            if *field == "sum" {
                agreement.sums += 1;
                agreement.inexact += usize::from(!equal);
            }
        }
    }
    Ok(agreement)
}

type Rows = HashMap<Vec<String>, Vec<String>>;

fn rows(text: &str, shape: &Shape, keys: usize, columns: usize) -> Result<Rows, String> {
    let mut rows = HashMap::new();
    for line in text.lines().skip(usize::from(shape.header)) {
        let mut fields = fields(line, shape.delimiter);
        if fields.len() != columns {
            return Err(format!("{} fields, not {columns}: {line}", fields.len()));
        }
        let values = fields.split_off(keys);
        if rows.insert(fields, values).is_some() {
            return Err(format!("a group twice: {line}"));
        }
    }
    Ok(rows)
}

/// The fields of a line. No key of the answers holds a quote or newline.
fn fields(line: &str, delimiter: char) -> Vec<String> {
    line.split(delimiter)
        .map(|field| field.trim_matches('"').to_string())
        .collect()
}

/// A number as sign, digits without zeros at both ends, and the place of the last one.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
        None => (text, 0_i64),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_end_matches('0');
    let place = exponent - part.len() as i64 + (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    match kept {
        "" => Some((false, String::new(), 0)),
        kept => Some((negative, kept.to_string(), place)),
    }
}

fn near(exact: &str, other: &str, slack: f64) -> bool {
    let (Ok(exact), Ok(other)) = (exact.parse::<f64>(), other.parse::<f64>()) else {
        return false;
    };
    (exact - other).abs() <= exact.abs() * SUM_TOLERANCE + slack
}

/// A share of a number.
fn share_of(text: &str, share: f64) -> f64 {
    text.parse::<f64>()
        .map_or(0.0, |number| share * number.abs())
}

/// What one more in the last digit is.
fn last_digit(text: &str) -> f64 {
    let places = text.split_once('.').map_or(0, |(_, part)| part.len());
    10_f64.powi(-(places as i32))
}
