//! Numbers in the bytes of a sketch.

/// Takes a number off the front of some bytes.
pub(super) fn take_u64(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let (chunk, rest) = bytes
        .split_first_chunk::<8>()
        .ok_or("a sketch is cut short")?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*chunk))
}
