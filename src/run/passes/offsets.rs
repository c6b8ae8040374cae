//! Times without an offset that are looked at in a zone: where the first is.

use crate::format::time::may_lack_offset;
use crate::plan::Plan;
use crate::plan::zoned::TimeSource;
use crate::run::passes::Passes;
use crate::run::passes::computed::Row;
use crate::run::rest::Rest;
use crate::scan::index::TextWindow;
use crate::scan::spans::value;

impl Passes {
    /// Notes the first row of the window, which begins at `at`, with such a time; unless one before is known.
    #[inline(never)]
    pub(super) fn note_offsets(
        &self,
        plan: &Plan,
        sources: &[TimeSource],
        (window, at): (TextWindow<'_>, usize),
        rest: &mut Rest<'_>,
    ) {
        if sources.is_empty()
            || rest
                .partial
                .local_times
                .first
                .is_some_and(|first| first <= rest.met(at, at).place())
        {
            return;
        }
        let rows = self.rows(plan, window);
        let count = rows.count;
        let first = |source: &TimeSource| match source {
            TimeSource::Column(column, None) if plan.computed(*column).is_none() => {
                let (text, spans) = rows.values(*column);
                let lacks = |span: &u32| {
                    let time = value(text, *span);
                    may_lack_offset(time) && !plan.is_null(time)
                };
                spans[..count].iter().position(lacks)
            }
            source => (0..count).find(|&row| source.lacks_offset(&Row { rows: &rows, row })),
        };
        if let Some(row) = sources.iter().filter_map(first).min() {
            let met = rest.met(at, at + self.scratch.starts[row] as usize);
            (rest.partial.local_times).add(1, met, &mut rest.partial.rejected);
        }
    }
}
