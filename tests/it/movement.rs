//! Movement end to end in virtual time: a client and a server with a bad network between them.
//! Honest players are never refused and never differ from the server by a centimetre; cheaters gain
//! next to nothing.

mod cheat;
mod honest;
mod link;
mod server;
