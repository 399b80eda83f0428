//! A gateway of a real cluster (etcd, PostgreSQL, two nodes and two gateways, each a process) crashes, restarts, or
//! shuts down while clients walk. Each client resumes its session at another gateway, or at the same one after its
//! restart: as the same player, with every input applied once. At rest every client sees exactly the entities near
//! it, at their positions. No other client is told an enter or a leave.

use std::time::Instant;

use purview::scene::Pos;
use purview_client::{Player, Retry, join};
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use purview_server::storage::Whole;
use purview_server::storage::checkpoints::postgres::Postgres;

use crate::common::{block_on, cluster, console, try_for, wait_for};
use crate::ctl::{ctl, survey};
use crate::end_to_end::persistence::{Beasts, are_where_they_were, beasts};
use crate::walkers::{Crowd, FIELD, Route, token};

const CLIENTS: i32 = 24;

/// Where the first walker of a row starts and how far each walks, centimetres. Some ways cross a border; neighbours
/// stay in view even if one of them stands.
const WAY: (i32, i32) = (3_700, 1_000);

fn config() -> Config {
    let text = format!(
        "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\nstore_wait = \"20s\"\ngrace_period = \"30s\"\n[console]\nlisten = \"off\"\n\
         [cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n{FIELD}"
    );
    Config::parse(&text).unwrap()
}

struct Trial {
    crowd: Crowd,
    cluster: LocalCluster,
}

impl Trial {
    /// A cluster on which all clients walk. Each client knows all gateways; neighbours use different ones.
    fn start(gateways: u16) -> Trial {
        Trial::of(&config(), gateways)
    }

    fn of(config: &Config, gateways: u16) -> Trial {
        let cluster = cluster(config, 2, gateways);
        let urls: Vec<String> = (0..gateways).map(|i| cluster.url(i.into()).unwrap()).collect();
        let crowd = Crowd::start(&cluster, CLIENTS, |i| {
            let mut urls = urls.clone();
            urls.rotate_left(i as usize % usize::from(gateways));
            Route { urls, plane: None, way: WAY, may_resume: true }
        });
        crowd.pause_and_check("before any fault");
        Trial { crowd, cluster }
    }

    /// For each client: how often it has resumed, and how many enters and leaves it was told.
    fn told(&self) -> Vec<(u64, u64)> {
        self.crowd.of_each(|walker| (walker.resumed, walker.changes))
    }

    /// Kills every process but PostgreSQL and starts new ones. The etcd keeps its data or loses all of it.
    fn restart_all(&mut self, etcd_loses_data: bool) {
        self.cluster.nodes().iter().for_each(|node| node.kill());
        self.cluster.gateways()[0].kill();
        let etcd = self.cluster.etcd();
        etcd.kill();
        if etcd_loses_data {
            std::fs::remove_dir_all(etcd.dir().join("etcd")).unwrap();
        }
        etcd.restart().unwrap();
        for name in ["node-3", "node-4"] {
            self.cluster.add_node(name.into()).unwrap();
        }
        self.cluster.restart_gateway(0).unwrap();
    }

    /// Waits until every client has resumed at least once.
    fn wait_for_resumes(&self) {
        try_for("all have resumed", || match self.told() {
            told if told.iter().all(|(resumed, _)| *resumed > 0) => Ok(()),
            told => Err((told, self.crowd.wrong().into_iter().next())),
        });
    }
}

#[test]
fn clients_of_a_killed_gateway_resume_at_the_other_and_other_clients_notice_nothing() {
    let mut trial = Trial::start(2);
    trial.crowd.walk(2);
    let before = trial.told();
    trial.cluster.gateways()[0].kill();
    trial.crowd.walk(6);
    trial.crowd.pause_and_check("after a gateway is killed");
    let after = trial.told();
    for (i, (before, after)) in before.iter().zip(&after).enumerate() {
        // Every other client was at the gateway that died.
        assert_eq!(after.0, before.0 + u64::from(i % 2 == 0), "client {i}");
        assert_eq!(after.1, before.1, "client {i} was told an enter or a leave");
    }
    // The same with the gateways exchanged.
    trial.cluster.restart_gateway(0).unwrap();
    trial.cluster.gateways()[1].kill();
    trial.crowd.walk(6);
    trial.crowd.pause_and_check("after the other gateway is killed");
    let last = trial.told();
    assert!(last.iter().zip(&after).all(|(now, then)| now.0 > then.0 && now.1 == then.1));
    let failed = trial.crowd.of_each(|walker| walker.failed_attempts);
    assert!(failed.iter().all(|failed| *failed == 0), "{failed:?}");
}

