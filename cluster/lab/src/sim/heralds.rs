//! The logic of runs with `--logic messages`: each region tells players anywhere, bonds, planes and the scene numbered
//! messages. The judge compares what clients receive: see `judge/messages.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{EnterCause, LogicEvent, Recipients};
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::views::Relation;
use purview::scene::{EntityId, Kind, Plane, Region};

use super::judge::Eye;
use super::messages::{Herald, Sender, To, bond_of, group};
use crate::game::each_region;
use crate::rng::Rng;

/// Makes the logic of the regions of a simulated process.
pub fn heralds(eye: Arc<Eye>, seed: u64) -> Arc<dyn LogicFactory> {
    each_region(move |_, region| {
        let rng = Rng::new(seed ^ u64::from(region.0) << 32);
        let relations = Rng::new(seed ^ u64::from(region.0 + 1) << 40);
        let (eye, asked) = (eye.clone(), BTreeMap::new());
        Some(Box::new(Sends { rng, relations, eye, sender: None, sent: 0, asked }))
    })
}

struct Sends {
    rng: Rng,
    relations: Rng,
    eye: Arc<Eye>,
    sender: Option<Sender>,
    sent: u64,
    /// Commands that give players their bonds, and for which players; whether by subject.
    asked: BTreeMap<u64, (EntityId, bool)>,
}

impl Sends {
    /// Gives a player that has come the bond of its subject, unless it has that: at once, or lets any region do so, whose
    /// game knows no more than the subject.
    fn bind(
        &mut self,
        player: Known<'_>,
        cause: Option<EnterCause>,
        region: &Region,
        commands: &mut Commands,
    ) {
        let Some(account) = player.account else { return };
        let bond = bond_of(account.subject());
        let has = player.bonds.group(&bond.kind) == Some(bond.group);
        self.eye.judge.comes(region, (player.id, &bond), has, cause);
        if !has && bond.group.is_multiple_of(2) {
            self.eye.judge.bind_by_subject(player.id, account.subject());
        } else if !has {
            // It follows a player that has just left the region.
            self.asked.insert(commands.bonds(player.id, vec![bond]), (player.id, false));
        }
    }

    /// Draws the recipients of the next message: half of the messages are for one player.
    fn draw(&mut self, region: &Region) -> Option<To> {
        let scene = region.scene_id();
        Some(match (self.rng.unit() * 6.0) as u32 {
            0 => To::Group(Recipients::Scene(scene)),
            1 => To::Group(Recipients::Plane(scene, Plane(0))),
            2 => To::Group(Recipients::Bond(group((self.rng.unit() * 8.0) as u64))),
            _ => {
                let all = self.eye.judge.players();
                To::Player(*all.get((self.rng.unit() * all.len() as f64) as usize)?)
            }
        })
    }
}

impl GameLogic for Sends {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let began = region.current_tick();
        let first = Sender { region: region.id(), epoch: region.epoch().0, began };
        let sender = *self.sender.get_or_insert(first);
        for event in events {
            match event {
                LogicEvent::Done { command } => {
                    if let Some((id, by_subject)) = self.asked.remove(command) {
                        self.eye.judge.is_bound(id, by_subject);
                    }
                }
                LogicEvent::Refused { command, .. } => {
                    self.asked.remove(command);
                    self.eye.judge.message_refused(sender, *command);
                }
                // Players that have come just before the region moved.
                LogicEvent::Started { .. } => {
                    for player in region.lives_here(Kind::PLAYER) {
                        self.bind(player, None, region, commands);
                    }
                }
                LogicEvent::Entered { id, cause } => {
                    if let Some(player) = region.known(*id) {
                        self.bind(player, Some(*cause), region, commands);
                    }
                }
                _ => {}
            }
        }
        if let Some((id, subject)) = self.eye.judge.next_to_bind() {
            let bond = bond_of(&subject);
            self.asked.insert(commands.bonds_of(&subject, vec![bond]), (id, true));
        }
        if self.eye.closed.load(Relaxed) {
            return;
        }
        if self.relations.one_in(40) {
            // Groups of this tick and region alone: no order replaces another one.
            let group = began.0 << 32 | u64::from(region.id().0);
            commands.relate("party", [group, group + (1 << 31)], Relation::Enemy);
        }
        if !self.rng.one_in(3) {
            return;
        }
        let Some(to) = self.draw(region) else { return };
        let herald = Herald { sender, number: self.sent, to };
        self.sent += 1;
        let payload = herald.payload();
        let command = match herald.to.clone() {
            To::Player(id) => commands.tell(id, payload),
            To::Group(Recipients::Bond(bond)) => commands.tell_bond(bond, payload),
            To::Group(to) => commands.announce(to, payload),
        };
        self.eye.judge.message_sent(region, herald, command);
    }
}
