//! Cuts the text of an expression into tokens.

use crate::decimal::number::{Grammar, Number};
use crate::expression::fault::Fault;
use crate::expression::formula::Operator;
use crate::expression::literal::{Comparison, Literal};
use crate::plan::columns::Columns;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name without quotes.
    Name(String),
    /// A name in double quotes.
    Quoted(String),
    /// `$3`.
    Column(usize),
    Literal(Literal),
    Compare(Comparison),
    /// `~`, or without `wanted` `!~`.
    Match {
        wanted: bool,
    },
    /// The name of a unit after an `@`.
    Unit(String),
    /// A plus also stands between a date's column and that of its time of day.
    Operator(Operator),
    Open,
    Close,
    Comma,
    And,
    Or,
    Not,
    In,
    Is,
    Null,
    End,
}

impl Token {
    /// Whether a value ends with it: a sign after it is an operator.
    fn ends_value(&self) -> bool {
        matches!(
            self,
            Token::Name(_)
                | Token::Quoted(_)
                | Token::Column(_)
                | Token::Literal(_)
                | Token::Unit(_)
                | Token::Close
                | Token::Null
        )
    }
}

/// A token, the byte where it begins and the one after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// What is missing where a literal must stand.
pub(super) const NO_VALUE: &str = "a number, or a text in single quotes, is missing";

impl Token {
    /// The column that it names.
    ///
    /// # Errors
    /// It names none.
    pub(super) fn column(self, at: usize) -> Result<Columns, Fault> {
        let why = match self {
            Token::Name(name) | Token::Quoted(name) => return Ok(Columns::Name(name.into_bytes())),
            Token::Column(number) => return Ok(Columns::Number(number)),
            Token::Compare(_) | Token::Match { .. } | Token::In | Token::Is => {
                "a column is missing in front of this; in double quotes a shell takes $3 for its own"
            }
            Token::Null => "`null` is no column: one of this name stands in double quotes",
            _ => "a column is missing",
        };
        Err(Fault::new(at, why))
    }
}

impl Lexeme {
    /// The literal that it is.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn literal(self) -> Result<Literal, Fault> {
        let why = match self.token {
            Token::Literal(literal) => return Ok(literal),
            Token::Name(name) | Token::Quoted(name) => format!(
                "`{name}` is a column, and lists have none: a text stands in single quotes, '{name}'"
            ),
            Token::Column(_) => "a list has no columns".into(),
            Token::Null => "nothing equals null: write `is null`".into(),
            _ => NO_VALUE.into(),
        };
        Err(Fault::new(self.at, why))
    }
}

/// The tokens of a text; the last one is its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Lexeme>, Fault> {
    let (mut tokens, mut at) = (Vec::<Lexeme>::new(), 0);
    loop {
        at = text.len() - text[at..].trim_start().len();
        if at == text.len() {
            let token = Token::End;
            tokens.push(Lexeme { token, at, end: at });
            return Ok(tokens);
        }
        let ends_value = tokens.last().is_some_and(|last| last.token.ends_value());
        let (token, len) = first(&text[at..], ends_value).map_err(|why| Fault::new(at, why))?;
        let end = at + len;
        tokens.push(Lexeme { token, at, end });
        at = end;
    }
}

const OPERATORS: [(&str, Token); 17] = [
    // Those of two bytes stand before those that they begin with.
    ("==", Token::Compare(Comparison::Equal)),
    ("!=", Token::Compare(Comparison::Unequal)),
    ("<>", Token::Compare(Comparison::Unequal)),
    ("<=", Token::Compare(Comparison::AtMost)),
    (">=", Token::Compare(Comparison::AtLeast)),
    ("!~", Token::Match { wanted: false }),
    ("||", Token::Operator(Operator::Join)),
    ("=", Token::Compare(Comparison::Equal)),
    ("<", Token::Compare(Comparison::Less)),
    (">", Token::Compare(Comparison::Greater)),
    ("~", Token::Match { wanted: true }),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
    ("*", Token::Operator(Operator::Times)),
    ("/", Token::Operator(Operator::Over)),
    ("%", Token::Operator(Operator::Modulo)),
];

