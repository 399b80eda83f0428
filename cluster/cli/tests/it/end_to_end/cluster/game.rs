//! The example game on three real nodes: nodes and logic workers are killed, fall silent and leave while clients hunt, and
//! no gold is lost or made.

use std::net::{IpAddr, Ipv4Addr};

use purview::scene::Kind;
use purview_demo::players::{Role, Stage, planes, play};
use purview_lab::game::accounts::{Accounts, Holding, Survey, balance, faults, won};
use purview_lab::game::rules::PLAYER_HP;
use purview_lab::load::surveys::{SurveyedScene, Surveys};
use purview_lab::testbed::local_cluster::{LocalCluster, Member};
use purview_server::config::Config;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::super::operations::get;
use crate::common::{cluster, console, runtime, try_for};
use crate::ctl::survey_now;
use crate::foreign::PythonWorker;
use crate::walkers::token;

const HUNTERS: u32 = 6;

pub const REGIONS: usize = 4;

/// The node to which logic workers connect; it stays.
pub const HOST: &str = "node-3";

/// Gold that players win between two faults.
const PRIZES: i64 = 20;

/// Whose rules regions run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    OfNodes,
    OfWorkers,
}

/// The example's scene at a quarter of its size, so that hunters meet monsters at once.
fn config(rules: Rules) -> Config {
    let scene = include_str!("../../../../../../examples/hunt/hunt.toml");
    let scene = scene.replace("256m", "64m").replace("512m", "128m").replace("32m", "16m");
    let logic = match rules {
        Rules::OfNodes => "",
        Rules::OfWorkers => "[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"500ms\"\n",
    };
    let text = format!("[cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n{logic}{scene}");
    let mut config = Config::parse(&text).expect("a configuration");
    config.console.listen = Some((Ipv4Addr::LOCALHOST, 0).into());
    // Nodes run the rules of the example then.
    config.server.demo = rules == Rules::OfNodes;
    config
}

/// Waits until something is there.
#[track_caller]
pub fn until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    try_for(what, || find().ok_or("not yet"))
}

pub struct Trial {
    pub cluster: LocalCluster,
    hunters: u32,
    /// A node that is suspended.
    silent: Option<String>,
    runtime: Runtime,
    rest: watch::Sender<bool>,
}

impl Trial {
    fn start(rules: Rules) -> Trial {
        Trial::of(rules, None, HUNTERS)
    }

    /// A cluster for so many hunters, whose processes may listen for peers at an address of a network of their own.
    pub fn of(rules: Rules, peers: Option<IpAddr>, hunters: u32) -> Trial {
        let mut config = config(rules);
        if let Some(address) = peers {
            config.cluster.listen.set_ip(address);
            config.cluster.insecure = true;
        }
        let (cluster, rest) = (cluster(&config, 3, 1), watch::channel(false).0);
        Trial { cluster, hunters, silent: None, runtime: runtime(), rest }
    }

    /// One more worker with the rules in Python.
    pub fn worker(&self) -> PythonWorker {
        let ready = host(self).ready().and_then(|ready| ready.logic);
        PythonWorker::start("hunt.py", &ready.expect("workers can connect"), &[])
    }

    /// Clients hunt from now on.
    pub fn hunt(&self) {
        let url = self.cluster.url(0).expect("clients can connect");
        let token = |n| token(&self.cluster, &format!("hunter {n}"));
        let tokens = (0..self.hunters).map(token).collect();
        let stage = Stage { url, scene: "wood".into(), ground: None };
        self.runtime.spawn(play(stage, Role::Hunts, tokens, self.rest.subscribe()));
    }

    /// The consoles of the nodes that run.
    fn surveys(&self) -> Surveys {
        let speaks = |node: &&Member| {
            node.ended().is_none() && self.silent.as_ref().is_none_or(|silent| *silent != node.name)
        };
        let nodes = self.cluster.nodes().iter().filter(speaks);
        let wood =
            SurveyedScene { name: "wood".into(), planes: planes(self.hunters), regions: REGIONS };
        Surveys { consoles: nodes.map(console).collect(), scenes: vec![wood] }
    }

    /// All entities, once every region answers and something holds.
    fn until(&self, what: &str, mut holds: impl FnMut(&Survey) -> bool) -> Survey {
        let surveys = self.surveys();
        until(what, || {
            let all = self.runtime.block_on(surveys.take())?;
            assert_eq!(faults(&all), [], "{what}: {all:?}");
            holds(&all).then_some(all)
        })
    }

    /// Waits until players have won more gold.
    fn play(&self) {
        let before = won(&self.until("all regions answer", |_| true));
        self.until("players win gold", |all| won(all) >= before + PRIZES);
    }

