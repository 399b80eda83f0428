//! The lists of real regions, one or four, with the messages between them delivered at once.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::Context;
use purview::scene::messages::{Effect, Input, Notice, Order, Spawn};
use purview::scene::{
    EntityId, Kind, Plane, Pos, Region, RegionId, Scene, SceneId, SceneSpec, Seq, SessionId, Tick,
    ViewLimits, Visibility,
};
use serde::Serialize;

use super::{Lists, Sent, ViewLists};

/// The side of a land, centimetres.
const LAND_CM: i32 = 51_200;

/// The layout of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// One region.
    One,
    /// Four regions of equal size that meet in the centre.
    Four,
}

/// The rules of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The range rule.
    pub visibility: Visibility,
    /// The margin before a player in view is replaced, centimetres.
    pub margin_cm: i32,
    /// The capacity of a list.
    pub cap: usize,
    /// The layout.
    pub cut: Cut,
}

/// The side of the map for a crowd of this extent, centimetres: an even number of lands.
pub fn map_cm(extent_cm: f64) -> i32 {
    let half = (extent_cm / 2.0 / f64::from(LAND_CM)).ceil().max(1.0) as i32;
    half.saturating_mul(2 * LAND_CM)
}

/// Regions and the messages in flight between them.
#[derive(Debug)]
pub struct Regions {
    regions: Vec<Region>,
    /// The target region and the message.
    bus: VecDeque<(usize, Input)>,
    /// The region of each player, as its session was told.
    region_of: Vec<usize>,
    tick: Tick,
    seq: Seq,
    fx: Vec<Effect>,
    batches: u64,
}

fn id_of(player: usize) -> EntityId {
    EntityId(player as u64 + 1)
}

impl Regions {
    /// Regions on a map of side `map_cm`, with players at these positions, each with its own session.
    ///
    /// # Errors
    /// The rules make no legal scene.
    pub fn new(rules: Rules, map_cm: i32, places: &[Pos]) -> anyhow::Result<Regions> {
        let lands = map_cm / LAND_CM;
        let side = if rules.cut == Cut::Four { lands / 2 } else { lands };
        let spec = SceneSpec {
            name: "bench".into(),
            width_cm: map_cm,
            depth_cm: map_cm,
            land_cm: LAND_CM,
            region_lands_x: side,
            region_lands_z: side,
            visibility: rules.visibility,
            view_cap: rules.cap,
            view_margin_cm: rules.margin_cm,
            spawn_x_cm: 0,
            spawn_z_cm: 0,
            ..SceneSpec::default()
        };
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).map_err(|errors| {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("no such scene: {}", all.join("; "))
        })?;
        let scene = Arc::new(scene);
        let regions = scene.map.regions.iter().map(|r| Region::new(scene.clone(), r.id));
        let mut all = Regions {
            regions: regions.collect::<Option<_>>().context("the scene has no regions")?,
            bus: VecDeque::new(),
            region_of: Vec::new(),
            tick: Tick(0),
            seq: Seq(0),
            fx: Vec::new(),
            batches: 0,
        };
        for (i, pos) in places.iter().enumerate() {
            let region = scene.map.at(Plane(0), *pos).context("a player is outside of the map")?.id;
            all.enter(i, *pos, region);
        }
        all.run_tick();
        Ok(all)
    }

    fn enter(&mut self, player: usize, pos: Pos, region: RegionId) {
        let spawn = Spawn {
            id: id_of(player),
            kind: Kind::PLAYER,
            plane: Plane(0),
            pos,
            sight: ViewLimits::FULL,
            left_at: None,
            facing: Default::default(),
            properties: Default::default(),
            session: Some(SessionId(id_of(player).0)),
            subject: Default::default(),
            account: Default::default(),
            bonds: Default::default(),
        };
        self.region_of.push(region.0 as usize);
        self.regions[region.0 as usize].handle(Input::Enter(Box::new(spawn)), &mut self.fx);
    }

    fn run_tick(&mut self) {
        self.tick = self.tick.next();
        for i in 0..self.regions.len() {
            self.regions[i].tick(self.tick, &mut self.fx);
            self.deliver(i);
        }
        while let Some((to, input)) = self.bus.pop_front() {
            self.regions[to].handle(input, &mut self.fx);
            self.deliver(to);
        }
    }

    /// Puts the effects of region `from` on the bus.
    fn deliver(&mut self, from: usize) {
        for effect in self.fx.drain(..) {
            let (to, input) = match effect {
                Effect::Frames(batch) => {
                    self.regions[from].recycle(batch);
                    continue;
                }
                Effect::Depart(_) => unreachable!("no players are stored here"),
                Effect::Notice(session, Notice::Route { region, .. }) => {
                    self.region_of[session.0 as usize - 1] = region.0 as usize;
                    continue;
                }
                // There is no logic, and clients are not simulated.
                Effect::Notice(..)
                | Effect::Answer(..)
                | Effect::TellGroup(..)
                | Effect::Scene(..)
                | Effect::Locate(_)
                | Effect::KeepBonds(..) => continue,
                Effect::Border(to, batch) => {
                    self.batches += 1;
                    (to, Input::Border(batch))
                }
                Effect::BorderRound(to, batch) => {
                    self.batches += 1;
                    (to, Input::BorderRound(batch))
                }
                Effect::View(to, msg) => (to, Input::View(msg)),
                Effect::Handoff(to, handoff) => (to, Input::Handoff(handoff)),
                Effect::Forward(to, input) => (to, *input),
            };
            self.bus.push_back((to.0 as usize, input));
        }
    }
}

