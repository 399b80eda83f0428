//! What a process agrees on with the store before it is a member: its number, where epochs and time go on, and the
//! secret of tickets. The assembly of a process calls [`agree`] once; nothing here may be asked for twice by one process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::scene::{Epoch, Scene};

use super::clock_sync::{self, CLOCK};
use super::error::NodeError;
use super::layouts;
use super::previous_run::Past;
use super::values::number;
use crate::storage::leases::names::GATEWAY_NUMBERS;
use crate::storage::{Checkpoints, Leases, Put};

/// The value that counts the nodes that ever were.
const PROCESSES: &str = "processes";

/// The value that counts the gateways that ever were.
const GATEWAYS: &str = "gateway_processes";

/// The value that says which process creates the demo entities of a new cluster.
const POPULATION: &str = "population";

/// The value with which the cluster signs resume tickets where the keys of tokens are public alone.
const TICKETS: &str = "tickets";

/// Most nodes, and most gateways, that a cluster may ever have: see
/// [`purview::actor::directory::Process::number`].
const MAX_PROCESSES: u64 = GATEWAY_NUMBERS;

/// What a process brings along when it asks to be a member.
pub(crate) struct StartupEntry {
    /// The scenes of its configuration.
    pub(crate) scenes: Vec<Arc<Scene>>,
    pub(crate) tick_ms: u32,
    /// The time of day.
    pub(crate) now: Duration,
    /// Whether it may own regions.
    pub(crate) regions: bool,
    /// Whether it can create the demo entities.
    pub(crate) populates: bool,
    /// A secret of its own, which signs resume tickets if the cluster has none yet. `None`: it needs none.
    pub(crate) tickets: Option<String>,
}

/// What was agreed on.
pub(crate) struct Agreed {
    /// The number of the process.
    pub(crate) number: u64,
    /// The cluster's time.
    pub(crate) clock: Duration,
    /// Whether this process creates the demo entities.
    pub(crate) populates: bool,
    /// The secret by which all processes of the cluster sign tickets that have no other.
    pub(crate) tickets: Option<Bytes>,
}

/// Agrees with the store on what a process must know before it is a member.
///
/// # Errors
/// [`NodeError`]; the process does not join then.
pub(crate) async fn agree(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    entry: StartupEntry,
) -> Result<Agreed, NodeError> {
    // A gateway's user may not read checkpoints: nodes say where the cluster goes on.
    let checkpoints = checkpoints.filter(|_| entry.regions);
    count_on(store, checkpoints, entry.tick_ms, entry.now).await?;
    layouts::adopt(store, checkpoints, &entry.scenes).await?;
    let tickets = match entry.tickets {
        // The first process that asks decides.
        Some(ticket) => Some(store.get_or_create(TICKETS, ticket.into()).await?.data),
        None => None,
    };
    let number = match entry.regions {
        true => take_number(store, PROCESSES).await?,
        false => GATEWAY_NUMBERS + take_number(store, GATEWAYS).await?,
    };
    let clock = clock_sync::at_join(store, entry.now).await?;
    let populates = entry.populates && populates(store, checkpoints, number).await?;
    Ok(Agreed { number, clock, populates, tickets })
}

/// An empty store continues where checkpoints end.
async fn count_on(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    tick_ms: u32,
    now: Duration,
) -> Result<(), NodeError> {
    let knows = store.get(PROCESSES).await?.is_some() && store.get(CLOCK).await?.is_some();
    let Some(checkpoints) = checkpoints.filter(|_| !knows) else { return Ok(()) };
    let past = Past::of(checkpoints, tick_ms).await?;
    let began = now.saturating_sub(past.clock).as_millis();
    // The first process that asks decides.
    store.get_or_create(PROCESSES, Bytes::from(past.nodes.to_string())).await?;
    store.get_or_create(GATEWAYS, Bytes::from(past.gateways.to_string())).await?;
    store.get_or_create(CLOCK, Bytes::from(began.to_string())).await?;
    Ok(())
}

/// Whether the process of this number is to create the demo entities of the cluster: the first one where nothing lives yet.
async fn populates(
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

/// A number that no process before has taken from this value.
async fn take_number(store: &dyn Leases, key: &'static str) -> Result<u64, NodeError> {
    loop {
        let now = store.get_or_create(key, Bytes::from_static(b"0")).await?;
        let last = number(key, &now.data, "the number of the last process, below 1048575")?;
        let next = last.saturating_add(1);
        if next >= MAX_PROCESSES {
            let found = last.to_string();
            return Err(NodeError::Value { key, found, want: "a number below 1048575" });
        }
        let data = Bytes::from(next.to_string());
        if let Put::Done { .. } = store.put_if(key, Some(now.revision), data).await? {
            return Ok(next);
        }
    }
}
