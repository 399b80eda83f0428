//! The shell of a session: reads the client's bytes, looks names up, and makes deliveries of what
//! [`Player`] decides.

mod login;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFuture, ActorFutureExt, ActorStreamExt, AsyncContext, Context,
    Handler, Message, Recipient,
};
use actix_rt::time::{Instant, sleep_until};
use bytes::Bytes;

pub use self::login::{Login, Pass, Passes, Planes, TokenCheck};

use self::login::is_line;
use super::address::{Beside, LostFrames, SessionEntry};
use super::directory::Directory;
use super::messages::{Delivery, ToRegion};
use super::places::{Found, LastPlace, NotFoundNow, Stamp};
use super::seldom::Seldom;
use super::sink::{ClientSink, QueueFull};
use super::turns::Turns;
use crate::clock;
use crate::scene::messages::{Deed, Destination, Input, Order};
use crate::scene::movement::{Go, MoveOrder};
use crate::scene::mutants::{self, Mutant};
use crate::scene::player::{
    Answer, Arrival, Comeback, End, Leap, Place, Player, PlayerConfig, PlayerEffect, PlayerInput,
    Problem, Said, State,
};
use crate::scene::terrain::{Ground, Terrain};
use crate::scene::{EntityId, Plane, Pos, RangeSet, Scene};
use crate::wire::client::{self, Hello, Join, Joined, Jump, Left, Pong, Refused, Walk, Welcome};
use crate::wire::{
    ClientMsg, CloseCode, DecodeError, EncodedBatch, ErrorCode, JoinRules, MAX_CLIENT_FRAME,
    MoveRules, OwnMove, PROTOCOL_VERSION, ServerMsg,
};

/// Messages that may wait in a session's mailbox. When it is full a frame is lost (and a resync
/// asked for), a notice waits with the region, and the connection reads no further.
pub const MAILBOX: usize = 32;

/// What a client's connection tells its session. A connection that awaits each one's delivery
/// reads no faster than the session works.
#[derive(Message, Debug, Clone, PartialEq, Eq)]
#[rtype(result = "()")]
pub enum FromSocket {
    /// A binary message.
    Binary(Bytes),
    /// Data that is no binary message.
    Unsupported,
    /// A message that is longer than [`MAX_CLIENT_FRAME`].
    TooBig,
    /// A stream that cannot be cut into messages any more.
    Unframed,
    /// A sign of life below the protocol.
    Alive,
    /// The connection ended.
    Gone,
    /// The server stops.
    Stop,
    /// This gateway stops, and others go on.
    Drain,
}

/// What a session is made of.
pub struct PlayerSetup {
    /// The process's directory.
    pub directory: Arc<Directory>,
    /// Where the client's messages go.
    pub sink: ClientSink,
    /// Who is let in.
    pub tokens: TokenCheck,
    /// By what clients come back; `None`: they cannot.
    pub passes: Option<Arc<dyn Passes>>,
    /// The limits.
    pub config: PlayerConfig,
    /// How often deadlines and the client's queue are looked at.
    pub check_every: Duration,
}

impl PlayerSetup {
    /// A client's queue for a session with these limits. Frames fill at most `send_queue` of it;
    /// the other half is for answers, which a client that does not read cannot ask for without end.
    pub fn queue(config: &PlayerConfig) -> (ClientSink, super::sink::ClientQueue) {
        ClientSink::channel(config.send_queue.max(1) * 2)
    }
}

/// A session.
pub struct PlayerActor {
    player: Player,
    directory: Arc<Directory>,
    sink: ClientSink,
    tokens: TokenCheck,
    passes: Option<Arc<dyn Passes>>,
    /// What the token of the hello said.
    login: Login,
    /// The number by which the session claims its subject; 0: it does not.
    claim: u64,
    /// Who knows sessions by their subjects was told that the client is gone.
    is_absent: bool,
    /// When the client was given a ticket last.
    ticket_at: Instant,
    /// What was kept of the player; `None`: nobody could say so far. Until then none of its places is kept.
    found: Option<Found>,
    /// It is asked for now.
    is_looking: bool,
    /// The place that was told last, and when.
    kept: Option<(Instant, LastPlace)>,
    /// It was the last one: what comes now is another session's to tell.
    has_kept_last: bool,
    /// The entity under which other processes find the session.
    registered: EntityId,
    /// A frame from another process found no room here.
    lost: Arc<LostFrames>,
    config: PlayerConfig,
    check_every: Duration,
    effects: Vec<PlayerEffect>,
    /// In what order regions of several processes are heard; of no use where there is one.
    turns: Option<Turns>,
    /// Kept for its memory.
    due: Vec<Delivery>,
}

