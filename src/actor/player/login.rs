//! Who a session's client is: what its token allows, by what it comes back, and what becomes of other sessions of its
//! subject.

use std::sync::Arc;
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler};
use bytes::Bytes;
use futures::FutureExt;

use super::PlayerActor;
use crate::actor::logins::{Taken, Verdict};
use crate::clock;
use crate::scene::player::{Arrival, End, PlayerInput, Problem, Said, State};
use crate::scene::{EntityId, Plane, Scene};
use crate::wire::ServerMsg;
use crate::wire::client::{Renewed, Ticket};

/// Judges a client's token: whom it names and what it allows, or why it does not hold.
pub type TokenCheck = Arc<dyn Fn(&str) -> Result<Login, String> + Send + Sync>;

/// Whom a client's token names, and what it allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// Whom.
    pub subject: String,
    /// When the token expires, in seconds since 1970; `None`: never.
    pub expires_s: Option<u64>,
    /// Planes that it may enter.
    pub planes: Planes,
}

/// Planes beside the lines that a client may enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planes {
    /// All.
    Any,
    /// These, each of the scene of this name.
    Listed(Vec<(String, Plane)>),
}

impl Default for Planes {
    fn default() -> Self {
        Planes::Listed(Vec::new())
    }
}

impl Planes {
    /// Whether a plane of a scene is among them.
    pub fn have(&self, scene: &str, plane: Plane) -> bool {
        match self {
            Planes::Any => true,
            Planes::Listed(listed) => listed.iter().any(|(s, p)| s == scene && *p == plane),
        }
    }
}

/// What a resume ticket says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Whom the token of the hello named.
    pub subject: String,
    /// The player.
    pub entity: EntityId,
    /// The scene in which it was when the token was made.
    pub scene: String,
}

/// Makes and judges resume tickets.
pub trait Passes: Send + Sync {
    /// A ticket that says this and holds for so long, but no longer than the login; `None` when none can be made.
    fn write(&self, pass: &Pass, login: &Login, holds: Duration) -> Option<String>;

    /// What a ticket says.
    ///
    /// # Errors
    /// Why it does not hold.
    fn read(&self, token: &str) -> Result<Pass, String>;
}

impl Handler<Verdict> for PlayerActor {
    type Result = ();

    fn handle(&mut self, verdict: Verdict, ctx: &mut Context<Self>) {
        let input = match verdict {
            Verdict::Yields(number) if number == self.claim => {
                PlayerInput::Dismiss(End::Replaced, "another session of the same subject counts")
            }
            // It claims something else by now.
            Verdict::Yields(_) => return,
            Verdict::Kicked => PlayerInput::Dismiss(End::Kicked, "an operator ended the session"),
        };
        self.handle(input, None, ctx);
    }
}

impl PlayerActor {
    pub(super) fn ticket(&mut self, scene: &str) -> Option<Ticket> {
        let linger_ms = self.config.linger_ms;
        let passes = self.passes.as_ref().filter(|_| linger_ms > 0)?;
        self.ticket_at = clock::now();
        let (subject, entity) = (self.login.subject.clone(), self.player.id());
        let pass = Pass { subject, entity, scene: scene.into() };
        let every = u64::from(self.config.ticket_ms);
        let holds = Duration::from_millis(u64::from(linger_ms) + 2 * every);
        let token = passes.write(&pass, &self.login, holds)?;
        Some(Ticket { token, linger_ms })
    }

    /// Gives the client a newer ticket before the last one expires.
    pub(super) fn renew_ticket(&mut self) {
        let every = Duration::from_millis(self.config.ticket_ms.into());
        let due = clock::now() - self.ticket_at >= every;
        if !due || self.player.state() != State::InWorld {
            return;
        }
        let scene = self.player.place().and_then(|(scene, _)| self.directory.scene(scene));
        let Some(name) = scene.map(|scene| scene.spec.name.clone()) else { return };
        if let Some(ticket) = self.ticket(&name) {
            let renewed = ServerMsg::from(Renewed { ticket });
            // A client that reads nothing now gets the next one.
            let _unread = self.sink.send(Bytes::from(renewed.encode())).is_err();
        }
    }

    /// Whether the client may choose a plane.
    pub(super) fn may_enter(&self, scene: &Scene, plane: Plane) -> Result<(), Problem> {
        let name = &scene.spec.name;
        match is_line(scene, plane) || self.login.planes.have(name, plane) {
            true => Ok(()),
            false => {
                let (scene, lines) = (name.clone(), scene.spec.lines);
                Err(Problem::PrivatePlane { scene, plane, lines })
            }
        }
    }

    /// Tells of the session where sessions are known by their subjects, when it begins and when it is about to have a
    /// player; what is to be handled now. `None`: it is handled once others have answered.
    pub(super) fn log_in(
        &mut self,
        input: PlayerInput<'static>,
        is_new: bool,
        ctx: &mut Context<Self>,
    ) -> Option<PlayerInput<'static>> {
        let Some(logins) = self.directory.logins() else { return Some(input) };
        let session = self.player.session();
        if is_new {
            let barred = logins.begin(session, &self.login.subject, ctx.address().recipient());
            let Err(left) = barred else { return Some(input) };
            let why = format!("the subject is barred for another {} s", left.as_secs() + 1);
            return Some(PlayerInput::Said(Said::Hello(Err((End::Kicked, why)))));
        }
        let entity = match &input {
            _ if self.player.state() != State::Greeted => return Some(input),
            PlayerInput::Said(Said::Join(Ok(_))) => self.player.id(),
            PlayerInput::Said(Said::Resume(Ok(back))) => back.id,
            _ => return Some(input),
        };
        let mut claim = logins.claim(session, entity, self.directory.uptime());
        if let Some(claimed) = (&mut claim).now_or_never() {
            return Some(self.claimed(claimed, input));
        }
        // What the client says next waits for it.
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        ctx.wait(claim.map(move |claimed, actor, ctx| {
            let input = actor.claimed(claimed, input);
            actor.handle(input, None, ctx);
        }));
        None
    }

    /// The session may go on with a join or a resume, or another one goes first.
    fn claimed(
        &mut self,
        claimed: Result<u64, Taken>,
        input: PlayerInput<'static>,
    ) -> PlayerInput<'static> {
        match (claimed, input) {
            (Ok(number), input) => {
                self.claim = number;
                input
            }
            (Err(Taken), PlayerInput::Said(Said::Join(Ok(Arrival { to, .. })))) => {
                self.directory.give_back_line(to.scene, to.plane);
                PlayerInput::Said(Said::Join(Err(Problem::Taken)))
            }
            (Err(Taken), _) => PlayerInput::Said(Said::Resume(Err(Problem::Taken))),
        }
    }
}

pub(super) fn is_line(scene: &Scene, plane: Plane) -> bool {
    (0..scene.spec.lines).contains(&plane.0)
}
