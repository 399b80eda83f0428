//! The view oracle: what every client was shown, tick by tick, against brute force over all true
//! positions.
//!
//! Pure: it is fed [`Event`]s and keeps no clock or socket. It shares the words and the rules of
//! views with the server, and none of its code.
//!
//! **Truth.** A client's place at a tick is that of the input which its own frame of that tick
//! acknowledges. Where moves are judged it is that to which its own course has come, as its frames told it of that
//! last: what others are shown is held against what the server says to the player itself. A tick for which a client has no frame leaves it *held*: its place is unknown and
//! nothing is held against its view until its next frame.
//!
//! **When.** Tick T is judged once every client in a scene has delivered a frame of T or later, or
//! has left. A client that stays more than [`Options::lag_ticks_max`] behind is no longer waited
//! for, which counts as lost. So memory is bounded by that many ticks of frames.
//!
//! **What.** [`Violations`] defines each kind. All tolerances are [`Options`].
//!
//! ```text
//! Joining ── Joined ──┬─ Sent, Frame, Refused, Joined (after a jump) ──┬── Left
//!    └── Gone         └────────────────────────────────────────────────┴── Gone
//! ```

mod acts;
mod apply;
mod findings;
mod pairs;
mod player;
mod rules;
mod tick;
mod track;

#[cfg(test)]
mod tests;

use std::hash::Hasher;

use purview::scene::{EntityId, Plane, Pos, Seq, Tick};
use purview::wire::Frame;
use purview::wire::client::Joined;
use rustc_hash::FxHashMap;

pub use findings::{Calm, Example, Findings, Latency, Updates, Violations};

use acts::Acts;
use findings::{Fault, Log};
use pairs::Waiting;
use player::{Pending, Player};
use track::{Place, Track};

/// Names a client to the oracle; the caller's own number, used once.
pub type ClientId = u32;

/// What a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// A move.
    Move(Pos),
    /// A word about its movement, where moves are judged. Where it leads says the server's account.
    Walk,
    /// A jump; `None` keeps the scene or plane.
    Jump {
        /// To which scene.
        scene: Option<String>,
        /// To which plane.
        plane: Option<Plane>,
        /// To which place.
        pos: Pos,
    },
    /// An act, by the [`digest`] of its payload. Payloads should differ from one another.
    Act(u64),
}

/// What happened to a client, in the order in which it happened to that client.
#[derive(Debug, Clone)]
pub enum Event {
    /// It is about to send its join.
    Joining(ClientId),
    /// It is in a scene, or elsewhere after a jump.
    Joined(ClientId, Box<Joined>),
    /// It is about to send an input. Must be told before the input is on its way.
    Sent {
        /// Who.
        client: ClientId,
        /// The input's number.
        seq: Seq,
        /// The input.
        what: Sent,
    },
    /// An input was refused outside of a frame.
    Refused(ClientId, Seq),
    /// It was told a frame.
    Frame(ClientId, Box<Frame>),
    /// It has left; nobody is shown it from this tick on.
    Left(ClientId, Tick),
    /// Its connection ended without a `Left`, or it was never let in.
    Gone(ClientId, Ending),
}

/// How a client ended that did not leave in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was not let in, which is no violation.
    NotJoined,
    /// It was cut off, which counts as lost.
    Lost,
}

/// What is tolerated, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long a view may be behind the truth.
    pub slack_ticks: u64,
    /// How long one of a pair may be shown the other alone.
    pub asymmetry_ticks: u32,
    /// How old the server's knowledge of players across a region border may be, 0 or more. A pair
    /// counts as in range and blocking only if it is so with either end's place this much older, too,
    /// and as out of range only if it is so by each of these readings.
    pub mirror_ticks: u64,
    /// How long to wait for the slowest client.
    pub lag_ticks_max: u64,
    /// An input sent this much before a client's last frame, or before it left, must be acknowledged
    /// by then.
    pub ack_ticks: u64,
    /// Two that part and meet again within this time have flickered.
    pub flicker_ticks: u64,
    /// How many examples of each kind of violation to keep.
    pub examples_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            slack_ticks: 2,
            asymmetry_ticks: 1,
            mirror_ticks: 1,
            lag_ticks_max: 100,
            ack_ticks: 20,
            flicker_ticks: 20,
            examples_max: 5,
        }
    }
}

/// The name of an act's payload.
pub fn digest(payload: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(payload);
    hasher.finish()
}

/// See the module.
#[derive(Debug)]
pub struct Oracle {
    options: Options,
    /// Who is joining or in a scene; a slot is reused. `tracks` has what others may look at.
    players: Vec<Option<Player>>,
    tracks: Vec<Track>,
    free: Vec<u32>,
    by_client: FxHashMap<ClientId, u32>,
    by_id: FxHashMap<EntityId, u32>,
    /// Who has left, and the first tick without it.
    dead: FxHashMap<EntityId, u64>,
    scenes: Vec<String>,
    waiting: Waiting,
    acts: Acts,
    log: Log,
    /// The tick to judge next; `None` before anybody has joined.
    next: Option<u64>,
    judged: bool,
    seen_max: u64,
    /// How many slots have not yet heard of `next`.
    behind: usize,
    shows: pairs::Bits,
}

impl Oracle {
    /// An oracle that has been told nothing.
    pub fn new(options: Options) -> Oracle {
        Oracle {
            options,
            players: Vec::new(),
            tracks: Vec::new(),
            free: Vec::new(),
            by_client: FxHashMap::default(),
            by_id: FxHashMap::default(),
            dead: FxHashMap::default(),
            scenes: Vec::new(),
            waiting: Waiting::default(),
            acts: Acts::default(),
            log: Log::new(options.examples_max),
            next: None,
            judged: false,
            seen_max: 0,
            behind: 0,
            shows: pairs::Bits::default(),
        }
    }

