//! The keys of `[[scene.kind]]`: a kind's layer, speed, properties, what it watches, and the ranges in which clients may
//! ask to see. The file names layers and kinds; a [`KindSpec`] has their numbers.

use purview::scene::properties::{Audience, Detail, PropertySpec, ValueType, Writer};
use purview::scene::spec::{KindSpec, WatchSpec};
use purview::scene::{RangeSet, SceneSpec};

use super::form::{Form, KM_1000, Rule, TEXT};
use super::keys::{Keys, NAME, keys};
use super::page::quoted;
use super::ranges::{RINGS, range_text, rings};
use super::read::{
    ANY_LENGTH, SIDES, lengths, lengths_text, quantity_within, sides, sides_text, text_of,
};
use super::tree::{Item, Node};
use super::units::Quantity::Speed;

/// A kind, and the names of the kinds that it watches: it may watch one that the list names later.
#[derive(Debug, Clone)]
struct Named {
    spec: KindSpec,
    watch: Vec<Watch>,
}

#[derive(Debug, Clone, Default)]
struct Watch {
    kinds: Vec<String>,
    enter_cm: i32,
    leave_cm: i32,
}

fn named(spec: &SceneSpec) -> Vec<Named> {
    let name = |number: &u8| {
        let kind = spec.kinds.get(usize::from(*number));
        kind.map_or(String::new(), |kind| kind.name.clone())
    };
    let of = |kind: &KindSpec| {
        let watch = kind.watch.iter().map(|watch| Watch {
            kinds: watch.kinds.iter().map(name).collect(),
            enter_cm: watch.enter_cm,
            leave_cm: watch.leave_cm,
        });
        Named { spec: kind.clone(), watch: watch.collect() }
    };
    spec.kinds.iter().map(of).collect()
}

pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>) {
    let layers: Vec<String> = k.value.layers.iter().map(|layer| layer.name.clone()).collect();
    let (mut value, mut default) = (named(k.value), named(k.default));
    let new = Named { spec: KindSpec::new("", 0), watch: Vec::new() };
    let says = "Kinds of entities; the first is \"player\", in the first layer.";
    let mut all = Keys { io: &mut *k.io, value: &mut value, default: &mut default };
    all.sections(("kind", says), (new, |k: &mut Keys<'_, '_, Named>| kind(k, &layers)), |all| all);
    k.check(|s, spec| {
        let names: Vec<String> = value.iter().map(|kind| kind.spec.name.clone()).collect();
        let number = |name: &String| names.iter().position(|known| known == name);
        let watched = value.iter().flat_map(|kind| &kind.watch).flat_map(|watch| &watch.kinds);
        if let Some(name) = watched.into_iter().find(|name| number(name).is_none())
            && let Some(node) = s.get("kind")
        {
            s.conflict("kind", node, format!("{name:?} is none of the kinds {names:?}"));
        }
        let watch = |Watch { kinds, enter_cm, leave_cm }: &Watch| {
            let kinds = kinds.iter().filter_map(number).map(|n| n as u8).collect();
            WatchSpec { kinds, enter_cm: *enter_cm, leave_cm: *leave_cm }
        };
        let kind =
            |k: &Named| KindSpec { watch: k.watch.iter().map(watch).collect(), ..k.spec.clone() };
        spec.kinds = value.iter().map(kind).collect();
    });
}

