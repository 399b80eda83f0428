//! Movement end to end, in virtual time: a client and a server with a bad network between them. Honest
//! players are never refused and never disagree with the server by a centimetre; cheaters gain
//! next to nothing.

#[path = "movement/cheat.rs"]
mod cheat;
#[path = "movement/honest.rs"]
mod honest;
#[path = "movement/link.rs"]
mod link;
#[path = "movement/server.rs"]
mod server;
mod support;
