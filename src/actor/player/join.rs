//! The way of a join: what is kept of the player is read and claimed before the player enters.
//!
//! ```text
//!  join --> read --> checked --> admitted --> subject claimed --> record claimed --> enters
//!             |         |            |              |                  | held by an entity
//!             |         |            |              |                  v
//!             '---------'------------'--------------'----> refused   Claiming: the entity leaves
//! ```
//!
//! The record is read twice. What is read first only tells where the join would lead, so that a join that
//! is refused ends no other session. The player begins with what was read in the step of the claim: see
//! [`player_store`](crate::actor::player_store).
//!
//! What the client says next waits for each step but the last one, during which it may ping and leave.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context};
use actix_rt::time::sleep;

use super::{PlayerActor, Session};
use crate::actor::player_store::{ClaimOver, Claimed, Kept, NotClaimed, StoreAway};
use crate::scene::EntityId;
use crate::scene::mutants::{self, Mutant};
use crate::scene::player::{Arrival, Comeback, PlayerInput, Problem, Said, State};
use crate::scene::{RegionId, Scene, Seq};
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
    /// What was read before the claim.
    read: Option<Kept>,
    /// The entity that is asked to leave.
    evicted: Option<EntityId>,
    attempts: u32,
}

impl PlayerActor {
    /// A client wants to join.
    pub(super) fn join(&mut self, join: Join, ctx: &mut Context<Self>) {
        let read = {
            let mut session = self.session();
            if session.player.state() != State::Greeted {
                // It is refused, whatever it says.
                return session.handle(PlayerInput::Said(Said::Join(Err(Problem::NotFree))), None);
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
    fn check(&mut self, join: Join, read: Option<Kept>, ctx: &mut Context<Self>) {
        let arrival = self.session().arrival(&join, read.as_ref(), None);
        match arrival {
            Ok(arrival) => {
                let joining = Joining { join, arrival, read, evicted: None, attempts: 0 };
                self.ask_to_join(joining, ctx);
            }
            Err(problem) => self.session().refuse_join(problem),
        }
    }

    /// The game lets the player in: the session claims its subject.
    pub(super) fn claim_subject(&mut self, joining: Joining, ctx: &mut Context<Self>) {
        let claim = {
            let session = self.session();
            let uptime = session.directory.uptime();
            let (id, entity) = (session.player.session(), joining.arrival.id);
            session.directory.logins().map(|logins| logins.claim(id, entity, uptime))
        };
        let Some(claim) = claim else { return self.claim_record(joining, ctx) };
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        ctx.wait(claim.map(move |claimed, actor, ctx| match claimed {
            Ok(number) => {
                actor.session().credentials.has_claim(number);
                actor.claim_record(joining, ctx);
            }
            Err(taken) => actor.session().drop_join(&joining, taken.into()),
        }));
    }

    /// The session claims its player's record. Only this step reads what the player begins with.
    fn claim_record(&mut self, joining: Joining, ctx: &mut Context<Self>) {
        let claim = self.session().record_claim(&joining);
        let Some(claim) = claim else { return self.session().enter(joining, None) };
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        let claim = claim.map(move |claimed, actor: &mut Self, ctx: &mut Context<Self>| {
            actor.record_claimed(joining, claimed, ctx);
        });
        // A join that waits for an entity to leave does not hold up the client.
        match self.session().player.state() {
            State::Claiming => drop(ctx.spawn(claim)),
            _ => ctx.wait(claim),
        }
    }

    fn record_claimed(
        &mut self,
        mut joining: Joining,
        claimed: Result<Claimed, NotClaimed>,
        ctx: &mut Context<Self>,
    ) {
        let holder = match claimed {
            Ok(claimed) => return self.session().enter(joining, Some(claimed)),
            Err(NotClaimed::Away(away)) => return self.session().drop_join(&joining, away.into()),
            Err(NotClaimed::Held(holder)) => holder,
        };
        self.session().wait_for(&mut joining, holder);
        if self.session().player.state() != State::Claiming {
            // The client has left meanwhile, or the session's patience has ended.
            return self.session().give_back(&joining);
        }
        let again = actix::fut::wrap_future::<_, Self>(sleep(AGAIN));
        ctx.spawn(again.map(move |(), actor, ctx| actor.claim_record(joining, ctx)));
    }
}

impl Session {
    /// The claim of the record; `None`: no records are kept, or the client has no name.
    fn record_claim(
        &mut self,
        joining: &Joining,
    ) -> Option<futures::future::BoxFuture<'static, Result<Claimed, NotClaimed>>> {
        let gone = joining.evicted.filter(|_| self.player.is_evicted());
        let (store, subject) = self.store()?;
        Some(store.claim(
            subject,
            joining.arrival.id,
            gone.map_or(ClaimOver::Nobody, ClaimOver::Gone),
        ))
    }

    /// An entity holds the record. It leaves by itself, or regions are asked to let it leave.
    fn wait_for(&mut self, joining: &mut Joining, holder: Option<EntityId>) {
        if joining.attempts == 0 {
            self.handle(PlayerInput::Claiming, None);
        }
        joining.attempts += 1;
        if joining.attempts > BY_ITSELF && joining.evicted != holder {
            joining.evicted = holder;
            if let Some(player) = holder.map(|id| self.evicted(id)) {
                self.handle(PlayerInput::Evict(player), None);
            }
        }
    }

    /// Every region may have an entity of another session.
    fn evicted(&self, id: EntityId) -> Comeback {
        let regions = |scene: std::sync::Arc<Scene>| -> Vec<RegionId> {
            scene.map.regions.iter().map(|r| r.id).collect()
        };
        let ask: Vec<_> = self.directory.scenes().flat_map(regions).collect();
        let mut ask_then = self.directory.known_regions();
        ask_then.retain(|region| !ask.contains(region));
        Comeback { id, acked: Seq(0), ask, ask_then, all: self.directory.knows_maps() }
    }

    /// The player enters, with what was kept of it.
    fn enter(&mut self, joining: Joining, claimed: Option<Claimed>) {
        self.give_back(&joining);
        let id = joining.arrival.id;
        let mut kept = claimed.as_ref().and_then(|claimed| claimed.kept.clone());
        if mutants::has(Mutant::EarlyRead) {
            kept = joining.read;
        }
        if let Some(claimed) = claimed {
            self.record.join(id, claimed);
        }
        let arrival = self.arrival(&joining.join, kept.as_ref(), Some(id));
        match self.player.state() {
            State::Claiming => self.handle(PlayerInput::Claimed(arrival), None),
            _ => self.handle(PlayerInput::Said(Said::Join(arrival)), None),
        }
    }

    /// The place in a line that the join had taken is free.
    pub(super) fn give_back(&self, joining: &Joining) {
        self.directory.give_back_line(joining.arrival.to.scene, joining.arrival.to.plane);
    }

    /// A join that had a place in a line is refused.
    pub(super) fn drop_join(&mut self, joining: &Joining, problem: Problem) {
        self.give_back(joining);
        self.refuse_join(problem);
    }

    fn refuse_join(&mut self, problem: Problem) {
        let input = match self.player.state() {
            State::Claiming => PlayerInput::Claimed(Err(problem)),
            _ => PlayerInput::Said(Said::Join(Err(problem))),
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

impl From<StoreAway> for Problem {
    fn from(away: StoreAway) -> Problem {
        Problem::StoreAway(away.to_string())
    }
}
