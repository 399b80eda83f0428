//! What a client is told, and what the judge hears of it.

use purview::scene::Kind;
use purview::scene::movement::ServerMs;
use purview::wire::Frame;
use purview::wire::client::Joined;
use purview_client::{ClientError, Event};

use super::super::journal::What;
use super::super::judge::Invariant;
use super::super::{Logic, portals};
use super::Walker;
use super::life::{End, Life};

impl Walker {
    pub(super) fn receive(&self, life: &mut Life, event: Event) -> Result<(), End> {
        let (id, judge, journal) = (life.id, &self.ground.judge, &self.ground.journal);
        match event {
            Event::Frame(frame) => {
                if let Err(error) = life.view.apply(&frame) {
                    judge.violated(Invariant::ViewSound, vec![id], format!("{id}: {error}"));
                    return Err(End::Broken);
                }
                if let Some(feet) = &mut life.feet {
                    feet.frame(self.clock(), &frame);
                    // Every other client does not look where it goes.
                    if self.number.is_multiple_of(2) {
                        feet.sees(&life.view);
                    }
                }
                self.read_value(life, &frame);
                // The judge compares only views of players.
                self.look_for_secrets(id, &frame);
                let seen = |id| life.view.get(id).filter(|seen| seen.kind == Kind::PLAYER);
                let at = |id| Some((id, seen(id)?.position(ServerMs(0))));
                let enters = frame.enters.iter().map(|entered| entered.id);
                let moves = frame.moves.iter().map(|moved| moved.id);
                let trajectories = frame.trajectories.iter().map(|update| update.id());
                self.tell_things(life, &frame);
                judge.shown(id, &frame, enters.chain(moves).chain(trajectories).filter_map(at));
                if !frame.enters.is_empty() || !frame.leaves.is_empty() || frame.resync {
                    journal.note(What::Shown {
                        id,
                        tick: frame.tick,
                        epoch: frame.epoch,
                        ack: frame.ack,
                        resync: frame.resync,
                        enters: frame.enters.iter().map(|entered| entered.id).collect(),
                        leaves: frame.leaves,
                    });
                }
                Ok(())
            }
            Event::Resumed(joined) => self.back(life, &joined),
            Event::Left(_) => {
                self.has_left(life);
                Err(End::Left)
            }
            Event::Closed { .. } if life.leaves => Err(End::Left),
            Event::Closed { code, detail } => Err(End::Lost(ClientError::Closed { code, detail })),
            Event::Joined(joined) => {
                let asked = life.teleporting.take().is_some();
                self.lands(life, &joined);
                if !asked {
                    self.is_put(life, &joined);
                }
                Ok(())
            }
            Event::Pong(_) | Event::Lines(_) => Ok(()),
            Event::Unconfirmed(told) => {
                judge.unconfirmed(id, life.acts_of(told.first, told.last));
                Ok(())
            }
            Event::Refused(refused) => {
                let text =
                    format!("{id}: input refused with {:?}: {}", refused.code, refused.detail);
                judge.violated(Invariant::InputOrder, vec![id], text);
                Err(End::Broken)
            }
        }
    }

    /// Tells the judge which things the client is shown, where logic limits sights.
    fn tell_things(&self, life: &Life, frame: &Frame) {
        if self.ground.logic == Some(Logic::Sights) {
            let things = life.view.iter().filter(|(_, seen)| seen.kind != Kind::PLAYER);
            let things = things.map(|(id, _)| id).collect();
            self.ground.judge.things_shown(life.id, (frame.epoch, frame.tick), things);
        }
    }

    /// Where moves are judged, the client takes the position that the server tells.
    fn lands(&self, life: &mut Life, joined: &Joined) {
        if let Some(feet) = &mut life.feet {
            feet.joined(self.clock(), joined);
        }
    }

    /// The rules have put the player elsewhere, and its later moves lead on from there.
    fn is_put(&self, life: &mut Life, joined: &Joined) {
        life.floor = self.ground.floor_of(joined);
        if life.moved <= joined.ack {
            life.pos = joined.pos;
        }
        self.ground.judge.put_by_rules(life.id, (life.floor, life.pos));
    }

    fn back(&self, life: &mut Life, joined: &Joined) -> Result<(), End> {
        let (id, judge) = (life.id, &self.ground.judge);
        self.ground.journal.note(What::Back(id));
        judge.resumed(id);
        self.lands(life, joined);
        if joined.id != id {
            let text = format!("{id} has resumed as {}", joined.id);
            judge.violated(Invariant::ClientStays, vec![id, joined.id], text);
            return Err(End::Broken);
        }
        if joined.ack < life.view.ack() {
            let (now, before) = (joined.ack, life.view.ack());
            let text =
                format!("{id} has resumed with input {now} applied, but {before} was acknowledged");
            judge.violated(Invariant::AckHolds, vec![id], text);
        }
        life.teleporting = life.teleporting.filter(|(teleport, _)| *teleport > joined.ack);
        // The region crashed while no session knew the position. The player stands where the checkpoint has it, or
        // where its later inputs lead from there.
        let since = life.silent().unwrap_or(life.received);
        let recovered = judge.is_recovered(id, since.elapsed());
        // A repeated teleport may lead to a plane or a scene, or stay where it is.
        let here = self.ground.floor_of(joined);
        let floor = life.teleporting.map_or(here, |(_, target)| target.from(here));
        if life.floor != floor && self.has_portals() && portals::leads_to(joined.pos) {
            // While its client was away it has walked on, into a portal.
            self.is_put(life, joined);
            return Ok(());
        }
        if life.floor != floor && !recovered {
            let text = format!("{id} has resumed on {here:?}, not on {:?}", life.floor);
            judge.violated(Invariant::AckHolds, vec![id], text);
        }
        if recovered {
            life.floor = floor;
            life.pos = if life.moved <= joined.ack { joined.pos } else { life.pos };
            judge.placed(id, (life.floor, life.pos));
        }
        Ok(())
    }
}
