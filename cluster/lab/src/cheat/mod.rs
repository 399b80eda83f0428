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
//! server. Beside it, [`gang()`] tries what many accounts can do to one player's view list.

mod account;
mod field;
mod gang;
mod honest;
mod link;
mod report;
mod server;
mod session;
mod sessions;
mod tricks;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use purview_client::{ClientError, Walker};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use field::Field;
pub use gang::{Gang, gang};
pub use link::Weather;
pub use report::{Net, Row, Trial};
pub use server::{Access, TrialServer};
pub use tricks::Class;

use account::Cheater;
use field::Heading;
use honest::Errand;
use link::Relay;
use report::Pace;
use session::{Mind, Played, Player, Schedule, Seat};
use tricks::Cheat;

use crate::args::name;
use crate::rng::Rng;

/// How long all clients stand before the start. Cheaters may use the time.
const IDLE: Duration = Duration::from_secs(3);
const JOINING_MAX: usize = 24;
/// The number of honest players at top speed on each network.
const PACERS: usize = 5;

#[derive(Debug, Clone)]
pub struct TrialOptions {
    pub length: Duration,
    /// The number of honest players that roam on the bad network.
    pub honest: u32,
    pub cheats: bool,
    pub sessions: bool,
    /// The networks on which each of the former is tried.
    pub nets: Vec<Net>,
    pub bad: Weather,
    /// The seed of the bad network and of the honest players.
    pub seed: u64,
}

impl Default for TrialOptions {
    /// One minute on both networks, with twenty honest players.
    fn default() -> Self {
        TrialOptions {
            length: Duration::from_secs(60),
            honest: 20,
            cheats: true,
            sessions: true,
            nets: vec![Net::Direct, Net::Bad],
            bad: Weather::BAD,
            seed: 1,
        }
    }
}

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
    seed: u64,
}

impl Role {
    fn name(&self) -> String {
        let what = match &self.part {
            Part::Paces => "honest, at top speed".into(),
            Part::Roams => "honest".into(),
            Part::Cheats(cheat) => format!("{}, {}", name(&cheat.class), cheat.name),
        };
        format!("{what}, {}", name(&self.net))
    }

    fn heading(&self) -> Heading {
        match &self.part {
            Part::Cheats(cheat) if cheat.class == Class::Wall => Heading::West,
            _ => Heading::East,
        }
    }

    /// The player of the role, once the client has joined.
    fn mind(&self, seat: &Seat, field: &Field) -> Box<dyn Mind> {
        let errand = match &self.part {
            Part::Cheats(cheat) => {
                let trick = cheat.trick.clone();
                return Box::new(Cheater::new(&seat.joined, self.heading(), trick));
            }
            Part::Paces => Errand::Pace,
            Part::Roams => Errand::Roam,
        };
        match Walker::on(seat.now(), &seat.joined, field.ground.clone()) {
            Some(walker) => Box::new(honest::Honest::new(walker, errand, self.seed)),
            None => {
                // The scene trusts positions: the client library cannot move the player.
                let trick = tricks::honest(field.speed_cm_s.into());
                Box::new(Cheater::new(&seat.joined, self.heading(), trick))
            }
        }
    }

    async fn play(
        &self,
        seat: Seat,
        field: &Field,
        schedule: Schedule,
        access: &Access,
        token: &str,
    ) -> Played {
        let mut mind = self.mind(&seat, field);
        let mut player = Player::new(&mut *mind, &seat, self.heading(), schedule);
        let end = match &self.part {
            Part::Cheats(Cheat { hop: Some(hop), .. }) => {
                hop.play(&mut player, seat, access, token).await
            }
            _ => player.play_all(seat).await,
        };
        player.end(end)
    }
}

