//! The medians as bars, on a logarithmic scale: the programs differ by a factor of fifty.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Report;
use crate::canvas::{FAINT, GRID, INK, OTHERS, OURS, WIDTH};

const HEAD: i32 = 90;
const FOOT: i32 = 50;
const ROW: i32 = 22;
const BAR: i32 = 14;
const FROM: i32 = 380;
const TO: i32 = 900;

/// Draws a report to an SVG file.
pub fn draw(report: &Report, path: &Path) -> Result<(), Box<dyn Error>> {
    let rows = report.rows.len() as i32;
    let height = HEAD + rows * ROW + FOOT;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let text = |words: &str, at: (i32, i32), size: i32, colour: RGBColor, side: HPos| {
        let style = ("sans-serif", size).into_font().color(&colour);
        let style = style.pos(Pos::new(side, VPos::Center));
        root.draw(&Text::new(words.to_string(), at, style))
    };
    text("Quoting 10 million records", (24, 28), 25, INK, HPos::Left)
        .map_err(|error| error.to_string())?;
    let facts = format!(
        "{} records, {} MiB, cached, to /dev/null; median of {} interleaved runs; logarithmic scale",
        report.records,
        report.bytes >> 20,
        report.runs
    );
    text(&facts, (24, 56), 16, FAINT, HPos::Left).map_err(|error| error.to_string())?;
    let medians = report.rows.iter().map(|row| row.median_s);
    let (low, high) = medians.fold((f64::MAX, 0f64), |(low, high), s| (low.min(s), high.max(s)));
    let (low, high) = ((low / 1.5).log10(), high.log10());
    let x = |seconds: f64| {
        FROM + ((seconds.log10() - low) / (high - low) * f64::from(TO - FROM)) as i32
    };
    let bottom = HEAD + rows * ROW;
    for tick in [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0,
    ] {
        if (low..=high).contains(&f64::log10(tick)) {
            let points = vec![(x(tick), HEAD), (x(tick), bottom)];
            root.draw(&PathElement::new(points, GRID.stroke_width(1)))?;
            text(
                &format!("{tick} s"),
                (x(tick), bottom + 16),
                15,
                FAINT,
                HPos::Center,
            )
            .map_err(|error| error.to_string())?;
        }
    }
    for (number, row) in (0..).zip(&report.rows) {
        let middle = HEAD + number * ROW + ROW / 2;
        let name = format!(
            "{}, {}, {}, {} workers",
            row.program, row.libc, row.allocator, row.workers
        );
        text(&name, (FROM - 10, middle), 15, INK, HPos::Right)
            .map_err(|error| error.to_string())?;
        let colour = if row.program.starts_with("ringfold") {
            OURS
        } else {
            OTHERS
        };
        let corners = [
            (FROM, middle - BAR / 2),
            (x(row.median_s), middle + BAR / 2),
        ];
        root.draw(&Rectangle::new(corners, colour.filled()))?;
        let figure = format!("{:.3} s", row.median_s);
        text(&figure, (x(row.median_s) + 8, middle), 15, INK, HPos::Left)
            .map_err(|error| error.to_string())?;
    }
    root.present()?;
    Ok(())
}
