//! Many clients at once, each checked by the oracle: what `replay` and `bots` share.
//!
//! The task of a client sends the orders of its script, receives frames, and reports both to the oracle. The oracle
//! runs in a thread of its own behind a bounded channel. If the oracle falls behind, the clients wait for it: no
//! event may go unchecked.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use purview::scene::properties::{PropertyId, Value};
use purview::scene::terrain::Ground;
use purview::scene::{Plane, Pos, Seq};
use purview::wire::client::{Join, Joined};
use purview_client::{ClientError, Clock, Event as Told, Player, Retry, Trust, Walker};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::report::Report;
use crate::oracle::{ClientId, Ending, Event, Example, Findings, Options, Oracle, Sent, digest};
use crate::usage::{Cpu, peak_rss_bytes};
use purview_demo::land::Land;

/// The lifetime of tokens for a run of clients: longer than any run.
pub const HOLDS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The capacity of the channel to the oracle, events.
const FEED_MAX: usize = 16_384;
const FAILURES_MAX: usize = 10;
/// How a client reconnects. The run does not wait long for it.
const RETRY: Retry = Retry {
    first: Duration::from_millis(100),
    most: Duration::from_secs(2),
    attempt: Duration::from_secs(10),
    patience: Duration::from_secs(10),
};

/// How long a client waits for its admission, for the acknowledgement of its last input, and for its leave.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client that has left waits until the server closes the connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Sends a position, in a scene that trusts them.
    Move(Pos),
    /// Walks straight to a position at so many centimetres per second, in a scene that judges moves.
    Walk(Pos, u32),
    Stay,
    /// Teleports; `None` keeps the plane.
    Teleport(Option<Plane>, Pos),
    /// Sends an action. Its payload is unique, or the oracle does not notice that it comes twice.
    Act(Vec<u8>),
    /// Gives a property a value.
    Set(PropertyId, Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Quiet,
    /// On standard error: every second on a terminal, otherwise every ten.
    Stderr,
}

/// The server, and what a client needs to be admitted.
#[derive(Debug, Clone)]
pub struct Server {
    /// `ws://host:port/` or `tcp://host:port`, or `wss://...` or `tls://...`.
    pub url: String,
    pub trust: Trust,
    /// The token that admits the clients, or several, one a line: each client takes the next one.
    pub token: String,
    /// The terrain of the scene, where it is known: clients stop at its walls. Without it clients learn of walls by
    /// corrections.
    pub map: Option<Arc<Ground>>,
}

impl Server {
    fn token_of(&self, client: ClientId) -> &str {
        let tokens = self.token.lines().count().max(1);
        self.token.lines().nth(client as usize % tokens).unwrap_or_default()
    }
}

/// The error of a script that has positions only, in a scene that judges moves.
pub(crate) fn must_trust(joined: &Joined) -> Result<(), ClientError> {
    match joined.rules.movement {
        None => Ok(()),
        Some(_) => Err(ClientError::Unexpected {
            want: "a scene that trusts positions (moves = \"trusted\"): a recording contains no move commands",
            got: format!("scene {:?}, which judges moves", joined.scene),
        }),
    }
}

/// A run of clients. A clone is the same run.
#[derive(Debug, Clone)]
pub struct ClientRun {
    shared: Arc<Shared>,
    feed: mpsc::Sender<Event>,
}

#[derive(Debug)]
struct Shared {
    server: Server,
    start: Instant,
    cpu: Option<Cpu>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    tick_ms: u64,
    /// The interval of the pings of a client that sends nothing else.
    alive_every_ms: u64,
    online: u64,
    ended: u64,
    bytes: u64,
    client_ms: u64,
    not_joined: u64,
    resumed: u64,
    /// The same for each second of the run.
    resumed_each_s: Vec<u64>,
    failed_attempts: u64,
    failures: Vec<Example>,
}

#[derive(Debug)]
pub struct Judge {
    thread: std::thread::JoinHandle<Findings>,
}