impl PlayerActor {
    /// A session whose client has just connected.
    pub fn new(setup: PlayerSetup) -> PlayerActor {
        let PlayerSetup { directory, sink, tokens, passes, config, check_every } = setup;
        let now_ms = directory.uptime().as_millis() as u64;
        let player =
            Player::new(now_ms, directory.new_session(), directory.new_entity(), config.clone());
        let turns = (directory.process() > 0).then(Turns::default);
        let (login, registered) = (Login::default(), player.id());
        let (effects, due) = Default::default();
        let lost = Arc::default();
        PlayerActor {
            player,
            directory,
            sink,
            tokens,
            passes,
            login,
            claim: 0,
            is_absent: false,
            ticket_at: clock::now(),
            found: None,
            is_looking: false,
            kept: None,
            has_kept_last: false,
            registered,
            lost,
            config,
            check_every,
            effects,
            turns,
            due,
        }
    }

    /// Hands the machine what happened and does what it wants done.
    fn handle(
        &mut self,
        input: PlayerInput<'_>,
        frame: Option<(&EncodedBatch, usize)>,
        ctx: &mut Context<Self>,
    ) {
        let now_ms = self.directory.uptime().as_millis() as u64;
        let mut effects = std::mem::take(&mut self.effects);
        self.player.handle(now_ms, input, &mut effects);
        if self.registered != self.player.id() {
            self.register(ctx);
        }
        let mut failed: Vec<PlayerInput<'_>> = Vec::new();
        loop {
            for effect in effects.drain(..) {
                failed.extend(self.perform(effect, frame, ctx));
            }
            if failed.is_empty() {
                break;
            }
            // The machine answers a failure with silence or with the session's end, so this ends.
            for failure in failed.drain(..) {
                self.player.handle(now_ms, failure, &mut effects);
            }
        }
        self.effects = effects;
        if self.player.state() == State::Absent {
            self.keep_place(true);
            if !std::mem::replace(&mut self.is_absent, true)
                && let Some(logins) = self.directory.logins()
            {
                logins.absent(self.player.session());
            }
        }
    }

