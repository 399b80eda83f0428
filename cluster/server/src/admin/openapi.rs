//! The description of the API: OpenAPI 3.1, written by hand. Tests compare it with the routes and
//! with real answers.

pub const DOCUMENT: &str = include_str!("openapi.json");
