//! The cheat trial: `purview-lab load cheat` tries every class of cheat on a running server, over sockets,
//! beside honest players.
//!
//! ```text
//!   cheater ----------------------- gateway        each cheat once on this machine's own network,
//!   cheater ----- bad network ----- gateway        once on a bad one;
//!   pacer   ----- of both kinds --- gateway        honest, straight on at top speed: what is compared;
//!   roamer  ----- bad network ----- gateway        honest: never to be refused
//! ```
//!
//! The position of a client is the server's account of it: the trajectory in its own frames, which viewers receive,
//! too. A client's own claim never counts. All distances are measured from the common start to the same tick of the
//! server.

mod account;
mod field;
mod honest;
mod link;
mod report;
mod server;
mod session;
mod sessions;
mod tricks;

use std::sync::Arc;
use std::time::Duration;

use purview::scene::Pos;
use purview::scene::movement::ServerMs;
use purview_client::{Client, ClientError, Clock, Event, Walker};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

pub use field::{Field, FieldError, Heading};
pub use link::{Relay, Weather};
pub use report::{Codes, GAIN_MAX_PERCENT, Honest, Net, Pace, Row, Trial};
pub use server::{Access, TrialServer, TrialServerError};
pub use sessions::Sessions;
pub use tricks::Class;

use account::Cheater;
use honest::Errand;
use session::{Mind, Played, Schedule, Seat};
use tricks::Cheat;

use crate::rng::Rng;

/// How long all clients stand before the start. Cheaters may use the time.
const IDLE: Duration = Duration::from_secs(3);
/// How many clients may connect at the same time.
const JOINING_MAX: usize = 24;
/// The number of honest players at top speed on each network.
const PACERS: usize = 5;
/// The number of pings that measure the server's clock, and the time between them.
const PINGS: u32 = 12;
const PING_EVERY: Duration = Duration::from_millis(50);
/// How long to wait for a pong.
const PATIENCE: Duration = Duration::from_secs(10);

/// The options of a trial.
#[derive(Debug, Clone)]
pub struct TrialOptions {
    /// How long the clients walk.
    pub length: Duration,
    /// The number of honest players that roam on the bad network.
    pub honest: u32,
    /// Whether cheats within one session are tried.
    pub cheats: bool,
    /// The networks on which each of them is tried.
    pub nets: Vec<Net>,
    /// The bad network.
    pub bad: Weather,
    /// The seed of the bad network and of the honest players.
    pub seed: u64,
    /// Where cheats that change their sessions play; without it they are not tried.
    pub sessions: Option<Sessions>,
}

impl TrialOptions {
    /// The cheats that change their sessions alone, beside honest players at top speed.
    pub fn sessions_only(sessions: Sessions) -> TrialOptions {
        let (nets, sessions) = (vec![Net::Direct], Some(sessions));
        TrialOptions { honest: 0, cheats: false, nets, sessions, ..TrialOptions::default() }
    }
}

impl Default for TrialOptions {
    /// One minute on both networks, with twenty honest players.
    fn default() -> Self {
        TrialOptions {
            length: Duration::from_secs(60),
            honest: 20,
            cheats: true,
            nets: vec![Net::Direct, Net::Bad],
            bad: Weather::BAD,
            seed: 1,
            sessions: None,
        }
    }
}

