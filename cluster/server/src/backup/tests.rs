use super::*;
use crate::storage::checkpoints::redb::Redb;
use crate::storage::{ClusterId, Whole};

/// An original and its copy would know each other's tickets otherwise.
#[tokio::test]
async fn a_restored_store_is_another_clusters_than_the_one_that_was_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let [original, copy] = ["original", "copy"].map(|name| folder.path().join(name));
    let file = folder.path().join("backup");
    let [first, second, third] = [1, 2, 3].map(|n| ClusterId::new([n; 16]));
    let store = Redb::open(&original).unwrap();
    assert_eq!(store.cluster_id(first).await.unwrap(), first);
    assert_eq!(store.cluster_id(second).await.unwrap(), first, "the first one counts");
    back_up(&store, ("c", "redb"), Duration::ZERO, &file).await.unwrap();
    let other = Redb::open(&copy).unwrap();
    restore(&other, &file, false).await.unwrap();
    assert_eq!(other.cluster_id(second).await.unwrap(), second);
    // The past of the same store is another cluster's, too: tickets given since name players that it never had.
    let key = crate::storage::RegionKey { scene: "city".into(), region: 0, planes: 0 };
    store
        .save(&key, purview::scene::Epoch(1), purview::scene::Tick(1), vec![1].into())
        .await
        .unwrap();
    restore(&store, &file, true).await.unwrap();
    assert_eq!(store.cluster_id(third).await.unwrap(), third);
}
