//! Players across a border agree on a tick's view lists almost without asking in vain: each region predicts the lists of
//! the ghosts near it. The lists are the stable ones in every tick, whether predictions hold or not.

use std::collections::BTreeSet;

use crate::support::brute::{self, Pair};
use crate::support::world::World;
use crate::support::{Rng, small_scene};
use purview::scene::{Plane, Pos, RangeSet, SceneSpec, SessionId, Visibility};

const SIDE: i32 = 25_600;
const TICKS: usize = 40;

/// Four regions that meet in the middle; lists of at most 12.
fn scene(margin_cm: i32) -> SceneSpec {
    SceneSpec {
        visibility: Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 },
        view_cap: 12,
        view_margin_cm: margin_cm,
        rates: SceneSpec::default().rates,
        handoff_margin_cm: SceneSpec::default().handoff_margin_cm,
        ..small_scene((2, 2), SIDE / 2, 3_200)
    }
}

/// A place in the crowd around the middle: more likely near it.
fn place(rng: &mut Rng) -> Pos {
    let mut along = || SIDE / 2 + (0..3).map(|_| rng.range(-900, 901)).sum::<i32>();
    Pos::ground(along(), along())
}

struct Crowd {
    w: World,
    rng: Rng,
    walkers: Vec<(SessionId, Pos)>,
}

impl Crowd {
    fn new(margin_cm: i32, seed: u64) -> Crowd {
        let (mut w, mut rng) = (World::new(scene(margin_cm), seed), Rng::new(seed ^ 0x9ea));
        let mut join = |_| (w.join(Plane(0), place(&mut rng), RangeSet::FULL), place(&mut rng));
        let walkers = (0..120).map(&mut join).collect();
        let mut crowd = Crowd { w, rng, walkers };
        (0..4).for_each(|_| crowd.step());
        crowd
    }

    /// Every player goes 14 cm along each axis at most.
    fn step(&mut self) {
        for (session, to) in &mut self.walkers {
            let id = self.w.clients[session].entity;
            let Some(at) = self.w.truth.get(&id).map(|t| t.pos) else { continue };
            let toward = |at: i32, to: i32| at + (to - at).clamp(-14, 14);
            let next = Pos::ground(toward(at.x, to.x), toward(at.z, to.z));
            if next == *to {
                *to = place(&mut self.rng);
            }
            self.w.walk(*session, next);
        }
        self.w.step();
    }
}

/// The changes of links across a border, and the messages that they took.
fn run(margin_cm: i32, seed: u64) -> (u64, u64) {
    let mut crowd = Crowd::new(margin_cm, seed);
    let (mut before, said) = (crowd.w.links(), crowd.w.view_messages);
    let mut changes = 0;
    for tick in 0..TICKS {
        crowd.step();
        let w = &crowd.w;
        let (links, odd) = w.links_and_odd();
        assert_eq!(odd, BTreeSet::new(), "seed {seed}, tick {tick}: only one of two has a link");
        let all = &w.truth;
        // What was linked counts as nearer by the margin: the outcome is the only stable one.
        let stable = brute::greedy(&w.scene, all, &before);
        let wrong: Vec<_> = links.symmetric_difference(&stable).collect();
        assert!(wrong.is_empty(), "seed {seed}, tick {tick}: not as is stable: {wrong:?}");
        let owner = |id| w.scene.map.at(Plane(0), all[&id].pos).map(|region| region.id);
        let crosses = |(a, b): &&Pair| owner(*a) != owner(*b);
        changes += links.symmetric_difference(&before).filter(crosses).count() as u64;
        before = links;
    }
    (changes, crowd.w.view_messages - said)
}

#[test]
fn players_across_borders_agree_with_few_messages_more_than_their_links_change() {
    for (margin_cm, most) in [(0, 2.5), (150, 5.5)] {
        let (changes, messages) = run(margin_cm, 3);
        assert!(changes > 300, "margin {margin_cm}: only {changes} changes");
        // A link begins with two messages, and ends with one or two.
        let each = messages as f64 / changes as f64;
        assert!(each < most, "margin {margin_cm}: {messages} messages for {changes} changes");
    }
}

#[test]
fn a_crowd_that_stands_says_nothing_more() {
    let mut crowd = Crowd::new(150, 5);
    (0..20).for_each(|_| crowd.step());
    crowd.w.steps(4);
    let said = crowd.w.view_messages;
    crowd.w.steps(20);
    assert_eq!(crowd.w.view_messages, said);
}
