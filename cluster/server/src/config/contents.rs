//! The keys of `[[scene.entity]]`: what each plane of a scene contains from the start. The file names kinds and their
//! properties; a [`ContentSpec`] has their numbers.

use purview::scene::contents::{ContentSpec, MAX_RESPAWN_MS};
use purview::scene::properties::Value;
use purview::scene::{Facing, Kind, Pos, SceneSpec};

use super::form::{Form, Rule};
use super::keys::{Keys, NAME, keys};
use super::page::quoted;
use super::read::{ANY_LENGTH, lengths, lengths_text, quantity_within, text_of};
use super::tree::{Item, Node};
use super::units::Quantity::Time;

/// A content as the file has it: it may be of a kind that the file names later.
#[derive(Debug, Clone)]
struct Named {
    spec: ContentSpec,
    kind: String,
    properties: Vec<(String, Value)>,
}

fn named(spec: &SceneSpec) -> Vec<Named> {
    let of = |content: &ContentSpec| {
        let kind = spec.kinds.get(usize::from(content.kind.0));
        let name = |id| {
            let known = kind.into_iter().flat_map(|kind| &kind.properties).find(|p| p.id == id);
            known.map_or("appearance".to_owned(), |property| property.name.clone())
        };
        let properties = content.properties.iter();
        Named {
            spec: content.clone(),
            kind: kind.map_or(String::new(), |kind| kind.name.clone()),
            properties: properties.map(|(id, value)| (name(*id), value.clone())).collect(),
        }
    };
    spec.contents.iter().map(of).collect()
}

/// The keys; the scene's kinds are read.
pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>) {
    let (mut value, mut default) = (named(k.value), named(k.default));
    let (kind, properties) = (String::new(), Vec::new());
    let new = Named { spec: ContentSpec::new("", Kind(0), Pos::default()), kind, properties };
    let says = "What each plane contains from the start.";
    let mut all = Keys { io: &mut *k.io, value: &mut value, default: &mut default };
    all.sections(("entity", says), (new, entity), |all| all);
    k.check(|s, spec| {
        for (at, content) in value.iter().enumerate() {
            if content.kind.is_empty() {
                continue;
            }
            match resolved(spec, content) {
                Ok(content) => spec.contents.push(content),
                Err((key, found, rule)) => s.unfit(&format!("entity.{at}.{key}"), &found, rule),
            }
        }
    });
}

/// The content with the numbers of its names; otherwise the key at fault, what it says, and the rule.
pub(crate) fn of_names(
    spec: &SceneSpec,
    content: ContentSpec,
    kind: &str,
    properties: &[(String, Value)],
) -> Result<ContentSpec, (&'static str, String, String)> {
    let known: Vec<&str> = spec.kinds.iter().map(|kind| &*kind.name).collect();
    let number = known.iter().position(|name| *name == kind).filter(|number| *number > 0);
    let Some(number) = number else {
        let known = known.get(1..).unwrap_or(&[]);
        return Err(("kind", kind.to_owned(), format!("must name one of the kinds {known:?}")));
    };
    let declared = spec.kinds.get(number).map_or(&[][..], |kind| &kind.properties);
    let mut all = Vec::new();
    for (name, value) in properties {
        let Some(property) = declared.iter().find(|property| property.name == *name) else {
            let known: Vec<&str> = declared.iter().map(|property| &*property.name).collect();
            let rule = format!("kind {kind:?} has no such property; it has {known:?}");
            return Err(("properties", name.clone(), rule));
        };
        all.push((property.id, value.clone()));
    }
    Ok(ContentSpec { kind: Kind(number as u8), properties: all, ..content })
}

fn resolved(
    spec: &SceneSpec,
    content: &Named,
) -> Result<ContentSpec, (&'static str, String, String)> {
    of_names(spec, content.spec.clone(), &content.kind, &content.properties)
}

