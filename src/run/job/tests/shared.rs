//! What is computed once for a condition, keys and aggregates together.

use proptest::prelude::*;
use ringfold_read::internals::Level;

use super::answer;
use crate::query::ask::Query;
use crate::reject::rejects::OnError;

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "-?[0-9]{1,2}(\\.[0-9]{1,2})?",
        3 => Just(String::new()),
        1 => "a|NA|\"\"\"\"|\"[0-9]\"|1e2|[0-9]{17,20}|[0-9]\\.[0-9]{7,12}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-c]{0,2}",
        1 => "\"[a-c]{0,2}(\"\")?\"",
        1 => "k{40}|[k-l]{130}",
    ]
}

/// Parts of expressions: numbers, and texts.
const NUMBERS: &[&str] = &[
    "$1",
    "$1 + 0",
    "$1 * 4",
    "$1 / 4",
    "$1 - $2",
    "length($3)",
    "abs($2)",
    "if($1 > 2, $2, $1 * 2)",
    "coalesce($2, 1)",
    "$1 * $2 * 0.5",
];
const TEXTS: &[&str] = &[
    "$3",
    "lower($3)",
    "concat($3, $2)",
    "case when $1 * 4 > 7 then 'a' else $3 end",
];
/// What is made of two numbers and a text.
const CONDITIONS: &[&str] = &[
    "X > 7",
    "X <= Y",
    "not X between 1 and 30",
    "X > 1 or Y < 3",
    "X is null or Y > 0",
    "T = 'a' or X > 2",
    "X > 0.3 and T != 'b'",
];
const VALUES: &[&str] = &[
    "sum(X)",
    "sum(if(X > 5, $2, Y))",
    "max(Y) filter (where X > 2)",
    "count(X)",
    "first(Y)",
    "median(X)",
    "distinct(T)",
    "mean(X * Y)",
    "sum($2)",
    "lexmax(T)",
    "count_if(X > 7 or T = 'a')",
    "sum(length($3))",
    "arg_max(T, X)",
];
const KEYS: &[&str] = &["", "", "T", "$3", "bin(X, 10)", "X > 7"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The passes give what single records give where parts of expressions are the same.
    #[test]
    fn passes_share_what_is_computed(
        rows in prop::collection::vec((number(), number(), text()), 1..20),
        repeat in 1..8_usize,
        numbers in prop::collection::vec(prop::sample::select(NUMBERS), 2),
        of_text in prop::sample::select(TEXTS),
        condition in prop::option::weighted(0.7, prop::sample::select(CONDITIONS)),
        key in prop::sample::select(KEYS),
        values in prop::collection::vec(prop::sample::select(VALUES), 1..4),
        on_error in prop::sample::select(&[OnError::Fail, OnError::Skip, OnError::Null][..]),
        is_quoted: bool,
        has_null: bool,
        block in 1..400_usize,
    ) {
        let lines = rows.iter().map(|(one, two, text)| format!("{one},{two},{text}\n"));
        let text = lines.collect::<String>().repeat(repeat);
        let of = |shape: &str| {
            let parts = [('X', numbers[0]), ('Y', numbers[1]), ('T', of_text)];
            let parts = parts.iter();
            parts.fold(shape.to_string(), |all, (name, part)| all.replace(*name, &format!("({part})")))
        };
        let mut query = Query::new(b',').quote(is_quoted.then_some(b'"')).on_error(on_error);
        if has_null {
            query = query.null_value("NA");
        }
        if !key.is_empty() {
            query = query.key_text(&of(key)).unwrap();
        }
        for value in &values {
            query = query.aggregate_text(&of(value)).unwrap();
        }
        if let Some(condition) = condition {
            query = query.filter(&of(condition)).unwrap();
        }
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}
