//! Sessions of one subject, one after the other: a stored value never goes back.
//!
//! | the player before | the next one begins with at least |
//! |---|---|
//! | its client was told that it has left | the value that the client was told before |
//! | another session has ended its session, or its client was lost | the same |
//! | its region has died | what was told before the last checkpoint may be: a while ago |
//! | the same, and the store has lost that checkpoint | any: another region may have it as it was long ago |

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use purview::scene::{EntityId, Epoch, Region, RegionId, Tick};

use super::game::{History, When};
use super::{Invariant, Judge, TICK};

/// A value that was told so long ago is in a checkpoint, or was reported by the session. Time without a
/// store does not count.
pub(super) const KEPT: Duration = Duration::from_secs(9);

/// What was told of a subject's value.
#[derive(Debug, Default)]
struct Account {
    current: Option<EntityId>,
    /// What the clients of that player were told, and when.
    told: VecDeque<(Duration, u64)>,
    /// The tick of the latest of it.
    tick: Tick,
    /// The region in which the player was when a client was told last, and the region's epoch.
    lived_in: Option<(RegionId, Epoch)>,
    /// The highest value at which a client was told that its player has left.
    stored: u64,
}

#[derive(Debug, Default)]
pub(super) struct Accounts {
    all: BTreeMap<u32, Account>,
    /// From which states regions went on.
    history: History,
}

/// How the names of clients begin, which are the subjects of their tokens.
pub const WALKER: &str = "walker ";

/// The claims of a client's token: its name again, so that claims of another subject are noticed.
pub fn claims_of(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

impl Accounts {
    /// A region acts, perhaps by a new owner.
    pub fn acts(&mut self, region: &Region) {
        self.history.acts(region);
    }

    /// Whether a later owner of the region went on from a state of before this time.
    fn went_back_behind(&self, (region, epoch): (RegionId, Epoch), at: Duration) -> bool {
        let tick = Tick((at.as_millis() / TICK.as_millis()) as u64);
        self.history.is_undone(When { region, epoch, tick })
    }
}

impl Judge {
    /// The rules of a region see whose each player is that lives there.
    pub(super) fn sees_accounts(&self, region: &Region) {
        let clients: Vec<EntityId> = self.inner().clients.keys().copied().collect();
        for id in clients {
            let Some(known) = region.known(id).filter(|known| known.is_real) else { continue };
            let account = known.account.cloned().unwrap_or_default();
            let subject = account.subject();
            if !subject.starts_with(WALKER) || account.claims() != claims_of(subject) {
                let text = format!("the rules are told {account:?} of {id}");
                return self.violated(Invariant::AccountTold, vec![id], text);
            }
        }
    }

    /// A client was told the value of its player at a tick, for the first time if it `begins`.
    pub fn value_told(&self, subject: u32, id: EntityId, (tick, value): (Tick, u64), begins: bool) {
        let now = self.journal.now();
        if begins && (self.has_given_way(subject, id) || self.is_overtaken(subject, id, tick)) {
            return;
        }
        // A region that was recovered tells an older value; what its last owner told then counts in that.
        let begins = begins || self.is_told_less(subject, id, value);
        let least = begins.then(|| self.least_value(subject, now)).flatten();
        if let Some((least, why, before)) = least
            && value < least
        {
            let text =
                format!("{id} of subject {subject} begins with {value} after {least}: {why}");
            let who = before.into_iter().chain([id]).collect();
            return self.violated(Invariant::StoredHolds, who, text);
        }
        let mut inner = self.inner();
        let lives_in = inner.acting.get(&id).map(|acting| (acting.region, acting.region_epoch));
        let account = inner.accounts.all.entry(subject).or_default();
        if begins {
            // What came before counts in the value with which this life begins.
            (account.current, account.told) = (Some(id), VecDeque::new());
        }
        if account.current == Some(id) {
            account.told.push_back((now, value));
            account.tick = tick;
            account.lived_in = lives_in.or(account.lived_in);
        }
    }

    /// A client that has read nothing for a while is told of a player that another session has replaced since.
    fn has_given_way(&self, subject: u32, id: EntityId) -> bool {
        let inner = self.inner();
        let account = inner.accounts.all.get(&subject);
        let next = account.filter(|account| account.current.is_some_and(|now| now != id));
        let began = next.and_then(|next| next.told.front()).map(|(at, _)| *at);
        let acted = inner.acting.get(&id).map(|acting| acting.at);
        began.is_some_and(|began| acted.is_some_and(|acted| acted < began))
    }

    /// The answer to a login was held for so long that a later login of the subject has the same player and
    /// was told of a later tick: the old answer does not undo that, and its session has given way.
    fn is_overtaken(&self, subject: u32, id: EntityId, tick: Tick) -> bool {
        let inner = self.inner();
        let account = inner.accounts.all.get(&subject);
        account.is_some_and(|account| account.current == Some(id) && account.tick > tick)
    }

    fn is_told_less(&self, subject: u32, id: EntityId, value: u64) -> bool {
        let inner = self.inner();
        let account =
            inner.accounts.all.get(&subject).filter(|account| account.current == Some(id));
        let last = account.and_then(|account| account.told.back());
        last.is_some_and(|(_, before)| value < *before)
    }

    /// A client was told that its player has left with this value.
    pub fn value_stored(&self, subject: u32, value: u64) {
        let mut inner = self.inner();
        let account = inner.accounts.all.entry(subject).or_default();
        account.stored = account.stored.max(value);
    }

    /// The least value with which the next player of a subject may begin, and why.
    fn least_value(
        &self,
        subject: u32,
        now: Duration,
    ) -> Option<(u64, &'static str, Option<EntityId>)> {
        let (told, stored, current, lived_in) = {
            let inner = self.inner();
            let account = inner.accounts.all.get(&subject)?;
            (account.told.clone(), account.stored, account.current, account.lived_in)
        };
        let last = told.back().map_or(now, |(at, _)| *at);
        let since = now.saturating_sub(last);
        let recovered = lived_in.is_some_and(|lived_in| self.has_new_owner(lived_in))
            || current.is_some_and(|id| self.is_recovered(id, since));
        let unkept = self.unkept_since(now);
        let until = match recovered {
            true => last.saturating_sub(KEPT + unkept),
            false => now,
        };
        let is_lost = lived_in.is_some_and(|lived_in| self.has_lost(lived_in, until));
        let told = told.iter().filter(|_| !is_lost);
        let told = told.filter(|(at, _)| *at <= until).map(|(_, value)| *value).max();
        match told {
            Some(told) if told > stored => Some((told, "a client was told it", current)),
            _ => Some((stored, "a client was told that its player has left with it", current)),
        }
    }

    fn has_new_owner(&self, (region, epoch): (RegionId, Epoch)) -> bool {
        self.inner().regions.get(&region).is_none_or(|owner| owner.epoch > epoch)
    }

    /// Whether a store that has broken its promise let a later owner of the region go on from a state of before this
    /// time.
    fn has_lost(&self, lived_in: (RegionId, Epoch), until: Duration) -> bool {
        let inner = self.inner();
        inner.checkpoints_lost.is_some() && inner.accounts.went_back_behind(lived_in, until)
    }
}
