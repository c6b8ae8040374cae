//! Finds the columns of an expression, moves each "not" down into the tests, and checks what stands where.

use ringfold_read::Result;

use crate::decimal::number::{Grammar, Number, shown};
use crate::expression::fault::Fault;
use crate::expression::formula::{Formula, Kind, Operator};
use crate::expression::function::{self, COMPARE, Function, Prepared};
use crate::expression::literal::{Comparison, Literal};
use crate::expression::tree::{Check, Condition, Test};
use crate::expression::value::{Record, Value, ValueError};
use crate::expression::written::{
    Expression, Form, Node, Parsed, Predicate, Scalar, Term, WrittenUnit,
};
use crate::format::time::{Time, TimeZones, Unit, Zone, ZonedUnit, Zones, read};
use crate::plan::columns::Columns;

/// Where columns stand, and where those that are computed get their places.
pub(crate) trait Scope {
    fn find(&mut self, columns: &Columns) -> Result<usize, String>;

    /// Whether a column has nothing but times.
    fn is_time(&self, column: usize) -> bool;

    /// The time zones that are named for all of the query.
    fn time_zones(&self) -> TimeZones {
        TimeZones::default()
    }

    /// The place of a column that is computed, as numbers or as texts; `text` is how it is written.
    ///
    /// # Errors
    /// None may be.
    fn compute(&mut self, formula: Formula, text: &str, is_number: bool) -> Result<usize, String>;
}

impl Condition {
    /// Compiles conditions that must all hold.
    ///
    /// # Errors
    /// As [`Expression::compile`].
    pub(crate) fn compiled(
        written: &[Expression],
        scope: &mut dyn Scope,
    ) -> Result<Option<Condition>> {
        let compiled = written.iter().map(|one| one.compile(scope));
        let mut compiled = compiled.collect::<Result<Vec<_>>>()?;
        Ok(match compiled.len() {
            0 | 1 => compiled.pop(),
            _ => Some(Condition::All(compiled)),
        })
    }
}

impl Expression {
    /// Compiles a condition.
    ///
    /// # Errors
    /// There is no such column, or a value is of another kind than it must be.
    pub(crate) fn compile(&self, scope: &mut dyn Scope) -> Result<Condition> {
        self.condition_of(scope, false)
    }

    fn condition_of(&self, scope: &mut dyn Scope, is_inner: bool) -> Result<Condition> {
        self.compiled(scope, is_inner, |compiler| match &self.root {
            Parsed::Node(node) => compiler.condition(node, false),
            Parsed::Scalar(scalar) => Err(Fault::new(scalar.at, "a condition is missing")),
        })
    }

    /// The same of a condition that is part of a value.
    ///
    /// # Errors
    /// As [`Expression::compile`].
    pub(crate) fn inner_condition(&self, scope: &mut dyn Scope) -> Result<Condition> {
        self.condition_of(scope, true)
    }

    /// Compiles a value, and says of what kind it is.
    ///
    /// # Errors
    /// As [`Expression::compile`].
    pub(crate) fn formula(&self, scope: &mut dyn Scope) -> Result<(Formula, Kind)> {
        self.compiled(scope, false, |compiler| {
            let found = match &self.root {
                Parsed::Scalar(scalar) => compiler.formula(scalar),
                Parsed::Node(node) => compiler.truth(node),
            }?;
            match found.0.has_columns() {
                true => Ok(found),
                false => {
                    let why = "a column is missing: its number is written $3";
                    Err(Fault::new(0, why))
                }
            }
        })
    }

    fn compiled<T>(
        &self,
        scope: &mut dyn Scope,
        is_inner: bool,
        compile: impl FnOnce(&mut Compiler<'_>) -> Result<T, Fault>,
    ) -> Result<T> {
        let mut compiler = Compiler {
            scope,
            text: &self.text,
            is_inner,
        };
        compile(&mut compiler).map_err(|fault| fault.in_text(self.setting, &self.text))
    }
}

struct Compiler<'a> {
    scope: &'a mut dyn Scope,
    text: &'a str,
    /// The condition is part of a value.
    is_inner: bool,
}

