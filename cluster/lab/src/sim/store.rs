//! What survives processes in a simulated cluster: the lease store, as each process reaches it, and the checkpoint
//! store. Both can answer late or not at all; stored data can be lost or old.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use purview::scene::{EntityId, Epoch, Tick};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::rng::Rng;
use purview_server::simulation::checkpoints::{
    check_claim, check_player, check_players, check_state, newest_of_each,
};
use purview_server::simulation::leases::{
    FOLLOWER_QUEUE, Follower, HeldLease, Listing, Store, StoreEvent, Swap, Swapped,
};
use purview_server::storage::leases::embedded::Embedded;
use purview_server::storage::{
    CheckpointError, Checkpoints, ClusterId, KeptLayout, LeaseError, PlayerClaim, PlayerClaimed,
    PlayersSaved, RegionKey, Saved, SavedPlayer, SavedSnapshots, Snapshot,
};

use super::network::Delays;

const REQUEST_LIMIT: Duration = Duration::from_millis(1_500);

const TRIP: Delays =
    Delays { least: Duration::from_millis(1), spread: Duration::from_millis(3), late_one_in: 100 };

#[derive(Clone)]
pub struct Chance(Arc<Mutex<Rng>>);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(Arc::new(Mutex::new(Rng::new(seed))))
    }

    fn trip(&self) -> Duration {
        TRIP.draw(&mut self.0.lock())
    }

    fn one_in(&self, n: u64) -> bool {
        n > 0 && self.0.lock().one_in(n)
    }
}

/// The connection of a process to the lease store.
pub struct LeaseWay {
    store: Embedded,
    chance: Chance,
    /// Of so many requests one is carried out but its answer lost; 0: none.
    answers_lost: AtomicU64,
    told_up_to: watch::Sender<u64>,
}

impl LeaseWay {
    pub fn to(store: &Embedded, seed: u64) -> LeaseWay {
        let (answers_lost, told_up_to) = (AtomicU64::new(0), watch::Sender::new(u64::MAX));
        LeaseWay { store: store.another(), chance: Chance::new(seed), answers_lost, told_up_to }
    }

    /// Cuts the connection: no request is answered and no lease renewed until [`LeaseWay::mend`].
    pub fn cut(&self) {
        self.store.cut();
    }

    /// Lets the store break its promise: everything granted over this connection is over for all other processes. The
    /// holder learns that, like all other changes, once the connection is mended.
    pub fn revoke_silently(&self) {
        self.store.revoke_silently();
    }

    pub fn mend(&self) {
        self.store.mend();
    }

    /// From now on one of so many answers is lost; 0: none.
    pub fn lose_answers(&self, one_in: u64) {
        self.answers_lost.store(one_in, Relaxed);
    }

    /// Holds changes after this revision back from watchers, until a call with a higher one. Requests are answered
    /// all the same.
    pub fn tell_up_to(&self, revision: u64) {
        self.told_up_to.send_replace(revision);
    }

    async fn ask<T>(
        &self,
        asked: &'static str,
        request: impl Future<Output = Result<T, LeaseError>> + Send,
    ) -> Result<T, LeaseError> {
        sleep(self.chance.trip()).await;
        let done = request.await;
        if done.is_err() || self.chance.one_in(self.answers_lost.load(Relaxed)) {
            sleep(REQUEST_LIMIT).await;
        } else {
            sleep(self.chance.trip()).await;
            return done;
        }
        let (store, cause) = ("the simulated lease store".into(), "no answer".into());
        Err(LeaseError::Unreachable { store, asked, cause })
    }
}

impl Store for LeaseWay {
    fn epochs_above(&self) -> u64 {
        self.store.epochs_above()
    }

    async fn lease(&self, ttl: Duration) -> Result<HeldLease, LeaseError> {
        self.ask("grant a lease", self.store.lease(ttl)).await
    }

