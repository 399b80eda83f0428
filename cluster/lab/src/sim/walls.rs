//! Walls of the simulated scenes: entities that occupy tiles, in rows with gaps along the borders of regions; and NPCs
//! with bodies of several tiles.

use purview::scene::contents::ContentSpec;
use purview::scene::spec::KindSpec;
use purview::scene::{Kind, Pos, SceneSpec};

use super::REGION_CM;

/// How far from a corner of four regions the rows reach, tiles of 1 m.
const REACH: i32 = 24;

/// The sides of an NPC's body: it occupies 2 x 2 or 3 x 2 tiles.
const NPC_CM: [i32; 2] = [250, 200];

/// The corners of regions at which there are walls.
pub const CORNERS: [Pos; 2] =
    [Pos { x: REGION_CM, y: 0, z: REGION_CM }, Pos { x: 2 * REGION_CM, y: 0, z: REGION_CM }];

/// Adds walls to a scene. Its NPCs block the way, too.
pub fn add_to(spec: &mut SceneSpec) {
    let kind = Kind(spec.kinds.len() as u8);
    for npc in spec.kinds.iter_mut().skip(1) {
        (npc.blocks, npc.size_cm) = (true, Some(NPC_CM));
    }
    spec.kinds.push(KindSpec { blocks: true, ..KindSpec::new("wall", 0) });
    for (number, pos) in CORNERS.iter().flat_map(|corner| row_at(*corner)).enumerate() {
        spec.contents.push(ContentSpec::new(format!("wall {number}"), kind, pos));
    }
}

/// The walls at a corner: on either side of both borders, with a gap after every third.
fn row_at(corner: Pos) -> impl Iterator<Item = Pos> {
    let offs = (-REACH..REACH).filter(|off| off.rem_euclid(4) != 3);
    offs.flat_map(move |off| {
        let (along, beside) = (100 * off + 50, if off.rem_euclid(8) < 4 { -50 } else { 50 });
        let at = |x: i32, z: i32| Pos { x: corner.x + x, z: corner.z + z, ..corner };
        [at(along, beside), at(beside, along)]
    })
}
