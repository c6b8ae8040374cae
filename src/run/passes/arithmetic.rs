//! Numbers that are computed of others, all rows of a window at a time as far as there is a loop for it, or else a row at a time.

use crate::aggregate::lanes::MAGNITUDE_MAX;
use crate::decimal::number::Number;
use crate::decimal::rational::Cut;
use crate::expression::formula::{Formula, Operator};
use crate::expression::function::Loop;
use crate::expression::{Condition, Doubts, Reading};
use crate::plan::Plan;
use crate::run::passes::computed::{Row, Rows};
use crate::run::passes::numbers::{Column, decode_column};
use crate::run::passes::quotients::{Digits, Quotients, power};
use crate::run::passes::selection::Selection;
use crate::scan::numbers::{Numbers, SCALE_MAX};
use ringfold_read::internals::Level;

/// A formula that is computed of numbers without a branch on them.
pub(super) struct Arithmetic {
    root: Node,
    columns: Vec<Column>,
    /// Columns that may hold other values than numbers.
    ordered: Vec<Column>,
    choices: Vec<(Condition, Selection)>,
    /// What is computed a row at a time, and the decimals that it had so far.
    single: Vec<(Formula, u32)>,
    /// Numbers that nobody needs.
    spare: Vec<Numbers>,
}

enum Node {
    Null,
    /// Among the columns that are decoded.
    Column(usize),
    Constant(i64, u32),
    Negative(Box<Node>),
    Absolute(Box<Node>),
    Sign(Box<Node>),
    /// With so many digits after the point.
    Cut(Cut, i32, Box<Node>),
    /// Null where it is this number.
    NullIf(Number, Box<Node>),
    Operation(Operation, Box<[Node; 2]>),
    /// Among what is computed a row at a time.
    Single(usize),
    /// The order of two columns, which is less than zero, zero or more; what is no number is for the last one.
    Order([usize; 2], usize),
    /// Among the choices, with the numbers where its condition is true, and where it isn't.
    Choice(usize, Box<[Node; 2]>),
    /// The same of a constant and null, as counts have it.
    Counted(usize, i64, u32),
}

/// What is computed of two numbers.
enum Operation {
    Plus,
    Minus,
    Times,
    Modulo,
    Quotient(Box<Quotients>),
}

/// What a formula is computed of.
pub(super) struct Operands<'a> {
    pub(super) level: Level,
    pub(super) rows: Rows<'a>,
    /// Rows that it isn't computed of.
    pub(super) out: &'a mut Vec<u32>,
}

impl Arithmetic {
    /// That of a formula. `among` says where a column is among the passes'.
    pub(super) fn new(
        level: Level,
        plan: &Plan,
        formula: &Formula,
        among: &impl Fn(usize) -> usize,
    ) -> Arithmetic {
        let mut arithmetic = Arithmetic {
            root: Node::Null,
            columns: Vec::new(),
            ordered: Vec::new(),
            choices: Vec::new(),
            single: Vec::new(),
            spare: Vec::new(),
        };
        arithmetic.root = arithmetic.node(level, plan, formula, among);
        arithmetic
    }

    /// The place of a column that is decoded.
    fn column(&mut self, at: usize) -> usize {
        let known = self.columns.iter().position(|column| column.at == at);
        known.unwrap_or_else(|| {
            self.columns.push(Column::new(at));
            self.columns.len() - 1
        })
    }

    fn node(
        &mut self,
        level: Level,
        plan: &Plan,
        formula: &Formula,
        among: &impl Fn(usize) -> usize,
    ) -> Node {
        match formula {
            Formula::Null => Node::Null,
            Formula::Column(column) if plan.is_field(*column) => {
                Node::Column(self.column(among(*column)))
            }
            Formula::Number(number) if constant(number).is_some() => {
                Node::Constant(constant(number).unwrap_or_default(), number.decimals())
            }
            Formula::Negative(inner) => Node::Negative(self.node(level, plan, inner, among).into()),
            Formula::Choice(cases, other) => {
                let mut node = self.node(level, plan, other, among);
                for (condition, value) in cases.iter().rev() {
                    let value = self.node(level, plan, value, among);
                    self.choices
                        .push((condition.clone(), Selection::new(level)));
                    let at = self.choices.len() - 1;
                    node = match (&value, &node) {
                        (Node::Constant(value, scale), Node::Null) => {
                            Node::Counted(at, *value, *scale)
                        }
                        _ => Node::Choice(at, [value, node].into()),
                    };
                }
                node
            }
            formula => {
                if let Some(node) = self.loops(level, plan, formula, among) {
                    return node;
                }
                self.single.push((formula.clone(), 0));
                let single = self.single.len() - 1;
                match formula.compared() {
                    Some(both) if both.iter().all(|&column| plan.is_field(column)) => {
                        let columns = both.map(|column| {
                            self.ordered.push(Column::new(among(column)));
                            self.ordered.len() - 1
                        });
                        Node::Order(columns, single)
                    }
                    _ => Node::Single(single),
                }
            }
        }
    }

