//! The envelope `[type, [fields]]` and its errors.

use serde::{Serialize, de::DeserializeOwned};

use super::codes::ErrorCode;

/// Version of the client protocol; a hello with another one is refused.
pub const PROTOCOL_VERSION: u16 = 1;

/// Longest message that a client may send, in bytes.
pub const MAX_CLIENT_FRAME: usize = 4_096;

/// Longest message that a server sends, in bytes.
pub const MAX_SERVER_FRAME: usize = 1 << 20;

/// Longest payload of an act, in bytes.
pub const MAX_ACT: usize = 1_024;

/// Longest look (the opaque appearance of an entity), in bytes.
pub const MAX_LOOK: usize = 256;

/// Why bytes are not a message. Nothing was changed by them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not an array of two, the first of which is a number below 128.
    #[error("not a message: want a MessagePack array [type, [fields]], got {0}")]
    Malformed(String),
    /// No such message.
    #[error("unknown message type {0}")]
    UnknownType(u8),
    /// The fields do not fit the message.
    #[error("message type {kind}: {why}")]
    BadField {
        /// The message's type.
        kind: u8,
        /// Which field, and what would be right.
        why: String,
    },
    /// Longer than allowed.
    #[error("message of {len} bytes; at most {max} are allowed")]
    TooBig {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
}

impl DecodeError {
    /// The code that tells a client of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            DecodeError::Malformed(_) | DecodeError::TooBig { .. } => ErrorCode::Malformed,
            DecodeError::UnknownType(_) => ErrorCode::UnknownType,
            DecodeError::BadField { .. } => ErrorCode::BadField,
        }
    }
}

/// Splits a message into its type and the bytes of its fields.
pub(super) fn open(bytes: &[u8], max: usize) -> Result<(u8, &[u8]), DecodeError> {
    if bytes.len() > max {
        return Err(DecodeError::TooBig { len: bytes.len(), max });
    }
    match bytes {
        [] => Err(DecodeError::Malformed("no bytes at all".into())),
        [0x92, kind, body @ ..] if *kind < 0x80 => Ok((*kind, body)),
        [0x92, ..] => Err(DecodeError::Malformed("a type that is no number below 128".into())),
        [first, ..] => Err(DecodeError::Malformed(format!("first byte 0x{first:02x}, not 0x92"))),
    }
}

/// Reads the fields; every byte must be used.
pub(super) fn body<T: DeserializeOwned>(kind: u8, bytes: &[u8]) -> Result<T, DecodeError> {
    let bad = |why: String| DecodeError::BadField { kind, why };
    let mut de = rmp_serde::Deserializer::from_read_ref(bytes);
    // The deepest legal message nests four arrays.
    de.set_max_depth(8);
    let value = T::deserialize(&mut de).map_err(|e| bad(e.to_string()))?;
    let used = bytes.len() - de.get_ref().len();
    if used < bytes.len() {
        return Err(bad(format!("{} bytes left over after the fields", bytes.len() - used)));
    }
    Ok(value)
}

/// Writes `[kind, fields]`.
pub(super) fn seal<T: Serialize>(kind: u8, fields: &T) -> Vec<u8> {
    let mut out = vec![0x92, kind];
    // Writing to a Vec cannot fail, and every message type serialises.
    if let Err(e) = rmp_serde::encode::write(&mut out, fields) {
        tracing::error!(kind, error = %e, "a message did not serialise");
    }
    out
}
