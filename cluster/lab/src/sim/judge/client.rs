//! What the judge knows of a client, and what that one is shown.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{EntityId, Pos, Seq};
use rustc_hash::FxHashMap;

use super::rules::Place;
use super::trails::{Mark, Trails};

/// An act that a client was shown: its number, when, and as of when.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownAct {
    pub number: u64,
    pub at: Duration,
    pub of: Duration,
}

/// Where a client was shown another one, by whom it may have been left since. One is looked up for each that has moved in
/// each frame: they are kept apart from what is asked seldom.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The last picture in which it was, and where.
    picture: u32,
    pos: Pos,
    /// The last place that was looked up.
    pub mark: Mark,
}

/// What a client was shown of another one's acts.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// The last one.
    pub act: Option<ShownAct>,
    /// Since when the other one is shown.
    pub since: Duration,
}

/// What the judge knows of a client.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its last input.
    pub said: Seq,
    /// Where that puts it.
    pub place: Place,
    /// The last input that was acknowledged.
    pub acked: Seq,
    /// When it has joined or jumped last, or has begun to leave.
    pub leapt: Duration,
    /// It has no connection.
    pub away: bool,
    /// Whom it was ever shown, by their numbers.
    seen: Vec<Seen>,
    /// And of whose acts it may have heard.
    pub(super) heard: FxHashMap<EntityId, Heard>,
    /// Its picture, from 1; with each that is told anew comes another one.
    picture: u32,
    /// How many are in it.
    shown: usize,
}

impl Default for Client {
    fn default() -> Client {
        let (said, place, acked, leapt, away, seen, heard, shown) = Default::default();
        Client { said, place, acked, leapt, away, seen, heard, picture: 1, shown }
    }
}

impl Client {
    /// Who is shown to it, and where.
    pub(super) fn shown(&self, trails: &Trails) -> BTreeMap<EntityId, Pos> {
        let all = self.seen.iter().enumerate();
        let here = all.filter(|(_, seen)| seen.picture == self.picture);
        here.map(|(number, seen)| (trails.of(number).0, seen.pos)).collect()
    }

    /// How many are shown to it.
    pub(super) fn crowd(&self) -> usize {
        self.shown
    }

    /// It is told anew who is there.
    pub(super) fn begins_anew(&mut self) {
        (self.picture, self.shown) = (self.picture + 1, 0);
    }

    /// It is told that somebody is somewhere. Gives where that one was in this picture or, where it was not told of it
    /// since it `began_anew`, in the one before; and what else it was shown of that one.
    pub(super) fn shows(
        &mut self,
        number: usize,
        pos: Pos,
        began_anew: bool,
    ) -> (Option<Pos>, &mut Seen) {
        if number >= self.seen.len() {
            self.seen.resize(number + 1, Seen::default());
        }
        let seen = &mut self.seen[number];
        let here = seen.picture == self.picture;
        let before = here || (began_anew && seen.picture + 1 == self.picture);
        let known = before.then_some(seen.pos);
        self.shown += usize::from(!here);
        (seen.picture, seen.pos) = (self.picture, pos);
        (known, seen)
    }

    /// It is told that somebody is gone.
    pub(super) fn hides(&mut self, number: usize) {
        let here = self.seen.get_mut(number).filter(|seen| seen.picture == self.picture);
        if let Some(seen) = here {
            seen.picture = 0;
            self.shown -= 1;
        }
    }
}
