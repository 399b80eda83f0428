//! Checks every file before the parser of the `tiled` crate reads it.
//!
//! That parser trusts its input: it unpacks layers of any size, allocates as many tiles as a
//! tileset claims, follows groups and templates to any depth, and looks up tiles by a claimed size.
//! The guard reads the file first, with the same XML reader, event by event, and refuses what the
//! parser could not handle, with the figure.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::data::{Encoding, unpack};
use crate::maps::MapProblem::{self, TooMany};
use crate::maps::{DataProblem, Files, Wanted};

/// Deepest nesting of elements. Groups of layers and properties nest; the parser calls itself for
/// each.
const MAX_DEPTH: usize = 32;

/// Most attributes of an element; the reader compares each with all before it.
const MAX_ATTRIBUTES: usize = 64;

/// Most tiles of all layers together; the parser takes 16 bytes for each.
pub(super) const MAX_CELLS: u64 = 1 << 24;

/// Most tiles of all tilesets together; the parser takes some 300 bytes for each.
const MAX_TILESET_TILES: u64 = 1 << 17;

/// Farthest from the origin that a chunk may lie, tiles.
pub(super) const MAX_CHUNK_AT: i64 = 1 << 24;

/// Longest side of a chunk, tiles; Tiled writes 16.
pub(super) const MAX_CHUNK_SIDE: i64 = 4_096;

/// The reader that the parser gets its files from.
pub(super) struct Guard<'g, 'f> {
    files: &'g mut Files<'f>,
    wanted: Wanted,
    cells: u64,
    tileset_tiles: u64,
    /// The first refusal with its file, because the parser wraps the error that it gets.
    pub refused: Option<(PathBuf, MapProblem)>,
}

/// Tells the parser to stop.
#[derive(Debug, thiserror::Error)]
#[error("refused")]
pub(super) struct Refused;

impl tiled::ResourceReader for Guard<'_, '_> {
    type Resource = Cursor<Vec<u8>>;
    type Error = Refused;

    fn read_from(&mut self, path: &Path) -> Result<Cursor<Vec<u8>>, Refused> {
        let checked = self.files.read(path).and_then(|bytes| {
            Check::new(self).run(&bytes)?;
            Ok(Cursor::new(bytes))
        });
        checked.map_err(|problem| {
            self.refused = Some((path.to_path_buf(), problem));
            Refused
        })
    }
}

impl<'g, 'f> Guard<'g, 'f> {
    pub fn new(files: &'g mut Files<'f>, wanted: Wanted) -> Guard<'g, 'f> {
        Guard { files, wanted, cells: 0, tileset_tiles: 0, refused: None }
    }

    /// Counts tiles of layers before they are read.
    fn count_cells(&mut self, more: u64) -> Result<(), MapProblem> {
        self.cells += more;
        match self.cells > MAX_CELLS {
            true => Err(TooMany { what: "tiles in all layers", most: MAX_CELLS }),
            false => Ok(()),
        }
    }
}

/// An element that is open.
enum Place {
    Layer,
    /// The tiles of a layer, or of a chunk of one, and how many there must be; `None` once their
    /// text was seen. The parser reads the first text alone.
    Tiles(Option<u64>),
    Other,
}

/// One file being looked through.
struct Check<'c, 'g, 'f> {
    guard: &'c mut Guard<'g, 'f>,
    open: Vec<(Vec<u8>, Place)>,
    /// The size of the map, where it is a map and not infinite.
    size: Option<(u32, u32)>,
    layer: String,
    encoding: Option<Encoding>,
}

