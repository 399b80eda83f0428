//! What a checkpoint store holds besides snapshots and last positions, and its complete content.

use bytes::Bytes;
use purview::scene::{Epoch, Tick};
use purview_server::storage::{CheckpointError, KeptLayout, PlayerPlace};

use super::bench::region;
use super::over_each;
use super::shelf::Shelf;

over_each!(Shelf: redb, simulated, postgres: {
    the_latest_change_of_a_layout_is_kept,
    layouts_survive_closing_and_opening,
    all_players_are_read_page_by_page,
    erase_removes_everything,
});

fn layout(scene: &str, change: u64, data: &str) -> KeptLayout {
    KeptLayout { scene: scene.into(), change, data: data.to_owned().into() }
}

async fn the_latest_change_of_a_layout_is_kept(shelf: Shelf) {
    let shelf = shelf.open().await;
    assert_eq!(shelf.layouts().await.unwrap(), []);
    for (change, data, kept) in [(3, "a", true), (3, "b", true), (2, "x", false), (9, "c", true)] {
        assert_eq!(shelf.save_layout(layout("city", change, data)).await.unwrap(), kept, "{data}");
    }
    shelf.save_layout(layout("arena 'x'", 1, "d")).await.unwrap();
    let all = [layout("arena 'x'", 1, "d"), layout("city", 9, "c")];
    assert_eq!(shelf.layouts().await.unwrap(), all);
    for illegal in [
        layout("", 1, ""),
        layout("zero \0 byte", 1, ""),
        layout("city", u64::MAX, ""),
        KeptLayout { data: vec![0; (512 << 10) + 1].into(), ..layout("city", 10, "") },
    ] {
        let error = shelf.save_layout(illegal).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Illegal { .. }), "{error}");
    }
    assert_eq!(shelf.layouts().await.unwrap(), all);
}

async fn layouts_survive_closing_and_opening(mut shelf: Shelf) {
    let opened = shelf.open().await;
    opened.save_layout(layout("city", 3, "a")).await.unwrap();
    opened.processes_are(5).await.unwrap();
    let processes = opened.processes().await.unwrap();
    drop(opened);
    if let Shelf::Postgres { server } = &mut shelf {
        server.kill();
        tokio::task::block_in_place(|| server.restart()).unwrap();
    }
    let opened = shelf.open().await;
    assert_eq!(opened.layouts().await.unwrap(), [layout("city", 3, "a")]);
    assert!(!opened.save_layout(layout("city", 2, "x")).await.unwrap());
    opened.processes_are(2).await.unwrap();
    assert_eq!(opened.processes().await.unwrap(), processes, "it never goes back");
}

fn place(n: usize) -> PlayerPlace {
    let place = format!("at {n}").into();
    PlayerPlace { name: format!("player {n:03}"), epoch: Epoch(n as u64), clock: 7, place }
}

async fn all_players_are_read_page_by_page(shelf: Shelf) {
    let shelf = shelf.open().await;
    let all: Vec<PlayerPlace> = (0..25).map(place).collect();
    shelf.save_players(all.clone()).await.unwrap();
    let (mut told, mut after) = (Vec::new(), String::new());
    loop {
        let page = shelf.players(&after, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 10);
        after.clone_from(&last.name);
        told.extend(page);
    }
    assert_eq!(told, all);
}

async fn erase_removes_everything(shelf: Shelf) {
    let shelf = shelf.open().await;
    for tick in [1, 2] {
        shelf.save(&region(1), Epoch(9), Tick(tick), Bytes::from_static(b"s")).await.unwrap();
    }
    shelf.save_players(vec![place(1)]).await.unwrap();
    shelf.save_layout(layout("city", 3, "a")).await.unwrap();
    shelf.erase().await.unwrap();
    assert_eq!(shelf.regions().await.unwrap(), []);
    assert_eq!(shelf.load(&region(1)).await.unwrap(), Default::default());
    assert_eq!(shelf.players("", 10).await.unwrap(), []);
    assert_eq!(shelf.layouts().await.unwrap(), []);
    assert_eq!(shelf.highest_epoch().await.unwrap(), Epoch(0));
    // The erased data fences nothing.
    assert!(shelf.save_layout(layout("city", 1, "b")).await.unwrap());
}
