//! Which worker has which region: division, takeover of what a worker leaves, and silence.

use std::collections::BTreeSet;

use purview_server::logic::proto::EndCause;

use super::support::{HP, Happened, MONSTER, Player, Worker, runtime, server, set};

/// Serves several workers until something holds of them.
async fn until(workers: &mut [&mut Worker], holds: impl Fn(&[&mut Worker]) -> bool) {
    let all = async {
        while !holds(workers) {
            let steps = workers.iter_mut().map(|worker| Box::pin(worker.step()));
            let (step, ..) = futures::future::select_all(steps).await;
            assert!(step.expect("a response"), "a stream has ended");
        }
    };
    tokio::time::timeout(super::support::PATIENCE, all).await.expect("it holds at last");
}

fn regions(worker: &Worker) -> BTreeSet<u32> {
    worker.leases.keys().copied().collect()
}

#[test]
fn regions_are_divided_and_those_of_a_killed_worker_go_to_the_other_with_what_it_has_not_handled() {
    let server = server("[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"300ms\"\n");
    runtime().block_on(async {
        let mut one = Worker::begin_with_all(server.reach(), "one").await;
        let mut others: Vec<Worker> = Vec::new();
        // Until another one has any region: which, the numbers of the sessions say.
        while others.iter().all(|other| other.leases.is_empty()) {
            others.push(Worker::begin(server.reach(), "another").await);
            let mut all: Vec<&mut Worker> = others.iter_mut().chain([&mut one]).collect();
            let whole =
                |all: &[&mut Worker]| all.iter().map(|w| w.leases.len()).sum::<usize>() == 4;
            let ticks = |all: &[&mut Worker]| all.iter().map(|w| w.ticks).sum::<u64>();
            let end = ticks(&all) + 12;
            until(&mut all, |all| whole(all) && ticks(all) >= end).await;
        }
        let mut two = others.pop().unwrap();
        let taken = regions(&two);
        let all: BTreeSet<u32> = taken.union(&regions(&one)).copied().collect();
        assert!(all.len() <= 4 && taken.is_disjoint(&regions(&one)), "one worker for each region");
        assert!(one.ended.iter().all(|ended| ended.cause() == EndCause::Divided));

        let place = |region: u32| {
            (5_000 + 30_000 * (region as i32 % 2), 5_000 + 30_000 * (region as i32 / 2))
        };
        let region = *taken.first().unwrap();
        let (x, z) = place(region);
        // The second worker is told of an action, and dies before it answers.
        two.silent.insert(region);
        let mut player = Player::join(server.reach(), x, z).await;
        player.act(b"help").await;
        let help = Happened::Acted(player.id.0, b"help".to_vec());
        until(&mut [&mut one, &mut two], |all| all[1].has_happened(&help)).await;
        assert!(!one.has_happened(&help));
        drop(two);
        drop(others);
        one.until(|one| one.leases.len() == 4 && one.has_happened(&help)).await;
        one.ticks(20).await;
        let told = one.happened.iter().filter(|happened| **happened == help).count();
        assert_eq!(told, 1, "an action is told once");
        assert!(one.entities.contains_key(&player.id.0), "the region is told anew");
    });
}

#[test]
fn a_silent_worker_loses_its_regions_and_gets_some_again_when_it_answers() {
    let server = server("[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"2s\"\n");
    runtime().block_on(async {
        let mut one = Worker::begin_with_all(server.reach(), "one").await;
        let monster = one.spawn(0, MONSTER, 5_000, 5_000);
        one.until(|one| one.is_applied(monster, 1)).await;
        let mut two = Worker::begin(server.reach(), "two").await;
        // The first one reads nothing, and the second one gets all.
        two.until(|two| two.leases.len() == 4).await;
        assert!(two.entities.contains_key(&monster));
        two.give(0, monster, set(HP, 9));
        two.until(|two| two.is_applied(monster, 1)).await;
        // What the first one says for its old leases is refused, and affects nobody.
        one.repeats = false;
        one.give(0, monster, set(HP, 1));
        until(&mut [&mut one, &mut two], |all| all[0].ended.len() >= 4).await;
        assert!(one.ended.iter().any(|ended| ended.cause() == EndCause::Late));
        until(&mut [&mut one, &mut two], |all| {
            let both = all[0].leases.len() + all[1].leases.len();
            both == 4 && !all[0].queued.contains_key(&0) || all[0].leases.contains_key(&0)
        })
        .await;
        until(&mut [&mut one, &mut two], |all| all[1].property(monster, HP) == Some(9)).await;
        assert!(regions(&one).is_disjoint(&regions(&two)));
    });
}
