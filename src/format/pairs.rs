//! Whether an input is one of keys and numbers.

use memchr::{memchr, memchr_iter};
use ringfold_read::internals::{
    foreign::BYTE_ORDER_MARK,
    head::{STEP, first_bytes, look_at_heads},
    pages::PAGE,
};
use ringfold_read::{Input, Result, Source};

use crate::format::pair_hint::{TRIED, is_header, is_row, read, trim};

/// Whether the first line of a file is a key and a number, as one read shows that leaves nothing in the page cache.
fn begins_with_pair(input: &Input, delimiter: u8) -> bool {
    let first = input
        .sources()
        .first()
        .filter(|source| source.len().is_some());
    let mut page = [0; PAGE];
    let file = first.and_then(|source| source.file().ok());
    let bytes = file.and_then(|file| first_bytes(&file, &mut page, 0).ok());
    let line = bytes.and_then(|bytes| Some(&bytes[..memchr(b'\n', bytes)?]));
    line.is_some_and(|line| read(trim(line), delimiter).is_some())
}

/// Whether the first record of an input is a key and a number, or only lacks a sound number before others that are. A
/// header isn't one. Waits for the first record of a pipe, and where that isn't one for some more.
///
/// # Errors
/// It can't be read.
pub(crate) fn has_pairs(input: &Input, delimiter: u8) -> Result<bool> {
    let look = |_: &Source, bytes: &[u8], ended: bool| {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        let whole = lines.filter(|line| ended || line.ends_with(b"\n"));
        let trimmed = whole.map(|line| trim(line.strip_suffix(b"\n").unwrap_or(line)));
        let mut records = trimmed.filter(|record| !record.is_empty()).take(1 + TRIED);
        let is_enough = ended || bytes.len() >= STEP || records.clone().count() > TRIED;
        match records.next() {
            None if ended => Some(None),
            // It is longer than all that was looked at.
            None if is_enough => Some(Some(true)),
            None => None,
            Some(first) if read(first, delimiter).is_some() => Some(Some(true)),
            Some(_) if !is_enough => None,
            Some(first) => {
                let is_alone = records.clone().next().is_none();
                let is_split = memchr_iter(delimiter, first).count() == 1;
                let are_rows = records.all(|record| is_row(record, delimiter));
                let is_row = are_rows && (is_split || !is_alone);
                Some(Some(is_row && !is_header(first, delimiter)))
            }
        }
    };
    Ok(begins_with_pair(input, delimiter) || look_at_heads(input.sources(), look)?.unwrap_or(true))
}
