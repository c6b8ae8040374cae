//! The rates as bars: a panel a step, a bar a format.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::canvas::{Drawn, FAINT, INK, MARGIN, OTHERS, OURS, WIDTH, text};
use crate::report::Report;

const HEAD: i32 = 90;
const PANEL_HEAD: i32 = 34;
const ROW: i32 = 22;
const BAR: i32 = 14;
const FROM: i32 = 130;
const TO: i32 = 880;

/// Draws a report to an SVG file.
pub fn draw(report: &Report, path: &Path) -> Drawn {
    let panel = PANEL_HEAD + report.lines.len() as i32 * ROW;
    let height = HEAD + report.steps.len() as i32 * panel + MARGIN;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!(
        "{} million groups as bytes and back",
        report.groups as f64 / 1e6
    );
    text(&root, &title, (MARGIN, 28), 25, INK, HPos::Left)?;
    let facts = format!(
        "GiB/s of {} MiB in memory, one core; median of {} interleaved rounds; memcpy: {:.1} GiB/s",
        report.bytes >> 20,
        report.rounds,
        report.rate(report.memcpy.median)
    );
    text(&root, &facts, (MARGIN, 56), 16, FAINT, HPos::Left)?;
    let rates = report.lines.iter().flat_map(|line| &line.seconds);
    let fastest = rates
        .map(|seconds| report.rate(seconds.median))
        .fold(0.0, f64::max);
    for (number, step) in report.steps.iter().enumerate() {
        let top = HEAD + number as i32 * panel;
        text(
            &root,
            step,
            (MARGIN, top + PANEL_HEAD / 2),
            17,
            INK,
            HPos::Left,
        )?;
        for (row, line) in (0..).zip(&report.lines) {
            let rate = report.rate(line.seconds[number].median);
            let middle = top + PANEL_HEAD + row * ROW + ROW / 2;
            text(&root, line.name, (FROM - 10, middle), 15, INK, HPos::Right)?;
            let end = FROM + (rate / fastest * f64::from(TO - FROM)) as i32;
            let colour = if line.name == "ringfold" {
                OURS
            } else {
                OTHERS
            };
            let corners = [(FROM, middle - BAR / 2), (end, middle + BAR / 2)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
            text(
                &root,
                &format!("{rate:.2}"),
                (end + 8, middle),
                15,
                INK,
                HPos::Left,
            )?;
        }
    }
    root.present()?;
    Ok(())
}
