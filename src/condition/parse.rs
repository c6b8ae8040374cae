//! Reads a condition: a tree as it is written.
//!
//! ```text
//! any  = all ("or" all)*
//! all  = one ("and" one)*
//! one  = "not" one | "(" any ")" | test
//! test = value compare literal | literal compare value | value ("~" | "!~") text
//!      | value ["not"] "in" "(" literal ("," literal)* ")" | value "is" ["not"] "null"
//! value = column ["+" column] ["@" unit]
//! ```

use ringfold_read::{Result, Setting};

use crate::condition::fault::Fault;
use crate::condition::literal::{Comparison, Literal};
use crate::condition::pattern::Pattern;
use crate::condition::token::{Lexeme, Token, tokens};
use crate::format::time::Unit;
use crate::plan::columns::Columns;
use crate::refusal::HAVING;

/// A condition that was read. Its columns are still to be found.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(super) setting: Setting,
    pub(super) text: String,
    pub(super) root: Node,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Term),
}

/// A test as it is written.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) column: Columns,
    /// The column of the time of day, where the first has the date.
    pub(super) clock: Option<Columns>,
    /// What times are cut down to.
    pub(super) unit: Option<Unit>,
    /// Where the column stands in the text.
    pub(super) at: usize,
    /// Where a literal stands.
    pub(super) literal_at: usize,
    pub(super) predicate: Predicate,
}

#[derive(Debug, Clone)]
pub(super) enum Predicate {
    Null,
    Compare(Comparison, Literal),
    Among(Vec<Literal>),
    Matches(Pattern),
}

impl Expression {
    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Calls `see` with each column, as often as it is there.
    pub(crate) fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        self.root.each_column(see);
    }

    /// Reads a text that `setting` was given.
    ///
    /// # Errors
    /// It can't be understood.
    pub(crate) fn parse(text: &str, setting: Setting) -> Result<Expression> {
        let root = tokens(text).and_then(|tokens| {
            let mut parser = Parser::new(tokens);
            parser.is_of_answer = setting == HAVING;
            parser.whole()
        });
        let root = root.map_err(|fault| fault.in_text(setting, text))?;
        let text = text.into();
        Ok(Expression {
            setting,
            text,
            root,
        })
    }
}

impl Node {
    fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        match self {
            Node::All(nodes) | Node::Any(nodes) => {
                nodes.iter().for_each(|node| node.each_column(see));
            }
            Node::Not(node) => node.each_column(see),
            Node::Test(written) => std::iter::once(&written.column)
                .chain(&written.clock)
                .for_each(see),
        }
    }
}

/// How deep parentheses and "not" may stand in each other: reading and deciding recurse.
const DEEPEST: usize = 100;

struct Parser {
    /// In reverse: the next one is the last. The end stays.
    tokens: Vec<Lexeme>,
    depth: usize,
    /// It is about rows of an answer, whose keys join two columns before.
    is_of_answer: bool,
}

impl Parser {
    fn new(mut tokens: Vec<Lexeme>) -> Parser {
        tokens.reverse();
        Parser {
            tokens,
            depth: 0,
            is_of_answer: false,
        }
    }

    fn peek(&self) -> &Lexeme {
        self.tokens.last().expect("the end stays")
    }

    fn next(&mut self) -> Lexeme {
        match self.tokens.len() {
            1 => self.peek().clone(),
            _ => self.tokens.pop().expect("there are more"),
        }
    }