/// Starts a run, to which clients are added, and the judge, which ends it.
pub fn gather(server: Server, options: Options) -> std::io::Result<(ClientRun, Judge)> {
    let (feed, mut events) = mpsc::channel(FEED_MAX);
    let thread = std::thread::Builder::new().name("oracle".into()).spawn(move || {
        let mut oracle = Oracle::new(options);
        while let Some(event) = events.blocking_recv() {
            oracle.event(event);
        }
        oracle.finish()
    })?;
    let shared = Shared {
        server,
        start: Instant::now(),
        cpu: Cpu::of("self"),
        counts: Mutex::new(Counts { tick_ms: 100, alive_every_ms: 1_000, ..Counts::default() }),
    };
    Ok((ClientRun { shared: Arc::new(shared), feed }, Judge { thread }))
}

impl ClientRun {
    pub fn start(&self) -> Instant {
        self.shared.start
    }

    pub fn online(&self) -> u64 {
        self.shared.counts.lock().online
    }

    /// Plays one client from its connection to its leave. `script` receives the position of the client and returns
    /// its orders, each with the time to send it; or it refuses the scene, and the client counts as not joined.
    pub async fn play<I>(
        &self,
        client: ClientId,
        join: Join,
        script: impl FnOnce(&Joined) -> Result<I, ClientError>,
    ) where
        I: Iterator<Item = (Instant, Order)>,
    {
        let entered = self.enter(client, join).await;
        let entered = entered.and_then(|(player, joined)| Ok((script(&joined)?, player, joined)));
        let (orders, player, joined) = match entered {
            Ok(entered) => entered,
            Err(e) => {
                self.shared.counts.lock().not_joined += 1;
                self.failed(client, "not_joined", &e);
                self.tell(Event::Gone(client, Ending::NotJoined)).await;
                return;
            }
        };
        let clock = Clock::new();
        let map = self.shared.server.map.clone();
        let tile_cm = joined.rules.movement.as_ref().map_or(1, |m| m.tile_cm);
        let walker = Walker::on(clock.now(), &joined, Land { tile_cm, map });
        self.tell(Event::Joined(client, Box::new(joined))).await;
        let since = Instant::now();
        self.shared.counts.lock().online += 1;
        let (ack, sent) = (Seq(0), Seq(0));
        let mut session = Session {
            run: self,
            client,
            player,
            ack,
            sent,
            received_from: since,
            clock,
            walker,
            goal: None,
        };
        let ended = session.run(orders).await;
        let bytes = session.player.bytes_received();
        {
            let mut counts = self.shared.counts.lock();
            counts.online -= 1;
            counts.ended += 1;
            counts.bytes += bytes;
            counts.resumed += session.player.resumed();
            counts.failed_attempts += session.player.failed_attempts();
            counts.client_ms += since.elapsed().as_millis() as u64;
        }
        if let Err(e) = ended {
            self.failed(client, "cut_off", &e);
            self.tell(Event::Gone(client, Ending::Lost)).await;
        }
    }

    /// Reports progress until it is dropped. `total` is the number of clients to come.
    pub async fn show_progress(&self, progress: Progress, total: u64) {
        if progress == Progress::Quiet {
            return std::future::pending().await;
        }
        let tty = std::io::stderr().is_terminal();
        let mut each = tokio::time::interval(Duration::from_secs(if tty { 1 } else { 10 }));
        loop {
            each.tick().await;
            let (seconds, waiting) =
                (self.start().elapsed().as_secs_f64(), FEED_MAX - self.feed.capacity());
            let Counts { online, ended, not_joined, .. } = *self.shared.counts.lock();
            eprintln!(
                "{seconds:>5.0} s  {online} online, {ended} of {total} done, {not_joined} not joined, {waiting} events wait"
            );
        }
    }

