//! Commands that a worker keeps until they are durable, and sends again where they may be lost.

use std::collections::{BTreeMap, VecDeque};

use purview_server::logic::proto;

/// After how many ticks of the worker's regions a command that is not answered is sent again.
const PATIENCE_TICKS: u64 = 60;

/// A command that is not durable.
#[derive(Debug, Clone)]
struct Kept {
    command: proto::Command,
    /// The worker's ticks when it was sent.
    sent: u64,
    /// The region that has applied it, and the tick.
    applied: Option<(u32, u64)>,
}

/// Commands that are not durable, by entity.
#[derive(Debug, Default)]
pub struct Sent {
    kept: BTreeMap<u64, VecDeque<Kept>>,
}

impl Sent {
    pub fn add(&mut self, command: proto::Command, ticks: u64) {
        // Commands for the scene are not undone.
        if command.entity > 0 {
            let kept = Kept { command, sent: ticks, applied: None };
            self.kept.entry(kept.command.entity).or_default().push_back(kept);
        }
    }

    /// Whether all commands are durable.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The number of the first command for an entity that is not durable.
    pub fn first(&self, entity: u64) -> Option<u64> {
        self.kept.get(&entity)?.front().map(|kept| kept.command.number)
    }

    pub fn applied(&mut self, (entity, number): (u64, u64), at: (u32, u64)) {
        for kept in self.kept.get_mut(&entity).into_iter().flatten() {
            if kept.command.number <= number && kept.applied.is_none() {
                kept.applied = Some(at);
            }
        }
    }

    pub fn durable(&mut self, region: u32, tick: u64) {
        for kept in self.kept.values_mut() {
            let is_durable = |kept: &Kept| {
                kept.applied.is_some_and(|(by, applied)| by == region && applied <= tick)
            };
            while kept.front().is_some_and(is_durable) {
                kept.pop_front();
            }
        }
        self.kept.retain(|_, kept| !kept.is_empty());
    }

    fn again(&mut self, ticks: u64, is_lost: impl Fn(&Kept) -> bool) -> Vec<proto::Command> {
        let lost = self.kept.values_mut().flatten().filter(|kept| is_lost(kept));
        let send = |kept: &mut Kept| {
            (kept.sent, kept.applied) = (ticks, None);
            kept.command.clone()
        };
        lost.map(send).collect()
    }

    /// A region goes on from its state of a tick: what is to be sent again.
    pub fn recovered(&mut self, ticks: u64, region: u32, since: u64) -> Vec<proto::Command> {
        let is_lost = |(by, tick)| by == region && tick > since;
        self.again(ticks, |kept| kept.applied.is_some_and(is_lost))
    }

    /// A command is missing.
    pub fn gap(&mut self, ticks: u64, entity: u64, expected: u64) -> Vec<proto::Command> {
        self.again(ticks, |kept| kept.command.entity == entity && kept.command.number >= expected)
    }

    /// A new stream: what was not answered on the one before.
    pub fn unanswered(&mut self, ticks: u64) -> Vec<proto::Command> {
        self.again(ticks, |kept| kept.applied.is_none())
    }

    /// What has not been answered for long.
    pub fn overdue(&mut self, ticks: u64) -> Vec<proto::Command> {
        self.again(ticks, |kept| kept.applied.is_none() && kept.sent + PATIENCE_TICKS <= ticks)
    }
}
