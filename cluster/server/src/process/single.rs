//! A server that is a single process, on the embedded engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use purview::actor::directory::{Directory, Observer};
use purview::actor::logic::LogicFactory;
use purview::actor::region::{Clock, RegionRef, start_regions};

use super::arbiters::Arbiters;
use super::console;
use super::error::ServerError;
use super::reach::Reach;
use super::workers;
use crate::admin::Console;
use crate::config::Config;
use crate::gateway::token::{random_cluster, random_secret};
use crate::gateway::{Gateway, GatewayConfig, Tokens};
use crate::logic::LogicService;
use crate::logins::{Duplicate, Subjects};
use crate::node::hosted::{Hosted, RegionHandle};
use crate::storage::ClusterId;
use crate::storage::checkpoints::player_records::RecordRules;
use crate::storage::restore::{Persistence, Start};
use crate::workers::TickThreads;

/// What regions have inside the process.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// The game's logic.
    pub logic: Option<Arc<dyn LogicFactory>>,
    /// Sees every tick.
    pub observer: Option<Arc<dyn Observer>>,
}

/// A running server. It lives inside an actix system.
#[derive(Debug)]
pub struct Server {
    reach: Reach,
    /// Set when it stops.
    ending: Arc<AtomicBool>,
    gateway: Gateway,
    console: Option<Console>,
    persistence: Option<Persistence>,
    workers: Option<LogicService>,
    arbiters: Arbiters,
}

impl Server {
    /// Starts everything; to be called inside a running actix system.
    ///
    /// # Errors
    /// What cannot be started; what was started before it is stopped again.
    pub async fn start(config: &Config, tokens: Tokens) -> Result<Server, ServerError> {
        Server::start_with(config, tokens, None).await
    }

    /// The same with the game's logic in every region.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_with(
        config: &Config,
        tokens: Tokens,
        logic: Option<Arc<dyn LogicFactory>>,
    ) -> Result<Server, ServerError> {
        Server::start_observed(config, tokens, Inside { logic, observer: None }).await
    }

    /// The same with an observer of every region's ticks.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_observed(
        config: &Config,
        tokens: Tokens,
        inside: Inside,
    ) -> Result<Server, ServerError> {
        let (hub, logic) = workers::logic(config, inside.logic)?;
        let inside = Inside { logic, ..inside };
        let fresh = random_cluster()?;
        let (directory, persistence, start) = world(config, inside, fresh).await?;
        let workers = workers::start(config, hub, (&directory, None), true).await?;
        // Without a folder players end with the process, and with them the cluster.
        let cluster = persistence.as_ref().map_or(fresh, Persistence::cluster);
        let tokens = tokens.in_cluster(cluster, random_secret()?.as_bytes());
        let arbiters = Arbiters::start(config.server.arbiters);
        let handles = arbiters.handles();
        let regions = match start {
            Some(start) => start.run(&directory, &handles),
            None => start_regions(&directory, &handles, Clock::Real),
        };
        persistence.iter().for_each(Persistence::keep);
        let hosted = hosted(&regions);
        let gateway = GatewayConfig::from(config);
        let gateway = Gateway::start(gateway, directory.clone(), tokens, handles).await?;
        let ending = Arc::new(AtomicBool::new(false));
        let console = match config.console.listen {
            Some(addr) => {
                let ready = console::single_readiness(hosted.clone(), ending.clone());
                let regions = (&directory, hosted.clone());
                let clients = (&gateway, workers.as_ref());
                let state = console::single(regions, clients, persistence.as_ref(), ready);
                Some(Console::start(state, addr, &config.console)?)
            }
            None => None,
        };
        let reach = Reach {
            ws: gateway.ws_addr(),
            tcp: gateway.tcp_addr(),
            secure: gateway.is_secure(),
            console: console.as_ref().map(Console::addr),
            regions,
            hosted,
            directory,
            gateway: gateway.metrics().clone(),
            logic: workers.as_ref().and_then(LogicService::addr),
        };
        Ok(Server { reach, ending, gateway, console, persistence, workers, arbiters })
    }

    /// Where it can be reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Closes every session, then stops everything, and keeps how it was where that is configured.
    pub async fn stop(self) {
        self.ending.store(true, Ordering::Relaxed);
        self.gateway.stop().await;
        if let Some(workers) = self.workers {
            workers.stop().await;
        }
        if let Some(console) = self.console {
            console.stop().await;
        }
        if let Some(persistence) = &self.persistence {
            persistence.end(&self.reach.regions).await;
        }
        self.arbiters.stop();
    }
}

/// The scenes and their clock, what an earlier process kept, and where its regions go on.
async fn world(
    config: &Config,
    Inside { logic, observer }: Inside,
    fresh: ClusterId,
) -> Result<(Arc<Directory>, Option<Persistence>, Option<Start>), ServerError> {
    let (scenes, grace_period) = (config.build_scenes()?, config.gateway.grace_period);
    let (persistence, start) = match &config.server.data_dir {
        Some(path) => {
            let rules = RecordRules {
                every: config.server.checkpoint,
                wait: config.gateway.store_wait,
                exclusive: config.token.duplicate != Some(Duplicate::Allow),
                fence: None,
            };
            let opened = Persistence::open((path, fresh), &scenes, rules, grace_period).await?;
            (Some(opened.0), Some(opened.1))
        }
        None => (None, None),
    };
    let directory = match &start {
        Some(start) => Directory::of_process(scenes, start.process.clone()),
        None => Directory::new(scenes),
    };
    let subjects = Subjects::new(config.token.duplicate.unwrap_or_default());
    let directory = directory.with_grace_period(grace_period).with_logins(Arc::new(subjects));
    let directory = directory.with_workers(TickThreads::shared(config.server.region_threads));
    let directory = match logic {
        Some(logic) => directory.with_logic(logic),
        None => directory,
    };
    let directory = match observer {
        Some(observer) => directory.with_observer(observer),
        None => directory,
    };
    let directory = match &persistence {
        Some(persistence) => directory.with_player_store(Arc::new(persistence.players().clone())),
        None => directory,
    };
    Ok((Arc::new(directory), persistence, start))
}

fn hosted(regions: &[RegionRef]) -> Hosted {
    let handles = regions.iter().map(|r| RegionHandle {
        scene: r.scene,
        region: r.region,
        inspect: r.addr.clone().recipient(),
        inspect_entity: r.addr.clone().recipient(),
        metrics: r.metrics.clone(),
    });
    handles.collect::<Vec<_>>().into()
}
