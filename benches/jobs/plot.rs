//! The ratios as bars, on a logarithmic scale: a panel a query, a bar a tool.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use ringfold::internals::figures::digits;

use crate::canvas::{Canvas, Drawn, FAINT, INK, MARGIN, OTHERS, OURS, WIDTH, scale, text};
use crate::report::{Asked, Outcome, Report};

use crate::tools::Tool;

const HEAD: i32 = 90;
const FOOT: i32 = 40;
const PANEL_HEAD: i32 = 36;
const ROW: i32 = 22;
const BAR: i32 = 14;
const FROM: i32 = 130;
const TO: i32 = 840;
/// As wide as the reason why a tool can't answer.
const WORDS: i32 = 110;

/// Draws a report to an SVG file.
pub fn draw(report: &Report, path: &Path) -> Drawn {
    let height = |asked: &Asked| PANEL_HEAD + asked.cells.len() as i32 * ROW;
    let bottom = HEAD + report.queries.iter().map(height).sum::<i32>();
    let root = SVGBackend::new(path, (WIDTH as u32, (bottom + FOOT) as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    text(
        &root,
        "Group-by queries, times as long as wc -l or as decompressing the file",
        (MARGIN, 28),
        25,
        INK,
        HPos::Left,
    )?;
    let machine = &report.machine;
    let cpu = machine.cpu.as_deref().unwrap_or("unknown processor");
    let facts = format!(
        "Files of {} MiB of text, cached; median of {} interleaved rounds; logarithmic scale; {} cores of {cpu}, Linux {}",
        report.mebibytes, report.rounds, machine.cores, machine.kernel
    );
    text(&root, &facts, (MARGIN, 56), 16, FAINT, HPos::Left)?;
    let cells = report.queries.iter().flat_map(|asked| &asked.cells);
    let ratios = cells.flat_map(|cell| cell.ratio).map(|ratio| ratio.median);
    let (low, high) = ratios.fold((1.0, 1.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let (low, high) = ((low / 1.5).log10(), (high * 1.01).log10());
    let x =
        |ratio: f64| FROM + ((ratio.log10() - low) / (high - low) * f64::from(TO - FROM)) as i32;
    scale(&root, [low, high], &x, [HEAD, bottom])?;
    let mut top = HEAD;
    for asked in &report.queries {
        panel(&root, asked, top, &x)?;
        top += height(asked);
    }
    root.present()?;
    Ok(())
}

fn panel(root: &Canvas<'_>, asked: &Asked, top: i32, x: &dyn Fn(f64) -> i32) -> Drawn {
    let heading = format!(
        "{}. {}; 1x is {}",
        asked.number, asked.text, asked.baseline.tool
    );
    // The scale's lines don't cross it.
    root.draw(&Rectangle::new(
        [(0, top), (WIDTH, top + PANEL_HEAD - 4)],
        WHITE.filled(),
    ))?;
    text(
        root,
        &heading,
        (MARGIN, top + PANEL_HEAD / 2),
        17,
        INK,
        HPos::Left,
    )?;
    for (number, cell) in (0..).zip(&asked.cells) {
        let middle = top + PANEL_HEAD + number * ROW + ROW / 2;
        text(root, cell.tool, (FROM - 10, middle), 15, INK, HPos::Right)?;
        let (end, figure) = match (&cell.outcome, cell.ratio, cell.wall_s) {
            (Outcome::Cannot(why), ..) => {
                // The scale's lines don't cross it.
                let corners = [(FROM, middle - BAR / 2), (FROM + WORDS, middle + BAR / 2)];
                root.draw(&Rectangle::new(corners, WHITE.filled()))?;
                (FROM, why.clone())
            }
            (Outcome::Runs, Some(ratio), Some(wall)) => {
                let colour = match cell.tool {
                    name if name == Tool::Ringfold.name() => OURS,
                    _ => OTHERS,
                };
                let end = x(ratio.median);
                let corners = [(FROM, middle - BAR / 2), (end, middle + BAR / 2)];
                root.draw(&Rectangle::new(corners, colour.filled()))?;
                (
                    end,
                    format!("{}x, {:.3} s", digits(ratio.median), wall.median),
                )
            }
            _ => (FROM, "VOID".into()),
        };
        text(root, &figure, (end + 8, middle), 15, INK, HPos::Left)?;
    }
    Ok(())
}
