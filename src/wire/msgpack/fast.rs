//! The fast codec: MessagePack in the forms that this release writes. A struct is an array of its
//! fields; an enum is its variant's name, or a map from the name to the content. Values are read
//! and written by their type, without generic dispatch on markers, which is several times as fast
//! as `rmp_serde` with the same bytes.
//!
//! Messages between processes and snapshots are read here alone ([`read_compat`]); a client's
//! message in any other form falls back to `rmp_serde`, which accepts more forms. Depth and memory
//! are bounded in both cases. It must read and write exactly the bytes of `rmp_serde`.

mod forms;
mod limits;
mod read;
mod skip;
mod write;

use std::fmt;

use serde::{de, ser};

pub(in crate::wire) use self::forms::{read, read_client, read_compat};
pub(in crate::wire) use self::limits::Limits;
pub(in crate::wire) use self::write::write;

/// Deepest nesting of lists, structs and variants in a value. The deepest legal message nests about
/// twenty deep.
pub const MAX_DEPTH: u8 = 48;

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A variant that only a later release knows.
    #[error("unknown variant {0:?}")]
    Unknown(String),
    /// The value is nested too deep.
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// Its lists would take too much memory.
    #[error("its lists take more than {0} bytes of memory")]
    TooLarge(usize),
    /// The bytes do not fit the type.
    #[error("byte {0} does not fit the schema")]
    Form(usize),
}

/// Most memory that the lists of a record take, bytes.
pub const MAX_RECORD_MEMORY: usize = 512 << 20;

/// Decodes a record of a file: exactly one value, with fields of a later release passed over.
///
/// # Errors
/// [`Unreadable`].
pub fn read_record<T: de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let (value, rest) = read_compat(bytes, Limits { per_byte: 64, most: MAX_RECORD_MEMORY })?;
    if rest.is_empty() { Ok(value) } else { Err(Unreadable::Form(bytes.len() - rest.len())) }
}

/// Why the codec stopped. It is small, since every step may return it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// The value has another form than the codec supports.
    Form,
    /// A variant's name is not known.
    Variant,
    /// Nested too deep.
    Depth,
    /// Too much memory.
    Memory,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another form")
    }
}

impl std::error::Error for Other {}

impl ser::Error for Other {
    fn custom<T: fmt::Display>(_: T) -> Other {
        Other::Form
    }
}

impl de::Error for Other {
    fn custom<T: fmt::Display>(_: T) -> Other {
        Other::Form
    }

    // The default methods would format texts that no caller reads.
    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Other {
        Other::Form
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Other {
        Other::Form
    }

    fn invalid_length(_: usize, _: &dyn de::Expected) -> Other {
        Other::Form
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Other {
        Other::Variant
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

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner(u8, String);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum OldItem {
        Unit,
        One(Inner),
        Fields { a: u8, b: Option<Inner> },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        items: Vec<OldItem>,
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
        let items =
            vec![OldItem::Unit, OldItem::One(inner()), OldItem::Fields { a: 1, b: Some(inner()) }];
        let (old, rest) = compat::<Old>(&bytes).unwrap();
        assert_eq!((old, rest), (Old { items, last: 9 }, &[0xc0][..]));
    }

    #[test]
    fn truncated_bytes_or_a_missing_field_are_an_error() {
        let new = New { items: Vec::new(), last: 9, more: None, most: vec![1] };
        let bytes = rmp_serde::to_vec(&new).unwrap();
        for end in 0..bytes.len() {
            assert!(compat::<Old>(&bytes[..end]).is_err(), "{end}");
        }
        assert!(compat::<Old>(&rmp_serde::to_vec(&(Vec::<u8>::new(),)).unwrap()).is_err());
    }

    fn compat<T: de::DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Unreadable> {
        read_compat(bytes, Limits { per_byte: 64, most: 1 << 20 })
    }

    /// A value that holds a value of its own type.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Nested {
        End,
        More(Box<Nested>),
    }

    /// So many values in each other.
    fn nested(depth: usize) -> Vec<u8> {
        let more = [&[0x81, 0xa4][..], b"More"].concat();
        [more.repeat(depth), [&[0xa3][..], b"End"].concat()].concat()
    }

    #[test]
    fn values_are_nested_only_so_deep() {
        let most = usize::from(MAX_DEPTH);
        assert!(compat::<Nested>(&nested(most)).is_ok() && read::<Nested>(&nested(most)).is_some());
        for depth in [most + 1, 1_000, 1_000_000] {
            assert_eq!(compat::<Nested>(&nested(depth)), Err(Unreadable::TooDeep));
            assert_eq!(read::<Nested>(&nested(depth)), None);
        }
        // Values that are passed over may be nested as they like.
        let unknown = [&[0x92, 7][..], &[0x91; 1_000_000], &[0xc0]].concat();
        assert_eq!(compat::<(u8,)>(&unknown), Ok(((7,), &[][..])));
    }

    #[test]
    fn lists_take_only_so_much_memory() {
        let texts =
            |count: u32| [&[0xdd][..], &count.to_be_bytes(), &vec![0xa0; count as usize]].concat();
        assert_eq!(compat::<Vec<String>>(&texts(1_000)).map(|(all, _)| all.len()), Ok(1_000));
        let refused = compat::<Vec<String>>(&texts(100_000)).map(|_| ());
        assert_eq!(refused, Err(Unreadable::TooLarge(1 << 20)));
        // A length that promises more than there is.
        let promised = [&[0xdd, 0xff, 0xff, 0xff, 0xff][..], &[0xa0; 9]].concat();
        assert_eq!(compat::<Vec<String>>(&promised).map(|_| ()), Err(Unreadable::Form(5)));
        let unknown = [&[0x92, 7][..], &promised].concat();
        assert_eq!(compat::<(u8,)>(&unknown).map(|_| ()), Err(Unreadable::Form(7)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let unknown = [&[0xa7][..], b"Weather"].concat();
        assert_eq!(compat::<Nested>(&unknown), Err(Unreadable::Unknown("Weather".into())));
        assert_eq!(compat::<u8>(&[0xc1]), Err(Unreadable::Form(1)));
        let unit = rmp_serde::to_vec(&Ok::<(), u8>(())).unwrap();
        assert_eq!(compat::<Result<(), u8>>(&unit), Ok((Ok(()), &[][..])));
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
