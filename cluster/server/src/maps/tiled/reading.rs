//! Reads a Tiled map and the files that it names, in either form, and tells the sketch its tiles and
//! objects. A file is XML or JSON by its name, whatever form the map has.

use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;

use super::Form;
use super::data::{Encoding, MAX_CELLS, csv, unpack};
use super::model::{
    Chunk, Data, Layer, Map, Object, Property, Template, Tile, Tileset, TilesetRef,
};
use super::sketch::{self, Says, Sketch, TileLayer, says};
use super::tmx;
use crate::maps::{DataProblem, Files, MapError, MapProblem, SyntaxProblem, Wanted};

/// Farthest from the origin that a chunk may lie, tiles.
const MAX_CHUNK_AT: i64 = 1 << 24;

/// Longest side of a chunk, tiles; Tiled writes 16.
const MAX_CHUNK_SIDE: i64 = 4_096;

/// Bits of a tile's number that say how it is turned. It blocks all the same.
const FLIPS: u32 = 0xf000_0000;

pub(super) fn draw(
    (path, form): (&Path, Form),
    files: &mut Files<'_>,
    wanted: Wanted,
    sketch: &mut Sketch<'_>,
) -> Result<(), MapError> {
    let map: Map = read((path, form), files, tmx::map)?;
    if map.kind.as_deref().is_some_and(|kind| kind != "map") {
        let found = map.kind.unwrap_or_default();
        return Err(MapProblem::Kind { found, wanted: "map" }.of(path));
    }
    let size = (map.width, map.height);
    if !map.infinite {
        wanted.check(size).map_err(|p| p.of(path))?;
    }
    sketch.lie(&map.orientation, map.tilewidth, map.tileheight).map_err(|p| p.of(path))?;
    let tiles = tilesets(map.tilesets, (path, form), files)?;
    let mut reading =
        Reading { path, form, files, tiles, size, cells: 0, templates: FxHashMap::default() };
    let mut layers = map.layers;
    layers.reverse();
    while let Some(layer) = layers.pop() {
        match layer.kind.as_str() {
            "tilelayer" => reading.tiles(layer, map.infinite, sketch).map_err(|p| p.of(path))?,
            "objectgroup" => reading.objects(&layer, sketch)?,
            "group" => layers.extend(layer.layers.into_iter().rev()),
            _ => {}
        }
    }
    Ok(())
}

/// Reads a file; `xml` reads its XML.
fn read<T: DeserializeOwned>(
    (path, form): (&Path, Form),
    files: &mut Files<'_>,
    xml: impl FnOnce(&[u8]) -> Result<T, MapProblem>,
) -> Result<T, MapError> {
    let bytes = files.read(path).map_err(|p| p.of(path))?;
    let read = match form {
        Form::Xml => xml(&bytes),
        Form::Json => serde_json::from_slice(&bytes).map_err(json_problem),
    };
    read.map_err(|problem| problem.of(path))
}

fn json_problem(error: serde_json::Error) -> MapProblem {
    if error.is_eof() {
        return MapProblem::CutOff("its JSON".into());
    }
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // The library's text ends with the position, too.
    let place = format!(" at line {line} column {column}");
    let text = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    MapProblem::Syntax { problem: SyntaxProblem::Json(text), line, column }
}

/// The form of a file that a map of form `by` names.
fn form_of(path: &Path, by: Form) -> Form {
    let is = |endings: &[&str]| endings.iter().any(|ending| ends_in(path, ending));
    match () {
        () if is(&["tsx", "tx"]) => Form::Xml,
        () if is(&["tsj", "tj", "json"]) => Form::Json,
        () => by,
    }
}

/// Where a file that `by` names lies: in the folder of `by`, or below.
fn sibling(by: &Path, name: &str) -> Result<PathBuf, MapError> {
    let outside = || MapProblem::Outside(name.into()).of(by);
    let mut below = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => below.push(part),
            Component::CurDir => {}
            Component::ParentDir if below.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside());
            }
        }
    }
    match below.as_os_str().is_empty() {
        true => Err(outside()),
        false => Ok(by.parent().unwrap_or(Path::new("")).join(below)),
    }
}

/// Whether a path has this extension, in upper or lower case.
fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

