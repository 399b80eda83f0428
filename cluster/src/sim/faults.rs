//! What is done to a simulated cluster.

use std::str::FromStr;
use std::time::Duration;

use tokio::time::sleep;

use crate::rng::Rng;

use super::client::CLIENTS;
use super::cluster::Cluster;
use super::journal::What;
use super::net::Delays;
use super::store::ShelfFaults;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A node dies at once, and another begins on its host.
    Crash,
    /// So does a gateway.
    Gateway,
    /// A node does nothing for a while, perhaps for longer than its lease.
    Stop,
    /// Nothing passes between two processes.
    Partition,
    /// Nothing passes from one process to another.
    OneWay,
    /// A node is cut off from all others and from the store.
    CutOff,
    /// Messages are late.
    Delay,
    /// The store of leases answers nobody.
    Engine,
    /// Answers of the store are lost.
    Answers,
    /// Where checkpoints are kept is away.
    Shelf,
    /// Checkpoints are lost, old or torn, and a node dies.
    Checkpoint,
    /// A region moves.
    Move,
    /// The region map changes.
    Map,
    /// A node gives its regions to others and ends; another begins.
    Drain,
    /// Clients lose their connections.
    Clients,
    /// Processes' clocks differ.
    Skew,
}

/// All kinds, by their names.
pub const ALL: [(Fault, &str); 16] = [
    (Fault::Crash, "crash"),
    (Fault::Gateway, "gateway"),
    (Fault::Stop, "stop"),
    (Fault::Partition, "partition"),
    (Fault::OneWay, "one-way"),
    (Fault::CutOff, "cut-off"),
    (Fault::Delay, "delay"),
    (Fault::Engine, "engine"),
    (Fault::Answers, "answers"),
    (Fault::Shelf, "shelf"),
    (Fault::Checkpoint, "checkpoint"),
    (Fault::Move, "move"),
    (Fault::Map, "map"),
    (Fault::Drain, "drain"),
    (Fault::Clients, "clients"),
    (Fault::Skew, "skew"),
];

/// Which faults there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults(pub Vec<Fault>);

/// A list of faults that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault: write all, none, or some of {names}, parted by commas", names = names())]
pub struct NoFault(String);

fn names() -> String {
    ALL.map(|(_, name)| name).join(", ")
}

impl FromStr for Faults {
    type Err = NoFault;

    fn from_str(text: &str) -> Result<Faults, NoFault> {
        match text {
            "all" => return Ok(Faults(ALL.map(|(fault, _)| fault).into())),
            "none" => return Ok(Faults::default()),
            _ => {}
        }
        let fault = |word: &str| {
            let found = ALL.iter().find(|(_, name)| *name == word.trim());
            found.map(|(fault, _)| *fault).ok_or_else(|| NoFault(word.trim().into()))
        };
        let mut faults = text.split(',').map(fault).collect::<Result<Vec<_>, _>>()?;
        faults.sort_unstable();
        faults.dedup();
        Ok(Faults(faults))
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let name = |fault: &Fault| ALL.iter().find(|(of, _)| of == fault).map_or("", |(_, n)| n);
        f.write_str(&self.0.iter().map(name).collect::<Vec<_>>().join(","))
    }
}

fn seconds(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least + (most - least) * rng.unit())
}

fn choose<T: Copy>(rng: &mut Rng, of: &[T]) -> Option<T> {
    let at = (rng.unit() * of.len() as f64) as usize;
    of.get(at.min(of.len().saturating_sub(1))).copied()
}