    /// Ends the run: waits for the judge and makes the report. Every `play` must have returned and every clone must
    /// be dropped, or this waits for them.
    pub async fn report(self, judge: Judge) -> Report {
        let ClientRun { shared, feed } = self;
        drop(feed);
        let findings = tokio::task::spawn_blocking(move || judge.thread.join()).await;
        let Ok(Ok(findings)) = findings else {
            let what = "the thread of the oracle ended too early".into();
            let example = Example { kind: "internal".into(), tick: 0, what };
            return Report { not_joined: 1, examples: vec![example], ..Report::default() };
        };
        let counts = std::mem::take(&mut *shared.counts.lock());
        let mut report = Report::of(findings, counts.tick_ms as u32);
        if counts.client_ms > 0 {
            report.bytes_per_client_s = counts.bytes as f64 * 1_000.0 / counts.client_ms as f64;
        }
        let used = Cpu::of("self").zip(shared.cpu);
        report.cpu_s = used.map(|(now, then)| now.total_s() - then.total_s());
        report.peak_rss_bytes = peak_rss_bytes();
        (report.not_joined, report.resumed) = (counts.not_joined, counts.resumed);
        report.resumed_each_s = counts.resumed_each_s;
        report.failed_attempts = counts.failed_attempts;
        report.seconds = shared.start.elapsed().as_secs_f64();
        report.examples.extend(counts.failures);
        report
    }

    async fn enter(&self, client: ClientId, join: Join) -> Result<(Player, Joined), ClientError> {
        let Server { url, trust, .. } = &self.shared.server;
        let token = self.shared.server.token_of(client);
        let late = || ClientError::Io(std::io::ErrorKind::TimedOut.into());
        let until = Instant::now() + PATIENCE;
        self.tell(Event::Joining(client)).await;
        let urls = std::slice::from_ref(url);
        let joining = Player::join_trusting(trust.clone(), urls, token, join, RETRY);
        let entered = timeout_at(until, joining).await;
        let (player, joined) = entered.map_err(|_| late())??;
        let welcome = player.welcome();
        let mut counts = self.shared.counts.lock();
        counts.tick_ms = welcome.tick_ms.into();
        counts.alive_every_ms = (welcome.heartbeat_ms / 3).into();
        drop(counts);
        Ok((player, joined))
    }

    async fn tell(&self, event: Event) {
        if self.feed.send(event).await.is_err() {
            tracing::error!("the thread of the oracle has ended: later events are not checked");
        }
    }

    fn has_resumed(&self) {
        let second = self.start().elapsed().as_secs() as usize;
        let each = &mut self.shared.counts.lock().resumed_each_s;
        each.resize(each.len().max(second + 1), 0);
        each[second] += 1;
    }

    fn failed(&self, client: ClientId, kind: &'static str, error: &ClientError) {
        let failures = &mut self.shared.counts.lock().failures;
        if failures.len() < FAILURES_MAX {
            let what = format!("client {client}: {error}");
            failures.push(Example { kind: kind.into(), tick: 0, what });
        }
    }
}

struct Session<'a> {
    run: &'a ClientRun,
    client: ClientId,
    player: Player,
    ack: Seq,
    sent: Seq,
    received_from: Instant,
    clock: Clock,
    walker: Option<Walker<Land>>,
    goal: Option<(Pos, u32)>,
}

