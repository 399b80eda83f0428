//! Clients that play the example game `hunt` on a real server: they run to drops and monsters, take and hit, and now and
//! then a party enters its dungeon.

use std::time::Duration;

use purview::scene::movement::ServerMs;
use purview::scene::{EntityId, Plane, Pos};
use purview::wire::client::{Join, Joined};
use purview_client::{Clock, Event, Player, Retry, View, Walker};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::game::rules::{DROP, DUNGEONS, MONSTER, REACH_CM};
use crate::rng::Rng;

/// Between two looks of a hunter.
const STEP: Duration = Duration::from_millis(100);

/// Steps between two hits.
const HIT_STEPS: u64 = 5;

/// The speed of a hunter, centimetres per second.
const SPEED_CM_S: u32 = 500;

/// After so many steps a party enters its dungeon, and leaves it half as many later.
const DUNGEON_STEPS: u64 = 600;

/// The players of a party.
const PARTY: u64 = 3;

/// The planes on which so many hunters are: the scene itself, and the dungeons of their parties.
pub fn planes(hunters: u32) -> Vec<Plane> {
    let parties = u64::from(hunters).div_ceil(PARTY) as i32;
    std::iter::once(Plane(0)).chain((1..=parties).map(|party| Plane(DUNGEONS + party))).collect()
}

/// Lets so many clients hunt in a scene, until the task is dropped. One whose session ends joins again.
pub async fn hunt(url: String, token: String, scene: String, count: u32) {
    let (_, goes_on) = watch::channel(false);
    hunt_until_rest(url, vec![token; count as usize], scene, goes_on).await;
}

/// Lets a client hunt with each token. While `rest` is true the clients stay, and neither walk nor ask for anything.
pub async fn hunt_until_rest(
    url: String,
    tokens: Vec<String>,
    scene: String,
    rest: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    for (number, token) in (0..).zip(tokens) {
        let (url, scene, rest) = (url.clone(), scene.clone(), rest.clone());
        tasks.spawn(async move {
            loop {
                let join = Join {
                    scene: scene.clone(),
                    plane: None,
                    pos: None,
                    sight: None,
                    properties: Vec::new(),
                };
                let joined = Player::join(
                    std::slice::from_ref(&url),
                    token.as_str(),
                    join,
                    Retry::default(),
                );
                if let Ok((player, joined)) = joined.await {
                    Hunter::new(number, player, &joined, rest.clone()).play().await;
                }
                sleep(STEP * 10).await;
            }
        });
    }
    tasks.join_all().await;
}

struct Hunter {
    number: u64,
    player: Player,
    view: View,
    clock: Clock,
    feet: Option<Walker>,
    size_cm: [i32; 2],
    pos: Pos,
    goal: Pos,
    rng: Rng,
    steps: u64,
    rest: watch::Receiver<bool>,
}

impl Hunter {
    fn new(number: u64, player: Player, joined: &Joined, rest: watch::Receiver<bool>) -> Hunter {
        let clock = Clock::new();
        let feet = Walker::new(clock.now(), joined);
        let (size_cm, pos) = (joined.rules.size_cm, joined.pos);
        let (view, goal, rng) = (View::of(joined), pos, Rng::new(number + 77));
        let steps = number * 7;
        Hunter { number, player, view, clock, feet, size_cm, pos, goal, rng, steps, rest }
    }

    /// Plays until the session ends.
    async fn play(mut self) {
        let mut step = tokio::time::interval(STEP);
        loop {
            let is_over = tokio::select! {
                event = self.player.next() => !event.is_ok_and(|event| self.take(event)),
                _ = step.tick() => self.step().await.is_err(),
            };
            if is_over {
                return;
            }
        }
    }

    /// Takes an event; false: the session is over.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Frame(frame) => {
                if let Some(feet) = &mut self.feet {
                    feet.frame(self.clock.now(), &frame);
                }
                self.view.apply(&frame).is_ok()
            }
            Event::Joined(joined) | Event::Resumed(joined) => {
                self.view.joined(&joined);
                (self.pos, self.goal) = (joined.pos, joined.pos);
                self.size_cm = joined.rules.size_cm;
                if let Some(feet) = &mut self.feet {
                    feet.joined(self.clock.now(), &joined);
                }
                true
            }
            Event::Left(_) | Event::Closed { .. } => false,
            Event::Pong(_) | Event::Refused(_) => true,
        }
    }

    async fn step(&mut self) -> Result<(), purview_client::ClientError> {
        let rests = *self.rest.borrow();
        if rests {
            return Ok(());
        }
        self.steps += 1;
        if let Some(text) = self.wants() {
            self.player.act(text.into_bytes(), None).await?;
        }
        let now = self.clock.now();
        let Some(feet) = &mut self.feet else {
            let along = |from: i32, to: i32| from + (to - from).clamp(-50, 50);
            self.pos = Pos::ground(along(self.pos.x, self.goal.x), along(self.pos.z, self.goal.z));
            return self.player.send_move(self.pos).await.map(drop);
        };
        feet.walk_to(now, self.goal, SPEED_CM_S);
        while let Some(command) = feet.poll(now, self.player.next_seq()) {
            self.player.send_walk(&command).await?;
        }
        self.pos = feet.position(now);
        Ok(())
    }

    /// What the hunter asks of the game now. It also chooses where to run.
    fn wants(&mut self) -> Option<String> {
        match self.steps % DUNGEON_STEPS {
            1 => return Some(format!("party {}", self.number / PARTY + 1)),
            2 => return Some("say to the dungeon!".into()),
            3 => return Some("enter".into()),
            step if step == DUNGEON_STEPS / 2 => return Some("leave".into()),
            _ => {}
        }
        let at = self.view.tick().map_or(ServerMs(0), |tick| self.view.time_of(tick));
        let near = |kind| {
            let all = self.view.iter().filter(|(_, seen)| seen.kind == kind);
            let places = all.map(|(id, seen)| (seen.position(at), id));
            places.min_by_key(|(pos, id): &(Pos, EntityId)| (self.pos.dist2(*pos), *id))
        };
        let (drop, monster) = (near(DROP), near(MONSTER));
        match drop.or(monster) {
            Some((pos, _)) => self.goal = pos,
            None if self.pos.dist2(self.goal) < 10_000 => {
                let side = |cm: i32, rng: &mut Rng| (f64::from(cm - 1) * rng.unit()) as i32;
                let [width, depth] = self.size_cm;
                self.goal = Pos::ground(side(width, &mut self.rng), side(depth, &mut self.rng));
            }
            None => {}
        }
        let reach2 = u64::from(REACH_CM.unsigned_abs()).pow(2);
        let reached = |(pos, _): &(Pos, EntityId)| self.pos.dist2(*pos) <= reach2;
        let hits = self.steps.is_multiple_of(HIT_STEPS);
        let take = drop.filter(reached).map(|(_, id)| format!("take {id}"));
        take.or_else(|| monster.filter(reached).map(|(_, id)| format!("hit {id}"))).filter(|_| hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_party_has_a_dungeon() {
        let numbers = |hunters| planes(hunters).iter().map(|plane| plane.0).collect::<Vec<_>>();
        assert_eq!(numbers(0), [0]);
        assert_eq!(numbers(3), [0, 1_001]);
        assert_eq!(numbers(4), [0, 1_001, 1_002]);
    }
}
