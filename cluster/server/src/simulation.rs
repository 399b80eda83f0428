//! What a simulator takes the place of: the network between processes, clients' connections, and the
//! stores. Everything else of a simulated process is the server as it is in production.

pub use crate::process::Simulated;

/// Clients' connections, each a pair of channels instead of a socket.
pub mod clients {
    pub use crate::gateway::TestListener;
    pub use crate::gateway::connection::{Broken, Inbound, Outbound, SocketEvent};
}

/// Logic workers, each a pair of channels instead of a connection.
pub mod workers {
    pub use crate::logic::{Hub, Limits, Responses, Workers, proto};
}

pub mod peers {
    pub use crate::peer::hello::{Hello, Welcome};
    pub use crate::peer::transport::{ByteStream, Call, Dial, DialError, Frames, Offer};
}

/// A store of leases, below the rules that all stores have in common.
pub mod leases {
    pub use crate::storage::leases::store::{
        FOLLOWER_QUEUE, Follower, HeldLease, Listing, Store, StoreEvent, Swap, Swapped,
    };
}

/// The checks that every store of checkpoints makes before it keeps anything.
pub mod checkpoints {
    pub use crate::storage::checkpoints::whole::check_layout;
    pub use crate::storage::checkpoints::{
        check_claim, check_player, check_players, check_state, newest_of_each,
    };
}
