//! The programs in `examples/` that run a server do what they say.

use purview::scene::Pos;
use purview_client::{Client, Event, join_at};

#[path = "../../../../examples/server.rs"]
#[allow(dead_code)]
mod server;

#[test]
fn a_player_walks_on_a_server_in_the_users_own_process() {
    let started = server::start("ann").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let acked = runtime.block_on(async {
        let mut client = Client::connect(&started.url, &started.token).await.unwrap();
        client.join(join_at("field", Pos::ground(51_000, 51_000))).await.unwrap();
        let seq = client.send_move(Pos::ground(51_100, 51_000)).await.unwrap();
        loop {
            if let Event::Frame(frame) = client.next().await.unwrap()
                && frame.ack == seq
            {
                return frame.ack;
            }
        }
    });
    assert_eq!(acked.0, 1);
}
