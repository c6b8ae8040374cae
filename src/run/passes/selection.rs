//! Which rows of a window a condition takes, a test at a time for all of them.
//!
//! A test gives a bit for each row; "and" and "or" combine the bits. Numbers are decoded as those of aggregates are, and
//! short texts compared as words. What else there is goes value by value.

use ringfold_read::internals::Level;

use crate::aggregate::lanes::MAGNITUDE_MAX;
use crate::decimal::number::Number;
use crate::expression::Doubts;
use crate::expression::formula::test_is_true;
use crate::expression::tree::{Check, Comparison, Condition, Test};
use crate::expression::value::{Tested, Value};
use crate::plan::Plan;
use crate::run::passes::computed::{ComputedNumbers, Row, Rows};
use crate::run::verdicts::{Text, Verdicts};
use crate::scan::decimal::{decode, usual_scale};
use crate::scan::index::TextWindow;
use crate::scan::numbers::{Numbers, SCALE_MAX};
use crate::scan::spans::value;

/// What a worker needs to select rows.
pub(super) struct Selection {
    level: Level,
    /// For each column that is compared with numbers, its scale once there was a number.
    scales: Vec<(usize, u32)>,
    numbers: Numbers,
    /// For each test, in their order, what is known of texts if it goes value by value.
    verdicts: Vec<Option<Verdicts>>,
    /// The test that is next.
    next: usize,
}

impl Selection {
    pub(super) fn new(level: Level) -> Selection {
        Selection {
            level,
            scales: Vec::new(),
            numbers: Numbers::new(),
            verdicts: Vec::new(),
            next: 0,
        }
    }

    /// A bit for each row of which the condition is true.
    pub(super) fn select(
        &mut self,
        plan: &Plan,
        condition: &Condition,
        rows: &Rows<'_>,
        doubts: &mut Doubts,
    ) -> Vec<u64> {
        self.next = 0;
        self.combine(plan, condition, rows, doubts)
    }

    fn combine(
        &mut self,
        plan: &Plan,
        condition: &Condition,
        rows: &Rows<'_>,
        doubts: &mut Doubts,
    ) -> Vec<u64> {
        let mut all = |conditions: &[Condition], combine: fn(u64, u64) -> u64| {
            let mut bits = conditions
                .iter()
                .map(|one| self.combine(plan, one, rows, doubts));
            let first = bits.next().unwrap_or_default();
            bits.fold(first, |mut all, more| {
                let pairs = all.iter_mut().zip(more);
                pairs.for_each(|(one, other)| *one = combine(*one, other));
                all
            })
        };
        match condition {
            Condition::All(conditions) => all(conditions, |one, other| one & other),
            Condition::Any(conditions) => all(conditions, |one, other| one | other),
            Condition::Test(test) => self.test(plan, test, rows, doubts),
        }
    }

    fn test(&mut self, plan: &Plan, test: &Test, rows: &Rows<'_>, doubts: &mut Doubts) -> Vec<u64> {
        let (window, spans) = rows.values(test.column);
        let at = self.next;
        self.next += 1;
        if let Some(computed) = rows.computed_numbers(test.column) {
            return compared(plan, test, computed, rows.count, doubts);
        }
        let is_whole = test.unit.is_none() && test.clock.is_none();
        if plan.grammar.decimal_point != b'.' && !plan.is_field(test.column) {
            // Computed numbers have a point, so they aren't read from their texts.
            let mut row = 0;
            return bits(&spans[..rows.count], |_| {
                row += 1;
                test_is_true(test, &Row { rows, row: row - 1 }, doubts)
            });
        }
        match &test.check {
            Check::Number(comparison, number)
                if number.decimals() <= SCALE_MAX && !plan.has_numeric_nulls && is_whole =>
            {
                self.numbers(plan, test, (*comparison, *number), rows, doubts)
            }
            Check::Text(Comparison::Equal, text)
                if text.len() <= 16
                    && !plan.is_null(text)
                    && is_whole
                    && !plan.wants_number(test.column) =>
            {
                texts(window, &spans[..rows.count], text)
            }
            Check::Null { .. } | Check::Text(..) if is_whole => {
                bits(&spans[..rows.count], |&span| {
                    let bytes = value(window, span);
                    test.is_true(&plan.operand(test.column, bytes), doubts)
                })
            }
            _ => {
                self.verdicts
                    .resize_with(self.verdicts.len().max(at + 1), || None);
                let verdicts = self.verdicts[at].get_or_insert_with(Verdicts::new);
                let clocks = test.clock.map(|clock| rows.values(clock));
                let (mut row, mut joined) = (0, Vec::new());
                bits(&spans[..rows.count], |&span| {
                    let (bytes, text) = match clocks {
                        None => (value(window, span), Text::at(window, span)),
                        Some((clock_window, clocks)) => {
                            let parts = [value(window, span), value(clock_window, clocks[row])];
                            let bytes = plan.joined_parts(parts, &mut joined);
                            (bytes, Text::of(bytes))
                        }
                    };
                    row += 1;
                    verdicts.of(text, doubts, |cache, doubts| {
                        test.is_true_by(cache, &plan.operand(test.column, bytes), doubts)
                    })
                })
            }
        }
    }

