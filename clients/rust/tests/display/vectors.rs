//! Writes `clients/conformance/display.json`, or holds the library to it: inputs of the display, and
//! what it must answer to the centimetre. Other languages read the same file.

use purview::scene::movement::{Blend, Move, Path, ServerMs, Steps, Trajectory, Vector};
use purview::scene::{EntityId, Pos};
use purview_client::{Advance, Cell, Cells, Display, Motion, SNAP_CM, SPREAD_MS, Sample};
use serde::Serialize;
use serde_json::Value;

use super::truth::{Network, Rng, TICK_MS, Told, Walker};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/display.json");

type Place = [i32; 3];

fn place(pos: Pos) -> Place {
    [pos.x, pos.y, pos.z]
}

/// A motion as the file has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum MotionJson {
    Vector { begins_ms: u64, start: Place, vx_mm_s: i32, vz_mm_s: i32, lasts_ms: Option<u32> },
    Path { begins_ms: u64, start: Place, steps: String, speed_cm_s: u32, tile_cm: i32 },
    Sample { at_ms: u64, span_ms: u32, pos: Place, vx: i32, vz: i32 },
}

/// The side of a tile of the paths in the file.
const TILE_CM: i32 = 100;

fn motion(motion: &Motion) -> MotionJson {
    match *motion {
        Motion::Sample(Sample { at_ms, span_ms, pos, vx_cm_s, vz_cm_s }) => {
            MotionJson::Sample { at_ms, span_ms, pos: place(pos), vx: vx_cm_s, vz: vz_cm_s }
        }
        Motion::Trajectory(Trajectory { motion, start, lasts_ms }) => match motion {
            Move::Vector(Vector { start: from, vx_mm_s, vz_mm_s, .. }) => MotionJson::Vector {
                begins_ms: start.0,
                start: place(from),
                vx_mm_s,
                vz_mm_s,
                lasts_ms: (lasts_ms != u32::MAX).then_some(lasts_ms),
            },
            Move::Path(path) => MotionJson::Path {
                begins_ms: start.0,
                start: place(path.start()),
                steps: path.steps().to_string(),
                speed_cm_s: path.speed_cm_s(),
                tile_cm: TILE_CM,
            },
        },
    }
}

/// What the display must answer in a picture.
#[derive(Debug, Serialize)]
struct Picture {
    advance: &'static str,
    time_us: u64,
    delay_us: u64,
    /// Entity, x, y, z.
    entities: Vec<(u64, i32, i32, i32)>,
}

/// A call of the display, and after a picture its answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Pong { now_us: u64 },
    Frame { now_us: u64, server_us: u64, told_us: u64, tick_us: u64 },
    Enter { id: u64, motion: MotionJson },
    Told { id: u64, motion: MotionJson },
    Leave { id: u64 },
    Clear {},
    Picture { now_us: u64, server_us: u64, want: Picture },
}

/// A display whose calls are written down.
#[derive(Default)]
struct Recorder {
    display: Display,
    ids: Vec<u64>,
    steps: Vec<Step>,
}

impl Recorder {
    fn frame(&mut self, now_us: u64, server_us: u64, tick: u64) {
        self.display.arrived((now_us, server_us), (tick * TICK_MS, TICK_MS));
        let (told_us, tick_us) = (tick * TICK_MS * 1_000, TICK_MS * 1_000);
        self.steps.push(Step::Frame { now_us, server_us, told_us, tick_us });
    }

    fn told(&mut self, id: u64, new: Motion) {
        let motion = motion(&new);
        match self.ids.contains(&id) {
            true => {
                self.display.told(EntityId(id), new);
                self.steps.push(Step::Told { id, motion });
            }
            false => {
                self.ids.push(id);
                self.display.enter(EntityId(id), new);
                self.steps.push(Step::Enter { id, motion });
            }
        }
    }

    fn pong(&mut self, now_us: u64) {
        self.display.pong(now_us);
        self.steps.push(Step::Pong { now_us });
    }

    fn leave(&mut self, id: u64) {
        self.display.leave(EntityId(id));
        self.ids.retain(|known| *known != id);
        self.steps.push(Step::Leave { id });
    }

    fn clear(&mut self) {
        self.display.clear();
        self.ids.clear();
        self.steps.push(Step::Clear {});
    }

