//! Cheats that change their sessions: each claims all the walking that a session allows at once, and then
//! begins another one, so that nothing of what it owes should be remembered.

use std::time::Duration;

use purview_client::{ClientError, Event};
use tokio::time::{Instant, sleep};

use super::server::Access;
use super::session::{Player, Seat};

const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It leaves, waits until it has left, and joins.
    Rejoin,
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
    pub const ALL: [(Change, &str); 6] = [
        (Change::Rejoin, "leaves and joins"),
        (Change::Drop, "drops and joins"),
        (Change::Resume, "drops and resumes"),
        (Change::Displace, "two sessions"),
        (Change::Scene, "two scenes"),
        (Change::Teleport, "repeats teleports"),
    ];
}

/// When and how a cheater changes sessions; each one is at the next gateway.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    pub change: Change,
    pub stay: Duration,
}

impl Hop {
    pub async fn play(
        self,
        player: &mut Player<'_>,
        mut first: Seat,
        access: &Access,
        token: &str,
    ) -> Result<(), ClientError> {
        let schedule = player.schedule;
        player.play(&mut first, schedule.start).await?;
        let (mut first, mut before) = (Some(first), None);
        while Instant::now() < schedule.end && !player.is_over() {
            let n = player.played.sessions as usize;
            let is_new = first.is_none() && self.change != Change::Teleport;
            let entered = match first.take() {
                Some(first) => Ok(first),
                None => self.enter(before.take(), access, token, n).await,
            };
            let mut seat = match entered {
                Ok(seat) => seat,
                Err(ClientError::Refused(refused)) => {
                    player.refused(refused.code);
                    sleep(PAUSE).await;
                    continue;
                }
                Err(ClientError::Io(e)) if e.kind() == std::io::ErrorKind::TimedOut => {
                    return Err(e.into());
                }
                // The connection ended while it asked: the other session took over, for example.
                Err(ClientError::Closed { .. } | ClientError::Io(_)) => {
                    sleep(PAUSE).await;
                    continue;
                }
                Err(e) => return Err(e),
            };
            player.begin(&seat, is_new);
            let until = (Instant::now() + self.stay).min(schedule.end);
            before = player.play(&mut seat, until).await.is_ok().then_some(seat);
        }
        match before {
            Some(mut last) => last.sender.leave().await,
            None => Ok(()),
        }
    }

    /// Ends or keeps the session before, and begins the next one.
    async fn enter(
        self,
        before: Option<Seat>,
        access: &Access,
        token: &str,
        n: usize,
    ) -> Result<Seat, ClientError> {
        let mut resumes = None;
        let mut beside = None;
        match (self.change, before) {
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
        let scene = if self.change == Change::Scene { n + 1 } else { 0 };
        let [url, scene] = [(&access.urls, n + 1), (&access.scenes, scene)]
            .map(|(all, n)| all[n % all.len()].as_str());
        let seat = Seat::take(url, token, scene, resumes).await;
        drop(beside);
        seat
    }
}
