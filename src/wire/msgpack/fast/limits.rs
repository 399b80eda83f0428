//! How much memory a value may take, by its length.

/// How many bytes of memory the lists of a value may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For each byte that the value is long.
    pub per_byte: usize,
    /// In all.
    pub most: usize,
}

/// Memory that the lists of any value may take.
const SLACK: usize = 64 << 10;

/// A list that grows has its old and its new memory for a moment.
pub(super) const GROWTH: usize = 3;

impl Limits {
    /// Of values that are read as a whole and are short.
    pub(super) const SHORT: Limits = Limits { per_byte: 64, most: usize::MAX };

    pub(super) fn of(self, len: usize) -> usize {
        len.saturating_mul(self.per_byte).saturating_add(SLACK).min(self.most)
    }
}
