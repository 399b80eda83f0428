//! Cheaters, one trick each, against an honest walker at top speed on the same network.

use std::collections::BTreeMap;

use purview::scene::movement::{
    Blend, ClientMs, Correction, Go, Move, MoveCommand, Path, Predictor, ServerMs, Vector, Wish,
};
use purview::scene::{Pos, Seq};

use super::link::{USUAL, Weather};
use super::server::{Down, Map, PLANE, Server, TICK_MS, rules};

const SPEED: u32 = 500;
/// All clients stand for a while, which a cheater may use freely, and then walk east for a minute.
const IDLE_MS: u64 = 20_000;
const MINUTE_MS: u64 = 60_000;
const START: Pos = Pos { x: 150, y: 0, z: 20_050 };

/// A cheater's knowledge: a perfect account of the server's state, as long as nothing is refused.
struct Client {
    correction: u32,
    /// The time that it claims.
    clock: f64,
    /// Where and when its present move started, by that clock.
    motion: Move,
    since: f64,
    said: f64,
}

impl Client {
    fn new(pos: Pos, clock: f64) -> Client {
        Client { correction: 0, clock, motion: Move::stand(pos), since: clock, said: clock }
    }

    fn here(&self) -> Pos {
        let passed = (self.clock as u64).saturating_sub(self.since as u64);
        self.motion.position(passed as u32)
    }

    fn order(&mut self, go: Go) -> MoveCommand {
        self.said = self.clock;
        if let Go::Walk(motion) = go {
            (self.motion, self.since) = (motion, self.clock);
        }
        MoveCommand { correction: self.correction, at: ClientMs(self.clock as u64), go }
    }

    /// Walks east from `ahead` centimetres in front of its position, with a stated speed.
    fn east(&mut self, ahead: i32, speed_cm_s: f64) -> MoveCommand {
        let here = self.here();
        let start = Pos { x: here.x + ahead, ..here };
        let vx_mm_s = (speed_cm_s * 10.0) as i32;
        self.order(Go::Walk(Vector { vx_mm_s, ..Vector::stand(start) }.into()))
    }

    fn corrected(&mut self, correction: &Correction) {
        self.correction = correction.number;
        (self.motion, self.since) = (correction.motion, self.clock);
    }

    fn is_walking(&self) -> bool {
        !self.motion.is_standing()
    }
}

/// What a cheater does in a frame (every 20 ms): its clock advances, and it may send commands.
type Trick = Box<dyn Fn(&mut Client, u64) -> Vec<MoveCommand>>;

#[derive(Debug)]
struct Outcome {
    way_cm: i32,
    refused: BTreeMap<&'static str, u32>,
}

fn cheat(trick: &Trick, weather: Weather, seed: u64, wall: Option<i32>) -> (Outcome, Server) {
    let mut map = Map::new(0, 0);
    if let Some(x) = wall {
        map.wall((0..400).map(|z| (x, z)));
    }
    let mut server = Server::new(map, START, SPEED, weather, seed);
    let mut client = Client::new(START, 1_000.0);
    let mut seq = 0;
    let mut began = START.x;
    let mut farthest = 0;
    for now in (0..=IDLE_MS + MINUTE_MS).step_by(20) {
        while let Some(news) = server.outbox.receive(now) {
            if let Down::Correction(correction) = news {
                client.corrected(&correction);
            }
        }
        for order in trick(&mut client, now) {
            seq += 1;
            server.inbox.send(now, (Seq(seq), order));
        }
        if now % TICK_MS == 0 {
            let pos = server.tick(now);
            if now == IDLE_MS {
                began = pos.x;
            }
            farthest = farthest.max(pos.x);
        }
    }
    let mut refused = BTreeMap::new();
    for r in &server.refused {
        *refused.entry(r.why.name()).or_default() += 1;
    }
    // The distance at the end, or the greatest that viewers were ever shown.
    (Outcome { way_cm: farthest - began, refused }, server)
}

fn honest(weather: Weather, seed: u64) -> i32 {
    let mut server = Server::new(Map::new(0, 0), START, SPEED, weather, seed);
    let map = Map::new(0, 0);
    let mut walker = Predictor::new(ClientMs(0), START, 0, rules(), Blend::default());
    let mut seq = 0;
    let mut pos = START;
    for now in (0..=IDLE_MS + MINUTE_MS).step_by(20) {
        let at = ClientMs(now + 1_000);
        while let Some(news) = server.outbox.receive(now) {
            if let Down::Ack(seq) = news {
                walker.acked(at, seq);
            }
        }
        if now == IDLE_MS {
            walker.wish(Wish::heading(1, 0, SPEED));
        }
        while let Some(order) = walker.poll(at, Seq(seq + 1), &map, PLANE) {
            seq += 1;
            server.inbox.send(now, (Seq(seq), order));
        }
        if now % TICK_MS == 0 {
            pos = server.tick(now);
        }
    }
    assert!(server.refused.is_empty());
    pos.x - START.x
}

