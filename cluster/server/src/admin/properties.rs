//! Properties of entities as the API tells them: names instead of numbers, and values as JSON.

use std::fmt;

use purview::scene::properties::{Level, Properties, Value};
use purview::scene::{Kind, Scene};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PropertyShape {
    pub id: u8,
    /// Its name; empty when the scene's kind does not declare it.
    pub name: String,
    /// How often it was set.
    pub version: u32,
    /// Its value. Bytes are told as hexadecimal digits, and keys of maps as text.
    pub value: Json,
}

pub fn shapes(scene: Option<&Scene>, kind: Kind, properties: &Properties) -> Vec<PropertyShape> {
    let schema = scene.and_then(|scene| scene.schema(kind));
    let shape = |level: &Level| PropertyShape {
        id: level.id.0,
        name: schema.and_then(|s| s.get(level.id)).map_or_else(String::new, |s| s.name.clone()),
        version: level.version,
        value: json(&level.value),
    };
    properties.levels().iter().map(shape).collect()
}

/// A value as JSON. What JSON cannot hold becomes null.
fn json(value: &Value) -> Json {
    value.read::<Read>().map_or(Json::Null, |read| read.0)
}

struct Read(Json);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
        from.deserialize_any(AsJson).map(Read)
    }
}

struct AsJson;

macro_rules! visit {
    ($($name:ident: $of:ty),*) => {
        $(fn $name<E>(self, value: $of) -> Result<Json, E> { Ok(Json::from(value)) })*
    };
}

impl<'de> Visitor<'de> for AsJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MessagePack value")
    }

    visit! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Json, E> {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Json::from(hex))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(Read(item)) = list.next_element()? {
            all.push(item);
        }
        Ok(Json::from(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut all = serde_json::Map::new();
        while let Some((Read(key), Read(value))) = map.next_entry()? {
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            all.insert(key, value);
        }
        Ok(Json::from(all))
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::properties::{PropertyId, PropertySpec};
    use purview::scene::{RegionId, SceneId, SceneSpec};
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_every_type_become_json() {
        let of = |bytes: &[u8]| super::json(&Value::new(bytes.to_vec()).unwrap());
        assert_eq!(of(&[0xc0]), json!(null));
        assert_eq!(of(&[0xc3]), json!(true));
        assert_eq!(of(&[0xff]), json!(-1));
        assert_eq!(of(&[0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0]), json!(0.5));
        assert_eq!(of(&[0xa2, b'o', b'k']), json!("ok"));
        assert_eq!(of(&[0xc4, 2, 0xca, 0xfe]), json!("cafe"));
        assert_eq!(of(&[0x92, 1, 0x81, 2, 0xa1, b'x']), json!([1, {"2": "x"}]));
    }

    #[test]
    fn declared_properties_have_their_names() {
        let mut spec = SceneSpec::default();
        spec.kinds[0].properties = vec![PropertySpec::new(3, "hp")];
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
        let mut properties = Properties::default();
        properties.begin_with(PropertyId(3), Value::of(&250).unwrap());
        properties.begin_with(PropertyId(9), Value::NIL);
        let shapes = shapes(Some(&scene), Kind::PLAYER, &properties);
        let told: Vec<_> =
            shapes.iter().map(|p| (p.id, p.name.as_str(), p.version, p.value.clone())).collect();
        assert_eq!(told, [(3, "hp", 1, json!(250)), (9, "", 1, json!(null))]);
    }
}
