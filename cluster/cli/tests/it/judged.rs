//! Replay and bots over real sockets with a small server in which all clients see each other, with and without a
//! fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility,
};
use purview::wire::client::frame::Acted;
use purview::wire::client::{Closing, Joined, Left, ServerMsg, Welcome};
use purview::wire::{ClientMsg, CloseCode, Entered, Frame, JoinRules, Moved};
use purview_lab::load::bots::{BotsOptions, Pattern, bots};
use purview_lab::load::clients::Progress;
use purview_lab::load::replay::{ReplayOptions, replay};
use purview_lab::load::report::Report;
use purview_lab::load::trace::Trace;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;

const TICK_MS: u32 = 10;

struct Player {
    out: UnboundedSender<ServerMsg>,
    pos: Pos,
    ack: Seq,
    acts: Vec<Vec<u8>>,
    shown: BTreeMap<u64, Pos>,
}

enum Answer {
    Connected(u64, UnboundedSender<ServerMsg>),
    Said(u64, ClientMsg),
}

fn rules() -> JoinRules {
    JoinRules {
        visibility: Visibility::All,
        range: RangeSet::FULL,
        sight: RangeSet::FULL,
        patch_cm: [400; 2],
        patch_margin_cm: 0,
        height_cm: None,
        view_cap: 60,
        view_margin_cm: 0,
        rates: [1, 1, 1],
        size_cm: [10_000, 10_000],
        movement: None,
        updates: None,
    }
}

#[derive(Default)]
struct World {
    tick: u64,
    outs: BTreeMap<u64, UnboundedSender<ServerMsg>>,
    players: BTreeMap<u64, Player>,
    /// No client is told the enter of this player.
    hidden: Option<u64>,
}

impl World {
    fn take(&mut self, received: Answer) {
        let (id, msg) = match received {
            Answer::Connected(id, out) => {
                self.outs.insert(id, out);
                return;
            }
            Answer::Said(id, msg) => (id, msg),
        };
        let Some(out) = self.outs.get(&id).cloned() else { return };
        let tell = |msg: ServerMsg| drop(out.send(msg));
        match msg {
            ClientMsg::Hello(_) => tell(ServerMsg::Welcome(Welcome {
                version: 2,
                session: SessionId(id),
                tick_ms: TICK_MS,
                server_ms: 0,
                rate_limit: 1_000,
                max_frame: 4_096,
                heartbeat_ms: 10_000,
            })),
            ClientMsg::Join(join) => {
                let pos = join.pos.unwrap_or(Pos::ground(5_000, 5_000));
                let (plane, tick) = (Plane(0), Tick(self.tick + 1));
                let scene = join.scene;
                let id_ = EntityId(id);
                let (ack, acts, shown) = (Seq(0), Vec::new(), BTreeMap::new());
                let (rules, own, ticket) = (rules(), None, None);
                tell(
                    Joined {
                        id: id_,
                        scene,
                        plane,
                        pos,
                        facing: Default::default(),
                        tick,
                        rules,
                        own,
                        ack,
                        ticket,
                    }
                    .into(),
                );
                self.players.insert(id, Player { out, pos, ack, acts, shown });
            }
            ClientMsg::Move(m) => self.with(id, |p| (p.pos, p.ack) = (m.pos, m.seq)),
            ClientMsg::Teleport(j) => self.with(id, |p| (p.pos, p.ack) = (j.pos, j.seq)),
            ClientMsg::Act(a) => self.with(id, |p| {
                p.acts.push(a.payload.into_vec());
                p.ack = a.seq;
            }),
            ClientMsg::Leave(_) => {
                self.players.remove(&id);
                tell(Left { tick: Tick(self.tick + 1) }.into());
                tell(Closing { code: CloseCode::Normal, detail: "bye".into() }.into());
            }
            ClientMsg::Face(m) => self.with(id, |p| p.ack = m.seq),
            ClientMsg::Set(m) => self.with(id, |p| p.ack = m.seq),
            ClientMsg::Ping(_)
            | ClientMsg::Walk(_)
            | ClientMsg::Resume(_)
            | ClientMsg::AskLines(_) => {}
        }
    }

