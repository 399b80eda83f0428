//! Maps made with Tiled (<https://www.mapeditor.org>), in XML and in JSON.

mod data;
mod model;
mod reading;
mod sketch;
mod tmx;
mod xml;

use std::path::Path;

use purview::scene::terrain::Draft;

use super::{Files, MapError, MapObject, MapSpec, Wanted};
use sketch::Sketch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Xml,
    Json,
}

pub(super) fn draw(
    path: &Path,
    form: Form,
    map: &MapSpec,
    wanted: Wanted,
    files: &mut Files<'_>,
) -> Result<(Draft, Vec<MapObject>), MapError> {
    let mut sketch = Sketch::new(map, wanted).map_err(|p| p.of(path))?;
    reading::draw((path, form), files, wanted, &mut sketch)?;
    sketch.finish().map_err(|p| p.of(path))
}
