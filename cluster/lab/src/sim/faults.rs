//! What is done to a simulated cluster.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use purview::scene::{Pos, RegionId};
use tokio::time::sleep;

use crate::rng::Rng;

use super::client::CLIENTS;
use super::cluster::{Cluster, REGION_CM};
use super::journal::What;
use super::network::{Delays, Host};
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
    /// Some clients take nothing of what they are told for a while.
    Slow,
    /// The store grants what a node holds to others, and does not tell it.
    Lease,
    /// The store grants a region of a node to another one, and does not tell it, while its lease holds.
    Twice,
    /// Half of the clients come to one place, mostly where regions meet.
    HotSpot,
    /// Half of the clients leave, and come back all at once.
    Logins,
}

/// All kinds, by their names.
pub const ALL: [(Fault, &str); 21] = [
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
    (Fault::Slow, "slow"),
    (Fault::Lease, "lease"),
    (Fault::Twice, "twice"),
    (Fault::HotSpot, "hot-spot"),
    (Fault::Logins, "logins"),
];

/// Which faults there are: each as often as it stands here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults(pub Vec<Fault>);

/// How often a fault may come for one of another kind.
const RATES: std::ops::RangeInclusive<u32> = 1..=100;

/// A list of faults that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFaults {
    /// There is no fault of this name.
    #[error("{0:?} is no fault: write all, none, or some of {names}, parted by commas", names = names())]
    Name(String),
    /// It is not said how often.
    #[error("{0:?} is no rate: write how often it comes for one of another kind, {least} to {most}, as in crash=3", least = RATES.start(), most = RATES.end())]
    Rate(String),
}

fn names() -> String {
    ALL.map(|(_, name)| name).join(", ")
}

impl FromStr for Faults {
    type Err = NoFaults;

    fn from_str(text: &str) -> Result<Faults, NoFaults> {
        match text {
            "all" => return Ok(Faults(ALL.map(|(fault, _)| fault).into())),
            "none" => return Ok(Faults::default()),
            _ => {}
        }
        let mut rates = BTreeMap::new();
        for word in text.split(',') {
            let (name, rate) = word.split_once('=').unwrap_or((word, "1"));
            let known = ALL.iter().find(|(_, known)| *known == name.trim());
            let (fault, _) = known.ok_or_else(|| NoFaults::Name(name.trim().into()))?;
            let often = rate.trim().parse().ok().filter(|rate| RATES.contains(rate));
            rates.insert(*fault, often.ok_or_else(|| NoFaults::Rate(word.trim().into()))?);
        }
        let often = |(fault, rate): (Fault, u32)| std::iter::repeat_n(fault, rate as usize);
        Ok(Faults(rates.into_iter().flat_map(often).collect()))
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let name = |fault: &Fault| ALL.iter().find(|(of, _)| of == fault).map_or("", |(_, n)| n);
        let word = |same: &[Fault]| match same {
            [fault] => name(fault).to_owned(),
            [fault, ..] => format!("{}={}", name(fault), same.len()),
            [] => String::new(),
        };
        f.write_str(&self.0.chunk_by(|a, b| a == b).map(word).collect::<Vec<_>>().join(","))
    }
}

fn choose<T: Copy>(rng: &mut Rng, of: &[T]) -> Option<T> {
    let at = (rng.unit() * of.len() as f64) as usize;
    of.get(at.min(of.len().saturating_sub(1))).copied()
}

/// Something that is to be done, once: all that is drawn for it, so that its time passes whether it is done or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Blow {
    /// Of which kind.
    pub fault: Fault,
    /// The node to which it is done.
    pub node: Host,
    /// The gateway to which it is done, if it is for gateways.
    pub gateway: Host,
    /// Any process: the other end of a link.
    pub other: Host,
    /// For how long.
    pub lasts: Duration,
    /// What a process that dies has said last is lost.
    pub lost: bool,
    /// From which client on, as a part of all clients: 0 to below 1.
    pub first: f64,
    /// Seed for what depends on the cluster as it is by then: which of its regions, which place.
    pub seed: u64,
}

