//! Clients that play in the demo, over the client library: walkers walk to random places, and hunters play the example
//! game: they run to drops and monsters, take and hit, and now and then a party enters its dungeon.

use std::sync::Arc;
use std::time::Duration;

use purview::scene::movement::ServerMs;
use purview::scene::terrain::Ground;
use purview::scene::{EntityId, Plane, Pos};
use purview::wire::client::Joined;
use purview_client::{ClientError, Clock, Event, Player, Retry, View, Walker, join};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::hunt::rules::{DROP, DUNGEONS, MONSTER, REACH_CM};
use crate::land::Land;
use crate::rng::Rng;

/// Between two looks of a player.
const STEP: Duration = Duration::from_millis(100);

/// Steps between two hits.
const HIT_STEPS: u64 = 5;

/// The speed of a player, centimetres per second.
const SPEED_CM_S: u32 = 500;

/// Steps between two pings: the server closes a session of a client that sends nothing.
const PING_STEPS: u64 = 50;

/// How near a walker must come to its goal, centimetres.
const ARRIVED_CM: u64 = 100;

/// The most steps on the way to one goal: a wall may be in between.
const WAY_STEPS: u64 = 600;

/// After so many steps a party enters its dungeon, and leaves it half as many later.
const DUNGEON_STEPS: u64 = 600;

/// The players of a party.
const PARTY: u64 = 3;

/// How many players may connect at the same time.
const JOINING_MAX: usize = 32;

/// What a player does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Walks to random places, one after the other.
    Walks,
    /// Plays the example game.
    Hunts,
}

/// Where players play.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The server, ws:// or tcp://.
    pub url: String,
    /// The name of the scene.
    pub scene: String,
    /// The terrain of the scene, where it has one: nobody walks against walls.
    pub ground: Option<Arc<Ground>>,
}

/// The planes on which so many hunters are: the scene itself, and the dungeons of their parties.
pub fn planes(hunters: u32) -> Vec<Plane> {
    let parties = u64::from(hunters).div_ceil(PARTY) as i32;
    std::iter::once(Plane(0)).chain((1..=parties).map(|party| Plane(DUNGEONS + party))).collect()
}

/// Lets a client play with each token, until the task is dropped. One whose session ends joins again. While
/// `rest` is true the clients stay, and neither walk nor ask for anything.
pub async fn play(stage: Stage, role: Role, tokens: Vec<String>, rest: watch::Receiver<bool>) {
    let (stage, doors) = (Arc::new(stage), Arc::new(Semaphore::new(JOINING_MAX)));
    let mut tasks = JoinSet::new();
    for (number, token) in (0..).zip(tokens) {
        let (stage, doors, rest) = (stage.clone(), doors.clone(), rest.clone());
        tasks.spawn(async move {
            loop {
                let door = doors.acquire().await;
                let urls = std::slice::from_ref(&stage.url);
                let join = join(stage.scene.as_str());
                let joined = Player::join(urls, token.as_str(), join, Retry::default()).await;
                drop(door);
                if let Ok((player, joined)) = joined {
                    let ground = stage.ground.clone();
                    DemoPlayer::new((number, role), player, &joined, ground, rest.clone())
                        .play()
                        .await;
                }
                sleep(STEP * 10).await;
            }
        });
    }
    tasks.join_all().await;
}

struct DemoPlayer {
    number: u64,
    role: Role,
    player: Player,
    view: View,
    clock: Clock,
    feet: Option<Walker<Land>>,
    size_cm: [i32; 2],
    pos: Pos,
    goal: Pos,
    /// The step at which it chose its goal.
    chosen: u64,
    rng: Rng,
    steps: u64,
    rest: watch::Receiver<bool>,
}

impl DemoPlayer {
    fn new(
        (number, role): (u64, Role),
        player: Player,
        joined: &Joined,
        ground: Option<Arc<Ground>>,
        rest: watch::Receiver<bool>,
    ) -> DemoPlayer {
        let clock = Clock::new();
        let tile_cm = joined.rules.movement.as_ref().map_or(100, |rules| rules.tile_cm);
        let feet = Walker::on(clock.now(), joined, Land { map: ground, tile_cm });
        DemoPlayer {
            number,
            role,
            player,
            view: View::of(joined),
            clock,
            feet,
            size_cm: joined.rules.size_cm,
            pos: joined.pos,
            goal: joined.pos,
            chosen: 0,
            rng: Rng::new(number + 77),
            steps: number * 7,
            rest,
        }
    }

    /// Plays until the session ends.
    async fn play(mut self) {
        if self.role == Role::Walks {
            self.scatter().await;
        }
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

    /// Begins anywhere on the map, where the scene lets clients teleport. Elsewhere the server refuses it.
    async fn scatter(&mut self) {
        self.goal = self.anywhere();
        // An error shows when the player plays.
        drop(self.player.teleport(None, None, self.goal).await);
    }

    /// Takes an event; false: the session is over.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Frame(frame) => {
                if let Some(feet) = &mut self.feet {
                    feet.frame(self.clock.now(), &frame);
                }
                let is_sound = self.view.apply(&frame).is_ok();
                if let Some(feet) = &mut self.feet {
                    feet.sees(&self.view);
                }
                is_sound
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
            Event::Lines(_) | Event::Pong(_) | Event::Refused(_) | Event::Unconfirmed(_) => true,
        }
    }

    async fn step(&mut self) -> Result<(), ClientError> {
        self.steps += 1;
        if self.steps.is_multiple_of(PING_STEPS) {
            self.player.ping(self.steps).await?;
        }
        if *self.rest.borrow() {
            return Ok(());
        }
        match self.role {
            Role::Hunts => {
                if let Some(text) = self.wants() {
                    self.player.act(text.into_bytes(), None).await?;
                }
            }
            Role::Walks => self.stroll(),
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

    /// Chooses another goal for a walker that has arrived, or cannot.
    fn stroll(&mut self) {
        let arrived = self.pos.dist2(self.goal) <= ARRIVED_CM.pow(2);
        if arrived || self.steps > self.chosen + WAY_STEPS {
            (self.goal, self.chosen) = (self.anywhere(), self.steps);
        }
    }

    fn anywhere(&mut self) -> Pos {
        let [x, z] = self.size_cm.map(|cm| (f64::from(cm - 1) * self.rng.unit()) as i32);
        Pos::ground(x, z)
    }

    /// What a hunter asks of the game now. It also chooses where to run.
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
            None if self.pos.dist2(self.goal) < ARRIVED_CM.pow(2) => self.goal = self.anywhere(),
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