    /// Whether the next token is this one, which is taken then.
    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek().token == *token;
        if is_next {
            self.next();
        }
        is_next
    }

    fn whole(mut self) -> Result<Node, Fault> {
        if self.peek().token == Token::End {
            return Err(Fault::new(self.peek().at, "a condition is missing"));
        }
        let root = self.any()?;
        match self.next() {
            Lexeme {
                token: Token::End, ..
            } => Ok(root),
            Lexeme {
                token: Token::Close,
                at,
            } => Err(Fault::new(at, "no parenthesis is open here")),
            Lexeme { at, .. } => Err(Fault::new(at, "`and` or `or` is missing")),
        }
    }

    fn any(&mut self) -> Result<Node, Fault> {
        let mut nodes = vec![self.all()?];
        while self.take(&Token::Or) {
            nodes.push(self.all()?);
        }
        Ok(joined(nodes, Node::Any))
    }

    fn all(&mut self) -> Result<Node, Fault> {
        let mut nodes = vec![self.one()?];
        while self.take(&Token::And) {
            nodes.push(self.one()?);
        }
        Ok(joined(nodes, Node::All))
    }

    fn one(&mut self) -> Result<Node, Fault> {
        let at = self.peek().at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Fault::new(at, "the condition is nested too deeply"));
        }
        let node = if self.take(&Token::Not) {
            Node::Not(Box::new(self.one()?))
        } else if self.take(&Token::Open) {
            let inner = self.any()?;
            let Lexeme { token, at: end } = self.next();
            match token {
                Token::Close => inner,
                Token::End => {
                    return Err(Fault::new(
                        at,
                        "the parenthesis that opens here is never closed",
                    ));
                }
                _ => return Err(Fault::new(end, "`and`, `or` or `)` is missing")),
            }
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, Fault> {
        let Lexeme { token, at } = self.next();
        let column = match token {
            Token::Literal(literal) => return self.turned(literal, at),
            token => column(token, at)?,
        };
        let (clock, unit) = self.time()?;
        let Lexeme {
            token,
            at: operator,
        } = self.next();
        let literal_at = self.peek().at;
        let (is_negated, predicate) = match token {
            Token::Compare(comparison) => {
                let literal = literal(self.next())?;
                (false, Predicate::Compare(comparison, literal))
            }
            Token::Match { wanted } => (!wanted, Predicate::Matches(self.pattern()?)),
            Token::In => (false, Predicate::Among(self.list()?)),
            Token::Not if self.take(&Token::In) => (true, Predicate::Among(self.list()?)),
            Token::Not => return Err(Fault::new(self.peek().at, "`in` is missing")),
            Token::Is => {
                let is_negated = self.take(&Token::Not);
                if !self.take(&Token::Null) {
                    return Err(Fault::new(self.peek().at, "`null` is missing"));
                }
                (is_negated, Predicate::Null)
            }
            token => {
                let mut why = "an operator is missing: =, !=, <, <=, >, >=, ~, !~, in, or is null"
                    .to_string();
                if let (Columns::Name(first), Token::Name(word)) = (&column, token) {
                    let name = self.name_from(String::from_utf8_lossy(first).into_owned(), word);
                    why = format!("{why}; a name with blanks stands in double quotes, \"{name}\"");
                }
                return Err(Fault::new(operator, why));
            }
        };
        let test = Node::Test(Term {
            column,
            clock,
            unit,
            at,
            literal_at,
            predicate,
        });
        Ok(match is_negated {
            true => Node::Not(Box::new(test)),
            false => test,
        })
    }

    /// What makes a time of a column: that of its time of day, and a unit.
    fn time(&mut self) -> Result<(Option<Columns>, Option<Unit>), Fault> {
        let plus = self.peek().at;
        let clock = match self.take(&Token::Plus) {
            true if self.is_of_answer => {
                return Err(Fault::new(plus, "columns of an answer aren't joined"));
            }
            true => {
                let Lexeme { token, at } = self.next();
                Some(column(token, at)?)
            }
            false => None,
        };
        let Token::Unit(name) = &self.peek().token else {
            return Ok((clock, None));
        };
        let unit = Unit::named(name);
        let unit = unit.ok_or_else(|| {
            let why = format!(
                "`{name}` is no unit of time; these are {}. A name with `@` stands in double quotes",
                Unit::NAMES
            );
            Fault::new(self.peek().at, why)
        })?;
        self.next();
        Ok((clock, Some(unit)))
    }

    /// A name of several words, of which the first two were taken.
    fn name_from(&mut self, first: String, second: String) -> String {
        let mut words = vec![first, second];
        while let Token::Name(word) = &self.peek().token {
            words.push(word.clone());
            self.next();
        }
        words.join(" ")
    }

    /// A comparison that begins with its literal.
    fn turned(&mut self, literal: Literal, literal_at: usize) -> Result<Node, Fault> {
        let Lexeme { token, at } = self.next();
        let Token::Compare(comparison) = token else {
            let why = "a value stands in front of =, !=, <, <=, > or >= only";
            return Err(Fault::new(at, why));
        };
        let Lexeme { token, at } = self.next();
        let column = column(token, at)?;
        let (clock, unit) = self.time()?;
        Ok(Node::Test(Term {
            column,
            clock,
            unit,
            at,
            literal_at,
            predicate: Predicate::Compare(comparison.turned(), literal),
        }))
    }

    fn list(&mut self) -> Result<Vec<Literal>, Fault> {
        let at = self.peek().at;
        if !self.take(&Token::Open) {
            return Err(Fault::new(at, "`(` is missing"));
        }
        let mut literals = vec![literal(self.next())?];
        loop {
            let Lexeme { token, at: end } = self.next();
            match token {
                Token::Comma => literals.push(literal(self.next())?),
                Token::Close => return Ok(literals),
                Token::End => {
                    let why = "the parenthesis that opens here is never closed";
                    return Err(Fault::new(at, why));
                }
                _ => return Err(Fault::new(end, "`,` or `)` is missing")),
            }
        }
    }

    fn pattern(&mut self) -> Result<Pattern, Fault> {
        let Lexeme { token, at } = self.next();
        let Token::Literal(Literal::Text(text)) = token else {
            let why = "a regular expression in single quotes is missing";
            return Err(Fault::new(at, why));
        };
        let text = String::from_utf8(text).expect("a part of a text");
        Pattern::new(&text)
            .map_err(|why| Fault::new(at, format!("not a regular expression: {why}")))
    }
}

fn joined(mut nodes: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => join(nodes),
    }
}

fn column(token: Token, at: usize) -> Result<Columns, Fault> {
    let why = match token {
        Token::Name(name) | Token::Quoted(name) => return Ok(Columns::Name(name.into_bytes())),
        Token::Column(number) => return Ok(Columns::Number(number)),
        Token::Literal(_) => "a column is missing: its number is written $3",
        Token::Compare(_) | Token::Match { .. } | Token::In | Token::Is => {
            "a column is missing in front of this; in double quotes a shell takes $3 for its own"
        }
        Token::Null => "`null` is no column: one of this name stands in double quotes",
        _ => "a column is missing",
    };
    Err(Fault::new(at, why))
}

fn literal(Lexeme { token, at }: Lexeme) -> Result<Literal, Fault> {
    let why = match token {
        Token::Literal(literal) => return Ok(literal),
        Token::Name(name) | Token::Quoted(name) => format!(
            "`{name}` is a column, and two columns can't be compared: a text stands in single quotes, '{name}'"
        ),
        Token::Column(_) => "two columns can't be compared".into(),
        Token::Null => "nothing equals null: write `is null`".into(),
        _ => "a number, or a text in single quotes, is missing".into(),
    };
    Err(Fault::new(at, why))
}
