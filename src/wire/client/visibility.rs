//! A [`Visibility`](crate::scene::Visibility) as an array: `[0]` patches, `[1, enter, leave]` a circle
//! with its radii in centimetres, `[2]` all. For `#[serde(with)]` of the welcome message.

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserializer, Serialize, Serializer};

use super::movement::skip_rest;
use crate::scene::Visibility;

pub(super) fn serialize<S: Serializer>(v: &Visibility, to: S) -> Result<S::Ok, S::Error> {
    match *v {
        Visibility::Patches => [0].serialize(to),
        Visibility::Circle { enter_cm, leave_cm } => [1, enter_cm, leave_cm].serialize(to),
        Visibility::All => [2].serialize(to),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Visibility, D::Error> {
    from.deserialize_seq(Form)
}

struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = Visibility;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a visibility: [0] patches, [1, enter, leave] circle or [2] all")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Visibility, A::Error> {
        let mut radius = |at| seq.next_element()?.ok_or(de::Error::invalid_length(at, &self));
        let visibility = match radius(0)? {
            0 => Visibility::Patches,
            1 => Visibility::Circle { enter_cm: radius(1)?, leave_cm: radius(2)? },
            2 => Visibility::All,
            n => return Err(de::Error::invalid_value(de::Unexpected::Signed(n.into()), &self)),
        };
        skip_rest(&mut seq)?;
        Ok(visibility)
    }
}
