//! Players' records in memory, by the rules of every store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, ready};
use purview::actor::player_store::{
    ClaimOver, Claimed, LastPosition, LastState, NotClaimed, PlayerStore, Stamp, StoreAway,
    StoredPlayer,
};
use purview::scene::EntityId;
use purview::scene::properties::Value;
use purview::scene::views::NamedBond;

#[derive(Debug, Clone, Default)]
struct Record {
    number: u64,
    holder: Option<EntityId>,
    clock_ms: u64,
    place: Option<LastPosition>,
}

impl Record {
    fn kept(self) -> Option<StoredPlayer> {
        let clock_ms = self.clock_ms;
        self.place.map(|place| StoredPlayer { place, clock_ms })
    }
}

#[derive(Debug, Default)]
struct Held {
    records: BTreeMap<String, Record>,
    /// Last states are not kept while it is true, and wait.
    is_slow: bool,
    waiting: Vec<(EntityId, Option<LastState>, oneshot::Sender<()>)>,
    /// Claims are not decided while it is true, and wait.
    holds_claims: bool,
    claims: Vec<(String, EntityId, ClaimOver, oneshot::Sender<Claim>)>,
    claims_refused: usize,
}

type Claim = Result<Claimed, NotClaimed>;

#[derive(Debug, Default)]
pub struct Book(Mutex<Held>, Option<Duration>);

impl Book {
    /// Sessions report so often; otherwise once, at their joins.
    pub fn told_every(time: Duration) -> Book {
        Book(Mutex::default(), Some(time))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap()
    }

    /// The record that a player begins with, and since when it is so.
    pub fn begin(&self, name: &str, place: LastPosition, clock_ms: u64) {
        let record = Record { place: Some(place), clock_ms, ..Record::default() };
        self.held().records.insert(name.into(), record);
    }

    pub fn properties(&self, name: &str) -> BTreeMap<u8, Value> {
        let kept = self.held().records[name].place.clone().expect("a place");
        kept.properties.iter().map(|kept| (kept.id.0, kept.value.clone())).collect()
    }

    pub fn bonds(&self, name: &str) -> Vec<NamedBond> {
        self.held()
            .records
            .get(name)
            .and_then(|record| record.place.clone())
            .map_or(Vec::new(), |place| place.bonds)
    }

    /// The entity that holds a player's record.
    pub fn holder(&self, name: &str) -> Option<EntityId> {
        self.held().records.get(name)?.holder
    }

    /// From now on claims are under way.
    pub fn hold_claims(&self) {
        self.held().holds_claims = true;
    }

    pub fn claims_under_way(&self) -> usize {
        self.held().claims.len()
    }

    pub fn claims_refused(&self) -> usize {
        self.held().claims_refused
    }

    /// Claims that are under way are decided, even those that no session awaits, and later ones at once.
    pub fn decide_claims(&self) {
        let mut held = self.held();
        held.holds_claims = false;
        for (name, entity, over, answer) in std::mem::take(&mut held.claims) {
            let claimed = held.claim(&name, entity, over);
            let _session_is_gone = answer.send(claimed);
        }
    }

    /// From now on last states wait.
    pub fn slow_down(&self) {
        self.held().is_slow = true;
    }

    /// Last states that wait are kept, and later ones at once.
    pub fn catch_up(&self) {
        let mut held = self.held();
        held.is_slow = false;
        for (entity, last, done) in std::mem::take(&mut held.waiting) {
            held.end(entity, last);
            let _session_is_gone = done.send(());
        }
    }
}

impl Held {
    fn claim(&mut self, name: &str, entity: EntityId, over: ClaimOver) -> Claim {
        let record = self.records.entry(name.into()).or_default();
        let follows = match (over, record.holder) {
            (ClaimOver::Itself, None) => false,
            (ClaimOver::Anybody, _) | (_, None) => true,
            (ClaimOver::Gone(gone), Some(holder)) => holder == gone || holder == entity,
            (_, Some(holder)) => holder == entity,
        };
        if !follows {
            self.claims_refused += 1;
            return Err(NotClaimed::Held(record.holder));
        }
        record.number += 1;
        record.holder = Some(entity);
        Ok(Claimed { kept: record.clone().kept(), number: record.number })
    }

    fn end(&mut self, entity: EntityId, last: Option<LastState>) {
        let held = self.records.values_mut().find(|record| record.holder == Some(entity));
        let Some(record) = held else { return };
        record.holder = None;
        if let Some(last) = last.filter(|last| last.clock_ms >= record.clock_ms) {
            record.clock_ms = last.clock_ms;
            record.place = last.after(record.place.take());
        }
    }
}

impl PlayerStore for Book {
    fn every(&self) -> Duration {
        self.1.unwrap_or(Duration::from_secs(3_600))
    }

    fn read(&self, name: &str) -> BoxFuture<'static, Result<Option<StoredPlayer>, StoreAway>> {
        let record = self.held().records.get(name).cloned();
        ready(Ok(record.and_then(Record::kept))).boxed()
    }

    fn claim(
        &self,
        name: &str,
        entity: EntityId,
        over: ClaimOver,
    ) -> BoxFuture<'static, Result<Claimed, NotClaimed>> {
        let mut held = self.held();
        if !held.holds_claims {
            return ready(held.claim(name, entity, over)).boxed();
        }
        let (answer, decided) = oneshot::channel();
        held.claims.push((name.into(), entity, over, answer));
        async { decided.await.expect("the book outlives its sessions") }.boxed()
    }

    fn keep(&self, name: &str, entity: EntityId, place: LastPosition, stamp: Stamp) {
        let mut held = self.held();
        let record = held.records.entry(name.into()).or_default();
        let now = (record.number, record.clock_ms);
        if record.holder == Some(entity) && now <= (stamp.number, stamp.clock_ms) {
            (record.clock_ms, record.place) = (stamp.clock_ms, Some(place));
        }
    }

    fn ended(&self, entity: EntityId, last: Option<LastState>) -> BoxFuture<'static, ()> {
        let mut held = self.held();
        if !held.is_slow {
            held.end(entity, last);
            return ready(()).boxed();
        }
        let (done, stored) = oneshot::channel();
        held.waiting.push((entity, last, done));
        stored.map(drop).boxed()
    }
}
