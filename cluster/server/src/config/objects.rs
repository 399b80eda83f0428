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

pub(super) fn wrong(map: &MapSpec, problem: MapProblem) -> MapError {
    MapError { file: map.file.clone().unwrap_or_default(), problem }
}

fn content(spec: &SceneSpec, terrain: &Terrain, object: &MapObject) -> Result<ContentSpec, String> {
    let [x, z] = object.at_cm;
    let y = terrain.height_cm(terrain.tile_of(Pos::ground(x, z)));
    let mut content = ContentSpec::new(object.name_or_number(), Kind::PLAYER, Pos { x, y, z });
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

#[cfg(test)]
mod tests {
    use purview::scene::properties::PropertyId;

    use super::*;
    use crate::config::Config;

    /// What the scene of a map with these objects contains, or what is wrong.
    fn read(objects: &str) -> Result<Vec<ContentSpec>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keep.tmx");
        let map = format!(
            r#"<map orientation="orthogonal" width="64" height="64" tilewidth="8" tileheight="8">
               <objectgroup name="entities">{objects}</objectgroup></map>"#
        );
        std::fs::write(&file, map).unwrap();
        let config = format!(
            "[[scene]]\nname = \"keep\"\nwidth = \"128m\"\ndepth = \"128m\"\nland = \"64m\"\n\
             [[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"chest\"\n\
             properties = [{{ name = \"loot\", id = 1, type = \"int\" }}]\n\
             [scene.map]\ntile = \"2m\"\nfile = {:?}\n",
            file.display().to_string()
        );
        let scenes = Config::parse(&config).unwrap().build_scenes();
        scenes.map(|scenes| scenes[0].spec.contents.clone()).map_err(|errors| errors.to_string())
    }

    fn object(attributes: &str, properties: &str) -> String {
        format!(
            "<object id=\"7\" x=\"8\" y=\"16\" {attributes}><properties>{properties}</properties><point/></object>"
        )
    }

    #[test]
    fn objects_of_a_map_become_contents_of_the_scene() {
        let properties = r#"<property name="loot" type="int" value="5"/>
            <property name="respawn" value="30s"/><property name="save" type="bool" value="true"/>
            <property name="facing" type="int" value="90"/>"#;
        let all = read(&object("type=\"chest\"", properties)).unwrap();
        let chest = ContentSpec {
            facing: Facing::SOUTH,
            properties: vec![(PropertyId(1), Value::of(&5).unwrap())],
            respawn_ms: Some(30_000),
            save: true,
            ..ContentSpec::new("object 7", Kind(1), Pos::ground(200, 400))
        };
        assert_eq!(all, [chest]);
    }

    #[test]
    fn what_is_wrong_with_an_object_names_it() {
        let property =
            |name: &str, value: &str| format!("<property name={name:?} value={value:?}/>");
        let chest = "name=\"old\" type=\"chest\"";
        for (attributes, properties, says) in [
            (
                "",
                String::new(),
                "object 7 has the class \"\": it must name one of the kinds [\"chest\"]",
            ),
            ("type=\"player\"", String::new(), "must name one of the kinds"),
            (chest, property("gold", "1"), "object 7 (\"old\") has the property \"gold\": kind"),
            (chest, property("loot", "five"), "property 1 of \"old\""),
            (chest, property("respawn", "soon"), "has the `respawn` \"soon\""),
            (chest, property("facing", "north"), "`facing` that is no number"),
            (chest, property("save", "yes"), "`save` that is no bool"),
        ] {
            let told = read(&object(attributes, &properties)).unwrap_err();
            assert!(told.contains(says) && told.starts_with("scene.0."), "{says}: {told}");
        }
    }
}
