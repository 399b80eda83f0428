//! Plays a recording into the interest service and judges every event.
//!
//! Each person of the recording is an entity in several scenes of one session, one for each kind of
//! rules. The client ticks all scenes after each step of recorded time, as fast as the service
//! answers.

use std::collections::BTreeMap;

use purview::interest::{Cap, Entity, Mode, Radii, Reach, Rules, Sight};
use purview::scene::{Pos, RangeSet, Rect};
use purview_server::interest::client::{Address, ClientError, Stream};
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Change, Delete, DeleteScene, SceneUpdate, Update, change};
use serde::Serialize;

use super::judge::{Judge, Violation};
use crate::load::replay::ReplayOptions;
use crate::load::trace::Trace;
use crate::shown::Shown;

const NAMED: usize = 20;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub agents: usize,
    pub ticks: u64,
    pub moves: u64,
    pub scenes: Vec<SceneReport>,
    /// Changes that the service refused. None should be.
    pub refused: u64,
    pub violations: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct SceneReport {
    /// Its rules, in words.
    pub rules: &'static str,
    pub events: u64,
    pub positions: u64,
    pub violations: u64,
}

impl Shown for Report {
    /// Whether the service told nothing but the truth.
    fn is_valid(&self) -> bool {
        self.refused == 0 && self.scenes.iter().all(|scene| scene.violations == 0)
    }
}

fn rules(ground: Rect) -> [(&'static str, Rules); 5] {
    let of = |mode, reach| Rules { positions: true, ..Rules::new(ground, mode, reach) };
    let circle = of(Mode::Circle, Reach::Circle(Radii::new(500, 600)));
    let patches = |rings| of(Mode::Patches { patch_cm: 250 }, Reach::Rings(rings));
    let cap = Some(Cap { most: 10, margin_cm: 50 });
    [
        ("3 x 3 patches of 2.5 m", patches(RangeSet::NEAR.or(RangeSet::MIDDLE))),
        ("5 x 5 patches of 2.5 m", patches(RangeSet::FULL)),
        ("circle, 5 m and 6 m", circle.clone()),
        ("the same, at most 10", Rules { cap, ..circle }),
        ("everybody", of(Mode::All, Reach::All)),
    ]
}

struct Player<'a> {
    trace: &'a Trace,
    scale: f64,
    agents: usize,
    next: usize,
    /// Agents, and the sample at which each is.
    present: BTreeMap<usize, usize>,
}

#[derive(Default)]
struct Step {
    came: Vec<Entity>,
    moved: Vec<(u64, Pos)>,
    gone: Vec<u64>,
}

impl Player<'_> {
    fn step(&mut self, t_s: f64) -> Step {
        let mut step = Step::default();
        let Trace { agents, .. } = self.trace;
        let pos = |agent: usize, at: usize| self.trace.pos(&agents[agent].samples[at], self.scale);
        self.present.retain(|agent, at| {
            let (id, samples) = (*agent as u64, &agents[*agent].samples);
            let later = samples[*at + 1..].iter().take_while(|s| s.t_s <= t_s).count();
            let stays = *at + 1 < samples.len();
            *at += later;
            if later > 0 {
                step.moved.push((id, pos(*agent, *at)));
            } else if !stays {
                step.gone.push(id);
            }
            stays
        });
        while self.next < self.agents && agents[self.next].samples[0].t_s <= t_s {
            let (id, sight) = (self.next as u64, Sight::default());
            step.came.push(Entity { id, kind: 0, plane: 0, pos: pos(self.next, 0), sight });
            self.present.insert(self.next, 0);
            self.next += 1;
        }
        step
    }

    fn is_over(&self) -> bool {
        self.next == self.agents && self.present.is_empty()
    }
}

/// The scenes: what was told of each, and what is true.
struct Scenes {
    judges: Vec<Judge>,
    parts: Vec<Vec<SceneUpdate>>,
    report: Report,
}

