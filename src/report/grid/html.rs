//! A page by itself: the table, which a click on a name sorts, and a chart of the last column with numbers. Times as keys make
//! a line, other keys a bar in each row. Nothing in it asks for another file.

use std::io::{self, Write};

use ringfold_read::internals::{units::counted, visible};

use crate::report::grid::Grid;
use crate::report::grid::bars::{BeforeTotal, Extremes, value};
use crate::report::grid::cell::{Cell, Rows, TOTAL};
use crate::report::grid::parts::{fold_columns, for_rows};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/sort.js");
/// What the page may do: nothing but look like this and sort its rows.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The size of a line's chart, and of what is around it.
const WIDTH: usize = 800;
const HEIGHT: usize = 200;
const LEFT: usize = 90;
const TOP: usize = 20;
const BOTTOM: usize = 24;
/// Texts of more bytes are wrapped.
const LONG: usize = 40;
/// So few points have dots.
const DOTS: usize = 100;

/// What the cells of a column have in common.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    has_numbers: bool,
    numbers: Extremes,
    has_texts: bool,
    /// Some text is no time.
    has_others: bool,
    /// The least and the greatest of times, in seconds.
    times: Option<(f64, f64)>,
}

impl Seen {
    fn add(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Null | Cell::Total => {}
            Cell::Number(_) => {
                self.has_numbers = true;
                self.numbers.add(cell);
            }
            Cell::Text(text) | Cell::Json(text) => {
                self.has_texts = true;
                match moment(text) {
                    Some(at) => self.extend((at, at)),
                    None => self.has_others = true,
                }
            }
        }
    }

    fn extend(&mut self, (from, to): (f64, f64)) {
        let (least, greatest) = self.times.unwrap_or((from, to));
        self.times = Some((least.min(from), greatest.max(to)));
    }

    fn merge(&mut self, other: &Seen) {
        self.has_numbers |= other.has_numbers;
        self.numbers.merge(&other.numbers);
        self.has_texts |= other.has_texts;
        self.has_others |= other.has_others;
        other.times.into_iter().for_each(|times| self.extend(times));
    }
}

/// Seconds of a time as keys have it, such as `2026-11`, `2026-W48`, `2026-11-25` and `2026-11-25T13:45:10`.
fn moment(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let is_ours = |letter: char| letter.is_ascii_digit() || "-T: W".contains(letter);
    if !(7..=19).contains(&text.len()) || !text.chars().all(is_ours) || text.as_bytes()[4] != b'-' {
        return None;
    }
    let mut parts = text.split(['-', 'T', ':', ' ']);
    let year: i64 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut two = || match parts.next() {
        None => Some(None),
        Some(part) if part.len() == 2 => part.parse::<i64>().ok().map(Some),
        Some(_) => None,
    };
    if let Some(week) = text[5..].strip_prefix('W') {
        let week: i64 = week.parse().ok().filter(|week| (1..=53).contains(week))?;
        return Some((days(year, 1, 4) + 7 * (week - 1)) as f64 * 86_400.0);
    }
    let month = two()?.filter(|month| (1..=12).contains(month))?;
    let day = two()?.unwrap_or(1);
    let [hour, minute, second] = [two()?, two()?, two()?].map(Option::unwrap_or_default);
    let seconds = hour * 3600 + minute * 60 + second;
    Some((days(year, month, day) * 86_400 + seconds) as f64)
}

/// Days since some day, by the calendar: a year begins with March, so that the day of leap years is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month {
        ..=2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
}

/// What is drawn of the numbers of a column.
enum Chart {
    Nothing,
    /// A bar in each row.
    Bars(usize, Extremes),
    /// A line over the times of a column.
    Line {
        times: usize,
        numbers: usize,
    },
}

