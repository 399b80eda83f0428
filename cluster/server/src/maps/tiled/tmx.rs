//! Tiled's XML: read by the `tiled` crate, behind the guard.

use std::path::Path;

use rustc_hash::FxHashMap;
use tiled::{
    ChunkData, DefaultResourceCache, LayerTileData, LayerType, Loader, Map, ObjectShape,
    Orientation, PropertyValue, TileLayer, Tileset,
};

use super::guard::Guard;
use super::sketch::{Object, Says, Sketch, Value, says};
use crate::maps::{Files, MapError, MapProblem, Wanted, caught};

type GuardedLoader<'g, 'f> = Loader<DefaultResourceCache, Guard<'g, 'f>>;

/// Draws the map in `path`.
pub(super) fn draw(
    path: &Path,
    files: &mut Files<'_>,
    wanted: Wanted,
    sketch: &mut Sketch<'_>,
) -> Result<(), MapError> {
    let map = load(path, files, wanted, |loader| loader.load_tmx_map(path))?;
    tell(&map, sketch).map_err(|problem| problem.of(path))
}

/// What the tiles of the tileset in `path` say.
pub(super) fn tileset(
    path: &Path,
    files: &mut Files<'_>,
    wanted: Wanted,
) -> Result<Vec<(u32, Says)>, MapError> {
    let tileset = load(path, files, wanted, |loader| loader.load_tsx_tileset(path))?;
    tiles_of(&tileset).map_err(|problem| problem.of(path))
}

/// Lets the parser read; says which file was wrong, if one was.
fn load<T>(
    path: &Path,
    files: &mut Files<'_>,
    wanted: Wanted,
    read: impl FnOnce(&mut GuardedLoader<'_, '_>) -> tiled::Result<T>,
) -> Result<T, MapError> {
    let guard = Guard::new(files, wanted);
    let mut loader = Loader::with_cache_and_reader(DefaultResourceCache::new(), guard);
    let read = caught(|| Ok(read(&mut loader)));
    match (read, loader.reader_mut().refused.take()) {
        (_, Some((file, problem))) => Err(problem.of(&file)),
        (Ok(Ok(map)), None) => Ok(map),
        (Ok(Err(e)), None) => Err(MapProblem::Syntax(e.to_string()).of(path)),
        (Err(problem), None) => Err(problem.of(path)),
    }
}

fn tell(map: &Map, sketch: &mut Sketch<'_>) -> Result<(), MapProblem> {
    let orientation = match map.orientation {
        Orientation::Orthogonal => "orthogonal",
        Orientation::Isometric => "isometric",
        Orientation::Staggered => "staggered",
        Orientation::Hexagonal => "hexagonal",
        Orientation::Oblique => "oblique",
    };
    sketch.lie(orientation, map.tile_width.into(), map.tile_height.into())?;
    let mut tiles = FxHashMap::default();
    for (ix, tileset) in map.tilesets().iter().enumerate() {
        tiles.extend(tiles_of(tileset)?.into_iter().map(|(id, says)| ((ix, id), says)));
    }
    tell_layers(map.layers(), &tiles, sketch)
}

/// What the tiles of a tileset say, save those that say nothing.
fn tiles_of(tileset: &Tileset) -> Result<Vec<(u32, Says)>, MapProblem> {
    let mut all = Vec::new();
    for (id, tile) in tileset.tiles() {
        let of = || format!("tile {id} of tileset {:?}", tileset.name);
        let own = says_of(&of, &tile.properties)?;
        if own != Says::NOTHING {
            all.push((id, own));
        }
    }
    Ok(all)
}

fn says_of(of: &dyn Fn() -> String, properties: &tiled::Properties) -> Result<Says, MapProblem> {
    if properties.is_empty() {
        return Ok(Says::NOTHING);
    }
    says(&of(), properties.iter().map(|(name, value)| (name, value_of(value))))
}

