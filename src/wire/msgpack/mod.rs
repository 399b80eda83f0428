//! MessagePack: bytes to values and back, for the messages of clients and of peers.
//!
//! | module | purpose |
//! |---|---|
//! | [`fast`] | reads and writes exactly what this release writes, several times as fast as `rmp_serde` |
//! | [`validate`] | checks lengths and nesting of a client's bytes before they become values |
//! | [`envelope`] | `[type, [fields]]`, the form of every client message |
//!
//! `client` and `peer` use these modules; no module here knows a message.

pub mod envelope;
pub mod fast;
mod validate;
