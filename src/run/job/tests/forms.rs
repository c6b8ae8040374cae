//! Keys, conditions and aggregates of random queries.

use crate::format::time::Unit;

pub(super) const KEYS: &[&[usize]] = &[&[], &[1], &[3], &[1, 2], &[3, 1], &[1, 2, 3]];
pub(super) const UNITS: &[Unit] = &[Unit::Hour, Unit::Day, Unit::Minutes(10), Unit::Week];
pub(super) const CONDITIONS: &[Option<&str>] = &[
    None,
    None,
    Some("$2 > 1 or $1 ~ 'a'"),
    Some("$1 not in (1, 'a', 'b') and $3 is not null"),
    Some("not ($3 >= -5.5)"),
    Some("$2 * 2 > $1 or lower($3) = 'a'"),
    Some("$1 * 4 > 7 and $1 * 4 < 1000"),
    Some("$1 / 4 between 0.5 and 2 or $1 / 4 > 100 or not $1 / 4 > -3"),
    Some("length($1 || $3) % 2 = 0 and coalesce($2, '1') != 'b'"),
    Some("coalesce($2 / 4, $1, 0.5) between 0.25 and 30.5 and $3 is not null"),
    Some("if($1 > 3, $3, 1.5) >= 1.5 or case when $2 = 1 then '1,5' when $2 > 2 then $3 end > 1"),
    Some("$1 / 3 in (0.333333333333, 2) or not -$2 / 3 in (1, -0.666666666667)"),
    Some("$1 / $2 > 0.5 or round($3 / 7, 1) < 4"),
    Some("case when $1 > 3 then $2 else 1 end between 0 and 100 or $2 / 3 < $3"),
];
/// Values, as keys and in aggregates.
pub(super) const VALUE_KEYS: &[&str] = &[
    "upper($1)",
    "left($2 || '-' || $3, 3)",
    "$1 * 10",
    "case when $2 > 2 then 'more' when $2 is null then 'none' end as size",
    "$3 >= 2",
    "round($1 / 3, 1)",
    "coalesce($3, $1)",
    "coalesce($2 * 0.5, $1)",
];
pub(super) const VALUES: &[&str] = &[
    "sum($1 * $2)",
    "sum($1 + $3 * 1.5 - 2)",
    "min($2 - $3)",
    "mean(-$1)",
    "stddev($1 * 2)",
    "max(length($3))",
    "sum($1 * 1000000 * $1 * $1)",
    "count_if($2 > 1)",
    "count(*) filter (where $1 ~ '1' or upper($2) = 'A')",
    "sum($3) filter (where not $1 < 5)",
    "sum(if($1 > 5, $2, $3 * 2))",
    "sum(if($2 * 2 > $1 or $1 * 4 > 10, $2, 1))",
    "median(round($2))",
    "distinct(lower($1))",
    "lexmax(concat($1, $2))",
    "sum($1 / $2)",
    "mean($1 / (abs($3) + 0.1) - 1)",
    "sum(floor($1) + $2 % 7 / nullif($3, 0))",
    "sum(coalesce($2, $1, 0.5))",
    "count:2",
    "distinct(if($2 ~ '^[0-9]', round($2, 1), $3))",
    "arg_max($3, $1)",
    "arg_min($2, $1 * 2) filter (where $3 is not null)",
    "weighted_mean($1, $2)",
    "corr($1, $2)",
    "slope($2, $1 - 1)",
    "covar($1, $1)",
    "geometric_mean(abs($1) + 1)",
    "iqr($2)",
    "distinct($1, $2)",
    "top(2, $1)",
    "values($3)",
    "histogram($2, 2.5)",
];
pub(super) const NULLS: &[&[&str]] = &[&[], &["NA"], &["0", "NA"]];
