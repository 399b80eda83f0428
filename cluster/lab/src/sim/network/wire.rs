//! The connections of the simulated network, and the messages in flight.
//!
//! One carrier delivers the messages of all connections: it sleeps until the next messages are due and wakes their
//! receivers. So all messages that are due in the same millisecond cost one timer, and each receiver is woken once.

use std::collections::{BTreeMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::{Sink, Stream};
use parking_lot::{Mutex, MutexGuard};
use purview::clock;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{Delays, Host, Net};
use crate::rng::Rng;

/// The capacity of one direction of a connection, bytes in flight.
const WINDOW: usize = 4 << 20;

/// The time since the start of the network, milliseconds, which is the resolution of timers.
type Ms = u64;

/// The other end has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silent;

#[derive(Default)]
struct Way {
    queue: VecDeque<Bytes>,
    arrived: usize,
    last: Ms,
    bytes: usize,
    ended: bool,
    deaf: bool,
    silent: bool,
    broken: bool,
    receives: Rouse,
    says: Rouse,
}

#[derive(Default)]
struct Rouse {
    waker: Option<Waker>,
    waits: bool,
}

impl Rouse {
    fn wait(&mut self, cx: &Context<'_>) {
        self.waits = true;
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.as_ref().filter(|_| std::mem::take(&mut self.waits)) {
            waker.wake_by_ref();
        }
    }
}

impl Way {
    fn wake(&mut self) {
        self.receives.wake();
        self.says.wake();
    }
}

pub(super) struct Wire {
    pub(super) ends: [Host; 2],
    /// Host pairs of the two directions: from the first end, and back.
    ways: [Mutex<Way>; 2],
    broken: AtomicBool,
    breaks: Notify,
    /// Whether the connection is between processes: then silence ends it.
    pub(super) watched: bool,
    /// Since when messages are held.
    silent: Mutex<Option<Instant>>,
}

impl Wire {
    /// A new connection; `silent`: whether messages are held there and back.
    pub(super) fn new(ends: [Host; 2], watched: bool, silent: [bool; 2]) -> Wire {
        let way = |silent| Mutex::new(Way { silent, ..Way::default() });
        Wire {
            ends,
            ways: silent.map(way),
            broken: AtomicBool::new(false),
            breaks: Notify::new(),
            watched,
            silent: Mutex::default(),
        }
    }

    pub(super) fn set_silent(&self, silent: [bool; 2]) {
        for (way, silent) in self.ways.iter().zip(silent) {
            let mut way = way.lock();
            way.silent = silent;
            way.wake();
        }
    }

    /// Sets whether one end receives nothing from the other one.
    pub(super) fn note(&self, silent: bool) {
        let mut since = self.silent.lock();
        *since = silent.then(|| since.unwrap_or_else(Instant::now));
    }

    /// How long one end has received nothing from the other one, if so.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        self.silent.lock().map(|since| since.elapsed())
    }

    pub(super) fn break_off(&self) {
        self.broken.store(true, Relaxed);
        for way in &self.ways {
            let mut way = way.lock();
            way.broken = true;
            way.wake();
        }
        self.breaks.notify_one();
    }

    pub(super) async fn broken(&self) {
        while !self.broken.load(Relaxed) {
            self.breaks.notified().await;
        }
    }
}

pub struct Sender {
    pub(super) net: Net,
    pub(super) wire: Arc<Wire>,
    pub(super) way: usize,
}

pub struct Receiver {
    pub(super) wire: Arc<Wire>,
    pub(super) way: usize,
}

impl Sender {
    fn poll_room(&self, cx: &Context<'_>) -> Poll<Result<(), Silent>> {
        let mut way = self.wire.ways[self.way].lock();
        match () {
            () if way.broken || way.deaf => Poll::Ready(Err(Silent)),
            () if way.bytes < WINDOW => Poll::Ready(Ok(())),
            () => {
                way.says.wait(cx);
                Poll::Pending
            }
        }
    }

