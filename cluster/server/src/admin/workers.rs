//! The logic workers that the console shows.

use serde::{Deserialize, Serialize};

use super::ConsoleState;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    pub worker: u64,
    pub name: String,
    pub scene: u16,
    /// Whether it does not answer in time.
    pub late: bool,
    /// How many ticks an answer of it takes to the regions of this process, on average; 1 is as quick as can be.
    pub answer_ticks: f64,
    /// Its share of these regions, 0.125 to 1: smaller while it is slow.
    pub share: f64,
    /// How many regions it has; of a worker of another process only those of this one.
    pub regions: u64,
    /// The process to which it is connected; 0: the one that is asked.
    pub process: u64,
    pub waiting_bytes: u64,
    /// Answers that did not count; of a worker of another process only those to this one's regions.
    pub late_answers: u64,
    pub refused_commands: u64,
}

impl WorkerStatus {
    /// The states of workers: one that does not answer in time, one that has a smaller share, and any other one.
    pub const STATES: [&'static str; 3] = ["connected", "slow", "late"];

    pub fn state(&self) -> &'static str {
        let [connected, slow, late] = WorkerStatus::STATES;
        match self {
            WorkerStatus { late: true, .. } => late,
            WorkerStatus { share, .. } if *share < 1.0 => slow,
            _ => connected,
        }
    }
}

/// Lists the logic workers that a process knows.
pub type ListWorkers = Box<dyn Fn() -> Vec<WorkerStatus> + Send + Sync>;

/// The logic workers that a process knows, its own and those of other processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkersShape {
    pub workers: Vec<WorkerShape>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerShape {
    pub scene_name: String,
    #[serde(flatten)]
    pub status: WorkerStatus,
}

pub(super) fn workers(state: &ConsoleState) -> WorkersShape {
    let mut all = state.workers.as_ref().map(|list| list()).unwrap_or_default();
    all.sort_by_key(|worker| worker.worker);
    let scenes: Vec<_> = state.directory.scenes().collect();
    let shape = |status: WorkerStatus| {
        let scene = scenes.iter().find(|scene| scene.id.0 == status.scene);
        let scene_name = scene.map(|scene| scene.spec.name.clone()).unwrap_or_default();
        WorkerShape { scene_name, status }
    };
    WorkersShape { workers: all.into_iter().map(shape).collect() }
}
