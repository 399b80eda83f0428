//! The fast codec: MessagePack in the forms that this release writes. A struct is an array of its
//! fields; an enum is its variant's name, or a map from the name to the content. Values are read
//! and written by their type, without generic dispatch on markers, which is several times as fast
//! as `rmp_serde` with the same bytes.
//!
//! The wire modules try it first. On any other form it returns nothing, and the caller falls back
//! to `rmp_serde`, which accepts more forms and reports errors. It must read and write exactly the
//! bytes of `rmp_serde`.

mod read;
mod write;

use std::fmt;

use serde::{de, ser};

pub(in crate::wire) use self::read::read;
pub(in crate::wire) use self::write::{NIL, array, bin, sint, uint, write};

/// The value has another form than the fast codec supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Other;

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another form")
    }
}

impl std::error::Error for Other {}

impl ser::Error for Other {
    fn custom<T: fmt::Display>(_: T) -> Other {
        Other
    }
}

impl de::Error for Other {
    fn custom<T: fmt::Display>(_: T) -> Other {
        Other
    }

    // The default methods would format texts that no caller reads.
    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Other {
        Other
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Other {
        Other
    }

    fn invalid_length(_: usize, _: &dyn de::Expected) -> Other {
        Other
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Other {
        Other
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Id(u64);

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Item {
        Unit,
        One(Id),
        Two(i8, Option<Bytes>),
        Fields { a: i64, b: Vec<u32> },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct All {
        id: Id,
        at: (i32, i16, u8),
        items: Vec<Item>,
        name: String,
        flags: [bool; 2],
        parts: (f32, f64),
        map: BTreeMap<u16, String>,
        last: Option<Box<Item>>,
    }

    fn items() -> impl Strategy<Value = Item> {
        let bytes = prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        prop_oneof![
            Just(Item::Unit),
            any::<u64>().prop_map(|id| Item::One(Id(id))),
            (any::<i8>(), prop::option::of(bytes)).prop_map(|(a, b)| Item::Two(a, b)),
            (any::<i64>(), prop::collection::vec(any::<u32>(), 0..20))
                .prop_map(|(a, b)| Item::Fields { a, b }),
        ]
    }

    fn all() -> impl Strategy<Value = All> {
        let numbers =
            (any::<u64>(), any::<(i32, i16, u8)>(), any::<[bool; 2]>(), any::<(f32, f64)>());
        let texts = (".{0,40}", prop::collection::btree_map(any::<u16>(), ".{0,9}", 0..20));
        let lists = (prop::collection::vec(items(), 0..20), prop::option::of(items()));
        (numbers, texts, lists).prop_map(|(numbers, (name, map), (items, last))| {
            let (id, at, flags, parts) = numbers;
            let parts = (if parts.0.is_nan() { 0.0 } else { parts.0 }, parts.1.max(0.0));
            All { id: Id(id), at, items, name, flags, parts, map, last: last.map(Box::new) }
        })
    }

    proptest! {
        #[test]
        fn encoding_equals_rmp_serde_and_decodes_again(all in all()) {
            let mut bytes = vec![7];
            prop_assert!(write(&mut bytes, &all));
            prop_assert_eq!(&bytes[1..], &rmp_serde::to_vec(&all).unwrap()[..]);
            prop_assert_eq!(read::<All>(&bytes[1..]), Some(all));
        }

        #[test]
        fn numbers_are_encoded_in_their_shortest_form(unsigned in any::<u64>(), signed in any::<i64>(), by in 0u32..64) {
            let (unsigned, signed) = (unsigned >> by, signed >> by);
            let mut bytes = Vec::new();
            prop_assert!(write(&mut bytes, &(unsigned, signed)));
            prop_assert_eq!(&bytes, &rmp_serde::to_vec(&(unsigned, signed)).unwrap());
            prop_assert_eq!(read::<(u64, i64)>(&bytes), Some((unsigned, signed)));
        }

        #[test]
        fn decoding_equals_rmp_serde(
            all in all(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = rmp_serde::to_vec(&all).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            if let Some(got) = read::<All>(&bytes) {
                // Compare bytes: a number may be NaN.
                let there = rmp_serde::from_slice::<All>(&bytes).unwrap();
                let bytes_of = |all| rmp_serde::to_vec(all).unwrap();
                prop_assert_eq!(bytes_of(&got), bytes_of(&there));
            }
        }
    }

    #[test]
    fn numbers_at_the_limits_get_another_byte() {
        for bits in 0..64 {
            for near in [-2i64, -1, 0, 1] {
                let (up, down) =
                    ((1i64 << bits).wrapping_add(near), (-1i64 << bits).wrapping_add(near));
                for n in [(up as u64, up), (down as u64, down)] {
                    let mut bytes = Vec::new();
                    assert!(write(&mut bytes, &n));
                    assert_eq!(bytes, rmp_serde::to_vec(&n).unwrap(), "{n:?}");
                    assert_eq!(read::<(u64, i64)>(&bytes), Some(n));
                }
            }
        }
    }

    #[test]
    fn a_value_that_cannot_be_encoded_leaves_no_bytes() {
        let mut bytes = vec![7];
        assert!(!write(&mut bytes, &("a", u128::MAX)));
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn other_forms_are_left_to_rmp_serde() {
        let named = rmp_serde::to_vec_named(&Item::Fields { a: 1, b: vec![2] }).unwrap();
        assert_eq!(read::<Item>(&named), None, "fields with names");
        assert!(rmp_serde::from_slice::<Item>(&named).is_ok());
        let longer = rmp_serde::to_vec(&(1, 2, 3)).unwrap();
        assert_eq!(read::<(u8, u8)>(&longer), None, "an extra field");
        assert_eq!(read::<u8>(&[5, 0]), None, "trailing bytes");
        assert_eq!(read::<u8>(&[0xcd, 1, 0]), None, "too large");
        assert_eq!(read::<u32>(&[0xd0, 0xff]), None, "negative");
        assert_eq!(read::<Item>(&[0xa3, b'N', b'e', b'w']), None, "a variant of a later release");
        assert_eq!(
            read::<Vec<u64>>(&[0xdd, 0xff, 0xff, 0xff, 0xff]),
            None,
            "more elements than bytes"
        );
        assert_eq!(read::<String>(&[0xa1, 0xff]), None, "not UTF-8");
    }
}
