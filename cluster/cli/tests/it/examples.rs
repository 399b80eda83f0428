//! The programs in `examples/` that run a server do what they say.

use purview::scene::Pos;
use purview_client::{Client, Event, join_at};

use crate::common::{block_on, event};

#[path = "../../../../examples/server.rs"]
#[allow(dead_code)]
mod server;

#[test]
fn a_player_walks_on_a_server_in_the_users_own_process() {
    let started = server::start("ann").unwrap();
    let acked = block_on(async {
        let mut client = Client::connect(&started.url, &started.token).await.unwrap();
        client.join(join_at("field", Pos::ground(51_000, 51_000))).await.unwrap();
        let seq = client.send_move(Pos::ground(51_100, 51_000)).await.unwrap();
        event(&mut client, |event| match event {
            Event::Frame(frame) if frame.ack == seq => Some(frame.ack),
            _ => None,
        })
        .await
    });
    assert_eq!(acked.0, 1);
}
