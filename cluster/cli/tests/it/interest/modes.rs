//! Random histories in all modes, over the wire, against brute force.

use std::collections::BTreeMap;

use purview::interest::{Cap, Entity, Mode, PairRule, Radii, Reach, Rules, Sight};
use purview::scene::{Pos, RangeSet};
use purview_lab::interest::judge::Judge;
use purview_lab::rng::Rng;
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Delete, change};

use super::support::{GROUND, Outcome, Service, ask, runtime, scene, tick};

fn random_pos(rng: &mut Rng) -> Pos {
    let mut along = || rng.range(0, 10_000);
    let (x, z) = (along(), along());
    Pos { y: 300 * rng.range(0, 3), ..Pos::ground(x, z) }
}

/// All kinds of rules: kind 2 observes nothing, and kind 1 sees kind 0 in a way of its own.
fn rules() -> Vec<Rules> {
    let of = |mode, reach, own| {
        let rule = |observer, subject, reach| PairRule { observer, subject, reach };
        let blind = (0..3).map(|subject| rule(2, subject, None));
        let pairs = blind.chain([rule(1, 0, Some(own))]).collect();
        Rules { pairs, positions: true, ..Rules::new(GROUND, mode, reach) }
    };
    let circle = |height_cm| Reach::Circle(Radii { height_cm, ..Radii::new(800, 1_000) });
    let rings = |rings| Reach::Rings(rings);
    let patches = Mode::Patches { patch_cm: 450 };
    let three = rings(RangeSet::NEAR.or(RangeSet::MIDDLE));
    let circles = of(Mode::Circle, circle(None), Reach::Circle(Radii::new(2_000, 2_100)));
    let cap = Some(Cap { most: 3, margin_cm: 100 });
    vec![
        of(patches, three, rings(RangeSet::MIDDLE)),
        of(patches, rings(RangeSet::FULL), rings(RangeSet::FAR)),
        circles.clone(),
        of(Mode::Circle, circle(Some(300)), circle(Some(0))),
        of(Mode::All, Reach::All, Reach::All),
        Rules { cap, ..circles },
        Rules { cap, ..of(patches, three, three) },
    ]
}

struct World {
    judges: Vec<Judge>,
    alive: BTreeMap<u64, Entity>,
    born: u64,
}

impl World {
    /// Changes of a tick, for every scene: entities come, go, and move by steps and leaps.
    fn changes(&mut self, rng: &mut Rng) -> Vec<change::Change> {
        let (mut came, mut moved, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rng.below(4) {
            let (kind, plane, pos) = (rng.below(3) as u8, rng.range(0, 2), random_pos(rng));
            let id = self.born * 1_000_003;
            let entity = Entity { id, kind, plane, pos, sight: Sight::default() };
            came.push(entity);
            self.alive.insert(entity.id, entity);
            self.born += 1;
        }
        self.alive.retain(|id, entity| {
            match rng.below(20) {
                0 if !came.iter().any(|new| new.id == *id) => {
                    gone.push(*id);
                    return false;
                }
                1 => moved.push((*id, Pos { y: 0, ..random_pos(rng) })),
                2..12 => {
                    let mut step = |at: i32| (at + rng.range(-150, 151)).clamp(0, 9_999);
                    let pos = Pos::ground(step(entity.pos.x), step(entity.pos.z));
                    moved.push((*id, pos));
                }
                _ => return true,
            }
            entity.pos = moved[moved.len() - 1].1;
            true
        });
        for judge in &mut self.judges {
            came.iter().for_each(|e| judge.create(e.id, e.kind, e.plane, e.pos));
            moved.iter().for_each(|(id, pos)| judge.move_to(*id, *pos));
            gone.iter().for_each(|id| judge.delete(*id));
        }
        let gone = change::Change::Delete(Delete { ids: gone });
        vec![encode::create(&came), encode::moves(&moved), gone, encode::tick()]
    }

    fn judge(&mut self, outcome: &Outcome) -> usize {
        assert_eq!(outcome.refused, []);
        let mut count = 0;
        for (scene, judge) in self.judges.iter_mut().enumerate() {
            let parts = outcome.scenes.iter().filter(|part| part.scene == scene as u64);
            let positions: Vec<_> = parts.flat_map(encode::positions).collect();
            let events = outcome.events(scene as u64);
            assert_eq!(judge.tick(&events, &positions), [], "scene {scene}");
            count += events.len();
        }
        count
    }
}

/// Plays a history; returns every update's bytes of columns, in order.
fn history(threads: &str, seed: u64, ticks: usize) -> Vec<Outcome> {
    let service = Service::start(&["--threads", threads]);
    runtime().block_on(async {
        let (mut stream, rules) = (service.address().begin().await.unwrap(), rules());
        let create = rules.iter().enumerate().map(|(id, rules)| scene(id as u64, rules));
        stream.send(create.collect()).await.unwrap();
        let scenes = rules.len() as u64;
        let judges = rules.into_iter().map(Judge::new).collect();
        let mut world = World { judges, alive: BTreeMap::new(), born: 1 };
        let (mut rng, mut events, mut all) = (Rng::new(seed), 0, Vec::new());
        for _ in 0..ticks {
            let changes = world.changes(&mut rng);
            let of = |scene| changes.iter().map(move |kind| change(scene, kind.clone()));
            let outcome = ask(&mut stream, (0..scenes).flat_map(of).collect()).await;
            events += world.judge(&outcome);
            all.push(outcome);
        }
        assert!(events > 20 * ticks, "only {events} events");
        let last = ask(&mut stream, vec![tick(0)]).await;
        assert_eq!(last.events(0), []);
        all
    })
}

#[test]
fn every_mode_agrees_with_brute_force_on_any_number_of_threads() {
    assert_eq!(history("1", 7, 250), history("3", 7, 250));
}
