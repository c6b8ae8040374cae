//! The medians as bars: a panel a case, a bar a competitor, whiskers to the extremes.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::canvas::{Canvas, Drawn, FAINT, GRID, INK, MARGIN, OTHERS, OURS, WIDTH, text};
use crate::competitors::BASELINE;
use crate::results::{Case, Report, Row, Summary, digits};

const TITLE: i32 = 84;
const PANEL_HEAD: i32 = 44;
const PANEL_FOOT: i32 = 44;
const ROW: i32 = 30;
const BAR: i32 = 18;
const WHISKER: i32 = 5;
const BARS_FROM: i32 = 270;
/// Bars end here; the figures beside the longest one stand behind it.
const BARS_TO: i32 = 800;
const CUT: i32 = 6;

/// Bars this many times longer than ringfold's and the baseline's longest are cut.
const CUT_FROM: f64 = 1.5;

const OURS_COUNT: RGBColor = RGBColor(140, 181, 226);
const PLAIN: RGBColor = RGBColor(140, 148, 156);

/// Draws a report to an SVG file.
pub fn draw(report: &Report, path: &Path) -> Drawn {
    let height = |case: &Case| PANEL_HEAD + case.rows.len() as i32 * ROW + PANEL_FOOT;
    let all: i32 = report.cases.iter().map(height).sum();
    let root = SVGBackend::new(path, (WIDTH as u32, (TITLE + all) as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    text(
        &root,
        "Wall time of the whole process",
        (MARGIN, 30),
        25,
        INK,
        HPos::Left,
    )?;
    let machine = &report.machine;
    let cpu = machine.cpu.as_deref().unwrap_or("unknown processor");
    let facts = format!(
        "{}; {} cores of {cpu}, Linux {}",
        report.file_line(),
        machine.cores,
        machine.kernel
    );
    text(&root, &facts, (MARGIN, 56), 16, FAINT, HPos::Left)?;
    let how = format!(
        "Median of {} interleaved rounds; whiskers: fastest and slowest; in brackets: times as long \
         as wc -l. A broken bar is longer than shown.",
        report.rounds
    );
    text(&root, &how, (MARGIN, 76), 16, FAINT, HPos::Left)?;
    let mut top = TITLE;
    for case in &report.cases {
        panel(&root, case, top)?;
        top += height(case);
    }
    root.present()?;
    Ok(())
}

fn panel(root: &Canvas<'_>, case: &Case, top: i32) -> Drawn {
    let proof = if case.proven { "" } else { " (NOT PROVEN)" };
    let heading = format!("{}: {}{proof}", case.state, case.meaning);
    text(root, &heading, (MARGIN, top + 26), 19, INK, HPos::Left)?;
    let scale = Scale::of(case);
    let (first, last) = (
        top + PANEL_HEAD,
        top + PANEL_HEAD + case.rows.len() as i32 * ROW,
    );
    for tick in scale.ticks() {
        let x = scale.x(tick);
        line(root, (x, first), (x, last + 4), GRID)?;
        text(
            root,
            &format!("{tick} s"),
            (x, last + 15),
            15,
            FAINT,
            HPos::Center,
        )?;
    }
    for (number, row) in case.rows.iter().enumerate() {
        let middle = first + number as i32 * ROW + ROW / 2;
        text(
            root,
            &row.label,
            (BARS_FROM - 10, middle),
            16,
            INK,
            HPos::Right,
        )?;
        match &row.summary {
            Some(summary) => bar(root, &scale, row, summary, middle)?,
            None => text(root, "VOID", (BARS_FROM + 8, middle), 16, INK, HPos::Left)?,
        }
    }
    line(root, (BARS_FROM, first), (BARS_FROM, last), FAINT)
}

fn bar(root: &Canvas<'_>, scale: &Scale, row: &Row, summary: &Summary, middle: i32) -> Drawn {
    let wall = summary.wall_s;
    let end = scale.x(wall.median);
    let corners = [(BARS_FROM, middle - BAR / 2), (end, middle + BAR / 2)];
    root.draw(&Rectangle::new(corners, colour(row).filled()))?;
    let (low, high) = (scale.x(wall.min), scale.x(wall.max));
    let mut behind = end.max(high);
    if wall.median > scale.end_s {
        // Two strokes of the background across the bar: it goes on.
        for x in [end - 5 * CUT, end - 3 * CUT] {
            let (above, below) = (middle - BAR / 2 - 2, middle + BAR / 2 + 2);
            let across = vec![
                (x, below),
                (x + CUT, above),
                (x + 2 * CUT - 2, above),
                (x + CUT - 2, below),
            ];
            root.draw(&Polygon::new(across, WHITE.filled()))?;
        }
        behind = end;
    } else {
        line(root, (low, middle), (high, middle), INK)?;
        for x in [low, high] {
            line(root, (x, middle - WHISKER), (x, middle + WHISKER), INK)?;
        }
    }
    let ratio = summary.ratio_to_baseline.filter(|_| row.name != BASELINE);
    let ratio = ratio.map_or(String::new(), |ratio| {
        format!(" ({}x)", digits(ratio.median))
    });
    let figures = format!("{:.3} s{ratio}", wall.median);
    text(root, &figures, (behind + 8, middle), 16, INK, HPos::Left)
}

fn colour(row: &Row) -> RGBColor {
    match row.name {
        BASELINE => PLAIN,
        name if name.starts_with("count") => OURS_COUNT,
        _ if row.ours => OURS,
        _ => OTHERS,
    }
}

/// Seconds along the bars of a panel.
struct Scale {
    end_s: f64,
}

impl Scale {
    /// As long as the longest bar, but for those that would leave too little to the others.
    fn of(case: &Case) -> Scale {
        let longest = |keep: &dyn Fn(&Row) -> bool| {
            let rows = case.rows.iter().filter(|row| keep(row));
            let longest = rows
                .flat_map(|row| &row.summary)
                .map(|summary| summary.wall_s.max);
            longest.fold(0.0, f64::max)
        };
        let everybody = longest(&|_| true);
        let near = longest(&|row| row.ours || row.name == BASELINE);
        let end_s = match near {
            near if near > 0.0 && everybody > near * CUT_FROM => near * CUT_FROM,
            _ => everybody,
        };
        Scale {
            end_s: end_s.max(1e-6),
        }
    }

    fn x(&self, seconds: f64) -> i32 {
        let length = f64::from(BARS_TO - BARS_FROM);
        BARS_FROM + (seconds / self.end_s * length).min(length).round() as i32
    }

    /// Round numbers, four to eight of them.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let power = 10f64.powf((self.end_s / 8.0).log10().ceil());
        let step = [0.2, 0.5, 1.0].map(|part| part * power);
        let step = step
            .into_iter()
            .find(|step| self.end_s / step <= 8.0)
            .unwrap_or(power);
        let count = (self.end_s / step) as u32;
        // Decimal places of the step keep 0.30000000000000004 away.
        let places = 10f64.powf((-step.log10()).ceil().max(0.0) + 1.0);
        (0..=count).map(move |number| (f64::from(number) * step * places).round() / places)
    }
}

fn line(root: &Canvas<'_>, from: (i32, i32), to: (i32, i32), ink: RGBColor) -> Drawn {
    root.draw(&PathElement::new(vec![from, to], ink.stroke_width(1)))?;
    Ok(())
}
