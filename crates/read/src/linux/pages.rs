//! The sizes of pages.

/// A page: the unit in which the kernel caches and maps.
pub const PAGE: usize = 4096;
/// A huge page: one entry of the page tables maps 512 pages.
pub const HUGE_PAGE: usize = 2 << 20;
