//! The golden vectors of movement in JSON, `clients/conformance/movement.json`: positions of moves,
//! headings, clocks, blends, and whole walks of a player over ground with walls, with a leash and with
//! corrections.

use std::fmt::Write;

use purview::scene::movement::{
    Blend, ClientMs, Climb, ClockEstimate, Correction, Go, Move, MoveCommand, Path, Predictor,
    Rules, ServerMs, Tile, Tiles, Vector, Wish,
};
use purview::scene::{Plane, Pos, Rect, Seq};

use crate::support::Rng;

/// Tiles of one metre; rows from the north, `#` is blocked.
const MAP: [&str; 12] = [
    "................",
    "..####..........",
    "..#..#....#.....",
    "..#.......##....",
    "..#..#.....#....",
    "..####...#......",
    "........#.......",
    ".......#........",
    "................",
    "....##.##.......",
    "................",
    "................",
];

const TILE_CM: i32 = 100;
const SIDES: (i32, i32) = (1_600, 1_200);

struct Ground {
    hilly: bool,
}

impl Tiles for Ground {
    fn tile_cm(&self) -> i32 {
        TILE_CM
    }

    fn is_free(&self, _: Plane, tile: Tile) -> bool {
        let row = usize::try_from(tile.z).ok().and_then(|z| MAP.get(z));
        let column = usize::try_from(tile.x).ok();
        row.zip(column).and_then(|(row, x)| row.as_bytes().get(x)) == Some(&b'.')
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.hilly.then(|| height(tile.x, tile.z))
    }
}

fn height(x: i32, z: i32) -> i32 {
    (x * 7 + z * 5) % 9 * 15
}

fn place(at: Pos) -> String {
    format!("[{}, {}, {}]", at.x, at.y, at.z)
}

fn maybe(n: Option<u32>) -> String {
    n.map_or("null".into(), |n| n.to_string())
}

fn lines(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join(",\n")
}

/// Positions at these times.
fn track(motion: &Move, times: &[u32]) -> String {
    let at = |ms: &u32| format!("[{ms}, {}]", place(motion.position(*ms)));
    times.iter().map(at).collect::<Vec<_>>().join(", ")
}

fn form(motion: &Move) -> String {
    match motion {
        Move::Path(p) => format!(
            "{{\"kind\": \"path\", \"start\": {}, \"steps\": \"{}\", \"speed\": {}}}",
            place(p.start()),
            p.steps(),
            p.speed_cm_s()
        ),
        Move::Vector(v) => format!(
            "{{\"kind\": \"vector\", \"start\": {}, \"vx\": {}, \"vz\": {}, \"lasts\": {}}}",
            place(v.start),
            v.vx_mm_s,
            v.vz_mm_s,
            maybe(v.lasts_ms)
        ),
    }
}

fn vectors(rng: &mut Rng) -> Vec<String> {
    let start = |rng: &mut Rng| Pos {
        x: rng.range(0, 90_000),
        y: rng.range(-50, 900),
        z: rng.range(0, 90_000),
    };
    let mut all: Vec<Vector> = (0..24)
        .map(|i| Vector {
            start: start(rng),
            vx_mm_s: rng.range(-9_000, 9_000),
            vz_mm_s: rng.range(-9_000, 9_000),
            lasts_ms: (i % 3 == 0).then(|| rng.range(1, 5_000) as u32),
        })
        .collect();
    all.push(Vector::stand(start(rng)));
    // The greatest numbers: products beyond 2^53.
    let far = Pos { x: i32::MAX, y: 0, z: i32::MIN };
    all.push(Vector { start: far, vx_mm_s: i32::MIN, vz_mm_s: i32::MAX, lasts_ms: None });
    all.into_iter().map(|v| moved(&v.into(), TILE_CM)).collect()
}

fn moved(motion: &Move, tile_cm: i32) -> String {
    let walk_ms = motion.walk_ms();
    let times = [
        0,
        1,
        3,
        7,
        99,
        100,
        1_000,
        1_234,
        5_000,
        walk_ms / 2,
        walk_ms.saturating_sub(1),
        u32::MAX,
    ];
    format!(
        "{{\"form\": {}, \"tile_cm\": {tile_cm}, \"walk_ms\": {walk_ms}, \"speed\": {},\n     \"at\": [{}]}}",
        form(motion),
        motion.speed_cm_s(),
        track(motion, &times)
    )
}

fn paths(rng: &mut Rng) -> Vec<String> {
    let path = |i: i32| {
        let tile_cm = [100, 200, 33, 1, 1_000, 100_000][i as usize % 6];
        let start = Pos { x: rng.range(0, 9_000), y: rng.range(-50, 900), z: rng.range(0, 9_000) };
        let steps: String = (0..rng.range(0, 20)).map(|_| rng.range(0, 8).to_string()).collect();
        let steps = steps.parse().expect("digits 0 to 7");
        let path = Path::new(start, steps, [500, 300, 1_234, 7][i as usize % 4], tile_cm);
        let times = [0, 1, 170, 400, 1_000, path.walk_ms() / 2, path.walk_ms()];
        let rest = |ms: &u32| format!("[{ms}, \"{}\"]", path.rest(*ms));
        let rest: Vec<_> = times.iter().map(rest).collect();
        let moved = moved(&path.into(), tile_cm);
        format!("{},\n     \"rest\": [{}]}}", moved.trim_end_matches('}'), rest.join(", "))
    };
    (0..24).map(path).collect()
}

