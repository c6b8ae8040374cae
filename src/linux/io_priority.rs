//! The I/O priority of reads that the block layer is to keep apart from their neighbours.
//!
//! Of reads of one priority that are submitted together and lie side by side it makes one request, and
//! none of them is answered before all are. The priority beside the thread's own, in the same class, is
//! another one to it and next to nothing to schedulers and devices.
//!
//! # Invariant (`unsafe` room)
//! The one system call takes and gives numbers, and touches no memory.
#![allow(unsafe_code)]

const CLASS_SHIFT: u16 = 13;
const NONE: u16 = 0;
const REAL_TIME: u16 = 1;
const BEST_EFFORT: u16 = 2;
/// That of a thread that has none and hasn't been made nicer.
const USUAL_LEVEL: u16 = 4;
const LEVELS: u16 = 7;

/// A priority that anybody may ask for and that the calling thread doesn't have; 0, which stands for
/// its own, where there is none.
pub(crate) fn other_than_own() -> u16 {
    const THREAD: libc::c_int = 1; // IOPRIO_WHO_PROCESS, and its 0 is the calling thread
    // SAFETY: two numbers go in and one comes out.
    let own = unsafe { libc::syscall(libc::SYS_ioprio_get, THREAD, 0) };
    u16::try_from(own).map_or(0, neighbour)
}

fn neighbour(own: u16) -> u16 {
    let (class, level) = (own >> CLASS_SHIFT, own & LEVELS);
    match class {
        NONE => BEST_EFFORT << CLASS_SHIFT | (USUAL_LEVEL ^ 1),
        // Every use of it takes the privilege.
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
    fn the_kernel_tells_that_of_this_thread() {
        let other = other_than_own();
        let class = other >> CLASS_SHIFT;
        assert!(
            other == 0 || class == BEST_EFFORT || class == 3,
            "{other:#x}"
        );
    }
}