const PLACE: Rule<'static> = (
    "two or three lengths: x, z and, if it is not 0, the height, for example [\"10m\", \"20m\"]",
    Form::Few(2, 3, &ANY_LENGTH),
);
const RESPAWN: (i64, i64) = (1, MAX_RESPAWN_MS as i64);
const OFF: Rule<'static> =
    ("a time, or \"off\"", Form::Or("off", &Form::Of(Time, RESPAWN.0, RESPAWN.1)));
const VALUES: Rule<'static> = (
    "a table of values by the names of the kind's properties, for example { hp = 5 }",
    Form::Table,
);

fn entity(k: &mut Keys<'_, '_, Named>) {
    k.require(&["name", "kind", "position"], "each entity needs a name, a kind and a position");
    let off = |node: &Node| match text_of(node) {
        Some("off") => Ok(None),
        _ => quantity_within(node, Time, RESPAWN).map(|ms| Some(ms as u32)),
    };
    let off_text = |ms: &Option<u32>| quoted(&ms.map_or("off".into(), |ms| Time.text(ms.into())));
    let values_told = |all: &Vec<(String, Value)>| values_text(all);
    keys! { k;
        "name" text(NAME) spec.name: "The name by which logic finds it, unique in the scene.";
        "kind" text("the name of a kind", Form::Text(1, 64)) kind: "Its kind, not the players'.";
        "position" other(PLACE, place, place_text) spec.pos: "Where it stands.";
        "facing" other(("0 to 359", Form::Whole(0, 359)), facing, facing_text) spec.facing:
            "Which way it faces, degrees clockwise from east.";
        "properties" other(VALUES, values, values_told) properties: "What it begins with.";
        "respawn" other(OFF, off, off_text) spec.respawn_ms:
            "How long after it was removed it is there again, as it was at the start; \"off\" = not before its plane is \
             reset.";
        "save" flag() spec.save:
            "Whether checkpoints keep its state; otherwise it is as at the start when its region goes on from one.";
    }
}

fn place(node: &Node) -> Result<Pos, String> {
    match lengths(node, PLACE.0)?[..] {
        [x, z] => Ok(Pos::ground(x, z)),
        [x, z, y] => Ok(Pos { x, y, z }),
        _ => Err(format!("must be {}", PLACE.0)),
    }
}

fn place_text(pos: &Pos) -> String {
    match pos.y {
        0 => lengths_text(&[pos.x, pos.z]),
        y => lengths_text(&[pos.x, pos.z, y]),
    }
}

fn facing(node: &Node) -> Result<Facing, String> {
    match node.item {
        Item::Integer(degrees @ 0..=359) => Ok(Facing::of_degrees(degrees as u32)),
        _ => Err("must be a whole number from 0 to 359".into()),
    }
}

fn facing_text(facing: &Facing) -> String {
    let degrees = (u32::from(facing.0) * 360 + 32_768) / 65_536;
    (degrees % 360).to_string()
}

fn values(node: &Node) -> Result<Vec<(String, Value)>, String> {
    let Item::Table(table) = &node.item else { return Err(format!("must be {}", VALUES.0)) };
    let value = |(name, node): (&String, &Node)| {
        let value = Value::of(&json(node)?).map_err(|why| format!("{name}: {why}"))?;
        Ok((name.clone(), value))
    };
    table.iter().map(value).collect()
}

fn json(node: &Node) -> Result<serde_json::Value, String> {
    Ok(match &node.item {
        Item::Text(text) => text.clone().into(),
        Item::Integer(number) => (*number).into(),
        Item::Odd(text) => match (text.parse::<bool>(), text.replace('_', "").parse::<f64>()) {
            (Ok(flag), _) => flag.into(),
            (_, Ok(number)) => number.into(),
            _ => return Err(format!("{text} is no value of a property")),
        },
        Item::Array(list) => list.iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        Item::Table(table) => {
            let entry = |(name, node): (&String, &Node)| Ok((name.clone(), json(node)?));
            let map: Result<serde_json::Map<_, _>, String> = table.iter().map(entry).collect();
            map?.into()
        }
    })
}

