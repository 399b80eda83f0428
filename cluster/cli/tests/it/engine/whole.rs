//! What a checkpoint store holds besides snapshots and last positions, and its complete content.

use bytes::Bytes;
use purview::scene::{EntityId, Epoch, Tick};
use purview_server::storage::{CheckpointError, ClusterId, KeptLayout, SavedPlayer};

use super::bench::region;
use super::checkpoint_store::CheckpointStore;
use super::over_each;

over_each!(CheckpointStore: redb, simulated, postgres: {
    the_latest_change_of_a_layout_is_kept,
    layouts_survive_closing_and_opening,
    all_players_are_read_page_by_page,
    the_first_process_names_the_cluster_for_all_later_ones,
    erase_removes_everything,
});

fn layout(scene: &str, change: u64, data: &str) -> KeptLayout {
    KeptLayout { scene: scene.into(), change, data: data.to_owned().into() }
}

async fn the_latest_change_of_a_layout_is_kept(bench: &CheckpointStore) {
    let store = bench.open().await;
    assert_eq!(store.layouts().await.unwrap(), []);
    for (change, data, kept) in [(3, "a", true), (3, "b", true), (2, "x", false), (9, "c", true)] {
        assert_eq!(store.save_layout(layout("city", change, data)).await.unwrap(), kept, "{data}");
    }
    store.save_layout(layout("arena 'x'", 1, "d")).await.unwrap();
    let all = [layout("arena 'x'", 1, "d"), layout("city", 9, "c")];
    assert_eq!(store.layouts().await.unwrap(), all);
    for illegal in [
        layout("", 1, ""),
        layout("zero \0 byte", 1, ""),
        layout("city", u64::MAX, ""),
        KeptLayout { data: vec![0; (512 << 10) + 1].into(), ..layout("city", 10, "") },
    ] {
        let error = store.save_layout(illegal).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Illegal { .. }), "{error}");
    }
    assert_eq!(store.layouts().await.unwrap(), all);
}

async fn layouts_survive_closing_and_opening(bench: &mut CheckpointStore) {
    let opened = bench.open().await;
    opened.save_layout(layout("city", 3, "a")).await.unwrap();
    opened.processes_are(5).await.unwrap();
    let processes = opened.processes().await.unwrap();
    drop(opened);
    bench.restart();
    let opened = bench.open().await;
    assert_eq!(opened.layouts().await.unwrap(), [layout("city", 3, "a")]);
    assert!(!opened.save_layout(layout("city", 2, "x")).await.unwrap());
    opened.processes_are(2).await.unwrap();
    assert_eq!(opened.processes().await.unwrap(), processes, "it never goes back");
}

fn place(n: usize) -> SavedPlayer {
    let place = format!("at {n}").into();
    let (name, holder) =
        (format!("player {n:03}"), (!n.is_multiple_of(2)).then_some(EntityId(n as u64)));
    SavedPlayer { name, epoch: Epoch(n as u64), clock: 7, holder, place }
}

async fn all_players_are_read_page_by_page(bench: &CheckpointStore) {
    let store = bench.open().await;
    let all: Vec<SavedPlayer> = (0..25).map(place).collect();
    store.save_players(all.clone()).await.unwrap();
    let (mut told, mut after) = (Vec::new(), String::new());
    loop {
        let page = store.players(&after, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 10);
        after.clone_from(&last.name);
        told.extend(page);
    }
    assert_eq!(told, all);
}

async fn the_first_process_names_the_cluster_for_all_later_ones(bench: &CheckpointStore) {
    let [first, second] = [[0xf1; 16], [2; 16]].map(ClusterId::new);
    let opened = bench.open().await;
    assert_eq!(opened.cluster_id(first).await.unwrap(), first);
    assert_eq!(opened.cluster_id(second).await.unwrap(), first);
    drop(opened);
    let opened = bench.open().await;
    assert_eq!(opened.cluster_id(second).await.unwrap(), first);
}

async fn erase_removes_everything(bench: &CheckpointStore) {
    let store = bench.open().await;
    for tick in [1, 2] {
        store.save(&region(1), Epoch(9), Tick(tick), Bytes::from_static(b"s")).await.unwrap();
    }
    store.save_players(vec![place(1)]).await.unwrap();
    store.save_layout(layout("city", 3, "a")).await.unwrap();
    let [before, after] = [[1; 16], [2; 16]].map(ClusterId::new);
    store.cluster_id(before).await.unwrap();
    store.erase().await.unwrap();
    assert_eq!(store.cluster_id(after).await.unwrap(), after);
    assert_eq!(store.regions().await.unwrap(), []);
    assert_eq!(store.load(&region(1)).await.unwrap(), Default::default());
    assert_eq!(store.players("", 10).await.unwrap(), []);
    assert_eq!(store.layouts().await.unwrap(), []);
    assert_eq!(store.highest_epoch().await.unwrap(), Epoch(0));
    // The erased data fences nothing.
    assert!(store.save_layout(layout("city", 1, "b")).await.unwrap());
}