/// A record without columns, for what is constant.
struct NoRecord;

impl Record for NoRecord {
    fn value(&self, _: usize) -> Result<Value<'_>, ValueError> {
        Ok(Value::Null)
    }

    fn grammar(&self) -> Grammar {
        Grammar::LONG
    }

    fn wants_number(&self, _: usize) -> bool {
        false
    }
}

impl Compiler<'_> {
    fn condition(&mut self, node: &Node, is_negated: bool) -> Result<Condition, Fault> {
        let mut each = |nodes: &[Node]| {
            let compiled = nodes.iter().map(|node| self.condition(node, is_negated));
            compiled.collect::<Result<Vec<_>, _>>()
        };
        Ok(match (node, is_negated) {
            (Node::Not(inner), _) => self.condition(inner, !is_negated)?,
            (Node::All(nodes), false) | (Node::Any(nodes), true) => Condition::All(each(nodes)?),
            (Node::Any(nodes), false) | (Node::All(nodes), true) => Condition::Any(each(nodes)?),
            (Node::Test(term), _) => self.test(term, !is_negated)?,
        })
    }

    /// The test that is true where the term's truth is `wanted`.
    fn test(&mut self, term: &Term, wanted: bool) -> Result<Condition, Fault> {
        let Term {
            subject, predicate, ..
        } = term;
        match predicate {
            Predicate::True => {
                let (formula, _) = self.formula(subject)?;
                let truth = if wanted { "true" } else { "false" };
                let check = Check::Text(Comparison::Equal, truth.into());
                self.computed(formula, (subject.at, subject.end), check)
            }
            Predicate::CompareWith(comparison, other) => {
                let (own, own_kind) = self.comparand(subject)?;
                let (formula, kind) = self.other_side(other)?;
                let literal = match formula {
                    Formula::Number(number) => Literal::Number(number),
                    Formula::Text(text) if kind == Kind::Text => Literal::Text(text),
                    formula => {
                        let are_numbers = [own_kind, kind].contains(&Kind::Number);
                        let sides = [own, formula];
                        let places = (subject.at.min(other.at), subject.end.max(other.end));
                        return self.compared(sides, are_numbers, places, *comparison, wanted);
                    }
                };
                let predicate = Predicate::Compare(*comparison, literal);
                let found = self.subject(term, &predicate)?;
                self.of_subject(found, &predicate, wanted)
            }
            predicate => {
                let is_computed = matches!(
                    subject.form,
                    Form::Operation(..) | Form::Call(..) | Form::Negative(_) | Form::Choice(..)
                );
                // What would be rounded is compared before it is.
                if let Some((comparison, numbers)) = predicate.numbers().filter(|_| is_computed)
                    && let (formula, _) = self.comparand(subject)?
                    && formula.is_quotient()
                {
                    let places = (subject.at, subject.end);
                    let each = numbers.into_iter().map(|number| {
                        let sides = [formula.clone(), Formula::Number(number)];
                        self.compared(sides, true, places, comparison, wanted)
                    });
                    let each = each.collect::<Result<_, _>>()?;
                    return Ok(match wanted {
                        true => Condition::Any(each),
                        false => Condition::All(each),
                    });
                }
                let found = self.subject(term, predicate)?;
                self.of_subject(found, predicate, wanted)
            }
        }
    }

    fn of_subject(
        &mut self,
        found: Subject,
        predicate: &Predicate,
        wanted: bool,
    ) -> Result<Condition, Fault> {
        let condition = found.test(predicate, wanted)?;
        let mut is_bytewise = false;
        condition.each_test(&mut |test| is_bytewise |= matches!(test.check, Check::Digits(..)));
        match is_bytewise && self.is_inner {
            false => Ok(condition),
            true => Err(Fault::new(
                found.literal_at,
                "this text is a number: without quotes numbers are compared, and concat(column) is compared as a text",
            )),
        }
    }

    fn computed(
        &mut self,
        formula: Formula,
        places: (usize, usize),
        check: Check,
    ) -> Result<Condition, Fault> {
        let is_number = matches!(check, Check::Number(..));
        Ok(Condition::Test(Test {
            column: self.place(formula, places, is_number)?,
            clock: None,
            unit: None,
            zones: None,
            check,
        }))
    }

    /// The place of a column that is computed.
    fn place(
        &mut self,
        formula: Formula,
        (at, end): (usize, usize),
        is_number: bool,
    ) -> Result<usize, Fault> {
        let place = self.scope.compute(formula, &self.text[at..end], is_number);
        place.map_err(|why| Fault::new(at, why))
    }

    /// Two values that are compared.
    fn compared(
        &mut self,
        sides: [Formula; 2],
        are_numbers: bool,
        places: (usize, usize),
        comparison: Comparison,
        wanted: bool,
    ) -> Result<Condition, Fault> {
        let comparison = if wanted {
            comparison
        } else {
            comparison.opposite()
        };
        let is_rounded = sides.iter().any(Formula::is_quotient);
        let formula = match are_numbers && !is_rounded {
            true => Formula::Operation(Operator::Minus, sides.into()),
            false => Formula::Call(&COMPARE, sides.into(), Prepared::Nothing),
        };
        let check = Check::Number(comparison, Number::ZERO);
        self.computed(formula, places, check)
    }

    /// A value that may be compared.
    fn comparand(&mut self, scalar: &Scalar) -> Result<(Formula, Kind), Fault> {
        match self.formula(scalar)? {
            (_, Kind::Truth) => Err(Fault::new(scalar.at, "a condition can't be compared")),
            found => Ok(found),
        }
    }

    /// The same after the sign.
    fn other_side(&mut self, scalar: &Scalar) -> Result<(Formula, Kind), Fault> {
        let found = self.comparand(scalar);
        let Form::Column(Columns::Name(name)) = &scalar.form else {
            return found;
        };
        found.map_err(|fault| {
            let name = shown(name);
            let why = format!("{}; a text stands in single quotes, '{name}'", fault.why);
            Fault::new(fault.at, why)
        })
    }

    fn find(&mut self, columns: &Columns, at: usize) -> Result<usize, Fault> {
        let found = self.scope.find(columns);
        found.map_err(|why| Fault::new(at, why))
    }

    /// What a test is about.
    fn subject(&mut self, term: &Term, predicate: &Predicate) -> Result<Subject, Fault> {
        let Term {
            subject: scalar,
            literal_at,
            ..
        } = term;
        let (date, clock, unit) = match &scalar.form {
            Form::Column(column) => (column, None, None),
            Form::Time(date, clock, unit) => (date, clock.as_ref(), Some(self.unit(*unit))),
            // A date and its time of day, unless numbers are asked for.
            Form::Operation(Operator::Plus, sides) if predicate.numbers().is_none() => {
                match [&sides[0].form, &sides[1].form] {
                    [Form::Column(date), Form::Column(clock)] => (date, Some(clock), None),
                    _ => return self.computed_subject(scalar, *literal_at, predicate),
                }
            }
            _ => return self.computed_subject(scalar, *literal_at, predicate),
        };
        let column = self.find(date, scalar.at)?;
        let clock = clock.map(|clock| self.find(clock, scalar.at)).transpose()?;
        Ok(Subject {
            column,
            clock,
            unit,
            zones: self.scope.time_zones().of(None),
            kind: Kind::Field,
            is_time: clock.is_some() || self.scope.is_time(column),
            literal_at: *literal_at,
        })
    }

    fn computed_subject(
        &mut self,
        scalar: &Scalar,
        literal_at: usize,
        predicate: &Predicate,
    ) -> Result<Subject, Fault> {
        let (formula, kind) = self.formula(scalar)?;
        if !formula.has_columns() {
            return Err(Fault::new(scalar.at, "a column is missing"));
        }
        let is_text = matches!(predicate, Predicate::Matches(_));
        let is_number = kind == Kind::Number && !is_text;
        Ok(Subject {
            column: self.place(formula, (scalar.at, scalar.end), is_number)?,
            clock: None,
            unit: None,
            zones: self.scope.time_zones().of(None),
            kind,
            is_time: false,
            literal_at,
        })
    }

    /// A unit on the clock of the zone that is named.
    fn unit(&self, (unit, zone): WrittenUnit) -> ZonedUnit {
        let zones = self.scope.time_zones().of(zone);
        ZonedUnit { unit, zones }
    }

    fn truth(&mut self, node: &Node) -> Result<(Formula, Kind), Fault> {
        let is_inner = std::mem::replace(&mut self.is_inner, true);
        let both = [self.condition(node, false)?, self.condition(node, true)?];
        self.is_inner = is_inner;
        Ok((Formula::Truth(both.into()), Kind::Truth))
    }

    fn formula(&mut self, scalar: &Scalar) -> Result<(Formula, Kind), Fault> {
        let (formula, kind) = match &scalar.form {
            Form::Null => (Formula::Null, Kind::Null),
            Form::Literal(Literal::Number(number)) => (Formula::Number(*number), Kind::Number),
            Form::Literal(Literal::Text(text)) => (Formula::Text(text.clone()), Kind::Text),
            Form::Column(column) => (Formula::Column(self.find(column, scalar.at)?), Kind::Field),
            Form::Time(date, clock, unit) => {
                let column = self.find(date, scalar.at)?;
                let clock = clock.as_ref().map(|clock| self.find(clock, scalar.at));
                let unit = self.unit(*unit);
                (Formula::Time(column, clock.transpose()?, unit), Kind::Text)
            }
            Form::Negative(inner) => {
                let inner = self.argument(inner, Kind::Number, "-")?;
                (Formula::Negative(inner.into()), Kind::Number)
            }
            Form::Operation(operator, sides) => self.operation(scalar, *operator, sides)?,
            Form::Call(function, arguments) => self.call(function, arguments)?,
            Form::Choice(cases, other) => self.choice(cases, other)?,
            Form::Truth(node) => self.truth(node)?,
        };
        let folded = match formula.has_columns() || formula.is_quotient() {
            true => None,
            false => formula.value(&NoRecord).ok(),
        };
        Ok(match folded {
            Some(Value::Number(number)) => match number.stored() {
                Ok(number) => (Formula::Number(number), kind),
                Err(why) => return Err(Fault::new(scalar.at, why)),
            },
            Some(Value::Text(text)) => (Formula::Text(text.into_owned()), kind),
            _ => (formula, kind),
        })
    }

    /// A value that must be of a kind.
    fn argument(&mut self, scalar: &Scalar, wanted: Kind, of: &str) -> Result<Formula, Fault> {
        let (formula, kind) = self.formula(scalar)?;
        let is_right = match (wanted, kind) {
            (Kind::Number, Kind::Text) => !matches!(formula, Formula::Text(_)),
            (Kind::Number | Kind::Text, Kind::Truth) => false,
            _ => true,
        };
        match is_right {
            true => Ok(formula),
            false => Err(Fault::new(
                scalar.at,
                format!(
                    "`{of}` takes {} here, and this is {}",
                    wanted.name(),
                    kind.name()
                ),
            )),
        }
    }

    fn operation(
        &mut self,
        scalar: &Scalar,
        operator: Operator,
        sides: &[Scalar; 2],
    ) -> Result<(Formula, Kind), Fault> {
        let kind = match operator {
            Operator::Join => Kind::Text,
            _ => Kind::Number,
        };
        let mut side = |at: usize| self.argument(&sides[at], kind, operator.sign());
        let both = side(0).and_then(|one| Ok([one, side(1)?]));
        match both {
            Ok(both) => Ok((Formula::Operation(operator, both.into()), kind)),
            Err(fault) => {
                // The name may be longer.
                let text = &self.text[scalar.at..scalar.end];
                match self.scope.find(&Columns::from(text)) {
                    Ok(_) => Err(Fault::new(
                        scalar.at,
                        format!("the name stands in double quotes: \"{text}\""),
                    )),
                    Err(_) => Err(fault),
                }
            }
        }
    }

    fn call(
        &mut self,
        function: &'static Function,
        arguments: &[Scalar],
    ) -> Result<(Formula, Kind), Fault> {
        let mut compiled = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let wanted = function.parameter(at);
            let argument = self.argument(argument, wanted, function.name)?;
            compiled.push(match argument {
                Formula::Column(column)
                    if function.takes_moments
                        && wanted == Kind::Number
                        && self.scope.is_time(column) =>
                {
                    function::seconds_of(argument, self.scope.time_zones().of(None))
                }
                argument => argument,
            });
        }
        let prepared = function
            .prepare(&compiled, self.scope.time_zones())
            .map_err(|(at, why)| Fault::new(arguments[at].at, why))?;
        if let (Prepared::Bucket(bucket, zones), Some(Formula::Column(column))) =
            (&prepared, compiled.get(1))
            && let Some(unit) = bucket.unit()
        {
            let unit = ZonedUnit {
                unit,
                zones: *zones,
            };
            return Ok((Formula::Time(*column, None, unit), Kind::Text));
        }
        let formula = Formula::Call(function, compiled.into(), prepared);
        Ok((formula, function.result))
    }

    fn choice(
        &mut self,
        cases: &[(Node, Scalar)],
        other: &Scalar,
    ) -> Result<(Formula, Kind), Fault> {
        let (mut compiled, mut kinds) = (Vec::new(), Vec::new());
        for (node, value) in cases {
            let is_inner = std::mem::replace(&mut self.is_inner, true);
            let condition = self.condition(node, false)?;
            self.is_inner = is_inner;
            let (value, kind) = self.formula(value)?;
            compiled.push((condition, value));
            kinds.push(kind);
        }
        let (other, kind) = self.formula(other)?;
        kinds.push(kind);
        kinds.retain(|kind| *kind != Kind::Null);
        let kind = match kinds.first() {
            Some(first) if kinds.iter().all(|kind| kind == first) => *first,
            Some(_) => Kind::Field,
            None => Kind::Null,
        };
        Ok((Formula::Choice(compiled, other.into()), kind))
    }
}