/// What the tiles of all tilesets say, by their numbers in this map.
fn tilesets(
    refs: Vec<TilesetRef>,
    (path, form): (&Path, Form),
    files: &mut Files<'_>,
) -> Result<FxHashMap<u32, Says>, MapError> {
    let first_gids: Vec<u32> = refs.iter().map(|r| r.firstgid).collect();
    let mut all = FxHashMap::default();
    for r in refs {
        let own = match &r.source {
            None => says_of_tiles(&r.name, &r.tiles).map_err(|p| p.of(path))?,
            Some(source) => {
                let source = sibling(path, source)?;
                let form = form_of(&source, form);
                let tileset: Tileset = read((&source, form), files, tmx::tileset)?;
                says_of_tiles(&tileset.name, &tileset.tiles).map_err(|p| p.of(&source))?
            }
        };
        // A number belongs to the last tileset that begins at or below it.
        let next = first_gids.iter().copied().filter(|gid| *gid > r.firstgid).min();
        let numbers = r.firstgid..next.unwrap_or(u32::MAX);
        let gid = |id: u32| r.firstgid.checked_add(id).filter(|gid| numbers.contains(gid));
        all.extend(own.into_iter().filter_map(|(id, says)| Some((gid(id)?, says))));
    }
    Ok(all)
}

fn says_of_tiles(tileset: &str, tiles: &[Tile]) -> Result<Vec<(u32, Says)>, MapProblem> {
    let mut all = Vec::new();
    for tile in tiles {
        let of = || format!("tile {} of tileset {tileset:?}", tile.id);
        let own = says_of(&of, &tile.properties)?;
        if own != Says::NOTHING {
            all.push((tile.id, own));
        }
    }
    Ok(all)
}

fn says_of(of: &dyn Fn() -> String, properties: &[Property]) -> Result<Says, MapProblem> {
    if properties.is_empty() {
        return Ok(Says::NOTHING);
    }
    says(&of(), properties.iter().map(|p| (&p.name, p.value.0.clone())))
}

/// A map whose layers are being read.
struct Reading<'r, 'f> {
    path: &'r Path,
    form: Form,
    files: &'r mut Files<'f>,
    tiles: FxHashMap<u32, Says>,
    size: (u32, u32),
    cells: u64,
    templates: FxHashMap<String, Template>,
}

impl Reading<'_, '_> {
    fn tiles(
        &mut self,
        layer: Layer,
        infinite: bool,
        sketch: &mut Sketch<'_>,
    ) -> Result<(), MapProblem> {
        let name = layer.name;
        let of = || format!("layer {name:?}");
        let told = sketch.tile_layer(&name, says_of(&of, &layer.properties)?);
        let problem = |problem| MapProblem::Data { layer: name.clone(), problem };
        let encoding = Encoding::named(
            layer.encoding.as_deref().unwrap_or("csv"),
            layer.compression.as_deref().unwrap_or(""),
        );
        let encoding = encoding.map_err(problem)?;
        if infinite {
            for chunk in layer.chunks {
                let Chunk { x, y, width, height, data } = chunk;
                check_chunk(&name, x, y, width, height)?;
                let tiles = self.unpack(data, encoding, (width * height) as u64);
                let places = Places { x: x as i32, z: y as i32, width: width as i32 };
                self.tell(&told, &tiles.map_err(|p| p.of_layer(&name))?, places, sketch)?;
            }
            return Ok(());
        }
        let found = (layer.width, layer.height);
        if found != self.size {
            return Err(MapProblem::LayerSize { layer: name, found, wanted: self.size });
        }
        let wanted = u64::from(found.0) * u64::from(found.1);
        let tiles = self.unpack(layer.data.unwrap_or_default(), encoding, wanted);
        let places = Places { x: 0, z: 0, width: found.0 as i32 };
        self.tell(&told, &tiles.map_err(|p| p.of_layer(&name))?, places, sketch)
    }