fn headings(rng: &mut Rng) -> Vec<String> {
    let mut ways =
        vec![(0, 0), (1, 0), (0, -1), (3, 4), (-1, -1), (i32::MIN, i32::MAX), (i32::MAX, 1)];
    ways.extend((0..20).map(|_| (rng.range(-5_000, 5_000), rng.range(-5_000, 5_000))));
    let heading = |(dx, dz): (i32, i32)| {
        let speed = rng.range(1, 3_000) as u32;
        let v = Vector::heading(Pos::default(), dx, dz, speed);
        format!("[{dx}, {dz}, {speed}, {}, {}]", v.vx_mm_s, v.vz_mm_s)
    };
    ways.into_iter().map(heading).collect()
}

fn clocks(rng: &mut Rng) -> Vec<String> {
    let mut clock = ClockEstimate::default();
    let mut now = 1_000;
    let pong = |_| {
        now += rng.range(1, 90_000) as u64;
        let (out, back) = (rng.range(0, 300) as u64, rng.range(0, 300) as u64);
        let (sent, server) = (now, 7_000_000 + now + out);
        now += out + back;
        clock.pong(ClientMs(sent), ClientMs(now), ServerMs(server));
        let at = ClientMs(now + 40);
        let (says, error) = (clock.server(at).unwrap().0, clock.error_ms(at).unwrap());
        let delay = clock.delay_ms(at).unwrap();
        format!("[{sent}, {now}, {server}, {}, {says}, {error}, {delay}]", at.0)
    };
    (0..40).map(pong).collect()
}

fn blends(rng: &mut Rng) -> Vec<String> {
    let blend = |i: i32| {
        let at = |rng: &mut Rng| Pos {
            x: rng.range(-300, 300),
            y: rng.range(-20, 20),
            z: rng.range(-300, 300),
        };
        let (shown, is, later) = (at(rng), at(rng), at(rng));
        let (lasts_ms, snap_cm) = ([200, 0, 333][i as usize % 3], [500, 300][i as usize % 2]);
        let mut blend = Blend::new(lasts_ms, snap_cm);
        blend.begin(1_000, shown, is);
        let track = [1_000, 1_001, 1_100, 1_199, 1_200, 1_500]
            .map(|ms| format!("[{ms}, {}]", place(blend.shown(ms, later))));
        format!(
            "{{\"lasts_ms\": {lasts_ms}, \"snap_cm\": {snap_cm}, \"shown\": {}, \"is\": {}, \"later\": {}, \"at\": [{}]}}",
            place(shown),
            place(is),
            place(later),
            track.join(", ")
        )
    };
    (0..12).map(blend).collect()
}

/// A walk of a player by chance: wishes, late acknowledgements, a stall, corrections.
struct Script {
    rng: Rng,
    predictor: Predictor,
    ground: Ground,
    now: u64,
    seq: Seq,
    acked: Seq,
}

impl Script {
    fn new(seed: u64, hilly: bool) -> Script {
        let bounds = Rect { x0: 0, z0: 0, x1: SIDES.0, z1: SIDES.1 };
        let climb = hilly.then_some(Climb { up_cm: 60, down_cm: 90 });
        let rules = Rules { climb, ..Rules::within(bounds) };
        let predictor = Predictor::new(ClientMs(5_000), start(), 0, rules, Blend::default());
        let (ground, rng) = (Ground { hilly }, Rng::new(seed));
        Script { rng, predictor, ground, now: 5_000, seq: Seq(0), acked: Seq(0) }
    }