impl Predicate {
    /// The numbers that it compares with, if there is nothing else.
    fn numbers(&self) -> Option<(Comparison, Vec<Number>)> {
        let number = |literal: &Literal| match literal {
            Literal::Number(number) => Some(*number),
            _ => None,
        };
        match self {
            Predicate::Compare(comparison, literal) => Some((*comparison, vec![number(literal)?])),
            Predicate::Among(literals) => {
                let numbers = literals.iter().map(number).collect::<Option<_>>()?;
                Some((Comparison::Equal, numbers))
            }
            _ => None,
        }
    }
}

/// What a test is about.
struct Subject {
    column: usize,
    clock: Option<usize>,
    unit: Option<ZonedUnit>,
    zones: Option<Zones>,
    kind: Kind,
    /// Its values are times.
    is_time: bool,
    literal_at: usize,
}

/// A literal, as values are compared with it.
enum Comparand {
    Number(Number),
    Time(Time),
    Text(Vec<u8>),
}

impl Subject {
    /// How its values are compared with a literal.
    fn wanted(&self, literal: &Literal, is_order: bool) -> Result<Comparand, Fault> {
        let refused = |why: String| Err(Fault::new(self.literal_at, why));
        match (literal, self.unit.map(|unit| unit.unit)) {
            (Literal::Text(text), _) if self.kind == Kind::Number => refused(format!(
                "a number is compared, and `{}` is a text",
                shown(text)
            )),
            (Literal::Number(number), None | Some(Unit::Year | Unit::Weekday)) if !self.is_time => {
                Ok(Comparand::Number(*number))
            }
            (Literal::Number(number), Some(Unit::Year | Unit::Weekday)) => {
                Ok(Comparand::Number(*number))
            }
            (Literal::Number(_), unit) => {
                let example = unit.map_or("2026-03-12 06:25", Unit::example);
                refused(format!("a time stands in single quotes, as '{example}'"))
            }
            (Literal::Text(text), Some(unit)) => match unit.literal(text) {
                Some(_) if self.is_zoned() && has_offset(text) => refused(format!(
                    "`{}` has an offset, and @{unit} is what the zone's clock shows: leave the offset out, or compare the time \
                     without @{unit}",
                    shown(text)
                )),
                Some(own) => Ok(Comparand::Text(own)),
                None => refused(format!(
                    "`{}` is no value of @{unit}: one is written '{}'",
                    shown(text),
                    unit.example()
                )),
            },
            (Literal::Text(text), None) => match read(text) {
                Ok(time) if self.is_time || is_date(text, &time) => {
                    // On the clock of the zone that is named.
                    let placed = self.zones.map_or(Ok(time), |zones| time.placed(zones.zone));
                    let placed =
                        placed.map_err(|why| format!("`{}` {}", shown(text), why.why(text)));
                    placed.map(Comparand::Time).or_else(refused)
                }
                Err(why) if self.is_time || is_order && why.is_like_time() => {
                    refused(format!("`{}` {}", shown(text), why.why(text)))
                }
                _ => Ok(Comparand::Text(text.clone())),
            },
        }
    }

