//! A scene inside a server of your own: two players meet, one acts, one walks away. No actor, no
//! socket, no thread: `World::tick` is called when the server's tick ends.
//!
//! cargo run --example embed

use purview::scene::Pos;
use purview::world::{Entity, Event, World, WorldError};

/// Runs the example and returns what the players were told, one line per event.
pub fn run() -> Result<Vec<String>, WorldError> {
    let mut world = World::builder().size_m(1_024, 1_024).view_cap(60).build()?;
    let ann = world.add(Entity::player(Pos::ground(10_000, 10_000)).appearance("knight"))?;
    let bob = world.add(Entity::player(Pos::ground(90_000, 10_000)).appearance("ranger"))?;
    let mut lines = Vec::new();
    let mut tick = |world: &mut World| {
        for event in world.tick() {
            let who = |id| if id == ann { "ann" } else { "bob" };
            lines.push(match event {
                Event::Entered { viewer, subject } => {
                    format!("{} sees {}", who(viewer), who(subject))
                }
                Event::Left { viewer, subject } => format!("{} lost {}", who(viewer), who(subject)),
                Event::Moved { subject, pos, .. } => {
                    format!("{} is at x = {}", who(subject), pos.x)
                }
                Event::Acted { subject, payload, .. } => {
                    format!("{} did {payload:?}", who(subject))
                }
                // No property changes here, but each player is told its own appearance.
                Event::Property { .. } => continue,
                // Nobody turns, speaks or breaks a rule; positions are trusted, and there is no logic.
                other => format!("{other:?}"),
            });
        }
    };
    tick(&mut world); // 800 m apart: no player is told of another
    world.move_to(bob, Pos::ground(12_000, 10_000))?;
    tick(&mut world);
    world.act(ann, "wave")?;
    tick(&mut world);
    world.move_to(bob, Pos::ground(90_000, 10_000))?;
    tick(&mut world);
    Ok(lines)
}

fn main() -> Result<(), WorldError> {
    run()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
