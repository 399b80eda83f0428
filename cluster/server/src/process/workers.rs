//! The logic of a process: rules that it brings along, or those of workers.

use std::sync::Arc;

use purview::actor::directory::Directory;
use purview::actor::logic::LogicFactory;

use crate::config::Config;
use crate::logic::{Hub, Limits, LogicError, LogicService, Workers};
use crate::peer::Links;

/// What makes the logic of each region, and the hub of workers if they bring the rules.
pub(super) type Logic = (Option<Arc<Hub>>, Option<Arc<dyn LogicFactory>>);

/// The logic of the configuration, or the rules `inside` the process.
///
/// # Errors
/// Both are there.
pub(super) fn logic(
    config: &Config,
    inside: Option<Arc<dyn LogicFactory>>,
) -> Result<Logic, LogicError> {
    match (config.logic.listen, inside) {
        (Some(_), Some(_)) => Err(LogicError::Inside),
        (None, inside) => Ok((None, inside)),
        (Some(_), None) => {
            let hub = Arc::new(Hub::new(Limits::from(&config.logic)));
            let factory: Arc<dyn LogicFactory> = Arc::new(Workers(hub.clone()));
            Ok((Some(hub), Some(factory)))
        }
    }
}

/// Lets workers in, if there is a hub for them and the process has regions; they serve regions of other processes over
/// the links. A gateway lets no workers in: it would speak for them, without their token.
///
/// # Errors
/// They cannot connect.
pub(super) async fn start(
    config: &Config,
    hub: Option<Arc<Hub>>,
    (directory, links): (&Arc<Directory>, Option<&Links>),
    has_regions: bool,
) -> Result<Option<LogicService>, LogicError> {
    let Some((hub, addr)) = hub.zip(config.logic.listen) else { return Ok(None) };
    hub.set_directory(directory);
    links.into_iter().for_each(|links| hub.connect(links));
    if !has_regions {
        return LogicService::follow(hub).map(Some);
    }
    LogicService::start(&config.logic, addr, hub).await.map(Some)
}
