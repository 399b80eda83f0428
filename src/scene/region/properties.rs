//! Actions, properties and facings: inputs of clients, at the pace that clients may have, and of game
//! logic; and bonds that change.

use super::Region;
use crate::scene::messages::{EntityAction, MAX_ACTION_BYTES, Refusal, SetProperty, Speaker};
use crate::scene::properties::{Audience, Properties, PropertyRefusal};
use crate::scene::{Epoch, Facing, TickStamp};

impl Region {
    /// Gives a property of the entity at `slot` a value.
    pub(super) fn set_property(
        &mut self,
        slot: u32,
        SetProperty { id, value }: SetProperty,
        by: Speaker,
    ) -> Result<(), Refusal> {
        let (kind, tick) = (self.entities.body(slot).kind, self.clock.tick());
        let unknown = Refusal::Property(PropertyRefusal::Unknown(id));
        let scene = self.identity.scene();
        let schema = scene.schema(kind).ok_or(unknown)?;
        let legal = match by {
            Speaker::Logic => schema.check(id, &value),
            Speaker::Client => schema.check_owner(id, &value),
        };
        legal.map_err(Refusal::Property)?;
        let viewer = self.views.of_mut(&self.entities, slot).filter(|_| by == Speaker::Client);
        let (most, bytes) = (&scene.spec.pace, value.bytes().len());
        if viewer.is_some_and(|viewer| !viewer.pace.set(tick, scene.tick_ms, most, bytes)) {
            return Err(Refusal::Property(PropertyRefusal::TooOften));
        }
        let set = self.entities.set_property(slot, id, value, TickStamp::of(tick));
        set.map_err(Refusal::Property)
    }

    /// The entity at `slot` acts: its viewers are told in this tick.
    pub(super) fn act(
        &mut self,
        slot: u32,
        content: EntityAction,
        by: Speaker,
    ) -> Result<(), Refusal> {
        let bytes = content.payload.len();
        if bytes > MAX_ACTION_BYTES {
            return Err(Refusal::TooLong);
        }
        let (tick, scene) = (self.clock.tick(), self.identity.scene());
        let viewer = self.views.of_mut(&self.entities, slot).filter(|_| by == Speaker::Client);
        let (tick_ms, most) = (scene.tick_ms, &scene.spec.pace);
        if viewer.is_some_and(|viewer| !viewer.pace.act(tick, tick_ms, most, bytes)) {
            return Err(Refusal::TooOften);
        }
        self.note_action(slot, EntityAction { by, ..content }, true, tick);
        Ok(())
    }

    /// Turns the entity at `slot`.
    pub(super) fn face(&mut self, slot: u32, facing: Facing, by: Speaker) -> Result<(), Refusal> {
        let (tick, tick_ms) = (self.clock.tick(), self.identity.scene().tick_ms);
        let viewer = self.views.of_mut(&self.entities, slot);
        if by == Speaker::Client && viewer.is_some_and(|v| !v.pace.turn(tick, tick_ms)) {
            return Err(Refusal::TooOften);
        }
        let turns = self.entities.set_facing(slot, facing, TickStamp::of(tick));
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.turned |= turns && by == Speaker::Logic;
        }
        Ok(())
    }

    /// Takes what another region, or a session, says of the properties of the entity at `slot`, under this epoch:
    /// what is newer, or all that a later life of the entity has.
    pub(super) fn take_properties(&mut self, slot: u32, epoch: Epoch, levels: &Properties) {
        // The frames of the open tick are still to be made, those of a closed one are not.
        let at = TickStamp::of(self.clock.next_frame());
        match self.entities.record(slot).epoch.is_of_a_life_before(epoch) {
            true => self.entities.replace_properties(slot, levels, at),
            false => self.entities.merge_properties(slot, levels, at),
        }
    }

    /// The bonds of the entity at `slot` have changed: other players may see what only bonded ones see of it,
    /// and it may see that of others.
    pub(super) fn bonds_changed(&mut self, slot: u32, at: TickStamp) {
        let Some(schema) = self.identity.scene().schema(self.entities.body(slot).kind) else {
            return;
        };
        let is_bonded = |id| schema.audience(id) == Audience::Bonded;
        self.entities.tell_properties_again(slot, at, is_bonded);
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.bonds_changed = true;
        }
    }
}
