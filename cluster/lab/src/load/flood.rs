//! Clients that send more than the server's limits allow: they show what a flood costs everybody else.

use std::fmt;
use std::time::Duration;

use purview::scene::Pos;
use purview::wire::CloseCode;
use purview_client::{Client, ClientError, Event, Trust, join};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

/// How often a flooding client sends what is due.
const BEAT: Duration = Duration::from_millis(5);

/// How long a client waits before it connects again.
const AGAIN: Duration = Duration::from_millis(200);

/// How to flood a server.
#[derive(Debug, Clone)]
pub struct FloodOptions {
    /// The scene, of trusted moves.
    pub scene: String,
    /// The number of clients.
    pub count: u32,
    /// Messages that each client tries to send in a second.
    pub rate: u32,
    /// For how long.
    pub length: Duration,
    /// The trusted authorities.
    pub trust: Trust,
}

/// What flooding clients have seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FloodReport {
    /// Messages that went out: the server, or its kernel, has taken them.
    pub sent: u64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions that were closed for their rate (4005).
    pub closed: u64,
    /// Sessions that ended in another way.
    pub failed: u64,
}

impl fmt::Display for FloodReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FloodReport { sent, sessions, closed, failed } = self;
        writeln!(
            f,
            "{sent} messages in {sessions} sessions, of which {closed} were closed for their rate and {failed} failed"
        )
    }
}

/// Floods a server. A client whose session is closed connects again.
pub async fn flood(url: &str, token: &str, options: &FloodOptions) -> FloodReport {
    let until = Instant::now() + options.length;
    let all = (0..options.count).map(|_| {
        let (url, token, options) = (url.to_owned(), token.to_owned(), options.clone());
        tokio::spawn(async move {
            let mut report = FloodReport::default();
            while Instant::now() < until {
                let ended = session(&url, &token, &options, until, &mut report).await;
                match ended {
                    Ok(Some(CloseCode::Rate)) => report.closed += 1,
                    Ok(Some(_)) | Err(_) => report.failed += 1,
                    Ok(None) => {}
                }
                sleep(AGAIN).await;
            }
            report
        })
    });
    let mut total = FloodReport::default();
    for client in futures::future::join_all(all).await.into_iter().flatten() {
        total.sent += client.sent;
        total.sessions += client.sessions;
        total.closed += client.closed;
        total.failed += client.failed;
    }
    total
}

/// One session: the code with which it was closed; `None`: it has lasted to the end.
async fn session(
    url: &str,
    token: &str,
    options: &FloodOptions,
    until: Instant,
    report: &mut FloodReport,
) -> Result<Option<CloseCode>, ClientError> {
    let mut client = Client::connect_trusting(&options.trust, url, token).await?;
    client.join(join(&options.scene)).await?;
    report.sessions += 1;
    let (mut sender, mut receiver) = client.split();
    let sent = &mut report.sent;
    let floods = async {
        let mut beat = interval(BEAT);
        // What the server did not take in time is not made up for.
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let each = u64::from(options.rate) * BEAT.as_millis() as u64 / 1_000;
        loop {
            beat.tick().await;
            for n in 0..each.max(1) {
                if sender.send_move(Pos::ground(100 + (n % 50) as i32, 100)).await.is_err() {
                    // The receiver is told why.
                    return std::future::pending().await;
                }
                *sent += 1;
            }
        }
    };
    let hears = async {
        loop {
            match receiver.next().await {
                Ok(Event::Closed { code, .. }) | Err(ClientError::Closed { code, .. }) => {
                    return Ok(code);
                }
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    };
    let ended = timeout_at(until, async {
        tokio::select! {
            () = floods => Ok(None),
            ended = hears => ended,
        }
    });
    ended.await.unwrap_or(Ok(None))
}