impl Cluster {
    /// Does something of a kind, and waits until it is over.
    pub(super) async fn inflict(&mut self, fault: Fault, rng: &mut Rng) {
        let node = choose(rng, &self.nodes()).unwrap_or_default();
        let gateway = choose(rng, &self.gateways()).unwrap_or_default();
        let all: Vec<_> = self.nodes().into_iter().chain(self.gateways()).collect();
        match fault {
            Fault::Crash => self.crash(node, rng).await,
            Fault::Gateway => self.crash(gateway, rng).await,
            Fault::Stop => {
                let lasts = seconds(rng, 0.5, 8.0);
                self.note(format!("host {node} stops for {lasts:?}"), lasts);
                self.process(node).stop();
                sleep(lasts).await;
                self.process(node).go_on();
            }
            Fault::Partition | Fault::OneWay => {
                let other = choose(rng, &all).filter(|other| *other != node);
                let Some(other) = other else { return };
                let lasts = seconds(rng, 0.5, 9.0);
                self.note(format!("{fault:?} from {node} to {other} for {lasts:?}"), lasts);
                let net = &self.ground().net;
                net.cut(node, other);
                if fault == Fault::Partition {
                    net.cut(other, node);
                }
                sleep(lasts).await;
                self.ground().net.mend();
            }
            Fault::CutOff => {
                let lasts = seconds(rng, 0.5, 9.0);
                self.note(format!("{node} is cut off for {lasts:?}"), lasts);
                for other in all.iter().filter(|other| **other != node) {
                    self.ground().net.cut(node, *other);
                    self.ground().net.cut(*other, node);
                }
                self.process(node).way.cut();
                sleep(lasts).await;
                self.ground().net.mend();
                self.process(node).way.mend();
            }
            Fault::Delay => {
                let lasts = seconds(rng, 1.0, 8.0);
                self.note(format!("messages are late for {lasts:?}"), lasts);
                self.ground().net.set_delays(Delays::BUSY);
                sleep(lasts).await;
                self.ground().net.set_delays(Delays::QUIET);
            }
            Fault::Engine => {
                let lasts = seconds(rng, 0.5, 6.0);
                self.note(format!("the store is away for {lasts:?}"), lasts);
                all.iter().for_each(|host| self.process(*host).way.cut());
                sleep(lasts).await;
                all.iter().for_each(|host| self.process(*host).way.mend());
            }
            Fault::Answers => {
                let lasts = seconds(rng, 1.0, 8.0);
                self.note(format!("answers of the store are lost for {lasts:?}"), lasts);
                all.iter().for_each(|host| self.process(*host).way.lose_answers(4));
                sleep(lasts).await;
                all.iter().for_each(|host| self.process(*host).way.lose_answers(0));
            }
            Fault::Shelf => {
                let lasts = seconds(rng, 1.0, 8.0);
                self.note(format!("checkpoints are not kept for {lasts:?}"), lasts);
                self.ground().memory.set_faults(ShelfFaults { away: true, ..Default::default() });
                sleep(lasts).await;
                self.ground().memory.set_faults(ShelfFaults::default());
            }
            Fault::Checkpoint => {
                let (lost_one_in, old_one_in, torn_one_in) = (4, 3, 3);
                let worn = ShelfFaults { away: false, lost_one_in, old_one_in, torn_one_in };
                self.ground().memory.set_faults(worn);
                self.crash(node, rng).await;
                self.ground().memory.set_faults(ShelfFaults::default());
            }
            Fault::Move => {
                if let Some(region) = choose(rng, &self.regions()) {
                    self.order_move(region, node).await;
                }
                sleep(seconds(rng, 0.2, 2.0)).await;
            }
            Fault::Map => {
                self.order_map(rng).await;
                sleep(seconds(rng, 0.5, 4.0)).await;
            }
            Fault::Drain => {
                self.order_drain(node).await;
                let mut waited = 0;
                while !self.process(node).is_over() && waited < 100 {
                    sleep(Duration::from_millis(200)).await;
                    waited += 1;
                }
                sleep(seconds(rng, 0.3, 2.0)).await;
                self.begin_again(node);
            }
            Fault::Clients => {
                let players = u64::from(self.players());
                let least = (players as f64 * rng.unit()) as u32;
                self.note("clients lose their connections".into(), Duration::ZERO);
                for number in (least..self.players()).take((players / 4) as usize + 1) {
                    self.ground().net.lose_client(CLIENTS + number);
                }
                sleep(seconds(rng, 0.2, 3.0)).await;
            }
            // It is so from the beginning.
            Fault::Skew => sleep(Duration::from_millis(100)).await,
        }
    }

    async fn crash(&mut self, host: u32, rng: &mut Rng) {
        let lost = rng.one_in(2);
        let lasts = seconds(rng, 0.3, 8.0);
        self.note(format!("host {host} dies for {lasts:?}, words lost: {lost}"), lasts);
        self.process(host).kill(lost);
        sleep(lasts).await;
        self.begin_again(host);
    }

    fn note(&self, text: String, lasts: Duration) {
        self.ground().journal.note(What::Fault(text));
        if lasts > Duration::ZERO {
            self.ground().judge.excuse(lasts);
        }
    }
}
