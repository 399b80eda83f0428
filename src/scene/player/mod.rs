//! A client's session as a state machine, sans IO.
//!
//! ```text
//!                         resume              resumed
//!                    .-------------> Resuming -----------.
//!                    |<---refused-------'                v
//!            hello   |        join             route               leave           left
//! Connected ------> Greeted ------> Joining ---------> InWorld -----------> Leaving ----> Closed
//!     |                ^  |            |  |                |                   |             ^
//!     |                '--+--refused---'  |                |                   |             |
//!     |                   |               '----------------+-------------------'             |
//!     |                   |               client gone or closed: Leave to the region         |
//!     |                   |                                |                                 |
//!     |                   |                                v         left, or patience ends  |
//!     |                   |                             Parting -----------------------------|
//!     |                   |        InWorld and client gone: Absent ----- replaced, or linger ends
//!     |                   |                                   '-- dismissed: Parting
//!     '-------------------'--------- client gone or closed ----------------------------------'
//! ```
//!
//! | state | the client may send | else |
//! |---|---|---|
//! | Connected | hello | `Premature` |
//! | Greeted | join, ping, leave | `Premature` |
//! | Joining, Resuming | ping, leave | `Premature` |
//! | InWorld | move, walk, jump, act, ping, leave | `Premature` |
//! | Leaving | ping | `Premature` |
//! | Absent, Parting, Closed | nothing: the client is gone | ignored |
//!
//! **Numbers.** A client's inputs are numbered from 1 without gaps. An input that the session itself
//! refuses (answer `Refused` with its number) *consumes no number*: the region never saw it, and the
//! client's next input carries that number again. An input that the region refuses (in a frame's
//! `refused`) *consumes its number*: it was the last one plus one, and was applied as "nothing".
//!
//! **Delivery.** An input is kept until a frame or a route of the route's epoch or a newer one
//! acknowledges it, and is sent again after a new route, after a full mailbox and when nothing was
//! acknowledged for [`PlayerConfig::resend_ms`]. The region applies only the last one plus one, so
//! sending again is always safe.
//!
//! **Presentation.** When a region goes on from a checkpoint it may know less of the player than the session
//! does. The session then presents what it knows (see the module `known`), sends nothing else until a
//! route says that the player lives there, and presents again when none comes for
//! [`PlayerConfig::resend_ms`]. Inputs wait meanwhile as they do for any acknowledgement.
//!
//! **Absence.** When the connection of a client in the world breaks, or the gateway stops, the region is told
//! that the player is absent: it stays for [`PlayerConfig::linger_ms`]. So does its session, unless the gateway stops:
//! a region that dies meanwhile may go on from a checkpoint that does not know the player, and nobody else may know it.
//! It presents the player as ever, says anew that it is absent, and is over when another session has the player. Inputs
//! that the client was not acknowledged are its own to send again.
//!
//! **Resumption.** A client that comes back has a new session, which asks the regions for its player: those first
//! where it is most likely, then all others. Each says that it has it, passes the question on, or says that
//! it knows nothing; those that say nothing are asked again. The numbers of inputs go on where the region has come to.
//!
//! **Places.** Whoever hands the session a place in a line (with a join or a jump to another plane)
//! hands it over for good: the session gives every place back, kept or not, with
//! [`PlayerEffect::GiveBack`]. Whoever is absent has none.

mod budget;
mod flow;
mod known;
mod region_side;
mod resume;
#[cfg(test)]
mod tests;
mod words;

use std::collections::VecDeque;

pub use self::words::{
    Answer, Arrival, Comeback, End, Leap, Place, PlayerConfig, PlayerEffect, PlayerInput, Problem,
    Said,
};

use self::budget::Budget;
use self::flow::Flow;
use self::known::Known;
use self::resume::Search;
use super::messages::{FIRST_SESSION, Notice, Order, Spawn};
use super::movement::ServerMs;
use super::mutants::{self, Mutant};
use super::{EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneId, Seq, SessionId, Tick};

