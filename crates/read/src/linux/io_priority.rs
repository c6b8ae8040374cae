//! The I/O priority of reads that the block layer must not merge with their neighbours.
//!
//! It merges adjacent reads of one priority that are submitted together, and then none of them completes
//! before all do. A neighbouring priority in the same class prevents that, and makes next to no difference
//! to schedulers and devices.

use crate::linux::calls;

const CLASS_SHIFT: u16 = 13;
const NONE: u16 = 0;
const REAL_TIME: u16 = 1;
const BEST_EFFORT: u16 = 2;
/// The level of a thread that has no priority of its own and nice value 0.
const USUAL_LEVEL: u16 = 4;
const LEVELS: u16 = 7;

/// A priority other than the calling thread's that needs no privilege; 0, which means its own, if there is
/// none.
pub(crate) fn other_than_own() -> u16 {
    calls::io_priority().map_or(0, neighbour)
}

fn neighbour(own: u16) -> u16 {
    let (class, level) = (own >> CLASS_SHIFT, own & LEVELS);
    match class {
        NONE => BEST_EFFORT << CLASS_SHIFT | (USUAL_LEVEL ^ 1),
        // All of this class need a privilege.
        REAL_TIME => 0,
        _ => class << CLASS_SHIFT | (level ^ 1),
    }
}

#[cfg(test)]
mod tests {
    use crate::linux::io_priority::*;

    #[test]
    fn is_another_of_the_same_class() {
        for class in [BEST_EFFORT, 3] {
            for level in 0..=LEVELS {
                let own = class << CLASS_SHIFT | level;
                let other = neighbour(own);
                assert_eq!(other >> CLASS_SHIFT, class);
                assert_eq!((other & LEVELS).abs_diff(level), 1);
            }
        }
        assert_eq!(neighbour(REAL_TIME << CLASS_SHIFT | 4), 0);
        assert_eq!(neighbour(0), BEST_EFFORT << CLASS_SHIFT | 5);
    }

    #[test]
    fn the_kernel_reports_this_threads_priority() {
        let other = other_than_own();
        let class = other >> CLASS_SHIFT;
        assert!(
            other == 0 || class == BEST_EFFORT || class == 3,
            "{other:#x}"
        );
    }
}
