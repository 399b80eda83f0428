//! The way of a join: what is kept of the player is read and claimed before the player enters.
//!
//! ```text
//!  join --> read --> checked --> admitted --> subject claimed --> record claimed --> enters
//!             |         |            |              |                  | held by an entity
//!             |         |            |              |                  v
//!             '---------'------------'--------------'----> refused   Claiming: the entity leaves,
//!                                                                    or stays and is taken over
//! ```
//!
//! The record is read twice. What is read first only tells where the join would lead, so that a join that
//! is refused ends no other session. The player begins with what was read in the step of the claim: see
//! [`player_store`](crate::actor::player_store).
//!
//! What the client says next waits for each step but the last one, during which it may ping and leave. A
//! join whose client has gone, or whose patience is over, ends with its step and frees its place and its
//! claim. Until then the session neither stops nor joins again.

use std::time::Duration;

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context};
use actix_rt::time::sleep;
use futures::future::{BoxFuture, LocalBoxFuture};

use super::login::SubjectClaim;
use super::{PlayerActor, Session};
use crate::actor::logins::SubjectTaken;
use crate::actor::player_store::{ClaimOver, Claimed, NotClaimed, StoreAway, StoredPlayer};
use crate::scene::mutants::{self, Mutant};
use crate::scene::player::{
    Arrival, ClientRequest, Comeback, End, PlayerInput, Problem, ScenePlane, State, TeleportTarget,
};
use crate::scene::{EntityId, Plane, Seq};
use crate::wire::client::Join;

/// Time between two attempts to claim a record that an entity holds.
const AGAIN: Duration = Duration::from_millis(100);

/// Attempts before regions are asked to let that entity leave. Usually it leaves by itself, because its
/// session yields.
const BY_ITSELF: u32 = 4;

/// A join on its way.
pub(super) struct Joining {
    join: Join,
    arrival: Arrival,
    /// The place in a line that was taken for it, until it is given back or goes to the machine.
    place: Option<ScenePlane>,
    /// The plane that the game has named for it.
    named: Option<Plane>,
    /// What was read before the claim.
    read: Option<StoredPlayer>,
    /// The entity that is asked to leave.
    evicted: Option<EntityId>,
    attempts: u32,
}

impl PlayerActor {
    /// A client wants to join.
    pub(super) fn join(&mut self, join: Join, ctx: &mut Context<Self>) {
        let read = {
            let mut session = self.session();
            if let Err(problem) = session.may_join() {
                return session
                    .handle(PlayerInput::Request(ClientRequest::Join(Err(problem))), None);
            }
            session.store().map(|(store, subject)| store.read(subject))
        };
        let Some(read) = read else { return self.check(join, None, ctx) };
        let read = actix::fut::wrap_future::<_, Self>(read);
        ctx.wait(read.map(|read, actor, ctx| match read {
            Ok(kept) => actor.check(join, kept, ctx),
            Err(away) => actor.session().refuse_join(away.into()),
        }));
    }

    /// Where the join leads is known: the join is checked, and the game is asked.
    fn check(&mut self, join: Join, read: Option<StoredPlayer>, ctx: &mut Context<Self>) {
        let arrival = self.session().arrival(&join, read.as_ref(), (None, None));
        match arrival {
            Ok(arrival) => {
                self.session().is_joining = true;
                let place = Some((arrival.to.scene, arrival.to.plane));
                let (named, evicted, attempts) = Default::default();
                let joining = Joining { join, arrival, place, named, read, evicted, attempts };
                self.ask_to_join(joining, ctx, Self::claim_subject);
            }
            Err(problem) => self.session().refuse_join(problem),
        }
    }

    /// The game lets the player in: the session claims its subject.
    fn claim_subject(&mut self, joining: Joining, ctx: &mut Context<Self>) {
        let claim = self.session().subject_claim(joining.arrival.id);
        let Some(claim) = claim else { return self.claim_record(joining, ctx) };
        self.when(claim, ctx, |claimed, actor, ctx| match claimed {
            Ok(number) => {
                actor.session().credentials.has_claim(number);
                actor.claim_record(joining, ctx);
            }
            Err(taken) => actor.end_join(joining, Some(taken.into()), ctx),
        });
    }

