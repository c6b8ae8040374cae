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
