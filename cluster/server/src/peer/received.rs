//! How far everything was taken that came on a lane's connection: said to the other end, which keeps until then what it
//! has sent. Of what lasts (an entity that is handed over, a move) it is said at once: given back after a death, it is
//! said again to the next owner. Of the rest it is said together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::transport::Heard;

/// How late it is said that something was taken. Less often is cheaper for both; what the other end keeps is this
/// long's traffic, which is little beside [`super::LANE_BYTES`].
const LATE: Duration = Duration::from_millis(200);

/// Bytes of which it is said at once that they were taken.
const MUCH: usize = 256 << 10;

/// What was taken of a connection.
#[derive(Debug)]
pub(super) struct Taken {
    /// The number of the last message.
    upto: AtomicU64,
    /// Bytes of which it was not said yet.
    bytes: AtomicUsize,
    ended: AtomicBool,
    /// Told when something was taken.
    more: Notify,
    /// Told when much was, or something that lasts, or nothing will be any more.
    much: Notify,
}

impl Taken {
    pub(super) fn upto(upto: u64) -> Taken {
        let (bytes, ended, more, much) = Default::default();
        Taken { upto: AtomicU64::new(upto), bytes, ended, more, much }
    }
}

/// Who takes; when it is dropped nothing is taken any more.
#[derive(Debug)]
pub(super) struct Taking(pub(super) Arc<Taken>);

impl Taking {
    /// So many bytes more were taken, up to this message; with `lasts` it is said at once.
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

/// How far everything was taken, whenever that is to be said.
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
    async fn little_is_acknowledged_together_and_what_is_much_or_lasts_at_once() {
        let taken = Arc::new(Taken::upto(4));
        let taking = Taking(taken.clone());
        let mut words = acknowledgements(taken);
        assert_eq!(next(&mut words).now_or_never(), None, "nothing was taken");
        let began = Instant::now();
        taking.took(5, 100, false);
        assert_eq!(next(&mut words).now_or_never(), None, "more may come");
        taking.took(9, 100, false);
        assert_eq!(next(&mut words).await, Some(9));
        assert!(began.elapsed() >= LATE && began.elapsed() < LATE * 2, "{:?}", began.elapsed());
        taking.took(10, MUCH, false);
        assert_eq!(next(&mut words).now_or_never(), Some(Some(10)), "much");
        taking.took(11, 1, true);
        assert_eq!(next(&mut words).now_or_never(), Some(Some(11)), "what lasts");
        taking.took(12, 1, false);
        drop(taking);
        assert_eq!(next(&mut words).now_or_never(), Some(None), "nobody takes anything any more");
    }
}
