//! Tiled's XML, in the words of the [`model`](super::model); what Purview does not use is passed
//! over. `reading` asks for one file at a time.

use super::model::{
    Chunk, Data, Layer, Map, Object, Property, PropertyValue, Template, Tile, Tileset, TilesetRef,
};
use super::sketch::Value;
use super::xml::{Content, Element, Xml};
use crate::maps::{MapProblem, SyntaxProblem};

/// A map (`.tmx`).
pub(super) fn map(bytes: &[u8]) -> Result<Map, MapProblem> {
    let mut xml = Xml::new(bytes);
    let root = xml.root("map")?;
    let mut map = Map {
        kind: None,
        orientation: xml.needs_text(&root, "orientation")?,
        width: xml.needs(&root, "width")?,
        height: xml.needs(&root, "height")?,
        tilewidth: xml.needs(&root, "tilewidth")?,
        tileheight: xml.needs(&root, "tileheight")?,
        infinite: root.attribute("infinite") == Some("1"),
        layers: Vec::new(),
        tilesets: Vec::new(),
    };
    while let Some(child) = xml.child(&root)? {
        match child.name() {
            "tileset" => map.tilesets.push(tileset_ref(&mut xml, &child)?),
            _ => layer(&mut xml, &child, &mut map.layers)?,
        }
    }
    xml.finish()?;
    Ok(map)
}

/// A tileset of its own (`.tsx`).
pub(super) fn tileset(bytes: &[u8]) -> Result<Tileset, MapProblem> {
    let mut xml = Xml::new(bytes);
    let root = xml.root("tileset")?;
    let tileset = Tileset { name: root.text("name"), tiles: tiles(&mut xml, &root)? };
    xml.finish()?;
    Ok(tileset)
}

/// A template of an object (`.tx`).
pub(super) fn template(bytes: &[u8]) -> Result<Template, MapProblem> {
    let mut xml = Xml::new(bytes);
    let root = xml.root("template")?;
    let mut found = None;
    while let Some(child) = xml.child(&root)? {
        match child.name() {
            "object" => found = Some(object(&mut xml, &child)?),
            _ => xml.skip(&child)?,
        }
    }
    let object = found.ok_or_else(|| xml.no_element("object"))?;
    xml.finish()?;
    Ok(Template { object })
}

fn tileset_ref(xml: &mut Xml<'_>, element: &Element) -> Result<TilesetRef, MapProblem> {
    Ok(TilesetRef {
        firstgid: xml.needs(element, "firstgid")?,
        source: element.attribute("source").map(str::to_owned),
        name: element.text("name"),
        tiles: tiles(xml, element)?,
    })
}

fn tiles(xml: &mut Xml<'_>, tileset: &Element) -> Result<Vec<Tile>, MapProblem> {
    let mut tiles = Vec::new();
    while let Some(child) = xml.child(tileset)? {
        match child.name() {
            "tile" => {
                let id = xml.needs(&child, "id")?;
                let properties = only_properties(xml, &child)?;
                if !properties.is_empty() {
                    tiles.push(Tile { id, properties });
                }
            }
            _ => xml.skip(&child)?,
        }
    }
    Ok(tiles)
}

/// The properties of an element of which nothing else matters.
fn only_properties(xml: &mut Xml<'_>, element: &Element) -> Result<Vec<Property>, MapProblem> {
    let mut all = Vec::new();
    while let Some(child) = xml.child(element)? {
        match child.name() {
            "properties" => all.extend(properties(xml, &child)?),
            _ => xml.skip(&child)?,
        }
    }
    Ok(all)
}

/// Adds a layer of any kind that matters.
fn layer(xml: &mut Xml<'_>, element: &Element, to: &mut Vec<Layer>) -> Result<(), MapProblem> {
    let kind = match element.name() {
        "layer" => "tilelayer",
        "objectgroup" => "objectgroup",
        "group" => "group",
        _ => return xml.skip(element),
    };
    let mut layer = Layer {
        kind: kind.into(),
        name: element.text("name"),
        class: element.attribute("class").or(element.attribute("type")).unwrap_or("").into(),
        width: xml.number(element, "width")?.unwrap_or(0),
        height: xml.number(element, "height")?.unwrap_or(0),
        ..Layer::default()
    };
    while let Some(child) = xml.child(element)? {
        match (kind, child.name()) {
            (_, "properties") => layer.properties = properties(xml, &child)?,
            ("tilelayer", "data") => data(xml, &child, &mut layer)?,
            ("objectgroup", "object") => layer.objects.push(object(xml, &child)?),
            ("group", _) => self::layer(xml, &child, &mut layer.layers)?,
            _ => xml.skip(&child)?,
        }
    }
    to.push(layer);
    Ok(())
}

