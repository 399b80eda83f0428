//! The keys of `[[scene.portal]]`, and the portals among the objects of a map.

use std::sync::Arc;

use purview::scene::portals::{Journey, PortalSpec, Target, ToPlane};
use purview::scene::terrain::{Ground, Terrain};
use purview::scene::{Plane, Pos, Rect, Scene, SceneSpec};

use super::form::{Form, Rule, TEXT};
use super::keys::{Keys, NAME, keys};
use super::page::quoted;
use super::read::{ANY_LENGTH, lengths, lengths_text};
use super::tree::{Item, Node};
use super::units::Quantity::Length;
use crate::maps::{MapObject, MapProblem, ObjectRole, ObjectValue};

const AREA: Rule<'static> = (
    "four lengths: west and north edge, width and depth, for example [\"10m\", \"20m\", \"4m\", \"4m\"]",
    Form::Few(4, 4, &ANY_LENGTH),
);
const TO: Rule<'static> = (
    "two or three lengths: x, z and, if it is not the ground's, the height",
    Form::Few(2, 3, &ANY_LENGTH),
);
const SCENE: Rule<'static> = ("the name of a scene, or \"here\"", TEXT);
const NUMBER: Form<'static> = Form::Whole(i32::MIN as i64, i32::MAX as i64);
const PLANE: Rule<'static> =
    ("a number, \"line\" or \"same\"", Form::Or("line", &Form::Or("same", &NUMBER)));
/// What the object of a map says of its destination.
const TO_TEXT: &str = "must have a text `to` of two or three lengths, as \"10m, 20m\"";

pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>) {
    let says = "Areas that take players who walk into them elsewhere, in every plane.";
    k.sections(("portal", says), (unnamed(), portal), |spec| &mut spec.portals);
}

fn unnamed() -> PortalSpec {
    PortalSpec {
        name: String::new(),
        area: Rect { x0: 0, z0: 0, x1: 0, z1: 0 },
        to: Journey { scene: None, plane: ToPlane::Line, at: Target::Ground(Pos::default()) },
    }
}

fn portal(k: &mut Keys<'_, '_, PortalSpec>) {
    let rule = "each portal needs a name, an area and a place that it leads to";
    k.require(&["name", "area", "to"], rule);
    let scene = |node: &Node| match super::read::text_of(node) {
        Some("here") => Ok(None),
        Some(name) => Ok(Some(name.to_owned())),
        None => Err(format!("must be {}", SCENE.0)),
    };
    let scene_text = |scene: &Option<String>| quoted(scene.as_deref().unwrap_or("here"));
    let plane = |node: &Node| match &node.item {
        Item::Text(text) if text == "line" => Ok(ToPlane::Line),
        Item::Text(text) if text == "same" => Ok(ToPlane::Same),
        Item::Integer(number) => match i32::try_from(*number) {
            Ok(number) if Plane(number) != Plane::LIMBO => Ok(ToPlane::Of(Plane(number))),
            _ => Err(format!("must be {}", PLANE.0)),
        },
        _ => Err(format!("must be {}", PLANE.0)),
    };
    let plane_text = |plane: &ToPlane| match plane {
        ToPlane::Line => quoted("line"),
        ToPlane::Same => quoted("same"),
        ToPlane::Of(plane) => plane.0.to_string(),
    };
    keys! { k;
        "name" text(NAME) name: "What logs call it, unique in the scene.";
        "area" other(AREA, area, area_text) area:
            "The area that takes players; a player that is put down in it has to leave it first.";
        "to" other(TO, target, target_text) to.at: "The place to which it leads.";
        "scene" other(SCENE, scene, scene_text) to.scene: "The scene to which it leads.";
        "plane" other(PLANE, plane, plane_text) to.plane:
            "The plane to which it leads; \"line\" = in another scene the line that the player's token names or that is next \
             to fill, unless the player leaves a private plane, otherwise \"same\" = of the number that the player leaves.";
    }
}

/// The rectangle of two edges and two sides.
fn rect([x, z, width, depth]: [i32; 4]) -> Rect {
    Rect { x0: x, z0: z, x1: x.saturating_add(width), z1: z.saturating_add(depth) }
}

fn area(node: &Node) -> Result<Rect, String> {
    let sides = <[i32; 4]>::try_from(lengths(node, AREA.0)?);
    sides.map(rect).map_err(|_| format!("must be {}", AREA.0))
}

fn area_text(Rect { x0, z0, x1, z1 }: &Rect) -> String {
    lengths_text(&[*x0, *z0, x1 - x0, z1 - z0])
}

