//! PostgreSQL in operation: it fails over, it is slow, and releases change its tables.

use std::time::Duration;

use purview::scene::{EntityId, Epoch, Tick};
use purview_server::launch::PostgresServer;
use purview_server::storage::checkpoints::postgres::Postgres;
use purview_server::storage::{CheckpointError, Checkpoints, Saved};
use tokio_postgres::{Client, NoTls};

use super::bench::region;

/// How long a test waits for a state that must come.
const LIMIT: Duration = Duration::from_secs(60);

pub async fn server() -> PostgresServer {
    let server = tokio::task::spawn_blocking(|| PostgresServer::start(None)).await.unwrap();
    server.unwrap_or_else(|e| panic!("{e}"))
}

/// A session of the test beside those of the product.
pub async fn session(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    // This session may always write.
    client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    client
}

/// Makes the server read-only, like a standby, or writable again.
async fn set_read_only(session: &Client, on: bool) {
    let word = if on { "on" } else { "off" };
    let alter = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
    session.batch_execute(&alter).await.unwrap();
    session.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

/// The backend processes of the product's connections.
async fn backends(session: &Client) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'purview'";
    session.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn save(store: &Postgres, tick: u64) -> Result<Saved, CheckpointError> {
    store.save(&region(1), Epoch(1), Tick(tick), format!("state {tick}").into()).await
}

/// Saves until one save is refused or accepted, as `wanted`: a reload takes a moment to reach every backend.
async fn save_until(store: &Postgres, tick: &mut u64, wanted: bool) -> Option<CheckpointError> {
    let tried = tokio::time::timeout(LIMIT, async {
        loop {
            *tick += 1;
            let saved = save(store, *tick).await;
            if saved.is_ok() == wanted {
                return saved.err();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    tried.await.unwrap_or_else(|_| panic!("never: {wanted}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_be_read_only_slow_and_damaged_and_lose_its_tables() {
    let server = server().await;
    let url = server.url();
    a_read_only_server_is_left_and_found_again(&url).await;
    a_query_without_a_waiting_caller_is_cancelled(&url).await;
    snapshots_that_are_set_aside_keep_their_bytes_and_the_region_is_fenced(&url).await;
    missing_tables_are_created_again(&url).await;
}

async fn a_read_only_server_is_left_and_found_again(url: &str) {
    let store = Postgres::connect(url, "cluster-0").await.unwrap();
    let session = session(url).await;
    let mut tick = 1;
    save(&store, tick).await.unwrap();
    let before = backends(&session).await;
    set_read_only(&session, true).await;
    let error = save_until(&store, &mut tick, false).await.unwrap();
    // The error allows another try: the checkpoint queue keeps its content.
    assert!(matches!(error, CheckpointError::Unreachable { .. }), "{error}");
    set_read_only(&session, false).await;
    assert_eq!(save_until(&store, &mut tick, true).await, None);
    let after = backends(&session).await;
    assert!(after.iter().all(|pid| !before.contains(pid)), "{before:?} are still used: {after:?}");
    let kept = store.load(&region(1)).await.unwrap().newest.unwrap();
    assert_eq!(kept.tick, Tick(tick));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_the_next_host_is_used_without_a_restart() {
    let (one, two) = (server().await, server().await);
    let (first, second) = (session(&one.url()).await, session(&two.url()).await);
    for session in [&first, &second] {
        session.batch_execute("ALTER USER purview PASSWORD 'same'").await.unwrap();
    }
    let port = |server: &PostgresServer| {
        let url = server.url();
        url.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned()
    };
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", port(&one), port(&two));
    let url = format!("postgres://purview:same@{hosts}/postgres");
    let store = Postgres::connect(&url, "test").await.unwrap();
    save(&store, 1).await.unwrap();
    assert!(!backends(&first).await.is_empty() && backends(&second).await.is_empty());
    set_read_only(&first, true).await;
    // No save fails: a request that meets the old primary is repeated at the new one.
    let mut tick = 1;
    let moved = tokio::time::timeout(LIMIT, async {
        while backends(&second).await.is_empty() {
            tick += 1;
            save(&store, tick).await.unwrap();
        }
    });
    moved.await.expect("the second host is never used");
    let sql = "SELECT tick FROM purview_regions";
    let kept: i64 = second.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(kept, tick as i64);
    assert!(backends(&first).await.is_empty());
}

async fn a_query_without_a_waiting_caller_is_cancelled(url: &str) {
    let store = Postgres::connect(url, "cluster-1").await.unwrap();
    let (mut session, other) = (session(url).await, session(url).await);
    save(&store, 1).await.unwrap();
    let locked = session.transaction().await.unwrap();
    locked.batch_execute("LOCK TABLE purview_players IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // More queries than connections.
    for _ in 0..10 {
        let asked = tokio::time::timeout(Duration::from_millis(200), store.load_player("ann"));
        assert!(asked.await.is_err(), "the table is locked");
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE application_name = 'purview' AND wait_event_type = 'Lock'";
    let cancelled = tokio::time::timeout(LIMIT, async {
        while other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    cancelled.await.expect("the server still runs queries without a waiting caller");
    // Checkpoints are stored meanwhile, and last positions as soon as the lock is gone.
    assert_eq!(save(&store, 2).await, Ok(Saved::Ok));
    locked.rollback().await.unwrap();
    assert_eq!(store.load_player("ann").await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_migrated_once_and_can_be_used_without_the_right_to_change_them() {
    let server = server().await;
    let url = server.url();
    let all = futures::future::join_all((0..8).map(|_| Postgres::connect(&url, "test"))).await;
    all.into_iter().for_each(|opened| drop(opened.unwrap()));
    let session = session(&url).await;
    let sql = "SELECT version FROM purview_schema_history ORDER BY version";
    let versions = session.query(sql, &[]).await.unwrap();
    let versions: Vec<i32> = versions.iter().map(|row| row.get(0)).collect();
    assert!(!versions.is_empty());
    assert_eq!(versions, (1..=versions.len() as i32).collect::<Vec<_>>());
    // Migrations of a newer release do not stop this one; nor does a user who may only read and write.
    let newer = "INSERT INTO purview_schema_history VALUES (999, 'of_the_next_release', \
                 '2026-01-01T00:00:00Z', '1'); \
                 CREATE USER plain PASSWORD 'plain'; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain";
    session.batch_execute(newer).await.unwrap();
    let (_, host) = url.split_once('@').unwrap();
    let store = Postgres::connect(&format!("postgres://plain:plain@{host}"), "test").await.unwrap();
    assert_eq!(save(&store, 1).await, Ok(Saved::Ok));
}

async fn missing_tables_are_created_again(url: &str) {
    let store = Postgres::connect(url, "cluster-3").await.unwrap();
    let session = session(url).await;
    save(&store, 1).await.unwrap();
    session.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    assert_eq!(save(&store, 2).await, Ok(Saved::Ok));
}

async fn snapshots_that_are_set_aside_keep_their_bytes_and_the_region_is_fenced(url: &str) {
    let store = Postgres::connect(url, "cluster-2").await.unwrap();
    let session = session(url).await;
    save(&store, 7).await.unwrap();
    save(&store, 8).await.unwrap();
    session.batch_execute("UPDATE purview_states SET state = '\\xdeadbeef'").await.unwrap();
    assert_eq!(store.set_aside(&region(1)).await, Ok(2));
    let sql = "SELECT tick, state FROM purview_quarantine ORDER BY tick";
    let rows = session.query(sql, &[]).await.unwrap();
    let found: Vec<(i64, Vec<u8>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let bytes = vec![0xde, 0xad, 0xbe, 0xef];
    assert_eq!(found, [(7, bytes.clone()), (8, bytes)]);
    let late = save(&store, 6).await;
    assert_eq!(late, Ok(Saved::Fenced { by: Epoch(1), tick: Tick(8) }));
}

/// The statements of `docs/cluster.md` that give gateways a user of their own.
fn gateway_grants() -> String {
    let book = include_str!("../../../../../docs/cluster.md");
    let (_, after) = book.split_once("<!-- gateway grants -->").expect("the grants are marked");
    let (_, code) = after.split_once("```sql\n").expect("a block of SQL");
    code.split_once("```").expect("its end").0.replace("'...'", "'secret'")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_of_gateways_writes_records_of_players_and_can_write_no_checkpoint() {
    use purview_server::storage::{
        ClaimOver, ClusterId, KeptLayout, PlayerClaim, PlayerClaimed, SavedPlayer, Whole,
    };
    let server = server().await;
    let of_gateway = server.url().replacen("//purview:", "//purview_gateway:", 1);
    let (head, host) = of_gateway.rsplit_once('@').unwrap();
    let (head, _) = head.rsplit_once(':').unwrap();
    let of_gateway = format!("{head}:secret@{host}");
    let session = session(&server.url()).await;
    // Before any node: the tables are missing, and the error says what to do.
    session.batch_execute("CREATE USER early PASSWORD 'secret'").await.unwrap();
    let early = of_gateway.replacen("purview_gateway", "early", 1);
    let refused = Postgres::connect(&early, "test").await.err().expect("there are no tables");
    assert!(refused.to_string().contains("start a node first"), "{refused}");
    let of_node = Postgres::connect(&server.url(), "test").await.unwrap();
    save(&of_node, 7).await.unwrap();
    session.batch_execute(&gateway_grants()).await.unwrap();
    let gateway = Postgres::connect(&of_gateway, "test").await.unwrap();
    // What a gateway does.
    let id = of_node.cluster_id(ClusterId::new([1; 16])).await.unwrap();
    assert_eq!(gateway.cluster_id(ClusterId::new([2; 16])).await.unwrap(), id);
    let claim = PlayerClaim { entity: EntityId(3), over: ClaimOver::Nobody };
    let claimed = gateway.claim_player("ann", claim).await.unwrap();
    let PlayerClaimed::Yes(record) = claimed else { panic!("{claimed:?}") };
    let record = SavedPlayer { clock: 5, place: "there".to_owned().into(), ..record };
    let saved = gateway.save_players(vec![record.clone()]).await.unwrap();
    assert_eq!((saved.kept, saved.fenced), (1, 0));
    assert_eq!(gateway.load_player("ann").await.unwrap(), Some(record));
    // What it must not do, and what it must not read.
    let data = bytes::Bytes::from_static(b"{}");
    let layout = KeptLayout { scene: "city".into(), change: 1, data };
    let refused = [
        save(&gateway, 8).await.err(),
        gateway.load(&region(1)).await.err(),
        gateway.regions().await.err(),
        gateway.set_aside(&region(1)).await.err(),
        gateway.highest_epoch().await.err(),
        gateway.save_layout(layout).await.err(),
        gateway.layouts().await.err(),
        gateway.erase().await.err(),
    ];
    for (at, error) in refused.into_iter().enumerate() {
        let is_refused = matches!(error, Some(CheckpointError::Refused { .. }));
        assert!(is_refused, "{at}: {error:?}");
    }
    let kept = of_node.load(&region(1)).await.unwrap().newest.unwrap();
    assert_eq!(kept.tick, Tick(7), "nothing has changed");
}
