//! A client that comes back for its player, and one whose connection breaks.

use super::{Answer, Comeback, End, Player, PlayerEffect, Problem, Route, State, refuse};
use crate::scene::messages::{Input, Resume, Resumed};
use crate::scene::{Epoch, RegionId, Seq};

/// Which regions are asked for the player.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    acked: Seq,
    /// Those that have not said no.
    asked: Vec<RegionId>,
    /// Those that were not asked yet.
    then: Vec<RegionId>,
    /// Whether these are all that there are.
    all: bool,
    /// When they were asked; `None`: they are to be asked.
    since_ms: Option<u64>,
    /// When the client came back.
    began_ms: u64,
    /// Which regions have got another owner since then, from which epoch on.
    owners: Vec<(RegionId, Epoch)>,
}

impl Search {
    /// A region has another owner: what its owner before says of the player may come yet.
    pub(super) fn note_owner(&mut self, region: RegionId, owner: Epoch) {
        self.owners.retain(|(known, _)| *known != region);
        self.owners.push((region, owner));
    }

    /// The owner that a region has got, if whoever gave the player this epoch is an older one.
    fn newer_owner(&self, route: Route) -> Option<(RegionId, Epoch)> {
        let older = |owner: Epoch| route.epoch.is_some_and(|epoch| epoch < owner.of_birth());
        let newer = |(known, owner): &&(_, _)| *known == route.region && older(*owner);
        self.owners.iter().find(newer).copied()
    }
}

impl Player {
    pub(super) fn come_back(&mut self, now_ms: u64, back: Comeback) {
        let Comeback { id, acked, ask, ask_then, all } = back;
        self.id = id;
        self.state = State::Resuming;
        self.deadline_ms = now_ms.saturating_add(self.config.resume_ms);
        let (asked, then, since_ms, owners) = (ask, ask_then, None, Vec::new());
        self.search = Search { acked, asked, then, all, since_ms, began_ms: now_ms, owners };
    }

    /// Asks whom there is to ask.
    pub(super) fn search(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        let again = self.config.resend_ms;
        let search = &mut self.search;
        match search.since_ms {
            Some(since) if now_ms.saturating_sub(since) < again => return,
            // Whoever says nothing may be down for long: the player may be elsewhere.
            Some(_) => search.asked.append(&mut search.then),
            None => {}
        }
        if search.asked.is_empty() {
            search.asked.append(&mut search.then);
        }
        if search.asked.is_empty() {
            let problem = if search.all { Problem::Gone } else { Problem::NotFound };
            return self.give_up(now_ms, problem, out);
        }
        search.since_ms = Some(now_ms);
        let (id, session, acked) = (self.id, self.session, self.search.acked);
        let since_ms = self.search.began_ms;
        out.extend(self.search.asked.iter().map(|&asked| {
            let resume = Resume { id, session, acked, asked, since_ms };
            PlayerEffect::ToRegion(asked, Input::Resume(resume))
        }));
    }

    /// A region knows nothing of the player.
    pub(super) fn nowhere(&mut self, asked: RegionId) {
        if self.state == State::Resuming {
            self.search.asked.retain(|region| *region != asked);
            if self.search.asked.is_empty() {
                self.search.since_ms = None;
            }
        }
    }

    /// The client may join, as one that was never here.
    pub(super) fn give_up(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        self.id = self.new_id;
        self.search = Search::default();
        (self.overheard, self.early) = (None, None);
        self.state = State::Greeted;
        self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
        refuse(problem, None, out);
    }

    /// The player is found.
    pub(super) fn resumed(&mut self, now_ms: u64, found: Resumed, out: &mut Vec<PlayerEffect>) {
        if self.state != State::Resuming {
            // Told twice; or by an owner before that was none any more.
            return self.notice(now_ms, found.as_route(), out);
        }
        let Resumed { scene, region, epoch, last_applied, tick, plane, pos, own, .. } = found;
        let Resumed { range, look, since_ms, .. } = found;
        let search = std::mem::take(&mut self.search);
        self.since_ms = since_ms;
        self.state = State::InWorld;
        self.route = Some(Route { region, epoch: Some(epoch) });
        self.range = range;
        self.known.look(&look);
        self.known.acknowledged(last_applied);
        self.known.route((scene, plane, pos), last_applied, (tick, own.as_deref()));
        (self.last_seq, self.next_send) = (last_applied, last_applied.next());
        self.progress_ms = now_ms;
        self.tick = self.tick.max(tick);
        self.flow.expect(self.progress_ms);
        self.occupy((scene, plane), None, out);
        let ack = last_applied;
        out.push(PlayerEffect::Answer(Answer::Joined { scene, plane, pos, tick, range, own, ack }));
        if let Some((_, route)) = self.early.take() {
            self.notice(now_ms, *route, out);
        }
        if let Some((region, owner)) = self.route.and_then(|route| search.newer_owner(route)) {
            self.owner_is_new(region, owner);
        }
    }

    /// The player's client has another session.
    pub(super) fn replaced(&mut self, out: &mut Vec<PlayerEffect>) {
        if self.client_is_here() {
            let why = "the client has come back by another connection";
            out.push(PlayerEffect::Close(End::Replaced, why.into()));
        }
        self.finish(out);
    }

    /// The player stays, without its client, for what is left of its time. That this is lost does no harm: its region
    /// looks for sessions that are gone.
    pub(super) fn tell_absent(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        let Some(Route { region, .. }) = self.route else { return };
        let left_ms = self.deadline_ms.saturating_sub(now_ms).max(1);
        let ms = u32::try_from(left_ms).unwrap_or(u32::MAX);
        self.leave_sent_ms = Some(now_ms);
        let (id, session) = (self.id, self.session);
        out.push(PlayerEffect::ToRegion(region, Input::Absent { id, session, ms }));
    }
}
