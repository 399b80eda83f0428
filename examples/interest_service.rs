//! A game server in Rust that uses the interest service, as a process of its own. Two players and a
//! wolf walk about; the service says who sees whom. In between the connection breaks, and the client
//! goes on where it was.
//!
//! cargo run --bin purview -- interest
//! cargo run -p purview-server --example interest_service -- http://127.0.0.1:7791

use std::error::Error;

use purview::interest::{Entity, Mode, Radii, Reach, Rules, Sight};
use purview::scene::{Pos, Rect};
use purview_server::interest::client::{Address, ClientError, Stream};
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Delete, change};

const SCENE: u64 = 1;
const PLAYER: u8 = 0;
const WOLF: u8 = 1;

fn at(x_m: i32) -> Pos {
    Pos::ground(x_m * 100, 50_000)
}

fn entity(id: u64, kind: u8, x_m: i32) -> Entity {
    Entity { id, kind, plane: 0, pos: at(x_m), sight: Sight::default() }
}

/// Sends changes of the scene, and tells what they lead to. Returns the number of the last update.
async fn ask(
    stream: &mut Stream,
    changes: Vec<change::Change>,
    lines: &mut Vec<String>,
) -> Result<u64, ClientError> {
    let changes = changes.into_iter().map(|kind| change(SCENE, kind)).collect();
    let batch = stream.send(changes).await?;
    loop {
        let update = stream.update().await?.ok_or(ClientError::Ended("the batch was answered"))?;
        lines.extend(update.refused.iter().map(|refusal| format!("refused: {}", refusal.text)));
        for scene in &update.scenes {
            for event in encode::events(scene) {
                let sees = if event.appears { "sees" } else { "no longer sees" };
                let (tick, observer, subject) = (scene.tick, event.observer, event.subject);
                lines.push(format!("tick {tick}: {observer} {sees} {subject}"));
            }
        }
        if update.applied >= batch && !update.more {
            return Ok(update.sequence);
        }
    }
}

/// Runs the example, and returns what it tells.
pub async fn run(address: &Address) -> Result<Vec<String>, ClientError> {
    let mut lines = Vec::new();
    // One square kilometre, in centimetres, and a circle for all kinds.
    let ground = Rect { x0: 0, z0: 0, x1: 100_000, z1: 100_000 };
    let rules = Rules::new(ground, Mode::Circle, Reach::Circle(Radii::new(4_000, 4_500)));
    let entities = [entity(1, PLAYER, 100), entity(2, PLAYER, 200), entity(900, WOLF, 130)];
    let begin = vec![
        change::Change::CreateScene(encode::scene(&rules, None)),
        encode::create(&entities),
        encode::tick(),
    ];
    let mut stream = address.begin().await?;
    ask(&mut stream, begin, &mut lines).await?;
    let walk = encode::moves(&[(2, at(160)), (77, at(0))]);
    let received = ask(&mut stream, vec![walk, encode::tick()], &mut lines).await?;

    let session = stream.opened.session.clone();
    drop(stream); // as if the connection were lost
    let mut stream = address.resume(session, received).await?;
    // A session that is gone would not be resumed: the whole state would have to be sent again.
    let applied = stream.opened.applied;
    lines.push(format!("resumed: the service has applied {applied} batches"));

    let leave = change::Change::Delete(Delete { ids: vec![2] });
    let walk = encode::moves(&[(1, at(80))]);
    ask(&mut stream, vec![walk, leave, encode::tick()], &mut lines).await?;
    let mut rest = stream.close().await?;
    while rest.message().await?.is_some() {}
    Ok(lines)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7791".into());
    run(&Address::new(&url)).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