/// Runs a trick with several seeds. Prints and checks its greatest gain; returns the number of
/// refusals.
fn trial(name: &str, trick: impl Fn(&mut Client, u64) -> Vec<MoveCommand> + 'static) -> u32 {
    let trick: Trick = Box::new(trick);
    let mut best = f64::MIN;
    let mut refused: BTreeMap<&'static str, u32> = BTreeMap::new();
    for (seed, weather) in weathers() {
        let (outcome, _) = cheat(&trick, weather, seed, None);
        let gain = f64::from(outcome.way_cm) / f64::from(honest(weather, seed)) - 1.0;
        best = best.max(gain);
        outcome.refused.iter().for_each(|(command, n)| *refused.entry(command).or_default() += n);
    }
    println!("{name}: at best {:+.2} %, refused {refused:?}", best * 100.0);
    assert!(best <= 0.03, "{name}: {best}");
    refused.values().sum()
}

const PERFECT: Weather = Weather { delay_ms: 0, jitter_ms: 0, lost_per_mille: 0 };

fn weathers() -> Vec<(u64, Weather)> {
    (0..10).map(|seed| (seed, USUAL)).chain([(77, PERFECT)]).collect()
}

/// An honest frame of its clock.
fn tick_on(c: &mut Client, rate: f64) {
    c.clock += 20.0 * rate;
}

/// An honest clock, and nothing done while all clients stand.
fn on_time(
    trick: impl Fn(&mut Client, u64) -> Vec<MoveCommand>,
) -> impl Fn(&mut Client, u64) -> Vec<MoveCommand> {
    move |c, now| {
        tick_on(c, 1.0);
        if now < IDLE_MS { Vec::new() } else { trick(c, now) }
    }
}

/// Sends a command every half second of its clock: first a move and then "on"; again after a
/// correction.
fn walk_on(c: &mut Client, now: u64, speed: f64) -> Vec<MoveCommand> {
    if now < IDLE_MS {
        return Vec::new();
    }
    if !c.is_walking() {
        return vec![c.east(0, speed)];
    }
    if c.clock - c.said >= 480.0 { vec![c.order(Go::On)] } else { Vec::new() }
}

#[test]
fn a_start_further_ahead_gains_nothing() {
    for step in [30, 1_000, 5_000] {
        let teleport = on_time(move |c, now| match now % 1_000 {
            0 => vec![c.east(step, 500.0)],
            _ => walk_on(c, now, 500.0),
        });
        let refused = trial(&format!("teleport by {step} cm"), teleport);
        assert!(refused > 100);
    }
}

#[test]
fn a_greater_speed_gains_nothing() {
    for factor in [1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0] {
        let stated = on_time(move |c, now| walk_on(c, now, 500.0 * factor));
        let refused = trial(&format!("speed x {factor}, stated"), stated);
        assert!(refused > 100);
        let by_paths = on_time(move |c, _| {
            if c.is_walking() && c.clock - c.said < 400.0 {
                return Vec::new();
            }
            let speed = (500.0 * factor) as u32;
            let steps = "77777777".parse().expect("steps");
            let path = Path::new(c.here(), steps, speed, 100);
            vec![c.order(Go::Walk(path.into()))]
        });
        let refused = trial(&format!("speed x {factor}, by paths"), by_paths);
        assert!(refused > 100);
        let unstated = on_time(move |c, _| {
            if c.is_walking() && c.clock - c.said < 400.0 {
                return Vec::new();
            }
            // 200 cm in 400 ms are right.
            let ahead = if c.is_walking() { (200.0 * (factor - 1.0)) as i32 } else { 0 };
            vec![c.east(ahead, 500.0)]
        });
        let refused = trial(&format!("speed x {factor}, unstated"), unstated);
        assert!(refused > 20);
    }
}

