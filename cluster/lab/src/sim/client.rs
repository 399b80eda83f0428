//! The clients of a simulated cluster. Each uses the client library as a game does: it walks, acts, teleports, leaves
//! and comes back, and reports to the judge what it is shown.

mod beats;
mod goals;
mod hunter;
mod life;
mod line;
mod receive;
pub(in crate::sim) mod subject;

use std::sync::Arc;
use std::time::Duration;

use purview::actor::idle_gate::IdleGated;
use purview::clock;
use purview::scene::movement::{ClientMs, ServerMs};
use purview::scene::{Kind, Plane, Pos, SceneId};
use purview::wire::ErrorCode;
use purview::wire::client::Join;
use purview_client::Walker as Feet;
use purview_client::{ClientError, Player, Retry, View, join_at};
use tokio::time::{sleep, sleep_until};

use crate::rng::Rng;

use super::journal::What;
use super::judge::{Invariant, WALKER};
use super::network::Host;
use super::options::STEP;
use super::process::SimContext;
use super::{Logic, will::Will};
pub use beats::Beats;
use goals::STEP_CM;
use life::{End, Life, SimTeleport};
use line::Line;

/// The speed of a client where moves are judged, centimetres per second.
const SPEED_CM_S: u32 = 1_200;

pub const CLIENTS: Host = 1_000;

/// How clients reconnect: within the grace period of players.
const RETRY: Retry = Retry {
    first: Duration::from_millis(100),
    most: Duration::from_secs(2),
    attempt: Duration::from_secs(6),
    patience: Duration::from_secs(60),
};

/// The radius of a gathering, centimetres. A client that must gather teleports there from farther away, and walks
/// about within.
const CROWD_CM: i32 = 1_200;

#[derive(Clone)]
pub struct Walker {
    pub number: u32,
    pub ground: SimContext,
    pub gateways: Vec<Host>,
    pub size: (i32, i32),
    /// How many players every third client asks for; 0: as many as the scene allows.
    pub view_cap: u16,
    pub scenes: u32,
    /// When the client sends its inputs; `None`: at its own moments.
    pub beats: Option<Beats>,
}

impl Walker {
    /// Plays until the simulation ends.
    pub async fn play(self, seed: u64, begins: Duration) {
        let mut rng = Rng::new(seed);
        sleep(begins).await;
        loop {
            while self.will().is_to_stand() || self.will().is_out(self.number) {
                sleep(STEP).await;
            }
            let Some(mut life) = self.begin(&mut rng).await else {
                sleep(STEP * 5).await;
                continue;
            };
            let end = self.live(&mut life, &mut rng).await;
            self.end(&life, end);
            drop(life);
            if self.shares() {
                sleep(STEP.mul_f64(5.0 + 100.0 * rng.unit())).await;
            } else if !self.will().is_out(self.number) {
                sleep(STEP.mul_f64(1.0 + 20.0 * rng.unit())).await;
            }
        }
    }

    fn will(&self) -> &Will {
        &self.ground.will
    }

    fn end(&self, life: &Life, end: End) {
        let id = life.id;
        let (judge, journal) = (&self.ground.judge, &self.ground.journal);
        judge.gone(id, life.number);
        let text = match end {
            End::Left => "left".to_owned(),
            End::TakenOver => "was taken over".to_owned(),
            End::Broken => "received an illegal frame".to_owned(),
            // The gateway received the leave and crashed before it answered.
            End::Lost(ClientError::Refused(refused))
                if life.leaves && refused.code == ErrorCode::Gone =>
            {
                "left".to_owned()
            }
            End::Lost(error) if self.gives_way(&error) => "gave way".to_owned(),
            End::Lost(error) => match life.silent().and_then(|since| life.excuse(judge, since)) {
                Some(excuse) => excuse.to_owned(),
                None => {
                    let text = format!("{id} has lost its player: {error}");
                    judge.violated(Invariant::ClientStays, vec![id], text.clone());
                    text
                }
            },
        };
        journal.note(What::Gone(id, text));
    }

    /// A scene. If there is only one, nothing is drawn.
    fn scene(&self, rng: &mut Rng) -> SceneId {
        SceneId(if self.scenes > 1 { (rng.unit() * f64::from(self.scenes)) as u16 } else { 0 })
    }

