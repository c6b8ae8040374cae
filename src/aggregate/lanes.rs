//! What is kept of many rows of a group in 64-bit lanes, and how aggregates take it over.
//!
//! A lane is a sum or a greatest value, so all lanes are updated in the same way whatever the query. From time to time
//! they are added up into the aggregates' own states, which are exact without limits.
//!
//! No lane overflows: values are less than [`MAGNITUDE_MAX`], those whose sums fill one lane less than [`NARROW_MAX`],
//! and lanes are emptied after [`ROWS_MAX`] rows.

/// Past the magnitude of any value.
pub(crate) const MAGNITUDE_MAX: u64 = 1 << 62;
/// Past the magnitude of values that are squared, or whose sum is in one lane.
pub(crate) const NARROW_MAX: u64 = 1 << 31;
/// Past the magnitude of values of which the least and the greatest share a lane with the rows.
pub(crate) const SHORT_MAX: u64 = 1 << 15;
/// The most rows of a group in its lanes; tests reach it. They fill less than 32 bits.
pub(crate) const ROWS_MAX: u64 = if cfg!(test) { 1 << 9 } else { 1 << 30 };
/// Added to values of which the greatest is kept, so that the zero of a new lane is less than any.
const OFFSET: i64 = 1 << 62;

/// What an aggregate wants to know of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// How many there are.
    Known,
    Sum,
    Least,
    Greatest,
    /// The sum of their squares.
    Squares,
}

/// What is known of a column's values in some rows of a group. Parts that no aggregate wants are zero.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    /// Values that aren't null. Where there is none, the rest means nothing.
    pub(crate) known: u64,
    /// All values are in units of `10^-scale`.
    pub(crate) scale: u32,
    pub(crate) sum: i128,
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    /// In units of `10^-(2 * scale)`.
    pub(crate) squares: i128,
}

impl Kept {
    /// The same at a scale that isn't lower, where that can be held.
    fn at(&self, scale: u32) -> Option<Kept> {
        if self.known == 0 || self.scale == scale {
            return Some(Kept { scale, ..*self });
        }
        let factor = 10_i64.checked_pow(scale.checked_sub(self.scale)?)?;
        Some(Kept {
            scale,
            known: self.known,
            sum: self.sum.checked_mul(factor.into())?,
            least: self.least.checked_mul(factor)?,
            greatest: self.greatest.checked_mul(factor)?,
            squares: self
                .squares
                .checked_mul(i128::from(factor) * i128::from(factor))?,
        })
    }

    /// What is known of one value.
    pub(crate) fn of(value: Option<i64>, scale: u32) -> Kept {
        let number = value.unwrap_or_default();
        let sum = i128::from(number);
        Kept {
            known: u64::from(value.is_some()),
            scale,
            sum,
            least: number,
            greatest: number,
            squares: sum * sum,
        }
    }
}

/// What a lane sums up, or of what it keeps the greatest value. Numbers count columns among those of a query whose values
/// are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Rows,
    /// In one lane: the rows in the low 32 bits, then 16 bits for the least value of a column, and for the greatest.
    RowsExtremes(usize),
    /// The number of the group; nothing is added to it.
    Group,
    Known(usize),
    Sum(usize),
    /// The sum of the low 32 bits, and of what is above.
    SumLow(usize),
    SumHigh(usize),
    Least(usize),
    Greatest(usize),
    SquaresLow(usize),
    SquaresHigh(usize),
}

/// What is known of a column's values as far as it decides about lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Some are null.
    pub(crate) has_nulls: bool,
    /// Some aren't less than [`SHORT_MAX`].
    pub(crate) exceeds_short: bool,
    /// Some aren't less than [`NARROW_MAX`].
    pub(crate) is_wide: bool,
}

/// How a row, or a group's other lanes, are added to a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addition {
    Sum,
    /// The greatest is kept.
    Greatest,
    /// The low 32 bits are a sum, of the 16 bits above and those above these the greatest is kept.
    RowsExtremes,
}

impl Addition {
    #[inline(always)]
    pub(crate) fn of(self, one: i64, other: i64) -> i64 {
        match self {
            Addition::Sum => one + other,
            Addition::Greatest => one.max(other),
            Addition::RowsExtremes => {
                let greatest = |shift: u32| {
                    let bits = |lane: i64| lane as u64 >> shift & 0xffff;
                    bits(one).max(bits(other)) << shift
                };
                let rows = rows_of(one) + rows_of(other);
                (rows | greatest(LEAST_AT) | greatest(GREATEST_AT)) as i64
            }
        }
    }
}

/// Where the least and the greatest value stand in a lane beside the rows.
const LEAST_AT: u32 = 32;
const GREATEST_AT: u32 = 48;

