//! The example game `siege`: its rules in Rust and in Python, played by clients that walk.

mod soldier;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use purview::actor::logic::LogicFactory;
use purview::actor::messages::Inspect;
use purview::scene::inspect::EntityDetails;
use purview::scene::properties::PropertyId;
use purview::scene::{EntityId, Pos};
use purview_demo::rng::Rng;
use purview_server::config::{Config, Override};
use purview_server::gateway::Tokens;
use purview_server::process::{Background, ServerReach};

use self::rules::{BANNER, FALLS, GATE, PLAYER, SCORE};
use self::soldier::Soldier;
use crate::foreign::PythonWorker;
use crate::workers::support::{PATIENCE, runtime};

#[allow(missing_docs, reason = "the example is for reading from top to bottom")]
#[path = "../../../../examples/siege/rules.rs"]
mod rules;

/// Players in a view list, as the configuration says.
const CAP: usize = 20;

/// What the rules are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    InRust,
    InPython,
}

struct Game {
    server: Background,
    tokens: Tokens,
    workers: Vec<PythonWorker>,
}

impl Game {
    fn start(rules: Written, workers: usize) -> Game {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/siege/siege.toml");
        let own: Option<Arc<dyn LogicFactory>> = match rules {
            Written::InRust => Some(Arc::new(rules::Siege::default())),
            Written::InPython => None,
        };
        let listen = own.is_none().then(|| "logic.listen=127.0.0.1:0".parse().unwrap());
        let overrides: Vec<Override> = listen.into_iter().collect();
        let config =
            Config::load(Some(&file), [], &overrides).expect("the example's configuration");
        let tokens = Tokens::dev().with_rules(config.token.rules());
        let server = Background::start_with(config, tokens.clone(), own).expect("a server");
        let start = |_| {
            let address = server.reach().logic.expect("workers can connect").to_string();
            PythonWorker::start("siege.py", &address, &[])
        };
        let workers = match rules {
            Written::InRust => Vec::new(),
            Written::InPython => (0..workers).map(start).collect(),
        };
        Game { server, tokens, workers }
    }

    fn reach(&self) -> &ServerReach {
        self.server.reach()
    }

    async fn soldier(&self, name: &str, guild: &str) -> Soldier {
        Soldier::join(self.reach(), &self.tokens, name, guild).await
    }

    /// All entities of the server, each where it lives.
    async fn all(&self) -> Vec<EntityDetails> {
        let mut all = Vec::new();
        for region in self.reach().hosted.now().iter() {
            let details = region.inspect.send(Inspect { plane: None }).await;
            let entities = details.expect("the region runs").entities;
            all.extend(entities.into_iter().filter(|entity| !entity.ghost));
        }
        all
    }

    /// The points of both banners, and the falls of all players.
    async fn points(&self) -> (i64, i64) {
        let all = self.all().await;
        let sum = |kind, id: PropertyId| -> i64 {
            let of_kind = all.iter().filter(|e| e.kind == kind);
            of_kind.filter_map(|e| e.properties.get(id)?.value.read::<i64>().ok()).sum()
        };
        (sum(BANNER, SCORE), sum(PLAYER, FALLS))
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let come = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, come)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within a minute"));
}

/// Two of each guild: the gate stops the blue ones until they have broken it, the tower warns the red ones, one falls.
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn storm(rules: Written) {
    let game = Game::start(rules, 1);
    let (ann, ben) = (game.soldier("ann", "blue").await, game.soldier("ben", "blue").await);
    let (cat, dan) = (game.soldier("cat", "red").await, game.soldier("dan", "red").await);
    let is_in_camp = |soldier: &Soldier, x: i32| (x..x + 2_000).contains(&soldier.pos().x);
    until("each begins at the camp of its guild", async || {
        [&ann, &ben].iter().all(|s| is_in_camp(s, 3_600))
            && [&cat, &dan].iter().all(|s| is_in_camp(s, 21_000))
    })
    .await;

    // The gate.
    ann.goes(Pos::ground(12_500, 6_600));
    ben.goes(Pos::ground(12_400, 6_700));
    cat.goes(Pos::ground(14_400, 6_600));
    until("the tower warns the red guild", async || cat.was_told("alarm: ")).await;
    assert!(!ann.was_told("alarm: "), "the blue guild is not warned");
    until("they are before the gate", async || {
        [&ann, &ben].iter().all(|s| s.pos().x > 12_300) && ann.sees(GATE).is_some()
    })
    .await;
    ann.goes(Pos::ground(14_000, 6_600));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(ann.pos().x < 12_800, "the gate is shut: {:?}", ann.pos());
    until("the gate is broken by ten hits", async || {
        ann.says("hit");
        tokio::time::sleep(Duration::from_millis(200)).await;
        [&ann, &dan].iter().all(|s| s.was_told("the gate is broken"))
    })
    .await;
    ann.goes(Pos::ground(14_000, 6_600));
    ben.goes(Pos::ground(14_000, 6_900));
    until("they are in the city", async || [&ann, &ben].iter().all(|s| s.pos().x > 13_300)).await;

    // A fight.
    until("enemies see each other", async || {
        ben.sees_entity(cat.id()) && cat.sees_entity(ann.id())
    })
    .await;
    until("one falls", async || {
        cat.says("strike");
        tokio::time::sleep(Duration::from_millis(200)).await;
        ann.was_told("you fell") || ben.was_told("you fell")
    })
    .await;
    let (fallen, other) = if ann.was_told("you fell") { (&ann, &ben) } else { (&ben, &ann) };
    until("the fallen begins again", async || is_in_camp(fallen, 3_600)).await;
    until("the other guild has the point", async || game.points().await == (1, 1)).await;
    assert_eq!(dan.number(dan.sees(BANNER).expect("the red banner"), SCORE), 1);

    // A party.
    fallen.says("party 7");
    other.says("party 7");
    until("the party talks", async || {
        fallen.says("say well met");
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.was_told("well met")
    })
    .await;
    assert!(!cat.was_told("well met"));

    // The floors of the tower.
    cat.goes(Pos::ground(15_000, 3_200));
    until("the stairs lead up", async || cat.pos().y == 800).await;
    other.goes(Pos::ground(15_000, 4_400));
    until("the other stands below", async || {
        other.pos().dist2(Pos::ground(15_000, 4_400)) < 200 * 200
    })
    .await;
    until("floors do not see each other", async || {
        !other.sees_entity(cat.id()) && !cat.sees_entity(other.id())
    })
    .await;
    assert!(other.pos().dist2(cat.pos()) < 3_000 * 3_000, "they are near each other");
    cat.goes(Pos::ground(16_600, 2_600));
    until("the stairs lead down", async || cat.pos().y == 0).await;
    until("they see each other again", async || other.sees_entity(cat.id())).await;

    // The gate is back.
    until("the gate is mended", async || game.all().await.iter().any(|e| e.kind == GATE)).await;
    dan.goes(Pos::ground(13_400, 6_600));
    until("a red guard opens it", async || {
        dan.says("open");
        tokio::time::sleep(Duration::from_millis(200)).await;
        fallen.was_told("the gate is open")
    })
    .await;
    for soldier in [ann, ben, cat, dan] {
        soldier.leaves().await;
    }
}

