//! Answers with any columns: what writing them allocates.

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
