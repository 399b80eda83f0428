//! A hostile client: WebSocket or TCP from a source address of its own, and no more manners than its attack needs.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use purview::wire::client::{ClientMsg, Hello, Join, Joined, Resume};
use purview::wire::{PROTOCOL_VERSION, ServerMsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long an attacker waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What the server said last.
#[derive(Debug)]
pub enum Reply {
    Welcome,
    Joined(Box<Joined>),
    Left,
    /// Refused, or closed: what the server wants of an attacker.
    Refused,
    Silence,
}

/// Connects from a source address; `None` if the server does not accept.
pub async fn connect(source: [u8; 4], to: SocketAddr) -> Option<TcpStream> {
    connect_by(TcpSocket::new_v4().ok()?, source, to).await
}

/// The same with a socket that takes little at a time.
pub async fn connect_small(source: [u8; 4], to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.set_recv_buffer_size(4_096).ok()?;
    connect_by(socket, source, to).await
}

async fn connect_by(socket: TcpSocket, source: [u8; 4], to: SocketAddr) -> Option<TcpStream> {
    socket.bind((source, 0).into()).ok()?;
    timeout(PATIENCE, socket.connect(to)).await.ok()?.ok()
}

/// Sends bytes, and reads until the server closes; whether it did so in time.
pub async fn until_closed(mut stream: TcpStream, bytes: &[u8], most: Duration) -> bool {
    let until = Instant::now() + most;
    if !matches!(timeout_at(until, stream.write_all(bytes)).await, Ok(Ok(()))) {
        return true;
    }
    loop {
        match timeout_at(until, stream.read(&mut [0; 4_096])).await {
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(_)) => {}
            Err(_) => return false,
        }
    }
}

/// A message as the TCP listener wants it.
pub fn framed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

pub fn hello(token: &str) -> ClientMsg {
    Hello { version: PROTOCOL_VERSION, token: token.into(), crowd: false }.into()
}

pub fn join() -> Join {
    purview_client::join("meadow")
}

/// A connection over WebSocket.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub async fn connect(source: [u8; 4], to: SocketAddr) -> Option<Client> {
        let stream = connect(source, to).await?;
        let opened = timeout(PATIENCE, client_async(format!("ws://{to}/"), stream)).await;
        Some(Client { socket: opened.ok()?.ok()?.0 })
    }

    /// Connects and says hello.
    pub async fn greet(source: [u8; 4], to: SocketAddr, token: &str) -> Option<(Client, Reply)> {
        let mut client = Client::connect(source, to).await?;
        let answer = client.ask(hello(token)).await;
        Some((client, answer))
    }

    /// Connects, says hello and joins; `None` if the server wants otherwise.
    pub async fn play(source: [u8; 4], to: SocketAddr, token: &str) -> Option<Client> {
        let (mut client, Reply::Welcome) = Client::greet(source, to, token).await? else {
            return None;
        };
        let joined = client.ask(join()).await;
        matches!(joined, Reply::Joined(_)).then_some(client)
    }

    pub async fn resume(&mut self, token: String) -> Reply {
        self.ask(Resume { token, ack: purview::scene::Seq(0) }).await
    }

    /// Sends a message; whether the connection takes it.
    pub async fn send(&mut self, msg: impl Into<ClientMsg>) -> bool {
        self.bytes(msg.into().encode()).await
    }

    pub async fn bytes(&mut self, bytes: Vec<u8>) -> bool {
        let sent = timeout(PATIENCE, self.socket.send(Message::binary(bytes))).await;
        matches!(sent, Ok(Ok(())))
    }

    /// Sends a message and waits for an answer.
    pub async fn ask(&mut self, msg: impl Into<ClientMsg>) -> Reply {
        match self.send(msg).await {
            true => self.answer(PATIENCE).await,
            false => Reply::Refused,
        }
    }

    /// The next answer; frames and pongs are none.
    pub async fn answer(&mut self, most: Duration) -> Reply {
        let until = Instant::now() + most;
        loop {
            let bytes = match timeout_at(until, self.socket.next()).await {
                Err(_) => return Reply::Silence,
                Ok(Some(Ok(Message::Binary(bytes)))) => bytes,
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return Reply::Refused,
                Ok(Some(Ok(_))) => continue,
            };
            let Ok(msg) = ServerMsg::decode(&bytes) else { return Reply::Silence };
            match msg {
                ServerMsg::Welcome(_) => return Reply::Welcome,
                ServerMsg::Joined(joined) => return Reply::Joined(joined),
                ServerMsg::Left(_) => return Reply::Left,
                ServerMsg::Refused(_) | ServerMsg::Closing(_) => return Reply::Refused,
                ServerMsg::Frame(frame) if !frame.refused.is_empty() => return Reply::Refused,
                ServerMsg::Frame(_)
                | ServerMsg::Lines(_)
                | ServerMsg::Pong(_)
                | ServerMsg::Unconfirmed(_)
                | ServerMsg::Renewed(_) => {}
            }
        }
    }

    /// Stays for a while and reads; whether the server has closed.
    pub async fn stay(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            match timeout_at(until, self.socket.next()).await {
                Err(_) => return false,
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => return true,
            }
        }
    }

    /// The bare connection, for frames that no library sends.
    pub fn bare(&mut self) -> &mut TcpStream {
        self.socket.get_mut()
    }
}
