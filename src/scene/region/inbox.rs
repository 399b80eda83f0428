//! What waits for the next tick: inputs, and entities that are about to enter.
//!
//! While a neighbour is late the inbox grows. An input of a client is refused first: the client's session
//! keeps it until it is acknowledged, and sends it again. Other inputs have as much room again.

use rustc_hash::{FxHashMap, FxHashSet};

use super::waiting::Waiting;
use crate::scene::messages::{Input, Spawn};
use crate::scene::{EntityId, Epoch, SessionId, Tick};

/// Inputs of clients that wait for the next tick; of others as many again.
const MAX_QUEUED: usize = 65_536;

/// The tick inbox.
#[derive(Debug, Default)]
pub struct TickInbox {
    queued: Vec<Input>,
    /// The players that are presented among them, and by which sessions.
    presented: FxHashSet<(EntityId, SessionId)>,
    /// Presentations among them that do not count: of these entities and sessions, below an epoch, and as far as they
    /// are among so many first ones. The farther they reach the lower the epoch.
    dropped: FxHashMap<(EntityId, SessionId), Vec<(Epoch, usize)>>,
    /// How many entries that are.
    drops: usize,
    entering: Waiting<Spawn>,
    /// The tick in which a refused implausible message was logged last.
    implausible_at: Option<Tick>,
}

impl TickInbox {
    /// Keeps an input for the next tick. False when there is no room, and the input is lost.
    #[must_use]
    pub fn accept(&mut self, input: Input) -> bool {
        let client = matches!(input, Input::Client { .. });
        let room = if client { MAX_QUEUED } else { 2 * MAX_QUEUED };
        let accepted = self.queued.len() < room;
        if accepted {
            self.push(input);
        }
        accepted
    }

    /// Keeps an input for the next tick, whatever waits.
    pub fn push(&mut self, input: Input) {
        if let Input::Present(presented) = &input {
            self.presented.insert((presented.id, presented.session));
        }
        self.queued.push(input);
    }

    /// Takes all inputs, to apply them.
    pub fn take(&mut self) -> Vec<Input> {
        self.forget_dropped();
        self.presented.clear();
        std::mem::take(&mut self.queued)
    }

    /// Gives the memory of taken inputs back, for use in the next tick. What was pushed since stays.
    pub fn reuse(&mut self, mut taken: Vec<Input>) {
        taken.append(&mut self.queued);
        self.queued = taken;
    }

    /// Keeps only some inputs.
    pub fn retain(&mut self, keep: impl FnMut(&Input) -> bool) {
        self.forget_dropped();
        self.queued.retain(keep);
    }

    /// Drops what waits of a session's presentations of an entity, below an epoch; false when the session has presented
    /// nothing of it. The next one who takes the inputs looks for all of them at once.
    pub fn drop_presented(&mut self, whose: (EntityId, SessionId), below: Epoch) -> bool {
        if !self.presented.contains(&whose) {
            return false;
        }
        let of = self.dropped.entry(whose).or_default();
        while of.last().is_some_and(|(epoch, _)| *epoch <= below) {
            of.pop();
            self.drops -= 1;
        }
        of.push((below, self.queued.len()));
        self.drops += 1;
        if self.drops > self.queued.len() {
            self.forget_dropped();
        }
        true
    }

