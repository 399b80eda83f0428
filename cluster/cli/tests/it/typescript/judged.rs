//! Players of `clients/typescript/test/judged.mjs`, whose every message the view oracle judges: doors
//! turn while they play, speeds are granted, and a crowd of a recording goes through a bottleneck
//! while a gateway is killed and the players stall.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use purview::scene::messages::{Command, Motion};
use purview::scene::movement::{GrantId, ServerMs, Trajectory};
use purview::scene::{EntityId, Plane, Pos, SceneId, Tick};
use purview::wire::client::ServerMsg;
use purview::wire::{ClientMsg, ErrorCode, Frame};
use purview_lab::load::trace::{Agent, Trace};
use purview_lab::oracle::{Ending, Event, Findings, Options, Oracle, Sent, digest};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::Background;
use serde_json::{Value, json};

use super::program::Program;
use crate::common::dev_token;
use crate::walkers::token;

const TICK_MS: u64 = 100;
const TILE_CM: i32 = 100;

/// A court of 28 m x 14 m. A wall with a gate of two metres divides it; 4 m behind the wall two
/// regions meet. Everything here is far enough apart to go out of view.
const COURT: &str = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"off\"\n\
    [[scene]]\nname = \"court\"\nwidth = \"256m\"\ndepth = \"128m\"\nland = \"64m\"\n\
    region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"12m\"\nleave = \"14m\"\n\
    moves = \"judged\"\ntop_speed = \"8m/s\"\nteleports = \"clients\"\n\
    kind = [{ name = \"player\", speed = \"5m/s\" }]\n\
    rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n\
    [scene.map]\ntile = \"1m\"\n\
    [[scene.map.door]]\nname = \"west\"\ntiles = [109, 41, 1, 16]\nopen = false\n\
    [[scene.map.door]]\nname = \"east\"\ntiles = [138, 41, 1, 16]\nopen = false\n\
    [[scene.map.door]]\nname = \"north\"\ntiles = [110, 41, 28, 1]\nopen = false\n\
    [[scene.map.door]]\nname = \"south\"\ntiles = [110, 56, 28, 1]\nopen = false\n\
    [[scene.map.door]]\nname = \"upper\"\ntiles = [124, 42, 1, 6]\nopen = false\n\
    [[scene.map.door]]\nname = \"gate\"\ntiles = [124, 48, 1, 2]\nopen = true\n\
    [[scene.map.door]]\nname = \"lower\"\ntiles = [124, 50, 1, 6]\nopen = false\n";

/// The walls of the court, tiles: west, north, width, depth.
const WALLS: [[i32; 4]; 6] = [
    [109, 41, 1, 16],
    [138, 41, 1, 16],
    [110, 41, 28, 1],
    [110, 56, 28, 1],
    [124, 42, 1, 6],
    [124, 50, 1, 6],
];
const GATE: [i32; 4] = [124, 48, 1, 2];

/// Where the regions of the court meet.
const BORDER_CM: i32 = 12_800;

/// Two regions, which meet in the middle of the crowd, on two nodes.
const HALL: &str = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\ngrace_period = \"30s\"\n\
    [console]\nlisten = \"off\"\n[cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
    [[scene]]\nname = \"hall\"\nwidth = \"64m\"\ndepth = \"32m\"\nland = \"16m\"\n\
    region = [2, 2]\npatch = \"4m\"\nvisibility = \"circle\"\nenter = \"5m\"\nleave = \"6m\"\n\
    moves = \"judged\"\ntop_speed = \"8m/s\"\nteleports = \"clients\"\n\
    kind = [{ name = \"player\", speed = \"3m/s\" }]\n\
    rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n";

/// How far east the recording is moved, so that its crowd walks over the border.
const EAST_CM: i32 = 2_900;
const AGENTS: usize = 40;
/// How long of the recording is played, milliseconds.
const LENGTH_MS: u64 = 30_000;

/// What the program tells besides messages.
#[derive(Debug)]
enum Told {
    Mark,
    Rest(Rest),
    Joined(EntityId, Pos),
    Dashed,
}

