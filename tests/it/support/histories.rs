//! What several tests do with histories: play one for each seed, walk two players side by side, and say what a
//! neighbour region says.

use bytes::Bytes;
use purview::scene::messages::{BorderBatch, Effect, EntityAction, Input, Order};
use purview::scene::{Epoch, Plane, Pos, RangeSet, RegionId, SceneSpec, SessionId, Tick};

use super::alone::forwarded;
use super::trial::Trial;
use super::world::World;
use super::{say_how_to_replay, seeds_are_given};

/// What happened in histories, to see that enough did.
#[derive(Debug, Default)]
pub struct Sum {
    pub deaths: usize,
    pub recovered: u64,
    /// Messages of former owners, and those that were recognised.
    pub late: u64,
    pub fenced: u64,
    pub resyncs: u64,
    pub handoffs: u64,
    pub relocations: u64,
    /// Layout changes, and those that were cancelled.
    pub changes: u64,
    pub called_off: u64,
    pub returns: u64,
    /// Values of properties.
    pub values: u64,
}

impl Sum {
    fn add(&mut self, w: &World) {
        self.deaths += w.kills.deaths.len();
        self.recovered += w.kills.recovered;
        self.late += w.kills.late;
        self.fenced += w.kills.fenced;
        self.fenced += w.regions.iter().map(|r| r.counts().fenced).sum::<u64>();
        self.resyncs += w.resyncs;
        self.handoffs += w.handoffs;
        self.relocations += w.relocations;
        self.changes += w.mapping.done;
        self.called_off += w.mapping.called_off;
        self.returns += w.clients.values().map(|c| c.returns).sum::<u64>();
        self.values += w.touches.as_ref().map_or(0, |touches| touches.count);
    }

    /// Fails unless enough happened to show something; seeds that are given may be few.
    pub fn shows(&self, is_enough: impl Fn(&Sum) -> bool) {
        println!("{self:?}");
        assert!(is_enough(self) || seeds_are_given(), "too little happened: {self:?}");
    }
}

/// Plays a history for each seed. A failure says how to replay its seed. If `PURVIEW_SEEDS` names the seeds, the others
/// are played all the same.
pub fn every_seed(
    file: &str,
    spec: &SceneSpec,
    seeds: impl Iterator<Item = u64>,
    go: impl Fn(&mut Trial),
) -> Sum {
    let (mut sum, mut failed) = (Sum::default(), 0);
    for seed in seeds {
        let mut t = Trial::new(spec.clone(), seed);
        let run = std::panic::AssertUnwindSafe(|| go(&mut t));
        if let Err(why) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed} failed at tick {}: {:?}", t.w.tick, t.w.kills.deaths);
            say_how_to_replay(file, seed);
            if !seeds_are_given() {
                std::panic::resume_unwind(why);
            }
            failed += 1;
        }
        sum.add(&t.w);
    }
    assert_eq!(failed, 0);
    sum
}

/// An action with a number.
pub fn wave(number: u32) -> Order {
    Order::Act(EntityAction::new(format!("{number}")))
}

/// The numbers of the actions that a client has received.
pub fn waves_of(w: &World, session: SessionId) -> Vec<u32> {
    let number = |payload: &Bytes| std::str::from_utf8(payload).ok()?.parse().ok();
    w.clients[&session].acts.iter().map(|(.., payload)| number(payload).expect("a wave")).collect()
}

/// Two players who walk side by side and see each other. The first one acts in every third step.
pub struct SideBySide {
    pub a: SessionId,
    pub b: SessionId,
    acts: u32,
}

impl SideBySide {
    pub fn join(w: &mut World, x: i32, z: i32) -> SideBySide {
        let a = w.join(Plane(0), Pos::ground(x, z), RangeSet::FULL);
        let b = w.join(Plane(0), Pos::ground(x + 250, z + 100), RangeSet::FULL);
        SideBySide { a, b, acts: 0 }
    }

    /// Both say where they walk in step `i`.
    pub fn walk(&mut self, w: &mut World, i: i32, at: i32) {
        w.walk(self.a, Pos::ground(at, at));
        w.walk(self.b, Pos::ground(at + 250, at + 100));
        if i % 3 == 0 {
            w.order(self.a, wave(i as u32));
            self.acts += 1;
        }
    }

    /// A step in which both must receive a frame that acknowledges their inputs.
    pub fn step(&self, w: &mut World) {
        w.step();
        let (ca, cb) = (&w.clients[&self.a], &w.clients[&self.b]);
        assert_eq!((ca.ack, cb.ack), (ca.seq, cb.seq), "an input waits for another tick");
        assert_eq!(ca.frames.last(), Some(&w.tick), "a tick without a frame");
    }

    /// Neither was told that the other left, and every act arrived once and in order.
    pub fn check(&self, w: &World) {
        for (me, other) in [(self.a, self.b), (self.b, self.a)] {
            let c = &w.clients[&me];
            let other = w.clients[&other].entity;
            assert_eq!((c.left.len(), c.entered.len()), (0, 1));
            assert_eq!(c.shown[&other], (w.truth[&other].pos, w.tick));
            assert!(c.frames.windows(2).all(|f| f[1] == f[0].next()), "one frame per tick");
        }
        let want = (0..self.acts).map(|i| i * 3);
        assert_eq!(waves_of(w, self.b), want.collect::<Vec<_>>(), "once each and in order");
    }
}

/// The border batch of a neighbour in which nothing has changed since its tick `prev`.
pub fn empty_batch(from: RegionId, tick: Tick, prev: Tick, full: bool) -> Input {
    let empty = BorderBatch::empty((from, Epoch(1), Epoch(1)), (tick, prev));
    Input::Border(Box::new(BorderBatch { full, ..empty }))
}

/// Whether the region `me` asks the region `of` for everything again.
pub fn asks_for_resync(effects: &[Effect], me: RegionId, of: RegionId) -> bool {
    forwarded(of, effects).iter().any(|input| matches!(input, Input::BorderLost(id) if *id == me))
}
