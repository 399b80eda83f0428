//! What workers are told, and what their commands do.

use purview_server::logic::proto::{EnterCause, LeaveCause, Reason, command};

use super::support::{HP, Happened, MONSTER, Player, Worker, act, place, runtime, server, set};

#[test]
fn a_worker_creates_commands_and_removes_an_entity_and_players_see_it() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        assert_eq!(worker.stream.opened.tick_ms, 100);
        let kinds: Vec<_> = worker.stream.opened.kinds.iter().map(|kind| &kind.name[..]).collect();
        assert_eq!(kinds, ["player", "monster", "drop", "lair"]);
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        let number = worker.give(0, monster, set(HP, 30));
        worker.until(|w| w.is_applied(monster, number)).await;
        let entered = Happened::Entered(monster, 0, EnterCause::Spawned);
        worker.until(|w| w.has_happened(&entered)).await;
        let (_, region, tick) = worker.applied[&monster];
        worker.until(|w| w.durable.get(&region).is_some_and(|durable| *durable >= tick)).await;
        worker.until(|w| w.property(monster, HP) == Some(30)).await;

        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        let seen = player.until(|p| p.property(monster, HP) == Some(30));
        let served = worker.until(|w| w.has_happened(&Happened::Sighted(monster, 0)));
        tokio::select! { () = seen => {}, () = served => {} }
        let sighted = Happened::Sighted(monster, player.id.0);
        worker.until(|w| w.has_happened(&sighted)).await;
        worker.give(0, monster, command::Command::Despawn(Default::default()));
        worker.until(|w| w.has_happened(&Happened::Left(monster, 0, LeaveCause::Despawned))).await;
        player.until(|p| p.property(monster, HP).is_none()).await;
        assert!(worker.results.is_empty(), "{:?}", worker.results);
    });
}

#[test]
fn an_action_reaches_the_worker_and_its_answer_reaches_the_client() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.until(|w| w.is_applied(monster, 1)).await;
        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        player.act(b"hit").await;
        let acted = Happened::Acted(player.id.0, b"hit".to_vec());
        worker.until(|w| w.has_happened(&acted)).await;
        worker.give(0, monster, set(HP, 20));
        worker.until(|w| w.is_applied(monster, 2)).await;
        player.until(|p| p.property(monster, HP) == Some(20)).await;
        worker.ticks(8).await;
        let told = worker.happened.iter().filter(|happened| **happened == acted).count();
        assert_eq!(told, 1, "an action is told once");
    });
}

#[test]
fn a_command_is_applied_once_and_in_order_however_often_it_is_sent() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        // Only what the test sends again.
        worker.repeats = false;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.give(0, monster, act(b"a"));
        let sent = worker.queued[&0].clone();
        worker.until(|w| w.is_applied(monster, 2)).await;
        // All of it again, and then one that leaves a number out.
        worker.queued.insert(0, sent.clone());
        worker.numbers.insert(monster, 3);
        worker.give(0, monster, act(b"d"));
        worker.until(|w| !w.results.is_empty()).await;
        let gap = &worker.results[0];
        assert_eq!((gap.reason(), gap.number, gap.expected), (Reason::Gap, 4, 3));
        worker.numbers.insert(monster, 2);
        worker.give(0, monster, act(b"c"));
        worker.queued.get_mut(&0).unwrap().extend(sent);
        worker.give(0, monster, act(b"d"));
        worker.until(|w| w.has_happened(&Happened::Acted(monster, b"d".to_vec()))).await;
        let acts: Vec<_> = worker
            .happened
            .iter()
            .filter_map(|happened| match happened {
                Happened::Acted(_, payload) => Some(payload[0]),
                _ => None,
            })
            .collect();
        assert_eq!(acts, *b"acd");
        assert_eq!(worker.results.len(), 1);
    });
}

#[test]
fn a_command_that_is_not_legal_is_refused_and_the_next_one_is_applied() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.give(0, monster, place(-1, 5_000));
        worker.give(0, monster, set(9, 1));
        worker.give(0, monster, command::Command::SetProperty(Default::default()));
        worker.give(0, monster, set(HP, 7));
        let nobody = 77;
        worker.give(0, nobody, set(HP, 1));
        worker.give(0, monster + 1_000_000, command::Command::Spawn(Default::default()));
        worker.until(|w| w.is_applied(monster, 5) && w.results.len() == 5).await;
        worker.results.sort_by_key(|result| (result.entity != monster, result.number));
        let results: Vec<_> = worker
            .results
            .iter()
            .map(|result| (result.entity, result.number, result.reason()))
            .collect();
        assert_eq!(
            results[..3],
            [
                (monster, 2, Reason::OutOfBounds),
                (monster, 3, Reason::Property),
                (monster, 4, Reason::Property),
            ]
        );
        let others: Vec<_> =
            results[3..].iter().map(|(entity, _, reason)| (*entity, *reason)).collect();
        assert!(others.contains(&(nobody, Reason::UnknownEntity)), "{others:?}");
        assert!(others.contains(&(monster + 1_000_000, Reason::ForeignId)), "{others:?}");
        worker.until(|w| w.property(monster, HP) == Some(7)).await;
    });
}

#[test]
fn an_entity_that_changes_regions_leaves_one_enters_the_other_and_obeys_in_both() {
    let server = server("");
    runtime().block_on(async {
        let mut worker = Worker::begin_with_all(server.reach(), "one").await;
        let monster = worker.spawn(0, MONSTER, 25_000, 5_000);
        for turn in 0..6_u8 {
            let (from, to) = if turn % 2 == 0 { (0, 1) } else { (1, 0) };
            worker.give(from, monster, place(if to == 1 { 27_000 } else { 25_000 }, 5_000));
            worker
                .until(|w| {
                    w.happened
                        .iter()
                        .rev()
                        .any(|h| *h == Happened::Entered(monster, to, EnterCause::HandedOff))
                })
                .await;
            worker.happened.retain(|happened| !matches!(happened, Happened::Acted(..)));
            // By the lease of the region that it has left.
            let number = worker.give(from, monster, set(HP, turn + 1));
            worker.until(|w| w.is_applied(monster, number)).await;
            assert_eq!(worker.applied[&monster].1, to);
            let told: Vec<_> = worker.happened.drain(..).collect();
            let spawned = Happened::Entered(monster, 0, EnterCause::Spawned);
            let told: Vec<_> = told.into_iter().filter(|happened| *happened != spawned).collect();
            assert_eq!(
                told,
                [
                    Happened::Left(monster, from, LeaveCause::HandedOff),
                    Happened::Entered(monster, to, EnterCause::HandedOff),
                ]
            );
        }
        worker.until(|w| w.property(monster, HP) == Some(6)).await;
        assert!(worker.results.is_empty(), "{:?}", worker.results);
    });
}
