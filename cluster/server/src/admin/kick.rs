//! The command that ends the sessions of a subject, in a cluster and in a single-process server.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};

use super::error::ApiError;
use super::orders::{OrderResult, Ordered, answer, read};
use super::shared::Shared;
use crate::node::logins::is_subject;
use crate::node::orders::OrderError;
use crate::whole_numbers::whole;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KickOrder {
    pub subject: String,
    /// How long new sessions are refused, in milliseconds; 0: not at all; absent: an earlier
    /// refusal stays in force.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

fn whole_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    struct Whole(#[serde(deserialize_with = "whole")] u64);
    Ok(Option::<Whole>::deserialize(from)?.map(|Whole(ms)| ms))
}

/// `POST /api/kick`.
pub async fn kick(
    State(shared): State<Arc<Shared>>,
    body: Result<Json<KickOrder>, JsonRejection>,
) -> OrderResult {
    let order = read(body, r#"JSON such as {"subject": "ada", "for_ms": 3600000}"#)?;
    let bar = order.for_ms.map(Duration::from_millis);
    if let Some(orders) = &shared.state.orders {
        return answer(orders.kick(&order.subject, bar).await);
    }
    if !is_subject(&order.subject) {
        return answer(Err(OrderError::NoSubject(order.subject.len())));
    }
    let Some(logins) = shared.state.directory.logins() else {
        let expected = "a server that accepts clients with tokens";
        let error = "this server has no subjects, because its clients have no tokens";
        return Err(ApiError::not_found(error, expected));
    };
    let ended = logins.kick(&order.subject, bar);
    tracing::info!(subject = order.subject, ?bar, ended, "sessions were closed by a kick command");
    Ok((StatusCode::ACCEPTED, Json(Ordered { ordered: true })))
}
