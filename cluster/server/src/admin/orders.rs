//! An operator's commands to the cluster: the only requests that change something. They are JSON,
//! which a foreign web page cannot send here.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use purview::scene::RegionId;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::shared::Shared;
use crate::node::down::RegionOrder;
use crate::node::layout_change::{MapError, MapOrder};
use crate::node::orders::{OrderError, Orders};
use crate::whole_numbers::whole;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveCommand {
    #[serde(deserialize_with = "whole")]
    pub region: u32,
    pub node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainOrder {
    pub node: String,
}

/// Decide about a region that is down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DownOrder {
    #[serde(deserialize_with = "whole")]
    pub region: u32,
    /// Whether to read its checkpoint again, or to set it aside.
    pub order: RegionOrder,
}

/// The command is accepted; `/api/cluster` shows when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    pub ordered: bool,
}

/// The layout change is accepted; it is complete when `/api/cluster` shows this version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapOrdered {
    pub scene: String,
    pub version: u64,
}

type Console = State<Arc<Shared>>;
pub(super) type OrderResult = Result<(StatusCode, Json<Ordered>), ApiError>;

pub(super) fn orders(shared: &Shared) -> Result<&Orders, ApiError> {
    shared.state.orders.as_ref().ok_or_else(ApiError::no_cluster)
}

pub(super) fn read<T>(body: Result<Json<T>, JsonRejection>, expected: &str) -> Result<T, ApiError> {
    match body {
        Ok(Json(order)) => Ok(order),
        Err(rejection) => {
            Err(ApiError::new(rejection.status(), rejection.body_text(), expected.to_owned()))
        }
    }
}

pub(super) fn answer(done: Result<(), OrderError>) -> OrderResult {
    done.map(|()| (StatusCode::ACCEPTED, Json(Ordered { ordered: true }))).map_err(refused)
}

/// What a client is told of an order that was not given.
pub(super) fn refused(error: OrderError) -> ApiError {
    let status = match &error {
        OrderError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        OrderError::NoNode(..)
        | OrderError::NoRegion(_)
        | OrderError::NoScene(_)
        | OrderError::NoArea { .. }
        | OrderError::NoSubject(_) => StatusCode::NOT_FOUND,
        OrderError::OnlyNode(_)
        | OrderError::NotDown(_)
        | OrderError::NotInPool { .. }
        | OrderError::Reserved(_)
        | OrderError::TooFewNodes { .. }
        | OrderError::TooManyKicks(_)
        | OrderError::TooManyPins(_)
        | OrderError::TooManyReservations(_) => StatusCode::CONFLICT,
    };
    ApiError::new(
        status,
        error.to_string(),
        "an order for existing nodes, regions and subjects; see GET /api/cluster",
    )
}

/// `POST /api/cluster/move`.
pub async fn move_region(
    State(shared): Console,
    body: Result<Json<MoveCommand>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"region": 4, "node": "node-2"}"#)?;
    answer(orders(&shared)?.move_region(RegionId(order.region), &order.node).await)
}

/// `POST /api/cluster/drain`.
pub async fn drain(
    State(shared): Console,
    body: Result<Json<DrainOrder>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"node": "node-2"}"#)?;
    answer(orders(&shared)?.drain(&order.node).await)
}

/// `POST /api/cluster/region`.
pub async fn decide(
    State(shared): Console,
    body: Result<Json<DownOrder>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"region": 4, "order": "restore"}, or "empty""#)?;
    answer(orders(&shared)?.decide(RegionId(order.region), order.order).await)
}

/// `POST /api/cluster/map`.
pub async fn change_map(
    State(shared): Console,
    body: Result<Json<MapOrder>, JsonRejection>,
) -> Result<(StatusCode, Json<MapOrdered>), ApiError> {
    let expected = r#"JSON such as {"op": "split", "region": 4}, {"op": "merge", "region": 4, "gone": 5} or {"op": "scale", "scene": "meadow", "columns": 4, "rows": 4}"#;
    let order = read(body, expected)?;
    match orders(&shared)?.change_map(&order).await {
        Ok((scene, version)) => Ok((StatusCode::ACCEPTED, Json(MapOrdered { scene, version }))),
        Err(error) => {
            let status = match &error {
                MapError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
                MapError::NoScene(..) | MapError::NoRegion(_) => StatusCode::NOT_FOUND,
                MapError::Busy(_) | MapError::Layout(_) => StatusCode::CONFLICT,
            };
            let expected =
                "a legal change of the scene's layout; see GET /api/cluster for the current one";
            Err(ApiError::new(status, error.to_string(), expected))
        }
    }
}
