//! Which worker has which region: division, takeover of what a worker leaves, and silence.

use std::collections::BTreeSet;

use super::player::Player;
use super::support::{HP, Happened, Worker, set, with_worker};

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
    with_worker(
        "[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"300ms\"\n",
        async |server, mut one| {
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
            assert!(
                all.len() <= 4 && taken.is_disjoint(&regions(&one)),
                "one worker for each region"
            );

            let place = |region: u32| {
                (5_000 + 30_000 * (region as i32 % 2), 5_000 + 30_000 * (region as i32 / 2))
            };
            let region = *taken.first().unwrap();
            let (x, z) = place(region);
            // The second worker is told of an action, and dies before it answers.
            two.deaf.insert(region);
            let mut player = Player::join(server.reach(), x, z).await;
            player.act(b"help").await;
            let help = Happened::Acted(player.id.0, b"help".to_vec());
            until(&mut [&mut one, &mut two], |all| all[1].happened.contains(&help)).await;
            assert!(!one.happened.contains(&help));
            drop(two);
            drop(others);
            one.until(|one| one.leases.len() == 4 && one.happened.contains(&help)).await;
            one.ticks(20).await;
            let told = one.happened.iter().filter(|happened| **happened == help).count();
            assert_eq!(told, 1, "an action is told once");
            assert!(one.entities.contains_key(&player.id.0), "the region is told anew");
        },
    );
}

#[test]
fn a_silent_worker_loses_its_regions_and_gets_some_again_after_a_while() {
    with_worker(
        "[logic]\nlisten = \"127.0.0.1:0\"\ntakeover = \"500ms\"\n",
        async |server, mut one| {
            let monster = one.monster(0, 5_000, 5_000).await;
            let mut two = Worker::begin(server.reach(), "two").await;
            // The first one reads nothing, and the second one gets all.
            two.until(|two| two.leases.len() == 4).await;
            assert!(two.has(monster));
            two.give(0, monster, set(HP, 9));
            two.until(|two| two.property(monster, HP) == Some(9)).await;
            // What the first one says for its old leases does not count, and affects nobody.
            let late = one.give(0, monster, set(HP, 1));
            until(&mut [&mut one, &mut two], |all| all[0].ended.len() >= 4).await;
            let none = |w: &Worker| w.leases.is_empty();
            until(&mut [&mut one, &mut two], |all| none(all[0]) && all[1].leases.len() == 4).await;
            assert!(!one.counted.contains(&late));
            assert_eq!(two.property(monster, HP), Some(9));
            let mut third = Worker::begin(server.reach(), "third").await;
            until(&mut [&mut one, &mut two, &mut third], |all| {
                all.iter().map(|w| w.leases.len()).sum::<usize>() == 4 && all[0].ticks > 0
            })
            .await;
            assert!(regions(&one).is_disjoint(&regions(&two)));
        },
    );
}

#[test]
fn a_worker_that_opens_another_stream_is_another_worker_and_gets_everything_anew() {
    with_worker("", async |server, mut one| {
        let monster = one.monster(0, 5_000, 5_000).await;
        let mut player = Player::join(server.reach(), 5_200, 5_000).await;
        one.silent.insert(0);
        player.act(b"help").await;
        let help = Happened::Acted(player.id.0, b"help".to_vec());
        let lease = one.leases[&0];
        drop(one);
        let mut two = Worker::begin_with_all(server.reach(), "one").await;
        two.until(|two| two.has(monster) && two.happened.contains(&help)).await;
        assert!(two.leases[&0].number > lease.number);
        two.ticks(20).await;
        let told = two.happened.iter().filter(|happened| **happened == help).count();
        assert_eq!(told, 1, "an action is told once");
    });
}