    fn say(&self, message: Bytes) -> Result<(), Silent> {
        self.put(self.wire.ways[self.way].lock(), message)
    }

    /// Sends a message if there is room, and otherwise returns it.
    pub fn say_now(&self, message: Bytes) -> Result<Option<Bytes>, Silent> {
        let way = self.wire.ways[self.way].lock();
        if way.bytes >= WINDOW && !way.broken && !way.deaf {
            return Ok(Some(message));
        }
        self.put(way, message).map(|()| None)
    }

    fn put(&self, mut way: MutexGuard<'_, Way>, message: Bytes) -> Result<(), Silent> {
        if way.broken || way.deaf {
            return Err(Silent);
        }
        let now = clock::since(self.net.began());
        way.bytes += message.len();
        way.queue.push_back(message);
        let mut packets = self.net.0.packets.lock();
        way.last = packets.arrival(now).max(way.last);
        packets.bring(way.last, &self.wire, self.way);
        Ok(())
    }

    pub async fn send(&self, message: Bytes) -> Result<(), Silent> {
        std::future::poll_fn(|cx| self.poll_room(cx)).await?;
        self.say(message)
    }
}

impl Sink<Bytes> for Sender {
    type Error = Silent;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Silent>> {
        self.poll_room(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Bytes) -> Result<(), Silent> {
        self.say(message)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Silent>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Silent>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut way = self.wire.ways[self.way].lock();
        way.ended = true;
        way.receives.wake();
    }
}

impl Receiver {
    pub async fn recv(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut way = self.wire.ways[self.way].lock();
        if way.broken {
            return Poll::Ready(None);
        }
        if !way.silent {
            if way.arrived > 0
                && let Some(message) = way.queue.pop_front()
            {
                way.arrived -= 1;
                way.bytes -= message.len();
                way.says.wake();
                return Poll::Ready(Some(message));
            }
            if way.ended && way.queue.is_empty() {
                return Poll::Ready(None);
            }
        }
        way.receives.wait(cx);
        Poll::Pending
    }
}

impl Stream for Receiver {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_recv(cx)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut way = self.wire.ways[self.way].lock();
        way.deaf = true;
        way.says.wake();
    }
}

/// The connections and directions on which a message arrives at one time.
type Arrivals = Vec<(Arc<Wire>, usize)>;

pub(super) struct PacketQueue {
    rng: Rng,
    pub(super) delays: Delays,
    due: BTreeMap<Ms, Arrivals>,
    spare: Vec<Arrivals>,
    until: Ms,
    carrier: Rouse,
}

impl PacketQueue {
    pub(super) fn new(seed: u64, delays: Delays) -> PacketQueue {
        let (due, spare, carrier) = Default::default();
        PacketQueue { rng: Rng::new(seed), delays, due, spare, until: 0, carrier }
    }

    pub(super) fn delay(&mut self) -> Duration {
        self.delays.draw(&mut self.rng)
    }

    /// The arrival time of a message that is sent now.
    fn arrival(&mut self, now: Duration) -> Ms {
        let at = now + self.delay();
        at.as_secs() * 1_000 + u64::from(at.subsec_nanos().div_ceil(1_000_000))
    }

    fn bring(&mut self, at: Ms, wire: &Arc<Wire>, way: usize) {
        let spare = &mut self.spare;
        let arrivals = self.due.entry(at).or_insert_with(|| spare.pop().unwrap_or_default());
        arrivals.push((wire.clone(), way));
        if at < self.until {
            self.carrier.wake();
        }
    }

    fn next(&self) -> Option<Ms> {
        self.due.first_key_value().map(|(at, _)| *at)
    }

    fn take(&mut self, now: Ms) -> Option<Arrivals> {
        self.due.first_entry().filter(|first| *first.key() <= now).map(|first| first.remove())
    }
}