/// Why a trial cannot run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The bad network cannot be set up.
    #[error("the relay of the bad network cannot start: {0}")]
    Relay(#[from] std::io::Error),
    /// The server answers no ping.
    #[error("the server's clock is unknown: {0}")]
    Clock(#[from] ClientError),
}

/// The role of a client in the trial.
#[derive(Clone)]
enum Part {
    Paces,
    Roams,
    Cheats(Cheat),
}

#[derive(Clone)]
struct Role {
    part: Part,
    net: Net,
    at: Pos,
    heading: Heading,
    seed: u64,
}

impl Role {
    fn new(part: Part, net: Net, at: Pos, seed: u64) -> Role {
        let through = matches!(&part, Part::Cheats(cheat) if cheat.class == Class::Wall);
        let heading = if through { Heading::West } else { Heading::East };
        Role { part, net, at, heading, seed }
    }

    fn name(&self) -> String {
        let what = match &self.part {
            Part::Paces => "honest, at top speed".into(),
            Part::Roams => "honest".into(),
            Part::Cheats(cheat) => format!("{}, {}", cheat.class.name(), cheat.name),
        };
        format!("{what}, {}", self.net.name())
    }

    /// The player of the role, once the client has joined.
    fn mind(&self, seat: &Seat, field: &Field) -> Box<dyn Mind> {
        let (joined, now) = (seat.joined(), seat.now());
        let errand = match &self.part {
            Part::Cheats(cheat) => {
                let trick = cheat.trick.clone();
                return Box::new(Cheater::new(joined, self.heading, trick));
            }
            Part::Paces => Errand::Pace,
            Part::Roams => Errand::Roam,
        };
        match Walker::on(now, joined, field.ground.clone()) {
            Some(walker) => Box::new(honest::Honest::new(walker, errand, self.seed)),
            None => {
                // The scene trusts positions: the client library cannot move the player.
                let trick = tricks::honest(field.speed_cm_s.into());
                Box::new(Cheater::new(joined, self.heading, trick))
            }
        }
    }
}

fn roles(field: &Field, options: &TrialOptions) -> Vec<Role> {
    let mut random = Rng::new(options.seed);
    let mut roles = Vec::new();
    for net in &options.nets {
        let cheats = tricks::cheats(field.speed_cm_s, field.teleports_are_cheats());
        for cheat in cheats.into_iter().filter(|_| options.cheats) {
            let at = match cheat.class {
                Class::Wall => field.wall(),
                _ => field.track(roles.len()),
            };
            roles.push(Role::new(Part::Cheats(cheat), *net, at, random.seed()));
        }
        for _ in 0..PACERS {
            let at = field.track(roles.len());
            roles.push(Role::new(Part::Paces, *net, at, random.seed()));
        }
    }
    for _ in 0..options.honest {
        let at = field.place(roles.len(), random.unit());
        roles.push(Role::new(Part::Roams, Net::Bad, at, random.seed()));
    }
    roles
}

/// Runs a trial on the server at `url`, which admits clients with `tokens` (in turn) and has the scene of `field`.
///
/// # Errors
/// The trial cannot run. Failures of single clients are part of the report.
pub async fn trial(
    url: &str,
    tokens: &[String],
    field: Field,
    options: &TrialOptions,
) -> Result<Trial, TrialError> {
    let relay = Relay::open(url, options.bad, options.seed).await?;
    let mut trial = Trial::new(options.length.as_secs_f64(), field.speed_cm_s, options.bad);
    let field = Arc::new(field);
    let urls = [url.to_owned(), relay.url().to_owned()];
    let seats = join(roles(&field, options), urls, tokens, &field, &mut trial).await;
    let clock = server_clock(url, tokens.first().map_or("", String::as_str)).await?;
    let Some(server_now) = clock.server() else {
        return Err(ClientError::Io(std::io::ErrorKind::TimedOut.into()).into());
    };
    let start = Instant::now() + IDLE;
    let server_end = ServerMs(server_now.0).plus((IDLE + options.length).as_millis() as u64);
    let schedule = Schedule { start, end: start + options.length, server_end };
    let mut playing = JoinSet::new();
    for (n, role, seat) in seats {
        let field = field.clone();
        playing.spawn(async move {
            let mut mind = role.mind(&seat, &field);
            let played = seat.play(&mut *mind, role.heading, schedule).await;
            (n, role, played)
        });
    }
    let hops = hop_all(options.sessions.as_ref(), schedule, field.speed_cm_s);
    let (mut played, hops) = tokio::join!(playing.join_all(), hops);
    played.sort_by_key(|(n, ..)| *n);
    let played = played.into_iter().map(|(_, role, played)| (role, played)).collect();
    tell(&mut trial, played, &field);
    tell_hops(&mut trial, hops);
    Ok(trial)
}

/// Plays all cheats that change their sessions, beside the others.
async fn hop_all(
    sessions: Option<&Sessions>,
    schedule: Schedule,
    speed_cm_s: u32,
) -> Vec<(String, Played)> {
    let Some(sessions) = sessions else { return Vec::new() };
    let hopping = sessions::hoppers(sessions).into_iter().map(async |hopper| {
        (hopper.name(), sessions::hop(&hopper, sessions, schedule, speed_cm_s).await)
    });
    futures::future::join_all(hopping).await
}

/// Lets all clients join. A client that cannot join is a failure.
async fn join(
    roles: Vec<Role>,
    urls: [String; 2],
    tokens: &[String],
    field: &Field,
    trial: &mut Trial,
) -> Vec<(usize, Role, Seat)> {
    let (doors, mut joining) = (Arc::new(Semaphore::new(JOINING_MAX)), JoinSet::new());
    for (n, role) in roles.into_iter().enumerate() {
        let token = tokens.get(n % tokens.len().max(1)).cloned().unwrap_or_default();
        let (doors, scene) = (doors.clone(), field.scene.clone());
        let at = field.join_at(role.at);
        let url = urls[role.net as usize].clone();
        joining.spawn(async move {
            let _door = doors.acquire_owned().await;
            let seat = Seat::take(&url, &token, &scene, at).await;
            (n, role, seat)
        });
    }
    let mut seats = Vec::new();
    for (n, role, seat) in joining.join_all().await {
        match seat {
            Ok(seat) => seats.push((n, role, seat)),
            Err(e) => trial.failures.push(format!("{}: {e}", role.name())),
        }
    }
    seats
}

/// The server's clock, measured on the direct network.
async fn server_clock(url: &str, token: &str) -> Result<Clock, ClientError> {
    let late = |_| ClientError::Io(std::io::ErrorKind::TimedOut.into());
    let mut client = timeout(PATIENCE, Client::connect(url, token)).await.map_err(late)??;
    let mut clock = Clock::new();
    for _ in 0..PINGS {
        client.ping(clock.nonce()).await?;
        loop {
            match timeout(PATIENCE, client.next()).await.map_err(late)?? {
                Event::Pong(pong) => {
                    clock.pong(&pong);
                    break;
                }
                Event::Closed { code, detail } => {
                    return Err(ClientError::Closed { code, detail });
                }
                Event::Frame(_)
                | Event::Lines(_)
                | Event::Joined(_)
                | Event::Resumed(_)
                | Event::Refused(_)
                | Event::Unconfirmed(_)
                | Event::Left(_) => {}
            }
        }
        sleep(PING_EVERY).await;
    }
    Ok(clock)
}

/// Makes the report.
fn tell(trial: &mut Trial, played: Vec<(Role, Played)>, field: &Field) {
    for net in [Net::Direct, Net::Bad] {
        let paces =
            |(role, _): &&(Role, Played)| matches!(role.part, Part::Paces) && role.net == net;
        let ways: Vec<f64> = played.iter().filter(paces).map(|(_, p)| p.way_cm.into()).collect();
        if !ways.is_empty() {
            let way_cm = ways.iter().sum::<f64>() / ways.len() as f64;
            trial.pace.push(Pace { net, players: ways.len() as u64, way_cm });
        }
    }
    for (role, played) in played {
        let is_honest = !matches!(role.part, Part::Cheats(_));
        // If the server closes the session of a cheater, the cheat has failed; for an honest player it is a failure
        // of the server.
        if let Some(code) = played.closed.filter(|_| is_honest) {
            trial.failures.push(format!("{}: closed by the server, {code}", role.name()));
        }
        if let Some(why) = &played.failed {
            trial.failures.push(format!("{}: {why}", role.name()));
        }
        match role.part {
            Part::Paces | Part::Roams => {
                let honest = &mut trial.honest;
                honest.players += 1;
                honest.on_bad += u64::from(role.net == Net::Bad);
                honest.said += played.said;
                honest.corrected += u64::from(played.corrections);
                for (code, n) in played.refused {
                    *honest.refused.entry(code).or_default() += n;
                }
            }
            Part::Cheats(cheat) => {
                let honest_cm = match cheat.class {
                    Class::Wall => f64::from(field.to_wall_cm()),
                    _ => trial.paced_cm(role.net),
                };
                let row = row_of(cheat.class, cheat.name, role.net, played, honest_cm);
                let row = trial.judge(row);
                trial.cheats.push(row);
            }
        }
    }
}

/// Adds the cheats that changed their sessions to the report.
fn tell_hops(trial: &mut Trial, hops: Vec<(String, Played)>) {
    for (name, played) in hops {
        if let Some(why) = &played.failed {
            trial.failures.push(format!("session, {name}: {why}"));
        }
        let honest_cm = trial.paced_cm(Net::Direct);
        let row = trial.judge(row_of(Class::Session, name, Net::Direct, played, honest_cm));
        trial.cheats.push(row);
    }
}

fn row_of(class: Class, cheat: String, net: Net, played: Played, honest_cm: f64) -> Row {
    Row {
        class,
        cheat,
        net,
        sessions: played.sessions,
        said: played.said,
        refused: played.refused,
        way_cm: played.way_cm,
        honest_cm,
        gain_percent: 0.0,
        gained_too_much: false,
        closed: played.closed.map(|code| code.name()),
    }
}
