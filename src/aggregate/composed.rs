//! Aggregates that are short for a value of others: they have no states.
//!
//! Of two columns only records with both values count: what is computed of both is null without one of them. Sums are
//! exact, so `var(x + y)` loses no digit that the covariance needs. A partial has the short form, and must find the same
//! aggregates by it later.

use crate::expression::leaf::Composed;

const fn composed(
    name: &'static str,
    aliases: &'static [&'static str],
    usage: &'static str,
    arguments: usize,
    of: &'static str,
) -> Composed {
    Composed {
        name,
        aliases,
        usage,
        arguments,
        of,
    }
}

/// Twice the covariance, and the variances.
macro_rules! twice {
    () => {
        "(var_pop({x} + {y}){where} - var_pop({x} + 0 * {y}){where} - var_pop({y} + 0 * {x}){where})"
    };
}

/// All of them. A quotient is printed as one, so what is none is divided by 1.
pub(crate) static ALL: &[Composed] = &[
    composed(
        "weighted_mean",
        &["weighted_avg", "wavg"],
        "weighted_mean(x, weight)",
        2,
        "sum({x} * {y}){where} / nullif(sum({y} + 0 * {x}){where}, 0)",
    ),
    composed(
        "covar_samp",
        &["covar"],
        "covar_samp(x, y)",
        2,
        "(var({x} + {y}){where} - var({x} - {y}){where}) / 4",
    ),
    composed(
        "covar_pop",
        &[],
        "covar_pop(x, y)",
        2,
        "(var_pop({x} + {y}){where} - var_pop({x} - {y}){where}) / 4",
    ),
    composed(
        "corr",
        &[],
        "corr(x, y)",
        2,
        concat!(
            "sign(",
            twice!(),
            ") / 1 * sqrt(",
            twice!(),
            " * ",
            twice!(),
            " / nullif(4 * var_pop({x} + 0 * {y}){where} * var_pop({y} + 0 * {x}){where}, 0))"
        ),
    ),
    composed(
        "slope",
        &["regr_slope"],
        "slope(y, x)",
        2,
        concat!(twice!(), " / nullif(2 * var_pop({y} + 0 * {x}){where}, 0)"),
    ),
    composed(
        "geometric_mean",
        &["geomean"],
        "geometric_mean(x)",
        1,
        "exp(mean(ln({x})){where}) / 1",
    ),
    composed("iqr", &[], "iqr(x)", 1, "p75({x}){where} - p25({x}){where}"),
];

/// The one of a name, also of one that other programs have, in any letters.
pub(crate) fn composed_named(name: &str) -> Option<&'static Composed> {
    let name = &*name.to_ascii_lowercase();
    ALL.iter()
        .find(|one| one.name == name || one.aliases.contains(&name))
}