#[test]
fn a_guild_storms_the_city_by_rules_in_rust() {
    runtime().block_on(storm(Written::InRust));
}

#[test]
fn a_guild_storms_the_city_by_rules_in_python() {
    runtime().block_on(storm(Written::InPython));
}

/// Soldiers of both guilds walk, strike, break and open the gate, and talk, while a worker dies. Then all stand: the
/// points of the banners are the falls of the players, and every view is right.
async fn battle(rules: Written, soldiers: usize, lasts: Duration) {
    let mut game = Game::start(rules, 2);
    let mut army = Vec::new();
    for n in 0..soldiers {
        let guild = if n % 2 == 0 { "red" } else { "blue" };
        army.push(game.soldier(&format!("s{n}"), guild).await);
    }
    let mut random = Rng::new(7);
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < lasts || game.points().await.1 == 0 {
        assert!(begun.elapsed() < lasts + PATIENCE, "nobody falls");
        for (n, soldier) in army.iter().enumerate() {
            match random.below(40) {
                0 => soldier.goes(somewhere(&mut random)),
                1 => soldier.says(&format!("party {}", n / 8)),
                2 => soldier.says("say onward"),
                3 => soldier.says("hit"),
                4 => soldier.says("open"),
                5..9 => soldier.says("strike"),
                _ => {}
            }
        }
        if begun.elapsed() > lasts / 2 && game.workers.len() > 1 {
            game.workers.pop();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    army.iter().for_each(Soldier::stands);
    until("each point is a fall", async || {
        let (points, falls) = game.points().await;
        points == falls
    })
    .await;
    until("each sees whom it must see", async || wrong_views(&game, &army).await.is_empty()).await;
    for soldier in army {
        soldier.leaves().await;
    }
}

/// Half of the goals are round the gate.
fn somewhere(random: &mut Rng) -> Pos {
    let along = |from: i32, to: i32, share: f64| from + (f64::from(to - from) * share) as i32;
    let (x, z) = (random.unit(), random.unit());
    match random.below(2) {
        0 => Pos::ground(along(11_800, 14_400, x), along(6_200, 7_000, z)),
        _ => Pos::ground(along(100, 25_500, x), along(100, 12_700, z)),
    }
}

/// The pairs of players whose views are wrong: one-sided, or against the radii, the height or the cap.
async fn wrong_views(game: &Game, army: &[Soldier]) -> Vec<String> {
    let all = game.all().await;
    let at: BTreeMap<EntityId, Pos> =
        all.iter().filter(|e| e.kind == PLAYER).map(|e| (e.id, e.pos)).collect();
    let seen: BTreeMap<EntityId, BTreeSet<EntityId>> =
        army.iter().map(|s| (s.id(), s.players().into_iter().collect())).collect();
    let mut wrong = Vec::new();
    for (a, its) in &seen {
        for b in seen.keys().filter(|b| *b != a) {
            let (from, to) = (at[a], at[b]);
            let (apart, above) = (from.dist2(to), from.y.abs_diff(to.y));
            let sees = its.contains(b);
            let is_full = its.len() >= CAP || seen[b].len() >= CAP;
            let must = apart <= 3_000 * 3_000 && above <= 400 && !is_full;
            let may = apart <= 3_400 * 3_400 && above <= 450;
            if sees != seen[b].contains(a) || (must && !sees) || (sees && !may) {
                wrong.push(format!("{a} at {from:?}, {b} at {to:?}: {sees}"));
            }
        }
    }
    wrong
}

#[test]
fn points_are_falls_and_views_are_right_after_a_battle() {
    runtime().block_on(battle(Written::InRust, 40, Duration::from_secs(10)));
}

/// Part of the nightly run.
#[test]
#[ignore = "takes minutes: bash .ci/nightly"]
fn two_hundred_soldiers_fight_by_rules_in_rust_and_in_python() {
    for rules in [Written::InRust, Written::InPython] {
        runtime().block_on(battle(rules, 200, Duration::from_secs(60)));
    }
}
