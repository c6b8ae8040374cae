//! The folios in which the page cache holds a file, found through a mapping of our own: its pages are populated by
//! madvise, and are examined through procfs.

use std::fs::File;
use std::io;

use ringfold_read::internals::{
    calls::AddressRange,
    pages::{HUGE_PAGE, PAGE},
    smaps,
};

/// Bits of /proc/kpageflags: the first page of a folio of several pages, and a later one.
const COMPOUND_HEAD: u64 = 1 << 15;
const COMPOUND_TAIL: u64 = 1 << 16;
/// Bits of /proc/self/pagemap.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// How the page cache holds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageMapping {
    /// Whether one entry of the page table maps the 2 MiB around it.
    pub by_one_entry: bool,
    /// The size of its folio, which the kernel shows to root only.
    pub folio_bytes: Option<u64>,
}

/// Whether the kernel has MADV_POPULATE_READ.
pub(crate) fn populate() -> io::Result<()> {
    let range = AddressRange::reserve(PAGE)?;
    range.populate(0)
}

/// How the page cache holds the page at `offset`. A page that isn't cached is read.
pub(crate) fn mapping(file: &File, offset: u64) -> io::Result<PageMapping> {
    let mut range = AddressRange::reserve(2 * HUGE_PAGE)?;
    let skip = range.address().next_multiple_of(HUGE_PAGE) - range.address();
    let start = offset / HUGE_PAGE as u64 * HUGE_PAGE as u64;
    range.put_file(skip, file, start, HUGE_PAGE)?;
    let at = skip + (offset - start) as usize / PAGE * PAGE;
    range.populate(at)?;
    let address = range.address() + at;
    let mapped = smaps::bytes(address, &["FilePmdMapped", "ShmemPmdMapped"])?;
    Ok(PageMapping {
        by_one_entry: mapped > 0,
        folio_bytes: folio_bytes(address),
    })
}

/// The size of the folio mapped at an address; `None` where frames aren't shown.
fn folio_bytes(address: usize) -> Option<u64> {
    let mut entry = [[0u8; 8]];
    words(
        &File::open("/proc/self/pagemap").ok()?,
        (address / PAGE) as u64,
        &mut entry,
    )?;
    let entry = u64::from_ne_bytes(entry[0]);
    let frame = (entry & PRESENT != 0).then_some(entry & FRAME)?;
    if frame == 0 {
        return None;
    }
    const AROUND: u64 = (HUGE_PAGE / PAGE) as u64;
    let first = frame.saturating_sub(AROUND);
    let mut flags = vec![[0u8; 8]; 2 * AROUND as usize];
    let seen = words(&File::open("/proc/kpageflags").ok()?, first, &mut flags)?;
    let flags = flags[..seen].iter().copied();
    let flags: Vec<u64> = flags.map(u64::from_ne_bytes).collect();
    Some(folio_pages(&flags, (frame - first) as usize)? * PAGE as u64)
}

/// The number of pages of the folio that page `at` belongs to.
fn folio_pages(flags: &[u64], at: usize) -> Option<u64> {
    let tail = |flags: &&u64| **flags & COMPOUND_TAIL != 0;
    let before = flags.get(..=at)?.iter().rev().take_while(tail).count();
    let head = at.checked_sub(before)?;
    if flags[head] & COMPOUND_HEAD == 0 {
        return Some(1);
    }
    Some(1 + flags[head + 1..].iter().take_while(tail).count() as u64)
}

/// Reads 8-byte words from the `first` on; returns how many it read.
fn words(file: &File, first: u64, words: &mut [[u8; 8]]) -> Option<usize> {
    let read = rustix::io::pread(file, words.as_flattened_mut(), first * 8).ok()?;
    (read >= 8).then_some(read / 8)
}

#[cfg(test)]
mod tests {
    use crate::probe::pages::*;

    #[test]
    fn folios_from_flags() {
        let (one, head, tail) = (0, COMPOUND_HEAD, COMPOUND_TAIL);
        let flags = [one, head, tail, tail, tail, head, tail, one];
        let sizes: Vec<_> = (0..8).map(|at| folio_pages(&flags, at)).collect();
        assert_eq!(sizes, [1, 4, 4, 4, 4, 2, 2, 1].map(Some));
        // A folio that began before the first page shown.
        assert_eq!(folio_pages(&[tail, tail], 1), None);
    }
}
