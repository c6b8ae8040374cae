//! Random numbers for the generator: a word for each row, and the quantiles of the normal distribution.
//!
//! Everything here is integer arithmetic or plain IEEE `+ - * /` (no libm), so that a seed gives
//! the same bytes on every machine.

/// The step between the inputs of two consecutive rows: 2^64 over the golden ratio, made odd.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word so that every input bit reaches every output bit; a bijection.
///
/// This is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014; constants by Stafford).
#[inline]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Counter-based random words: the word of row `r` depends only on the seed and on `r`, so that any thread can
/// make any chunk of rows.
#[derive(Clone, Copy)]
pub struct Words {
    state: u64,
}

impl Words {
    /// The words of a seed, from the one of row `first_row` on.
    pub fn from_row(seed: u64, first_row: u64) -> Self {
        let start = mix(seed.wrapping_add(STEP));
        Self {
            state: start.wrapping_add(first_row.wrapping_mul(STEP)),
        }
    }

    /// The next row's word.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }
}

/// Cells of the quantile table, as a power of two.
const CELL_BITS: u32 = 12;
const CELLS: usize = 1 << CELL_BITS;
/// Bits of a draw that give its position within its cell.
const WITHIN_BITS: u32 = 16;
/// Fraction bits of the table's entries, which count tenths.
const SCALE_BITS: u32 = 5;
/// Standard deviation of a value around its station's mean, in tenths of a degree.
const SIGMA_TENTHS: f64 = 100.0;
/// Where the two outermost cells are cut, in standard deviations.
const CUT_SIGMAS: f64 = 4.5;

/// The normal distribution by its quantiles: a table of 4096 equally likely cells, linear within a
/// cell.
///
/// It is an approximation: the body is exact to well below a tenth of a degree; the outermost cell on each
/// side (one draw in 4096, beyond 3.49 sigma) is spread evenly up to 4.5 sigma, and nothing lies further out.
pub struct Normal {
    quantiles: Box<[i16; CELLS + 1]>,
}

impl Default for Normal {
    /// Builds the table by integrating the density outward from the mean.
    fn default() -> Self {
        const STEPS_PER_SIGMA: u32 = 4096;
        let width = 1.0 / f64::from(STEPS_PER_SIGMA);
        let mut quantiles = Box::new([0; CELLS + 1]);
        let mut density = 0.398_942_280_401_432_7; // 1 / sqrt(2 pi)
        let mut below = 0.5;
        let mut at = 0.0;
        let mut cell = CELLS / 2 + 1;
        while cell < CELLS {
            // density(at + width) = density(at) * exp(-(at * width + width^2 / 2)), whose
            // argument is so small that four terms are exact to the last bit or so.
            let x = -(at + width / 2.0) * width;
            let next = density * (1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0))));
            let slice = (density + next) / 2.0 * width;
            let wanted = cell as f64 / CELLS as f64;
            if below + slice >= wanted {
                // Several quantiles never share a slice: a slice holds at most 1/10000, a cell
                // 1/4096.
                let sigmas = at + width * ((wanted - below) / slice);
                set_both(&mut quantiles, cell, sigmas);
                cell += 1;
            }
            below += slice;
            density = next;
            at += width;
        }
        set_both(&mut quantiles, CELLS, CUT_SIGMAS);
        Self { quantiles }
    }
}

impl Normal {
    /// A deviation in tenths from the upper bits of a uniform word.
    #[inline]
    pub fn tenths(&self, uniform: u64) -> i32 {
        let draw = (uniform >> (64 - CELL_BITS - WITHIN_BITS)) as usize;
        let (cell, within) = (
            draw >> WITHIN_BITS,
            (draw & ((1 << WITHIN_BITS) - 1)) as i32,
        );
        let low = i32::from(self.quantiles[cell]);
        let high = i32::from(self.quantiles[cell + 1]);
        let scaled = low + (((high - low) * within) >> WITHIN_BITS);
        (scaled + (1 << (SCALE_BITS - 1))) >> SCALE_BITS
    }
}

/// Sets the quantile of a cell's lower edge above the mean, and its mirror image below.
fn set_both(quantiles: &mut [i16; CELLS + 1], cell: usize, sigmas: f64) {
    let scaled = (sigmas * SIGMA_TENTHS * f64::from(1 << SCALE_BITS) + 0.5) as i16;
    quantiles[cell] = scaled;
    quantiles[CELLS - cell] = -scaled;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_row_do_not_depend_on_where_one_starts() {
        let mut from_start = Words::from_row(7, 0);
        let all: Vec<u64> = (0..100).map(|_| from_start.next_word()).collect();
        let mut later = Words::from_row(7, 60);
        let rest: Vec<u64> = (60..100).map(|_| later.next_word()).collect();
        assert_eq!(rest, all[60..]);
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        let normal = Normal::default();
        let at = |p: f64| f64::from(normal.tenths((p * 2f64.powi(64)) as u64));
        for (p, sigmas) in [
            (0.5, 0.0),
            (0.841_344_7, 1.0),
            (0.158_655_3, -1.0),
            (0.977_249_9, 2.0),
            (0.998_650_1, 3.0),
            (0.001_349_9, -3.0),
        ] {
            assert!(
                (at(p) - sigmas * SIGMA_TENTHS).abs() <= 1.0,
                "{p}: {}",
                at(p)
            );
        }
        assert_eq!(normal.tenths(0), -450);
        assert_eq!(normal.tenths(u64::MAX), 450);
        assert!(normal.quantiles.is_sorted());
    }

    #[test]
    fn draws_have_the_mean_and_the_deviation_asked_for() {
        let normal = Normal::default();
        let mut words = Words::from_row(1, 0);
        let draws: Vec<f64> = (0..1_000_000)
            .map(|_| f64::from(normal.tenths(words.next_word())))
            .collect();
        let mean = draws.iter().sum::<f64>() / 1e6;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 1e6;
        assert!(mean.abs() < 0.5, "mean {mean}");
        assert!(
            (variance.sqrt() - SIGMA_TENTHS).abs() < 0.5,
            "sigma {}",
            variance.sqrt()
        );
    }
}
