//! The processor's prefetch instructions. They read nothing, so any address may be given.

/// Fetches the cache line of `at` into the first-level cache.
#[inline(always)]
pub fn into_l1(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    crate::isa::x86::prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at);
    let _ = at;
}

/// Fetches the cache line of `at` into the second-level cache.
#[inline(always)]
pub fn into_l2(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    crate::isa::x86::prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at);
    let _ = at;
}
