//! A player of a simulated client, from its join to its end, and what may have cost it that player.

use std::time::Duration;

use purview::clock;
use purview::scene::{EntityId, Plane, Pos, SceneId, Seq};
use purview::wire::client::Joined;
use purview_client::Walker as Feet;
use purview_client::{ClientError, Player, View};
use tokio::time::Instant;

use crate::sim::cluster::SCENES;
use crate::sim::judge::{Floor, Judge};

/// After a checkpoint interval and a little more others know of a player, not counting the time for which nobody
/// acts since the store is away.
const UNKNOWN: Duration = Duration::from_secs(9);

/// For how long a client may be away: players stay for 30 s (`gateway.linger`), some of which may be over when its connection
/// breaks.
const AWAY: Duration = Duration::from_secs(25);

/// A player of a client, while it has one.
pub(super) struct Life {
    pub(super) player: Player,
    pub(super) id: EntityId,
    pub(super) view: View,
    /// How it walks, where moves are judged.
    pub(super) feet: Option<Feet>,
    pub(super) floor: Floor,
    pub(super) pos: Pos,
    pub(super) goal: Pos,
    pub(super) acts: u64,
    /// The last input that put it somewhere.
    pub(super) moved: Seq,
    /// A jump of which it was not told yet that it has arrived.
    pub(super) jumping: Option<(Seq, Leap)>,
    pub(super) away: bool,
    pub(super) leaves: bool,
    /// When it has joined, and when its connection broke last.
    pub(super) joined: Instant,
    pub(super) broke: Option<Instant>,
    /// What it was told to be applied, and when it was told so last, or had not said more.
    pub(super) acked: Seq,
    pub(super) heard: Instant,
}

impl Life {
    /// Notes whether it is heard. A connection may hold, and nobody know any more what it says.
    pub(super) fn note_heard(&mut self) {
        let acked = self.view.ack();
        let answered = acked > self.acked || self.player.next_seq() == acked.next();
        if answered && !self.away {
            (self.acked, self.heard) = (acked, clock::now());
        }
    }

    /// Since when nobody may know it any more, if its connection broke.
    pub(super) fn unheard(&self) -> Option<Instant> {
        self.broke.map(|broke| broke.min(self.heard))
    }

    /// Why it may be that nobody knows it any more who was not heard since then.
    pub(super) fn excuse(&self, judge: &Judge, since: Instant) -> Option<&'static str> {
        // Of one who has just joined nobody else knows when its gateway and its region die together.
        if since < self.joined + self.unknown(judge) {
            return Some("it was not known yet");
        }
        // No gateway was there for it; a region that goes on from a checkpoint waits no longer in all.
        if since.elapsed() > AWAY {
            return Some("it was away for too long");
        }
        judge.may_be_forgotten(since.elapsed()).then_some("nothing was left that knew it")
    }

    /// For how long it may be that nobody else knows of it since it has joined.
    fn unknown(&self, judge: &Judge) -> Duration {
        UNKNOWN + judge.unkept_since(self.joined.elapsed())
    }
}

/// Where a jump leads to; `None`: it stays in that scene, or on that plane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Leap {
    pub(super) scene: Option<SceneId>,
    pub(super) plane: Option<Plane>,
}

impl Leap {
    pub(super) fn from(self, at: Floor) -> Floor {
        let (scene, plane) = (self.scene.unwrap_or(at.scene), self.plane.unwrap_or(at.plane));
        Floor { scene, plane }
    }
}

/// Where a server says that a player is.
pub(super) fn floor_of(joined: &Joined) -> Floor {
    let scene = SCENES.iter().position(|name| *name == joined.scene).unwrap_or(SCENES.len());
    Floor { scene: SceneId(scene as u16), plane: joined.plane }
}

/// Why a client has its player no more.
pub(super) enum End {
    Left,
    Lost(ClientError),
    Broken,
}
