//! The value of a property: the bytes of one MessagePack value, checked once where it comes in.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Most bytes of a value.
pub const MAX_VALUE_BYTES: usize = 1_024;

/// Most arrays and maps inside each other in a value; a number or a text alone has depth 0.
pub const MAX_VALUE_DEPTH: usize = 4;

/// Why bytes are not the value of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The bytes are not exactly one MessagePack value, or a text in it is not UTF-8.
    #[error("byte {at} is not part of one whole MessagePack value")]
    Malformed {
        /// The offset of the byte at which the value ends to make sense.
        at: usize,
    },
    /// Too many arrays and maps inside each other.
    #[error("arrays and maps are nested deeper than {MAX_VALUE_DEPTH}")]
    TooDeep,
    /// Too many bytes.
    #[error("a value of {len} bytes; at most {MAX_VALUE_BYTES} are allowed")]
    TooLong {
        /// Their number.
        len: usize,
    },
}

/// One MessagePack value of at most [`MAX_VALUE_BYTES`] bytes. A clone shares the bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Bytes", into = "Bytes")]
pub struct Value(Bytes);

impl Value {
    /// No value: what a property that was never set is.
    pub const NIL: Value = Value(Bytes::from_static(&[0xc0]));

    /// Checks the bytes of a value.
    ///
    /// # Errors
    /// They are not one MessagePack value, or break a limit.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Value, ValueError> {
        let bytes = bytes.into();
        if bytes.len() > MAX_VALUE_BYTES {
            return Err(ValueError::TooLong { len: bytes.len() });
        }
        check(&bytes)?;
        Ok(Value(bytes))
    }

    /// The value of anything that serde can write as MessagePack.
    ///
    /// # Errors
    /// It breaks a limit, or cannot be written.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Value, ValueError> {
        let bytes = rmp_serde::to_vec_named(value).map_err(|_| ValueError::Malformed { at: 0 })?;
        Value::new(bytes)
    }

    /// Opaque bytes as a value, as appearances are.
    ///
    /// # Errors
    /// They are too long.
    pub fn binary(content: &[u8]) -> Result<Value, ValueError> {
        let mut bytes = Vec::with_capacity(content.len() + 3);
        match u8::try_from(content.len()) {
            Ok(len) => bytes.extend([0xc4, len]),
            Err(_) => {
                let len = u16::try_from(content.len())
                    .map_err(|_| ValueError::TooLong { len: content.len() })?;
                bytes.push(0xc5);
                bytes.extend(len.to_be_bytes());
            }
        }
        bytes.extend_from_slice(content);
        Value::new(bytes)
    }

    /// The MessagePack bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The content, if the value is opaque bytes.
    pub fn as_binary(&self) -> Option<&[u8]> {
        match &self.0[..] {
            [0xc4, _, content @ ..] | [0xc5, _, _, content @ ..] => Some(content),
            _ => None,
        }
    }

    /// Reads the value as a type.
    ///
    /// # Errors
    /// It is of another type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, rmp_serde::decode::Error> {
        rmp_serde::from_slice(&self.0)
    }

    /// Whether there is no value.
    pub fn is_nil(&self) -> bool {
        self.0[..] == [0xc0]
    }

    /// The first byte, which says the type.
    pub(super) fn marker(&self) -> u8 {
        self.0.first().copied().unwrap_or(0xc0)
    }
}

impl TryFrom<Bytes> for Value {
    type Error = ValueError;

    fn try_from(bytes: Bytes) -> Result<Value, ValueError> {
        Value::new(bytes)
    }
}

