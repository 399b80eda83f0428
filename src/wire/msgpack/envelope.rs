//! The envelope `[type, [fields]]` of client messages, its size limits and its errors.
//!
//! [`super::client`] uses it for every message. A message must be checked by `shape` before
//! `rmp_serde` may allocate for it.

use serde::{Serialize, de::DeserializeOwned};

use super::fast;
use super::validate::{self, Fault};

/// Version of the client protocol; a hello with another version is refused.
pub const PROTOCOL_VERSION: u16 = 5;

/// Longest message that a client may send, in bytes.
pub const MAX_CLIENT_FRAME: usize = 4_096;

/// Longest message that a server sends, in bytes.
pub const MAX_SERVER_FRAME: usize = 1 << 20;

/// Longest payload of an action, bytes.
pub const MAX_ACT: usize = crate::scene::messages::MAX_ACTION_BYTES;

/// Longest explanation of a bad field, in characters.
const MAX_WHY: usize = 160;

/// Why bytes are not a message. They changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not MessagePack, or not an array of a number below 128 and an array, or followed by other
    /// bytes.
    #[error("not a message: want a MessagePack array [type, [fields]], got {0}")]
    Malformed(String),
    /// There is no message with this type number.
    #[error("unknown message type {0}")]
    UnknownType(u8),
    /// The fields do not fit the message type.
    #[error("message type {kind}: {why}")]
    BadField {
        /// The type number.
        kind: u8,
        /// The field, and what would be right.
        why: String,
    },
    /// The payload of an action is too long.
    #[error("payload of {len} bytes; at most {MAX_ACT} are allowed")]
    ActTooLong {
        /// The payload's length, bytes.
        len: usize,
    },
    /// The message is too long.
    #[error("message of {len} bytes; at most {max} are allowed")]
    TooBig {
        /// The message's length, bytes.
        len: usize,
        /// The limit, bytes.
        max: usize,
    },
}

/// Splits a message into its type and the bytes of its fields.
pub(in crate::wire) fn open(bytes: &[u8], max: usize) -> Result<(u8, &[u8]), DecodeError> {
    if bytes.len() > max {
        return Err(DecodeError::TooBig { len: bytes.len(), max });
    }
    match bytes {
        [] => Err(DecodeError::Malformed("an empty message".into())),
        [0x92, kind, body @ ..] if *kind < 0x80 => Ok((*kind, body)),
        [0x92] => Err(DecodeError::Malformed("nothing after the first byte".into())),
        [0x92, ..] => Err(DecodeError::Malformed("a type that is not a number below 128".into())),
        [first, ..] => Err(DecodeError::Malformed(format!("first byte 0x{first:02x}, not 0x92"))),
    }
}

/// Reads the fields; every byte must be used. Fields that a later version has added at the end of a
/// record are skipped; they, too, must be of a form that messages contain.
pub(in crate::wire) fn body<T: DeserializeOwned>(kind: u8, bytes: &[u8]) -> Result<T, DecodeError> {
    let fields = match fast::read_client(bytes) {
        Some((fields, false)) => return Ok(fields),
        Some((fields, true)) => Some(fields),
        None => None,
    };
    validate::check(bytes).map_err(|fault| match fault {
        Fault::Broken(why) => DecodeError::Malformed(why),
        Fault::Foreign(why) => DecodeError::BadField { kind, why },
    })?;
    if let Some(fields) = fields {
        return Ok(fields);
    }
    rmp_serde::from_slice(bytes).map_err(|e| DecodeError::BadField { kind, why: brief(e) })
}

