//! What a process brings along, beside its configuration.

use std::sync::Arc;

use purview::actor::logic::LogicFactory;

use crate::node::population::Population;

/// What regions have inside the process.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// The game's logic.
    pub logic: Option<Arc<dyn LogicFactory>>,
    /// Entities that the process brings along, where `server.demo` is set.
    pub population: Option<Arc<dyn Population>>,
}
