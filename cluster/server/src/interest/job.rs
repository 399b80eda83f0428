//! What is told of a scene in parts: the outcome of a tick, or the answer to a query. A part is made
//! when the client has read the parts before it.

use purview::interest::{Event, Position, World};

use super::draft::Draft;
use super::proto::Answer;

/// Pairs, or entities, of a part of an answer.
const PART: usize = 8_192;

/// An outcome that is being told.
#[derive(Debug)]
pub enum Job {
    /// The scene, the number of its tick, and positions that are told.
    Tick {
        scene: u64,
        tick: u64,
        positions: usize,
    },
    Answer {
        answer: Answer,
        rest: Rest,
    },
}

#[derive(Debug)]
pub enum Rest {
    /// Entities from a place on.
    Ids(Vec<u64>, usize),
    /// Entities with their positions, from a place on.
    Places(Vec<Position>, usize),
    /// Pairs of the observers from a place on, and pairs of those before that are not told.
    Pairs { from: Option<usize>, pairs: Vec<(u64, u64)>, told: usize },
}

impl Job {
    pub fn scene(&self) -> u64 {
        match self {
            Job::Tick { scene, .. } => *scene,
            Job::Answer { answer, .. } => answer.scene,
        }
    }

    /// Adds the next part to a draft; whether it was the last one.
    pub fn tell(&mut self, world: &mut World, events: &mut Vec<Event>, draft: &mut Draft) -> bool {
        match self {
            Job::Tick { scene, tick, positions: told } => {
                events.clear();
                let left = world.take_events(draft.event_room(), events);
                let positions = &world.positions()[*told..];
                let room = draft.position_room(events.len()) + usize::from(events.is_empty());
                let most = if left == 0 { room } else { 0 };
                let some = &positions[..positions.len().min(most)];
                draft.tick((*scene, *tick), (events, some));
                *told += some.len();
                left == 0 && some.len() == positions.len()
            }
            Job::Answer { answer, rest } => {
                let mut part = answer.clone();
                part.more = rest.fill(world, &mut part);
                let is_last = !part.more;
                draft.answered(part);
                is_last
            }
        }
    }
}

impl Rest {
    /// Moves the next part into an answer; whether more is left.
    fn fill(&mut self, world: &World, answer: &mut Answer) -> bool {
        match self {
            Rest::Ids(all, told) => {
                let end = all.len().min(*told + PART);
                answer.ids.extend_from_slice(&all[*told..end]);
                *told = end;
                end < all.len()
            }
            Rest::Places(all, told) => {
                let end = all.len().min(*told + PART);
                for Position { id, pos } in &all[*told..end] {
                    answer.ids.push(*id);
                    answer.x.push(pos.x);
                    answer.y.push(pos.y);
                    answer.z.push(pos.z);
                }
                *told = end;
                end < all.len()
            }
            Rest::Pairs { from, pairs, told } => {
                fill_pairs(world, (from, pairs, told), answer);
                from.is_some() || *told < pairs.len()
            }
        }
    }
}

/// Takes pairs of the next observers, and moves some into an answer.
fn fill_pairs(
    world: &World,
    (from, pairs, told): (&mut Option<usize>, &mut Vec<(u64, u64)>, &mut usize),
    answer: &mut Answer,
) {
    pairs.drain(..std::mem::take(told));
    while pairs.len() < PART
        && let Some(at) = *from
    {
        *from = world.pairs_from(at, pairs);
    }
    *told = pairs.len().min(PART);
    for (observer, subject) in &pairs[..*told] {
        answer.observers.push(*observer);
        answer.ids.push(*subject);
    }
}
