//! The search for the player of a client that comes back.
//!
//! The new session asks the regions in which the player is most likely, then all others, again and
//! again, until one has it, all have said no, or patience ends. A session that is about to join asks in
//! the same way for the player that its subject has had before, which then leaves.

use super::Player;
use super::client::{give_back, refuse};
use super::io::{Arrival, ClientRequest, Comeback, PlayerEffect, Problem, Reply, State};
use super::link::Route;
use crate::scene::messages::{Input, Notice, Resume, ResumeFor, Resumed, RouteNotice};
use crate::scene::{EntityId, Epoch, RegionId, Seq};

/// Which regions are asked for the player.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// The player; `None`: there is no search.
    player: Option<EntityId>,
    acked: Seq,
    /// Those that have not said no.
    asked: Vec<RegionId>,
    /// Those that were not asked yet.
    then: Vec<RegionId>,
    /// Whether these are all that there are.
    all: bool,
    /// All have said no.
    is_gone: bool,
    /// When they were asked; `None`: they are to be asked.
    since_ms: Option<u64>,
    /// When the client came back.
    began_ms: u64,
    /// Regions that have a new owner since then, and the new owner's epoch.
    owners: Vec<(RegionId, Epoch)>,
    /// The highest epoch of frames that came before it was known where the player is.
    heard_elsewhere: Option<Epoch>,
    /// The newest route that came before that.
    early: Option<Box<RouteNotice>>,
}

impl Search {
    fn begin(&mut self, now_ms: u64, back: Comeback) {
        let Comeback { id, acked, ask, ask_then, all } = back;
        (self.player, self.is_gone) = (Some(id), false);
        (self.acked, self.asked, self.then, self.all) = (acked, ask, ask_then, all);
        (self.since_ms, self.began_ms, self.owners) = (None, now_ms, Vec::new());
    }

    /// Whether regions are to be asked now. Those that are silent are asked again after `again_ms`, and all
    /// others with them: a silent region may be down for long, and the player elsewhere.
    fn is_due(&mut self, now_ms: u64, again_ms: u64) -> bool {
        match self.since_ms {
            Some(since) if now_ms.saturating_sub(since) < again_ms => return false,
            Some(_) => self.asked.append(&mut self.then),
            None => {}
        }
        if self.asked.is_empty() {
            self.asked.append(&mut self.then);
        }
        true
    }

    /// A region does not know the player.
    fn says_no(&mut self, region: RegionId) {
        self.asked.retain(|asked| *asked != region);
        if self.asked.is_empty() {
            self.since_ms = None;
        }
    }

    /// The search is over. What was overheard counts until the first frame that is passed on.
    fn end(&mut self) {
        *self = Search { heard_elsewhere: self.heard_elsewhere, ..Search::default() };
    }

    /// A frame has come before it is known where the player is.
    pub(super) fn hear_elsewhere(&mut self, epoch: Epoch) {
        self.heard_elsewhere = self.heard_elsewhere.max(Some(epoch));
    }

    /// Whether frames were overheard up to this epoch; asked once.
    pub(super) fn take_heard_elsewhere(&mut self, epoch: Epoch) -> bool {
        self.heard_elsewhere.take_if(|epoch_there| epoch >= *epoch_there).is_some()
    }

    /// A route has come before it is known where the player is; the newest one is kept.
    pub(super) fn keep_early(&mut self, route: RouteNotice) {
        if self.early.as_ref().is_none_or(|known| known.epoch < route.epoch) {
            self.early = Some(Box::new(route));
        }
    }

    /// A region has a new owner: messages of the owner before may still come.
    pub(super) fn note_owner(&mut self, region: RegionId, owner: Epoch) {
        self.owners.retain(|(known, _)| *known != region);
        self.owners.push((region, owner));
    }

    /// The new owner of the route's region, if an older owner gave the player its epoch.
    fn newer_owner(&self, route: Route) -> Option<(RegionId, Epoch)> {
        let older = |owner: Epoch| route.epoch.is_some_and(|epoch| epoch < owner.of_birth());
        let newer = |(known, owner): &&(_, _)| *known == route.region && older(*owner);
        self.owners.iter().find(newer).copied()
    }
}

impl Player {
    pub(super) fn come_back(&mut self, now_ms: u64, back: Comeback) {
        self.id = back.id;
        self.state = State::Resuming;
        self.deadline_ms = now_ms.saturating_add(self.config.resume_ms);
        self.search.begin(now_ms, back);
    }

    /// A join has to wait until the player that its subject has had before has left.
    pub(super) fn wait_for_claim(&mut self, now_ms: u64) {
        if self.state == State::Greeted {
            self.state = State::Claiming;
            self.deadline_ms = now_ms.saturating_add(self.config.resume_ms);
        }
    }

    /// That player does not leave by itself: regions are told to let it leave.
    pub(super) fn evict(&mut self, now_ms: u64, player: Comeback) {
        if self.state == State::Claiming {
            self.search.begin(now_ms, player);
        }
    }

