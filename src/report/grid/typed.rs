//! An answer as typed columns: Arrow record batches, an Arrow file, or with the feature `parquet` a Parquet file.
//!
//! A pass over all rows finds the type of each column, and a second one makes them, a batch of rows at a time.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchReader};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use rayon::ThreadPool;
use ringfold_read::internals::visible;

use crate::report::grid::cell::{Cell, Rows};
use crate::report::grid::digits::{Digits, LONG_DIGITS};
use crate::report::grid::json::unique;
use crate::report::grid::parts::{fold_columns, for_rows};

/// The most rows of a batch, and bytes after which it takes no more.
const BATCH: usize = 64 << 10;
const BATCH_BYTES: usize = 8 << 20;
/// The same of a Parquet file's row group, as it waits to be written.
#[cfg(feature = "parquet")]
const ROW_GROUP_BYTES: usize = 32 << 20;
/// So many digits always fit 64 bits.
const SHORT_DIGITS: usize = 18;

/// Rows as Arrow record batches: typed columns, at most 65,536 rows at a time. docs/formats.md says which types these are.
///
/// ```
/// use ringfold::query::Query;
/// use ringfold::report::grid::Batches;
/// use ringfold::{Config, Input, fold};
///
/// let input = Input::memory([&b"Bern;7.5\nOslo;-3.0\nBern;8.5\n"[..]]);
/// let config = Config::default();
/// let query = Query::new(b';').key(1).aggregate("sum", Some(2.into()))?;
/// let (answer, _) = fold(&input, &config, &query.plan(&input, &config)?)?;
/// let batches = Batches::new(answer.names(), &answer, None);
/// assert_eq!(batches.schema().field(1).data_type().to_string(), "Decimal128(18, 1)");
/// let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
/// assert_eq!(rows, 2);
/// # Ok::<(), ringfold::Error>(())
/// ```
pub struct Batches<R> {
    rows: R,
    schema: SchemaRef,
    /// The first row of the next batch.
    at: usize,
}

impl<R: Rows> Batches<R> {
    /// Of `rows`, whose columns have these `names`. A pass over all rows finds the types; the threads of a `pool` take part.
    pub fn new(names: &[Vec<u8>], rows: R, pool: Option<&ThreadPool>) -> Batches<R> {
        let start = vec![CellKinds::default(); names.len()];
        let columns = fold_columns(&rows, pool, &start, CellKinds::add, CellKinds::merge);
        let named = unique(names).into_iter().zip(&columns);
        let fields = named.map(|(name, column)| {
            let name = String::from_utf8(name);
            let name = name.unwrap_or_else(|error| visible(error.as_bytes()).into_owned());
            Field::new(name, column.data_type(), true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Batches::of_schema(schema, rows)
    }

    /// The same where the schema is known.
    pub fn of_schema(schema: SchemaRef, rows: R) -> Batches<R> {
        Batches {
            rows,
            schema,
            at: 0,
        }
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl<R: Rows> Iterator for Batches<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.len();
        if self.at >= rows {
            return None;
        }
        let fields = self.schema.fields().iter();
        let mut columns: Vec<Column> = fields.map(|field| Column::new(field.data_type())).collect();
        let (range, mut bytes) = (self.at..rows.min(self.at + BATCH), 0);
        self.at = for_rows(&self.rows, range, columns.len(), |_, cells| {
            let fits = bytes < BATCH_BYTES;
            if fits {
                bytes += cells.iter().map(Cell::len_max).sum::<usize>();
                let columns = columns.iter_mut().zip(cells);
                columns.for_each(|(column, cell)| column.push(cell));
            }
            fits
        });
        let arrays = columns.into_iter().map(Column::finish).collect();
        Some(RecordBatch::try_new(Arc::clone(&self.schema), arrays))
    }
}

impl<R: Rows> RecordBatchReader for Batches<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Writes an Arrow IPC file.
///
/// # Errors
/// The errors of `out`.
pub(super) fn write_arrow(batches: Batches<&dyn Rows>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = FileWriter::try_new(out, batches.schema()).map_err(unwrapped)?;
    for batch in batches {
        writer
            .write(&batch.map_err(unwrapped)?)
            .map_err(unwrapped)?;
    }
    writer.finish().map_err(unwrapped)
}

/// Writes a Parquet file. A row group is held in memory until it is complete.
///
/// # Errors
/// The errors of `out`.
#[cfg(feature = "parquet")]
pub(super) fn write_parquet(batches: Batches<&dyn Rows>, out: &mut dyn Write) -> io::Result<()> {
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;

    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("ringfold version ", env!("CARGO_PKG_VERSION")).into());
    let schema = Arc::clone(batches.schema());
    let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties.build()));
    let mut writer = writer.map_err(io::Error::other)?;
    for batch in batches {
        let batch = batch.map_err(unwrapped)?;
        writer.write(&batch).map_err(io::Error::other)?;
        // The writer counts the bytes itself.
        if writer.in_progress_size() > ROW_GROUP_BYTES {
            writer.flush().map_err(io::Error::other)?;
        }
        out.write_all(&std::mem::take(writer.inner_mut()))?;
    }
    out.write_all(&writer.into_inner().map_err(io::Error::other)?)
}

