//! The bytes of a region's snapshot: `"PVRS"`, the schema's version (u16), the body's length (u64) and its
//! CRC-32 (u32), all big-endian, then the body, a MessagePack array.
//!
//! A field is added at the end of its struct with a default, or the version goes up: a golden test notices
//! either. Whoever reads an older version than its own converts it here.

use crate::scene::region::RegionSnapshot;

use crate::wire::msgpack::{fast, forward_compat};

/// The schema's version: what this release writes.
pub const SNAPSHOT_VERSION: u16 = 1;

/// The oldest version that this release reads: what the release before it wrote.
pub const SNAPSHOT_VERSION_MIN: u16 = 1;

/// Longest body, bytes: some 100,000 players.
pub const MAX_SNAPSHOT: usize = 1 << 29;

const MAGIC: [u8; 4] = *b"PVRS";
const HEAD: usize = 18;

/// Bytes of a small region's snapshot: so much memory is taken at once.
const SMALL: usize = 8 << 10;

/// Why bytes are not a snapshot. Nothing was changed by them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// They begin otherwise.
    #[error("this is no snapshot of a region")]
    Foreign,
    /// Of another release.
    #[error(
        "a snapshot of schema version {found}; this release reads {SNAPSHOT_VERSION_MIN} to \
         {SNAPSHOT_VERSION}"
    )]
    UnknownVersion {
        /// Its version.
        found: u16,
    },
    /// They end too early.
    #[error("a torn snapshot: {found} of {wanted} bytes")]
    Torn {
        /// How many there are.
        found: usize,
        /// How many there should be.
        wanted: u64,
    },
    /// More bytes come after it.
    #[error("{by} bytes come after the snapshot")]
    Trailing {
        /// How many.
        by: usize,
    },
    /// Longer than allowed.
    #[error("a snapshot of {len} bytes; at most {MAX_SNAPSHOT} are allowed")]
    TooBig {
        /// Its length in bytes.
        len: u64,
    },
    /// They are not those that were written.
    #[error("a damaged snapshot: its checksum is {found:08x} and should be {wanted:08x}")]
    Damaged {
        /// The body's checksum.
        found: u32,
        /// What the head says.
        wanted: u32,
    },
    /// The fields do not fit.
    #[error("not a snapshot of schema version {SNAPSHOT_VERSION}: {0}")]
    BadField(String),
}

impl RegionSnapshot {
    /// Its bytes.
    ///
    /// # Errors
    /// [`SnapshotError::TooBig`].
    pub fn encode(&self) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::with_capacity(SMALL);
        bytes.resize(HEAD, 0);
        if !fast::write(&mut bytes, self) {
            rmp_serde::encode::write(&mut bytes, self)
                .map_err(|e| SnapshotError::BadField(e.to_string()))?;
        }
        let body = &bytes[HEAD..];
        let (len, sum) = (body.len() as u64, crc32fast::hash(body));
        if body.len() > MAX_SNAPSHOT {
            return Err(SnapshotError::TooBig { len });
        }
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        bytes[6..14].copy_from_slice(&len.to_be_bytes());
        bytes[14..HEAD].copy_from_slice(&sum.to_be_bytes());
        Ok(bytes)
    }

    /// The snapshot of these bytes. Whether it fits a scene and a region is seen when one goes on from it.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn decode(bytes: &[u8]) -> Result<RegionSnapshot, SnapshotError> {
        let Some((magic, rest)) = bytes.split_first_chunk::<4>() else {
            return Err(SnapshotError::Foreign);
        };
        if *magic != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        let torn = SnapshotError::Torn { found: bytes.len(), wanted: HEAD as u64 };
        let Some((version, rest)) = rest.split_first_chunk::<2>() else { return Err(torn) };
        let found = u16::from_be_bytes(*version);
        if !(SNAPSHOT_VERSION_MIN..=SNAPSHOT_VERSION).contains(&found) {
            return Err(SnapshotError::UnknownVersion { found });
        }
        let Some((len, rest)) = rest.split_first_chunk::<8>() else { return Err(torn) };
        let Some((sum, body)) = rest.split_first_chunk::<4>() else { return Err(torn) };
        let (len, wanted) = (u64::from_be_bytes(*len), u32::from_be_bytes(*sum));
        if len > MAX_SNAPSHOT as u64 {
            return Err(SnapshotError::TooBig { len });
        }
        if (body.len() as u64) < len {
            return Err(SnapshotError::Torn { found: bytes.len(), wanted: HEAD as u64 + len });
        }
        if body.len() as u64 > len {
            return Err(SnapshotError::Trailing { by: body.len() - len as usize });
        }
        let found = crc32fast::hash(body);
        if found != wanted {
            return Err(SnapshotError::Damaged { found, wanted });
        }
        let (snapshot, rest) =
            forward_compat::read(body).map_err(|e| SnapshotError::BadField(e.to_string()))?;
        match rest.len() {
            0 => Ok(snapshot),
            by => Err(SnapshotError::Trailing { by }),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32fast::hash(b""), 0);
    }
}
