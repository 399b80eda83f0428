//! What a region knows of the sessions of its workers: the last batch of each that has counted, and refused commands of
//! which the worker has not said that it knows. Part of the region's state.

use std::collections::{BTreeMap, VecDeque};

use purview::scene::mutants::{self, Mutant};
use purview::scene::{RegionId, Tick};
use purview::wire::peer::LeaseName;

use super::proto::{Batch, Lease, Refusal, Refused};

/// Most sessions that are known; the one whose last batch is the oldest gives way.
const MOST: usize = 64;

/// While a session has so many refusals that it does not know none of its batches counts.
const MOST_REFUSALS: usize = 65_536;

/// About how many bytes of refusals a response has.
const PART_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
struct Session {
    counted: Option<Batch>,
    at: Tick,
    durable: Option<Batch>,
    /// Batches that are not saved, and the ticks in which they counted.
    unsaved: VecDeque<(Tick, Batch)>,
    refusals: VecDeque<Refusal>,
    /// The number of the first one, from 1 on.
    first: u64,
    /// For how many looks the session was not listed.
    unlisted: u32,
}

/// What goes along with a region.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedSession {
    #[prost(uint64, tag = "1")]
    pub session: u64,
    #[prost(message, optional, tag = "2")]
    pub counted: Option<Batch>,
    #[prost(uint64, tag = "3")]
    pub at: u64,
    /// The last batch that is saved. In a checkpoint all are.
    #[prost(message, optional, tag = "4")]
    pub durable: Option<Batch>,
    #[prost(message, repeated, tag = "5")]
    pub refusals: Vec<Refusal>,
}

#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<u64, Session>);

pub fn batch(name: LeaseName, seq: u64) -> Batch {
    Batch { lease: Some(lease(name)), seq }
}

pub fn lease(name: LeaseName) -> Lease {
    Lease { region: name.region.0, epoch: name.epoch.0, number: name.number }
}

impl Ledger {
    fn session(&mut self, session: u64) -> &mut Session {
        self.0.entry(session).or_insert_with(|| Session { first: 1, ..Session::default() })
    }

    pub fn may_count(&self, session: u64) -> bool {
        self.0.get(&session).is_none_or(|known| known.refusals.len() < MOST_REFUSALS)
    }

    pub fn count(&mut self, session: u64, batch: Batch, now: Tick) {
        let known = self.session(session);
        (known.counted, known.at) = (Some(batch), now);
        known.unsaved.push_back((now, batch));
        if self.0.len() > MOST {
            let oldest = self.0.iter().min_by_key(|(_, known)| known.at).map(|(id, _)| *id);
            oldest.into_iter().for_each(|id| drop(self.0.remove(&id)));
        }
    }

    pub fn saved(&mut self, tick: Tick) {
        let early = mutants::has(Mutant::DurableEarly);
        for known in self.0.values_mut() {
            while known.unsaved.front().is_some_and(|(at, _)| *at <= tick || early) {
                known.durable = known.unsaved.pop_front().map(|(_, batch)| batch);
            }
        }
    }

    /// The last batch of a session, and the last one that is saved.
    pub fn of(&self, session: u64) -> (Option<Batch>, Option<Batch>) {
        self.0.get(&session).map_or((None, None), |known| (known.counted, known.durable))
    }

    pub fn refuse(&mut self, session: u64, refusal: Refusal) {
        self.session(session).refusals.push_back(refusal);
    }

    pub fn got(&mut self, session: u64, last: u64) {
        let Some(known) = self.0.get_mut(&session) else { return };
        while known.first <= last && known.refusals.pop_front().is_some() {
            known.first += 1;
        }
    }

