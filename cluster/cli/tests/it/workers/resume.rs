//! A broken stream: the session goes on, nothing is missing, and nothing is done twice.

use purview_server::logic::client::Stream;
use purview_server::logic::proto::Reason;

use super::support::{
    HP, Happened, MONSTER, Player, Worker, act, address, open, runtime, server, set,
};

#[test]
fn a_resumed_session_is_told_all_that_it_has_missed_and_keeps_its_regions() {
    let server =
        server("[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"30s\"\nresume = \"60s\"\n");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.until(|w| w.is_applied(monster, 1)).await;
        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        let leases = worker.leases.clone();
        let (session, received) = (worker.stream.opened.session.clone(), worker.stream.received);
        // Sent, and perhaps lost; and acts that happen meanwhile.
        worker.give(0, monster, set(HP, 3));
        let sent = worker.queued[&0].clone();
        let at = address(server.reach());
        let again = Stream::resume(&at, (session.clone(), received), open("one"));
        for n in 0..3_u8 {
            player.act(&[b'0' + n]).await;
        }
        player.until(|p| p.view.ack().0 >= 3).await;
        let stream = again.await.unwrap();
        assert!(stream.opened.resumed && stream.opened.reason.is_empty());
        assert_eq!(stream.opened.worker, worker.stream.opened.worker);
        worker.resume(stream);
        worker.queued.insert(0, [sent.clone(), sent].concat());
        worker.give(0, monster, act(b"done"));
        let last = Happened::Acted(player.id.0, b"2".to_vec());
        worker.until(|w| w.has_happened(&last) && w.is_applied(monster, 3)).await;
        let acts: Vec<_> = worker
            .happened
            .iter()
            .filter(|h| matches!(h, Happened::Acted(id, _) if *id == player.id.0))
            .collect();
        assert_eq!(acts.len(), 3, "{acts:?}");
        for (region, lease) in leases {
            assert_eq!(worker.leases[&region].lease, lease.lease, "its leases go on");
        }
        assert!(worker.results.iter().all(|result| result.reason() != Reason::Gap));
    });
}

#[test]
fn a_session_whose_time_is_over_begins_anew() {
    let server =
        server("[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"100ms\"\nresume = \"100ms\"\n");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.until(|w| w.is_applied(monster, 1)).await;
        let (session, received) = (worker.stream.opened.session.clone(), worker.stream.received);
        drop(worker);
        let at = address(server.reach());
        let stream = loop {
            // Another worker has everything once the old session is over.
            let mut other = Worker::begin_with_all(server.reach(), "other").await;
            other.ticks(8).await;
            let stream =
                Stream::resume(&at, (session.clone(), received), open("one")).await.unwrap();
            if !stream.opened.resumed {
                break stream;
            }
        };
        assert!(stream.opened.reason.contains("its time is over"), "{}", stream.opened.reason);
        let mut worker = Worker::new(stream);
        worker.until(|w| w.leases.len() == 4 || !w.leases.is_empty()).await;
    });
}
