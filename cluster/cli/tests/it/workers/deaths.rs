//! Nodes of a real cluster (etcd, PostgreSQL, three nodes and a gateway, each a process) die, fall silent and leave
//! under a worker that commands entities in all their regions.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::config::Config;
use purview_server::interest::client::Address;
use purview_server::logic::proto::{self, command};

use super::support::{CONFIG, MONSTER, PATIENCE, Worker, runtime};
use crate::ctl::survey;

/// Regions of the scene.
const REGIONS: u32 = 4;

/// Actions of each entity after a fault.
const AFTER: u64 = 20;

struct Trial {
    cluster: LocalCluster,
    /// The node to which the worker is connected.
    host: String,
    worker: Worker,
    /// The entity of each region. It never moves.
    monsters: Vec<u64>,
}

/// What a fault has done to a region.
#[derive(Debug)]
struct Outcome {
    /// The number of the entity's last command that was told before.
    told: u64,
    /// The number of the entity's last command that the worker knew to be durable.
    durable: u64,
    /// The number of the entity's last command in the state from which the region goes on.
    kept: u64,
    /// Whether later states of the region were lost.
    recovered: bool,
}

fn start() -> LocalCluster {
    let text = format!(
        "[cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
         [logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"60s\"\nresume = \"60s\"\n{CONFIG}"
    );
    let mut config = Config::parse(&text).expect("a configuration");
    config.console.listen = Some((Ipv4Addr::LOCALHOST, 0).into());
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 3, gateways: 1 };
    LocalCluster::start(program, &config, parts, &mut |_| {}).expect("a cluster")
}

