//! A drawing as SVG text. Colours are classes, which the page around it defines for light, dark and paper.

use std::fmt::{Display, Write};

/// A drawing under way. Lengths are in units of a pixel at full width.
pub struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// A text in which markup means nothing.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // XML has no others, escaped or not.
            letter if letter.is_control() && !"\n\t".contains(letter) => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

impl Svg {
    /// An empty drawing; `label` is for those who can't see it.
    pub fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg {
            width,
            height,
            label: escaped(label),
            body: String::new(),
        }
    }

    /// A rectangle; `title` is shown when somebody points at it.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str, title: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{title}</title></rect>"#
        );
    }

    /// A line from one point to another.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A dot.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, class: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"><title>{title}</title></circle>"#
        );
    }

    /// A text on its base line.
    pub fn text(&mut self, x: f64, y: f64, class: &str, text: &dyn Display) {
        let text = escaped(&text.to_string());
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        );
    }

    /// A line through points.
    pub fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        let points = points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
        let points: Vec<_> = points.collect();
        let _ = writeln!(
            self.body,
            r#"<polyline class="{class}" points="{}"/>"#,
            points.join(" ")
        );
    }

    /// The drawing as an element of a page.
    pub fn finish(self) -> String {
        let Svg {
            width,
            height,
            label,
            body,
        } = self;
        format!(
            r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">
{body}</svg>
"#
        )
    }
}

/// Round values from 0 up to `max` or a little less, at most `count` of them after 0.
pub fn ticks(max: f64, count: usize) -> Vec<f64> {
    let rough = max / count as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let values = (0..).map(|n| f64::from(n) * step);
    values.take_while(|value| *value <= max * 1.0001).collect()
}

#[cfg(test)]
mod tests {
    use crate::measure::svg::*;

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(escaped("<b>&\"\u{1b}"), "&lt;b&gt;&amp;&quot;\u{fffd}");
        let mut svg = Svg::new(10.0, 10.0, "a \"b\"");
        svg.text(1.0, 2.0, "x", &"<script>");
        let text = svg.finish();
        assert!(
            text.contains("&lt;script&gt;") && text.contains("a &quot;b&quot;"),
            "{text}"
        );
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(3.0, 4), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(ticks(2.9, 6), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!(ticks(1000.0, 5), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        for max in [1e-6, 0.37, 12.0, 5e9] {
            assert!((3..=7).contains(&ticks(max, 6).len()), "{max}");
        }
    }
}
