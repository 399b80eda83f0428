//! Implements [`Leases`] over any [`Store`]: which keys are swapped for which request.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use purview::scene::Epoch;
use tokio::sync::watch;

use super::keys::{self, Holder};
use super::names::{self, VALUE_MAX};
use super::store::{Follower, Guard, Store, StoreEntry, StoreEvent, Swap, Swapped, Write};
use super::{Claim, Grant, Leases, Membership, Put, Released, Result};
use super::{TTL_MAX, TTL_MIN};
use crate::storage::{Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value, Watch};

/// How long a candidate waits before it asks an unreachable store again.
const CAMPAIGN_PAUSE: Duration = Duration::from_millis(200);

#[async_trait]
impl<S: Store> Leases for S {
    async fn join(&self, node: NodeInfo, ttl: Duration) -> Result<Membership> {
        node.check()?;
        let held = self.lease(whole_seconds(ttl)?).await?;
        let lease = held.lease.id();
        let key = keys::member(&node);
        let data = keys::encode(&key, &node)?;
        let put = Write::Put { data, lease };
        let swap = Swap { asked: "join", key: key.clone(), guard: Guard::Absent, write: put };
        let incarnation = match self.swap(swap).await? {
            Swapped::Done(revision) => revision,
            Swapped::Refused { found: Some(entry), .. } if entry.lease == lease => entry.created,
            Swapped::Refused { found, .. } => {
                let address = found.and_then(|entry| keys::decode::<NodeInfo>(&entry).ok());
                let address =
                    address.map_or_else(|| "an unknown address".into(), |node| node.address);
                return Err(LeaseError::NameTaken { name: node.name, address });
            }
            Swapped::NoLease => {
                let incarnation = Incarnation(0);
                return Err(LeaseError::LostLease { node: node.name, incarnation });
            }
        };
        Ok(Membership {
            incarnation: Incarnation(incarnation),
            node: node.into(),
            ttl: held.ttl,
            authority: held.authority,
            lost: held.lost,
            disowned: watch::Sender::new(false),
            lease: held.lease,
        })
    }

    async fn claim(&self, by: &Membership, key: &RegionKey) -> Result<Claim> {
        ask(self, by, key, None).await
    }

    async fn take_over(&self, by: &Membership, key: &RegionKey, expected: Epoch) -> Result<Claim> {
        ask(self, by, key, Some(expected)).await
    }

    async fn release(&self, by: &Membership, key: &RegionKey, epoch: Epoch) -> Result<Released> {
        key.check()?;
        let at = keys::region(key);
        // An epoch has only one owner, so the owner read here is the owner that is swapped.
        let owner = owner(self, find(self, &at).await?.as_ref())?;
        let is_own = |o: &Owner| o.epoch == epoch && o.incarnation == by.incarnation;
        let (true, Some(revision)) = (owner.as_ref().is_some_and(is_own), revision(self, epoch))
        else {
            return Ok(Released::Not(owner));
        };
        let write = Write::Delete;
        let swap = Swap { asked: "release a region", key: at, guard: Guard::At(revision), write };
        match self.swap(swap).await? {
            Swapped::Done(_) | Swapped::Refused { found: None, again: true } => Ok(Released::Free),
            Swapped::NoLease => Err(by.lost_lease()),
            Swapped::Refused { found, .. } => Ok(Released::Not(self::owner(self, found.as_ref())?)),
        }
    }

    async fn evict(&self, incarnation: Incarnation) -> Result<bool> {
        for members in [keys::NODES, keys::GATEWAYS] {
            let members = self.list(members).await?;
            let member = members.entries.iter().find(|entry| entry.created == incarnation.0);
            if let Some(member) = member {
                return self.revoke(member.lease).await;
            }
        }
        Ok(false)
    }

