//! The description of all that is served, for machines: OpenAPI 3.1, written by hand; tests hold it against
//! the routes and against real answers.

/// The document, JSON.
pub const DOCUMENT: &str = include_str!("openapi.json");
