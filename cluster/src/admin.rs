//! Asks a server how long its ticks take.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::report::TickMs;

/// Why the server's figures are not known.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Not a URL that this small client speaks.
    #[error("cannot ask {0:?}: want http://host:port")]
    BadUrl(String),
    /// The server cannot be reached or does not answer.
    #[error("{url}: {source}")]
    Io {
        /// What was asked.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// The answer has no `tick_ms` object with `mean`, `p50`, `p99` and `max`.
    #[error("{url}: the answer has no tick_ms {{mean, p50, p99, max}}")]
    NoFigures {
        /// What was asked.
        url: String,
    },
}

/// The tick times of the server whose admin address is `base`, from `GET {base}/api/stats`.
///
/// # Errors
/// The server does not answer within 5 s, or its answer lacks the figures.
pub async fn tick_ms(base: &str) -> Result<TickMs, AdminError> {
    let host = base.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let host = host.filter(|h| h.contains(':') && !h.contains('/'));
    let host = host.ok_or_else(|| AdminError::BadUrl(base.into()))?;
    let url = format!("http://{host}/api/stats");
    let get = tokio::time::timeout(Duration::from_secs(5), get(host, "/api/stats"));
    let answer = match get.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(source)) => return Err(AdminError::Io { url, source }),
        Err(_) => {
            return Err(AdminError::Io { url, source: std::io::ErrorKind::TimedOut.into() });
        }
    };
    find(&answer).ok_or(AdminError::NoFigures { url })
}

async fn get(host: &str, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(host).await?;
    // 1.0, so that the answer is one piece that ends with the connection.
    let ask = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(1 << 20).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn find(answer: &[u8]) -> Option<TickMs> {
    let body = answer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let json: Value = serde_json::from_slice(&answer[body..]).ok()?;
    figures(&json)
}

/// The first `tick_ms` object, however deep it lies.
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
    fn figures_are_found_wherever_they_lie() {
        let answer = b"HTTP/1.0 200 OK\r\n\r\n{\"a\":[{\"tick_ms\":{\"mean\":1,\"p50\":2.5,\"p99\":3,\"max\":4}}]}";
        let want = TickMs { mean: 1.0, p50: 2.5, p99: 3.0, max: 4.0 };
        assert_eq!(find(answer), Some(want));
        assert_eq!(find(b"HTTP/1.0 404 Not Found\r\n\r\n{}"), None);
    }
}
