//! The acknowledgements of one connection: how far its messages were received. The other end keeps
//! its messages until then. Messages with lasting effects (handoffs, migrations) are acknowledged
//! at once, because after the receiver's death unacknowledged ones are sent again to the next
//! owner. All others are acknowledged together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::transport::ByteStream;

/// How long an acknowledgement may be delayed. A longer delay is cheaper for both ends; the other
/// end keeps the traffic of this time, which is little compared with [`super::CHANNEL_BYTES`].
const LATE: Duration = Duration::from_millis(200);

/// Bytes that are acknowledged at once.
const MUCH: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Received {
    upto: AtomicU64,
    /// Bytes that are not yet acknowledged.
    bytes: AtomicUsize,
    ended: AtomicBool,
    more: Notify,
    /// Notified when an acknowledgement is due at once, or when receiving has ended.
    much: Notify,
}

impl Received {
    pub(super) fn upto(upto: u64) -> Received {
        let (bytes, ended, more, much) = Default::default();
        Received { upto: AtomicU64::new(upto), bytes, ended, more, much }
    }
}

/// The receiving side; dropping it ends the acknowledgements.
#[derive(Debug)]
pub(super) struct ReceivedGuard(pub(super) Arc<Received>);

impl ReceivedGuard {
    /// Records received bytes up to this message; with `lasts` they are acknowledged at once.
    pub(super) fn took(&self, upto: u64, bytes: usize, lasts: bool) {
        self.0.upto.store(upto, Relaxed);
        let bytes = if lasts { MUCH } else { bytes };
        if self.0.bytes.fetch_add(bytes, Relaxed) + bytes >= MUCH {
            self.0.much.notify_one();
        }
        self.0.more.notify_one();
    }
}

impl Drop for ReceivedGuard {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
        self.0.more.notify_one();
        self.0.much.notify_one();
    }
}

pub(super) fn acknowledgements(received: Arc<Received>) -> ByteStream {
    let told = received.upto.load(Relaxed);
    let stream = futures::stream::unfold((received, told), |(received, told)| async move {
        loop {
            if received.ended.load(Relaxed) {
                return None;
            }
            if received.upto.load(Relaxed) > told {
                break;
            }
            received.more.notified().await;
        }
        if received.bytes.load(Relaxed) < MUCH {
            tokio::select! {
                biased;
                () = received.much.notified() => {}
                () = sleep(LATE) => {}
            }
        }
        received.bytes.store(0, Relaxed);
        let upto = received.upto.load(Relaxed);
        Some((Ok(Bytes::copy_from_slice(&upto.to_be_bytes())), (received, upto)))
    });
    stream.boxed()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::Instant;

    use super::*;

    async fn next(stream: &mut ByteStream) -> Option<u64> {
        let number = stream.next().await?.unwrap();
        Some(u64::from_be_bytes(number[..].try_into().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn small_amounts_are_acknowledged_together_and_large_or_lasting_ones_at_once() {
        let received = Arc::new(Received::upto(4));
        let guard = ReceivedGuard(received.clone());
        let mut stream = acknowledgements(received);
        assert_eq!(next(&mut stream).now_or_never(), None, "nothing was taken");
        let began = Instant::now();
        guard.took(5, 100, false);
        assert_eq!(next(&mut stream).now_or_never(), None, "it waits for more");
        guard.took(9, 100, false);
        assert_eq!(next(&mut stream).await, Some(9));
        assert!(began.elapsed() >= LATE && began.elapsed() < LATE * 2, "{:?}", began.elapsed());
        guard.took(10, MUCH, false);
        assert_eq!(next(&mut stream).now_or_never(), Some(Some(10)), "much");
        guard.took(11, 1, true);
        assert_eq!(next(&mut stream).now_or_never(), Some(Some(11)), "a lasting effect");
        guard.took(12, 1, false);
        drop(guard);
        assert_eq!(next(&mut stream).now_or_never(), Some(None), "the receiver is gone");
    }
}
