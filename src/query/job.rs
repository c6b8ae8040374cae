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
use crate::query::passes::{OneByOne, Passes};
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
    /// Most records are added by passes over windows, where the plan allows it.
    passes: Option<Box<Passes>>,
}

#[derive(Default)]
struct Scratch {
    fields: Vec<Field>,
    /// The plan's numbers in the current record; `None` is null.
    numbers: Vec<Option<Number>>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Plan {
    pub(crate) fn is_null(&self, value: &[u8]) -> bool {
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
        for (at, aggregate) in self.aggregates.iter().enumerate() {
            let (value, number) = match (aggregate.column, aggregate.number) {
                (_, Some(number)) => match numbers[number] {
                    Some(number) => (&b""[..], number),
                    None => continue,
                },
                (Some(column), None) => match fields[column].value(bytes, scratch) {
                    null if self.is_null(null) => continue,
                    value => (value, Number::ZERO),
                },
                (None, None) => (&b""[..], Number::ZERO),
            };
            let value = Value {
                bytes: value,
                number,
                place,
            };
            partial.table.update(group, at, &value);
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

    /// Adds the records of a block that begin at `at` and up to `until`; returns where the next one begins.
    fn records(
        &self,
        partial: &mut Partial,
        block: &Block<'_>,
        mut at: usize,
        until: usize,
    ) -> Result<usize, BlockError> {
        let bytes = block.bytes();
        // Where a record that can't be understood ends, as engines cut it.
        let mut limit = None;
        while at < bytes.len() && (at < until || limit.is_some_and(|limit| at < limit)) {
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
        Ok(at)
    }

    /// Adds the records of a block from `at` on.
    fn windows(
        &self,
        partial: &mut Partial,
        passes: &mut Passes,
        block: &Block<'_>,
        mut at: usize,
    ) -> Result<(), BlockError> {
        let mut rest = Rest {
            plan: self,
            partial,
            block,
        };
        while at < block.bytes().len() {
            at = passes.window(self, block, at, &mut rest)?;
        }
        Ok(())
    }

    /// Adds what the passes hold to the table.
    fn flush(&self, partial: &mut Partial) {
        if let Some(passes) = &mut partial.passes {
            passes.flush(self, &mut partial.table);
        }
    }
}

/// What the passes leave to be added record by record.
struct Rest<'a> {
    plan: &'a Plan,
    partial: &'a mut Partial,
    block: &'a Block<'a>,
}

impl OneByOne for Rest<'_> {
    fn add(&mut self, from: usize, until: usize) -> Result<usize, BlockError> {
        self.plan.records(self.partial, self.block, from, until)
    }

    fn table(&mut self) -> &mut Table {
        &mut self.partial.table
    }

    fn scales(&mut self) -> &mut [u32] {
        &mut self.partial.scales
    }

    fn added(&mut self, rows: usize) {
        self.partial.rows += rows as u64;
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
            passes: Passes::new(self).map(Box::new),
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
        let mut passes = partial.passes.take();
        let done = match &mut passes {
            Some(passes) => self.windows(partial, passes, block, at),
            None => self.records(partial, block, at, usize::MAX).map(drop),
        };
        partial.passes = passes;
        done
    }

    fn merge(&self, into: &mut Partial, mut from: Partial) {
        rayon::join(|| self.flush(into), || self.flush(&mut from));
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
        self.flush(&mut total);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::config::Config;
    use crate::input::spans::Input;
    use crate::level::Level;
    use crate::query::ask::Query;
    use crate::record::block::PaddedBuf;
    use crate::report::grid::{GridFormat, write_grid};

    /// The answer as CSV with all counts, or the first error; `text` is cut into blocks of records of about `block` bytes.
    fn answer(query: &Query, level: Option<Level>, text: &[u8], block: usize) -> String {
        let input = Input::memory([text]);
        let mut plan = match query.plan(&input, &Config::default()) {
            Ok(plan) => plan,
            Err(error) => return error.to_string(),
        };
        plan.level = level;
        let mut partials = [plan.partial(), plan.partial()];
        let (mut at, mut turn, mut errors) = (0, 0, Vec::new());
        while at < text.len() {
            let mut end = at;
            while end < text.len() && end - at < block {
                end = plan.dialect.framed_end(text, end);
            }
            let padded = PaddedBuf::from(&text[at..end]);
            let done = plan.block(&mut partials[turn % 2], &padded.block(0, at as u64, 0));
            match done {
                Ok(()) => {}
                Err(BlockError::Malformed(bad)) => {
                    errors.push(format!("{} {} {}", at + bad.start, at + bad.end, bad.cause));
                }
                Err(BlockError::Sink(error)) => panic!("{error}"),
            }
            (at, turn) = (end, turn + 1);
        }
        if let Some(error) = errors.into_iter().next() {
            return error;
        }
        let [mut one, two] = partials;
        plan.merge(&mut one, two);
        let answer = plan.finish(one);
        let mut csv = Vec::new();
        write_grid(answer.names(), &answer, GridFormat::Csv, None, &mut csv).unwrap();
        let (rows, empty, skipped) = (answer.rows, answer.empty_lines, answer.skipped);
        let first = answer.first_skipped.map(|first| format!("{first:?}"));
        let csv = String::from_utf8_lossy(&csv);
        format!("{csv}{rows} {empty} {skipped} {first:?}")
    }

    fn field() -> impl Strategy<Value = String> {
        prop_oneof![
            10 => "-?[0-9]{1,4}(\\.[0-9]{0,2})?",
            4 => "[a-c]{0,2}",
            1 => "-?[0-9]{7,12}(\\.[0-9]{0,5})?",
            1 => "\"[a-b0-9,\n]{0,3}\"",
            1 => "\"([a-b]|\"\"){0,3}\"",
            1 => prop::sample::select(&["NA", "-", "0", " 7 ", "+3", "1e5", "5\"", "\"x\"y", "\"open", "\r", ".5", "99999999"][..])
                .prop_map(String::from),
            1 => "[k]{28,40}",
        ]
    }

    const KEYS: &[&[usize]] = &[&[], &[1], &[3], &[1, 2], &[3, 1], &[1, 2, 3]];
    const NULLS: &[&[&str]] = &[&[], &["NA"], &["0", "NA"]];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// The passes of every level give what adding the records one by one gives, to the byte.
        #[test]
        fn passes_give_what_single_records_give(
            good in prop::collection::vec(field(), 3),
            rows in prop::collection::vec(prop::collection::vec(field(), 3), 1..30),
            odd in prop::collection::vec((0..30_usize, prop::collection::vec(field(), 0..5)), 0..4),
            ends in prop::collection::vec(prop::sample::select(&["\n", "\n", "\n", "\r\n"][..]), 40),
            repeat in 1..30_usize,
            keys in prop::sample::select(KEYS),
            aggregates in prop::collection::vec((0..14_usize, 1..4_usize), 0..5),
            is_quoted: bool,
            skips: bool,
            nulls in prop::sample::select(NULLS),
            block in 1..3000_usize,
        ) {
            let mut records = vec![good.join(",")];
            records.extend(rows.iter().map(|row| row.join(",")));
            for (at, fields) in &odd {
                records.insert(1 + at % records.len(), fields.join(","));
            }
            let ended = records.iter().zip(ends.iter().cycle()).map(|(record, end)| format!("{record}{end}"));
            let text = ended.collect::<String>().repeat(repeat);
            let mut query = Query::new(b',').quote(is_quoted.then_some(b'"'));
            if skips {
                query = query.on_error(OnError::Skip);
            }
            for null in nulls {
                query = query.null_value(*null);
            }
            for &key in keys {
                query = query.key(key);
            }
            for &(kind, column) in &aggregates {
                let name = crate::query::accumulator::ALL[kind].name;
                query = query.aggregate(name, Some(column.into())).unwrap();
            }
            let want = answer(&query, None, text.as_bytes(), block);
            for level in Level::available() {
                prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
            }
        }
    }
}
