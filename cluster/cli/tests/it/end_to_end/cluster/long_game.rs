//! The example game on real processes for ten minutes: two hundred hunters, and a fault of a drawn kind every few
//! seconds. `PURVIEW_GAME_SECONDS` is the length, `PURVIEW_GAME_SEED` draws the faults; both are printed.

use std::ops::Range;
use std::time::{Duration, Instant, UNIX_EPOCH};

use purview_demo::rng::Rng;
use purview_lab::testbed::network_namespace::{Cut, NetworkNamespace};

use super::game::{HOST, REGIONS, Rules, Trial, until};
use crate::ctl::{order, survey_now};
use crate::foreign::PythonWorker;

const HUNTERS: u32 = 200;

/// Of a fault that ends by itself: from much less than a lease to twice as long.
const LASTS_MS: Range<u64> = 300..6_000;

/// Between two faults.
const BETWEEN_MS: Range<u64> = 1_000..6_000;

const LAYOUTS: [&str; 4] = ["2x2", "1x2", "2x1", "1x1"];

/// Workers that serve at the same time, where there are any.
const WORKERS: usize = 2;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Silence,
    Drain,
    Cut,
    Layout,
    Move,
    Gateway,
    KillWorker,
    SilenceWorker,
}

/// Those of workers are last.
const FAULTS: [Fault; 9] = [
    Fault::Kill,
    Fault::Silence,
    Fault::Drain,
    Fault::Cut,
    Fault::Layout,
    Fault::Move,
    Fault::Gateway,
    Fault::KillWorker,
    Fault::SilenceWorker,
];

struct LongGame {
    trial: Trial,
    rng: Rng,
    namespace: Option<NetworkNamespace>,
    workers: Vec<PythonWorker>,
    /// Nodes that were started: each has another name.
    started: u32,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

impl LongGame {
    fn start(rules: Rules, seed: u64) -> LongGame {
        // Without the right to create a namespace there are no cuts.
        let namespace = NetworkNamespace::create();
        let namespace = namespace.inspect_err(|e| println!("no cuts: {e}")).ok();
        let peers = namespace.as_ref().map(|namespace| namespace.peers().into());
        let trial = Trial::of(rules, peers, HUNTERS);
        let workers = match rules {
            Rules::OfNodes => Vec::new(),
            Rules::OfWorkers => (0..WORKERS).map(|_| trial.worker()).collect(),
        };
        let mut game = LongGame { trial, rng: Rng::new(seed), namespace, workers, started: 3 };
        game.add_cut_node();
        game
    }

    fn wait(&mut self, ms: Range<u64>) {
        let drawn = self.rng.below((ms.end - ms.start) as usize) as u64;
        std::thread::sleep(Duration::from_millis(ms.start + drawn));
    }

    fn name(&mut self) -> String {
        self.started += 1;
        format!("node-{}", self.started)
    }

    fn add_node(&mut self) {
        let name = self.name();
        self.trial.cluster.add_node(name).expect("a node");
    }

    /// A node in the namespace, where there is one.
    fn add_cut_node(&mut self) {
        let name = format!("cut-{}", self.started);
        self.started += 1;
        let Some(namespace) = &self.namespace else { return };
        let cluster = &mut self.trial.cluster;
        let etcd = cluster.etcd().url();
        let set = namespace.settings(&etcd, &cluster.postgres().address()).expect("settings");
        cluster.add_node_within(name, &namespace.within(), &set).expect("a node");
    }

    /// The places, among all nodes that were ever started, of those that run and may be hurt.
    fn victims(&self) -> Vec<usize> {
        let nodes = self.trial.cluster.nodes().iter().enumerate();
        let may = nodes.filter(|(_, node)| {
            node.ended().is_none() && node.name != HOST && node.name.starts_with("node-")
        });
        may.map(|(at, _)| at).collect()
    }