#[test]
fn a_gateway_that_shuts_down_sends_its_clients_to_another_gateway_and_exits_with_zero() {
    let trial = Trial::start(2);
    trial.crowd.walk(2);
    let before = trial.told();
    let gateway = &trial.cluster.gateways()[1];
    gateway.terminate();
    trial.crowd.walk(4);
    trial.crowd.pause_and_check("after a gateway has shut down");
    for (i, (before, after)) in before.iter().zip(trial.told()).enumerate() {
        assert_eq!(after, (before.0 + u64::from(i % 2 == 1), before.1), "client {i}");
    }
    assert_eq!(gateway.exit_code(), Some(0));
}

#[test]
fn a_cold_start_restores_the_positions_of_players() {
    cold_start(false);
}

#[test]
fn a_cold_start_with_an_empty_etcd_restores_the_layout_and_the_positions_of_players() {
    cold_start(true);
}

/// The layouts that PostgreSQL stores: scene and version of the change.
fn kept_layouts(cluster: &mut LocalCluster, name: &str) -> Vec<(String, u64)> {
    let url = cluster.postgres().url();
    block_on(async {
        let store = Postgres::connect(&url, name).await.unwrap();
        let layouts = store.layouts().await.unwrap();
        layouts.into_iter().map(|layout| (layout.scene, layout.change)).collect()
    })
}

/// Changes the layout, which is stored.
fn change_layout(trial: &mut Trial, config: &Config) {
    let scale = ["layout", "field", "--regions", "3x1"];
    assert_eq!(ctl(&trial.cluster.gateways()[0], &scale)["done"], true);
    trial.crowd.stop_and_check("with three regions");
    let map = survey(&trial.cluster.gateways()[0]).maps.remove(0);
    assert_eq!((map.version, map.regions), (2, 3));
    wait_for("the layout is stored", || {
        !kept_layouts(&mut trial.cluster, &config.cluster.name).is_empty()
    });
}

/// A changed layout survives the loss of all data in etcd.
fn assert_changed_layout(trial: &Trial) {
    let gateway = &trial.cluster.gateways()[0];
    let after = survey(gateway).maps.remove(0);
    assert_eq!((after.version, after.regions), (2, 3), "the configuration has six");
    // The layout can change again, and no region id is used twice.
    let region = survey(gateway).regions.remove(0).region;
    assert_eq!(ctl(gateway, &["split", &format!("R{region}")])["done"], true);
    trial.crowd.stop_and_check("with four regions");
}

/// The NPCs on the running nodes, once all are listed: an NPC in a handoff is in no region.
fn npcs(cluster: &LocalCluster) -> Beasts {
    try_for("NPCs", || {
        let mut all = Beasts::new();
        for node in cluster.nodes().iter().filter(|node| node.ended().is_none()) {
            for (kind, of) in beasts(&console(node), "field") {
                all.entry(kind).or_default().extend(of);
            }
        }
        let are_there = all.len() == 4 && all.values().all(|of| of.len() >= 12);
        if are_there { Ok(all) } else { Err(all) }
    })
}

/// After a cold start all players and NPCs are at their last positions.
fn cold_start(etcd_loses_data: bool) {
    let mut config = config();
    config.server.demo = true;
    config.console.listen = Some(([127, 0, 0, 1], 0).into());
    let mut trial = Trial::of(&config, 1);
    trial.crowd.walk(2);
    if etcd_loses_data {
        change_layout(&mut trial, &config);
    }
    trial.crowd.stop_and_check("before the cold start");
    // Until checkpoints and last positions are stored.
    trial.crowd.walk(3);
    let (lived, began) = (npcs(&trial.cluster), Instant::now());
    let urls = [trial.cluster.url(0).unwrap()];
    let placed: Vec<Pos> = trial.crowd.of_each(|walker| walker.pos);
    trial.restart_all(etcd_loses_data);
    // Clients with a resume ticket resume their sessions, after some attempts.
    trial.wait_for_resumes();
    let failed = trial.crowd.of_each(|walker| walker.failed_attempts);
    assert!(failed.iter().all(|failed| *failed > 0), "{failed:?}");
    trial.crowd.stop_and_check("after the cold start");
    are_where_they_were(&lived, &npcs(&trial.cluster), began.elapsed());
    if etcd_loses_data {
        assert_changed_layout(&trial);
    }
    // A client that has only its name joins at its last position.
    block_on(async {
        for i in [0, 5, CLIENTS as usize - 1] {
            let token = token(&trial.cluster, &format!("walker {i}"));
            let (mut player, joined) =
                Player::join(&urls, &token, join("field"), Retry::default()).await.unwrap();
            assert_eq!(joined.pos, placed[i], "walker {i}");
            player.leave().await.unwrap();
        }
        let token = token(&trial.cluster, "newcomer");
        let (_, joined) =
            Player::join(&urls, &token, join("field"), Retry::default()).await.unwrap();
        let spec = &config.scenes[0].spec;
        assert_eq!((joined.pos.x, joined.pos.z), (spec.spawn_x_cm, spec.spawn_z_cm));
    });
}
