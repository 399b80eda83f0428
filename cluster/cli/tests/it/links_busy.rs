//! Two regions behind one channel, one of which reads nothing: the other one receives everything at once, messages
//! for the first one wait within bounds, and all arrive in the end.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use actix::dev::SendError;
use actix::fut::wrap_future;
use actix::prelude::*;
use bytes::Bytes;
use purview::actor::address::RegionAddress;
use purview::actor::messages::ToRegion;
use purview::scene::messages::Input;
use purview::scene::{EntityId, Epoch, RegionId};
use purview::wire::peer::MoveMsg;
use purview_server::peer::Kind;
use tokio::sync::oneshot;

use crate::common::{PATIENCE, waits};
use crate::links::{Side, ghosts, message, with_pair};

const DEAF: RegionId = RegionId(0);
const LISTENS: RegionId = RegionId(1);

/// The messages that a region received: which entity goes where, and 0 for ghosts.
type Received = Arc<Mutex<Vec<u64>>>;

/// A region that reads nothing until told to.
struct Region {
    received: Received,
    reads: Option<oneshot::Receiver<()>>,
}

impl Actor for Region {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(reads) = self.reads.take() {
            ctx.wait(wrap_future(async move { drop(reads.await) }));
        }
    }
}

impl Handler<ToRegion> for Region {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, _: &mut Context<Self>) {
        let n = match msg.input {
            Input::Tell { id, .. } => id.0,
            Input::Border(batch) => u64::MAX - batch.tick.0,
            other => panic!("another message arrived: {other:?}"),
        };
        self.received.lock().unwrap().push(n);
    }
}

fn lives(id: RegionId, at: &Side, reads: Option<oneshot::Receiver<()>>) -> Received {
    let received = Received::default();
    let region = Region { received: received.clone(), reads }.start();
    at.directory.set_region(id, Some(region.recipient().into()));
    received
}

/// As `message`, with a megabyte.
fn long_message(n: u64) -> ToRegion {
    let payload = Bytes::from(vec![7; 1 << 20]);
    ToRegion { input: Input::Tell { id: EntityId(n), payload }, client: None }
}

/// Sends long messages until there is no room. Returns how many were accepted.
fn fill(region: &RegionAddress, from: u64) -> u64 {
    let taken = (from..).take_while(|n| match region.try_send(long_message(*n)) {
        Ok(()) => true,
        Err(SendError::Full(_)) => false,
        Err(SendError::Closed(_)) => panic!("the peer is there"),
    });
    taken.count() as u64
}

#[test]
fn a_region_that_does_not_read_delays_no_other_and_loses_nothing() {
    with_pair(async |a, b| {
        let (read, reads) = oneshot::channel();
        let (deaf, listens) = (lives(DEAF, b, Some(reads)), lives(LISTENS, b, None));
        let to = |region| a.links.region(2, region).unwrap();
        for n in 0..100 {
            assert!(to(DEAF).send(message(n)).await);
            assert!(to(LISTENS).send(message(n)).await);
        }
        let all: Vec<u64> = (0..100).collect();
        waits("all that is for a region that reads", || *listens.lock().unwrap() == all).await;
        assert!(deaf.lock().unwrap().is_empty(), "the region must not read yet");
        // The peer learns that the region is busy long before the channel is full.
        let mut said = 100;
        let backlog = || b.links.router().backlog().1;
        waits("the peer to keep the rest", || {
            said += fill(&to(DEAF), said);
            said > 105 && backlog() > 8 << 20
        })
        .await;
        waits("no more room", || fill(&to(DEAF), u64::MAX / 2) == 0 || panic_if(backlog())).await;
        assert!(to(LISTENS).send(message(100)).await);
        waits("one more", || listens.lock().unwrap().len() == 101).await;
        read.send(()).unwrap();
        waits("all that waited", || backlog() == 0).await;
        waits("room again", || to(DEAF).try_send(message(1_000_000)).is_ok()).await;
        waits("the last word", || deaf.lock().unwrap().last() == Some(&1_000_000)).await;
        let received = deaf.lock().unwrap().clone();
        let in_order = received.windows(2).all(|two| two[0] < two[1] || two[0] >= u64::MAX / 2);
        assert!(in_order && received[..100] == all[..], "{received:?}");
    });
}

/// The messages of this test stay far below the capacity of the channel.
fn panic_if(backlog: usize) -> bool {
    assert!(backlog < 40 << 20, "{backlog} bytes wait for one region");
    false
}

#[test]
fn only_the_newest_ghosts_wait_for_a_region_that_does_not_read() {
    with_pair(async |a, b| {
        let (read, reads) = oneshot::channel();
        let deaf = lives(DEAF, b, Some(reads));
        a.links.router().set_epoch(RegionId(1), Epoch(3));
        let region = a.links.region(2, DEAF).unwrap();
        // More than its mailbox holds.
        for tick in 1..=500 {
            let mut msg = ghosts(Epoch(3));
            if let Input::Border(batch) = &mut msg.input {
                batch.tick.0 = tick;
            }
            assert!(region.send(msg).await);
        }
        let waiting = || b.links.router().metrics().backlogged.load(Relaxed);
        waits("all to have come", || waiting() > 400).await;
        assert!(b.links.router().backlog().0 <= 1, "{:?}", b.links.router().backlog());
        read.send(()).unwrap();
        waits("the newest", || deaf.lock().unwrap().last() == Some(&(u64::MAX - 500))).await;
        assert!(deaf.lock().unwrap().len() < 100, "{:?}", deaf.lock().unwrap().len());
    });
}

#[test]
fn an_impossible_owner_does_not_shut_out_later_ones() {
    with_pair(async |a, b| {
        let received = lives(DEAF, b, None);
        let (from, region) = (RegionId(1), a.links.region(2, DEAF).unwrap());
        b.links.router().knows_up_to(Epoch(90));
        a.links.router().set_epoch(from, Epoch(u64::MAX));
        assert!(region.send(ghosts(Epoch(u64::MAX))).await);
        let refused = || b.links.router().metrics().implausible.load(Relaxed);
        waits("it to be refused", || refused() == 1).await;
        assert_eq!(b.links.router().epoch(from), Epoch(0));
        let (to, late) = (2, tokio::time::Instant::now() + PATIENCE);
        let moved = MoveMsg::Moved { region: from, epoch: Epoch(u64::MAX), to };
        a.links.say(2, Kind::Regions, moved, late).await.unwrap();
        waits("that to be refused, too", || refused() == 2).await;
        assert_eq!(
            b.links.router().elsewhere(from),
            None,
            "the store would be believed never again"
        );
        // A possible owner is believed until the store knows better.
        b.links.router().set_epoch(from, Epoch(1_000));
        b.links.router().correct_epoch(from, Epoch(91), Epoch(999));
        assert_eq!(b.links.router().epoch(from), Epoch(1_000), "the store may tell of it yet");
        b.links.router().correct_epoch(from, Epoch(91), Epoch(1_001));
        assert_eq!(b.links.router().epoch(from), Epoch(91));
        assert!(received.lock().unwrap().is_empty());
    });
}
