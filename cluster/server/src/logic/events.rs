//! What a region tells, in the words of the protocol.

use std::sync::Arc;

use purview::scene::messages::{EnterCause, LeaveCause, LogicEvent, Speaker};
use purview::scene::properties::Level;
use purview::scene::region::{Changed, Known};
use purview::scene::views::Bond;
use purview::scene::{EntityId, Plane, Pos, Region, Scene};

use super::proto::{
    Acted, Arrived, Bond as ToldBond, Changed as ChangedProperties, Disconnected, Entered, Entity,
    Event, Events, Kind, Left, Lost, Position, Property, Resumed, Sighted, event,
};

/// A position.
pub fn position(pos: Pos) -> Option<Position> {
    Some(Position { x: pos.x, y: pos.y, z: pos.z })
}

fn property(level: &Level) -> Property {
    Property { id: level.id.0.into(), value: level.value.bytes().clone(), version: level.version }
}

/// An entity that a region knows, as one worker is told of it.
pub fn entity(region: &Region, known: &Known<'_>, source: u64) -> Entity {
    let Known { id, kind, plane, pos, facing, is_real, properties, bonds, .. } = *known;
    let bond = |bond: &Bond| ToldBond { class: bond.class.into(), group: bond.group };
    Entity {
        id: id.0,
        kind: kind.0.into(),
        plane: plane.0,
        position: position(pos),
        facing: facing.0.into(),
        properties: properties.levels().iter().map(property).collect(),
        sighted: region.sighted_by(id).iter().map(|id| id.0).collect(),
        applied: region.last_number(id, source),
        ghost: !is_real,
        bonds: bonds.iter().map(bond).collect(),
    }
}

/// The kinds of a scene.
pub fn kinds(scene: &Arc<Scene>) -> Vec<Kind> {
    let kind = |kind: &purview::scene::spec::KindSpec| {
        let names = kind.properties.iter().map(|property| property.name.clone());
        Kind {
            name: kind.name.clone(),
            property_names: names.collect(),
            property_ids: kind.properties.iter().map(|property| property.id.0.into()).collect(),
        }
    };
    scene.spec.kinds.iter().map(kind).collect()
}

/// An action, with where its entity is.
pub fn acted(region: &Region, event: &LogicEvent) -> Option<Acted> {
    let LogicEvent::Acted { id, by, payload, aim } = event else { return None };
    let place = region.known(*id).map(|entity| (entity.plane, entity.pos));
    let (plane, pos) = place.unwrap_or((Plane(0), Pos::ground(0, 0)));
    Some(Acted {
        entity: id.0,
        by_logic: *by == Speaker::Logic,
        payload: payload.clone(),
        aim: aim.map_or(0, |aim| aim.0),
        plane: plane.0,
        position: position(pos),
    })
}

fn enter_cause(cause: EnterCause) -> (super::proto::EnterCause, Option<u32>) {
    use super::proto::EnterCause as Cause;
    match cause {
        EnterCause::Spawned => (Cause::Spawned, None),
        EnterCause::Joined => (Cause::Joined, None),
        EnterCause::HandedOff(from, _) => (Cause::HandedOff, Some(from.0)),
        EnterCause::Teleported(from, _) => (Cause::Teleported, Some(from.0)),
        EnterCause::Recovered => (Cause::Recovered, None),
    }
}

fn leave_cause(cause: LeaveCause) -> (super::proto::LeaveCause, Option<u32>) {
    use super::proto::LeaveCause as Cause;
    match cause {
        LeaveCause::Despawned => (Cause::Despawned, None),
        LeaveCause::Left => (Cause::Left, None),
        LeaveCause::Expired => (Cause::Expired, None),
        LeaveCause::HandedOff(to) => (Cause::HandedOff, Some(to.0)),
        LeaveCause::Displaced => (Cause::Displaced, None),
    }
}

/// An event as a worker is told of it; `None`: it is not one of those, or concerns an entity that is gone again.
pub fn told(region: &Region, event: &LogicEvent, source: u64) -> Option<event::Event> {
    let known = |id: EntityId| Some(entity(region, &region.known(id)?, source));
    Some(match *event {
        LogicEvent::Entered { id, cause } => {
            let (cause, from) = enter_cause(cause);
            event::Event::Entered(Entered { entity: Some(known(id)?), cause: cause.into(), from })
        }
        LogicEvent::Arrived { id } => event::Event::Arrived(Arrived { entity: Some(known(id)?) }),
        LogicEvent::Left { id, kind, place: (plane, pos), cause } => {
            let (cause, to) = leave_cause(cause);
            event::Event::Left(Left {
                entity: id.0,
                kind: kind.0.into(),
                plane: plane.0,
                position: position(pos),
                cause: cause.into(),
                to,
            })
        }
        LogicEvent::Sighted { watcher, id } => {
            event::Event::Sighted(Sighted { watcher: watcher.0, entity: Some(known(id)?) })
        }
        LogicEvent::Lost { watcher, id } => {
            event::Event::Lost(Lost { watcher: watcher.0, entity: id.0 })
        }
        LogicEvent::Acted { .. } => event::Event::Acted(acted(region, event)?),
        LogicEvent::Disconnected { id } => {
            event::Event::Disconnected(Disconnected { entity: id.0 })
        }
        LogicEvent::Resumed { id } => event::Event::Resumed(Resumed { entity: id.0 }),
        _ => return None,
    })
}