#[derive(Debug)]
struct Rest {
    id: u64,
    at: [i32; 2],
    seen: Vec<(u64, [i32; 2])>,
}

/// One player, as its messages tell.
#[derive(Default)]
struct Overheard {
    said: u32,
    id: EntityId,
    own: Option<Trajectory>,
    /// Its place in each tick.
    way: Vec<(Tick, Pos)>,
    refused: Vec<ErrorCode>,
    corrections: u32,
    resumed: usize,
}

/// Hears the messages of all players.
struct Judge {
    oracle: Oracle,
    players: BTreeMap<u32, Overheard>,
}

impl Judge {
    fn new() -> Judge {
        Judge { oracle: Oracle::new(Options::default()), players: BTreeMap::new() }
    }

    /// Takes a message, and says who has joined by it.
    fn hear(&mut self, client: u32, what: &str, bytes: &[u8]) -> Option<Told> {
        match what {
            "joining" => self.oracle.event(Event::Joining(client)),
            "gone" => self.oracle.event(Event::Gone(client, Ending::Lost)),
            "sent" => self.sent(client, ClientMsg::decode(bytes).expect("a message")),
            "came" => return self.came(client, ServerMsg::decode(bytes).expect("a message")),
            other => panic!("{other}"),
        }
        None
    }

    fn sent(&mut self, client: u32, message: ClientMsg) {
        let (seq, what) = match message {
            ClientMsg::Walk(walk) => (walk.seq, Sent::Other),
            ClientMsg::Act(act) => (act.seq, Sent::Act(digest(&act.payload))),
            _ => return,
        };
        let said = &mut self.players.entry(client).or_default().said;
        // After a resume inputs are sent again.
        if seq.0 > *said {
            *said = seq.0;
            self.oracle.event(Event::Sent { client, seq, what });
        }
    }

    fn came(&mut self, client: u32, message: ServerMsg) -> Option<Told> {
        let player = self.players.entry(client).or_default();
        let mut told = None;
        let event = match message {
            ServerMsg::Joined(joined) => {
                if player.id == joined.id {
                    player.resumed += 1;
                } else {
                    told = Some(Told::Joined(joined.id, joined.pos));
                }
                player.id = joined.id;
                player.own = joined.own.as_ref().map(|own| own.trajectory.on_tiles(TILE_CM));
                Event::Joined(client, joined)
            }
            ServerMsg::Frame(frame) => {
                player.frame(&frame);
                Event::Frame(client, frame)
            }
            ServerMsg::Refused(refused) => {
                Event::Refused(client, refused.seq.expect("the refusal of an input"))
            }
            ServerMsg::Left(left) => Event::Left(client, left.tick),
            ServerMsg::Unconfirmed(u) => Event::Unconfirmed(client, u.first, u.last),
            ServerMsg::Welcome(_)
            | ServerMsg::Pong(_)
            | ServerMsg::Renewed(_)
            | ServerMsg::Lines(_)
            | ServerMsg::Closing(_) => return None,
        };
        self.oracle.event(event);
        told
    }

    /// Hears everything until the program ends; `told` hears the rest.
    fn listen(&mut self, program: &mut Program, mut told: impl FnMut(&mut Program, Told)) {
        while let Some(line) = program.next() {
            let heard = if let Some(message) = line.as_array() {
                let client = u32::try_from(message[0].as_u64().unwrap()).unwrap();
                let bytes = STANDARD.decode(message[2].as_str().unwrap()).unwrap();
                self.hear(client, message[1].as_str().unwrap(), &bytes)
            } else if line["mark"].is_u64() {
                Some(Told::Mark)
            } else if line["dashed"].is_u64() {
                Some(Told::Dashed)
            } else {
                Some(Told::Rest(Rest::of(&line)))
            };
            if let Some(heard) = heard {
                told(program, heard);
            }
        }
    }

