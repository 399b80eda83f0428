//! Encodes a value by its type, each number in its shortest form.

use serde::ser::{self, Serialize};

use super::Other;
use crate::scene::pieces::{NIL, array, bin, flag, marked_1, marked_4, marked_8, sint, uint, wide};

/// Appends a value. Returns false, with nothing appended, if the value needs a form that the fast
/// codec does not write.
pub(in crate::wire) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> bool {
    let len = out.len();
    let written = value.serialize(&mut Writer { out }).is_ok();
    if !written {
        out.truncate(len);
    }
    written
}

#[inline]
fn map(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => out.push(0x80 | len as u8),
        _ => wide(out, [0xde, 0xdf], len),
    }
}

#[inline]
fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(len @ 0..=31) => out.push(0xa0 | len),
        Ok(len) => marked_1(out, 0xd9, [len]),
        Err(_) => wide(out, [0xda, 0xdb], bytes.len()),
    }
    out.extend_from_slice(bytes);
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

/// A length that is known and that MessagePack can express.
fn known(len: Option<usize>) -> Result<usize, Other> {
    len.filter(|len| u32::try_from(*len).is_ok()).ok_or(Other::Form)
}

macro_rules! numbers {
    ($write:ident, $as:ty: $($serialize:ident($of:ty)),*) => {
        $(#[inline]
        fn $serialize(self, n: $of) -> Result<(), Other> {
            $write(self.out, <$as>::from(n));
            Ok(())
        })*
    };
}

impl ser::Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Other;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers!(uint, u64: serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64));
    numbers!(sint, i64: serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64));

    fn serialize_i128(self, _: i128) -> Result<(), Other> {
        Err(Other::Form)
    }

    fn serialize_u128(self, _: u128) -> Result<(), Other> {
        Err(Other::Form)
    }

    #[inline]
    fn serialize_bool(self, is: bool) -> Result<(), Other> {
        flag(self.out, is);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, n: f32) -> Result<(), Other> {
        marked_4(self.out, 0xca, n.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, n: f64) -> Result<(), Other> {
        marked_8(self.out, 0xcb, n.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, c: char) -> Result<(), Other> {
        self.serialize_str(c.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, s: &str) -> Result<(), Other> {
        known(Some(s.len()))?;
        text(self.out, s.as_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Other> {
        known(Some(bytes.len()))?;
        bin(self.out, bytes);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Other> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Other> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Other> {
        self.out.push(NIL);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Other> {
        array(self.out, 0);
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Other> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Other> {
        // `rmp_serde` marks extension types by this name.
        if name == rmp_serde::MSGPACK_EXT_STRUCT_NAME {
            Err(Other::Form)
        } else {
            value.serialize(self)
        }
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Other> {
        map(self.out, 1);
        text(self.out, variant.as_bytes());
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self, Other> {
        array(self.out, known(len)?);
        Ok(self)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Self, Other> {
        self.serialize_seq(Some(len))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Self, Other> {
        self.serialize_seq(Some(len))
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self, Other> {
        map(self.out, 1);
        text(self.out, variant.as_bytes());
        self.serialize_seq(Some(len))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self, Other> {
        map(self.out, known(len)?);
        Ok(self)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Self, Other> {
        self.serialize_seq(Some(len))
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self, Other> {
        self.serialize_tuple_variant(name, index, variant, len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($of:ident: $part:ident($($key:ty)?)),*) => {
        $(impl ser::$of for &mut Writer<'_> {
            type Ok = ();
            type Error = Other;

            #[inline]
            fn $part<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Other> {
                value.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> Result<(), Other> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(&'static str),
    SerializeStructVariant: serialize_field(&'static str)
}

impl ser::SerializeMap for &mut Writer<'_> {
    type Ok = ();
    type Error = Other;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Other> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Other> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Other> {
        Ok(())
    }
}
