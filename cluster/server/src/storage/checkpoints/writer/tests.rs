//! Twenty regions and a store that is too slow or unreachable, in virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use purview::scene::{EntityId, SceneId};

use crate::storage::checkpoints::Result;
use crate::storage::checkpoints::writer::*;
use crate::storage::{
    ClusterId, KeptLayout, PlayerClaim, PlayerClaimed, PlayersSaved, SavedPlayer, SavedSnapshots,
    Whole,
};

const REGIONS: u32 = 20;
const TICK: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Slow {
    takes: Duration,
    unreachable: AtomicBool,
    saved: Mutex<BTreeMap<u32, u64>>,
    at_once: Mutex<(usize, usize)>,
}

#[async_trait]
impl Whole for Slow {
    async fn save_layout(&self, _: KeptLayout) -> Result<bool> {
        Ok(true)
    }

    async fn layouts(&self) -> Result<Vec<KeptLayout>> {
        Ok(Vec::new())
    }

    async fn players(&self, _: &str, _: usize) -> Result<Vec<SavedPlayer>> {
        Ok(Vec::new())
    }

    async fn processes(&self) -> Result<u64> {
        Ok(0)
    }

    async fn processes_are(&self, _: u64) -> Result<()> {
        Ok(())
    }

    async fn cluster_id(&self, fresh: ClusterId) -> Result<ClusterId> {
        Ok(fresh)
    }

    async fn erase(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Checkpoints for Slow {
    async fn save(&self, key: &RegionKey, epoch: Epoch, _: Tick, _: Bytes) -> Result<Saved> {
        {
            let mut at_once = self.at_once.lock();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        tokio::time::sleep(self.takes).await;
        self.at_once.lock().0 -= 1;
        if self.unreachable.load(Relaxed) {
            let (store, cause) = ("the store".into(), "away".into());
            return Err(CheckpointError::Unreachable { store, asked: "save", cause });
        }
        self.saved.lock().insert(key.region, epoch.0);
        Ok(Saved::Ok)
    }

    async fn claim(&self, key: &RegionKey, _: Epoch) -> Result<SavedSnapshots> {
        self.load(key).await
    }

    async fn load(&self, _: &RegionKey) -> Result<SavedSnapshots> {
        Ok(SavedSnapshots::default())
    }

    async fn set_aside(&self, _: &RegionKey) -> Result<u64> {
        Ok(0)
    }

    async fn regions(&self) -> Result<Vec<RegionKey>> {
        Ok(Vec::new())
    }

    async fn save_players(&self, _: Vec<SavedPlayer>) -> Result<PlayersSaved> {
        Ok(PlayersSaved::default())
    }

    async fn claim_player(&self, name: &str, claim: PlayerClaim) -> Result<PlayerClaimed> {
        let claimed = SavedPlayer::new(name.to_owned()).claimed_by(claim.entity);
        Ok(PlayerClaimed::Yes(claimed))
    }

    async fn player_held_by(&self, _: EntityId) -> Result<Option<SavedPlayer>> {
        Ok(None)
    }

    async fn load_player(&self, _: &str) -> Result<Option<SavedPlayer>> {
        Ok(None)
    }

    async fn highest_epoch(&self) -> Result<Epoch> {
        Ok(Epoch(0))
    }
}

/// A queue whose regions make a checkpoint each second; the epoch is the number of that second.
struct Trial {
    checkpoint_queue: Arc<CheckpointQueue>,
    store: Arc<Slow>,
    second: u64,
    oldest: Duration,
}

impl Trial {
    fn new(takes: Duration) -> Trial {
        let checkpoint_queue = Arc::new(CheckpointQueue::new(10, TICK));
        let store = Arc::new(Slow { takes, ..Slow::default() });
        let key = |id: RegionId| Some(RegionKey { scene: "city".into(), region: id.0, planes: 0 });
        tokio::spawn(checkpoint_queue.clone().run(store.clone(), key));
        Trial { checkpoint_queue, store, second: 0, oldest: Duration::ZERO }
    }

    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            for id in (0..REGIONS).map(RegionId) {
                self.checkpoint_queue.keep(RegionSnapshot::nothing(
                    SceneId(0),
                    id,
                    Epoch(self.second),
                ));
            }
            tokio::time::sleep(SECOND).await;
            let ages: Vec<_> =
                self.checkpoint_queue.queue.lock().ages(clock::now()).map(|(_, age)| age).collect();
            self.oldest = self.oldest.max(ages.into_iter().max().unwrap_or_default());
        }
    }

    fn metrics(&self) -> String {
        crate::metrics::text_of(self.checkpoint_queue.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_slow_store_every_region_gets_its_turn() {
    // Each second twenty are made, and fewer than seven are saved.
    let mut trial = Trial::new(Duration::from_millis(600));
    trial.pass(120).await;
    let saved = trial.store.saved.lock().clone();
    assert_eq!(saved.len(), REGIONS as usize, "some were never saved: {saved:?}");
    let behind = saved.values().map(|second| trial.second - second).max();
    assert!(behind <= Some(6), "one is {behind:?} s behind: {saved:?}");
    // Twenty at four per 0.6 s take 3 s for a round, and a checkpoint ages while it waits.
    assert!(trial.oldest < Duration::from_secs(8), "{:?}", trial.oldest);
    assert_eq!(trial.store.at_once.lock().1, SAVES_AT_ONCE);
    assert_eq!(trial.checkpoint_queue.overdue(), []);
}

#[tokio::test(start_paused = true)]
async fn checkpoints_too_old_for_recovery_are_reported() {
    let mut trial = Trial::new(Duration::from_millis(10));
    trial.pass(5).await;
    trial.store.unreachable.store(true, Relaxed);
    let limit = (TICK * ESCROW_TICKS as u32).as_secs();
    trial.pass(limit - 5).await;
    assert_eq!(trial.checkpoint_queue.overdue(), [], "not yet");
    trial.pass(10).await;
    assert_eq!(trial.checkpoint_queue.overdue().len(), REGIONS as usize);
    let text = trial.metrics();
    assert!(text.contains("\npurview_checkpoints_overdue 20\n"), "{text}");
    assert!(text.contains("\npurview_checkpoints_waiting 20\n"), "{text}");
    let age =
        text.lines().find_map(|l| l.strip_prefix("purview_checkpoint_age_seconds{region=\"7\"} "));
    let age: f64 = age.unwrap().parse().unwrap();
    assert!(age > 120.0 && age < 140.0, "{age}");
    trial.store.unreachable.store(false, Relaxed);
    trial.pass(5).await;
    assert_eq!(trial.checkpoint_queue.overdue(), []);
    assert!(trial.metrics().contains("\npurview_checkpoints_overdue 0\n"));
}
