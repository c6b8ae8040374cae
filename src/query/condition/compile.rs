//! Finds the columns of a condition and moves each "not" down into the tests.

use crate::error::Result;
use crate::query::columns::Columns;
use crate::query::condition::fault::Fault;
use crate::query::condition::literal::Literal;
use crate::query::condition::parse::{Expression, Node, Predicate, Written};
use crate::query::condition::tree::{Check, Condition, Test};

impl Expression {
    /// Compiles it; `find` says where a column stands.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn compile(
        &self,
        find: impl Fn(&Columns) -> Result<usize, String>,
    ) -> Result<Condition> {
        let find =
            |written: &Written| find(&written.column).map_err(|why| Fault::new(written.at, why));
        compile(&self.root, false, &find).map_err(|fault| fault.in_text(self.setting, &self.text))
    }
}

fn compile(
    node: &Node,
    is_negated: bool,
    find: &impl Fn(&Written) -> Result<usize, Fault>,
) -> Result<Condition, Fault> {
    let each = |nodes: &[Node]| {
        let compiled = nodes.iter().map(|node| compile(node, is_negated, find));
        compiled.collect::<Result<Vec<_>, _>>()
    };
    Ok(match (node, is_negated) {
        (Node::Not(inner), _) => compile(inner, !is_negated, find)?,
        (Node::All(nodes), false) | (Node::Any(nodes), true) => Condition::All(each(nodes)?),
        (Node::Any(nodes), false) | (Node::All(nodes), true) => Condition::Any(each(nodes)?),
        (Node::Test(written), _) => test(find(written)?, &written.predicate, !is_negated),
    })
}

/// The test of a column that is true where the predicate's truth is `wanted`.
fn test(column: usize, predicate: &Predicate, wanted: bool) -> Condition {
    let test = |check: Check| Condition::Test(Test { column, check });
    match predicate {
        Predicate::Null => test(Check::Null { wanted }),
        Predicate::Matches(regex) => test(Check::Pattern {
            regex: regex.clone(),
            wanted,
        }),
        Predicate::Compare(comparison, literal) => {
            let comparison = match wanted {
                true => *comparison,
                false => comparison.opposite(),
            };
            test(match literal {
                Literal::Number(number) => Check::Number(comparison, *number),
                Literal::Text(text) => Check::Text(comparison, text.clone()),
            })
        }
        Predicate::Among(literals) => {
            let (mut numbers, mut texts) = (Vec::new(), Vec::new());
            for literal in literals {
                match literal {
                    Literal::Number(number) => numbers.push(*number),
                    Literal::Text(text) => texts.push(text.clone()),
                }
            }
            numbers.sort_unstable();
            texts.sort_unstable();
            let numbers = (!numbers.is_empty()).then_some(Check::Numbers {
                among: numbers,
                wanted,
            });
            let texts = (!texts.is_empty()).then_some(Check::Texts {
                among: texts,
                wanted,
            });
            match (numbers, texts) {
                (Some(numbers), Some(texts)) => {
                    let both = vec![test(numbers), test(texts)];
                    match wanted {
                        true => Condition::Any(both),
                        false => Condition::All(both),
                    }
                }
                (one, other) => test(one.or(other).expect("a list isn't empty")),
            }
        }
    }
}
