//! A client of the trial at its socket: sends what its mind decides, and records what the server tells.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use purview::scene::movement::{ClientMs, MoveCommand, ServerMs, Trajectory};
use purview::scene::{Pos, Seq, Tick};
use purview::wire::client::{ClientMsg, Joined, Move, Teleport, Walk};
use purview::wire::{CloseCode, ErrorCode, Frame};
use purview_client::{Client, ClientError, Event, Receiver, Sender, join};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::field::Heading;

const FRAME: Duration = Duration::from_millis(20);
const PING: Duration = Duration::from_millis(500);
/// How long a client waits for its admission, and after the end for the last frames.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many ticks a pong may be ahead of the frames of a region.
const OVERTAKEN: u64 = 20;
/// How many inputs a client remembers, to send them again.
const REMEMBERED: usize = 16;
/// The share of the server's rate limit that a client uses, per cent.
const RATE_PERCENT: u64 = 70;

/// The times of a trial by this process's clock and by the server's.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub start: Instant,
    pub end: Instant,
    pub server_end: ServerMs,
}

/// A frame of a client's game.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub ms: i64,
    /// Milliseconds since the previous frame.
    pub passed_ms: f64,
    pub client: ClientMs,
}

#[derive(Debug, Clone, Copy)]
pub enum TrialInput {
    /// A move command, with the next number.
    Command(MoveCommand),
    /// A position, as if positions were trusted, with the next number.
    Position(Pos),
    /// A teleport. Its number is used again, because a refused teleport does not consume it.
    Teleport(Pos),
    /// The input that was sent so many inputs before the last one, with its old number.
    Again(usize),
}

pub trait Mind: Send {
    fn receive(&mut self, now: &Moment, frame: &Frame);

    /// The inputs to send now; the next one has number `seq`.
    fn say(&mut self, now: &Moment, seq: Seq) -> Vec<TrialInput>;

    /// The position by the client's own account. The client sends it where positions are trusted.
    fn here(&self, now: &Moment) -> Pos;

    /// A further turn begins, in another session if there is an answer to its join.
    fn begin(&mut self, _: Option<&Joined>) {}
}

/// The result of a client, by the server's account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
    /// The number of sessions begun after the first one.
    pub sessions: u64,
    /// The number of inputs sent, including repeated ones.
    pub said: u64,
    /// Inputs refused, by code.
    pub refused: BTreeMap<&'static str, u64>,
    /// The number of the last correction: how many there were.
    pub corrections: u32,
    /// The greatest distance at which viewers were shown the client, centimetres from its start.
    pub way_cm: i32,
    /// Why the server closed the session early, if it did.
    pub closed: Option<CloseCode>,
    /// Any other cause of an early end.
    pub failed: Option<String>,
}

/// The position of a client by its own frames, which is also that shown to viewers.
#[derive(Debug)]
struct Track {
    tile_cm: i32,
    tick_ms: u64,
    end: ServerMs,
    /// The trajectory, where moves are judged.
    trajectory: Option<Trajectory>,
    /// Where positions are trusted: the last acknowledged position, and those after it.
    place: Pos,
    said: VecDeque<(Seq, Pos)>,
    start: Pos,
    heading: Heading,
    way_cm: i32,
    over: bool,
}

impl Track {
    fn new(joined: &Joined, heading: Heading, tick_ms: u32, end: ServerMs) -> Track {
        let tile_cm = joined.rules.movement.as_ref().map_or(1, |m| m.tile_cm);
        let (start, place, way_cm) = (joined.pos, joined.pos, 0);
        let trajectory = joined.own.as_ref().map(|own| own.trajectory.on_tiles(tile_cm));
        let (tick_ms, said) = (tick_ms.into(), VecDeque::new());
        Track {
            tile_cm,
            tick_ms,
            end,
            trajectory,
            place,
            said,
            start,
            heading,
            way_cm,
            over: false,
        }
    }

    /// The client has begun another session: it is where the server says.
    fn again(&mut self, joined: &Joined) {
        self.trajectory = joined.own.as_ref().map(|own| own.trajectory.on_tiles(self.tile_cm));
        self.place = joined.pos;
        self.said.clear();
        let at = self.time_of(joined.tick);
        if at <= self.end {
            self.sample(at);
        }
    }

