//! Decodes a value by its type. Lengths are checked against the bytes that are there before
//! anything is allocated.

use serde::de::{self, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::limits::GROWTH;
use super::{MAX_DEPTH, Other};

/// Which forms are accepted beside those that the fast codec writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    /// None.
    Exact,
    /// Unknown fields at the end of a struct.
    Compat,
    /// Those, and positive integers in a signed form.
    Client,
}

/// The bytes that are left.
pub(super) struct Reader<'de> {
    pub(super) bytes: &'de [u8],
    /// How much deeper values may be nested.
    depth: u8,
    /// How much more memory lists may take.
    memory: usize,
    pub(super) forms: Forms,
    /// Whether unknown fields were skipped.
    pub(super) has_skipped: bool,
    /// The last name of a variant.
    pub(super) name: &'de [u8],
}

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8], memory: usize, forms: Forms) -> Reader<'de> {
        Reader { bytes, depth: MAX_DEPTH, memory, forms, has_skipped: false, name: &[] }
    }

    /// A value begins inside the present one.
    #[inline(always)]
    fn enter(&mut self) -> Result<(), Other> {
        self.depth = self.depth.checked_sub(1).ok_or(Other::Depth)?;
        Ok(())
    }

    /// An element of a list takes memory.
    #[inline(always)]
    fn charge(&mut self, size: usize) -> Result<(), Other> {
        self.memory = self.memory.checked_sub(size * GROWTH).ok_or(Other::Memory)?;
        Ok(())
    }

    #[inline]
    fn peek(&self) -> Result<u8, Other> {
        self.bytes.first().copied().ok_or(Other::Form)
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'de [u8], Other> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Other::Form)?;
        self.bytes = rest;
        Ok(head)
    }

    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Other> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or(Other::Form)?;
        self.bytes = rest;
        Ok(*head)
    }

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Result<u8, Other> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline(always)]
    fn unsigned(&mut self) -> Result<u64, Other> {
        Ok(match self.byte()? {
            small @ 0..=0x7f => small.into(),
            0xcc => self.byte()?.into(),
            0xcd => u16::from_be_bytes(self.array()?).into(),
            0xce => u32::from_be_bytes(self.array()?).into(),
            0xcf => u64::from_be_bytes(self.array()?),
            marker => return self.signed_positive(marker),
        })
    }

    #[inline(always)]
    fn signed(&mut self) -> Result<i64, Other> {
        Ok(match self.byte()? {
            small @ (0..=0x7f | 0xe0..) => (small as i8).into(),
            0xcc => self.byte()?.into(),
            0xcd => u16::from_be_bytes(self.array()?).into(),
            0xce => u32::from_be_bytes(self.array()?).into(),
            0xcf => u64::from_be_bytes(self.array()?).try_into().map_err(|_| Other::Form)?,
            0xd0 => i8::from_be_bytes(self.array()?).into(),
            0xd1 => i16::from_be_bytes(self.array()?).into(),
            0xd2 => i32::from_be_bytes(self.array()?).into(),
            0xd3 => i64::from_be_bytes(self.array()?),
            _ => return Err(Other::Form),
        })
    }

    /// A length of one, two or four bytes; `one` is the marker of a one-byte length.
    #[inline]
    pub(super) fn length(&mut self, marker: u8, one: u8) -> Result<usize, Other> {
        Ok(match marker.wrapping_sub(one) {
            0 => self.byte()?.into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            2 => u32::from_be_bytes(self.array()?) as usize,
            _ => return Err(Other::Form),
        })
    }

    /// The bytes of a text.
    #[inline]
    fn text(&mut self) -> Result<&'de [u8], Other> {
        let len = match self.byte()? {
            short @ 0xa0..=0xbf => usize::from(short & 0x1f),
            marker => self.length(marker, 0xd9)?,
        };
        self.take(len)
    }

    #[inline]
    fn str(&mut self) -> Result<&'de str, Other> {
        std::str::from_utf8(self.text()?).map_err(|_| Other::Form)
    }

    #[inline]
    fn bin(&mut self) -> Result<&'de [u8], Other> {
        let marker = self.byte()?;
        let len = self.length(marker, 0xc4)?;
        self.take(len)
    }

    /// Number of elements of an array. Each takes at least one byte, so the count is limited to the
    /// bytes that are left, and memory to a small multiple of them.
    #[inline(always)]
    fn values(&mut self) -> Result<usize, Other> {
        let count = match self.byte()? {
            short @ 0x90..=0x9f => usize::from(short & 0x0f),
            0xdc => u16::from_be_bytes(self.array()?).into(),
            0xdd => u32::from_be_bytes(self.array()?) as usize,
            _ => return Err(Other::Form),
        };
        if count <= self.bytes.len() { Ok(count) } else { Err(Other::Form) }
    }

    /// Number of pairs of a map.
    #[inline]
    fn pairs(&mut self) -> Result<usize, Other> {
        let count = match self.byte()? {
            short @ 0x80..=0x8f => usize::from(short & 0x0f),
            0xde => u16::from_be_bytes(self.array()?).into(),
            0xdf => u32::from_be_bytes(self.array()?) as usize,
            _ => return Err(Other::Form),
        };
        if count <= self.bytes.len() / 2 { Ok(count) } else { Err(Other::Form) }
    }

    /// A struct or a tuple: an array with so many fields, or more of a later release.
    #[inline(always)]
    fn fields<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Other> {
        let left = self.values()?;
        self.enter()?;
        let mut within = Within { reader: self, left, is_list: false };
        let value = visitor.visit_seq(&mut within)?;
        let left = within.left;
        if left > 0 {
            if self.forms == Forms::Exact {
                return Err(Other::Form);
            }
            self.skip(left)?;
            self.has_skipped = true;
        }
        self.depth += 1;
        Ok(value)
    }

    #[inline(always)]
    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Other> {
        let left = self.values()?;
        self.enter()?;
        let mut within = Within { reader: self, left, is_list: true };
        let value = visitor.visit_seq(&mut within)?;
        if within.left > 0 {
            return Err(Other::Form);
        }
        self.depth += 1;
        Ok(value)
    }
}

