//! Joins a scene, walks east for ten seconds and prints the number of entities in view.
//!
//! `cargo run -p purview-client --example walk -- ws://127.0.0.1:7711/ meadow [token]`

use std::time::Duration;

use purview::scene::Pos;
use purview_client::{Client, Clock, Event, View, Walker, join};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "ws://127.0.0.1:7711/".into());
    let scene = args.next().unwrap_or_else(|| "meadow".into());
    let token = args.next().unwrap_or_default();

    let mut client = Client::connect(&url, &token).await?;
    // A game calls this in every drawn frame; the walker sends a command only now and then.
    let mut step = tokio::time::interval(Duration::from_millis(50));
    let joined = client.join(join(scene)).await?;
    println!("{} stands at {:?} on plane {}", joined.id, joined.pos, joined.plane);

    let (mut sender, mut receiver) = client.split();
    let (clock, mut view) = (Clock::new(), View::of(&joined));
    let mut walker = Walker::new(clock.now(), &joined);
    if let Some(walker) = &mut walker {
        walker.walk(1, 0, walker.speed().min(500));
    }
    let mut x = joined.pos.x;
    for _ in 0..400 {
        tokio::select! {
            _ = step.tick() => match &mut walker {
                Some(walker) => sender.walk(clock.now(), walker).await?,
                None => {
                    // Positions are trusted here.
                    x += 25;
                    sender.send_move(Pos { x, ..joined.pos }).await?;
                }
            },
            event = receiver.next() => match event? {
                Event::Frame(frame) => {
                    view.apply(&frame)?;
                    if let Some(walker) = &mut walker {
                        walker.frame(clock.now(), &frame);
                    }
                    println!("tick {}: {} in view", frame.tick, view.len());
                }
                other => println!("{other:?}"),
            },
        }
    }
    sender.leave().await?;
    Ok(())
}
