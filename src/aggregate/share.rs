//! Which percentile is asked for.

use std::fmt::{self, Display, Formatter};

use num_bigint::BigInt;

use crate::decimal::number::Exact;

/// Digits of a percentile beyond the column's.
pub(super) const MORE: u32 = 2;

/// The most digits after the point of a percentile's name.
const DECIMALS_MAX: usize = 6;

/// A share of all values, up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(super) dividend: u64,
    pub(crate) divisor: u64,
    /// How many digits its name has before and after the point.
    digits: (usize, usize),
}

impl Share {
    pub(super) const HALF: Share = Share {
        dividend: 1,
        divisor: 2,
        digits: (2, 0),
    };

    /// The share that a name such as `p99.9` says.
    pub(super) fn named(name: &str) -> Option<Share> {
        let name = name.strip_prefix('p')?;
        let (whole, decimals) = name.split_once('.').unwrap_or((name, ""));
        let is_right = |digits: &str, most| {
            digits.len() <= most && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_cut = whole.is_empty() || name.ends_with('.');
        if is_cut || !is_right(whole, 3) || !is_right(decimals, DECIMALS_MAX) {
            return None;
        }
        let digits: u64 = format!("{whole}{decimals}").parse().ok()?;
        let divisor = 100 * 10_u64.pow(decimals.len() as u32);
        (digits <= divisor).then_some(Share {
            dividend: digits,
            divisor,
            digits: (whole.len(), decimals.len()),
        })
    }

    /// The place of its value among so many, and how far it lies towards the next one, as a share of the divisor.
    pub(crate) fn place(self, count: u64) -> (u64, u64) {
        let place = u128::from(count - 1) * u128::from(self.dividend);
        let divisor = u128::from(self.divisor);
        ((place / divisor) as u64, (place % divisor) as u64)
    }

    /// What lies so far from one number towards the next one, times the divisor. Both have up to `scale` digits after the
    /// point.
    pub(crate) fn between(self, mut low: Exact, high: Exact, rest: u64, scale: u32) -> Exact {
        if low.special().or(high.special()).is_some() {
            low.add_exact(&high);
            return low;
        }
        let between: BigInt = low.at(scale) * (self.divisor - rest) + high.at(scale) * rest;
        Exact::new(between, scale)
    }
}

/// As its name says it.
impl Display for Share {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = self.digits;
        let unit = 10_u64.pow(decimals as u32);
        write!(out, "{:0whole$}", self.dividend / unit)?;
        match decimals {
            0 => Ok(()),
            _ => write!(out, ".{:0decimals$}", self.dividend % unit),
        }
    }
}