    /// What sessions are to be told, each that is listed. One that is not listed for long has ended.
    pub fn refused(
        &mut self,
        (region, epoch): (RegionId, u64),
        is_listed: impl Fn(u64) -> bool,
        patience: u32,
    ) -> Vec<(u64, Refused)> {
        let mut all = Vec::new();
        for (session, known) in self.0.iter_mut().filter(|(_, known)| !known.refusals.is_empty()) {
            if !is_listed(*session) {
                known.unlisted += 1;
                if known.unlisted > patience {
                    known.refusals.clear();
                }
                continue;
            }
            known.unlisted = 0;
            let mut bytes = 0;
            let few = known.refusals.iter().take_while(|refusal| {
                bytes += prost::Message::encoded_len(*refusal) + 4;
                bytes <= PART_BYTES
            });
            let refusals: Vec<Refusal> = few.cloned().collect();
            let last = known.first + refusals.len() as u64 - 1;
            all.push((*session, Refused { region: region.0, epoch, last, refusals }));
        }
        all
    }

    /// To be sent along with the region, or kept.
    pub fn save(&self) -> Vec<SavedSession> {
        let save = |(session, known): (&u64, &Session)| SavedSession {
            session: *session,
            counted: known.counted,
            at: known.at.0,
            durable: known.durable,
            refusals: known.refusals.iter().cloned().collect(),
        };
        self.0.iter().map(save).collect()
    }

    /// As it was saved: where the region has moved, or in a checkpoint.
    pub fn restored(saved: Vec<SavedSession>, has_moved: bool) -> Ledger {
        let restore = |saved: SavedSession| {
            let SavedSession { session, counted, at, durable, refusals } = saved;
            let unsaved = counted.filter(|_| has_moved).map(|batch| (Tick(at), batch));
            let known = Session {
                counted,
                at: Tick(at),
                durable: if has_moved { durable } else { counted },
                unsaved: unsaved.into_iter().collect(),
                refusals: refusals.into(),
                first: 1,
                unlisted: 0,
            };
            (session, known)
        };
        Ledger(saved.into_iter().map(restore).collect())
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::Epoch;

    use super::*;

    const R: RegionId = RegionId(3);

    fn name(number: u64, seq: u64) -> Batch {
        batch(LeaseName { region: R, epoch: Epoch(7), number }, seq)
    }

    #[test]
    fn a_batch_is_durable_when_a_later_tick_is_saved() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.of(5), (None, None));
        (1..4).for_each(|n| ledger.count(5, name(1, n), Tick(n)));
        ledger.count(6, name(2, 1), Tick(3));
        assert_eq!(ledger.of(5), (Some(name(1, 3)), None));
        ledger.saved(Tick(2));
        assert_eq!(ledger.of(5), (Some(name(1, 3)), Some(name(1, 2))));
        let moved = Ledger::restored(ledger.save(), true);
        assert_eq!(moved.of(5), ledger.of(5));
        let recovered = Ledger::restored(ledger.save(), false);
        assert_eq!(recovered.of(5), (Some(name(1, 3)), Some(name(1, 3))));
        assert_eq!(recovered.of(6), (Some(name(2, 1)), Some(name(2, 1))));
    }

    #[test]
    fn the_session_whose_last_batch_is_the_oldest_gives_way() {
        let mut ledger = Ledger::default();
        ledger.count(900, name(1, 1), Tick(1));
        (0..200).for_each(|session| ledger.count(session, name(1, 1), Tick(2 + session)));
        assert_eq!((ledger.0.len(), ledger.of(900)), (MOST, (None, None)));
        assert!(ledger.of(199).0.is_some());
    }

    #[test]
    fn refusals_are_told_until_the_session_knows_them_or_has_ended() {
        let mut ledger = Ledger::default();
        let refusal = |place| Refusal { batch: Some(name(1, 1)), place, ..Refusal::default() };
        (0..3).for_each(|place| ledger.refuse(5, refusal(place)));
        ledger.refuse(6, refusal(0));
        let told = ledger.refused((R, 7), |session| session == 5, 2);
        assert_eq!((told.len(), told[0].0, told[0].1.last), (1, 5, 3));
        ledger.got(5, 2);
        let told = ledger.refused((R, 7), |_| true, 2);
        assert_eq!((told[0].1.refusals[0].place, told[0].1.last), (2, 3));
        ledger.got(5, 3);
        assert_eq!(ledger.refused((R, 7), |session| session == 5, 2), []);
        (0..3).for_each(|_| drop(ledger.refused((R, 7), |_| false, 2)));
        assert_eq!(ledger.refused((R, 7), |_| true, 2), []);
    }
}