    /// Does one thing; says what could not be done.
    fn perform(
        &mut self,
        effect: PlayerEffect,
        frame: Option<(&EncodedBatch, usize)>,
        ctx: &mut Context<Self>,
    ) -> Option<PlayerInput<'static>> {
        match effect {
            PlayerEffect::ToRegion(region, input) => {
                let client =
                    matches!(input, Input::Enter(_) | Input::Present(_) | Input::Resume(_))
                        .then(|| Recipient::<Delivery>::from(ctx.address()).into());
                let sent = self.directory.send(region, ToRegion { input, client });
                sent.err().map(|e| PlayerInput::Undelivered(e.into_message().input))
            }
            PlayerEffect::Answer(answer) => {
                let bytes = self.encode(answer)?;
                self.sink.send(bytes).err().map(|QueueFull| PlayerInput::Choked)
            }
            PlayerEffect::Forward => {
                let (batch, index) = frame?;
                self.sink.send(frame_bytes(batch, index)).err().map(|QueueFull| PlayerInput::Choked)
            }
            PlayerEffect::Take(scene, plane) => {
                self.directory.take_line(scene, Some(plane));
                None
            }
            PlayerEffect::GiveBack(scene, plane) => {
                self.directory.give_back_line(scene, plane);
                None
            }
            PlayerEffect::Close(end, why) => {
                tracing::debug!(session = %self.player.session(), ?end, why, "session closed");
                self.sink.close(close_code(end), why);
                None
            }
            PlayerEffect::Done => {
                ctx.stop();
                None
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Said {
        match ClientMsg::decode(bytes) {
            // A second one changes nothing.
            Ok(ClientMsg::Hello(_)) if self.player.state() != State::Connected => {
                Said::Hello(Ok(()))
            }
            Ok(ClientMsg::Hello(hello)) => Said::Hello(self.judge(&hello)),
            Ok(ClientMsg::Resume(resume)) => Said::Resume(self.comeback(&resume)),
            Ok(ClientMsg::Join(join)) => Said::Join(self.arrival(join)),
            Ok(ClientMsg::Move(m)) => Said::Input(m.seq, Order::Move(m.pos)),
            Ok(ClientMsg::Walk(walk)) => Said::Input(walk.seq, Order::Walk(self.word(&walk))),
            Ok(ClientMsg::Jump(jump)) => Said::Jump(jump.seq, self.leap(&jump)),
            Ok(ClientMsg::Act(act)) => {
                let payload = Bytes::from(act.payload.into_vec());
                Said::Input(act.seq, Order::Act(Deed { payload, aim: act.aim }))
            }
            Ok(ClientMsg::Ping(ping)) => Said::Ping(ping.nonce),
            Ok(ClientMsg::Leave(_)) => Said::Leave,
            Err(e @ DecodeError::Malformed(_)) => Said::Garbage(Problem::Malformed(e.to_string())),
            Err(e @ DecodeError::UnknownType(_)) => {
                Said::Garbage(Problem::UnknownType(e.to_string()))
            }
            Err(e @ DecodeError::BadField { .. }) => {
                Said::Garbage(Problem::BadField(e.to_string()))
            }
            Err(e @ DecodeError::ActTooLong { .. }) => {
                Said::Garbage(Problem::ActTooLong(e.to_string()))
            }
            Err(DecodeError::TooBig { max, .. }) => Said::TooBig(max),
        }
    }

    fn judge(&mut self, hello: &Hello) -> Result<(), (End, String)> {
        if hello.version != PROTOCOL_VERSION {
            let why = format!("version {}; this is {PROTOCOL_VERSION}", hello.version);
            return Err((End::Version, why));
        }
        let login = (self.tokens)(&hello.token).map_err(|why| (End::Token, why))?;
        tracing::debug!(session = %self.player.session(), subject = login.subject, "hello");
        self.login = login;
        Ok(())
    }

    /// Where the player of a client that comes back may be.
    fn comeback(&self, resume: &client::Resume) -> Result<Comeback, Problem> {
        let none = || Problem::Ticket("this server gives none".into());
        let pass = self.passes.as_ref().ok_or_else(none)?.read(&resume.token);
        let pass = pass.map_err(Problem::Ticket)?;
        if pass.subject != self.login.subject {
            return Err(Problem::Ticket("it is another's".into()));
        }
        let regions =
            |scene: Arc<Scene>| scene.map.regions.iter().map(|r| r.id).collect::<Vec<_>>();
        let (near, far): (Vec<_>, Vec<_>) =
            self.directory.scenes().partition(|scene| scene.spec.name == pass.scene);
        let ask: Vec<_> = near.into_iter().flat_map(regions).collect();
        let mut ask_then: Vec<_> = far.into_iter().flat_map(regions).collect();
        // Players may still sleep in a region that a change of the map has given up, also where that waits for an owner.
        let mut others = self.directory.known_regions();
        others.retain(|region| !ask.contains(region) && !ask_then.contains(region));
        ask_then.append(&mut others);
        let all = self.directory.knows_maps();
        Ok(Comeback { id: pass.entity, acked: resume.ack, ask, ask_then, all })
    }

    /// Tells where the player is, now and then and when it is over.
    fn keep_place(&mut self, over: bool) {
        let Some(places) = self.directory.places() else { return };
        let due = |(at, _): &(Instant, LastPlace)| clock::now() - *at >= places.every();
        let Some(Found { number, .. }) = self.found else { return };
        if self.has_kept_last {
            return;
        }
        self.has_kept_last = over;
        if !over && !self.kept.as_ref().is_none_or(due) {
            return;
        }
        let tick_ms = self.directory.scenes().next().map_or(100, |scene| scene.tick_ms);
        let Some((scene, plane, pos)) = self.player.last_place(tick_ms) else { return };
        let Some(scene) = self.directory.scene(scene) else { return };
        let place = LastPlace { scene: scene.spec.name.clone(), plane, pos };
        if self.kept.as_ref().is_none_or(|(_, kept)| *kept != place) {
            let clock_ms = self.player.last_tick().0.saturating_mul(tick_ms.into());
            places.keep(&self.login.subject, place.clone(), Stamp { number, clock_ms });
            self.kept = Some((clock::now(), place));
        }
    }

    /// Asks what is kept of the player, if that is not known yet.
    fn look_up(&mut self) -> Option<impl ActorFuture<Self, Output = ()> + 'static + use<>> {
        let places = self.directory.places().filter(|_| self.found.is_none())?;
        if self.is_looking || self.login.subject.is_empty() {
            return None;
        }
        let load = actix::fut::wrap_future::<_, Self>(places.load(&self.login.subject));
        self.is_looking = true;
        Some(load.map(|found, actor, _| {
            actor.is_looking = false;
            match found {
                Ok(found) => actor.found = Some(found),
                Err(NotFoundNow { why }) => {
                    tracing::debug!(session = %actor.player.session(), why, "no last place");
                }
            }
        }))
    }

    /// Makes the session known to regions of other processes.
    fn register(&mut self, ctx: &Context<Self>) {
        self.registered = self.player.id();
        let (entity, lost) = (self.registered, self.lost.clone());
        let entry = SessionEntry { entity, to: Arc::new(ctx.address().recipient()), lost };
        self.directory.register(self.player.session(), entry);
    }

    fn arrival(&self, join: Join) -> Result<Arrival, Problem> {
        let Some(scene) = self.directory.scene_named(&join.scene) else {
            return Err(Problem::UnknownScene(join.scene));
        };
        if join.pos.is_some() {
            may_jump(&scene)?;
        }
        let spawn = Pos::ground(scene.spec.spawn_x_cm, scene.spec.spawn_z_cm);
        if self.directory.places().is_some() && self.found.is_none() {
            return Err(Problem::LastPlace);
        }
        let last = self.found.as_ref().and_then(|found| found.place.as_ref());
        let last = last.filter(|last| join.pos.is_none() && allows(&scene, last));
        let pos = last.map_or(join.pos.unwrap_or(spawn), |last| last.pos);
        is_on_map(&scene, pos)?;
        if let Some(plane) = join.plane {
            self.may_enter(&scene, plane)?;
        }
        let room = |plane: &Plane| {
            is_line(&scene, *plane)
                && self.directory.players(scene.id, *plane) < scene.spec.line_capacity
        };
        let plane = join.plane.or_else(|| last.map(|last| last.plane).filter(room));
        let plane = self.directory.take_line(scene.id, plane).ok_or(Problem::NoRoom)?;
        let region = region_at(&scene, plane, pos)?;
        Ok(Arrival {
            to: Destination { scene: scene.id, region, plane, pos },
            range: join.range.unwrap_or(scene.spec.default_range),
            look: Bytes::from(join.look.into_vec()),
        })
    }

    /// A word as regions take it. Over which tiles a path leads says the region's own map.
    fn word(&self, walk: &Walk) -> MoveOrder {
        let scene = self.player.place().and_then(|(scene, _)| self.directory.scene(scene));
        let tile_cm = scene.map_or(1, |s| s.tile_cm());
        let go = walk.form.map_or(Go::On, |form| Go::Walk(form.on_tiles(tile_cm)));
        MoveOrder { ruling: walk.ruling, at: walk.at_ms, go }
    }

    fn leap(&self, jump: &Jump) -> Result<Leap, Problem> {
        let here = self.player.place();
        let scene = match (&jump.scene, here) {
            (Some(name), _) => self.directory.scene_named(name),
            (None, Some((scene, _))) => self.directory.scene(scene),
            (None, None) => None,
        };
        let Some(scene) = scene else {
            return Err(Problem::UnknownScene(jump.scene.clone().unwrap_or_default()));
        };
        let from = here.and_then(|(scene, _)| self.directory.scene(scene));
        from.iter().chain([&scene]).try_for_each(|scene| may_jump(scene))?;
        is_on_map(&scene, jump.pos)?;
        let stays = |(there, plane): &Place| {
            *there == scene.id && jump.plane.is_none_or(|wanted| wanted == *plane)
        };
        let (plane, takes_place) = match here.filter(stays) {
            Some((_, plane)) => (plane, false),
            None => {
                if let Some(plane) = jump.plane {
                    self.may_enter(&scene, plane)?;
                }
                let taken = self.directory.take_line(scene.id, jump.plane);
                (taken.ok_or(Problem::NoRoom)?, true)
            }
        };
        let region = region_at(&scene, plane, jump.pos)?;
        let to = Destination { scene: scene.id, region, plane, pos: jump.pos };
        Ok(Leap { to, takes_place })
    }

    /// The bytes of an answer; `None` if it names a scene that does not exist.
    fn encode(&mut self, answer: Answer) -> Option<Bytes> {
        let server_ms = self.directory.uptime().as_millis() as u64;
        let msg: ServerMsg = match answer {
            Answer::Welcome => Welcome {
                version: PROTOCOL_VERSION,
                session: self.player.session(),
                tick_ms: self.directory.scenes().next().map_or(100, |s| s.tick_ms),
                server_ms,
                rate_limit: self.config.rate_limit,
                max_frame: MAX_CLIENT_FRAME as u32,
                heartbeat_ms: u32::try_from(self.config.heartbeat_ms).unwrap_or(u32::MAX),
            }
            .into(),
            Answer::Joined { scene, plane, pos, tick, range, own, ack } => {
                let Some(scene) = self.directory.scene(scene) else {
                    crate::log_limited!(error, %scene, "a region told of a scene that does not exist");
                    return None;
                };
                let (rules, name) = (join_rules(&scene, range), scene.spec.name.clone());
                let own = own.as_deref().map(OwnMove::from);
                let (id, ticket) = (self.player.id(), self.ticket(&name));
                Joined { id, scene: name, plane, pos, tick, rules, own, ack, ticket }.into()
            }
            Answer::Pong { nonce, tick } => Pong { nonce, server_ms, tick }.into(),
            Answer::Refused { problem, seq } => {
                Refused { code: error_code(&problem), seq, detail: problem.to_string() }.into()
            }
            Answer::Left { tick } => Left { tick }.into(),
        };
        Some(Bytes::from(msg.encode()))
    }
}

/// What a client is told of a scene's rules.
fn join_rules(scene: &Scene, range: RangeSet) -> JoinRules {
    let spec = &scene.spec;
    let movement = scene.judged.map(|rules| MoveRules {
        tick_ms: scene.tick_ms,
        tile_cm: scene.tile_cm(),
        top_speed: spec.top_speed_cm_s.unsigned_abs(),
        word_ms: rules.word_ms,
        grace_ms: rules.grace_ms,
        leash_ms: rules.leash_ms,
        climb: rules.climb.map(|c| [c.up_cm, c.down_cm]),
    });
    JoinRules {
        visibility: spec.visibility,
        range,
        patch_cm: spec.layers.first().map_or(0, |layer| layer.patch_cm),
        view_cap: spec.view_cap as u32,
        view_margin_cm: spec.view_margin_cm,
        rates: [spec.rates.near, spec.rates.middle, spec.rates.far],
        size_cm: [spec.width_cm, spec.depth_cm],
        movement,
    }
}

/// The frame's bytes in one allocation of the right size.
fn frame_bytes(batch: &EncodedBatch, index: usize) -> Bytes {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        batch.write_frame(index, scratch);
        Bytes::copy_from_slice(scratch)
    })
}