#[test]
fn a_manipulated_clock_gains_next_to_nothing() {
    for rate in [1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0] {
        let refused = trial(&format!("clock x {rate}"), move |c, now| {
            tick_on(c, if now < IDLE_MS { 1.0 } else { rate });
            walk_on(c, now, 500.0)
        });
        assert!(refused > 10);
    }
    for rate in [0.95, 0.8, 0.5, 0.1] {
        trial(&format!("clock x {rate}"), move |c, now| {
            tick_on(c, rate);
            walk_on(c, now, 500.0)
        });
    }
    trial("clock stands, then runs double", |c, now| {
        tick_on(c, if now < IDLE_MS { 0.0 } else { 2.0 });
        walk_on(c, now, 500.0)
    });
    trial("clock stands and is stated, then runs double", |c, now| {
        tick_on(c, if now < IDLE_MS { 0.0 } else { 2.0 });
        match now < IDLE_MS && now % 500 == 0 {
            true => vec![c.order(Go::Walk(Move::stand(START)))],
            false => walk_on(c, now, 500.0),
        }
    });
    let back = on_time(|c, now| {
        if now % 3_000 == 0 && c.is_walking() {
            c.clock -= 1_000.0;
            return vec![c.order(Go::On)];
        }
        walk_on(c, now, 500.0)
    });
    let refused = trial("clock back by a second, every three seconds", back);
    assert!(refused > 50);
    let silent = on_time(|c, now| {
        if now % 3_000 != 0 {
            return Vec::new();
        }
        // Three seconds that it claims to have walked.
        let then = c.clock;
        c.clock = c.said.max(then - 3_000.0);
        let mut all = vec![c.east(0, 500.0)];
        while c.clock + 400.0 < then {
            c.clock += 400.0;
            all.push(c.order(Go::On));
        }
        c.clock = then;
        all.push(c.order(Go::On));
        all
    });
    trial("silence, then all at once", silent);
}

#[test]
fn a_flood_of_small_moves_gains_next_to_nothing() {
    for ahead in [1, 2, 5, 24] {
        let small = on_time(move |c, _| vec![c.east(ahead, 500.0)]);
        let refused = trial(&format!("micro-moves, {ahead} cm each"), small);
        assert!(refused > 10);
    }
    let short = on_time(|c, _| {
        c.clock += 1.0;
        vec![c.east(0, 500.0)]
    });
    trial("micro-moves, a millisecond each", short);
    for teleport in [200.0, 260.0, 330.0] {
        trial(&format!("everything at once, clock steps of {teleport} ms"), move |c, now| {
            // A thousandth more time, most of the allowance, the start differences and what time
            // pays of them.
            tick_on(c, if now < IDLE_MS { 1.0 } else { 1.001 });
            let passed = now as i64 - IDLE_MS as i64;
            if passed < 0 || passed % 400 != 0 {
                return Vec::new();
            }
            if (2_000..=6_000).contains(&passed) && passed % 2_000 == 0 {
                c.clock += teleport;
            }
            let ahead = match passed {
                1_200 | 3_200 => 20,
                _ if passed % 1_600 == 0 => 1,
                _ => 0,
            };
            vec![c.east(ahead, 500.0)]
        });
    }
}

#[test]
fn repeated_commands_gain_nothing() {
    let trick: Trick = Box::new(on_time(|c, now| walk_on(c, now, 500.0)));
    let (alone, _) = cheat(&trick, USUAL, 5, None);
    // The same with every message three times.
    let mut server = Server::new(Map::new(0, 0), START, SPEED, USUAL, 5);
    let mut client = Client::new(START, 1_000.0);
    let mut sent = Vec::new();
    let mut pos = START;
    for now in (0..=IDLE_MS + MINUTE_MS).step_by(20) {
        for order in trick(&mut client, now) {
            let seq = Seq(sent.len() as u32 + 1);
            sent.push((seq, order));
            server.inbox.send(now, (seq, order));
            // And some from long ago.
            for again in sent.iter().rev().take(3) {
                server.inbox.send(now, *again);
            }
        }
        if now % TICK_MS == 0 {
            pos = server.tick(now);
        }
    }
    assert!(server.dropped as usize >= 3 * sent.len() - 10);
    assert!(server.refused.is_empty());
    assert!((pos.x - START.x) as f64 <= f64::from(alone.way_cm) * 1.01);
}

#[test]
fn refusals_gain_nothing() {
    let refusals = on_time(|c, now| match now % 400 {
        0 => vec![c.east(0, 500.0)],
        200 => vec![c.east(9_999, 500.0)],
        _ => Vec::new(),
    });
    let refused = trial("walks with a refusal every 0.4 s", refusals);
    assert!(refused > 100);
    trial("a clock that stood, and refusals", |c, now| {
        tick_on(c, if now < IDLE_MS { 0.0 } else { 1.0 });
        if now < IDLE_MS {
            return Vec::new();
        }
        if !c.is_walking() { vec![c.east(0, 500.0), c.east(9_999, 500.0)] } else { Vec::new() }
    });
    let deaf = on_time(|c, now| {
        c.correction = 0;
        if now % 400 == 0 { vec![c.east(30, 500.0)] } else { Vec::new() }
    });
    trial("ignores corrections", deaf);
}