/// The rows of a group, by the first of its lanes.
#[inline(always)]
pub(crate) fn rows_of(first: i64) -> u64 {
    first as u64 & 0xffff_ffff
}

/// What a value adds to the lane that it shares with the rows.
#[inline(always)]
fn short_extremes(least: i64, greatest: i64) -> i64 {
    let offset = SHORT_MAX as i64;
    (offset - least) << LEAST_AT | (offset + greatest) << GREATEST_AT
}

impl Traits {
    /// Those of both.
    pub(crate) fn union(self, other: Traits) -> Traits {
        Traits {
            has_nulls: self.has_nulls || other.has_nulls,
            exceeds_short: self.exceeds_short || other.exceeds_short,
            is_wide: self.is_wide || other.is_wide,
        }
    }
}

/// The lanes of each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    lanes: Vec<Lane>,
}

impl Layout {
    /// For these parts of columns with these traits; `has_groups` if rows need their groups' numbers.
    pub(crate) fn new(
        wanted: impl IntoIterator<Item = (usize, Part)>,
        traits: &[Traits],
        has_groups: bool,
    ) -> Layout {
        let wanted: Vec<(usize, Part)> = wanted.into_iter().collect();
        let is_extreme = |part: &Part| matches!(part, Part::Least | Part::Greatest);
        let beside = wanted.iter().find(|(_, part)| is_extreme(part));
        let beside = beside.map(|(column, _)| *column);
        let beside = beside.filter(|&column| !traits[column].exceeds_short);
        let mut lanes = vec![beside.map_or(Lane::Rows, Lane::RowsExtremes)];
        if has_groups {
            lanes.push(Lane::Group);
        }
        let mut push = |lane: Lane| {
            if !lanes.contains(&lane) {
                lanes.push(lane);
            }
        };
        for (column, part) in wanted {
            let Traits {
                has_nulls, is_wide, ..
            } = traits[column];
            // Whether anything is known at all must be known.
            if has_nulls {
                push(Lane::Known(column));
            }
            match part {
                Part::Known => {}
                Part::Least | Part::Greatest if beside == Some(column) => {}
                Part::Sum if is_wide => {
                    push(Lane::SumLow(column));
                    push(Lane::SumHigh(column));
                }
                Part::Sum => push(Lane::Sum(column)),
                Part::Least => push(Lane::Least(column)),
                Part::Greatest => push(Lane::Greatest(column)),
                Part::Squares => {
                    push(Lane::SquaresLow(column));
                    push(Lane::SquaresHigh(column));
                }
            }
        }
        Layout { lanes }
    }

    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Writes what lanes of another layout hold, whose columns have these scales; `traits` and `to_scales` are those of this
    /// one. Says whether this one's lanes may hold it.
    pub(crate) fn convert(
        &self,
        from: (&Layout, &[u32], &[i64]),
        traits: &[Traits],
        to_scales: &[u32],
        to: &mut [i64],
    ) -> bool {
        let (layout, scales, values) = from;
        let rows = rows_of(values[0]);
        self.fill(to, |lane| match lane {
            Lane::Rows => Some(rows as i64),
            Lane::Group => Some(layout.group_lane().map_or(0, |at| values[at])),
            _ => {
                let column = lane.column()?;
                let kept = layout.kept(values, column, scales[column]);
                lane.of(&kept.at(to_scales[column])?, traits[column], rows)
            }
        })
    }

    /// Writes lanes of rows whose only column is of these traits and this scale. Says whether lanes may hold them.
    pub(crate) fn hold(&self, kept: &Kept, traits: Traits, scale: u32, to: &mut [i64]) -> bool {
        let Some(kept) = kept.at(scale) else {
            return false;
        };
        self.fill(to, |lane| match lane {
            Lane::Rows => i64::try_from(kept.known).ok(),
            Lane::Group => Some(0),
            _ => lane.of(&kept, traits, kept.known),
        })
    }

    /// Writes lanes as far as there is something for each; says whether there is for all.
    fn fill(&self, to: &mut [i64], held: impl Fn(Lane) -> Option<i64>) -> bool {
        let mut lanes = self.lanes.iter().zip(to);
        lanes.all(|(lane, to)| {
            let held = held(*lane);
            *to = held.unwrap_or_default();
            held.is_some()
        })
    }

    /// How four lanes from `first` on are added to; those that don't exist are sums.
    pub(crate) fn additions<const LANES: usize>(&self, first: usize) -> [Addition; LANES] {
        std::array::from_fn(|at| match self.lanes.get(first + at) {
            Some(lane) => lane.addition(),
            None => Addition::Sum,
        })
    }