fn values_text(values: &[(String, Value)]) -> String {
    let text = |(name, value): &(String, Value)| {
        let json: serde_json::Value = value.read().ok()?;
        let value = toml::Value::try_from(json).ok()?;
        Some(format!("{} = {value}", quoted(name)))
    };
    let all: Vec<String> = values.iter().filter_map(text).collect();
    if all.is_empty() { "{}".into() } else { format!("{{ {} }}", all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use purview::scene::Plane;
    use purview::scene::properties::PropertyId;

    use super::*;
    use crate::config::Config;

    const SCENE: &str = r#"
        [[scene]]
        name = "keep"
        width = "128m"
        depth = "128m"
        land = "64m"
        [[scene.kind]]
        name = "player"
        [[scene.kind]]
        name = "chest"
        properties = [{ name = "loot", id = 1 }, { name = "label", id = 2, type = "text" }]
    "#;

    fn parse(entity: &str) -> Result<Config, String> {
        let text = format!("{SCENE}\n[[scene.entity]]\n{entity}\n");
        Config::parse(&text).map_err(|errors| errors.to_string())
    }

    #[test]
    fn contents_are_read_found_by_name_and_printed_back() {
        let config = parse(
            "name = \"old chest\"\nkind = \"chest\"\nposition = [\"12m\", \"13m\", \"1m\"]\nfacing = 90\n\
             properties = { loot = [1, true, 2.5, \"x\"], label = \"open me\" }\nrespawn = \"10s\"\nsave = true",
        )
        .unwrap();
        let content = &config.scenes[0].spec.contents[0];
        assert_eq!((content.pos, content.kind), (Pos { x: 1_200, y: 100, z: 1_300 }, Kind(1)));
        assert_eq!((content.facing, content.respawn_ms), (Facing::SOUTH, Some(10_000)));
        let label = Value::of("open me").unwrap();
        assert!(content.save && content.properties.contains(&(PropertyId(2), label)));
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        let mut two = config.clone();
        two.scenes.push(config.scenes[0].clone());
        two.scenes[1].spec.name = "cellar".into();
        let scenes = two.build_scenes().unwrap();
        let ids = scenes.iter().map(|s| s.contents().named(Plane(3), "old chest").unwrap());
        let ids: Vec<_> = ids.collect();
        assert_ne!(ids[0], ids[1], "scenes share no id");
    }

    #[test]
    fn what_is_wrong_with_an_entity_is_said_where_it_stands() {
        let good = "name = \"a\"\nkind = \"chest\"\nposition = [\"1m\", \"1m\"]\n";
        parse(good).unwrap();
        for (from, to, says) in [
            ("name = \"a\"\n", "", "scene.0.entity.0.name: each entity needs a name"),
            ("\"chest\"", "\"box\"", "scene.0.entity.0.kind = \"box\": must name one of the kinds"),
            ("\"chest\"", "\"player\"", "must name one of the kinds [\"chest\"]"),
            ("[\"1m\", \"1m\"]", "[\"1m\"]", "two or three lengths"),
            ("[\"1m\", \"1m\"]", "[\"1m\", \"900m\"]", "must lie on the map of 128 m x 128 m"),
            ("name", "facing = 360\nname", "0 to 359"),
            ("name", "respawn = \"0s\"\nname", "must lie between"),
            ("name", "properties = { gold = 1 }\nname", "has no such property"),
            ("name", "properties = { label = 1 }\nname", "scene.0.entity"),
            ("name", "properties = 3\nname", "a table of values"),
            ("name", "kimd = 3\nname", "did you mean \"kind\"?"),
        ] {
            let told = parse(&good.replacen(from, to, 1)).unwrap_err();
            assert!(told.contains(says), "{says}: {told}");
        }
    }
}
