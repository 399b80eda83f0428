//! Cheats that change their sessions: each claims all the walking that a session allows at once, and then
//! begins another one, so that nothing of what it owes should be remembered.

use std::time::Duration;

use purview::scene::Pos;
use purview::scene::movement::Go;
use purview::wire::client::{Joined, Teleport};
use purview_client::{Client, ClientError, Event, Receiver, Sender, join};
use tokio::time::{Instant, interval, sleep, timeout};

use super::account::Account;
use super::field::Heading;
use super::session::{Moment, Played, Say, Schedule, Track};

/// The frame interval of a cheater's game.
const FRAME: Duration = Duration::from_millis(20);
/// How long a cheater waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a cheater waits after a refusal.
const PAUSE: Duration = Duration::from_millis(250);
/// How far before the cheater a teleport aims, centimetres.
const TELEPORT_CM: i32 = 5_000;

/// How a cheater begins its next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It leaves, waits until it has left, and joins.
    Rejoin,
    /// It drops its connection and joins.
    Drop,
    /// It drops its connection and resumes its player.
    Resume,
    /// It joins by a second connection beside the first.
    Displace,
    /// It leaves, and joins the next scene.
    Scene,
    /// It goes on in its session: it sends a teleport, and sends the refused one again.
    Teleport,
}

impl Change {
    /// All changes.
    pub const ALL: [Change; 6] = [
        Change::Rejoin,
        Change::Drop,
        Change::Resume,
        Change::Displace,
        Change::Scene,
        Change::Teleport,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Change::Rejoin => "leaves and joins",
            Change::Drop => "drops and joins",
            Change::Resume => "drops and resumes",
            Change::Displace => "two sessions",
            Change::Scene => "two scenes",
            Change::Teleport => "repeats teleports",
        }
    }
}

/// Where cheats that change their sessions play.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// The gateways, at least one; each session uses the next one.
    pub urls: Vec<String>,
    /// A token for each cheater, of a subject of its own. Without one left, a cheat is not tried.
    pub tokens: Vec<String>,
    /// The scenes, at least one, with the same spawn position.
    pub scenes: Vec<String>,
}

impl Sessions {
    /// The number of cheats, each with a token of its own.
    pub const CHEATS: u32 = 2 * Change::ALL.len() as u32;
}

/// A cheater and how it changes sessions.
#[derive(Debug, Clone)]
pub struct Hopper {
    /// How it begins the next session.
    pub change: Change,
    /// How long a session lasts.
    stay: Duration,
    /// How much walking it claims at once, milliseconds.
    claim_ms: f64,
    token: String,
}

impl Hopper {
    /// A short description.
    pub fn name(&self) -> String {
        format!("{}, claims {} ms", self.change.name(), self.claim_ms)
    }
}

/// Each change with two lengths of a session, as long as there are tokens.
pub fn hoppers(sessions: &Sessions) -> Vec<Hopper> {
    let changes = Change::ALL.into_iter().flat_map(|change| {
        [(200, 900.0), (700, 400.0)].map(|(stay_ms, claim_ms)| (change, stay_ms, claim_ms))
    });
    let hopper = |((change, stay_ms, claim_ms), token): (_, &String)| {
        let stay = Duration::from_millis(stay_ms);
        Hopper { change, stay, claim_ms, token: token.clone() }
    };
    changes.zip(&sessions.tokens).map(hopper).collect()
}

/// A session that goes on while the next one begins.
struct Before {
    sender: Sender,
    receiver: Receiver,
    joined: Joined,
}

struct Way<'a> {
    hopper: &'a Hopper,
    sessions: &'a Sessions,
    schedule: Schedule,
    speed_cm_s: f64,
    tick_ms: u32,
    track: Option<Track>,
    account: Option<Account>,
    played: Played,
}

/// Plays until the end, from the schedule's start.
pub async fn hop(
    hopper: &Hopper,
    sessions: &Sessions,
    schedule: Schedule,
    speed_cm_s: u32,
) -> Played {
    tokio::time::sleep_until(schedule.start).await;
    let mut way = Way {
        hopper,
        sessions,
        schedule,
        speed_cm_s: speed_cm_s.into(),
        tick_ms: 1,
        track: None,
        account: None,
        played: Played::default(),
    };
    if let Err(e) = way.run().await {
        way.played.failed = Some(e.to_string());
    }
    way.played.way_cm = way.track.map_or(0, |track| track.way_cm());
    way.played
}

