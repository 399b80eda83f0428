//! The way of this process's regions to other processes: to their sessions, and to their calls.

use std::sync::{Arc, Weak};

use purview::actor::address::SessionAddress;
use purview::actor::directory::{Directory, FindSession, TellCaller};
use purview::scene::SessionId;
use purview::scene::messages::CommandResult;

use crate::peer::Links;

/// From now on the regions of this process reach sessions of other processes by the links.
pub(crate) fn find_sessions(directory: &Arc<Directory>, links: &Links) {
    let finder = Finder { links: links.clone(), directory: Arc::downgrade(directory) };
    directory.find_sessions_by(Arc::new(finder));
    directory.tell_callers_by(Arc::new(Caller(links.clone())));
}

#[derive(Debug)]
struct Finder {
    links: Links,
    directory: Weak<Directory>,
}

/// Carries results of commands to the processes that have given them.
#[derive(Debug)]
struct Caller(Links);

impl TellCaller for Caller {
    fn tell(&self, process: u64, ended: CommandResult) {
        self.0.tell_result(process, ended);
    }
}

impl FindSession for Finder {
    fn find(&self, session: SessionId) -> Option<SessionAddress> {
        self.links.session(&*self.directory.upgrade()?, session)
    }
}
