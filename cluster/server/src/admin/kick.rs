//! The command that ends the sessions of a subject.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::{Deserialize, Deserializer, Serialize};

use super::orders::{OrderResult, answer, orders, read};
use super::shared::Shared;
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
    answer(orders(&shared)?.kick(&order.subject, bar).await)
}