impl Scenes {
    fn follow(&mut self, step: &Step) {
        for judge in &mut self.judges {
            step.came.iter().for_each(|e| judge.create(e.id, e.kind, e.plane, e.pos));
            step.moved.iter().for_each(|(id, pos)| judge.move_to(*id, *pos));
            step.gone.iter().for_each(|id| judge.delete(*id));
        }
    }

    fn hear(&mut self, update: Update) {
        self.report.refused += update.refused.len() as u64;
        for part in update.scenes {
            if let Some(parts) = self.parts.get_mut(part.scene as usize) {
                parts.push(part);
            }
        }
    }

    fn judge(&mut self) {
        let all = self.judges.iter_mut().zip(&mut self.parts).zip(&mut self.report.scenes);
        for ((judge, parts), report) in all {
            let events: Vec<_> = parts.iter().flat_map(encode::events).collect();
            let positions: Vec<_> = parts.iter().flat_map(encode::positions).collect();
            parts.clear();
            report.events += events.len() as u64;
            report.positions += positions.len() as u64;
            let found = judge.tick(&events, &positions);
            report.violations += found.len() as u64;
            let named = &mut self.report.violations;
            let room = NAMED.saturating_sub(named.len());
            let tick = self.report.ticks + 1;
            let text = |v: &Violation| format!("{}, tick {tick}: {v}", report.rules);
            named.extend(found.iter().take(room).map(text));
        }
        self.report.ticks += 1;
    }
}

fn changes(step: &Step, scenes: u64) -> Vec<Change> {
    let mut changes = Vec::new();
    let gone = change::Change::Delete(Delete { ids: step.gone.clone() });
    for scene in 0..scenes {
        if !step.came.is_empty() {
            changes.push(change(scene, encode::create(&step.came)));
        }
        if !step.moved.is_empty() {
            changes.push(change(scene, encode::moves(&step.moved)));
        }
        if !step.gone.is_empty() {
            changes.push(change(scene, gone.clone()));
        }
        changes.push(change(scene, encode::tick()));
    }
    changes
}

/// Plays a recording with so many seconds between two ticks.
pub async fn replay(
    address: &Address,
    trace: &Trace,
    step_s: f64,
    options: &ReplayOptions,
) -> Result<Report, ClientError> {
    let mut stream = address.begin().await?;
    let [x1, z1] = trace.size_cm(options.scale);
    let rules = rules(Rect { x0: 0, z0: 0, x1, z1 });
    let count = rules.len() as u64;
    let (names, rules): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
    let create =
        |(i, rules)| change(i as u64, change::Change::CreateScene(encode::scene(rules, None)));
    stream.send(rules.iter().enumerate().map(create).collect()).await?;
    let agents = options.agents.unwrap_or(usize::MAX).min(trace.agents.len());
    let scene = |rules| SceneReport { rules, ..SceneReport::default() };
    let scenes = names.into_iter().map(scene).collect();
    let mut all = Scenes {
        parts: vec![Vec::new(); rules.len()],
        judges: rules.into_iter().map(Judge::new).collect(),
        report: Report { agents, scenes, ..Report::default() },
    };
    let present = BTreeMap::new();
    let mut player = Player { trace, scale: options.scale, agents, next: 0, present };
    let mut tick = 0_u32;
    while !player.is_over() {
        let step = player.step(f64::from(tick) * step_s);
        tick += 1;
        all.report.moves += step.moved.len() as u64;
        all.follow(&step);
        let batch = stream.send(changes(&step, count)).await?;
        answer(&mut stream, batch, &mut all).await?;
        all.judge();
    }
    let delete = |scene| change(scene, change::Change::DeleteScene(DeleteScene {}));
    let batch = stream.send((0..count).map(delete).collect()).await?;
    answer(&mut stream, batch, &mut all).await?;
    Ok(all.report)
}

async fn answer(stream: &mut Stream, batch: u64, all: &mut Scenes) -> Result<(), ClientError> {
    loop {
        let update = stream.update().await?.ok_or(ClientError::Ended("the batch was answered"))?;
        let is_last = update.applied >= batch && !update.more;
        all.hear(update);
        if is_last {
            return Ok(());
        }
    }
}
