//! A gang in the cheat trial: twenty accounts aim at one player, across a border of two regions, and press those that
//! stand around it out of its view list.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use purview::scene::{EntityId, Pos};
use purview::wire::client::Act;
use purview_client::{Client, ClientError, Event, View, join_at};
use purview_server::config::Config;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep, timeout};

use super::server::TrialServer;

const ACCOUNTS: usize = 20;
const STRANGERS: usize = PLACES;
/// Places of a view list: each of those that stand nearest has room for all others of them.
const PLACES: usize = 20;
/// Most places of a list that fights fill, where clients begin them.
const FIGHTS_MAX: usize = 8;
/// How long the list of the victim may take until strangers fill it.
const PATIENCE: Duration = Duration::from_secs(30);
/// For how long, and how often, each account aims.
const AIMS: Duration = Duration::from_secs(3);
const AIM_EVERY: Duration = Duration::from_millis(200);
const BEAT: Duration = Duration::from_secs(2);

/// What a gang has got of a list in which strangers stood nearer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gang {
    /// Whose aims make fights: `bonds.fights`.
    pub fights: &'static str,
    pub accounts: usize,
    /// Places of the victim's list, all taken by strangers before.
    pub places: usize,
    /// The most places that the gang has had at a time.
    pub taken: usize,
    /// How many it may have.
    pub bound: usize,
}

impl Gang {
    pub fn is_bounded(&self) -> bool {
        self.taken <= self.bound
    }
}

/// Two regions with a border at x = 128 m, near which all stand.
fn config(fights: &str) -> anyhow::Result<Config> {
    let text = format!(
        "[[scene]]\nname = \"square\"\nwidth = \"256m\"\ndepth = \"128m\"\nland = \"64m\"\nregion = [2, 2]\n\
         patch = \"16m\"\nvisibility = \"circle\"\nenter = \"50m\"\nleave = \"55m\"\nview_cap = {PLACES}\n\
         teleports = \"clients\"\nbonds = {{ fights = \"{fights}\" }}\n"
    );
    Ok(Config::parse(&text)?)
}

/// The place of one of many in a row, centimetres.
fn place(x: i32, n: usize) -> Pos {
    Pos::ground(x, 6_000 + 20 * n as i32)
}

/// A client that stands, and publishes its view.
async fn stand(
    client: Client,
    mut view: View,
    sees: watch::Sender<View>,
) -> Result<(), ClientError> {
    let (mut sender, mut receiver) = client.split();
    let mut beat = interval(BEAT);
    loop {
        tokio::select! {
            event = receiver.next() => if let Event::Frame(frame) = event? {
                view.apply(&frame).map_err(|e| std::io::Error::other(e.to_string()))?;
                sees.send_replace(view.clone());
            },
            _ = beat.tick() => sender.ping(0).await?,
        }
    }
}

/// One of the gang: aims at the victim again and again, once all are there.
async fn attack(
    client: Client,
    victim: EntityId,
    go: watch::Receiver<bool>,
) -> Result<(), ClientError> {
    let (mut sender, mut receiver) = client.split();
    let mut aims = interval(AIM_EVERY);
    loop {
        tokio::select! {
            event = receiver.next() => drop(event?),
            _ = aims.tick() => {
                if !*go.borrow() {
                    sender.ping(0).await?;
                    continue;
                }
                let seq = sender.next_seq();
                let payload = b"strike".to_vec().into();
                sender.send(Act { seq, payload, aim: Some(victim) }).await?;
            }
        }
    }
}

/// Tries what a gang gets, where clients or only game logic begin fights.
///
/// # Errors
/// A client cannot join, or strangers do not fill the list at first.
pub async fn gang(fights: &'static str) -> anyhow::Result<Gang> {
    let server = TrialServer::start(config(fights)?)?;
    let access = server.access(0)?;
    let mut tokens = access.tokens.iter();
    let mut enter = async |at: Pos| {
        let token = tokens.next().context("there is no token for each client")?;
        let mut client = Client::connect(&access.urls[0], token).await?;
        let joined = client.join(join_at("square", at)).await?;
        Ok::<_, anyhow::Error>((client, joined))
    };
    let mut tasks = tokio::task::JoinSet::new();
    let (client, joined) = enter(place(12_700, 0)).await?;
    let (victim, view) = (joined.id, View::of(&joined));
    let (sees, mut seen) = watch::channel(view.clone());
    tasks.spawn(stand(client, view, sees));
    for n in 0..STRANGERS {
        let (client, joined) = enter(place(12_600, n)).await?;
        tasks.spawn(stand(client, View::of(&joined), watch::channel(View::of(&joined)).0));
    }
    let (go, mut members) = (watch::channel(false).0, BTreeSet::new());
    for n in 0..ACCOUNTS {
        let (client, joined) = enter(place(14_400, n)).await?;
        members.insert(joined.id);
        tasks.spawn(attack(client, victim, go.subscribe()));
    }
    let members = |view: &View| view.iter().filter(|(id, _)| members.contains(id)).count();
    let is_full = |view: &View| view.iter().count() == PLACES && members(view) == 0;
    timeout(PATIENCE, seen.wait_for(is_full)).await.context("strangers do not fill the list")??;
    go.send_replace(true);
    let (until, mut taken) = (Instant::now() + AIMS, 0);
    while Instant::now() < until {
        sleep(AIM_EVERY / 4).await;
        taken = taken.max(members(&seen.borrow()));
    }
    // A client ends by an error alone.
    if let Some(ended) = tasks.try_join_next() {
        ended??;
    }
    let bound = if fights == "clients" { FIGHTS_MAX } else { 0 };
    Ok(Gang { fights, accounts: ACCOUNTS, places: PLACES, taken, bound })
}