    /// All players were there, and the oracle has found nothing.
    fn finish(self, players: u64) -> (BTreeMap<u32, Overheard>, Findings) {
        let findings = self.oracle.finish();
        let Findings { players: there, ticks, handoffs, frames, violations, examples, .. } =
            &findings;
        println!(
            "{there} players, {ticks} ticks, {frames} frames, {handoffs} handoffs: {violations:?}"
        );
        assert_eq!(violations.total(), 0, "{violations:?}: {examples:#?}");
        assert_eq!(*there, players);
        (self.players, findings)
    }
}

impl Overheard {
    fn frame(&mut self, frame: &Frame) {
        if let Some(own) = &frame.own {
            self.own = Some(own.trajectory.on_tiles(TILE_CM));
            self.corrections = own.correction;
        }
        self.refused.extend(frame.refused.iter().map(|refused| refused.code));
        let at = ServerMs(frame.tick.0 * TICK_MS);
        self.way.extend(self.own.map(|own| (frame.tick, own.position(at))));
    }
}

impl Rest {
    fn of(line: &Value) -> Rest {
        let number = |value: &Value| i32::try_from(value.as_i64().unwrap()).unwrap();
        let id = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{line}"));
        let seen = line["seen"].as_array().unwrap_or_else(|| panic!("{line}")).iter();
        Rest {
            id: id(&line["rest"]),
            at: [number(&line["at"][0]), number(&line["at"][1])],
            seen: seen.map(|e| (id(&e[0]), [number(&e[1]), number(&e[2])])).collect(),
        }
    }
}

/// Each player sees all others that are near exactly where they have themselves.
fn assert_agree(rests: &[Rest]) {
    let places: BTreeMap<u64, [i32; 2]> = rests.iter().map(|rest| (rest.id, rest.at)).collect();
    for rest in rests {
        assert!(!rest.seen.is_empty(), "{rest:?} sees nobody");
        for (id, at) in &rest.seen {
            assert_eq!(places.get(id), Some(at), "{id}, as {} sees it", rest.id);
        }
    }
}

fn is_in([west, north, width, depth]: [i32; 4], at: Pos) -> bool {
    let (x, z) = (at.x.div_euclid(TILE_CM), at.z.div_euclid(TILE_CM));
    (west..west + width).contains(&x) && (north..north + depth).contains(&z)
}

fn tile(at: Pos) -> (i32, i32) {
    (at.x.div_euclid(TILE_CM), at.z.div_euclid(TILE_CM))
}

/// Nobody is in a wall, and nobody enters the gate while it is closed. `turns`: when it has turned.
fn assert_walls(way: &[(Tick, Pos)], turns: &[(Tick, bool)]) {
    let opens = |tick: Tick| turns.iter().rev().find(|(at, _)| *at <= tick).is_none_or(|t| t.1);
    let is_shut = |from: Tick, to: Tick| {
        !opens(from)
            && !opens(to)
            && !turns.iter().any(|(at, open)| *open && from < *at && *at <= to)
    };
    for pair in way.windows(2) {
        let [(before, from), (now, to)] = pair else { unreachable!("windows of two") };
        assert!(!WALLS.iter().any(|wall| is_in(*wall, *to)), "in a wall at {now}: {to:?}");
        let entered = is_in(GATE, *to) && tile(*from) != tile(*to);
        let shut = is_shut(*before, *now);
        assert!(
            !(shut && entered),
            "through the closed gate from {from:?} at {before} to {to:?} at {now}, {turns:?}"
        );
    }
}

/// How often a player has crossed the line at `x_cm`.
fn crossings(way: &[(Tick, Pos)], x_cm: i32) -> usize {
    way.windows(2).filter(|pair| (pair[0].1.x < x_cm) != (pair[1].1.x < x_cm)).count()
}

/// A server with the court, and its clients' address.
fn court() -> (Background, String) {
    let server = Background::start(Config::parse(COURT).unwrap(), Tokens::dev()).unwrap();
    let url = server.reach().url().expect("a listener for clients");
    (server, url)
}

const COURT_PLAYERS: u64 = 14;