/// The error of the output, if it is one.
fn unwrapped(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, Default)]
struct CellKinds {
    numbers: bool,
    /// Doubles that no decimal is.
    doubles: bool,
    texts: bool,
    /// Texts that aren't UTF-8.
    bytes: bool,
    /// The most digits before the point, and after it.
    whole: usize,
    fraction: usize,
}

impl CellKinds {
    fn add(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Null | Cell::Total => {}
            // Doubles that have no digits.
            Cell::Text(b"inf" | b"-inf" | b"nan") => self.doubles = true,
            Cell::Text(text) | Cell::Json(text) => {
                self.texts = true;
                self.bytes |= std::str::from_utf8(text).is_err();
            }
            Cell::Number(number) => {
                self.numbers = true;
                let (whole, fraction) = number.lengths();
                self.doubles |= number.given().is_some_and(|text| text.contains('e'));
                self.whole = self.whole.max(whole - usize::from(number.is_negative()));
                self.fraction = self.fraction.max(fraction.saturating_sub(1));
            }
        }
    }

    fn merge(&mut self, other: &CellKinds) {
        self.numbers |= other.numbers;
        self.doubles |= other.doubles;
        self.texts |= other.texts;
        self.bytes |= other.bytes;
        self.whole = self.whole.max(other.whole);
        self.fraction = self.fraction.max(other.fraction);
    }

    fn data_type(&self) -> DataType {
        match (self.numbers, self.texts) {
            (false, false) if !self.doubles => DataType::Null,
            (true, false) if self.doubles => DataType::Float64,
            (true, false) => match (self.whole + self.fraction, self.fraction) {
                (0..=SHORT_DIGITS, 0) => DataType::Int64,
                (0..=SHORT_DIGITS, fraction) => decimal(SHORT_DIGITS, fraction),
                (0..=LONG_DIGITS, fraction) => decimal(LONG_DIGITS, fraction),
                _ => DataType::Utf8,
            },
            _ if self.bytes => DataType::Binary,
            _ => DataType::Utf8,
        }
    }
}

fn decimal(digits: usize, scale: usize) -> DataType {
    DataType::Decimal128(digits as u8, scale as i8)
}

/// The values of a batch's column.
enum Column {
    Null(usize),
    Int(Int64Builder),
    Decimal(Decimal128Builder, u32),
    Double(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Column {
    /// Of one of the types that [`CellKinds::data_type`] gives.
    fn new(data_type: &DataType) -> Column {
        match data_type {
            DataType::Null => Column::Null(0),
            DataType::Int64 => Column::Int(Int64Builder::new()),
            DataType::Decimal128(_, scale) => {
                let builder = Decimal128Builder::new().with_data_type(data_type.clone());
                Column::Decimal(builder, *scale as u32)
            }
            DataType::Float64 => Column::Double(Float64Builder::new()),
            DataType::Binary => Column::Bytes(BinaryBuilder::new()),
            _ => Column::Text(StringBuilder::new()),
        }
    }

    /// Appends a cell. The type was found from it, too.
    fn push(&mut self, cell: &Cell<'_>) {
        let text = match cell {
            Cell::Null | Cell::Total => return self.push_null(),
            Cell::Text(text) | Cell::Json(text) => text,
            Cell::Number(number) => return self.push_number(number),
        };
        let utf8 = || std::str::from_utf8(text).expect("looked at");
        match self {
            // It has no digits.
            Column::Double(values) => values.append_value(utf8().parse().expect("a double")),
            Column::Text(values) => values.append_value(utf8()),
            Column::Bytes(values) => values.append_value(text),
            Column::Null(_) | Column::Int(_) | Column::Decimal(..) => unreachable!("a text"),
        }
    }

    fn push_number(&mut self, number: &Digits<'_>) {
        let units = |digits: u32| {
            let (units, scale) = number.as_decimal().expect("few digits");
            units * 10_i128.pow(digits - scale)
        };
        match self {
            Column::Int(values) => values.append_value(units(0) as i64),
            Column::Decimal(values, scale) => values.append_value(units(*scale)),
            Column::Double(values) => values.append_value(number.as_f64()),
            Column::Text(values) => values.append_value(number.text()),
            Column::Bytes(values) => values.append_value(number.text().as_bytes()),
            Column::Null(_) => unreachable!("a number"),
        }
    }

    fn push_null(&mut self) {
        match self {
            Column::Null(count) => *count += 1,
            Column::Int(values) => values.append_null(),
            Column::Decimal(values, _) => values.append_null(),
            Column::Double(values) => values.append_null(),
            Column::Text(values) => values.append_null(),
            Column::Bytes(values) => values.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Column::Null(count) => Arc::new(NullArray::new(count)),
            Column::Int(mut values) => Arc::new(values.finish()),
            Column::Decimal(mut values, _) => Arc::new(values.finish()),
            Column::Double(mut values) => Arc::new(values.finish()),
            Column::Text(mut values) => Arc::new(values.finish()),
            Column::Bytes(mut values) => Arc::new(values.finish()),
        }
    }
}
