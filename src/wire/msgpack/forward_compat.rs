//! Forward compatibility: decodes what the next release encodes. A struct is an array of its
//! fields, new fields are at its end, and unknown ones are skipped.
//!
//! Peer messages and snapshots are decoded here. Client messages are not: they are strict.

use std::fmt;
use std::io::ErrorKind;

use rmp_serde::Deserializer;
use rmp_serde::decode::{Error, ReadSlice};
use serde::de::{
    self, Deserialize as _, DeserializeOwned, DeserializeSeed, EnumAccess, IgnoredAny, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

use super::fast;

/// One value at the beginning of `bytes`, and what comes after it. What this release has written, and nothing else, is
/// read as it is; only what has too many fields or bytes is looked at again.
pub(in crate::wire) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Error> {
    if let Some(value) = fast::read(bytes) {
        return Ok((value, &[]));
    }
    // This deserializer copies no strings, but does not tell where it stopped.
    let mut all = Deserializer::from_read_ref(bytes);
    match T::deserialize(&mut all) {
        Ok(value) if is_at_end(&mut all) => return Ok((value, &[])),
        Ok(_) | Err(Error::LengthMismatch(_)) => {}
        Err(error) => return Err(error),
    }
    let mut rest = bytes;
    let value = T::deserialize(Compat(&mut Deserializer::new(&mut rest)))?;
    Ok((value, rest))
}

/// Whether all bytes are consumed.
fn is_at_end<'de, R: ReadSlice<'de>>(from: &mut Deserializer<R>) -> bool {
    match IgnoredAny::deserialize(from) {
        Err(Error::InvalidMarkerRead(error)) => error.kind() == ErrorKind::UnexpectedEof,
        _ => false,
    }
}

/// A deserializer whose arrays may be longer than the fields that are read from them.
struct Compat<D>(D);

macro_rules! forward {
    ($($ask:ident($($arg:ident: $of:ty),*)),* $(,)?) => {
        $(fn $ask<V: Visitor<'de>>(self, $($arg: $of,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$ask($($arg,)* CompatVisitor(visitor))
        })*
    };
}

impl<'de, D: de::Deserializer<'de>> de::Deserializer<'de> for Compat<D> {
    type Error = D::Error;

    forward! {
        deserialize_any(), deserialize_bool(), deserialize_i8(), deserialize_i16(),
        deserialize_i32(), deserialize_i64(), deserialize_i128(), deserialize_u8(),
        deserialize_u16(), deserialize_u32(), deserialize_u64(), deserialize_u128(),
        deserialize_f32(), deserialize_f64(), deserialize_char(), deserialize_str(),
        deserialize_string(), deserialize_bytes(), deserialize_byte_buf(), deserialize_option(),
        deserialize_unit(), deserialize_seq(), deserialize_map(), deserialize_identifier(),
        deserialize_ignored_any(),
        deserialize_unit_struct(name: &'static str),
        deserialize_newtype_struct(name: &'static str),
        deserialize_tuple(len: usize),
        deserialize_tuple_struct(name: &'static str, len: usize),
        deserialize_struct(name: &'static str, fields: &'static [&'static str]),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// A visitor that skips the rest of an array.
struct CompatVisitor<V>(V);

macro_rules! visit {
    ($($visit:ident($of:ty)),* $(,)?) => {
        $(fn $visit<E: de::Error>(self, value: $of) -> Result<V::Value, E> {
            self.0.$visit(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for CompatVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool(bool), visit_i8(i8), visit_i16(i16), visit_i32(i32), visit_i64(i64),
        visit_i128(i128), visit_u8(u8), visit_u16(u16), visit_u32(u32), visit_u64(u64),
        visit_u128(u128), visit_f32(f32), visit_f64(f64), visit_char(char), visit_str(&str),
        visit_borrowed_str(&'de str), visit_string(String), visit_bytes(&[u8]),
        visit_borrowed_bytes(&'de [u8]), visit_byte_buf(Vec<u8>),
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: de::Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Compat(from))
    }

    fn visit_newtype_struct<D: de::Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Compat(from))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<V::Value, A::Error> {
        let value = self.0.visit_seq(CompatAccess(&mut seq))?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(CompatAccess(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, of: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(CompatAccess(of))
    }
}

/// Access to the elements of a value, each of which is decoded leniently.
struct CompatAccess<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for CompatAccess<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(CompatSeed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CompatAccess<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(CompatSeed(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(CompatSeed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for CompatAccess<A> {
    type Error = A::Error;
    type Variant = CompatAccess<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, CompatAccess<A::Variant>), A::Error> {
        self.0.variant_seed(CompatSeed(seed)).map(|(value, variant)| (value, CompatAccess(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for CompatAccess<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(CompatSeed(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, CompatVisitor(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, CompatVisitor(visitor))
    }
}

/// A seed that decodes its value leniently.
struct CompatSeed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for CompatSeed<S> {
    type Value = S::Value;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Compat(from))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner(u8, String);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Item {
        Unit,
        One(Inner),
        Fields { a: u8, b: Option<Inner> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        items: Vec<Item>,
        last: u8,
    }

    #[derive(Serialize)]
    struct NewInner(u8, String, [u8; 3]);

    #[derive(Serialize)]
    enum NewItem {
        Unit,
        One(NewInner),
        Fields { a: u8, b: Option<NewInner>, c: String },
    }

    #[derive(Serialize)]
    struct New {
        items: Vec<NewItem>,
        last: u8,
        more: Option<NewInner>,
        most: Vec<u64>,
    }

    #[test]
    fn unknown_fields_are_skipped_at_every_depth() {
        let inner = || NewInner(7, "seven".into(), [1, 2, 3]);
        let fields = NewItem::Fields { a: 1, b: Some(inner()), c: "c".into() };
        let items = vec![NewItem::Unit, NewItem::One(inner()), fields];
        let new = New { items, last: 9, more: Some(inner()), most: vec![1, u64::MAX] };
        let mut bytes = rmp_serde::to_vec(&new).unwrap();
        bytes.push(0xc0);
        let inner = || Inner(7, "seven".into());
        let items = vec![Item::Unit, Item::One(inner()), Item::Fields { a: 1, b: Some(inner()) }];
        let (old, rest) = read::<Old>(&bytes).unwrap();
        assert_eq!((old, rest), (Old { items, last: 9 }, &[0xc0][..]));
    }

    #[test]
    fn truncated_bytes_or_a_missing_field_are_an_error() {
        let new = New { items: Vec::new(), last: 9, more: None, most: vec![1] };
        let bytes = rmp_serde::to_vec(&new).unwrap();
        for end in 0..bytes.len() {
            assert!(read::<Old>(&bytes[..end]).is_err(), "{end}");
        }
        assert!(read::<Old>(&rmp_serde::to_vec(&(Vec::<u8>::new(),)).unwrap()).is_err());
    }
}
