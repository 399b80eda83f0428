//! The identity of a session's client: what its token allows, by what ticket it comes back, and
//! which of several sessions of one subject counts.
//!
//! A token is judged once, at the hello. A session claims its subject before it has a player, so that no
//! two sessions of a subject have players at once.

use std::sync::Arc;
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, Recipient};
use actix_rt::time::Instant;
use bytes::Bytes;
use futures::future::BoxFuture;

use super::{PlayerActor, Session};
use crate::actor::logins::{SubjectTaken, Verdict};
use crate::actor::player_store::{ClaimOver, NotClaimed};
use crate::clock;
use crate::scene::player::{
    ClientRequest, Comeback, End, PlayerConfig, PlayerInput, Problem, State,
};
use crate::scene::{Account, EntityId, Plane, Scene, SessionId, SubjectHash};
use crate::wire::client::{Hello, Renewed, Ticket};
use crate::wire::{PROTOCOL_VERSION, ServerMsg};

/// Checks a client's token: its subject, what it allows and the subject's hash; or why it is invalid.
pub type TokenCheck = Arc<dyn Fn(&str) -> Result<(Login, SubjectHash), String> + Send + Sync>;

/// The subject of a client's token, and what the token allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The subject.
    pub subject: String,
    /// When the token expires, in seconds since 1970; `None`: never.
    pub expires_s: Option<u64>,
    /// Planes that it may enter.
    pub planes: Planes,
    /// The claims of the token that the configuration names, a MessagePack map; nothing: none.
    pub claims: Bytes,
}

/// Planes beside the lines that a client may enter, and the lines of its party; see [`Account::line_of`].
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
    /// The subject of the hello's token.
    pub subject: String,
    /// The player.
    pub entity: EntityId,
    /// The scene in which it was when the token was made.
    pub scene: String,
}

/// Makes and judges resume tickets.
pub trait Passes: Send + Sync {
    /// A ticket with this content that is valid for so long, but no longer than the login; `None` when no
    /// ticket can be made.
    fn write(&self, pass: &Pass, login: &Login, holds: Duration) -> Option<String>;

    /// What a ticket says.
    ///
    /// # Errors
    /// Why it does not hold.
    fn read(&self, token: &str) -> Result<Pass, String>;
}

/// The client's identity, from its token, and what the session holds by it.
pub(super) struct Credentials {
    tokens: TokenCheck,
    passes: Option<Arc<dyn Passes>>,
    /// What the token of the hello said.
    login: Login,
    hash: SubjectHash,
    account: Account,
    /// The client wants its crowd.
    wants_crowd: bool,
    /// The number by which the session claims its subject; 0: it does not.
    claim: u64,
    /// When the client was given a ticket last.
    ticket_at: Instant,
    grace_period_ms: u32,
    ticket_ms: u32,
}

impl Credentials {
    pub(super) fn new(
        tokens: TokenCheck,
        passes: Option<Arc<dyn Passes>>,
        config: &PlayerConfig,
    ) -> Credentials {
        Credentials {
            tokens,
            passes,
            login: Login::default(),
            hash: SubjectHash::NONE,
            account: Account::NONE,
            wants_crowd: false,
            claim: 0,
            ticket_at: clock::now(),
            grace_period_ms: config.grace_period_ms,
            ticket_ms: config.ticket_ms,
        }
    }

    /// The subject that the token names; empty before the hello.
    pub(super) fn subject(&self) -> &str {
        &self.login.subject
    }

    /// Whose the session's players are; nobody's before the hello.
    pub(super) fn whose(&self) -> (SubjectHash, Account) {
        (self.hash, self.account.clone())
    }

    /// Whether the client wants its crowd.
    pub(super) fn wants_crowd(&self) -> bool {
        self.wants_crowd
    }

    /// Whether the token names a plane of this scene.
    pub(super) fn may_enter(&self, scene: &str, plane: Plane) -> bool {
        self.login.planes.have(scene, plane)
    }

