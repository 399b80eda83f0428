//! The rules of what a scene contains.

use rustc_hash::FxHashSet;

use super::{SceneSpec, SpecError};
use crate::scene::contents::{ContentSpec, MAX_RESPAWN_MS};
use crate::scene::names::is_name;
use crate::scene::properties::{MAX_ENTITY_BYTES, Schema};
use crate::scene::spec_error::{NAME_RULE, err, m};
use crate::scene::{Kind, MAX_CONTENTS, Pos};

/// The rules of contents. The kinds are legal.
pub(super) fn check_contents(spec: &SceneSpec, schemas: &[Schema], errors: &mut Vec<SpecError>) {
    if spec.contents.len() > MAX_CONTENTS as usize {
        let rule = format!("a server has at most {MAX_CONTENTS} contents");
        return err(errors, "contents", format!("{} contents", spec.contents.len()), rule);
    }
    let mut known = FxHashSet::default();
    for content in &spec.contents {
        let name = format!("{:?}", content.name);
        if !is_name(&content.name, 64) {
            err(errors, "contents", format!("name {name}"), NAME_RULE.into());
        }
        if !known.insert(&content.name) {
            let rule = "another content has this name: choose names that differ".into();
            err(errors, "contents", format!("name {name}"), rule);
        }
        check_content(spec, schemas, content, &name, errors);
    }
}

fn check_content(
    spec: &SceneSpec,
    schemas: &[Schema],
    content: &ContentSpec,
    name: &str,
    errors: &mut Vec<SpecError>,
) {
    let schema = schemas.get(usize::from(content.kind.0)).filter(|_| content.kind != Kind::PLAYER);
    let Some(schema) = schema else {
        let rule =
            "must be a kind of the scene, other than the first, which is the players'".into();
        return err(errors, "contents", format!("kind {} of {name}", content.kind), rule);
    };
    let Pos { x, y, z } = content.pos;
    let inside = (0..spec.width_cm).contains(&x) && (0..spec.depth_cm).contains(&z);
    if !inside || y.unsigned_abs() > spec.height_limit_cm.unsigned_abs() {
        let (width, depth, limit) = (m(spec.width_cm), m(spec.depth_cm), m(spec.height_limit_cm));
        let rule = format!("must lie on the map of {width} x {depth}, within {limit} of height 0");
        err(errors, "contents", format!("({}, {}, {}) of {name}", m(x), m(y), m(z)), rule);
    }
    if content.respawn_ms.is_some_and(|ms| !(1..=MAX_RESPAWN_MS).contains(&ms)) {
        let found = format!("respawn after {} ms of {name}", content.respawn_ms.unwrap_or(0));
        err(errors, "contents", found, format!("must lie between 1 and {MAX_RESPAWN_MS} ms"));
    }
    for (at, (id, value)) in content.properties.iter().enumerate() {
        let twice = content.properties[..at].iter().any(|(other, _)| other == id);
        let refused = schema.check(*id, value).err().map(|why| why.to_string());
        if let Some(rule) = refused.or(twice.then(|| "is set twice".into())) {
            err(errors, "contents", format!("property {id} of {name}"), rule);
        }
    }
    let bytes: usize = content.properties.iter().map(|(_, value)| value.bytes().len()).sum();
    if bytes > MAX_ENTITY_BYTES {
        let rule = format!("an entity has at most {MAX_ENTITY_BYTES} bytes of properties");
        err(errors, "contents", format!("{bytes} bytes of {name}"), rule);
    }
}
