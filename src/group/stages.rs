//! The stages of the aggregate up to a chosen one, for the benchmarks.

use crate::group::accumulate::stats::BIAS;
use crate::group::scan::index::{Ends, index};
use crate::group::scan::rows::Rows;
use crate::group::scan::tenths;
use crate::group::scan::window::{ScanWindow, WINDOW};
use crate::group::table::config::TableConfig;
use crate::group::table::isa::Seeds;
use crate::group::table::tables::{ClassShards, Tables};
use crate::level::Level;
use crate::record::block::Block;

/// Scratch and tables of a run.
pub struct Stages {
    level: Level,
    ends: Ends,
    rows: Rows,
    tables: Tables,
}

impl Stages {
    /// Stages of `level` over semicolons and newlines.
    pub fn new(level: Level) -> Self {
        let config = TableConfig {
            level,
            seeds: Seeds::random(),
            delimiter: b';',
            local_keys_max: usize::MAX,
            shard_bits: 6,
        };
        let tables = Tables::new(&ClassShards::new(config));
        Stages {
            level,
            ends: Ends::new(),
            rows: Rows::new(),
            tables,
        }
    }

    fn windows<'a>(&mut self, block: &Block<'a>, mut each: impl FnMut(&mut Self, ScanWindow<'a>)) {
        let mut at = 0;
        while at < block.bytes().len() {
            let long = self.ends.rows_are_long();
            let window = ScanWindow::at(block, at, WINDOW).of_long_rows(long);
            index(self.level, window, b';', b'\n', &mut self.ends);
            assert!(
                self.ends.balanced() && self.ends.rows() > 0,
                "plain rows only"
            );
            each(self, window);
            at += self.ends.end();
        }
    }

    /// The first stage; returns the number of rows.
    pub fn index(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |stages, _| rows += stages.ends.rows());
        rows
    }

    /// The first two; returns the number of rows whose numbers are in tenths and whose keys have a size class.
    pub fn decode(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |stages, window| {
            tenths::decode(stages.level, window, &stages.ends, true, &mut stages.rows);
            rows += stages
                .rows
                .lists()
                .map(|list| list.keys().len())
                .sum::<usize>();
        });
        rows
    }

    /// The first two, then `each` for every key and its value in tenths, in place of the tables.
    pub fn each(&mut self, block: &Block<'_>, mut each: impl FnMut(&[u8], i32)) {
        self.windows(block, |stages, window| {
            tenths::decode(stages.level, window, &stages.ends, true, &mut stages.rows);
            for list in stages.rows.lists() {
                for (&key, &value) in list.keys().iter().zip(list.values()) {
                    each(window.key(key), value as i32 - BIAS as i32);
                }
            }
        });
    }

    /// All three; returns the number of rows.
    pub fn fold(&mut self, block: &Block<'_>) -> usize {
        let mut rows = 0;
        self.windows(block, |stages, window| {
            tenths::decode(stages.level, window, &stages.ends, true, &mut stages.rows);
            rows += stages.tables.fold(window, &stages.rows);
        });
        rows
    }
}
