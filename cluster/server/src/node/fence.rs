//! The lease as regions ask for it.

use std::sync::OnceLock;

use purview::actor::directory::Fence;
use purview::clock;
use purview::scene::mutants::{self, Mutant};

use crate::storage::Authority;

/// Regions of a process may act while its lease's authority holds; before there is a lease, never.
#[derive(Debug, Default)]
pub(crate) struct LeaseFence(OnceLock<Authority>);

impl LeaseFence {
    pub(crate) fn hold(&self, authority: Authority) {
        if self.0.set(authority).is_err() {
            tracing::error!("a process took two leases");
        }
    }
}

impl Fence for LeaseFence {
    fn may_act(&self) -> bool {
        let holds = self.0.get().is_some_and(|authority| authority.holds(clock::now()));
        holds || mutants::has(Mutant::NoFence)
    }
}