fn may_jump(scene: &Scene) -> Result<(), Problem> {
    match scene.spec.client_jumps {
        true => Ok(()),
        false => Err(Problem::MayNotJump(scene.spec.name.clone())),
    }
}

/// Whether a player may come back to where it was: the scene may have changed meanwhile.
fn allows(scene: &Scene, last: &LastPlace) -> bool {
    let free = |terrain: &Arc<Terrain>| {
        let ground = Ground::new(terrain.clone());
        ground.is_free(last.plane, ground.tile_of(last.pos))
    };
    scene.spec.name == last.scene
        && scene.map.at(last.plane, last.pos).is_some()
        && scene.terrain.as_ref().is_none_or(free)
}

fn is_on_map(scene: &Scene, pos: Pos) -> Result<(), Problem> {
    let (width_cm, depth_cm) = (scene.spec.width_cm, scene.spec.depth_cm);
    match scene.map.bounds.contains(pos) {
        true => Ok(()),
        false => Err(Problem::OutOfBounds { pos, width_cm, depth_cm }),
    }
}

fn region_at(scene: &Scene, plane: Plane, pos: Pos) -> Result<crate::scene::RegionId, Problem> {
    let (width_cm, depth_cm) = (scene.spec.width_cm, scene.spec.depth_cm);
    let outside = Problem::OutOfBounds { pos, width_cm, depth_cm };
    scene.map.at(plane, pos).map(|region| region.id).ok_or(outside)
}

