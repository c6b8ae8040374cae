//! What a column is compared with, and how.

use std::cmp::Ordering;

use crate::decimal::number::Number;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    Number(Number),
    Text(Vec<u8>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    /// Whether two values of this order compare so.
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }

    /// Whether it asks which of two values comes first.
    pub(super) fn is_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::Unequal)
    }

    /// What holds exactly where this doesn't.
    pub(super) fn opposite(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::Unequal,
            Comparison::Unequal => Comparison::Equal,
            Comparison::Less => Comparison::AtLeast,
            Comparison::AtMost => Comparison::Greater,
            Comparison::Greater => Comparison::AtMost,
            Comparison::AtLeast => Comparison::Less,
        }
    }

    /// The same with its sides exchanged.
    pub(super) fn turned(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::Unequal => self,
            Comparison::Less => Comparison::Greater,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::Greater => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
        }
    }
}