    fn victim(&mut self) -> usize {
        let all = self.victims();
        all[self.rng.below(all.len())]
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => {
                let victim = self.victim();
                self.trial.cluster.nodes()[victim].kill();
                self.wait(BETWEEN_MS);
                self.add_node();
            }
            Fault::Silence => {
                let victim = self.victim();
                self.trial.cluster.nodes()[victim].pause();
                self.wait(LASTS_MS);
                self.trial.cluster.nodes()[victim].resume();
                self.wait(BETWEEN_MS);
                // One that was silent for longer than its lease has ended.
                if self.trial.cluster.nodes()[victim].ended().is_some() {
                    self.add_node();
                }
            }
            Fault::Drain => {
                let victim = self.victim();
                self.trial.cluster.nodes()[victim].terminate();
                self.add_node();
                let node = &self.trial.cluster.nodes()[victim];
                until("a drained node ends", || node.ended());
            }
            Fault::Cut => self.cut(),
            Fault::Layout => {
                let layout = LAYOUTS[self.rng.below(LAYOUTS.len())];
                self.order(&["layout", "wood", "--regions", layout]);
            }
            Fault::Move => {
                let victim = self.victim();
                let to = self.trial.cluster.nodes()[victim].name.clone();
                let regions = survey_now(&self.trial.cluster.gateways()[0]).regions;
                if regions.is_empty() {
                    return;
                }
                let region = regions[self.rng.below(regions.len())].region;
                self.order(&["move", &format!("R{region}"), &to]);
            }
            Fault::Gateway => {
                self.trial.cluster.gateways()[0].kill();
                self.wait(0..2_000);
                self.trial.cluster.restart_gateway(0).expect("a gateway");
            }
            Fault::KillWorker => {
                self.workers.remove(0);
                self.wait(0..2_000);
                let worker = self.trial.worker();
                self.workers.push(worker);
            }
            Fault::SilenceWorker => {
                self.workers[0].pause();
                self.wait(LASTS_MS);
                self.workers[0].resume();
            }
        }
    }

    fn cut(&mut self) {
        let from = [Cut::AllProcesses, Cut::Stores, Cut::Peers][self.rng.below(3)];
        let Some(namespace) = &self.namespace else { return };
        namespace.cut(from).expect("a cut");
        self.wait(LASTS_MS);
        self.namespace.as_ref().expect("it is there").mend(from).expect("mended");
        self.wait(BETWEEN_MS);
        let nodes = self.trial.cluster.nodes().iter();
        if !nodes.filter(|node| node.name.starts_with("cut-")).any(|node| node.ended().is_none()) {
            self.add_cut_node();
        }
    }

    /// Gives an order that the cluster may refuse: another change may be under way.
    fn order(&self, args: &[&str]) {
        let member = &self.trial.cluster.gateways()[0];
        println!("  {args:?}: {:?}", crate::ctl::run(member, args).code);
    }

    fn play(&mut self, lasts: Duration) -> u32 {
        let kinds = if self.workers.is_empty() { FAULTS.len() - 2 } else { FAULTS.len() };
        let (begin, mut faults) = (Instant::now(), 0);
        while begin.elapsed() < lasts {
            let fault = FAULTS[self.rng.below(kinds)];
            println!("{:>5.1} s: {fault:?}", begin.elapsed().as_secs_f64());
            self.strike(fault);
            faults += 1;
            self.wait(BETWEEN_MS);
        }
        faults
    }

    /// All regions at nodes that can be asked, and as many as at first; then nobody does anything any more.
    fn judge(mut self) {
        for at in 0..self.trial.cluster.nodes().len() {
            let node = &self.trial.cluster.nodes()[at];
            if node.name.starts_with("cut-") && node.ended().is_none() {
                node.terminate();
                until("the node in the namespace ends", || node.ended());
            }
        }
        until("the layout is the first again", || {
            order(&self.trial.cluster.gateways()[0], &["layout", "wood", "--regions", LAYOUTS[0]]);
            let regions = survey_now(&self.trial.cluster.gateways()[0]).maps[0].regions;
            (regions == REGIONS).then_some(())
        });
        self.trial.judge();
        self.workers.clear();
    }
}

fn plays(rules: Rules) {
    let seconds = number("PURVIEW_GAME_SECONDS").unwrap_or(600);
    let now = UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let seed = number("PURVIEW_GAME_SEED").unwrap_or(now);
    println!("PURVIEW_GAME_SECONDS={seconds} PURVIEW_GAME_SEED={seed}");
    let mut game = LongGame::start(rules, seed);
    game.trial.hunt();
    let faults = game.play(Duration::from_secs(seconds));
    println!("{faults} faults");
    game.judge();
}

#[test]
#[ignore = "ten minutes: .ci/nightly runs it"]
fn gold_is_exact_after_ten_minutes_of_faults_under_rules_in_rust() {
    plays(Rules::OfNodes);
}

#[test]
#[ignore = "ten minutes: .ci/nightly runs it"]
fn gold_is_exact_after_ten_minutes_of_faults_under_rules_in_python() {
    plays(Rules::OfWorkers);
}
