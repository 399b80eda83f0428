//! Reads a scene's terrain from existing files: maps made with Tiled, and grey-scale pictures. The
//! configuration calls it when it builds scenes.
//!
//! ```text
//!   .tmx .tsx .tx --> quick-xml --+
//!                                 +--> model --> sketch --+
//!   .tmj .tsj .tj --> serde_json -+                       +--> Draft --> Terrain
//!   .png -----------> `png` crate ------------------------+
//! ```
//!
//! A map is compared with the size of its scene before memory is allocated for it, and a damaged
//! file must never end the server. Every problem is a [`MapError`] with the file, what it says, and
//! what would be right.

mod error;
mod objects;
mod png;
mod tiled;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use purview::scene::SceneSpec;
use purview::scene::terrain::{Draft, MAX_TILES, Terrain, TerrainError, Tile};

pub use error::{DataProblem, MapError, MapProblem, SyntaxProblem};
pub use objects::{MapObject, ObjectRole, ObjectValue};

/// Most bytes of a map, the files that it names included.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Most files of a map: itself, tilesets, templates.
const MAX_FILES: u64 = 256;

/// Where a scene's map comes from and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSpec {
    /// Side of a tile, centimetres; it divides both sides of the scene.
    pub tile_cm: i32,
    /// What is blocked: a Tiled map (`.tmx`, `.tmj`, `.json`) or a picture (`.png`); `None`:
    /// nothing.
    pub file: Option<PathBuf>,
    /// Tiled: the tile layer of which every tile is blocked; `None`: the one named `blocked`, if
    /// there is one.
    pub layer: Option<String>,
    /// Pictures: from this grey on, 1 to 255 of 255, a pixel is light.
    pub threshold: u8,
    /// Pictures: whether what is dark is blocked, or what is light.
    pub blocked: Shade,
    /// A picture with the heights of the tiles. It replaces heights in a Tiled map.
    pub height: Option<PathBuf>,
    /// What a grey level of the height picture, or a step of a Tiled property `height`, is worth,
    /// centimetres, from 1.
    pub height_step_cm: i32,
    /// The grey level of the height picture that lies at 0.
    pub height_zero: u16,
    pub doors: Vec<DoorSpec>,
}

/// The dark or the light part of a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shade {
    /// Below the threshold.
    #[default]
    Dark,
    /// From the threshold on.
    Light,
}

/// A door beside those of the map's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorSpec {
    /// Its name; several of one name are one door.
    pub name: String,
    /// West and north edge, width and depth, in tiles.
    pub tiles: [i32; 4],
    /// Whether it is open from the start.
    pub open: bool,
}

impl Default for MapSpec {
    fn default() -> Self {
        MapSpec {
            tile_cm: 100,
            file: None,
            layer: None,
            threshold: 128,
            blocked: Shade::Dark,
            height: None,
            height_step_cm: 10,
            height_zero: 0,
            doors: Vec::new(),
        }
    }
}

impl MapSpec {
    /// Whether what is blocked comes from a picture, and not from a Tiled map.
    pub fn is_picture(&self) -> bool {
        self.file.as_deref().is_some_and(|file| ending(file) == "png")
    }

    /// Whether its tiles fit a scene, before any file is read.
    pub fn check(&self, scene: &SceneSpec) -> Result<(), MapProblem> {
        Wanted::of(self, scene).map(drop)
    }
}

/// Opens a file for reading.
pub type Open<'a> = &'a dyn Fn(&Path) -> std::io::Result<Box<dyn Read>>;

/// Reads the terrain of a scene, and the objects on it that are no doors, from the file system.
pub fn load(map: &MapSpec, scene: &SceneSpec) -> Result<(Terrain, Vec<MapObject>), MapError> {
    load_with(map, scene, &|path| open(map, path))
}

/// Opens a file of a map. A file that the configuration names may be a link to anywhere. A file that
/// the map names may be a link within the map's folder, for example in a volume of Kubernetes.
fn open(map: &MapSpec, path: &Path) -> io::Result<Box<dyn Read>> {
    let real = path.canonicalize()?;
    let is_configured = [&map.file, &map.height].into_iter().flatten().any(|own| own == path);
    let folder = map.file.as_deref().and_then(Path::parent).filter(|_| !is_configured);
    if let Some(folder) = folder {
        let here = Path::new(".");
        let folder = if folder.as_os_str().is_empty() { here } else { folder }.canonicalize()?;
        if !real.starts_with(folder) {
            return Err(io::Error::other("it is a link out of the folder of the map"));
        }
    }
    // Opening a pipe would wait for its writer.
    match real.metadata()?.is_file() {
        true => Ok(Box::new(std::fs::File::open(real)?)),
        false => Err(io::Error::other("it is no file")),
    }
}

