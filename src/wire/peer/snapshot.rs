//! The bytes of a region snapshot: `"PVRS"`, the schema version (u16), the body's length (u64) and
//! its CRC-32 (u32), all big-endian; then the body, a MessagePack array.
//!
//! Checkpoints and migrations use it. Damaged bytes must never become a region: the checksum is
//! verified first. A new field goes at the end of its struct with a default; any other change needs
//! a new version. A golden test notices both. A release that reads an older version converts it
//! here.

use crate::scene::region::RegionSnapshot;

use crate::wire::msgpack::fast::{self, Limits};

/// The schema version that this release writes.
pub const SNAPSHOT_VERSION: u16 = 4;

/// The oldest schema version that this release reads: the previous release's.
pub const SNAPSHOT_VERSION_MIN: u16 = 4;

/// Longest body, bytes: about 100,000 players.
pub const MAX_SNAPSHOT: usize = 1 << 29;

/// Most memory that the lists of a snapshot take, bytes.
pub const MAX_SNAPSHOT_MEMORY: usize = 2 << 30;

/// What a snapshot may cost.
const LIMITS: Limits = Limits { per_byte: 64, most: MAX_SNAPSHOT_MEMORY };

const MAGIC: [u8; 4] = *b"PVRS";
const HEAD: usize = 18;

/// Initial capacity: the size of a small region's snapshot, bytes.
const SMALL: usize = 8 << 10;

/// Why bytes are not a snapshot. They changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes do not start with the magic number.
    #[error("not a region snapshot: the bytes do not start with PVRS")]
    Foreign,
    /// The schema version is not supported.
    #[error(
        "a snapshot of schema version {found}; this release reads {SNAPSHOT_VERSION_MIN} to \
         {SNAPSHOT_VERSION}"
    )]
    UnknownVersion {
        /// The version found.
        found: u16,
    },
    /// The bytes are truncated.
    #[error("truncated snapshot: {found} of {wanted} bytes")]
    Torn {
        /// Number of bytes.
        found: usize,
        /// Number of bytes that the head announces.
        wanted: u64,
    },
    /// Bytes follow the snapshot.
    #[error("{by} bytes follow the snapshot")]
    Trailing {
        /// Their number.
        by: usize,
    },
    /// The snapshot is too long.
    #[error("a snapshot of {len} bytes; at most {MAX_SNAPSHOT} are allowed")]
    TooBig {
        /// Its length, bytes.
        len: u64,
    },
    /// The checksum does not match.
    #[error("damaged snapshot: its checksum is {found:08x} and should be {wanted:08x}")]
    Damaged {
        /// The body's checksum.
        found: u32,
        /// The checksum in the head.
        wanted: u32,
    },
    /// The fields do not fit the schema.
    #[error("not a snapshot of schema version {SNAPSHOT_VERSION}: {0}")]
    BadField(String),
}

impl RegionSnapshot {
    /// Encodes the snapshot.
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

    /// Decodes a snapshot. Whether it fits a scene and a region is checked when a region is
    /// restored from it.
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
            fast::read_compat(body, LIMITS).map_err(|e| SnapshotError::BadField(e.to_string()))?;
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