#[test]
fn the_oracle_finds_nothing_while_doors_turn_and_players_walk() {
    let (server, url) = court();
    let players: Vec<_> = (0..COURT_PLAYERS)
        .map(|n| {
            let pos = json!({ "x": 11_300 + 70 * n, "y": 0, "z": 4_700 + 50 * n });
            let token = dev_token(&format!("player-{n}"));
            json!({ "addresses": [url], "token": token, "pos": pos, "knows": n % 2 == 0 })
        })
        .collect();
    let area = json!({ "west": 11_100, "east": 13_700, "north": 4_300, "south": 5_500,
        "gate": { "x": 12_450, "z": 4_900 }, "lasts": 30_000 });
    let marks: Vec<u64> = (1..=11).map(|n| n * 2_500).collect();
    let mut program = Program::start("test/judged.mjs", None);
    program.say(&json!({
        "scene": "court", "area": area, "marks": marks, "players": players,
        "map": { "tile": TILE_CM, "size": [256, 128], "walls": WALLS },
    }));
    let (mut judge, mut rests, mut turns) = (Judge::new(), Vec::new(), Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    judge.listen(&mut program, |program, told| match told {
        Told::Mark => {
            let open = turns.len() % 2 == 1;
            let set = server.reach().directory.set_door(SceneId(0), Plane(0), "gate", open, None);
            turns.push((runtime.block_on(set).expect("there is a gate"), open));
            program.say(&json!({ "tiles": GATE, "open": open }));
        }
        Told::Rest(rest) => rests.push(rest),
        Told::Joined(..) => {}
        Told::Dashed => unreachable!("no speed is granted"),
    });
    program.end();
    assert_eq!((turns.len(), rests.len() as u64), (marks.len(), COURT_PLAYERS));
    assert_agree(&rests);
    let (players, findings) = judge.finish(COURT_PLAYERS);
    assert!(findings.handoffs > 0, "{} handoffs", findings.handoffs);
    players.values().for_each(|player| assert_walls(&player.way, &turns));
    let crossed = |x_cm| players.values().map(|player| crossings(&player.way, x_cm)).sum::<usize>();
    let (gate, border) = (crossed(GATE[0] * TILE_CM), crossed(BORDER_CM));
    let refused = |knows: bool| {
        let those = players.iter().filter(|(n, _)| (*n % 2 == 0) == knows);
        those.flat_map(|(_, player)| player.refused.clone()).collect::<Vec<_>>()
    };
    let (seeing, blind) = (refused(true), refused(false));
    println!(
        "{gate} times through the gate, {border} times over the border; \
         refused: {seeing:?}, without a map {}",
        blind.len()
    );
    assert!(gate > 20 && border > 20, "{gate} times through the gate, {border} over the border");
    // Where a door has stopped a walk, a turn that was under way begins beyond that place.
    let is_of_walls = |why: &ErrorCode| matches!(why, ErrorCode::Blocked | ErrorCode::Displaced);
    assert!(seeing.iter().chain(&blind).all(is_of_walls), "{seeing:?} {blind:?}");
    assert!(seeing.len() < blind.len(), "{} of {}", seeing.len(), blind.len());
}

#[test]
fn a_speed_that_the_game_grants_is_spent_in_a_dash() {
    let (server, url) = court();
    let player = |name: &str, z: i32, dash: Value| {
        let pos = json!({ "x": 12_600, "y": 0, "z": z });
        json!({ "addresses": [url], "token": dev_token(name), "pos": pos, "dash": dash })
    };
    let players = [player("ann", 4_500, json!([1, 0])), player("ben", 4_700, json!([1, 0]))];
    let mut program = Program::start("test/judged.mjs", None);
    let area = json!({ "lasts": 0 });
    program.say(&json!({ "scene": "court", "area": area, "marks": [], "players": players }));
    let (mut judge, mut rests, mut from) = (Judge::new(), Vec::new(), BTreeMap::new());
    let directory = server.reach().directory.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    judge.listen(&mut program, |_, told| match told {
        Told::Joined(id, pos) => {
            from.insert(id.0, pos);
            let scene = directory.scenes().next().expect("the court");
            let region = scene.map.at(Plane(0), pos).expect("on the map").id;
            let grant = Motion::Grant { id: GrantId(1), speed_cm_s: 800, lasts_ms: Some(1_000) };
            let order = Command::Motion(id, grant);
            runtime.block_on(directory.command(region, order)).expect("logic may");
        }
        Told::Rest(rest) => rests.push(rest),
        Told::Dashed | Told::Mark => {}
    });
    program.end();
    assert_agree(&rests);
    for rest in &rests {
        let way = rest.at[0] - from[&rest.id].x;
        assert_eq!((way, rest.at[1]), (800, from[&rest.id].z), "8 m in a second, over a border");
    }
    let (players, findings) = judge.finish(2);
    assert_eq!((findings.refused, findings.handoffs), (0, 2));
    assert!(players.values().all(|player| player.corrections == 0 && player.refused.is_empty()));
}

/// Milliseconds and a place.
type Way = Vec<(u64, i32, i32)>;

/// The way of a person of the recording.
fn way(trace: &Trace, agent: &Agent) -> Way {
    let samples = agent.samples.iter().map(|sample| {
        let pos = trace.pos(sample, 1.0);
        ((sample.t_s * 1_000.0) as u64, pos.x + EAST_CM, pos.z + 1_000)
    });
    samples.take_while(|(at, ..)| *at <= LENGTH_MS).collect()
}

/// The ways of the people of the recording; where there is none, to and fro over the border.
fn ways() -> Vec<Way> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let file = folder.join("bottleneck_hermes_304.csv.gz");
    if file.exists() {
        let trace = Trace::open(&file).expect("a readable recording");
        let ways = trace.agents.iter().map(|agent| way(&trace, agent));
        return ways.filter(|way| way.len() > 80).take(AGENTS).collect();
    }
    let place = |n: i32, at: i32| 3_000 + 20 * ((at + n) % 40 - 20).abs();
    let to_and_fro = |n: i32| {
        let steps =
            (0..LENGTH_MS as i32 / 100).map(|at| (100 * at as u64, place(n, at), 900 + 30 * n));
        steps.collect()
    };
    (0..AGENTS as i32).map(to_and_fro).collect()
}

