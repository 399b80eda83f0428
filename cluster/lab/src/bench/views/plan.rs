//! The combinations of lists and crowds that are measured.

use purview::scene::Visibility;

use super::classic::Classic;
use super::gathering::{Gathering, Walkers};
use super::measure::{Trial, Way, measure};
use super::quality::Range;
use super::regions::{Cut, Regions, Rules, map_cm};
use super::{BenchViewsArgs, CostRow, CrowdRows, Row, ViewLists};
use crate::bench::crowd::Crowd;

/// The mean distance that a player walks in a tick, centimetres: 1.4 m/s.
const STEP_CM: f64 = 14.0;

/// The enter radius and the leave radius, centimetres.
const ENTER_CM: i32 = 8_000;
const LEAVE_CM: i32 = 8_500;

/// The number of other players in range at ordinary density.
const IN_RANGE: f64 = 60.0;

/// A method that makes lists.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Classic,
    Ours { visibility: Visibility, margin_cm: i32, cut: Cut },
}

fn circle(leave_cm: i32) -> Visibility {
    Visibility::Circle { enter_cm: ENTER_CM, leave_cm }
}

fn cm(metres: f64) -> i32 {
    (metres * 100.0).round() as i32
}

impl Kind {
    fn ours(visibility: Visibility, margin_cm: i32) -> Kind {
        Kind::Ours { visibility, margin_cm, cut: Cut::One }
    }

    fn way(self) -> Way {
        match self {
            Kind::Classic => Way::Classic,
            Kind::Ours { visibility: Visibility::Circle { leave_cm, .. }, .. } => {
                if leave_cm == LEAVE_CM { Way::Circle } else { Way::TightCircle }
            }
            Kind::Ours { .. } => Way::Patches,
        }
    }

    fn name(self) -> String {
        let way = match self.way() {
            Way::Classic => "classic heuristic",
            Way::TightCircle => "circle, leaves where it enters",
            Way::Circle => "circle",
            Way::Patches => "patches",
        };
        let Kind::Ours { margin_cm, cut, .. } = self else { return way.into() };
        let regions = if cut == Cut::Four { ", four regions" } else { "" };
        let margin = match margin_cm {
            0 => "no margin".into(),
            cm => format!("margin {} m", f64::from(cm) / 100.0),
        };
        format!("{way}{regions}, {margin}")
    }

    fn range(self) -> Range {
        match self {
            Kind::Ours { visibility: Visibility::Circle { enter_cm, .. }, .. } => {
                Range::Circle(enter_cm)
            }
            _ => Range::Patches,
        }
    }

    /// Measures the lists of this method for a crowd that needs a map of side `map_cm`.
    fn measure(
        self,
        args: &BenchViewsArgs,
        crowd: Walkers,
        map_cm: i32,
        range: Option<Range>,
    ) -> anyhow::Result<Row> {
        let mut places = Vec::new();
        crowd.places(&mut places);
        let mut trial = Trial {
            name: self.name(),
            way: self.way(),
            margin_cm: None,
            regions: 1,
            cap: args.cap,
            range,
            patience: 0,
            warm_up_s: args.warm_up,
            seconds: args.seconds,
        };
        let mut made: Box<dyn ViewLists> = match self {
            Kind::Classic => Box::new(Classic::new(args.cap, map_cm, &places)),
            Kind::Ours { visibility, margin_cm, cut } => {
                trial.margin_cm = Some(margin_cm);
                if cut == Cut::Four {
                    // A message to an entity in a handoff arrives in the next tick.
                    (trial.regions, trial.patience) = (4, 1);
                }
                let rules = Rules { visibility, margin_cm, cap: args.cap, cut };
                Box::new(Regions::new(rules, map_cm, &places)?)
            }
        };
        Ok(measure(&trial, crowd, made.as_mut()))
    }
}