impl Way<'_> {
    async fn run(&mut self) -> Result<(), ClientError> {
        let mut before = None;
        while Instant::now() < self.schedule.end {
            let entered = timeout(PATIENCE, self.enter(before.take())).await;
            let late = |_| ClientError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
            match entered.map_err(late)? {
                Ok(entered) => before = self.stay(entered).await?,
                Err(ClientError::Refused(refused)) => {
                    *self.played.refused.entry(refused.code.name()).or_default() += 1;
                    sleep(PAUSE).await;
                }
                // The connection ended while it asked: the other session took over, for example.
                Err(ClientError::Closed { .. } | ClientError::Io(_)) => sleep(PAUSE).await,
                Err(e) => return Err(e),
            }
        }
        if let Some(mut last) = before {
            last.sender.leave().await?;
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<Client, ClientError> {
        let urls = &self.sessions.urls;
        let url = &urls[self.played.sessions as usize % urls.len()];
        let client = Client::connect(url, self.hopper.token.as_str()).await?;
        self.tick_ms = client.welcome().tick_ms;
        Ok(client)
    }

    /// Ends or keeps the session before, and begins the next one.
    async fn enter(&mut self, before: Option<Before>) -> Result<Before, ClientError> {
        let change = self.hopper.change;
        let mut resumes = None;
        let mut beside = None;
        match (change, before) {
            (_, None) => {}
            (Change::Teleport, Some(before)) => return Ok(before),
            (Change::Rejoin | Change::Scene, Some(mut before)) => {
                before.sender.leave().await?;
                while !matches!(before.receiver.next().await?, Event::Left(_)) {}
            }
            (Change::Drop, Some(before)) => drop(before),
            (Change::Resume, Some(before)) => {
                let ticket = before.receiver.ticket().map(|ticket| ticket.token.clone());
                resumes = ticket.map(|ticket| (ticket, before.joined.ack));
            }
            (Change::Displace, Some(before)) => beside = Some(before),
        }
        let mut client = self.connect().await?;
        let joined = match resumes {
            Some((ticket, ack)) => client.resume(&ticket, ack).await?,
            None => {
                let scenes = &self.sessions.scenes;
                let next = match change {
                    Change::Scene => self.played.sessions as usize % scenes.len(),
                    _ => 0,
                };
                client.join(join(scenes[next].as_str())).await?
            }
        };
        drop(beside);
        let (sender, receiver) = client.split();
        self.played.sessions += 1;
        self.begin(&joined);
        Ok(Before { sender, receiver, joined })
    }

    fn begin(&mut self, joined: &Joined) {
        let end = self.schedule.server_end;
        match &mut self.track {
            Some(track) => track.again(joined),
            None => self.track = Some(Track::new(joined, Heading::East, self.tick_ms, end)),
        }
        match &mut self.account {
            Some(account) => account.again(joined),
            None => self.account = Some(Account::new(joined, Heading::East)),
        }
    }

    /// Claims and walks in a session; returns it, unless the server has ended it.
    async fn stay(&mut self, mut here: Before) -> Result<Option<Before>, ClientError> {
        let until = (Instant::now() + self.hopper.stay).min(self.schedule.end);
        let top = self.speed_cm_s;
        let Some(account) = &mut self.account else { return Ok(None) };
        let mut said = vec![account.forth(0, top)];
        account.clock += self.hopper.claim_ms;
        said.push(account.order(Go::On));
        if self.hopper.change == Change::Teleport {
            said.push(Say::Teleport(account.ahead(TELEPORT_CM)));
            said.push(Say::Teleport(account.ahead(TELEPORT_CM)));
        }
        let mut frames = interval(FRAME);
        let mut last = Instant::now();
        while Instant::now() < until {
            for say in said.drain(..) {
                if say_it(&mut here.sender, say, &mut self.played).await.is_err() {
                    return Ok(None);
                }
            }
            tokio::select! {
                told = here.receiver.next() => match told {
                    Ok(Event::Closed { .. }) | Err(_) => return Ok(None),
                    Ok(told) => self.receive(told, &mut here.joined),
                },
                _ = frames.tick() => {
                    let passed_ms = last.elapsed().as_secs_f64() * 1_000.0;
                    last = Instant::now();
                    let now = Moment { ms: 0, passed_ms, client: Default::default() };
                    let Some(account) = &mut self.account else { return Ok(None) };
                    account.pass(&now, 1.0);
                    if !account.is_walking() {
                        said.push(account.forth(0, top));
                    } else if account.clock - account.said >= 400.0 {
                        said.push(account.order(Go::On));
                    }
                }
            }
        }
        Ok(Some(here))
    }

    fn receive(&mut self, told: Event, joined: &mut Joined) {
        match told {
            Event::Frame(frame) => {
                joined.ack = joined.ack.max(frame.ack);
                if let Some(track) = &mut self.track {
                    track.frame(&frame);
                }
                for refused in &frame.refused {
                    *self.played.refused.entry(refused.code.name()).or_default() += 1;
                }
                if let Some(own) = &frame.own {
                    self.played.corrections = self.played.corrections.max(own.correction);
                    if let Some(account) = &mut self.account {
                        account.told(own);
                    }
                }
            }
            Event::Refused(refused) => {
                *self.played.refused.entry(refused.code.name()).or_default() += 1;
            }
            _ => {}
        }
    }
}

async fn say_it(sender: &mut Sender, say: Say, played: &mut Played) -> Result<(), ClientError> {
    played.said += 1;
    match say {
        Say::Command(order) => sender.send_walk(&order).await.map(|_| ()),
        Say::Teleport(pos) => {
            let seq = sender.next_seq();
            sender.send(teleport(seq, pos)).await
        }
        Say::Position(_) | Say::Again(_) => Ok(()),
    }
}

fn teleport(seq: purview::scene::Seq, pos: Pos) -> Teleport {
    Teleport { seq, scene: None, plane: None, pos }
}
