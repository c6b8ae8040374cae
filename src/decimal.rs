//! Exact decimals: numbers of fields, sums of any size, and quotients that are rounded once.

pub(crate) mod number;
pub(crate) mod quotient;
pub(crate) mod rational;
