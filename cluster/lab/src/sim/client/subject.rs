//! Clients that share a subject. Each raises the value of its player, whoever has raised it before, and
//! tells the judge what the value was when it began.

use purview::scene::EntityId;
use purview::scene::properties::{PropertyId, PropertySpec, Value, Writer};
use purview::wire::{CloseCode, Frame};
use purview_client::ClientError;

use super::Walker;
use super::life::{End, Life};
use crate::sim::Logic;

const CLIENTS: u32 = 3;

/// Inputs between two changes of the value.
const RAISE_EVERY: u32 = 4;

const VALUE: PropertyId = PropertyId(1);

pub(in crate::sim) fn value_property() -> PropertySpec {
    PropertySpec { persist: true, writer: Writer::Owner, ..PropertySpec::new(VALUE.0, "value") }
}

impl Walker {
    pub(super) fn shares(&self) -> bool {
        self.ground.logic.is_some_and(Logic::shares_subjects)
    }

    pub(super) fn subject(&self) -> u32 {
        if self.shares() { self.number / CLIENTS } else { self.number }
    }

    pub(super) async fn raise(&self, life: &mut Life) -> Result<(), End> {
        let Some(told) = life.value.told.filter(|_| self.shares() && !life.leaves) else {
            return Ok(());
        };
        life.value.inputs += 1;
        if !life.value.inputs.is_multiple_of(RAISE_EVERY) || self.will().is_to_stand() {
            return Ok(());
        }
        let Ok(value) = Value::of(&(told + 1)) else { return Ok(()) };
        match life.player.set(VALUE, value).await {
            Ok(seq) => {
                self.ground.judge.said(life.id, seq, (life.floor, life.pos), false);
                Ok(())
            }
            Err(ClientError::Behind(_)) => Ok(()),
            Err(error) => Err(End::Lost(error)),
        }
    }

    pub(super) fn read_value(&self, life: &mut Life, frame: &Frame) {
        if !self.shares() {
            return;
        }
        let told = value_in(life.id, frame);
        let begins = life.value.told.is_none();
        if let Some(value) = told.or(begins.then_some(0)) {
            life.value.told = Some(value);
            let told = (frame.tick, value);
            self.ground.judge.value_told(self.subject(), life.id, told, begins);
        }
    }

    /// The client was told that its player has left, or that it will when its linger time is over: then its value is
    /// not stored yet.
    pub(super) fn has_left(&self, life: &Life) {
        if self.ground.logic == Some(Logic::Linger) {
            return self.ground.judge.lingers(self.subject(), life.id);
        }
        if let Some(value) = life.value.told.filter(|_| self.shares()) {
            self.ground.judge.value_stored(self.subject(), value);
        }
    }

    /// Whether the player has another client by now, which has logged in as the same subject.
    pub(super) fn is_taken_over(&self, life: &Life) -> bool {
        self.shares() && !self.ground.judge.is_current(life.id, life.number)
    }

    /// Whether another session of the subject has ended this one.
    pub(super) fn gives_way(&self, error: &ClientError) -> bool {
        let replaced = match error {
            ClientError::Closed { code, .. } => *code == Some(CloseCode::Replaced),
            ClientError::Refused(_) => true,
            _ => false,
        };
        self.shares() && replaced
    }
}

fn value_in(id: EntityId, frame: &Frame) -> Option<u64> {
    let own = frame.properties.iter().filter(|update| update.entity == id && update.id == VALUE);
    own.last().and_then(|update| update.value.read().ok())
}
