//! Cases of etcd alone: it loses its leader, loses its data, or is not there.

use std::time::{Duration, Instant};

use purview::scene::Epoch;
use purview_server::launch::EtcdServer;
use purview_server::storage::leases::etcd::{Etcd, EtcdOptions};
use purview_server::storage::{LeaseError, Leases};

use crate::etcd_admin;

use super::bench::{TTL, granted, node, region};

fn options(url: &str, cluster: &str) -> EtcdOptions {
    EtcdOptions::new(vec![url.into()], cluster)
}

async fn start() -> EtcdServer {
    tokio::task::spawn_blocking(|| EtcdServer::start(None)).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_node_is_evicted_when_the_leader_of_three_dies() {
    let servers = tokio::task::spawn_blocking(|| EtcdServer::start_cluster(3)).await.unwrap();
    let mut servers = servers.unwrap_or_else(|e| panic!("{e}"));
    let urls = servers.iter().map(EtcdServer::url).collect();
    let etcd = Etcd::connect(EtcdOptions::new(urls, "test")).await.unwrap();
    let mut members = Vec::new();
    for i in 0..3 {
        let member = etcd.join(node(&format!("n{i}")), TTL * 2).await.unwrap();
        let grant = granted(etcd.claim(&member, &region(i)).await.unwrap());
        members.push((member, grant));
    }
    for _ in 0..2 {
        let leader = servers.iter().position(EtcdServer::leads).expect("a leader");
        servers[leader].kill();
        tokio::time::sleep(TTL * 3).await;
        for (i, (member, grant)) in (0..).zip(&members) {
            assert_eq!(member.loss(), None);
            assert!(member.authority().holds(Instant::now().into()));
            let again = granted(etcd.claim(member, &region(i)).await.unwrap());
            assert_eq!(again.epoch, grant.epoch);
        }
        tokio::task::block_in_place(|| servers[leader].restart()).unwrap();
    }
}

/// Blocks all threads of the process for so long.
fn block(runtime: &tokio::runtime::Runtime, arbiters: &[actix::Arbiter], time: Duration) {
    let (tell, done) = std::sync::mpsc::channel();
    for _ in 0..runtime.metrics().num_workers() {
        let tell = tell.clone();
        runtime.spawn(async move {
            std::thread::sleep(time);
            tell.send(()).unwrap();
        });
    }
    for arbiter in arbiters {
        let tell = tell.clone();
        arbiter.spawn_fn(move || {
            std::thread::sleep(time);
            tell.send(()).unwrap();
        });
    }
    drop(tell);
    done.iter().for_each(drop);
}

#[test]
fn a_lease_survives_threads_that_are_blocked_for_longer_than_its_ttl() {
    let server = EtcdServer::start(None).unwrap();
    let mut background = tokio::runtime::Builder::new_multi_thread();
    let background = background.worker_threads(2).enable_all().build().unwrap();
    let system = actix::System::new();
    let arbiters = [actix::Arbiter::new(), actix::Arbiter::new()];
    let etcd = background.block_on(Etcd::connect(options(&server.url(), "test"))).unwrap();
    let joined = etcd.clone();
    let member = background.block_on(async move { joined.join(node("a"), TTL).await }).unwrap();
    let watched = member.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let watcher = std::thread::spawn(move || {
        let every = Duration::from_millis(20);
        let mut held = true;
        while stopped.recv_timeout(every) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            held &= watched.authority().holds(Instant::now().into());
        }
        held
    });
    block(&background, &arbiters, member.ttl() * 3);
    drop(stop);
    assert!(watcher.join().unwrap(), "the process may not act any more");
    assert_eq!(member.loss(), None);
    let claimed = background.block_on(async { etcd.claim(&member, &region(1)).await });
    granted(claimed.unwrap());
    arbiters.iter().for_each(|arbiter| {
        arbiter.stop();
    });
    drop(system);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_share_an_etcd_and_errors_name_their_causes() {
    let server = start().await;
    let url = server.url();
    clusters_do_not_see_each_other(&url).await;
    epochs_continue_above_those_of_checkpoints_when_etcd_is_new(&url).await;
    an_error_of_the_address_names_its_cause(&url).await;
    unreadable_data_is_reported_with_its_key(&url).await;
}

async fn clusters_do_not_see_each_other(url: &str) {
    let one = Etcd::connect(options(url, "one")).await.unwrap();
    let other = Etcd::connect(options(url, "one more")).await.unwrap();
    let at_one = one.join(node("a"), TTL).await.unwrap();
    let at_other = other.join(node("a"), TTL).await.unwrap();
    granted(one.claim(&at_one, &region(1)).await.unwrap());
    granted(other.claim(&at_other, &region(1)).await.unwrap());
    assert!(!other.evict(at_one.incarnation()).await.unwrap());
}

async fn epochs_continue_above_those_of_checkpoints_when_etcd_is_new(url: &str) {
    let know = |epoch| EtcdOptions { epochs_above: epoch, ..options(url, "new") };
    let gateway = Etcd::connect(know(None)).await.map(drop);
    assert_eq!(gateway, Err(LeaseError::NotBegun), "it begins no cluster");
    let know = |epoch| know(Some(Epoch(epoch)));
    let first = Etcd::connect(know(5_000)).await.unwrap();
    // A later process uses the existing value.
    let second = Etcd::connect(know(0)).await.unwrap();
    let at_first = first.join(node("a"), TTL).await.unwrap();
    let at_second = second.join(node("b"), TTL).await.unwrap();
    let grant = granted(first.claim(&at_first, &region(1)).await.unwrap());
    assert!(grant.epoch > Epoch(5_000), "{grant:?}");
    let taken = granted(second.take_over(&at_second, &region(1), grant.epoch).await.unwrap());
    assert!(taken.epoch > grant.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lost_its_data_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let start = || EtcdServer::start(Some(&path));
    let mut server = tokio::task::block_in_place(start).unwrap();
    let etcd = Etcd::connect(options(&server.url(), "test")).await.unwrap();
    let member = etcd.join(node("a"), TTL).await.unwrap();
    for n in 0..5 {
        granted(etcd.claim(&member, &region(n)).await.unwrap());
    }
    server.kill();
    std::fs::remove_dir_all(dir.path().join("etcd")).unwrap();
    tokio::task::block_in_place(|| server.restart()).unwrap();
    assert_eq!(member.lost().await, purview_server::storage::Loss::Gone);
    let error = etcd.get("plan").await.unwrap_err();
    assert!(matches!(error, LeaseError::WentBack { .. }), "{error}");
}

async fn an_error_of_the_address_names_its_cause(url: &str) {
    let connect = |urls: &[&str]| {
        Etcd::connect(EtcdOptions::new(urls.iter().map(|&url| url.into()).collect(), "test"))
    };
    for urls in [&[][..], &["127.0.0.1:2379"], &["https://127.0.0.1:2379"], &["http://a b"]] {
        let error = connect(urls).await.err().unwrap();
        let said = matches!(error, LeaseError::Illegal { .. } | LeaseError::Refused { .. });
        assert!(said, "{urls:?}: {error}");
    }
    let error = connect(&["http://127.0.0.1:1"]).await.err().unwrap();
    assert!(matches!(error, LeaseError::Unreachable { .. }), "{error}");
    let slash = Etcd::connect(options("http://127.0.0.1:1", "a/b")).await.err().unwrap();
    assert!(matches!(slash, LeaseError::Illegal { .. }), "{slash}");
    // One of two addresses suffices.
    connect(&["http://127.0.0.1:1", url]).await.unwrap();
}

async fn unreadable_data_is_reported_with_its_key(url: &str) {
    let etcd = Etcd::connect(options(url, "test")).await.unwrap();
    let member = etcd.join(node("a"), TTL).await.unwrap();
    let key = format!("purview/test/regions/{}", region(1));
    etcd_admin::put(url, &key, "{").await;
    let error = etcd.claim(&member, &region(1)).await.unwrap_err();
    assert!(
        matches!(&error, LeaseError::BadData { key, .. } if key.contains("regions/")),
        "{error}"
    );
    let mut watch = etcd.watch();
    let told = watch.next().await.unwrap().unwrap_err();
    assert_eq!(told, error);
    assert!(matches!(watch.next().await, Some(Ok(_))), "the watch delivers the rest");
}
