//! The ways to read a value, by the forms that each accepts beside those that the fast codec writes.

use serde::de::DeserializeOwned;

use super::limits::Limits;
use super::read::{Forms, Reader};
use super::{Other, Unreadable};

/// Decodes all of `bytes` as one value; `None`: not one value, or one in another form.
pub(in crate::wire) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut reader = Reader::new(bytes, Limits::SHORT.of(bytes.len()), Forms::Exact);
    let value = T::deserialize(&mut reader).ok()?;
    reader.bytes.is_empty().then_some(value)
}

/// As [`read`], for messages of clients: an integer may come in any form, and fields that a later
/// version has added at the end of a record are skipped. Gives also whether there were any: their
/// form is not checked here.
pub(in crate::wire) fn read_client<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, bool)> {
    let mut reader = Reader::new(bytes, Limits::SHORT.of(bytes.len()), Forms::Client);
    let value = T::deserialize(&mut reader).ok()?;
    reader.bytes.is_empty().then_some((value, reader.has_skipped))
}

/// Decodes one value at the beginning of `bytes`; gives also what comes after it. Fields that a
/// later release has added at the end of a struct are skipped.
pub(in crate::wire) fn read_compat<T: DeserializeOwned>(
    bytes: &[u8],
    limits: Limits,
) -> Result<(T, &[u8]), Unreadable> {
    let memory = limits.of(bytes.len());
    let mut reader = Reader::new(bytes, memory, Forms::Compat);
    match T::deserialize(&mut reader) {
        Ok(value) => Ok((value, reader.bytes)),
        Err(Other::Form) => Err(Unreadable::Form(bytes.len() - reader.bytes.len())),
        Err(Other::Variant) => {
            Err(Unreadable::Unknown(String::from_utf8_lossy(reader.name).into_owned()))
        }
        Err(Other::Depth) => Err(Unreadable::TooDeep),
        Err(Other::Memory) => Err(Unreadable::TooLarge(memory)),
    }
}

impl Reader<'_> {
    /// A positive integer in a signed form, which no release writes.
    #[cold]
    pub(super) fn signed_positive(&mut self, marker: u8) -> Result<u64, Other> {
        if self.forms != Forms::Client {
            return Err(Other::Form);
        }
        let n = match marker {
            0xd0 => i8::from_be_bytes(self.array()?).into(),
            0xd1 => i16::from_be_bytes(self.array()?).into(),
            0xd2 => i32::from_be_bytes(self.array()?).into(),
            0xd3 => i64::from_be_bytes(self.array()?),
            _ => return Err(Other::Form),
        };
        n.try_into().map_err(|_| Other::Form)
    }
}