    /// What there is a loop for.
    fn loops(
        &mut self,
        level: Level,
        plan: &Plan,
        formula: &Formula,
        among: &impl Fn(usize) -> usize,
    ) -> Option<Node> {
        let mut node = |formula: &Formula| Box::new(self.node(level, plan, formula, among));
        let mut of_two = |operation: Operation, one: &Formula, two: &Formula| {
            let sides = [*node(one), *node(two)];
            Some(Node::Operation(operation, sides.into()))
        };
        // A quotient is exact until the whole is rounded.
        let mut quotient = |digits: Digits, formula: &Formula| {
            let (dividend, divisor) = formula.fraction()?;
            let quotients = Quotients::new(digits).into();
            of_two(Operation::Quotient(quotients), &dividend, &divisor?)
        };
        Some(match formula {
            Formula::Operation(operator, sides) if !formula.is_quotient() => {
                let operation = match operator {
                    Operator::Plus => Operation::Plus,
                    Operator::Minus => Operation::Minus,
                    Operator::Times => Operation::Times,
                    Operator::Modulo => Operation::Modulo,
                    Operator::Over | Operator::Join => return None,
                };
                return of_two(operation, &sides[0], &sides[1]);
            }
            Formula::Call(function, arguments, _) if !formula.is_quotient() => {
                let first = &arguments[0];
                let is_quotient = first.is_quotient();
                match (function.loops, &**arguments) {
                    (Some(Loop::Absolute), _) => Node::Absolute(node(first)),
                    (Some(Loop::Sign), _) if is_quotient => return quotient(Digits::Sign, first),
                    (Some(Loop::Sign), _) => Node::Sign(node(first)),
                    (Some(Loop::Cut(_)), _) => {
                        let (cut, digits) = function.cut(arguments)?;
                        if is_quotient {
                            return quotient(Digits::Cut(cut, digits), first);
                        }
                        Node::Cut(cut, digits, node(first))
                    }
                    (Some(Loop::Modulo), [one, two]) => return of_two(Operation::Modulo, one, two),
                    (Some(Loop::NullIf), [one, Formula::Number(number)]) => {
                        Node::NullIf(*number, node(one))
                    }
                    (None, [one, two]) if function.is_order() => {
                        // One is a number, so both must be.
                        let sides = [one.clone(), two.clone()].into();
                        let difference = Formula::Operation(Operator::Minus, sides);
                        return quotient(Digits::Sign, &difference);
                    }
                    _ => return None,
                }
            }
            _ if formula.is_quotient() => return quotient(Digits::Stored, formula),
            _ => return None,
        })
    }

    /// Computes the numbers of all rows; returns their scale.
    pub(super) fn compute(&mut self, of: &mut Operands<'_>, to: &mut Numbers) -> u32 {
        let rows = of.rows.count;
        for column in &mut self.columns {
            decode(of.level, &of.rows, column, of.out);
        }
        let mut root = std::mem::replace(&mut self.root, Node::Null);
        let scale = self.found(&mut root, of, to);
        self.root = root;
        if to.has_nulls && !matches!(self.root, Node::Counted(..)) {
            // Lanes have zero where there is none.
            for row in 0..rows {
                if to.is_null(row) {
                    to.values[row] = 0;
                }
            }
        }
        scale
    }

