//! `GET /api/why`: why two players see each other, or why they do not, as JSON and as sentences.

use purview::scene::inspect::why::{Limit, ListRank, PairRank, Stand, Why, why};
use purview::scene::inspect::{InspectedEntity, ViewEntry};
use purview::scene::{EntityId, Plane, RangeSet, Scene};
use serde::Serialize;

use super::shapes::{BondShape, EntryShape, kind_name, ring_names};

/// The explanation. In a pair of values the first belongs to `a`.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub a: EntityId,
    pub b: EntityId,
    pub seen: bool,
    #[serde(flatten)]
    pub why: WhyShape,
    pub sentences: Vec<String>,
}

/// The reason; its fields are next to it in the JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum WhyShape {
    Seen {
        #[serde(flatten)]
        pair: PairShape,
        places: [ListRank; 2],
    },
    SameEntity,
    NotAPlayer {
        /// The kind of each entity that is not a player.
        kinds: [Option<String>; 2],
    },
    OtherScene {
        scenes: [String; 2],
    },
    OtherPlane {
        /// `None`: in limbo, between two scenes.
        planes: [Option<Plane>; 2],
    },
    OutOfRange {
        dist_cm: u32,
        limit: LimitShape,
    },
    Full {
        #[serde(flatten)]
        pair: PairShape,
        stands: [StandShape; 2],
    },
    WithinMargin {
        #[serde(flatten)]
        pair: PairShape,
        margin_cm: i32,
        stands: [StandShape; 2],
    },
    Negotiating {
        #[serde(flatten)]
        pair: PairShape,
    },
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct PairShape {
    pub bond: Option<BondShape>,
    pub dist_cm: u32,
}

impl PairShape {
    fn of(scene: &Scene, p: PairRank) -> PairShape {
        PairShape { bond: BondShape::of(scene, p.class), dist_cm: p.dist_cm }
    }
}

/// What being in range means here.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum LimitShape {
    Patches {
        /// Patches between the two.
        apart: u32,
        patch_cm: [i32; 2],
        /// The names of the rings in which players see each other.
        range: Vec<&'static str>,
    },
    Circle {
        enter_cm: i32,
        leave_cm: i32,
        /// The two were in range, so the leave radius counts.
        known: bool,
    },
    Height {
        apart_cm: u32,
        enter_cm: u32,
        leave_cm: u32,
        /// The two were in range, so `leave_cm` counts.
        known: bool,
    },
}

impl From<Limit> for LimitShape {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Patches { apart, patch_cm, range } => {
                LimitShape::Patches { apart, patch_cm, range: ring_names(range) }
            }
            Limit::Circle { enter_cm, leave_cm, known } => {
                LimitShape::Circle { enter_cm, leave_cm, known }
            }
            Limit::Height { apart_cm, enter_cm, leave_cm, known } => {
                LimitShape::Height { apart_cm, enter_cm, leave_cm, known }
            }
        }
    }
}

/// Whether one of the two would see the other.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "stand", rename_all = "snake_case")]
pub enum StandShape {
    Willing,
    WithinMargin { worst: EntryShape },
    Full { worst: EntryShape },
}

impl StandShape {
    fn of(scene: &Scene, stand: Stand) -> StandShape {
        match stand {
            Stand::Willing => StandShape::Willing,
            Stand::WithinMargin(worst) => {
                StandShape::WithinMargin { worst: EntryShape::of(scene, worst) }
            }
            Stand::Full(worst) => StandShape::Full { worst: EntryShape::of(scene, worst) },
        }
    }
}

pub fn answer(scenes: [&Scene; 2], a: &InspectedEntity, b: &InspectedEntity) -> Explanation {
    let why = why(&scenes[0].spec, a, b);
    let ids = [a.id(), b.id()];
    let (seen, sentences) = (why.is_seen(), sentences(&why, scenes, ids));
    Explanation { a: a.id(), b: b.id(), seen, why: shape(why, scenes), sentences }
}

