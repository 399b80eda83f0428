//! What workers are told of their commands: applied, refused, durable.

use std::collections::BTreeMap;

use purview::scene::messages::{CommandError, NumberedResult, Outcome, Refusal};
use purview::scene::{EntityId, RegionId, Tick};
use purview::wire::peer::RegionNews;

use super::hub::Hub;
use super::inbound::refused;
use super::outbox::encode;
use super::planes::PlaneError;
use super::proto::{self, Applied, Durable, Reason, response};

/// Results in one response.
const MOST_RESULTS: usize = 8_192;

/// What a region has to tell workers of their commands, those of other regions, too.
#[derive(Debug, Default)]
pub struct Acks {
    /// By worker.
    applied: BTreeMap<u64, Applied>,
    /// Workers with commands that are not durable, and the tick of the last one.
    owed: BTreeMap<u64, Tick>,
    durable: Option<Tick>,
}

impl Acks {
    /// What has become of a command.
    pub fn note(&mut self, result: &NumberedResult, at: (RegionId, Tick)) {
        let NumberedResult { id, source, number, outcome } = *result;
        match outcome {
            Outcome::Applied => self.applied(source, (id, number), at),
            Outcome::Refused(why) => {
                self.refused(source, refused(id, number, reason(&why), why), at);
                self.applied(source, (id, number), at);
            }
            Outcome::Gap { expected } => {
                let text = format!("command {expected} is missing");
                let result = refused(id, number, Reason::Gap, text);
                self.refused(source, proto::Result { expected, ..result }, at);
            }
        }
    }

    fn of(&mut self, source: u64, (region, tick): (RegionId, Tick)) -> &mut Applied {
        let applied = self.applied.entry(source).or_default();
        (applied.region, applied.tick) = (region.0, tick.0);
        applied
    }

    /// A command was applied.
    pub fn applied(&mut self, source: u64, (id, number): (EntityId, u64), at: (RegionId, Tick)) {
        let applied = self.of(source, at);
        if applied.entities.last() == Some(&id.0) {
            if let Some(last) = applied.numbers.last_mut() {
                *last = number;
            }
        } else {
            applied.entities.push(id.0);
            applied.numbers.push(number);
        }
    }

    /// A command was refused.
    pub fn refused(&mut self, source: u64, result: proto::Result, at: (RegionId, Tick)) {
        self.of(source, at).refused.push(result);
    }

    /// Tells all workers what is new, and the one that has the region.
    pub fn tell(&mut self, hub: &Hub, says: RegionNews, (durable, has): (Tick, Option<u64>)) {
        for (source, applied) in std::mem::take(&mut self.applied) {
            let Some(worker) = hub.worker(source) else { continue };
            self.owed.insert(source, Tick(applied.tick));
            worker.conduct.commands_refused(applied.refused.len(), &hub.metrics);
            for part in parts(applied) {
                if !worker.push_of(says, &encode(response::Message::Applied(part))) {
                    // It sends all commands again when it knows that responses were dropped.
                    break;
                }
            }
        }
        if self.durable.is_some_and(|told| told >= durable) {
            return;
        }
        self.durable = Some(durable);
        if let Some(source) = has {
            self.owed.entry(source).or_insert(Tick(0));
        }
        let told = Durable { region: says.region.0, tick: durable.0 };
        let told = encode(response::Message::Durable(told));
        self.owed.retain(|source, last| {
            let worker = hub.worker(*source);
            let taken = worker.is_some_and(|worker| worker.push_of(says, &told));
            taken && *last > durable
        });
    }
}

/// Responses that are not too long.
fn parts(mut applied: Applied) -> Vec<Applied> {
    let mut parts = Vec::new();
    let (region, tick) = (applied.region, applied.tick);
    while applied.entities.len() > MOST_RESULTS || applied.refused.len() > MOST_RESULTS {
        let most = |len: usize| len.min(MOST_RESULTS);
        let (ids, results) = (most(applied.entities.len()), most(applied.refused.len()));
        parts.push(Applied {
            region,
            tick,
            entities: applied.entities.drain(..ids).collect(),
            numbers: applied.numbers.drain(..ids).collect(),
            refused: applied.refused.drain(..results).collect(),
        });
    }
    parts.push(applied);
    parts
}

/// Why a command was refused, in the words of the protocol.
pub fn reason(why: &CommandError) -> Reason {
    match why {
        CommandError::Unknown(_) => Reason::UnknownEntity,
        CommandError::InUse(_) => Reason::InUse,
        CommandError::UnknownKind(_) => Reason::Kind,
        CommandError::OutOfBounds => Reason::OutOfBounds,
        CommandError::Properties => Reason::Property,
        CommandError::WatchesNot(_) | CommandError::WatchRadius { .. } => Reason::Watch,
        CommandError::NoPlayer(_) => Reason::NoPlayer,
        CommandError::TooLong(_) | CommandError::TooManyBonds(_) => Reason::TooLong,
        CommandError::NoIds => Reason::Busy,
        CommandError::NoDoor => Reason::Door,
        // To send the command again is safe: it is numbered.
        CommandError::Busy | CommandError::Missed | CommandError::Unanswered => Reason::Busy,
        CommandError::Order(refusal) => match refusal {
            Refusal::OutOfBounds => Reason::OutOfBounds,
            Refusal::TooLong => Reason::TooLong,
            Refusal::Busy | Refusal::TooOften => Reason::Busy,
            Refusal::WrongForm | Refusal::Move(_) => Reason::Movement,
            Refusal::Property(_) => Reason::Property,
        },
    }
}

/// Why a plane was not opened or closed, in the words of the protocol.
pub fn plane_reason(why: PlaneError) -> Reason {
    match why {
        PlaneError::Full => Reason::TooLong,
        PlaneError::NotOpen => Reason::Plane,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_an_entity_are_acknowledged_by_their_last_number() {
        let mut acks = Acks::default();
        let at = (RegionId(3), Tick(9));
        let result =
            |number, outcome| NumberedResult { id: EntityId(5), source: 7, number, outcome };
        acks.note(&result(1, Outcome::Applied), at);
        acks.note(&result(2, Outcome::Refused(CommandError::OutOfBounds)), at);
        acks.note(&result(4, Outcome::Gap { expected: 3 }), at);
        let applied = &acks.applied[&7];
        assert_eq!((applied.region, applied.tick), (3, 9));
        assert_eq!((&applied.entities[..], &applied.numbers[..]), (&[5][..], &[2][..]));
        let reasons: Vec<_> =
            applied.refused.iter().map(|r| (r.number, r.reason(), r.expected)).collect();
        assert_eq!(reasons, [(2, Reason::OutOfBounds, 0), (4, Reason::Gap, 3)]);
    }

    #[test]
    fn long_acknowledgements_come_in_parts() {
        let entities: Vec<u64> = (0..20_000).collect();
        let applied = Applied { numbers: entities.clone(), entities, ..Applied::default() };
        let parts = parts(applied);
        assert_eq!(parts.iter().map(|part| part.entities.len()).sum::<usize>(), 20_000);
        assert!(parts.iter().all(|part| part.entities.len() <= MOST_RESULTS));
    }
}
