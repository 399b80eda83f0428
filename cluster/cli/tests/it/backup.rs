//! Backup and restore of real stores by the real command: all data comes back, a damaged file changes nothing, and
//! stored data is never overwritten by mistake.

use std::path::Path;

use purview::scene::{EntityId, Epoch, Tick};
use purview_server::backup::file::FileError;
use purview_server::backup::{BackupError, Contents, back_up, inspect, restore};
use purview_server::launch::{EtcdServer, PostgresServer};
use purview_server::storage::checkpoints::postgres::Postgres;
use purview_server::storage::checkpoints::redb::Redb;
use purview_server::storage::leases::etcd::{Etcd, EtcdOptions};
use purview_server::storage::{
    Checkpoints, KeptLayout, Leases, NodeInfo, RegionKey, SavedPlayer, SavedSnapshots,
};

use crate::common::runtime;
use crate::end_to_end::process::{Done, run};

fn region(n: u32) -> RegionKey {
    RegionKey { scene: "city / 'old'".into(), region: n, planes: 1 }
}

/// Regions with one and with two snapshots, many players, and a changed layout.
async fn fill(store: &dyn Checkpoints) {
    for n in 0..4_u32 {
        for tick in 0..=u64::from(n % 2) {
            let state: Vec<u8> = (0..70_000 + n).map(|i| (i * (n + 3)) as u8).collect();
            let epoch = Epoch(100 + u64::from(n));
            store.save(&region(n), epoch, Tick(7 + tick), state.into()).await.unwrap();
        }
    }
    let place = |n: u64| SavedPlayer {
        name: format!("player \u{e9} {n}"),
        epoch: Epoch(n + 1),
        clock: n * 3,
        holder: (!n.is_multiple_of(3)).then_some(EntityId(n)),
        place: vec![n as u8; 40].into(),
    };
    store.save_players((0..2_500).map(place).collect()).await.unwrap();
    let layout = KeptLayout { scene: "city".into(), change: 12, data: "{\"after\":3}".into() };
    assert!(store.save_layout(layout).await.unwrap());
}

const FULL: Contents = Contents { regions: 4, players: 2_500, layouts: 1 };

type All = (Vec<(RegionKey, SavedSnapshots)>, Vec<SavedPlayer>, Vec<KeptLayout>);

