//! Which input is prefetched, and by which stage. Requests are spread over the whole window, because the
//! line-fill buffers between memory and the caches are few and would idle in between.
//!
//! - *Short rows* are bound by the core. The lines of the next window come to the first-level cache: the index
//!   prefetches a quarter of them, and the tables all, with each row the bytes a window further on.
//! - *Long rows* are bound by memory. The lines of the window after the next come to the second-level cache,
//!   which has more fill buffers: the index prefetches one half, the tables the other. Requests take turns
//!   over four pages, because the processor's own prefetching ends with a page.

use ringfold_read::internals::prefetch;

use crate::scan::key_number::window::{ScanWindow, WINDOW};

/// Rows of more bytes than this, on average, are long.
const LONG_ROW: usize = 40;
/// Bytes of the pages that requests take turns over; a power of two.
const PAGES: usize = 4 * PAGE;
const PAGE: usize = 4096;
const LINE: usize = 64;

/// The index calls [`by_index`] once for so many bytes of the window.
pub(crate) const STEP: usize = 256;

/// Whether `rows` rows in `bytes` bytes are long.
pub(crate) fn are_long(rows: usize, bytes: usize) -> bool {
    rows * LONG_ROW < bytes
}

/// The first of four lines, a page from each other, that are prefetched in place of the four adjacent ones
/// at `offset` of the window after the next.
#[inline(always)]
fn far(window: ScanWindow<'_>, offset: usize) -> *const u8 {
    let line = window.pointer().wrapping_add(2 * WINDOW + offset);
    line.with_addr(line.addr() / PAGES * PAGES + line.addr() % PAGES / (4 * LINE) * LINE)
}

/// The lines that the index prefetches: two of the four each time, for half of the bytes it passes.
#[inline(always)]
fn far_by_index(window: ScanWindow<'_>, at: usize) -> [*const u8; 2] {
    let first = far(window, at / 2).wrapping_add(at / STEP % 2 * 2 * PAGE);
    [first, first.wrapping_add(PAGE)]
}

/// The lines that the tables prefetch: all four, for the other half of the window.
#[inline(always)]
fn far_by_row(window: ScanWindow<'_>, start: usize) -> [*const u8; 4] {
    let first = far(window, (WINDOW + start) / 2);
    [0, 1, 2, 3].map(|page| first.wrapping_add(page * PAGE))
}

/// Prefetches when the index has reached `at`, a multiple of [`STEP`].
#[inline(always)]
pub(crate) fn by_index<const LONG_ROWS: bool>(window: ScanWindow<'_>, at: usize) {
    if LONG_ROWS {
        far_by_index(window, at)
            .into_iter()
            .for_each(prefetch::into_l2);
    } else {
        let next = window.bytes().len() + at / 4;
        prefetch::into_l1(window.pointer().wrapping_add(next));
    }
}

/// Prefetches for the tables, with each four rows of a list.
pub(crate) struct RowLookahead<'a> {
    window: ScanWindow<'a>,
    rows_a_line: usize,
}

impl<'a> RowLookahead<'a> {
    /// For the list with these `keys`.
    #[inline(always)]
    pub(crate) fn new(window: ScanWindow<'a>, keys: &[u32]) -> Self {
        let [first, last] = [keys.first(), keys.last()].map(|key| key.map_or(0, |&key| start(key)));
        let span = last.saturating_sub(first);
        let rows_a_line = match span {
            _ if span <= LINE / 4 * keys.len() => 4,
            _ if span <= LINE / 2 * keys.len() => 2,
            _ => 1,
        };
        RowLookahead {
            window,
            rows_a_line,
        }
    }

    /// Prefetches with as many of the four rows as it takes to cover every line.
    #[inline(always)]
    pub(crate) fn prefetch<K>(&self, four: &[u32; 4]) {
        if uses_l2::<K>(self.window) {
            far_by_row(self.window, start(four[0]))
                .into_iter()
                .for_each(prefetch::into_l2);
            return;
        }
        self.prefetch_row::<K>(four[0]);
        if self.rows_a_line < 4 {
            self.prefetch_row::<K>(four[2]);
        }
        if self.rows_a_line < 2 {
            self.prefetch_row::<K>(four[1]);
            self.prefetch_row::<K>(four[3]);
        }
    }

    #[inline(always)]
    fn prefetch_row<K>(&self, key: u32) {
        let next = self.window.pointer().wrapping_add(WINDOW + start(key));
        for line in (0..size_of::<K>()).step_by(LINE) {
            // Long keys fill more than the first-level cache.
            if size_of::<K>() < LINE {
                prefetch::into_l1(next.wrapping_add(line));
            } else {
                prefetch::into_l2(next.wrapping_add(line));
            }
        }
    }
}

/// Where a listed key starts in its window.
fn start(key: u32) -> usize {
    (key & 0xffff) as usize
}

/// Whether rows of this size class prefetch the window after the next. Inline keys never do: among long
/// rows they are few, and where all keys are inline a check would slow the loop down.
#[inline(always)]
fn uses_l2<K>(window: ScanWindow<'_>) -> bool {
    size_of::<K>() >= LINE && window.has_long_rows()
}

#[cfg(test)]
mod tests {
    use crate::scan::key_number::lookahead::*;
    use ringfold_read::PaddedBuf;
    use std::collections::HashMap;

    /// Of long rows every line is prefetched, and no later than in its own window.
    #[test]
    fn every_line_of_long_rows() {
        const WINDOWS: usize = 12;
        let buffer = PaddedBuf::from(&[b'a'; WINDOWS * WINDOW][..]);
        let block = buffer.block(0, 0, 0);
        // Windows begin anywhere; each four rows are of 60 to 97 bytes.
        for (first, four) in [(0, 240), (1, 292), (1000, 388), (5555, 300)] {
            let window = |index: usize| ScanWindow::at(&block, first + index * WINDOW, WINDOW);
            let mut asked: HashMap<usize, usize> = HashMap::new();
            for index in 0..WINDOWS - 1 {
                let at = (0..WINDOW).step_by(STEP);
                let lines = at.flat_map(|at| far_by_index(window(index), at));
                let starts = (0..WINDOW).step_by(four);
                let lines = lines.chain(starts.flat_map(|start| far_by_row(window(index), start)));
                lines.for_each(|line| {
                    asked.entry(line.addr() / LINE).or_insert(index);
                });
            }
            for index in 5..WINDOWS - 1 {
                for offset in (0..WINDOW).step_by(LINE) {
                    let line = window(index).pointer().wrapping_add(offset).addr() / LINE;
                    let by = asked.get(&line);
                    assert!(
                        by.is_some_and(|&by| by <= index),
                        "{index}, {offset}: {by:?}"
                    );
                }
            }
        }
    }
}
