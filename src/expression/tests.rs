//! What is refused and where, and conditions against a naive evaluator with three truth values, which shares no code
//! with them: it works on trees of its own, and reads numbers by itself.

use num_bigint::BigInt;
use proptest::prelude::*;

use ringfold_read::Error;

use crate::decimal::number::Grammar;
use crate::expression::formula::Formula;
use crate::expression::value::{Record, Value, ValueError, Wrong};
use crate::expression::{Bytes, Condition, Doubts, Expression, Scope};
use crate::plan::columns::Columns;
use crate::refusal::{FILTER, KEY, Refusal};

mod values;

fn compiled(text: &str) -> Result<Condition, (usize, String)> {
    let expression = Expression::condition(text, FILTER);
    let condition = expression.and_then(|expression| expression.compile(&mut Names::new()));
    condition.map_err(fault)
}

fn fault(error: Error) -> (usize, String) {
    match error.job() {
        Some(Refusal::Condition { at, why, .. }) => (*at, why.clone()),
        _ => panic!("{error}"),
    }
}

/// Four columns, and those that are computed.
struct Names {
    names: [Vec<u8>; 4],
    computed: Vec<Formula>,
}

impl Names {
    fn new() -> Names {
        Names {
            names: ["a", "b", "x-ray", "in"].map(|name| name.as_bytes().to_vec()),
            computed: Vec::new(),
        }
    }
}

impl Scope for Names {
    fn find(&mut self, columns: &Columns) -> Result<usize, String> {
        let found = columns.find(self.names.len(), Some(&self.names))?;
        Ok(found[0])
    }

    fn is_time(&self, _: usize) -> bool {
        false
    }

    fn compute(&mut self, formula: Formula, _: &str, _: bool) -> Result<usize, String> {
        self.computed.push(formula);
        Ok(self.names.len() + self.computed.len() - 1)
    }
}

fn holds(condition: &Condition, row: &[&str]) -> bool {
    condition.decide(&mut |test| {
        let value = row[test.column];
        let value = Bytes {
            bytes: value.as_bytes(),
            is_null: ["", "NA"].contains(&value),
            wants_number: false,
            grammar: Grammar::PLAIN,
        };
        test.is_true(&value, &mut Doubts::default())
    })
}

#[test]
fn what_is_refused_and_where() {
    for (text, at, words) in [
        ("", 0, "a condition is missing"),
        ("  ", 2, "a condition is missing"),
        ("a", 1, "an operator is missing"),
        ("a b", 2, "an operator is missing"),
        ("a =", 3, "a number, or a text in single quotes, is missing"),
        (
            "a = \"c\"",
            4,
            "no column is called `c`, did you mean `a`? the header has: a, b, x-ray, in; a text stands in single quotes, 'c'",
        ),
        (
            "a b > 2",
            2,
            "a name with blanks stands in double quotes, \"a b\"",
        ),
        ("a = $7", 4, "there is no column 7"),
        ("a in (b)", 6, "`b` is a column, and lists have none"),
        ("a = (b > 1)", 4, "a condition can't be compared"),
        ("a = null", 4, "write `is null`"),
        ("a = 1e3.5", 4, "`1e3.5` is not a number"),
        ("a = 1e-", 4, "`1e-` is not a number"),
        ("a = 1.2.3", 4, "`1.2.3` is not a number"),
        (
            "a > 100000000000000000000000000000000000001",
            4,
            "more than 38 digits",
        ),
        ("a = 'it''s", 4, "the quote that opens here is never closed"),
        ("\"a = 1", 0, "the quote that opens here is never closed"),
        (" > 5", 1, "a shell takes $3"),
        ("$ > 5", 0, "the number of a column is missing"),
        ("$0 > 5", 0, "columns are counted from 1"),
        ("$5 > 5", 0, "there is no column 5"),
        ("3 > 5", 4, "its number is written $3"),
        ("'x' ~ a", 4, "a value stands in front of"),
        ("a = 1 b = 2", 6, "`and` or `or` is missing"),
        ("a = 1 && b = 2", 6, "write `and`"),
        ("a = 1 || b = 2", 6, "write `or`"),
        ("! a = 1", 0, "write `not`"),
        ("x-ray = 1", 0, "stands in double quotes"),
        ("a = 1)", 5, "no parenthesis is open here"),
        (
            "not (a = 1",
            4,
            "the parenthesis that opens here is never closed",
        ),
        ("(a = 1 b", 7, "`and`, `or` or `)` is missing"),
        ("a = 1 and", 9, "a column is missing"),
        ("a in 1", 5, "`(` is missing"),
        ("a in ()", 6, "a number, or a text"),
        ("a in (1, 2", 5, "never closed"),
        ("a in (1 2)", 8, "`,` or `)` is missing"),
        ("a not = 1", 6, "`in`, `between` or `like` is missing"),
        ("a is 1", 5, "`null` is missing"),
        ("null = 1", 0, "stands in double quotes"),
        (
            "a ~ 5",
            4,
            "a regular expression in single quotes is missing",
        ),
        ("a ~ '(b'", 4, "not a regular expression: unclosed group"),
        (
            "a ~ 'x{1000}{1000}{1000}'",
            4,
            "not a regular expression: compiled it takes more than 10485760 bytes",
        ),
        ("ü = 1 or c = 1", 0, "no column is called `ü`"),
        ("a = 1 or c = 1", 9, "no column is called `c`"),
    ] {
        let (got, why) = compiled(text).unwrap_err();
        assert_eq!(got, at, "{text}: {why}");
        assert!(why.contains(words), "{text}: {why}");
    }
    let deep = |depth: usize| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(compiled(&deep(99)).is_ok());
    for text in [deep(100), "not ".repeat(100_000)] {
        assert!(compiled(&text).unwrap_err().1.contains("too deeply"));
    }
}

