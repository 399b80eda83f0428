//! What a region keeps of each player that lives in it: its registers, what its client was told, and
//! its session's numbering.

use crate::scene::messages::{FIRST_SESSION, Handoff, InputRefused, KeptBonds, Resume};
use crate::scene::mutants::{self, Mutant};
use crate::scene::pace::Pace;
use crate::scene::region::egress::Allowance;
use crate::scene::region::entities::NO_SLOT;
use crate::scene::region::mailbox::Mailbox;
use crate::scene::views::{Key, Registers, ViewRules};
use crate::scene::{
    Account, EntityHandle, EntityId, RegionId, Seq, SessionId, SubjectHash, Tick, TickStamp,
};

/// Something else than a player that a player sees.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub id: EntityId,
    pub slot: u32,
    /// Tick of the last update that the client was sent.
    pub sent: TickStamp,
    pub ring: u8,
    /// Properties that the client misses: see [`PeerState::withheld`](crate::scene::views::PeerState).
    pub withheld: u8,
    /// The client was told of it.
    pub shown: bool,
}

/// A player that lives in the region.
#[derive(Debug, Clone, Default)]
pub struct Viewer {
    pub slot: u32,
    /// Under which inputs of its client find it.
    pub handle: EntityHandle,
    pub session: Option<SessionId>,
    /// The portal in whose area it stood last, from 1 on; 0: none.
    pub portal: u16,
    /// Whose the player is, for its whole life.
    pub subject: SubjectHash,
    /// The same for game logic.
    pub account: Account,
    /// Since when that session has it, [`FIRST_SESSION`] at least: of two the later one counts. 0: of an older
    /// release, which does not say.
    pub since_ms: u64,
    /// The region that handed it here, which knows of peers that were never mirrored here.
    pub came_from: Option<RegionId>,
    pub registers: Registers,
    /// The key that a pair must beat to interest this player, as of its last change.
    pub threshold: Key,
    /// The same of a player that keeps a place in this tick for a ghost that owes the next YES and likely
    /// says it.
    pub expecting: Option<Key>,
    pub seen: Vec<Seen>,
    /// Entities that the client was shown, sees no more, and must still be told of.
    pub gone: Vec<EntityId>,
    pub last_applied: Seq,
    /// Inputs that a region had applied which has died since: see [`Handoff::unconfirmed`].
    pub unconfirmed: Option<(Seq, Seq)>,
    pub refused: Vec<InputRefused>,
    /// The first tick of which its client gets a frame from here.
    pub frames_from: Tick,
    /// The first tick of which its client got no frame because it was held, until it is told what it has missed; 0: none.
    pub missed_from: Tick,
    pub held: bool,
    pub resync: bool,
    /// With `resync`: the tick of the last frame that the client was sent, by its session; 0: not known.
    resync_after: Tick,
    /// The last of its session's questions for a resync; 0: none was here.
    question: u32,
    /// The client is gone: the end of the grace period.
    pub disconnected_until: Option<Tick>,
    /// Without its client the player stays at least until this tick.
    pub stays_until: Tick,
    /// The session that it had before its client came back; what that session asks is late.
    pub replaced: Option<SessionId>,
    /// Its client must be told of its own movement.
    pub own_due: bool,
    /// Another region, or an earlier life of this one, has told its client of entities since a frame from here.
    pub told_elsewhere: bool,
    /// What the client may still be sent, where clients have a budget.
    pub allowance: Allowance,
    /// The tick as of which its client knows the properties of all that it is shown, but for what is
    /// withheld.
    pub properties_told: TickStamp,
    /// Its session and client must be told all of its own properties and its facing.
    pub own_properties_due: bool,
    /// Its bonds have changed: it may see other properties of those that it is shown.
    pub bonds_changed: bool,
    /// Its bonds of kinds that the scene does not have, and since when it has its bonds.
    pub other_bonds: KeptBonds,
    /// Its facing was changed by another's word than its client's.
    pub turned: bool,
    /// Messages of the game's logic for its client.
    pub mailbox: Mailbox,
    /// What its client has made it do of late.
    pub pace: Pace,
    /// A link or request was lost since the lists were stable.
    pub dirty: bool,
    /// Its bonds do not reach to all of its companions, or did not of late.
    pub reach_ends: bool,
}

impl Viewer {
    pub fn new(
        id: EntityId,
        (slot, handle): (u32, EntityHandle),
        (session, subject, account): (Option<SessionId>, SubjectHash, Account),
    ) -> Viewer {
        Viewer {
            slot,
            handle,
            session,
            subject,
            account,
            since_ms: FIRST_SESSION,
            registers: Registers::new(id),
            own_due: true,
            own_properties_due: true,
            ..Viewer::default()
        }
    }

    /// Whether the client gets a frame of a tick.
    #[inline]
    pub fn gets_frame_of(&self, tick: Tick) -> bool {
        let receives = self.session.is_some() && !self.held && self.disconnected_until.is_none();
        receives && self.frames_from <= tick
    }

    /// The client was sent no frame after that of tick `told`, 0 if this is not known: the next frame tells everything anew.
    /// A question that comes again changes nothing. Returns whether the next frame tells actions again.
    pub fn miss_frames(&mut self, told: Tick, question: u32) -> bool {
        if question > 0 && question <= self.question {
            return false;
        }
        self.question = self.question.max(question);
        let pending = self.resync_after();
        self.resync_after = match told {
            Tick(0) => pending,
            told if pending > Tick(0) => told.min(pending),
            told => told,
        };
        self.resync = true;
        told > Tick(0)
    }