    async fn revoke(&self, lease: i64) -> Result<bool, LeaseError> {
        self.ask("end a lease", self.store.revoke(lease)).await
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped, LeaseError> {
        self.ask(swap.asked, self.store.swap(swap)).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, LeaseError> {
        self.ask("list keys", self.store.list(prefix)).await
    }

    fn follow(&self, prefix: &str) -> Follower {
        // Its own randomness, because the seed does not determine the order in which watchers learn that a connection
        // is mended.
        let chance = Chance::new(self.chance.0.lock().seed());
        let mut told = self.store.follow(prefix);
        let mut up_to = self.told_up_to.subscribe();
        let (tell, late) = mpsc::channel(FOLLOWER_QUEUE);
        tokio::spawn(async move {
            while let Some(news) = told.recv().await {
                sleep(chance.trip()).await;
                let revision = news.as_ref().map_or(0, StoreEvent::revision);
                let is_late = revision > *up_to.borrow();
                if is_late && up_to.wait_for(|up_to| revision <= *up_to).await.is_err() {
                    return;
                }
                if tell.send(news).await.is_err() {
                    return;
                }
            }
        });
        late
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointFaults {
    pub unreachable: bool,
    /// One of so many snapshots is missing when read; 0: none.
    pub lost_one_in: u64,
    /// Instead of one of so many snapshots the one before it is read; 0: none.
    pub old_one_in: u64,
    /// Of one of so many snapshots only the first half is read; 0: none.
    pub torn_one_in: u64,
}

#[derive(Default)]
pub(super) struct Keeping {
    faults: CheckpointFaults,
    pub(super) regions: BTreeMap<RegionKey, SavedSnapshots>,
    /// The highest epoch whose owner has claimed each region.
    claimed: BTreeMap<RegionKey, Epoch>,
    pub(super) players: BTreeMap<String, SavedPlayer>,
    pub(super) layouts: BTreeMap<String, KeptLayout>,
    pub(super) cluster: Option<ClusterId>,
}

/// A connection to the checkpoint store: memory that survives processes.
#[derive(Clone)]
pub struct Memory {
    keeping: Arc<Mutex<Keeping>>,
    chance: Chance,
    cut: Arc<AtomicBool>,
}

impl Memory {
    pub fn new(seed: u64) -> Memory {
        Memory { keeping: Arc::default(), chance: Chance::new(seed), cut: Arc::default() }
    }

    /// Another connection to the same store.
    pub fn another(&self) -> Memory {
        Memory { cut: Arc::default(), ..self.clone() }
    }

    /// Cuts the connection: no request is answered until [`Memory::mend`].
    pub fn cut(&self) {
        self.cut.store(true, Relaxed);
    }

    pub fn mend(&self) {
        self.cut.store(false, Relaxed);
    }

    pub fn set_faults(&self, faults: CheckpointFaults) {
        self.keeping.lock().faults = faults;
    }

    /// Carries out a request, unless the store is away.
    pub(super) async fn ask<T>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&mut Keeping) -> T,
    ) -> Result<T, CheckpointError> {
        sleep(self.chance.trip()).await;
        if self.cut.load(Relaxed) || self.keeping.lock().faults.unreachable {
            sleep(REQUEST_LIMIT).await;
            let (store, cause) = ("the simulated checkpoint store".into(), "no answer".into());
            return Err(CheckpointError::Unreachable { store, asked, cause });
        }
        let done = f(&mut self.keeping.lock());
        sleep(self.chance.trip()).await;
        Ok(done)
    }

    /// What a read returns, according to the faults.
    fn worn(&self, kept: SavedSnapshots) -> SavedSnapshots {
        let faults = self.keeping.lock().faults;
        if self.chance.one_in(faults.lost_one_in) {
            return SavedSnapshots::default();
        }
        if self.chance.one_in(faults.old_one_in) {
            return SavedSnapshots { newest: kept.previous, previous: None };
        }
        let mut kept = kept;
        if self.chance.one_in(faults.torn_one_in)
            && let Some(newest) = &mut kept.newest
        {
            newest.state.truncate(newest.state.len() / 2);
        }
        kept
    }
}

#[async_trait]
impl Checkpoints for Memory {
    async fn save(
        &self,
        key: &RegionKey,
        epoch: Epoch,
        tick: Tick,
        state: Bytes,
    ) -> Result<Saved, CheckpointError> {
        check_state(key, epoch, tick, &state)?;
        self.ask("store a snapshot", |keeping| {
            let claimed = keeping.claimed.get(key).copied().unwrap_or_default();
            if claimed > epoch {
                return Saved::Fenced { by: claimed, tick: Tick(0) };
            }
            let kept = keeping.regions.entry(key.clone()).or_default();
            let newest = kept.newest.as_ref().map(|newest| (newest.epoch, newest.tick));
            match newest {
                Some(newest) if newest > (epoch, tick) => {
                    Saved::Fenced { by: newest.0, tick: newest.1 }
                }
                Some(newest) if newest == (epoch, tick) => Saved::Ok,
                _ => {
                    kept.previous = kept.newest.replace(Snapshot { epoch, tick, state });
                    Saved::Ok
                }
            }
        })
        .await
    }

    async fn claim(
        &self,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<SavedSnapshots, CheckpointError> {
        check_claim(key, epoch)?;
        let kept = |keeping: &mut Keeping| {
            let claimed = keeping.claimed.entry(key.clone()).or_default();
            *claimed = epoch.max(*claimed);
            keeping.regions.get(key).cloned()
        };
        let kept = self.ask("claim a region", kept).await?;
        Ok(self.worn(kept.unwrap_or_default()))
    }

    async fn load(&self, key: &RegionKey) -> Result<SavedSnapshots, CheckpointError> {
        let kept = |keeping: &mut Keeping| keeping.regions.get(key).cloned();
        let kept = self.ask("read a snapshot", kept).await?;
        Ok(self.worn(kept.unwrap_or_default()))
    }

    async fn set_aside(&self, key: &RegionKey) -> Result<u64, CheckpointError> {
        let moved = |keeping: &mut Keeping| {
            let kept = keeping.regions.remove(key).unwrap_or_default();
            kept.newest.iter().chain(&kept.previous).count() as u64
        };
        self.ask("set snapshots aside", moved).await
    }

    async fn regions(&self) -> Result<Vec<RegionKey>, CheckpointError> {
        self.ask("list snapshots", |keeping| keeping.regions.keys().cloned().collect()).await
    }

    async fn save_players(
        &self,
        players: Vec<SavedPlayer>,
    ) -> Result<PlayersSaved, CheckpointError> {
        check_players(&players)?;
        self.ask("store players", |keeping| {
            let mut saved = PlayersSaved::default();
            for player in newest_of_each(players) {
                match keeping.players.get_mut(&player.name) {
                    Some(known) if known.age() > player.age() => {
                        saved.fenced += 1;
                        continue;
                    }
                    Some(known) => *known = player,
                    None => _ = keeping.players.insert(player.name.clone(), player),
                }
                saved.kept += 1;
            }
            saved
        })
        .await
    }

    async fn claim_player(
        &self,
        name: &str,
        claim: PlayerClaim,
    ) -> Result<PlayerClaimed, CheckpointError> {
        check_player(name)?;
        self.ask("claim a player", |keeping| {
            let name = name.to_owned();
            let new = || SavedPlayer::new(name.clone());
            let now = keeping.players.entry(name.clone()).or_insert_with(new);
            if !claim.may_follow(now.holder) {
                return PlayerClaimed::No(now.clone());
            }
            *now = now.clone().claimed_by(claim.entity);
            PlayerClaimed::Yes(now.clone())
        })
        .await
    }

    async fn load_player(&self, name: &str) -> Result<Option<SavedPlayer>, CheckpointError> {
        check_player(name)?;
        self.ask("read a player", |keeping| keeping.players.get(name).cloned()).await
    }

    async fn player_held_by(
        &self,
        entity: EntityId,
    ) -> Result<Option<SavedPlayer>, CheckpointError> {
        let held = move |keeping: &mut Keeping| {
            keeping.players.values().find(|player| player.holder == Some(entity)).cloned()
        };
        self.ask("find a held player", held).await
    }

    async fn highest_epoch(&self) -> Result<Epoch, CheckpointError> {
        self.ask("read the highest epoch", |keeping| {
            let epochs = keeping.regions.values().filter_map(|kept| kept.newest.as_ref());
            let epochs = epochs.map(|newest| newest.epoch);
            epochs.chain(keeping.claimed.values().copied()).max().unwrap_or_default()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_cut_answers_nothing_until_it_is_mended_and_others_do() {
        let (one, key) = (
            Memory::new(1),
            RegionKey { scene: "field".into(), region: 3, planes: Default::default() },
        );
        let other = one.another();
        let state = Bytes::from_static(b"state");
        one.cut();
        assert!(one.save(&key, Epoch(1), Tick(5), state.clone()).await.is_err());
        assert_eq!(other.save(&key, Epoch(1), Tick(6), state).await.unwrap(), Saved::Ok);
        assert!(one.load(&key).await.is_err());
        one.mend();
        let kept = one.load(&key).await.unwrap().newest.expect("what the other one has saved");
        assert_eq!(kept.tick, Tick(6));
    }
}
