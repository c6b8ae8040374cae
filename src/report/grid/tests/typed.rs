//! What is read back of typed columns is what was meant.

use std::io::{Cursor, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

fn batches(names: &[Vec<u8>], answer: &Answer, pool: Option<&ThreadPool>) -> [Vec<RecordBatch>; 2] {
    let arrow = written(names, answer, GridFormat::Arrow, pool);
    let arrow = FileReader::try_new(Cursor::new(arrow), None).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let parquet = written(names, answer, GridFormat::Parquet, pool);
    file.write_all(&parquet).unwrap();
    let parquet = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    assert_eq!(arrow.schema(), parquet.schema());
    [
        arrow.map(Result::unwrap).collect(),
        parquet.map(Result::unwrap).collect(),
    ]
}

/// A decimal without zeros that say nothing.
fn plain(number: &str) -> String {
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    number.replace("-0", "0").trim_start_matches('+').to_owned()
}

fn check_cell(column: &dyn Array, at: usize, want: &Owned) {
    if column.is_null(at) || *column.data_type() == DataType::Null {
        return assert_eq!(*want, Owned::Null);
    }
    let (text, number) = match want {
        Owned::Null => panic!("there is a value for none"),
        Owned::Text(text) => (&**text, ""),
        Owned::Number(number) => (number.as_bytes(), &**number),
    };
    match column.data_type() {
        DataType::Utf8 => assert_eq!(column.as_string::<i32>().value(at).as_bytes(), text),
        DataType::Binary => assert_eq!(column.as_binary::<i32>().value(at), text),
        DataType::Int64 => {
            let value = column.as_primitive::<Int64Type>().value(at);
            assert_eq!(value.to_string(), plain(number));
        }
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(at);
            let want: f64 = std::str::from_utf8(text).unwrap().parse().unwrap();
            assert!(value == want || value.is_nan() && want.is_nan(), "{want}");
        }
        DataType::Decimal128(_, _) => {
            let value = column.as_primitive::<Decimal128Type>().value_as_string(at);
            assert_eq!(plain(&value), plain(number));
        }
        other => panic!("{other}"),
    }
}

fn check(names: &[Vec<u8>], answer: &Answer, pool: Option<&ThreadPool>) -> Vec<DataType> {
    let mut types = Vec::new();
    for batches in batches(names, answer, pool) {
        let mut rows = answer.0.iter();
        for batch in batches {
            types = batch
                .columns()
                .iter()
                .map(|column| column.data_type().clone())
                .collect();
            for (at, row) in rows.by_ref().take(batch.num_rows()).enumerate() {
                assert_eq!(row.len(), batch.num_columns());
                for (column, want) in batch.columns().iter().zip(row) {
                    check_cell(column, at, want);
                }
            }
        }
        assert_eq!(rows.count(), 0);
    }
    types
}

#[test]
fn typed_columns_are_read_back() {
    let text = any_text().boxed();
    proptest!(cases(300), |((names, answer) in any_answer(text, 12))| {
        check(&names, &answer, None);
    });
}

#[test]
fn a_column_has_the_type_of_its_values() {
    let of = |values: &[Owned]| {
        let rows = values.iter().map(|value| vec![value.clone(), Owned::Null]);
        let types = check(&names(&["a", "b"]), &Answer(rows.collect()), None);
        assert_eq!(types[1], DataType::Null);
        types[0].clone()
    };
    let digits = |count| number("9".repeat(count));
    assert_eq!(of(&[Owned::Null]), DataType::Null);
    assert_eq!(of(&[number(-3), Owned::Null, digits(18)]), DataType::Int64);
    assert_eq!(of(&[number(-3), digits(19)]), DataType::Decimal128(38, 0));
    assert_eq!(of(&[digits(38), number(0)]), DataType::Decimal128(38, 0));
    assert_eq!(of(&[digits(39)]), DataType::Utf8);
    assert_eq!(
        of(&[number("-0.5"), number("1.25"), number(7)]),
        DataType::Decimal128(18, 2)
    );
    assert_eq!(
        of(&[number("0.123"), digits(35)]),
        DataType::Decimal128(38, 3)
    );
    assert_eq!(of(&[number("0.123"), digits(36)]), DataType::Utf8);
    assert_eq!(
        of(&[number("1e-7"), number("0.1"), number(2)]),
        DataType::Float64
    );
    assert_eq!(
        of(&[number("0.1"), text("-inf"), text("nan")]),
        DataType::Float64
    );
    assert_eq!(of(&[text("inf"), text("nan")]), DataType::Utf8);
    assert_eq!(of(&[text("a"), number("1.50"), text("")]), DataType::Utf8);
    assert_eq!(of(&[text("a"), Owned::Text(vec![0xff])]), DataType::Binary);
}

#[test]
fn many_rows_are_several_batches() {
    let names = names(&["key", "count", "mean"]);
    let pool = pool(3);
    for rows in [0, 1, 64 << 10, (64 << 10) + 1] {
        check(&names, &many(rows), Some(&pool));
    }
}