macro_rules! scalars {
    ($read:ident, $visit:ident: $($ask:ident),*) => {
        $(#[inline]
        fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
            visitor.$visit(self.$read()?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Other;

    scalars!(unsigned, visit_u64: deserialize_u8, deserialize_u16, deserialize_u32, deserialize_u64);
    scalars!(signed, visit_i64: deserialize_i8, deserialize_i16, deserialize_i32, deserialize_i64);
    scalars!(str, visit_borrowed_str: deserialize_str, deserialize_string);
    scalars!(bin, visit_borrowed_bytes: deserialize_bytes, deserialize_byte_buf);

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Other> {
        Err(Other::Form)
    }

    forward_to_deserialize_any! { i128 u128 char }

    /// A field that a later release has added.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        if self.forms == Forms::Exact {
            return Err(Other::Form);
        }
        self.skip(1)?;
        self.has_skipped = true;
        visitor.visit_unit()
    }

    /// A variant's name is compared with the known names, so it need not be valid UTF-8.
    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        self.name = self.text()?;
        visitor.visit_borrowed_bytes(self.name)
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        match self.byte()? {
            0xc0 => visitor.visit_unit(),
            _ => Err(Other::Form),
        }
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        match self.byte()? {
            0xc2 => visitor.visit_bool(false),
            0xc3 => visitor.visit_bool(true),
            _ => Err(Other::Form),
        }
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        match self.byte()? {
            0xca => visitor.visit_f32(f32::from_be_bytes(self.array()?)),
            _ => Err(Other::Form),
        }
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        match self.byte()? {
            0xcb => visitor.visit_f64(f64::from_be_bytes(self.array()?)),
            _ => Err(Other::Form),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        if self.peek()? != 0xc0 {
            return visitor.visit_some(self);
        }
        self.bytes = &self.bytes[1..];
        visitor.visit_none()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Other> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        self.list(visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Other> {
        self.fields(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.fields(visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.fields(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Other> {
        let left = self.pairs()?;
        self.enter()?;
        let mut within = Within { reader: self, left, is_list: true };
        let value = visitor.visit_map(&mut within)?;
        if within.left > 0 {
            return Err(Other::Form);
        }
        self.depth += 1;
        Ok(value)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Other> {
        match self.peek()? {
            0x81 => {
                self.bytes = &self.bytes[1..];
                self.enter()?;
                let value = visitor.visit_enum(Content(self))?;
                self.depth += 1;
                Ok(value)
            }
            _ => visitor.visit_enum(Name(self)),
        }
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of an array, or the pairs of a map.
struct Within<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
    /// Whether each element takes memory of its own; a field has its place in its struct.
    is_list: bool,
}

impl<'de> SeqAccess<'de> for &mut Within<'_, 'de> {
    type Error = Other;

    #[inline(always)]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Other> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        if self.is_list {
            self.reader.charge(size_of::<S::Value>())?;
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for &mut Within<'_, 'de> {
    type Error = Other;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Other> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        self.reader.charge(size_of::<S::Value>())?;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Other> {
        self.reader.charge(size_of::<S::Value>())?;
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A variant without content: its name.
struct Name<'a, 'de>(&'a mut Reader<'de>);

impl<'de> EnumAccess<'de> for Name<'_, 'de> {
    type Error = Other;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Other> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Name<'_, 'de> {
    type Error = Other;

    #[inline]
    fn unit_variant(self) -> Result<(), Other> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Other> {
        Err(Other::Form)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Other> {
        Err(Other::Form)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Other> {
        Err(Other::Form)
    }
}

/// A variant with content: its name, then the content.
struct Content<'a, 'de>(&'a mut Reader<'de>);

impl<'de> EnumAccess<'de> for Content<'_, 'de> {
    type Error = Other;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Other> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'de> VariantAccess<'de> for Content<'_, 'de> {
    type Error = Other;

    fn unit_variant(self) -> Result<(), Other> {
        Err(Other::Form)
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Other> {
        seed.deserialize(self.0)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Other> {
        self.0.fields(visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Other> {
        self.0.fields(visitor)
    }
}