/// Joins, claims at once all walking that may be owed, leaves, and joins again where it was.
fn way_of_a_rejoiner(stays_ms: u64, away_ms: u64, claims_ms: f64) -> i32 {
    let mut server = Server::new(Map::new(0, 0), START, SPEED, PERFECT, 1);
    let (mut at, mut farthest) = (0, START.x);
    let (mut pos, mut clock) = (START, 1_000.0);
    while at < MINUTE_MS {
        let mut client = Client::new(pos, clock);
        server.inbox.send(at, (Seq(1), client.east(0, f64::from(SPEED))));
        client.clock += claims_ms;
        server.inbox.send(at, (Seq(2), client.order(Go::On)));
        for now in (at..at + stays_ms).step_by(TICK_MS as usize) {
            farthest = farthest.max(server.tick(now).x);
        }
        let left = at + stays_ms;
        at = left + away_ms;
        pos = server.rejoin(at, left, PERFECT);
        clock = client.clock + 1.0;
    }
    farthest - START.x
}

#[test]
fn leaving_and_joining_again_gains_nothing() {
    let honest = honest(PERFECT, 1);
    for (stays_ms, away_ms) in [(100, 100), (300, 200), (500, 100), (700, 1_000), (1_500, 300)] {
        for claims_ms in [100.0, 300.0, 700.0, 1_000.0, 1_099.0] {
            let way_cm = way_of_a_rejoiner(stays_ms, away_ms, claims_ms);
            let gain = f64::from(way_cm) / f64::from(honest) - 1.0;
            assert!(gain <= 0.03, "stays {stays_ms} ms, claims {claims_ms} ms: {gain:+.3}");
        }
    }
}

#[test]
fn a_player_that_walks_on_at_once_after_a_new_join_is_not_refused() {
    // What the earlier session owed is paid by the way to the client and back.
    for (seed, weather) in weathers() {
        let mut server = Server::new(Map::new(0, 0), START, SPEED, weather, seed);
        server.rejoin(0, 0, weather);
        let map = Map::new(0, 0);
        let mut walker: Option<Predictor> = None;
        let mut seq = 0;
        for now in (0..=MINUTE_MS).step_by(20) {
            let at = ClientMs(now + 1_000);
            while let Some(news) = server.outbox.receive(now) {
                // The first message that comes tells of the join.
                let walker = walker.get_or_insert_with(|| {
                    let mut new = Predictor::new(at, START, 0, rules(), Blend::default());
                    new.wish(Wish::heading(1, 0, SPEED));
                    new
                });
                if let Down::Ack(seq) = news {
                    walker.acked(at, seq);
                }
            }
            if let Some(walker) = &mut walker {
                while let Some(order) = walker.poll(at, Seq(seq + 1), &map, PLANE) {
                    seq += 1;
                    server.inbox.send(now, (Seq(seq), order));
                }
            }
            if now % TICK_MS == 0 {
                server.tick(now);
            }
        }
        assert!(server.refused.is_empty(), "seed {seed}: {:?}", server.refused);
    }
}

#[test]
fn no_cheater_walks_through_a_wall() {
    let tricks: [(&str, Trick); 4] = [
        (
            "straight on",
            Box::new(|c, now| {
                tick_on(c, 1.0);
                match now % 2_000 {
                    0 if c.is_walking() => vec![c.east(0, 500.0)],
                    _ => walk_on(c, now, 500.0),
                }
            }),
        ),
        (
            "path",
            Box::new(|c, now| {
                tick_on(c, 1.0);
                if now % 200 != 0 {
                    return Vec::new();
                }
                let path = Path::new(c.here(), "77777".parse().expect("steps"), SPEED, 100);
                vec![c.order(Go::Walk(path.into()))]
            }),
        ),
        (
            "a hop",
            Box::new(|c, now| {
                tick_on(c, 1.0);
                if now % 200 == 0 { vec![c.east(24, 500.0)] } else { Vec::new() }
            }),
        ),
        (
            "a teleport",
            Box::new(|c, now| {
                tick_on(c, 1.0);
                if now % 1_000 == 0 { vec![c.east(300, 0.0)] } else { walk_on(c, now, 500.0) }
            }),
        ),
    ];
    for (name, trick) in tricks {
        let (outcome, server) = cheat(&trick, USUAL, 9, Some(10));
        println!("wall, {name}: refused {:?}", outcome.refused);
        assert!(START.x + outcome.way_cm < 1_000, "{name}");
        assert!(server.refused.len() > 10, "{name}");
        let on = Server::on(&server.map, &server.rules);
        let end = server.mover.position(ServerMs(IDLE_MS + MINUTE_MS), &on);
        assert!(end.x < 1_000, "{name}");
    }
}