/// Where a session stands; see the chart above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing was said yet.
    Connected,
    /// The client may join.
    Greeted,
    /// The region was asked to add the entity.
    Joining,
    /// Regions are asked for the entity of a client that comes back.
    Resuming,
    /// The entity lives in a region.
    InWorld,
    /// The client asked to leave and waits for the region's word.
    Leaving,
    /// The client is gone and may come back by another session; the entity stays for a while.
    Absent,
    /// The client is gone; the region has still to remove the entity.
    Parting,
    /// Over.
    Closed,
}

/// Where a session's inputs go.
#[derive(Debug, Clone, Copy)]
struct Route {
    region: RegionId,
    /// Known from the first route on.
    epoch: Option<Epoch>,
}

/// The session of one client.
#[derive(Debug)]
pub struct Player {
    session: SessionId,
    id: EntityId,
    // What its entity is called unless it comes back for another.
    new_id: EntityId,
    // Since when this session has its player, as its region counts.
    since_ms: u64,
    search: Search,
    config: PlayerConfig,
    state: State,
    // When the state's patience ends; unused InWorld.
    deadline_ms: u64,
    heard_ms: u64,
    budget: Budget,
    malformed: u32,
    last_seq: Seq,
    // Inputs from the one to before the other were applied for an earlier session of the client's, of which it was not
    // told when it came back: it says them again.
    earlier: (Seq, Seq),
    unacknowledged: VecDeque<(Seq, Order)>,
    // The first input that the route was not sent yet.
    next_send: Seq,
    /// The highest epoch of frames that came before it was known where the player of a client that comes back is.
    overheard: Option<Epoch>,
    /// The newest route that came before that, and its epoch.
    early: Option<(Epoch, Box<Notice>)>,
    progress_ms: u64,
    route: Option<Route>,
    // The region's mailbox was full: send nothing before the next frame, notice or timer.
    blocked: bool,
    entering: Option<Box<Spawn>>,
    enter_sent: bool,
    leave_sent_ms: Option<u64>,
    flow: Flow,
    known: Known,
    place: Option<Place>,
    leap: Option<(Seq, Place)>,
    range: RangeSet,
    shown: Vec<EntityId>,
    tick: Tick,
}

impl Player {
    /// A session whose client has just connected; `id` is what its entity will be called.
    pub fn new(now_ms: u64, session: SessionId, id: EntityId, config: PlayerConfig) -> Player {
        Player {
            session,
            id,
            new_id: id,
            since_ms: FIRST_SESSION,
            search: Search::default(),
            state: State::Connected,
            deadline_ms: now_ms.saturating_add(config.handshake_ms),
            heard_ms: now_ms,
            budget: Budget::new(now_ms, config.rate_limit, config.rate_burst),
            malformed: 0,
            last_seq: Seq(0),
            earlier: (Seq(0), Seq(0)),
            unacknowledged: VecDeque::new(),
            next_send: Seq(1),
            overheard: None,
            early: None,
            progress_ms: now_ms,
            route: None,
            blocked: false,
            entering: None,
            enter_sent: false,
            leave_sent_ms: None,
            flow: Flow::new(config.send_queue),
            known: Known::default(),
            place: None,
            leap: None,
            range: RangeSet::NONE,
            shown: Vec::new(),
            tick: Tick(0),
            config,
        }
    }

    /// Where the session stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// The session's number.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The session's entity.
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Scene and plane of the entity; `None` before the join.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// Where the player is, or was last, in ticks of `tick_ms` milliseconds; `None` before it was anywhere, and
    /// between two scenes.
    pub fn last_place(&self, tick_ms: u32) -> Option<(SceneId, Plane, Pos)> {
        self.known.last_place(ServerMs(self.tick.0.saturating_mul(tick_ms.into())))
    }

    /// The newest tick that a region told of.
    pub fn last_tick(&self) -> Tick {
        self.tick
    }

    /// Whom the client is shown, in the order of their ids.
    pub fn shown(&self) -> &[EntityId] {
        &self.shown
    }