    fn found(&mut self, node: &mut Node, of: &mut Operands<'_>, to: &mut Numbers) -> u32 {
        let rows = of.rows.count;
        match node {
            Node::Null => {
                to.values[..rows].fill(0);
                to.nulls[..rows.div_ceil(8)].fill(0xff);
                (to.has_nulls, to.magnitudes, to.decimals) = (rows > 0, 0, 0);
                0
            }
            Node::Column(at) => {
                let column = &self.columns[*at];
                to.copy(&column.numbers, rows);
                column.scale.unwrap_or_default()
            }
            Node::Constant(value, scale) => {
                to.values[..rows].fill(*value);
                to.has_nulls = false;
                (to.magnitudes, to.decimals) = (value.unsigned_abs(), *scale);
                *scale
            }
            Node::Negative(inner) => {
                let scale = self.found(inner, of, to);
                each(to, rows, |value| -value);
                scale
            }
            Node::Absolute(inner) => {
                let scale = self.found(inner, of, to);
                each(to, rows, i64::abs);
                scale
            }
            Node::Sign(inner) => {
                self.found(inner, of, to);
                each(to, rows, i64::signum);
                (to.magnitudes, to.decimals) = (1, 0);
                0
            }
            Node::Cut(kind, digits, inner) => {
                let scale = self.found(inner, of, to);
                cut(to, rows, scale, (*kind, *digits), of.out)
            }
            Node::NullIf(number, inner) => {
                let scale = self.found(inner, of, to);
                set_nulls(to, rows, scale, number);
                scale
            }
            Node::Operation(operation, sides) => {
                let mut other = self.spare.pop().unwrap_or_else(Numbers::new);
                let scales = [
                    self.found(&mut sides[0], of, to),
                    self.found(&mut sides[1], of, &mut other),
                ];
                let scale = match operation {
                    Operation::Times => {
                        multiply(to, &other, rows, of.out);
                        to.decimals += other.decimals;
                        scales[0] + scales[1]
                    }
                    Operation::Quotient(quotients) => {
                        quotients.divide(to, &other, rows, scales, of.out)
                    }
                    operation => {
                        let scale = scales[0].max(scales[1]);
                        raise(to, rows, scale - scales[0], of.out);
                        raise(&mut other, rows, scale - scales[1], of.out);
                        match operation {
                            Operation::Modulo => modulo(to, &other, rows, of.out),
                            Operation::Minus => add(to, &other, rows, true, of.out),
                            _ => add(to, &other, rows, false, of.out),
                        }
                        to.decimals = to.decimals.max(other.decimals);
                        scale
                    }
                };
                join_nulls(to, &other, rows);
                self.spare.push(other);
                scale
            }
            Node::Single(at) => {
                let (formula, scale) = &mut self.single[*at];
                *scale = singly(formula, *scale, of, to);
                *scale
            }
            Node::Order(columns, single) => {
                self.order(*columns, *single, of, to);
                0
            }
            Node::Counted(at, value, scale) => {
                let bits = self.chosen(*at, of);
                for (word, values) in bits.iter().zip(to.values[..rows].chunks_mut(64)) {
                    for (row, to) in values.iter_mut().enumerate() {
                        *to = (word >> row & 1) as i64 * *value;
                    }
                }
                for (at, nulls) in to.nulls[..rows.div_ceil(8)].iter_mut().enumerate() {
                    *nulls = !(bits[at / 8] >> (at % 8 * 8)) as u8;
                }
                to.has_nulls = true;
                (to.magnitudes, to.decimals) = (value.unsigned_abs(), *scale);
                *scale
            }
            Node::Choice(at, sides) => {
                let bits = self.chosen(*at, of);
                let mut other = self.spare.pop().unwrap_or_else(Numbers::new);
                let mut side = |node: &mut Node, to: &mut Numbers, wanted: u64| {
                    let before = std::mem::take(of.out);
                    let scale = self.found(node, of, to);
                    // What isn't chosen isn't computed.
                    of.out
                        .retain(|&row| bits[row as usize / 64] >> (row % 64) & 1 == wanted);
                    of.out.extend(before);
                    scale
                };
                let [one, two] = &mut **sides;
                let scales = [side(one, to, 1), side(two, &mut other, 0)];
                let scale = scales[0].max(scales[1]);
                raise(to, rows, scale - scales[0], of.out);
                raise(&mut other, rows, scale - scales[1], of.out);
                choose(to, &other, rows, &bits);
                to.decimals = to.decimals.max(other.decimals);
                to.magnitudes |= other.magnitudes;
                self.spare.push(other);
                scale
            }
        }
    }

    /// The order of two columns.
    fn order(
        &mut self,
        columns: [usize; 2],
        single: usize,
        of: &mut Operands<'_>,
        to: &mut Numbers,
    ) {
        let rows = of.rows.count;
        let mut odd = Vec::new();
        for at in columns {
            decode(of.level, &of.rows, &mut self.ordered[at], &mut odd);
        }
        let [one, two] = columns.map(|at| &self.ordered[at]);
        let scales = [one, two].map(|column| column.scale.unwrap_or_default());
        let scale = scales[0].max(scales[1]);
        let factors = scales.map(|own| 10_i128.pow(scale - own));
        let pairs = one.numbers.values[..rows]
            .iter()
            .zip(&two.numbers.values[..rows]);
        for (to, (&one, &two)) in to.values[..rows].iter_mut().zip(pairs) {
            let (one, two) = (i128::from(one) * factors[0], i128::from(two) * factors[1]);
            *to = i64::from(one > two) - i64::from(one < two);
        }
        to.copy_nulls(&one.numbers, rows);
        join_nulls(to, &two.numbers, rows);
        if !to.has_nulls {
            to.nulls[..rows.div_ceil(8)].fill(0);
        }
        (to.magnitudes, to.decimals) = (1, 0);
        let formula = &self.single[single].0;
        for row in odd {
            let record = Row {
                rows: &of.rows,
                row: row as usize,
            };
            let order = formula.stored_number(&record);
            let value = |number: Number| number.at(0).map_or(0, |order| order as i64);
            match order {
                Ok(number) => {
                    to.set_null(row as usize, number.is_none());
                    to.values[row as usize] = number.map_or(0, value);
                }
                Err(_) => of.out.push(row),
            }
        }
    }