/// The same with files from elsewhere: an archive, or memory.
pub fn load_with(
    map: &MapSpec,
    scene: &SceneSpec,
    open: Open<'_>,
) -> Result<(Terrain, Vec<MapObject>), MapError> {
    let nowhere = PathBuf::from("map");
    let named = map.file.as_ref().or(map.height.as_ref()).unwrap_or(&nowhere);
    let wanted = Wanted::of(map, scene).map_err(|p| p.of(named))?;
    let (mut draft, objects) = match &map.file {
        Some(file) => draw(file, map, wanted, &mut Files::new(open))?,
        None => (wanted.draft().map_err(|p| p.of(named))?, Vec::new()),
    };
    if let Some(file) = &map.height {
        let mut files = Files::new(open);
        png::heights(file, map, wanted, &mut files, &mut draft).map_err(|p| p.of(file))?;
    }
    for door in &map.doors {
        add_door(&mut draft, door).map_err(|p| p.of(named))?;
    }
    Ok((draft.finish(), objects))
}

/// The file name's extension in lower case.
fn ending(file: &Path) -> String {
    file.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn draw(
    file: &Path,
    map: &MapSpec,
    wanted: Wanted,
    files: &mut Files<'_>,
) -> Result<(Draft, Vec<MapObject>), MapError> {
    match ending(file).as_str() {
        "tmx" => tiled::draw(file, tiled::Form::Xml, map, wanted, files),
        "tmj" | "json" => tiled::draw(file, tiled::Form::Json, map, wanted, files),
        "png" => {
            let draft = png::blocking(file, map, wanted, files).map_err(|p| p.of(file))?;
            Ok((draft, Vec::new()))
        }
        _ => Err(MapProblem::UnknownForm.of(file)),
    }
}

fn add_door(draft: &mut Draft, door: &DoorSpec) -> Result<(), MapProblem> {
    let [x, z, width, depth] = door.tiles;
    // Reports the first tile outside; makes no tiles beyond the map.
    let (end_x, end_z) = (x.saturating_add(width), z.saturating_add(depth));
    let (end_x, end_z) = (end_x.min(draft.width() + 1), end_z.min(draft.depth() + 1));
    let (x, z) = (x.max(-1), z.max(-1));
    let row = |z| (x..end_x).map(move |x| Tile { x, z });
    let tiles: Vec<Tile> = (z..end_z).flat_map(row).collect();
    draft.add_door(&door.name, door.open, &tiles)?;
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    width: i32,
    depth: i32,
    tile_cm: i32,
}

impl Wanted {
    fn of(map: &MapSpec, scene: &SceneSpec) -> Result<Wanted, MapProblem> {
        let (width_cm, depth_cm, tile_cm) = (scene.width_cm, scene.depth_cm, map.tile_cm);
        if tile_cm < 1 || width_cm % tile_cm != 0 || depth_cm % tile_cm != 0 {
            return Err(MapProblem::Uneven { width_cm, depth_cm, tile_cm });
        }
        let (width, depth) = (width_cm / tile_cm, depth_cm / tile_cm);
        match i64::from(width) * i64::from(depth) > MAX_TILES {
            true => Err(TerrainError::Size { width, depth }.into()),
            false => Ok(Wanted { width, depth, tile_cm }),
        }
    }

    fn check(&self, found: (u32, u32)) -> Result<(), MapProblem> {
        let wanted = (self.width, self.depth);
        match found == (wanted.0.unsigned_abs(), wanted.1.unsigned_abs()) {
            true => Ok(()),
            false => Err(MapProblem::Size { found, wanted, tile_cm: self.tile_cm }),
        }
    }

    fn draft(&self) -> Result<Draft, MapProblem> {
        Ok(Draft::new(self.tile_cm, self.width, self.depth)?)
    }
}

/// The files of one map, whose bytes are counted before they are read.
struct Files<'a> {
    open: Open<'a>,
    bytes_left: u64,
    files_left: u64,
}

