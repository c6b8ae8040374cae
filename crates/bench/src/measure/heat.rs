//! Figures of two settings as a heat map: on a terminal with shades, and as a picture.

use unicode_width::UnicodeWidthStr;

use crate::measure::figures::digits;
use crate::measure::svg::Svg;

/// A figure with its mark, if there is one.
pub type HeatCell = Option<(f64, char)>;

/// A table of figures, of which some are missing. A larger one is better.
pub struct Heat {
    /// What the figures are.
    pub corner: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows, with a figure and a mark for each column.
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

/// Shades of a terminal's 256 colours, from bad to good, with black or white on them.
const SHADES: [(u8, u8); 6] = [(52, 15), (94, 15), (136, 0), (106, 0), (70, 0), (40, 0)];
/// The same without colours.
const SIGNS: [char; 6] = ['.', '.', ':', ':', '+', '#'];

impl Heat {
    /// The least and the largest figure.
    fn range(&self) -> (f64, f64) {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells).flatten();
        cells.fold((f64::INFINITY, 0.0), |(low, high), (value, _)| {
            (low.min(*value), high.max(*value))
        })
    }

    /// Which shade of how many.
    fn shade(&self, value: f64, shades: usize) -> usize {
        let (low, high) = self.range();
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            1.0
        };
        ((share * shades as f64) as usize).min(shades - 1)
    }

    /// As text, with colours if wanted. Columns that don't fit are left out at the right.
    pub fn terminal(&self, colours: bool, width: usize) -> String {
        let names = self.rows.iter().map(|(name, _)| name.width());
        let first = names.chain([self.corner.width()]).max().unwrap_or(0) + 2;
        let cell = self
            .columns
            .iter()
            .map(|name| name.width())
            .max()
            .unwrap_or(0)
            .max(7)
            + 2;
        let fitting = (width.saturating_sub(first) / cell).max(1);
        let mut text = format!("{:>first$}", self.corner);
        for name in self.columns.iter().take(fitting) {
            text += &format!("{name:>cell$}");
        }
        text.push('\n');
        for (name, cells) in &self.rows {
            text += &format!("{name:>first$}");
            for found in cells.iter().take(fitting) {
                text += &match found {
                    None => format!("{:cell$}", ""),
                    Some((value, mark)) if colours => {
                        let (back, ink) = SHADES[self.shade(*value, SHADES.len())];
                        let figure = format!("{} {mark}", digits(*value));
                        format!("\x1b[48;5;{back};38;5;{ink}m{figure:>cell$}\x1b[0m")
                    }
                    Some((value, mark)) => {
                        let sign = SIGNS[self.shade(*value, SIGNS.len())];
                        let figure = format!("{sign} {} {mark}", digits(*value));
                        format!("{figure:>cell$}")
                    }
                };
            }
            let len = text.trim_end_matches(' ').len();
            text.truncate(len);
            text.push('\n');
        }
        text
    }

    /// As a picture.
    pub fn picture(&self) -> String {
        const LEFT: f64 = 90.0;
        const TOP: f64 = 30.0;
        const CELL: (f64, f64) = (110.0, 36.0);
        let width = LEFT + CELL.0 * self.columns.len() as f64 + 10.0;
        let height = TOP + CELL.1 * self.rows.len() as f64 + 10.0;
        let mut svg = Svg::new(width, height, "heat map");
        svg.text(LEFT - 10.0, TOP - 10.0, "tick end", &self.corner);
        for (at, name) in self.columns.iter().enumerate() {
            let x = LEFT + CELL.0 * (at as f64 + 0.5);
            svg.text(x, TOP - 10.0, "tick mid", name);
        }
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            let y = TOP + CELL.1 * row as f64;
            svg.text(LEFT - 10.0, y + CELL.1 / 2.0 + 4.0, "tick end", name);
            for (column, found) in cells.iter().enumerate() {
                let Some((value, mark)) = found else {
                    continue;
                };
                let x = LEFT + CELL.0 * column as f64;
                let (head, corner, figure) = (&self.columns[column], &self.corner, digits(*value));
                let title = format!("{name}, {head}: {figure} {corner}");
                let class = format!("heat-{}", self.shade(*value, SHADES.len()));
                svg.rect([x, y, CELL.0 - 2.0, CELL.1 - 2.0], &class, &title);
                let text = format!("{figure} {mark}");
                let (x, y) = (x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 4.0);
                svg.text(x, y, "on-heat mid", &text.trim());
            }
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::heat::*;

    fn heat() -> Heat {
        Heat {
            corner: "GiB/s".into(),
            columns: vec!["depth 4".into(), "depth 64".into()],
            rows: vec![
                ("64K".into(), vec![Some((0.5, ' ')), None]),
                ("1M".into(), vec![Some((1.0, '=')), Some((2.0, '*'))]),
            ],
        }
    }

    #[test]
    fn figures_marks_and_shades() {
        let text = heat().terminal(false, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().count(), 5, "{text}");
        assert!(lines[1].ends_with(". 0.50"), "{text}");
        assert!(
            lines[2].contains(": 1.00 =") && lines[2].ends_with("# 2.00 *"),
            "{text}"
        );
        assert!(heat().terminal(true, 80).contains("\x1b[48;5;40;38;5;0m"));
        for width in 20..60 {
            let text = heat().terminal(false, width);
            assert!(
                text.lines().all(|line| line.len() <= width.max(20)),
                "{width}: {text}"
            );
        }
        let picture = heat().picture();
        assert_eq!(picture.matches("<rect").count(), 3);
        assert!(
            picture.contains("heat-0") && picture.contains("heat-5") && picture.contains("2.00 *")
        );
    }
}
