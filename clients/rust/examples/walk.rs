//! Joins a scene, walks east for a hundred steps and prints how many are in view.
//!
//! `cargo run -p purview-client --example walk -- ws://127.0.0.1:7000/ meadow [token]`

use std::time::Duration;

use purview::scene::Pos;
use purview_client::{Client, Event, View, join_at};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "ws://127.0.0.1:7000/".into());
    let scene = args.next().unwrap_or_else(|| "meadow".into());
    let token = args.next().unwrap_or_default();

    let mut client = Client::connect(&url, &token).await?;
    let mut step = tokio::time::interval(Duration::from_millis(client.welcome().tick_ms.into()));
    let joined = client.join(join_at(scene, Pos::ground(1_000, 1_000))).await?;
    println!("{} stands at {:?} on plane {}", joined.id, joined.pos, joined.plane);

    let (mut sender, mut receiver) = client.split();
    let mut view = View::default();
    let mut x = joined.pos.x;
    for _ in 0..100 {
        tokio::select! {
            _ = step.tick() => {
                x += 50;
                sender.send_move(Pos { x, ..joined.pos }).await?;
            }
            event = receiver.next() => match event? {
                Event::Frame(frame) => {
                    view.apply(&frame)?;
                    println!("tick {}: {} in view", frame.tick, view.len());
                }
                other => println!("{other:?}"),
            },
        }
    }
    sender.leave().await?;
    Ok(())
}