/// Writes a page. `is_drawn`: with a chart.
pub(super) fn write(
    names: &[Vec<u8>],
    grid: &Grid<'_>,
    title: &str,
    is_drawn: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let start = vec![Seen::default(); names.len()];
    let rows = BeforeTotal::of(grid.rows);
    let seen = fold_columns(&rows, grid.pool, &start, Seen::add, Seen::merge);
    let chart = match seen.iter().rposition(|column| column.has_numbers) {
        Some(numbers) if is_drawn => chart(&seen, numbers),
        _ => Chart::Nothing,
    };
    let title = escaped(title.as_bytes());
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n<style>\n{STYLE}</style></head>\n\
         <body><h1><code>{title}</code></h1>\n"
    )?;
    if let Chart::Line { times, numbers } = chart {
        let name = escaped(&names[numbers]);
        out.write_all(line(&rows, &seen, (times, numbers), &name).as_bytes())?;
    }
    out.write_all(b"<div><table><thead><tr>")?;
    for (name, column) in names.iter().zip(&seen) {
        let class = if column.has_numbers {
            " class=\"n\""
        } else {
            ""
        };
        write!(out, "<th{class}><button>{}</button></th>", escaped(name))?;
    }
    if let Chart::Bars(..) = chart {
        out.write_all(b"<td></td>")?;
    }
    out.write_all(b"</tr></thead>\n<tbody>\n")?;
    let row = |_: usize, cells: &[Cell<'_>], text: &mut Vec<u8>| {
        text.extend_from_slice(b"<tr>");
        for cell in cells {
            match cell {
                Cell::Null => text.extend_from_slice(b"<td></td>"),
                Cell::Number(number) => {
                    text.extend_from_slice(b"<td class=\"n\">");
                    number.push(text);
                    text.extend_from_slice(b"</td>");
                }
                Cell::Total => push_text_cell(TOTAL.as_bytes(), text),
                Cell::Text(bytes) | Cell::Json(bytes) => push_text_cell(bytes, text),
            }
        }
        if let Chart::Bars(column, extremes) = &chart {
            let is_total = cells[0] == Cell::Total;
            let cell = if is_total {
                &Cell::Null
            } else {
                &cells[*column]
            };
            push_bar(cell, extremes, text);
        }
        text.extend_from_slice(b"</tr>\n");
    };
    let before_total = Grid {
        rows: &rows,
        ..*grid
    };
    before_total.write(row, out)?;
    out.write_all(b"</tbody>")?;
    if rows.len() < grid.rows.len() {
        let (mut cells, mut text) = (Vec::new(), b"\n<tfoot>".to_vec());
        grid.rows.row(rows.len(), &mut cells);
        row(rows.len(), &cells, &mut text);
        out.write_all(&text)?;
        out.write_all(b"</tfoot>")?;
    }
    let rows = counted(rows.len() as u64, "row");
    write!(
        out,
        "</table></div>\n<p>{rows}</p>\n<script>\n{SCRIPT}</script></body></html>\n"
    )
}

fn push_text_cell(text: &[u8], to: &mut Vec<u8>) {
    let class: &[u8] = match text.len() > LONG {
        true => b" class=\"w\"",
        false => b"",
    };
    to.extend_from_slice(b"<td dir=\"auto\"");
    to.extend_from_slice(class);
    to.push(b'>');
    push_escaped(text, to);
    to.extend_from_slice(b"</td>");
}

/// A line where the only texts are times, and bars otherwise.
fn chart(seen: &[Seen], numbers: usize) -> Chart {
    let mut texts = seen
        .iter()
        .enumerate()
        .filter(|(_, column)| column.has_texts);
    match (texts.next(), texts.next()) {
        (Some((times, column)), None) if !column.has_others && !column.has_numbers => {
            let has_width = column.times.is_some_and(|(from, to)| from < to);
            if has_width {
                return Chart::Line { times, numbers };
            }
        }
        _ => {}
    }
    Chart::Bars(numbers, seen[numbers].numbers)
}

/// Appends the cell with the bar of a number.
fn push_bar(cell: &Cell<'_>, extremes: &Extremes, to: &mut Vec<u8>) {
    let range = extremes.greatest - extremes.least;
    let value = value(cell).filter(|_| range > 0.0 && range.is_finite());
    // Writing to a vector can't fail.
    let _ = match value {
        None => to.write_all(b"<td class=\"b\"></td>"),
        Some(value) => {
            let place = |value: f64| 100.0 * (value - extremes.least) / range;
            let (from, to_place) = (place(value.min(0.0)), place(value.max(0.0)));
            let class = if value < 0.0 { "m" } else { "p" };
            let width = to_place - from;
            write!(
                to,
                "<td class=\"b\"><i class=\"{class}\" style=\"left:{from:.2}%;width:{width:.2}%\"></i></td>"
            )
        }
    };
}

/// A column of points: its times in a part of the width, the least and the greatest number of them.
type Points = Option<(f64, f64, f64)>;

