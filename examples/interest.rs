//! Which entities see which others: the interest management of a game server, by kinds. Players see
//! wolves within 40 m, wolves see players within 60 m, and things see nothing. A chest is seen from
//! 30 m. Every request and event has ids of the game's own.
//!
//! cargo run --example interest

use std::error::Error;

use purview::interest::{Entity, Mode, PairRule, Radii, Reach, Request, Rules, Sight, World};
use purview::scene::{Pos, Rect};

const PLAYER: u8 = 0;
const WOLF: u8 = 1;
const CHEST: u8 = 2;

fn rules() -> Rules {
    let circle = |metres: i32| Some(Reach::Circle(Radii::new(metres * 100, metres * 100 + 500)));
    let rule = |observer, subject, reach| PairRule { observer, subject, reach };
    Rules {
        ground: Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 }, // centimetres
        mode: Mode::Circle,
        reach: None,
        pairs: vec![
            rule(PLAYER, WOLF, circle(40)),
            rule(WOLF, PLAYER, circle(60)),
            rule(PLAYER, CHEST, circle(30)),
        ],
        cap: None,
        positions: false,
    }
}

fn entity(id: u64, kind: u8, x_m: i32) -> Request {
    let pos = Pos::ground(x_m * 100, 50_000);
    Request::Create(Entity { id, kind, plane: 0, pos, sight: Sight::default() })
}

fn walk(id: u64, x_m: i32) -> Request {
    Request::Move { id, pos: Pos::ground(x_m * 100, 50_000) }
}

/// Runs the example and returns one line per event and refused request.
pub fn run() -> Result<Vec<String>, Box<dyn Error>> {
    let mut world = World::new(rules())?;
    // A scout (1) knows the wolf (900) already; a hunter (2) comes nearer; 800 is a chest.
    let scout = Sight { reach: Some(Reach::Circle(Radii::new(20_000, 21_000))), kinds: None };
    let ticks = [
        vec![
            entity(1, PLAYER, 100),
            Request::SetReach { id: 1, reach: scout.reach },
            entity(2, PLAYER, 300),
            entity(900, WOLF, 220),
            entity(800, CHEST, 500),
        ],
        vec![walk(77, 10), walk(2, 275)],
        vec![walk(2, 255)],
        vec![Request::Delete(900)],
    ];
    let mut lines = Vec::new();
    for (tick, batch) in ticks.iter().enumerate().map(|(i, batch)| (i + 1, batch)) {
        for (_, why) in world.request_all(batch) {
            lines.push(format!("tick {tick}: refused: {why}"));
        }
        for event in world.tick() {
            let sees = if event.appears { "sees" } else { "no longer sees" };
            lines.push(format!("tick {tick}: {} {sees} {}", event.observer, event.subject));
        }
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    run()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
