//! Values of the store as JSON: read, written and changed by compare-and-swap.
//!
//! Every module of the node that keeps a value in the store calls this; no module writes a value
//! blindly.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::error::NodeError;
use crate::storage::{LeaseError, Leases, Put, Revision, Value};

/// A value that is none, or that this release does not understand, reads as the default.
pub(super) fn read<T: for<'a> Deserialize<'a> + Default>(value: Option<&Value>) -> T {
    value.and_then(|value| serde_json::from_slice(&value.data).ok()).unwrap_or_default()
}

/// Writes a value if its revision is still `expected`. False: another process was faster.
pub(super) async fn put<T: Serialize>(
    store: &dyn Leases,
    key: &str,
    expected: Option<Revision>,
    value: &T,
) -> Result<bool, LeaseError> {
    // These types are plain data.
    let data = Bytes::from(serde_json::to_vec(value).unwrap_or_default());
    Ok(matches!(store.put_if(key, expected, data).await?, Put::Done(_)))
}

/// Changes a value of the store, however often others change it meanwhile.
pub(super) async fn change<T: Serialize + Default + for<'a> Deserialize<'a>>(
    store: &dyn Leases,
    key: &str,
    with: impl Fn(&mut T),
) -> Result<(), LeaseError> {
    loop {
        let now = store.get(key).await?;
        let mut value: T = read(now.as_ref());
        with(&mut value);
        if put(store, key, now.map(|now| now.revision), &value).await? {
            return Ok(());
        }
    }
}

pub(super) fn number(key: &'static str, data: &[u8], want: &'static str) -> Result<u64, NodeError> {
    let text = String::from_utf8_lossy(data).into_owned();
    text.parse().map_err(|_| NodeError::Value { key, found: text, want })
}
