//! An expression as it is written, before its columns are found.

use ringfold_read::{Error, Result, Setting};

use crate::expression::fault::Fault;
use crate::expression::formula::Operator;
use crate::expression::function::Function;
use crate::expression::leaf::Aggregates;
use crate::expression::literal::{Comparison, Literal};
use crate::expression::parse::{MISSING, Parser};
use crate::expression::pattern::Pattern;
use crate::expression::token::Token;
use crate::format::time::{TimeZone, Unit};
use crate::plan::columns::Columns;

/// An expression that was read. Its columns are still to be found.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(super) setting: Setting,
    pub(super) text: String,
    pub(super) root: Parsed,
}

/// What an expression is: a value, or a condition.
#[derive(Debug, Clone)]
pub(super) enum Parsed {
    Scalar(Scalar),
    Node(Node),
}

/// A condition.
#[derive(Debug, Clone)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Box<Term>),
}

/// A test as it is written.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) subject: Scalar,
    /// Where a literal stands.
    pub(super) literal_at: usize,
    pub(super) predicate: Predicate,
}

#[derive(Debug, Clone)]
pub(super) enum Predicate {
    Null,
    /// The subject is a truth, and true.
    True,
    Compare(Comparison, Literal),
    CompareWith(Comparison, Scalar),
    Among(Vec<Literal>),
    Matches(Pattern),
}

/// A value, and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Scalar {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) form: Form,
}

/// A unit, and the zone that is named beside it.
pub(super) type WrittenUnit = (Unit, Option<TimeZone>);

#[derive(Debug, Clone)]
pub(super) enum Form {
    Column(Columns),
    /// A time cut down; the date may have its time of day in another column.
    Time(Columns, Option<Columns>, WrittenUnit),
    Null,
    Literal(Literal),
    Negative(Box<Scalar>),
    Operation(Operator, Box<[Scalar; 2]>),
    Call(&'static Function, Vec<Scalar>),
    /// The value of the first condition that is true, or that of none.
    Choice(Vec<(Node, Scalar)>, Box<Scalar>),
    Truth(Box<Node>),
}

impl Expression {
    /// An error about all of it.
    pub(crate) fn fault(&self, why: String) -> Error {
        Fault::new(0, why).in_text(self.setting, &self.text)
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Calls `see` with each column, as often as it is there.
    pub(crate) fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        match &self.root {
            Parsed::Scalar(scalar) => scalar.each_column(see),
            Parsed::Node(node) => node.each_column(see),
        }
    }

    /// Whether it is a name alone, or a column's number.
    pub(crate) fn is_column(&self) -> bool {
        matches!(&self.root, Parsed::Scalar(scalar) if matches!(scalar.form, Form::Column(_)))
    }

    /// Reads a condition that `setting` was given.
    ///
    /// # Errors
    /// It can't be understood.
    pub(crate) fn condition(text: &str, setting: Setting) -> Result<Expression> {
        let read = |parser: &mut Parser<'_>| parser.condition().map(Parsed::Node);
        Ok(Expression::read(text, setting, None, read)?.0)
    }

    /// Reads a condition in which aggregates are columns that are called as they are written.
    ///
    /// # Errors
    /// It can't be understood.
    pub(crate) fn condition_of_aggregates(
        text: &str,
        setting: Setting,
        aggregates: &'static Aggregates,
    ) -> Result<Expression> {
        let read = |parser: &mut Parser<'_>| parser.condition().map(Parsed::Node);
        Ok(Expression::read(text, setting, Some(aggregates), read)?.0)
    }

    /// Reads a value of aggregates, and says which these are. In it, they are columns that are called as they are written.
    ///
    /// # Errors
    /// It can't be understood.
    pub(crate) fn of_aggregates(
        text: &str,
        setting: Setting,
        aggregates: &'static Aggregates,
    ) -> Result<(Expression, Vec<String>)> {
        Expression::read(text, setting, Some(aggregates), |parser| {
            parser.any(MISSING)
        })
    }

    /// Reads the arguments of a function that `setting` was given.
    ///
    /// # Errors
    /// They can't be understood, or are too few or too many.
    pub(crate) fn call(
        function: &'static Function,
        text: &str,
        setting: Setting,
    ) -> Result<Expression> {
        let read = |parser: &mut Parser<'_>| {
            let mut arguments = vec![parser.value()?];
            while parser.take(&Token::Comma) {
                arguments.push(parser.value()?);
            }
            parser.end()?;
            function.check_count(arguments.len(), 0)?;
            Ok(Parsed::Scalar(Scalar {
                at: 0,
                end: text.len(),
                form: Form::Call(function, arguments),
            }))
        };
        Ok(Expression::read(text, setting, None, read)?.0)
    }

    /// Reads a value that `setting` was given.
    ///
    /// # Errors
    /// It can't be understood.
    pub(crate) fn value(text: &str, setting: Setting) -> Result<Expression> {
        Ok(Expression::read(text, setting, None, |parser| parser.any(MISSING))?.0)
    }

    /// What `read` makes of the whole text, and the aggregates in it.
    fn read(
        text: &str,
        setting: Setting,
        aggregates: Option<&'static Aggregates>,
        read: impl FnOnce(&mut Parser<'_>) -> Result<Parsed, Fault>,
    ) -> Result<(Expression, Vec<String>)> {
        let parse = || {
            let mut parser = Parser::new(text)?;
            parser.aggregates = aggregates.map(|all| (text, all));
            let root = read(&mut parser)?;
            parser.end()?;
            Ok((root, parser.leaves))
        };
        let (root, leaves) = parse().map_err(|fault: Fault| fault.in_text(setting, text))?;
        let text = text.into();
        let expression = Expression {
            setting,
            text,
            root,
        };
        Ok((expression, leaves))
    }
}

impl Node {
    fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        match self {
            Node::All(nodes) | Node::Any(nodes) => {
                nodes.iter().for_each(|node| node.each_column(see));
            }
            Node::Not(node) => node.each_column(see),
            Node::Test(term) => {
                term.subject.each_column(see);
                if let Predicate::CompareWith(_, other) = &term.predicate {
                    other.each_column(see);
                }
            }
        }
    }
}

impl Scalar {
    fn each_column(&self, see: &mut impl FnMut(&Columns)) {
        match &self.form {
            Form::Column(column) => see(column),
            Form::Time(date, clock, _) => std::iter::once(date).chain(clock).for_each(see),
            Form::Null | Form::Literal(_) => {}
            Form::Negative(inner) => inner.each_column(see),
            Form::Operation(_, sides) => sides.iter().for_each(|side| side.each_column(see)),
            Form::Call(_, arguments) => arguments.iter().for_each(|one| one.each_column(see)),
            Form::Choice(cases, other) => {
                for (node, value) in cases {
                    node.each_column(see);
                    value.each_column(see);
                }
                other.each_column(see);
            }
            Form::Truth(node) => node.each_column(see),
        }
    }
}