    fn time_of(&self, tick: Tick) -> ServerMs {
        ServerMs(tick.0.saturating_mul(self.tick_ms))
    }

    fn sample(&mut self, at: ServerMs) {
        let here = self.trajectory.map_or(self.place, |trajectory| trajectory.position(at));
        self.way_cm = self.way_cm.max((here.x - self.start.x) * self.heading.sign());
    }

    fn frame(&mut self, frame: &Frame) {
        let at = self.time_of(frame.tick);
        // No frame in between: the earlier trajectory held until the tick before this one.
        self.sample(ServerMs(at.0.saturating_sub(self.tick_ms)).min(self.end));
        if at > self.end {
            self.over = true;
            return;
        }
        if let Some(own) = &frame.own {
            self.trajectory = Some(own.trajectory.on_tiles(self.tile_cm));
        }
        while let Some((seq, pos)) = self.said.front().copied().filter(|s| s.0 <= frame.ack) {
            self.said.pop_front();
            if frame.refused.iter().all(|r| r.seq != seq) {
                self.place = pos;
            }
        }
        self.sample(at);
    }

    /// The server is at `tick`; its frames may be a little behind.
    fn pong(&mut self, tick: Tick) {
        if self.time_of(Tick(tick.0.saturating_sub(OVERTAKEN))) > self.end && !self.over {
            self.sample(self.end);
            self.over = true;
        }
    }
}

pub struct Seat {
    pub sender: Sender,
    pub receiver: Receiver,
    pub joined: Joined,
    tick_ms: u32,
    frame: Duration,
    since: Instant,
    /// The last inputs, newest first.
    sent: VecDeque<ClientMsg>,
}

fn late() -> ClientError {
    ClientError::Io(std::io::ErrorKind::TimedOut.into())
}

impl Seat {
    /// Connects to a server, and joins a scene or resumes the session of a ticket.
    pub async fn take(
        url: &str,
        token: &str,
        scene: &str,
        resumes: Option<(String, Seq)>,
    ) -> Result<Seat, ClientError> {
        let enter = async {
            let mut client = Client::connect(url, token).await?;
            let joined = match resumes {
                Some((ticket, ack)) => client.resume(&ticket, ack).await?,
                None => client.join(join(scene)).await?,
            };
            Ok::<_, ClientError>((client, joined))
        };
        let (client, joined) = timeout(PATIENCE, enter).await.map_err(|_| late())??;
        let welcome = client.welcome();
        let (tick_ms, rate) = (welcome.tick_ms, u64::from(welcome.rate_limit.max(1)));
        let frame = FRAME.max(Duration::from_millis(100_000 / RATE_PERCENT / rate));
        let (sender, receiver) = client.split();
        let (since, sent) = (Instant::now(), VecDeque::new());
        Ok(Seat { sender, receiver, joined, tick_ms, frame, since, sent })
    }

    pub fn now(&self) -> ClientMs {
        ClientMs(self.since.elapsed().as_millis() as u64)
    }

    /// The present time of the server's clock, or a little less.
    pub fn server_now(&self) -> ServerMs {
        ServerMs(self.joined.tick.0 * u64::from(self.tick_ms) + self.now().0)
    }

    fn remember(&mut self, message: ClientMsg) {
        self.sent.push_front(message);
        self.sent.truncate(REMEMBERED);
    }
}

/// A player of the trial, in one session or several.
pub struct Player<'a> {
    mind: &'a mut dyn Mind,
    pub schedule: Schedule,
    track: Track,
    pub played: Played,
}

