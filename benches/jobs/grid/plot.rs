//! The rows of the grid as bars on a logarithmic scale: a cliff is seen at a glance.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use ringfold::internals::figures::digits;

use super::report::{Report, Row};
use crate::canvas::{Canvas, Drawn, FAINT, INK, MARGIN, OTHERS, OURS, WIDTH, scale, text};

const HEAD: i32 = 92;
const FOOT: i32 = 40;
const PART_HEAD: i32 = 34;
const ROW: i32 = 20;
const BAR: i32 = 12;
const FROM: i32 = 300;
const TO: i32 = 720;

/// Draws a report to an SVG file.
pub fn draw(report: &Report, path: &Path) -> Drawn {
    let mut parts: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &report.rows {
        match parts.last_mut() {
            Some((part, rows)) if *part == row.part => rows.push(row),
            _ => parts.push((row.part, vec![row])),
        }
    }
    let bottom = HEAD + report.rows.len() as i32 * ROW + parts.len() as i32 * PART_HEAD;
    let root = SVGBackend::new(path, (WIDTH as u32, (bottom + FOOT) as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "What one departure costs: processor time, times the plainest query of its format";
    text(&root, title, (MARGIN, 28), 22, INK, HPos::Left)?;
    let machine = &report.machine;
    let facts = [
        format!(
            "Files of {} MiB, cached; {} interleaved rounds; {} cores of {}",
            report.mebibytes,
            report.rounds,
            machine.cores,
            machine.cpu.as_deref().unwrap_or("unknown processor"),
        ),
        format!(
            "A black line is the most that it may cost. On the right: wall time over that of the faster of {}",
            report.peers.join(" and "),
        ),
    ];
    for (line, facts) in (0..).zip(&facts) {
        let at = (MARGIN, 52 + 20 * line);
        text(&root, facts, at, 14, FAINT, HPos::Left)?;
    }
    let ratios = report
        .rows
        .iter()
        .flat_map(|row| &row.measured)
        .map(|measured| measured.ratio.median);
    let (low, high) = ratios.fold((0.5, 4.0), |(low, high): (f64, f64), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    let (low, high) = (low.log10(), high.log10());
    let x =
        |ratio: f64| FROM + ((ratio.log10() - low) / (high - low) * f64::from(TO - FROM)) as i32;
    scale(&root, [low, high], &x, [HEAD, bottom])?;
    let mut top = HEAD;
    for (part, rows) in parts {
        root.draw(&Rectangle::new(
            [(0, top), (WIDTH, top + PART_HEAD - 4)],
            WHITE.filled(),
        ))?;
        text(
            &root,
            part,
            (MARGIN, top + PART_HEAD / 2),
            16,
            INK,
            HPos::Left,
        )?;
        top += PART_HEAD;
        for row in rows {
            bar(&root, row, top + ROW / 2, &x)?;
            top += ROW;
        }
    }
    root.present()?;
    Ok(())
}

fn bar(root: &Canvas<'_>, row: &Row, middle: i32, x: &dyn Fn(f64) -> i32) -> Drawn {
    text(root, row.name, (FROM - 10, middle), 14, INK, HPos::Right)?;
    let Ok(measured) = &row.measured else {
        return text(root, "VOID", (FROM + 8, middle), 14, INK, HPos::Left);
    };
    let colour = if row.is_over() { OTHERS } else { OURS };
    let end = x(measured.ratio.median);
    let corners = [
        (FROM, middle - BAR / 2),
        (end.max(FROM + 2), middle + BAR / 2),
    ];
    root.draw(&Rectangle::new(corners, colour.filled()))?;
    let mut past = end;
    if row.limit.is_finite() {
        let at = x(row.limit);
        let line = vec![(at, middle - BAR / 2 - 2), (at, middle + BAR / 2 + 2)];
        root.draw(&PathElement::new(line, INK.stroke_width(2)))?;
        past = past.max(at);
    }
    let figure = format!("{}x", digits(measured.ratio.median));
    text(root, &figure, (past + 8, middle), 14, INK, HPos::Left)?;
    if let Some(peer) = measured.better() {
        let beside = format!("{} of {}", digits(peer.ratio), peer.name);
        text(
            root,
            &beside,
            (WIDTH - MARGIN, middle),
            14,
            FAINT,
            HPos::Right,
        )?;
    }
    Ok(())
}
