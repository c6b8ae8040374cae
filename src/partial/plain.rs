//! Partials of count, sum, least and greatest, written group by group without a query: benchmarks and fuzzing make them.

use std::io::{self, Write};

use crate::partial::description::{Aggregate, Column, Counts, Description, Rule};
use crate::partial::writer::Writer;

/// Groups that are gathered at once: few beside those of a block, because what doesn't go into one is moved.
const AT_ONCE: usize = 512;

/// A partial that is being written.
pub struct PlainWriter<W> {
    writer: Writer<W>,
}

impl<W: Write> PlainWriter<W> {
    /// Of groups that together have so many rows.
    ///
    /// # Errors
    /// `out` can't be written.
    pub fn new(rows: u64, out: W) -> io::Result<PlainWriter<W>> {
        let aggregate = |name: &str, rule| Aggregate {
            name: name.into(),
            title: name.into(),
            scale: 0,
            is_numeric: rule != Rule::Count,
            columns: vec![Column { rule, scale: 0 }],
        };
        let description = Description {
            query: vec![(b"key".to_vec(), b"key".to_vec())],
            keys: vec![b"key".to_vec()],
            aggregates: vec![
                aggregate("count", Rule::Count),
                aggregate("sum", Rule::Sum),
                aggregate("min", Rule::Least),
                aggregate("max", Rule::Greatest),
            ],
            counts: Counts {
                rows,
                ..Counts::default()
            },
            ..Description::default()
        };
        let writer = Writer::new(out, &description)?;
        Ok(PlainWriter { writer })
    }

    /// Adds a group, whose key is greater than all before.
    ///
    /// # Errors
    /// The output can't be written.
    pub fn push(&mut self, key: &[u8], [count, sum, min, max]: [i64; 4]) -> io::Result<()> {
        let to = self.writer.gathered();
        to.keys.push(key);
        for (column, value) in to.columns.iter_mut().zip([count, sum, min, max]) {
            column.push_mantissa(value);
        }
        match to.len() % AT_ONCE {
            0 => self.writer.write_full(),
            _ => Ok(()),
        }
    }

    /// Writes the rest, and gives back where it went.
    ///
    /// # Errors
    /// The output can't be written.
    pub fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }
}
