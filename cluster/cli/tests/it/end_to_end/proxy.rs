//! A proxy between clients and a real server that hides something from one client.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use purview::scene::EntityId;
use purview::wire::{Frame, ServerMsg};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, client_async};

/// What the proxy hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    None,
    /// The first enter of an entity; later updates of it pass.
    DropEnter,
    /// Half of all entities.
    Hide,
    DropLeaves,
    DropMoves,
    /// Everything, after a second.
    Mute,
}

/// The connection that the proxy changes, by number; the first one only tests the server.
const VICTIM: usize = 5;

/// Accepts connections on its own thread until the process ends. Returns the URL for clients.
pub fn proxy(server: &str, sabotage: Sabotage) -> String {
    let server: SocketAddr =
        server.trim_start_matches("ws://").trim_end_matches('/').parse().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(format!("ws://{}/", listener.local_addr().unwrap())).unwrap();
            for n in 0.. {
                let (client, _) = listener.accept().await.unwrap();
                let sabotage = if n == VICTIM { sabotage } else { Sabotage::None };
                tokio::spawn(pass(client, server, Middleman::new(sabotage)));
            }
        });
    });
    told.recv().unwrap()
}

async fn pass(client: TcpStream, server: SocketAddr, mut middleman: Middleman) {
    client.set_nodelay(true).unwrap();
    let mut client = accept_async(client).await.unwrap();
    let stream = TcpStream::connect(server).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut server, _) = client_async(format!("ws://{server}/"), stream).await.unwrap();
    loop {
        let passed = tokio::select! {
            said = client.next() => match said {
                Some(Ok(message)) => server.send(message).await,
                None | Some(Err(_)) => return,
            },
            told = server.next() => match told {
                Some(Ok(Message::Binary(bytes))) => match middleman.tell(&bytes) {
                    Some(bytes) => client.send(Message::binary(bytes)).await,
                    None => Ok(()),
                },
                Some(Ok(message)) => client.send(message).await,
                None | Some(Err(_)) => return,
            },
        };
        if passed.is_err() {
            return;
        }
    }
}

struct Middleman {
    sabotage: Sabotage,
    since: Instant,
    /// The entities hidden from the client.
    hidden: Option<EntityId>,
}

impl Middleman {
    fn new(sabotage: Sabotage) -> Middleman {
        Middleman { sabotage, since: Instant::now(), hidden: None }
    }

    /// The message for the client instead of the original one.
    fn tell(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.sabotage == Sabotage::None {
            return Some(bytes.to_vec());
        }
        match ServerMsg::decode(bytes).unwrap() {
            ServerMsg::Frame(mut frame) => {
                self.falsify(&mut frame).then(|| ServerMsg::Frame(frame).encode())
            }
            other => Some(other.encode()),
        }
    }

    /// Whether the frame passes at all.
    fn falsify(&mut self, frame: &mut Frame) -> bool {
        match self.sabotage {
            Sabotage::None => {}
            Sabotage::DropEnter => {
                if self.hidden.is_none() {
                    self.hidden = frame.enters.pop().map(|e| e.id);
                }
            }
            Sabotage::Hide => {
                let hidden = |id: EntityId| id.0.is_multiple_of(2);
                frame.enters.retain(|e| !hidden(e.id));
                frame.moves.retain(|m| !hidden(m.id));
                frame.leaves.retain(|id| !hidden(*id));
            }
            Sabotage::DropLeaves => frame.leaves.clear(),
            Sabotage::DropMoves => frame.moves.clear(),
            Sabotage::Mute => return self.since.elapsed() < Duration::from_secs(1),
        }
        true
    }
}