impl From<Value> for Bytes {
    fn from(value: Value) -> Bytes {
        value.0
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// Checks that `bytes` is exactly one value.
fn check(bytes: &[u8]) -> Result<(), ValueError> {
    // Values still to come, per level of nesting.
    let mut open = [0_usize; MAX_VALUE_DEPTH];
    let (mut depth, mut at) = (0, 0);
    loop {
        let (end, inside) = head(bytes, at)?;
        // Each value takes a byte at least.
        if end > bytes.len() || inside > bytes.len() - end {
            return Err(ValueError::Malformed { at });
        }
        at = end;
        if let Some(inside) = (inside > 0).then_some(inside) {
            *open.get_mut(depth).ok_or(ValueError::TooDeep)? = inside;
            depth += 1;
            continue;
        }
        while depth > 0 && open[depth - 1] == 1 {
            depth -= 1;
        }
        match depth {
            0 if at == bytes.len() => return Ok(()),
            0 => return Err(ValueError::Malformed { at }),
            _ => open[depth - 1] -= 1,
        }
    }
}

/// Where the head (of an array or a map) or the whole (of any other value) at `at` ends, and how many
/// values follow inside.
fn head(bytes: &[u8], at: usize) -> Result<(usize, usize), ValueError> {
    let malformed = ValueError::Malformed { at };
    let marker = *bytes.get(at).ok_or(malformed)?;
    let scalar = |len: usize| Ok((at + 1 + len, 0));
    let len = |width: usize| {
        let digits = bytes.get(at + 1..at + 1 + width).ok_or(malformed)?;
        Ok(digits.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    };
    let text = |start: usize, len: usize| {
        let content = bytes.get(start..start + len).ok_or(malformed)?;
        std::str::from_utf8(content).map_err(|_| malformed)?;
        Ok((start + len, 0))
    };
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => scalar(0),
        0xcc | 0xd0 => scalar(1),
        0xcd | 0xd1 => scalar(2),
        0xca | 0xce | 0xd2 => scalar(4),
        0xcb | 0xcf | 0xd3 => scalar(8),
        0xd4..=0xd8 => scalar(1 + (1 << (marker - 0xd4))),
        0xa0..=0xbf => text(at + 1, usize::from(marker & 0x1f)),
        0xd9 => text(at + 2, len(1)?),
        0xda => text(at + 3, len(2)?),
        0xdb => text(at + 5, len(4)?),
        0xc4 => scalar(1 + len(1)?),
        0xc5 => scalar(2 + len(2)?),
        0xc6 => scalar(4 + len(4)?),
        0xc7 => scalar(2 + len(1)?),
        0xc8 => scalar(3 + len(2)?),
        0xc9 => scalar(5 + len(4)?),
        0x80..=0x8f => Ok((at + 1, 2 * usize::from(marker & 0x0f))),
        0x90..=0x9f => Ok((at + 1, usize::from(marker & 0x0f))),
        0xdc => Ok((at + 3, len(2)?)),
        0xdd => Ok((at + 5, len(4)?)),
        0xde => Ok((at + 3, 2 * len(2)?)),
        0xdf => Ok((at + 5, 2 * len(4)?)),
        0xc1 => Err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_values_of_every_form_are_values() {
        let cases: &[&[u8]] = &[
            &[0xc0],
            &[0x07],
            &[0xff],
            &[0xc3],
            &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xa2, b'o', b'k'],
            &[0xd9, 1, b'x'],
            &[0xc4, 2, 0xff, 0xff],
            &[0x92, 1, 0x81, 0xa1, b'a', 0xc2],
            &[0x91, 0x91, 0x91, 0x91, 0x01],
            &[0xd4, 1, 2],
            &[0xc7, 1, 5, 9],
            &[0x90],
            &[0x80],
        ];
        for bytes in cases {
            assert!(Value::new(bytes.to_vec()).is_ok(), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_is_not_one_value_is_refused_with_the_reason() {
        let of = |bytes: &[u8]| Value::new(bytes.to_vec()).unwrap_err();
        let malformed = |at| ValueError::Malformed { at };
        assert_eq!(of(&[]), malformed(0));
        assert_eq!(of(&[1, 2]), malformed(1));
        assert_eq!(of(&[0xc1]), malformed(0));
        assert_eq!(of(&[0x92, 1]), malformed(0));
        assert_eq!(of(&[0xa2, 0xff, 0xfe]), malformed(0));
        assert_eq!(of(&[0xa5, b'a']), malformed(0));
        assert_eq!(of(&[0xdf, 0xff, 0xff, 0xff, 0xff]), malformed(0));
        assert_eq!(of(&[0xc6, 0xff, 0xff, 0xff, 0xff]), malformed(0));
        assert_eq!(of(&[0x91, 0x91, 0x91, 0x91, 0x91, 1]), ValueError::TooDeep);
        assert_eq!(of(&[0xc0; 1_025]), ValueError::TooLong { len: 1_025 });
    }

    #[test]
    fn a_value_is_read_as_the_type_that_was_written() {
        assert_eq!(Value::of("stance").unwrap().read::<String>().unwrap(), "stance");
        assert_eq!(Value::of(&(7_u8, true)).unwrap().read::<(u8, bool)>().unwrap(), (7, true));
        assert!(Value::of(&1).unwrap().read::<String>().is_err());
        for len in [0, 1, 255, 256, 1_021] {
            let content = vec![7; len];
            assert_eq!(Value::binary(&content).unwrap().as_binary(), Some(&content[..]));
        }
        assert!(Value::binary(&[7; 1_022]).is_err());
        assert!(Value::binary(&vec![7; 70_000]).is_err());
        assert!(Value::NIL.is_nil());
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_what_a_decoder_reads_whole(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = &bytes[..];
            let read = rmp_serde::decode::from_read::<_, serde::de::IgnoredAny>(&mut reader);
            let whole = read.is_ok() && reader.is_empty();
            if Value::new(bytes.clone()).is_ok() {
                prop_assert!(whole, "{bytes:02x?}");
            }
        }
    }
}
