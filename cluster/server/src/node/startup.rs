//! What a process agrees on with the store before it is a member: its number, where epochs and time go on, and the
//! secret of tickets.

use std::time::Duration;

use bytes::Bytes;
use purview::scene::Epoch;

use super::clock_sync::CLOCK;
use super::previous_run::Past;
use super::{MAX_PROCESSES, NodeError, POPULATION, PROCESSES, TICKETS};
use crate::gateway::token::random_secret;
use crate::storage::{Checkpoints, Leases, Put};

/// A store that knows nothing yet counts on from where checkpoints end.
pub(super) async fn count_on(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    tick_ms: u32,
    now: Duration,
) -> Result<(), NodeError> {
    let knows = store.get(PROCESSES).await?.is_some() && store.get(CLOCK).await?.is_some();
    let Some(checkpoints) = checkpoints.filter(|_| !knows) else { return Ok(()) };
    let past = Past::of(checkpoints, tick_ms).await?;
    let began = now.saturating_sub(past.clock).as_millis();
    // Whoever asks first decides.
    store.get_or_create(PROCESSES, Bytes::from(past.number.to_string())).await?;
    store.get_or_create(CLOCK, Bytes::from(began.to_string())).await?;
    Ok(())
}

/// Whether the process of this number is to create the demo entities of the cluster: the first one where nothing lives yet.
pub(super) async fn populates(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    number: u64,
) -> Result<bool, NodeError> {
    if let Some(checkpoints) = checkpoints
        && checkpoints.highest_epoch().await? > Epoch(0)
    {
        return Ok(false);
    }
    let own = Bytes::from(number.to_string());
    Ok(store.get_or_create(POPULATION, own.clone()).await?.data == own)
}

/// The secret by which all processes of the cluster sign tickets that have no other.
pub(super) async fn ticket_secret(store: &dyn Leases) -> Result<Bytes, NodeError> {
    let mine = random_secret()?;
    Ok(store.get_or_create(TICKETS, mine.into()).await?.data)
}

/// A number that no process of the cluster had before.
pub(super) async fn take_number(store: &dyn Leases) -> Result<u64, NodeError> {
    loop {
        let now = store.get_or_create(PROCESSES, Bytes::from_static(b"0")).await?;
        let last = number(PROCESSES, &now.data, "the number of the last process, below 2097151")?;
        let next = last.saturating_add(1);
        if next >= MAX_PROCESSES {
            let found = last.to_string();
            return Err(NodeError::Value { key: PROCESSES, found, want: "a number below 2097151" });
        }
        let data = Bytes::from(next.to_string());
        if let Put::Done { .. } = store.put_if(PROCESSES, Some(now.revision), data).await? {
            return Ok(next);
        }
    }
}

pub(super) fn number(key: &'static str, data: &[u8], want: &'static str) -> Result<u64, NodeError> {
    let text = String::from_utf8_lossy(data).into_owned();
    text.parse().map_err(|_| NodeError::Value { key, found: text, want })
}