    /// Takes what happened and appends what is to be done, in order.
    pub fn handle(&mut self, now_ms: u64, input: PlayerInput<'_>, out: &mut Vec<PlayerEffect>) {
        match input {
            PlayerInput::Said(said) => self.said(now_ms, said, out),
            PlayerInput::Gone => self.part(now_ms, true, out),
            PlayerInput::Stop => self.stop(now_ms, End::GoingAway, "the server stops", out),
            PlayerInput::Drain => {
                self.stop(now_ms, End::Elsewhere, "this gateway stops: resume elsewhere", out);
            }
            PlayerInput::Dismiss(end, why) => self.dismiss(now_ms, end, why, out),
            PlayerInput::Frame { batch, index, queued } => {
                self.frame(now_ms, batch, index, queued, out);
            }
            // What comes next is told to one who knows what was lost.
            PlayerInput::Lost if mutants::has(Mutant::GapShown) => {}
            PlayerInput::Lost => self.flow.lost(),
            PlayerInput::Notice(notice) => self.notice(now_ms, notice, out),
            PlayerInput::Undelivered(input) => self.undelivered(&input),
            PlayerInput::Owner(region, epoch) => self.owner_is_new(region, epoch),
            PlayerInput::Choked => {
                self.close(now_ms, End::Slow, "answers pile up unread", out);
            }
            PlayerInput::Timer { queued } => self.timer(now_ms, queued, out),
        }
        self.settle(now_ms, out);
    }

    fn client_is_here(&self) -> bool {
        !matches!(self.state, State::Absent | State::Parting | State::Closed)
    }

    fn said(&mut self, now_ms: u64, said: Said, out: &mut Vec<PlayerEffect>) {
        if !self.client_is_here() {
            return give_back(&said, out);
        }
        self.heard_ms = now_ms;
        if !self.budget.take(now_ms) {
            give_back(&said, out);
            let limit = self.config.rate_limit;
            let why = format!("more than {limit} messages per second");
            return self.close(now_ms, End::Rate, why, out);
        }
        match (self.state, said) {
            (_, Said::Alive) => {}
            (_, Said::Unsupported) => {
                self.close(now_ms, End::Unsupported, "only binary messages are taken", out);
            }
            (_, Said::TooBig(max)) => {
                let why = format!("a message may have at most {max} bytes");
                self.close(now_ms, End::TooBig, why, out);
            }
            (_, Said::Unframed) => {
                self.close(now_ms, End::Protocol, "a message of no bytes was announced", out);
            }
            (_, Said::Garbage(problem)) => self.garbage(now_ms, problem, out),
            (State::Connected, Said::Hello(Ok(()))) => {
                self.state = State::Greeted;
                out.push(PlayerEffect::Answer(Answer::Welcome));
            }
            (State::Connected, Said::Hello(Err((end, why)))) => self.close(now_ms, end, why, out),
            (State::Connected, said) => self.premature(&said, out),
            (_, Said::Ping(nonce)) => {
                out.push(PlayerEffect::Answer(Answer::Pong { nonce, tick: self.tick }));
            }
            (State::Greeted, Said::Join(Ok(arrival))) => self.join(now_ms, arrival),
            (State::Greeted, Said::Join(Err(problem))) => refuse(problem, None, out),
            (State::Greeted, Said::Resume(Ok(back))) => self.come_back(now_ms, back),
            (State::Greeted, Said::Resume(Err(problem))) => refuse(problem, None, out),
            (State::Greeted | State::Resuming, Said::Leave) => {
                self.close(now_ms, End::Normal, "left", out)
            }
            (State::Joining | State::InWorld, Said::Leave) => self.leave(now_ms, out),
            (State::InWorld, Said::Input(seq, order)) => {
                self.order(now_ms, seq, order, out);
            }
            (State::InWorld, Said::Jump(seq, leap)) => self.jump(now_ms, seq, leap, out),
            (_, said) => self.premature(&said, out),
        }
    }