    async fn campaign(&self, by: &Membership) -> Result<Revision> {
        tokio::select! {
            biased;
            won = campaign(self, by) => won,
            _ = by.lost() => Err(by.lost_lease()),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Value>> {
        names::name("a value's key", key)?;
        let key = keys::value(key);
        let below = self.list(&key).await?;
        Ok(below.entries.iter().find(|entry| entry.key == key).map(Value::from))
    }

    async fn put_if(&self, key: &str, expected: Option<Revision>, data: Bytes) -> Result<Put> {
        names::name("a value's key", key)?;
        if data.len() > VALUE_MAX {
            return Err(LeaseError::Illegal {
                what: format!("the value of {key:?}"),
                found: format!("{} bytes", data.len()),
                rule: format!("must have at most {VALUE_MAX} bytes"),
            });
        }
        let refused = |found: Option<&StoreEntry>| Put::Refused(found.map(Value::from));
        let guard = match expected {
            None => Guard::Absent,
            // No key has this revision.
            Some(Revision(0)) => return Ok(refused(find(self, &keys::value(key)).await?.as_ref())),
            Some(Revision(revision)) => Guard::At(revision),
        };
        let write = Write::Put { data: data.clone(), lease: 0 };
        let swap = Swap { asked: "set a value", key: keys::value(key), guard, write };
        Ok(match self.swap(swap).await? {
            Swapped::Done(revision) => Put::Done(Revision(revision)),
            // The value is already as requested, probably by an earlier try of this request.
            Swapped::Refused { found: Some(entry), again: true } if entry.data == data => {
                Put::Done(Revision(entry.changed))
            }
            Swapped::Refused { found, .. } => refused(found.as_ref()),
            Swapped::NoLease => refused(None),
        })
    }

    async fn get_or_create(&self, key: &str, data: Bytes) -> Result<Value> {
        // Read first: a gateway's user may read what it may not create.
        if let Some(value) = self.get(key).await? {
            return Ok(value);
        }
        loop {
            match self.put_if(key, None, data.clone()).await? {
                Put::Done(revision) => return Ok(Value { revision, data }),
                Put::Refused(Some(value)) => return Ok(value),
                // The value was removed meanwhile.
                Put::Refused(None) => {}
            }
        }
    }

    fn watch(&self) -> Watch {
        Watch::new(self.follow(""), self.epochs_above())
    }
}

fn whole_seconds(ttl: Duration) -> Result<Duration> {
    if (TTL_MIN..=TTL_MAX).contains(&ttl) {
        return Ok(Duration::from_secs(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)));
    }
    Err(LeaseError::Illegal {
        what: "a lease's time to live".into(),
        found: format!("{ttl:?}"),
        rule: format!("must be {TTL_MIN:?} to {TTL_MAX:?}"),
    })
}

/// Claims a region, or takes it over from the expected epoch.
async fn ask<S: Store>(
    store: &S,
    by: &Membership,
    key: &RegionKey,
    expected: Option<Epoch>,
) -> Result<Claim> {
    key.check()?;
    let at = keys::region(key);
    let mut me = Holder { node: by.node.name.clone(), incarnation: by.incarnation, since: None };
    let guard = match expected.map(|epoch| revision(store, epoch)) {
        None => Guard::Absent,
        Some(Some(revision)) => Guard::At(revision),
        Some(None) => {
            return Ok(Claim::Refused(owner(store, find(store, &at).await?.as_ref())?));
        }
    };
    if let Some(expected) = expected
        && let Some(entry) = find(store, &at).await?
    {
        // A concurrent owner is found by the swap.
        let owner = keys::owner(&entry, store.epochs_above())?;
        me.since = Some(owner.lineage).filter(|_| owner.epoch == expected);
    }
    let since = me.since;
    let write = Write::Put { data: keys::encode(&at, &me)?, lease: by.lease.id() };
    let asked = if expected.is_some() { "take a region over" } else { "claim a region" };
    match store.swap(Swap { asked, key: at, guard, write }).await? {
        Swapped::Done(revision) => {
            let epoch = Epoch(store.epochs_above() + revision);
            Ok(Claim::Granted(Grant { epoch, lineage: since.unwrap_or(epoch) }))
        }
        Swapped::NoLease => Err(by.lost_lease()),
        Swapped::Refused { found, .. } => match owner(store, found.as_ref())? {
            // The asker's own, with the expected epoch or a later one: it has asked before.
            Some(Owner { incarnation, epoch, lineage, .. })
                if incarnation == by.incarnation && Some(epoch) > expected =>
            {
                Ok(Claim::Granted(Grant { epoch, lineage }))
            }
            owner => Ok(Claim::Refused(owner)),
        },
    }
}

async fn campaign<S: Store>(store: &S, by: &Membership) -> Result<Revision> {
    let me = Holder { node: by.node.name.clone(), incarnation: by.incarnation, since: None };
    let write = Write::Put { data: keys::encode(keys::LEADER, &me)?, lease: by.lease.id() };
    let mut leader = None;
    loop {
        let (key, guard, write) = (keys::LEADER.into(), Guard::Absent, write.clone());
        match store.swap(Swap { asked: "lead", key, guard, write }).await {
            Ok(Swapped::Done(revision)) => return Ok(Revision(revision)),
            Ok(Swapped::NoLease) => return Err(by.lost_lease()),
            Ok(Swapped::Refused { found: Some(entry), .. }) => {
                if keys::decode::<Holder>(&entry)?.incarnation == by.incarnation {
                    return Ok(Revision(entry.created));
                }
                let follower = leader.get_or_insert_with(|| store.follow(keys::LEADER));
                gone(follower, entry.created).await;
            }
            Ok(Swapped::Refused { found: None, .. }) => {}
            Err(LeaseError::Unreachable { .. }) => tokio::time::sleep(CAMPAIGN_PAUSE).await,
            Err(e) => return Err(e),
        }
    }
}

/// Waits until the leadership that began at `created` has ended.
async fn gone(leader: &mut Follower, created: u64) {
    while let Some(told) = leader.recv().await {
        let (revision, leads) = match told {
            Ok(StoreEvent::All(listing)) => (listing.revision, !listing.entries.is_empty()),
            Ok(StoreEvent::Step(step)) => {
                (step.revision, step.keys.iter().any(|(_, e)| e.is_some()))
            }
            // Missed changes follow when the store is back.
            Err(_) => continue,
        };
        if revision > created && !leads {
            return;
        }
    }
}

/// The store revision of an epoch; `None`: no revision gives this epoch.
fn revision<S: Store>(store: &S, epoch: Epoch) -> Option<u64> {
    epoch.0.checked_sub(store.epochs_above()).filter(|revision| *revision > 0)
}

async fn find<S: Store>(store: &S, key: &str) -> Result<Option<StoreEntry>> {
    let below = store.list(key).await?;
    Ok(below.entries.into_iter().find(|entry| entry.key == key))
}

fn owner<S: Store>(store: &S, found: Option<&StoreEntry>) -> Result<Option<Owner>> {
    found.map(|entry| keys::owner(entry, store.epochs_above())).transpose()
}
