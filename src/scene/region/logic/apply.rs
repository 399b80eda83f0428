//! What becomes of commands: applied here, sent to the region of their entity, or refused.
//!
//! The logic's own commands come from [`Region::run_logic`], those of other regions and of calls as inputs. Every
//! command has exactly one end: whoever applies or refuses it answers.

use super::super::Region;
use crate::scene::messages::{
    Bond, Command, CommandError, CommandId, Effect, Input, LeaveCause, MAX_BONDS, MAX_HOLD_MS,
    MAX_MESSAGE_BYTES, NamedBond, Notice, Order, Recipients, SceneChange, SentCommand, Sought,
    Spawn, Speaker,
};
use crate::scene::spec::{WatchSpec, watch_reach_cm, watched_twice};
use crate::scene::terrain::DoorChange;
use crate::scene::{EntityId, Kind, Plane};

/// What has become of a command that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was applied.
    Here,
    /// It is on its way, or waits for its entity: its end is told later.
    Sent,
}

impl Region {
    /// A command of another region's logic, or of a call.
    pub(in crate::scene::region) fn take_command_of_logic(
        &mut self,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) {
        let id = sent.id;
        match self.apply_command(sent, fx) {
            Ok(Applied::Here) => self.answer_command(id, Ok(()), fx),
            Ok(Applied::Sent) => {}
            Err(why) => self.answer_command(id, Err(why), fx),
        }
    }

    pub(in crate::scene::region) fn apply_command(
        &mut self,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        let Some(sent) = self.join_search(sent) else { return Ok(Applied::Sent) };
        if let Command::OfSubject(subject, _) = &sent.command {
            return self.find_player(subject.clone(), sent, fx);
        }
        match sent.command.entity() {
            Some(entity) => match self.entities.real_slot(entity) {
                Some(slot) if self.is_between_scenes(slot) => {
                    self.wait_for_entity(sent);
                    Ok(Applied::Sent)
                }
                Some(slot) => match sent.after {
                    Some(after) => {
                        self.take_entry(slot, (sent, after), fx);
                        Ok(Applied::Sent)
                    }
                    None => self.apply_to_entity(slot, sent.command, fx).map(|()| Applied::Here),
                },
                None if self.ended_takes_entry(entity, &sent) => Ok(Applied::Sent),
                None => self.apply_elsewhere(entity, sent, fx),
            },
            None => self.apply_to_region(sent.id, sent.command, fx),
        }
    }

    /// Whether the entity at `slot` is on its way to another scene, where its orders wait for it.
    pub(in crate::scene::region) fn is_between_scenes(&self, slot: u32) -> bool {
        self.entities.record(slot).plane == Plane::LIMBO && self.asleep_until(slot).is_none()
    }

    pub(super) fn wait_for_entity(&mut self, sent: SentCommand) {
        self.inbox.push(Input::Command(Box::new(sent)));
    }

    pub(in crate::scene::region) fn apply_to_entity(
        &mut self,
        slot: u32,
        command: Command,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        match command {
            _ if self.asleep_until(slot).is_some() => {
                return Err(CommandError::Unknown(self.entities.body(slot).id));
            }
            Command::Despawn(_) => self.despawn(slot, fx),
            Command::Order(_, Order::Travel(to)) => return self.travel(slot, &to, fx),
            Command::Order(_, order) => {
                return self.execute_for_logic(slot, order, fx);
            }
            Command::Motion(_, motion) => {
                return self.set_in_motion(slot, motion).map_err(CommandError::Order);
            }
            Command::Watch(_, own) => return self.set_own_watch(slot, own),
            Command::Sight(_, within_cm) => {
                self.player(slot)?;
                if let Some(real) = self.entities.real_mut(slot) {
                    real.watch.get_or_insert_default().sight_cm = within_cm;
                }
            }
            Command::Bonds(_, bonds) => {
                let own = self.check_bonds(&bonds)?;
                self.player(slot)?;
                self.set_bonds(slot, own, fx);
            }
            Command::Tell(_, payload) => {
                is_short(payload.len())?;
                self.player(slot)?;
                self.tell_player(slot, payload);
            }
            Command::Hold(_, ms) if ms > MAX_HOLD_MS => return Err(CommandError::HeldTooLong(ms)),
            Command::Hold(_, ms) => {
                self.player(slot)?;
                self.hold(slot, ms, fx);
            }
            Command::Kick(_) => {
                self.player(slot)?;
                let session = self.views.of(&self.entities, slot).and_then(|v| v.session);
                fx.extend(session.map(|session| Effect::Notice(session, Notice::Kicked)));
                self.remove_real(slot, LeaveCause::Left, fx);
            }
            Command::Spawn(_)
            | Command::TellGroup(..)
            | Command::Door(..)
            | Command::ResetPlane(_)
            | Command::OfSubject(..)
            | Command::Relate(..) => {}
        }
        Ok(())
    }

