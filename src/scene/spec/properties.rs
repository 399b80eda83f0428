//! The rules of the properties that kinds declare.

use super::{KindSpec, SceneSpec, SpecError};
use crate::scene::names::is_name;
use crate::scene::properties::{
    APPEARANCE, Audience, MAX_PROPERTIES, MAX_VALUE_BYTES, PropertySpec, Writer,
};
use crate::scene::spec_error::err;

/// Longest name of a property, bytes.
const MAX_NAME: usize = 64;

pub(super) fn check_properties(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    for (ix, kind) in s.kinds.iter().enumerate() {
        for (at, property) in kind.properties.iter().enumerate() {
            check_property(kind, property, errors);
            check_unique(kind, &kind.properties[..at], property, errors);
            // Only the first kind has clients and names.
            if ix > 0 {
                check_without_client(kind, property, errors);
            }
        }
    }
}

fn named(kind: &KindSpec, property: &PropertySpec) -> String {
    format!("{:?} of kind {:?}", property.name, kind.name)
}

fn check_property(kind: &KindSpec, property: &PropertySpec, errors: &mut Vec<SpecError>) {
    let name = || named(kind, property);
    if !is_name(&property.name, MAX_NAME) {
        let rule =
            format!("the name of a property must have 1 to {MAX_NAME} bytes of printable text");
        err(errors, "kinds.properties", name(), rule);
    }
    let (id, most) = (property.id, MAX_PROPERTIES - 1);
    if usize::from(id.0) > most {
        let rule = format!("the id of a property must lie between 0 and {most}");
        err(errors, "kinds.properties", format!("{id} ({})", name()), rule);
    }
    if (id == APPEARANCE) != (property.name == "appearance") {
        let rule = "property 0 is \"appearance\": choose another id from 1 or this name for id 0";
        err(errors, "kinds.properties", format!("{id} ({})", name()), rule.into());
    }
    let max = usize::from(property.max_bytes);
    if !(1..=MAX_VALUE_BYTES).contains(&max) {
        let rule = format!("the longest value must have 1 to {MAX_VALUE_BYTES} bytes");
        err(errors, "kinds.properties", format!("{max} bytes ({})", name()), rule);
    }
}

fn check_unique(
    kind: &KindSpec,
    before: &[PropertySpec],
    property: &PropertySpec,
    errors: &mut Vec<SpecError>,
) {
    let twice = |what: String| (named(kind, property), what);
    let id = before.iter().find(|other| other.id == property.id);
    let name = before.iter().find(|other| other.name == property.name);
    let id = id.map(|other| twice(format!("id {} is that of {:?}, too", property.id, other.name)));
    let name = name.map(|_| twice("appears twice; names must be unique in a kind".into()));
    for (found, rule) in id.into_iter().chain(name) {
        err(errors, "kinds.properties", found, rule);
    }
}

fn check_without_client(kind: &KindSpec, property: &PropertySpec, errors: &mut Vec<SpecError>) {
    let client = "only players have clients";
    let rules = [
        (property.audience == Audience::Owner, format!("{client}: choose another audience")),
        (property.writer == Writer::Owner, format!("{client}: the writer must be \"logic\"")),
        (property.persist, "only players are stored by name: persist must be false".into()),
    ];
    for (_, rule) in rules.into_iter().filter(|(broken, _)| *broken) {
        err(errors, "kinds.properties", named(kind, property), rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::properties::PropertyId;
    use crate::scene::{RegionId, Scene, SceneId};

    fn errors(kind: usize, properties: Vec<PropertySpec>) -> Vec<String> {
        let mut spec = SceneSpec::default();
        spec.kinds[kind].properties = properties;
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0));
        scene.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn legal_properties_are_part_of_the_scene() {
        let mut spec = SceneSpec::default();
        let hp = PropertySpec::new(63, "hp");
        spec.kinds[2].properties = vec![hp.clone()];
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
        let schema = |kind| scene.schema(crate::scene::Kind(kind)).unwrap();
        assert_eq!(schema(2).named("hp"), Some(&hp));
        assert_eq!(schema(0).named("hp"), None);
        assert_eq!(schema(0).get(APPEARANCE), Some(&PropertySpec::appearance()));
    }

    #[test]
    fn each_broken_rule_is_told_with_its_figures() {
        let of = PropertySpec::new;
        let cases = [
            (
                0,
                vec![of(64, "hp")],
                "64 (\"hp\" of kind \"player\"): the id of a property must lie between 0 and 63",
            ),
            (0, vec![of(0, "hp")], "property 0 is \"appearance\""),
            (0, vec![of(1, "appearance")], "property 0 is \"appearance\""),
            (0, vec![of(1, "")], "must have 1 to 64 bytes"),
            (0, vec![PropertySpec { max_bytes: 1_025, ..of(1, "hp") }], "1025 bytes"),
            (0, vec![PropertySpec { max_bytes: 0, ..of(1, "hp") }], "must have 1 to 1024 bytes"),
            (0, vec![of(1, "hp"), of(1, "mp")], "id 1 is that of \"hp\", too"),
            (0, vec![of(1, "hp"), of(2, "hp")], "appears twice"),
            (2, vec![PropertySpec { persist: true, ..of(1, "hp") }], "persist must be false"),
            (2, vec![PropertySpec { writer: Writer::Owner, ..of(1, "hp") }], "must be \"logic\""),
            (
                2,
                vec![PropertySpec { audience: Audience::Owner, ..of(1, "hp") }],
                "another audience",
            ),
        ];
        for (kind, properties, want) in cases {
            let found = errors(kind, properties);
            assert!(found.len() == 1 && found[0].contains(want), "{want}: {found:?}");
        }
        let player = PropertySpec { persist: true, writer: Writer::Owner, ..of(1, "hp") };
        assert_eq!(
            errors(
                0,
                vec![PropertySpec { id: PropertyId(0), ..PropertySpec::appearance() }, player]
            ),
            [""; 0]
        );
    }
}