impl<'a> Files<'a> {
    fn new(open: Open<'a>) -> Files<'a> {
        Files { open, bytes_left: MAX_FILE_BYTES, files_left: MAX_FILES }
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, MapProblem> {
        if self.files_left == 0 {
            return Err(MapProblem::TooMany { what: "files", most: MAX_FILES });
        }
        self.files_left -= 1;
        let mut bytes = Vec::new();
        let read = (self.open)(path)
            .and_then(|file| file.take(self.bytes_left + 1).read_to_end(&mut bytes));
        read.map_err(MapProblem::Unreadable)?;
        match self.bytes_left.checked_sub(bytes.len() as u64) {
            Some(left) => self.bytes_left = left,
            None => return Err(MapProblem::TooLarge),
        }
        Ok(bytes)
    }
}

/// Runs a foreign parser. A panic on a damaged file becomes that file's error.
fn caught<T>(parse: impl FnOnce() -> Result<T, MapProblem>) -> Result<T, MapProblem> {
    let parsed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(parse));
    parsed.unwrap_or(Err(MapProblem::Parser))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A map of 2 x 2 tiles that names a tileset, and says at the end what reading it gives.
    fn read(folder: &Path, tileset: &str) -> Result<(), String> {
        let text = format!(
            r#"<map orientation="orthogonal" width="2" height="2" tilewidth="8" tileheight="8">
               <tileset firstgid="1" source="{tileset}"/>
               <layer id="1" name="blocked" width="2" height="2">
               <data encoding="csv">1,0,0,0</data></layer></map>"#
        );
        let file = folder.join("keep.tmx");
        std::fs::write(&file, text).unwrap();
        let scene = SceneSpec { width_cm: 200, depth_cm: 200, ..SceneSpec::default() };
        let map = MapSpec { file: Some(file), ..MapSpec::default() };
        load(&map, &scene).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_map_names_no_file_outside_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("maps");
        std::fs::create_dir_all(folder.join("sets")).unwrap();
        let set = r#"<tileset name="s" tilewidth="8" tileheight="8" tilecount="1" columns="1"/>"#;
        let outside = place.path().join("town.tsx");
        for file in [&outside, &folder.join("town.tsx"), &folder.join("sets/town.tsx")] {
            std::fs::write(file, set).unwrap();
        }
        symlink(&outside, folder.join("out.tsx")).unwrap();
        symlink(place.path(), folder.join("away")).unwrap();
        symlink("sets/town.tsx", folder.join("in.tsx")).unwrap();
        for good in ["town.tsx", "./town.tsx", "sets/town.tsx", "sets/../town.tsx", "in.tsx"] {
            assert_eq!(read(&folder, good), Ok(()), "{good}");
        }
        let absolute = outside.to_str().unwrap();
        for bad in ["../town.tsx", "sets/../../town.tsx", absolute, "/etc/passwd", "..", ""] {
            let told = read(&folder, bad).unwrap_err();
            let wanted = format!("names the file {bad:?}, which is not in the folder of the map");
            assert!(told.contains(&wanted) && told.contains("keep.tmx"), "{told}");
        }
        for bad in ["out.tsx", "away/town.tsx"] {
            let told = read(&folder, bad).unwrap_err();
            assert!(told.contains("it is a link out of the folder of the map"), "{told}");
        }
        assert!(read(&folder, "sets").unwrap_err().contains("it is no file"));
    }

    #[test]
    fn the_file_that_the_configuration_names_may_be_a_link() {
        let place = tempfile::tempdir().unwrap();
        let [real, named] = ["real", "named"].map(|name| place.path().join(name));
        std::fs::create_dir_all(&named).unwrap();
        std::fs::create_dir_all(&real).unwrap();
        let set = r#"<tileset name="s" tilewidth="8" tileheight="8" tilecount="1" columns="1"/>"#;
        std::fs::write(named.join("town.tsx"), set).unwrap();
        read(&named, "town.tsx").unwrap();
        std::fs::rename(named.join("keep.tmx"), real.join("keep.tmx")).unwrap();
        symlink(real.join("keep.tmx"), named.join("keep.tmx")).unwrap();
        let scene = SceneSpec { width_cm: 200, depth_cm: 200, ..SceneSpec::default() };
        let map = MapSpec { file: Some(named.join("keep.tmx")), ..MapSpec::default() };
        load(&map, &scene).unwrap();
    }
}