impl<'a> Player<'a> {
    /// The distance counts in the direction of `heading`.
    pub fn new(
        mind: &'a mut dyn Mind,
        seat: &Seat,
        heading: Heading,
        schedule: Schedule,
    ) -> Player<'a> {
        let track = Track::new(&seat.joined, heading, seat.tick_ms, schedule.server_end);
        Player { mind, schedule, track, played: Played::default() }
    }

    pub fn is_over(&self) -> bool {
        self.track.over
    }

    pub fn refused(&mut self, code: ErrorCode) {
        *self.played.refused.entry(code.name()).or_default() += 1;
    }

    /// Begins a further turn, in a new session or in the same one.
    pub fn begin(&mut self, seat: &Seat, is_new: bool) {
        if is_new {
            self.played.sessions += 1;
            self.track.again(&seat.joined);
        }
        self.mind.begin(is_new.then_some(&seat.joined));
    }

    /// The result of a player whose playing ended so.
    pub fn end(mut self, end: Result<(), ClientError>) -> Played {
        match end {
            Ok(()) => {}
            Err(ClientError::Closed { code: Some(code), .. }) => self.played.closed = Some(code),
            Err(e) => self.played.failed = Some(e.to_string()),
        }
        self.played.way_cm = self.track.way_cm;
        self.played
    }

    /// Plays until all frames up to the end have come, and then leaves.
    pub async fn play_all(&mut self, mut seat: Seat) -> Result<(), ClientError> {
        let played = self.play(&mut seat, self.schedule.end + PATIENCE).await;
        // The trial is over; if the server misses the leave, it notices the closed connection.
        if let Err(e) = seat.sender.leave().await {
            tracing::debug!(error = %e, "leaving after the trial");
        }
        if self.track.over { Ok(()) } else { played.and(Err(late())) }
    }

    /// Plays until `until` in a session, or until all frames up to the end have come.
    pub async fn play(&mut self, seat: &mut Seat, until: Instant) -> Result<(), ClientError> {
        let mut frames = interval(seat.frame);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut pinged) = (Instant::now(), seat.since);
        while !self.track.over && last < until {
            tokio::select! {
                told = seat.receiver.next() => {
                    let now = self.moment(seat, last);
                    self.receive(told?, &now, seat)?;
                }
                _ = frames.tick() => {
                    let now = self.moment(seat, last);
                    last = Instant::now();
                    if last < self.schedule.end {
                        self.say(&now, seat).await?;
                    }
                    if last >= pinged + PING {
                        pinged = last;
                        seat.sender.ping(0).await?;
                    }
                }
            }
        }
        Ok(())
    }

    fn moment(&self, seat: &Seat, last: Instant) -> Moment {
        let (now, start) = (Instant::now(), self.schedule.start);
        let ms = match now.checked_duration_since(start) {
            Some(since) => since.as_millis() as i64,
            None => -((start - now).as_micros().div_ceil(1_000) as i64),
        };
        let passed_ms = (now - last).as_secs_f64() * 1_000.0;
        Moment { ms, passed_ms, client: seat.now() }
    }

    fn receive(&mut self, told: Event, now: &Moment, seat: &mut Seat) -> Result<(), ClientError> {
        match told {
            Event::Frame(frame) => {
                self.track.frame(&frame);
                self.mind.receive(now, &frame);
                seat.joined.ack = seat.joined.ack.max(frame.ack);
                for refused in &frame.refused {
                    self.refused(refused.code);
                }
                if let Some(own) = &frame.own {
                    self.played.corrections = self.played.corrections.max(own.correction);
                }
            }
            Event::Refused(refused) => self.refused(refused.code),
            Event::Pong(pong) => self.track.pong(pong.tick),
            Event::Joined(_)
            | Event::Resumed(_)
            | Event::Unconfirmed(_)
            | Event::Lines(_)
            | Event::Left(_) => {}
            Event::Closed { code, detail } => return Err(ClientError::Closed { code, detail }),
        }
        Ok(())
    }

    async fn say(&mut self, now: &Moment, seat: &mut Seat) -> Result<(), ClientError> {
        let trusted = seat.joined.rules.movement.is_none();
        for say in self.mind.say(now, seat.sender.next_seq()) {
            match say {
                // Where positions are trusted the client sends its position, not a move command.
                TrialInput::Command(_) if trusted => continue,
                TrialInput::Command(order) => {
                    let seq = seat.sender.send_walk(&order).await?;
                    seat.remember(Walk::of(seq, &order).into());
                }
                TrialInput::Position(pos) => {
                    self.place(pos, seat).await?;
                    continue;
                }
                TrialInput::Teleport(pos) => {
                    let seq = seat.sender.next_seq();
                    seat.sender.send(Teleport { seq, scene: None, plane: None, pos }).await?;
                }
                TrialInput::Again(ago) => match seat.sent.get(ago).cloned() {
                    Some(message) => seat.sender.send(message).await?,
                    None => continue,
                },
            }
            self.played.said += 1;
        }
        if trusted && now.ms >= 0 {
            let here = self.mind.here(now);
            let here = Pos { x: here.x.clamp(0, seat.joined.rules.size_cm[0] - 1), ..here };
            self.place(here, seat).await?;
        }
        Ok(())
    }

    async fn place(&mut self, pos: Pos, seat: &mut Seat) -> Result<(), ClientError> {
        let seq = seat.sender.send_move(pos).await?;
        seat.remember(Move { seq, pos }.into());
        if seat.joined.rules.movement.is_none() {
            self.track.said.push_back((seq, pos));
        }
        self.played.said += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::movement::{Flags, Vector};
    use purview::scene::{EntityId, Epoch, Plane, Visibility};
    use purview::wire::{Form, Going, OwnMove};

    use super::*;
    use crate::oracle::tests::server;

    const START: Pos = Pos { x: 1_000, y: 0, z: 50 };

    /// A trajectory east at 5 m/s from `x` at `start_ms`, for `lasts_ms`.
    fn own(x: i32, start_ms: u64, lasts_ms: Option<u32>) -> OwnMove {
        let vector = Vector { vx_mm_s: 5_000, ..Vector::stand(Pos { x, ..START }) };
        let trajectory = Going { start_ms, lasts_ms, form: Form::Vector(vector) };
        OwnMove { correction: 0, trajectory, speed: 500, flags: Flags::NONE, grants: Vec::new() }
    }

    fn joined() -> Joined {
        server::joined(EntityId(1), 1, (Plane(0), START), server::rules(Visibility::All, 60))
    }

    fn frame(tick: u64, ack: u32, own: Option<OwnMove>) -> Frame {
        Frame { own, ..Frame::empty(Tick(tick), Seq(ack), Epoch(1)) }
    }

    #[test]
    fn positions_between_frames_and_at_the_end_count() {
        let mut track = Track::new(&joined(), Heading::East, 100, ServerMs(10_000));
        track.frame(&frame(10, 0, Some(own(1_000, 1_000, None))));
        assert_eq!((track.way_cm, track.over), (0, false));
        // The server brings the client back. Viewers were shown it walking until then.
        track.frame(&frame(51, 0, Some(own(1_000, 5_100, Some(0)))));
        assert_eq!(track.way_cm, 2_000);
        track.frame(&frame(60, 0, Some(own(2_500, 6_000, None))));
        // Frames after the end do not count; what viewers were shown until the end does.
        track.frame(&frame(130, 0, Some(own(90_000, 13_000, None))));
        assert_eq!((track.way_cm, track.over), (1_500 + 2_000, true));
    }

    #[test]
    fn a_pong_ends_a_track_without_further_frames() {
        let mut track = Track::new(&joined(), Heading::East, 100, ServerMs(10_000));
        track.frame(&frame(10, 0, Some(own(1_000, 1_000, Some(2_000)))));
        track.pong(Tick(110));
        assert!(!track.over, "its frame may still come");
        track.pong(Tick(121));
        assert_eq!((track.way_cm, track.over), (1_000, true));
    }

    #[test]
    fn a_position_counts_when_it_is_acknowledged() {
        let mut track = Track::new(&joined(), Heading::East, 100, ServerMs(10_000));
        track
            .said
            .extend([(Seq(1), Pos { x: 5_000, ..START }), (Seq(2), Pos { x: 9_000, ..START })]);
        track.frame(&frame(2, 0, None));
        assert_eq!(track.way_cm, 0);
        track.frame(&frame(3, 1, None));
        assert_eq!(track.way_cm, 4_000);
    }
}