/// The number of a command, as its action says.
fn number(payload: &[u8]) -> u64 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
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
        let monsters = (0..REGIONS).map(spawn).collect();
        worker.until(|w| w.sent.is_empty()).await;
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

    /// Lets each entity act once in each tick, until something holds.
    async fn act_until(&mut self, holds: impl Fn(&Worker) -> bool) {
        let all = async {
            while !holds(&self.worker) {
                for (region, monster) in (0..).zip(&self.monsters) {
                    let next = self.worker.numbers[monster] + 1;
                    let payload = next.to_string().into_bytes().into();
                    let act = command::Command::Act(proto::Act { payload, aim: 0 });
                    self.worker.give(region, *monster, act);
                }
                let region = *self.worker.leases.keys().next().expect("some region goes on");
                let tick = self.worker.leases[&region].tick;
                let goes_on =
                    |w: &Worker| w.leases.get(&region).is_none_or(|lease| lease.tick > tick);
                self.worker.until(goes_on).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("it holds at last");
    }

    /// Does something to the node that has a region, while all entities act, and waits until all its regions go on
    /// elsewhere and all that was given is durable.
    async fn endure(&mut self, region: u32, fault: fn(&Member)) -> BTreeMap<u32, Outcome> {
        let more = |w: &Worker, n: u64| w.ticks + n;
        let end = more(&self.worker, 15 * u64::from(REGIONS));
        self.act_until(|w| w.ticks >= end).await;
        let name = self.owner(region);
        let all = survey(&self.cluster.gateways()[0]).regions;
        let hit: Vec<u32> = all.iter().filter(|r| r.node == name).map(|r| r.region).collect();
        let epochs: BTreeMap<u32, u64> =
            hit.iter().map(|region| (*region, self.worker.leases[region].epoch)).collect();
        self.worker.recovered.clear();
        fault(self.node(&name));
        let durable: BTreeMap<u32, u64> =
            hit.iter().map(|region| (*region, self.durable(*region))).collect();
        let moved = |w: &Worker| {
            let has = |(region, epoch): (&u32, &u64)| {
                w.leases.get(region).is_some_and(|lease| lease.epoch > *epoch)
            };
            epochs.iter().all(has)
        };
        self.act_until(moved).await;
        let end = more(&self.worker, AFTER * u64::from(REGIONS));
        self.act_until(|w| w.ticks >= end).await;
        self.worker.until(|w| w.sent.is_empty()).await;
        assert_ne!(self.owner(region), name, "the region is elsewhere");
        let outcome = |(region, epoch): (&u32, &u64)| {
            let durable = durable[region];
            (*region, self.outcome((*region, *epoch), durable))
        };
        epochs.iter().map(outcome).collect()
    }

    /// The number of the last command that is durable as far as the worker knows.
    fn durable(&self, region: u32) -> u64 {
        let monster = self.monsters[region as usize];
        let next = self.worker.sent.first(monster);
        next.unwrap_or(self.worker.numbers[&monster] + 1) - 1
    }

    /// What was told of the entity of a region, before the region went on elsewhere and after.
    fn outcome(&self, (region, epoch): (u32, u64), durable: u64) -> Outcome {
        let monster = self.monsters[region as usize];
        let of_entity = self.worker.acts.iter().filter(|(entity, ..)| *entity == monster);
        let told: Vec<(u64, u64)> =
            of_entity.map(|(_, epoch, payload)| (*epoch, number(payload))).collect();
        let first_after = told.iter().position(|(told, _)| *told > epoch).expect("it goes on");
        let (before, after) = told.split_at(first_after);
        let is_in_order = |told: &[(u64, u64)]| told.windows(2).all(|two| two[0].1 + 1 == two[1].1);
        let late: Vec<_> = after.iter().filter(|(told, _)| *told <= epoch).collect();
        assert!(late.is_empty(), "what the dead region says late is not believed: {late:?}");
        assert!(is_in_order(after), "region {region}: one is missing or repeated in {after:?}");
        let in_epoch = before.iter().filter(|(told, _)| *told == epoch).copied();
        assert!(is_in_order(&in_epoch.collect::<Vec<_>>()), "region {region}: {before:?}");
        assert_eq!(after.last().map(|(_, number)| *number), Some(self.worker.numbers[&monster]));
        let told = before.last().map_or(1, |(_, number)| *number);
        let recovered = self.worker.recovered.iter().any(|r| r.region == region && r.since > 0);
        Outcome { told, durable, kept: after[0].1 - 1, recovered }
    }
}

#[test]
fn what_is_not_durable_is_done_again_once_after_a_node_is_killed_or_silent_and_nothing_when_it_leaves()
 {
    runtime().block_on(async {
        let mut trial = Trial::start().await;
        // How many commands were undone that the worker was told of.
        let undone = |all: &BTreeMap<u32, Outcome>| {
            for (region, outcome) in all {
                let Outcome { durable, kept, recovered, .. } = *outcome;
                assert!(recovered, "region {region} has died");
                assert!(durable <= kept, "region {region}: what was durable is kept: {outcome:?}");
            }
            all.values().map(|outcome| outcome.told.saturating_sub(outcome.kept)).sum::<u64>()
        };
        let by_death = {
            let region = trial.elsewhere();
            undone(&trial.endure(region, Member::kill).await)
        };

        trial.cluster.add_node("node-4".into()).unwrap();
        let region = trial.elsewhere();
        let silent = trial.owner(region);
        let by_silence = undone(&trial.endure(region, Member::pause).await);
        assert!(by_death + by_silence > 0, "the faults have undone commands");
        trial.node(&silent).resume();
        // What the node still says of its regions, until it notices, changes nothing.
        let end = trial.worker.ticks + 10 * u64::from(REGIONS);
        trial.act_until(|w| w.ticks >= end).await;
        trial.worker.until(|w| w.sent.is_empty()).await;

        trial.cluster.add_node("node-5".into()).unwrap();
        let region = trial.elsewhere();
        for (region, outcome) in trial.endure(region, Member::terminate).await {
            // Told again is only what the worker had not handled.
            assert!(!outcome.recovered, "region {region} has moved: {outcome:?}");
        }
        let others: Vec<_> = trial.worker.results.iter().filter(|r| r.expected == 0).collect();
        assert!(others.is_empty(), "only gaps may be refused: {others:?}");
    });
}