    /// The bonds in this scene, if they are legal.
    pub(super) fn check_bonds(&self, bonds: &[NamedBond]) -> Result<Vec<Bond>, CommandError> {
        if bonds.len() > MAX_BONDS {
            return Err(CommandError::TooManyBonds(bonds.len()));
        }
        let spec = &self.identity.scene().spec.bonds;
        bonds.iter().map(|bond| spec.bond(bond).ok_or(CommandError::NoBondKind)).collect()
    }

    fn execute_for_logic(
        &mut self,
        slot: u32,
        order: Order,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        self.execute(slot, order, Speaker::Logic, fx).map_err(CommandError::Order)
    }

    /// The entity at `slot` is a player.
    fn player(&self, slot: u32) -> Result<(), CommandError> {
        let is_player = self.views.of(&self.entities, slot).is_some();
        is_player.then_some(()).ok_or(CommandError::NoPlayer(self.entities.body(slot).id))
    }

    /// A command for an entity that does not live here goes to where it lives, or waits for it.
    fn apply_elsewhere(
        &mut self,
        entity: EntityId,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        if matches!(sent.command, Command::Despawn(_)) && self.inbox.cancel(entity, None).is_some()
        {
            return Ok(Applied::Here);
        }
        if self.expects(entity) {
            self.wait_for_entity(sent);
            return Ok(Applied::Sent);
        }
        match self.whereabouts(entity) {
            Some(_) if !self.may_pass_on() => Err(CommandError::Busy),
            Some(owner) => {
                fx.push(Effect::Forward(owner, Box::new(Input::Command(Box::new(sent)))));
                Ok(Applied::Sent)
            }
            None if self.custody.has_left(entity, self.identity.id()) => {
                Err(CommandError::Unknown(entity))
            }
            None => self.locate(Sought::Entity(entity), sent, fx),
        }
    }

    /// Whether an entity is about to live here, or waits here for its session.
    pub(super) fn expects(&self, id: EntityId) -> bool {
        self.inbox.is_announced(id) || self.custody.is_incoming(id) || self.is_unclaimed(id)
    }