fn shape(why: Why, scenes: [&Scene; 2]) -> WhyShape {
    let pair_of = |pair| PairShape::of(scenes[0], pair);
    let stand_of = |stand| StandShape::of(scenes[0], stand);
    match why {
        Why::Seen { pair, places } => WhyShape::Seen { pair: pair_of(pair), places },
        Why::SameEntity => WhyShape::SameEntity,
        Why::NotAPlayer { kinds: [a, b] } => {
            let name = |scene, kind: Option<_>| kind.map(|k| kind_name(scene, k));
            WhyShape::NotAPlayer { kinds: [name(scenes[0], a), name(scenes[1], b)] }
        }
        Why::OtherScene { .. } => {
            WhyShape::OtherScene { scenes: scenes.map(|s| s.spec.name.clone()) }
        }
        Why::OtherPlane { planes } => {
            let known = |plane| (plane != Plane::LIMBO).then_some(plane);
            WhyShape::OtherPlane { planes: planes.map(known) }
        }
        Why::OutOfRange { dist_cm, limit } => WhyShape::OutOfRange { dist_cm, limit: limit.into() },
        Why::Full { pair, stands } => {
            WhyShape::Full { pair: pair_of(pair), stands: stands.map(stand_of) }
        }
        Why::WithinMargin { pair, stands } => WhyShape::WithinMargin {
            pair: pair_of(pair),
            margin_cm: scenes[0].spec.view_margin_cm,
            stands: stands.map(stand_of),
        },
        Why::Negotiating { pair } => WhyShape::Negotiating { pair: pair_of(pair) },
    }
}

fn sentences(why: &Why, scenes: [&Scene; 2], [a, b]: [EntityId; 2]) -> Vec<String> {
    match why {
        Why::Seen { pair, places: [on_a, on_b] } => vec![
            format!("{a} and {b} see each other: {}.", pair_text(scenes[0], *pair)),
            format!(
                "{b} is number {} of {} on the view list of {a}, the best first; \
                 {a} is number {} of {} on that of {b}.",
                on_a.place, on_a.of, on_b.place, on_b.of
            ),
        ],
        Why::SameEntity => vec![format!("{a} and {b} are one and the same entity.")],
        Why::NotAPlayer { kinds } => {
            let others = (0..2).filter_map(|i| Some(([a, b][i], scenes[i], kinds[i]?)));
            let mut sentences: Vec<String> = others
                .map(|(id, scene, kind)| format!("{id} is of kind {:?}.", kind_name(scene, kind)))
                .collect();
            sentences.push(
                "View lists hold players only; all other entities are seen by range alone.".into(),
            );
            sentences
        }
        Why::OtherScene { .. } => {
            let [of_a, of_b] = scenes.map(|s| &s.spec.name);
            vec![format!("{a} is in scene {of_a:?} and {b} in scene {of_b:?}.")]
        }
        Why::OtherPlane { planes: [of_a, of_b] } => vec![format!(
            "{a} is {} and {b} {}: players see each other only within a plane.",
            plane_text(*of_a),
            plane_text(*of_b)
        )],
        Why::OutOfRange { dist_cm, limit } => out_of_range_text([a, b], *dist_cm, limit),
        Why::Full { pair, stands } | Why::WithinMargin { pair, stands } => {
            let head = format!(
                "{a} and {b} do not see each other though they are in range: {}.",
                pair_text(scenes[0], *pair)
            );
            let stand_of = |ix: usize, me, other| stand_text(scenes[ix], me, other, &stands[ix]);
            vec![head, stand_of(0, a, b), stand_of(1, b, a)]
        }
        Why::Negotiating { pair } => vec![
            format!("{a} and {b} would see each other: {}.", pair_text(scenes[0], *pair)),
            "They are negotiating: a message between them is in flight.".into(),
        ],
    }
}

fn out_of_range_text([a, b]: [EntityId; 2], dist_cm: u32, limit: &Limit) -> Vec<String> {
    let head = format!("{a} and {b} are out of range: {} apart", metres(dist_cm));
    match *limit {
        Limit::Circle { leave_cm, known: true, .. } => {
            let leave = metres(leave_cm.unsigned_abs());
            vec![format!("{head}, and a player that was in range leaves it beyond {leave}.")]
        }
        Limit::Circle { enter_cm, leave_cm, known: false } => {
            let [enter, leave] = [enter_cm, leave_cm].map(|cm| metres(cm.unsigned_abs()));
            vec![format!(
                "{head}, and players come into range of each other at {enter} \
                 (and leave it beyond {leave})."
            )]
        }
        Limit::Height { apart_cm, enter_cm, leave_cm, known } => {
            let [apart, enter, leave] = [apart_cm, enter_cm, leave_cm].map(metres);
            let head = format!("{a} and {b} are out of range: {apart} apart in height");
            vec![match known {
                true => format!("{head}, and a player that was in range leaves it beyond {leave}."),
                false => format!(
                    "{head}, and players come into range of each other at {enter} (and leave it beyond {leave})."
                ),
            }]
        }
        Limit::Patches { apart, patch_cm, range } => vec![
            format!("{head}, {apart} patches of {}.", patch_text(patch_cm)),
            format!(
                "Two players are in range if their distance is in a ring of the scene (near: 0 patches apart, middle: 1, \
                 far: 2), which has {}.",
                range_text(range)
            ),
        ],
    }
}

