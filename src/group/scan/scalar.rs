//! The scalar parser: reads one record by the whole grammar, and says why when it is malformed.
//!
//! It reads what the vector kernels set aside, and is their oracle in tests.

use crate::group::accumulate::decimal::{self, Number};

/// What a record holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Nothing: an empty line.
    Empty,
    /// A key and its number.
    Row(&'a [u8], Number),
}

/// `record` without the carriage return of its line end.
pub(crate) fn trim(record: &[u8], terminator: u8) -> &[u8] {
    match record {
        [rest @ .., b'\r'] if terminator == b'\n' => rest,
        _ => record,
    }
}

/// Reads a trimmed record.
///
/// # Errors
/// Why it is malformed.
pub(crate) fn read(record: &[u8], delimiter: u8) -> Result<Record<'_>, String> {
    if record.is_empty() {
        return Ok(Record::Empty);
    }
    let Some(separator) = memchr::memchr(delimiter, record) else {
        return Err("1 field where 2 are expected".into());
    };
    let (key, value) = (&record[..separator], &record[separator + 1..]);
    let more = memchr::memchr_iter(delimiter, value).count();
    if more > 0 {
        return Err(format!("{} fields where 2 are expected", more + 2));
    }
    Ok(Record::Row(key, decimal::number(value)?))
}