    /// Compares a column with a number.
    fn numbers(
        &mut self,
        plan: &Plan,
        test: &Test,
        (comparison, wanted): (Comparison, Number),
        rows: &Rows<'_>,
        doubts: &mut Doubts,
    ) -> Vec<u64> {
        let (window, spans) = rows.values(test.column);
        let known = self
            .scales
            .iter()
            .find(|(column, _)| *column == test.column);
        let scale = match known {
            Some((_, scale)) => *scale,
            None => {
                let scale = usual_scale(window, &spans[..rows.count], MAGNITUDE_MAX, |text| {
                    plan.read_number(text)
                });
                self.scales.push((test.column, scale));
                scale
            }
        };
        let scale = scale.max(wanted.decimals());
        let numbers = &mut self.numbers;
        let point = plan.grammar.decimal_point;
        decode(
            self.level,
            window,
            spans,
            rows.count,
            (scale, point),
            numbers,
        );
        let values = &numbers.values[..rows.count];
        // Past 64 bits it is past all values.
        let past = match wanted.is_negative() {
            true => i128::MIN,
            false => i128::MAX,
        };
        let limit = wanted.at(scale).unwrap_or(past);
        let limit = limit.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let mut bits = match comparison {
            Comparison::Equal => bits(values, |value| *value == limit),
            Comparison::Unequal => bits(values, |value| *value != limit),
            Comparison::Less => bits(values, |value| *value < limit),
            Comparison::AtMost => bits(values, |value| *value <= limit),
            Comparison::Greater => bits(values, |value| *value > limit),
            Comparison::AtLeast => bits(values, |value| *value >= limit),
        };
        clear_nulls(numbers, rows.count, &mut bits);
        for &row in &numbers.unread {
            let bytes = value(window, spans[row as usize]);
            let bit = 1 << (row % 64);
            bits[row as usize / 64] &= !bit;
            if test.is_true(&plan.operand(test.column, bytes), doubts) {
                bits[row as usize / 64] |= bit;
            }
        }
        bits
    }
}

/// Tests numbers that are computed.
fn compared(
    plan: &Plan,
    test: &Test,
    computed: &ComputedNumbers,
    rows: usize,
    doubts: &mut Doubts,
) -> Vec<u64> {
    let ComputedNumbers { numbers, scale, .. } = computed;
    let values = &numbers.values[..rows];
    let (Check::Number(comparison, wanted), false) = (&test.check, test.unit.is_some()) else {
        let mut row = 0;
        return bits(values, |&value| {
            let value = match numbers.is_null(row) {
                true => Value::Null,
                false => Value::Number(Number::new(value.into(), *scale).into()),
            };
            row += 1;
            let tested = Tested {
                value: &value,
                wants_number: false,
                grammar: plan.grammar,
            };
            test.is_true(&tested, doubts)
        });
    };
    // The literal may have more decimals: then no value equals it.
    let up = wanted.decimals().saturating_sub(*scale);
    let factor = 10_i128.checked_pow(up);
    let limit = wanted.at(wanted.decimals().max(*scale));
    let mut bits = match (factor, limit) {
        (Some(factor), Some(limit)) => bits(values, |&value| {
            let value = i128::from(value).saturating_mul(factor);
            comparison.holds(value.cmp(&limit))
        }),
        _ => bits(values, |&value| {
            comparison.holds(Number::new(value.into(), *scale).cmp(wanted))
        }),
    };
    clear_nulls(numbers, rows, &mut bits);
    bits
}

/// What is null is never true.
fn clear_nulls(numbers: &Numbers, rows: usize, bits: &mut [u64]) {
    if numbers.has_nulls {
        for (eight, &nulls) in numbers.nulls[..rows.div_ceil(8)].iter().enumerate() {
            bits[eight / 8] &= !(u64::from(nulls) << (eight % 8 * 8));
        }
    }
}

/// A bit for each value of which `is_true`.
#[inline(always)]
fn bits<T>(values: &[T], mut is_true: impl FnMut(&T) -> bool) -> Vec<u64> {
    let word = |values: &[T]| {
        let bits = values.iter().enumerate();
        bits.fold(0, |word, (at, value)| {
            word | u64::from(is_true(value)) << at
        })
    };
    values.chunks(64).map(word).collect()
}

/// A bit for each value that is `text`, of up to 16 bytes.
fn texts(window: TextWindow<'_>, spans: &[u32], text: &[u8]) -> Vec<u64> {
    let mut padded = [0; 16];
    padded[..text.len()].copy_from_slice(text);
    let wanted = u128::from_le_bytes(padded);
    let mask = match text.len() {
        0 => 0,
        length => u128::MAX >> (128 - 8 * length),
    };
    let length = text.len() as u32 + 1;
    bits(spans, |&span| {
        let (start, end) = (span & 0xffff, span >> 16);
        end - start == length && (window.words_at(start as usize) & mask) == wanted
    })
}
