//! The phases of a run: storms, in which faults are injected, and quiet phases, in which everything must recover.
//!
//! The order of the random draws is part of the meaning of a seed: do not change it.

use std::time::Duration;

use tokio::time::sleep;

use super::Options;
use super::blow::Blow;
use super::cluster::Cluster;
use super::journal::What;
use super::judge::{Invariant, Judge};
use super::schedule::{Recorder, Storm};
use crate::rng::Rng;

/// How long the cluster may take to recover after the last fault: crashed processes restart, leases expire, clients
/// resume.
const REST_LIMIT: Duration = Duration::from_secs(40);

pub(super) struct Injector<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) options: &'a Options,
    pub(super) recorder: &'a Recorder,
}

impl Injector<'_> {
    fn now(&self) -> Duration {
        self.cluster.ground().journal.now()
    }

    /// Injects faults that are drawn from the seed, for 15 to 40 s. `count` numbers them.
    pub(super) async fn draw(&self, rng: &mut Rng, count: &mut u32) {
        self.recorder.begins_storm();
        let until = self.now() + Duration::from_secs_f64(15.0 + 25.0 * rng.unit());
        let faults = &self.options.faults.0;
        while self.now() < until {
            sleep(Duration::from_secs_f64(0.2 + 4.0 * rng.unit())).await;
            let mut draw = |rng: &mut Rng| {
                let fault = *faults.get((rng.unit() * faults.len() as f64) as usize)?;
                let (number, own) = (*count, Rng::new(rng.seed()));
                *count += 1;
                Some((number, Blow::draw(fault, self.cluster, own)))
            };
            let one = draw(rng);
            let (also, after) = (rng.one_in(2), rng.unit());
            let two = if self.options.at_once > 1 && also { draw(rng) } else { None };
            self.recorder.begins_strike();
            let second = async {
                if let Some((number, blow)) = two {
                    sleep(Duration::from_secs_f64(after)).await;
                    self.strike(number, blow).await;
                }
            };
            let first = async {
                if let Some((number, blow)) = one {
                    sleep(Duration::ZERO).await;
                    self.strike(number, blow).await;
                }
            };
            futures::future::join(first, second).await;
            self.ends_strike().await;
        }
    }

    /// Injects the faults of a recorded storm, each at its recorded time, or as soon as the fault before it is over.
    pub(super) async fn repeat(&self, storm: &Storm) {
        self.recorder.begins_storm();
        for strike in &storm.strikes {
            self.recorder.begins_strike();
            let faults = strike.faults.iter().map(async |fault| {
                self.sleep_until(fault.at).await;
                self.strike(fault.number, fault.blow.clone()).await;
            });
            futures::future::join_all(faults).await;
            if let Some(over) = strike.over {
                self.sleep_until(over).await;
            }
            self.ends_strike().await;
        }
    }

    async fn sleep_until(&self, at: Duration) {
        sleep(at.saturating_sub(self.now())).await;
    }

    /// Injects one fault. Of a fault that the run leaves out only the time passes.
    async fn strike(&self, number: u32, blow: Blow) {
        if !self.options.only.fault(number) {
            return blow.pass().await;
        }
        self.recorder.strikes(number, self.now(), &blow);
        self.cluster.ground().journal.note(What::Fault(format!("fault {number}")));
        self.cluster.inflict(blow).await;
    }

    async fn ends_strike(&self) {
        self.recorder.ends_strike(self.now());
        self.cluster.revive();
        self.cluster.restore_what_is_down().await;
        self.cluster.check_bounds();
    }
}

/// The quiet phase after each storm: heals everything, stops the clients, and checks what must hold at rest.
pub(super) async fn rest(cluster: &Cluster) {
    let will = &cluster.ground().will;
    let (journal, judge) = (cluster.ground().journal.clone(), cluster.ground().judge.clone());
    journal.note(What::Fault("all is healed, and all clients stand".into()));
    judge.excuse(REST_LIMIT);
    cluster.heal();
    will.stand(true);
    // A client that has begun to leave or to join completes that.
    sleep(Duration::from_secs(2)).await;
    cluster.heal();
    match cluster.comes_to_rest(REST_LIMIT).await {
        Ok(()) => {
            judge.acks_hold();
            game_comes_to_rest(&judge).await;
        }
        Err((who, text)) => {
            judge.ask_registers(&who);
            sleep(Duration::from_millis(150)).await;
            judge.violated(Invariant::Quiescence, who, text);
        }
    }
    judge.excuse_no_more();
    will.stand(false);
}

/// How long gold may be on its way at rest: commands that were not answered are given again.
const GAME_REST: Duration = Duration::from_secs(40);

/// Waits until what must hold of the game at rest does.
async fn game_comes_to_rest(judge: &Judge) {
    let mut waited = Duration::ZERO;
    while judge.has_game() && judge.violation().is_none() {
        let Some((who, text)) = judge.game_not_at_rest() else { return };
        if waited >= GAME_REST {
            return judge.violated(judge.rest_of_game(), who, text);
        }
        sleep(Duration::from_millis(250)).await;
        waited += Duration::from_millis(250);
    }
}
