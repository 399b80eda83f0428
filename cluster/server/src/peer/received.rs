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

use super::transport::Heard;

/// How long an acknowledgement may be delayed. A longer delay is cheaper for both ends; the other
/// end keeps the traffic of this time, which is little compared with [`super::LANE_BYTES`].
const LATE: Duration = Duration::from_millis(200);

/// Bytes that are acknowledged at once.
const MUCH: usize = 256 << 10;

/// What was received on a connection.
#[derive(Debug)]
pub(super) struct Taken {
    /// The number of the last message.
    upto: AtomicU64,
    /// Bytes that are not yet acknowledged.
    bytes: AtomicUsize,
    ended: AtomicBool,
    /// Notified when something was received.
    more: Notify,
    /// Notified when an acknowledgement is due at once, or when receiving has ended.
    much: Notify,
}

impl Taken {
    pub(super) fn upto(upto: u64) -> Taken {
        let (bytes, ended, more, much) = Default::default();
        Taken { upto: AtomicU64::new(upto), bytes, ended, more, much }
    }
}

/// The receiving side; dropping it ends the acknowledgements.
#[derive(Debug)]
pub(super) struct Taking(pub(super) Arc<Taken>);

impl Taking {
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

impl Drop for Taking {
    fn drop(&mut self) {
        self.0.ended.store(true, Relaxed);
        self.0.more.notify_one();
        self.0.much.notify_one();
    }
}

/// The stream of acknowledgements.
pub(super) fn acknowledgements(taken: Arc<Taken>) -> Heard {
    let told = taken.upto.load(Relaxed);
    let words = futures::stream::unfold((taken, told), |(taken, told)| async move {
        loop {
            if taken.ended.load(Relaxed) {
                return None;
            }
            if taken.upto.load(Relaxed) > told {
                break;
            }
            taken.more.notified().await;
        }
        if taken.bytes.load(Relaxed) < MUCH {
            tokio::select! {
                biased;
                () = taken.much.notified() => {}
                () = sleep(LATE) => {}
            }
        }
        taken.bytes.store(0, Relaxed);
        let upto = taken.upto.load(Relaxed);
        Some((Ok(Bytes::copy_from_slice(&upto.to_be_bytes())), (taken, upto)))
    });
    words.boxed()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::Instant;

    use super::*;

    async fn next(words: &mut Heard) -> Option<u64> {
        let word = words.next().await?.unwrap();
        Some(u64::from_be_bytes(word[..].try_into().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn small_amounts_are_acknowledged_together_and_large_or_lasting_ones_at_once() {
        let taken = Arc::new(Taken::upto(4));
        let taking = Taking(taken.clone());
        let mut words = acknowledgements(taken);
        assert_eq!(next(&mut words).now_or_never(), None, "nothing was taken");
        let began = Instant::now();
        taking.took(5, 100, false);
        assert_eq!(next(&mut words).now_or_never(), None, "it waits for more");
        taking.took(9, 100, false);
        assert_eq!(next(&mut words).await, Some(9));
        assert!(began.elapsed() >= LATE && began.elapsed() < LATE * 2, "{:?}", began.elapsed());
        taking.took(10, MUCH, false);
        assert_eq!(next(&mut words).now_or_never(), Some(Some(10)), "much");
        taking.took(11, 1, true);
        assert_eq!(next(&mut words).now_or_never(), Some(Some(11)), "a lasting effect");
        taking.took(12, 1, false);
        drop(taking);
        assert_eq!(next(&mut words).now_or_never(), Some(None), "the receiver is gone");
    }
}