    async fn begin(&self, rng: &mut Rng) -> Option<Life> {
        let line = Line::new(self.ground.clone(), self.number, rng.seed());
        let mut urls: Vec<String> =
            self.gateways.iter().map(|host| format!("sim://{host}")).collect();
        let first = (rng.unit() * urls.len() as f64) as usize;
        urls.rotate_left(first);
        let (pos, name) = (self.place(rng), format!("{WALKER}{}", self.subject()));
        let join = Join {
            view_cap: if self.number % 3 == 2 { self.view_cap } else { 0 },
            ..join_at(self.ground.scene_name(self.scene(rng)), pos)
        };
        let joined = Player::join_by(Arc::new(line), &urls, &name, join, RETRY).await;
        let (player, joined) = joined.ok()?;
        let id = joined.id;
        let judge = &self.ground.judge;
        let cap = joined.rules.view_cap as usize;
        let number =
            judge.joined((id, cap), (self.ground.floor_of(&joined), joined.pos), joined.ack);
        if self.ground.logic == Some(Logic::Linger) {
            judge.returns(self.subject(), id);
        }
        let acts = judge.last_act(id);
        self.ground.journal.note(What::Joined(id, joined.pos));
        let feet = Feet::new(self.clock(), &joined);
        let (view, floor, pos) = (View::of(&joined), self.ground.floor_of(&joined), joined.pos);
        let now = clock::now();
        let (acked, received, joined) = (joined.ack, now, now);
        Some(Life {
            player,
            id,
            number,
            view,
            feet,
            floor,
            pos,
            goal: pos,
            acts,
            acts_sent: Vec::new(),
            moved: acked,
            teleporting: None,
            is_disconnected: false,
            leaves: false,
            joined,
            broke: None,
            acked,
            received,
            value: Default::default(),
        })
    }