    /// A command for no entity that exists.
    fn apply_to_region(
        &mut self,
        id: CommandId,
        command: Command,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        match command {
            Command::Spawn(spawn) if spawn.id == EntityId::NONE => return Err(CommandError::NoIds),
            Command::Spawn(spawn) => {
                self.may_spawn(&spawn)?;
                self.inbox.announce(*spawn);
                return Ok(Applied::Here);
            }
            Command::TellGroup(to, payload) => {
                is_short(payload.len())?;
                let scene = self.identity.scene();
                match &to {
                    Recipients::Plane(of, _) | Recipients::Scene(of) if *of != scene.id => {
                        return Err(CommandError::OutOfBounds);
                    }
                    Recipients::Bond(bond) if scene.spec.bonds.bond(bond).is_none() => {
                        return Err(CommandError::NoBondKind);
                    }
                    _ => {}
                }
                fx.push(Effect::TellGroup(id, to, payload));
            }
            Command::Door(plane, ref name, open) => {
                let terrain = self.identity.scene().terrain.as_ref();
                let door = terrain.and_then(|terrain| terrain.door_named(name).ok());
                let door = door.ok_or(CommandError::NoDoor)?;
                self.order_doors(id, plane, DoorChange::Set { door, open }, fx)?;
            }
            Command::ResetPlane(plane) if plane == Plane::LIMBO => {
                return Err(CommandError::OutOfBounds);
            }
            Command::ResetPlane(plane) => {
                fx.push(Effect::Scene(id, SceneChange::Doors(plane, DoorChange::Reset)));
            }
            Command::Relate(_, [a, b], _) if a == b => return Err(CommandError::OneGroup),
            Command::Relate(kind, groups, relation) => {
                let class = self.identity.scene().spec.bonds.class_of(&kind);
                let class = class.ok_or(CommandError::NoBondKind)?;
                if !self.entities.relations().has_room_for(class, groups) {
                    return Err(CommandError::TooManyRelations);
                }
                fx.push(Effect::Scene(id, SceneChange::Relation(class, groups, relation)));
            }
            Command::Despawn(_)
            | Command::Order(..)
            | Command::Motion(..)
            | Command::Watch(..)
            | Command::Sight(..)
            | Command::Bonds(..)
            | Command::Tell(..)
            | Command::Hold(..)
            | Command::OfSubject(..)
            | Command::Kick(_) => {}
        }
        Ok(Applied::Sent)
    }

    fn order_doors(
        &self,
        id: CommandId,
        plane: Plane,
        change: DoorChange,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        if plane == Plane::LIMBO || self.identity.scene().terrain.is_none() {
            return Err(CommandError::NoDoor);
        }
        fx.push(Effect::Scene(id, SceneChange::Doors(plane, change)));
        Ok(())
    }

    pub(in crate::scene::region) fn may_spawn(&self, spawn: &Spawn) -> Result<(), CommandError> {
        let scene = self.identity.scene();
        if !self.entities.has_kind(spawn.kind) {
            return Err(CommandError::UnknownKind(spawn.kind));
        }
        if self.entities.slot(spawn.id).is_some() || self.inbox.is_announced(spawn.id) {
            return Err(CommandError::InUse(spawn.id));
        }
        if spawn.plane == Plane::LIMBO || !scene.contains(spawn.pos) {
            return Err(CommandError::OutOfBounds);
        }
        self.may_have(spawn).then_some(()).ok_or(CommandError::Properties)
    }

    fn set_own_watch(&mut self, slot: u32, own: Vec<WatchSpec>) -> Result<(), CommandError> {
        let (id, kind) = (self.entities.body(slot).id, self.entities.body(slot).kind);
        let spec = &self.identity.scene().spec;
        let kinds = spec.kinds.len();
        if spec.kinds.get(usize::from(kind.0)).is_none_or(|kind| kind.watch.is_empty()) {
            return Err(CommandError::WatchesNot(id));
        }
        let most_cm = watch_reach_cm(spec);
        let mut named = own.iter().flat_map(|watch| &watch.kinds);
        if let Some(unknown) = named.find(|kind| usize::from(**kind) >= kinds) {
            return Err(CommandError::UnknownKind(Kind(*unknown)));
        }
        if let Some(twice) = watched_twice(&own) {
            return Err(CommandError::WatchedTwice(Kind(twice)));
        }
        if own.iter().any(|watch| !watch.is_ordered() || watch.leave_cm > most_cm) {
            return Err(CommandError::WatchRadius { most_cm });
        }
        let own = own.into_iter().filter(|watch| !watch.kinds.is_empty()).collect();
        if let Some(real) = self.entities.real_mut(slot) {
            real.watch.get_or_insert_default().own = Some(own);
        }
        Ok(())
    }
}

fn is_short(bytes: usize) -> Result<(), CommandError> {
    (bytes <= MAX_MESSAGE_BYTES).then_some(()).ok_or(CommandError::TooLong(bytes))
}
