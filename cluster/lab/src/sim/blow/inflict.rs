//! How each fault changes the simulated cluster, and how it ends.
//!
//! Each method injects its fault, sleeps for its time, and heals it again. Of two faults at the same time the first that
//! ends also heals what the other one broke at the same place.

use std::ops::Range;
use std::time::Duration;

use purview::scene::{Pos, RegionId};
use tokio::time::sleep;

use super::{Blow, choose};
use crate::rng::Rng;
use crate::sim::REGION_CM;
use crate::sim::client::CLIENTS;
use crate::sim::cluster::Cluster;
use crate::sim::faults::Fault;
use crate::sim::journal::What;
use crate::sim::network::{Delays, Host};
use crate::sim::store::CheckpointFaults;
use crate::sim::workers::{Trouble, WORKERS};

impl Cluster {
    /// Injects a fault and waits until it is over.
    pub(in crate::sim) async fn inflict(&self, blow: Blow) {
        let Blow { fault, node, gateway, other, lasts, lost, stores, first, seed } = blow;
        let mut rng = Rng::new(seed);
        match fault {
            Fault::Crash => self.crash(node, lasts, lost).await,
            Fault::Gateway => self.crash(gateway, lasts, lost).await,
            Fault::Stop => self.stop(node, lasts).await,
            Fault::Partition | Fault::OneWay => self.part(fault, (node, other), lasts).await,
            Fault::CutOff => self.cut_off(node, lasts, stores).await,
            Fault::Delay => self.delay(lasts).await,
            Fault::Engine => self.stop_store(lasts).await,
            Fault::Answers => self.lose_answers(lasts).await,
            Fault::Lease => self.grant_to_others(node, lasts).await,
            Fault::Twice => {
                let to = choose(&mut rng, &self.nodes()).unwrap_or(node);
                self.grant_twice((node, to), lasts, &mut rng).await;
            }
            Fault::CheckpointStore => self.stop_checkpoints(lasts).await,
            Fault::Checkpoint => self.crash_without_checkpoints(node, lasts, lost).await,
            Fault::Move => {
                if let Some(region) = choose(&mut rng, &self.regions()) {
                    self.order_move(region, node).await;
                }
                sleep(lasts).await;
            }
            Fault::Map => {
                self.order_map(&mut rng).await;
                sleep(lasts).await;
            }
            Fault::Drain => self.drain(node, lasts).await,
            Fault::Clients => self.disconnect_clients(first, lasts).await,
            Fault::Slow => self.stop_clients_reading(first, lasts).await,
            Fault::HotSpot => self.gather_clients(first, lasts, &mut rng).await,
            Fault::Logins => self.log_clients_in(first, lasts).await,
            // The clocks differ from the beginning.
            Fault::Skew => sleep(lasts).await,
            Fault::Worker | Fault::WorkerStop | Fault::WorkerLink => {
                self.trouble_worker(fault, first, lasts).await;
            }
        }
    }

    async fn stop(&self, node: Host, lasts: Duration) {
        self.note(format!("host {node} is suspended for {lasts:?}"), lasts);
        self.process(node).stop();
        sleep(lasts).await;
        self.process(node).go_on();
    }

    async fn part(&self, fault: Fault, (node, other): (Host, Host), lasts: Duration) {
        if other == node {
            return sleep(lasts).await;
        }
        self.note(format!("{fault:?} from {node} to {other} for {lasts:?}"), lasts);
        let back = (fault == Fault::Partition).then_some((other, node));
        let pairs: Vec<_> = [(node, other)].into_iter().chain(back).collect();
        self.ground().net.cut(&pairs);
        sleep(lasts).await;
        self.ground().net.join(&pairs);
    }

    async fn cut_off(&self, node: Host, lasts: Duration, checkpoints: bool) {
        self.note(format!("{node} is cut off for {lasts:?}"), lasts);
        let all = self.all();
        let others = all.iter().filter(|other| **other != node);
        let pairs: Vec<_> = others.flat_map(|o| [(node, *o), (*o, node)]).collect();
        self.ground().net.cut(&pairs);
        self.process(node).cut_stores(checkpoints);
        sleep(lasts).await;
        self.ground().net.join(&pairs);
        self.process(node).mend_stores();
    }

    async fn delay(&self, lasts: Duration) {
        self.note(format!("messages are late for {lasts:?}"), lasts);
        self.ground().net.set_delays(Delays::BUSY);
        sleep(lasts).await;
        self.ground().net.set_delays(Delays::QUIET);
    }

    async fn stop_store(&self, lasts: Duration) {
        self.note(format!("the lease store is away for {lasts:?}"), lasts);
        let all = self.all();
        all.iter().for_each(|host| self.process(*host).way.cut());
        sleep(lasts).await;
        all.iter().for_each(|host| self.process(*host).way.mend());
    }

    async fn lose_answers(&self, lasts: Duration) {
        self.note(format!("answers of the lease store are lost for {lasts:?}"), lasts);
        let all = self.all();
        all.iter().for_each(|host| self.process(*host).way.lose_answers(4));
        sleep(lasts).await;
        all.iter().for_each(|host| self.process(*host).way.lose_answers(0));
    }

    async fn grant_to_others(&self, node: Host, lasts: Duration) {
        self.note(format!("all regions of {node} are granted to others for {lasts:?}"), lasts);
        let process = self.process(node);
        self.ground().judge.double_granted((node, process.life));
        process.way.revoke_silently();
        sleep(lasts).await;
        process.way.mend();
    }

