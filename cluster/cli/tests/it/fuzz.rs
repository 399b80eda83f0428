//! A short, repeatable run of the fuzz targets for messages between peers; `tests/fuzz_smoke.rs` has the others.

#[path = "../../../../tests/mutations/mod.rs"]
mod mutations;

use purview_server::peer::fuzzing;

const MUTATIONS: usize = 200_000;

#[test]
fn channel_frames() {
    let taken = mutations::run("channel_frame", MUTATIONS, fuzzing::channel_frame);
    assert!(taken > MUTATIONS / 50, "only {taken} frames were taken");
}

#[test]
fn hellos() {
    let taken = mutations::run("hello", MUTATIONS, fuzzing::hello);
    assert!(taken > MUTATIONS / 50, "only {taken} hellos were read");
}