    /// The session claims its player's record. Only this step reads what the player begins with.
    fn claim_record(&mut self, joining: Joining, ctx: &mut Context<Self>) {
        if !self.session().awaits(&joining) {
            return self.end_join(joining, None, ctx);
        }
        let claim = self.session().record_claim(&joining);
        let Some(claim) = claim else { return self.enter(joining) };
        self.when(claim, ctx, |claimed, actor, ctx| actor.record_claimed(joining, claimed, ctx));
    }

    fn record_claimed(
        &mut self,
        mut joining: Joining,
        claimed: Result<Claimed, NotClaimed>,
        ctx: &mut Context<Self>,
    ) {
        let id = joining.arrival.id;
        let claimed = claimed.map(|claimed| {
            let kept = claimed.kept.clone();
            self.session().record.join(id, claimed);
            kept
        });
        if !self.session().awaits(&joining) {
            return self.end_join(joining, None, ctx);
        }
        match claimed {
            Ok(kept) => self.begin_with(joining, kept, ctx),
            Err(NotClaimed::Away(away)) => self.end_join(joining, Some(away.into()), ctx),
            Err(NotClaimed::Held(holder)) => {
                self.session().wait_for(&mut joining, holder);
                let again = Box::pin(sleep(AGAIN));
                self.when(again, ctx, |(), actor, ctx| actor.claim_record(joining, ctx));
            }
        }
    }

    /// The player enters with what was kept of it. Where this differs from what was read first, the join
    /// may lead elsewhere: the game is asked about that place, too.
    fn begin_with(
        &mut self,
        mut joining: Joining,
        kept: Option<StoredPlayer>,
        ctx: &mut Context<Self>,
    ) {
        if kept == joining.read || mutants::has(Mutant::EarlyRead) {
            return self.enter(joining);
        }
        let arrival = {
            let session = self.session();
            session.give_back(&mut joining);
            let known = (Some(joining.arrival.id), joining.named);
            session.arrival(&joining.join, kept.as_ref(), known)
        };
        let arrival = match arrival {
            Ok(arrival) => arrival,
            Err(problem) => return self.end_join(joining, Some(problem), ctx),
        };
        joining.place = Some((arrival.to.scene, arrival.to.plane));
        let before = std::mem::replace(&mut joining.arrival, arrival);
        if joining.arrival.to == before.to {
            return self.enter(joining);
        }
        self.ask_to_join(joining, ctx, |actor, joining, _| actor.enter(joining));
    }

    /// The player enters.
    fn enter(&mut self, joining: Joining) {
        self.renumber();
        self.session().enter(joining);
    }

    /// Runs `then` with the result of `what`. The client's messages wait, but for a join that waits for an
    /// entity to leave.
    pub(super) fn when<T: 'static>(
        &mut self,
        what: LocalBoxFuture<'static, T>,
        ctx: &mut Context<Self>,
        then: impl FnOnce(T, &mut Self, &mut Context<Self>) + 'static,
    ) {
        let what = actix::fut::wrap_future::<_, Self>(what).map(then);
        match self.session().player.state() {
            State::Claiming | State::Closed => drop(ctx.spawn(what)),
            _ => ctx.wait(what),
        }
    }

    /// The player does not enter. What was taken for it is free again; a session that has ended meanwhile
    /// stops only now.
    pub(super) fn end_join(
        &mut self,
        mut joining: Joining,
        refused: Option<Problem>,
        ctx: &mut Context<Self>,
    ) {
        let mut session = self.session();
        session.give_back(&mut joining);
        session.is_joining = false;
        let refused = refused.filter(|_| session.awaits(&joining));
        if let Some(problem) = refused {
            session.refuse_join(problem);
        }
        session.release_unused();
        let taken_over = match session.player.state() {
            State::Resuming | State::InWorld => session.subject_claim(session.player.id()),
            State::Closed => {
                ctx.stop();
                None
            }
            _ => None,
        };
        drop(session);
        if let Some(claim) = taken_over {
            self.claim_taken_over(claim, ctx);
        }
    }

    /// The join has found a player that stays: the session claims its subject for that player.
    fn claim_taken_over(&mut self, claim: SubjectClaim, ctx: &mut Context<Self>) {
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        ctx.spawn(claim.map(|claimed, actor, _| match claimed {
            Ok(number) => actor.session().credentials.has_claim(number),
            Err(SubjectTaken) => {
                let why = "another session of the same subject counts";
                actor.session().handle(PlayerInput::Dismiss(End::Replaced, why), None);
            }
        }));
    }
}

