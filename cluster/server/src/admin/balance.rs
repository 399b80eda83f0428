//! Balancing as the leader knows it, and what operators want of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use purview::scene::RegionId;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::orders::{OrderResult, answer, orders, read, refused};
use super::shared::Shared;
use crate::node::orders::Reserve;
use crate::whole_numbers::{four, whole};

/// Gives what the leader tells of balancing as JSON; `None`: no leader answers, or it has decided nothing yet.
pub type AskBalance = Box<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseOrder {
    /// How long, in milliseconds; 0 ends a pause.
    #[serde(deserialize_with = "whole")]
    pub for_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinOrder {
    #[serde(deserialize_with = "whole")]
    pub region: u32,
    /// The node's name; absent: the region may move again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Reserve ground of a scene for nodes that run nothing else, or end reservations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReserveOrder {
    pub scene: String,
    /// West, north, east and south edge, metres.
    #[serde(deserialize_with = "four")]
    pub area_m: [u32; 4],
    #[serde(deserialize_with = "whole")]
    pub nodes: u32,
    /// How long, in milliseconds; 0 ends the reservations that meet the ground.
    #[serde(deserialize_with = "whole")]
    pub for_ms: u64,
}

/// The reservation is accepted, or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveOrdered {
    pub nodes: Vec<String>,
}

/// `GET /api/balance`.
pub(super) async fn balance(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    let ask = shared.state.balance.as_ref().ok_or_else(ApiError::no_cluster)?;
    match ask().await {
        Some(told) => Ok(([(header::CONTENT_TYPE, "application/json")], told).into_response()),
        None => Err(ApiError::unavailable(
            "no leader tells of balancing",
            "a leader, and cluster.balance = \"explain\" or \"on\"; try again in a few seconds",
        )),
    }
}

/// `POST /api/balance/pause`.
pub(super) async fn pause(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<PauseOrder>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"for_ms": 3600000}"#)?;
    let time = Duration::from_millis(order.for_ms);
    answer(orders(&shared)?.pause_balancing(time).await)
}

/// `POST /api/balance/pin`.
pub(super) async fn pin(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<PinOrder>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"region": 4, "node": "node-2"}, or {"region": 4}"#)?;
    answer(orders(&shared)?.pin(RegionId(order.region), order.node.as_deref()).await)
}

/// `POST /api/balance/reserve`.
pub(super) async fn reserve(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<ReserveOrder>, JsonRejection>,
) -> Result<(StatusCode, Json<ReserveOrdered>), ApiError> {
    let expected = r#"JSON such as {"scene": "city", "area_m": [0, 0, 512, 512], "nodes": 2, "for_ms": 3600000}"#;
    let order = read(body, expected)?;
    let wish = Reserve {
        scene: order.scene,
        area_m: order.area_m,
        nodes: order.nodes as usize,
        time: Duration::from_millis(order.for_ms),
    };
    match orders(&shared)?.reserve(&wish).await {
        Ok(nodes) => Ok((StatusCode::ACCEPTED, Json(ReserveOrdered { nodes }))),
        Err(error) => Err(refused(error)),
    }
}