fn data(xml: &mut Xml<'_>, element: &Element, layer: &mut Layer) -> Result<(), MapProblem> {
    let encoding = element.text("encoding");
    let tiles = |text| if encoding == "csv" { Data::Csv(text) } else { Data::Text(text) };
    let mut all = String::new();
    while let Some(content) = xml.content(element)? {
        match content {
            Content::Text(text) => all.push_str(&text),
            Content::Element(child) if child.name() == "chunk" => layer.chunks.push(Chunk {
                x: xml.needs(&child, "x")?,
                y: xml.needs(&child, "y")?,
                width: xml.needs(&child, "width")?,
                height: xml.needs(&child, "height")?,
                data: tiles(xml.text_of(&child)?),
            }),
            Content::Element(child) => xml.skip(&child)?,
        }
    }
    layer.data = Some(tiles(all));
    layer.compression = element.attribute("compression").map(str::to_owned);
    layer.encoding = Some(encoding);
    Ok(())
}

fn object(xml: &mut Xml<'_>, element: &Element) -> Result<Object, MapProblem> {
    let text = |name: &str| element.attribute(name).map(str::to_owned);
    let mut object = Object {
        id: xml.number(element, "id")?,
        name: text("name"),
        class: text("type").or_else(|| text("class")),
        x: xml.number(element, "x")?,
        y: xml.number(element, "y")?,
        width: xml.number(element, "width")?,
        height: xml.number(element, "height")?,
        rotation: xml.number(element, "rotation")?,
        gid: xml.number(element, "gid")?,
        template: text("template"),
        ..Object::default()
    };
    while let Some(child) = xml.child(element)? {
        match child.name() {
            "properties" => {
                object.properties = properties(xml, &child)?;
                continue;
            }
            "ellipse" | "capsule" | "point" | "polygon" | "polyline" | "text" => {
                object.has_shape = true;
            }
            _ => {}
        }
        xml.skip(&child)?;
    }
    Ok(object)
}

fn properties(xml: &mut Xml<'_>, element: &Element) -> Result<Vec<Property>, MapProblem> {
    let mut properties = Vec::new();
    while let Some(child) = xml.child(element)? {
        match child.name() {
            "property" => properties.push(property(xml, &child)?),
            _ => xml.skip(&child)?,
        }
    }
    Ok(properties)
}

fn property(xml: &mut Xml<'_>, element: &Element) -> Result<Property, MapProblem> {
    let name = xml.needs_text(element, "name")?;
    // A text of several lines is the element's own.
    let within = xml.text_of(element)?;
    let text = element.attribute("value").unwrap_or(&within);
    let kind = element.attribute("type").unwrap_or("string");
    match value(kind, text) {
        Some(value) => Ok(Property { name, value: PropertyValue(value) }),
        None => {
            let (kind, found) = (kind.to_owned(), text.to_owned());
            Err(xml.wrong(element, SyntaxProblem::Value { property: name, kind, found }))
        }
    }
}

/// The value of a property of this type; `None` if the text is none.
fn value(kind: &str, text: &str) -> Option<Value> {
    let value = match kind {
        "bool" => Value::Bool(text.parse().ok()?),
        "int" => Value::Number(text.parse::<i64>().ok()? as f64),
        "float" => Value::Number(text.parse().ok()?),
        "string" => Value::Text(text.to_owned()),
        "color" => Value::Other("a colour"),
        "file" => Value::Other("a file"),
        "object" => Value::Other("an object"),
        "list" => Value::Other("a list"),
        "class" => Value::Other("a class"),
        _ => Value::Other("of an unknown type"),
    };
    Some(value)
}