/// The chart of a line.
fn line(rows: &dyn Rows, seen: &[Seen], (times, numbers): (usize, usize), name: &str) -> String {
    let (from, to) = seen[times].times.unwrap_or((0.0, 1.0));
    let Extremes { least, greatest } = seen[numbers].numbers;
    let range = if greatest > least {
        greatest - least
    } else {
        1.0
    };
    let mut parts: Vec<Points> = vec![None; WIDTH];
    let mut ends: [Option<(f64, String)>; 2] = [None, None];
    for_rows(rows, 0..rows.len(), seen.len(), |_, cells| {
        let Cell::Text(text) = &cells[times] else {
            return true;
        };
        let (Some(at), Some(value)) = (moment(text), value(&cells[numbers])) else {
            return true;
        };
        let share = (at - from) / (to - from);
        let part = ((share * (WIDTH - 1) as f64) as usize).min(WIDTH - 1);
        let (_, low, high) = parts[part].unwrap_or((share, value, value));
        parts[part] = Some((share, low.min(value), high.max(value)));
        let [first, last] = &mut ends;
        if first.as_ref().is_none_or(|(known, _)| at < *known) {
            *first = Some((at, escaped(text)));
        }
        if last.as_ref().is_none_or(|(known, _)| at > *known) {
            *last = Some((at, escaped(text)));
        }
        true
    });
    let x = |share: f64| LEFT as f64 + share * WIDTH as f64;
    let y = |value: f64| TOP as f64 + (greatest - value) / range * HEIGHT as f64;
    let mut points = Vec::new();
    for (share, low, high) in parts.iter().flatten() {
        points.push((x(*share), y(*low)));
        if low < high {
            points.push((x(*share), y(*high)));
        }
    }
    let listed: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{name}\"><g>",
        right + TOP,
        bottom + BOTTOM
    );
    let mut marks = vec![greatest, least];
    if least < 0.0 && greatest > 0.0 {
        marks.push(0.0);
    }
    for value in marks {
        let y = y(value);
        svg += &format!(
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text class=\"r\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8,
            y + 4.0,
            short(value)
        );
    }
    for (end, (x, class)) in ends.iter().flatten().zip([(LEFT, "l"), (right, "r")]) {
        svg += &format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{}\">{}</text>",
            bottom + 18,
            end.1
        );
    }
    svg += &format!(
        "<text class=\"l\" x=\"{LEFT}\" y=\"12\">{name}</text></g><polyline points=\"{}\"/>",
        listed.join(" ")
    );
    if points.len() <= DOTS {
        for (x, y) in points {
            svg += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
        }
    }
    svg + "</svg>\n"
}

/// A number with six digits or so.
fn short(value: f64) -> String {
    let places = value.abs().max(1e-9).log10().floor();
    match places {
        ..-4.0 | 9.0.. if value != 0.0 => format!("{value:.3e}"),
        _ => {
            let text = format!("{value:.*}", (5.0 - places).clamp(0.0, 9.0) as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').into(),
                false => text,
            }
        }
    }
}

/// Appends a text in which nothing is a sign of HTML, and nothing that a reader can't see changes how it is read.
fn push_escaped(text: &[u8], to: &mut Vec<u8>) {
    for byte in visible(text).bytes() {
        let sign: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\'' => b"&#39;",
            _ => {
                to.push(byte);
                continue;
            }
        };
        to.extend_from_slice(sign);
    }
}