impl Blow {
    /// Draws what of a kind is to be done.
    pub(super) fn draw(fault: Fault, cluster: &Cluster, mut rng: Rng) -> Blow {
        let (nodes, gateways, all) = (cluster.nodes(), cluster.gateways(), cluster.all());
        let node = choose(&mut rng, &nodes).unwrap_or_default();
        let gateway = choose(&mut rng, &gateways).unwrap_or_default();
        let other = choose(&mut rng, &all).unwrap_or_default();
        let (least, most) = match fault {
            Fault::Crash | Fault::Gateway | Fault::Checkpoint => (0.3, 8.0),
            Fault::Stop => (0.5, 8.0),
            Fault::Partition | Fault::OneWay | Fault::CutOff => (0.5, 9.0),
            Fault::Delay | Fault::Answers | Fault::Shelf => (1.0, 8.0),
            Fault::Engine => (0.5, 6.0),
            Fault::Move => (0.2, 2.0),
            Fault::Map => (0.5, 4.0),
            Fault::Drain => (0.3, 2.0),
            Fault::Clients => (0.2, 3.0),
            Fault::Slow | Fault::Lease => (0.5, 6.0),
            // Not until its lease is over.
            Fault::Twice => (0.5, 2.0),
            Fault::HotSpot => (2.0, 10.0),
            Fault::Logins => (0.5, 3.0),
            Fault::Skew => (0.1, 0.1),
        };
        let lasts = Duration::from_secs_f64(least + (most - least) * rng.unit());
        let (lost, first) = (rng.one_in(2), rng.unit());
        Blow { fault, node, gateway, other, lasts, lost, first, seed: rng.state() }
    }

    /// The time in which it would have been done passes.
    pub(super) async fn pass(self) {
        sleep(self.lasts).await;
    }
}

impl Cluster {
    /// Does something, and waits until it is over. Of two that are done at once, what ends first ends what both did
    /// to the same.
    pub(super) async fn inflict(&self, blow: Blow) {
        let Blow { fault, node, gateway, other, lasts, lost, first, seed } = blow;
        let mut rng = Rng::new(seed);
        let all = self.all();
        let net = &self.ground().net;
        match fault {
            Fault::Crash => self.crash(node, lasts, lost).await,
            Fault::Gateway => self.crash(gateway, lasts, lost).await,
            Fault::Stop => {
                self.note(format!("host {node} stops for {lasts:?}"), lasts);
                self.process(node).stop();
                sleep(lasts).await;
                self.process(node).go_on();
            }
            Fault::Partition | Fault::OneWay if other == node => sleep(lasts).await,
            Fault::Partition | Fault::OneWay => {
                self.note(format!("{fault:?} from {node} to {other} for {lasts:?}"), lasts);
                let back = (fault == Fault::Partition).then_some((other, node));
                let pairs: Vec<_> = [(node, other)].into_iter().chain(back).collect();
                net.cut(&pairs);
                sleep(lasts).await;
                net.join(&pairs);
            }
            Fault::CutOff => {
                self.note(format!("{node} is cut off for {lasts:?}"), lasts);
                let others = all.iter().filter(|other| **other != node);
                let pairs: Vec<_> = others.flat_map(|o| [(node, *o), (*o, node)]).collect();
                net.cut(&pairs);
                self.process(node).way.cut();
                sleep(lasts).await;
                net.join(&pairs);
                self.process(node).way.mend();
            }
            Fault::Delay => {
                self.note(format!("messages are late for {lasts:?}"), lasts);
                net.set_delays(Delays::BUSY);
                sleep(lasts).await;
                net.set_delays(Delays::QUIET);
            }
            Fault::Engine => {
                self.note(format!("the store is away for {lasts:?}"), lasts);
                all.iter().for_each(|host| self.process(*host).way.cut());
                sleep(lasts).await;
                all.iter().for_each(|host| self.process(*host).way.mend());
            }
            Fault::Answers => {
                self.note(format!("answers of the store are lost for {lasts:?}"), lasts);
                all.iter().for_each(|host| self.process(*host).way.lose_answers(4));
                sleep(lasts).await;
                all.iter().for_each(|host| self.process(*host).way.lose_answers(0));
            }
            Fault::Lease => {
                self.note(format!("what {node} holds is granted to others for {lasts:?}"), lasts);
                let process = self.process(node);
                self.ground().judge.betrayed((node, process.life));
                process.way.betray();
                sleep(lasts).await;
                process.way.mend();
            }
            Fault::Twice => {
                let to = choose(&mut rng, &self.nodes()).unwrap_or(node);
                self.grant_twice((node, to), lasts, &mut rng).await;
            }
            Fault::Shelf => {
                self.note(format!("checkpoints are not kept for {lasts:?}"), lasts);
                self.ground().judge.checkpoints_wait(lasts);
                self.ground().memory.set_faults(ShelfFaults { away: true, ..Default::default() });
                sleep(lasts).await;
                self.ground().memory.set_faults(ShelfFaults::default());
            }
            Fault::Checkpoint => {
                let (lost_one_in, old_one_in, torn_one_in) = (4, 3, 3);
                let worn = ShelfFaults { away: false, lost_one_in, old_one_in, torn_one_in };
                self.ground().memory.set_faults(worn);
                self.ground().judge.checkpoints_are_lost();
                self.crash(node, lasts, lost).await;
                self.ground().memory.set_faults(ShelfFaults::default());
            }
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
            Fault::Drain => {
                self.order_drain(node).await;
                let mut waited = 0;
                while !self.process(node).is_over() && waited < 100 {
                    sleep(Duration::from_millis(200)).await;
                    waited += 1;
                }
                sleep(lasts).await;
                self.begin_again(node);
            }
            Fault::Clients => {
                self.note("clients lose their connections".into(), Duration::ZERO);
                self.some_clients(first).for_each(|client| net.lose_client(client));
                sleep(lasts).await;
            }
            Fault::Slow => {
                self.note(format!("clients take nothing for {lasts:?}"), lasts);
                let gateways = self.gateways();
                let from_all = |client| gateways.iter().map(move |gateway| (*gateway, client));
                let pairs: Vec<_> = self.some_clients(first).flat_map(from_all).collect();
                net.cut(&pairs);
                sleep(lasts).await;
                net.join(&pairs);
            }
            Fault::HotSpot => {
                let (who, at) = (self.half_of_the_clients(first), self.spot(&mut rng));
                self.note(format!("clients {who:?} come to {at:?}"), Duration::ZERO);
                self.ground().will.meet(Some((who, at)));
                sleep(lasts).await;
                self.ground().will.meet(None);
            }
            Fault::Logins => {
                let who = self.half_of_the_clients(first);
                self.note(format!("clients {who:?} leave for {lasts:?}"), Duration::ZERO);
                self.ground().will.send_out(who);
                sleep(lasts).await;
                self.ground().will.send_out(0..0);
            }
            // It is so from the beginning.
            Fault::Skew => sleep(lasts).await,
        }
    }