    fn forget_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        self.drops = 0;
        if !dropped.is_empty() {
            let mut at = 0..;
            self.queued.retain(|input| counts(&dropped, at.next().unwrap_or(0), input));
        }
    }

    /// The inputs that wait.
    pub fn queued(&self) -> impl Iterator<Item = &Input> {
        self.queued
            .iter()
            .enumerate()
            .filter(|(at, input)| counts(&self.dropped, *at, input))
            .map(|(_, input)| input)
    }

    /// An entity enters at the end of the tick's inputs.
    pub fn announce(&mut self, spawn: Spawn) {
        self.entering.push(spawn);
    }

    /// Whether an entity is about to enter.
    pub fn is_announced(&self, id: EntityId) -> bool {
        self.entering.has(id)
    }

    /// An entity does not enter after all; with `session` only if it is the player of that session.
    pub fn cancel(&mut self, id: EntityId, session: Option<SessionId>) -> Option<Spawn> {
        let own = |spawn: &&Spawn| session.is_none() || spawn.session == session;
        self.entering.first_of(id).filter(own)?;
        self.entering.take_first_of(id)
    }

    /// Takes the entities that enter now.
    pub fn take_entering(&mut self) -> impl Iterator<Item = Spawn> + use<> {
        self.entering.take()
    }

    /// The entities that are about to enter, for a snapshot.
    pub fn entering(&self) -> impl Iterator<Item = &Spawn> {
        self.entering.iter()
    }

    /// The inbox of a snapshot.
    pub fn restore(&mut self, queued: Vec<Input>, entering: Vec<Spawn>) {
        self.entering = entering.into_iter().collect();
        queued.into_iter().for_each(|input| self.push(input));
    }

    /// Notes that an implausible message was refused. Says whether it is the first one in this tick.
    pub fn note_implausible(&mut self, tick: Tick) -> bool {
        self.implausible_at.replace(tick) != Some(tick)
    }

    /// The last input, for a test that feeds it to another region.
    #[cfg(test)]
    pub fn pop(&mut self) -> Option<Input> {
        self.queued.pop()
    }
}

/// Whether an input, before which so many wait, is none of the presentations that were dropped.
fn counts(
    dropped: &FxHashMap<(EntityId, SessionId), Vec<(Epoch, usize)>>,
    at: usize,
    input: &Input,
) -> bool {
    let Input::Present(presented) = input else { return true };
    let of = dropped.get(&(presented.id, presented.session)).into_iter().flatten();
    !of.into_iter().any(|(below, first)| at < *first && presented.epoch < *below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::SessionId;
    use crate::scene::messages::Presented;

    fn presented(id: u64, epoch: u64) -> Input {
        Input::Present(Box::new(Presented {
            id: EntityId(id),
            session: SessionId(id),
            epoch: Epoch(epoch),
            tick: Tick(1),
            since_ms: 1,
            ..Presented::default()
        }))
    }

    fn hold(id: u64) -> Input {
        Input::Hold { id: EntityId(id), session: SessionId(1) }
    }

    fn named<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> Vec<(Option<EntityId>, u64)> {
        let epoch = |input: &Input| match input {
            Input::Present(presented) => presented.epoch.0,
            _ => u64::MAX,
        };
        inputs.into_iter().map(|input| (input.entity(), epoch(input))).collect()
    }

    #[test]
    fn presentations_are_dropped_as_if_each_were_looked_for_at_once() {
        for seed in 1..40_u64 {
            let (mut inbox, mut at_once) = (TickInbox::default(), Vec::new());
            let mut random = seed;
            let mut draw = |below: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % below
            };
            for _ in 0..300 {
                let (id, epoch) = (draw(5), draw(6));
                match draw(7) {
                    0..=2 => {
                        inbox.push(presented(id, epoch));
                        at_once.push(presented(id, epoch));
                    }
                    3 => {
                        inbox.push(hold(id));
                        at_once.push(hold(id));
                    }
                    4 | 5 => {
                        inbox.drop_presented((EntityId(id), SessionId(id)), Epoch(epoch));
                        at_once.retain(|input| match input {
                            Input::Present(old) => old.id.0 != id || old.epoch.0 >= epoch,
                            _ => true,
                        });
                    }
                    _ => assert_eq!(named(inbox.queued()), named(&at_once)),
                }
            }
            assert_eq!(named(inbox.queued()), named(&at_once));
            assert_eq!(named(&inbox.take()), named(&at_once));
            assert!(inbox.dropped.is_empty() && inbox.drops == 0);
        }
    }

    #[test]
    fn dropping_presentations_that_nobody_has_made_is_not_remembered() {
        let mut inbox = TickInbox::default();
        (0..100).for_each(|n| inbox.push(hold(n)));
        for n in 0..10_000 {
            inbox.drop_presented((EntityId(n), SessionId(1)), Epoch(1));
            assert!(inbox.dropped.len() <= 101);
        }
        assert_eq!(inbox.queued().count(), 100);
    }
}
