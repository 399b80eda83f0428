//! Updates in the making: events and positions as columns, cut where a response would be too large.

use bytes::Bytes;
use prost::Message;
use purview::interest::{Event, Position};

use super::convert::Fault;
use super::outbox::Outbox;
use super::proto::{Refusal, Response, SceneUpdate, Update, response};

/// Bytes from which on an update is cut.
const PART_BYTES: usize = 1 << 20;

/// Bytes of an event, of a position, and of what else a tick or a refusal has.
const EVENT_BYTES: usize = 17;
const POSITION_BYTES: usize = 20;
const REST_BYTES: usize = 64;

/// The update that is being made.
#[derive(Debug, Default)]
pub struct Draft {
    update: Update,
    bytes: usize,
    /// A part of the outcome was sent, and the last one was not.
    is_continued: bool,
}

/// Where a refused change is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    pub batch: u64,
    pub change: u32,
    pub scene: u64,
}

impl Draft {
    /// Whether there is nothing to send.
    fn is_empty(&self) -> bool {
        self.update.scenes.is_empty() && self.update.refused.is_empty()
    }

    /// Sends what is here. `more`: the outcome goes on.
    fn send(&mut self, applied: u64, more: bool, outbox: &mut Outbox) {
        let mut update = std::mem::take(&mut self.update);
        (self.bytes, self.is_continued) = (0, more);
        (update.sequence, update.applied, update.more) = (outbox.number(), applied, more);
        let message = Some(response::Message::Update(update));
        outbox.push(Bytes::from(Response { message }.encode_to_vec()));
    }

    /// Counts bytes, and sends a part if they are many.
    fn grow(&mut self, bytes: usize, applied: u64, outbox: &mut Outbox) {
        self.bytes += bytes;
        if self.bytes >= PART_BYTES {
            self.send(applied, true, outbox);
        }
    }

    /// Ends the outcome of a batch or of due ticks.
    pub fn finish(&mut self, applied: u64, outbox: &mut Outbox) {
        if self.is_continued || !self.is_empty() {
            self.send(applied, false, outbox);
        }
    }

    /// Adds a refused item: its place in the columns, and its entity.
    pub fn refuse(
        &mut self,
        Place { batch, change, scene }: Place,
        (item, entity): (usize, u64),
        Fault { reason, text }: Fault,
    ) {
        self.bytes += REST_BYTES + text.len();
        let (item, reason) = (item as u32, reason.into());
        self.update.refused.push(Refusal { batch, change, item, scene, entity, reason, text });
    }

    /// Sends a part if there is much.
    pub fn cut(&mut self, applied: u64, outbox: &mut Outbox) {
        self.grow(0, applied, outbox);
    }

    /// Adds a deleted scene.
    pub fn deleted(&mut self, scene: u64) {
        self.bytes += REST_BYTES;
        let deleted = true;
        self.update.scenes.push(SceneUpdate { scene, deleted, ..SceneUpdate::default() });
    }

    /// Adds a tick of a scene, in as many parts as it needs.
    pub fn tick(
        &mut self,
        (scene, tick): (u64, u64),
        (mut events, mut positions): (&[Event], &[Position]),
        applied: u64,
        outbox: &mut Outbox,
    ) {
        loop {
            let room = PART_BYTES.saturating_sub(self.bytes + REST_BYTES);
            let (some, rest) = events.split_at(events.len().min(room / EVENT_BYTES + 1));
            let room = room.saturating_sub(some.len() * EVENT_BYTES);
            let most = if rest.is_empty() { room / POSITION_BYTES + 1 } else { 0 };
            let (places, later) = positions.split_at(positions.len().min(most));
            self.update.scenes.push(part(scene, tick, some, places));
            let bytes = some.len() * EVENT_BYTES + places.len() * POSITION_BYTES + REST_BYTES;
            self.grow(bytes, applied, outbox);
            (events, positions) = (rest, later);
            if events.is_empty() && positions.is_empty() {
                return;
            }
        }
    }
}

fn part(scene: u64, tick: u64, events: &[Event], places: &[Position]) -> SceneUpdate {
    SceneUpdate {
        scene,
        tick,
        deleted: false,
        observers: events.iter().map(|event| event.observer).collect(),
        subjects: events.iter().map(|event| event.subject).collect(),
        appears: events.iter().map(|event| event.appears).collect(),
        moved: places.iter().map(|one| one.id).collect(),
        x: places.iter().map(|one| one.pos.x).collect(),
        y: places.iter().map(|one| one.pos.y).collect(),
        z: places.iter().map(|one| one.pos.z).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::MOST_RESPONSE_BYTES;
    use super::*;
    use purview::scene::Pos;

    fn updates(outbox: &mut Outbox) -> Vec<Update> {
        let mut all = Vec::new();
        while let Some(bytes) = outbox.unsent() {
            assert!(bytes.len() < MOST_RESPONSE_BYTES, "{} bytes", bytes.len());
            let response = Response::decode(bytes.clone()).unwrap();
            let Some(response::Message::Update(update)) = response.message else { panic!() };
            all.push(update);
            outbox.sent();
        }
        all
    }

    #[test]
    fn a_large_tick_comes_in_parts_and_nothing_is_lost() {
        let event = |n| Event { observer: n, subject: n + 1, appears: n % 3 == 0 };
        let position = |n: u64| Position { id: n, pos: Pos { x: n as i32, y: -1, z: 7 } };
        let events: Vec<_> = (0..200_000).map(event).collect();
        let positions: Vec<_> = (0..150_000).map(position).collect();
        let (mut draft, mut outbox) = (Draft::default(), Outbox::new(1 << 30));
        draft.tick((5, 9), (&events, &positions), 3, &mut outbox);
        draft.tick((6, 1), (&[], &[]), 3, &mut outbox);
        draft.finish(4, &mut outbox);
        let all = updates(&mut outbox);
        assert!(all.len() > 4, "{} updates", all.len());
        let numbers: Vec<_> = all.iter().map(|u| (u.sequence, u.applied, u.more)).collect();
        let last = all.len() as u64;
        let wanted = (1..last).map(|n| (n, 3, true)).chain([(last, 4, false)]);
        assert_eq!(numbers, wanted.collect::<Vec<_>>());
        let scenes: Vec<_> = all.iter().flat_map(|update| &update.scenes).collect();
        assert_eq!(scenes.iter().filter(|s| (s.scene, s.tick) == (6, 1)).count(), 1);
        let (mut seen, mut moved) = (Vec::new(), Vec::new());
        for part in scenes {
            for (i, observer) in part.observers.iter().copied().enumerate() {
                let (subject, appears) = (part.subjects[i], part.appears[i]);
                seen.push(Event { observer, subject, appears });
            }
            for (i, id) in part.moved.iter().copied().enumerate() {
                let pos = Pos { x: part.x[i], y: part.y[i], z: part.z[i] };
                moved.push(Position { id, pos });
            }
        }
        assert_eq!((seen, moved), (events, positions));
    }

    #[test]
    fn without_an_outcome_there_is_no_update() {
        let (mut draft, mut outbox) = (Draft::default(), Outbox::new(1 << 30));
        draft.finish(4, &mut outbox);
        assert_eq!(updates(&mut outbox), []);
        draft.deleted(3);
        draft.finish(4, &mut outbox);
        assert!(updates(&mut outbox)[0].scenes[0].deleted);
    }
}
