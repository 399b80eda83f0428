//! Updates in the making: events and positions as columns, cut where a response would be too large.

use bytes::Bytes;
use prost::Message;
use purview::interest::{Event, Position};

use super::convert::Fault;
use super::outbox::Outbox;
use super::proto::{Answer, Refusal, Response, SceneUpdate, Update, response};

/// Bytes from which on an update is cut.
const PART_BYTES: usize = 256 << 10;

/// Bytes of an event, of a position, and of what else a tick, an answer or a refusal has.
const EVENT_BYTES: usize = 17;
const POSITION_BYTES: usize = 20;
const REST_BYTES: usize = 64;

#[derive(Debug, Default)]
pub struct Draft {
    update: Update,
    bytes: usize,
    /// A part of the outcome was sent, and the last one was not.
    is_continued: bool,
}

/// What asked for a change: an item of a client's batch, or a scene.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeSource {
    /// `None`: the scene ticks by itself.
    pub change: Option<(u64, u32)>,
    pub scene: u64,
}

impl Draft {
    fn is_empty(&self) -> bool {
        let Update { scenes, refused, answers, .. } = &self.update;
        scenes.is_empty() && refused.is_empty() && answers.is_empty()
    }

    /// Sends what is here. `more`: the outcome goes on.
    fn send(&mut self, applied: u64, more: bool, outbox: &mut Outbox) {
        let mut update = std::mem::take(&mut self.update);
        (self.bytes, self.is_continued) = (0, more);
        (update.sequence, update.applied, update.more) = (outbox.number(), applied, more);
        let message = Some(response::Message::Update(update));
        outbox.push(Bytes::from(Response { message }.encode_to_vec()));
    }

    /// Ends the outcome of a batch, which is told in any case.
    pub fn answer(&mut self, applied: u64, outbox: &mut Outbox) {
        self.send(applied, false, outbox);
    }

    /// Ends the outcome of due ticks, if there is one.
    pub fn finish(&mut self, applied: u64, outbox: &mut Outbox) {
        if self.is_continued || !self.is_empty() {
            self.send(applied, false, outbox);
        }
    }

    /// Adds a refused change, or an item of it: its place in the columns, and its entity.
    pub fn refuse(
        &mut self,
        ChangeSource { change, scene }: ChangeSource,
        (item, entity): (Option<usize>, Option<u64>),
        Fault { reason, text }: Fault,
    ) {
        self.bytes += REST_BYTES + text.len();
        let (batch, change) = change.unzip();
        let (batch, item) = (batch.unwrap_or_default(), item.map(|item| item as u32));
        let reason = reason.into();
        self.update.refused.push(Refusal { batch, change, item, scene, entity, reason, text });
    }

    /// Sends a part if there is much.
    pub fn cut(&mut self, applied: u64, outbox: &mut Outbox) {
        if self.bytes >= PART_BYTES {
            self.send(applied, true, outbox);
        }
    }

    /// How many events the part has room for, at least one.
    pub fn event_room(&self) -> usize {
        PART_BYTES.saturating_sub(self.bytes + REST_BYTES) / EVENT_BYTES + 1
    }

    pub fn position_room(&self, events: usize) -> usize {
        let bytes = self.bytes + REST_BYTES + events * EVENT_BYTES;
        PART_BYTES.saturating_sub(bytes) / POSITION_BYTES
    }

    pub fn answered(&mut self, answer: Answer) {
        let ids = answer.observers.len() + answer.ids.len();
        self.bytes += REST_BYTES + 8 * ids + 12 * answer.x.len();
        self.update.answers.push(answer);
    }

    pub fn deleted(&mut self, scene: u64) {
        self.bytes += REST_BYTES;
        let deleted = true;
        self.update.scenes.push(SceneUpdate { scene, deleted, ..SceneUpdate::default() });
    }

    pub fn tick(
        &mut self,
        (scene, tick): (u64, u64),
        (events, positions): (&[Event], &[Position]),
    ) {
        self.bytes += events.len() * EVENT_BYTES + positions.len() * POSITION_BYTES + REST_BYTES;
        self.update.scenes.push(part(scene, tick, events, positions));
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
    use super::super::limits::Total;
    use super::super::proto::MOST_RESPONSE_BYTES;
    use super::*;
    use purview::scene::Pos;

    fn outbox() -> Outbox {
        Outbox::new(1 << 30, (&Total::default(), 1 << 30))
    }

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
    fn a_part_has_room_for_a_quarter_of_a_mebibyte() {
        let (mut draft, mut outbox) = (Draft::default(), outbox());
        let events = vec![Event { observer: 1, subject: 2, appears: true }; 10_000];
        let position = Position { id: 1 << 60, pos: Pos { x: -1, y: -1, z: -1 } };
        draft.tick((u64::MAX, u64::MAX), (&events, &[]));
        draft.cut(3, &mut outbox);
        assert_eq!(updates(&mut outbox), []);
        let places = vec![position; draft.position_room(0)];
        draft.tick((5, 9), (&[], &places));
        assert!(draft.event_room() <= 3, "{}", draft.event_room());
        draft.tick((5, 9), (&events[..3], &[]));
        draft.cut(3, &mut outbox);
        draft.finish(4, &mut outbox);
        let all = updates(&mut outbox);
        let numbers: Vec<_> = all.iter().map(|u| (u.sequence, u.applied, u.more)).collect();
        assert_eq!(numbers, [(1, 3, true), (2, 4, false)]);
        let len = all[0].encoded_len();
        assert!((PART_BYTES * 9 / 10..PART_BYTES * 11 / 10).contains(&len), "{len}");
    }

    #[test]
    fn due_ticks_without_an_outcome_have_no_update_and_a_batch_always_has_one() {
        let (mut draft, mut outbox) = (Draft::default(), outbox());
        draft.finish(4, &mut outbox);
        assert_eq!(updates(&mut outbox), []);
        draft.deleted(3);
        draft.finish(4, &mut outbox);
        assert!(updates(&mut outbox)[0].scenes[0].deleted);
        draft.answer(5, &mut outbox);
        assert_eq!((updates(&mut outbox)[0].applied, outbox.number()), (5, 3));
    }
}
