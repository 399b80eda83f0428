//! What a change of regions' ground would mean: loads that are predicted, and rules of layouts.

use std::cell::OnceCell;

use purview::scene::layout::{MAX_NEIGHBOURS, Plot};
use purview::scene::mutants::{self, Mutant};

use super::cost::Window;
use super::record::Rejection;
use super::round::Round;
use super::state::{SceneState, meets};

/// How far a measured load may be from the predicted one; beyond that the lands were reported at another time.
const SCALE: (f64, f64) = (0.25, 4.0);

/// Regions whose ground may change, with what is around them.
pub(super) struct Ground<'a> {
    round: &'a Round<'a>,
    scene: &'a SceneState<'a>,
    window: Window,
    now: Vec<Plot>,
    /// The measured load of the regions by the predicted one.
    scale: f64,
    /// Regions near these, and how many neighbours each has.
    near: OnceCell<Vec<(Plot, usize)>>,
}

impl<'a> Ground<'a> {
    pub(super) fn new(round: &'a Round<'a>, regions: &[usize]) -> Ground<'a> {
        let state = round.state;
        let now: Vec<Plot> = regions.iter().map(|at| state.regions[*at].plot).collect();
        let scene = round.scene(regions[0]);
        let around = now.iter().fold(now[0], |all, plot| Plot {
            x0: all.x0.min(plot.x0),
            z0: all.z0.min(plot.z0),
            x1: all.x1.max(plot.x1),
            z1: all.z1.max(plot.z1),
            ..all
        });
        let window = Window::new(&around, scene, &state.regions, state.settings.ghost);
        let measured: f64 = regions.iter().map(|at| state.regions[*at].share).sum();
        let predicted: f64 = now.iter().map(|plot| scene.share(window.cost(plot))).sum();
        let scale =
            if predicted > 0.0 { (measured / predicted).clamp(SCALE.0, SCALE.1) } else { 1.0 };
        Ground { round, scene, window, now, scale, near: OnceCell::new() }
    }

    /// The share of a tick that a region of this ground would have. All ground is judged by one scale, so that errors
    /// of measurement do not favour any of it.
    pub(super) fn share(&self, ground: &Plot) -> f64 {
        self.scale * self.scene.share(self.window.cost(ground))
    }

    pub(super) fn players(&self, ground: &Plot) -> f64 {
        self.window.players(ground)
    }

    /// Whether the regions may have this ground instead of theirs, as far as layouts go.
    pub(super) fn may_be(&self, after: &[Plot]) -> Result<(), Rejection> {
        let band = self.scene.band_lands();
        let is_narrow = after.iter().any(|p| (p.x1 - p.x0).min(p.z1 - p.z0) < band);
        if is_narrow && !mutants::has(Mutant::NarrowCut) {
            return Err(Rejection::Narrow);
        }
        let whole = &self.scene.input.whole;
        let parts = |of: &[Plot], ground: &Plot| of.iter().filter(|p| meets(p, ground, 0)).count();
        if whole.iter().any(|ground| parts(after, ground) > parts(&self.now, ground).max(1)) {
            return Err(Rejection::Whole);
        }
        let met = |by: &Plot, of: &[Plot]| {
            of.iter().filter(|p| *p != by && meets(by, p, band.max(1))).count()
        };
        let near = self.near.get_or_init(|| self.near(band.max(1)));
        let own = |p: &Plot| near.iter().filter(|(n, _)| meets(p, n, band.max(1))).count();
        let too_many = after.iter().any(|p| own(p) + met(p, after) > MAX_NEIGHBOURS);
        let others =
            |(p, count): &(Plot, usize)| count + met(p, after) > MAX_NEIGHBOURS + met(p, &self.now);
        if too_many || near.iter().any(others) { Err(Rejection::Neighbours) } else { Ok(()) }
    }

    fn near(&self, band: i32) -> Vec<(Plot, usize)> {
        let state = self.round.state;
        let plots = || {
            let its = self.scene.regions.iter().map(|at| &state.regions[*at].plot);
            its.filter(|plot| plot.group == self.now[0].group)
        };
        let count = |of: &Plot| plots().filter(|p| p.id != of.id && meets(of, p, band)).count();
        let is_near = |p: &&Plot| {
            self.now.iter().any(|n| meets(n, p, band)) && self.now.iter().all(|n| n.id != p.id)
        };
        plots().filter(is_near).map(|plot| (*plot, count(plot))).collect()
    }
}

/// Whether the ground of regions may change as far as operators go.
pub(super) fn may_change(round: &Round<'_>, regions: &[usize]) -> Result<(), Rejection> {
    let state = round.state;
    for at in regions {
        round.may_change(*at)?;
        let region = &state.regions[*at];
        if state.input.pins.contains_key(&region.id) {
            return Err(Rejection::Pinned);
        }
    }
    let reserved =
        |at: &usize| state.reservations(state.regions[*at].scene, &state.regions[*at].plot);
    let same = regions.iter().all(|at| reserved(at) == reserved(&regions[0]));
    if same { Ok(()) } else { Err(Rejection::Reserved) }
}
