//! Reads an expression: a tree as it is written.
//!
//! ```text
//! any      = all ("or" all)*
//! all      = one ("and" one)*
//! one      = "not" one | compared
//! compared = sum [compare sum | ("~" | "!~") text | ["not"] "like" text | ["not"] "between" sum "and" sum
//!          | ["not"] "in" "(" literal ("," literal)* ")" | "is" ["not"] "null"]
//! sum      = product (("+" | "-" | "||") product)*
//! product  = factor (("*" | "/" | "%") factor)*
//! factor   = "-" factor | column ["@" unit ["[" zone "]"]] | literal | "null" | "(" any ")" | function "(" [any ("," any)*] ")"
//!          | "case" ("when" any "then" any)+ ["else" any] "end"
//! ```

use crate::expression::fault::Fault;
use crate::expression::formula::Operator;
use crate::expression::function;
use crate::expression::leaf::Aggregates;
use crate::expression::literal::{Comparison, Literal};
use crate::expression::pattern::Pattern;
use crate::expression::token::{Lexeme, NO_VALUE, Token, tokens};
use crate::expression::written::{Form, Node, Parsed, Predicate, Scalar, Term, WrittenUnit};
use crate::format::time::Unit;
use crate::plan::columns::Columns;

/// How deep parentheses, functions and "not" may stand in each other, and how many operators there may be: reading and
/// deciding recurse.
const DEEPEST: usize = 100;
const OPERATORS_MAX: usize = 200;

pub(super) struct Parser<'a> {
    /// The text, and which aggregates there are, if they are among its values.
    pub(super) aggregates: Option<(&'a str, &'static Aggregates)>,
    /// Those that were read.
    pub(super) leaves: Vec<String>,
    /// In reverse: the next one is the last. The end stays.
    tokens: Vec<Lexeme>,
    pub(super) depth: usize,
    operators: usize,
    /// Where the last token ended.
    pub(super) end: usize,
    /// Where the last `||` stands.
    join: Option<usize>,
}

/// Where a value should be.
pub(super) const MISSING: &str = "a value is missing";
pub(super) const NOT_CLOSED: &str = "the parenthesis that opens here is never closed";

