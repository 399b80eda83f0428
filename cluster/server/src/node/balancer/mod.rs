//! Balancing by load, the acting half: the leader measures every second, has [`decide`] decide, and carries
//! out what is decided.
//!
//! ```text
//!  regions ── Weigh ──► loads ── Question::Loads ──► reports ──┐
//!  view of the store: nodes, owners, plan, maps, wishes ───────┴─► input ─► decide ─► act ─► plan, maps
//!                                                                             └─► board: console, metrics
//! ```
//!
//! A move is an entry of the plan, a change of a layout is an order as an operator gives it: both are values of the
//! store, changed by compare-and-swap. So a leader that is none any more leaves at most a legal order behind, and the
//! next one measures and decides anew.
//!
//! *Never here:* a task that waits for a region or a peer without a limit; an action by an old view of the store.

mod act;
mod board;
mod input;
mod reports;
#[cfg(test)]
mod tests;
mod wishes;

use std::sync::Arc;
use std::time::Duration;

use purview::wire::peer::query::Question;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::balance::{Decision, Input, Memory, Settings, decide};
use super::hosted::Hosted;
use super::loads;
use super::maps::Maps;
use super::surveyor::Surveyor;
use crate::executor::Executor;
use crate::storage::{Leases, View};

pub(crate) use board::Board;
pub use board::{
    ActionLine, BalanceSurvey, BorderLoad, CandidateLine, NodeLoad, PlanLine, RecordLine,
    RegionLoad, ReservationLine,
};

use reports::Reports;
use wishes::Wishes;

/// Time between two decisions.
const EVERY: Duration = Duration::from_secs(1);

/// What is done with what the balancer decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BalanceMode {
    /// Nothing is measured and decided.
    Off,
    /// It is decided and told, and not done.
    #[default]
    Explain,
    On,
}

impl BalanceMode {
    pub const NAMES: [(BalanceMode, &'static str); 3] =
        [(BalanceMode::Off, "off"), (BalanceMode::Explain, "explain"), (BalanceMode::On, "on")];

    pub fn name(self) -> &'static str {
        let named = BalanceMode::NAMES.iter().find(|(mode, _)| *mode == self);
        named.map_or("", |(_, name)| name)
    }
}

/// Begins to balance, whenever this process leads; not at all if it is off.
pub(super) fn start(
    executor: &Executor,
    (mode, store): (BalanceMode, Arc<dyn Leases>),
    (maps, surveyor): (Maps, &Surveyor),
    (hosted, board): (&Hosted, &Board),
) {
    let (surveyor, hosted, board) = (surveyor.clone(), hosted.clone(), board.clone());
    let own = executor.clone();
    let balancer = Balancer { mode, executor: own, store, maps, surveyor, hosted, board };
    if mode != BalanceMode::Off {
        executor.spawn(balancer.run());
    }
}

struct Balancer {
    mode: BalanceMode,
    executor: Executor,
    store: Arc<dyn Leases>,
    maps: Maps,
    surveyor: Surveyor,
    hosted: Hosted,
    board: Board,
}

#[derive(Default)]
struct Lead {
    reports: Reports,
    memory: Memory,
}

impl Balancer {
    async fn run(self) {
        let (settings, began) = (Settings::default(), Instant::now());
        let status = self.surveyor.status();
        let mut lead: Option<Lead> = None;
        let mut every = interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            if !status.borrow().leads {
                if lead.take().is_some() {
                    self.board.clear();
                }
                continue;
            }
            let now_s = began.elapsed().as_secs();
            self.lead(lead.get_or_insert_default(), &settings, now_s).await;
        }
    }

    /// Measures, decides and acts once.
    async fn lead(&self, lead: &mut Lead, settings: &Settings, now_s: u64) {
        let (own, others) = futures::future::join(
            loads::measure(&self.hosted),
            self.surveyor.ask_others(&Question::Loads),
        )
        .await;
        let view = self.view();
        lead.reports.take(self.surveyor.name(), own, now_s);
        for (node, answer) in others {
            let loads = answer.map(|answer| answer.loads).unwrap_or_default();
            lead.reports.take(&node, loads, now_s);
        }
        let wishes = Wishes::of(&view, self.executor.time_of_day());
        let reports = lead.reports.fresh(&view, now_s);
        let input: Input = input::input((&view, &self.maps), &wishes, reports, now_s);
        let decision: Decision = decide(&input, settings, &mut lead.memory);
        let done = act::act(&self.store, (&view, &self.maps), self.mode, &decision).await;
        self.board.tell((view, input, &wishes), self.mode, (&decision, &done));
    }

    fn view(&self) -> View {
        self.surveyor.views().read().clone()
    }
}