fn value_of(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::BoolValue(b) => Value::Bool(*b),
        PropertyValue::IntValue(n) => Value::Number(f64::from(*n)),
        PropertyValue::FloatValue(n) => Value::Number(f64::from(*n)),
        PropertyValue::StringValue(text) => Value::Text(text.clone()),
        PropertyValue::ColorValue(_) => Value::Other("a colour"),
        PropertyValue::FileValue(_) => Value::Other("a file"),
        PropertyValue::ObjectValue(_) => Value::Other("an object"),
        PropertyValue::ListValue(_) => Value::Other("a list"),
        PropertyValue::ClassValue { .. } => Value::Other("a class"),
    }
}

/// What the tiles say that say anything, by the place of their tileset and their own.
type Tiles = FxHashMap<(usize, u32), Says>;

/// Layers from the bottom to the top, those of groups in their places.
fn tell_layers<'m>(
    layers: impl Iterator<Item = tiled::Layer<'m>>,
    tiles: &Tiles,
    sketch: &mut Sketch<'_>,
) -> Result<(), MapProblem> {
    let mut layers: Vec<_> = layers.collect();
    layers.reverse();
    while let Some(layer) = layers.pop() {
        match layer.layer_type() {
            LayerType::Tiles(content) => tell_tiles(&layer, content, tiles, sketch)?,
            LayerType::Objects(content) => {
                for object in content.objects() {
                    tell_object(&object, [&layer.name, &layer.user_type], sketch)?;
                }
            }
            LayerType::Group(group) => {
                let within: Vec<_> = group.layers().collect();
                layers.extend(within.into_iter().rev());
            }
            LayerType::Image(_) => {}
        }
    }
    Ok(())
}

fn tell_tiles(
    layer: &tiled::Layer<'_>,
    content: TileLayer<'_>,
    tiles: &Tiles,
    sketch: &mut Sketch<'_>,
) -> Result<(), MapProblem> {
    let of = || format!("layer {:?}", layer.name);
    let layer = sketch.tile_layer(&layer.name, says_of(&of, &layer.properties)?);
    let mut tell = |x, z, tile: Option<&LayerTileData>| {
        let Some(tile) = tile else { return Ok(()) };
        let own = match tiles.is_empty() {
            true => None,
            false => tiles.get(&(tile.tileset_index(), tile.id())),
        };
        sketch.tile(&layer, x, z, own.copied().unwrap_or(Says::NOTHING))
    };
    match content {
        TileLayer::Finite(tiles) => {
            let (width, depth) = (tiles.width() as i32, tiles.height() as i32);
            for (x, z) in places(width, depth) {
                tell(x, z, tiles.get_tile_data(x, z))?;
            }
        }
        TileLayer::Infinite(tiles) => {
            let (width, depth) = (ChunkData::WIDTH as i32, ChunkData::HEIGHT as i32);
            let mut chunks: Vec<_> = tiles.chunk_data().collect();
            chunks.sort_unstable_by_key(|(at, _)| *at);
            for ((cx, cz), chunk) in chunks {
                for (x, z) in places(width, depth) {
                    tell(cx * width + x, cz * depth + z, chunk.get_tile_data(x, z))?;
                }
            }
        }
    }
    Ok(())
}

/// Row by row.
fn places(width: i32, depth: i32) -> impl Iterator<Item = (i32, i32)> {
    (0..depth).flat_map(move |z| (0..width).map(move |x| (x, z)))
}

fn tell_object(
    object: &tiled::Object<'_>,
    layer: [&str; 2],
    sketch: &mut Sketch<'_>,
) -> Result<(), MapProblem> {
    let rect = match &object.shape {
        ObjectShape::Rect { width, height } => {
            Some([object.x, object.y, *width, *height].map(f64::from))
        }
        _ => None,
    };
    sketch.object(&Object {
        id: object.id(),
        name: &object.name,
        class: &object.user_type,
        layer,
        rect,
        rotation: object.rotation.into(),
        is_tile: object.tile_data().is_some(),
        open: object.properties.get("open").map(value_of),
    })
}
