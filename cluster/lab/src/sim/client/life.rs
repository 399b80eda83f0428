//! The state of a simulated client from its join to its end, and the faults that may have cost it its player.

use std::time::Duration;

use purview::clock;
use purview::scene::{EntityId, Plane, Pos, SceneId, Seq};
use purview_client::Walker as Feet;
use purview_client::{ClientError, Player, View};
use tokio::time::Instant;

use crate::sim::judge::{Floor, Judge};

/// A little more than a checkpoint interval: after this time other processes know a player. Time without a checkpoint
/// store does not count.
const UNKNOWN: Duration = Duration::from_secs(9);

/// How long a client may be away: the grace period is 30 s (`gateway.grace_period`), and a part of
/// it may have passed before the client notices that its connection broke.
const DISCONNECTED_MAX: Duration = Duration::from_secs(25);

pub(super) struct Life {
    pub(super) player: Player,
    pub(super) id: EntityId,
    /// The number of this client among all clients: several may have an entity, one after the other.
    pub(super) number: u64,
    pub(super) view: View,
    /// The movement, where moves are judged.
    pub(super) feet: Option<Feet>,
    pub(super) floor: Floor,
    pub(super) pos: Pos,
    pub(super) goal: Pos,
    pub(super) acts: u64,
    /// The numbers of the inputs that were actions, and of these actions.
    pub(super) acts_sent: Vec<(Seq, u64)>,
    pub(super) moved: Seq,
    /// A teleport without an answer so far.
    pub(super) teleporting: Option<(Seq, SimTeleport)>,
    pub(super) is_disconnected: bool,
    pub(super) leaves: bool,
    /// When the client joined, and when its connection broke last.
    pub(super) joined: Instant,
    pub(super) broke: Option<Instant>,
    /// The last acknowledged input, and when it was acknowledged, or when the client last had nothing to be
    /// acknowledged.
    pub(super) acked: Seq,
    pub(super) received: Instant,
    /// The value of a player whose subject has several clients.
    pub(super) value: KnownValue,
}

/// The value of a player, as its client knows it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownValue {
    /// What the client was told last; `None`: no frame has come.
    pub(super) told: Option<u64>,
    pub(super) inputs: u32,
}

impl Life {
    /// Notes whether the client's messages arrive. A connection may hold although no process knows
    /// any more what the client sends.
    pub(super) fn note_received(&mut self) {
        let acked = self.view.ack();
        let answered = acked > self.acked || self.player.next_seq() == acked.next();
        if answered && !self.is_disconnected {
            (self.acked, self.received) = (acked, clock::now());
        }
    }

    /// Acts: the payload is the number of the action.
    pub(super) async fn act(&mut self, judge: &Judge) -> Result<Seq, ClientError> {
        let number = self.acts + 1;
        judge.acts(self.id, number);
        let seq = self.player.act(number.to_be_bytes().to_vec(), None).await?;
        self.acts = number;
        self.acts_sent.push((seq, number));
        Ok(seq)
    }

    pub(super) fn acts_of(&self, first: Seq, last: Seq) -> impl Iterator<Item = u64> + '_ {
        let these = self.acts_sent.iter().filter(move |(seq, _)| (first..=last).contains(seq));
        these.map(|(_, number)| *number)
    }

    /// Since when the player may be unknown to all processes, if the connection broke.
    pub(super) fn silent(&self) -> Option<Instant> {
        self.broke.map(|broke| broke.min(self.received))
    }

    /// The fault because of which all processes may have forgotten a player that was silent since
    /// then.
    pub(super) fn excuse(&self, judge: &Judge, since: Instant) -> Option<&'static str> {
        // Only its gateway and its region know a new player: both may die together.
        if since < self.joined + self.unknown(judge) {
            return Some("the player was new");
        }
        // No gateway was reachable, and a recovering region no longer waits for all sessions.
        if since.elapsed() > DISCONNECTED_MAX {
            return Some("the client was away longer than the grace period");
        }
        judge.may_be_forgotten(since.elapsed()).then_some("its checkpoints were lost")
    }

    /// For how long after its join a player may be known to no other process.
    fn unknown(&self, judge: &Judge) -> Duration {
        UNKNOWN + judge.unkept_since(self.joined.elapsed())
    }
}

/// The goal of a teleport; `None` keeps the scene or the plane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SimTeleport {
    pub(super) scene: Option<SceneId>,
    pub(super) plane: Option<Plane>,
}

impl SimTeleport {
    pub(super) fn from(self, at: Floor) -> Floor {
        let (scene, plane) = (self.scene.unwrap_or(at.scene), self.plane.unwrap_or(at.plane));
        Floor { scene, plane }
    }
}

pub(super) enum End {
    Left,
    TakenOver,
    Lost(ClientError),
    Broken,
}
