//! A bad network on this machine: a relay over loopback that adds delay, jitter and loss.
//!
//! It behaves like a network below TCP: bytes arrive in order, and a lost segment arrives when it was sent again,
//! with all later segments behind it. A seed determines the fate of the n-th segment of a direction.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::rng::Rng;

const SEGMENT: usize = 1_460;
/// How many segments of a direction may be in flight.
const UNDER_WAY_MAX: usize = 4_096;
/// The first retransmission timeout; it doubles with each further loss.
const AGAIN: Duration = Duration::from_millis(400);
/// The longest delay of a segment. The server closes a session that is silent for longer.
const LONGEST: Duration = Duration::from_secs(12);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weather {
    pub delay_ms: u32,
    /// The jitter, milliseconds; at most the delay.
    pub jitter_ms: u32,
    /// The loss, segments per thousand; below 1,000.
    pub lost_per_mille: u32,
}

impl Weather {
    /// The network on which the server must never refuse an honest player.
    pub const BAD: Weather = Weather { delay_ms: 150, jitter_ms: 50, lost_per_mille: 20 };
}

/// One direction: when each segment arrives, as the time since the start.
#[derive(Debug)]
struct Way {
    weather: Weather,
    rng: Rng,
    last: Duration,
}

impl Way {
    fn new(weather: Weather, seed: u64) -> Way {
        Way { weather, rng: Rng::new(seed), last: Duration::ZERO }
    }

    /// When a segment arrives that is sent at `now`.
    fn arrival(&mut self, now: Duration) -> Duration {
        let Weather { delay_ms, jitter_ms, lost_per_mille } = self.weather;
        let off_ms = f64::from(jitter_ms) * (2.0 * self.rng.unit() - 1.0);
        let mut takes = Duration::from_secs_f64((f64::from(delay_ms) + off_ms).max(0.0) / 1_000.0);
        let mut again = AGAIN;
        while takes < LONGEST && self.rng.unit() * 1_000.0 < f64::from(lost_per_mille) {
            takes += again;
            again *= 2;
        }
        self.last = self.last.max(now + takes.min(LONGEST));
        self.last
    }
}

/// A relay before a server. It ends when this value is dropped.
#[derive(Debug)]
pub struct Relay {
    url: String,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Opens a relay to the server at `url`: `ws://host:port/` or `tcp://host:port`.
    pub async fn open(url: &str, weather: Weather, seed: u64) -> io::Result<Relay> {
        let bad = || {
            io::Error::new(io::ErrorKind::InvalidInput, "want ws://host:port/ or tcp://host:port")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let host = rest.split(['/', '?']).next().unwrap_or(rest).to_owned();
        let path = rest.strip_prefix(host.as_str()).unwrap_or_default().to_owned();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let url = format!("{scheme}://{}{path}", listener.local_addr()?);
        let accepting = tokio::spawn(accept(listener, host, weather, seed));
        Ok(Relay { url, accepting })
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections until it is aborted, which also ends the connections.
async fn accept(listener: TcpListener, host: String, weather: Weather, seed: u64) {
    let mut connections = JoinSet::new();
    let mut seeds = Rng::new(seed);
    while let Ok((client, _)) = listener.accept().await {
        let (host, ways) = (host.clone(), [(); 2].map(|()| Way::new(weather, seeds.seed())));
        connections.spawn(async move {
            if let Err(e) = join(client, &host, ways).await {
                tracing::debug!(error = %e, "a connection over a bad network has ended");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn join(client: TcpStream, host: &str, [up, down]: [Way; 2]) -> io::Result<()> {
    let server = TcpStream::connect(host).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::try_join!(carry(from_client, to_server, up), carry(from_server, to_client, down))?;
    Ok(())
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: Way) -> io::Result<()> {
    let start = Instant::now();
    let (under_way, mut arriving) = mpsc::channel::<(Instant, Bytes)>(UNDER_WAY_MAX);
    let read = async move {
        loop {
            let mut segment = BytesMut::with_capacity(SEGMENT);
            if from.read_buf(&mut segment).await? == 0 {
                return Ok(());
            }
            let at = start + way.arrival(start.elapsed());
            if under_way.send((at, segment.freeze())).await.is_err() {
                return Ok(());
            }
        }
    };
    let write = async move {
        while let Some((at, segment)) = arriving.recv().await {
            sleep_until(at).await;
            to.write_all(&segment).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(read, write).map(|((), ())| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_link_keeps_the_order_and_has_the_given_delay_and_loss() {
        let mut way = Way::new(Weather::BAD, 7);
        // So far apart that no segment waits for another one.
        let takes: Vec<Duration> =
            (0..10_000).map(|n| ms(n * 20_000)).map(|now| way.arrival(now) - now).collect();
        let in_time = takes.iter().filter(|t| (ms(100)..=ms(200)).contains(*t)).count();
        let once = takes.iter().filter(|t| (ms(500)..=ms(600)).contains(*t)).count();
        assert!(
            (9_750..=9_850).contains(&in_time) && (150..=250).contains(&once),
            "{in_time} {once}"
        );
        assert!(takes.iter().all(|t| *t >= ms(100)));
        let mut close = Way::new(Weather::BAD, 7);
        let arrivals: Vec<Duration> = (0..1_000).map(|n| close.arrival(ms(n))).collect();
        assert!(arrivals.is_sorted());
        let mut same = Way::new(Weather::BAD, 7);
        assert!((0..1_000).map(|n| same.arrival(ms(n))).eq(arrivals));
    }
}