    /// Whether its unit is looked at on the clock of a zone.
    fn is_zoned(&self) -> bool {
        self.unit.is_some_and(|unit| unit.zones.is_some())
    }

    /// The test that is true where the predicate's truth is `wanted`.
    fn test(&self, predicate: &Predicate, wanted: bool) -> Result<Condition, Fault> {
        let test = |check: Check| {
            Condition::Test(Test {
                column: self.column,
                clock: self.clock,
                unit: self.unit,
                zones: self.zones.filter(|_| self.unit.is_none()),
                check,
            })
        };
        Ok(match predicate {
            Predicate::Null => test(Check::Null { wanted }),
            Predicate::True | Predicate::CompareWith(..) => {
                unreachable!("they have tests of their own")
            }
            Predicate::Matches(pattern) => test(Check::Pattern {
                pattern: pattern.clone(),
                wanted,
            }),
            Predicate::Compare(comparison, literal) => {
                let comparison = match wanted {
                    true => *comparison,
                    false => comparison.opposite(),
                };
                test(match self.wanted(literal, comparison.is_order())? {
                    Comparand::Number(number) => Check::Number(comparison, number),
                    Comparand::Time(time) => Check::Time(comparison, time),
                    Comparand::Text(text) => match Number::read(&text) {
                        Ok(number)
                            if comparison.is_order()
                                && self.unit.is_none()
                                && self.kind != Kind::Text =>
                        {
                            Check::Digits(comparison, text, number)
                        }
                        _ => Check::Text(comparison, text),
                    },
                })
            }
            Predicate::Among(literals) => {
                let (mut numbers, mut times, mut texts) = (Vec::new(), Vec::new(), Vec::new());
                for literal in literals {
                    match self.wanted(literal, false)? {
                        Comparand::Number(number) => numbers.push(number),
                        Comparand::Time(time) => times.push(time),
                        Comparand::Text(text) => texts.push(text),
                    }
                }
                numbers.sort_unstable();
                texts.sort_unstable();
                let mut tests = Vec::new();
                if !numbers.is_empty() {
                    let among = numbers;
                    tests.push(test(Check::Numbers { among, wanted }));
                }
                if !times.is_empty() {
                    let among = times;
                    tests.push(test(Check::Times { among, wanted }));
                }
                if !texts.is_empty() {
                    let among = texts;
                    tests.push(test(Check::Texts { among, wanted }));
                }
                match (tests.len(), wanted) {
                    (1, _) => tests.remove(0),
                    (_, true) => Condition::Any(tests),
                    (_, false) => Condition::All(tests),
                }
            }
        })
    }
}

/// Whether a text is a time with an offset.
fn has_offset(text: &[u8]) -> bool {
    read(text).is_ok_and(|time| matches!(time.zone, Zone::Offset(_)))
}

/// Whether a text is plainly a time, also beside a column of which nothing is known: digits alone may be anything.
fn is_date(text: &[u8], time: &Time) -> bool {
    time.has_day()
        && !text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
}
