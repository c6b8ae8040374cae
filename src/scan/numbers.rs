//! The numbers of a column in a window.

use crate::aggregate::lanes::MAGNITUDE_MAX;
use crate::scan::index::WINDOW;

/// The most decimals.
pub(crate) const SCALE_MAX: u32 = 18;
/// The most decimals of values of eight bytes: what these are multiplied by fits 32 bits.
pub(super) const SHORT_SCALE_MAX: u32 = 7;

/// Rows that lists have places for: those of a window, and eight more.
pub(crate) const ROWS: usize = WINDOW + 8;

/// The numbers of a column in a window.
pub(crate) struct Numbers {
    /// In units of `10^-scale`; zero where there is none.
    pub(crate) values: Box<[i64]>,
    /// A byte for eight rows, a bit for each whose value is empty.
    pub(crate) nulls: Box<[u8]>,
    pub(crate) has_nulls: bool,
    /// Rows that weren't read.
    pub(crate) unread: Vec<u32>,
    /// All values without their signs, by `or`.
    pub(crate) magnitudes: u64,
    /// The most digits behind a point.
    pub(crate) decimals: u32,
    /// Whether values have blanks around, as far as is known, and the spans without them.
    pub(super) has_blanks: bool,
    pub(super) trimmed: Vec<u32>,
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers {
            values: vec![0; ROWS].into(),
            nulls: vec![0; ROWS.div_ceil(8)].into(),
            has_nulls: false,
            unread: Vec::new(),
            magnitudes: 0,
            decimals: 0,
            has_blanks: false,
            trimmed: Vec::new(),
        }
    }

    /// Where there are no nulls, the bits may be left over from another window.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.has_nulls && self.nulls[row / 8] >> (row % 8) & 1 == 1
    }

    pub(crate) fn set_null(&mut self, row: usize, is_null: bool) {
        let bit = 1 << (row % 8);
        self.nulls[row / 8] &= !bit;
        if is_null {
            self.nulls[row / 8] |= bit;
            self.has_nulls = true;
        }
    }

    /// Takes the values of others.
    pub(crate) fn copy(&mut self, from: &Numbers, rows: usize) {
        self.values[..rows].copy_from_slice(&from.values[..rows]);
        self.copy_nulls(from, rows);
        (self.magnitudes, self.decimals) = (from.magnitudes, from.decimals);
    }

    pub(crate) fn copy_nulls(&mut self, from: &Numbers, rows: usize) {
        self.has_nulls = from.has_nulls;
        if from.has_nulls {
            let bytes = rows.div_ceil(8);
            self.nulls[..bytes].copy_from_slice(&from.nulls[..bytes]);
        }
    }

    /// Puts another value in place of each; where there is none, or it is too large, it is zero and the row is `out`.
    #[inline(always)]
    pub(crate) fn replace(
        &mut self,
        rows: usize,
        out: &mut Vec<u32>,
        other: impl Fn(usize, i64) -> Option<i64>,
    ) {
        let mut magnitudes = 0;
        for (row, value) in self.values[..rows].iter_mut().enumerate() {
            let found = other(row, *value).filter(|value| value.unsigned_abs() < MAGNITUDE_MAX);
            if found.is_none() {
                out.push(row as u32);
            }
            *value = found.unwrap_or_default();
            magnitudes |= value.unsigned_abs();
        }
        self.magnitudes = magnitudes;
    }

    /// Multiplies all values; those that are too large then are unread.
    pub(crate) fn raise(&mut self, rows: usize, factor: u64) {
        let most = (MAGNITUDE_MAX - 1) / factor;
        if self.magnitudes > most {
            let values = (0..).zip(&mut self.values[..rows]);
            let large = values.filter(|(_, value)| value.unsigned_abs() > most);
            let places = large.map(|(row, value)| {
                *value = 0;
                row
            });
            self.unread.extend(places);
            self.unread.sort_unstable();
        }
        self.magnitudes = 0;
        for value in &mut self.values[..rows] {
            *value *= factor.cast_signed();
            self.magnitudes |= value.unsigned_abs();
        }
    }

    /// Books eight rows from `row` on, of which there are `rows`.
    #[inline(always)]
    pub(super) fn book(&mut self, row: usize, rows: usize, nulls: u8, good: u8) {
        let valid = if rows - row < 8 {
            !(!0 << (rows - row))
        } else {
            !0
        };
        self.nulls[row / 8] = nulls & valid;
        self.has_nulls |= nulls & valid != 0;
        let mut unread = valid & !(good | nulls);
        while unread != 0 {
            self.unread.push(row as u32 + unread.trailing_zeros());
            unread &= unread - 1;
        }
    }
}

/// For each scale what a value with so many decimals is multiplied by; zero where it has too many.
pub(super) static FACTORS: [[u32; 8]; SHORT_SCALE_MAX as usize + 1] = {
    let mut factors = [[0; 8]; SHORT_SCALE_MAX as usize + 1];
    let mut scale = 0;
    while scale < factors.len() {
        let mut decimals = 0;
        while decimals <= scale {
            factors[scale][decimals] = 10_u32.pow((scale - decimals) as u32);
            decimals += 1;
        }
        scale += 1;
    }
    factors
};