impl Session<'_> {
    async fn run(
        &mut self,
        orders: impl Iterator<Item = (Instant, Order)>,
    ) -> Result<(), ClientError> {
        let alive_every = Duration::from_millis(self.run.shared.counts.lock().alive_every_ms);
        for (at, order) in orders {
            loop {
                let wake = at.min(self.received_from + alive_every);
                match timeout_at(wake, self.player.next()).await {
                    Err(_) if wake < at => self.keep_alive().await?,
                    Err(_) => break,
                    Ok(told) => {
                        if self.receive(told?).await? {
                            return Ok(());
                        }
                    }
                }
            }
            self.send(order).await?;
            self.walk().await?;
        }
        if let Some(walker) = &mut self.walker {
            walker.stop();
        }
        self.walk().await?;
        // Leave only after every input is acknowledged, so that the oracle need not give up any as unknown.
        let until = Instant::now() + PATIENCE;
        while self.ack < self.sent {
            match timeout_at(until, self.player.next()).await {
                Err(_) => break,
                Ok(told) => {
                    if self.receive(told?).await? {
                        return Ok(());
                    }
                }
            }
        }
        self.player.leave().await?;
        let until = Instant::now() + PATIENCE;
        loop {
            let told = timeout_at(until, self.player.next()).await;
            let told = told.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
            if self.receive(told).await? {
                self.part().await;
                return Ok(());
            }
        }
    }

    /// Gives the server time to close the connection. An error here has no effect.
    async fn part(&mut self) {
        let until = Instant::now() + CLOSE_TIMEOUT;
        while let Ok(Ok(told)) = timeout_at(until, self.player.next()).await {
            if let Told::Closed { .. } = told {
                break;
            }
        }
        if let Err(e) = self.player.close().await {
            tracing::debug!(client = self.client, error = %e, "closing after a leave");
        }
    }

    async fn keep_alive(&mut self) -> Result<(), ClientError> {
        self.received_from = Instant::now();
        self.player.ping(0).await
    }

    async fn walk(&mut self) -> Result<(), ClientError> {
        let Some(walker) = &mut self.walker else { return Ok(()) };
        let now = self.clock.now();
        while let Some(command) = walker.poll(now, self.player.next_seq()) {
            let (client, seq, what) = (self.client, self.player.next_seq(), Sent::Other);
            self.run.tell(Event::Sent { client, seq, what }).await;
            self.received_from = Instant::now();
            self.sent = self.player.send_walk(&command).await?;
        }
        Ok(())
    }

    fn set_out(&mut self) {
        if let (Some(walker), Some((goal, speed_cm_s))) = (&mut self.walker, self.goal) {
            walker.walk_to(self.clock.now(), goal, speed_cm_s);
        }
    }

    async fn send(&mut self, order: Order) -> Result<(), ClientError> {
        let (client, seq) = (self.client, self.player.next_seq());
        let what = match &order {
            Order::Stay => return Ok(()),
            Order::Walk(goal, speed_cm_s) => {
                self.goal = Some((*goal, *speed_cm_s));
                self.set_out();
                return Ok(());
            }
            Order::Move(pos) => Sent::Move(*pos),
            Order::Teleport(plane, pos) => Sent::Teleport { scene: None, plane: *plane, pos: *pos },
            Order::Act(payload) => Sent::Act(digest(payload)),
            Order::Set(..) => Sent::Other,
        };
        // Before it is sent: the oracle must know of an input before any other client is told of it.
        self.run.tell(Event::Sent { client, seq, what }).await;
        self.received_from = Instant::now();
        self.sent = match order {
            Order::Move(pos) => self.player.send_move(pos).await?,
            Order::Teleport(plane, pos) => self.player.teleport(None, plane, pos).await?,
            Order::Act(payload) => self.player.act(payload, None).await?,
            Order::Set(property, value) => self.player.set(property, value).await?,
            Order::Walk(..) | Order::Stay => self.sent,
        };
        Ok(())
    }

    /// Reports to the oracle what the server told. Returns whether the client has left.
    async fn receive(&mut self, told: Told) -> Result<bool, ClientError> {
        let client = self.client;
        if let Told::Resumed(_) = told {
            self.run.has_resumed();
        }
        let event = match told {
            Told::Frame(frame) => {
                if let Some(walker) = &mut self.walker {
                    walker.frame(self.clock.now(), &frame);
                }
                self.ack = frame.refused.iter().map(|r| r.seq).fold(frame.ack, Seq::max);
                Event::Frame(client, frame)
            }
            Told::Joined(joined) | Told::Resumed(joined) => {
                if let Some(walker) = &mut self.walker {
                    walker.joined(self.clock.now(), &joined);
                }
                // The pending wish was meant from the old position.
                self.set_out();
                Event::Joined(client, joined)
            }
            Told::Refused(refused) => match refused.seq {
                Some(seq) => {
                    self.ack = self.ack.max(seq);
                    Event::Refused(client, seq)
                }
                None => return Err(ClientError::Refused(refused)),
            },
            Told::Left(left) => {
                self.run.tell(Event::Left(client, left.tick)).await;
                return Ok(true);
            }
            Told::Unconfirmed(told) => Event::Unconfirmed(client, told.first, told.last),
            Told::Pong(_) | Told::Lines(_) => return Ok(false),
            Told::Closed { code, detail } => return Err(ClientError::Closed { code, detail }),
        };
        self.run.tell(event).await;
        Ok(false)
    }
}
