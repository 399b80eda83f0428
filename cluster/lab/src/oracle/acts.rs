//! Which clients must receive an action, and which have.
//!
//! An action is *done* at the tick whose frame acknowledges it to its actor, or at which the first other client
//! receives it. A client to which the actor was visible from one slack before to one slack after must receive it in
//! that time, exactly once. A client to which the actor was visible for a part of that time may receive it. A client
//! without frames in that time must receive it within [`Options::ack_ticks`] of its next frame, if the actor has
//! stayed in its view. Where faults are made, that long is [`Options::late_ticks`], and an action that its player is told to
//! be unconfirmed need not be received; within that time it may also be received again, because the next owner of a
//! region repeats what its last owner did after the last checkpoint.

use std::collections::VecDeque;

use purview::scene::{EntityId, Seq};
use rustc_hash::FxHashMap;

use super::findings::{Fault, Log};
use super::player::Player;
use super::track::Track;
use super::{ClientId, Options, SLACK_TICKS, Sent, digest};

#[derive(Debug)]
struct Act {
    digest: u64,
    seq: Seq,
    tick: u64,
    received: Vec<ClientId>,
    owed: Vec<Owed>,
}

/// A client that must still receive an action, because it had no frame when the action was due.
#[derive(Debug)]
struct Owed {
    client: ClientId,
    /// The tick of its next frame.
    back: Option<u64>,
}

/// The actions of the last ticks, by actor.
#[derive(Debug, Default)]
pub(super) struct Acts {
    by_actor: FxHashMap<EntityId, VecDeque<Act>>,
}

/// How many ticks an action is remembered after it was due, to recognise a duplicate.
const REMEMBER_TICKS: u64 = 50;

impl Acts {
    pub fn done(&mut self, actor: EntityId, (digest, seq): (u64, Seq), t: u64) {
        let act = Act { digest, seq, tick: t, received: Vec::new(), owed: Vec::new() };
        self.by_actor.entry(actor).or_default().push_back(act);
    }

    /// A client has received an action of `actor`.
    pub fn received(
        &mut self,
        by: ClientId,
        actor: &mut Player,
        payload: &[u8],
        (t, late): (u64, u64),
        log: &mut Log,
    ) {
        let digest = digest(payload);
        let acts = self.by_actor.entry(actor.id).or_default();
        let mut known = acts.iter_mut().filter(|a| a.digest == digest).peekable();
        let is_known = known.peek().is_some();
        if let Some(act) = known.find(|a| !a.received.contains(&by)) {
            act.received.push(by);
            act.owed.retain(|owed| owed.client != by);
            return;
        }
        let sent = actor.pending.iter_mut().find(|p| !p.told && p.what == Sent::Act(digest));
        if let Some(sent) = sent {
            sent.told = true;
            let seq = sent.seq;
            acts.push_back(Act { digest, seq, tick: t, received: vec![by], owed: Vec::new() });
            return;
        }
        if acts.iter().any(|act| act.digest == digest && t < act.tick + late) {
            return;
        }
        let (id, what) = (actor.id, if is_known { "twice" } else { "that its player never did" });
        log.fault(Fault::Lost, t, || format!("client {by}: received an action of {id} {what}"));
    }

    pub fn forget(&mut self, actor: EntityId) {
        self.by_actor.remove(&actor);
    }

    /// Checks the actions that every client must have received by tick `t`.
    pub fn resolve(
        &mut self,
        t: u64,
        options: &Options,
        players: &[Option<Player>],
        tracks: &[Track],
        log: &mut Log,
    ) {
        self.by_actor.retain(|actor, acts| {
            let player = players.iter().flatten().find(|p| p.id == *actor);
            let unconfirmed = player.map_or(&[][..], |player| &player.unconfirmed);
            for act in acts.iter_mut() {
                if unconfirmed.iter().any(|(first, last)| (*first..=*last).contains(&act.seq)) {
                    act.owed.clear();
                }
                if act.tick + SLACK_TICKS == t {
                    due(act, *actor, (t, options.late_ticks), players, tracks, log);
                } else if !act.owed.is_empty() {
                    let late = options.ack_ticks.max(options.late_ticks);
                    collect(act, *actor, (t, late), (players, tracks), log);
                }
            }
            let is_over = |a: &Act| {
                a.owed.is_empty()
                    && a.tick + SLACK_TICKS + REMEMBER_TICKS.max(options.late_ticks) < t
            };
            while acts.front().is_some_and(is_over) {
                acts.pop_front();
            }
            !acts.is_empty()
        });
    }
}

/// Counts the clients that must have received the action by now.
fn due(
    act: &mut Act,
    actor: EntityId,
    (t, late): (u64, u64),
    players: &[Option<Player>],
    tracks: &[Track],
    log: &mut Log,
) {
    for (track, player) in tracks.iter().zip(players) {
        let Some(player) = player.as_ref().filter(|p| p.is_live(t)) else { continue };
        if act.received.contains(&player.client) {
            log.findings.updates.came();
            continue;
        }
        let from = act.tick.saturating_sub(SLACK_TICKS);
        let must = player.shown.get(&actor).is_some_and(|entry| entry.since <= from);
        if must && (track.is_held(t) || late > 0) {
            act.owed.push(Owed { client: player.client, back: None });
        } else if must {
            lost(player.client, actor, act.tick, t, log);
        }
    }
}

/// Counts the clients that have had frames again for long enough.
fn collect(
    act: &mut Act,
    actor: EntityId,
    (t, late_ticks): (u64, u64),
    (players, tracks): (&[Option<Player>], &[Track]),
    log: &mut Log,
) {
    let tick = act.tick;
    act.owed.retain_mut(|owed| {
        let mut all = tracks.iter().zip(players);
        let found = all.find_map(|(track, player)| {
            Some((track, player.as_ref().filter(|player| player.client == owed.client)?))
        });
        let Some((track, player)) = found else { return false };
        if track.is_held(t) {
            return true;
        }
        let back = *owed.back.get_or_insert(t);
        let stays = player.shown.get(&actor).is_some_and(|entry| entry.since <= tick);
        let late = stays && t >= back + late_ticks;
        if late {
            lost(owed.client, actor, tick, t, log);
        }
        stays && !late
    });
}

fn lost(client: ClientId, actor: EntityId, tick: u64, t: u64, log: &mut Log) {
    log.findings.updates.expected += 1;
    log.fault(Fault::Lost, t, || {
        format!("client {client}: did not receive the action of {actor} at tick {tick}")
    });
}