fn roles(field: &Field, options: &TrialOptions) -> Vec<Role> {
    let top = f64::from(field.speed_cm_s);
    let mut parts = Vec::new();
    for net in &options.nets {
        let cheats = if options.cheats { tricks::cheats(top) } else { Vec::new() };
        parts.extend(cheats.into_iter().map(|cheat| (Part::Cheats(cheat), *net)));
        parts.extend([(); PACERS].map(|()| (Part::Paces, *net)));
    }
    parts.extend((0..options.honest).map(|_| (Part::Roams, Net::Bad)));
    let sessions = if options.sessions { tricks::sessions(top) } else { Vec::new() };
    parts.extend(sessions.into_iter().map(|cheat| (Part::Cheats(cheat), Net::Direct)));
    let mut random = Rng::new(options.seed);
    parts.into_iter().map(|(part, net)| Role { part, net, seed: random.seed() }).collect()
}

/// Runs a trial on a server that has the scene of `field`.
pub async fn trial(
    access: &Access,
    field: &Field,
    options: &TrialOptions,
) -> anyhow::Result<Trial> {
    let direct = access.urls.first().context("no gateway")?;
    let relay = Relay::open(direct, options.bad, options.seed).await;
    let relay = relay.context("the relay of the bad network cannot start")?;
    let mut trial = Trial::new(options.length.as_secs_f64(), field.speed_cm_s, options.bad);
    let roles = roles(field, options);
    anyhow::ensure!(roles.len() <= access.tokens.len(), "there is no token for each client");
    let joined = join(roles, [direct, relay.url()], access, field).await;
    // The start in two clocks: the client that heard of its tick soonest knows the server's best.
    let seats = joined.iter().filter_map(|(_, _, seat)| seat.as_ref().ok());
    let server_now = seats.map(Seat::server_now).max().unwrap_or_default();
    let start = Instant::now() + IDLE;
    let server_end = server_now.plus((IDLE + options.length).as_millis() as u64);
    let schedule = Schedule { start, end: start + options.length, server_end };
    let mut playing = Vec::new();
    for (role, token, seat) in joined {
        match seat {
            Ok(seat) => playing.push((role, token, seat)),
            Err(e) => trial.failures.push(format!("{}: {e}", role.name())),
        }
    }
    let playing = playing.into_iter().map(|(role, token, seat)| {
        let (field, access) = (field.clone(), access.clone());
        tokio::spawn(async move {
            let played = role.play(seat, &field, schedule, &access, &token).await;
            (role, played)
        })
    });
    let played = futures::future::try_join_all(playing.collect::<Vec<_>>()).await?;
    tell(&mut trial, played, field);
    Ok(trial)
}

type Joining = (Role, String, Result<Seat, ClientError>);

/// Lets all clients join, in the order of their roles.
async fn join(roles: Vec<Role>, urls: [&str; 2], access: &Access, field: &Field) -> Vec<Joining> {
    let doors = Arc::new(Semaphore::new(JOINING_MAX));
    let joining = roles.into_iter().zip(access.tokens.clone()).map(async |(role, token)| {
        let _door = doors.acquire().await;
        let url = urls[role.net as usize];
        let seat = Seat::take(url, &token, &field.scene, None).await;
        (role, token, seat)
    });
    futures::future::join_all(joining).await
}

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
        if let Some(why) = &played.failed {
            trial.failures.push(format!("{}: {why}", role.name()));
        }
        let Part::Cheats(cheat) = &role.part else {
            // If the server closes the session of a cheater, the cheat has failed; for an honest player it is a
            // failure of the server.
            if let Some(code) = played.closed {
                trial.failures.push(format!("{}: closed by the server, {code}", role.name()));
            }
            trial.honest.add(role.net, played);
            continue;
        };
        let honest_cm = match cheat.class {
            Class::Wall => f64::from(field.to_wall_cm),
            _ => trial.paced_cm(role.net),
        };
        let row = Row {
            class: cheat.class,
            cheat: cheat.name.clone(),
            net: role.net,
            sessions: played.sessions,
            said: played.said,
            refused: played.refused,
            way_cm: played.way_cm,
            honest_cm,
            gain_percent: 0.0,
            gained_too_much: false,
            closed: played.closed.map(|code| code.name()),
        };
        trial.cheats.push(trial.judge(row));
    }
}
