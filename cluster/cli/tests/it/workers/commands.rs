//! What workers are told, and what their commands do.

use purview_server::logic::proto::{self, Reason, command};

use super::player::Player;
use super::support::{HP, Happened, MONSTER, act, place, set, with_worker};

#[test]
fn a_worker_creates_commands_and_removes_an_entity_and_players_see_it() {
    with_worker("", async |server, mut worker| {
        assert_eq!(worker.stream.opened.tick_ms, 100);
        let kinds: Vec<_> = worker.stream.opened.kinds.iter().map(|kind| &kind.name[..]).collect();
        assert_eq!(kinds, ["player", "monster", "drop", "lair"]);
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        let number = worker.give(0, monster, set(HP, 30));
        worker.until(|w| w.counted.contains(&number) && w.durable.contains(&number)).await;
        worker.until(|w| w.property(monster, HP) == Some(30)).await;
        assert!(worker.happened.contains(&Happened::Entered(monster, 0)));

        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        let seen = player.until(|p| p.property(monster, HP) == Some(30));
        let served = worker.until(|w| w.happened.contains(&Happened::Sighted(monster, 0)));
        tokio::select! { () = seen => {}, () = served => {} }
        let sighted = Happened::Sighted(monster, player.id.0);
        worker.until(|w| w.happened.contains(&sighted)).await;
        worker.give(0, monster, command::Command::Despawn(Default::default()));
        worker.until(|w| w.happened.contains(&Happened::Left(monster, 0))).await;
        assert!(worker.dead.contains(&monster) && !worker.entities.contains_key(&monster));
        player.until(|p| p.property(monster, HP).is_none()).await;
        assert!(worker.results.is_empty(), "{:?}", worker.results);
    });
}

/// Commands for an entity of another region, held and not, reach it once and in order.
#[test]
fn commands_for_an_entity_of_another_region_are_done_once_and_in_order() {
    with_worker("", async |_, mut worker| {
        let monster = worker.monster(0, 5_000, 5_000).await;
        let texts: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        for (n, text) in texts.into_iter().enumerate() {
            let (held, command) = (n == 1, Some(act(text)));
            let entity = monster;
            worker.queue(3, proto::Command { entity, held, command, ..Default::default() });
        }
        worker.until(|w| w.happened.contains(&Happened::Acted(monster, b"d".to_vec()))).await;
        worker.ticks(4 * 30).await;
        let acts: Vec<_> = worker
            .happened
            .iter()
            .filter_map(|happened| match happened {
                Happened::Acted(_, payload) => Some(payload[0]),
                _ => None,
            })
            .collect();
        assert_eq!(acts, *b"abcd");
        assert!(worker.results.is_empty(), "{:?}", worker.results);
    });
}

#[test]
fn a_command_that_is_not_legal_is_refused_and_the_next_one_is_applied() {
    with_worker("", async |_, mut worker| {
        let monster = worker.monster(0, 5_000, 5_000).await;
        let far = place(-1, 5_000);
        let mut wanted = vec![
            (worker.give(0, monster, far.clone()), Reason::OutOfBounds),
            (worker.give(0, monster, set(9, 1)), Reason::Property),
            (
                worker.give(0, monster, command::Command::SetProperty(Default::default())),
                Reason::Property,
            ),
            // By another region.
            (worker.give(3, monster, far), Reason::OutOfBounds),
            (worker.give(0, 77, set(HP, 1)), Reason::UnknownEntity),
            (
                worker.give(0, monster + 1_000_000, command::Command::Spawn(Default::default())),
                Reason::ForeignId,
            ),
        ];
        // For no entity.
        let payload = bytes::Bytes::from_static(b"hi");
        let announce = command::Command::Announce(proto::Announce { plane: None, payload });
        wanted.push((worker.give(0, monster, announce), Reason::NotOfEntity));
        let last = worker.give(0, monster, set(HP, 7));
        worker.until(|w| w.counted.contains(&last) && w.results.len() == 7).await;
        worker.results.sort_by_key(|(number, _)| *number);
        wanted.sort_by_key(|(number, _)| *number);
        assert_eq!(worker.results, wanted);
        worker.until(|w| w.property(monster, HP) == Some(7)).await;
        worker.ticks(60).await;
        assert_eq!(worker.results.len(), 7, "what the worker has got is not told again");
    });
}

#[test]
fn a_worker_lets_a_player_stay_that_leaves_and_lets_it_go() {
    with_worker("", async |server, mut worker| {
        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        let id = player.id.0;
        worker.until(|w| w.has(id)).await;
        let hold = |lasts_ms| command::Command::Hold(proto::Hold { lasts_ms });
        let held = worker.give(0, id, hold(600_000));
        let (too_long, monster) =
            (worker.give(0, id, hold(3_600_001)), worker.spawn(0, MONSTER, 0, 0));
        let of_monster = worker.give(0, monster, hold(1));
        worker.until(|w| w.counted.contains(&held) && w.results.len() == 2).await;
        worker.results.sort_by_key(|(number, _)| *number);
        let refused = [(too_long, Reason::TooLong), (of_monster, Reason::NoPlayer)];
        assert_eq!(worker.results, refused);
        player.sender.leave().await.expect("the session goes on");
        worker.until(|w| w.entities.get(&id).is_some_and(|known| known.disconnected)).await;
        worker.ticks(4 * 10).await;
        assert!(worker.has(id), "it stays");
        worker.give(0, id, hold(0));
        worker.until(|w| w.dead.contains(&id)).await;
    });
}

#[test]
fn a_worker_blinds_a_player_and_lets_it_see_again() {
    with_worker("", async |server, mut worker| {
        let monster = worker.spawn(0, MONSTER, 5_000, 5_000);
        worker.give(0, monster, set(HP, 30));
        let mut player = Player::join(server.reach(), 5_400, 5_000).await;
        let id = player.id.0;
        worker.until(|w| w.has(id)).await;
        let sight = |within_cm| command::Command::SetSight(proto::SetSight { within_cm });
        for (within_cm, hp) in
            [(None, Some(30)), (Some(300), None), (Some(500), Some(30)), (Some(0), None)]
        {
            worker.give(0, id, sight(within_cm));
            worker.serve_while(player.until(|p| p.property(monster, HP) == hp)).await;
        }
        worker.give(0, monster, sight(None));
        worker.until(|w| !w.results.is_empty()).await;
        assert_eq!(worker.results[0].1, Reason::NoPlayer);
    });
}