    /// Exactly `wanted` tiles.
    fn unpack(
        &mut self,
        data: Data,
        encoding: Encoding,
        wanted: u64,
    ) -> Result<Vec<u32>, Unpacked> {
        self.cells += wanted;
        if self.cells > MAX_CELLS {
            return Err(Unpacked::TooMany);
        }
        let tiles = match (data, encoding) {
            (Data::List(tiles), Encoding::Csv) => tiles,
            (Data::Csv(text), Encoding::Csv) => csv(&text, wanted)?,
            (Data::Text(text), Encoding::Base64(compression)) => {
                unpack(&text, compression, wanted)?
            }
            (Data::List(_), Encoding::Base64(_)) => {
                return Err(DataProblem::Unpack("they are a list".into()).into());
            }
            (Data::Text(_), Encoding::Csv) | (Data::Csv(_), Encoding::Base64(_)) => {
                return Err(DataProblem::Unpack("they are a text".into()).into());
            }
        };
        let found = tiles.len() as u64;
        if found == wanted { Ok(tiles) } else { Err(DataProblem::Count { found, wanted }.into()) }
    }

    fn tell(
        &self,
        layer: &TileLayer,
        tiles: &[u32],
        at: Places,
        sketch: &mut Sketch<'_>,
    ) -> Result<(), MapProblem> {
        for (i, gid) in tiles.iter().map(|tile| tile & !FLIPS).enumerate() {
            if gid == 0 {
                continue;
            }
            let own = self.tiles.get(&gid).copied().unwrap_or(Says::NOTHING);
            let (x, z) = (i as i32 % at.width, i as i32 / at.width);
            sketch.tile(layer, at.x + x, at.z + z, own)?;
        }
        Ok(())
    }

    fn objects(&mut self, layer: &Layer, sketch: &mut Sketch<'_>) -> Result<(), MapError> {
        for object in &layer.objects {
            let template = match &object.template {
                Some(name) => Some(self.template(name)?),
                None => None,
            };
            let whole = object.clone().over(template);
            tell_object(&whole, [&layer.name, &layer.class], sketch)
                .map_err(|p| p.of(self.path))?;
        }
        Ok(())
    }

    fn template(&mut self, name: &str) -> Result<Object, MapError> {
        if let Some(known) = self.templates.get(name) {
            return Ok(known.object.clone());
        }
        let path = sibling(self.path, name)?;
        let form = form_of(&path, self.form);
        let template: Template = read((&path, form), self.files, tmx::template)?;
        if template.object.template.is_some() {
            return Err(MapProblem::NestedTemplate.of(&path));
        }
        let object = template.object.clone();
        self.templates.insert(name.into(), template);
        Ok(object)
    }
}

/// That a chunk of an infinite map lies where maps do and has a size.
fn check_chunk(layer: &str, x: i64, z: i64, width: i64, depth: i64) -> Result<(), MapProblem> {
    let near = x.abs() <= MAX_CHUNK_AT && z.abs() <= MAX_CHUNK_AT;
    let sides = 1..=MAX_CHUNK_SIDE;
    match near && sides.contains(&width) && sides.contains(&depth) {
        true => Ok(()),
        false => Err(MapProblem::Chunk { layer: layer.into(), x, z, width, depth }),
    }
}

/// Where the first of some tiles lies, and how many there are in a row.
#[derive(Clone, Copy)]
struct Places {
    x: i32,
    z: i32,
    width: i32,
}

enum Unpacked {
    Data(DataProblem),
    TooMany,
}

impl From<DataProblem> for Unpacked {
    fn from(problem: DataProblem) -> Unpacked {
        Unpacked::Data(problem)
    }
}

impl Unpacked {
    fn of_layer(self, layer: &str) -> MapProblem {
        match self {
            Unpacked::Data(problem) => MapProblem::Data { layer: layer.into(), problem },
            Unpacked::TooMany => {
                MapProblem::TooMany { what: "tiles in all layers", most: MAX_CELLS }
            }
        }
    }
}

fn tell_object(o: &Object, layer: [&str; 2], sketch: &mut Sketch<'_>) -> Result<(), MapProblem> {
    let (width, height) = (o.width.unwrap_or(0.0), o.height.unwrap_or(0.0));
    let at = [o.x.unwrap_or(0.0), o.y.unwrap_or(0.0)];
    sketch.object(&sketch::Object {
        id: o.id.unwrap_or(0),
        name: o.name.as_deref().unwrap_or(""),
        class: o.class.as_deref().unwrap_or(""),
        layer,
        rect: o.is_rect().then_some([at[0], at[1], width, height]),
        rotation: o.rotation.unwrap_or(0.0),
        is_tile: o.gid.is_some(),
        at,
        properties: o.properties.iter().map(|p| (&*p.name, &p.value.0)).collect(),
    })
}