fn patch_text(patch_cm: [i32; 2]) -> String {
    let [x, z] = patch_cm.map(|side| metres(side.unsigned_abs()));
    if x == z { x } else { format!("{x} x {z}") }
}

/// Why `me` would see `other`, or why it would not.
fn stand_text(scene: &Scene, me: EntityId, other: EntityId, stand: &Stand) -> String {
    let cap = scene.spec.view_cap;
    match stand {
        Stand::Willing => format!("{me} would see {other}."),
        Stand::Full(worst) => format!(
            "The view list of {me} is full ({cap}), and it prefers every player on it, even {}.",
            entry_text(scene, worst)
        ),
        Stand::WithinMargin(worst) => format!(
            "The view list of {me} is full ({cap}), and {other} is better than the worst on it, {}, \
             but not by the margin of {}.",
            entry_text(scene, worst),
            metres(scene.spec.view_margin_cm.unsigned_abs())
        ),
    }
}

fn entry_text(scene: &Scene, e: &ViewEntry) -> String {
    let dist = e.dist_cm.map_or("at an unknown distance".into(), metres);
    let under_way = if e.linked { "" } else { ", whose answer is pending" };
    format!("{} ({}, {dist}{under_way})", e.id, bond_text(scene, e.class))
}

fn pair_text(scene: &Scene, pair: PairRank) -> String {
    format!("{}, {} apart", bond_text(scene, pair.class), metres(pair.dist_cm))
}

fn bond_text(scene: &Scene, class: u8) -> String {
    BondShape::of(scene, class).map_or("no bond".into(), |bond| bond.name)
}

fn plane_text(plane: Plane) -> String {
    match plane {
        Plane::LIMBO => "between two scenes".into(),
        Plane(n) => format!("on plane {n}"),
    }
}

fn range_text(range: RangeSet) -> String {
    let names = ring_names(range);
    if names.is_empty() { "none".into() } else { names.join(" + ") }
}

fn metres(cm: u32) -> String {
    format!("{} m", f64::from(cm) / 100.0)
}

#[cfg(test)]
mod tests {
    use purview::scene::views::NO_BOND;
    use purview::scene::{Kind, RegionId, SceneId, SceneSpec};
    use serde_json::{json, to_value};

    use super::*;

    fn scene(name: &str) -> Scene {
        let spec =
            SceneSpec { name: name.into(), view_cap: 20, view_margin_cm: 50, ..Default::default() };
        Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
    }

    /// Sentences and JSON of an answer about 17 in the meadow and 42 in the harbour.
    fn told(why: Why) -> (String, serde_json::Value) {
        let [meadow, harbour] = [scene("meadow"), scene("harbour")];
        let scenes = [&meadow, &harbour];
        let sentences = sentences(&why, scenes, [EntityId(17), EntityId(42)]);
        (sentences.join("\n"), to_value(shape(why, scenes)).unwrap())
    }

    fn entry(id: u64, class: u8, dist_cm: Option<u32>) -> ViewEntry {
        ViewEntry { id: EntityId(id), class, dist_cm, linked: dist_cm.is_some() }
    }

    const PAIR: PairRank = PairRank { class: NO_BOND, dist_cm: 1_234 };

    #[test]
    fn a_seen_pair_has_its_bond_distance_and_ranks() {
        let places = [ListRank { place: 3, of: 20 }, ListRank { place: 1, of: 8 }];
        let pair = PairRank { class: 2, dist_cm: 1_230 };
        let (sentences, shape) = told(Why::Seen { pair, places });
        assert_eq!(
            sentences,
            "17 and 42 see each other: fight, 12.3 m apart.\n\
             42 is number 3 of 20 on the view list of 17, the best first; \
             17 is number 1 of 8 on that of 42."
        );
        assert_eq!(
            shape,
            json!({
                "why": "seen", "bond": {"class": 2, "name": "fight"}, "dist_cm": 1_230,
                "places": [{"place": 3, "of": 20}, {"place": 1, "of": 8}],
            })
        );
    }

    #[test]
    fn a_pair_that_can_never_see_each_other_has_a_reason() {
        let cases = [
            (Why::SameEntity, "17 and 42 are one and the same entity.", json!({})),
            (
                Why::NotAPlayer { kinds: [None, Some(Kind(2))] },
                "42 is of kind \"monster\".\n\
                 View lists hold players only; all other entities are seen by range alone.",
                json!({"kinds": [null, "monster"]}),
            ),
            (
                Why::OtherScene { scenes: [SceneId(0), SceneId(1)] },
                "17 is in scene \"meadow\" and 42 in scene \"harbour\".",
                json!({"scenes": ["meadow", "harbour"]}),
            ),
            (
                Why::OtherPlane { planes: [Plane(-3), Plane::LIMBO] },
                "17 is on plane -3 and 42 between two scenes: \
                 players see each other only within a plane.",
                json!({"planes": [-3, null]}),
            ),
        ];
        for (why, want, fields) in cases {
            let (sentences, shape) = told(why);
            assert_eq!(sentences, want);
            for (name, value) in fields.as_object().unwrap() {
                assert_eq!(&shape[name], value);
            }
        }
    }