/// The text of an error, shortened: it may quote a long message.
fn brief(error: rmp_serde::decode::Error) -> String {
    let mut text = error.to_string();
    if let Some((end, _)) = text.char_indices().nth(MAX_WHY) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Writes `[kind, fields]`.
pub(in crate::wire) fn seal<T: Serialize>(kind: u8, fields: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&[0x92, kind]);
    if fast::write(&mut out, fields) {
        return out;
    }
    // Every message type serialises, and writing to a Vec cannot fail.
    if let Err(e) = rmp_serde::encode::write(&mut out, fields) {
        crate::log_limited!(error, kind, error = %e, "a client message did not serialise");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ErrorCode;
    use crate::wire::client::{ClientMsg, ServerMsg};

    fn code(bytes: &[u8]) -> Option<ErrorCode> {
        ClientMsg::decode(bytes).err().map(|e| e.code())
    }

    #[test]
    fn bytes_that_are_not_an_envelope_are_malformed() {
        let cases: &[&[u8]] = &[
            &[],
            &[0x92],
            &[0x91, 6],
            &[0x93, 6, 0x91, 1, 0],
            &[0x82, 6, 0x91, 1, 0],
            &[0x92, 0xcc, 6, 0x91, 1],
            &[0x92, 0xff, 0x91, 1],
            &[0x92, 6],
            &[0x92, 6, 1],
            &[0x92, 6, 0xc4, 1, 1],
            &[0x92, 6, 0x91],
            &[0x92, 6, 0x91, 1, 0],
            &[0x92, 6, 0x91, 0xc1],
            b"GET / HTTP/1.1",
        ];
        for bytes in cases {
            assert_eq!(code(bytes), Some(ErrorCode::Malformed), "{bytes:02x?}");
        }
        assert_eq!(code(&[0x92, 6, 0x91, 1]), None);
    }

    #[test]
    fn a_message_type_of_the_other_direction_is_unknown() {
        assert_eq!(ClientMsg::decode(&[0x92, 0, 0x90]), Err(DecodeError::UnknownType(0)));
        assert_eq!(ClientMsg::decode(&[0x92, 67, 0x90]), Err(DecodeError::UnknownType(67)));
        assert_eq!(ServerMsg::decode(&[0x92, 6, 0x90]), Err(DecodeError::UnknownType(6)));
        assert_eq!(code(&[0x92, 127, 0x90]), Some(ErrorCode::UnknownType));
    }

    #[test]
    fn fields_that_do_not_fit_are_bad_and_name_the_type() {
        let cases: &[&[u8]] = &[
            // A ping with too few fields, a string, nil, a float, negative, a map, an extension, and
            // with these two as a later field.
            &[0x92, 6, 0x90],
            &[0x92, 6, 0x91, 0xa1, b'1'],
            &[0x92, 6, 0x91, 0xc0],
            &[0x92, 6, 0x91, 0xca, 0, 0, 0, 0],
            &[0x92, 6, 0x91, 0xff],
            &[0x92, 6, 0x91, 0x81, 0xa1, b'n', 1],
            &[0x92, 6, 0x91, 0xd4, 0, 0],
            &[0x92, 6, 0x92, 1, 0x81, 0xa1, b'n', 1],
            &[0x92, 6, 0x92, 1, 0xd4, 0, 0],
            // A move whose number exceeds 32 bits; moves whose position has two axes, or a value
            // that is too wide.
            &[0x92, 3, 0x92, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0x93, 1, 2, 3],
            &[0x92, 3, 0x92, 1, 0x92, 1, 2],
            &[0x92, 3, 0x92, 1, 0x93, 1, 2, 0xce, 0x80, 0, 0, 0],
            // A hello whose token is not UTF-8.
            &[0x92, 1, 0x92, 1, 0xa1, 0xff],
        ];
        for bytes in cases {
            let got = ClientMsg::decode(bytes);
            let want = bytes[1];
            let fits = matches!(got, Err(DecodeError::BadField { kind, .. }) if kind == want);
            assert!(fits, "{bytes:02x?}: {got:?}");
        }
    }

    #[test]
    fn fields_of_a_later_version_are_skipped() {
        let read = |bytes: &[u8]| ClientMsg::decode(bytes).unwrap();
        let ping = read(&[0x92, 6, 0x91, 5]);
        assert_eq!(read(&[0x92, 6, 0x92, 5, 7]), ping);
        // With a number in a wide signed form, which the fast codec does not write.
        assert_eq!(read(&[0x92, 6, 0x92, 0xd3, 0, 0, 0, 0, 0, 0, 0, 5, 0x91, 0xc0]), ping);
        let leave = read(&[0x92, 7, 0x90]);
        assert_eq!(read(&[0x92, 7, 0x91, 1]), leave);
        let walk = [0x92, 8, 0x94, 3, 1, 5, 0x95, 1, 0x93, 1, 2, 3, 4, 5, 0xc0];
        let mut longer = walk.to_vec();
        // The position has a fourth number, the form a sixth value.
        (longer[6], longer[8]) = (0x96, 0x94);
        longer.insert(12, 9);
        longer.extend([0xa1, b'x']);
        assert_eq!(read(&longer), read(&walk));
    }

    #[test]
    fn a_later_field_is_no_deeper_than_messages_may_be() {
        let nested = |depth: usize| [&[0x92, 6, 0x92, 1][..], &vec![0x91; depth], &[5]].concat();
        assert_eq!(code(&nested(7)), None);
        assert_eq!(code(&nested(8)), Some(ErrorCode::Malformed));
        assert_eq!(code(&nested(4_000)), Some(ErrorCode::Malformed));
        let claims = [0x92, 6, 0x92, 1, 0xdd, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(code(&claims), Some(ErrorCode::Malformed));
    }

    #[test]
    fn integers_may_be_encoded_wider_than_necessary() {
        let wide = [0x92, 6, 0x91, 0xcf, 0, 0, 0, 0, 0, 0, 0, 5];
        let signed = [0x92, 6, 0x91, 0xd3, 0, 0, 0, 0, 0, 0, 0, 5];
        let short = ClientMsg::decode(&[0x92, 6, 0x91, 5]).unwrap();
        assert_eq!(ClientMsg::decode(&wide).unwrap(), short);
        assert_eq!(ClientMsg::decode(&signed).unwrap(), short);
        assert_eq!(short.encode(), [0x92, 6, 0x91, 5]);
    }

    #[test]
    fn a_too_long_message_is_refused_unread() {
        let long = vec![0x92; MAX_CLIENT_FRAME + 1];
        let len = long.len();
        let want = DecodeError::TooBig { len, max: MAX_CLIENT_FRAME };
        assert_eq!(want.code(), ErrorCode::Malformed);
        assert_eq!(ClientMsg::decode(&long), Err(want));
    }

    #[test]
    fn an_error_quotes_little_of_a_long_field_and_no_token() {
        let long = [&[0x92, 3, 0x92, 1, 0xda, 0x0f, 0x00][..], &[b'x'; 0xf00]].concat();
        let Err(DecodeError::BadField { kind: 3, why }) = ClientMsg::decode(&long) else {
            panic!("a position given as text must be refused");
        };
        assert_eq!(why.chars().count(), MAX_WHY + 1, "{why}");
        let swapped = [&[0x92, 1, 0x92, 0xa6][..], b"secret", &[1]].concat();
        let error = ClientMsg::decode(&swapped).unwrap_err();
        assert_eq!(error.to_string(), "message type 1: want [version, token]");
    }

    #[test]
    fn errors_say_what_was_found() {
        let text = |bytes: &[u8]| ClientMsg::decode(bytes).unwrap_err().to_string();
        assert_eq!(
            text(b"{}"),
            "not a message: want a MessagePack array [type, [fields]], got first byte 0x7b, not 0x92"
        );
        assert_eq!(text(&[0x92, 99, 0x90]), "unknown message type 99");
        assert_eq!(
            text(&[0x92, 6, 0x91, 0x80]),
            "message type 6: byte 1: a map, which no message contains"
        );
    }
}
