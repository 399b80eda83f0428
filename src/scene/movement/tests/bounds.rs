//! Properties that hold for every sequence of commands, whatever a client claims.

use proptest::prelude::*;

use super::super::walk::Walk;
use super::*;

/// One attempt of a cheater. The cheater knows all rules; its account is the server's.
#[derive(Debug, Clone)]
struct Attempt {
    /// Server time before the attempt, milliseconds.
    wait: u64,
    /// How far the client's clock advances, milliseconds.
    clock: u64,
    what: What,
    /// How far from its position the cheater claims to start, centimetres along x and z.
    ahead: (i32, i32),
}

#[derive(Debug, Clone)]
enum What {
    On,
    /// Walk in this direction, centimetres per second.
    Straight(i32, i32),
    Steps(String),
    Stand,
    /// A command that is refused.
    Wrong,
    /// A command as if the last correction had not arrived.
    Outdated,
}

fn attempts(what: impl Strategy<Value = What> + 'static) -> impl Strategy<Value = Vec<Attempt>> {
    let wait =
        prop_oneof![2 => Just(0_u64), 4 => Just(100), 1 => (0_u64..20).prop_map(|n| n * 100)];
    let clock = prop_oneof![
        2 => Just(0_u64),
        3 => Just(100),
        2 => 0_u64..1_500,
        1 => 0_u64..20_000,
    ];
    let ahead = prop_oneof![3 => Just((0, 0)), 3 => (0..=25, Just(0)), 1 => (-30..30, -30..30)];
    let attempt = (wait, clock, what, ahead).prop_map(|(wait, clock, what, ahead)| Attempt {
        wait,
        clock,
        what,
        ahead,
    });
    prop::collection::vec(attempt, 1..150)
}

struct Cheat {
    scene: Scene,
    now: u64,
    clock: u64,
    own: Walk,
}

impl Cheat {
    fn new(pos: Pos, blocked: &[(i32, i32)]) -> Cheat {
        Cheat { scene: Scene::new(pos, blocked), now: 0, clock: 0, own: Walk::stand(pos) }
    }

    fn attempt(&mut self, a: &Attempt) {
        self.now += a.wait;
        self.clock += a.clock;
        let here = self.own.at(ClientMs(self.clock));
        let start = Pos { x: here.x + a.ahead.0, z: here.z + a.ahead.1, ..here };
        let correction = self.scene.mover.correction();
        let (go, correction) = match &a.what {
            What::On => (Go::On, correction),
            What::Straight(vx, vz) => {
                let v = Vector { vx_mm_s: vx * 10, vz_mm_s: vz * 10, ..Vector::stand(start) };
                (Go::Walk(v.into()), correction)
            }
            What::Steps(steps) => {
                let path = Path::new(start, steps.parse().unwrap(), SPEED, 100);
                (Go::Walk(path.into()), correction)
            }
            What::Stand => (Go::Walk(Move::stand(start)), correction),
            What::Wrong => (Go::Walk(straight(start.x, start.z, 501, 0).into()), correction),
            What::Outdated => {
                (Go::Walk(straight(start.x, start.z, 500, 0).into()), correction.max(1) - 1)
            }
        };
        let told = self.scene.say_by(self.now, self.clock, go, correction);
        let on = self.scene.on();
        let at = ClientMs(self.clock);
        match (told, go) {
            (Ok(Accepted::Dropped), _) => {}
            (Ok(_), Go::On) => self.own.go_on(at, &on),
            (Ok(_), Go::Walk(motion)) => self.own = Walk::begin(motion, at, &on).unwrap(),
            (Err(refused), _) => {
                self.own = Walk::stand(refused.correction.motion.start());
                // A command refused for its clock was not recorded.
                self.clock -= a.clock;
            }
        }
    }
}

fn onwards() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => Just(What::On),
        6 => Just(What::Straight(500, 0)),
        1 => (100..500).prop_map(|v| What::Straight(v, 0)),
        2 => Just(What::Steps("7777".into())),
        1 => Just(What::Stand),
        2 => Just(What::Wrong),
        1 => Just(What::Outdated),
    ]
}

fn anywhere() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => Just(What::On),
        6 => (-350..350, -350..350).prop_map(|(x, z)| What::Straight(x, z)),
        4 => "[0-7]{1,4}".prop_map(What::Steps),
        1 => Just(What::Stand),
        1 => Just(What::Wrong),
        1 => Just(What::Outdated),
    ]
}

/// A room of 4 x 4 tiles from (10, 10). Its corners are open, but only to a diagonal squeeze.
fn room() -> Vec<(i32, i32)> {
    (10..14).flat_map(|i| [(i, 9), (i, 14), (9, i), (14, i)]).collect()
}

fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn no_client_gets_ahead_of_time_by_more_than_the_allowance(attempts in attempts(onwards())) {
        let mut cheat = Cheat::new(at(0, 150), &[]);
        cheat.scene.rules.bounds = Rect { x1: 10_000_000, ..BOUNDS };
        let speed = f64::from(SPEED);
        // Clocks differ by one part in 1,000, starts may be off by one part in 400 and 100 ms, plus
        // rounding.
        let most = |ms: u64, allowance: f64| {
            speed * (ms as f64 / 1_000.0 * (1.0 + 0.001 + 0.002_5) + allowance + 0.1) + 3.0
        };
        let mut seen = vec![(0, 0)];
        for a in &attempts {
            cheat.attempt(a);
            let (x, _) = cheat.scene.pos(cheat.now);
            prop_assert!(f64::from(x) <= most(cheat.now, 1.1), "at {x} cm by {} ms", cheat.now);
            // Between any two moments, too: what was shown at the first may have stopped for lack
            // of a command.
            for (ms, from) in &seen {
                let way = f64::from(x - from);
                let passed = cheat.now - ms;
                prop_assert!(way <= most(passed, 1.9), "{way} cm in {passed} ms");
            }
            seen.push((cheat.now, x));
        }
    }

    #[test]
    fn no_entity_enters_a_blocked_tile_or_leaves_the_bounds(
        attempts in attempts(anywhere()),
        blocked in prop::collection::hash_set((0..8, 0..8), 0..25),
        (x, z) in (30..777, 0..800),
    ) {
        let blocked: Vec<_> =
            blocked.into_iter().filter(|tile| *tile != (x / 100, z / 100)).collect();
        let mut cheat = Cheat::new(at(x, z), &blocked);
        cheat.scene.rules.bounds = Rect { x0: 30, z0: 0, x1: 777, z1: 800 };
        for a in &attempts {
            cheat.attempt(a);
            for ms in (0..2_000).step_by(50) {
                let (x, z) = cheat.scene.pos(cheat.now + ms);
                prop_assert!(cheat.scene.rules.bounds.contains(at(x, z)), "({x}, {z})");
                let tile = (x / 100, z / 100);
                prop_assert!(!blocked.contains(&tile), "({x}, {z}) {tile:?}");
            }
        }
    }

    #[test]
    fn no_entity_leaves_a_closed_room(attempts in attempts(anywhere()), x in 1_000..1_400, z in 1_000..1_400) {
        let mut cheat = Cheat::new(at(x, z), &room());
        let inside = |(x, z): (i32, i32)| (1_000..1_400).contains(&x) && (1_000..1_400).contains(&z);
        for a in &attempts {
            cheat.attempt(a);
            for ms in (0..2_000).step_by(50) {
                let pos = cheat.scene.pos(cheat.now + ms);
                prop_assert!(inside(pos), "{pos:?}");
            }
        }
    }

    #[test]
    fn no_grant_is_used_for_longer_than_granted(
        attempts in attempts(prop_oneof![
            4 => Just(What::Straight(2_000, 0)), 3 => onwards(),
        ]),
        lasts in prop::collection::vec(50_u32..600, 1..4),
    ) {
        let mut cheat = Cheat::new(at(0, 150), &[]);
        cheat.scene.rules.bounds = Rect { x1: 10_000_000, ..BOUNDS };
        for ms in &lasts {
            cheat.scene.mover.grant(ServerMs(0), 2_000, Some(*ms)).unwrap();
        }
        let granted = f64::from(lasts.iter().sum::<u32>()) / 1_000.0;
        for a in &attempts {
            cheat.attempt(a);
            let (x, _) = cheat.scene.pos(cheat.now);
            let seconds = cheat.now as f64 / 1_000.0 * 1.003_5 + 1.1;
            // Starts may be off by 100 ms of the current top speed.
            let most = 500.0 * seconds + 1_500.0 * granted + 200.0 + 5.0 * seconds + 3.0;
            prop_assert!(f64::from(x) <= most, "{x} of {most} cm by {} ms", cheat.now);
        }
    }
}

/// A vector's clear way by a check of every millisecond.
fn brute(v: &Vector, ms: u32, on: &Footing<'_, Map>) -> u32 {
    let tile = |ms| Tile::of(v.position(ms), 100);
    let free = |x, z| on.tiles.is_free(PLANE, Tile { x, z });
    for t in 1..=ms {
        let (a, b) = (tile(t - 1), tile(t));
        let squeezed = a.x != b.x && a.z != b.z && !free(a.x, b.z) && !free(b.x, a.z);
        let stopped = a != b && (!free(b.x, b.z) || squeezed);
        if stopped || !on.rules.bounds.contains(v.position(t)) {
            return t - 1;
        }
    }
    ms
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn a_vector_stops_in_the_exact_millisecond(
        blocked in prop::collection::hash_set((-1..8, -1..8), 0..40),
        (x, z) in (0..800, 0..800),
        (vx, vz) in (-9_000..9_000, -9_000..9_000),
        from in 0_u32..800,
    ) {
        let map = Map { blocked: blocked.into_iter().collect(), heights: None };
        let rules = Rules::within(Rect { x0: -60, z0: -10, x1: 777, z1: 801 });
        let on = Footing { tiles: &map, plane: PLANE, rules: &rules };
        let v = Vector { start: at(x, z), vx_mm_s: vx, vz_mm_s: vz, lasts_ms: None };
        prop_assume!(rules.bounds.contains(v.start));
        let motion = v.into();
        let mut walk = Walk::begin(motion, ClientMs(0), &on).unwrap();
        let clear = brute(&v, 800, &on);
        let walked = if motion.is_standing() { 0 } else { clear };
        prop_assert_eq!(walk.walked(800), walked);
        // A second check from a point on the way gives the same result.
        walk.check_path(from, &on);
        prop_assert_eq!(walk.walked(800), walked);
        // So do checks at commands in between.
        let mut walk = Walk::begin(motion, ClientMs(0), &on).unwrap();
        for at in [300, 800, 1_600] {
            walk.go_on(ClientMs(at), &on);
        }
        let walked = if motion.is_standing() { 0 } else { brute(&v, 2_400, &on) };
        prop_assert_eq!(walk.walked(2_400), walked);
    }
}