fn error_code(problem: &Problem) -> ErrorCode {
    match problem {
        Problem::Malformed(_) => ErrorCode::Malformed,
        Problem::UnknownType(_) => ErrorCode::UnknownType,
        Problem::BadField(_) => ErrorCode::BadField,
        Problem::ActTooLong(_) => ErrorCode::ActTooLong,
        Problem::Premature { .. } => ErrorCode::Premature,
        Problem::OutOfOrder { .. } => ErrorCode::OutOfOrder,
        Problem::OutOfBounds { .. } => ErrorCode::OutOfBounds,
        Problem::UnknownScene(_) => ErrorCode::UnknownScene,
        Problem::NoRoom => ErrorCode::NoRoom,
        Problem::MayNotJump(_) => ErrorCode::MayNotJump,
        Problem::Jumping => ErrorCode::Busy,
        Problem::Region(why) => ErrorCode::from(*why),
        Problem::Gone => ErrorCode::Gone,
        Problem::NotFound | Problem::LastPlace => ErrorCode::Busy,
        Problem::Ticket(_) => ErrorCode::BadTicket,
        Problem::PrivatePlane { .. } => ErrorCode::PrivatePlane,
        Problem::Taken => ErrorCode::Taken,
    }
}

fn close_code(end: End) -> CloseCode {
    match end {
        End::Normal => CloseCode::Normal,
        End::GoingAway => CloseCode::GoingAway,
        End::Elsewhere => CloseCode::Elsewhere,
        End::Replaced => CloseCode::Replaced,
        End::Kicked => CloseCode::Kicked,
        End::Unsupported => CloseCode::Unsupported,
        End::TooBig => CloseCode::TooBig,
        End::Protocol => CloseCode::Protocol,
        End::Version => CloseCode::Version,
        End::Token => CloseCode::Token,
        End::Handshake => CloseCode::Handshake,
        End::Heartbeat => CloseCode::Heartbeat,
        End::Rate => CloseCode::Rate,
        End::Slow => CloseCode::Slow,
        End::Overload => CloseCode::Overload,
    }
}

