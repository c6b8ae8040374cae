//! What the ending of an output's name says of its format.

use std::path::Path;

use crate::Result;
use crate::cli::console::usage;
use crate::report::grid::GridFormat;

/// Endings of answers. Without a format this program is built without it.
const FORMATS: [(&str, Option<GridFormat>); 14] = [
    ("csv", Some(GridFormat::Csv)),
    ("tsv", Some(GridFormat::Tsv)),
    ("tab", Some(GridFormat::Tsv)),
    ("json", Some(GridFormat::Json)),
    ("ndjson", Some(GridFormat::Ndjson)),
    ("jsonl", Some(GridFormat::Ndjson)),
    ("md", Some(GridFormat::Markdown)),
    ("markdown", Some(GridFormat::Markdown)),
    ("html", Some(GridFormat::Html)),
    ("htm", Some(GridFormat::Html)),
    ("arrow", ARROW),
    ("feather", ARROW),
    ("ipc", ARROW),
    ("parquet", PARQUET),
];

#[cfg(feature = "arrow")]
const ARROW: Option<GridFormat> = Some(GridFormat::Arrow);
#[cfg(not(feature = "arrow"))]
const ARROW: Option<GridFormat> = None;

#[cfg(feature = "parquet")]
const PARQUET: Option<GridFormat> = Some(GridFormat::Parquet);
#[cfg(not(feature = "parquet"))]
const PARQUET: Option<GridFormat> = None;

/// Endings of files that are never written, and what writes them.
const OTHERS: [&str; 9] = [
    "xlsx", "xls", "ods", "sqlite", "db", "xml", "yaml", "avro", "orc",
];

/// Programs that compress, by the endings of what they write.
const COMPRESSORS: [(&str, &str); 6] = [
    ("gz", "gzip"),
    ("bgz", "bgzip"),
    ("zst", "zstd"),
    ("bz2", "bzip2"),
    ("xz", "xz"),
    ("lz4", "lz4"),
];

/// Whether an ending in small letters is that of a compressed file.
pub(super) fn is_compressed(ending: &str) -> bool {
    let mut known = COMPRESSORS.iter().map(|(known, _)| *known);
    known.any(|known| known == ending) || matches!(ending, "gzip" | "zstd")
}

/// The format that a name's ending says, if it says one.
///
/// # Errors
/// It says one that isn't written.
pub(super) fn format(path: &Path) -> Result<Option<GridFormat>> {
    let Some(ending) = path.extension().and_then(|ending| ending.to_str()) else {
        return Ok(None);
    };
    let is = |known: &str| ending.eq_ignore_ascii_case(known);
    let shown = path.display();
    let refused = |why: String| Err(usage(why));
    if let Some((_, format)) = FORMATS.iter().find(|(known, _)| is(known)) {
        return match format {
            Some(format) => Ok(Some(*format)),
            None => refused(format!(
                "{shown} names a format that this ringfold is built without: -f csv writes CSV to it all the same"
            )),
        };
    }
    if let Some((_, program)) = COMPRESSORS.iter().find(|(known, _)| is(known)) {
        return refused(format!(
            "{shown} names a compressed file, and nothing is compressed here: leave --output out and add \
             `| {program} > {shown}`, or name a format by -f, as -f csv"
        ));
    }
    if OTHERS.iter().any(|known| is(known)) {
        return refused(format!(
            "{shown} names a format that isn't written: -f csv writes CSV to it all the same"
        ));
    }
    Ok(None)
}
