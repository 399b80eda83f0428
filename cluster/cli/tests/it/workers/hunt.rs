//! The example game over gRPC, in Python: players hunt, a worker is killed in between, and no gold is lost or made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use purview::actor::messages::Inspect;
use purview::scene::inspect::EntityDetails;
use purview::scene::properties::PropertyId;
use purview::scene::{Kind, Pos};
use purview_server::process::Reach;

use super::refusals::Secured;
use super::support::{HP, PATIENCE, Player, runtime, server};
use crate::foreign::PythonWorker;

const PLAYER: Kind = Kind(0);
const MONSTER: Kind = Kind(1);
const DROP: Kind = Kind(2);
const LAIR: Kind = Kind(3);
const GOLD: u8 = 2;
const TAKEN: u8 = 4;
const MINTED: u8 = 5;
/// Monsters of a region, and the gold of each.
const MONSTERS: usize = 5;
const PRIZE: i64 = 10;

#[test]
fn the_game_in_python_connects_by_tls_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let secured = Secured::in_folder(folder.path());
    let server = server(&secured.config);
    let reach = server.reach().clone();
    let ca = secured.ca.to_str().unwrap();
    let worker = hunter(&reach, &[secured.token, ca]);
    runtime().block_on(async {
        let monsters = async || all(&reach).await.iter().filter(|e| e.kind == MONSTER).count();
        let come = async {
            while monsters().await < 4 * MONSTERS {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, come).await.expect("the worker sends monsters");
    });
    drop(worker);
}

/// The rules in Python for a server.
fn hunter(reach: &Reach, more: &[&str]) -> PythonWorker {
    let address = reach.logic.expect("workers can connect").to_string();
    PythonWorker::start("hunt.py", &address, more)
}

/// All entities of the server, each where it lives.
async fn all(reach: &Reach) -> Vec<EntityDetails> {
    let mut all = Vec::new();
    for region in reach.hosted.now().iter() {
        let details = region.inspect.send(Inspect { plane: None }).await.expect("the region runs");
        all.extend(details.entities.into_iter().filter(|entity| !entity.ghost));
    }
    all
}

fn number(entity: &EntityDetails, id: u8) -> i64 {
    let level = entity.properties.get(PropertyId(id));
    level.and_then(|level| level.value.read().ok()).unwrap_or(0)
}

/// What a test looks at.
#[derive(Debug, Default)]
struct State {
    /// Gold of players, monsters and drops. A drop that its taker has had already does not count.
    gold: i64,
    /// Gold that lairs have given.
    minted: i64,
    /// Gold of players.
    won: i64,
    on_ground: bool,
    /// Every player has hit points.
    living: bool,
}

impl State {
    fn of(all: &[EntityDetails]) -> State {
        let mut state = State { living: true, ..State::default() };
        let taken: BTreeSet<u64> = all.iter().flat_map(taken).collect();
        for entity in all {
            let gold = number(entity, GOLD);
            match entity.kind {
                LAIR => state.minted += number(entity, MINTED),
                DROP => {
                    state.on_ground = true;
                    state.gold += if taken.contains(&entity.id.0) { 0 } else { gold };
                }
                PLAYER => {
                    state.won += gold;
                    state.living &= number(entity, HP as u8) > 0;
                    state.gold += gold;
                }
                _ => state.gold += gold,
            }
        }
        state
    }

    fn is_conserved(&self) -> bool {
        self.gold == self.minted
    }
}

/// The drops that a player has had of late.
fn taken(entity: &EntityDetails) -> Vec<u64> {
    let level = entity.properties.get(PropertyId(TAKEN));
    let taken: Vec<(u64, u64)> =
        level.and_then(|level| level.value.read().ok()).unwrap_or_default();
    taken.into_iter().map(|(drop, _)| drop).collect()
}

/// A player runs to the nearest drop or monster, takes it or hits it, until the game is over.
async fn hunt(mut player: Player, mut at: Pos, over: Arc<AtomicBool>) -> i64 {
    let mut least = 100;
    while !over.load(Relaxed) {
        let frames = player.frames + 1;
        player.until(|p| p.frames >= frames).await;
        let near = |kind: Kind| {
            let seen = player.view.iter().filter(|(_, seen)| seen.kind == kind);
            seen.map(|(id, seen)| (at.dist2(seen.pos), id, seen.pos))
                .min_by_key(|(d2, id, _)| (*d2, *id))
        };
        let (drop, monster) = (near(DROP), near(MONSTER));
        // Where nothing is in sight it walks about.
        let anywhere = Pos::ground((frames * 41 % 50_000) as i32, (frames * 67 % 50_000) as i32);
        let goal = drop.or(monster).map_or(anywhere, |(_, _, goal)| goal);
        let towards = |from: i32, to: i32| from + (to - from).clamp(-130, 130);
        at = Pos::ground(towards(at.x, goal.x), towards(at.z, goal.z));
        player.sender.send_move(at).await.expect("the session goes on");
        if let Some((_, id, _)) = drop {
            player.act(format!("take {id}").as_bytes()).await;
        } else if let Some((_, id, _)) = monster {
            player.act(format!("hit {id}").as_bytes()).await;
        }
        let own = player.view.own().properties.get(&PropertyId(HP as u8));
        least = own.and_then(|value| value.read().ok()).map_or(least, |hp: i64| least.min(hp));
    }
    least
}

#[test]
fn gold_is_conserved_in_python_over_grpc_when_a_worker_is_killed() {
    let server = server("[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"500ms\"\n");
    let reach = server.reach().clone();
    let (first, second) = (hunter(&reach, &[]), hunter(&reach, &[]));
    runtime().block_on(async {
        let monsters = async || all(&reach).await.iter().filter(|e| e.kind == MONSTER).count();
        while monsters().await < 4 * MONSTERS {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let over = Arc::new(AtomicBool::new(false));
        let mut players = Vec::new();
        let prey: Vec<Pos> =
            all(&reach).await.iter().filter(|e| e.kind == MONSTER).map(|e| e.pos).collect();
        for at in prey.into_iter().step_by(MONSTERS) {
            let player = Player::join(&reach, at.x, at.z).await;
            players.push(tokio::spawn(hunt(player, at, over.clone())));
        }
        let mut first = Some(first);
        let hunted = async {
            loop {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                let state = State::of(&all(&reach).await);
                if state.won > 0 {
                    drop(first.take());
                }
                if state.won >= 6 * PRIZE && !state.on_ground && state.is_conserved() {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, hunted).await.expect("all gold is with players at last");
        over.store(true, Relaxed);
        let mut least = 100;
        for player in players {
            least = least.min(player.await.unwrap());
        }
        assert!(least < 100, "no monster has bitten");
        // What is on its way arrives.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let state = State::of(&all(&reach).await);
        assert!(state.is_conserved() && state.living, "{state:?}");
    });
    drop(second);
}
