//! The parts of a Tiled map that Purview uses, in the words of Tiled's JSON, which `serde` reads.
//! `tmx` fills the same types from XML.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::data::MAX_CELLS;
use super::sketch::Value;

#[derive(Deserialize)]
pub(super) struct Map {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub orientation: String,
    pub width: u32,
    pub height: u32,
    pub tilewidth: f64,
    pub tileheight: f64,
    #[serde(default)]
    pub infinite: bool,
    pub layers: Vec<Layer>,
    #[serde(default)]
    pub tilesets: Vec<TilesetRef>,
}

#[derive(Default, Deserialize)]
pub(super) struct Layer {
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub class: String,
    #[serde(default)]
    pub width: u32,
    #[serde(default)]
    pub height: u32,
    pub encoding: Option<String>,
    pub compression: Option<String>,
    pub data: Option<Data>,
    #[serde(default)]
    pub chunks: Vec<Chunk>,
    #[serde(default)]
    pub objects: Vec<Object>,
    #[serde(default)]
    pub layers: Vec<Layer>,
    #[serde(default)]
    pub properties: Vec<Property>,
}

#[derive(Deserialize)]
pub(super) struct Chunk {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
    pub data: Data,
}

#[derive(Deserialize)]
pub(super) struct TilesetRef {
    pub firstgid: u32,
    pub source: Option<String>,
    /// Of a tileset that is part of the map, as its tiles.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub tiles: Vec<Tile>,
}

#[derive(Deserialize)]
pub(super) struct Tileset {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub tiles: Vec<Tile>,
}

#[derive(Deserialize)]
pub(super) struct Tile {
    pub id: u32,
    #[serde(default)]
    pub properties: Vec<Property>,
}

#[derive(Deserialize)]
pub(super) struct Template {
    pub object: Object,
}

#[derive(Default, Deserialize, Clone)]
pub(super) struct Object {
    pub id: Option<u32>,
    pub name: Option<String>,
    /// Tiled 1.9 called it `class`.
    #[serde(rename = "type", alias = "class")]
    pub class: Option<String>,
    pub x: Option<f64>,
    pub y: Option<f64>,
    pub width: Option<f64>,
    pub height: Option<f64>,
    pub rotation: Option<f64>,
    pub gid: Option<u32>,
    pub template: Option<String>,
    #[serde(default)]
    pub properties: Vec<Property>,
    #[serde(default)]
    pub ellipse: bool,
    #[serde(default)]
    pub capsule: bool,
    #[serde(default)]
    pub point: bool,
    pub polygon: Option<IgnoredAny>,
    pub polyline: Option<IgnoredAny>,
    pub text: Option<IgnoredAny>,
    /// In XML: whether it is one of these.
    #[serde(skip)]
    pub has_shape: bool,
}

impl Object {
    pub fn is_rect(&self) -> bool {
        let drawn = self.polygon.is_some() || self.polyline.is_some() || self.text.is_some();
        !(drawn || self.has_shape || self.ellipse || self.capsule || self.point)
    }

    /// The object with what it does not say itself from its template. A template has no place.
    pub fn over(mut self, template: Option<Object>) -> Object {
        let Some(t) = template else { return self };
        self.name = self.name.or(t.name);
        self.class = self.class.or(t.class);
        self.width = self.width.or(t.width);
        self.height = self.height.or(t.height);
        self.rotation = self.rotation.or(t.rotation);
        self.gid = self.gid.or(t.gid);
        self.ellipse |= t.ellipse;
        self.capsule |= t.capsule;
        self.point |= t.point;
        self.polygon = self.polygon.or(t.polygon);
        self.polyline = self.polyline.or(t.polyline);
        self.text = self.text.or(t.text);
        self.has_shape |= t.has_shape;
        // The object's own come first, and the first of a name counts.
        self.properties.extend(t.properties);
        self
    }
}

#[derive(Deserialize, Clone)]
pub(super) struct Property {
    pub name: String,
    pub value: PropertyValue,
}

/// A value of a property; lists and classes are passed over, however large.
#[derive(Clone)]
pub(super) struct PropertyValue(pub Value);

impl<'de> Deserialize<'de> for PropertyValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PropertyValue, D::Error> {
        from.deserialize_any(ValueVisitor).map(PropertyValue)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of a property")
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Number(n as f64))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Value, E> {
        Ok(Value::Number(n as f64))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Value, E> {
        Ok(Value::Number(n))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Other("nothing"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a class"))
    }
}

pub(super) enum Data {
    List(Vec<u32>),
    /// Base64.
    Text(String),
    /// Numbers with commas, in XML.
    Csv(String),
}

impl Default for Data {
    fn default() -> Self {
        Data::List(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Data, D::Error> {
        from.deserialize_any(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tiles or a text in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Data, A::Error> {
        let mut tiles = Vec::new();
        while let Some(tile) = list.next_element()? {
            if tiles.len() as u64 >= MAX_CELLS {
                return Err(A::Error::custom(format!("more than {MAX_CELLS} tiles in a layer")));
            }
            tiles.push(tile);
        }
        Ok(Data::List(tiles))
    }
}