impl<'a> Parser<'a> {
    pub(super) fn new(text: &str) -> Result<Parser<'a>, Fault> {
        let mut tokens = tokens(text)?;
        tokens.reverse();
        Ok(Parser {
            aggregates: None,
            leaves: Vec::new(),
            tokens,
            depth: 0,
            operators: 0,
            end: 0,
            join: None,
        })
    }

    pub(super) fn peek(&self) -> &Lexeme {
        self.tokens.last().expect("the end stays")
    }

    pub(super) fn next(&mut self) -> Lexeme {
        self.end = self.peek().end;
        match self.tokens.len() {
            1 => self.peek().clone(),
            _ => self.tokens.pop().expect("there are more"),
        }
    }

    /// Whether the next token is this one, which is taken then.
    pub(super) fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek().token == *token;
        if is_next {
            self.next();
        }
        is_next
    }

    /// Whether the next token is this word, which is no name where an operator may stand.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.peek().token, Token::Name(name) if name.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.next();
        }
        is_next
    }

    /// One level deeper, as long as there may be one.
    pub(super) fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(Fault::new(
                self.peek().at,
                "the condition is nested too deeply",
            )),
            false => Ok(()),
        }
    }

    pub(super) fn end(&mut self) -> Result<(), Fault> {
        let Lexeme { token, at, .. } = self.next();
        match (token, self.join) {
            (Token::End, _) => Ok(()),
            (Token::Close, _) => Err(Fault::new(at, "no parenthesis is open here")),
            (Token::Compare(_), Some(join)) => {
                Err(Fault::new(join, "`||` joins texts: write `or`"))
            }
            _ => Err(Fault::new(at, "`and` or `or` is missing")),
        }
    }

    /// `missing` says what is where there is nothing.
    pub(super) fn any(&mut self, missing: &str) -> Result<Parsed, Fault> {
        if self.peek().token == Token::End {
            return Err(Fault::new(self.peek().at, missing));
        }
        self.joined(&Token::Or, Parser::all, Node::Any)
    }

    fn all(&mut self) -> Result<Parsed, Fault> {
        self.joined(&Token::And, Parser::one, Node::All)
    }

    /// Parts with a word between them, which are conditions if there are several.
    fn joined(
        &mut self,
        between: &Token,
        part: fn(&mut Parser<'a>) -> Result<Parsed, Fault>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Parsed, Fault> {
        let first = part(self)?;
        if self.peek().token != *between {
            return Ok(first);
        }
        let mut nodes = vec![self.node(first)?];
        while self.take(between) {
            let next = part(self)?;
            nodes.push(self.node(next)?);
        }
        Ok(Parsed::Node(join(nodes)))
    }

    pub(super) fn condition(&mut self) -> Result<Node, Fault> {
        let condition = self.any("a condition is missing")?;
        self.node(condition)
    }

    /// A value, also of a condition.
    pub(super) fn value(&mut self) -> Result<Scalar, Fault> {
        let at = self.peek().at;
        let value = self.any(MISSING)?;
        Ok(self.scalar(value, at))
    }

    fn one(&mut self) -> Result<Parsed, Fault> {
        self.deeper()?;
        let one = match self.take(&Token::Not) {
            true => {
                let inner = self.one()?;
                Parsed::Node(Node::Not(self.node(inner)?.into()))
            }
            false => self.compared()?,
        };
        self.depth -= 1;
        Ok(one)
    }

    /// What is a condition, of a value that is a truth as well.
    pub(super) fn node(&mut self, parsed: Parsed) -> Result<Node, Fault> {
        let scalar = match parsed {
            Parsed::Node(node) => return Ok(node),
            Parsed::Scalar(scalar) => scalar,
        };
        match &scalar.form {
            Form::Call(function, _) if function.is_truth() => Ok(Node::Test(Box::new(Term {
                literal_at: scalar.at,
                subject: scalar,
                predicate: Predicate::True,
            }))),
            Form::Literal(_) => Err(self.value_in_front()),
            _ => Err(self.no_operator(&scalar)),
        }
    }

    fn value_in_front(&self) -> Fault {
        let why = "a value stands in front of =, !=, <, <=, > or >= only";
        Fault::new(self.peek().at, why)
    }

    /// What is wrong where a value has no operator.
    fn no_operator(&mut self, scalar: &Scalar) -> Fault {
        let at = self.peek().at;
        let mut why =
            "an operator is missing: =, !=, <, <=, >, >=, ~, !~, in, between, like, or is null"
                .to_string();
        let second = match &self.peek().token {
            Token::Name(second) => Some(second.clone()),
            _ => None,
        };
        if let (Form::Column(Columns::Name(first)), Some(second)) = (&scalar.form, second) {
            self.next();
            let name = self.name_from(String::from_utf8_lossy(first).into_owned(), second);
            why = format!("{why}; a name with blanks stands in double quotes, \"{name}\"");
        }
        Fault::new(at, why)
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

    fn compared(&mut self) -> Result<Parsed, Fault> {
        let subject = match self.sum()? {
            Parsed::Scalar(scalar) => scalar,
            node => return Ok(node),
        };
        let is_literal = matches!(subject.form, Form::Literal(_));
        let is_negated = self.peek().token == Token::Not;
        let is_word = self.is_word("between") || self.is_word("like");
        match self.peek().token {
            Token::Compare(comparison) => {
                self.next();
                return self.comparison(subject, comparison).map(Parsed::Node);
            }
            Token::Match { .. } | Token::In | Token::Not | Token::Is if is_literal => {
                return Err(self.value_in_front());
            }
            Token::Match { .. } | Token::In | Token::Not | Token::Is => {}
            _ if is_word && !is_literal => {}
            _ => return Ok(Parsed::Scalar(subject)),
        }
        if is_negated {
            self.next();
        }
        let literal_at = self
            .tokens
            .iter()
            .rev()
            .nth(1)
            .map_or(self.end, |next| next.at);
        let test = |predicate: Predicate| {
            Node::Test(Box::new(Term {
                subject: subject.clone(),
                literal_at,
                predicate,
            }))
        };
        let wants_in = "`in`, `between` or `like` is missing";
        let Lexeme { token, at, .. } = self.next();
        let (is_negated, node) = match token {
            Token::Match { wanted } if !is_negated => {
                (!wanted, test(Predicate::Matches(self.pattern()?)))
            }
            Token::In => (is_negated, test(Predicate::Among(self.list()?))),
            Token::Is if !is_negated => {
                let is_negated = self.take(&Token::Not);
                if !self.take(&Token::Null) {
                    return Err(Fault::new(self.peek().at, "`null` is missing"));
                }
                (is_negated, test(Predicate::Null))
            }
            Token::Name(word) if word.eq_ignore_ascii_case("like") => {
                (is_negated, test(Predicate::Matches(self.like()?)))
            }
            Token::Name(word) if word.eq_ignore_ascii_case("between") => {
                let low = self.side()?;
                if !self.take(&Token::And) {
                    return Err(Fault::new(self.peek().at, "`and` is missing"));
                }
                let high = self.side()?;
                let least = self.compared_with(subject.clone(), Comparison::AtLeast, low)?;
                let most = self.compared_with(subject.clone(), Comparison::AtMost, high)?;
                (is_negated, Node::All(vec![least, most]))
            }
            _ => return Err(Fault::new(at, wants_in)),
        };
        Ok(Parsed::Node(match is_negated {
            true => Node::Not(Box::new(node)),
            false => node,
        }))
    }

    fn comparison(&mut self, subject: Scalar, comparison: Comparison) -> Result<Node, Fault> {
        let other = self.side()?;
        self.compared_with(subject, comparison, other)
    }

    /// One side of a comparison.
    fn side(&mut self) -> Result<Scalar, Fault> {
        let Lexeme { token, at, .. } = self.peek();
        match token {
            Token::End | Token::Close | Token::Comma | Token::And | Token::Or => {
                return Err(Fault::new(*at, NO_VALUE));
            }
            Token::Null => {
                return Err(Fault::new(*at, "nothing equals null: write `is null`"));
            }
            _ => {}
        }
        let at = *at;
        match self.sum()? {
            Parsed::Scalar(scalar) => Ok(scalar),
            Parsed::Node(_) => Err(Fault::new(at, "a condition can't be compared")),
        }
    }

    fn compared_with(
        &mut self,
        subject: Scalar,
        comparison: Comparison,
        other: Scalar,
    ) -> Result<Node, Fault> {
        let (subject, other, comparison) = match subject.form {
            Form::Null => {
                let why = "`null` is no column: one of this name stands in double quotes";
                return Err(Fault::new(subject.at, why));
            }
            Form::Literal(_) => (other, subject, comparison.turned()),
            _ => (subject, other, comparison),
        };
        let literal_at = other.at;
        let predicate = match other.form {
            Form::Literal(literal) => match subject.form {
                Form::Literal(_) => {
                    let why = "a column is missing: its number is written $3";
                    return Err(Fault::new(subject.at.max(literal_at), why));
                }
                _ => Predicate::Compare(comparison, literal),
            },
            _ => Predicate::CompareWith(comparison, other),
        };
        Ok(Node::Test(Box::new(Term {
            subject,
            literal_at,
            predicate,
        })))
    }

    /// A value that stands where no condition may.
    pub(super) fn scalar(&mut self, parsed: Parsed, at: usize) -> Scalar {
        match parsed {
            Parsed::Scalar(scalar) => scalar,
            Parsed::Node(node) => Scalar {
                at,
                end: self.end,
                form: Form::Truth(node.into()),
            },
        }
    }

    /// Values with operators of one rank between them.
    fn chain(
        &mut self,
        operators: &[Operator],
        part: fn(&mut Parser<'a>) -> Result<Parsed, Fault>,
    ) -> Result<Parsed, Fault> {
        let mut all = part(self)?;
        while let Token::Operator(operator) = self.peek().token
            && operators.contains(&operator)
        {
            let operator_at = self.peek().at;
            let Parsed::Scalar(left) = all else {
                return Err(Fault::new(
                    operator_at,
                    "a condition can't be computed with",
                ));
            };
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                let why = format!("there are more than {OPERATORS_MAX} operators");
                return Err(Fault::new(operator_at, why));
            }
            if operator == Operator::Join {
                self.join = Some(operator_at);
            }
            self.next();
            let at = self.peek().at;
            let right = match part(self)? {
                Parsed::Scalar(right) => right,
                Parsed::Node(_) => {
                    return Err(Fault::new(at, "a condition can't be computed with"));
                }
            };
            all = Parsed::Scalar(Parser::operation(operator, left, right));
        }
        Ok(all)
    }

    fn sum(&mut self) -> Result<Parsed, Fault> {
        let operators = [Operator::Plus, Operator::Minus, Operator::Join];
        self.chain(&operators, Parser::product)
    }

    fn product(&mut self) -> Result<Parsed, Fault> {
        let operators = [Operator::Times, Operator::Over, Operator::Modulo];
        self.chain(&operators, Parser::factor)
    }

    fn operation(operator: Operator, left: Scalar, right: Scalar) -> Scalar {
        let (at, end) = (left.at, right.end);
        let form = match (operator, left.form, right.form) {
            // `date+time@hour`
            (Operator::Plus, Form::Column(date), Form::Time(clock, None, unit)) => {
                Form::Time(date, Some(clock), unit)
            }
            (operator, one, two) => {
                let scalar = |at: usize, end: usize, form: Form| Scalar { at, end, form };
                let sides = [
                    scalar(left.at, left.end, one),
                    scalar(right.at, right.end, two),
                ];
                Form::Operation(operator, sides.into())
            }
        };
        Scalar { at, end, form }
    }

    fn factor(&mut self) -> Result<Parsed, Fault> {
        let Lexeme { token, at, .. } = self.next();
        let form = match token {
            Token::Operator(Operator::Minus) => {
                self.deeper()?;
                let inner = self.factor()?;
                let inner = self.scalar(inner, at);
                self.depth -= 1;
                match inner.form {
                    Form::Literal(Literal::Number(number)) => {
                        Form::Literal(Literal::Number(number.negated()))
                    }
                    _ => Form::Negative(inner.into()),
                }
            }
            Token::Literal(literal) => Form::Literal(literal),
            Token::Null if !matches!(self.peek().token, Token::Compare(_)) => Form::Null,
            Token::Open => {
                let inner = self.any(MISSING)?;
                self.close(at)?;
                return Ok(match inner {
                    Parsed::Scalar(scalar) => Parsed::Scalar(Scalar {
                        at,
                        end: self.end,
                        ..scalar
                    }),
                    node => node,
                });
            }
            Token::Name(name) if self.peek().token == Token::Open => return self.call(&name, at),
            Token::Name(name) if name.eq_ignore_ascii_case("case") && self.is_word("when") => {
                self.choice(at)?
            }
            token => {
                let column = token.column(at)?;
                match self.unit()? {
                    Some(unit) => Form::Time(column, None, unit),
                    None => Form::Column(column),
                }
            }
        };
        let end = self.end;
        Ok(Parsed::Scalar(Scalar { at, end, form }))
    }

    /// What closes a parenthesis that opens at `at`.
    fn close(&mut self, at: usize) -> Result<(), Fault> {
        let Lexeme { token, at: end, .. } = self.next();
        match (token, self.join) {
            (Token::Close, _) => Ok(()),
            (Token::End, _) => Err(Fault::new(at, NOT_CLOSED)),
            (Token::Compare(_), Some(join)) => {
                Err(Fault::new(join, "`||` joins texts: write `or`"))
            }
            _ => Err(Fault::new(end, "`and`, `or` or `)` is missing")),
        }
    }

    /// The unit that a time is cut down to.
    fn unit(&mut self) -> Result<Option<WrittenUnit>, Fault> {
        let Token::Unit(name) = &self.peek().token else {
            return Ok(None);
        };
        let unit = Unit::zoned(name).map_err(|why| Fault::new(self.peek().at, why))?;
        let unit = unit.ok_or_else(|| {
            let why = format!(
                "`{name}` is no unit of time; these are {}. A name with `@` stands in double quotes",
                Unit::NAMES
            );
            Fault::new(self.peek().at, why)
        })?;
        self.next();
        Ok(Some(unit))
    }

    /// A function whose name was taken.
    fn call(&mut self, name: &str, at: usize) -> Result<Parsed, Fault> {
        if let Some((text, aggregates)) = self.aggregates
            && let Some(value) = self.aggregate(text, aggregates, name, at)?
        {
            return Ok(Parsed::Scalar(value));
        }
        let open = self.next().at;
        self.deeper()?;
        let mut arguments = Vec::new();
        while self.peek().token != Token::Close {
            if self.peek().token == Token::End {
                return Err(Fault::new(open, NOT_CLOSED));
            }
            arguments.push(self.value()?);
            if !self.take(&Token::Comma) {
                break;
            }
            if self.peek().token == Token::Close {
                return Err(Fault::new(self.peek().at, MISSING));
            }
        }
        let Lexeme { token, at: end, .. } = self.next();
        match token {
            Token::Close => {}
            Token::End => return Err(Fault::new(open, NOT_CLOSED)),
            _ => return Err(Fault::new(end, "`,` or `)` is missing")),
        }
        self.depth -= 1;
        let form = match (name.to_ascii_lowercase().as_str(), arguments.len()) {
            ("if" | "iif", 2 | 3) => {
                let mut arguments = arguments.into_iter();
                let (condition, then) = (arguments.next(), arguments.next());
                let (condition, then) = (condition.expect("two"), then.expect("two"));
                let node = self.truth(condition)?;
                let other = arguments.next().unwrap_or(Scalar {
                    at: end,
                    end,
                    form: Form::Null,
                });
                Form::Choice(vec![(node, then)], other.into())
            }
            _ => {
                let is_share = self.aggregates.is_some() && name.eq_ignore_ascii_case("share");
                let function = match is_share {
                    true => &function::SHARE,
                    false => function::named(name).ok_or_else(|| {
                        let aggregates = self.aggregates.map(|(_, known)| (known.names)());
                        function::unknown(name, aggregates, at)
                    })?,
                };
                function.check_count(arguments.len(), at)?;
                Form::Call(function, arguments)
            }
        };
        let end = self.end;
        Ok(Parsed::Scalar(Scalar { at, end, form }))
    }

    /// An argument as a condition.
    fn truth(&mut self, scalar: Scalar) -> Result<Node, Fault> {
        match scalar.form {
            Form::Truth(node) => Ok(*node),
            Form::Call(function, _) if function.is_truth() => self.node(Parsed::Scalar(scalar)),
            _ => Err(Fault::new(scalar.at, "a condition is missing, as in x > 2")),
        }
    }

    /// After `case`, where `when` comes.
    fn choice(&mut self, at: usize) -> Result<Form, Fault> {
        self.deeper()?;
        let mut cases = Vec::new();
        while self.take_word("when") {
            let condition = self.condition()?;
            if !self.take_word("then") {
                return Err(Fault::new(self.peek().at, "`then` is missing"));
            }
            cases.push((condition, self.value()?));
        }
        let other_at = self.peek().at;
        let other = match self.take_word("else") {
            true => self.value()?,
            false => Scalar {
                at: other_at,
                end: other_at,
                form: Form::Null,
            },
        };
        if !self.take_word("end") {
            let why = match self.peek().token {
                Token::End => {
                    return Err(Fault::new(at, "the `case` that begins here has no `end`"));
                }
                _ => "`when`, `else` or `end` is missing",
            };
            return Err(Fault::new(self.peek().at, why));
        }
        self.depth -= 1;
        Ok(Form::Choice(cases, other.into()))
    }

    fn list(&mut self) -> Result<Vec<Literal>, Fault> {
        let at = self.peek().at;
        if !self.take(&Token::Open) {
            return Err(Fault::new(at, "`(` is missing"));
        }
        let mut literals = vec![self.next().literal()?];
        loop {
            let Lexeme { token, at: end, .. } = self.next();
            match token {
                Token::Comma => literals.push(self.next().literal()?),
                Token::Close => return Ok(literals),
                Token::End => return Err(Fault::new(at, NOT_CLOSED)),
                _ => return Err(Fault::new(end, "`,` or `)` is missing")),
            }
        }
    }

    fn text(&mut self, missing: &str) -> Result<(String, usize), Fault> {
        let Lexeme { token, at, .. } = self.next();
        match token {
            Token::Literal(Literal::Text(text)) => {
                Ok((String::from_utf8(text).expect("a part of a text"), at))
            }
            _ => Err(Fault::new(at, missing)),
        }
    }

    fn pattern(&mut self) -> Result<Pattern, Fault> {
        let (text, at) = self.text("a regular expression in single quotes is missing")?;
        Pattern::new(&text)
            .map_err(|why| Fault::new(at, format!("not a regular expression: {why}")))
    }

    fn like(&mut self) -> Result<Pattern, Fault> {
        let (text, at) = self.text("a text in single quotes is missing")?;
        Pattern::like(&text).map_err(|why| Fault::new(at, why))
    }
}
