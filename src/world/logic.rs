//! The game's logic in a world, and what a region of a server would be helped with by its actor.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::{Event, World, WorldError, event};
use crate::scene::EntityId;
use crate::scene::messages::{
    Asker, Command, CommandError, CommandId, CommandResult, Effect, EnterCause, GroupMessage,
    Input, LogicEvent, MessageId, Recipients, SceneOrder,
};
use crate::scene::region::GameLogic;

impl World {
    /// Lets the game's logic run inside each tick from now on, with watches and everything else that it has in a
    /// region of a server. Its first event is [`LogicEvent::Started`].
    pub fn set_logic(&mut self, logic: Box<dyn GameLogic>) {
        let last_id = self.last_id.clone();
        let ids = move || Some(EntityId(last_id.fetch_add(1, Relaxed) + 1));
        self.region.set_logic(logic, Box::new(ids));
    }

    /// Gives a command as the game's logic gives it: for a teleport to another plane, a walk where moves are judged,
    /// the sight of a player, a door. What the rules refuse at the tick comes back as [`Event::OrderRefused`].
    ///
    /// # Errors
    /// There is no such entity, or the command creates or removes an entity: see [`World::add`] and
    /// [`World::remove`].
    pub fn give(&mut self, command: Command) -> Result<(), WorldError> {
        match (&command, command.entity()) {
            (Command::Spawn(_) | Command::Despawn(_) | Command::Kick(_), _) => {
                return Err(WorldError::NotByCommand);
            }
            (_, Some(id)) => self.check_id(id)?,
            (_, None) => {}
        }
        self.command(command);
        Ok(())
    }

    pub(super) fn send_group(&mut self, to: Recipients, payload: Bytes) {
        self.sent += 1;
        let id = MessageId { sender: 0, number: self.sent };
        let sent_ms = self.tick.0.saturating_mul(self.scene.tick_ms.into());
        self.handle(Input::Group(Box::new(GroupMessage { id, to, payload, sent_ms })));
    }

    /// Notes what the logic has created and removed in this tick, and tells it.
    pub(super) fn note_logic(&mut self, events: &mut Vec<Event>) {
        for event in self.region.untold() {
            match event {
                LogicEvent::Entered { id, cause: EnterCause::Spawned } => {
                    let Some(known) = self.region.known(*id).filter(|_| id.content().is_none())
                    else {
                        continue;
                    };
                    self.entities.insert(*id, (known.kind, None));
                    events.push(Event::Created { entity: *id, kind: known.kind });
                }
                LogicEvent::Left { id, cause, .. } if cause.is_final() => {
                    let left = self.entities.remove(id);
                    events.extend(left.map(|_| Event::Removed { entity: *id }));
                }
                _ => {}
            }
        }
    }

    pub(super) fn carry_out(&mut self, effect: Effect, events: &mut Vec<Event>) {
        match effect {
            Effect::Frames(batch) => {
                event::tell(&batch, events);
                self.region.recycle(batch);
            }
            Effect::Answer(_, CommandResult { id, result: Err(why) }) => {
                let at = usize::try_from(id.number).ok().and_then(|at| self.commanded.get(at));
                events.extend(at.map(|entity| Event::OrderRefused { entity: *entity, why }));
            }
            Effect::TellGroup(id, to, payload) => {
                self.send_group(to, payload);
                self.has_ended(id, Ok(()), events);
            }
            Effect::Scene(id, change) => {
                self.sent += 1;
                let order = SceneOrder::new(change, self.tick, self.sent);
                self.handle(Input::Scene(order));
                self.has_ended(id, Ok(()), events);
            }
            Effect::KeepBonds(id, ..) => self.has_ended(id, Err(CommandError::NoSubject), events),
            Effect::Forward(_, input) => self.handle(*input),
            Effect::Locate(sought) => self.region.search_elsewhere(&sought, [], &mut self.effects),
            // One region has no neighbours, and the caller is the clients.
            Effect::Answer(..)
            | Effect::Notice(..)
            | Effect::Depart(_)
            | Effect::Border(..)
            | Effect::BorderRound(..)
            | Effect::View(..)
            | Effect::Handoff(..) => {}
        }
    }

    fn has_ended(
        &mut self,
        id: CommandId,
        result: Result<(), CommandError>,
        events: &mut Vec<Event>,
    ) {
        let ended = CommandResult { id, result };
        match id.from {
            Asker::Logic(..) => self.handle(Input::CommandResult(ended)),
            Asker::Process(number) => self.carry_out(Effect::Answer(number, ended), events),
        }
    }
}