fn target_of(lengths: &[i32]) -> Option<Target> {
    match *lengths {
        [x, z] => Some(Target::Ground(Pos::ground(x, z))),
        [x, z, y] => Some(Target::Exact(Pos { x, y, z })),
        _ => None,
    }
}

fn target(node: &Node) -> Result<Target, String> {
    target_of(&lengths(node, TO.0)?).ok_or_else(|| format!("must be {}", TO.0))
}

fn target_text(target: &Target) -> String {
    match *target {
        Target::Ground(Pos { x, z, .. }) => lengths_text(&[x, z]),
        Target::Exact(Pos { x, y, z }) => lengths_text(&[x, z, y]),
    }
}

pub(super) fn of_map(objects: &[MapObject]) -> Result<Vec<PortalSpec>, MapProblem> {
    let portals = objects.iter().filter(|object| object.role == ObjectRole::Portal);
    let portal = |object| {
        of_object(object).map_err(|problem| MapProblem::Object { object: object.told(), problem })
    };
    portals.map(portal).collect()
}

fn of_object(object: &MapObject) -> Result<PortalSpec, String> {
    let sides = object.rect_cm.ok_or("is a portal: it must be a rectangle that is not turned")?;
    let mut portal = PortalSpec { name: object.name_or_number(), area: rect(sides), ..unnamed() };
    let mut leads = false;
    for (name, value) in &object.properties {
        match (&**name, value) {
            ("to", ObjectValue::Text(text)) => {
                let cm = |text: &str| i32::try_from(Length.parse(text.trim()).ok()?).ok();
                let all: Option<Vec<i32>> = text.split(',').map(cm).collect();
                let to = all.and_then(|all| target_of(&all)).ok_or(TO_TEXT)?;
                (portal.to.at, leads) = (to, true);
            }
            ("scene", ObjectValue::Text(scene)) => portal.to.scene = Some(scene.clone()),
            ("scene", _) => return Err("has a `scene` that is no text".into()),
            ("plane", ObjectValue::Number(n)) if n.fract() == 0.0 && (0.0..2e9).contains(n) => {
                portal.to.plane = ToPlane::Of(Plane(*n as i32));
            }
            ("plane", _) => return Err("has a `plane` that is no number from 0 on".into()),
            ("to", _) => return Err(TO_TEXT.into()),
            (name, _) => {
                return Err(format!("has the property {name:?}: portals have to, scene and plane"));
            }
        }
    }
    if leads { Ok(portal) } else { Err(TO_TEXT.into()) }
}

/// Portals that lead nowhere: number of the scene, value and rule of each.
pub(super) fn dead_ends(scenes: &[Arc<Scene>]) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    for (at, scene) in scenes.iter().enumerate() {
        for portal in &scene.spec.portals {
            let PortalSpec { name, to, .. } = portal;
            let target = to.scene.as_ref().unwrap_or(&scene.spec.name);
            let Some(target) = scenes.iter().find(|known| known.spec.name == *target) else {
                let known: Vec<&str> = scenes.iter().map(|s| &*s.spec.name).collect();
                let rule = format!("must name one of the scenes {known:?}");
                found.push((at, format!("scene {target:?} of {name:?}"), rule));
                continue;
            };
            let pos = target.place_of(to.at);
            if !target.contains(pos) {
                let rule = format!("must lie in the scene {:?}", target.spec.name);
                found.push((at, format!("to {} of {name:?}", target_text(&to.at)), rule));
            } else if !is_free(target.terrain.as_ref(), to.plane, pos) {
                let rule = "must lie where the map is free, not in a wall or water".into();
                found.push((at, format!("to {} of {name:?}", target_text(&to.at)), rule));
            }
        }
    }
    found
}

