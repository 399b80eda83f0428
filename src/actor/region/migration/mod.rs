//! A region's migration as its actor sees it: it is asked to leave ([`depart`]), and once the region has
//! left, messages follow it (`forwarder`).

pub mod depart;
pub(super) mod forwarder;
