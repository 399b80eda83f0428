//! What a kind declares of its properties.

use serde::{Deserialize, Serialize};

use super::id::{APPEARANCE, PropertyId, PropertyRefusal};
use super::level::Properties;
use super::value::{MAX_VALUE_BYTES, Value};

/// Which MessagePack values a property takes. Nil, which says that there is no value, fits all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ValueType {
    /// Any value.
    #[default]
    Any,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number, whole or not.
    Float,
    /// A text.
    Text,
    /// Opaque bytes.
    Bytes,
    /// An array.
    List,
    /// A map.
    Map,
}

impl ValueType {
    /// The types with their names in the configuration.
    pub const NAMES: [(ValueType, &'static str); 8] = [
        (ValueType::Any, "any"),
        (ValueType::Bool, "bool"),
        (ValueType::Int, "int"),
        (ValueType::Float, "float"),
        (ValueType::Text, "text"),
        (ValueType::Bytes, "bytes"),
        (ValueType::List, "list"),
        (ValueType::Map, "map"),
    ];

    /// Whether a value is of this type, or nil.
    pub fn accepts(self, value: &Value) -> bool {
        let is_int = |marker| matches!(marker, 0x00..=0x7f | 0xe0..=0xff | 0xcc..=0xd3);
        let of_type = |marker: u8| match self {
            ValueType::Any => true,
            ValueType::Bool => matches!(marker, 0xc2 | 0xc3),
            ValueType::Int => is_int(marker),
            ValueType::Float => is_int(marker) || matches!(marker, 0xca | 0xcb),
            ValueType::Text => matches!(marker, 0xa0..=0xbf | 0xd9..=0xdb),
            ValueType::Bytes => matches!(marker, 0xc4..=0xc6),
            ValueType::List => matches!(marker, 0x90..=0x9f | 0xdc | 0xdd),
            ValueType::Map => matches!(marker, 0x80..=0x8f | 0xde | 0xdf),
        };
        value.is_nil() || of_type(value.marker())
    }
}

/// Which clients are told a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Audience {
    /// Every client that sees the entity, and the entity's own.
    #[default]
    Viewers,
    /// The entity's own client.
    Owner,
    /// The entity's own client, and clients of players that see the entity and share a bond with it.
    Bonded,
    /// No client: game logic alone.
    Server,
}

impl Audience {
    /// The audiences with their names in the configuration.
    pub const NAMES: [(Audience, &'static str); 4] = [
        (Audience::Viewers, "viewers"),
        (Audience::Owner, "owner"),
        (Audience::Bonded, "bonded"),
        (Audience::Server, "server"),
    ];

    /// Whether a client may be told that sees the entity and is not the entity's own.
    pub fn admits_viewer(self, bonded: bool) -> bool {
        match self {
            Audience::Viewers => true,
            Audience::Bonded => bonded,
            Audience::Owner | Audience::Server => false,
        }
    }

    /// Whether the entity's own client may be told.
    pub fn admits_owner(self) -> bool {
        self != Audience::Server
    }
}

/// The farthest ring in which viewers are told changes. Beyond it they keep the last value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Detail {
    /// The viewer's own patch.
    Near,
    /// The ring around it, too.
    Middle,
    /// As far as the viewer sees.
    #[default]
    Far,
}

impl Detail {
    /// The rings with their names in the configuration.
    pub const NAMES: [(Detail, &'static str); 3] =
        [(Detail::Near, "near"), (Detail::Middle, "middle"), (Detail::Far, "far")];

    /// Whether changes are told in a ring: 0 NEAR, 1 MIDDLE, more: FAR.
    #[inline]
    pub fn reaches(self, ring: u8) -> bool {
        match self {
            Detail::Near => ring == 0,
            Detail::Middle => ring <= 1,
            Detail::Far => true,
        }
    }
}

/// Whose word sets a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Writer {
    /// Game logic.
    #[default]
    Logic,
    /// The entity's own client, by an input; and game logic.
    Owner,
}

impl Writer {
    /// The writers with their names in the configuration.
    pub const NAMES: [(Writer, &'static str); 2] =
        [(Writer::Logic, "logic"), (Writer::Owner, "owner")];
}

/// A property that a kind declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertySpec {
    /// Its name, unique in its kind.
    pub name: String,
    /// Its number, unique in its kind.
    pub id: PropertyId,
    /// The values that it takes.
    pub value_type: ValueType,
    /// Which clients are told.
    pub audience: Audience,
    /// How near a viewer must be to be told changes.
    pub detail: Detail,
    /// Who sets it.
    pub writer: Writer,
    /// Whether it is stored with the player's last position and restored at the next join.
    pub persist: bool,
    /// Most bytes of a value, 1 to 1,024.
    pub max_bytes: u16,
}

impl PropertySpec {
    /// Most bytes of a value where nothing else is declared.
    pub const DEFAULT_MAX: u16 = 256;

    /// A property of any type that logic sets and every viewer is told.
    pub fn new(id: u8, name: impl Into<String>) -> PropertySpec {
        PropertySpec {
            name: name.into(),
            id: PropertyId(id),
            value_type: ValueType::default(),
            audience: Audience::default(),
            detail: Detail::default(),
            writer: Writer::default(),
            persist: false,
            max_bytes: PropertySpec::DEFAULT_MAX,
        }
    }