    fn picture(&mut self, now_us: u64, server_us: u64) {
        let advance = match self.display.advance(now_us, server_us) {
            Advance::Ran => "ran",
            Advance::Jumped => "jumped",
            Advance::Began => "began",
        };
        let at = |id: u64| {
            let Pos { x, y, z } = self.display.position(EntityId(id)).expect("it is in view");
            (id, x, y, z)
        };
        let entities = self.ids.iter().map(|id| at(*id)).collect();
        let clock = self.display.clock();
        let (time_us, delay_us) = (clock.time_us(), clock.delay_us());
        let want = Picture { advance, time_us, delay_us, entities };
        self.steps.push(Step::Picture { now_us, server_us, want });
    }
}

/// Four walkers over a network, ten pictures per second.
fn walkers(network: Network, length_ms: u64) -> Vec<Step> {
    let (mut rng, mut recorder, mut tick) = (Rng(3), Recorder::default(), 0);
    let told = |n: u64| if n.is_multiple_of(2) { Told::Trajectories } else { Told::Positions };
    let mut all: Vec<Walker> =
        (0..4).map(|n| Walker::new(&mut rng, told(n), 500, length_ms + 1_000)).collect();
    let arrivals = network.arrivals_us(&mut rng, length_ms / TICK_MS + 10);
    for now_us in (0..length_ms * 1_000).step_by(93_337) {
        let server_us = now_us + 1_234;
        while arrivals[tick] <= now_us {
            tick += 1;
            recorder.frame(now_us, server_us, tick as u64);
            for (id, walker) in (1..).zip(&mut all) {
                let motions = walker.tell(tick as u64);
                motions.into_iter().for_each(|motion| recorder.told(id, motion));
            }
        }
        recorder.picture(now_us, server_us);
    }
    recorder.steps
}

fn walk(start_ms: u64, from: Place, (vx_mm_s, vz_mm_s): (i32, i32)) -> Motion {
    let start = Pos { x: from[0], y: from[1], z: from[2] };
    let vector = Vector { start, vx_mm_s, vz_mm_s, lasts_ms: None };
    Motion::Trajectory(Trajectory {
        motion: Move::Vector(vector),
        start: ServerMs(start_ms),
        lasts_ms: u32::MAX,
    })
}

/// Snaps, silence, a hidden tab, a path, an end, a leave and a resync.
fn events() -> Vec<Step> {
    let mut r = Recorder::default();
    let at = |ms: u64| (ms * 1_000, ms * 1_000 + 40_000);
    for tick in 1..=10 {
        r.frame(at(tick * 100).0, at(tick * 100).1, tick);
    }
    r.told(1, walk(900, [0, 7, 0], (3_000, -4_000)));
    let steps: Steps = "4701".parse().expect("four steps");
    let path = Path::new(Pos::ground(130, 170), steps, 250, TILE_CM);
    let lasts_ms = path.walk_ms();
    let path = Trajectory { motion: path.into(), start: ServerMs(900), lasts_ms };
    r.told(2, Motion::Trajectory(path));
    let pos = Pos { x: 5_000, y: -3, z: 10 };
    let sample =
        |at_ms, pos| Motion::Sample(Sample { at_ms, span_ms: 100, pos, vx_cm_s: -33, vz_cm_s: 7 });
    r.told(3, sample(1_000, pos));
    r.told(4, walk(0, [0, 0, 0], (0, 0)));
    let pictures = |r: &mut Recorder, from: u64, to: u64, step: u64| {
        (from..to).step_by(step as usize).for_each(|ms| r.picture(at(ms).0, at(ms).1));
    };
    pictures(&mut r, 1_000, 1_300, 50);
    r.frame(at(1_300).0, at(1_300).1, 13);
    r.told(1, walk(1_150, [75, 7, -100], (-3_000, 0)));
    r.told(3, sample(1_300, Pos { x: 4_950, y: -3, z: 60 }));
    r.told(4, walk(0, [300, 0, 0], (0, 0)));
    pictures(&mut r, 1_310, 1_600, 17);
    r.told(4, walk(0, [100, 0, 200], (0, 0)));
    pictures(&mut r, 1_600, 2_800, 120);
    r.leave(3);
    r.pong(at(2_800).0);
    pictures(&mut r, 2_820, 3_100, 60);
    // Hidden for six seconds.
    r.frame(at(8_990).0, at(8_990).1, 90);
    r.told(1, walk(8_900, [-5_000, 7, -100], (0, 5_000)));
    pictures(&mut r, 9_000, 9_200, 40);
    r.clear();
    r.frame(at(9_200).0, at(9_200).1, 92);
    r.told(9, sample(9_200, Pos::ground(1, 2)));
    pictures(&mut r, 9_200, 9_500, 100);
    r.steps
}

