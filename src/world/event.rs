//! What a tick of a world tells the players' clients, as events.

use bytes::Bytes;

use crate::scene::messages::{
    CommandError, Entering, FrameBatch, LogicMessage, MessageKind, Moving, PropertyUpdate, Refusal,
    TrajectoryUpdate,
};
use crate::scene::movement::{Own, Trajectory};
use crate::scene::properties::{PropertyId, Value};
use crate::scene::{EntityId, Facing, Kind, Pos, Seq};

/// What a viewer has to know after a tick. Only players view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The viewer begins to see the subject.
    Entered {
        /// The player that sees.
        viewer: EntityId,
        /// The entity that is seen.
        subject: EntityId,
    },
    /// The viewer no longer sees the subject.
    Left {
        /// The player that saw.
        viewer: EntityId,
        /// The entity that was seen.
        subject: EntityId,
    },
    /// The subject is at another position. Told at the rate of the ring in which the viewer sees it.
    Moved {
        /// The player that sees.
        viewer: EntityId,
        /// The entity that moved.
        subject: EntityId,
        /// Its position.
        pos: Pos,
    },
    /// The subject walks, or has stopped, where moves are judged: told once, until its next trajectory, and when a
    /// viewer begins to see it.
    Walks {
        /// The player that sees.
        viewer: EntityId,
        /// The entity that walks.
        subject: EntityId,
        /// Where it is at any time from now on.
        trajectory: Trajectory,
        /// The way it faces.
        facing: Facing,
    },
    /// A player's own movement, where moves are judged: its client follows it if the number of the correction is new.
    Own {
        /// The player.
        player: EntityId,
        /// Its movement.
        own: Box<Own>,
    },
    /// The subject faces another way, and did no more. Told as moves are.
    Turned {
        /// The player that sees.
        viewer: EntityId,
        /// The entity that turned.
        subject: EntityId,
        /// The way it faces.
        facing: Facing,
    },
    /// A property of the subject has a value that the viewer is to be told: of another entity, or of the
    /// viewer itself.
    Property {
        /// The player that is told.
        viewer: EntityId,
        /// The entity whose property it is.
        subject: EntityId,
        /// The property.
        id: PropertyId,
        /// The value.
        value: Value,
    },
    /// A message for the client of a player.
    Told {
        /// The player.
        player: EntityId,
        /// How it came.
        kind: MessageKind,
        /// What it says.
        payload: Bytes,
    },
    /// The subject did something.
    Acted {
        /// The player that sees.
        viewer: EntityId,
        /// The entity that acted.
        subject: EntityId,
        /// The payload of the action.
        payload: Bytes,
    },
    /// An input of the player's client was refused when it was applied, and changed nothing.
    Refused {
        /// The player.
        player: EntityId,
        /// The number of the input.
        seq: Seq,
        /// The reason.
        why: Refusal,
    },
    /// The logic has created an entity.
    Created {
        /// The entity.
        entity: EntityId,
        /// Its kind.
        kind: Kind,
    },
    /// The logic has removed an entity, or has ended a player's session.
    Removed {
        /// The entity.
        entity: EntityId,
    },
    /// A call could not be carried out at the tick, and changed nothing.
    OrderRefused {
        /// The entity; `None`: the command was for the scene.
        entity: Option<EntityId>,
        /// The reason.
        why: CommandError,
    },
}

/// The frames of a tick as events.
pub(super) fn tell(batch: &FrameBatch, events: &mut Vec<Event>) {
    for frame in &batch.sessions {
        let viewer = EntityId(frame.session.0);
        let [enters, moves, walks, turns, acts, properties, _] = batch.refs_of(frame);
        let left = batch.leaves_of(frame).iter();
        events.extend(left.map(|subject| Event::Left { viewer, subject: *subject }));
        for i in enters {
            let Entering { id: subject, trajectory, facing, .. } = batch.entering[*i as usize];
            events.push(Event::Entered { viewer, subject });
            let walks = |trajectory| Event::Walks { viewer, subject, trajectory, facing };
            events.extend(trajectory.map(walks));
        }
        events.extend(walks.iter().map(|i| {
            let TrajectoryUpdate { id: subject, trajectory, facing, .. } =
                batch.trajectories[*i as usize];
            Event::Walks { viewer, subject, trajectory, facing }
        }));
        let own = batch.own_of(frame).map(|own| Box::new(*own));
        events.extend(own.map(|own| Event::Own { player: viewer, own }));
        events.extend(moves.iter().map(|i| {
            let Moving { id: subject, pos, .. } = batch.moving[*i as usize];
            Event::Moved { viewer, subject, pos }
        }));
        events.extend(acts.iter().map(|i| {
            let (subject, payload, _) = batch.acting[*i as usize].clone();
            Event::Acted { viewer, subject, payload }
        }));
        events.extend(turns.iter().map(|i| {
            let (subject, facing) = batch.turning[*i as usize];
            Event::Turned { viewer, subject, facing }
        }));
        events.extend(properties.iter().map(|i| {
            let PropertyUpdate { entity: subject, id, value, .. } =
                batch.properties[*i as usize].clone();
            Event::Property { viewer, subject, id, value }
        }));
        events.extend(
            batch.told_of(frame).iter().cloned().map(|LogicMessage { kind, payload }| {
                Event::Told { player: viewer, kind, payload }
            }),
        );
        events.extend(batch.refused_of(frame).iter().map(|refused| Event::Refused {
            player: viewer,
            seq: refused.seq,
            why: refused.why,
        }));
    }
}
