//! Where values stand in lines that a dialect splits one behind the other. It is the first two passes at once, for what
//! the index doesn't know: JSON, logs, comments, blanks in runs.

use memchr::memrchr;

use crate::format::dialect::Dialect;
use crate::format::field::Field;
use crate::scan::index::TextWindow;

/// What is wanted of the lines.
pub(crate) struct Lines<'a> {
    pub(crate) dialect: &'a Dialect,
    /// How many fields a record has.
    pub(crate) width: usize,
    /// The columns that are wanted, from 0, and the spans of each.
    pub(crate) columns: &'a [usize],
    pub(crate) spans: &'a mut [Box<[u32]>],
    /// Those of the current line.
    pub(crate) fields: &'a mut Vec<Field>,
}

impl Lines<'_> {
    /// Reads the lines that end in `window`. Lists where rows begin, and where those do that are to be added one by one:
    /// empty and malformed ones, and those whose values don't stand there as they are meant. Returns where the last line
    /// ends.
    pub(crate) fn read(
        &mut self,
        window: TextWindow<'_>,
        starts: &mut Vec<u32>,
        others: &mut Vec<u32>,
    ) -> usize {
        let bytes = window.bytes();
        let end = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < end {
            if let Some(next) = self.dialect.after_comment(bytes, at) {
                at = next;
                continue;
            }
            let start = at as u32;
            let is_row = match self.dialect.split(bytes, at, self.fields) {
                Ok(record) => {
                    at = record.next;
                    self.note(starts.len())
                }
                Err(bad) => {
                    at = bad.next;
                    false
                }
            };
            match is_row {
                true => starts.push(start),
                false => others.push(start),
            }
        }
        for spans in &mut *self.spans {
            spans[starts.len()..][..8].fill(0);
        }
        end
    }

    /// Notes the values of the current line as those of a row; `false` if they can't be.
    fn note(&mut self, row: usize) -> bool {
        if self.fields.len() != self.width {
            return false;
        }
        for (&column, spans) in self.columns.iter().zip(&mut *self.spans) {
            let field = &self.fields[column];
            if field.escape.is_some() {
                return false;
            }
            spans[row] = field.start as u32 | (field.end as u32 + 1) << 16;
        }
        true
    }
}