    async fn stop_checkpoints(&self, lasts: Duration) {
        self.note(format!("the checkpoint store is away for {lasts:?}"), lasts);
        self.ground().judge.checkpoints_wait(lasts);
        self.ground()
            .memory
            .set_faults(CheckpointFaults { unreachable: true, ..Default::default() });
        sleep(lasts).await;
        self.ground().memory.set_faults(CheckpointFaults::default());
    }

    async fn crash_without_checkpoints(&self, node: Host, lasts: Duration, lost: bool) {
        let (lost_one_in, old_one_in, torn_one_in) = (4, 3, 3);
        let worn = CheckpointFaults { unreachable: false, lost_one_in, old_one_in, torn_one_in };
        self.ground().memory.set_faults(worn);
        self.ground().judge.checkpoints_are_lost();
        self.crash(node, lasts, lost).await;
        self.ground().memory.set_faults(CheckpointFaults::default());
    }

    async fn drain(&self, node: Host, lasts: Duration) {
        self.order_drain(node).await;
        let mut waited = 0;
        while !self.process(node).is_over() && waited < 100 {
            sleep(Duration::from_millis(200)).await;
            waited += 1;
        }
        sleep(lasts).await;
        self.begin_again(node);
    }

    async fn disconnect_clients(&self, first: f64, lasts: Duration) {
        self.note("clients lose their connections".into(), Duration::ZERO);
        self.some_clients(first).for_each(|client| self.ground().net.lose_client(client));
        sleep(lasts).await;
    }

    async fn stop_clients_reading(&self, first: f64, lasts: Duration) {
        self.note(format!("clients read nothing for {lasts:?}"), lasts);
        let gateways = self.gateways();
        let from_all = |client| gateways.iter().map(move |gateway| (*gateway, client));
        let pairs: Vec<_> = self.some_clients(first).flat_map(from_all).collect();
        self.ground().net.cut(&pairs);
        sleep(lasts).await;
        self.ground().net.join(&pairs);
    }

    async fn gather_clients(&self, first: f64, lasts: Duration, rng: &mut Rng) {
        let (who, at) = (self.half_of_the_clients(first), self.spot(rng));
        self.note(format!("clients {who:?} gather at {at:?}"), Duration::ZERO);
        self.ground().will.meet(Some((who, at)));
        sleep(lasts).await;
        self.ground().will.meet(None);
    }

    async fn log_clients_in(&self, first: f64, lasts: Duration) {
        let who = self.half_of_the_clients(first);
        self.note(format!("clients {who:?} leave for {lasts:?}"), Duration::ZERO);
        self.ground().will.send_out(who);
        sleep(lasts).await;
        self.ground().will.send_out(0..0);
    }

    async fn trouble_worker(&self, fault: Fault, first: f64, lasts: Duration) {
        let number = (f64::from(WORKERS) * first) as u32;
        self.note(format!("{fault:?} of worker {number} for {lasts:?}"), lasts);
        let is = |kind| fault == kind;
        let (dead, silent) = (is(Fault::Worker), is(Fault::WorkerStop));
        let workers = &self.ground().workers;
        workers.trouble(number, Trouble { dead, silent, cut: is(Fault::WorkerLink) });
        sleep(lasts).await;
        workers.trouble(number, Trouble::default());
    }

    fn some_clients(&self, first: f64) -> impl Iterator<Item = Host> + use<> {
        let players = self.players();
        let least = (f64::from(players) * first) as u32;
        (least..players).take(players as usize / 4 + 1).map(|number| CLIENTS + number)
    }

    fn half_of_the_clients(&self, first: f64) -> Range<u32> {
        let players = self.players();
        let least = (f64::from(players - players / 2) * first) as u32;
        least..least + players / 2
    }

    /// A position, mostly at a border of regions.
    fn spot(&self, rng: &mut Rng) -> Pos {
        let (width, depth) = self.size();
        let along = |size: i32, rng: &mut Rng| {
            let borders: Vec<i32> = (1..=(size - 1) / REGION_CM).map(|at| at * REGION_CM).collect();
            let border = choose(rng, &borders).filter(|_| !rng.one_in(3));
            border.unwrap_or((f64::from(size) * rng.unit()) as i32)
        };
        Pos::ground(along(width, rng), along(depth, rng))
    }

    /// Grants a region of a node to another node as well.
    async fn grant_twice(&self, (node, to): (Host, Host), lasts: Duration, rng: &mut Rng) {
        let owned = self.owned_by(node);
        let Some((key, epoch)) = choose(rng, &owned.iter().collect::<Vec<_>>()) else {
            return sleep(lasts).await;
        };
        let region = RegionId(key.region);
        self.note(format!("region {region} of {node} is also granted to {to}"), lasts);
        let process = self.process(node);
        let one = (region, *epoch);
        self.ground().judge.double_granted_once((node, process.life), one, lasts);
        self.order_move(region, to).await;
        process.way.cut();
        self.ground().store.take_away(key, *epoch);
        sleep(lasts).await;
        // A suspended process renews no lease.
        if !process.is_stopped() {
            process.way.mend();
        }
    }

    async fn crash(&self, host: Host, lasts: Duration, lost: bool) {
        self.note(format!("host {host} crashes for {lasts:?}, messages lost: {lost}"), lasts);
        self.process(host).kill(lost);
        sleep(lasts).await;
        self.begin_again(host);
    }

    fn note(&self, text: String, lasts: Duration) {
        self.ground().journal.note(What::Fault(text));
        if lasts > Duration::ZERO {
            self.ground().judge.fault_lasts(lasts);
        }
    }
}
