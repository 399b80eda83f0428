//! The state of balancing for the console and for metrics: loads, the newest record of each subject, and the last
//! actions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use purview::scene::RegionId;
use serde::{Deserialize, Serialize};

use super::BalanceMode;
use super::act::Outcome;
use super::wishes::Wishes;
use crate::node::balance::{
    Action, Candidate, Decision, Input, Memory, Record, Settings, Subject, decide,
};
use crate::node::reservations::Reservation;
use crate::storage::{Incarnation, View};

const MAX_ACTIONS: usize = 64;

/// Most records and regions that are told at once: the newest, and those with most to do.
const MAX_TOLD: usize = 500;

/// How long a record is remembered, seconds.
const KEPT_S: u64 = 600;

/// Balancing as the leader knows it: `GET /api/balance`. Shares are of a node's capacity or of a tick.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BalanceSurvey {
    /// `off`, `explain` or `on`, as the leader is configured.
    pub mode: String,
    pub leader: String,
    /// For how long nothing is decided, seconds; 0: it is not paused.
    pub paused_s: u64,
    pub nodes_wanted: u32,
    pub nodes: Vec<NodeLoad>,
    /// The regions, those with most to do first; at most 500.
    pub regions: Vec<RegionLoad>,
    /// Borders that pairs cross, those with most pairs first; at most 500.
    pub borders: Vec<BorderLoad>,
    /// Ground that nodes run alone for a while.
    pub reservations: Vec<ReservationLine>,
    /// What is ordered and not done, and what would be decided now if nothing had to last.
    pub plan: Vec<PlanLine>,
    /// What was decided to be done, the newest first; at most 64.
    pub actions: Vec<ActionLine>,
    /// The newest record of each subject within ten minutes, the newest first; at most 500.
    pub records: Vec<RecordLine>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLoad {
    pub node: String,
    /// How many cores' worth of ticks it carries.
    pub cores: f64,
    pub share: f64,
    pub regions: usize,
    /// How many of them have not reported lately.
    pub unreported: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionLoad {
    pub region: u32,
    pub scene: String,
    /// Its node; `None`: it has no owner.
    pub node: Option<String>,
    /// What it has to do, by a tick; `None`: it has not reported lately.
    pub share: Option<f64>,
    /// The same of its longest ticks, the 99th percentile.
    pub share_p99: Option<f64>,
    pub players: u32,
    pub pinned: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BorderLoad {
    pub regions: [u32; 2],
    /// Pairs of players, one in each region, that see each other.
    pub pairs: u32,
    /// Entities of each that are ghosts in the other.
    pub ghosts: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReservationLine {
    pub scene: String,
    /// Its ground in lands: west, north, east and south edge, the last two exclusive.
    pub lands: [i32; 4],
    pub nodes: Vec<String>,
    /// For how long it counts, seconds.
    pub for_s: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanLine {
    pub action: String,
    /// Whether it is ordered; otherwise it would be decided now.
    pub ordered: bool,
    /// By how much the busier of the nodes concerned will have less to do; 0 where it is ordered.
    pub gain: f64,
    pub charge: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionLine {
    /// How long ago, seconds.
    pub age_s: u64,
    pub action: String,
    /// `ordered`, `explained` (it is only told), or why it was not done.
    pub outcome: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordLine {
    /// How long ago, seconds.
    pub age_s: u64,
    /// What it is about: `cluster`, the name of a node, or a region such as R4.
    pub subject: String,
    pub rule: String,
    /// What is to be done; `None`: nothing.
    pub action: Option<String>,
    pub refusal: Option<String>,
    /// The figures by which it was decided.
    pub inputs: Vec<(String, f64)>,
    /// The best candidates, at most three.
    pub candidates: Vec<CandidateLine>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CandidateLine {
    pub action: String,
    /// By how much the busier of the nodes concerned has less to do.
    pub gain: f64,
    /// What the action costs, now and later.
    pub charge: f64,
    pub refusal: Option<String>,
}

/// What is known. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    now_s: u64,
    /// All but the plan, actions and records.
    survey: Option<BalanceSurvey>,
    /// By what was decided last.
    view: View,
    input: Input,
    actions: VecDeque<(u64, ActionLine)>,
    records: BTreeMap<Subject, (u64, RecordLine)>,
}

impl Board {
    /// This process leads no more.
    pub(super) fn clear(&self) {
        *self.0.lock() = Known::default();
    }

    pub(super) fn tell(
        &self,
        (view, input, wishes): (View, Input, &Wishes),
        mode: BalanceMode,
        (decision, outcomes): (&Decision, &[Outcome]),
    ) {
        let mut known = self.0.lock();
        let now_s = input.now_s;
        known.now_s = now_s;
        known.survey = Some(BalanceSurvey {
            mode: mode.name().into(),
            leader: view.leader.as_ref().map(|leader| leader.node.clone()).unwrap_or_default(),
            paused_s: wishes.paused_s,
            nodes_wanted: decision.nodes_wanted,
            nodes: nodes(&view, &input),
            regions: regions(&view, &input, wishes),
            borders: borders(&input),
            reservations: wishes
                .reservations
                .iter()
                .map(|of| reservation(of, wishes.now))
                .collect(),
            ..BalanceSurvey::default()
        });
        for (action, outcome) in decision.actions.iter().zip(outcomes) {
            let outcome = match outcome {
                Outcome::Explained => "explained".into(),
                Outcome::Ordered => "ordered".into(),
                Outcome::Failed(why) => why.clone(),
            };
            let line = ActionLine { age_s: 0, action: words(&view, action), outcome };
            known.actions.push_front((now_s, line));
        }
        known.actions.truncate(MAX_ACTIONS);
        known.records.retain(|_, (at, _)| now_s < *at + KEPT_S);
        for record in &decision.records {
            known.records.insert(record.subject, (now_s, record_line(&view, record)));
        }
        (known.view, known.input) = (view, input);
    }

    /// What is told; `None`: this process does not lead, or has decided nothing yet.
    pub(crate) fn survey(&self) -> Option<BalanceSurvey> {
        let known = self.0.lock();
        let mut survey = known.survey.clone()?;
        survey.plan = plan(&known.view, &known.input);
        let age = |at: &u64| known.now_s.saturating_sub(*at);
        let action = |(at, line): &(u64, ActionLine)| ActionLine { age_s: age(at), ..line.clone() };
        let record = |(at, line): &(u64, RecordLine)| RecordLine { age_s: age(at), ..line.clone() };
        survey.actions = known.actions.iter().map(action).collect();
        survey.records = known.records.values().map(record).collect();
        survey.records.sort_by_key(|record| record.age_s);
        survey.records.truncate(MAX_TOLD);
        Some(survey)
    }

    /// The same as JSON; empty: there is nothing to tell.
    pub(crate) fn json(&self) -> String {
        // Plain data has a text.
        self.survey().and_then(|survey| serde_json::to_string(&survey).ok()).unwrap_or_default()
    }

    /// How many nodes the loads need; `None`: this process does not lead.
    pub(crate) fn nodes_wanted(&self) -> Option<u32> {
        self.0.lock().survey.as_ref().map(|survey| survey.nodes_wanted)
    }
}

/// What crosses each border, as both regions tell it.
fn borders(input: &Input) -> Vec<BorderLoad> {
    let mut all: BTreeMap<[u32; 2], BorderLoad> = BTreeMap::new();
    for (region, report) in &input.reports {
        for near in &report.neighbours {
            let regions = [region.0.min(near.region.0), region.0.max(near.region.0)];
            let border = all.entry(regions).or_insert(BorderLoad { regions, pairs: 0, ghosts: 0 });
            border.pairs = border.pairs.max(near.pairs);
            border.ghosts = border.ghosts.saturating_add(near.ghosts);
        }
    }
    let mut all: Vec<BorderLoad> = all.into_values().filter(|border| border.pairs > 0).collect();
    all.sort_by_key(|border| (Reverse(border.pairs), border.regions));
    all.truncate(MAX_TOLD);
    all
}

fn reservation(of: &Reservation, now: Duration) -> ReservationLine {
    let nodes = of.nodes.iter().cloned().collect();
    ReservationLine { scene: of.scene.clone(), lands: of.lands, nodes, for_s: of.rest_s(now) }
}

/// What is to come: what is ordered, and what would be decided if nothing had to last.
fn plan(view: &View, input: &Input) -> Vec<PlanLine> {
    let ordered = input.moving.iter().map(|(region, to)| {
        let from = input.owners.get(region).copied().unwrap_or_default();
        let action = words(view, &Action::Move { region: *region, from, to: *to });
        PlanLine { action, ordered: true, ..PlanLine::default() }
    });
    let settings = Settings { hot_s: 0, light_s: 0, ..Settings::default() };
    let input = Input { paused: false, ..input.clone() };
    let decision = decide(&input, &settings, &mut Memory::default());
    let next = decision.records.iter().filter_map(|record| {
        let best = record.outcome.is_ok().then(|| record.candidates.first())??;
        let (gain, charge) = (figure(best.gain), figure(best.charge));
        Some(PlanLine { action: words(view, &best.action), ordered: false, gain, charge })
    });
    ordered.chain(next).collect()
}

/// A finite number, with three digits: `JSON` has no other.
fn figure(value: f64) -> f64 {
    if value.is_finite() { (value * 1_000.0).round() / 1_000.0 } else { 0.0 }
}

fn node_name(view: &View, node: Incarnation) -> String {
    let named = view.nodes.get(&node).map(|info| info.name.clone());
    named.unwrap_or_else(|| format!("a former node ({node})"))
}

fn words(view: &View, action: &Action) -> String {
    match action {
        Action::Move { region, from, to } => {
            let (from, to) = (node_name(view, *from), node_name(view, *to));
            format!("move R{region} from {from} to {to}")
        }
        Action::Shift { from, to, lands } => {
            format!("move the border of R{from} and R{to}: R{to} gets {lands} rows of lands")
        }
        Action::Split { region, axis, land, .. } => {
            format!("split R{region} at land {land} of axis {}", word(axis))
        }
        Action::Merge { region, gone } => format!("merge R{gone} into R{region}"),
    }
}

fn word(value: &impl Serialize) -> String {
    let named = serde_json::to_value(value).ok();
    named.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn record_line(view: &View, record: &Record) -> RecordLine {
    let candidate = |candidate: &Candidate| CandidateLine {
        action: words(view, &candidate.action),
        gain: figure(candidate.gain),
        charge: figure(candidate.charge),
        refusal: candidate.refusal.as_ref().map(word),
    };
    RecordLine {
        age_s: 0,
        subject: match record.subject {
            Subject::Cluster => "cluster".into(),
            Subject::Node(node) => node_name(view, node),
            Subject::Region(region) => format!("R{region}"),
        },
        rule: word(&record.rule),
        action: record.outcome.as_ref().ok().map(|action| words(view, action)),
        refusal: record.outcome.as_ref().err().map(word),
        inputs: record.inputs.iter().map(|(name, v)| ((*name).to_owned(), figure(*v))).collect(),
        candidates: record.candidates.iter().map(candidate).collect(),
    }
}

fn nodes(view: &View, input: &Input) -> Vec<NodeLoad> {
    let tick_us: BTreeMap<RegionId, u32> = ticks(input).collect();
    let node = |site: &crate::node::balance::Site| {
        let its = || input.owners.iter().filter(|(_, node)| **node == site.node);
        let share = |id: &RegionId| {
            let tick = f64::from((*tick_us.get(id)?).max(1));
            Some(f64::from(input.reports.get(id)?.tick_us) / tick)
        };
        let shares: Vec<f64> = its().filter_map(|(id, _)| share(id)).collect();
        NodeLoad {
            node: node_name(view, site.node),
            cores: site.cores,
            share: figure(shares.iter().sum::<f64>() / site.cores.max(0.01)),
            regions: its().count(),
            unreported: its().count() - shares.len(),
        }
    };
    input.nodes.iter().map(node).collect()
}

/// The length of each region's ticks, microseconds.
fn ticks(input: &Input) -> impl Iterator<Item = (RegionId, u32)> + '_ {
    let of_scene = |scene: &'_ crate::node::balance::SceneInput| {
        let tick_us = scene.tick_us;
        scene.layout.plots.iter().map(move |plot| (plot.id, tick_us)).collect::<Vec<_>>()
    };
    input.scenes.iter().flat_map(of_scene)
}

fn regions(view: &View, input: &Input, wishes: &Wishes) -> Vec<RegionLoad> {
    let mut all = Vec::new();
    for scene in &input.scenes {
        let share = |us: f32| figure(f64::from(us) / f64::from(scene.tick_us.max(1)));
        all.extend(scene.layout.plots.iter().map(|plot| {
            let report = input.reports.get(&plot.id);
            RegionLoad {
                region: plot.id.0,
                scene: scene.name.clone(),
                node: input.owners.get(&plot.id).map(|node| node_name(view, *node)),
                share: report.map(|report| share(report.tick_us)),
                share_p99: report.map(|report| share(report.tick_us_p99)),
                players: report.map_or(0, |report| report.players),
                pinned: wishes.pins.get(&plot.id).cloned(),
            }
        }));
    }
    let share = |load: &RegionLoad| load.share.unwrap_or(f64::MAX);
    all.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.region.cmp(&b.region)));
    all.truncate(MAX_TOLD);
    all
}