    /// The hosts of a quarter of the clients.
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

    /// A place, mostly where regions meet.
    fn spot(&self, rng: &mut Rng) -> Pos {
        let (width, depth) = self.size();
        let along = |size: i32, rng: &mut Rng| {
            let borders: Vec<i32> = (1..size / REGION_CM).map(|at| at * REGION_CM).collect();
            let border = choose(rng, &borders).filter(|_| !rng.one_in(3));
            border.unwrap_or((f64::from(size) * rng.unit()) as i32)
        };
        Pos::ground(along(width, rng), along(depth, rng))
    }

    /// A region of a node is granted to another one, too.
    async fn grant_twice(&self, (node, to): (Host, Host), lasts: Duration, rng: &mut Rng) {
        let mine = self.owned_by(node);
        let Some((key, epoch)) = choose(rng, &mine.iter().collect::<Vec<_>>()) else {
            return sleep(lasts).await;
        };
        let region = RegionId(key.region);
        self.note(format!("region {region} of {node} is granted to {to}, too"), lasts);
        let process = self.process(node);
        let one = (region, *epoch);
        self.ground().judge.betrayed_once((node, process.life), one, lasts);
        self.order_move(region, to).await;
        process.way.cut();
        self.ground().store.take_away(key, *epoch);
        sleep(lasts).await;
        // One that is stopped renews no lease.
        if !process.is_stopped() {
            process.way.mend();
        }
    }

    async fn crash(&self, host: Host, lasts: Duration, lost: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_with_their_rates_and_written_so() {
        let read = |text: &str| text.parse::<Faults>();
        assert_eq!(read("none").unwrap().to_string(), "none");
        assert_eq!(read("all").unwrap().0.len(), ALL.len());
        let some = read("move=3, crash,twice=1").unwrap();
        assert_eq!(some.0, [Fault::Crash, Fault::Move, Fault::Move, Fault::Move, Fault::Twice]);
        assert_eq!(some.to_string(), "crash,move=3,twice");
        assert_eq!(read(&some.to_string()), Ok(some));
    }

    #[test]
    fn what_is_no_fault_or_no_rate_is_refused_with_what_would_be_right() {
        let refused = |text: &str| text.parse::<Faults>().unwrap_err().to_string();
        let name = refused("crash,boom");
        assert!(name.contains("\"boom\"") && name.contains("hot-spot, logins"), "{name}");
        for rate in ["crash=0", "crash=101", "crash=", "crash=-1", "crash=x"] {
            let text = refused(rate);
            assert!(text.contains(rate) && text.contains("1 to 100"), "{text}");
        }
    }
}
