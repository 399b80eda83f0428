//! Who must hear of an act, and who did.
//!
//! An act is *done* at the tick whose frame acknowledges it to its actor, or at which the first other
//! client hears of it. Whoever was shown the actor from a slack before to a slack after must hear of
//! it in that time, exactly once. Who was shown the actor for a part of that time may.

use std::collections::VecDeque;

use purview::scene::EntityId;
use rustc_hash::FxHashMap;

use super::findings::{Fault, Log};
use super::player::Player;
use super::track::Track;
use super::{ClientId, Options, Sent, digest};

#[derive(Debug)]
struct Act {
    digest: u64,
    tick: u64,
    heard: Vec<ClientId>,
    /// Who must still hear of it, having had no frame when it was due.
    owed: Vec<ClientId>,
}

/// The acts of the last few ticks, by actor.
#[derive(Debug, Default)]
pub(super) struct Acts {
    by_actor: FxHashMap<EntityId, VecDeque<Act>>,
}

/// For how many ticks after it was due an act is remembered, to know it when it comes twice.
const REMEMBER_TICKS: u64 = 50;

impl Acts {
    /// An act was acknowledged to its actor.
    pub fn done(&mut self, actor: EntityId, digest: u64, t: u64) {
        let act = Act { digest, tick: t, heard: Vec::new(), owed: Vec::new() };
        self.by_actor.entry(actor).or_default().push_back(act);
    }

    /// A client was told of an act of `actor`.
    pub fn heard(
        &mut self,
        by: ClientId,
        actor: &mut Player,
        payload: &[u8],
        t: u64,
        log: &mut Log,
    ) {
        let digest = digest(payload);
        let acts = self.by_actor.entry(actor.id).or_default();
        let mut known = acts.iter_mut().filter(|a| a.digest == digest).peekable();
        let is_known = known.peek().is_some();
        if let Some(act) = known.find(|a| !a.heard.contains(&by)) {
            act.heard.push(by);
            act.owed.retain(|owed| *owed != by);
            return;
        }
        let sent = actor.pending.iter_mut().find(|p| !p.told && p.what == Sent::Act(digest));
        if let Some(sent) = sent {
            sent.told = true;
            acts.push_back(Act { digest, tick: t, heard: vec![by], owed: Vec::new() });
            return;
        }
        let (id, what) = (actor.id, if is_known { "twice" } else { "that was never done" });
        log.fault(Fault::Lost, t, || format!("client {by}: told of an act of {id} {what}"));
    }

    /// Its actor has left.
    pub fn forget(&mut self, actor: EntityId) {
        self.by_actor.remove(&actor);
    }

    /// Checks the acts that everybody must have heard of by tick `t`.
    pub fn settle(
        &mut self,
        t: u64,
        options: &Options,
        players: &[Option<Player>],
        tracks: &[Track],
        log: &mut Log,
    ) {
        let slack = options.slack_ticks;
        self.by_actor.retain(|actor, acts| {
            for act in acts.iter_mut() {
                if act.tick + slack == t {
                    due(act, *actor, (t, slack), players, tracks, log);
                } else if !act.owed.is_empty() {
                    collect(act, *actor, t, players, tracks, log);
                }
            }
            while acts.front().is_some_and(|a| a.tick + slack + REMEMBER_TICKS < t) {
                acts.pop_front();
            }
            !acts.is_empty()
        });
    }
}

/// Counts for everybody who must have heard of the act by now.
fn due(
    act: &mut Act,
    actor: EntityId,
    (t, slack): (u64, u64),
    players: &[Option<Player>],
    tracks: &[Track],
    log: &mut Log,
) {
    for (track, player) in tracks.iter().zip(players) {
        let Some(player) = player.as_ref().filter(|p| p.is_live(t)) else { continue };
        if act.heard.contains(&player.client) {
            log.findings.updates.came();
            continue;
        }
        let from = act.tick.saturating_sub(slack);
        let must = player.shown.get(&actor).is_some_and(|entry| entry.since <= from);
        if must && track.is_held(t) {
            act.owed.push(player.client);
        } else if must {
            lost(player.client, actor, act.tick, t, log);
        }
    }
}

/// Counts for those who had no frame when the act was due and have one now.
fn collect(
    act: &mut Act,
    actor: EntityId,
    t: u64,
    players: &[Option<Player>],
    tracks: &[Track],
    log: &mut Log,
) {
    let tick = act.tick;
    act.owed.retain(|owed| {
        let slot = players.iter().position(|p| p.as_ref().is_some_and(|p| p.client == *owed));
        let Some(slot) = slot else { return false };
        let held = tracks[slot].is_held(t);
        if !held {
            lost(*owed, actor, tick, t, log);
        }
        held
    });
}

fn lost(client: ClientId, actor: EntityId, tick: u64, t: u64, log: &mut Log) {
    log.findings.updates.expected += 1;
    log.fault(Fault::Lost, t, || {
        format!("client {client}: not told of the act of {actor} at tick {tick}")
    });
}
