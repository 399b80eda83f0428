//! Orders to a real etcd that no server gives: by its JSON interface, beside the lease store.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use purview_server::http::Caller;
use serde_json::{Value, json};

/// An order to the etcd at `url`, for example `role/add` of `/v3/auth/`.
pub async fn order(url: &str, path: &str, body: Value) -> Value {
    let caller = Caller::with_token(None);
    let answer = caller.post(url, &format!("/v3/{path}"), body.to_string().into()).await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Keys and values are bytes, which JSON has as Base64.
pub fn bytes(text: &str) -> Value {
    json!(BASE64_STANDARD.encode(text))
}

/// Writes a key.
pub async fn put(url: &str, key: &str, value: &str) {
    order(url, "kv/put", json!({ "key": bytes(key), "value": bytes(value) })).await;
}

/// Forgets what changed before a revision.
pub async fn compact(url: &str, revision: u64) {
    order(url, "kv/compaction", json!({ "revision": revision })).await;
}
