//! Players of the tests of workers.

use purview::scene::properties::PropertyId;
use purview::scene::{EntityId, Pos};
use purview::wire::ErrorCode;
use purview_client::{Client, Event, Receiver, Sender, View, join_at};
use purview_server::gateway::Tokens;
use purview_server::process::ServerReach;
use tokio::time::timeout;

use super::support::PATIENCE;

/// A player with a client.
pub struct Player {
    pub id: EntityId,
    pub sender: Sender,
    receiver: Receiver,
    pub view: View,
    pub frames: u64,
    pub refused: Vec<ErrorCode>,
}

impl Player {
    pub async fn join(reach: &ServerReach, x: i32, z: i32) -> Player {
        let token = Tokens::dev().mint(&format!("p{x}-{z}"), Some(PATIENCE)).expect("a token");
        Player::join_by(reach, &token, x, z).await
    }

    /// Joins with a token.
    pub async fn join_by(reach: &ServerReach, token: &str, x: i32, z: i32) -> Player {
        let url = reach.url().expect("the server has a listener for clients");
        let mut client = Client::connect(&url, token).await.expect("a session");
        let joined = client.join(join_at("wood", Pos::ground(x, z))).await.expect("a player");
        let (view, id) = (View::of(&joined), joined.id);
        let (sender, receiver) = client.split();
        Player { id, sender, receiver, view, frames: 0, refused: Vec::new() }
    }

    pub async fn act(&mut self, payload: &[u8]) {
        self.sender.act(payload.to_vec()).await.expect("the session goes on");
    }

    /// Receives frames until something holds.
    pub async fn until(&mut self, holds: impl Fn(&Player) -> bool) {
        let all = async {
            while !holds(self) {
                if let Event::Frame(frame) = self.receiver.next().await.expect("a frame") {
                    self.view.apply(&frame).expect("a frame that fits");
                    self.frames += 1;
                    self.refused.extend(frame.refused.iter().map(|refused| refused.code));
                }
            }
        };
        timeout(PATIENCE, all).await.expect("it holds at last");
    }

    /// A property of an entity that it sees, as a small number.
    pub fn property(&self, entity: u64, id: u32) -> Option<u8> {
        let seen = self.view.get(EntityId(entity))?;
        seen.properties.get(&PropertyId(id as u8))?.bytes().first().copied()
    }
}
