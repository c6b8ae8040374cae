//! Points into a condition: two lines below an error, the condition and a caret.

use ringfold_read::internals::visible;
use unicode_width::UnicodeWidthStr;

use crate::Error;
use crate::query::Refusal;

/// Letters of a condition that are shown before and after the place.
const BEFORE: usize = 50;
const AFTER: usize = 20;

/// The lines for an error about a condition; none for others.
pub(super) fn lines(error: &Error) -> Vec<String> {
    match error.job() {
        Some(Refusal::Condition { text, at, .. }) => pointed(text, *at).into(),
        _ => Vec::new(),
    }
}

fn pointed(text: &str, at: usize) -> [String; 2] {
    let (before, after) = text.split_at(at);
    let from = before.char_indices().rev().nth(BEFORE - 1);
    let from = from.map_or(0, |(from, _)| from);
    let to = after.char_indices().nth(AFTER);
    let to = to.map_or(after.len(), |(to, _)| to);
    let cut = |is_cut| if is_cut { "…" } else { "" };
    let before = format!("  {}{}", cut(from > 0), visible(&before.as_bytes()[from..]));
    let after = format!(
        "{}{}",
        visible(&after.as_bytes()[..to]),
        cut(to < after.len())
    );
    let blanks = " ".repeat(before.width());
    [format!("{before}{after}"), format!("{blanks}^")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_place() {
        for (text, at, want) in [
            ("a = = 1", 4, ["  a = = 1", "      ^"]),
            ("", 0, ["  ", "  ^"]),
            ("ü = '東' x", 11, ["  ü = '東' x", "           ^"]),
            ("a\n= x", 4, ["  a\\n= x", "       ^"]),
        ] {
            assert_eq!(pointed(text, at), want);
        }
        let long = format!("{}!{}", "ü".repeat(80), "b".repeat(80));
        let [line, caret] = pointed(&long, 160);
        let want = format!("  …{}!{}…", "ü".repeat(50), "b".repeat(19));
        assert_eq!(line, want);
        assert_eq!(caret.len(), 2 + 1 + 50 + 1);
    }
}