    /// The line of a scene that the token names.
    pub(super) fn line_of(&self, scene: &Scene) -> Option<Plane> {
        self.account.line_of(scene)
    }

    /// Judges a hello; the error ends the session.
    pub(super) fn judge(
        &mut self,
        session: SessionId,
        hello: &Hello,
    ) -> Result<(SubjectHash, Account), (End, String)> {
        if hello.version != PROTOCOL_VERSION {
            let why = format!("version {}; this is {PROTOCOL_VERSION}", hello.version);
            return Err((End::Version, why));
        }
        let (login, hash) = (self.tokens)(&hello.token).map_err(|why| (End::Token, why))?;
        tracing::debug!(%session, subject = login.subject, "hello");
        let planes = match &login.planes {
            Planes::Any => &[][..],
            Planes::Listed(listed) => listed,
        };
        self.account = Account::new(&login.subject, login.claims.clone(), planes)
            .map_err(|too_large| (End::Token, too_large.to_string()))?;
        (self.login, self.hash) = (login, hash);
        self.wants_crowd = hello.crowd;
        Ok(self.whose())
    }

    /// What a resume ticket says, if it holds and is this subject's.
    pub(super) fn read_pass(&self, token: &str) -> Result<Pass, Problem> {
        let none = || Problem::Ticket("this server gives none".into());
        let pass = self.passes.as_ref().ok_or_else(none)?.read(token);
        let pass = pass.map_err(Problem::Ticket)?;
        if pass.subject != self.login.subject {
            return Err(Problem::Ticket("it is another's".into()));
        }
        Ok(pass)
    }

    /// A ticket by which the client may come back for its player; `None`: it cannot.
    pub(super) fn ticket(&mut self, entity: EntityId, scene: &str) -> Option<Ticket> {
        let grace_period_ms = self.grace_period_ms;
        let passes = self.passes.as_ref().filter(|_| grace_period_ms > 0)?;
        self.ticket_at = clock::now();
        let pass = Pass { subject: self.login.subject.clone(), entity, scene: scene.into() };
        let every = u64::from(self.ticket_ms);
        let holds = Duration::from_millis(u64::from(grace_period_ms) + 2 * every);
        let token = passes.write(&pass, &self.login, holds)?;
        Some(Ticket { token, grace_period_ms })
    }

    fn ticket_age(&self) -> Duration {
        clock::now() - self.ticket_at
    }

    /// The session claims its subject by this number.
    pub(super) fn has_claim(&mut self, number: u64) {
        self.claim = number;
    }

    fn has_claimed(&self, number: u64) -> bool {
        self.claim == number
    }
}

impl Handler<Verdict> for PlayerActor {
    type Result = ();

    fn handle(&mut self, verdict: Verdict, _: &mut Context<Self>) {
        let input = match verdict {
            Verdict::Yields(number) if self.session().credentials.has_claimed(number) => {
                PlayerInput::Dismiss(End::Replaced, "another session of the same subject counts")
            }
            // The session has another claim by now.
            Verdict::Yields(_) => return,
            Verdict::Kicked => PlayerInput::Dismiss(End::Kicked, "an operator ended the session"),
        };
        self.session().handle(input, None);
    }
}

impl Session {
    /// Gives the client a newer ticket before the last one expires.
    pub(super) fn renew_ticket(&mut self) {
        let every = Duration::from_millis(self.config.ticket_ms.into());
        let due = self.credentials.ticket_age() >= every;
        if !due || self.player.state() != State::InWorld {
            return;
        }
        let scene = self.player.place().and_then(|(scene, _)| self.directory.scene(scene));
        let Some(name) = scene.map(|scene| scene.spec.name.clone()) else { return };
        if let Some(ticket) = self.credentials.ticket(self.player.id(), &name) {
            let renewed = ServerMsg::from(Renewed { ticket });
            // A client that does not read now gets the next ticket.
            let _unread = self.send(Bytes::from(renewed.encode())).is_err();
        }
    }
}