/// The entity that an event is about; `None`: it is about none of the region's.
pub fn subject(event: &LogicEvent) -> Option<EntityId> {
    match event {
        LogicEvent::Entered { id, .. }
        | LogicEvent::Arrived { id }
        | LogicEvent::Left { id, .. }
        | LogicEvent::Acted { id, .. }
        | LogicEvent::Disconnected { id }
        | LogicEvent::Resumed { id } => Some(*id),
        LogicEvent::Sighted { watcher, .. } | LogicEvent::Lost { watcher, .. } => Some(*watcher),
        _ => None,
    }
}

/// Adds an event to those of a tick.
pub fn add(events: &mut Events, event: event::Event) {
    events.events.push(Event { event: Some(event) });
}

/// Adds what has changed to the events of a tick.
pub fn add_change(events: &mut Events, changed: Changed<'_>) {
    match changed {
        Changed::Place(id, pos) => {
            events.moved.push(id.0);
            events.x.push(pos.x);
            events.y.push(pos.y);
            events.z.push(pos.z);
        }
        Changed::Property(id, level) => match events.changed.last_mut() {
            Some(last) if last.entity == id.0 => last.properties.push(property(level)),
            _ => {
                let properties = vec![property(level)];
                events.changed.push(ChangedProperties { entity: id.0, properties });
            }
        },
    }
}

/// About how many bytes of events a response has.
const PART_BYTES: usize = 1 << 20;

/// Most positions in a part.
const PART_POSITIONS: usize = 32_768;

/// The events of a tick in responses that are not too long.
pub fn parts(mut told: Events) -> Vec<Events> {
    if prost::Message::encoded_len(&told) <= PART_BYTES {
        return vec![told];
    }
    let Events { region, epoch, lease, tick, .. } = told;
    let empty = || Events { region, epoch, lease, tick, more: true, ..Events::default() };
    let mut parts = vec![empty()];
    let mut bytes = 0;
    let mut part = |parts: &mut Vec<Events>, more: usize| {
        if bytes >= PART_BYTES {
            parts.push(empty());
            bytes = 0;
        }
        bytes += more;
    };
    for event in std::mem::take(&mut told.events) {
        part(&mut parts, prost::Message::encoded_len(&event));
        parts.iter_mut().last().into_iter().for_each(|part| part.events.push(event.clone()));
    }
    for changed in std::mem::take(&mut told.changed) {
        part(&mut parts, prost::Message::encoded_len(&changed));
        parts.iter_mut().last().into_iter().for_each(|part| part.changed.push(changed.clone()));
    }
    while !told.moved.is_empty() {
        let some = ..told.moved.len().min(PART_POSITIONS);
        parts.push(Events {
            moved: told.moved.drain(some).collect(),
            x: told.x.drain(some).collect(),
            y: told.y.drain(some).collect(),
            z: told.z.drain(some).collect(),
            ..empty()
        });
    }
    parts.iter_mut().last().into_iter().for_each(|part| part.more = false);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_with_much_to_tell_comes_in_parts_of_which_the_last_says_so() {
        let mut told = Events { tick: 9, ..Events::default() };
        let act = |n: u64| {
            let payload = bytes::Bytes::from(vec![7; 1_000]);
            event::Event::Acted(Acted { entity: n, payload, ..Acted::default() })
        };
        (0..3_000).for_each(|n| add(&mut told, act(n)));
        (0..70_000)
            .for_each(|n| add_change(&mut told, Changed::Place(EntityId(n), Pos::ground(1, 2))));
        let parts = parts(told.clone());
        assert!(parts.iter().all(|part| prost::Message::encoded_len(part) < 2 << 20));
        let more: Vec<bool> = parts.iter().map(|part| part.more).collect();
        assert_eq!(more.iter().filter(|more| !**more).count(), 1);
        assert_eq!(more.last(), Some(&false));
        let events: Vec<Event> = parts.iter().flat_map(|part| part.events.clone()).collect();
        assert_eq!(events, told.events);
        let moved: Vec<u64> = parts.iter().flat_map(|part| part.moved.clone()).collect();
        assert_eq!(moved, told.moved);
    }
}
