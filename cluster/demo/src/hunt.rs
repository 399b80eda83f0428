//! The example game `hunt`: its rules for the regions of a scene that has its kinds.

#[allow(missing_docs, reason = "the example is for reading from top to bottom")]
#[path = "../../../examples/hunt/rules.rs"]
pub mod rules;

use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::properties::{Audience, PropertyId, PropertySpec};
use purview::scene::region::GameLogic;
use purview::scene::spec::{KindSpec, WatchSpec};
use purview::scene::{RegionId, Scene, SceneSpec};

use self::rules::{GOLD, HP, MINTED, TAKEN, TAKER};

/// The names of the kinds of `hunt`, in order.
const NAMES: [&str; 4] = ["player", "monster", "drop", "lair"];

/// Whether a scene is one of `hunt`: by the names of its kinds.
pub fn is_hunt(spec: &SceneSpec) -> bool {
    spec.kinds.iter().map(|kind| kind.name.as_str()).eq(NAMES)
}

/// Makes the rules of `hunt` for each region of a scene that has its kinds; other scenes have none.
pub fn hunt() -> Arc<dyn LogicFactory> {
    Arc::new(WhereKindsAre)
}

#[derive(Debug)]
struct WhereKindsAre;

impl LogicFactory for WhereKindsAre {
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        is_hunt(&scene.spec).then(|| rules::Hunt::default().make(scene, region)).flatten()
    }
}

/// The kinds of `hunt`, all in the first layer, with the radii in which monsters watch, centimetres.
pub fn kinds((enter_cm, leave_cm): (i32, i32)) -> Vec<KindSpec> {
    let seen = |id: PropertyId, name: &str| PropertySpec::new(id.0, name);
    let secret = |id: PropertyId, name: &str| PropertySpec {
        audience: Audience::Server,
        max_bytes: 1_024,
        ..seen(id, name)
    };
    let kind = |name: &str, properties: Vec<PropertySpec>| KindSpec {
        properties,
        ..KindSpec::new(name, 0)
    };
    let (hp, gold) = (seen(HP, "hp"), seen(GOLD, "gold"));
    let [player, beast, drop, lair] = NAMES;
    let mut monster = kind(beast, vec![hp.clone(), gold.clone()]);
    monster.watch = vec![WatchSpec { kinds: vec![rules::PLAYER.0], enter_cm, leave_cm }];
    vec![
        kind(player, vec![hp, gold.clone(), secret(TAKEN, "taken")]),
        monster,
        kind(drop, vec![gold, secret(TAKER, "taker")]),
        kind(lair, vec![secret(MINTED, "minted")]),
    ]
}

/// Whether no client may be told a property of `hunt`.
pub fn is_secret(id: PropertyId) -> bool {
    [TAKER, TAKEN, MINTED].contains(&id)
}

#[cfg(test)]
mod tests {
    use purview_server::config::Config;

    use super::*;

    #[test]
    fn the_kinds_are_those_of_the_example_s_configuration() {
        let config = Config::parse(include_str!("../../../examples/hunt/hunt.toml")).unwrap();
        let scene = &config.scenes[0].spec;
        assert!(is_hunt(scene));
        let mut wanted = scene.kinds.clone();
        let properties = wanted.iter_mut().flat_map(|kind| &mut kind.properties);
        // Tools store no properties by player name, and need no types.
        properties.for_each(|property| {
            (property.persist, property.value_type) = Default::default();
            property.max_bytes = if is_secret(property.id) { 1_024 } else { property.max_bytes };
        });
        assert_eq!(kinds((2_000, 2_500)), wanted);
    }
}