    fn premature(&mut self, said: &Said, out: &mut Vec<PlayerEffect>) {
        give_back(said, out);
        let (what, seq) = match said {
            Said::Hello(_) => ("hello", None),
            Said::Join(_) => ("join", None),
            Said::Resume(_) => ("resume", None),
            Said::Input(seq, Order::Move(_)) => ("move", Some(*seq)),
            Said::Input(seq, Order::Walk(_)) => ("walk", Some(*seq)),
            Said::Input(seq, Order::Act(_)) => ("act", Some(*seq)),
            Said::Input(seq, Order::Jump(_)) | Said::Jump(seq, _) => ("jump", Some(*seq)),
            Said::Ping(_) => ("ping", None),
            Said::Leave => ("leave", None),
            Said::Garbage(_)
            | Said::Unsupported
            | Said::TooBig(_)
            | Said::Unframed
            | Said::Alive => ("this", None),
        };
        refuse(Problem::Premature { what, state: self.state }, seq, out);
    }

    fn garbage(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        self.malformed += 1;
        if self.malformed > self.config.malformed_allowed {
            let why = format!("{} malformed messages; the last: {problem}", self.malformed);
            return self.close(now_ms, End::Protocol, why, out);
        }
        refuse(problem, None, out);
    }

    fn join(&mut self, now_ms: u64, arrival: Arrival) {
        let Arrival { to, range, look } = arrival;
        self.state = State::Joining;
        self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
        self.place = Some((to.scene, to.plane));
        self.range = range;
        self.route = Some(Route { region: to.region, epoch: None });
        self.enter_sent = false;
        self.known.look(&look);
        self.entering = Some(Box::new(Spawn {
            id: self.id,
            kind: Kind::PLAYER,
            plane: to.plane,
            pos: to.pos,
            range,
            look,
            session: Some(self.session),
            bonds: Vec::new(),
        }));
    }

    fn leave(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Joining && !self.enter_sent {
            return self.close(now_ms, End::Normal, "left", out);
        }
        self.state = State::Leaving;
        self.deadline_ms = now_ms.saturating_add(self.config.leave_ms);
    }

    fn jump(
        &mut self,
        now_ms: u64,
        seq: Seq,
        leap: Result<Leap, Problem>,
        out: &mut Vec<PlayerEffect>,
    ) {
        let leap = match leap {
            Ok(leap) if self.leap.is_none() => leap,
            Ok(_) => {
                give_back(&Said::Jump(seq, leap), out);
                return refuse(Problem::Jumping, Some(seq), out);
            }
            Err(problem) => return refuse(problem, Some(seq), out),
        };
        if self.order(now_ms, seq, Order::Jump(leap.to), out) {
            self.leap = leap.takes_place.then_some((seq, (leap.to.scene, leap.to.plane)));
        } else {
            give_back(&Said::Jump(seq, Ok(leap)), out);
        }
    }

    /// Takes an input in; false when it is not the last one plus one, was applied already, or there is no room for it.
    fn order(&mut self, now_ms: u64, seq: Seq, order: Order, out: &mut Vec<PlayerEffect>) -> bool {
        let expected = Seq(self.last_seq.0.saturating_add(1));
        if seq == self.earlier.0 && seq < self.earlier.1 {
            self.earlier.0 = seq.next();
            return false;
        }
        if seq != expected {
            refuse(Problem::OutOfOrder { expected }, Some(seq), out);
            return false;
        }
        if self.unacknowledged.len() >= self.config.unacknowledged_max {
            let why = format!("{} inputs wait for the region", self.unacknowledged.len());
            self.close(now_ms, End::Overload, why, out);
            return false;
        }
        if self.unacknowledged.is_empty() {
            self.progress_ms = now_ms;
        }
        self.last_seq = seq;
        self.unacknowledged.push_back((seq, order));
        true
    }

    fn close(
        &mut self,
        now_ms: u64,
        end: End,
        why: impl Into<String>,
        out: &mut Vec<PlayerEffect>,
    ) {
        if self.client_is_here() {
            out.push(PlayerEffect::Close(end, why.into()));
            self.part(now_ms, end.is_excused(), out);
        }
    }

    /// The process ends, and its sessions with it.
    fn stop(&mut self, now_ms: u64, end: End, why: &str, out: &mut Vec<PlayerEffect>) {
        self.close(now_ms, end, why, out);
        if self.state == State::Absent {
            self.tell_absent(now_ms, out);
            self.finish(out);
        }
    }

