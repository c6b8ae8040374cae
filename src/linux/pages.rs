//! The sizes of pages.

/// A page: what the kernel caches and maps by.
pub(crate) const PAGE: usize = 4096;
/// A huge page: what it takes to map much memory by few entries.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