    /// Property 0 of a kind that does not declare it: the owner sets it, and every viewer is told.
    pub fn appearance() -> PropertySpec {
        let max_bytes = MAX_VALUE_BYTES as u16;
        PropertySpec { writer: Writer::Owner, max_bytes, ..PropertySpec::new(0, "appearance") }
    }
}

/// The properties of a kind, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    specs: Vec<PropertySpec>,
}

impl Schema {
    /// The schema of a kind's declarations, which are legal; adds the appearance.
    pub fn of(declared: &[PropertySpec]) -> Schema {
        let mut specs = declared.to_vec();
        if specs.iter().all(|spec| spec.id != APPEARANCE) {
            specs.push(PropertySpec::appearance());
        }
        specs.sort_by_key(|spec| spec.id);
        Schema { specs }
    }

    /// A property by its number.
    pub fn get(&self, id: PropertyId) -> Option<&PropertySpec> {
        // Most kinds number their properties from 0 without gaps.
        match self.specs.get(usize::from(id.0)) {
            Some(spec) if spec.id == id => Some(spec),
            _ => self.specs.iter().find(|spec| spec.id == id),
        }
    }

    /// A property by its name.
    pub fn named(&self, name: &str) -> Option<&PropertySpec> {
        self.specs.iter().find(|spec| spec.name == name)
    }

    /// All properties, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &PropertySpec> {
        self.specs.iter()
    }

    /// Which clients are told a property; one that is not declared is told no client.
    pub fn audience(&self, id: PropertyId) -> Audience {
        self.get(id).map_or(Audience::Server, |spec| spec.audience)
    }

    /// How near a viewer must be to be told changes of a property.
    pub fn detail(&self, id: PropertyId) -> Detail {
        self.get(id).map_or_else(Detail::default, |spec| spec.detail)
    }

    /// Whether a property may have a value.
    ///
    /// # Errors
    /// The rule that the value breaks.
    pub fn check(&self, id: PropertyId, value: &Value) -> Result<(), PropertyRefusal> {
        let spec = self.get(id).ok_or(PropertyRefusal::Unknown(id))?;
        let (len, max) = (value.bytes().len() as u16, spec.max_bytes);
        if len > max {
            return Err(PropertyRefusal::TooLong { id, len, max });
        }
        if !spec.value_type.accepts(value) {
            return Err(PropertyRefusal::WrongType(id));
        }
        Ok(())
    }

    /// Whether the entity's own client may give a property a value.
    ///
    /// # Errors
    /// The rule that this breaks.
    pub fn check_owner(&self, id: PropertyId, value: &Value) -> Result<(), PropertyRefusal> {
        self.check(id, value)?;
        match self.get(id).is_some_and(|spec| spec.writer == Writer::Owner) {
            true => Ok(()),
            false => Err(PropertyRefusal::MayNotWrite(id)),
        }
    }

    /// Whether an entity may have these properties.
    ///
    /// # Errors
    /// The first rule that one of them breaks.
    pub fn check_all(&self, properties: &Properties) -> Result<(), PropertyRefusal> {
        properties.levels().iter().try_for_each(|level| self.check(level.id, &level.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> Value {
        Value::new(bytes.to_vec()).unwrap()
    }

    #[test]
    fn each_type_accepts_its_values_and_nil() {
        let samples: [(ValueType, &[&[u8]]); 7] = [
            (ValueType::Bool, &[&[0xc2], &[0xc3]]),
            (ValueType::Int, &[&[5], &[0xff], &[0xcd, 1, 0], &[0xd3, 0, 0, 0, 0, 0, 0, 0, 1]]),
            (ValueType::Float, &[&[0xca, 0, 0, 0, 0]]),
            (ValueType::Text, &[&[0xa0], &[0xd9, 1, b'x']]),
            (ValueType::Bytes, &[&[0xc4, 0]]),
            (ValueType::List, &[&[0x90]]),
            (ValueType::Map, &[&[0x80]]),
        ];
        for (kind, _) in samples {
            assert!(kind.accepts(&Value::NIL), "{kind:?}");
            for (other, values) in samples {
                let fits = kind == other || (kind, other) == (ValueType::Float, ValueType::Int);
                for bytes in values {
                    assert_eq!(kind.accepts(&value(bytes)), fits, "{kind:?} {bytes:02x?}");
                    assert!(ValueType::Any.accepts(&value(bytes)));
                }
            }
        }
    }

    #[test]
    fn a_schema_checks_type_length_and_writer() {
        let hp =
            PropertySpec { value_type: ValueType::Int, max_bytes: 3, ..PropertySpec::new(2, "hp") };
        let stance = PropertySpec { writer: Writer::Owner, ..PropertySpec::new(9, "stance") };
        let schema = Schema::of(&[stance, hp]);
        let ids: Vec<u8> = schema.iter().map(|spec| spec.id.0).collect();
        assert_eq!(ids, [0, 2, 9]);
        let (hp, stance, none) = (PropertyId(2), PropertyId(9), PropertyId(3));
        assert_eq!(schema.check(hp, &value(&[7])), Ok(()));
        assert_eq!(schema.check(hp, &value(&[0xa0])), Err(PropertyRefusal::WrongType(hp)));
        let long = PropertyRefusal::TooLong { id: hp, len: 5, max: 3 };
        assert_eq!(schema.check(hp, &value(&[0xce, 0, 0, 0, 1])), Err(long));
        assert_eq!(schema.check(none, &value(&[7])), Err(PropertyRefusal::Unknown(none)));
        assert_eq!(schema.check_owner(hp, &value(&[7])), Err(PropertyRefusal::MayNotWrite(hp)));
        assert_eq!(schema.check_owner(stance, &value(&[7])), Ok(()));
        assert_eq!(schema.named("hp").map(|spec| spec.id), Some(hp));
        assert_eq!(schema.audience(none), Audience::Server);
    }
}
