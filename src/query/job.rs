//! The job: folds blocks into groups as a plan says.
//!
//! Where quotes can't be understood, only the line of the quote that opens is left out, and reading goes on behind it,
//! up to the end of the record as engines cut it. That end doesn't depend on blocks, so the answer doesn't either.

use crate::engine::sink::{BlockError, Malformed};
use crate::group::aggregate::OnError;
use crate::group::summary::Skipped;
use crate::job::fold::Fold;
use crate::query::accumulator::state::Value;
use crate::query::answer::Answer;
use crate::query::dialect::Field;
use crate::query::number::Number;
use crate::query::plan::{BYTE_ORDER_MARK, Plan, Shape, names_of};
use crate::query::table::{Table, push_part};
use crate::record::block::Block;
use crate::record::framing::Framing;

/// What a worker knows.
pub struct Partial {
    table: Table,
    /// For each of the plan's numbers the most digits behind a point.
    scales: Vec<u32>,
    rows: u64,
    empty_lines: u64,
    skipped: u64,
    first_skipped: Option<Skipped>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    fields: Vec<Field>,
    /// The plan's numbers in the current record; `None` is null.
    numbers: Vec<Option<Number>>,
    key: Vec<u8>,
    value: Vec<u8>,
}

const ZERO: Number = Number {
    mantissa: 0,
    scale: 0,
};

impl Plan {
    fn is_null(&self, value: &[u8]) -> bool {
        value.is_empty() || self.nulls.iter().any(|null| null == value)
    }

    /// Adds the record whose fields were split; nothing is added when it is malformed.
    ///
    /// # Errors
    /// What is wrong with it.
    fn add(
        &self,
        partial: &mut Partial,
        shape: &Shape,
        bytes: &[u8],
        place: (u32, u64),
    ) -> Result<(), String> {
        let Scratch {
            fields,
            numbers,
            key,
            value: scratch,
        } = &mut partial.scratch;
        if fields.len() != shape.width {
            return Err(shape.mismatch(fields.len()));
        }
        numbers.clear();
        for &column in &self.numbers {
            let value = fields[column].value(bytes, scratch);
            let number = match self.is_null(value) {
                true => None,
                false => Some(
                    Number::read(value)
                        .map_err(|why| format!("{why} (column {})", self.column_name(column)))?,
                ),
            };
            numbers.push(number);
        }
        for (most, number) in partial.scales.iter_mut().zip(&*numbers) {
            *most = number.map_or(*most, |number| number.scale.max(*most));
        }
        key.clear();
        for &column in &self.keys {
            let value = fields[column].value(bytes, scratch);
            push_part(key, if self.is_null(value) { b"" } else { value });
        }
        let group = partial.table.group(key);
        for (aggregate, states) in self.aggregates.iter().zip(&mut partial.table.states) {
            let (value, number) = match (aggregate.column, aggregate.number) {
                (_, Some(at)) => match numbers[at] {
                    Some(number) => (&b""[..], number),
                    None => continue,
                },
                (Some(column), None) => match fields[column].value(bytes, scratch) {
                    null if self.is_null(null) => continue,
                    value => (value, ZERO),
                },
                (None, None) => (&b""[..], ZERO),
            };
            let value = Value {
                bytes: value,
                number,
                place,
            };
            states.update(group, &value);
        }
        partial.rows += 1;
        Ok(())
    }

    /// Compares the header of a file with the plan's; returns where the records behind it begin.
    fn header(
        &self,
        partial: &mut Partial,
        shape: &Shape,
        bytes: &[u8],
        at: usize,
    ) -> Result<usize, Malformed> {
        let fields = &mut partial.scratch.fields;
        let record = self
            .dialect
            .split(bytes, at, fields)
            .map_err(|bad| Malformed {
                start: bad.bytes.start,
                end: bad.bytes.end,
                cause: bad.cause.into(),
            })?;
        let wrong = match fields.is_empty() {
            true => Some("an empty line where a header is expected".to_string()),
            false => shape.differs(&names_of(fields, bytes)),
        };
        match wrong {
            Some(why) => Err(Malformed {
                start: at,
                end: record.end,
                cause: why.into(),
            }),
            None => Ok(record.next),
        }
    }

