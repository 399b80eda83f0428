//! The meaning of a Tiled map in either form: tiles and objects go in, a draft of the terrain comes
//! out.
//!
//! At each position the topmost tile with a property decides. A tile has its own properties
//! `blocked` and `height`, and otherwise those of its layer; every tile of the layer for blocked
//! tiles is blocked.

use purview::scene::MAX_CONTENTS;
use purview::scene::terrain::{Draft, MAX_DOOR_TILES, Tile};

use crate::maps::{MapObject, MapProblem, MapSpec, ObjectRole, ObjectValue, Wanted};

/// The layer of which every tile is blocked, where the configuration names no other.
pub(super) const BLOCKED: &str = "blocked";

/// Most names of layers in a message.
const MAX_KNOWN: usize = 16;

/// What a tile or a layer says about the places where it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Says {
    pub blocked: Option<bool>,
    /// In steps.
    pub height: Option<i16>,
}

impl Says {
    pub const NOTHING: Says = Says { blocked: None, height: None };

    fn or(self, other: Says) -> Says {
        Says { blocked: self.blocked.or(other.blocked), height: self.height.or(other.height) }
    }
}

/// A custom property's value, as far as it may matter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Number(f64),
    Text(String),
    Other(&'static str),
}

impl Value {
    fn told(&self) -> String {
        match self {
            Value::Bool(b) => format!("the bool {b}"),
            Value::Number(n) => format!("the number {n}"),
            Value::Text(text) => format!("the text {text:?}"),
            Value::Other(what) => (*what).into(),
        }
    }

    pub fn as_bool(&self, of: &str, name: &'static str) -> Result<bool, MapProblem> {
        match self {
            Value::Bool(b) => Ok(*b),
            other => Err(MapProblem::Property {
                of: of.into(),
                name,
                found: other.told(),
                wanted: "a bool",
            }),
        }
    }

    fn as_steps(&self, of: &str) -> Result<i16, MapProblem> {
        match self {
            Value::Number(n) if n.fract() == 0.0 && n.abs() <= f64::from(i16::MAX) => Ok(*n as i16),
            other => Err(MapProblem::Property {
                of: of.into(),
                name: "height",
                found: other.told(),
                wanted: "a whole number of steps (`height_step`) from -32767 to 32767",
            }),
        }
    }
}

pub(super) fn says(
    of: &str,
    properties: impl Iterator<Item = (impl AsRef<str>, Value)>,
) -> Result<Says, MapProblem> {
    let mut says = Says::NOTHING;
    for (name, value) in properties {
        match name.as_ref() {
            "blocked" => says.blocked = Some(value.as_bool(of, "blocked")?),
            "height" => says.height = Some(value.as_steps(of)?),
            _ => {}
        }
    }
    Ok(says)
}

/// A tile layer whose tiles are being told.
pub(super) struct TileLayer {
    name: String,
    says: Says,
}

pub(super) struct Object<'a> {
    pub id: u32,
    pub name: &'a str,
    pub class: &'a str,
    pub layer: [&'a str; 2],
    /// West, north, width and depth in pixels; `None` for what is no rectangle.
    pub rect: Option<[f64; 4]>,
    pub rotation: f64,
    /// Whether it is a picture of a tile, whose place is its foot.
    pub is_tile: bool,
    /// The point that stands for it: its place, or that of its north-west corner, pixels.
    pub at: [f64; 2],
    pub properties: Vec<(&'a str, &'a Value)>,
}

/// A terrain that is being drawn from a Tiled map.
pub(super) struct Sketch<'a> {
    spec: &'a MapSpec,
    wanted: Wanted,
    /// Pixels of a tile along x and z, by which objects are placed.
    tile_px: [f64; 2],
    draft: Draft,
    objects: Vec<MapObject>,
    /// Steps, row by row, as soon as anything has a height.
    heights: Option<Vec<i16>>,
    known: Vec<String>,
    found_named: bool,
    said_anything: bool,
}

