//! Valid and invalid maps: both forms of Tiled in all encodings, and pictures.

#[path = "../../../tests/allocations/mod.rs"]
mod allocations;
#[path = "terrain/bad.rs"]
mod bad;
#[path = "terrain/forms.rs"]
mod forms;
// The program that draws the map of `deploy/scenes/keep.toml`.
#[path = "../examples/keep.rs"]
#[allow(dead_code)]
mod keep;
#[path = "terrain/make.rs"]
mod make;
#[path = "terrain/pictures.rs"]
mod pictures;
#[path = "terrain/positions.rs"]
mod positions;
#[path = "terrain/smoke.rs"]
mod smoke;