    /// That player has to stay: the join takes it over.
    pub(super) fn resume_instead(&mut self, now_ms: u64, player: EntityId) {
        if self.search.player == Some(player) {
            (self.id, self.state) = (player, State::Resuming);
            self.deadline_ms = now_ms.saturating_add(self.config.resume_ms);
            self.search.since_ms = None;
        }
    }

    /// The wait of a join is over.
    pub(super) fn claimed(
        &mut self,
        now_ms: u64,
        arrival: Result<Arrival, Problem>,
        out: &mut Vec<PlayerEffect>,
    ) {
        match (self.state, arrival) {
            (State::Claiming, Ok(arrival)) => {
                self.search = Search::default();
                self.join(now_ms, arrival);
            }
            (State::Claiming, Err(problem)) => self.give_up(now_ms, problem, out),
            (_, arrival) => give_back(&ClientRequest::Join(arrival), out),
        }
    }

    /// Whether all regions have said that the player to be evicted does not exist, and its last state is
    /// stored if it left.
    pub fn is_evicted(&self) -> bool {
        self.search.is_gone
    }

    /// Whether regions are asked for a player, or have all said that it does not exist.
    pub fn is_searching(&self) -> bool {
        self.search.player.is_some()
    }

    /// Asks the regions that are to be asked.
    pub(super) fn search(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        let Some(id) = self.search.player else { return };
        if self.search.is_gone || !self.search.is_due(now_ms, self.config.resend_ms) {
            return;
        }
        if self.search.asked.is_empty() && self.state == State::Claiming {
            match self.search.all {
                true => self.search.is_gone = true,
                // The shell begins anew, with the regions that are known by then.
                false => self.search.end(),
            }
            return;
        }
        if self.search.asked.is_empty() {
            let problem = if self.search.all { Problem::Gone } else { Problem::NotFound };
            return self.give_up(now_ms, problem, out);
        }
        self.search.since_ms = Some(now_ms);
        self.has_asked = true;
        let subject = self.subject;
        let (session, acked, since_ms) = (self.session, self.search.acked, self.search.began_ms);
        let purpose = match self.state {
            State::Claiming => ResumeFor::Leave,
            _ => ResumeFor::Play,
        };
        out.extend(self.search.asked.iter().map(|&asked| {
            let resume = Resume { id, session, subject, acked, asked, since_ms, purpose };
            PlayerEffect::ToRegion(asked, Input::Resume(resume))
        }));
    }

    /// A region knows nothing of the player.
    pub(super) fn nowhere(&mut self, asked: RegionId) {
        if matches!(self.state, State::Claiming | State::Resuming) {
            self.search.says_no(asked);
        }
    }

    /// The client may join, as one that was never here.
    pub(super) fn give_up(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        self.id = EntityId::NONE;
        self.search = Search::default();
        self.state = State::Greeted;
        self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
        refuse(problem, None, out);
    }

    /// The player is another subject's: the client may join with a player of its own.
    pub(super) fn is_of_other_subject(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        match self.state {
            State::Resuming => self.give_up(now_ms, Problem::OtherSubject, out),
            // It leaves when its time is over.
            State::Claiming => {}
            State::Connected | State::Greeted | State::Closed => {}
            State::Joining
            | State::InWorld
            | State::Leaving
            | State::Disconnected
            | State::Parting => self.lose_player("the player is another subject's", out),
        }
    }

    /// The player is found.
    pub(super) fn resumed(&mut self, now_ms: u64, found: Resumed, out: &mut Vec<PlayerEffect>) {
        if self.state != State::Resuming {
            // The answer came twice, or from a former owner.
            return self.notice(now_ms, Notice::Route(found.as_route()), out);
        }
        if found.subject != self.subject {
            return self.is_of_other_subject(now_ms, out);
        }
        let Resumed { scene, region, epoch, last_applied, tick, plane, pos, facing, own, .. } =
            found;
        let Resumed { sight, properties, since_ms, unconfirmed, .. } = found;
        self.since_ms = since_ms;
        self.state = State::InWorld;
        self.link.found(Route::new(region, Some(epoch)));
        self.sight = sight;
        self.memory.begin_with(&properties);
        self.memory.acknowledged(last_applied);
        self.memory.route((scene, plane, pos, facing), last_applied, (tick, own.as_deref()));
        self.inputs.resume(now_ms, last_applied, self.search.acked);
        self.tick = self.tick.max(tick);
        self.slow_client.expect(now_ms);
        self.line_places.occupy((scene, plane), None, out);
        let ack = last_applied;
        let joined = Reply::Joined { scene, plane, pos, facing, tick, sight, own, ack };
        out.push(PlayerEffect::Reply(joined));
        self.tell_unconfirmed(unconfirmed, out);
        if let Some(route) = self.search.early.take() {
            self.notice(now_ms, Notice::Route(*route), out);
        }
        let newer = self.link.route().and_then(|route| self.search.newer_owner(route));
        self.search.end();
        if let Some((region, owner)) = newer {
            self.owner_is_new(region, owner);
        }
    }
}
