//! Layout changes, proposed to all regions and decided for each at a time drawn from the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use purview::scene::layout::Layout;
use purview::scene::messages::Input;
use purview::scene::views::{ViewMsg, ViewMsgBody};
use purview::scene::{Region, RegionId, Scene, Tick};

use super::world::{Call, World};

#[derive(Default)]
pub struct Mapping {
    /// Number of completed changes, of cancelled changes, and of regions given up.
    pub done: u64,
    pub called_off: u64,
    pub buried: u64,
    /// Regions that were given up and are gone.
    pub gone: Vec<RegionId>,
    /// The layout version in which each new region gets ground.
    born: BTreeMap<RegionId, u64>,
    /// Decisions in flight: the step at which each arrives, the receiving region, the layout
    /// version, and the decision.
    decisions: Vec<(u64, RegionId, u64, Option<Arc<Scene>>)>,
}

impl Mapping {
    /// Whether a message is for a region that no longer exists. Only two kinds may be: a player's
    /// NO to a player of which it has heard nothing for a hundred ticks, and the reports of a
    /// restored region to all regions that may have had its entities.
    pub fn is_lost(&self, from: RegionId, to: RegionId, input: &Input) -> bool {
        let lost = self.gone.contains(&to);
        let may_be = matches!(
            input,
            Input::View(ViewMsg { say: ViewMsgBody::No { .. }, .. }) | Input::Claims(_)
        );
        assert!(!lost || may_be, "{from} says to {to}, which no longer exists: {input:?}");
        lost
    }
}

impl World {
    /// Whether no region is changing its layout.
    pub fn map_is_still(&self) -> bool {
        self.regions.iter().all(|r| !r.is_remapping())
    }

    /// A random legal change of the first scene's layout.
    pub fn some_layout(&mut self) -> Option<Layout> {
        let now = self.scene.map.layout();
        let (one, other) = (self.rng.below(now.plots.len()), self.rng.below(now.plots.len()));
        let (one, other) = (now.plots[one].id, now.plots[other].id);
        let (columns, rows) = (1 + self.rng.below(4) as i32, 1 + self.rng.below(4) as i32);
        let layout = match self.rng.below(5) {
            0..=1 => now.split(one),
            2 => now.scale(columns, rows),
            _ => now.merge(one, other),
        };
        layout.ok().filter(|layout| self.scene.with_layout(layout).is_ok())
    }

    /// Starts a change: all regions promise at once to go no further than some ticks from now; then
    /// the decision reaches each at a different time. False if a region cannot promise.
    pub fn remap(&mut self, layout: &Layout, comes: bool) -> bool {
        if !self.map_is_still() {
            return false;
        }
        let old = self.scene.clone();
        let new = Arc::new(old.with_layout(layout).expect("a legal layout"));
        let after = Tick(self.tick.0 + self.rng.next() % 4);
        let born = layout.plots.iter().filter(|p| old.map.get(p.id).is_none());
        let before = self.regions.len();
        for plot in born {
            assert_eq!(plot.id.0 as usize, self.regions.len());
            self.regions.push(Region::unborn(old.clone(), plot.id));
            self.mapping.born.insert(plot.id, layout.version);
        }
        let everybody: Vec<RegionId> = self.regions.iter().map(Region::id).collect();
        for id in &everybody {
            if self.mapping.gone.contains(id) || self.down.contains_key(id) {
                continue;
            }
            let promised = self.regions[id.0 as usize].propose(new.clone(), after);
            promised.unwrap_or_else(|why| panic!("{id}: {why}"));
        }
        let version = layout.version;
        for id in everybody {
            let soon = self.steps + self.rng.next() % 60;
            self.mapping.decisions.push((soon, id, version, comes.then(|| new.clone())));
        }
        if !comes {
            self.mapping.called_off += 1;
            // No id is given twice.
            let same = Layout { next: layout.next, ..old.map.layout() };
            self.take_scene(Arc::new(old.with_layout(&same).expect("the same map")));
            for id in before..self.regions.len() {
                self.mapping.gone.push(RegionId(id as u32));
            }
        }
        self.mapping.done += u64::from(comes);
        true
    }

    /// Tells regions the decision if its time has come, or all regions if nothing goes on without
    /// it. Returns whether there was one.
    pub fn tell_decisions(&mut self, all: bool) -> bool {
        let steps = self.steps;
        let due = |d: &(u64, RegionId, u64, Option<Arc<Scene>>)| all || d.0 <= steps;
        let Some(at) = self.mapping.decisions.iter().position(due) else { return false };
        let (_, id, version, new) = self.mapping.decisions.remove(at);
        let comes = new.is_some();
        if let Some(new) = new.clone().filter(|_| self.scene.map.version < version) {
            self.take_scene(new);
        }
        // A region that is down is restored later with the layout of that time.
        if !self.down.contains_key(&id) {
            let region = &mut self.regions[id.0 as usize];
            if let Some(new) = new
                && !region.is_remapping()
                && region.map_version() < version
            {
                // As the region's actor does: it was down when the others promised.
                let now = region.current_tick();
                region.propose(new, now).expect("the next map");
            }
            self.call(id, Call::Decide(version, comes));
        }
        true
    }

    /// Whether a region owns no ground yet.
    pub fn is_unborn(&self, id: RegionId) -> bool {
        let first = self.mapping.born.get(&id);
        first.is_some_and(|version| self.scene.map.version < *version)
    }

    fn take_scene(&mut self, new: Arc<Scene>) {
        self.scenes[0] = new.clone();
        self.scene = new;
    }

    /// Removes regions that were given up and have nothing left to do.
    pub fn bury(&mut self) {
        for region in self.regions.iter().filter(|r| r.is_over()) {
            if !self.mapping.gone.contains(&region.id()) {
                self.mapping.gone.push(region.id());
                self.mapping.buried += 1;
            }
        }
    }
}