    /// Adds lanes to others, unless that makes more rows than lanes may hold: then it says so.
    pub(crate) fn add_up_to_max(&self, to: &mut [i64], from: &[i64]) -> bool {
        let fits = rows_of(to[0]) + rows_of(from[0]) <= ROWS_MAX;
        if fits {
            for ((lane, to), &from) in self.lanes.iter().zip(to).zip(from) {
                *to = lane.addition().of(*to, from);
            }
        }
        fits
    }

    /// Which lane has the groups' numbers, if one has.
    pub(crate) fn group_lane(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| *lane == Lane::Group)
    }

    /// What the lanes say of a column.
    pub(crate) fn kept(&self, values: &[i64], column: usize, scale: u32) -> Kept {
        let mut kept = Kept {
            scale,
            ..Kept::default()
        };
        for (&lane, &value) in self.lanes.iter().zip(values) {
            let wide = i128::from(value);
            match lane {
                // The first one. Where some are null, there is another lane after it.
                Lane::Rows => kept.known = value as u64,
                Lane::RowsExtremes(of) => {
                    kept.known = rows_of(value);
                    if of == column {
                        let bits = |shift: u32| (value as u64 >> shift & 0xffff) as i64;
                        kept.least = SHORT_MAX as i64 - bits(LEAST_AT);
                        kept.greatest = bits(GREATEST_AT) - SHORT_MAX as i64;
                    }
                }
                _ if lane.column() != Some(column) => {}
                Lane::Known(_) => kept.known = value as u64,
                Lane::Sum(_) | Lane::SumLow(_) => kept.sum += wide,
                Lane::SumHigh(_) => kept.sum += wide << 32,
                Lane::Least(_) => kept.least = OFFSET - value,
                Lane::Greatest(_) => kept.greatest = value - OFFSET,
                Lane::SquaresLow(_) => kept.squares += wide,
                Lane::SquaresHigh(_) => kept.squares += wide << 32,
                Lane::Group => {}
            }
        }
        kept
    }
}

impl Lane {
    /// What the lane holds of what is known of its column in so many rows; `None` if that is more than lanes may hold.
    fn of(self, kept: &Kept, traits: Traits, rows: u64) -> Option<i64> {
        if let Lane::RowsExtremes(_) = self {
            let fits = |value: i64| value.unsigned_abs() < SHORT_MAX;
            return match kept.known {
                0 => Some(rows as i64),
                _ if fits(kept.least) && fits(kept.greatest) => {
                    Some(rows as i64 | short_extremes(kept.least, kept.greatest))
                }
                _ => None,
            };
        }
        if kept.known == 0 {
            return Some(0);
        }
        let limit = if traits.is_wide {
            MAGNITUDE_MAX
        } else {
            NARROW_MAX
        };
        let fits = |sum: i128, limit: u64| {
            sum.unsigned_abs() <= u128::from(kept.known) * u128::from(limit)
        };
        let value_fits = |value: i64| value.unsigned_abs() < MAGNITUDE_MAX;
        match self {
            Lane::Rows | Lane::RowsExtremes(_) | Lane::Group => None,
            Lane::Known(_) => i64::try_from(kept.known).ok(),
            Lane::Sum(_) | Lane::SumLow(_) | Lane::SumHigh(_) if !fits(kept.sum, limit) => None,
            Lane::Sum(_) => i64::try_from(kept.sum).ok(),
            Lane::SumLow(_) => Some((kept.sum & 0xffff_ffff) as i64),
            Lane::SumHigh(_) => i64::try_from(kept.sum >> 32).ok(),
            Lane::Least(_) => value_fits(kept.least).then(|| OFFSET - kept.least),
            Lane::Greatest(_) => value_fits(kept.greatest).then(|| OFFSET + kept.greatest),
            Lane::SquaresLow(_) | Lane::SquaresHigh(_)
                if !fits(kept.squares, NARROW_MAX * NARROW_MAX) =>
            {
                None
            }
            Lane::SquaresLow(_) => Some((kept.squares & 0xffff_ffff) as i64),
            Lane::SquaresHigh(_) => i64::try_from(kept.squares >> 32).ok(),
        }
    }

    /// The column that it is about.
    pub(crate) fn column(self) -> Option<usize> {
        match self {
            Lane::Rows | Lane::Group => None,
            Lane::RowsExtremes(column)
            | Lane::Known(column)
            | Lane::Sum(column)
            | Lane::SumLow(column)
            | Lane::SumHigh(column)
            | Lane::Least(column)
            | Lane::Greatest(column)
            | Lane::SquaresLow(column)
            | Lane::SquaresHigh(column) => Some(column),
        }
    }