async fn all(store: &dyn Checkpoints) -> All {
    let mut regions = Vec::new();
    for key in store.regions().await.unwrap() {
        let kept = store.load(&key).await.unwrap();
        regions.push((key, kept));
    }
    let mut players = store.players("", 10_000).await.unwrap();
    players.sort_by(|a, b| a.name.cmp(&b.name));
    (regions, players, store.layouts().await.unwrap())
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn purview(command: &str, file: &str, set: &[String], more: &[&str]) -> Done {
    let mut args = vec![command, file];
    for set in set {
        args.extend(["--set", set]);
    }
    args.extend(more);
    run(&args)
}

#[test]
fn a_single_server_is_backed_up_and_restored_into_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let of = |dir: &Path| vec![format!("server.data_dir={}", dir.display())];
    let runtime = runtime();
    let was = runtime.block_on(async {
        let store = Redb::open(&from).unwrap();
        store.count_run().unwrap();
        store.count_run().unwrap();
        fill(&store).await;
        all(&store).await
    });
    let file = path(folder.path(), "b.purview");
    let done = purview("backup", &file, &of(&from), &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("4 regions, 2500 players, 1 changed layouts"), "{done:?}");
    let again = purview("backup", &file, &of(&from), &[]);
    assert!(again.code == Some(1) && again.stderr.contains("already"), "{again:?}");
    let done = purview("restore", &file, &of(&to), &["--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.report()["contents"]["players"], 2_500);
    runtime.block_on(async {
        let store = Redb::open(&to).unwrap();
        assert_eq!(all(&store).await, was);
        assert_eq!(store.count_run().unwrap(), 3, "no entity is named twice");
    });
    // Stored data stays unless --force erases it.
    let refused = purview("restore", &file, &of(&to), &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--force"), "{refused:?}");
    let forced = purview("restore", &file, &of(&to), &["--force"]);
    assert_eq!(forced.code, Some(0), "{forced:?}");
    let nothing = purview("backup", &path(folder.path(), "c"), &of(&folder.path().join("no")), &[]);
    assert!(nothing.stderr.contains("nothing to back up"), "{nothing:?}");
    let unset = purview("backup", &path(folder.path(), "c"), &[], &[]);
    assert!(unset.stderr.contains("the configuration names no store"), "{unset:?}");
}

#[test]
fn a_cluster_is_backed_up_and_restored_over_a_newer_etcd() {
    let folder = tempfile::tempdir().unwrap();
    let (etcd, postgres) = (EtcdServer::start(None).unwrap(), PostgresServer::start(None).unwrap());
    let set = vec![
        format!("cluster.etcd={}", etcd.url()),
        format!("cluster.postgres={}", postgres.address()),
        format!("cluster.postgres_password_file={}", postgres.password_file().display()),
        "cluster.name=test".to_owned(),
    ];
    let runtime = runtime();
    let connect = || async {
        let options = EtcdOptions::new(vec![etcd.url()], "test");
        let store = Postgres::connect(&postgres.url(), "test").await.unwrap();
        (Etcd::connect(options).await.unwrap(), store)
    };
    let was = runtime.block_on(async {
        let (_, store) = connect().await;
        fill(&store).await;
        all(&store).await
    });
    let file = path(folder.path(), "b.purview");
    let done = purview("backup", &file, &set, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // The cluster goes on: other checkpoints, other values.
    let member = runtime.block_on(async {
        let (leases, store) = connect().await;
        store.save(&region(9), Epoch(999), Tick(1), "new".into()).await.unwrap();
        leases.put_if("map/city", None, "{\"change\":99}".into()).await.unwrap();
        let node = NodeInfo {
            name: "node-7".into(),
            process: 7,
            address: "127.0.0.1:1".into(),
            regions: true,
            gateway: false,
            capacity: 1,
            about: Default::default(),
        };
        leases.join(node, std::time::Duration::from_secs(5)).await.unwrap()
    });
    let refused = purview("restore", &file, &set, &["--force"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("node-7"), "{refused:?}");
    runtime.block_on(member.leave()).unwrap();
    let refused = purview("restore", &file, &set, &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("5 regions"), "{refused:?}");
    let done = purview("restore", &file, &set, &["--force"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    runtime.block_on(async {
        let (leases, store) = connect().await;
        assert_eq!(all(&store).await, was);
        assert_eq!(leases.get("map/city").await.unwrap(), None, "it is of another time");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Redb::open(&folder.path().join("data")).unwrap();
    fill(&store).await;
    let good = folder.path().join("good");
    let now = std::time::Duration::from_secs(5);
    assert_eq!(back_up(&store, ("test", "redb"), now, &good).await.unwrap(), FULL);
    let (about, contents) = inspect(&good).unwrap();
    assert_eq!((about.cluster.as_str(), about.unix_s, contents), ("test", 5, FULL));
    let was = all(&store).await;
    let bytes = std::fs::read(&good).unwrap();
    let bad = folder.path().join("bad");
    let mut damages: Vec<(String, Vec<u8>)> = Vec::new();
    for at in [0, 7, 9, 10, 20, 1_000, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        damages.push((format!("byte {at}"), damaged));
        damages.push((format!("ends at {at}"), bytes[..at].to_vec()));
    }
    damages.push(("longer".into(), [&bytes[..], b"x"].concat()));
    for (what, damaged) in damages {
        std::fs::write(&bad, damaged).unwrap();
        let error = restore(&store, &bad, true).await.unwrap_err();
        assert!(matches!(error, BackupError::File { .. }), "{what}: {error}");
        assert_eq!(all(&store).await, was, "{what}");
    }
    let mut newer = bytes.clone();
    newer[9] = 2;
    std::fs::write(&bad, newer).unwrap();
    let error = restore(&store, &bad, true).await.unwrap_err();
    let is_newer = matches!(error, BackupError::File { source: FileError::Version(2), .. });
    assert!(is_newer, "{error}");
    let error = restore(&store, &good, false).await.unwrap_err();
    assert!(matches!(error, BackupError::NotEmpty(_)), "{error}");
    assert_eq!(restore(&store, &good, true).await.unwrap(), FULL);
    assert_eq!(all(&store).await, was);
}