#[test]
fn what_is_true() {
    for (text, row, want) in [
        ("a = 1", "1.00", true),
        ("a == 1", "+1.", true),
        ("a=1", " 1 ", true),
        ("a = '1'", "1.00", false),
        ("a <> 1", "2", true),
        ("a != 1", "one", false),
        ("not a = 1", "one", false),
        ("not a != 1", "one", false),
        ("a > -.5", "-0.4", true),
        ("-.5 < a", "-0.4", true),
        ("-.5 < a", "-0.6", false),
        ("a>=5 AND(a<=6)", "6", true),
        ("'2024' <= a and a < '2025'", "2024-12-31", true),
        ("a = ''", "", false),
        ("a != 'x'", "", false),
        ("a is null", "", true),
        ("a is null", "NA", true),
        ("a = 'NA'", "NA", false),
        ("a is not null", "NA", false),
        ("not a is null", "x", true),
        ("a = 'it''s'", "it's", true),
        ("a ~ '^it'", "it's", true),
        ("a !~ '^it'", "an it", true),
        ("a !~ '^it'", "", false),
        ("a ~ '(?i)ÜB'", "hinüber", true),
        ("a in (1, 'x', 2.0)", "2", true),
        ("a in (1, 'x', 2.0)", "x", true),
        ("a not in ('x', 'y')", "z", true),
        ("a not in (1, 2)", "3", true),
        // Whether it is 1 is null, and so is the whole.
        ("a not in (1, 'x')", "z", false),
        ("a = 1 or a = 2 and a = 3", "1", true),
        ("(a = 1 or a = 2) and a = 3", "1", false),
        ("not a = 1 and a = 2", "2", true),
        (
            "a < 99999999999999999999999999999999999999",
            "0.00000000000000000000000000000000000001",
            true,
        ),
    ] {
        assert_eq!(
            holds(&compiled(text).unwrap(), &[row]),
            want,
            "{text}: {row}"
        );
    }
    let row = ["", "", "5", "6"];
    for text in ["\"x-ray\" = 5", "$3 = 5", "\"in\" = 6", "$4 > 5.9"] {
        assert!(holds(&compiled(text).unwrap(), &row), "{text}");
    }
}

