//! What the plots of all benchmarks have in common: size, colours, text.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn = Result<(), Box<dyn Error>>;

/// Lengths are in pixels.
pub const WIDTH: i32 = 1000;
pub const MARGIN: i32 = 24;

pub const INK: RGBColor = RGBColor(31, 35, 40);
pub const FAINT: RGBColor = RGBColor(89, 99, 110);
pub const GRID: RGBColor = RGBColor(222, 226, 230);
pub const OURS: RGBColor = RGBColor(47, 111, 187);
pub const OTHERS: RGBColor = RGBColor(217, 130, 54);

/// The lines of a logarithmic scale between two powers of ten, with the figures below them.
pub fn scale(
    root: &Canvas<'_>,
    [low, high]: [f64; 2],
    x: &dyn Fn(f64) -> i32,
    [top, bottom]: [i32; 2],
) -> Drawn {
    for power in -2..4 {
        for step in [1.0, 2.0, 5.0] {
            let tick: f64 = step * 10_f64.powi(power);
            if (low..=high).contains(&tick.log10()) {
                let ink = if tick == 1.0 { FAINT } else { GRID };
                let points = vec![(x(tick), top), (x(tick), bottom)];
                root.draw(&PathElement::new(points, ink.stroke_width(1)))?;
                let shown = format!("{}x", (tick * 100.0).round() / 100.0);
                let at = (x(tick), bottom + 16);
                text(root, &shown, at, 15, FAINT, HPos::Center)?;
            }
        }
    }
    Ok(())
}

/// Text at the height of its middle.
pub fn text(
    root: &Canvas<'_>,
    text: &str,
    at: (i32, i32),
    size: i32,
    ink: RGBColor,
    to: HPos,
) -> Drawn {
    let style = ("sans-serif", size)
        .into_font()
        .color(&ink)
        .pos(Pos::new(to, VPos::Center));
    root.draw_text(text, &style, at)?;
    Ok(())
}