const WORDS: [(&str, Token); 6] = [
    ("and", Token::And),
    ("or", Token::Or),
    ("not", Token::Not),
    ("in", Token::In),
    ("is", Token::Is),
    ("null", Token::Null),
];

/// The token that a text begins with, and its length. A sign before a number belongs to it, unless it stands after a value.
fn first(text: &str, ends_value: bool) -> Result<(Token, usize), String> {
    let known = OPERATORS.iter().find(|(sign, _)| text.starts_with(sign));
    if let Some((sign, token)) = known {
        return Ok((token.clone(), sign.len()));
    }
    let mut letters = text.chars();
    let (letter, next) = (letters.next(), letters.next());
    let letter = letter.expect("a text that isn't empty");
    match letter {
        '\'' => {
            let (text, len) = quoted(text, '\'')?;
            Ok((Token::Literal(Literal::Text(text.into_bytes())), len))
        }
        '"' => {
            let (name, len) = quoted(text, '"')?;
            Ok((Token::Quoted(name), len))
        }
        '$' => {
            let len = run(&text[1..], |letter| letter.is_ascii_digit());
            match &text[1..1 + len] {
                "" => Err("the number of a column is missing, as in $3".into()),
                digits => Ok((Token::Column(digits.parse().unwrap_or(usize::MAX)), 1 + len)),
            }
        }
        '0'..='9' | '+' | '-' | '.'
            if letter.is_ascii_digit()
                || (letter == '.' || !ends_value)
                    && next.is_some_and(|next| next.is_ascii_digit() || next == '.') =>
        {
            let digits = |text: &str| run(text, |letter| letter.is_alphanumeric() || letter == '.');
            let mut len = 1 + digits(&text[1..]);
            // The sign of an exponent.
            if text[..len].ends_with(['e', 'E']) && text[len..].starts_with(['-', '+']) {
                len += 1 + digits(&text[len + 1..]);
            }
            let number = Number::read_as(&text.as_bytes()[..len], Grammar::LONG)?;
            Ok((Token::Literal(Literal::Number(number)), len))
        }
        '+' => Ok((Token::Operator(Operator::Plus), 1)),
        '-' => Ok((Token::Operator(Operator::Minus), 1)),
        '@' => {
            let mut len = 1 + run(&text[1..], char::is_alphanumeric);
            if text[len..].starts_with('[') {
                let zone = text[len..].find(']');
                len += 1 + zone.ok_or("the bracket that opens after `@` is never closed")?;
            }
            Ok((Token::Unit(text[1..len].into()), len))
        }
        letter if letter.is_alphabetic() || letter == '_' => {
            let of_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
            let len = run(text, of_name);
            let name = &text[..len];
            let word = WORDS
                .iter()
                .find(|(word, _)| name.eq_ignore_ascii_case(word));
            let token = word.map_or_else(|| Token::Name(name.into()), |(_, token)| token.clone());
            Ok((token, len))
        }
        _ => Err(strange(letter)),
    }
}

/// How many bytes at the start of a text are letters that `belongs` takes.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

/// What stands between the quote that a text begins with and the one that closes it, and how long all that is. A doubled
/// quote stands for one.
fn quoted(text: &str, quote: char) -> Result<(String, usize), String> {
    let mut content = String::new();
    let mut at = 1;
    while let Some(len) = text[at..].find(quote) {
        content += &text[at..at + len];
        at += len + 1;
        if !text[at..].starts_with(quote) {
            return Ok((content, at));
        }
        content.push(quote);
        at += 1;
    }
    Err("the quote that opens here is never closed".into())
}

/// What is wrong with a letter that begins no token.
fn strange(letter: char) -> String {
    match letter {
        '&' => "`&` means nothing here: write `and`".into(),
        '|' => "`|` means nothing here: write `or`, or `||` between texts".into(),
        '!' => "`!` means nothing here: write `not`".into(),
        _ => format!(
            "`{letter}` means nothing here: a name that holds it stands in double quotes, a text in single ones"
        ),
    }
}
