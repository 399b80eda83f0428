//! What a process of a cluster stands on: a machine, or a simulator.

use std::net::SocketAddr;
use std::sync::Arc;

use purview::actor::directory::{Directory, Observer};
use purview::actor::logic::LogicFactory;
use purview::actor::player::{Passes, TokenCheck};
use tokio::sync::mpsc::UnboundedReceiver;

use super::error::ProcessError;
use super::inside::Inside;
use super::runtime::TaskRuntime;
use super::stores::certificates;
use crate::config::Config;
use crate::executor::Executor;
use crate::gateway::ClusterTokens;
use crate::logic::Hub;
use crate::node::population::Population;
use crate::peer::transport::{Dial, Offer};
use crate::peer::{Identity, Links};

/// The environment of a process: this machine or the simulator.
pub(super) enum Environment {
    /// A process among others; clients with these tokens are admitted.
    Machine(ClusterTokens, Inside),
    Alone(ClusterTokens, Inside),
    Simulated(Simulated),
}

/// The environment of a simulated process: all of it lives in the [`tokio::task::LocalSet`] in
/// which it is joined, and ends with that.
pub struct Simulated {
    /// Where its tasks run.
    pub executor: Executor,
    /// Where it is called by peers.
    pub address: SocketAddr,
    /// How it calls peers, and the calls of peers.
    pub links: (Arc<dyn Dial>, UnboundedReceiver<Offer>),
    /// What tokens let clients in.
    pub tokens: TokenCheck,
    /// What signs and checks resume tickets.
    pub passes: Arc<dyn Passes>,
    /// Sees every tick.
    pub observer: Arc<dyn Observer>,
    /// Demo entities.
    pub population: Option<Arc<dyn Population>>,
    /// The game's logic.
    pub logic: Option<Arc<dyn LogicFactory>>,
    /// The logic workers, if it is theirs.
    pub hub: Option<Arc<Hub>>,
}

pub(super) enum Clients {
    Listen(Box<ClusterTokens>),
    /// The simulator brings them.
    Brought(TokenCheck, Arc<dyn Passes>),
}

impl Environment {
    /// Whether the cluster can have no other process.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Environment::Alone(..))
    }

    /// What the program brings along.
    pub(super) fn inside(&self) -> Inside {
        match self {
            Environment::Machine(_, inside) | Environment::Alone(_, inside) => inside.clone(),
            Environment::Simulated(Simulated { logic, population, .. }) => {
                Inside { logic: logic.clone(), population: population.clone() }
            }
        }
    }

    pub(super) fn observer(&self) -> Option<Arc<dyn Observer>> {
        match self {
            Environment::Machine(..) | Environment::Alone(..) => None,
            Environment::Simulated(simulated) => Some(simulated.observer.clone()),
        }
    }

    pub(super) fn hub(&self) -> Option<Arc<Hub>> {
        match self {
            Environment::Machine(..) | Environment::Alone(..) => None,
            Environment::Simulated(simulated) => simulated.hub.clone(),
        }
    }

    /// Connects the process with others. Gives its links, where peers call it, and how clients come to it.
    pub(super) async fn connect(
        self,
        config: &Config,
        runtime: &TaskRuntime,
        (number, directory): (u64, Arc<Directory>),
    ) -> Result<(Links, SocketAddr, Clients), ProcessError> {
        let identity = Identity::new(config.cluster.name.clone(), number);
        let executor = runtime.executor().clone();
        match self {
            Environment::Machine(tokens, ..) => {
                let (addr, tls) = (config.cluster.listen, certificates(config)?);
                let started = Links::start(identity, addr, directory, executor, tls);
                let (links, listens) = runtime.executor().run(started).await?;
                Ok((links, listens, Clients::Listen(Box::new(tokens))))
            }
            Environment::Alone(tokens, _) => {
                let links = Links::alone(identity, directory, executor);
                let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
                Ok((links, nowhere, Clients::Listen(Box::new(tokens))))
            }
            Environment::Simulated(Simulated { address, links, tokens, passes, .. }) => {
                let links = Links::simulated(identity, directory, executor, links);
                Ok((links, address, Clients::Brought(tokens, passes)))
            }
        }
    }
}
