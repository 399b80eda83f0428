//! The session asks the game whether its player may come, where the game wants to be asked.

use actix::{ActorFutureExt, AsyncContext, Context};

use super::join::Joining;
use super::{PlayerActor, Session};
use crate::actor::admission::{LONGEST_REASON, PendingDecision, Visitor};
use crate::scene::EntityId;
use crate::scene::messages::Destination;
use crate::scene::player::{ClientRequest, PlayerInput, Problem, State};

impl PlayerActor {
    /// A player is about to join; the game's answer comes before `then`.
    pub(super) fn ask_to_join(
        &mut self,
        joining: Joining,
        ctx: &mut Context<Self>,
        then: fn(&mut Self, Joining, &mut Context<Self>),
    ) {
        let (player, to) = (joining.arrival().id, joining.arrival().to);
        let answer = self.session().ask((player, to), false);
        let Some(answer) = answer else { return then(self, joining, ctx) };
        self.when(answer, ctx, move |answer, actor, ctx| match answer {
            Err(why) => actor.end_join(joining, Some(not_admitted(why)), ctx),
            Ok(_) if !actor.session().awaits(&joining) => actor.end_join(joining, None, ctx),
            Ok(None) => then(actor, joining, ctx),
            Ok(Some(plane)) => {
                let mut joining = joining;
                let led = actor.session().lead(&mut joining, plane);
                match led {
                    Ok(()) => then(actor, joining, ctx),
                    Err(problem) => actor.end_join(joining, Some(problem), ctx),
                }
            }
        });
    }

    /// A client takes its player elsewhere.
    pub(super) fn ask_to_jump(&mut self, said: ClientRequest, ctx: &mut Context<Self>) {
        let ClientRequest::Teleport(seq, Ok(target)) = said else {
            return self.session().handle(PlayerInput::Request(said), None);
        };
        let answer = {
            let session = self.session();
            let in_world = session.player.state() == State::InWorld;
            in_world.then(|| session.ask((session.player.id(), target.to), true)).flatten()
        };
        let Some(answer) = answer else {
            let said = ClientRequest::Teleport(seq, Ok(target));
            return self.session().handle(PlayerInput::Request(said), None);
        };
        let answer = actix::fut::wrap_future::<_, Self>(answer);
        self.session().is_asking = true;
        ctx.wait(answer.map(move |answer, actor: &mut Self, _| {
            let mut session = actor.session();
            session.is_asking = false;
            let target = match answer {
                Ok(None) => Ok(target),
                Ok(Some(plane)) => session.lead_to(target, plane),
                Err(why) => {
                    if target.takes_place {
                        session.directory.give_back_line(target.to.scene, target.to.plane);
                    }
                    Err(not_admitted(why))
                }
            };
            session.handle(PlayerInput::Request(ClientRequest::Teleport(seq, target)), None);
        }));
    }
}

impl Session {
    fn ask(&self, (entity, to): (EntityId, Destination), jumps: bool) -> Option<PendingDecision> {
        let (_, account) = self.credentials.whose();
        self.directory.admission()?.ask(Visitor { account, entity, to, jumps })
    }
}

fn not_admitted(mut why: String) -> Problem {
    let most = (0..=LONGEST_REASON).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
    if why.len() > LONGEST_REASON {
        why.truncate(most);
    }
    Problem::NotAdmitted(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_characters() {
        let said = |why: &str| match not_admitted(why.to_owned()) {
            Problem::NotAdmitted(why) => why,
            other => panic!("{other}"),
        };
        assert_eq!(said("closed"), "closed");
        assert_eq!(said(&"é".repeat(100)).len(), LONGEST_REASON);
        assert_eq!(said(&format!("x{}", "é".repeat(100))).len(), LONGEST_REASON - 1);
    }
}
