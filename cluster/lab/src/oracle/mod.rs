//! The view oracle compares what every client is shown, tick by tick, with brute force over all true positions.
//! `load` and `sim` feed it.
//!
//! The oracle is pure: it receives [`Event`]s and has no clock or socket. It follows the same rules of views as the
//! server but shares no code with it.
//!
//! **Truth.** The position of a client at a tick is that of the input which its own frame of that tick acknowledges.
//! Where moves are judged it is the position on its own trajectory, as its frames last told it: the oracle compares
//! what others are shown with what the server tells the player itself. In a tick without a frame a client is *held*:
//! its position is unknown, and its view is not judged until its next frame.
//!
//! **When.** Tick T is judged once every client in a scene has received a frame of T or later, or has left. The
//! oracle stops waiting for a client that is more than `LAG_TICKS_MAX` behind; the client counts as lost.
//! So that many ticks of frames bound the memory.
//!
//! **What.** [`Violations`] defines each kind. All tolerances are constants here, or [`Options`].
//!
//! ```text
//! Joining ── Joined ──┬─ Sent, Frame, Refused, Joined (after a teleport) ──┬── Left
//!    └── Gone         └────────────────────────────────────────────────────┴── Gone
//! ```

mod acts;
mod apply;
mod errors;
mod findings;
mod pairs;
mod player;
mod rules;
mod tick;
mod track;

#[cfg(test)]
pub(crate) mod tests;

use std::hash::Hasher;

use purview::scene::{EntityId, Plane, Pos, Seq, Tick};
use purview::wire::Frame;
use purview::wire::client::Joined;
use rustc_hash::FxHashMap;

pub use errors::DisplayedErrors;
pub use findings::{Calm, Example, Findings, Latency, Updates, Violations};

use acts::Acts;
use findings::{Fault, Log};
use pairs::Waiting;
use player::{Pending, Player};
use track::{Track, TrackPoint};

/// How far a view may be behind the truth.
const SLACK_TICKS: u64 = 2;

/// How long only one of a pair may be shown the other.
const ASYMMETRY_TICKS: u32 = 1;

/// How long the oracle waits for the slowest client.
const LAG_TICKS_MAX: u64 = 100;

/// Two players that part and meet again within this time have flickered.
const FLICKER_TICKS: u64 = 20;

/// The number of a client, chosen by the caller and used once.
pub type ClientId = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Move(Pos),
    /// A move command in a scene that judges moves (the server says where it leads), or an input that moves nothing.
    Other,
    /// A teleport; `None` keeps the scene or the plane.
    Teleport {
        scene: Option<String>,
        plane: Option<Plane>,
        pos: Pos,
    },
    /// An action, by the [`digest`] of its payload. Payloads should be unique.
    Act(u64),
}

/// What happened to a client. The events of one client must come in their order.
#[derive(Debug, Clone)]
pub enum Event {
    Joining(ClientId),
    /// The client is in a scene, or elsewhere after a teleport.
    Joined(ClientId, Box<Joined>),
    /// The client is about to send an input. The oracle must know of it before it is sent.
    Sent {
        client: ClientId,
        seq: Seq,
        what: Sent,
    },
    Refused(ClientId, Seq),
    Frame(ClientId, Box<Frame>),
    /// A region of the server has died: of actions among these inputs not all viewers may have been told.
    Unconfirmed(ClientId, Seq, Seq),
    /// The client has left. From this tick on no other client may be shown it.
    Left(ClientId, Tick),
    /// The connection ended without a `Left`, or the client never joined.
    Gone(ClientId, Ending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client was not admitted. That is no violation.
    NotJoined,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How old the server's knowledge of players across a region border may be, 0 or more. A pair counts as in range
    /// and blocking only if that also holds with either position this much older. A pair counts as out of range only
    /// if that holds for each of these readings.
    pub mirror_ticks: u64,
    /// An input that was sent this much before a client's last frame, or before its leave, must be acknowledged by
    /// then.
    pub ack_ticks: u64,
    /// An action may be this late, if the actor stays in view, and may come again within this time.
    pub late_ticks: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { mirror_ticks: 1, ack_ticks: 20, late_ticks: 0 }
    }
}

pub fn digest(payload: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(payload);
    hasher.finish()
}

#[derive(Debug, Default)]
pub struct Oracle {
    options: Options,
    /// The clients that join or are in a scene, by slot; slots are reused. `tracks` has what is visible to other
    /// clients.
    players: Vec<Option<Player>>,
    tracks: Vec<Track>,
    free: Vec<u32>,
    by_client: FxHashMap<ClientId, u32>,
    by_id: FxHashMap<EntityId, u32>,
    /// The clients that have left, and the first tick without each.
    dead: FxHashMap<EntityId, u64>,
    scenes: Vec<String>,
    waiting: Waiting,
    acts: Acts,
    log: Log,
    /// The next tick to judge; `None` before the first join.
    next: Option<u64>,
    judged: bool,
    seen_max: u64,
    /// The number of slots that have not received tick `next`.
    behind: usize,
    shows: pairs::Bits,
}

impl Oracle {
    pub fn new(options: Options) -> Oracle {
        Oracle { options, ..Oracle::default() }
    }

    /// Takes an event, and judges the ticks that it completes. Events of clients that have ended are ignored.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Joining(client) => self.joining(client),
            Event::Joined(client, joined) => self.joined(client, joined),
            Event::Sent { client, seq, what } => {
                if let Some(p) = self.player(client) {
                    let at = p.received;
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
            Event::Unconfirmed(client, first, last) => {
                if let Some(p) = self.player(client) {
                    p.unconfirmed.push((first, last));
                }
            }
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

    pub fn findings(&self) -> &Findings {
        &self.log.findings
    }

    pub fn finish(mut self) -> Findings {
        self.advance();
        for slot in 0..self.players.len() as u32 {
            self.resolve_inputs(slot);
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
        player.received = tick.max(next).saturating_sub(1);
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
        let before = player.received;
        player.received = before.max(tick);
        player.inbox.push_back(frame);
        let next = self.next.unwrap_or(u64::MAX);
        if before < next && tick >= next {
            self.behind -= 1;
        }
        let newer = tick > self.seen_max;
        self.seen_max = self.seen_max.max(tick);
        if self.behind == 0 || (newer && tick.saturating_sub(next) > LAG_TICKS_MAX) {
            self.advance();
        }
    }

    fn ended(&mut self, client: ClientId, left: Option<Tick>) {
        let Some(player) = self.player(client) else { return };
        if player.in_scene {
            player.left_at = Some(left.map_or(player.received + 1, |tick| tick.0));
            player.vanished = left.is_none();
            player.received = u64::MAX;
        } else if let Some(slot) = self.by_client.remove(&client) {
            self.players[slot as usize] = None;
            self.free.push(slot);
        }
        self.recount();
        self.advance();
    }

    fn recount(&mut self) {
        let next = self.next.unwrap_or(u64::MAX);
        self.behind = self.players.iter().flatten().filter(|p| p.received < next).count();
    }

    fn advance(&mut self) {
        while let Some(next) = self.next {
            let mut all_received = self.seen_max;
            let mut any_in_scene = false;
            for p in self.players.iter().flatten() {
                all_received = all_received.min(p.received);
                any_in_scene |= p.in_scene;
            }
            let forced = self.seen_max.saturating_sub(LAG_TICKS_MAX);
            if !any_in_scene || next > all_received.max(forced) {
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

    fn place(&mut self, joined: &Joined) -> TrackPoint {
        TrackPoint { scene: self.scene(&joined.scene), plane: joined.plane }
    }
}
