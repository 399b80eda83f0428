//! The positions of players and entities in the whole cluster: those of this process, and those
//! that other processes report.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use purview::scene::{EntityId, Epoch, Facing, Plane, Pos, RegionId};
use purview::wire::peer::query::{Answer, EntityLocation, Question};
use serde::{Deserialize, Serialize};

use super::properties::{self, PropertyShape};
use super::{ConsoleState, shapes};
use crate::node::answers::answer;

/// Asks every other process that has regions; returns the name and the answer, if it came in time,
/// of each.
pub type AskOthers =
    Box<dyn Fn(Question) -> BoxFuture<'static, Vec<(String, Option<Answer>)>> + Send + Sync>;

/// A player and its position. Lengths in centimetres.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    pub id: EntityId,
    pub kind: String,
    pub node: String,
    pub scene: String,
    pub region: RegionId,
    /// The plane; `None`: in limbo, between two scenes.
    pub plane: Option<Plane>,
    pub pos: Pos,
    /// The way it faces: 65,536 steps make a turn, 0 is east, clockwise.
    pub facing: Facing,
    /// Its properties, where it was looked up by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<PropertyShape>,
}

/// `GET /api/players`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    pub players: Vec<Whereabouts>,
    /// Regions that did not answer in time.
    pub late: Vec<RegionId>,
    /// Processes that did not answer in time.
    pub silent: Vec<String>,
}

/// Asks this process and all others. An entity in a handoff may be reported twice; it counts once.
pub async fn everybody(state: &ConsoleState, question: Question) -> People {
    let here = answer(state.regions.clone(), question.clone());
    let others = async {
        match &state.others {
            Some(ask) => ask(question).await,
            None => Vec::new(),
        }
    };
    let (here, others) = futures::future::join(here, others).await;
    let mut found: BTreeMap<EntityId, (Epoch, Whereabouts)> = BTreeMap::new();
    let (mut late, mut silent) = (Vec::new(), Vec::new());
    for (node, answer) in std::iter::once((state.node.clone(), Some(here))).chain(others) {
        let Some(answer) = answer else {
            silent.push(node);
            continue;
        };
        late.extend(answer.late);
        for lives in answer.lives {
            let there = whereabouts(state, &node, &lives);
            let known = found.entry(lives.id).or_insert((lives.epoch, there.clone()));
            if known.0 < lives.epoch {
                *known = (lives.epoch, there);
            }
        }
    }
    late.sort_unstable();
    silent.sort_unstable();
    let players = found.into_values().map(|(_, there)| there).collect();
    People { players, late, silent }
}

fn whereabouts(state: &ConsoleState, node: &str, lives: &EntityLocation) -> Whereabouts {
    let scene = state.directory.scene(lives.scene);
    let kind = scene.as_ref().map(|scene| shapes::kind_name(scene, lives.kind));
    let properties = properties::shapes(scene.as_deref(), lives.kind, &lives.properties);
    Whereabouts {
        id: lives.id,
        kind: kind.unwrap_or_else(|| format!("kind {}", lives.kind)),
        node: node.into(),
        scene: scene.map(|scene| scene.spec.name.clone()).unwrap_or_default(),
        region: lives.region,
        plane: (lives.plane != Plane::LIMBO).then_some(lives.plane),
        pos: lives.pos,
        facing: lives.facing,
        properties,
    }
}
