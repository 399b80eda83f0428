//! Waiting: for states, and for the rest in which views are compared with brute force.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use actix_rt::time::sleep;
use purview::scene::{Kind, RangeSet};

use super::{Client, PATIENCE, Stage};
use crate::support::brute::{Truth, in_range};

impl Stage {
    pub async fn ticks(&mut self, n: usize) {
        for _ in 0..n {
            self.tick().await;
        }
    }

    /// A few ticks without any input; then every client must show exactly the entities and
    /// positions that brute force says, and every input must be acknowledged.
    pub async fn rest(&mut self) {
        self.ticks(3).await;
        let present: Vec<&Client> = self.clients.iter().filter(|c| c.in_world()).collect();
        for me in &present {
            let sees = |other: &&&Client| me.id() != other.id() && self.sees(me, other);
            let want: BTreeMap<_, _> =
                present.iter().filter(sees).map(|o| (o.id(), o.pos)).collect();
            assert_eq!(me.shown, want, "the view of {}", me.id());
            assert_eq!(me.ack(), me.seq, "{}: the last input", me.id());
        }
    }

    /// Runs ticks until `holds`: for sessions that wait for a time of the clock.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Stage) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < PATIENCE, "timed out waiting until {what}");
            self.tick().await;
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether one player sees the other, by brute force. View caps are ignored.
    pub fn sees(&self, a: &Client, b: &Client) -> bool {
        let truth = |c: &Client| Truth::new(Kind::PLAYER, c.here().plane, c.pos, RangeSet::FULL);
        let scene = self.directory.scene_named(&a.here().scene).expect("a scene of the stage");
        let known = a.shown.contains_key(&b.id());
        a.here().scene == b.here().scene && in_range(&scene, &truth(a), &truth(b), known)
    }

    /// Opens one tick after the other until `holds`: for a region that has waited for a neighbour
    /// in vain.
    pub async fn open_ticks_until(&mut self, what: &str, holds: impl Fn() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < PATIENCE, "timed out waiting until {what}");
            self.open_tick().await;
            sleep(Duration::from_millis(1)).await;
        }
    }
}
