//! The passes one after the other up to a chosen one, for the benchmarks.

use crate::group::level::Level;
use crate::group::scan::decode::{BIAS, Rows, decode};
use crate::group::scan::index::{Ends, index};
use crate::group::scan::prefetch;
use crate::group::scan::window::{WINDOW, Window};
use crate::group::table::isa::Seeds;
use crate::group::table::tables::{Job, Shared, Tables};
use crate::record::block::Block;

/// Scratch and tables of a run.
pub struct Passes {
    level: Level,
    ends: Ends,
    rows: Rows,
    tables: Tables,
}

impl Passes {
    /// Passes of `level` over semicolons and newlines.
    pub fn new(level: Level) -> Self {
        let job = Job {
            level,
            seeds: Seeds::random(),
            delimiter: b';',
            own_keys_max: usize::MAX,
            shard_bits: 6,
        };
        let tables = Tables::new(&Shared::new(job));
        Passes {
            level,
            ends: Ends::new(),
            rows: Rows::new(),
            tables,
        }
    }

    fn windows<'a>(&mut self, block: &Block<'a>, mut each: impl FnMut(&mut Self, Window<'a>)) {
        let mut at = 0;
        while at < block.bytes().len() {
            let long = prefetch::are_long(&self.ends);
            let window = Window::at(block, at, WINDOW).of_long_rows(long);
            index(self.level, window, b';', b'\n', &mut self.ends);
            assert!(
                self.ends.balanced() && self.ends.rows() > 0,
                "plain rows only"
            );
            each(self, window);
            at += self.ends.end();
        }
    }

    /// The first pass; returns the rows.
    pub fn index(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |passes, _| rows += passes.ends.rows());
        rows
    }

    /// The first two; returns the rows that are not for the careful way.
    pub fn decode(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |passes, window| {
            decode(passes.level, window, &passes.ends, true, &mut passes.rows);
            rows += passes
                .rows
                .lists()
                .map(|list| list.keys().len())
                .sum::<usize>();
        });
        rows
    }

    /// The first two, then `each` for every key and its value in tenths: the place of another table.
    pub fn each(&mut self, block: &Block<'_>, mut each: impl FnMut(&[u8], i32)) {
        self.windows(block, |passes, window| {
            decode(passes.level, window, &passes.ends, true, &mut passes.rows);
            for list in passes.rows.lists() {
                for (&key, &value) in list.keys().iter().zip(list.values()) {
                    each(window.key(key), value as i32 - BIAS as i32);
                }
            }
        });
    }

    /// All three; returns the rows.
    pub fn fold(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |passes, window| {
            decode(passes.level, window, &passes.ends, true, &mut passes.rows);
            rows += passes.tables.fold(window, &passes.rows);
        });
        rows
    }
}
