//! The sizes of pages, and whether there are transparent huge ones.

use crate::linux::proc;

/// A page: the unit in which the kernel caches and maps.
pub const PAGE: usize = 4096;
/// A huge page: one entry of the page tables maps 512 pages.
pub const HUGE_PAGE: usize = 2 << 20;

/// The file with the setting of transparent huge pages.
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The setting of transparent huge pages: `always`, `madvise` or `never`.
pub fn transparent_huge_pages() -> Result<String, String> {
    Ok(proc::chosen(&proc::text(THP)?).to_string())
}
