//! Answers with any columns: what writing them allocates, and files of typed columns.

use std::process::Command;

use ringfold::report::grid::{Cell, GridFormat, Rows, write_grid};

use crate::allocations;
use crate::support::end;

/// So many rows of a text that needs quotes, a number and a null, all of them made before.
struct Answer(usize);

impl Rows for Answer {
    fn len(&self) -> usize {
        self.0
    }

    fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
        let text = [&b"plain"[..], b"a \"text\", quoted|\t", b"caf\xc3\xa9 \xff"][at % 3];
        cells.clear();
        cells.extend([Cell::Text(text), Cell::Number("-12.50".into()), Cell::Null]);
    }
}

/// The cells of a part are made anew, so that a part may cost this many.
const MOST: u64 = 2;

/// Rows of a part, at least.
const PART: usize = 256;

#[test]
#[ignore = "a part of no_row_of_an_answer_costs_an_allocation"]
fn allocations_in_a_child() {
    let names = ["a", "b", "c"].map(|name| name.as_bytes().to_vec());
    for format in [
        GridFormat::Csv,
        GridFormat::Tsv,
        GridFormat::Json,
        GridFormat::Ndjson,
    ] {
        let counts = [10_000, 100_000].map(|rows| {
            let before = allocations::count();
            write_grid(&names, &Answer(rows), format, None, &mut std::io::sink()).unwrap();
            allocations::count() - before
        });
        println!("{format:?}: {counts:?}");
        let more = (90_000 / PART) as u64 * MOST;
        assert!(counts[1] <= counts[0] + more, "{format:?}: {counts:?}");
    }
}

#[test]
fn no_row_of_an_answer_costs_an_allocation() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "grid::allocations_in_a_child",
        "--ignored",
        "--nocapture",
    ]);
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Where the program is built with them. The unit tests read all kinds of answers back.
#[cfg(feature = "parquet")]
#[test]
fn the_program_writes_files_of_typed_columns() {
    use std::fs;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Decimal128Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use crate::support::{dir, ringfold, str, write};

    let dir = dir();
    let text = b"city,n\nBern,1.5\nOslo,2\nBern,-3\n";
    let path = write(dir.path(), "rows.csv", text);
    let out = dir.path().join("out");
    for (format, magic) in [("arrow", &b"ARROW1"[..]), ("parquet", b"PAR1")] {
        let asked = ["-H", "-k", "city", "-a", "count,sum:n", "-f", format];
        let run = || {
            let mut run = ringfold(["aggregate"]);
            run.args(asked).arg(&path);
            run
        };
        let piped = end(&mut run()).answer();
        assert!(piped.starts_with(magic) && piped.ends_with(magic));
        assert_eq!(end(run().args(["-o", str(&out)])).answer(), b"");
        assert!(fs::read(&out).unwrap() == piped);
    }
    let read = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&out).unwrap());
    let batches: Vec<_> = read.unwrap().build().unwrap().collect();
    let [Ok(batch)] = &batches[..] else {
        panic!("{batches:?}");
    };
    let names = batch.schema();
    let names: Vec<_> = names.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["city", "count", "sum_n"]);
    let cities = batch.column(0).as_string::<i32>();
    assert_eq!(
        cities.iter().flatten().collect::<Vec<_>>(),
        ["Bern", "Oslo"]
    );
    let sums = batch.column(2).as_primitive::<Decimal128Type>();
    assert_eq!([0, 1].map(|at| sums.value_as_string(at)), ["-1.5", "2.0"]);
}

/// A page has the command as its title, and asks for nothing else.
#[test]
fn pages_are_of_every_command() {
    use crate::support::{dir, ringfold, write};

    let dir = dir();
    write(
        dir.path(),
        "<rows>.csv",
        b"k,n\n<script>,1.5\n\"a&b\",2\n<script>,-3\n",
    );
    let page = |args: &[&str]| {
        let (page, _) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
        String::from_utf8(page).unwrap()
    };
    let asked = ["aggregate", "-k", "k", "-a", "sum:n", "<rows>.csv"];
    let answer = page(&[&asked[..], &["-f", "html"]].concat());
    let title = "ringfold aggregate -k k -a sum:n &#39;&lt;rows&gt;.csv&#39; -f html";
    assert!(
        answer.contains(&format!("<title>{title}</title>")),
        "{answer}"
    );
    assert!(
        answer.contains("<td dir=\"auto\">&lt;script&gt;</td><td class=\"n\">-1.5</td>"),
        "{answer}"
    );
    page(&[&asked[..], &["--save-partial", "p"]].concat());
    let merged = page(&["merge", "p", "-f", "html"]);
    let body = |page: &str| page.split_once("</h1>").unwrap().1.to_string();
    assert_eq!(body(&merged), body(&answer));
    page(&["describe", "<rows>.csv", "-q", "-o", "d.html"]);
    let described = std::fs::read_to_string(dir.path().join("d.html")).unwrap();
    assert!(
        described.contains("<td dir=\"auto\">decimal</td>") && described.contains('█'),
        "{described}"
    );
    for page in [answer, merged, described] {
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(
            !page.contains("://")
                && !page.contains("<script>,")
                && page.matches("<script>").count() == 1
        );
    }
    let twice = [
        &asked[..5],
        &[
            "-f",
            "html",
            "--next",
            "-k",
            "k",
            "-f",
            "html",
            "<rows>.csv",
        ],
    ]
    .concat();
    let error = end(ringfold(twice).current_dir(dir.path())).failure(2);
    assert!(error.contains("name a file for each"), "{error}");
}