    /// The client has been told all actions of the ticks before this one that were told here before tick `now`.
    pub fn acts_from(&self, now: Tick) -> Tick {
        match self.resync_after() {
            Tick(0) => self.frames_from.max(self.missed_from),
            _ if mutants::has(Mutant::GapActsLost) => now,
            // Never later than this tick, whatever a session says.
            after => after.next().min(now),
        }
    }

    /// The first tick whose actions the client is told if they are told here for the first time in tick `now`: those of
    /// earlier ones were told where it lived before.
    #[inline]
    pub fn new_acts_from(&self, now: Tick) -> Tick {
        self.frames_from.min(self.acts_from(now))
    }

    /// The tick of the frame after which the next one tells everything anew; 0: it does not, or that is not known.
    pub fn resync_after(&self) -> Tick {
        if self.resync { self.resync_after } else { Tick(0) }
    }

    /// A frame tells the client everything anew.
    pub fn resynced(&mut self) {
        (self.resync, self.resync_after) = (false, Tick(0));
        self.own_properties_due = true;
    }

    /// The client gets no frames from this tick on, until it reads again.
    pub fn hold(&mut self, first_missed: Tick) {
        if !std::mem::replace(&mut self.held, true) && self.missed_from == Tick(0) {
            self.missed_from = first_missed;
        }
    }

    /// The client is gone: the player stays until its grace period and its linger time end. False when that was known;
    /// then a grace period can only become shorter.
    pub fn disconnect(&mut self, until: Tick, lingers_until: Tick) -> bool {
        match &mut self.disconnected_until {
            Some(known) => {
                *known = until.min(*known);
                false
            }
            None => {
                self.disconnected_until = Some(until);
                self.stays_until = self.stays_until.max(lingers_until);
                true
            }
        }
    }

    /// The tick in which the player leaves; `None`: its client is there.
    pub fn leaves_at(&self) -> Option<Tick> {
        self.disconnected_until.map(|until| until.max(self.stays_until))
    }

    /// The client has come back by another session. Gives the session before.
    pub fn resume(&mut self, resume: &Resume) -> Option<SessionId> {
        let before = self.session.replace(resume.session);
        (self.replaced, self.disconnected_until) = (before, None);
        (self.held, self.resync, self.own_due) = (false, true, true);
        (self.resync_after, self.question) = Default::default();
        self.own_properties_due = true;
        self.last_applied = self.last_applied.max(resume.acked);
        self.since_ms = resume.since_ms.max(self.since_ms.saturating_add(1));
        before
    }

    /// A later session presents the player. Gives the session before.
    pub fn present(&mut self, session: SessionId, since_ms: u64) -> Option<SessionId> {
        self.since_ms = since_ms;
        self.replaced = self.session.replace(session);
        (self.disconnected_until, self.resync) = (None, true);
        (self.resync_after, self.question) = Default::default();
        self.own_properties_due = true;
        self.replaced
    }

    /// The client knows what a handoff says that it was told.
    pub fn restore(&mut self, handoff: &Handoff, tick: Tick) {
        let seen = handoff.seen.iter().map(|s| Seen {
            id: s.id,
            slot: NO_SLOT,
            sent: TickStamp::received(s.sent, tick),
            ring: 0,
            withheld: s.withheld,
            shown: true,
        });
        self.seen = seen.collect();
        self.gone.clone_from(&handoff.gone);
        self.refused.clone_from(&handoff.refused);
        self.mailbox = std::mem::take(&mut self.mailbox).arrived(handoff);
        self.last_applied = handoff.last_applied;
        self.unconfirmed = handoff.unconfirmed;
        let told = if mutants::has(Mutant::TwoFrames) { Tick(0) } else { handoff.tick.next() };
        self.frames_from = told;
        self.came_from = Some(handoff.from);
        self.reach_ends = handoff.ties.reach.is_some();
        (self.held, self.resync) = (handoff.held, handoff.resync);
        self.pace = handoff.pace;
        // A level: to be told twice does no harm.
        (self.own_due, self.told_elsewhere) = (true, true);
        self.properties_told = TickStamp::received(handoff.properties_told, tick);
        self.own_properties_due = handoff.properties_told == Tick(0);
        self.disconnected_until = handoff.disconnected_until;
        let is_known = !mutants::has(Mutant::StayLost);
        self.stays_until = if is_known { handoff.stays_until } else { Tick(0) };
        self.since_ms = handoff.since_ms;
    }

    /// The threshold follows from the registers, and from the place that is kept for a ghost.
    pub fn renew_threshold(&mut self, rules: &ViewRules) {
        self.threshold = match self.expecting {
            Some(expecting) if self.registers.standing() < self.registers.cap(rules) => expecting,
            _ => self.registers.threshold(rules),
        };
    }

    /// Forgets the peer at `ix`; if the client was shown it, it will be told.
    pub fn drop_peer(&mut self, ix: usize) {
        let (yes_ids, peer) = self.registers.swap_remove(ix);
        if peer.shown() {
            self.gone.push(yes_ids.id);
        }
    }

    /// Forgets the seen entity at `ix`; if the client was told of it, it will be told.
    pub fn drop_seen(&mut self, ix: usize) {
        let seen = self.seen.swap_remove(ix);
        if seen.shown {
            self.gone.push(seen.id);
        }
    }
}