/// Corrections of the player itself: `begin` of a correction, and what to draw then.
fn blends() -> Vec<Value> {
    let mut blend = Blend::new(SPREAD_MS, SNAP_CM);
    let mut steps = Vec::new();
    let cases: [(u64, Pos, Pos); 4] = [
        (1_000, Pos { x: 100, y: 5, z: -299 }, Pos { x: 0, y: 0, z: -100 }),
        (1_150, Pos::ground(7, 7), Pos::ground(0, -11)),
        (1_400, Pos::ground(0, 0), Pos::ground(300, 0)),
        (1_500, Pos::ground(0, 0), Pos::ground(180, 239)),
    ];
    for (now_ms, shown, is) in cases {
        blend.begin(now_ms, shown, is);
        steps.push(serde_json::json!({ "begin": {
            "now_ms": now_ms, "shown": place(shown), "is": place(is),
        }}));
        for at in [0, 1, 16, 33, 66, 100, 140, 199, 200, 900].map(|after| now_ms + after) {
            let is = Pos { x: is.x + (at - now_ms) as i32 / 4, ..is };
            let want = place(blend.shown(at, is));
            steps.push(serde_json::json!({ "shown": {
                "now_ms": at, "is": place(is), "want": want,
            }}));
        }
    }
    steps
}

/// A player who walks, turns at a border and teleports, over the cells of a map.
fn cells() -> Value {
    let (size, side, enter, leave) = ([38_400, 25_700], 3_200, 4_000, 5_200);
    let mut cells = Cells::new(size, side, enter, leave).expect("usable sides and radii");
    let line = (0..60).map(|n| Pos::ground(n * 211, 9_600 + n % 7 * 40));
    let border = (0..40).map(|n| Pos::ground(12_800 + (n % 4 - 2) * 90, 9_600));
    let jumps = [Pos::ground(38_399, 25_699), Pos::ground(-900, -900), Pos::ground(19_200, 12_800)];
    let pairs = |cells: &[Cell]| cells.iter().map(|c| [c.column, c.row]).collect::<Vec<_>>();
    let step = |at: Pos| {
        let change = cells.update(at);
        let (load, unload) = (pairs(&change.load), pairs(&change.unload));
        serde_json::json!({ "at": [at.x, at.z], "load": load, "unload": unload })
    };
    let steps: Vec<Value> = line.chain(border).chain(jumps).map(step).collect();
    let rules = serde_json::json!({
        "width": size[0], "depth": size[1], "cell": side, "enter": enter, "leave": leave,
    });
    serde_json::json!({ "rules": rules, "steps": steps })
}

fn file() -> String {
    let network = |jitter_ms, gaps| Network { jitter_ms, gaps };
    let lists = [
        ("events", events()),
        ("jitter of 0 ms", walkers(network(0, false), 6_000)),
        ("jitter of 30 ms", walkers(network(30, false), 6_000)),
        ("jitter of 100 ms", walkers(network(100, false), 6_000)),
        ("a gap of 500 ms", walkers(network(30, true), 9_000)),
    ];
    let steps = |steps: &[Step]| {
        let lines = steps.iter().map(|step| serde_json::to_string(step).expect("plain values"));
        lines.collect::<Vec<_>>().join(",\n")
    };
    let lists = lists
        .map(|(name, list)| format!("{{\"name\": \"{name}\", \"steps\": [\n{}\n]}}", steps(&list)));
    let blends = blends().iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
    let cells = cells();
    let cell_steps = cells["steps"].as_array().expect("a list").iter().map(Value::to_string);
    format!(
        "{{\"display\": [\n{}\n],\n\"blend\": [\n{blends}\n],\n\"cells\": {{\"rules\": {},\n\
         \"steps\": [\n{}\n]}}}}\n",
        lists.join(",\n"),
        cells["rules"],
        cell_steps.collect::<Vec<_>>().join(",\n")
    )
}

#[test]
fn the_library_answers_as_the_vectors_say() {
    let file = file();
    let parsed: Result<Value, _> = serde_json::from_str(&file);
    assert!(parsed.is_ok(), "{parsed:?}");
    if std::env::var("PURVIEW_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(FILE, &file).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(FILE).unwrap();
    for (n, (got, wanted)) in (1..).zip(file.lines().zip(wanted.lines())) {
        assert_eq!(got, wanted, "line {n} of {FILE}");
    }
    assert_eq!(file.lines().count(), wanted.lines().count());
}
