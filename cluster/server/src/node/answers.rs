//! What this process answers when another process asks: the players in its regions and what these
//! have to do, how full its lines are, what time it is, and which claims stand against others.
//!
//! The links call [`responder`]; the console asks [`answer`] for the regions of its own process.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use purview::actor::directory::Directory;
use purview::scene::inspect::InspectedEntity as Found;
use purview::scene::{Epoch, Kind};
use purview::wire::peer::query::{Answer, EntityLocation, Question};

use super::balancer::Board;
use super::hosted::Hosted;
use super::{clock_sync, inspect, lines, loads};
use crate::logins::Subjects;
use crate::peer::Respond;

/// Answers questions of other processes. The directory is held weakly: it has the links that hold this.
pub(super) fn responder(
    hosted: Hosted,
    directory: Weak<Directory>,
    subjects: Subjects,
    board: Board,
) -> Respond {
    Arc::new(move |question| {
        let known = |of: fn(&Directory) -> Answer| {
            let answer = directory.upgrade().map(|directory| of(&directory));
            std::future::ready(answer.unwrap_or_default()).boxed()
        };
        match question {
            Question::Claims(claims) => {
                let claims = subjects.meet(&claims);
                std::future::ready(Answer { claims, ..Answer::default() }).boxed()
            }
            Question::Lines => known(lines::answer),
            Question::Clock => known(clock_sync::answer),
            Question::Balance => {
                let answer = Answer { balance: board.json(), ..Answer::default() };
                std::future::ready(answer).boxed()
            }
            question => answer(hosted.clone(), question).boxed(),
        }
    })
}

/// What the regions of this process say.
pub async fn answer(hosted: Hosted, question: Question) -> Answer {
    let regions = hosted.now();
    match question {
        Question::Players => {
            let survey = inspect::ask(regions.iter(), None).await;
            let of_region = |region: &purview::scene::inspect::RegionDetails| {
                let (scene, id, epoch) = (region.scene, region.region, Epoch::default());
                let players = region.entities.iter().filter(|e| !e.ghost && e.kind == Kind::PLAYER);
                let location = |e: &purview::scene::inspect::EntityDetails| EntityLocation {
                    id: e.id,
                    kind: e.kind,
                    scene,
                    region: id,
                    epoch,
                    plane: e.plane,
                    pos: e.pos,
                    facing: e.facing,
                    properties: Default::default(),
                };
                players.map(location).collect::<Vec<_>>()
            };
            let lives = survey.regions.iter().flat_map(of_region).collect();
            Answer { lives, late: survey.late, ..Answer::default() }
        }
        Question::Loads => Answer { loads: loads::measure(&hosted).await, ..Answer::default() },
        // Regions know nothing of lines, time, subjects and what the leader decides.
        Question::Lines | Question::Clock | Question::Claims(_) | Question::Balance => {
            Answer::default()
        }
        Question::Entity(id) => {
            let (found, late) = inspect::entity(&regions, id).await;
            let lives = found.into_iter().map(|(scene, found)| {
                let (kind, region, epoch, plane, pos, facing, properties) = match found {
                    Found::Player(p) => {
                        let kind = Kind::PLAYER;
                        (kind, p.region, p.epoch, p.plane, p.pos, p.facing, p.properties)
                    }
                    Found::Other(e) => {
                        let epoch = Epoch::default();
                        (e.kind, e.owner, epoch, e.plane, e.pos, e.facing, e.properties)
                    }
                };
                EntityLocation { id, kind, scene, region, epoch, plane, pos, facing, properties }
            });
            Answer { lives: lives.collect(), late, ..Answer::default() }
        }
    }
}
