//! Honest players of the trial. They walk by means of the client library.

use std::time::Duration;

use purview::scene::movement::Steps;
use purview::scene::terrain::Ground;
use purview::scene::{Pos, Seq};
use purview::wire::Frame;
use purview_client::Walker;

use super::session::{Mind, Moment, TrialInput};
use crate::rng::Rng;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// Walks straight east at its top speed.
    Pace,
    /// Turns, stops, walks along paths and plays with its stick.
    Roam,
}

pub struct Honest {
    walker: Walker<Ground>,
    errand: Errand,
    random: Rng,
    /// The end of the present activity, by the client's clock, milliseconds.
    next_wish_ms: u64,
    set_out: bool,
}

impl Honest {
    /// A player that moves by a walker of the client library.
    pub fn new(walker: Walker<Ground>, errand: Errand, seed: u64) -> Honest {
        let random = Rng::new(seed);
        Honest { walker, errand, random, next_wish_ms: 0, set_out: false }
    }

    fn wish(&mut self, now: &Moment) {
        match self.errand {
            Errand::Pace if now.ms >= 0 && !self.set_out => {
                self.set_out = true;
                self.walker.walk(1, 0, self.walker.speed());
            }
            Errand::Roam if now.client.0 >= self.next_wish_ms => {
                let pause = self.roam(now);
                self.next_wish_ms = now.client.0 + pause.as_millis() as u64;
            }
            Errand::Pace | Errand::Roam => {}
        }
    }

    /// Chooses the next activity and its length.
    fn roam(&mut self, now: &Moment) -> Duration {
        let speed = match self.random.one_in(3) {
            true => self.below(u64::from(self.walker.speed())) as u32,
            false => self.walker.speed(),
        };
        let (dx, dz) = (self.below(19) as i32 - 9, self.below(19) as i32 - 9);
        let longest_ms = match self.below(6) {
            0 => {
                self.walker.stop();
                3_000
            }
            1 => {
                let steps = self.steps();
                self.walker.steps(steps, speed);
                4_000
            }
            2 => {
                let here = self.walker.position(now.client);
                let goal = Pos { x: here.x + dx * 100, z: here.z + dz * 100, ..here };
                self.walker.walk_to(now.client, goal, speed);
                4_000
            }
            3 => {
                self.walker.walk(dx, dz, speed);
                10_000
            }
            // The player changes its stick position.
            _ => {
                self.walker.walk(dx, dz, speed);
                800
            }
        };
        Duration::from_millis(20 + self.below(longest_ms))
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.random.unit() * n as f64) as u64
    }

    fn steps(&mut self) -> Steps {
        let n = 1 + self.below(12);
        let digits: String = (0..n).map(|_| char::from(b'0' + self.below(8) as u8)).collect();
        digits.parse().unwrap_or_default()
    }
}

impl Mind for Honest {
    fn receive(&mut self, now: &Moment, frame: &Frame) {
        self.walker.frame(now.client, frame);
    }

    fn say(&mut self, now: &Moment, seq: Seq) -> Vec<TrialInput> {
        self.wish(now);
        let mut said = Vec::new();
        let mut next = seq;
        while let Some(order) = self.walker.poll(now.client, next) {
            said.push(TrialInput::Command(order));
            next = next.next();
        }
        said
    }

    fn here(&self, now: &Moment) -> Pos {
        self.walker.position(now.client)
    }
}