    fn with(&mut self, id: u64, change: impl FnOnce(&mut Player)) {
        if let Some(p) = self.players.get_mut(&id) {
            change(p);
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        let truth: BTreeMap<u64, (Pos, Vec<Vec<u8>>)> = self
            .players
            .iter_mut()
            .map(|(id, p)| (*id, (p.pos, std::mem::take(&mut p.acts))))
            .collect();
        for (me, p) in &mut self.players {
            let leaves: Vec<u64> =
                p.shown.keys().filter(|id| !truth.contains_key(id)).copied().collect();
            p.shown.retain(|id, _| truth.contains_key(id));
            let mut frame = Frame {
                leaves: leaves.into_iter().map(EntityId).collect(),
                ..Frame::empty(Tick(self.tick), p.ack, Epoch(1))
            };
            for (&id, (pos, acts)) in truth.iter().filter(|(id, _)| *id != me) {
                if self.hidden == Some(id) {
                    continue;
                }
                let (e, Pos { x, y, z }) = (EntityId(id), *pos);
                match p.shown.insert(id, *pos) {
                    None => {
                        frame.enters.push(Entered {
                            id: e,
                            kind: Kind::PLAYER,
                            x,
                            y,
                            z,
                            facing: Default::default(),
                            properties: vec![],
                            trajectory: None,
                        });
                    }
                    Some(before) if before != *pos => {
                        let facing = Default::default();
                        frame.moves.push(Moved { id: e, x, y, z, vx: 0, vz: 0, facing })
                    }
                    Some(_) => {}
                }
                let acts =
                    acts.iter().map(|a| Acted { id: e, payload: a.clone().into(), logic: false });
                frame.acts.extend(acts);
            }
            drop(p.out.send(frame.into()));
        }
    }
}

async fn world(mut received: UnboundedReceiver<Answer>, hidden: Option<u64>) {
    let mut world = World { hidden, ..World::default() };
    let mut tick = tokio::time::interval(Duration::from_millis(TICK_MS.into()));
    loop {
        tokio::select! {
            _ = tick.tick() => world.step(),
            Some(event) = received.recv() => world.take(event),
        }
    }
}

async fn connection(stream: TcpStream, id: u64, world: UnboundedSender<Answer>) {
    let Ok(mut ws) = tokio_tungstenite::accept_async(stream).await else { return };
    let (out, mut told) = unbounded_channel::<ServerMsg>();
    drop(world.send(Answer::Connected(id, out)));
    loop {
        tokio::select! {
            Some(msg) = told.recv() => {
                if ws.send(Message::Binary(msg.encode().into())).await.is_err() {
                    return;
                }
            }
            said = ws.next() => match said {
                Some(Ok(Message::Binary(b))) => {
                    drop(world.send(Answer::Said(id, ClientMsg::decode(&b).unwrap())));
                }
                Some(Ok(_)) => {}
                None | Some(Err(_)) => return,
            }
        }
    }
}

async fn serve(hidden: Option<u64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (tx, rx) = unbounded_channel();
        tokio::spawn(world(rx, hidden));
        for id in 1.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(connection(stream, id, tx.clone()));
        }
    });
    url
}

/// Three agents who pass each other for two seconds, and one who comes and goes.
fn trace() -> Arc<Trace> {
    let mut csv = String::from("t_s,id,x_m,z_m\n");
    for i in 0..20 {
        let t = f64::from(i) / 10.0;
        for agent in 0..3 {
            csv += &format!("{t},{agent},{},{agent}\n", f64::from(i * (agent + 1)) / 10.0);
        }
        if (5..15).contains(&i) {
            csv += &format!("{t},late,1,{i}\n");
        }
    }
    Arc::new(Trace::read(csv.as_bytes()).unwrap())
}

async fn replayed(hidden: Option<u64>) -> Report {
    let url = serve(hidden).await;
    let options = ReplayOptions {
        scene: "meadow".into(),
        speed: 2.0,
        scale: 1.0,
        agents: None,
        trust: purview_client::Trust::default(),
    };
    replay(&url, "", trace(), options, Progress::Quiet).await.unwrap()
}

#[tokio::test]
async fn a_replay_with_a_correct_server_has_no_violation() {
    let report = replayed(None).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.players, report.not_joined), (4, 0));
    assert_eq!(report.updates.expected, report.updates.delivered);
    assert!(report.updates.expected > 0 && report.bytes_per_client_s > 0.0);
}

#[tokio::test]
async fn a_replay_with_a_server_that_hides_a_player_has_violations() {
    let report = replayed(Some(2)).await;
    assert!(!report.is_clean());
    assert!(report.violations.missing > 0 && report.violations.asymmetric > 0, "{report}");
    assert!(report.updates.delivered < report.updates.expected);
}

#[tokio::test]
async fn bots_of_every_pattern_are_checked() {
    for pattern in [Pattern::Walk, Pattern::Crowd, Pattern::Border, Pattern::Teleport] {
        let url = serve(None).await;
        let options = BotsOptions {
            count: 8,
            length: Duration::from_millis(1_500),
            pattern,
            seed: 7,
            area_cm: None,
            border_every_cm: None,
            scene: "meadow".into(),
            late_ticks: 0,
            map: None,
            trust: purview_client::Trust::default(),
        };
        // This server has one plane only and ignores the plane of a teleport.
        let report = bots(&url, "", options, Progress::Quiet).await.unwrap();
        assert_eq!((report.players, report.not_joined), (8, 0), "{pattern:?}: {report}");
        assert!(
            report.violations.total() == 0 || pattern == Pattern::Teleport,
            "{pattern:?}: {report}"
        );
    }
}

#[tokio::test]
async fn without_a_server_no_client_joins() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    drop(listener);
    let options = ReplayOptions {
        scene: "meadow".into(),
        speed: 100.0,
        scale: 1.0,
        agents: Some(2),
        trust: purview_client::Trust::default(),
    };
    let report = replay(&url, "", trace(), options, Progress::Quiet).await.unwrap();
    assert_eq!((report.players, report.not_joined, report.is_clean()), (0, 2, false));
}
