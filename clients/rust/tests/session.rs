//! A session against a small server that answers as the test tells it.

use futures::{SinkExt, StreamExt};
use purview::scene::{EntityId, Epoch, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility};
use purview::wire::client::{
    Closing, Joined, Left, Line, Lines, Pong, Refused, ServerMsg, Welcome,
};
use purview::wire::{ClientMsg, CloseCode, ErrorCode, Frame, JoinRules};
use purview_client::{Client, ClientError, Event, join_at};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

fn welcome() -> ServerMsg {
    ServerMsg::Welcome(Welcome {
        version: 3,
        session: SessionId(5),
        tick_ms: 100,
        server_ms: 0,
        rate_limit: 60,
        max_frame: 4096,
        heartbeat_ms: 10_000,
    })
}

fn joined() -> Joined {
    Joined {
        facing: Default::default(),
        id: EntityId(9),
        scene: "meadow".into(),
        plane: Plane(0),
        pos: Pos::ground(1, 2),
        tick: Tick(3),
        rules: JoinRules {
            visibility: Visibility::Patches,
            range: RangeSet::FULL,
            sight: RangeSet::FULL,
            patch_cm: [3_200; 2],
            patch_margin_cm: 200,
            height_cm: None,
            view_cap: 60,
            view_margin_cm: 0,
            rates: [1, 10, 40],
            size_cm: [204_800, 204_800],
            movement: None,
            updates: None,
        },
        own: None,
        ack: Seq(0),
        ticket: None,
    }
}

fn frame() -> Frame {
    Frame { resync: true, ..Frame::empty(Tick(3), Seq(2), Epoch(1)) }
}

fn refused() -> Refused {
    Refused { code: ErrorCode::NoRoom, seq: None, detail: "full".into() }
}

/// The server's answers to each message, by its name.
fn answers(msg: &ClientMsg) -> Vec<ServerMsg> {
    match msg {
        ClientMsg::Hello(h) if h.token == "wrong" => {
            vec![Closing { code: CloseCode::Token, detail: "no such token".into() }.into()]
        }
        ClientMsg::Hello(_) => vec![welcome()],
        ClientMsg::Join(j) if j.scene == "full" => vec![refused().into()],
        ClientMsg::Join(_) => vec![frame().into(), joined().into()],
        ClientMsg::Resume(_) => vec![joined().into()],
        ClientMsg::Ping(p) => {
            vec![Pong { nonce: p.nonce, server_ms: 1, tick: Tick(4) }.into()]
        }
        ClientMsg::Leave(_) => vec![
            Left { tick: Tick(8) }.into(),
            Closing { code: CloseCode::Normal, detail: "bye".into() }.into(),
        ],
        ClientMsg::Move(_) | ClientMsg::Walk(_) | ClientMsg::Teleport(_) | ClientMsg::Act(_) => {
            vec![]
        }
        ClientMsg::Face(_) | ClientMsg::Set(_) => vec![],
        ClientMsg::AskLines(ask) if ask.scene == "full" => vec![refused().into()],
        ClientMsg::AskLines(ask) => {
            let lines = vec![Line { plane: Plane(0), players: 3, open: true }];
            let lines = Lines { scene: ask.scene.clone(), total: 4, capacity: 50, lines };
            vec![frame().into(), lines.into()]
        }
    }
}

async fn serve_tcp(mut stream: TcpStream) -> Vec<ClientMsg> {
    let mut received = Vec::new();
    while let Ok(len) = stream.read_u32().await {
        let mut body = vec![0; len as usize];
        stream.read_exact(&mut body).await.unwrap();
        let msg = ClientMsg::decode(&body).unwrap();
        for answer in answers(&msg) {
            let bytes = answer.encode();
            // In two writes, so that the client must reassemble the message.
            stream.write_u32(bytes.len() as u32).await.unwrap();
            stream.flush().await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        }
        received.push(msg);
    }
    received
}

async fn serve_ws(stream: TcpStream) -> Vec<ClientMsg> {
    let mut ws = tokio_tungstenite::accept_async(stream).await.unwrap();
    let mut received = Vec::new();
    while let Some(Ok(message)) = ws.next().await {
        let Message::Binary(body) = message else { continue };
        let msg = ClientMsg::decode(&body).unwrap();
        for answer in answers(&msg) {
            ws.send(Message::Binary(answer.encode().into())).await.unwrap();
        }
        received.push(msg);
    }
    received
}

async fn server(scheme: &str) -> (String, tokio::task::JoinHandle<Vec<ClientMsg>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/", listener.local_addr().unwrap());
    let ws = scheme == "ws";
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        if ws { serve_ws(stream).await } else { serve_tcp(stream).await }
    });
    (url, task)
}

async fn a_whole_session(scheme: &str) {
    let (url, task) = server(scheme).await;
    let mut client = Client::connect(&url, "t").await.unwrap();
    assert_eq!(client.welcome().session, SessionId(5));
    match client.join(join_at("full", Pos::default())).await {
        Err(ClientError::Refused(r)) => assert_eq!(r, refused()),
        other => panic!("{other:?}"),
    }
    assert!(matches!(client.lines("full").await, Err(ClientError::Refused(_))));
    assert_eq!(client.lines("meadow").await.unwrap().lines[0].players, 3);
    assert_eq!(client.join(join_at("meadow", Pos::ground(1, 2))).await.unwrap(), joined());
    assert_eq!(client.next().await.unwrap(), Event::Frame(Box::new(frame())));
    assert_eq!(client.next().await.unwrap(), Event::Frame(Box::new(frame())));

    let (mut sender, mut receiver) = client.split();
    assert_eq!(sender.send_move(Pos::ground(5, 5)).await.unwrap(), Seq(1));
    assert_eq!(sender.teleport(None, Some(Plane(1)), Pos::ground(6, 6)).await.unwrap(), Seq(2));
    assert_eq!(sender.act(vec![1, 2]).await.unwrap(), Seq(3));
    sender.ping(77).await.unwrap();
    match receiver.next().await.unwrap() {
        Event::Pong(pong) => assert_eq!(pong.nonce, 77),
        other => panic!("{other:?}"),
    }
    sender.leave().await.unwrap();
    assert_eq!(receiver.next().await.unwrap(), Event::Left(Left { tick: Tick(8) }));
    let closed = Event::Closed { code: Some(CloseCode::Normal), detail: "bye".into() };
    assert_eq!(receiver.next().await.unwrap(), closed);
    assert_eq!(receiver.next().await.unwrap(), closed);
    sender.close().await.unwrap();
    drop((sender, receiver));
    let received: Vec<_> = task.await.unwrap().iter().map(ClientMsg::name).collect();
    assert_eq!(
        received,
        [
            "Hello", "Join", "AskLines", "AskLines", "Join", "Move", "Teleport", "Act", "Ping",
            "Leave"
        ]
    );
}

#[tokio::test]
async fn a_session_over_tcp() {
    a_whole_session("tcp").await;
}

#[tokio::test]
async fn a_session_over_websocket() {
    a_whole_session("ws").await;
}

#[tokio::test]
async fn a_refused_hello_carries_the_reason() {
    let (url, _task) = server("ws").await;
    match Client::connect(&url, "wrong").await {
        Err(ClientError::Closed { code: Some(CloseCode::Token), detail }) => {
            assert_eq!(detail, "no such token");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_url_of_an_unsupported_kind_is_refused() {
    for url in ["http://127.0.0.1:1/", "ws://nohost", "127.0.0.1:1"] {
        let error = Client::connect(url, "t").await.unwrap_err();
        assert!(matches!(error, ClientError::BadUrl { .. }), "{error}");
    }
}
