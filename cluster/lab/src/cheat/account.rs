//! What a cheater believes about its own movement, and how it sends move commands.

use std::collections::VecDeque;
use std::sync::Arc;

use purview::scene::movement::{ClientMs, Go, Move, MoveCommand, Path, Steps, Vector};
use purview::scene::{Pos, Seq};
use purview::wire::Frame;
use purview::wire::client::Joined;

use super::field::Heading;
use super::session::{Mind, Moment, TrialInput};

/// How many move commands a cheater remembers, to send them again.
const REMEMBERED: usize = 16;

/// A cheater's account of its own movement. It equals the server's as long as nothing is refused.
#[derive(Debug)]
pub struct Account {
    /// The number of the last correction that the cheater admits to have received.
    pub correction: u32,
    /// The clock that the cheater states, milliseconds.
    pub clock: f64,
    /// The stated clock at the last move command.
    pub said: f64,
    motion: Move,
    /// The stated clock at the start of the trajectory.
    since: f64,
    tile_cm: i32,
    heading: Heading,
    /// How long after its last move command the server stops the cheater, milliseconds, where moves are judged.
    reach_ms: u64,
    turn: i64,
    commands: VecDeque<MoveCommand>,
    /// Whether a further turn has begun, which has not been used yet.
    pub begun: bool,
}

impl Account {
    pub fn new(joined: &Joined, heading: Heading) -> Account {
        let pos = joined.pos;
        let (tile_cm, reach_ms) = match &joined.rules.movement {
            Some(rules) => (rules.tile_cm, u64::from(rules.command_ms) + u64::from(rules.grace_ms)),
            None => (100, u64::MAX),
        };
        // The stated clock may go back behind its start.
        let clock = 100_000.0;
        let (motion, commands) = (Move::stand(pos), VecDeque::new());
        Account {
            correction: 0,
            clock,
            said: clock,
            motion,
            since: clock,
            tile_cm,
            heading,
            reach_ms,
            turn: i64::MIN,
            commands,
            begun: false,
        }
    }

    /// Advances the stated clock `rate` times as fast as time.
    pub fn pass(&mut self, now: &Moment, rate: f64) {
        self.clock += now.passed_ms * rate;
    }

    pub fn here(&self) -> Pos {
        let until = (self.clock as u64).min((self.said as u64).saturating_add(self.reach_ms));
        let passed = until.saturating_sub(self.since as u64);
        self.motion.position(u32::try_from(passed).unwrap_or(u32::MAX))
    }

    pub fn is_walking(&self) -> bool {
        let silent_ms = (self.clock as u64).saturating_sub(self.said as u64);
        !self.motion.is_standing() && silent_ms < self.reach_ms
    }

    /// The number of the present period of `ms` since the start, once in each period; negative before the start.
    pub fn each(&mut self, now: &Moment, ms: i64) -> Option<i64> {
        let turn = now.ms.div_euclid(ms);
        let new = turn > self.turn;
        self.turn = self.turn.max(turn);
        new.then_some(turn)
    }

    /// Sends a move command for a trajectory that begins now.
    pub fn order(&mut self, go: Go) -> TrialInput {
        self.said = self.clock;
        if let Go::Walk(motion) = go {
            (self.motion, self.since) = (motion, self.clock);
        }
        let order =
            MoveCommand { correction: self.correction, at: ClientMs(self.clock as u64), go };
        self.commands.push_front(order);
        self.commands.truncate(REMEMBERED);
        TrialInput::Command(order)
    }

    /// Walks on from `ahead_cm` before its position.
    pub fn forth(&mut self, ahead_cm: i32, speed_cm_s: f64) -> TrialInput {
        let start = self.ahead(ahead_cm);
        let vx_mm_s = (speed_cm_s * 10.0) as i32 * self.heading.sign();
        self.order(Go::Walk(Vector { vx_mm_s, ..Vector::stand(start) }.into()))
    }

    /// Walks on by so many steps, at most as many as a path may have.
    pub fn forth_by(&mut self, steps: usize, speed_cm_s: u32) -> TrialInput {
        let steps: Steps = self.heading.step().repeat(steps).parse().unwrap_or_default();
        let path = Path::new(self.here(), steps, speed_cm_s, self.tile_cm);
        self.order(Go::Walk(path.into()))
    }

    /// A position so many centimetres before the present one.
    pub fn ahead(&self, cm: i32) -> Pos {
        let here = self.here();
        Pos { x: here.x.saturating_add(cm * self.heading.sign()), ..here }
    }

    /// The move command that was sent `ago` commands before the last one, with the number of the last correction.
    pub fn command_again(&self, ago: usize) -> Option<TrialInput> {
        let command = self.commands.get(ago)?;
        Some(TrialInput::Command(MoveCommand { correction: self.correction, ..*command }))
    }

    fn corrected(&mut self, number: u32, motion: Move) {
        self.correction = number;
        (self.motion, self.since, self.said) = (motion, self.clock, self.clock);
    }
}

/// What a cheater does in a frame of its game: its clock goes on, and it may say things.
pub type Trick = Arc<dyn Fn(&mut Account, &Moment) -> Vec<TrialInput> + Send + Sync>;

/// A client with a trick, which has no library's honesty.
pub struct Cheater {
    account: Account,
    trick: Trick,
    /// The number of the last correction received, whatever the cheater admits.
    told: u32,
}

impl Cheater {
    pub fn new(joined: &Joined, heading: Heading, trick: Trick) -> Cheater {
        Cheater { account: Account::new(joined, heading), trick, told: 0 }
    }
}

impl Mind for Cheater {
    fn receive(&mut self, _: &Moment, frame: &Frame) {
        let own = frame.own.as_ref().filter(|own| own.correction > self.told);
        if let Some(own) = own {
            self.told = own.correction;
            let motion = own.trajectory.on_tiles(self.account.tile_cm).motion;
            self.account.corrected(own.correction, motion);
        }
    }

    fn say(&mut self, now: &Moment, _: Seq) -> Vec<TrialInput> {
        (self.trick)(&mut self.account, now)
    }

    fn begin(&mut self, joined: Option<&Joined>) {
        self.account.begun = true;
        if let Some(joined) = joined {
            // The server says where it is.
            self.told = joined.own.as_ref().map_or(0, |own| own.correction);
            self.account.clock += 1.0;
            self.account.corrected(self.told, Move::stand(joined.pos));
        }
    }

    fn here(&self, _: &Moment) -> Pos {
        self.account.here()
    }
}