    /// Takes in an event, and judges the ticks that are complete with it. Events of clients that
    /// have ended are ignored.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Joining(client) => self.joining(client),
            Event::Joined(client, joined) => self.joined(client, joined),
            Event::Sent { client, seq, what } => {
                if let Some(p) = self.player(client) {
                    let at = p.heard;
                    p.pending.push_back(Pending { seq, what, at, told: false });
                    p.sent_last = p.sent_last.max(seq);
                }
            }
            Event::Refused(client, seq) => {
                if let Some(p) = self.player(client) {
                    p.pending.retain(|i| i.seq != seq);
                    self.log.findings.refused += 1;
                }
            }
            Event::Frame(client, frame) => self.frame(client, frame),
            Event::Left(client, tick) => self.ended(client, Some(tick)),
            Event::Gone(client, ending) => {
                if ending == Ending::Lost {
                    let seen_max = self.seen_max;
                    self.log.fault(Fault::Lost, seen_max, || format!("client {client}: cut off"));
                }
                self.ended(client, None);
            }
        }
    }

    /// What has been found so far. [`Oracle::finish`] adds the last ticks.
    pub fn findings(&self) -> &Findings {
        &self.log.findings
    }

    /// Judges what is left and gives the result.
    pub fn finish(mut self) -> Findings {
        self.advance();
        for slot in 0..self.players.len() as u32 {
            self.settle_inputs(slot);
        }
        self.log.findings
    }

    fn player(&mut self, client: ClientId) -> Option<&mut Player> {
        let slot = *self.by_client.get(&client)?;
        self.players[slot as usize].as_mut()
    }

    fn joining(&mut self, client: ClientId) {
        let player = Player::joining(client, self.seen_max.saturating_sub(1));
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.players.push(None);
                self.tracks.push(Track::default());
                self.players.len() as u32 - 1
            }
        };
        self.players[slot as usize] = Some(player);
        self.by_client.insert(client, slot);
        self.recount();
    }

    fn joined(&mut self, client: ClientId, joined: Box<Joined>) {
        if !self.by_client.contains_key(&client) {
            self.joining(client);
        }
        let slot = self.by_client[&client];
        let alone = !self.players.iter().flatten().any(|p| p.in_scene);
        let Some(player) = self.players[slot as usize].as_mut() else { return };
        let tick = joined.tick.0;
        if player.in_scene {
            player.joins.push_back(joined);
            return;
        }
        let next = match self.next {
            Some(next) if self.judged && alone => next.max(tick),
            Some(next) if self.judged => next,
            Some(next) => next.min(tick),
            None => tick,
        };
        self.next = Some(next);
        player.in_scene = true;
        player.heard = tick.max(next).saturating_sub(1);
        player.from = tick.max(next);
        player.id = joined.id;
        self.by_id.insert(joined.id, slot);
        player.joins.push_back(joined);
        self.log.findings.players += 1;
        self.recount();
        self.advance();
    }

    fn frame(&mut self, client: ClientId, frame: Box<Frame>) {
        let Some(&slot) = self.by_client.get(&client) else { return };
        let Some(player) = self.players[slot as usize].as_mut() else { return };
        let tick = frame.tick.0;
        self.log.findings.frames += 1;
        if player.last_frame.is_some_and(|last| tick <= last) {
            let last = player.last_frame.unwrap_or_default();
            self.log.fault(Fault::Lost, tick, || {
                format!("client {client}: a frame for tick {tick} after one for {last}")
            });
            return;
        }
        player.last_frame = Some(tick);
        let before = player.heard;
        player.heard = before.max(tick);
        player.inbox.push_back(frame);
        let next = self.next.unwrap_or(u64::MAX);
        if before < next && tick >= next {
            self.behind -= 1;
        }
        let newer = tick > self.seen_max;
        self.seen_max = self.seen_max.max(tick);
        if self.behind == 0 || (newer && tick.saturating_sub(next) > self.options.lag_ticks_max) {
            self.advance();
        }
    }

    fn ended(&mut self, client: ClientId, left: Option<Tick>) {
        let Some(player) = self.player(client) else { return };
        if player.in_scene {
            player.left_at = Some(left.map_or(player.heard + 1, |tick| tick.0));
            player.vanished = left.is_none();
            player.heard = u64::MAX;
        } else if let Some(slot) = self.by_client.remove(&client) {
            self.players[slot as usize] = None;
            self.free.push(slot);
        }
        self.recount();
        self.advance();
    }

    fn recount(&mut self) {
        let next = self.next.unwrap_or(u64::MAX);
        self.behind = self.players.iter().flatten().filter(|p| p.heard < next).count();
    }

    /// Judges every tick that is complete.
    fn advance(&mut self) {
        while let Some(next) = self.next {
            let mut all_heard = self.seen_max;
            let mut anybody = false;
            for p in self.players.iter().flatten() {
                all_heard = all_heard.min(p.heard);
                anybody |= p.in_scene;
            }
            let forced = self.seen_max.saturating_sub(self.options.lag_ticks_max);
            if !anybody || next > all_heard.max(forced) {
                break;
            }
            self.judge(next);
            self.next = Some(next + 1);
        }
        self.recount();
    }

    fn scene(&mut self, name: &str) -> u32 {
        match self.scenes.iter().position(|s| s == name) {
            Some(i) => i as u32,
            None => {
                self.scenes.push(name.into());
                self.scenes.len() as u32 - 1
            }
        }
    }

    fn place(&mut self, joined: &Joined) -> Place {
        Place { scene: self.scene(&joined.scene), plane: joined.plane }
    }
}