impl Actor for PlayerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.register(ctx);
        let (directory, every) = (self.directory.clone(), self.check_every);
        let looks = futures::stream::unfold(directory, move |directory| async move {
            sleep_until(directory.next_look(every)).await;
            Some(((), directory))
        });
        let looks = actix::fut::wrap_stream::<_, Self>(Seldom::new(looks));
        ctx.spawn(looks.map(|(), actor, ctx| actor.look(ctx)).finish());
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.directory.unregister(self.player.session());
        if let Some(logins) = self.directory.logins() {
            logins.end(self.player.session());
        }
        self.keep_place(true);
    }
}

impl Handler<FromSocket> for PlayerActor {
    type Result = ();

    fn handle(&mut self, msg: FromSocket, ctx: &mut Context<Self>) {
        if let FromSocket::Binary(bytes) = &msg
            && self.player.state() == State::Greeted
            && matches!(ClientMsg::decode(bytes), Ok(ClientMsg::Join(_)))
            && let Some(look) = self.look_up()
        {
            // It is joined when it is known where the player was, or refused when nobody can say.
            let joins = look.map(move |(), actor: &mut Self, ctx: &mut Context<Self>| {
                let FromSocket::Binary(bytes) = &msg else { return };
                let input = PlayerInput::Said(actor.read(bytes));
                let Some(input) = actor.log_in(input, false, ctx) else { return };
                actor.handle(input, None, ctx);
            });
            return ctx.wait(joins);
        }
        let input = match msg {
            FromSocket::Binary(bytes) => PlayerInput::Said(self.read(&bytes)),
            FromSocket::Unsupported => PlayerInput::Said(Said::Unsupported),
            FromSocket::TooBig => PlayerInput::Said(Said::TooBig(MAX_CLIENT_FRAME)),
            FromSocket::Unframed => PlayerInput::Said(Said::Unframed),
            FromSocket::Alive => PlayerInput::Said(Said::Alive),
            FromSocket::Gone => PlayerInput::Gone,
            FromSocket::Stop => PlayerInput::Stop,
            FromSocket::Drain => PlayerInput::Drain,
        };
        let greets = matches!(input, PlayerInput::Said(Said::Hello(Ok(()))));
        let is_new = greets && self.player.state() == State::Connected;
        let Some(input) = self.log_in(input, is_new, ctx) else { return };
        self.handle(input, None, ctx);
        if is_new && let Some(look) = self.look_up() {
            // What the client says next waits for it.
            ctx.wait(look);
        }
    }
}