fn kind(k: &mut Keys<'_, '_, Named>, layers: &[String]) {
    let layer = |node: &Node| {
        let wanted = text_of(node);
        let place = layers.iter().position(|name| Some(&**name) == wanted);
        // A layer of the defaults may have given way to others.
        let place = place.or_else(|| node.is_default().then_some(0));
        place.ok_or_else(|| format!("must name one of the layers {layers:?}"))
    };
    let layer_text = |layer: &usize| quoted(layers.get(*layer).map_or("", |name| name));
    let speed = |node: &Node| match text_of(node) {
        Some("top") => Ok(None),
        _ => quantity_within(node, Speed, (0, MOST_SPEED)).map(|cm_s| Some(cm_s as i32)),
    };
    let speed_text =
        |speed: &Option<i32>| quoted(&speed.map_or("top".into(), |cm_s| Speed.text(cm_s.into())));
    let ranges = "a list of ranges, for example [[\"near\"], [\"near\", \"middle\"]]";
    let sights = |node: &Node| {
        let sights: Option<Vec<RangeSet>> = match &node.item {
            Item::Array(list) => list.iter().map(rings).collect(),
            _ => None,
        };
        sights.ok_or_else(|| format!("must be {ranges}"))
    };
    let sights_text = |sights: &Vec<RangeSet>| {
        format!("[{}]", sights.iter().map(range_text).collect::<Vec<_>>().join(", "))
    };
    let circle_text = |circle: &Option<(i32, i32)>| match circle {
        None => quoted("off"),
        Some((enter, leave)) => lengths_text(&[*enter, *leave]),
    };
    keys! { k;
        "name" text(NAME) spec.name: "The kind's name.";
        "layer" other(("the name of a layer", Form::Text(1, 64)), layer, layer_text) spec.layer: "The kind's patch grid.";
        "circle" other(CIRCLE, circle, circle_text) spec.circle_cm:
            "Not of the first kind: the radii at which players come to see such an entity, and see it no more; \"off\" = \
             as the scene says.";
        "speed" other(("a speed, or \"top\"", Form::Or("top", &SPEED)), speed, speed_text) spec.speed_cm_s:
            "Top speed of the kind without a grant; \"top\" = the scene's top speed.";
        "blocks" flag() spec.blocks:
            "Whether entities of the kind occupy tiles, so that nobody else enters them; with moves = \"judged\" only.";
        "size" other(SIZE, size, size_text) spec.size_cm:
            "With blocks = true only: the sides of a body, east-west and north-south, at most 16 tiles; tiles whose \
             middles it covers are occupied. \"tile\" = the tile on which the entity stands.";
        "properties" sections(PropertySpec::new(0, ""), property) spec.properties:
            "What entities of the kind have beside a place.";
        "watch" sections(Watch::default(), watch) watch:
            "What entities of the kind watch: the game's logic is told when one comes near, and when it is gone. \
             For each kind at most one rule.";
        "sights" other((ranges, Form::List(&RINGS)), sights, sights_text) spec.sights:
            "Patches only, and only of the first kind: beside the scene's range, the rings in which a client may ask to \
             be shown what is not a player.";
    }
}

const MOST_SPEED: i64 = 10_000_000;
const SPEED: Form<'static> = Form::Of(Speed, 0, MOST_SPEED);
const CIRCLE: Rule<'static> =
    ("two lengths, [\"80m\", \"88m\"], or \"off\"", Form::Or("off", &Form::Few(2, 2, &ANY_LENGTH)));

fn circle(node: &Node) -> Result<Option<(i32, i32)>, String> {
    if text_of(node) == Some("off") {
        return Ok(None);
    }
    match lengths(node, CIRCLE.0)?[..] {
        [enter, leave] => Ok(Some((enter, leave))),
        _ => Err(format!("must be {}", CIRCLE.0)),
    }
}

const SIZE: Rule<'static> =
    ("a length, two: [\"8m\", \"2m\"], or \"tile\"", Form::Or("tile", &SIDES.1));

fn size(node: &Node) -> Result<Option<[i32; 2]>, String> {
    match (text_of(node), &node.item) {
        (Some("tile"), _) => Ok(None),
        (_, Item::Array(list)) if list.len() != 2 => Err(format!("must be {}", SIZE.0)),
        _ => sides(node).map(Some),
    }
}

fn size_text(size: &Option<[i32; 2]>) -> String {
    size.as_ref().map_or(quoted("tile"), sides_text)
}

