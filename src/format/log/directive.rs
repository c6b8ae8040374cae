//! Patterns as they stand in the configuration of nginx (`log_format`) and Apache (`LogFormat`).

/// The pattern of a text: what is quoted in a directive, or the text. Escapes of both servers mean what they mean there.
///
/// # Errors
/// It has several patterns.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    match &*directives(text) {
        [] => {}
        [(_, pattern)] => return Ok(pattern.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| &**name).collect();
            return Err(format!(
                "there are several patterns in it: {}",
                names.join(", ")
            ));
        }
    }
    let trimmed = text.trim();
    let is_piece = match trimmed.as_bytes() {
        [b'\'', ..] => true,
        // Other patterns may begin with a double quote, too.
        [b'"', ..] => trimmed.contains("\\\""),
        _ => false,
    };
    let pieces = Some(trimmed).filter(|_| is_piece).and_then(pieces);
    match pieces {
        Some((pattern, rest)) if matches!(rest.trim(), "" | ";") => Ok(pattern),
        _ => Ok(unescaped(text)),
    }
}

/// The directives of a configuration, each with the name of its pattern. Where all of them are commented out, these count.
pub(crate) fn directives(text: &str) -> Vec<(String, String)> {
    let found = uncommented(text);
    if !found.is_empty() {
        return found;
    }
    let bare = |line: &str| line.trim_start().trim_start_matches('#').to_string();
    let lines: Vec<String> = text.lines().map(bare).collect();
    uncommented(&lines.join("\n"))
}

fn uncommented(text: &str) -> Vec<(String, String)> {
    let (mut found, mut at) = (Vec::new(), 0);
    // Names of directives are ASCII, and small letters are as long as capital ones.
    let small = text.to_ascii_lowercase();
    let next = |at: usize| {
        let word = |word: &str| small[at..].find(word).map(|found| (at + found, word.len()));
        [word("log_format"), word("logformat")]
            .into_iter()
            .flatten()
            .min()
    };
    while let Some((start, len)) = next(at) {
        at = start + len;
        let line = &text[text[..start].rfind('\n').map_or(0, |end| end + 1)..start];
        let is_first = line.trim_end().is_empty() || line.trim_end().ends_with([';', '{']);
        let rest = &text[at..];
        if line.contains('#') || !is_first || !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let directive = match len {
            10 => nginx(rest),
            _ => apache(rest),
        };
        if let Some((name, pattern, rest)) = directive {
            at = text.len() - rest.len();
            found.push((name, pattern));
        }
    }
    found
}

/// The name, the pattern and what follows.
type Directive<'a> = (String, String, &'a str);

fn nginx(text: &str) -> Option<Directive<'_>> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace)?;
    let (name, mut rest) = (&text[..end], text[end..].trim_start());
    if rest.starts_with("escape=") {
        rest = rest[rest.find(char::is_whitespace)?..].trim_start();
    }
    let (pattern, rest) = pieces(rest)?;
    Some((name.into(), pattern, rest))
}

fn apache(text: &str) -> Option<Directive<'_>> {
    let text = text.trim_start_matches([' ', '\t', '\\', '\r', '\n']);
    let (pattern, rest) = quoted(text)?;
    let end = rest.find('\n').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    Some((
        name.trim().into(),
        unescaped(&pattern.replace("\\\n", "")),
        rest,
    ))
}

/// Quoted pieces side by side as one text, and what follows.
fn pieces(mut text: &str) -> Option<(String, &str)> {
    let mut pattern = String::new();
    while let Some((piece, rest)) = quoted(text) {
        pattern += &unescaped(piece);
        text = rest.trim_start();
        while text.starts_with('#') {
            text = text.find('\n').map_or("", |end| text[end..].trim_start());
        }
    }
    (!pattern.is_empty()).then_some((pattern, text))
}

/// What stands in the quotes that a text begins with, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let mut is_escaped = false;
    let end = text[1..].find(|letter| {
        let is_end = letter == quote && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    Some((&text[1..1 + end], &text[2 + end..]))
}

/// Without the backslashes of a configuration.
fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        let meant = match (letter, letters.peek()) {
            ('\\', Some(&next @ ('"' | '\'' | '\\'))) => next,
            ('\\', Some('t')) => '\t',
            _ => {
                plain.push(letter);
                continue;
            }
        };
        plain.push(meant);
        letters.next();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pastes() {
        for (text, want) in [
            ("%h \\\"%r\\\"\\t%s", "%h \"%r\"\t%s"),
            ("\"%r\" %s", "\"%r\" %s"),
            ("'$a ' '\"$b\"'", "$a \"$b\""),
            ("'$a '\n   '\"$b\"';", "$a \"$b\""),
            ("log_format main '$a '\n '\"$b\"';", "$a \"$b\""),
            ("#log_format  main  '$a '\n#   '\"$b\"';", "$a \"$b\""),
            (
                "log_format j escape=none \"$a \\\"$b\\\"\" # c\n '$c';",
                "$a \"$b\"$c",
            ),
            ("LogFormat \"%h \\\"%r\\\"\" combined\n", "%h \"%r\""),
            ("LogFormat '%h \"%r\"'", "%h \"%r\""),
            ("\"%h \\\"%r\\\"\" combined", "\"%h \"%r\"\" combined"),
            ("\"%h \\\"%r\\\"\"", "%h \"%r\""),
            ("LogFormat \"%h \\\n%s\" two", "%h %s"),
        ] {
            assert_eq!(pattern(text).unwrap(), want, "{text}");
        }
        let both = "http { log_format a '$a';\n  log_format b '$b';\n # log_format c '$c';\n}";
        let pair = |name: &str, text: &str| (name.to_string(), text.to_string());
        assert_eq!(directives(both), [pair("a", "$a"), pair("b", "$b")]);
        assert!(pattern(both).unwrap_err().ends_with(": a, b"));
    }
}
