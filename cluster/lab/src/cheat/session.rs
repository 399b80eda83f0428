//! A client of the trial at its socket: sends what its mind decides, and records what the server tells.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use purview::scene::movement::{ClientMs, MoveCommand, ServerMs, Trajectory};
use purview::scene::{Pos, Seq, Tick};
use purview::wire::client::{ClientMsg, Join, Joined, Move, Teleport, Walk};
use purview::wire::{CloseCode, Frame};
use purview_client::{Client, ClientError, Event, Receiver, Sender, join_at};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::field::Heading;

/// The frame interval of the client's game.
const FRAME: Duration = Duration::from_millis(20);
/// The interval of pings, which measure the server's clock.
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
    /// When the clients start.
    pub start: Instant,
    /// When the trial ends.
    pub end: Instant,
    /// The end by the server's clock.
    pub server_end: ServerMs,
}

/// A frame of a client's game.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Milliseconds since the start; negative before it.
    pub ms: i64,
    /// Milliseconds since the previous frame.
    pub passed_ms: f64,
    /// The client's clock.
    pub client: ClientMs,
}

/// Something that a client sends.
#[derive(Debug, Clone, Copy)]
pub enum Say {
    /// A move command, with the next number.
    Command(MoveCommand),
    /// A position, as if positions were trusted, with the next number.
    Position(Pos),
    /// A teleport. Its number is used again, because a refused teleport does not consume it.
    Teleport(Pos),
    /// The input that was sent so many inputs before the last one, with its old number.
    Again(usize),
}

/// Decides what a client sends.
pub trait Mind: Send {
    /// Takes a frame.
    fn receive(&mut self, now: &Moment, frame: &Frame);

    /// The inputs to send now; the next one has number `seq`.
    fn say(&mut self, now: &Moment, seq: Seq) -> Vec<Say>;

