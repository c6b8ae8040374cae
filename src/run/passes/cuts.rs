//! Times in keys, cut down to a unit.

use crate::format::short_text::ShortText;
use crate::format::time::{Cutter, ZonedUnit};
use crate::plan::Plan;
use crate::run::passes::Passes;
use crate::scan::index::TextWindow;
use crate::scan::numbers::ROWS;
use crate::scan::spans::value;

/// A column whose times are cut down.
pub(super) struct CutColumn {
    unit: ZonedUnit,
    /// Among the passes' columns, and that of the time of day if the first has the date alone.
    at: usize,
    clock: Option<usize>,
    cutter: Cutter,
    joined: Vec<u8>,
    /// For each row of the window; empty where there is no time.
    pub(super) texts: Box<[ShortText]>,
}

impl CutColumn {
    pub(super) fn new(unit: ZonedUnit, at: usize, clock: Option<usize>) -> CutColumn {
        CutColumn {
            unit,
            at,
            clock,
            cutter: Cutter::default(),
            joined: Vec::new(),
            texts: vec![ShortText::default(); ROWS].into(),
        }
    }
}

impl Passes {
    /// Cuts times down. Takes out rows that have none, but for nulls.
    #[inline(never)]
    pub(super) fn cuts(&mut self, plan: &Plan, window: TextWindow<'_>) {
        let rows = self.scratch.starts.len();
        for column in &mut self.cuts {
            for row in 0..rows {
                let text = |at: usize| value(window, self.spans[at][row]);
                let mut time = text(column.at);
                if let Some(clock) = column.clock {
                    time = plan.joined_parts([time, text(clock)], &mut column.joined);
                }
                column.texts[row] = ShortText::default();
                if plan.is_null(time) {
                    continue;
                }
                match column.cutter.cut(column.unit, time) {
                    Ok(cut) => column.texts[row] = cut,
                    Err(_) => self.scratch.out.push(row as u32),
                }
            }
        }
    }
}
