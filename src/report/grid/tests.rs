//! Each format against a reader, or a writer, that shares no code with it.

mod naive;
#[cfg(feature = "parquet")]
mod typed;

use proptest::prelude::*;

use super::*;
use crate::report::grid::parts::ROWS;
use naive::*;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Null,
    Text(Vec<u8>),
    Number(String),
}

struct Answer(Vec<Vec<Owned>>);

impl Rows for Answer {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        cells.clear();
        cells.extend(self.0[at].iter().map(|cell| match cell {
            Owned::Null => Cell::Null,
            Owned::Text(text) => Cell::Text(text),
            Owned::Number(number) => Cell::Number(number.as_str().into()),
        }));
    }
}

fn text(text: &str) -> Owned {
    Owned::Text(text.into())
}

fn number(number: impl ToString) -> Owned {
    Owned::Number(number.to_string())
}

fn names(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn pool(threads: usize) -> ThreadPool {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build().unwrap()
}

fn written(
    names: &[Vec<u8>],
    answer: &Answer,
    format: GridFormat,
    pool: Option<&ThreadPool>,
) -> Vec<u8> {
    let mut out = Vec::new();
    write_grid(names, answer, format, pool, &mut out).unwrap();
    out
}

/// What is printed is what was meant, in every format for programs.
fn check(names: &[Vec<u8>], answer: &Answer, pool: Option<&ThreadPool>) {
    let mut csv = read_csv(&written(names, answer, GridFormat::Csv, pool)).into_iter();
    let head: Vec<_> = csv
        .next()
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(head, names);
    assert_eq!(csv.len(), answer.len());
    for (read, row) in csv.zip(&answer.0) {
        let fields = row.iter().map(|cell| match cell {
            Owned::Null => (Vec::new(), row.len() == 1),
            Owned::Text(text) => (text.clone(), text.is_empty()),
            Owned::Number(number) => (number.clone().into(), false),
        });
        assert_eq!(read.len(), row.len());
        for (read, field) in read.into_iter().zip(fields) {
            assert_eq!(read.0, field.0);
            assert!(read.1 || !field.1, "an empty text is quoted");
            assert!(!read.1 || field.1 || !field.0.is_empty(), "a null is not");
        }
    }

    let tsv = read_tsv(&written(names, answer, GridFormat::Tsv, pool));
    assert_eq!(tsv[0], names);
    let plain = |cell: &Owned| match cell {
        Owned::Null => Vec::new(),
        Owned::Text(text) => text.clone(),
        Owned::Number(number) => number.clone().into(),
    };
    let rows = answer.0.iter().map(|row| row.iter().map(plain).collect());
    assert_eq!(tsv[1..], rows.collect::<Vec<Vec<_>>>());

    let json = String::from_utf8(written(names, answer, GridFormat::Json, pool)).unwrap();
    let ndjson = String::from_utf8(written(names, answer, GridFormat::Ndjson, pool)).unwrap();
    let objects = Json(&json).array();
    assert_eq!(read_ndjson(&ndjson), objects);
    assert_eq!(objects.len(), answer.len());
    assert_eq!(json.lines().count(), answer.len() + 2, "an object a line");
    for (object, row) in objects.into_iter().zip(&answer.0) {
        let (keys, values): (Vec<_>, Vec<_>) = object.into_iter().unzip();
        assert_eq!(&values, row);
        for (at, (key, name)) in keys.iter().zip(names).enumerate() {
            let came_before = names[..at].contains(name);
            assert_eq!(key != name, came_before, "{key:?}");
            assert!(key.starts_with(name));
            assert!(!keys[..at].contains(key));
        }
    }
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<u8>().prop_map(|byte| vec![byte]),
        4 => prop::sample::select(b",\"\r\n\t \\|'0\x7f".to_vec()).prop_map(|byte| vec![byte]),
        2 => any::<char>().prop_map(|char| char.to_string().into_bytes()),
        // A byte order mark, a surrogate, an escape of one, half a character.
        1 => prop::sample::select(vec![&b"\xef\xbb\xbf"[..], b"\xed\xb2\x80", b"\\udc80", b"\xf0\x9f"])
            .prop_map(|bytes| bytes.to_vec()),
        4 => Just(b"a".to_vec()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn any_number() -> impl Strategy<Value = Owned> {
    "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,9})?".prop_map(Owned::Number)
}

fn any_answer(
    text: impl Strategy<Value = Vec<u8>> + Clone + 'static,
    cells: usize,
) -> impl Strategy<Value = (Vec<Vec<u8>>, Answer)> {
    (1..5usize).prop_flat_map(move |columns| {
        let cell = prop_oneof![
            2 => text.clone().prop_map(Owned::Text),
            2 => any_number(),
            1 => Just(Owned::Null),
        ];
        let row = prop::collection::vec(cell, columns);
        let rows = prop::collection::vec(row, 0..cells);
        (prop::collection::vec(text.clone(), columns), rows)
            .prop_map(|(names, rows)| (names, Answer(rows)))
    })
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig::with_cases(if cfg!(miri) { 2 } else { cases })
}

#[test]
#[cfg(feature = "cli")]
fn a_wide_table_of_few_rows_is_upright() {
    let names = names(&["city", "sum_price", "ü"]);
    let rows = vec![
        vec![text("Oslo"), number("-1.25"), Owned::Null],
        vec![text("two\nlines"), number("1034.5"), text("x")],
    ];
    let answer = Answer(rows.clone());
    let within = |answer: &Answer, columns: usize| {
        let mut out = Vec::new();
        write_table_within(&names, answer, columns, None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let upright = "city       Oslo\nsum_price  -1.25\nü          -\n\n\
               city       two\\nlines\nsum_price  1034.5\nü          x\n";
    assert_eq!(within(&answer, 23), upright);
    let table = |answer: &Answer| {
        String::from_utf8(written(&names, answer, GridFormat::Table, None)).unwrap()
    };
    assert_eq!(within(&answer, 24), table(&answer));
    let many = Answer(vec![rows[0].clone(); UPRIGHT_MAX + 1]);
    assert_eq!(within(&many, 5), table(&many));
}

#[test]
fn programs_read_back_what_was_written() {
    let text = any_text().boxed();
    proptest!(cases(500), |((names, answer) in any_answer(text, 12))| {
        check(&names, &answer, None);
    });
}

#[test]
fn every_byte_is_read_back_at_every_place() {
    for byte in 0..=255u8 {
        let texts = [
            vec![byte],
            vec![byte, b'a'],
            vec![b'a', byte],
            vec![b'a', byte, b'b'],
        ];
        let rows = texts.clone().map(|text| vec![Owned::Text(text), number(1)]);
        check(&texts[..2], &Answer(rows.into()), None);
        check(
            &texts[..1],
            &Answer(texts.clone().map(|text| vec![Owned::Text(text)]).into()),
            None,
        );
    }
}

#[cfg(feature = "cli")]
#[test]
fn serde_json_reads_what_is_utf8() {
    let text = any::<String>().prop_map(String::into_bytes).boxed();
    proptest!(cases(200), |((mut names, answer) in any_answer(text, 8))| {
        names.sort();
        names.dedup();
        prop_assume!(answer.0.iter().all(|row| row.len() == names.len()));
        let json = written(&names, &answer, GridFormat::Json, None);
        let read: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_slice(&json).unwrap();
        prop_assert_eq!(read.len(), answer.len());
        for (object, row) in read.iter().zip(&answer.0) {
            prop_assert_eq!(object.len(), names.len());
            for (name, cell) in names.iter().zip(row) {
                let value = &object[std::str::from_utf8(name).unwrap()];
                match cell {
                    Owned::Null => prop_assert!(value.is_null()),
                    Owned::Text(text) => {
                        prop_assert_eq!(value.as_str().unwrap().as_bytes(), &text[..]);
                    }
                    // It holds no more than a double.
                    Owned::Number(number) => {
                        let (read, exact) = (value.as_f64().unwrap(), number.parse::<f64>().unwrap());
                        prop_assert!((read - exact).abs() <= exact.abs() * 1e-15);
                    }
                }
            }
        }
    });
}

#[test]
fn json_has_no_zeros_before_a_number() {
    for (given, printed) in [
        ("007", "7"),
        ("-00.50", "-0.50"),
        ("0", "0"),
        ("-0", "-0"),
        ("0.00", "0.00"),
        ("100", "100"),
    ] {
        let answer = Answer(vec![vec![number(given)]]);
        let line = written(&names(&["n"]), &answer, GridFormat::Ndjson, None);
        assert_eq!(line, format!("{{\"n\":{printed}}}\n").as_bytes());
    }
}

#[test]
fn names_that_come_twice_get_free_suffixes_in_json() {
    let names = names(&["a", "a", "a_2", "a"]);
    let answer = Answer(vec![[1, 2, 3, 4].map(number).to_vec()]);
    let line = written(&names, &answer, GridFormat::Ndjson, None);
    assert_eq!(line, b"{\"a\":1,\"a_3\":2,\"a_2\":3,\"a_4\":4}\n");
}

#[test]
fn csv_quotes_only_what_needs_it() {
    let texts = [
        "a b",
        "it's",
        "a\\b",
        "-",
        "x\u{feff}",
        "é",
        "",
        " a",
        "a\t",
        "\u{feff}a",
        "a,b",
    ];
    let (plain, quoted) = texts.split_at(6);
    for (texts, quotes) in [(plain, 0), (quoted, 2)] {
        for case in texts {
            let answer = Answer(vec![vec![text(case), Owned::Null]]);
            let csv = written(&names(&["a", "b"]), &answer, GridFormat::Csv, None);
            let found = csv.iter().filter(|&&byte| byte == b'"').count();
            assert_eq!(found, quotes, "{case:?}");
        }
    }
}

#[test]
fn tables_are_those_of_a_naive_writer() {
    let text = "([!-~]([ -~]{0,8}[!-~])?)?"
        .prop_map(String::into_bytes)
        .boxed();
    proptest!(cases(300), |((names, answer) in any_answer(text, 12))| {
        let table = String::from_utf8(written(&names, &answer, GridFormat::Table, None)).unwrap();
        prop_assert_eq!(table, naive_table(&names, &answer.0));
    });
}

#[test]
fn markdown_shows_texts_as_they_are() {
    let printable = "([ -~\n]|[^\\p{C}\\p{Zl}\\p{Zp}]){0,8}"
        .prop_map(String::into_bytes)
        .boxed();
    proptest!(cases(300), |((names, answer) in any_answer(printable, 8))| {
        let text = String::from_utf8(written(&names, &answer, GridFormat::Markdown, None)).unwrap();
        let read = read_markdown(&text);
        let shown = |cell: &Owned| match cell {
            Owned::Null => String::new(),
            Owned::Text(text) => String::from_utf8(text.clone()).unwrap(),
            Owned::Number(number) => number.clone(),
        };
        let head: Vec<_> = names.iter().cloned().map(Owned::Text).collect();
        prop_assert_eq!(&read[0], &head.iter().map(shown).collect::<Vec<_>>());
        let sides = (0..names.len()).map(|at| {
            let has = answer.0.iter().any(|row| matches!(row[at], Owned::Number(_)));
            if has { "---:" } else { "---" }
        });
        prop_assert_eq!(&read[1], &sides.collect::<Vec<_>>());
        prop_assert_eq!(read.len(), answer.len() + 2);
        for (read, row) in read[2..].iter().zip(&answer.0) {
            prop_assert_eq!(read, &row.iter().map(shown).collect::<Vec<_>>());
        }
    });
}

/// An answer whose widest cells come last.
fn many(rows: usize) -> Answer {
    let row = |at: usize| {
        let key = format!("key {at},\t{}", "x".repeat(at / 200));
        let mean = format!("{}.{}", at * at, at % 7);
        vec![
            text(&key),
            number(at),
            if at.is_multiple_of(5) {
                Owned::Null
            } else {
                number(mean)
            },
        ]
    };
    Answer((0..rows).map(row).collect())
}

#[test]
fn any_number_of_rows_is_written_by_any_number_of_threads() {
    let names = names(&["key", "count", "mean"]);
    let pools = [pool(1), pool(3)];
    for rows in [
        0,
        1,
        ROWS.start - 1,
        ROWS.start,
        ROWS.start + 1,
        20 * ROWS.start + 7,
    ] {
        let answer = many(rows);
        check(&names, &answer, None);
        let tabs = |row: &Vec<Owned>| match &row[0] {
            Owned::Text(key) => {
                let key = String::from_utf8(key.clone()).unwrap();
                let mut row = row.clone();
                row[0] = text(&key.replace('\t', "\\t"));
                row
            }
            _ => unreachable!(),
        };
        let table = naive_table(&names, &answer.0.iter().map(tabs).collect::<Vec<_>>());
        assert!(written(&names, &answer, GridFormat::Table, None) == table.as_bytes());
        for &format in GridFormat::ALL {
            let alone = written(&names, &answer, format, None);
            for pool in &pools {
                assert!(
                    written(&names, &answer, format, Some(pool)) == alone,
                    "{format:?} {rows}"
                );
            }
        }
    }
}

#[test]
fn a_failed_write_ends_the_answer() {
    let (names, answer) = (names(&["key", "count", "mean"]), many(20 * ROWS.start));
    let pool = pool(2);
    for &format in GridFormat::ALL {
        for pool in [None, Some(&pool)] {
            let whole = written(&names, &answer, format, pool).len();
            for room in [0, 10, whole / 2, whole - 1] {
                let mut short = vec![0; room];
                let failed = write_grid(&names, &answer, format, pool, &mut &mut short[..]);
                assert_eq!(
                    failed.unwrap_err().kind(),
                    io::ErrorKind::WriteZero,
                    "{format:?}"
                );
            }
        }
    }
}

#[test]
fn an_answer_without_columns_is_refused() {
    for &format in GridFormat::ALL {
        let mut out = Vec::new();
        let refused = write_grid(&[], &Answer(vec![vec![]]), format, None, &mut out);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(out, b"");
    }
}

#[test]
#[should_panic = "the cells of row 2000"]
fn a_row_of_another_length_is_a_panic() {
    let mut answer = many(3000);
    answer.0[2000].pop();
    written(
        &names(&["key", "count", "mean"]),
        &answer,
        GridFormat::Csv,
        Some(&pool(2)),
    );
}

#[test]
fn a_table_for_people_stays_in_line() {
    let names = names(&["city", "count", "p99"]);
    let row = |city: &[u8], count: i64, p99: &str| {
        let p99 = if p99.is_empty() {
            Owned::Null
        } else {
            number(p99)
        };
        vec![Owned::Text(city.to_vec()), number(count), p99]
    };
    let answer = Answer(vec![
        row("東京".as_bytes(), 1234, "-5"),
        row("Zürich".as_bytes(), 1, ""),
        row("e\u{301}".as_bytes(), 56, "3.25"),
        row(b"\x1b[31m\n\xff", 7, "10.5"),
        row("a\u{202e}b".as_bytes(), 8, "0"),
    ]);
    let table = String::from_utf8(written(&names, &answer, GridFormat::Table, None)).unwrap();
    let expected = "\
city            count    p99
--------------  -----  -----
東京             1234  -5
Zürich              1   -
e\u{301}                  56   3.25
\\x1b[31m\\n\\xff      7  10.5
a\\u{202e}b          8   0
";
    assert_eq!(table, expected);
}

#[test]
fn markdown_escapes_its_own_signs() {
    let answer = Answer(vec![
        vec![text("a|b"), number("1.50")],
        vec![text("two\nlines\r\n<b>*x*</b>"), Owned::Null],
        vec![text(" a_b _c_ \\ \x1b"), number(-2)],
    ]);
    let names = names(&["key", "sum_lat"]);
    let markdown = String::from_utf8(written(&names, &answer, GridFormat::Markdown, None)).unwrap();
    let expected = "\
| key | sum_lat |
| --- | ---: |
| a\\|b | 1.50 |
| two<br>lines<br>\\<b\\>\\*x\\*\\</b\\> |  |
| &#32;a_b \\_c\\_ \\\\ \\\\x1b | -2 |
";
    assert_eq!(markdown, expected);
}

#[test]
fn the_examples_of_the_documentation_are_what_is_printed() {
    let names = names(&["city", "count", "sum_lat"]);
    let answer = Answer(vec![
        vec![text("Oslo"), number(3), number("-1.25")],
        vec![text("Paris, \"Texas\""), number(12), number("1034.5")],
        vec![text("two\nlines"), number(1), Owned::Null],
        vec![
            Owned::Text(b"M\xfcnchen|".to_vec()),
            number(1),
            number("0.75"),
        ],
    ]);
    let docs = include_str!("../../../docs/formats.md");
    let is_shown = |format: &&GridFormat| format.is_text() && **format != GridFormat::Html;
    let texts = GridFormat::ALL.iter().filter(is_shown);
    for &format in texts {
        let printed = written(&names, &answer, format, None);
        // The page is UTF-8.
        let printed = String::from_utf8_lossy(&printed);
        assert!(
            docs.contains(&format!("```text\n{printed}```\n")),
            "{printed}"
        );
    }
}