/// The rows of the comparison.
fn kinds(args: &BenchViewsArgs) -> Vec<Kind> {
    let margin = cm(args.margin);
    let mut kinds = vec![Kind::Classic, Kind::ours(circle(ENTER_CM + 1), 0)];
    kinds.push(Kind::ours(circle(LEAVE_CM), 0));
    kinds.extend(args.margins.iter().map(|m| Kind::ours(circle(LEAVE_CM), cm(*m))));
    for margin_cm in [0, margin] {
        kinds.push(Kind::ours(Visibility::Patches, margin_cm));
    }
    for margin_cm in [0, margin] {
        kinds.push(Kind::Ours { visibility: circle(LEAVE_CM), margin_cm, cut: Cut::Four });
    }
    kinds
}

/// Makes all lists for all crowds.
///
/// # Errors
/// The arguments make no legal scene.
pub(super) fn compare(
    args: &BenchViewsArgs,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<CrowdRows>> {
    let mut crowds = Vec::new();
    for &sigma_m in &args.sigma {
        for &players in &args.players {
            let mut rows = Vec::new();
            for kind in kinds(args) {
                let (crowd, map_cm) = gathered(args, players, sigma_m);
                let row = kind.measure(args, crowd, map_cm, Some(kind.range()))?;
                progress(&format!(
                    "{players} players, sigma {sigma_m} m, {}: {:.1} us",
                    row.lists, row.us
                ));
                rows.push(row);
            }
            crowds.push(CrowdRows { players, sigma_m, rows });
        }
    }
    Ok(crowds)
}

/// A crowd around the centre of its map, which is a corner of four patches, and the side of the map.
fn gathered(args: &BenchViewsArgs, players: usize, sigma_m: f64) -> (Walkers, i32) {
    let sigma = sigma_m * 100.0;
    let map_cm = map_cm(2.0 * Gathering::REACH_SIGMAS * sigma);
    let middle = f64::from(map_cm) / 2.0;
    let people = Gathering::new(players, middle, sigma, STEP_CM, args.seed);
    (Walkers::Gathered(people), map_cm)
}

/// Measures the cost of the negotiation: the greatest crowd as a gathering, and many players at
/// ordinary density that also walk at the 5 m/s of `bench scene`.
///
/// # Errors
/// The arguments make no legal scene.
pub(super) fn cost(
    args: &BenchViewsArgs,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<Vec<CostRow>> {
    let players = args.players.iter().copied().max().unwrap_or(1);
    let many = args.many;
    let side = (many as f64 * std::f64::consts::PI * f64::from(ENTER_CM).powi(2) / IN_RANGE).sqrt();
    let even = |step_cm| {
        let crowd = Crowd::new(many, side, step_cm, args.seed);
        let map_cm = map_cm(side);
        let corner_cm = (map_cm - side as i32) / 2;
        (Walkers::Even { crowd, players: many, corner_cm }, map_cm)
    };
    let mut crowds = Vec::new();
    for sigma_m in &args.sigma {
        let name = format!("sigma {sigma_m} m, 1.4 m/s");
        crowds.push((name, players, gathered(args, players, *sigma_m)));
    }
    for (speed, step_cm) in [("1.4", STEP_CM), ("5", 50.0)] {
        let name = format!("{IN_RANGE} in range, {speed} m/s");
        crowds.push((name, many, even(step_cm)));
    }
    let mut rows = Vec::new();
    for (crowd, players, (walkers, map_cm)) in crowds {
        for cut in [Cut::One, Cut::Four] {
            for margin_cm in [0, cm(args.margin)] {
                let kind = Kind::Ours { visibility: circle(LEAVE_CM), margin_cm, cut };
                let row = kind.measure(args, walkers.clone(), map_cm, None)?;
                progress(&format!("{players} players, {crowd}, {}: {:.1} us", row.lists, row.us));
                rows.push(CostRow { crowd: crowd.clone(), players, row });
            }
        }
    }
    Ok(rows)
}
