//! Exact values of any size: sums of numbers, infinities and nan among them.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use crate::decimal::number::{LOW, MANTISSA_MAX, Number, SIDE_MAX, Special, raised, special_order};
use crate::report::grid::{Digits, with_point};

impl Number {
    pub(crate) fn exact(self) -> Exact {
        if let Some(special) = self.special {
            return Exact {
                scale: 0,
                mantissa: Mantissa::Special(special),
            };
        }
        match u32::try_from(self.scale) {
            Ok(scale) if self.low != 0 => Exact::new(self.whole(), scale),
            Ok(scale) => Exact::small(self.mantissa, scale),
            Err(_) => {
                let zeros = BigInt::from(10).pow(self.scale.unsigned_abs());
                Exact::new(zeros * self.mantissa, 0)
            }
        }
    }

    /// The same value as one that a field may hold; `None` if none does.
    pub(crate) fn of(exact: &Exact) -> Option<Number> {
        if let Some(special) = exact.special() {
            return Some(Number {
                special: Some(special),
                ..Number::ZERO
            });
        }
        let fits = |mantissa: &i128| mantissa.unsigned_abs() < MANTISSA_MAX;
        if let (Some(mantissa), scale) = exact.parts()
            && fits(&mantissa)
        {
            return Some(Number::new(mantissa, scale));
        }
        // Zeros at its end aren't needed.
        let (mut mantissa, mut scale) = (exact.mantissa.big(), exact.scale as i32);
        for zeros in [16, 4, 1] {
            let power = BigInt::from(10_u64.pow(zeros));
            loop {
                let small = i128::try_from(&mantissa).ok().filter(fits);
                if let Some(mantissa) = small {
                    return Some(Number {
                        mantissa,
                        scale,
                        ..Number::ZERO
                    });
                }
                let shorter = &mantissa / &power;
                if &shorter * &power != mantissa {
                    break;
                }
                (mantissa, scale) = (shorter, scale - zeros as i32);
            }
        }
        let high = i128::try_from(&mantissa / LOW).ok()?;
        let low = i128::try_from(&mantissa % LOW).ok()?;
        let decimals = usize::try_from(scale).ok()?;
        let digits = SIDE_MAX + high.unsigned_abs().to_string().len();
        (digits <= SIDE_MAX + decimals && decimals <= SIDE_MAX).then_some(Number {
            mantissa: high,
            low,
            scale,
            special: None,
        })
    }
}

/// An exact value of any size: `mantissa / 10^scale`, or a special one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exact {
    pub(super) mantissa: Mantissa,
    pub(super) scale: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Mantissa {
    Small(i128),
    Big(Box<BigInt>),
    Special(Special),
}

impl Default for Mantissa {
    fn default() -> Mantissa {
        Mantissa::Small(0)
    }
}

impl Mantissa {
    pub(super) fn big(&self) -> BigInt {
        match self {
            Mantissa::Small(small) => BigInt::from(*small),
            Mantissa::Big(big) => (**big).clone(),
            Mantissa::Special(_) => unreachable!("digits of a special value"),
        }
    }
}

impl Exact {
    pub(crate) fn add(&mut self, number: Number) {
        if let Mantissa::Small(sum) = &mut self.mantissa
            && number.special.is_none()
            && number.low == 0
        {
            if number.scale == self.scale as i32
                && let Some(both) = sum.checked_add(number.mantissa)
            {
                *sum = both;
                return;
            }
            if *sum == 0 && number.scale > self.scale as i32 {
                (*sum, self.scale) = (number.mantissa, number.decimals());
                return;
            }
        }
        self.add_exact(&number.exact());
    }

    /// Adds the square of a number.
    pub(crate) fn add_square(&mut self, number: Number) {
        if number.special.is_none()
            && number.low == 0
            && let Ok(scale) = u32::try_from(2 * number.scale)
            && let Some(mantissa) = number.mantissa.checked_mul(number.mantissa)
        {
            return self.add(Number::new(mantissa, scale));
        }
        let exact = number.exact();
        self.add_exact(&match exact.special() {
            // The square of either infinity.
            Some(Special::NegativeInfinity) => Exact::of(Special::Infinity),
            Some(_) => exact,
            None => exact.times(&exact),
        });
    }

    pub(crate) fn add_exact(&mut self, other: &Exact) {
        match (self.special(), other.special()) {
            (None, None) => {}
            (Some(one), Some(two)) => return *self = Exact::of(one.plus(two)),
            (one, two) => {
                let special = one.or(two).expect("one of them is");
                return *self = Exact::of(special);
            }
        }
        if let (&Mantissa::Small(one), &Mantissa::Small(two)) = (&self.mantissa, &other.mantissa) {
            let scale = self.scale.max(other.scale);
            let one = raised(&Number::new(one, self.scale), scale);
            let two = raised(&Number::new(two, other.scale), scale);
            if let (Some(one), Some(two)) = (one, two)
                && let Some(both) = one.checked_add(two)
            {
                *self = Exact::small(both, scale);
                return;
            }
        }
        let scale = self.scale.max(other.scale);
        *self = Exact::new(self.at(scale) + other.at(scale), scale);
    }

