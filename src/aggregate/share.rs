//! Which percentile is asked for.

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
}

impl Share {
    pub(super) const HALF: Share = Share {
        dividend: 1,
        divisor: 2,
    };

    /// The share that a name such as `p99.9` says.
    pub(super) fn named(name: &str) -> Option<Share> {
        let (whole, decimals) = match name.strip_prefix('p')?.split_once('.') {
            Some((whole, decimals)) => (whole, decimals),
            None => (&name[1..], "0"),
        };
        let is_right = |digits: &str, most| {
            (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_right(whole, 3) || !is_right(decimals, DECIMALS_MAX) {
            return None;
        }
        let digits: u64 = format!("{whole}{decimals}").parse().ok()?;
        let divisor = 100 * 10_u64.pow(decimals.len() as u32);
        (digits <= divisor).then_some(Share {
            dividend: digits,
            divisor,
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
