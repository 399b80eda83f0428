//! Objects of a Tiled map that are no doors: what a scene contains, and its portals. The configuration knows kinds and
//! scenes, and decides whether they are legal.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectRole {
    Entity,
    /// An area that takes players elsewhere.
    Portal,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ObjectValue {
    Bool(bool),
    Number(f64),
    Text(String),
    /// Of any other type, which it names.
    Other(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub struct MapObject {
    pub role: ObjectRole,
    pub id: u32,
    /// Its name; may be empty.
    pub name: String,
    /// Its class; may be empty.
    pub class: String,
    /// Its middle, or the foot of a picture of a tile, x and z, centimetres.
    pub at_cm: [i32; 2],
    /// West and north edge, width and depth, centimetres; `None` for what is no rectangle, or turned.
    pub rect_cm: Option<[i32; 4]>,
    pub properties: Vec<(String, ObjectValue)>,
}

impl MapObject {
    /// The role that a class or the name of a layer gives.
    pub(super) fn role_of(word: &str) -> Option<ObjectRole> {
        match &*word.to_lowercase() {
            "entity" | "entities" => Some(ObjectRole::Entity),
            "portal" | "portals" => Some(ObjectRole::Portal),
            _ => None,
        }
    }

    pub fn name_or_number(&self) -> String {
        match &*self.name {
            "" => format!("object {}", self.id),
            name => name.to_owned(),
        }
    }

    /// What messages call it.
    pub fn told(&self) -> String {
        match &*self.name {
            "" => format!("object {}", self.id),
            name => format!("object {} ({name:?})", self.id),
        }
    }
}
