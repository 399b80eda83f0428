//! Client library for Purview servers: connect, join, walk, act, and keep the world as the server
//! shows it.
//!
//! [`Client`] is one session over WebSocket (`ws://host:port/`) or length-prefixed TCP
//! (`tcp://host:port`). It splits into a [`Sender`] and a [`Receiver`] that work side by side, and
//! [`View`] keeps who is in view, frame by frame, and refuses frames that break the protocol.
//!
//! ```no_run
//! # async fn walk() -> Result<(), Box<dyn std::error::Error>> {
//! use purview::scene::Pos;
//! use purview_client::{Client, Clock, Event, View, Walker, join_at};
//!
//! let mut client = Client::connect("ws://127.0.0.1:7000/", "token").await?;
//! let joined = client.join(join_at("meadow", Pos::ground(100, 100))).await?;
//! let (mut sender, mut receiver) = client.split();
//! let (clock, mut view) = (Clock::new(), View::of(&joined));
//! // In a scene in which moves are judged; where places are trusted say `sender.send_move(pos)`.
//! let mut walker = Walker::new(clock.now(), &joined).expect("moves are judged");
//! walker.walk(1, 0, walker.speed());
//! loop {
//!     // In every frame of the game: say what is to be said, hear what there is, show where everybody is.
//!     sender.walk(clock.now(), &mut walker).await?;
//!     if let Event::Frame(frame) = receiver.next().await? {
//!         view.apply(&frame)?;
//!         walker.frame(clock.now(), &frame);
//!     }
//!     println!("I am at {:?}", walker.shown(clock.now()));
//! }
//! # }
//! ```
//!
//! **Connections break.** [`Player`] is a session that comes back by itself, over a list of addresses, for as long
//! as the server keeps its player.
//!
//! **Moves that are judged.** [`Walker`] is the player's own entity: it is told wishes (walk there, stop), says what
//! the server must hear, and follows the server's rulings. [`View::position`] tells where others are at a time of the
//! server's, which [`Clock`] estimates.

mod clock;
mod numbers;
mod player;
mod session;
mod transport;
mod trust;
mod view;
mod walker;

pub use clock::Clock;
pub use player::{Player, Retry};
pub use session::{Client, Event, Receiver, Sender, join_at};
pub use transport::{Messages, Network, Out};
pub use trust::{Trust, TrustError};
pub use view::{Seen, View, ViewError};
pub use walker::Walker;

use purview::wire::DecodeError;
use purview::wire::client::Refused;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not one of the kinds that a server speaks.
    #[error(
        "cannot connect to {url:?}: want ws://host:port/, wss://host:port/, tcp://host:port or tls://host:port"
    )]
    BadUrl {
        /// What was given.
        url: String,
    },
    /// There is nothing to judge the server's certificate by.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The network failed; the session is over.
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
    /// The WebSocket layer failed; the session is over.
    #[error("websocket: {0}")]
    WebSocket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// The server sent bytes that are no message; nothing was changed by them.
    #[error("the server sent no valid message: {0}")]
    Decode(#[from] DecodeError),
    /// The server sent something that is not legal now.
    #[error("want {want} from the server, got {got}")]
    Unexpected {
        /// What the protocol says comes now.
        want: &'static str,
        /// What came.
        got: String,
    },
    /// Too many inputs wait for an acknowledgement; this one was not taken.
    #[error("{0} inputs wait for an acknowledgement already")]
    Behind(usize),
    /// The server refused the request; the session goes on.
    #[error("refused, {}: {}", .0.code, .0.detail)]
    Refused(Refused),
    /// The session was closed before the answer came.
    #[error("session closed{}: {detail}", match .code { Some(c) => format!(", {c}"), None => String::new() })]
    Closed {
        /// The server's reason; `None` when it gave none or one unknown to this version.
        code: Option<purview::wire::CloseCode>,
        /// For people.
        detail: String,
    },
}

impl From<tokio_tungstenite::tungstenite::Error> for ClientError {
    fn from(e: tokio_tungstenite::tungstenite::Error) -> Self {
        ClientError::WebSocket(Box::new(e))
    }
}
