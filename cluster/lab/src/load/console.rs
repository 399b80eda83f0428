//! Reads the tick times of a server from its console, for the report of a load.

use serde_json::Value;

use purview_server::http::{self, HttpError};
use purview_server::process::figures::TickMs;

/// Why the tick times are unknown.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The server does not answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The answer has no `tick_ms` object with `mean`, `p50`, `p99` and `max`.
    #[error("{url}: the answer contains no tick_ms {{mean, p50, p99, max}}")]
    NoFigures {
        /// The address of the console.
        url: String,
    },
}

/// The tick times from `GET {base}/api/stats`. `base` is the address of the server's console.
///
/// # Errors
/// The server does not answer within 5 s, or its answer lacks the figures.
pub async fn tick_ms(base: &str) -> Result<TickMs, ConsoleError> {
    let answer = http::get(base, "/api/stats").await?;
    let json = (answer.status == 200).then(|| serde_json::from_slice(&answer.body).ok()).flatten();
    json.and_then(|json| figures(&json)).ok_or_else(|| ConsoleError::NoFigures { url: base.into() })
}

/// The first `tick_ms` object at any depth.
fn figures(json: &Value) -> Option<TickMs> {
    match json {
        Value::Object(map) => {
            let here = map.get("tick_ms").and_then(|v| serde_json::from_value(v.clone()).ok());
            here.or_else(|| map.values().find_map(figures))
        }
        Value::Array(list) => list.iter().find_map(figures),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_times_are_found_at_any_depth() {
        let found = |text: &str| figures(&serde_json::from_str(text).unwrap());
        let want = TickMs { mean: 1.0, p50: 2.5, p99: 3.0, max: 4.0 };
        let there = r#"{"a":[{"tick_ms":{"mean":1,"p50":2.5,"p99":3,"max":4}}]}"#;
        assert_eq!(found(there), Some(want));
        assert_eq!(found(r#"{"tick_ms":{"mean":1}}"#), None);
    }
}
