//! Items of a list as they are written: aggregates in parentheses, and other names.

use crate::expression::token::{Lexeme, Token, tokens};
use crate::plan::columns::Columns;

/// `sum(price * qty) filter (where qty > 1) as dear`
pub(crate) struct AggregateText<'a> {
    pub(crate) name: &'a str,
    /// What stands between its parentheses, and its parts between commas.
    pub(crate) argument: &'a str,
    pub(crate) arguments: Vec<&'a str>,
    pub(crate) filter: Option<&'a str>,
    pub(crate) alias: Option<Vec<u8>>,
    /// All of it without the other name.
    pub(crate) text: &'a str,
}

fn is_word(lexeme: Option<&Lexeme>, word: &str) -> bool {
    let token = lexeme.map(|lexeme| &lexeme.token);
    matches!(token, Some(Token::Name(name)) if name.eq_ignore_ascii_case(word))
}

/// Takes another name off the end of an item: `as NAME`.
pub(crate) fn alias(item: &str) -> (&str, Option<Vec<u8>>) {
    let Ok(tokens) = tokens(item) else {
        return (item, None);
    };
    let [.., value, word, name, _] = &*tokens else {
        return (item, None);
    };
    match &name.token {
        Token::Name(name) | Token::Quoted(name) if is_word(Some(word), "as") => {
            (&item[..value.end], Some(name.clone().into_bytes()))
        }
        _ => (item, None),
    }
}

/// An aggregate with parentheses, if an item is one.
pub(crate) fn aggregate(item: &str) -> Option<AggregateText<'_>> {
    let (text, alias) = alias(item);
    let tokens = tokens(text).ok()?;
    let (close, argument) = parenthesis(text, &tokens, 1)?;
    let arguments = parts(text, &tokens[1..=close]);
    let name =
        matches!(tokens[0].token, Token::Name(_)).then(|| &text[tokens[0].at..tokens[0].end])?;
    let filter = match &tokens[close + 1..] {
        [_end] => None,
        [filter, ..] if is_word(Some(filter), "filter") => {
            let (end, filter) = parenthesis(text, &tokens, close + 2)?;
            let is_where = is_word(tokens.get(close + 3), "where");
            if !is_where || end + 2 != tokens.len() {
                return None;
            }
            let skipped = tokens[close + 3].end - (tokens[close + 2].end);
            Some(filter[skipped..].trim())
        }
        _ => return None,
    };
    let text = text.trim();
    Some(AggregateText {
        name,
        argument: argument.trim(),
        arguments,
        filter,
        alias,
        text,
    })
}

/// The name, argument and condition of an aggregate in any of its forms: `sum:price` is `sum(price)`. Blanks between tokens
/// don't matter.
pub(crate) fn written(item: &str) -> (String, String, String) {
    let plain = |text: &str| {
        let text = text.trim();
        let name = Columns::read_name(text)
            .ok()
            .filter(|_| text.starts_with('"'));
        let text = name.map_or(text.into(), |name| {
            String::from_utf8_lossy(&name).into_owned()
        });
        match tokens(&text) {
            Ok(tokens) => {
                let words = tokens.iter().map(|token| &text[token.at..token.end]);
                words.collect::<Vec<_>>().join(" ").trim().to_string()
            }
            Err(_) => text,
        }
    };
    let whole = |argument: &str| {
        if argument == "*" {
            String::new()
        } else {
            plain(argument)
        }
    };
    match (aggregate(item), item.split_once(':')) {
        (Some(found), _) => (
            found.name.into(),
            whole(found.argument),
            plain(found.filter.unwrap_or_default()),
        ),
        (None, Some((name, argument))) => (name.into(), whole(argument), String::new()),
        (None, None) => (item.into(), String::new(), String::new()),
    }
}

/// What stands between the parenthesis that opens at a token and the one that closes it, and which token that is.
fn parenthesis<'a>(text: &'a str, tokens: &[Lexeme], open: usize) -> Option<(usize, &'a str)> {
    if tokens.get(open)?.token != Token::Open {
        return None;
    }
    let mut depth = 0;
    for (at, lexeme) in tokens.iter().enumerate().skip(open) {
        match lexeme.token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((at, &text[tokens[open].end..lexeme.at]));
        }
    }
    None
}

/// What stands between the commas of such parentheses.
fn parts<'a>(text: &'a str, tokens: &[Lexeme]) -> Vec<&'a str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, tokens[0].end);
    for lexeme in tokens {
        match lexeme.token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && lexeme.token == Token::Comma {
            parts.push(text[from..lexeme.at].trim());
            from = lexeme.end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read() {
        let shown = |item| {
            let found: AggregateText<'_> = aggregate(item)?;
            let alias = found.alias.map(|name| String::from_utf8(name).unwrap());
            let parts = [found.name, found.argument, found.filter.unwrap_or("-")];
            Some((parts.map(String::from), alias, found.text.to_string()))
        };
        let want = |parts: [&str; 3], alias: Option<&str>, text: &str| {
            Some((
                parts.map(String::from),
                alias.map(String::from),
                text.to_string(),
            ))
        };
        for (item, found) in [
            ("sum(a)", want(["sum", "a", "-"], None, "sum(a)")),
            (
                "sum( a * (b + 1) ) as total",
                want(
                    ["sum", "a * (b + 1)", "-"],
                    Some("total"),
                    "sum( a * (b + 1) )",
                ),
            ),
            (
                "count(*) filter (where c = ')') as \"a b\"",
                want(
                    ["count", "*", "c = ')'"],
                    Some("a b"),
                    "count(*) filter (where c = ')')",
                ),
            ),
            ("count()", want(["count", "", "-"], None, "count()")),
            ("p99.9(x)", want(["p99.9", "x", "-"], None, "p99.9(x)")),
            ("sum:a", None),
            ("sum(a) + 1", None),
            ("sum(a", None),
            ("count(*) filter (a > 1)", None),
        ] {
            assert_eq!(shown(item), found, "{item}");
        }
        for (item, same) in [
            ("sum:price", "sum( price )"),
            ("sum:a b", "sum(\"a b\")"),
            ("sum:price*qty", "sum(price * qty)"),
            ("count", "count( * )"),
            (
                "sum(a)  filter ( where b>1 )",
                "sum(a) filter (where b > 1)",
            ),
        ] {
            assert_eq!(written(item), written(same), "{item}");
        }
        assert_ne!(written("sum(a)"), written("sum(a) filter (where b > 1)"));
        assert_eq!(alias("lower(a) as b"), ("lower(a)", Some(b"b".to_vec())));
        assert_eq!(alias("price"), ("price", None));
        assert_eq!(alias("a 'b"), ("a 'b", None));
    }
}
