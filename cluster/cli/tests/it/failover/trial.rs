//! The cluster of the failover tests: three nodes, two gateways, and clients that walk across its borders.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use purview::scene::Plane;
use purview_lab::testbed::local_cluster::{LocalCluster, Parts, Stores};
use purview_server::config::Config;

use crate::common::{PROGRAM, try_for};
use crate::ctl::{ctl, survey};
use crate::walkers::{Crowd, FIELD, Route};

const CLIENTS: i32 = 36;

/// Where the first walker of a row starts and how far each walks, centimetres: across a border or two.
const WAY: (i32, i32) = (2_000, 2_000);

/// Six regions for each group of planes.
fn config(plane_groups: u16) -> Config {
    let text = format!(
        "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\nstore_wait = \"20s\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n{FIELD}plane_groups = {plane_groups}\n"
    );
    Config::parse(&text).unwrap()
}

/// A cluster of `nodes` nodes, whose peers reach them at `address`, without clients.
pub fn cluster(address: IpAddr, nodes: u16, (groups, etcds): (u16, usize)) -> LocalCluster {
    let parts = Parts { nodes, gateways: 2 };
    let mut config = config(groups);
    config.cluster.listen.set_ip(address);
    config.cluster.insecure = true;
    let stores = Stores { etcds, ..Stores::PLAIN };
    LocalCluster::start_on(stores, Path::new(PROGRAM), &config, parts, &mut |_| {}).unwrap()
}

/// Waits until a node of a cluster owns so many regions.
pub fn wait_until_owns(cluster: &LocalCluster, node: &str, regions: usize) {
    try_for(&format!("{node} owns {regions} regions"), || {
        let survey = survey(&cluster.gateways()[0]);
        let owns = survey.regions.iter().filter(|region| region.node == node).count();
        if owns == regions { Ok(()) } else { Err(owns) }
    });
}

/// Whether a node of a cluster logged that it recovered a region of another node from a checkpoint.
pub fn has_taken_over(cluster: &LocalCluster) -> bool {
    let from_a_checkpoint = "a region recovers from a checkpoint";
    cluster.nodes().iter().any(|node| node.said().contains(from_a_checkpoint))
}

pub struct Trial {
    pub crowd: Crowd,
    pub cluster: LocalCluster,
    /// How many leaves clients were told before any fault.
    leaves: usize,
}

impl Trial {
    /// A cluster on which all clients walk.
    pub fn start() -> Trial {
        Trial::listening(Ipv4Addr::LOCALHOST.into(), 3)
    }

    /// A cluster of `nodes` nodes, whose peers reach them at `address`.
    pub fn listening(address: IpAddr, nodes: u16) -> Trial {
        Trial::of(address, nodes, (1, 1))
    }

    /// A cluster whose planes form `groups` groups. Walkers use one plane of each group.
    pub fn on_planes(groups: u16) -> Trial {
        Trial::of(Ipv4Addr::LOCALHOST.into(), 3, (groups, 1))
    }

    /// A cluster with `etcds` members of etcd.
    pub fn with_etcds(etcds: usize) -> Trial {
        Trial::of(Ipv4Addr::LOCALHOST.into(), 3, (1, etcds))
    }

    fn of(address: IpAddr, nodes: u16, (groups, etcds): (u16, usize)) -> Trial {
        let cluster = cluster(address, nodes, (groups, etcds));
        let urls = [cluster.url(0).unwrap(), cluster.url(1).unwrap()];
        let crowd = Crowd::start(&cluster, CLIENTS, |i| {
            // Neighbours connect to different gateways.
            let urls = vec![urls[i as usize % 2].clone()];
            let plane = Some(Plane(i / 2 % i32::from(groups)));
            Route { urls, plane, way: WAY, may_resume: false }
        });
        let mut trial = Trial { crowd, cluster, leaves: 0 };
        trial.pause_and_check("before any fault");
        trial.leaves = trial.leaves();
        trial
    }

    /// Stops all clients, waits until each is shown what it must be shown, and lets them walk on.
    pub fn pause_and_check(&self, when: &str) {
        self.crowd.pause_and_check(when);
    }

    /// Lets the clients walk for so long.
    pub fn walk(&self, seconds: u64) {
        self.crowd.walk(seconds);
    }

    /// Waits until a node owns so many regions.
    pub fn wait_until_owns(&self, node: &str, regions: usize) {
        wait_until_owns(&self.cluster, node, regions);
    }

    /// How many leaves all clients were told. Clients walk in step, so none is due.
    fn leaves(&self) -> usize {
        self.crowd.of_each(|walker| walker.leaves).iter().sum()
    }

    /// No client was told of a leave since the start.
    #[track_caller]
    pub fn assert_unseen(&self) {
        assert_eq!(self.leaves(), self.leaves, "no entity left a view");
    }

    /// Nor has a region lost anything.
    #[track_caller]
    pub fn assert_undisturbed(&self) {
        self.assert_unseen();
        assert!(!self.has_taken_over(), "no region was recovered from a checkpoint");
    }

    /// The name of the node after this one.
    pub fn next_of(&self, node: &str) -> String {
        let at = self.cluster.nodes().iter().position(|known| known.name == node).unwrap();
        self.cluster.nodes()[(at + 1) % 3].name.clone()
    }

    #[track_caller]
    pub fn order(&self, args: &[&str]) {
        assert_eq!(ctl(&self.cluster.gateways()[0], args)["done"], true, "{args:?}");
    }

    #[track_caller]
    pub fn migrate(&self, region: u32, to: &str) {
        self.order(&["move", &format!("R{region}"), to]);
    }

    #[track_caller]
    pub fn scale(&self, regions: &str) {
        self.order(&["layout", "field", "--regions", regions]);
        self.pause_and_check(&format!("with {regions} regions"));
    }

    /// Waits until so many regions are left: those that ended stay while a process may need them.
    pub fn wait_until_left(&self, regions: usize) {
        try_for("regions that ended are given up", || {
            let left = survey(&self.cluster.gateways()[0]).regions;
            if left.len() == regions { Ok(()) } else { Err(left) }
        });
    }
    /// Whether a node has recovered a region of another one from a checkpoint.
    pub fn has_taken_over(&self) -> bool {
        has_taken_over(&self.cluster)
    }
}
