//! Health checks, which need no token: `/alive` (restart the process otherwise), `/ready` (send new sessions to this
//! process), `/whole` (every region of the cluster can be reached from here).

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use parking_lot::Mutex;

use super::error::ApiError;
use super::hosts::Hosts;
use super::routing::{Console, Route, harden};
use super::sampler::SILENCE_LIMIT;
use super::{figures, guard, shapes};

pub(super) const PATHS: [&str; 3] = ["/alive", "/ready", "/whole"];

pub(super) fn routes() -> [Route; 3] {
    let [on_alive, on_ready, on_whole] = PATHS;
    [(on_alive, get(alive)), (on_ready, get(ready)), (on_whole, get(whole))]
}

async fn alive() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "alive": true }))
}

async fn ready(State(shared): Console) -> Response {
    let regions = shared.state.regions.now();
    let silent = shared.sampler.lock().silent(Instant::now(), figures(&regions));
    let mut lacks = match &shared.state.readiness {
        Some(lacks) => lacks(),
        None if regions.is_empty() => vec!["this process has no region".to_owned()],
        None => Vec::new(),
    };
    lacks.extend(silent.into_iter().map(|(id, ago)| match ago {
        None => format!("{} has not ticked yet", shapes::region_name(id)),
        Some(ago) => {
            format!("{} last ticked {:.1} s ago", shapes::region_name(id), ago.as_secs_f64())
        }
    }));
    let expected = format!(
        "a process that is not shutting down, whose regions tick at least every {} s, and that, if it holds sessions, \
         reaches enough regions",
        SILENCE_LIMIT.as_secs()
    );
    answer("ready", lacks, expected)
}

async fn whole(State(shared): Console) -> Response {
    let lacks = shared.state.whole.as_ref().map(|lacks| lacks()).unwrap_or_default();
    answer(
        "whole",
        lacks,
        "a cluster whose regions all have an owner that this process reaches".into(),
    )
}

fn answer(what: &str, lacks: Vec<String>, expected: String) -> Response {
    if lacks.is_empty() {
        return Json(serde_json::json!({ what: true })).into_response();
    }
    ApiError::unavailable(lacks.join("; "), expected).into_response()
}

/// The answers of a process that waits for its stores: it is alive, and not ready for this reason.
pub(super) fn waiting(why: Arc<Mutex<String>>, hosts: Hosts) -> Router {
    let not_yet = move || {
        let why = why.lock().clone();
        let answer = answer("ready", vec![why], "a process that is a member of its cluster".into());
        std::future::ready(answer)
    };
    Router::new()
        .route("/alive", get(alive))
        .fallback(not_yet)
        .layer(middleware::from_fn_with_state(hosts, guard::by_name))
        .layer(middleware::map_response(harden))
}
