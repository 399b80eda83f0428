//! Client library for Purview servers: connect, join, walk, act, and keep the view that the server
//! shows.
//!
//! [`Client`] is one session over WebSocket (`ws://host:port/`) or length-prefixed TCP
//! (`tcp://host:port`). It splits into a [`Sender`] and a [`Receiver`] for concurrent use. [`View`]
//! applies frames to the set of entities in view and refuses frames that break the protocol.
//!
//! ```no_run
//! # async fn walk() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use purview_client::{Client, Clock, Event, View, Walker, join};
//!
//! let mut client = Client::connect("ws://127.0.0.1:7711/", "token").await?;
//! let joined = client.join(join("meadow")).await?;
//! let (mut sender, mut receiver) = client.split();
//! let (mut clock, mut view) = (Clock::new(), View::of(&joined));
//! // For scenes with moves = "judged"; with "trusted" call `sender.send_move(pos)`.
//! let mut walker = Walker::new(clock.now(), &joined).expect("moves are judged");
//! walker.walk(1, 0, walker.speed());
//! let mut draw = tokio::time::interval(Duration::from_millis(50));
//! let mut ping = tokio::time::interval(Duration::from_secs(5));
//! loop {
//!     tokio::select! {
//!         _ = draw.tick() => {
//!             sender.walk(clock.now(), &mut walker).await?;
//!             println!("I am at {:?}", walker.shown(clock.now()));
//!         }
//!         // A session that says nothing for 30 s is closed.
//!         _ = ping.tick() => sender.ping(clock.nonce()).await?,
//!         event = receiver.next() => match event? {
//!             Event::Frame(frame) => {
//!                 view.apply(&frame)?;
//!                 walker.frame(clock.now(), &frame);
//!             }
//!             Event::Pong(pong) => clock.pong(&pong),
//!             _ => {}
//!         },
//!     }
//! }
//! # }
//! ```
//!
//! **Connections break.** [`Player`] is a session that reconnects by itself, over a list of
//! addresses, for as long as the server keeps its player.
//!
//! **Judged movement.** [`Walker`] is the player's own entity: the game tells it wishes (walk
//! there, stop); it produces the move commands that the server needs and follows the server's
//! corrections. [`View::position`] returns positions of other entities at a server time, which
//! [`Clock`] estimates.
//!
//! **Smooth display.** [`Display`] says where to draw the entities in view in each picture, and
//! [`Cells`] which static content to have loaded around the player.

mod clock;
mod crowd;
mod display;
mod inputs;
mod login;
mod numbers;
mod occupied;
mod player;
mod session;
mod transport;
mod trust;
mod view;
mod walker;

pub use clock::Clock;
pub use crowd::CrowdView;
pub use display::{
    Advance, Cell, CellChange, Cells, CellsError, Display, DisplayClock, Motion, SNAP_CM,
    SPREAD_MS, Sample, Track,
};
pub use login::Login;
pub use player::{Player, Retry};
pub use session::{Client, Event, Receiver, Sender, join, join_at};
pub use transport::{Messages, Network, Out};
pub use trust::{Trust, TrustError};
pub use view::{Seen, View, ViewError};
pub use walker::Walker;

use purview::wire::DecodeError;
use purview::wire::client::Refused;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not of a supported kind.
    #[error(
        "cannot connect to {url:?}: want ws://host:port/, wss://host:port/, tcp://host:port or tls://host:port"
    )]
    BadUrl {
        /// The URL given.
        url: String,
    },
    /// There are no certificate authorities to verify the server with.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The network failed; the session is over.
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
    /// The WebSocket layer failed; the session is over.
    #[error("websocket: {0}")]
    WebSocket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// The server sent bytes that are not a message; they changed nothing.
    #[error("the server sent an invalid message: {0}")]
    Decode(#[from] DecodeError),
    /// The server sent a message that is not legal now.
    #[error("want {want} from the server, got {got}")]
    Unexpected {
        /// What the protocol requires now.
        want: &'static str,
        /// The message that arrived.
        got: String,
    },
    /// Too many inputs wait for an acknowledgement; this one was not accepted.
    #[error("{0} inputs already wait for an acknowledgement; try again after the next frame")]
    Behind(usize),
    /// The server refused the request; the session goes on.
    #[error("refused, {}: {}", .0.code, .0.detail)]
    Refused(Refused),
    /// The session was closed before the answer arrived.
    #[error("session closed{}: {detail}", match .code { Some(c) => format!(", {c}"), None => String::new() })]
    Closed {
        /// The server's reason; `None` if it gave none, or one unknown to this version.
        code: Option<purview::wire::CloseCode>,
        /// Text for people.
        detail: String,
    },
}

impl From<tokio_tungstenite::tungstenite::Error> for ClientError {
    fn from(e: tokio_tungstenite::tungstenite::Error) -> Self {
        ClientError::WebSocket(Box::new(e))
    }
}