impl PlayerActor {
    /// Takes a hello or a resume. Where sessions are known by their subjects the session is told of
    /// there first: when it begins, and when it is about to have a player.
    pub(super) fn admit(&mut self, request: ClientRequest, ctx: &mut Context<Self>) {
        let state = self.session().player.state();
        match (state, request) {
            (State::Connected, ClientRequest::Hello(Ok(_))) => {
                self.session().greet(ctx.address().recipient());
            }
            (State::Greeted, ClientRequest::Resume(Ok(_))) if self.session().is_joining => {
                self.session().resume(Err(Problem::NotFree));
            }
            (State::Greeted, ClientRequest::Resume(Ok(back))) => self.claim_held(back, ctx),
            (_, request) => self.session().handle(PlayerInput::Request(request), None),
        }
    }

    /// The player must hold its record: otherwise it has left, another one may play, and its session must
    /// not yield.
    fn claim_held(&mut self, back: Comeback, ctx: &mut Context<Self>) {
        let claim = {
            let session = self.session();
            session.store().map(|(store, name)| store.claim(name, back.id, ClaimOver::Itself))
        };
        let Some(claim) = claim else { return self.claim_subject_again(back, ctx) };
        // What the client says next waits for it.
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        ctx.wait(claim.map(move |claimed, actor, ctx| {
            match claimed {
                Ok(claimed) => actor.session().record.resume(back.id, claimed),
                Err(NotClaimed::Held(_)) => return actor.session().resume(Err(Problem::Gone)),
                // Play goes on while the store is away; the session claims as soon as it can.
                Err(NotClaimed::Away(_)) => {}
            }
            actor.claim_subject_again(back, ctx);
        }));
    }

    /// The session is about to have this player again.
    fn claim_subject_again(&mut self, back: Comeback, ctx: &mut Context<Self>) {
        let claim = self.session().subject_claim(back.id);
        let Some(claim) = claim else { return self.resume(Ok(back)) };
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        ctx.wait(claim.map(move |claimed, actor, _| {
            let back = claimed.map(|number| {
                actor.session().credentials.has_claim(number);
                back
            });
            actor.resume(back.map_err(Problem::from));
        }));
    }
}

impl PlayerActor {
    /// The client comes back for its player.
    fn resume(&mut self, back: Result<Comeback, Problem>) {
        if back.is_ok() {
            self.renumber();
        }
        self.session().resume(back);
    }
}

/// A claim of a session's subject for a player, and its number.
pub(super) type SubjectClaim = BoxFuture<'static, Result<u64, SubjectTaken>>;

impl Session {
    /// Claims the subject for a player of the session; `None`: there is no registry of subjects.
    pub(super) fn subject_claim(&self, entity: EntityId) -> Option<SubjectClaim> {
        let uptime = self.directory.uptime();
        self.directory.logins().map(|logins| logins.claim(self.connection, entity, uptime))
    }

    /// Tells the registry of subjects, if there is one, that the session begins, and greets the client.
    fn greet(&mut self, to: Recipient<Verdict>) {
        let barred = self
            .directory
            .logins()
            .and_then(|logins| logins.begin(self.connection, self.credentials.subject(), to).err());
        let hello = barred.map_or(Ok(self.credentials.whose()), |left| {
            let why = format!("the subject is barred for another {} s", left.as_secs() + 1);
            Err((End::Kicked, why))
        });
        self.handle(PlayerInput::Request(ClientRequest::Hello(hello)), None);
    }

    fn resume(&mut self, back: Result<Comeback, Problem>) {
        self.handle(PlayerInput::Request(ClientRequest::Resume(back)), None);
    }
}

impl From<SubjectTaken> for Problem {
    fn from(_: SubjectTaken) -> Problem {
        Problem::SubjectTaken
    }
}
