//! `purview ctl status workers`: the logic workers that a process knows.

use super::ConsoleArgs;
use purview_server::admin::{WorkerShape, WorkersShape};

/// The exit code if some worker is late.
const NOT_WHOLE: u8 = 3;

/// Prints the workers; the exit code says whether all of them answer.
pub(super) async fn workers(console: &ConsoleArgs, json: bool) -> anyhow::Result<u8> {
    let told = console.get("/api/workers").await?;
    let all: WorkersShape = told.read()?;
    told.print(json, &text(&all))?;
    let in_time = |worker: &WorkerShape| !worker.status.late;
    Ok(if all.workers.iter().all(in_time) { 0 } else { NOT_WHOLE })
}

fn text(all: &WorkersShape) -> String {
    let mut out = format!(
        "{:<14} {:<20} {:<16} {:<10} {:>7} {:>12} {:>12} {:>8} {:>8} {:>12}\n",
        "worker",
        "name",
        "scene",
        "state",
        "regions",
        "answer ticks",
        "waiting",
        "process",
        "refused",
        "late answers"
    );
    for WorkerShape { scene_name, status } in &all.workers {
        let process = match status.process {
            0 => "this".to_owned(),
            process => process.to_string(),
        };
        out += &format!(
            "{:<14} {:<20} {:<16} {:<10} {:>7} {:>12.1} {:>10} B {:>8} {:>8} {:>12}\n",
            status.worker,
            status.name,
            scene_name,
            status.state(),
            status.regions,
            status.answer_ticks,
            status.waiting_bytes,
            process,
            status.refused_commands,
            status.late_answers
        );
    }
    out
}