    #[test]
    fn out_of_range_says_what_would_be_in_range() {
        let circle = |known| Limit::Circle { enter_cm: 4_000, leave_cm: 4_400, known };
        let (sentences, shape) = told(Why::OutOfRange { dist_cm: 12_005, limit: circle(false) });
        assert_eq!(
            sentences,
            "17 and 42 are out of range: 120.05 m apart, and players come into range of each other \
             at 40 m (and leave it beyond 44 m)."
        );
        let limit = json!({"mode": "circle", "enter_cm": 4_000, "leave_cm": 4_400, "known": false});
        assert_eq!(shape, json!({"why": "out_of_range", "dist_cm": 12_005, "limit": limit}));
        let (sentences, _) = told(Why::OutOfRange { dist_cm: 4_401, limit: circle(true) });
        assert_eq!(
            sentences,
            "17 and 42 are out of range: 44.01 m apart, and a player that was in range leaves it beyond 44 m."
        );
        let patch_cm = [3_200, 2_000];
        let limit = Limit::Patches { apart: 4, patch_cm, range: RangeSet::FULL };
        let (sentences, shape) = told(Why::OutOfRange { dist_cm: 12_005, limit });
        assert_eq!(
            sentences,
            "17 and 42 are out of range: 120.05 m apart, 4 patches of 32 m x 20 m.\n\
             Two players are in range if their distance is in a ring of the scene (near: 0 patches apart, middle: 1, far: 2), \
             which has near + middle + far."
        );
        assert_eq!(shape["limit"]["range"], json!(["near", "middle", "far"]));
        let (enter_cm, leave_cm) = (800, 900);
        let height = |known| Limit::Height { apart_cm: 1_200, enter_cm, leave_cm, known };
        let (sentences, shape) = told(Why::OutOfRange { dist_cm: 5, limit: height(false) });
        assert_eq!(
            sentences,
            "17 and 42 are out of range: 12 m apart in height, and players come into range of each other at 8 m (and \
             leave it beyond 9 m)."
        );
        let mode = json!({"mode": "height", "apart_cm": 1_200, "enter_cm": 800, "leave_cm": 900, "known": false});
        assert_eq!(shape["limit"], mode);
        let (sentences, _) = told(Why::OutOfRange { dist_cm: 5, limit: height(true) });
        assert_eq!(
            sentences,
            "17 and 42 are out of range: 12 m apart in height, and a player that was in range leaves it beyond 9 m."
        );
    }

    #[test]
    fn a_full_list_names_the_preferred_players() {
        let stands = [Stand::Full(entry(33, 1, Some(4_400))), Stand::Willing];
        let (sentences, shape) = told(Why::Full { pair: PAIR, stands });
        assert_eq!(
            sentences,
            "17 and 42 do not see each other though they are in range: no bond, 12.34 m apart.\n\
             The view list of 17 is full (20), and it prefers every player on it, even 33 \
             (party, 44 m).\n\
             42 would see 17."
        );
        assert_eq!((&shape["why"], &shape["bond"]), (&json!("full"), &json!(null)));
        assert_eq!(shape["stands"][0]["worst"]["id"], 33);
        assert_eq!(shape["stands"][1], json!({"stand": "willing"}));
    }

    #[test]
    fn a_pair_within_the_margin_names_the_margin() {
        let stands = [Stand::Willing, Stand::WithinMargin(entry(9, NO_BOND, None))];
        let (sentences, shape) = told(Why::WithinMargin { pair: PAIR, stands });
        assert_eq!(
            sentences,
            "17 and 42 do not see each other though they are in range: no bond, 12.34 m apart.\n\
             17 would see 42.\n\
             The view list of 42 is full (20), and 17 is better than the worst on it, 9 (no bond, \
             at an unknown distance, whose answer is pending), but not by the margin of 0.5 m."
        );
        assert_eq!(shape["margin_cm"], 50);
        assert_eq!(shape["stands"][1]["worst"]["linked"], false);
    }

    #[test]
    fn a_negotiating_pair_is_reported() {
        let (sentences, shape) = told(Why::Negotiating { pair: PAIR });
        assert_eq!(
            sentences,
            "17 and 42 would see each other: no bond, 12.34 m apart.\n\
             They are negotiating: a message between them is in flight."
        );
        assert_eq!(shape, json!({"why": "negotiating", "bond": null, "dist_cm": 1_234}));
    }
}