    /// How values are added.
    pub(crate) fn addition(self) -> Addition {
        match self {
            Lane::Least(_) | Lane::Greatest(_) => Addition::Greatest,
            Lane::RowsExtremes(_) => Addition::RowsExtremes,
            _ => Addition::Sum,
        }
    }

    /// Writes what each row adds to the lane. A null's value is zero.
    #[inline(always)]
    pub(crate) fn fill(self, values: &[i64], is_null: impl Fn(usize) -> bool, to: &mut [i64]) {
        match self {
            Lane::Rows => to.fill(1),
            Lane::RowsExtremes(_) => {
                map(values, is_null, to, |value| short_extremes(value, value));
                to.iter_mut().for_each(|lane| *lane |= 1);
            }
            Lane::Group => to.fill(0),
            Lane::Known(_) => map(values, is_null, to, |_| 1),
            Lane::Sum(_) => to.copy_from_slice(values),
            Lane::SumLow(_) => map(values, is_null, to, |value| value & 0xffff_ffff),
            Lane::SumHigh(_) => map(values, is_null, to, |value| value >> 32),
            Lane::Least(_) => map(values, is_null, to, |value| OFFSET - value),
            Lane::Greatest(_) => map(values, is_null, to, |value| OFFSET + value),
            Lane::SquaresLow(_) => map(values, is_null, to, |value| (value * value) & 0xffff_ffff),
            Lane::SquaresHigh(_) => map(values, is_null, to, |value| (value * value) >> 32),
        }
    }
}

#[inline(always)]
fn map(values: &[i64], is_null: impl Fn(usize) -> bool, to: &mut [i64], of: impl Fn(i64) -> i64) {
    for (row, (to, &value)) in to.iter_mut().zip(values).enumerate() {
        *to = if is_null(row) { 0 } else { of(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lanes say what a plain sum over the values says.
        #[test]
        fn lanes_keep_everything(
            values in prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), 1..40),
            magnitude in 0..3_usize,
        ) {
            let limit = [SHORT_MAX, NARROW_MAX, MAGNITUDE_MAX][magnitude] as i64;
            let (exceeds_short, is_wide) = (magnitude > 0, magnitude > 1);
            let values: Vec<Option<i64>> = values.into_iter().map(|v| v.map(|v| v % limit)).collect();
            let has_nulls = values.contains(&None);
            let mut parts = vec![Part::Known, Part::Sum, Part::Least, Part::Greatest];
            if !is_wide {
                parts.push(Part::Squares);
            }
            let traits = [Traits { has_nulls, exceeds_short, is_wide }];
            let layout = Layout::new(parts.iter().map(|part| (0, *part)), &traits, true);
            let numbers: Vec<i64> = values.iter().map(|value| value.unwrap_or_default()).collect();
            let mut lanes = vec![0_i64; layout.lanes().len()];
            for (lane, kept) in layout.lanes().iter().zip(&mut lanes) {
                let mut adds = vec![0; values.len()];
                lane.fill(&numbers, |row| values[row].is_none(), &mut adds);
                for add in adds {
                    *kept = lane.addition().of(*kept, add);
                }
            }
            let wider = [Traits { has_nulls, exceeds_short: true, is_wide }];
            let wide_layout = Layout::new(parts.iter().map(|part| (0, *part)), &wider, true);
            let mut to = vec![0; wide_layout.lanes().len()];
            prop_assert!(wide_layout.convert((&layout, &[3], &lanes), &wider, &[3], &mut to));
            let kept = wide_layout.kept(&to, 0, 3);
            // Without a value the rest means nothing.
            let shown = |kept: Kept| (kept.known > 0).then(|| format!("{kept:?}"));
            prop_assert_eq!(shown(kept), shown(layout.kept(&lanes, 0, 3)));
            if kept.known == values.len() as u64 {
                let mut held = vec![0; layout.lanes().len()];
                prop_assert!(layout.hold(&kept, traits[0], 3, &mut held));
                prop_assert_eq!(shown(layout.kept(&held, 0, 3)), shown(kept));
            }
            let known = || values.iter().flatten().copied();
            prop_assert_eq!(kept.scale, 3);
            prop_assert_eq!(kept.known, known().count() as u64);
            prop_assert_eq!(kept.sum, known().map(i128::from).sum::<i128>());
            if kept.known > 0 {
                prop_assert_eq!(Some(kept.least), known().min());
                prop_assert_eq!(Some(kept.greatest), known().max());
            }
            if !is_wide {
                let squares = known().map(|v| i128::from(v) * i128::from(v)).sum::<i128>();
                prop_assert_eq!(kept.squares, squares);
            }
            prop_assert_eq!(layout.group_lane().map(|at| lanes[at]), Some(0));
        }
    }
}
