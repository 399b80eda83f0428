//! Numbers that the store gives out, and the name that tells clusters apart.

use serde::{Deserialize, Serialize};

/// One join of one node: the revision of the store at which it came. A node that comes back has a
/// higher one, and of two under one name the higher is the one that is meant.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl std::fmt::Display for Incarnation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Grows with every change of anything in the store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which cluster this is, of all that ever were: drawn at random once, and kept as long as the cluster's state. Two
/// clusters never share it, whatever their configurations and secrets have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// The id with these bytes, which must be random.
    pub fn new(random: [u8; 16]) -> ClusterId {
        ClusterId(random)
    }

    /// The id of this text; `None`: the text is none.
    pub fn read(text: &[u8]) -> Option<ClusterId> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
        let is_digit = |byte: u8| byte.is_ascii_hexdigit();
        if !text.bytes().all(is_digit) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|id| ClusterId(id.to_be_bytes()))
    }

    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// 32 hexadecimal digits.
impl std::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl std::fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_cluster_id_is_read_back_and_nothing_else_is() {
        for id in [[0; 16], [0xff; 16], *b"\x00\x01some random .."] {
            let id = ClusterId::new(id);
            assert_eq!(ClusterId::read(id.to_string().as_bytes()), Some(id));
        }
        for text in ["", "7", "+0000000000000000000000000000007", &"g".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(ClusterId::read(text.as_bytes()), None, "{text}");
        }
    }
}
