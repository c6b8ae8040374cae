//! A text that stands in no window.

/// Its bytes, zeros, and in the last byte how many it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ShortText(pub(crate) [u8; 32]);

impl ShortText {
    /// The first bytes of `text`, so many.
    #[inline]
    pub(crate) fn first_of(text: &[u8; 19], len: usize) -> ShortText {
        let mut short = [0; 32];
        for (at, byte) in text.iter().enumerate() {
            short[at] = if at < len { *byte } else { 0 };
        }
        short[31] = len as u8;
        ShortText(short)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.len()]
    }

    pub(crate) fn len(&self) -> usize {
        self.0[31].into()
    }
}

/// # Panics
/// If they are more than 31.
impl From<&[u8]> for ShortText {
    fn from(bytes: &[u8]) -> ShortText {
        let mut short = [0; 32];
        short[..31][..bytes.len()].copy_from_slice(bytes);
        short[31] = bytes.len() as u8;
        ShortText(short)
    }
}
