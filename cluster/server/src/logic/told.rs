//! What a region tells, in the words of the protocol.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use purview::scene::messages::{CommandError, LogicEvent, Refusal, Speaker};
use purview::scene::properties::Level;
use purview::scene::region::{Changed, Known};
use purview::scene::{Account, Plane, Pos, Region, Scene};

use super::planes::PlaneError;
use super::proto::{
    Acted, Bond as ToldBond, Changed as ChangedProperties, Entity, Kind, Position, Property,
    Reason, Response, Told, response,
};

pub fn encode(message: response::Message) -> Bytes {
    Response { message: Some(message) }.encode_to_vec().into()
}

/// The response whose message is a [`Told`], encoded in pieces that are put together.
pub fn encode_told(told: &Told, pieces: &[Bytes]) -> Bytes {
    let len = told.encoded_len() + pieces.iter().map(Bytes::len).sum::<usize>();
    let mut response = Vec::with_capacity(len + 11);
    // Field 2, a message.
    response.push(2 << 3 | 2);
    prost::encoding::encode_varint(len as u64, &mut response);
    told.encode_raw(&mut response);
    pieces.iter().for_each(|piece| response.extend_from_slice(piece));
    response.into()
}

pub fn position(pos: Pos) -> Option<Position> {
    Some(Position { x: pos.x, y: pos.y, z: pos.z })
}

fn property(level: &Level) -> Property {
    Property { id: level.id.0.into(), value: level.value.bytes().clone(), version: level.version }
}

pub fn entity(region: &Region, known: &Known<'_>) -> Entity {
    let Known { id, epoch, kind, plane, pos, facing, is_real, properties, bonds, .. } = *known;
    let bond = |(kind, group): (&str, u64)| ToldBond { kind: kind.to_owned(), group };
    Entity {
        id: id.0,
        kind: kind.0.into(),
        plane: plane.0,
        position: position(pos),
        facing: facing.0.into(),
        properties: properties.levels().iter().map(property).collect(),
        sighted: region.sighted_by(id).iter().map(|id| id.0).collect(),
        epoch: epoch.0,
        ghost: !is_real,
        bonds: bonds.iter().map(bond).collect(),
        disconnected: known.is_disconnected,
        subject: known.account.map_or("", Account::subject).to_owned(),
        claims: known.account.map(Account::claims).unwrap_or_default(),
        name: region.content_name(id).unwrap_or_default().to_owned(),
    }
}

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

pub fn changed(told: &mut Told, changed: Changed<'_>) {
    match changed {
        Changed::Place(id, pos) => {
            told.moved.push(id.0);
            told.x.push(pos.x);
            told.y.push(pos.y);
            told.z.push(pos.z);
        }
        Changed::Property(id, level) => match told.changed.last_mut() {
            Some(last) if last.entity == id.0 => last.properties.push(property(level)),
            _ => {
                let properties = vec![property(level)];
                told.changed.push(ChangedProperties { entity: id.0, properties });
            }
        },
    }
}

pub fn reason(why: &CommandError) -> Reason {
    match why {
        CommandError::Unknown(_) => Reason::UnknownEntity,
        CommandError::InUse(_) => Reason::InUse,
        CommandError::UnknownKind(_) => Reason::Kind,
        CommandError::OutOfBounds => Reason::OutOfBounds,
        CommandError::Properties => Reason::Property,
        CommandError::WatchesNot(_)
        | CommandError::WatchedTwice(_)
        | CommandError::WatchRadius { .. } => Reason::Watch,
        CommandError::NoPlayer(_) | CommandError::NoSubject => Reason::NoPlayer,
        CommandError::NotBySubject => Reason::NotOfEntity,
        CommandError::TooLong(_) | CommandError::TooManyBonds(_) | CommandError::HeldTooLong(_) => {
            Reason::TooLong
        }
        CommandError::NotAsTold(_) => Reason::NotAsTold,
        CommandError::NotTogether => Reason::NotTogether,
        CommandError::NoDoor => Reason::Door,
        CommandError::NoPlace => Reason::OutOfBounds,
        CommandError::NoBondKind | CommandError::OneGroup | CommandError::TooManyRelations => {
            Reason::Bond
        }
        CommandError::NoIds
        | CommandError::Busy
        | CommandError::Missed
        | CommandError::Unanswered => Reason::Busy,
        CommandError::Order(refusal) => match refusal {
            Refusal::OutOfBounds => Reason::OutOfBounds,
            Refusal::TooLong => Reason::TooLong,
            Refusal::Busy | Refusal::TooOften => Reason::Busy,
            Refusal::WrongForm | Refusal::Move(_) => Reason::Movement,
            Refusal::Property(_) => Reason::Property,
        },
    }
}

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
    fn pieces_that_are_put_together_are_one_message() {
        let entity =
            |id| Told { entities: vec![Entity { id, ..Entity::default() }], ..Told::default() };
        let pieces: Vec<Bytes> = (1..4).map(|id| entity(id).encode_to_vec().into()).collect();
        let head = Told { seq: 9, more: true, ..Told::default() };
        let response = Response::decode(encode_told(&head, &pieces)).unwrap();
        let Some(response::Message::Told(told)) = response.message else { panic!("{response:?}") };
        let ids: Vec<u64> = told.entities.iter().map(|entity| entity.id).collect();
        assert_eq!((told.seq, told.more, ids), (9, true, vec![1, 2, 3]));
    }
}