impl ViewLists for Regions {
    fn step(&mut self, places: &[Pos]) {
        self.seq = self.seq.next();
        for (i, pos) in places.iter().enumerate() {
            let input = Input::Client {
                id: id_of(i),
                session: SessionId(id_of(i).0),
                seq: self.seq,
                order: Order::Move(*pos),
                handle: Default::default(),
            };
            self.regions[self.region_of[i]].handle(input, &mut self.fx);
        }
        self.run_tick();
    }

    fn lists(&self, places: &[Pos], into: &mut Lists) -> u64 {
        let mut astray = 0;
        let regions = &self.regions;
        let lists = places.iter().enumerate().map(|(i, pos)| {
            let player = regions[self.region_of[i]].inspect_player(id_of(i));
            let player = player.filter(|p| p.pos == *pos);
            astray += u64::from(player.is_none());
            player.into_iter().flat_map(|p| p.view).map(|e| e.id.0 as u32 - 1)
        });
        into.copy(lists);
        astray
    }

    fn sent(&self) -> Sent {
        let counts = || self.regions.iter().map(Region::counts);
        Sent {
            within: counts().map(|c| c.local_view_messages).sum(),
            between: counts().map(|c| c.view_messages).sum(),
            batches: self.batches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::views::gathering::{Gathering, Walkers};

    /// A crowd of 150 at the corner, lists of at most 20.
    fn walk(cut: Cut, margin_cm: i32, ticks: usize) -> (Regions, Lists, Sent) {
        let people = Gathering::new(150, f64::from(LAND_CM), 1_000.0, 50.0, 4);
        let mut crowd = Walkers::Gathered(people);
        let mut places = Vec::new();
        crowd.places(&mut places);
        let visibility = Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 };
        let rules = Rules { visibility, margin_cm, cap: 20, cut };
        let mut all = Regions::new(rules, map_cm(18_000.0), &places).unwrap();
        let mut lists = Lists::default();
        for _ in 0..ticks {
            crowd.step();
            crowd.places(&mut places);
            all.step(&places);
            assert_eq!(all.lists(&places, &mut lists), 0, "a player is at a wrong position");
        }
        let sent = all.sent();
        (all, lists, sent)
    }

    #[test]
    fn a_map_has_an_even_number_of_lands() {
        assert_eq!(map_cm(1.0), 2 * LAND_CM);
        assert_eq!(map_cm(102_400.0), 2 * LAND_CM);
        assert_eq!(map_cm(102_401.0), 4 * LAND_CM);
    }

    #[test]
    fn four_regions_find_the_same_lists_as_one_and_negotiate_across_their_borders() {
        for margin_cm in [0, 150] {
            let (one, lists, sent) = walk(Cut::One, margin_cm, 40);
            assert_eq!((one.regions.len(), sent.between, sent.batches), (1, 0, 0));
            assert!(sent.within > 0);
            let (four, across, sent) = walk(Cut::Four, margin_cm, 40);
            assert_eq!(four.regions.len(), 4);
            assert!(
                four.regions.iter().all(|r| r.counts().handoffs > 0),
                "no player crosses a border"
            );
            assert!(sent.between > 1_000 && sent.batches > 40 * 12, "{sent:?}");
            // There is one stable assignment, whichever regions find it.
            assert_eq!(across, lists);
        }
    }
}