fn escaped(text: &[u8]) -> String {
    let mut escaped = Vec::new();
    push_escaped(text, &mut escaped);
    String::from_utf8(escaped).expect("signs in a text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::grid::write_page;

    struct Table(Vec<Vec<Option<&'static [u8]>>>);

    impl Rows for Table {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn row<'a>(&'a self, at: usize, cells: &mut Vec<Cell<'a>>) {
            cells.clear();
            cells.extend(self.0[at].iter().map(|cell| {
                let text = cell.map(std::str::from_utf8);
                match (cell, text) {
                    (None, _) => Cell::Null,
                    (Some(b"TOTAL"), _) => Cell::Total,
                    (_, Some(Ok(number))) if number.parse::<f64>().is_ok_and(f64::is_finite) => {
                        Cell::Number(number.into())
                    }
                    (Some(text), _) => Cell::Text(text),
                }
            }));
        }
    }

    fn page(names: &[&str], rows: Vec<Vec<Option<&'static [u8]>>>) -> String {
        let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut out = Vec::new();
        write_page(
            &names,
            &Table(rows),
            "ringfold 'a' <b> & \"c\"",
            true,
            None,
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The names of a page's tags in order, each of which ends in order; nothing else in it is a sign.
    fn tags(page: &str) -> Vec<String> {
        let (mut open, mut all) = (Vec::new(), Vec::new());
        let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
        while let Some((text, after)) = rest.split_once('<') {
            let is_script = matches!(open.last(), Some(&"script" | &"style"));
            assert!(is_script || !text.contains(['>', '"', '\'']), "{text}");
            let signs = text.split('&').skip(1);
            for sign in signs.filter(|_| !is_script) {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
                assert!(known.iter().any(|known| sign.starts_with(known)), "{sign}");
            }
            let (tag, after) = after.split_once('>').unwrap();
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{page}");
                continue;
            }
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            let quotes = attributes.matches('"').count();
            assert!(
                quotes.is_multiple_of(2) && quotes / 2 == attributes.matches("=\"").count(),
                "{tag}"
            );
            all.push(name.to_string());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(rest.trim(), "");
        all
    }

    #[test]
    fn nothing_in_a_text_is_a_sign() {
        let rows = vec![
            vec![Some(&b"<script>alert(1)</script>"[..]), Some(b"5")],
            vec![Some(b"a\"b' onclick=x &amp; --> ]]>"), Some(b"-3.5")],
            vec![Some(b"\xff\0\x1b[31m\r\n"), Some(b"1e-7")],
            vec![Some("\u{202e}abc שלום".as_bytes()), None],
            vec![Some(b"inf"), Some(b"nan")],
        ];
        let page = page(&["<th onclick='x'>", "n\u{0}\""], rows);
        let tags = tags(&page);
        let count = |name: &str| tags.iter().filter(|tag| *tag == name).count();
        assert_eq!(
            (count("script"), count("tr"), count("th"), count("i")),
            (1, 6, 2, 3)
        );
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
            "{page}"
        );
        assert!(
            page.contains("\\xff\\x00\\x1b[31m\\r\\n") && page.contains("\\u{202e}abc"),
            "{page}"
        );
        assert!(page.contains("<title>ringfold &#39;a&#39; &lt;b&gt; &amp; &quot;c&quot;</title>"));
        assert!(
            !page.contains("://") && !page.contains("url("),
            "nothing is asked for"
        );
        assert!(
            page.contains("style=\"left:41.18%;width:58.82%\""),
            "{page}"
        );
        assert!(
            page.contains("class=\"m\" style=\"left:0.00%;width:41.18%\""),
            "{page}"
        );
    }

    #[test]
    fn times_make_a_line() {
        let rows = |keys: [&'static str; 4]| {
            let numbers = ["3", "1.5", "4", "2"].map(|number| Some(number.as_bytes()));
            let rows = keys.into_iter().zip(numbers);
            rows.map(|(key, number)| vec![Some(key.as_bytes()), number])
                .collect::<Vec<_>>()
        };
        for keys in [
            ["2026-11", "2026-12", "2027-01", "2027-02"],
            ["2026-W01", "2026-W02", "2026-W03", "2026-W53"],
            [
                "2026-11-25T13",
                "2026-11-25T14",
                "2026-11-25T15",
                "2026-11-26T13",
            ],
            [
                "2026-11-25 13:45:10",
                "2026-11-25 13:45:11",
                "2026-11-25 13:45:12",
                "2026-11-25 13:46:00",
            ],
        ] {
            let page = page(&["time", "n"], rows(keys));
            let tags = tags(&page);
            assert_eq!(
                tags.iter().filter(|tag| *tag == "circle").count(),
                4,
                "{page}"
            );
            assert!(page.contains(&format!(">{}</text>", keys[3])), "{page}");
            // The greatest is at the top, zero at the bottom.
            assert!(
                page.contains("<polyline points=\"90.0,70.0 ") && page.contains(",20.0 "),
                "{page}"
            );
            assert!(!tags.contains(&"i".to_string()));
        }
        for keys in [
            ["2026-11", "2026-12", "2027-01", "all"],
            ["2026-13", "1", "2", "3"],
            ["a-bc-de", "b", "c", "d"],
        ] {
            assert!(!tags(&page(&["time", "n"], rows(keys))).contains(&"svg".to_string()));
        }
        assert_eq!(
            moment(b"1970-01-02"),
            Some(moment(b"1970-01-01T00").unwrap() + 86_400.0)
        );
        assert_eq!(days(2024, 3, 1) - days(2024, 2, 28), 2);
        assert_eq!(days(2100, 3, 1) - days(2100, 2, 28), 1);
    }

    #[test]
    fn a_total_stands_below_and_is_not_drawn() {
        let rows = |keys: &[&'static str]| {
            let rows = keys.iter().zip(["3", "1", "4"]);
            rows.map(|(key, number)| vec![Some(key.as_bytes()), Some(number.as_bytes())])
                .collect::<Vec<_>>()
        };
        let page = page(&["k", "n"], rows(&["a", "b", "TOTAL"]));
        tags(&page);
        let foot = "</tbody>\n<tfoot><tr><td dir=\"auto\">total</td><td class=\"n\">4</td><td class=\"b\"></td></tr>\n</tfoot>";
        assert!(
            page.contains(foot) && page.contains("<p>2 rows</p>"),
            "{page}"
        );
        assert!(
            page.contains("left:0.00%;width:100.00%") && page.contains("width:33.33%"),
            "{page}"
        );
    }

    #[test]
    fn labels_are_short() {
        for (value, want) in [
            (0.0, "0"),
            (289.096_037_835_933, "289.096"),
            (-1234.5, "-1234.5"),
            (12e9, "1.200e10"),
            (1e-7, "1.000e-7"),
            (1_000_000.0, "1000000"),
        ] {
            assert_eq!(short(value), want);
        }
    }
}