impl Handler<Delivery> for PlayerActor {
    type Result = ();

    fn handle(&mut self, msg: Delivery, ctx: &mut Context<Self>) {
        let Some(turns) = &mut self.turns else { return self.deliver(msg, ctx) };
        let mut due = std::mem::take(&mut self.due);
        turns.take(clock::now, msg, &mut due);
        self.deliver_due(due, ctx);
    }
}

impl PlayerActor {
    /// Looks at deadlines and at the client's queue, now and then.
    fn look(&mut self, ctx: &mut Context<Self>) {
        let queued = self.sink.queued();
        if self.player.state() == State::InWorld
            && let Some(look) = self.look_up()
        {
            // It came back while nobody could say.
            ctx.spawn(look);
        }
        self.keep_place(false);
        self.renew_ticket();
        self.handle(PlayerInput::Timer { queued }, None, ctx);
        if let Some(turns) = self.turns.as_mut().filter(|turns| turns.is_waiting()) {
            let mut due = Vec::new();
            turns.look(clock::now(), &mut due);
            self.deliver_due(due, ctx);
        }
    }

    fn deliver_due(&mut self, mut due: Vec<Delivery>, ctx: &mut Context<Self>) {
        if self.turns.as_mut().is_some_and(Turns::has_given_up) {
            self.handle(PlayerInput::Lost, None, ctx);
        }
        due.drain(..).for_each(|delivery| self.deliver(delivery, ctx));
        self.due = due;
    }

    fn deliver(&mut self, msg: Delivery, ctx: &mut Context<Self>) {
        match msg {
            Delivery::Frame(encoded, index) => {
                let beside = match mutants::has(Mutant::GapShown) {
                    true => Beside::Before,
                    false => self.lost.beside(encoded.batch().tick),
                };
                if beside != Beside::Before {
                    self.handle(PlayerInput::Lost, None, ctx);
                }
                let index = index as usize;
                let queued = self.sink.queued();
                let input = PlayerInput::Frame { batch: encoded.batch(), index, queued };
                self.handle(input, Some((&encoded, index)), ctx);
                if beside == Beside::Among {
                    self.handle(PlayerInput::Lost, None, ctx);
                }
            }
            Delivery::Notice(notice) => self.handle(PlayerInput::Notice(notice), None, ctx),
            Delivery::Owner(region, epoch) => {
                self.handle(PlayerInput::Owner(region, epoch), None, ctx);
            }
        }
    }
}
