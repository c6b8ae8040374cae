//! Finds the columns of a condition and moves each "not" down into the tests.

use ringfold_read::Result;

use crate::condition::fault::Fault;
use crate::condition::literal::Literal;
use crate::condition::parse::{Expression, Node, Predicate, Term};
use crate::condition::tree::{Check, Condition, Test};
use crate::decimal::number::{Number, shown};
use crate::format::time::{Time, Unit, read};
use crate::plan::columns::Columns;

impl Expression {
    /// Compiles it; `find` says where a column stands, and `is_time` whether it has nothing but times.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn compile(
        &self,
        find: impl Fn(&Columns) -> Result<usize, String>,
        is_time: impl Fn(usize) -> bool,
    ) -> Result<Condition> {
        let find = |written: &Term| {
            let find = |columns: &Columns| find(columns).map_err(|why| Fault::new(written.at, why));
            let (column, clock) = (
                find(&written.column)?,
                written.clock.as_ref().map(find).transpose()?,
            );
            Ok(Subject {
                column,
                clock,
                unit: written.unit,
                is_time: clock.is_some() || is_time(column),
                literal_at: written.literal_at,
            })
        };
        compile(&self.root, false, &find).map_err(|fault| fault.in_text(self.setting, &self.text))
    }
}

fn compile(
    node: &Node,
    is_negated: bool,
    find: &impl Fn(&Term) -> Result<Subject, Fault>,
) -> Result<Condition, Fault> {
    let each = |nodes: &[Node]| {
        let compiled = nodes.iter().map(|node| compile(node, is_negated, find));
        compiled.collect::<Result<Vec<_>, _>>()
    };
    Ok(match (node, is_negated) {
        (Node::Not(inner), _) => compile(inner, !is_negated, find)?,
        (Node::All(nodes), false) | (Node::Any(nodes), true) => Condition::All(each(nodes)?),
        (Node::Any(nodes), false) | (Node::All(nodes), true) => Condition::Any(each(nodes)?),
        (Node::Test(written), _) => find(written)?.test(&written.predicate, !is_negated)?,
    })
}

/// What a test is about.
struct Subject {
    column: usize,
    clock: Option<usize>,
    unit: Option<Unit>,
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
        match (literal, self.unit) {
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
                Some(own) => Ok(Comparand::Text(own)),
                None => refused(format!(
                    "`{}` is no value of @{unit}: one is written '{}'",
                    shown(text),
                    unit.example()
                )),
            },
            (Literal::Text(text), None) => match read(text) {
                Ok(time) if self.is_time || is_date(text, &time) => Ok(Comparand::Time(time)),
                Err(why) if self.is_time || is_order && why.is_like_time() => {
                    refused(format!("`{}` {}", shown(text), why.why(text)))
                }
                _ => Ok(Comparand::Text(text.clone())),
            },
        }
    }

    /// The test that is true where the predicate's truth is `wanted`.
    fn test(&self, predicate: &Predicate, wanted: bool) -> Result<Condition, Fault> {
        let test = |check: Check| {
            Condition::Test(Test {
                column: self.column,
                clock: self.clock,
                unit: self.unit,
                check,
            })
        };
        Ok(match predicate {
            Predicate::Null => test(Check::Null { wanted }),
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
                        Ok(number) if comparison.is_order() && self.unit.is_none() => {
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

/// Whether a text is plainly a time, also beside a column of which nothing is known: digits alone may be anything.
fn is_date(text: &[u8], time: &Time) -> bool {
    time.has_day()
        && !text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
}
