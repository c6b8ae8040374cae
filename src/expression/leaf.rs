//! Aggregates in a value that is computed of them: leaves, which are columns that are called as they are written, and short
//! forms of values of several.

use crate::expression::fault::Fault;
use crate::expression::parse::{MISSING, NOT_CLOSED, Parser};
use crate::expression::token::Token;
use crate::expression::written::{Form, Scalar};
use crate::plan::columns::Columns;

/// Which aggregates there are.
pub(crate) struct Aggregates {
    /// Whether one has such a name.
    pub(crate) is_one: fn(&str) -> bool,
    /// What all of them are called.
    pub(crate) names: fn() -> Vec<&'static str>,
    /// What is short for a value of several.
    pub(crate) composed: fn(&str) -> Option<&'static Composed>,
}

/// A name with arguments that is short for a value of aggregates.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) name: &'static str,
    /// Other names, as other programs have them.
    pub(crate) aliases: &'static [&'static str],
    /// How it is written.
    pub(crate) usage: &'static str,
    /// How many arguments it has: one or two.
    pub(crate) arguments: usize,
    /// What it is short for: of the arguments `{x}` and `{y}`, each aggregate before its `{where}`.
    pub(crate) of: &'static str,
}

impl Composed {
    /// What it is short for.
    fn text(&self, arguments: &[&str], filter: &str) -> String {
        let (mut text, mut rest) = (String::new(), self.of);
        while let Some((before, (name, after))) = rest
            .split_once('{')
            .and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            text.push_str(before);
            match name {
                "where" => text.push_str(filter),
                name => {
                    let argument = arguments[usize::from(name == "y")];
                    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte);
                    let is_alone = before.ends_with('(') && after.starts_with(')');
                    match is_alone || argument.bytes().all(is_word) {
                        true => text.push_str(argument),
                        false => text.extend(["(", argument, ")"]),
                    }
                }
            }
            rest = after;
        }
        text + rest
    }
}

impl Parser<'_> {
    /// An aggregate, or what is composed of some, if a name that was taken is one's.
    pub(super) fn aggregate(
        &mut self,
        text: &str,
        aggregates: &'static Aggregates,
        name: &str,
        at: usize,
    ) -> Result<Option<Scalar>, Fault> {
        let composed = (aggregates.composed)(name);
        if composed.is_none() && !(aggregates.is_one)(name) {
            return Ok(None);
        }
        let arguments = self.arguments()?;
        let filter_at = self.peek().at;
        if self.is_word("filter") {
            self.next();
            self.arguments()?;
        }
        let end = self.end;
        let Some(composed) = composed else {
            let leaf = &text[at..end];
            if !self.leaves.iter().any(|known| known == leaf) {
                self.leaves.push(leaf.into());
            }
            let form = Form::Column(Columns::from(leaf));
            return Ok(Some(Scalar { at, end, form }));
        };
        if arguments.len() != composed.arguments {
            return Err(Fault::new(at, format!("it is written {}", composed.usage)));
        }
        for (from, to) in &arguments {
            let mut parser = Parser::new(&text[*from..*to])?;
            let read = parser.any(MISSING).and_then(|_| parser.end());
            read.map_err(|fault| Fault::new(from + fault.at, fault.why))?;
        }
        let arguments: Vec<&str> = (arguments.iter())
            .map(|(from, to)| text[*from..*to].trim())
            .collect();
        let filter = text.get(filter_at..end).unwrap_or_default();
        let filter = if filter.is_empty() {
            String::new()
        } else {
            format!(" {filter}")
        };
        let text = composed.text(&arguments, &filter);
        let mut parser = Parser::new(&text)?;
        parser.aggregates = Some((&text, aggregates));
        let value = parser.value();
        let mut value = value.map_err(|fault| Fault::new(at, fault.why))?;
        for leaf in parser.leaves {
            if !self.leaves.contains(&leaf) {
                self.leaves.push(leaf);
            }
        }
        value.set_place(at, end);
        Ok(Some(value))
    }

    /// Where the arguments begin and end that stand between the next parenthesis and the one that closes it.
    fn arguments(&mut self) -> Result<Vec<(usize, usize)>, Fault> {
        let (at, mut depth) = (self.peek().at, 0);
        let (mut arguments, mut from) = (Vec::new(), self.peek().end);
        loop {
            let next = self.next();
            match next.token {
                Token::Open => depth += 1,
                Token::Close => depth -= 1,
                Token::End => return Err(Fault::new(at, NOT_CLOSED)),
                Token::Comma if depth == 1 => {
                    arguments.push((from, next.at));
                    from = next.end;
                }
                _ => {}
            }
            if depth == 0 {
                arguments.push((from, next.at));
                return Ok(arguments);
            }
        }
    }
}

impl Scalar {
    /// Lets it stand where its short form does.
    fn set_place(&mut self, at: usize, end: usize) {
        (self.at, self.end) = (at, end);
        match &mut self.form {
            Form::Negative(inner) => inner.set_place(at, end),
            Form::Operation(_, sides) => sides.iter_mut().for_each(|side| side.set_place(at, end)),
            Form::Call(_, arguments) => arguments.iter_mut().for_each(|one| one.set_place(at, end)),
            // Short forms have no others.
            _ => {}
        }
    }
}
