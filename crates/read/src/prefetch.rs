//! The processor's prefetch instructions. They read nothing, so any address may be given.
#![allow(unsafe_code)]

/// Fetches the cache line of `at` into the first-level cache.
#[inline(always)]
pub fn into_l1(at: *const u8) {
    // SAFETY: a prefetch reads nothing, and every x86-64 processor has it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::*;
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    let _ = at;
}

/// Fetches the cache line of `at` into the second-level cache.
#[inline(always)]
pub fn into_l2(at: *const u8) {
    // SAFETY: as above.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::*;
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    let _ = at;
}
