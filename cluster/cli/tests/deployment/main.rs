//! Tests of what `deploy/` has, on real engines: the image and the compose file on a Docker Engine of their own, the units
//! in a booted systemd, the chart in Helm.
//!
//! Where the machine lacks one of these, a test says so in a line that begins with `SKIPPED` and its name, and passes.
//! The long rehearsals are ignored here; the commands in `deploy/rehearse` run them.

mod chart;
mod compose;
mod engine;
mod facts;
mod images;
mod missing;
mod rehearsals;
mod release;
mod schema;
mod units;
mod world;
