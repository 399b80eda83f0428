//! What other processes send to a region: it waits in the region's mailbox, in the queue of a region that is about to
//! arrive, or for the new owner of a region that has left. Each place has a bound. Beyond the bound a message is given
//! back to its sender, and no message is lost or overtakes another one.

use std::sync::{Arc, Mutex};

use actix::dev::SendError;
use actix::fut::wrap_future;
use actix::prelude::*;
use futures::channel::oneshot;
use purview::actor::address::{Passing, RegionAddress};
use purview::actor::directory::{Directory, NotSent};
use purview::actor::messages::ToRegion;
use purview::actor::region::migration::depart::Depart;
use purview::scene::messages::Input;
use purview::scene::{EntityId, RegionId};

use crate::departing::{Elsewhere, HERE, region, tick};
use crate::stage::until;

/// Messages that wait for a region that is about to arrive, and for the new owner of one that has left.
const WAITING: u64 = 65_536;

/// Messages of an actor's mailbox, which has one more place for each sender.
const MAILBOX: u64 = 16;

/// Messages of the mailbox of a region's actor.
const MAILBOX_OF_REGIONS: u64 = 16_384;

fn message(n: u64) -> ToRegion {
    ToRegion { input: Input::Leave(EntityId(n)), client: None }
}

fn number(msg: &ToRegion) -> u64 {
    msg.input.entity().expect("a message of this test").0
}

/// Sends messages, numbered from `first`, until one is given back. Returns the number of that one.
fn fill(directory: &Directory, first: u64) -> u64 {
    let is_full = |n: &u64| match directory.send_from_peer(HERE, message(*n)) {
        Ok(()) => false,
        Err(NotSent::Full(back)) => {
            assert_eq!(number(&back), *n, "the message is given back");
            true
        }
        Err(other) => panic!("there is such a region: {other:?}"),
    };
    (first..).find(is_full).unwrap()
}

/// The numbers of the messages that a region received.
type Received = Arc<Mutex<Vec<u64>>>;

/// A region that reads nothing until it is told to.
struct Reader {
    received: Received,
    reads: Option<oneshot::Receiver<()>>,
}

impl Actor for Reader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(reads) = self.reads.take() {
            ctx.wait(wrap_future(async move {
                let _told = reads.await;
            }));
        }
    }
}

impl Handler<ToRegion> for Reader {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, _: &mut Context<Self>) {
        self.received.lock().unwrap().push(number(&msg));
    }
}

fn reader() -> (Received, oneshot::Sender<()>, Recipient<ToRegion>) {
    let (read, reads) = oneshot::channel();
    let received = Received::default();
    let reader = Reader { received: received.clone(), reads: Some(reads) };
    (received, read, reader.start().recipient())
}

async fn assert_received(received: &Received, all: &[u64]) {
    until("all messages", || received.lock().unwrap().len() >= all.len()).await;
    assert!(*received.lock().unwrap() == all, "each message once, and in order");
}

#[actix_rt::test]
async fn a_full_mailbox_gives_messages_back_until_the_region_reads() {
    let directory = Directory::new(Vec::new());
    let (received, read, address) = reader();
    directory.set_region(HERE, Some(address.into()));
    let refused = fill(&directory, 0);
    assert!((MAILBOX..MAILBOX + 3).contains(&refused), "{refused} messages found room");
    assert_eq!(fill(&directory, refused), refused, "there is still no room");
    read.send(()).unwrap();
    until("room", || received.lock().unwrap().len() as u64 == refused).await;
    directory.send_from_peer(HERE, message(refused)).unwrap();
    assert_received(&received, &(0..=refused).collect::<Vec<_>>()).await;
}

#[actix_rt::test]
async fn an_arriving_region_receives_what_found_room_and_the_rest_is_given_back() {
    let directory = Directory::new(Vec::new());
    directory.expect(HERE);
    assert_eq!(fill(&directory, 0), WAITING);
    // What the old owner passes on has as much room of its own.
    let from_owner = 1_000_000;
    let is_full = |n: &u64| match directory.passed_on(HERE, message(*n)) {
        Ok(()) => false,
        Err(SendError::Full(back)) => number(&back) == *n,
        Err(SendError::Closed(_)) => panic!("the region is about to arrive"),
    };
    assert_eq!((from_owner..).find(is_full), Some(from_owner + WAITING));
    let (received, read, address) = reader();
    read.send(()).unwrap();
    directory.arrive(HERE, address);
    let waited: Vec<u64> = (from_owner..from_owner + WAITING).chain(0..WAITING).collect();
    assert_received(&received, &waited).await;
    // Its sender has kept what was given back.
    directory.send_from_peer(HERE, message(WAITING)).unwrap();
    assert_received(&received, &[waited, vec![WAITING]].concat()).await;
}

#[test]
fn a_region_that_does_not_arrive_leaves_all_that_waited_for_it() {
    let directory = Directory::new(Vec::new());
    directory.expect(HERE);
    assert_eq!(fill(&directory, 0), WAITING);
    let left: Vec<u64> = directory.give_up(HERE).iter().map(number).collect();
    assert!(left == (0..WAITING).collect::<Vec<_>>(), "each message once, and in order");
    let sent = directory.send_from_peer(HERE, message(7));
    assert!(matches!(&sent, Err(NotSent::Nowhere(back)) if number(back) == 7), "{sent:?}");
}

#[actix_rt::test]
async fn a_region_that_has_left_gives_messages_back_while_too_many_wait_for_its_new_owner() {
    let (directory, region) = region();
    let elsewhere = Arc::new(Elsewhere::default());
    tick(&region, 1).await;
    let (depart, departing) = Depart::new(Some(elsewhere.clone()));
    region.send(depart).await.unwrap();
    departing.unless(std::future::ready(())).await.expect("the region has left");
    *elsewhere.is_full.lock().unwrap() = true;
    let mut sent = 0;
    // The actor takes messages out of its mailbox between two attempts.
    loop {
        let before = sent;
        sent = fill(&directory, before);
        tick(&region, 2).await;
        if sent == before {
            break;
        }
    }
    let room = WAITING + MAILBOX_OF_REGIONS + 3;
    assert!((WAITING..=room).contains(&sent), "{sent} messages found room");
    *elsewhere.is_full.lock().unwrap() = false;
    until("room", || directory.send_from_peer(HERE, message(sent)).is_ok()).await;
    let passed = || elsewhere.passed.lock().unwrap().len() as u64;
    // The first one is the mark of the region itself.
    until("all messages", || passed() == 1 + sent + 1).await;
    let passed = elsewhere.passed.lock().unwrap();
    let messages = passed.iter().filter_map(|passing| match passing {
        Passing::Message(msg) => Some(number(msg)),
        Passing::Mark(_) => None,
    });
    assert!(messages.eq(0..=sent), "each message once, and in order");
}

#[test]
fn a_region_that_is_unknown_or_in_another_process_is_nowhere_for_peers() {
    let directory = Directory::new(Vec::new());
    let is_nowhere = |id| {
        let sent = directory.send_from_peer(id, message(7));
        assert!(matches!(&sent, Err(NotSent::Nowhere(back)) if number(back) == 7), "{sent:?}");
    };
    is_nowhere(HERE);
    let elsewhere = Arc::new(Elsewhere::default());
    directory.set_region(RegionId(1), Some(RegionAddress::Remote(elsewhere.clone())));
    is_nowhere(RegionId(1));
    assert!(elsewhere.took.lock().unwrap().is_empty(), "no process answers for another one");
}