    /// A bit for each row of which a condition is true. Rows about which a value decides that can't be read are out.
    fn chosen(&mut self, at: usize, of: &mut Operands<'_>) -> Vec<u64> {
        let (condition, selection) = &mut self.choices[at];
        let mut doubts = Doubts::default();
        let taken = selection.select(of.rows.plan, condition, &of.rows, &mut doubts);
        if doubts.is_unread {
            let mut doubts = Doubts::of(Reading::Hopeful);
            let otherwise = selection.select(of.rows.plan, condition, &of.rows, &mut doubts);
            for row in 0..of.rows.count {
                let bit = |bits: &[u64]| bits[row / 64] >> (row % 64) & 1;
                if bit(&taken) != bit(&otherwise) {
                    of.out.push(row as u32);
                }
            }
        }
        taken
    }
}

/// Decodes the numbers of a column; other rows are `out`.
fn decode(level: Level, rows: &Rows<'_>, column: &mut Column, out: &mut Vec<u32>) {
    let (window, spans) = rows.values_at(column.at);
    let text = (window, spans, rows.count);
    decode_column(level, rows.plan, text, MAGNITUDE_MAX, column, out);
}

/// A constant without its point, if it is short.
fn constant(number: &Number) -> Option<i64> {
    let scale = number.decimals();
    let value = i64::try_from(number.at(scale)?).ok()?;
    (scale <= SCALE_MAX && value.unsigned_abs() < MAGNITUDE_MAX).then_some(value)
}

/// Computes a formula a row at a time, in units of at least so many decimals; returns how many they are then.
fn singly(formula: &Formula, mut scale: u32, of: &mut Operands<'_>, to: &mut Numbers) -> u32 {
    let rows = of.rows.count;
    to.nulls[..rows.div_ceil(8)].fill(0);
    (to.has_nulls, to.magnitudes, to.decimals) = (false, 0, 0);
    for row in 0..rows {
        to.values[row] = 0;
        let record = Row {
            rows: &of.rows,
            row,
        };
        let number = match formula.stored_number(&record) {
            Ok(Some(number)) => number,
            Ok(None) => {
                to.set_null(row, true);
                continue;
            }
            Err(_) => {
                of.out.push(row as u32);
                continue;
            }
        };
        let decimals = number.decimals();
        if decimals > scale && decimals <= SCALE_MAX {
            raise(to, row, decimals - scale, of.out);
            scale = decimals;
        }
        let value = number.at(scale).and_then(|value| i64::try_from(value).ok());
        match value.filter(|value| value.unsigned_abs() < MAGNITUDE_MAX) {
            Some(value) => {
                to.values[row] = value;
                to.magnitudes |= value.unsigned_abs();
                to.decimals = to.decimals.max(decimals);
            }
            None => of.out.push(row as u32),
        }
    }
    scale
}

fn each(to: &mut Numbers, rows: usize, of: impl Fn(i64) -> i64) {
    let values = to.values[..rows].iter_mut();
    values.for_each(|value| *value = of(*value));
}

/// Cuts decimals; returns the scale that is left.
fn cut(
    to: &mut Numbers,
    rows: usize,
    scale: u32,
    (cut, digits): (Cut, i32),
    out: &mut Vec<u32>,
) -> u32 {
    let left = digits.max(0).cast_unsigned();
    let Ok(zeros @ 1..) = u32::try_from(scale.cast_signed() - digits) else {
        return scale;
    };
    let Some(divisor) = power(zeros) else {
        none(to, rows, out);
        return 0;
    };
    to.magnitudes = 0;
    for value in &mut to.values[..rows] {
        let magnitude = value.unsigned_abs();
        let (whole, rest) = (magnitude / divisor, magnitude % divisor);
        let whole = whole + u64::from(cut.is_farther(*value < 0, rest, divisor));
        to.magnitudes |= whole;
        *value = whole.cast_signed() * value.signum();
    }
    to.decimals = to.decimals.min(left);
    raise(to, rows, digits.min(0).unsigned_abs(), out);
    left
}