    fn owner(&self, region: u32) -> &Member {
        until("the region has a node", || {
            let regions = survey_now(&self.cluster.gateways()[0]).regions;
            let known = regions.into_iter().find(|known| known.region == region)?;
            self.cluster.nodes().iter().find(|node| node.name == known.node)
        })
    }

    fn until_without_regions(&self, name: &str) {
        let regions = || survey_now(&self.cluster.gateways()[0]).regions;
        let has_any = || regions().iter().any(|r| r.node == name);
        until("other nodes have its regions", || (!has_any()).then_some(()));
    }

    /// The owner of a region that is not the node to which workers connect.
    fn owner_beside_host(&self) -> &Member {
        let mut owners = (0..REGIONS as u32).map(|region| self.owner(region));
        owners.find(|node| node.name != HOST).expect("another node has regions")
    }

    fn kill_a_node(&mut self, instead: &str) {
        let killed = self.owner_beside_host();
        killed.kill();
        self.until_without_regions(&killed.name);
        self.cluster.add_node(instead.into()).expect("a node");
        self.play();
    }

    fn silence_a_node(&mut self, instead: &str) {
        let silent = self.owner(3);
        silent.pause();
        let name = silent.name.clone();
        self.silent = Some(name.clone());
        self.until_without_regions(&name);
        self.play();
        let silent = self.cluster.nodes().iter().find(|node| node.name == name).expect("a node");
        silent.resume();
        until("a node that was silent for too long ends", || silent.ended());
        self.cluster.add_node(instead.into()).expect("a node");
        self.play();
    }

    fn drain_a_node(&mut self) {
        let leaves = self.owner_beside_host();
        leaves.terminate();
        self.until_without_regions(&leaves.name);
        until("the node ends", || leaves.ended());
        self.play();
    }

    /// Players do nothing any more, and gold comes to rest.
    pub fn judge(&self) {
        self.rest.send_replace(true);
        let players = |all: &Survey| all.values().filter(|e| e.kind == Kind::PLAYER).count() as u32;
        self.until("every hunter is there", |all| players(all) == self.hunters);
        let (surveys, mut judge) = (self.surveys(), Accounts::default());
        self.runtime.block_on(surveys.rest(&mut judge));
        let figures = judge.figures();
        assert_eq!(figures.faults(), 0, "{:?}", judge.examples);
        // Regions answer one after the other: a monster that goes from one to another may be in no answer, or in two.
        let is_whole = |all: &Survey| balance(all).0 == balance(all).1;
        let all = self.until("gold is conserved", is_whole);
        assert!(won(&all) >= 4 * PRIZES, "{all:?}");
    }
}

#[test]
fn gold_is_conserved_on_three_nodes_when_nodes_are_killed_silent_and_drained() {
    let mut trial = Trial::start(Rules::OfNodes);
    trial.hunt();
    trial.play();
    trial.kill_a_node("node-4");
    trial.silence_a_node("node-5");
    trial.drain_a_node();
    trial.judge();
}

/// The node to which logic workers connect.
fn host(trial: &Trial) -> &Member {
    trial.cluster.nodes().iter().find(|node| node.name == HOST).expect("it stays")
}

/// The regions of each worker that is connected and answers, as that node knows them.
fn regions_of_workers(trial: &Trial) -> Vec<u64> {
    let (status, body) = get(&console(host(trial)), "/api/workers");
    assert_eq!(status, 200, "{body}");
    let told: Value = serde_json::from_str(&body).unwrap();
    let workers = told["workers"].as_array().unwrap().iter();
    let serves = workers.filter(|w| w["late"] == false);
    serves.filter_map(|worker| worker["regions"].as_u64()).collect()
}

/// Waits until so many workers have all regions. How they share them is drawn: one may have none.
fn until_served(trial: &Trial, workers: usize) {
    until(&format!("{workers} workers have all regions"), || {
        let regions = regions_of_workers(trial);
        (regions.len() == workers && regions.iter().sum::<u64>() == REGIONS as u64).then_some(())
    });
}

#[test]
fn gold_is_conserved_on_three_nodes_when_workers_and_nodes_are_killed_and_silent() {
    let mut trial = Trial::start(Rules::OfWorkers);
    let first = trial.worker();
    until_served(&trial, 1);
    trial.hunt();
    trial.play();
    let is_hurt = |e: &Holding| e.kind == Kind::PLAYER && (1..PLAYER_HP).contains(&e.hp);
    trial.until("monsters bite", |all| all.values().any(is_hurt));
    let second = trial.worker();
    until_served(&trial, 2);
    drop(first);
    until_served(&trial, 1);
    trial.play();
    // It has all regions, and another one takes over.
    second.pause();
    let third = trial.worker();
    until_served(&trial, 1);
    trial.play();
    second.resume();
    until_served(&trial, 2);
    trial.kill_a_node("node-4");
    trial.drain_a_node();
    trial.judge();
    drop((second, third));
}