    /// The same with the other sign.
    #[must_use]
    pub(crate) fn negated(self) -> Exact {
        let mantissa = match self.mantissa {
            Mantissa::Special(special) => Mantissa::Special(special.negated()),
            Mantissa::Small(small) if small != i128::MIN => Mantissa::Small(-small),
            Mantissa::Small(_) | Mantissa::Big(_) => {
                return Exact::new(-self.mantissa.big(), self.scale);
            }
        };
        Exact {
            mantissa,
            scale: self.scale,
        }
    }

    /// The product of two that aren't special.
    #[must_use]
    pub(crate) fn times(&self, other: &Exact) -> Exact {
        let scale = self.scale + other.scale;
        if let (&Mantissa::Small(one), &Mantissa::Small(two)) = (&self.mantissa, &other.mantissa)
            && let Some(product) = one.checked_mul(two)
        {
            return Exact::small(product, scale);
        }
        Exact::new(self.mantissa.big() * other.mantissa.big(), scale)
    }

    /// How many bits its digits take.
    pub(crate) fn bits(&self) -> u64 {
        match &self.mantissa {
            Mantissa::Small(small) => 128 - u64::from(small.unsigned_abs().leading_zeros()),
            Mantissa::Big(big) => big.magnitude().bits(),
            Mantissa::Special(_) => 0,
        }
    }

    /// The same value without zeros at the end of its decimals.
    #[must_use]
    pub(crate) fn shortest(self) -> Exact {
        let (Some(mut mantissa), mut scale) = self.parts() else {
            return match self.special() {
                Some(_) => self,
                None => Number::of(&self).map_or(self, Number::exact),
            };
        };
        while scale > 0 && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        Exact::small(mantissa, scale)
    }

    pub(crate) fn of(special: Special) -> Exact {
        Exact {
            mantissa: Mantissa::Special(special),
            scale: 0,
        }
    }

    /// What it is if it isn't a decimal. All that asks for digits asks this first.
    pub(crate) fn special(&self) -> Option<Special> {
        match self.mantissa {
            Mantissa::Special(special) => Some(special),
            Mantissa::Small(_) | Mantissa::Big(_) => None,
        }
    }

    /// The nearest double.
    pub(crate) fn nearest(&self) -> f64 {
        // The library reads decimals of any length exactly, and knows the words.
        self.text().parse().expect("a decimal, inf or nan")
    }

    /// The decimal logarithm of its absolute value, about; `None` of zero and special values.
    pub(crate) fn magnitude(&self) -> Option<f64> {
        let bits = self.bits();
        (bits > 0).then(|| bits as f64 * std::f64::consts::LOG10_2 - f64::from(self.scale))
    }

    pub(crate) fn small(mantissa: i128, scale: u32) -> Exact {
        let mantissa = Mantissa::Small(mantissa);
        Exact { mantissa, scale }
    }

    /// The mantissa, if it fits 128 bits, and the scale.
    pub(crate) fn parts(&self) -> (Option<i128>, u32) {
        match self.mantissa {
            Mantissa::Small(small) => (Some(small), self.scale),
            Mantissa::Big(_) | Mantissa::Special(_) => (None, self.scale),
        }
    }

    pub(crate) fn new(mantissa: BigInt, scale: u32) -> Exact {
        let mantissa = match i128::try_from(&mantissa) {
            Ok(small) => Mantissa::Small(small),
            Err(_) => Mantissa::Big(Box::new(mantissa)),
        };
        Exact { mantissa, scale }
    }

    /// The mantissa at a scale that the value needs no digit beyond.
    pub(crate) fn at(&self, scale: u32) -> BigInt {
        let power = BigInt::from(10).pow(scale.abs_diff(self.scale));
        match scale < self.scale {
            true => self.mantissa.big() / power,
            false => self.mantissa.big() * power,
        }
    }

    /// The same value with so many digits behind the point, not fewer than it needs.
    #[must_use]
    pub(crate) fn with_scale(self, scale: u32) -> Exact {
        match self.mantissa {
            Mantissa::Special(_) => return self,
            Mantissa::Small(mantissa) => {
                if let Some(mantissa) = raised(&Number::new(mantissa, self.scale), scale) {
                    return Exact::small(mantissa, scale);
                }
            }
            Mantissa::Big(_) => {}
        }
        Exact::new(self.at(scale), scale)
    }

    /// As `-?digits(.digits)?`; zero has no sign. Special values are `inf`, `-inf` and `nan`.
    pub(crate) fn digits(&self) -> Digits<'static> {
        match &self.mantissa {
            Mantissa::Small(small) => Digits::decimal(*small, self.scale),
            Mantissa::Big(big) => {
                let digits = big.magnitude().to_string();
                with_point(big.sign() == Sign::Minus, digits, self.scale).into()
            }
            Mantissa::Special(special) => special.text().into(),
        }
    }

    /// The same as a string.
    pub(crate) fn text(&self) -> String {
        self.digits().to_string()
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> Ordering {
        if let (&Mantissa::Small(one), &Mantissa::Small(two)) = (&self.mantissa, &other.mantissa) {
            return Number::new(one, self.scale).cmp(&Number::new(two, other.scale));
        }
        if self.special().is_some() || other.special().is_some() {
            return special_order(self.special(), other.special());
        }
        let scale = self.scale.max(other.scale);
        self.at(scale).cmp(&other.at(scale))
    }
}