impl<'c, 'g, 'f> Check<'c, 'g, 'f> {
    fn new(guard: &'c mut Guard<'g, 'f>) -> Check<'c, 'g, 'f> {
        Check { guard, open: Vec::new(), size: None, layer: String::new(), encoding: None }
    }

    fn run(&mut self, xml: &[u8]) -> Result<(), MapProblem> {
        let mut reader = Reader::from_reader(xml);
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer).map_err(syntax)? {
                Event::Start(e) => {
                    let place = self.enter(&e)?;
                    self.open.push((e.local_name().as_ref().to_vec(), place));
                }
                Event::Empty(e) => {
                    let place = self.enter(&e)?;
                    self.leave(&place)?;
                }
                Event::End(_) => {
                    if let Some((_, place)) = self.open.pop() {
                        self.leave(&place)?;
                    }
                }
                Event::Text(e) => {
                    if self.wants_text() {
                        self.text(&e.unescape().map_err(syntax)?)?;
                    }
                }
                Event::CData(e) => {
                    if self.wants_text() {
                        self.text(&String::from_utf8_lossy(&e))?;
                    }
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        match self.open.last() {
            Some((name, _)) => {
                Err(MapProblem::CutOff(format!("<{}>", String::from_utf8_lossy(name))))
            }
            None => Ok(()),
        }
    }

    fn root(&self) -> Option<&[u8]> {
        self.open.first().map(|(name, _)| &name[..])
    }

    fn enter(&mut self, e: &BytesStart<'_>) -> Result<Place, MapProblem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(TooMany { what: "elements within each other", most: MAX_DEPTH as u64 });
        }
        let a = Attributes::of(e)?;
        match (e.local_name().as_ref(), self.open.last().map(|(_, place)| place)) {
            (b"map", None) => self.map(&a)?,
            (b"tileset", _) => self.tileset(&a)?,
            (b"object", _) if a.has_template && self.root() != Some(b"map") => {
                return Err(MapProblem::NestedTemplate);
            }
            (b"layer", _) => {
                self.layer.clone_from(&a.name);
                self.layer(&a)?;
                return Ok(Place::Layer);
            }
            (b"data", Some(Place::Layer)) => return self.data(&a),
            (b"chunk", Some(Place::Tiles(_))) => return self.chunk(&a),
            _ => {}
        }
        Ok(Place::Other)
    }

    fn map(&mut self, a: &Attributes) -> Result<(), MapProblem> {
        let (Some(width), Some(height)) = (a.width, a.height) else { return Ok(()) };
        if !a.infinite {
            self.guard.wanted.check((width, height))?;
            self.size = Some((width, height));
        }
        Ok(())
    }

    fn tileset(&mut self, a: &Attributes) -> Result<(), MapProblem> {
        let Some(tiles) = a.tilecount else { return Ok(()) };
        self.guard.tileset_tiles += u64::from(tiles);
        if self.guard.tileset_tiles > MAX_TILESET_TILES {
            return Err(TooMany { what: "tiles in all tilesets", most: MAX_TILESET_TILES });
        }
        match a.has_columns {
            true => Ok(()),
            false => Err(MapProblem::Columns(a.name.clone())),
        }
    }

    fn layer(&mut self, a: &Attributes) -> Result<(), MapProblem> {
        let (Some(width), Some(height), Some(wanted)) = (a.width, a.height, self.size) else {
            return Ok(());
        };
        match (width, height) == wanted {
            true => Ok(()),
            false => Err(MapProblem::LayerSize {
                layer: self.layer.clone(),
                found: (width, height),
                wanted,
            }),
        }
    }

    fn data(&mut self, a: &Attributes) -> Result<Place, MapProblem> {
        let encoding = Encoding::named(&a.encoding, &a.compression);
        self.encoding = Some(encoding.map_err(|p| self.of_layer(p))?);
        // The tiles of an infinite map are in its chunks.
        let Some((width, height)) = self.size else { return Ok(Place::Tiles(None)) };
        let tiles = u64::from(width) * u64::from(height);
        self.guard.count_cells(tiles)?;
        Ok(Place::Tiles(Some(tiles)))
    }

    fn chunk(&mut self, a: &Attributes) -> Result<Place, MapProblem> {
        let (x, z) = (i64::from(a.x.unwrap_or(0)), i64::from(a.y.unwrap_or(0)));
        let side = |n: Option<u32>| i64::from(n.unwrap_or(0));
        let (width, depth) = (side(a.width), side(a.height));
        check_chunk(&self.layer, x, z, width, depth)?;
        // The parser keeps squares of 16 x 16, whole ones.
        let squares = |at: i64, side: i64| (at + side - 1).div_euclid(16) - at.div_euclid(16) + 1;
        self.guard.count_cells((squares(x, width) * squares(z, depth)) as u64 * 256)?;
        Ok(Place::Tiles(Some((width * depth) as u64)))
    }

    fn wants_text(&self) -> bool {
        matches!(self.open.last(), Some((_, Place::Tiles(Some(_)))))
    }

    /// The text of tiles: exactly as many as there must be.
    fn text(&mut self, text: &str) -> Result<(), MapProblem> {
        let Some((_, Place::Tiles(tiles))) = self.open.last_mut() else { return Ok(()) };
        let Some(wanted) = tiles.take() else { return Ok(()) };
        let checked = match self.encoding {
            Some(Encoding::Base64(compression)) => unpack(text, compression, wanted).map(drop),
            _ => match text.split(',').count() as u64 {
                found if found == wanted => Ok(()),
                found => Err(DataProblem::Count { found, wanted }),
            },
        };
        checked.map_err(|p| self.of_layer(p))
    }

    /// Tiles without a text are none.
    fn leave(&self, place: &Place) -> Result<(), MapProblem> {
        match *place {
            Place::Tiles(Some(wanted)) => {
                Err(self.of_layer(DataProblem::Count { found: 0, wanted }))
            }
            _ => Ok(()),
        }
    }

    fn of_layer(&self, problem: DataProblem) -> MapProblem {
        MapProblem::Data { layer: self.layer.clone(), problem }
    }
}

/// That a chunk of an infinite map lies where maps do and has a size.
pub(super) fn check_chunk(
    layer: &str,
    x: i64,
    z: i64,
    width: i64,
    depth: i64,
) -> Result<(), MapProblem> {
    let near = x.abs() <= MAX_CHUNK_AT && z.abs() <= MAX_CHUNK_AT;
    let sides = 1..=MAX_CHUNK_SIDE;
    match near && sides.contains(&width) && sides.contains(&depth) {
        true => Ok(()),
        false => Err(MapProblem::Chunk { layer: layer.into(), x, z, width, depth }),
    }
}

fn syntax(e: quick_xml::Error) -> MapProblem {
    MapProblem::Syntax(e.to_string())
}

/// The attributes that matter here. As the parser has it, a prefix does not count, the last of a
/// name does, and a number that is none is its to refuse.
#[derive(Default)]
struct Attributes {
    name: String,
    encoding: String,
    compression: String,
    width: Option<u32>,
    height: Option<u32>,
    x: Option<i32>,
    y: Option<i32>,
    tilecount: Option<u32>,
    infinite: bool,
    has_columns: bool,
    has_template: bool,
}

impl Attributes {
    fn of(e: &BytesStart<'_>) -> Result<Attributes, MapProblem> {
        let mut all = Attributes::default();
        for (n, attribute) in e.attributes().with_checks(false).enumerate() {
            if n >= MAX_ATTRIBUTES {
                return Err(TooMany { what: "attributes of one element", most: n as u64 });
            }
            let attribute = attribute.map_err(|e| syntax(e.into()))?;
            let value = attribute.unescape_value().map_err(syntax)?;
            match attribute.key.local_name().as_ref() {
                b"name" => all.name = value.into_owned(),
                b"encoding" => all.encoding = value.into_owned(),
                b"compression" => all.compression = value.into_owned(),
                b"width" => all.width = value.parse().ok(),
                b"height" => all.height = value.parse().ok(),
                b"x" => all.x = value.parse().ok(),
                b"y" => all.y = value.parse().ok(),
                b"tilecount" => all.tilecount = value.parse().ok(),
                b"infinite" => all.infinite = value == "1",
                b"columns" => all.has_columns = value.parse::<u32>().is_ok(),
                b"template" => all.has_template = true,
                _ => {}
            }
        }
        Ok(all)
    }
}
