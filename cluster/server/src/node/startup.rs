//! What a process agrees on with the store before it is a member: which cluster this is ([`identity`]); its number, and
//! where epochs and time go on ([`agree`], which a process must call once).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::scene::{Epoch, Scene};

use super::clock_sync::{self, CLOCK};
use super::error::NodeError;
use super::layouts;
use super::previous_run::PreviousRun;
use super::values::number;
use crate::storage::leases::names::GATEWAY_NUMBERS;
use crate::storage::{Checkpoints, ClusterId, LeaseError, Leases, Put, Value};

/// The value that counts the nodes that ever were.
pub(crate) const PROCESSES: &str = "processes";

/// The value that counts the gateways that ever were.
const GATEWAYS: &str = "gateway_processes";

/// The value that says which process creates the demo entities of a new cluster.
const POPULATION: &str = "population";

/// The value with which the cluster signs resume tickets where the keys of tokens are public alone.
const TICKETS: &str = "tickets";

const CLUSTER_ID: &str = "cluster_id";

/// Most nodes, and most gateways, that a cluster may ever have: see
/// [`purview::actor::directory::Process::number`].
const MAX_PROCESSES: u64 = GATEWAY_NUMBERS / 2;

/// What a process brings along when it asks to be a member.
pub(crate) struct StartupEntry {
    pub(crate) scenes: Vec<Arc<Scene>>,
    pub(crate) tick_ms: u32,
    pub(crate) now: Duration,
    pub(crate) regions: bool,
    /// Whether it can create the demo entities.
    pub(crate) populates: bool,
}

pub(crate) struct Agreed {
    pub(crate) number: u64,
    pub(crate) clock: Duration,
    /// Whether this process creates the demo entities.
    pub(crate) populates: bool,
}

/// Agrees with the store on which cluster this is, and on the secret by which its processes sign tickets that have no
/// other. Those given here count if the cluster has none yet.
///
/// # Errors
/// [`NodeError`]; the process does not join then.
pub(crate) async fn identity(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    (fresh, secret): (ClusterId, String),
) -> Result<(ClusterId, Bytes), NodeError> {
    let read = |kept: Value| {
        ClusterId::read(&kept.data).ok_or_else(|| NodeError::Value {
            key: CLUSTER_ID,
            found: String::from_utf8_lossy(&kept.data).into_owned(),
            want: "32 hexadecimal digits, or nothing, which gives the cluster a new id",
        })
    };
    let known = store.get(CLUSTER_ID).await?.map(read).transpose()?;
    let mut id = known.unwrap_or(fresh);
    if let Some(checkpoints) = checkpoints {
        // They have the players: the id is theirs, too, so that it outlives the data of the store.
        id = checkpoints.cluster_id(id).await?;
    }
    // The first process that asks decides.
    let cluster = read(store.get_or_create(CLUSTER_ID, id.to_string().into()).await?)?;
    Ok((cluster, store.get_or_create(TICKETS, secret.into()).await?.data))
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
    let number = match entry.regions {
        true => take_number(store, PROCESSES).await?,
        false => GATEWAY_NUMBERS + take_number(store, GATEWAYS).await?,
    };
    let clock = clock_sync::at_join(store, entry.now).await?;
    let populates = entry.populates && populates(store, checkpoints, number).await?;
    Ok(Agreed { number, clock, populates })
}

/// Whether a node has begun the cluster: only nodes know where an empty store continues.
pub(crate) async fn has_begun(store: &dyn Leases) -> Result<(), LeaseError> {
    // The last one that `count_on` creates.
    store.get(CLOCK).await?.map(drop).ok_or(LeaseError::NotBegun)
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
    let previous = PreviousRun::of(checkpoints, tick_ms).await?;
    let began = now.saturating_sub(previous.clock).as_millis();
    // The first process that asks decides.
    store.get_or_create(PROCESSES, Bytes::from(previous.nodes.to_string())).await?;
    store.get_or_create(GATEWAYS, Bytes::from(previous.gateways.to_string())).await?;
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
        if let Put::Done(_) = store.put_if(key, Some(now.revision), data).await? {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::checkpoints::redb::Redb;
    use crate::storage::leases::embedded::Embedded;

    fn fresh(n: u8) -> (ClusterId, String) {
        (ClusterId::new([n; 16]), n.to_string())
    }

    #[tokio::test]
    async fn the_first_process_decides_which_cluster_this_is_and_every_other_store_has_another() {
        let (store, other) = (Embedded::new(Epoch(0)), Embedded::new(Epoch(0)));
        let first = identity(&store, None, fresh(1)).await.unwrap();
        assert_eq!(first, (fresh(1).0, "1".into()));
        assert_eq!(identity(&store.another(), None, fresh(2)).await.unwrap(), first);
        assert_ne!(identity(&other, None, fresh(3)).await.unwrap().0, first.0);
    }

    #[tokio::test]
    async fn checkpoints_remember_which_cluster_they_are_of_when_the_lease_store_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Redb::open(folder.path()).unwrap();
        let known = Some(&checkpoints as &dyn Checkpoints);
        let store = Embedded::new(Epoch(0));
        let before = identity(&store, None, fresh(1)).await.unwrap().0;
        // Checkpoints come later: they get the id that the cluster has.
        assert_eq!(identity(&store, known, fresh(2)).await.unwrap().0, before);
        let after = identity(&Embedded::new(Epoch(0)), known, fresh(3)).await.unwrap().0;
        assert_eq!(after, before);
    }

    /// A restored cluster stood still for as long as it had run: a gateway had begun its clock anew.
    #[tokio::test]
    async fn a_gateway_waits_until_a_node_has_begun_the_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Redb::open(folder.path()).unwrap();
        let store = Embedded::new(Epoch(0));
        let found = has_begun(&store).await;
        assert!(matches!(found, Err(LeaseError::NotBegun)), "{found:?}");
        assert!(store.get(CLOCK).await.unwrap().is_none());
        let entry = |regions| StartupEntry {
            scenes: Vec::new(),
            tick_ms: 100,
            now: Duration::from_secs(1_000),
            regions,
            populates: false,
        };
        let known = Some(&checkpoints as &dyn Checkpoints);
        let node = agree(&store, known, entry(true)).await.unwrap();
        has_begun(&store).await.unwrap();
        let gateway = agree(&store, known, entry(false)).await.unwrap();
        assert_eq!((node.number, gateway.number), (1, GATEWAY_NUMBERS + 1));
    }

    #[tokio::test]
    async fn an_id_that_is_none_stops_the_start_and_says_what_would_be_one() {
        let store = Embedded::new(Epoch(0));
        store.get_or_create(CLUSTER_ID, Bytes::from_static(b"seven")).await.unwrap();
        let error = identity(&store, None, fresh(1)).await.unwrap_err().to_string();
        assert!(error.contains("32 hexadecimal digits"), "{error}");
    }
}
