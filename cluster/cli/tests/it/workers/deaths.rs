//! Nodes of a real cluster (etcd, PostgreSQL, three nodes and a gateway, each a process) die, fall silent and leave
//! under a worker that commands entities in all their regions.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::config::Config;
use purview_server::interest::client::Address;
use purview_server::logic::proto::{self, command};

use super::support::{CONFIG, MONSTER, PATIENCE, Worker};
use crate::ctl::survey;

const REGIONS: u32 = 4;

/// Actions of each entity after a fault.
const AFTER: u64 = 20;

/// Ticks from a checkpoint to a fault: fewer than to the next one.
const SOME: u64 = 3;

/// The property that commands count up.
const COUNT: u32 = 2;

struct Trial {
    cluster: LocalCluster,
    /// The node to which the worker is connected.
    host: String,
    worker: Worker,
    /// The entity of each region. It never moves.
    monsters: Vec<u64>,
}

fn start() -> LocalCluster {
    let text = format!(
        "[cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
         [logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"60s\"\n{CONFIG}"
    );
    let mut config = Config::parse(&text).expect("a configuration");
    config.console.listen = Some((Ipv4Addr::LOCALHOST, 0).into());
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 3, gateways: 1 };
    LocalCluster::start(program, &config, parts, &mut |_| {}).expect("a cluster")
}

impl Trial {
    async fn start() -> Trial {
        let cluster = start();
        // At a node that stays.
        let host = &cluster.nodes()[0];
        let logic = host.ready().and_then(|ready| ready.logic).expect("it serves");
        let host = host.name.clone();
        let mut worker = Worker::begin_at(&Address::new(&format!("http://{logic}")), "one").await;
        worker.until(|w| w.leases.len() == REGIONS as usize).await;
        let place = |at: u32| 5_000 + 30_000 * at as i32;
        let spawn = |region| worker.spawn(region, MONSTER, place(region % 2), place(region / 2));
        let monsters: Vec<u64> = (0..REGIONS).map(spawn).collect();
        let all: Vec<u64> = Vec::clone(&monsters);
        worker.until(|w| all.iter().all(|monster| w.has(*monster))).await;
        Trial { cluster, host, worker, monsters }
    }

    /// The name of the node that has a region.
    fn owner(&self, region: u32) -> String {
        let regions = survey(&self.cluster.gateways()[0]).regions;
        let known = regions.iter().find(|known| known.region == region);
        known.expect("the region is known").node.clone()
    }

    /// A region of another node than that to which the worker is connected.
    fn elsewhere(&self) -> u32 {
        (0..REGIONS).find(|region| self.owner(*region) != self.host).expect("it has not all")
    }

    fn node(&self, name: &str) -> &Member {
        self.cluster.nodes().iter().find(|node| node.name == name).expect("it is a node")
    }

    /// What each region has counted of the commands for its entity: a number.
    fn counts(&self) -> Vec<u64> {
        self.monsters.iter().map(|monster| self.worker.number(*monster, COUNT)).collect()
    }

    /// Lets each entity count once in each tick, until something holds. Each count is one more than what is there.
    async fn count_until(&mut self, holds: impl Fn(&Worker) -> bool) {
        let all = async {
            while !holds(&self.worker) {
                for (region, monster) in (0..).zip(&self.monsters) {
                    if self.worker.is_idle(region) && self.worker.has(*monster) {
                        let next = self.worker.number(*monster, COUNT) + 1;
                        let value = vec![0xcd, (next >> 8) as u8, next as u8].into();
                        let property = proto::Property { id: COUNT, value, version: 0 };
                        let set = command::Command::SetProperty(property);
                        self.worker.give(region, *monster, set);
                    }
                }
                let ticks = self.worker.ticks;
                self.worker.until(|w| w.ticks > ticks).await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            let state = |(region, monster): (u32, &u64)| {
                let (worker, count) = (&self.worker, self.worker.number(*monster, COUNT));
                let [idle, has] = [worker.is_idle(region), worker.has(*monster)];
                format!(
                    "region {region}: idle {idle}, has its entity {has}, counted {count}, at risk {}",
                    worker.at_risk(region)
                )
            };
            let states: Vec<String> = (0..).zip(&self.monsters).map(state).collect();
            panic!("it does not hold in {PATIENCE:?}: {states:#?}");
        }
    }

    /// Does something to the node that has a region, while all entities count, and waits until all its regions go on
    /// elsewhere. How many commands were undone; none of them was durable.
    async fn endure(&mut self, region: u32, fault: fn(&Member)) -> usize {
        let name = self.owner(region);
        let all = survey(&self.cluster.gateways()[0]).regions;
        let hit: Vec<u32> = all.iter().filter(|r| r.node == name).map(|r| r.region).collect();
        let epochs: BTreeMap<u32, u64> =
            hit.iter().map(|region| (*region, self.worker.leases[region].epoch)).collect();
        // The fault comes a while after a checkpoint, when commands are at risk that no other is about to save.
        let last = Cell::new(0);
        self.count_until(|w| w.at_risk(region) < last.replace(w.at_risk(region))).await;
        let later = self.worker.ticks + SOME * u64::from(REGIONS);
        self.count_until(|w| w.ticks >= later && w.at_risk(region) > 0).await;
        self.worker.undone.clear();
        let (before, durable) = (self.worker.counted.clone(), self.worker.durable.clone());
        fault(self.node(&name));
        let moved = |w: &Worker| {
            let has = |(region, epoch): (&u32, &u64)| {
                w.leases.get(region).is_some_and(|lease| lease.epoch > *epoch)
            };
            epochs.iter().all(has)
        };
        self.count_until(moved).await;
        let (end, counts) = (self.worker.ticks + AFTER * u64::from(REGIONS), self.counts());
        self.count_until(|w| w.ticks >= end).await;
        assert!(self.counts().iter().zip(&counts).all(|(now, then)| now > then), "all go on");
        assert_ne!(self.owner(region), name, "the region is elsewhere");
        let undone = &self.worker.undone;
        assert!(undone.is_disjoint(&durable), "what was durable is kept");
        undone.intersection(&before).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_durable_may_be_undone_when_a_node_is_killed_or_silent_and_nothing_when_it_leaves()
 {
    let mut trial = Trial::start().await;
    let region = trial.elsewhere();
    let by_death = trial.endure(region, Member::kill).await;

    trial.cluster.add_node("node-4".into()).unwrap();
    let region = trial.elsewhere();
    let silent = trial.owner(region);
    let by_silence = trial.endure(region, Member::pause).await;
    assert!(by_death + by_silence > 0, "the faults have undone commands");
    trial.node(&silent).resume();
    // What the node still says of its regions, until it notices, changes nothing.
    let end = trial.worker.ticks + 10 * u64::from(REGIONS);
    trial.count_until(|w| w.ticks >= end).await;

    trial.cluster.add_node("node-5".into()).unwrap();
    let region = trial.elsewhere();
    let by_leaving = trial.endure(region, Member::terminate).await;
    assert_eq!(by_leaving, 0, "a region that moves takes all along");
    assert!(trial.worker.results.is_empty(), "{:?}", trial.worker.results);
}
