//! Who lives where in the whole cluster: what the regions of this process say, and what other processes say
//! of theirs.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use purview::scene::inspect::Resident as Found;
use purview::scene::{EntityId, Epoch, Kind, Plane, Pos, RegionId};
use purview::wire::peer::query::{Answer, Question, Resident};
use serde::{Deserialize, Serialize};

use super::{ConsoleState, Hosted, shapes};
use crate::node::inspect;

/// Asks every other process that has regions: its name, and what it answers in time.
pub type AskOthers =
    Box<dyn Fn(Question) -> BoxFuture<'static, Vec<(String, Option<Answer>)>> + Send + Sync>;

/// What the regions of this process say.
pub async fn answer(hosted: Hosted, question: Question) -> Answer {
    let regions = hosted.now();
    match question {
        Question::Players => {
            let survey = inspect::ask(regions.iter(), None).await;
            let of_region = |region: &purview::scene::inspect::RegionSnapshot| {
                let (scene, id, epoch) = (region.scene, region.region, Epoch::default());
                let players = region.entities.iter().filter(|e| !e.ghost && e.kind == Kind::PLAYER);
                let resident = |e: &purview::scene::inspect::EntitySnapshot| {
                    let (kind, plane, pos) = (e.kind, e.plane, e.pos);
                    Resident { id: e.id, kind, scene, region: id, epoch, plane, pos }
                };
                players.map(resident).collect::<Vec<_>>()
            };
            let lives = survey.regions.iter().flat_map(of_region).collect();
            Answer { lives, late: survey.late, ..Answer::default() }
        }
        // Regions know nothing of lines, time and subjects.
        Question::Lines | Question::Clock | Question::Claims(_) => Answer::default(),
        Question::Entity(id) => {
            let (found, late) = inspect::entity(&regions, id).await;
            let lives = found.into_iter().map(|(scene, found)| {
                let (kind, region, epoch, plane, pos) = match found {
                    Found::Player(p) => (Kind::PLAYER, p.region, p.epoch, p.plane, p.pos),
                    Found::Other(e) => (e.kind, e.owner, Epoch::default(), e.plane, e.pos),
                };
                Resident { id, kind, scene, region, epoch, plane, pos }
            });
            Answer { lives: lives.collect(), late, ..Answer::default() }
        }
    }
}

/// Somebody, and where. Lengths in centimetres.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// Who.
    pub id: EntityId,
    /// The name of its kind.
    pub kind: String,
    /// The process that owns its region.
    pub node: String,
    /// The name of its scene.
    pub scene: String,
    /// Its region.
    pub region: RegionId,
    /// Its plane; none: in limbo, between two scenes.
    pub plane: Option<Plane>,
    /// Its place.
    pub pos: Pos,
}

/// `GET /api/players`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    /// All players, by their ids.
    pub players: Vec<Whereabouts>,
    /// Regions that did not answer in time.
    pub late: Vec<RegionId>,
    /// Processes that did not answer in time.
    pub silent: Vec<String>,
}

/// Asks this process and all others. Of somebody who is found twice, since it is being handed over, one counts.
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

fn whereabouts(state: &ConsoleState, node: &str, lives: &Resident) -> Whereabouts {
    let scene = state.directory.scene(lives.scene);
    let kind = scene.as_ref().map(|scene| shapes::kind_name(scene, lives.kind));
    Whereabouts {
        id: lives.id,
        kind: kind.unwrap_or_else(|| format!("kind {}", lives.kind)),
        node: node.into(),
        scene: scene.map(|scene| scene.spec.name.clone()).unwrap_or_default(),
        region: lives.region,
        plane: (lives.plane != Plane::LIMBO).then_some(lives.plane),
        pos: lives.pos,
    }
}