/// A condition as the naive evaluator has it. Values and names are given as they are written.
#[derive(Debug, Clone)]
enum Naive {
    And(Box<Naive>, Box<Naive>),
    Or(Box<Naive>, Box<Naive>),
    Not(Box<Naive>),
    Compare(usize, &'static str, String),
    In(usize, bool, Vec<String>),
    Null(usize, bool),
    Pattern(usize, bool, &'static str),
}

const COLUMNS: [[&str; 2]; 3] = [["a", "$1"], ["b", "$2"], ["\"x-ray\"", "$3"]];

impl Naive {
    fn text(&self) -> String {
        let column = |at: usize| COLUMNS[at % 3][at / 3];
        match self {
            Naive::And(one, two) => format!("{} and {}", one.text(), two.text()),
            Naive::Or(one, two) => format!("({} or {})", one.text(), two.text()),
            Naive::Not(one) => format!("NOT ({})", one.text()),
            Naive::Compare(at, sign, literal) => format!("{} {sign}{literal}", column(*at)),
            Naive::In(at, wanted, list) => {
                let not = if *wanted { "" } else { "not " };
                format!("{} {not}in ({})", column(*at), list.join(", "))
            }
            Naive::Null(at, true) => format!("{} is null", column(*at)),
            Naive::Null(at, false) => format!("{} Is Not Null", column(*at)),
            Naive::Pattern(at, wanted, pattern) => {
                let sign = if *wanted { "~" } else { "!~" };
                format!("{} {sign} '{pattern}'", column(*at))
            }
        }
    }

    fn truth(&self, row: &[String]) -> Option<bool> {
        let value = |at: usize| Some(&row[at % 3]).filter(|value| !["", "NA"].contains(&&***value));
        match self {
            Naive::And(one, two) => match (one.truth(row), two.truth(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Naive::Or(one, two) => match (one.truth(row), two.truth(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Naive::Not(one) => one.truth(row).map(|truth| !truth),
            Naive::Compare(at, sign, literal) => compare(value(*at)?, sign, literal),
            Naive::In(at, wanted, list) => {
                let value = value(*at)?;
                let equal: Vec<_> = list.iter().map(|one| compare(value, "=", one)).collect();
                let among = match equal.contains(&Some(true)) {
                    true => Some(true),
                    false if equal.contains(&None) => None,
                    false => Some(false),
                };
                among.map(|among| among == *wanted)
            }
            Naive::Null(at, wanted) => Some(value(*at).is_none() == *wanted),
            Naive::Pattern(at, wanted, pattern) => {
                let value = value(*at)?;
                let matches = match *pattern {
                    "1" => value.contains('1'),
                    "^-" => value.starts_with('-'),
                    "0$" => value.ends_with('0'),
                    _ => unreachable!(),
                };
                Some(matches == *wanted)
            }
        }
    }
}

fn compare(value: &str, sign: &str, literal: &str) -> Option<bool> {
    let order = match literal.strip_prefix('\'') {
        Some(text) => value.cmp(text.strip_suffix('\'').unwrap()),
        None => number(value)?.cmp(&number(literal).unwrap()),
    };
    Some(match sign {
        "=" | "==" => order.is_eq(),
        "!=" | "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => unreachable!(),
    })
}

/// In billionths.
fn number(text: &str) -> Option<BigInt> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = format!("{whole}{part:0<9}");
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
    let is_number = !whole.is_empty()
        && !"+-".contains(whole)
        && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap())
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[+-]?[0-2]\\.?[0-1]{0,2}",
        1 => "[+-]?[0-9]{20,29}\\.[0-9]{1,9}",
        1 => prop::sample::select(vec!["", "NA", "x", "-", "10", " 1 ", "1x"]).prop_map(String::from),
    ]
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+-]?[0-2]\\.?[0-1]{0,2}",
        prop::sample::select(vec![
            "'x'",
            "'1'",
            "'-'",
            "'NA'",
            "''",
            "12345678901234567890123.5"
        ])
        .prop_map(String::from),
    ]
}

fn naive() -> impl Strategy<Value = Naive> {
    const SIGNS: [&str; 8] = ["=", "==", "!=", "<>", "<", "<=", ">", ">="];
    let list = prop::collection::vec(literal(), 1..4);
    let test = prop_oneof![
        4 => (0..6_usize, prop::sample::select(&SIGNS[..]), literal())
            .prop_map(|(at, sign, literal)| Naive::Compare(at, sign, literal)),
        1 => (0..6_usize, any::<bool>(), list)
            .prop_map(|(at, wanted, list)| Naive::In(at, wanted, list)),
        1 => (0..6_usize, any::<bool>()).prop_map(|(at, wanted)| Naive::Null(at, wanted)),
        1 => (0..6_usize, any::<bool>(), prop::sample::select(&["1", "^-", "0$"][..]))
            .prop_map(|(at, wanted, pattern)| Naive::Pattern(at, wanted, pattern)),
    ];
    test.prop_recursive(4, 16, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone()
                .prop_map(|(one, two)| Naive::And(one.into(), two.into())),
            two.prop_map(|(one, two)| Naive::Or(one.into(), two.into())),
            inner.prop_map(|one| Naive::Not(one.into())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// True where the naive one is, and its negation true where that is false.
    #[test]
    fn random_conditions(
        naive in naive(),
        rows in prop::collection::vec(prop::collection::vec(value(), 3), 1..6),
    ) {
        let text = naive.text();
        let condition = compiled(&text).unwrap();
        let negation = compiled(&format!("not ({text})")).unwrap();
        for row in &rows {
            let truth = naive.truth(row);
            let row: Vec<_> = row.iter().map(String::as_str).collect();
            prop_assert_eq!(holds(&condition, &row), truth == Some(true), "{}: {:?}", text, row);
            prop_assert_eq!(holds(&negation, &row), truth == Some(false), "{}: {:?}", text, row);
        }
    }

    /// Any text is read or refused at a place of it.
    #[test]
    fn random_texts(text in "([ab$~!<>=().,'\"1 5ü-]|and|or|not| in | is |null){0,12}") {
        if let Err((at, _)) = compiled(&text) {
            prop_assert!(text.is_char_boundary(at));
        }
    }
}