impl Session {
    /// Whether the client may ask to join.
    fn may_join(&self) -> Result<(), Problem> {
        // A join that ran out of patience may still be claiming.
        if self.player.state() != State::Greeted || self.is_joining {
            return Err(Problem::NotFree);
        }
        let joined = self.directory.logins().map_or(Ok(()), |all| all.join(self.connection));
        joined.map_err(|wait| Problem::JoinsTooOften { wait_ms: wait.as_millis() as u64 })
    }

    /// Whether the client still waits for this join: it may have left, or its patience have ended.
    pub(super) fn awaits(&self, joining: &Joining) -> bool {
        let waits = if joining.attempts == 0 { State::Greeted } else { State::Claiming };
        self.player.state() == waits
    }

    /// The claim of the record; `None`: no records are kept, or the client has no name.
    fn record_claim(
        &self,
        joining: &Joining,
    ) -> Option<BoxFuture<'static, Result<Claimed, NotClaimed>>> {
        let gone = joining.evicted.filter(|_| self.player.is_evicted());
        let (store, subject) = self.store()?;
        let over = gone.map_or(ClaimOver::Nobody, ClaimOver::Gone);
        Some(store.claim(subject, joining.arrival.id, over))
    }

    /// An entity holds the record. It leaves by itself, or regions are asked to let it leave.
    fn wait_for(&mut self, joining: &mut Joining, holder: Option<EntityId>) {
        if joining.attempts == 0 {
            self.handle(PlayerInput::Claiming, None);
        }
        joining.attempts += 1;
        let is_asked = joining.evicted == holder && self.player.is_searching();
        if joining.attempts > BY_ITSELF && !is_asked {
            joining.evicted = holder;
            if let Some(player) = holder.map(|id| self.evicted(id)) {
                self.handle(PlayerInput::Evict(player), None);
            }
        }
    }

    /// Every region may have an entity of another session.
    fn evicted(&self, id: EntityId) -> Comeback {
        let (ask, ask_then) = self.regions(|_| true);
        Comeback { id, acked: Seq(0), ask, ask_then, all: self.directory.knows_maps() }
    }

    /// The player enters; its place in a line goes to the machine.
    fn enter(&mut self, joining: Joining) {
        self.is_joining = false;
        let arrival = Ok(joining.arrival);
        match self.player.state() {
            State::Claiming => self.handle(PlayerInput::Claimed(arrival), None),
            _ => self.handle(PlayerInput::Request(ClientRequest::Join(arrival)), None),
        }
    }

    /// The place in a line that the join had taken is free.
    fn give_back(&self, joining: &mut Joining) {
        if let Some((scene, plane)) = joining.place.take() {
            self.directory.give_back_line(scene, plane);
        }
    }

    fn refuse_join(&mut self, problem: Problem) {
        let input = match self.player.state() {
            State::Claiming => PlayerInput::Claimed(Err(problem)),
            _ => PlayerInput::Request(ClientRequest::Join(Err(problem))),
        };
        self.handle(input, None);
    }
}

impl Joining {
    /// The entity, and where it goes.
    pub(super) fn arrival(&self) -> &Arrival {
        &self.arrival
    }
}

impl Session {
    /// The game names a plane for a join, which has a place in another one.
    pub(super) fn lead(&self, joining: &mut Joining, plane: Plane) -> Result<(), Problem> {
        joining.named = Some(plane);
        let place = (joining.arrival.to, joining.place.take().is_some());
        let (to, takes_place) = place;
        let target = self.lead_to(TeleportTarget { to, takes_place }, plane)?;
        joining.arrival.to = target.to;
        joining.place = Some((target.to.scene, target.to.plane));
        Ok(())
    }
}

impl From<StoreAway> for Problem {
    fn from(away: StoreAway) -> Problem {
        Problem::StoreAway(away.to_string())
    }
}