/// Numbers that are this one are null.
fn set_nulls(to: &mut Numbers, rows: usize, scale: u32, number: &Number) {
    let more = number.decimals().saturating_sub(scale);
    let (Some(wanted), Some(factor)) = (number.at(scale + more), 10_i128.checked_pow(more)) else {
        return;
    };
    if !to.has_nulls {
        to.nulls[..rows.div_ceil(8)].fill(0);
    }
    for row in 0..rows {
        if i128::from(to.values[row]).checked_mul(factor) == Some(wanted) {
            to.set_null(row, true);
        }
    }
}

/// What is left of each, with its sign, after so many times the other as fit.
fn modulo(to: &mut Numbers, other: &Numbers, rows: usize, out: &mut Vec<u32>) {
    to.magnitudes |= other.magnitudes;
    for row in 0..rows {
        match other.values[row] {
            0 if other.is_null(row) => {}
            0 => out.push(row as u32),
            divisor => to.values[row] %= divisor,
        }
    }
}

/// Where one of two is null, so is what is computed of both.
fn join_nulls(to: &mut Numbers, other: &Numbers, rows: usize) {
    if !other.has_nulls {
        return;
    }
    if !to.has_nulls {
        return to.copy_nulls(other, rows);
    }
    let bytes = rows.div_ceil(8);
    for (to, other) in to.nulls[..bytes].iter_mut().zip(&other.nulls[..bytes]) {
        *to |= other;
    }
}

/// Multiplies by a power of ten; rows whose values are too large then are out.
fn raise(numbers: &mut Numbers, rows: usize, zeros: u32, out: &mut Vec<u32>) {
    if zeros == 0 {
        return;
    }
    let Some(factor) = 10_u64.checked_pow(zeros).filter(|_| zeros <= SCALE_MAX) else {
        return none(numbers, rows, out);
    };
    numbers.raise(rows, factor);
    out.append(&mut numbers.unread);
}

/// All rows are out.
#[cold]
fn none(numbers: &mut Numbers, rows: usize, out: &mut Vec<u32>) {
    numbers.values[..rows].fill(0);
    numbers.magnitudes = 0;
    out.extend(0..rows as u32);
}

fn multiply(to: &mut Numbers, other: &Numbers, rows: usize, out: &mut Vec<u32>) {
    let bits = |magnitudes: u64| u64::BITS - magnitudes.leading_zeros();
    if bits(to.magnitudes) + bits(other.magnitudes) >= MAGNITUDE_MAX.trailing_zeros() {
        return to.replace(rows, out, |row, value| value.checked_mul(other.values[row]));
    }
    let mut magnitudes = 0;
    for (value, other) in to.values[..rows].iter_mut().zip(&other.values[..rows]) {
        *value *= other;
        magnitudes |= value.unsigned_abs();
    }
    to.magnitudes = magnitudes;
}

fn add(to: &mut Numbers, other: &Numbers, rows: usize, is_less: bool, out: &mut Vec<u32>) {
    // Both are less than 2^62, so their sum fits; it may be past the limit.
    let sign = if is_less { -1 } else { 1 };
    let mut magnitudes = 0;
    for (value, other) in to.values[..rows].iter_mut().zip(&other.values[..rows]) {
        *value += sign * other;
        magnitudes |= value.unsigned_abs();
    }
    to.magnitudes = magnitudes;
    if to.magnitudes >= MAGNITUDE_MAX {
        to.replace(rows, out, |_, value| Some(value));
    }
}

/// Takes the numbers of another where a bit isn't set.
fn choose(to: &mut Numbers, other: &Numbers, rows: usize, bits: &[u64]) {
    for row in 0..rows {
        let is_set = bits[row / 64] >> (row % 64) & 1 == 1;
        let both = [other.values[row], to.values[row]];
        to.values[row] = both[usize::from(is_set)];
    }
    if !(to.has_nulls || other.has_nulls) {
        return;
    }
    let bytes = rows.div_ceil(8);
    let nulls = |numbers: &Numbers, at: usize| match numbers.has_nulls {
        true => numbers.nulls[at],
        false => 0,
    };
    for at in 0..bytes {
        let set = (bits[at / 8] >> (at % 8 * 8)) as u8;
        to.nulls[at] = nulls(to, at) & set | nulls(other, at) & !set;
    }
    to.has_nulls = true;
}
