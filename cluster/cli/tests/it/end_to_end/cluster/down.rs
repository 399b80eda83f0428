//! A real cluster with a damaged or slow PostgreSQL: no region starts empty by itself, and no player joins at a wrong
//! position.

use purview::scene::Pos;
use purview::wire::ErrorCode;
use purview_client::{Client, ClientError, join_at};
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_postgres::{NoTls, Row};

use super::super::operations::{get, metric};
use super::super::process::{Done, run};
use crate::common::{ANY_PORTS, cluster, console, runtime, wait_for};
use crate::walkers::token;

/// A node and a gateway, two regions, NPCs.
struct Trial {
    cluster: LocalCluster,
    runtime: Runtime,
    database: tokio_postgres::Client,
}

impl Trial {
    fn start() -> Trial {
        let text = "[server]\ndemo = true\n[cluster]\nlease = \"2s\"\ncheckpoint = \"200ms\"\n\
                    [[scene]]\nteleports = \"clients\"\n\
                    name = \"field\"\nwidth = \"256m\"\ndepth = \"128m\"\nland = \"64m\"\n\
                    region = [2, 2]\npatch = \"16m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n";
        let config = Config::parse(&format!("{ANY_PORTS}{text}")).unwrap();
        let (mut cluster, runtime) = (cluster(&config, 1, 1), runtime());
        let url = cluster.postgres().url();
        let database = runtime.block_on(async {
            let (database, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            database
        });
        Trial { cluster, runtime, database }
    }

    fn rows(&self, sql: &str) -> Vec<Row> {
        self.runtime.block_on(self.database.query(sql, &[])).unwrap()
    }

    fn does(&self, sql: &str) {
        self.runtime.block_on(self.database.batch_execute(sql)).unwrap();
    }

    fn console(&self) -> String {
        console(&self.cluster.gateways()[0])
    }

    fn cluster_says(&self) -> Value {
        let (status, body) = get(&self.console(), "/api/cluster");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn state(&self, region: u64) -> (String, String) {
        let says = self.cluster_says();
        let all = says["regions"].as_array().unwrap();
        let found = all.iter().find(|line| line["region"] == region);
        let text =
            |key: &str| found.and_then(|line| line[key].as_str()).unwrap_or_default().to_owned();
        (text("state"), text("why"))
    }

    fn ctl(&self, args: &[&str]) -> Done {
        let console = format!("http://{}", self.console());
        run(&[&["ctl"], args, &["--console", &console]].concat())
    }

    /// The newest stored tick of a region, and its number of checkpoints.
    fn kept(&self, region: u32) -> (i64, usize) {
        let sql =
            format!("SELECT tick FROM purview_states WHERE region = {region} ORDER BY tick DESC");
        let rows = self.rows(&sql);
        (rows.first().map_or(0, |row| row.get(0)), rows.len())
    }

    /// Kills the only node, damages the checkpoints of its regions, and starts another node.
    fn node_dies(&mut self, next: &str, damage: &str) {
        wait_for("both states of both regions", || (0..2).all(|region| self.kept(region).1 == 2));
        self.cluster.nodes().iter().for_each(|node| node.kill());
        self.does(damage);
        self.cluster.add_node(next.into()).unwrap();
    }
}

const DAMAGE: &str =
    "UPDATE purview_states SET state = substring(state for length(state) / 2) WHERE region = 0";

#[test]
fn nothing_starts_empty_or_elsewhere_while_postgresql_is_slow_or_damaged() {
    let mut trial = Trial::start();
    while_last_positions_cannot_be_read_joins_are_refused_as_busy(&mut trial);
    a_region_with_damaged_checkpoints_stays_down_until_an_operator_decides(&mut trial);
}

fn a_region_with_damaged_checkpoints_stays_down_until_an_operator_decides(trial: &mut Trial) {
    let copy = "CREATE TABLE copy AS SELECT * FROM purview_states";
    trial.node_dies("node-2", &format!("{copy}; {DAMAGE}"));
    wait_for("the region to be reported down", || trial.state(0).0 == "down");
    let (_, why) = trial.state(0);
    assert!(why.contains("tick") && why.contains("; "), "the reason names both checkpoints: {why}");
    assert!(trial.node_says("a region stays down"), "the log contains it");
    // The other region runs and stores checkpoints; this one stores none.
    wait_for("the other region runs", || trial.state(1).0 == "runs");
    let (before, damaged) = (trial.kept(1).0, trial.kept(0));
    wait_for("the other region is saved", || trial.kept(1).0 > before + 10);
    assert_eq!(trial.kept(0), damaged);
    assert_eq!(metric(&get(&trial.console(), "/metrics").1, "purview_regions_down"), 1.0);
    let told = trial.ctl(&["status", "regions"]);
    assert_eq!(told.code, Some(3), "{told:?}");
    assert!(told.stdout.lines().any(|l| l.starts_with("R0 ") && l.ends_with(" down")), "{told:?}");
    let told = trial.ctl(&["status"]);
    assert!(told.stdout.contains("purview ctl region R0 restore"), "{told:?}");
    // Read again, the checkpoint is as damaged as before. An order for a running region is refused.
    let tried = trial.ctl(&["region", "R0", "restore", "--within", "3s"]);
    assert_eq!(tried.code, Some(3), "{tried:?}");
    assert_eq!(trial.state(0).0, "down");
    let refused = trial.ctl(&["region", "R1", "empty"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not down"), "{refused:?}");
    // An operator restores the bytes.
    trial.does(
        "UPDATE purview_states s SET state = c.state FROM copy c \
         WHERE s.region = 0 AND c.region = 0 AND s.slot = c.slot",
    );
    let restored = trial.ctl(&["region", "R0", "restore"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(trial.state(0).0, "runs");
    wait_for("it is saved again", || trial.kept(0).0 > damaged.0);
    assert_eq!(trial.rows("SELECT * FROM purview_quarantine").len(), 0);
    // The same again, and the operator gives the checkpoint up. A node that starts meanwhile does not.
    trial.node_dies("node-3", DAMAGE);
    wait_for("the region is down again", || trial.state(0).0 == "down");
    let bytes = "SELECT count(*) FROM purview_states s JOIN purview_quarantine q \
                 USING (region, epoch, tick, state) WHERE region = 0";
    let damaged =
        trial.rows("SELECT epoch, tick, state FROM purview_states WHERE region = 0 ORDER BY tick");
    assert_eq!(trial.rows(bytes)[0].get::<_, i64>(0), 0);
    let emptied = trial.ctl(&["region", "R0", "empty"]);
    assert_eq!(emptied.code, Some(0), "{emptied:?}");
    wait_for("it is saved", || trial.kept(0).1 > 0);
    let aside = trial.rows("SELECT epoch, tick, state FROM purview_quarantine ORDER BY tick");
    let all = |rows: &[Row]| -> Vec<(i64, i64, Vec<u8>)> {
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
    };
    assert_eq!(all(&aside), all(&damaged), "the damaged bytes are kept");
    wait_for("all is well", || trial.ctl(&["status", "regions"]).code == Some(0));
}

impl Trial {
    fn node_says(&self, words: &str) -> bool {
        self.cluster.nodes().last().is_some_and(|node| node.said().contains(words))
    }
}

async fn join(url: &str, token: &str) -> Result<Pos, ClientError> {
    let mut client = Client::connect(url, token).await?;
    // The session stays connected after the refusal.
    let joined = client.join(purview_client::join("field")).await?;
    client.leave().await?;
    Ok(joined.pos)
}

fn while_last_positions_cannot_be_read_joins_are_refused_as_busy(trial: &mut Trial) {
    let url = trial.cluster.url(0).unwrap();
    let place = Pos::ground(20_000, 10_000);
    let kept = "SELECT epoch, place FROM purview_players WHERE name = 'ann' AND length(place) > 0";
    let token = token(&trial.cluster, "ann");
    let first = async {
        let mut client = Client::connect(&url, &token).await.unwrap();
        assert_eq!(client.join(join_at("field", place)).await.unwrap().pos, place);
        client
    };
    let client = trial.runtime.block_on(first);
    wait_for("its place is kept", || !trial.rows(kept).is_empty());
    drop(client);
    let before = trial.rows(kept);
    let lock = trial.cluster.postgres().url();
    let locked = trial.runtime.block_on(async {
        let (database, connection) = tokio_postgres::connect(&lock, NoTls).await.unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; LOCK TABLE purview_players IN ACCESS EXCLUSIVE MODE";
        database.batch_execute(lock).await.unwrap();
        database
    });
    for _ in 0..3 {
        let refused = trial.runtime.block_on(join(&url, &token));
        let Err(ClientError::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.code, ErrorCode::Busy, "{refused:?}");
        assert!(refused.detail.contains("join again"), "{refused:?}");
    }
    trial.runtime.block_on(locked.batch_execute("ROLLBACK")).unwrap();
    let joined = trial.runtime.block_on(join(&url, &token)).unwrap();
    assert_eq!(joined, place, "it comes to its last position");
    let after = trial.rows(kept);
    // The player that was left without a connection has gone meanwhile, and was stored again, at its place.
    let stored = |rows: &[tokio_postgres::Row]| {
        let kept: serde_json::Value = serde_json::from_slice(rows[0].get(1)).unwrap();
        kept["place"].clone()
    };
    assert!(!stored(&before).is_null());
    assert_eq!(stored(&after), stored(&before));
    let unknown =
        metric(&get(&trial.console(), "/metrics").1, "purview_player_records_unknown_total");
    assert!(unknown >= 3.0, "{unknown}");
}