impl Net {
    fn now(&self) -> Ms {
        clock::since(self.began()).as_millis() as Ms
    }

    /// Delivers all messages, for as long as the network exists.
    pub(in crate::sim) async fn carry(self) {
        let mut sleep = pin!(sleep_until(self.began()));
        loop {
            std::future::poll_fn(|cx| {
                let mut packets = self.0.packets.lock();
                packets.carrier.wait(cx);
                let Some(next) = packets.next() else {
                    packets.until = Ms::MAX;
                    return Poll::Pending;
                };
                if packets.until != next {
                    packets.until = next;
                    sleep.as_mut().reset(self.began() + Duration::from_millis(next));
                }
                drop(packets);
                sleep.as_mut().poll(cx)
            })
            .await;
            let now = self.now();
            let due = || self.0.packets.lock().take(now);
            while let Some(mut arrivals) = due() {
                for (wire, way) in arrivals.drain(..) {
                    let mut way = wire.ways[way].lock();
                    way.arrived += 1;
                    way.receives.wake();
                }
                self.0.packets.lock().spare.push(arrivals);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use tokio::time::sleep;

    use super::*;
    use crate::sim::network::{Delays, End};

    /// A network, and both ends of a connection on it.
    fn connected(delays: Delays) -> (Net, [End; 2]) {
        let net = Net::new(7, delays);
        tokio::spawn(net.clone().carry());
        let ends = net.wire(1, 2, true);
        (net, ends)
    }

    fn number(n: u32) -> Bytes {
        Bytes::copy_from_slice(&n.to_be_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn messages_arrive_in_order_after_their_delay() {
        let (_net, [(says, _), (_, mut receives)]) = connected(Delays::BUSY);
        let began = Instant::now();
        for n in 0..200 {
            says.send(number(n)).await.unwrap();
            sleep(Duration::from_millis(u64::from(n % 3))).await;
        }
        drop(says);
        for n in 0..200 {
            assert_eq!(receives.next().await, Some(number(n)));
        }
        assert_eq!(receives.next().await, None, "nothing more is said");
        assert!(began.elapsed() > Duration::from_millis(200), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_is_that_of_the_network() {
        let (_net, [(says, _), (_, mut receives)]) = connected(Delays::QUIET);
        let began = Instant::now();
        says.send(number(1)).await.unwrap();
        assert_eq!(receives.recv().now_or_never(), None);
        receives.recv().await.unwrap();
        let took = began.elapsed();
        assert!(took > Duration::ZERO && took <= Duration::from_millis(3), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn messages_over_a_cut_wait_until_it_is_mended() {
        let (net, [(says, mut answered), (says_back, mut receives)]) = connected(Delays::QUIET);
        net.cut(&[(1, 2)]);
        says.send(number(1)).await.unwrap();
        says_back.send(number(2)).await.unwrap();
        assert_eq!(answered.recv().await, Some(number(2)), "the other way is open");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(receives.recv().now_or_never(), None);
        net.mend();
        assert_eq!(receives.recv().now_or_never(), Some(Some(number(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_given_up() {
        let (net, [(says, mut answered), _other]) = connected(Delays::QUIET);
        net.cut(&[(2, 1)]);
        let began = Instant::now();
        assert_eq!(answered.recv().await, None);
        assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
        assert_eq!(says.send(number(1)).await, Err(Silent));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_waits_for_room() {
        let (_net, [(says, _), (_, mut receives)]) = connected(Delays::QUIET);
        let half = Bytes::from(vec![0; WINDOW / 2]);
        says.send(half.clone()).await.unwrap();
        says.send(half.clone()).await.unwrap();
        assert_eq!(says.send(half.clone()).now_or_never(), None, "there is no room");
        assert!(receives.recv().await.is_some());
        assert_eq!(says.send(half).now_or_never(), Some(Ok(())));
        drop(receives);
        assert_eq!(says.send(number(1)).await, Err(Silent), "the receiver has closed");
    }
}
