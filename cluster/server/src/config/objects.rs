//! Objects of a map become what a scene contains: what kinds, properties and times they name is legal here or nowhere.

use purview::scene::contents::{ContentSpec, MAX_RESPAWN_MS};
use purview::scene::properties::Value;
use purview::scene::terrain::Terrain;
use purview::scene::{Facing, Kind, Pos, SceneSpec};

use super::contents::of_names;
use super::units::Quantity::Time;
use crate::maps::{MapError, MapObject, MapProblem, MapSpec, ObjectRole, ObjectValue};

/// The contents among the objects of a map, on its ground.
pub(super) fn contents(
    spec: &SceneSpec,
    terrain: &Terrain,
    objects: &[MapObject],
) -> Result<Vec<ContentSpec>, MapProblem> {
    let entities = objects.iter().filter(|object| object.role == ObjectRole::Entity);
    let content = |object| {
        content(spec, terrain, object)
            .map_err(|problem| MapProblem::Object { object: object.told(), problem })
    };
    entities.map(content).collect()
}

/// The error of an object of this map.
pub(super) fn wrong(map: &MapSpec, problem: MapProblem) -> MapError {
    MapError { file: map.file.clone().unwrap_or_default(), problem }
}

fn content(spec: &SceneSpec, terrain: &Terrain, object: &MapObject) -> Result<ContentSpec, String> {
    let [x, z] = object.at_cm;
    let y = terrain.height_cm(terrain.tile_of(Pos::ground(x, z)));
    let name = match &*object.name {
        "" => format!("object {}", object.id),
        name => name.to_owned(),
    };
    let mut content = ContentSpec::new(name, Kind::PLAYER, Pos { x, y, z });
    let mut properties = Vec::new();
    for (name, value) in &object.properties {
        match (&**name, value) {
            ("facing", ObjectValue::Number(degrees @ 0.0..360.0)) => {
                content.facing = Facing::of_degrees(*degrees as u32);
            }
            ("facing", _) => return Err("has a `facing` that is no number from 0 to 359".into()),
            ("save", ObjectValue::Bool(save)) => content.save = *save,
            ("save", _) => return Err("has a `save` that is no bool".into()),
            ("respawn", ObjectValue::Text(text)) => content.respawn_ms = respawn(text)?,
            ("respawn", _) => return Err("has a `respawn` that is no text, as \"30s\"".into()),
            (name, value) => properties.push((name.to_owned(), value_of(name, value)?)),
        }
    }
    of_names(spec, content, &object.class, &properties).map_err(|(key, found, rule)| match key {
        "kind" => format!("has the class {found:?}: it {rule}"),
        _ => format!("has the property {found:?}: {rule}"),
    })
}

fn respawn(text: &str) -> Result<Option<u32>, String> {
    if text == "off" {
        return Ok(None);
    }
    let ms = Time.parse(text).map_err(|why| format!("has the `respawn` {text:?}: it {why}"))?;
    let legal = u32::try_from(ms).ok().filter(|ms| (1..=MAX_RESPAWN_MS).contains(ms));
    let rule = || format!("has the `respawn` {text:?}: it must lie between \"1ms\" and a week");
    legal.map(Some).ok_or_else(rule)
}

fn value_of(name: &str, value: &ObjectValue) -> Result<Value, String> {
    let value = match value {
        ObjectValue::Bool(flag) => Value::of(flag),
        ObjectValue::Number(n) if n.fract() == 0.0 && n.abs() < 9e15 => Value::of(&(*n as i64)),
        ObjectValue::Number(n) => Value::of(n),
        ObjectValue::Text(text) => Value::of(text),
        ObjectValue::Other(what) => {
            return Err(format!(
                "has the property {name:?}, which is {what}: no property has that"
            ));
        }
    };
    value.map_err(|why| format!("has the property {name:?}: {why}"))
}