    /// The session is over, and its player leaves, also one whose client is gone already.
    fn dismiss(&mut self, now_ms: u64, end: End, why: &str, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Absent {
            self.state = State::Parting;
            self.deadline_ms = now_ms.saturating_add(self.config.part_ms);
            self.leave_sent_ms = None;
            return;
        }
        self.close(now_ms, end, why, out);
    }

    /// The client is no more; what it leaves behind has to go, or stays for a while if it is `excused`.
    fn part(&mut self, now_ms: u64, excused: bool, out: &mut Vec<PlayerEffect>) {
        match self.state {
            State::Absent | State::Parting | State::Closed => {}
            State::Joining if !self.enter_sent => self.finish(out),
            State::Connected | State::Greeted | State::Resuming => self.finish(out),
            State::InWorld if excused && self.config.linger_ms > 0 => {
                self.state = State::Absent;
                self.deadline_ms = now_ms.saturating_add(self.config.linger_ms.into());
                (self.shown, self.leave_sent_ms) = (Vec::new(), None);
                self.give_places_back(out);
            }
            State::Joining | State::InWorld | State::Leaving => {
                self.state = State::Parting;
                self.deadline_ms = now_ms.saturating_add(self.config.part_ms);
                self.shown = Vec::new();
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.give_places_back(out);
        out.push(PlayerEffect::Done);
    }

    fn give_places_back(&mut self, out: &mut Vec<PlayerEffect>) {
        let places = self.leap.take().map(|(_, place)| place).into_iter().chain(self.place.take());
        out.extend(places.map(|(scene, plane)| PlayerEffect::GiveBack(scene, plane)));
    }

    fn timer(&mut self, now_ms: u64, queued: usize, out: &mut Vec<PlayerEffect>) {
        self.blocked = false;
        let patience_ends = now_ms >= self.deadline_ms;
        match self.state {
            State::Connected | State::Greeted if patience_ends => {
                let why = format!("no hello and join within {} ms", self.config.handshake_ms);
                return self.close(now_ms, End::Handshake, why, out);
            }
            State::Joining if patience_ends => {
                return self.close(now_ms, End::Overload, "the region did not answer", out);
            }
            State::Leaving if patience_ends => {
                return self.close(now_ms, End::Normal, "left", out);
            }
            State::Resuming if patience_ends => {
                return self.give_up(now_ms, Problem::NotFound, out);
            }
            State::Absent | State::Parting if patience_ends => return self.finish(out),
            State::Absent => return self.present_again_if_unheard(now_ms),
            State::Parting | State::Closed => return,
            State::Connected
            | State::Greeted
            | State::Joining
            | State::Resuming
            | State::InWorld
            | State::Leaving => {}
        }
        if now_ms.saturating_sub(self.heard_ms) >= self.config.heartbeat_ms {
            let why = format!("nothing heard for {} ms", self.config.heartbeat_ms);
            return self.close(now_ms, End::Heartbeat, why, out);
        }
        self.flow.drained(queued);
        if self.flow.held_for_ms(now_ms) >= Some(self.config.slow_close_ms) {
            let why = format!("did not read for {} ms", self.config.slow_close_ms);
            return self.close(now_ms, End::Slow, why, out);
        }
        self.resend_if_stalled(now_ms);
        self.present_again_if_unheard(now_ms);
        self.flow.ask_again(now_ms, self.config.resend_ms);
        self.flow.go_on_again(now_ms, 3 * self.config.resend_ms);
    }
}

fn refuse(problem: Problem, seq: Option<Seq>, out: &mut Vec<PlayerEffect>) {
    out.push(PlayerEffect::Answer(Answer::Refused { problem, seq }));
}

/// Gives back the place that comes with a message which is not followed.
fn give_back(said: &Said, out: &mut Vec<PlayerEffect>) {
    match said {
        Said::Join(Ok(Arrival { to, .. })) | Said::Jump(_, Ok(Leap { to, takes_place: true })) => {
            out.push(PlayerEffect::GiveBack(to.scene, to.plane));
        }
        _ => {}
    }
}
