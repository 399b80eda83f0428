//! Finds the sessions of all processes for the regions of this one.

use std::sync::{Arc, Weak};

use purview::actor::address::SessionAddress;
use purview::actor::directory::{Directory, FindSession};
use purview::scene::SessionId;

use crate::peer::Links;

/// From now on the regions of this process reach sessions of other processes by the links.
pub(crate) fn find_sessions(directory: &Arc<Directory>, links: &Links) {
    let finder = Finder { links: links.clone(), directory: Arc::downgrade(directory) };
    directory.find_sessions_by(Arc::new(finder));
}

/// Finds sessions of all processes for the regions of this one.
#[derive(Debug)]
struct Finder {
    links: Links,
    directory: Weak<Directory>,
}

impl FindSession for Finder {
    fn find(&self, session: SessionId) -> Option<SessionAddress> {
        self.links.session(&*self.directory.upgrade()?, session)
    }
}