#[test]
fn the_oracle_finds_nothing_in_a_bottleneck_with_a_killed_gateway_and_a_stall() {
    let config = Config::parse(HALL).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 2, gateways: 2 };
    let cluster = LocalCluster::start(program, &config, parts, &mut |_| {}).unwrap();
    let urls = [cluster.url(0).unwrap(), cluster.url(1).unwrap()];
    let players: Vec<_> = ways()
        .into_iter()
        .enumerate()
        .map(|(n, way)| {
            let addresses =
                if n % 2 == 0 { urls.clone() } else { [urls[1].clone(), urls[0].clone()] };
            let (from, x, z) = way[0];
            json!({ "addresses": addresses, "token": token(&cluster, &format!("person-{n}")),
                "pos": { "x": x, "y": 0, "z": z }, "from": from, "way": way })
        })
        .collect();
    let count = players.len() as u64;
    let mut program = Program::start("test/judged.mjs", None);
    program.say(&json!({ "scene": "hall", "marks": [8_000], "players": players,
        "stall": { "at": 17_000, "lasts": 5_000 } }));
    let mut judge = Judge::new();
    judge.listen(&mut program, |_, told| {
        if let Told::Mark = told {
            cluster.gateways()[0].kill();
        }
    });
    program.end();
    let (players, findings) = judge.finish(count);
    let resumed = players.values().filter(|player| player.resumed > 0).count();
    println!("{resumed} have resumed");
    assert!(resumed > 5 && players.values().all(|player| player.resumed < 2), "{resumed} resumed");
    assert!(findings.handoffs > 5, "{} handoffs", findings.handoffs);
    let refused: Vec<_> = players.values().flat_map(|player| &player.refused).collect();
    assert!(refused.is_empty(), "{refused:?}");
}