    /// Ends the job with a malformed record, or leaves it out.
    fn malformed(
        &self,
        partial: &mut Partial,
        block: &Block<'_>,
        malformed: Malformed,
    ) -> Result<(), BlockError> {
        if self.on_error == OnError::Fail {
            return Err(malformed.into());
        }
        partial.skipped += 1;
        let is_lower = partial.first_skipped.as_ref().is_none_or(|first| {
            (block.file(), block.offset() + malformed.start as u64)
                < (first.file, first.bytes.start)
        });
        if is_lower {
            partial.first_skipped = Some(Skipped::new(malformed, block));
        }
        Ok(())
    }

    /// Adds the records of a block from `at` on.
    fn records(
        &self,
        partial: &mut Partial,
        block: &Block<'_>,
        mut at: usize,
    ) -> Result<(), BlockError> {
        let bytes = block.bytes();
        // Where a record that can't be understood ends, as engines cut it.
        let mut limit = None;
        while at < bytes.len() {
            if limit.is_some_and(|limit| at >= limit) {
                limit = None;
            }
            let end = limit.unwrap_or(bytes.len());
            let split = (self.dialect).split(&bytes[..end], at, &mut partial.scratch.fields);
            let record = match split {
                Ok(record) => record,
                Err(bad) => {
                    limit.get_or_insert_with(|| self.dialect.framed_end(bytes, at));
                    at = bad.next;
                    let malformed = Malformed {
                        start: bad.bytes.start,
                        end: bad.bytes.end,
                        cause: bad.cause.into(),
                    };
                    self.malformed(partial, block, malformed)?;
                    continue;
                }
            };
            if partial.scratch.fields.is_empty() {
                partial.empty_lines += 1;
            } else if let Some(shape) = &self.shape {
                // Without a shape there is no record that can be read.
                let place = (block.file(), block.offset() + at as u64);
                if let Err(why) = self.add(partial, shape, bytes, place) {
                    let malformed = Malformed {
                        start: at,
                        end: record.end,
                        cause: why.into(),
                    };
                    self.malformed(partial, block, malformed)?;
                }
            }
            at = record.next;
        }
        Ok(())
    }
}

impl Fold for Plan {
    type Partial = Partial;
    type Output = Answer;

    fn partial(&self) -> Partial {
        let kinds = self.aggregates.iter().map(|aggregate| aggregate.kind);
        Partial {
            table: Table::new(&self.hasher, kinds),
            scales: vec![0; self.numbers.len()],
            rows: 0,
            empty_lines: 0,
            skipped: 0,
            first_skipped: None,
            scratch: Scratch::default(),
        }
    }

    fn framing(&self) -> &dyn Framing {
        &*self.framing
    }

    fn block(&self, partial: &mut Partial, block: &Block<'_>) -> Result<(), BlockError> {
        let bytes = block.bytes();
        let is_start = block.offset() == 0;
        let mut at = match is_start && bytes.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        if let Some(shape) = &self.shape
            && is_start
            && self.has_header
            && at < bytes.len()
        {
            at = self.header(partial, shape, bytes, at)?;
        }
        self.records(partial, block, at)
    }

    fn merge(&self, into: &mut Partial, from: Partial) {
        into.table.merge(from.table);
        for (most, scale) in into.scales.iter_mut().zip(from.scales) {
            *most = scale.max(*most);
        }
        into.rows += from.rows;
        into.empty_lines += from.empty_lines;
        into.skipped += from.skipped;
        into.first_skipped = Skipped::lower(into.first_skipped.take(), from.first_skipped);
    }

    fn finish(&self, mut total: Partial) -> Answer {
        if self.keys.is_empty() {
            // One group, also of nothing.
            total.table.group(b"");
        }
        let scale = |number: Option<usize>| number.map_or(0, |at| total.scales[at]);
        let scales = self
            .aggregates
            .iter()
            .map(|aggregate| scale(aggregate.number));
        let mut answer = Answer::new(
            self.names.clone(),
            self.keys.len(),
            scales.collect(),
            total.table,
        );
        answer.rows = total.rows;
        answer.empty_lines = total.empty_lines;
        answer.skipped = total.skipped;
        answer.first_skipped = total.first_skipped;
        answer
    }
}