    async fn live(&self, life: &mut Life, rng: &mut Rng) -> End {
        let own = clock::now() + STEP.mul_f64(rng.unit());
        let first = self.beats.map_or(own, |beats| beats.at_or_after(own));
        let mut step = IdleGated::new(sleep_until(first));
        loop {
            life.note_received();
            let event = tokio::select! {
                biased;
                event = life.player.next() => Some(event),
                () = &mut step => None,
            };
            if self.is_taken_over(life) {
                return End::TakenOver;
            }
            let done = match event {
                None => {
                    let mut step = step.get_mut();
                    let next = step.deadline() + STEP;
                    step.as_mut().reset(next);
                    let said = self.speak(life, rng).await;
                    let said = if said.is_ok() { self.raise(life).await } else { said };
                    if said.is_ok() { self.walk_on(life).await } else { said }
                }
                Some(Ok(event)) => self.receive(life, event),
                Some(Err(error)) => Err(End::Lost(error)),
            };
            // The session may have been resumed and refused before the client's next step.
            if !life.is_disconnected && matches!(done, Err(End::Lost(ClientError::Refused(_)))) {
                life.broke = Some(clock::now());
            }
            let is_disconnected = life.player.is_coming_back();
            if std::mem::replace(&mut life.is_disconnected, is_disconnected) != is_disconnected {
                if is_disconnected {
                    life.broke = Some(clock::now());
                }
                self.ground.judge.set_disconnected(life.id, is_disconnected);
            }
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Sends an input, or nothing.
    async fn speak(&self, life: &mut Life, rng: &mut Rng) -> Result<(), End> {
        self.tell_properties(life);
        // A leave that was lost is not repeated: the client stays until its session ends.
        if life.leaves {
            return Ok(());
        }
        if self.will().is_to_stand() {
            // A keep-alive.
            if rng.one_in(25) {
                life.player.ping(0).await.map_err(End::Lost)?;
            }
            return Ok(());
        }
        let goes = rng.one_in(600) || self.will().is_out(self.number);
        if goes && !life.is_disconnected {
            life.leaves = true;
            self.ground.judge.leaves(life.id);
            return life.player.leave().await.map_err(End::Lost);
        }
        let mut target = SimTeleport::default();
        // The gathering is in the first scene.
        let far = |at: &Pos| {
            let dist2 = at.dist2(life.pos);
            dist2 > u64::from(CROWD_CM.unsigned_abs()).pow(2) || life.floor.scene != SceneId(0)
        };
        let called = self.will().meeting(self.number).filter(|_| life.teleporting.is_none());
        let is_called = called.is_some_and(|at| far(&at));
        let is_teleport = is_called || (rng.one_in(150) && life.teleporting.is_none());
        let (said, command) = if is_teleport {
            let pos = self.goal(rng);
            // Most clients are on one plane, so that they meet.
            let plane = match is_called {
                true => Some(Plane(0)),
                false => rng.one_in(3).then(|| Plane(i32::from(rng.one_in(2)))),
            };
            let to = if is_called { SceneId(0) } else { self.scene(rng) };
            let scene = Some(to).filter(|scene| *scene != life.floor.scene);
            target = SimTeleport { scene, plane: plane.or(scene.map(|_| life.floor.plane)) };
            let name = scene.map(|scene| self.ground.scene_name(scene).to_owned());
            let said = life.player.teleport(name, target.plane, pos).await;
            life.floor = if said.is_ok() { target.from(life.floor) } else { life.floor };
            (said.map(|seq| (seq, pos)), "teleport")
        } else if rng.one_in(6) {
            let said = life.act(&self.ground.judge).await;
            (said.map(|seq| (seq, life.pos)), "act")
        } else if let Some(text) = self.hunts(life, rng) {
            let said = life.player.act(text.into_bytes(), None).await;
            (said.map(|seq| (seq, life.pos)), "act")
        } else if life.feet.is_some() {
            return self.set_out(life, rng);
        } else {
            let pos = self.walk(life, rng);
            (life.player.send_move(pos).await.map(|seq| (seq, pos)), "move")
        };
        match said {
            Ok((seq, pos)) => {
                (life.pos, life.goal) = (pos, if is_teleport { pos } else { life.goal });
                life.moved = if command == "act" { life.moved } else { seq };
                life.teleporting = if is_teleport { Some((seq, target)) } else { life.teleporting };
                self.ground.journal.note(What::Said { id: life.id, seq, command, pos });
                self.ground.judge.said(life.id, seq, (life.floor, pos), is_teleport);
                Ok(())
            }
            // The library sends the rest after the resume.
            Err(ClientError::Behind(_)) => Ok(()),
            Err(error) => Err(End::Lost(error)),
        }
    }

    fn clock(&self) -> ClientMs {
        ClientMs(self.ground.began.elapsed().as_millis() as u64)
    }

    fn set_out(&self, life: &mut Life, rng: &mut Rng) -> Result<(), End> {
        let now = self.clock();
        let Some(feet) = &mut life.feet else { return Ok(()) };
        let is_there =
            feet.position(now).dist2(life.goal) < u64::from(STEP_CM.unsigned_abs()).pow(2);
        // A wall may be in the way for ever.
        if is_there || self.has_walls() && rng.one_in(20) {
            life.goal = self.goal(rng);
        }
        feet.walk_to(now, life.goal, SPEED_CM_S);
        Ok(())
    }

    /// Where moves are judged: sends the move commands that are due, and processes frames meanwhile.
    async fn walk_on(&self, life: &mut Life) -> Result<(), End> {
        let (id, now, judge) = (life.id, self.clock(), &self.ground.judge);
        let Some(feet) = &mut life.feet else { return Ok(()) };
        if self.will().is_to_stand() {
            feet.stop();
        }
        // After a leave the client sends nothing more, even if the leave was lost.
        while let Some(command) = feet.poll(now, life.player.next_seq()).filter(|_| !life.leaves) {
            let seq = life.player.send_walk(&command).await.map_err(End::Lost)?;
            let pos = feet.position(now);
            self.ground.journal.note(What::Said { id, seq, command: "walk", pos });
            judge.said(id, seq, (life.floor, pos), false);
        }
        if life.teleporting.is_none() {
            life.pos = feet.position(now);
            judge.placed(id, (life.floor, life.pos));
        }
        let at = life.view.tick().map_or(ServerMs(0), |tick| life.view.time_of(tick));
        let players = life.view.iter().filter(|(_, seen)| seen.kind == Kind::PLAYER);
        judge.sees(id, players.map(|(other, seen)| (other, seen.position(at))));
        Ok(())
    }
}