    /// The position by the client's own account. The client sends it where positions are trusted.
    fn here(&self, now: &Moment) -> Pos;
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
pub(super) struct Track {
    tile_cm: i32,
    tick_ms: u64,
    end: ServerMs,
    /// The trajectory, where moves are judged.
    trajectory: Option<Trajectory>,
    /// Where positions are trusted: the last acknowledged position, and those after it.
    place: Pos,
    said: VecDeque<(Seq, Pos)>,
    /// The start and the direction.
    start: Pos,
    heading: Heading,
    way_cm: i32,
    /// Whether all frames up to the end have come.
    over: bool,
}

impl Track {
    pub fn new(joined: &Joined, heading: Heading, tick_ms: u32, end: ServerMs) -> Track {
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
    pub fn again(&mut self, joined: &Joined) {
        self.trajectory = joined.own.as_ref().map(|own| own.trajectory.on_tiles(self.tile_cm));
        self.place = joined.pos;
        self.said.clear();
        let at = self.time_of(joined.tick);
        if at <= self.end {
            self.sample(at);
        }
    }

    /// The greatest distance from the start, centimetres.
    pub fn way_cm(&self) -> i32 {
        self.way_cm
    }

    fn time_of(&self, tick: Tick) -> ServerMs {
        ServerMs(tick.0.saturating_mul(self.tick_ms))
    }

    fn sample(&mut self, at: ServerMs) {
        let here = self.trajectory.map_or(self.place, |trajectory| trajectory.position(at));
        self.way_cm = self.way_cm.max((here.x - self.start.x) * self.heading.sign());
    }

    pub fn frame(&mut self, frame: &Frame) {
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

/// A client that has joined.
pub struct Seat {
    sender: Sender,
    receiver: Receiver,
    joined: Joined,
    tick_ms: u32,
    frame: Duration,
    since: Instant,
    /// The last inputs, newest first.
    sent: VecDeque<ClientMsg>,
}

impl Seat {
    /// Connects to a server and joins a scene at `pos`, or at its spawn position.
    ///
    /// # Errors
    /// The server does not admit the client, or not in time.
    pub async fn take(
        url: &str,
        token: &str,
        scene: &str,
        pos: Option<Pos>,
    ) -> Result<Seat, ClientError> {
        let enter = async {
            let mut client = Client::connect(url, token).await?;
            let welcome = client.welcome();
            let (tick_ms, rate) = (welcome.tick_ms, u64::from(welcome.rate_limit.max(1)));
            let join = Join { pos, ..join_at(scene, Pos::default()) };
            let joined = client.join(join).await?;
            Ok::<_, ClientError>((client, joined, tick_ms, rate))
        };
        let late = |_| ClientError::Io(std::io::ErrorKind::TimedOut.into());
        let (client, joined, tick_ms, rate) = timeout(PATIENCE, enter).await.map_err(late)??;
        let (sender, receiver) = client.split();
        let frame = FRAME.max(Duration::from_millis(100_000 / RATE_PERCENT / rate));
        let (since, sent) = (Instant::now(), VecDeque::new());
        Ok(Seat { sender, receiver, joined, tick_ms, frame, since, sent })
    }

    /// The server's answer to the join.
    pub fn joined(&self) -> &Joined {
        &self.joined
    }

    /// The present time of the client's clock.
    pub fn now(&self) -> ClientMs {
        ClientMs(self.since.elapsed().as_millis() as u64)
    }

    /// Plays until the end. The distance counts in the direction of `heading`.
    pub async fn play(
        mut self,
        mind: &mut dyn Mind,
        heading: Heading,
        schedule: Schedule,
    ) -> Played {
        let mut track = Track::new(&self.joined, heading, self.tick_ms, schedule.server_end);
        let mut played = Played::default();
        match self.run(mind, schedule, &mut track, &mut played).await {
            Ok(()) => {}
            Err(ClientError::Closed { code: Some(code), .. }) => played.closed = Some(code),
            Err(e) => played.failed = Some(e.to_string()),
        }
        // The trial is over; if the server misses the leave, it notices the closed connection.
        if let Err(e) = self.sender.leave().await {
            tracing::debug!(error = %e, "leaving after the trial");
        }
        played.way_cm = track.way_cm;
        played
    }

    async fn run(
        &mut self,
        mind: &mut dyn Mind,
        schedule: Schedule,
        track: &mut Track,
        played: &mut Played,
    ) -> Result<(), ClientError> {
        let mut frames = interval(self.frame);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut pinged) = (Instant::now(), self.since);
        while !track.over {
            tokio::select! {
                told = self.receiver.next() => {
                    let now = self.moment(schedule, last);
                    self.receive(told?, &now, mind, track, played)?;
                }
                _ = frames.tick() => {
                    let now = self.moment(schedule, last);
                    last = Instant::now();
                    if last < schedule.end {
                        self.say(&now, mind, track, played).await?;
                    } else if last > schedule.end + PATIENCE {
                        return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
                    }
                    if last >= pinged + PING {
                        pinged = last;
                        self.sender.ping(0).await?;
                    }
                }
            }
        }
        Ok(())
    }

    fn moment(&self, schedule: Schedule, last: Instant) -> Moment {
        let now = Instant::now();
        let ms = match now.checked_duration_since(schedule.start) {
            Some(since) => since.as_millis() as i64,
            None => -((schedule.start - now).as_micros().div_ceil(1_000) as i64),
        };
        let passed_ms = (now - last).as_secs_f64() * 1_000.0;
        Moment { ms, passed_ms, client: self.now() }
    }

    fn receive(
        &mut self,
        told: Event,
        now: &Moment,
        mind: &mut dyn Mind,
        track: &mut Track,
        played: &mut Played,
    ) -> Result<(), ClientError> {
        match told {
            Event::Frame(frame) => {
                track.frame(&frame);
                mind.receive(now, &frame);
                for refused in &frame.refused {
                    *played.refused.entry(refused.code.name()).or_default() += 1;
                }
                if let Some(own) = &frame.own {
                    played.corrections = played.corrections.max(own.correction);
                }
            }
            Event::Refused(refused) => {
                *played.refused.entry(refused.code.name()).or_default() += 1;
            }
            Event::Pong(pong) => track.pong(pong.tick),
            Event::Joined(_)
            | Event::Resumed(_)
            | Event::Unconfirmed(_)
            | Event::Lines(_)
            | Event::Left(_) => {}
            Event::Closed { code, detail } => return Err(ClientError::Closed { code, detail }),
        }
        Ok(())
    }

    async fn say(
        &mut self,
        now: &Moment,
        mind: &mut dyn Mind,
        track: &mut Track,
        played: &mut Played,
    ) -> Result<(), ClientError> {
        let trusted = self.joined.rules.movement.is_none();
        for say in mind.say(now, self.sender.next_seq()) {
            match say {
                // Where positions are trusted the client sends its position, not a move command.
                Say::Command(_) if trusted => {}
                Say::Command(order) => {
                    let seq = self.sender.send_walk(&order).await?;
                    self.remember(Walk::of(seq, &order).into());
                    played.said += 1;
                }
                Say::Position(pos) => self.place(pos, track, played).await?,
                Say::Teleport(pos) => {
                    let seq = self.sender.next_seq();
                    self.sender.send(Teleport { seq, scene: None, plane: None, pos }).await?;
                    played.said += 1;
                }
                Say::Again(ago) => {
                    if let Some(message) = self.sent.get(ago).cloned() {
                        self.sender.send(message).await?;
                        played.said += 1;
                    }
                }
            }
        }
        if trusted && now.ms >= 0 {
            let size = self.joined.rules.size_cm;
            let here = mind.here(now);
            let here = Pos { x: here.x.clamp(0, size[0] - 1), ..here };
            self.place(here, track, played).await?;
        }
        Ok(())
    }

    async fn place(
        &mut self,
        pos: Pos,
        track: &mut Track,
        played: &mut Played,
    ) -> Result<(), ClientError> {
        let seq = self.sender.send_move(pos).await?;
        self.remember(Move { seq, pos }.into());
        if self.joined.rules.movement.is_none() {
            track.said.push_back((seq, pos));
        }
        played.said += 1;
        Ok(())
    }

    fn remember(&mut self, message: ClientMsg) {
        self.sent.push_front(message);
        self.sent.truncate(REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::movement::{Flags, Vector};
    use purview::scene::{EntityId, Epoch, Plane, RangeSet, Visibility};
    use purview::wire::{Form, Going, JoinRules, OwnMove};

    use super::*;

    const START: Pos = Pos { x: 1_000, y: 0, z: 50 };

    /// A trajectory east at 5 m/s from `x` at `start_ms`, for `lasts_ms`.
    fn own(x: i32, start_ms: u64, lasts_ms: Option<u32>) -> OwnMove {
        let vector = Vector { vx_mm_s: 5_000, ..Vector::stand(Pos { x, ..START }) };
        let trajectory = Going { start_ms, lasts_ms, form: Form::Vector(vector) };
        OwnMove { correction: 0, trajectory, speed: 500, flags: Flags::NONE, grants: Vec::new() }
    }

    fn joined() -> Joined {
        Joined {
            facing: Default::default(),
            id: EntityId(1),
            scene: "trial".into(),
            plane: Plane(0),
            pos: START,
            tick: Tick(1),
            rules: JoinRules {
                visibility: Visibility::All,
                range: RangeSet::FULL,
                sight: RangeSet::FULL,
                patch_cm: [400; 2],
                patch_margin_cm: 0,
                height_cm: None,
                view_cap: 60,
                view_margin_cm: 0,
                rates: [1; 3],
                size_cm: [10_000, 10_000],
                movement: None,
                updates: None,
            },
            own: None,
            ack: Seq(0),
            ticket: None,
        }
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