fn is_free(terrain: Option<&Arc<Terrain>>, plane: ToPlane, pos: Pos) -> bool {
    terrain.is_none_or(|terrain| {
        let ground = Ground::new(terrain.clone());
        let plane = if let ToPlane::Of(plane) = plane { plane } else { Plane(0) };
        ground.is_free(plane, ground.tile_of(pos))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const CAVE: &str =
        "[[scene]]\nname = \"cave\"\nwidth = \"64m\"\ndepth = \"64m\"\nland = \"64m\"\n";

    /// The portals of the first of two scenes, or what is wrong.
    fn read(portal: &str, objects: &str) -> Result<Vec<PortalSpec>, String> {
        let folder = tempfile::tempdir().unwrap();
        let map = format!(
            r#"<map orientation="orthogonal" width="64" height="64" tilewidth="8" tileheight="8">
               <objectgroup name="doors"><object id="1" name="gate" x="0" y="0" width="8" height="8"/></objectgroup>
               <objectgroup name="portals">{objects}</objectgroup></map>"#
        );
        let file = folder.path().join("keep.tmx");
        std::fs::write(&file, map).unwrap();
        let config = format!(
            "[[scene]]\nname = \"keep\"\nwidth = \"128m\"\ndepth = \"128m\"\nland = \"64m\"\n{portal}\
             [scene.map]\ntile = \"2m\"\nfile = {:?}\n{CAVE}",
            file.display().to_string()
        );
        let config = Config::parse(&config).map_err(|errors| errors.to_string())?;
        let scenes = config.build_scenes().map_err(|errors| errors.to_string())?;
        let again = Config::parse(&config.to_toml()).unwrap();
        assert_eq!(again.scenes[0].spec, config.scenes[0].spec, "it prints what it reads");
        Ok(scenes[0].spec.portals.clone())
    }

    fn portal(keys: &str) -> String {
        format!(
            "[[scene.portal]]\nname = \"mouth\"\narea = [\"10m\", \"20m\", \"4m\", \"3m\"]\n{keys}\n"
        )
    }

    fn object(attributes: &str, properties: &[(&str, &str)]) -> String {
        let property =
            |(name, value): &(&str, &str)| format!("<property name={name:?} value={value:?}/>");
        let all: String = properties.iter().map(property).collect();
        format!(
            "<object id=\"7\" x=\"8\" y=\"16\" {attributes}><properties>{all}</properties></object>"
        )
    }

    #[test]
    fn portals_are_read_from_the_file_and_from_the_map() {
        let away = portal("to = [\"32m\", \"8m\", \"1m\"]\nscene = \"cave\"\nplane = 3");
        let objects = object("width=\"16\" height=\"16\"", &[("to", "5m, 6m"), ("scene", "cave")]);
        let found = read(
            &format!("{away}{}", portal("to = [\"5m\", \"6m\"]").replace("mouth", "m2")),
            &objects,
        );
        let area = Rect { x0: 1_000, z0: 2_000, x1: 1_400, z1: 2_300 };
        let near = Target::Ground(Pos::ground(500, 600));
        let cave = |plane: ToPlane, at| Journey { scene: Some("cave".into()), plane, at };
        let expected = [
            PortalSpec {
                name: "mouth".into(),
                area,
                to: cave(ToPlane::Of(Plane(3)), Target::Exact(Pos { x: 3_200, y: 100, z: 800 })),
            },
            PortalSpec {
                name: "m2".into(),
                area,
                to: Journey { scene: None, plane: ToPlane::Line, at: near },
            },
            PortalSpec {
                name: "object 7".into(),
                area: Rect { x0: 200, z0: 400, x1: 600, z1: 800 },
                to: cave(ToPlane::Line, near),
            },
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_with_a_portal_names_it() {
        let to = "to = [\"5m\", \"6m\"]";
        for (keys, says) in [
            ("", "each portal needs a name, an area and a place"),
            ("to = [\"5m\"]", "must be two or three lengths"),
            ("to = [\"500m\", \"6m\"]", "must lead to a place of the scene"),
            ("to = [\"5m\", \"6m\"]\nplane = \"first\"", "must be a number, \"line\" or \"same\""),
            (
                "to = [\"5m\", \"6m\"]\nscene = \"moon\"",
                "must name one of the scenes [\"keep\", \"cave\"]",
            ),
            ("to = [\"100m\", \"6m\"]\nscene = \"cave\"", "must lie in the scene \"cave\""),
            ("to = [\"5m\", \"6m\"]\nsize = 1", "size"),
        ] {
            let told = read(&portal(keys), "").unwrap_err();
            assert!(told.contains(says), "{says}: {told}");
        }
        let twice = format!("{}{}", portal(to), portal(to));
        assert!(read(&twice, "").unwrap_err().contains("another portal has this name"));
        let area = "width=\"16\" height=\"16\"";
        let turned = "width=\"16\" height=\"16\" rotation=\"45\"";
        for (attributes, properties, says) in [
            (area, &[][..], "object 7 must have a text `to`"),
            (area, &[("to", "5m")], "object 7 must have a text `to`"),
            (area, &[("to", "5m, 6m"), ("colour", "red")], "object 7 has the property \"colour\""),
            (area, &[("to", "5m, 6m"), ("plane", "first")], "`plane` that is no number"),
            (turned, &[("to", "5m, 6m")], "it must be a rectangle"),
        ] {
            let told = read("", &object(attributes, properties)).unwrap_err();
            assert!(told.contains(says), "{says}: {told}");
        }
    }
}