    fn wish(&mut self) -> String {
        let rng = &mut self.rng;
        let wish = match rng.range(0, 6) {
            0 => Wish::Stand,
            1 => {
                let steps: String =
                    (0..rng.range(1, 9)).map(|_| rng.range(0, 8).to_string()).collect();
                Wish::Steps { steps: steps.parse().expect("digits"), speed_cm_s: 500 }
            }
            kind => {
                let heading = Wish::heading(rng.range(-9, 10), rng.range(-9, 10), 500);
                let Wish::Straight { vx_mm_s, vz_mm_s, .. } = heading else { unreachable!() };
                let lasts_ms = (kind == 2).then(|| rng.range(50, 900) as u32);
                Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms }
            }
        };
        self.predictor.wish(wish);
        match wish {
            Wish::Stand => "{\"kind\": \"stand\"}".into(),
            Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms } => format!(
                "{{\"kind\": \"straight\", \"vx\": {vx_mm_s}, \"vz\": {vz_mm_s}, \"lasts\": {}}}",
                maybe(lasts_ms)
            ),
            Wish::Steps { steps, speed_cm_s } => {
                format!("{{\"kind\": \"steps\", \"steps\": \"{steps}\", \"speed\": {speed_cm_s}}}")
            }
        }
    }

    fn correct(&mut self) -> String {
        let at = Pos { x: self.rng.range(600, 1_500), y: 0, z: self.rng.range(800, 1_100) };
        let pushed = Vector { vx_mm_s: 3_000, vz_mm_s: -1_000, ..Vector::stand(at) };
        let (motion, lasts_ms) = match self.rng.range(0, 3) {
            0 => (Move::Vector(pushed), self.rng.range(100, 500) as u32),
            _ => (Move::stand(at), u32::MAX),
        };
        let number = self.predictor.correction() + 1;
        self.predictor.corrected(ClientMs(self.now), &Correction { number, motion, lasts_ms });
        let lasts = maybe((lasts_ms != u32::MAX).then_some(lasts_ms));
        format!("{{\"number\": {number}, \"form\": {}, \"lasts_ms\": {lasts}}}", form(&motion))
    }

    fn command(command: &MoveCommand) -> String {
        let MoveCommand { correction, at, go } = command;
        let form = match go {
            Go::On => "null".into(),
            Go::Walk(motion) => form(motion),
        };
        format!("{{\"correction\": {correction}, \"at_ms\": {}, \"form\": {form}}}", at.0)
    }

    fn step(&mut self, i: usize) -> String {
        // Pictures at 60 Hz, slow ones, and now and then a stall.
        self.now += match self.rng.range(0, 40) {
            0 => self.rng.range(500, 3_000) as u64,
            1..8 => self.rng.range(50, 150) as u64,
            _ => self.rng.range(15, 18) as u64,
        };
        let mut out = format!("{{\"now\": {}", self.now);
        if self.rng.range(0, 30) == 0 || i == 0 {
            write!(out, ", \"wish\": {}", self.wish()).unwrap();
        }
        // For a while no acknowledgement comes: the leash ends the walk.
        let is_late = (60..140).contains(&i);
        if !is_late && self.rng.range(0, 4) == 0 && self.seq > self.acked {
            self.acked = Seq(self.rng.range(self.acked.0 as i32 + 1, self.seq.0 as i32 + 1) as u32);
            self.predictor.acked(ClientMs(self.now), self.acked);
            write!(out, ", \"ack\": {}", self.acked).unwrap();
        }
        if self.rng.range(0, 60) == 0 {
            write!(out, ", \"correct\": {}", self.correct()).unwrap();
        }
        let mut commands = Vec::new();
        let now = ClientMs(self.now);
        while let Some(c) = self.predictor.poll(now, self.seq.next(), &self.ground, Plane(0)) {
            self.seq = self.seq.next();
            commands.push(Script::command(&c));
        }
        let (at, shown) = (self.predictor.position(now), self.predictor.shown(now));
        write!(
            out,
            ", \"commands\": [{}], \"position\": {}, \"shown\": {}, \"held\": {}}}",
            commands.join(", "),
            place(at),
            place(shown),
            self.predictor.is_held()
        )
        .unwrap();
        out
    }
}

fn start() -> Pos {
    Pos { x: 850, y: 0, z: 850 }
}

/// The walks, and what they must contain to be worth anything.
fn walks() -> String {
    let mut all = Vec::new();
    for seed in 1..=6 {
        let hilly = seed % 3 == 0;
        let mut script = Script::new(seed, hilly);
        let steps: Vec<_> = (0..200).map(|i| format!("  {}", script.step(i))).collect();
        all.push(format!(
            "    {{\"seed\": {seed}, \"hilly\": {hilly}, \"climb\": {}, \"start\": {},\n     \"steps\": [\n{}]}}",
            if hilly { "[60, 90]" } else { "null" },
            place(start()),
            lines(steps)
        ));
    }
    let text = all.join(",\n");
    for what in ["\"held\": true", "\"path\"", "\"form\": null", "\"correct\"", "\"steps\""] {
        assert!(text.contains(what), "no walk has {what}");
    }
    text
}

/// `movement.json`.
pub fn all() -> String {
    let rng = &mut Rng::new(7);
    let rows: Vec<_> = MAP.iter().map(|row| format!("\"{row}\"")).collect();
    let heights = |z: usize| {
        let row: Vec<_> =
            (0..MAP[0].len()).map(|x| height(x as i32, z as i32).to_string()).collect();
        format!("[{}]", row.join(", "))
    };
    let mut out = String::from("{\n");
    for (name, rows) in [
        ("vectors", vectors(rng)),
        ("paths", paths(rng)),
        ("headings", headings(rng)),
        ("clock", clocks(rng)),
        ("blends", blends(rng)),
        ("map", rows),
        ("heights", (0..MAP.len()).map(heights).collect()),
    ] {
        writeln!(out, "  \"{name}\": [\n{}\n  ],", lines(rows)).unwrap();
    }
    write!(out, "  \"walks\": [\n{}\n  ]\n}}\n", walks()).unwrap();
    out
}