fn property(k: &mut Keys<'_, '_, PropertySpec>) {
    k.require(&["name", "id"], "each property needs a name and an id");
    keys! { k;
        "name" text(NAME) name: "The property's name.";
        "id" count(0, 63) id.0:
            "The property's number on the wire, unique in its kind; 0 is \"appearance\".";
        "type" choice(&ValueType::NAMES) value_type:
            "The values that the property takes; nil fits every type.";
        "audience" choice(&Audience::NAMES) audience: "Which clients are told the property.";
        "detail" choice(&Detail::NAMES) detail:
            "The farthest ring in which viewers are told changes; beyond it they keep the last value.";
        "writer" choice(&Writer::NAMES) writer:
            "Who sets the property: game logic alone, or the player's client, too.";
        "persist" flag() persist:
            "Whether the property is stored with the player's last position and restored at the next join.";
        "max" count(1, 1_024) max_bytes: "Longest value, bytes of MessagePack.";
    }
}

fn watch(k: &mut Keys<'_, '_, Watch>) {
    k.require(&["kinds", "enter"], "what a kind watches needs kinds and an enter radius");
    let names = "a list of names, for example [\"player\"]";
    keys! { k;
        "kinds" list((names, Form::List(&TEXT)), |name| Some(name.to_owned()), String::clone) kinds:
            "The kinds that are watched.";
        "enter" length(1, KM_1000) enter_cm: "An entity nearer than this is sighted.";
    }
    if k.reads() {
        // A quarter more, so that an entity that walks along the edge is not lost at every step.
        k.value.leave_cm = k.value.enter_cm.saturating_add(k.value.enter_cm / 4);
    }
    keys! { k;
        "leave" length(1, KM_1000) leave_cm:
            "An entity farther than this is lost; at least `enter`. Default: a quarter more than `enter`.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const PLAYER: &str = r#"
        [[scene]]
        [[scene.kind]]
        name = "player"
        properties = [
            { name = "hp", id = 1, type = "int", max = 5, persist = true },
            { name = "stance", id = 2, type = "text", writer = "owner", detail = "middle" },
            { name = "gold", id = 3, audience = "owner" },
        ]
    "#;

    #[test]
    fn properties_are_read_and_printed_back() {
        let config = Config::parse(PLAYER).unwrap();
        let of = PropertySpec::new;
        let want = [
            PropertySpec { value_type: ValueType::Int, persist: true, max_bytes: 5, ..of(1, "hp") },
            PropertySpec {
                value_type: ValueType::Text,
                writer: Writer::Owner,
                detail: Detail::Middle,
                ..of(2, "stance")
            },
            PropertySpec { audience: Audience::Owner, ..of(3, "gold") },
        ];
        assert_eq!(config.scenes[0].spec.kinds[0].properties, want);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn what_is_wrong_with_a_property_is_told_where_it_stands() {
        let wrong = |from: &str, to: &str| {
            Config::parse(&PLAYER.replace(from, to)).unwrap_err().to_string()
        };
        let cases = [
            ("id = 3", "id = 64", "scene.0.kind.0.properties.2.id"),
            ("\"int\"", "\"number\"", "must be one of"),
            ("max = 5", "max = 2000", "must lie between 1 and 1024"),
            ("id = 3", "id = 2", "id 2 is that of \"stance\", too"),
            ("name = \"gold\", ", "", "each property needs a name and an id"),
            ("audience = \"owner\"", "audiense = \"owner\"", "did you mean \"audience\"?"),
        ];
        for (from, to, want) in cases {
            let text = wrong(from, to);
            assert!(text.contains(want), "{want}: {text}");
        }
    }

    #[test]
    fn kinds_that_block_are_read_and_printed_back_and_refused_where_positions_are_trusted() {
        let kinds = "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"wall\"\nblocks = ";
        let judged = |blocks: &str| parse(&format!("moves = \"judged\"\n{kinds}{blocks}\n"));
        let config = judged("true").unwrap();
        let blocks: Vec<bool> = config.scenes[0].spec.kinds.iter().map(|k| k.blocks).collect();
        assert_eq!(blocks, [false, true]);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        assert!(judged("\"yes\"").unwrap_err().contains("scene.0.kind.1.blocks"));
        let trusted = parse(&format!("moves = \"trusted\"\n{kinds}true\n"));
        let trusted = trusted.and_then(|c| c.build_scenes().map_err(|e| e.to_string()));
        let trusted = trusted.err().unwrap_or_default();
        assert!(trusted.contains("set moves = \"judged\""), "{trusted}");
    }

    #[test]
    fn bodies_have_sides_that_are_read_and_printed_back() {
        let of = |keys: &str| {
            let kinds = "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"wall\"\n";
            parse(&format!("moves = \"judged\"\n{kinds}{keys}\n"))
        };
        for (size, want) in [
            ("\"4m\"", Some([400; 2])),
            ("[\"8m\", \"2m\"]", Some([800, 200])),
            ("\"16m\"", Some([1_600; 2])),
            ("\"tile\"", None),
        ] {
            let config = of(&format!("blocks = true\nsize = {size}")).unwrap();
            assert_eq!(config.scenes[0].spec.kinds[1].size_cm, want);
            assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        }
        for (keys, says) in [
            ("size = \"4m\"", "set blocks = true"),
            ("blocks = true\nsize = \"16.01m\"", "at most 16 m: 16 tiles of 1 m"),
            ("blocks = true\nsize = [\"1m\", \"17m\"]", "at most 16 m: 16 tiles of 1 m"),
            ("blocks = true\nsize = \"0m\"", "scene.0.kind.1.size"),
            ("blocks = true\nsize = \"large\"", "scene.0.kind.1.size"),
            ("blocks = true\nsize = [\"1m\"]", "[\"8m\", \"2m\"], or \"tile\""),
        ] {
            let said = of(keys).unwrap_err();
            assert!(said.contains(says), "{keys}: {said}");
        }
    }

    fn parse(kinds: &str) -> Result<Config, String> {
        Config::parse(&format!("[[scene]]\nname = \"field\"\n{kinds}")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_kind_watches_kinds_by_name_and_prints_back() {
        let config = parse(
            "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"monster\"\n\
             watch = [{ kinds = [\"player\", \"sheep\"], enter = \"20m\" },\n\
             { kinds = [\"monster\"], enter = \"4m\", leave = \"6m\" }]\n\
             [[scene.kind]]\nname = \"sheep\"\n",
        )
        .unwrap();
        let scenes = config.build_scenes().unwrap();
        let rule = |kinds: &[u8], enter_cm, leave_cm| WatchSpec {
            kinds: kinds.into(),
            enter_cm,
            leave_cm,
        };
        assert_eq!(
            scenes[0].spec.kinds[1].watch,
            [rule(&[0, 2], 2_000, 2_500), rule(&[1], 400, 600)]
        );
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn what_is_wrong_with_a_watch_is_said() {
        let of = |watch: &str| {
            let kinds = "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"monster\"\n";
            parse(&format!("{kinds}watch = [{watch}]\n")).unwrap_err()
        };
        for (watch, says) in [
            ("{ kinds = [\"wolf\"], enter = \"20m\" }", "none of the kinds"),
            ("{ kinds = \"player\", enter = \"20m\" }", "a list of names"),
            ("{ kinds = [\"player\"] }", "enter"),
            ("{ kinds = [\"player\"], enter = \"20m\", leave = \"10m\" }", "at most leave"),
            ("{ kinds = [], enter = \"20m\" }", "at least one kind"),
            (
                "{ kinds = [\"player\"], enter = \"2m\" }, { kinds = [\"player\"], enter = \"3m\" }",
                "each kind once",
            ),
        ] {
            let said = of(watch);
            assert!(said.contains(says), "{watch}: {said}");
        }
    }
}