impl<'a> Sketch<'a> {
    pub fn new(spec: &'a MapSpec, wanted: Wanted) -> Result<Sketch<'a>, MapProblem> {
        Ok(Sketch {
            spec,
            wanted,
            tile_px: [1.0, 1.0],
            draft: wanted.draft()?,
            objects: Vec::new(),
            heights: None,
            known: Vec::new(),
            found_named: false,
            said_anything: false,
        })
    }

    /// How the map lies and how many pixels its tiles have. On isometric maps objects are placed
    /// along the tiles' sides, both of which are as long as a tile is high.
    pub fn lie(&mut self, orientation: &str, width: f64, height: f64) -> Result<(), MapProblem> {
        self.tile_px = match orientation {
            "orthogonal" => [width, height],
            "isometric" => [height, height],
            other => return Err(MapProblem::Orientation(other.into())),
        };
        Ok(())
    }

    fn layer_name(&self) -> &str {
        self.spec.layer.as_deref().unwrap_or(BLOCKED)
    }

    pub fn tile_layer(&mut self, name: &str, mut says: Says) -> TileLayer {
        if self.known.len() < MAX_KNOWN {
            self.known.push(name.into());
        }
        if name == self.layer_name() {
            self.found_named = true;
            self.said_anything = true;
            says.blocked = Some(says.blocked.unwrap_or(true));
        }
        TileLayer { name: name.into(), says }
    }

    /// A tile of the layer, which says `own` by itself.
    #[inline]
    pub fn tile(&mut self, layer: &TileLayer, x: i32, z: i32, own: Says) -> Result<(), MapProblem> {
        let says = own.or(layer.says);
        if says == Says::NOTHING {
            return Ok(());
        }
        self.say(layer, Tile { x, z }, says)
    }

    fn say(&mut self, layer: &TileLayer, tile: Tile, says: Says) -> Result<(), MapProblem> {
        let Wanted { width, depth, .. } = self.wanted;
        let inside = (0..width).contains(&tile.x) && (0..depth).contains(&tile.z);
        if !inside {
            let (layer, x, z) = (layer.name.clone(), tile.x, tile.z);
            return match says.blocked == Some(true) || says.height.is_some() {
                true => Err(MapProblem::OutsideScene { layer, x, z, wanted: (width, depth) }),
                false => Ok(()),
            };
        }
        self.said_anything = true;
        if let Some(blocked) = says.blocked {
            self.draft.set_blocked(tile, blocked)?;
        }
        if let (Some(steps), None) = (says.height, &self.spec.height) {
            let tiles = width as usize * depth as usize;
            let heights = self.heights.get_or_insert_with(|| vec![0; tiles]);
            heights[tile.z as usize * width as usize + tile.x as usize] = steps;
        }
        Ok(())
    }

    /// An object; one that is no door, no entity and no portal is passed over.
    pub fn object(&mut self, o: &Object<'_>) -> Result<(), MapProblem> {
        let named = |word: &str| {
            let word = word.to_lowercase();
            ["door", "doors", "bridge", "bridges"].contains(&word.as_str())
        };
        let is_door = match o.class {
            "" => o.layer.into_iter().any(named),
            class => named(class),
        };
        if !is_door {
            return self.thing(o);
        }
        let none = |problem| MapProblem::Door { name: o.name.into(), object: o.id, problem };
        if o.name.is_empty() {
            return Err(none("has no name; give it one by which it is opened and closed"));
        }
        if o.is_tile {
            return Err(none("is a tile; draw a rectangle over the tiles that it opens"));
        }
        let rect = o.rect.ok_or_else(|| none("is no rectangle"))?;
        if o.rotation != 0.0 {
            return Err(none("is turned; draw a rectangle along the tiles"));
        }
        let tiles = self.under(rect).ok_or_else(|| none("covers the middle of no tile"))?;
        let of = format!("door {:?}", o.name);
        let open = o.properties.iter().find(|(name, _)| *name == "open");
        let open = open.map_or(Ok(false), |(_, open)| open.as_bool(&of, "open"))?;
        self.draft.add_door(o.name, open, &tiles)?;
        self.said_anything = true;
        Ok(())
    }

    /// An object that is no door. Its layer, or the class of a portal, says what it is.
    fn thing(&mut self, o: &Object<'_>) -> Result<(), MapProblem> {
        let of_layer = o.layer.into_iter().find_map(MapObject::role_of);
        let of_class = MapObject::role_of(o.class).filter(|role| *role == ObjectRole::Portal);
        let Some(role) = of_class.or(of_layer) else { return Ok(()) };
        if self.objects.len() >= MAX_CONTENTS as usize {
            return Err(MapProblem::TooMany { what: "objects", most: MAX_CONTENTS.into() });
        }
        let px = self.tile_px;
        let cm = |at: f64, px: f64| (at / px * f64::from(self.wanted.tile_cm)).round() as i32;
        let rect = o.rect.filter(|_| o.rotation == 0.0 && !o.is_tile);
        let [x, z, width, depth] = o.rect.unwrap_or([o.at[0], o.at[1], 0.0, 0.0]);
        // The place of a picture is the south-west corner.
        let down = if o.is_tile { 0.0 } else { depth / 2.0 };
        let value = |(name, value): &(&str, &Value)| {
            let value = match value {
                Value::Bool(value) => ObjectValue::Bool(*value),
                Value::Number(value) => ObjectValue::Number(*value),
                Value::Text(text) => ObjectValue::Text(text.clone()),
                Value::Other(what) => ObjectValue::Other(what),
            };
            ((*name).to_owned(), value)
        };
        self.objects.push(MapObject {
            role,
            id: o.id,
            name: o.name.into(),
            class: o.class.into(),
            at_cm: [cm(x + width / 2.0, px[0]), cm(z + down, px[1])],
            rect_cm: rect.map(|[x, z, width, depth]| {
                [cm(x, px[0]), cm(z, px[1]), cm(width, px[0]), cm(depth, px[1])]
            }),
            properties: o.properties.iter().map(value).collect(),
        });
        self.said_anything = true;
        Ok(())
    }

    /// The tiles whose middles lie within a rectangle of pixels; `None` if there is none, or more
    /// than doors may have.
    fn under(&self, [x, z, width, depth]: [f64; 4]) -> Option<Vec<Tile>> {
        let along = |at: f64, side: f64, px: f64| {
            let (first, end) = ((at / px - 0.5).ceil(), ((at + side) / px - 0.5).ceil());
            // Maps end before a thousand million tiles, and no number that is none compares.
            let sane = first.abs() < 1e9 && end.abs() < 1e9 && first < end;
            sane.then_some(first as i64..end as i64)
        };
        let xs = along(x, width, self.tile_px[0])?;
        let zs = along(z, depth, self.tile_px[1])?;
        let tiles = (xs.end - xs.start) * (zs.end - zs.start);
        if tiles > MAX_DOOR_TILES as i64 {
            return None;
        }
        let row = |z: i64| xs.clone().map(move |x| Tile { x: x as i32, z: z as i32 });
        Some(zs.flat_map(row).collect())
    }

    /// The terrain as far as it is drawn, and what stands on it.
    pub fn finish(mut self) -> Result<(Draft, Vec<MapObject>), MapProblem> {
        if let (Some(name), false) = (&self.spec.layer, self.found_named) {
            return Err(MapProblem::NoLayer { name: name.clone(), known: self.known });
        }
        if !self.said_anything {
            return Err(MapProblem::Empty { known: self.known });
        }
        if let Some(steps) = &self.heights {
            let lowest = steps.iter().copied().min().unwrap_or(0);
            let level = |n: &i16| (i32::from(*n) - i32::from(lowest)) as u16;
            let levels = steps.iter().map(level).collect();
            let step_cm = self.spec.height_step_cm;
            self.draft.set_heights(i32::from(lowest) * step_cm, step_cm, levels)?;
        }
        Ok((self.draft, self.objects))
    }
}
